/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that receive and send. */
#undef _FILE_OFFSET_BITS /* it would make sendfile64 of sendfile */
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "lib/sockets/exports.h"

/* What a call returns that has moved `all` bytes when n is what comes next: if that is an error of
 * the socket, it is the next call's, or what was cut off would look complete. */
static ssize_t so_far(struct sock *s, ssize_t all, ssize_t n)
{
	if (all == 0)
		return n;
	if (n < 0 && n != -EAGAIN && n != -EINTR && n != -EPIPE)
		s->error = (int)-n;
	return all;
}

static ssize_t read_vector(struct sock *s, const struct iovec *iov, size_t n, int flags)
{
	ssize_t all = 0;

	for (size_t i = 0; i < n; i++) {
		ssize_t got;

		if (iov[i].iov_len == 0)
			continue;
		got = sock_read(s, iov[i].iov_base, iov[i].iov_len, flags & MSG_PEEK);
		if (got < 0)
			return so_far(s, all, got);
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

/* Until there may be bytes to read: 0; or how many are in the call's buffer already; as
 * sockets_wait. */
static ssize_t wait_for_bytes(struct sock *s, const struct iovec *to, int flags)
{
	ssize_t err, n;

	if (s->direct != NULL)
		sockets_yield(s); /* another thread's call has to have its turn */
	if ((flags & MSG_PEEK) || !(s->bulk || (flags & MSG_WAITALL)) ||
		!sock_direct_begin(s, to->iov_base, to->iov_len))
		return sockets_wait(s, false, s->rcv_timeout);
	err = sockets_wait(s, false, s->rcv_timeout);
	n = (ssize_t)sock_direct_end(s, true);
	return n > 0 ? n : err;
}

/* MSG_WAITALL: of the first piece only, which is all that programs ask it for. */
static ssize_t receive(struct sock *s, const struct iovec *iov, size_t n, int flags)
{
	const bool now = sockets_nonblocking(s, flags);
	ssize_t got, all = 0;

	if (flags & MSG_OOB)
		return -EINVAL;
	if (length(iov, n) == 0)
		return 0;
	for (;;) {
		const struct iovec rest = {
			(uint8_t *)iov[0].iov_base + all, iov[0].iov_len - (size_t)all};

		got = all > 0 ? read_vector(s, &rest, 1, flags) : read_vector(s, iov, n, flags);
		if (got == -EAGAIN && sockets_turn() > 0)
			got = read_vector(s, all > 0 ? &rest : iov, all > 0 ? 1 : n, flags);
		if (got == -EAGAIN && !now) {
			got = wait_for_bytes(s, &rest, flags);
			if (got == 0)
				continue;
		}
		if (got > 0)
			all += got;
		if (got <= 0 || !(flags & MSG_WAITALL) || n > 1 || (size_t)all >= iov[0].iov_len ||
			(flags & MSG_PEEK))
			return so_far(s, all, got);
	}
}

static ssize_t transmit(struct sock *s, const struct iovec *iov, size_t n, int flags)
{
	const bool now = sockets_nonblocking(s, flags);
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
							 : sockets_wait(s, true, s->snd_timeout);
			}
		}
	}
	sockets_turn();
	return so_far(s, all, err);
}

static ssize_t done(struct sock *s, ssize_t n)
{
	sockets_put(s);
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
