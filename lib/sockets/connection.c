/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that begin and end connections, and that name their ends. */
#include <string.h>

#include "lib/sockets/exports.h"

/* ---- addresses ---- */

static bool from_sockaddr(
	const struct sockaddr *sa, socklen_t len, struct wire_ip *ip, uint16_t *port)
{
	if (sa != NULL && sa->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *in = (const void *)sa;

		*ip = wire_ip_from4(ntohl(in->sin_addr.s_addr));
		*port = ntohs(in->sin_port);
		return true;
	}
	if (sa != NULL && sa->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
		const struct sockaddr_in6 *in6 = (const void *)sa;

		memcpy(ip->b, &in6->sin6_addr, 16);
		*port = ntohs(in6->sin6_port);
		return true;
	}
	return false;
}

static int to_sockaddr(
	int family, const struct wire_ip *ip, uint16_t port, struct sockaddr *sa, socklen_t *len)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	const bool v4 = family == AF_INET;
	const socklen_t size = v4 ? sizeof(in) : sizeof(in6);

	if (sa == NULL || len == NULL)
		return 0;
	if (v4)
		in.sin_addr.s_addr = htonl(wire_ip_is_zero(ip) ? 0 : wire_ip_to4(ip));
	else
		memcpy(&in6.sin6_addr, ip->b, 16);
	memcpy(sa, v4 ? (void *)&in : (void *)&in6, *len < size ? *len : size);
	*len = size;
	return 0;
}

/* The family of a kernel's stream socket, 0: it is none. */
static int family_of(int fd)
{
	int type = 0, family = 0;
	socklen_t len = sizeof(int);

	if (REAL(getsockopt)(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_STREAM ||
		REAL(getsockopt)(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) < 0)
		return 0;
	return family == AF_INET || family == AF_INET6 ? family : 0;
}

/* With the lock: a kernel's socket becomes ours. */
static int adopt(int fd, int family, struct sock **s)
{
	struct linger l = {0};
	socklen_t len = sizeof(l);
	int v6only = 0, err = sockets_open();

	if (err == 0)
		err = sock_adopt(fd, family, s);
	if (err < 0)
		return err;
	(*s)->rcv_timeout = sockets_timeout((*s)->kernel, SO_RCVTIMEO);
	(*s)->snd_timeout = sockets_timeout((*s)->kernel, SO_SNDTIMEO);
	REAL(getsockopt)((*s)->kernel, SOL_SOCKET, SO_LINGER, &l, &len);
	(*s)->reset_at_close = l.l_onoff && l.l_linger == 0;
	len = sizeof(v6only);
	REAL(getsockopt)((*s)->kernel, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &len);
	(*s)->v6only = v6only != 0;
	return 0;
}

/* ---- beginnings ---- */

EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct wire_ip ip;
	uint16_t port;
	struct sock *s;
	int family, err;

	if (!from_sockaddr(addr, len, &ip, &port) || !sockets_own(&ip) || sockets_forked() ||
		(family = family_of(fd)) == 0)
		return REAL(bind)(fd, addr, len);
	sockets_enter();
	err = adopt(fd, family, &s);
	if (err == 0)
		err = sock_bind(s, &ip, port);
	sockets_leave();
	return sockets_result(err);
}

/* A kernel's socket that is bound to no address of the kernel's. */
static bool bound_to_any(int fd, uint16_t *port)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct wire_ip ip;

	return REAL(getsockname)(fd, (struct sockaddr *)&sa, &len) == 0 &&
	       from_sockaddr((struct sockaddr *)&sa, len, &ip, port) &&
	       (wire_ip_is_zero(&ip) || (wire_ip_is4(&ip) && wire_ip_to4(&ip) == 0));
}

static int listen_any(int fd, int family, uint16_t port, int backlog)
{
	static const struct wire_ip any;
	struct sock *s;
	int err;

	sockets_enter();
	err = adopt(fd, family, &s);
	if (err == 0)
		err = sock_bind(s, &any, port);
	if (err == 0)
		err = sock_listen(s, backlog);
	sockets_leave();
	return sockets_result(err);
}

EXPORT int listen(int fd, int backlog)
{
	struct sock *s = sock_of(fd);
	int family, err;
	uint16_t port;

	if (s == NULL && sockets_configured() && !sockets_forked() &&
		(family = family_of(fd)) != 0 && bound_to_any(fd, &port))
		return listen_any(fd, family, port, backlog);
	{
		OURS(own, fd, REAL(listen)(fd, backlog));
		err = sock_listen(own, backlog);
		sockets_put(own);
	}
	return sockets_result(err);
}

static int connect_own(struct sock *s, const struct wire_ip *ip, uint16_t port)
{
	int err = sock_connect(s, ip, port);

	sockets_turn();
	if (err != -EINPROGRESS || sockets_nonblocking(s, 0))
		return err;
	err = sockets_wait(s, true, s->snd_timeout);
	if (err == -EAGAIN || err == -EINTR)
		return err == -EAGAIN ? -EINPROGRESS : err;
	err = -s->error;
	s->error = 0;
	return err;
}

EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sock *s = sock_of(fd);
	struct wire_ip ip;
	uint16_t port, local = 0;
	int family = 0, err = 0;

	if (!from_sockaddr(addr, len, &ip, &port) || sockets_forked() ||
		(s == NULL && (!sockets_reaches(&ip) || (family = family_of(fd)) == 0 ||
				      !bound_to_any(fd, &local))))
		return REAL(connect)(fd, addr, len);
	sockets_enter();
	if (s == NULL)
		err = adopt(fd, family, &s);
	if (err == 0) {
		if (family != 0)
			s->local_port = local;
		sock_ref(s);
		err = connect_own(s, &ip, port);
		sock_unref(s);
	}
	sockets_leave();
	return sockets_result(err);
}

EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct sock *child;
	int got;

	OURS(s, fd, REAL(accept4)(fd, addr, len, flags));
	while ((got = sock_accept(s, flags, &child)) == -EAGAIN && !sockets_nonblocking(s, 0)) {
		const int err = sockets_wait(s, false, s->rcv_timeout);

		if (err < 0) {
			got = err;
			break;
		}
	}
	if (got >= 0)
		to_sockaddr(child->family, &child->remote, child->remote_port, addr, len);
	sockets_put(s);
	return sockets_result(got);
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return sock_of(fd) == NULL ? REAL(accept)(fd, addr, len) : accept4(fd, addr, len, 0);
}

/* ---- ends ---- */

EXPORT int shutdown(int fd, int how)
{
	int err;

	OURS(s, fd, REAL(shutdown)(fd, how));
	err = sock_shutdown(s, how);
	sockets_turn();
	sockets_put(s);
	return sockets_result(err);
}

EXPORT int getsockname(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	OURS(s, fd, REAL(getsockname)(fd, addr, len));
	to_sockaddr(s->family, &s->local, s->local_port, addr, len);
	sockets_put(s);
	return 0;
}

EXPORT int getpeername(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	int err;

	OURS(s, fd, REAL(getpeername)(fd, addr, len));
	err = s->state == SOCK_OPEN ? to_sockaddr(s->family, &s->remote, s->remote_port, addr, len)
				    : -ENOTCONN;
	sockets_put(s);
	return sockets_result(err);
}
