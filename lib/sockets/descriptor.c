/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on descriptors: copies of them, their end, and their options. */
#undef _FILE_OFFSET_BITS /* it would make fcntl64 of fcntl */
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "lib/sockets/exports.h"

EXPORT int close(int fd)
{
	struct sock *s = sock_of(fd);

	if (s != NULL && !sockets_foreign()) {
		sockets_enter();
		s = sock_of(fd);
		sock_set(fd, NULL);
		if (s != NULL)
			sock_unref(s);
		sockets_turn();
		sockets_leave();
	}
	return REAL(close)(fd);
}

/* The descriptor `to` has become one of what `from` is one of. */
static int duplicated(int from, int to)
{
	struct sock *s = sock_of(from), *was = to >= 0 ? sock_of(to) : NULL;

	if (to < 0 || from == to || (s == NULL && was == NULL) || sockets_foreign())
		return to;
	sockets_enter();
	if (s != NULL)
		sock_ref(s);
	sock_set(to, s);
	if (was != NULL)
		sock_unref(was);
	sockets_leave();
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
	sockets_put(s);
	return request == FIONREAD || request == SIOCOUTQ ? 0 : REAL(ioctl)(fd, request, arg);
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
			ret = sockets_result(-EINVAL);
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
	sockets_put(s);
	return ret;
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int ret;

	OURS(s, fd, REAL(setsockopt)(fd, level, name, value, len));
	ret = REAL(setsockopt)(keeper(s), level, name, value, len);
	if (ret == 0 && level == SOL_SOCKET && name == SO_RCVTIMEO)
		s->rcv_timeout = sockets_timeout(s->kernel, name);
	if (ret == 0 && level == SOL_SOCKET && name == SO_SNDTIMEO)
		s->snd_timeout = sockets_timeout(s->kernel, name);
	if (ret == 0 && level == SOL_SOCKET && name == SO_LINGER) {
		const struct linger *l = value;

		s->reset_at_close = l->l_onoff && l->l_linger == 0;
	}
	sockets_put(s);
	return ret;
}
