/* SPDX-License-Identifier: BSD-3-Clause */
/* libc's functions on descriptors, as programs call them: what is not a stream socket of the
 * device goes on to libc unchanged. */
#undef _FILE_OFFSET_BITS /* it would make fcntl64 of fcntl, sendfile64 of sendfile */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "lib/sockets/sockets.h"

#define EXPORT __attribute__((visibility("default")))

enum { TURNS = 200 }; /* in vain, before a call that waits sleeps in the kernel */

void *sockets_real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static int result(int err)
{
	if (err >= 0)
		return err;
	errno = -err;
	return -1;
}

/* The socket, with the lock and a reference; NULL with errno 0: not ours. */
static struct sock *get(int fd)
{
	struct sock *s = sock_of(fd);

	errno = 0;
	if (s == NULL)
		return NULL;
	if (sockets_forked()) {
		errno = ECONNRESET;
		return NULL;
	}
	pthread_mutex_lock(&sockets_lock);
	s = sock_of(fd);
	if (s == NULL) {
		pthread_mutex_unlock(&sockets_lock);
		return NULL;
	}
	sock_ref(s);
	return s;
}

static void put(struct sock *s)
{
	sock_unref(s);
	pthread_mutex_unlock(&sockets_lock);
}

/* Ours, or libc's with the program's errno untouched. */
#define OURS(s, fd, real)          \
	const int errno_ = errno;  \
	struct sock *s = get(fd);  \
	if ((s) == NULL) {         \
		if (errno != 0)    \
			return -1; \
		errno = errno_;    \
		return real;       \
	}                          \
	errno = errno_

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

static uint64_t timeout_of(int fd, int option)
{
	struct timeval t = {0};
	socklen_t len = sizeof(t);

	REAL(getsockopt)(fd, SOL_SOCKET, option, &t, &len);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
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
	(*s)->rcv_timeout = timeout_of((*s)->kernel, SO_RCVTIMEO);
	(*s)->snd_timeout = timeout_of((*s)->kernel, SO_SNDTIMEO);
	REAL(getsockopt)((*s)->kernel, SOL_SOCKET, SO_LINGER, &l, &len);
	(*s)->reset_at_close = l.l_onoff && l.l_linger == 0;
	len = sizeof(v6only);
	REAL(getsockopt)((*s)->kernel, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &len);
	(*s)->v6only = v6only != 0;
	return 0;
}

/* ---- waiting ---- */

static bool nonblocking(const struct sock *s, int flags)
{
	return (flags & MSG_DONTWAIT) || (REAL(fcntl)(s->self, F_GETFL) & O_NONBLOCK);
}

static void look_again(void)
{
	pthread_mutex_unlock(&sockets_lock);
	sched_yield();
	pthread_mutex_lock(&sockets_lock);
}

/* Until the socket can be read or written; ns 0: for ever. Lets go of the lock meanwhile. -EAGAIN
 * when the time is over, -EINTR. */
static int wait_for(struct sock *s, bool write, uint64_t ns)
{
	const uint64_t until = sockets_now() + ns;
	struct pollfd p = {.fd = s->self, .events = write ? POLLOUT : POLLIN};

	for (unsigned i = 0; i < TURNS; i++) {
		const bool busy = sockets_turn() > 0;

		if (write ? sock_writable(s) : sock_readable(s))
			return 0;
		if (busy && (ns == 0 || sockets_now() < until))
			i = 0;
		look_again();
	}
	for (;;) {
		const uint64_t now = sockets_now();
		int n, err;

		if (write ? sock_writable(s) : sock_readable(s))
			return 0;
		if (ns != 0 && now >= until)
			return -EAGAIN;
		s->watched = true;
		sock_touch(s);
		sock_sync(true);
		pthread_mutex_unlock(&sockets_lock);
		n = REAL(poll)(&p, 1, ns == 0 ? -1 : (int)((until - now) / 1000000 + 1));
		err = errno;
		pthread_mutex_lock(&sockets_lock);
		if (n < 0 && err == EINTR)
			return -EINTR;
	}
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
	pthread_mutex_lock(&sockets_lock);
	err = adopt(fd, family, &s);
	if (err == 0)
		err = sock_bind(s, &ip, port);
	pthread_mutex_unlock(&sockets_lock);
	return result(err);
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

	pthread_mutex_lock(&sockets_lock);
	err = adopt(fd, family, &s);
	if (err == 0)
		err = sock_bind(s, &any, port);
	if (err == 0)
		err = sock_listen(s, backlog);
	pthread_mutex_unlock(&sockets_lock);
	return result(err);
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
		put(own);
	}
	return result(err);
}

static int connect_own(struct sock *s, const struct wire_ip *ip, uint16_t port)
{
	int err = sock_connect(s, ip, port);

	sockets_turn();
	if (err != -EINPROGRESS || nonblocking(s, 0))
		return err;
	err = wait_for(s, true, s->snd_timeout);
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
	pthread_mutex_lock(&sockets_lock);
	if (s == NULL)
		err = adopt(fd, family, &s);
	if (err == 0) {
		if (family != 0)
			s->local_port = local;
		sock_ref(s);
		err = connect_own(s, &ip, port);
		sock_unref(s);
	}
	pthread_mutex_unlock(&sockets_lock);
	return result(err);
}

EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct sock *child;
	int got;

	OURS(s, fd, REAL(accept4)(fd, addr, len, flags));
	while ((got = sock_accept(s, flags, &child)) == -EAGAIN && !nonblocking(s, 0)) {
		const int err = wait_for(s, false, s->rcv_timeout);

		if (err < 0) {
			got = err;
			break;
		}
	}
	if (got >= 0)
		to_sockaddr(child->family, &child->remote, child->remote_port, addr, len);
	put(s);
	return result(got);
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return sock_of(fd) == NULL ? REAL(accept)(fd, addr, len) : accept4(fd, addr, len, 0);
}

/* ---- bytes ---- */

static ssize_t read_vector(struct sock *s, const struct iovec *iov, size_t n, int flags)
{
	ssize_t all = 0;

	for (size_t i = 0; i < n; i++) {
		ssize_t got;

		if (iov[i].iov_len == 0)
			continue;
		got = sock_read(s, iov[i].iov_base, iov[i].iov_len, flags & MSG_PEEK);
		if (got < 0)
			return all > 0 ? all : got;
		all += got;
		if ((size_t)got < iov[i].iov_len || (flags & MSG_PEEK))
			break;
	}
	return all;
}

static size_t length(const struct iovec *iov, size_t n)
{
	size_t all = 0;

	for (size_t i = 0; i < n; i++)
		all += iov[i].iov_len;
	return all;
}

/* MSG_WAITALL: of the first piece only, which is all that programs ask it for. */
static ssize_t receive(struct sock *s, const struct iovec *iov, size_t n, int flags)
{
	const bool now = nonblocking(s, flags);
	ssize_t got, all = 0;

	if (flags & MSG_OOB)
		return -EINVAL;
	if (length(iov, n) == 0)
		return 0;
	for (;;) {
		const struct iovec rest = {
			(uint8_t *)iov[0].iov_base + all, iov[0].iov_len - (size_t)all};
		int err;

		got = all > 0 ? read_vector(s, &rest, 1, flags) : read_vector(s, iov, n, flags);
		if (got == -EAGAIN && sockets_turn() > 0)
			got = read_vector(s, all > 0 ? &rest : iov, all > 0 ? 1 : n, flags);
		if (got > 0)
			all += got;
		if (got == 0 || (got < 0 && got != -EAGAIN))
			break;
		if (got > 0 && (!(flags & MSG_WAITALL) || n > 1 || (size_t)all >= iov[0].iov_len ||
				       (flags & MSG_PEEK)))
			break;
		err = now ? -EAGAIN : wait_for(s, false, s->rcv_timeout);
		if (err < 0) {
			got = err;
			break;
		}
	}
	return all > 0 ? all : got;
}

static ssize_t transmit(struct sock *s, const struct iovec *iov, size_t n, int flags)
{
	const bool now = nonblocking(s, flags);
	ssize_t all = 0;
	int err = 0;

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n && err == 0; i++) {
		size_t at = 0;

		while (at < iov[i].iov_len && err == 0) {
			const ssize_t put = sock_write(
				s, (const uint8_t *)iov[i].iov_base + at, iov[i].iov_len - at);

			if (put > 0) {
				at += (size_t)put;
				all += put;
			} else {
				sockets_turn();
				err = put != -EAGAIN     ? (int)put
				      : sock_writable(s) ? 0
				      : now              ? -EAGAIN
							 : wait_for(s, true, s->snd_timeout);
			}
		}
	}
	sockets_turn();
	return all > 0 ? all : err;
}

static ssize_t done(struct sock *s, ssize_t n)
{
	put(s);
	if (n >= 0)
		return n;
	errno = (int)-n;
	return -1;
}

/* A handler may do what it likes: the lock is free by then. */
static ssize_t done_sending(struct sock *s, ssize_t n, int flags)
{
	n = done(s, n);
	if (n < 0 && errno == EPIPE && !(flags & MSG_NOSIGNAL)) {
		raise(SIGPIPE);
		errno = EPIPE;
	}
	return n;
}

EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	OURS(s, fd, REAL(recv)(fd, buf, len, flags));
	return done(s, receive(s, &(struct iovec){buf, len}, 1, flags));
}

EXPORT ssize_t recvfrom(
	int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addr_len)
{
	OURS(s, fd, REAL(recvfrom)(fd, buf, len, flags, addr, addr_len));
	if (addr != NULL && addr_len != NULL)
		*addr_len = 0; /* as TCP of the kernel */
	return done(s, receive(s, &(struct iovec){buf, len}, 1, flags));
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	OURS(s, fd, REAL(recvmsg)(fd, msg, flags));
	msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	return done(s, receive(s, msg->msg_iov, msg->msg_iovlen, flags));
}

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	OURS(s, fd, REAL(read)(fd, buf, len));
	return done(s, receive(s, &(struct iovec){buf, len}, 1, 0));
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int n)
{
	OURS(s, fd, REAL(readv)(fd, iov, n));
	return done(s, n < 0 ? -EINVAL : receive(s, iov, (size_t)n, 0));
}

EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	OURS(s, fd, REAL(send)(fd, buf, len, flags));
	return done_sending(
		s, transmit(s, &(struct iovec){(void *)(uintptr_t)buf, len}, 1, flags), flags);
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
	socklen_t addr_len)
{
	OURS(s, fd, REAL(sendto)(fd, buf, len, flags, addr, addr_len));
	return done_sending(
		s, transmit(s, &(struct iovec){(void *)(uintptr_t)buf, len}, 1, flags), flags);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	OURS(s, fd, REAL(sendmsg)(fd, msg, flags));
	return done_sending(s, transmit(s, msg->msg_iov, msg->msg_iovlen, flags), flags);
}

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	OURS(s, fd, REAL(write)(fd, buf, len));
	return done_sending(s, transmit(s, &(struct iovec){(void *)(uintptr_t)buf, len}, 1, 0), 0);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int n)
{
	OURS(s, fd, REAL(writev)(fd, iov, n));
	return done_sending(s, n < 0 ? -EINVAL : transmit(s, iov, (size_t)n, 0), 0);
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	static __thread uint8_t buf[65536];
	off_t at = offset != NULL ? *offset : lseek(in, 0, SEEK_CUR);
	ssize_t got, sent;

	OURS(s, out, REAL(sendfile)(out, in, offset, count));
	got = pread(in, buf, count < sizeof(buf) ? count : sizeof(buf), at);
	sent = got <= 0 ? (got < 0 ? -errno : 0)
			: transmit(s, &(struct iovec){buf, (size_t)got}, 1, 0);
	if (sent > 0 && offset != NULL)
		*offset = at + sent;
	else if (sent > 0)
		lseek(in, at + sent, SEEK_SET);
	return done_sending(s, sent, 0);
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	return sendfile(out, in, offset, count); /* the same on 64-bit machines */
}

/* What programs call that were built with _FORTIFY_SOURCE. Too long a length is libc's to refuse.
 */
EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);
EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t size)
{
	return len > size ? REAL(__read_chk)(fd, buf, len, size) : read(fd, buf, len);
}

EXPORT ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags);
EXPORT ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags)
{
	return len > size ? REAL(__recv_chk)(fd, buf, len, size, flags) : recv(fd, buf, len, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size, int flags,
	struct sockaddr *addr, socklen_t *addr_len);
EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size, int flags,
	struct sockaddr *addr, socklen_t *addr_len)
{
	return len > size ? REAL(__recvfrom_chk)(fd, buf, len, size, flags, addr, addr_len)
			  : recvfrom(fd, buf, len, flags, addr, addr_len);
}

/* ---- descriptors ---- */

EXPORT int close(int fd)
{
	struct sock *s = sock_of(fd);

	if (s != NULL && !sockets_foreign()) {
		pthread_mutex_lock(&sockets_lock);
		s = sock_of(fd);
		sock_set(fd, NULL);
		if (s != NULL)
			sock_unref(s);
		sockets_turn();
		pthread_mutex_unlock(&sockets_lock);
	}
	return REAL(close)(fd);
}

/* The descriptor `to` has become one of what `from` is one of. */
static int duplicated(int from, int to)
{
	struct sock *s = sock_of(from), *was = to >= 0 ? sock_of(to) : NULL;

	if (to < 0 || from == to || (s == NULL && was == NULL) || sockets_foreign())
		return to;
	pthread_mutex_lock(&sockets_lock);
	if (s != NULL)
		sock_ref(s);
	sock_set(to, s);
	if (was != NULL)
		sock_unref(was);
	pthread_mutex_unlock(&sockets_lock);
	return to;
}

EXPORT int dup(int fd)
{
	return duplicated(fd, REAL(dup)(fd));
}

EXPORT int dup2(int fd, int to)
{
	return duplicated(fd, REAL(dup2)(fd, to));
}

EXPORT int dup3(int fd, int to, int flags)
{
	return duplicated(fd, REAL(dup3)(fd, to, flags));
}

EXPORT int fcntl(int fd, int command, ...)
{
	va_list ap;
	void *arg;
	int ret;

	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	ret = REAL(fcntl)(fd, command, arg);
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, ret) : ret;
}

EXPORT int fcntl64(int fd, int command, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	return fcntl(fd, command, arg);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	OURS(s, fd, REAL(ioctl)(fd, request, arg));
	if (request == FIONREAD)
		*(int *)arg = (int)(s->rx_have - s->rx_read);
	else if (request == SIOCOUTQ)
		*(int *)arg = (int)(s->tx_put - s->tx_acked);
	put(s);
	return request == FIONREAD || request == SIOCOUTQ ? 0 : REAL(ioctl)(fd, request, arg);
}

EXPORT int shutdown(int fd, int how)
{
	int err;

	OURS(s, fd, REAL(shutdown)(fd, how));
	err = sock_shutdown(s, how);
	sockets_turn();
	put(s);
	return result(err);
}

EXPORT int getsockname(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	OURS(s, fd, REAL(getsockname)(fd, addr, len));
	to_sockaddr(s->family, &s->local, s->local_port, addr, len);
	put(s);
	return 0;
}

EXPORT int getpeername(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	int err;

	OURS(s, fd, REAL(getpeername)(fd, addr, len));
	err = s->state == SOCK_OPEN ? to_sockaddr(s->family, &s->remote, s->remote_port, addr, len)
				    : -ENOTCONN;
	put(s);
	return result(err);
}

/* ---- options ---- */

/* The kernel's socket that remembers them: one that is never connected. */
static int keeper(struct sock *s)
{
	if (s->kernel < 0)
		s->kernel = socket(s->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return s->kernel;
}

EXPORT int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
	const int zero = 0;
	int ret = 0;

	OURS(s, fd, REAL(getsockopt)(fd, level, name, value, len));
	if (level == SOL_SOCKET && (name == SO_ERROR || name == SO_ACCEPTCONN)) {
		const int answer = name == SO_ERROR ? s->error : s->state == SOCK_LISTENING;

		if (value == NULL || *len < sizeof(int)) {
			ret = result(-EINVAL);
		} else {
			memcpy(value, name == SO_ERROR && answer == 0 ? &zero : &answer,
				sizeof(int));
			*len = sizeof(int);
			if (name == SO_ERROR)
				s->error = 0;
		}
	} else {
		ret = REAL(getsockopt)(keeper(s), level, name, value, len);
	}
	put(s);
	return ret;
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int ret;

	OURS(s, fd, REAL(setsockopt)(fd, level, name, value, len));
	ret = REAL(setsockopt)(keeper(s), level, name, value, len);
	if (ret == 0 && level == SOL_SOCKET && name == SO_RCVTIMEO)
		s->rcv_timeout = timeout_of(s->kernel, name);
	if (ret == 0 && level == SOL_SOCKET && name == SO_SNDTIMEO)
		s->snd_timeout = timeout_of(s->kernel, name);
	if (ret == 0 && level == SOL_SOCKET && name == SO_LINGER) {
		const struct linger *l = value;

		s->reset_at_close = l->l_onoff && l->l_linger == 0;
	}
	put(s);
	return ret;
}
