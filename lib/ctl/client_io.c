/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client does by default to reach its server: stream sockets, and the clock of the machine.
 */
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl/address.h"
#include "lib/ctl/client_io.h"
#include "lib/ctl/tls.h"

enum { DIAL_MS = 500 };

static int64_t now_ms(void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sleep_ms(void *arg, unsigned ms)
{
	(void)arg;
	poll(NULL, 0, (int)ms);
}

/* Waits until fd is ready for events. 0, -ETIMEDOUT at the deadline, or another errno. */
static int wait_fd(int fd, short events, int64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		int64_t left = deadline - now_ms(NULL);
		int n = poll(&p, 1, left < 0 ? 0 : left > 60000 ? 60000 : (int)left);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (left <= 0)
			return -ETIMEDOUT;
	}
}

/* The end of a connect that was under way. */
static int await_connect(int fd, int64_t deadline)
{
	int error = 0;
	socklen_t len = sizeof(error);
	int rc = wait_fd(fd, POLLOUT, deadline);

	if (!rc && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return rc ? rc : -error;
}

static int begin(void *arg, const char *path)
{
	struct ctl_address to;
	int rc = ctl_address_parse(path, &to);
	int fd;

	(void)arg;
	if (rc)
		return rc;
	fd = socket(to.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&to.sa, to.len) || errno == EINPROGRESS)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static bool is_tcp(int fd)
{
	int domain = AF_UNIX;
	socklen_t len = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain != AF_UNIX;
}

static int ready(void *arg, int fd, int64_t deadline)
{
	const int rc = await_connect(fd, deadline);

	(void)arg;
	if (rc || !is_tcp(fd))
		return rc;
	ctl_tcp_options(fd);
	return ctl_tls_begin(fd, wait_fd, deadline);
}

static void close_fd(void *arg, int fd)
{
	(void)arg;
	ctl_tls_end(fd);
	close(fd);
}

/* A peer that answers nothing at all costs DIAL_MS at least. */
static int open_path(void *arg, const char *path, int64_t deadline)
{
	const int fd = begin(arg, path);
	const int64_t soonest = now_ms(arg) + DIAL_MS;
	const int rc = fd < 0 ? fd : ready(arg, fd, deadline > soonest ? deadline : soonest);

	if (rc && fd >= 0)
		close_fd(arg, fd);
	return rc ? rc : fd;
}

/* What SSL_read or SSL_write said, n not being above 0: 0 to try again, or -errno. A server that
 * does not trust our certificate says so when the handshake is over for us. */
static int tls_wait(SSL *ssl, int fd, int n, int64_t deadline)
{
	switch (SSL_get_error(ssl, n)) {
	case SSL_ERROR_WANT_READ:
		return wait_fd(fd, POLLIN, deadline);
	case SSL_ERROR_WANT_WRITE:
		return wait_fd(fd, POLLOUT, deadline);
	case SSL_ERROR_SSL:
		return -EACCES;
	}
	return -ECONNRESET;
}

static int as_int(size_t n)
{
	return n < 1 << 20 ? (int)n : 1 << 20;
}

static ssize_t send_tls(SSL *ssl, int fd, const char *buf, size_t len, int64_t deadline)
{
	for (;;) {
		ERR_clear_error();
		const int n = SSL_write(ssl, buf, as_int(len));
		const int rc = n > 0 ? n : tls_wait(ssl, fd, n, deadline);

		if (rc)
			return rc;
	}
}

static ssize_t receive_tls(SSL *ssl, int fd, char *buf, size_t cap, int64_t deadline)
{
	for (;;) {
		ERR_clear_error();
		const int n = SSL_read(ssl, buf, as_int(cap));
		const int rc = n > 0 ? n : tls_wait(ssl, fd, n, deadline);

		if (n <= 0 && SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN)
			return 0;
		if (rc)
			return rc;
	}
}

static ssize_t send_some(void *arg, int fd, const char *buf, size_t len, int64_t deadline)
{
	SSL *ssl = ctl_tls_of(fd);

	(void)arg;
	if (ssl)
		return send_tls(ssl, fd, buf, len, deadline);
	for (;;) {
		const ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);
		int rc;

		if (n > 0)
			return n;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return errno == EPIPE ? -ECONNRESET : -errno;
		rc = wait_fd(fd, POLLOUT, deadline);
		if (rc)
			return rc;
	}
}

static ssize_t receive_some(void *arg, int fd, char *buf, size_t cap, int64_t deadline)
{
	SSL *ssl = ctl_tls_of(fd);

	(void)arg;
	if (ssl)
		return receive_tls(ssl, fd, buf, cap, deadline);
	for (;;) {
		const ssize_t n = recv(fd, buf, cap, 0);
		int rc;

		if (n >= 0)
			return n;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		rc = wait_fd(fd, POLLIN, deadline);
		if (rc)
			return rc;
	}
}

static bool is_open(void *arg, int fd)
{
	char byte;
	const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	(void)arg;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

const struct ctl_io ctl_sockets = {
	.is_open = is_open,
	.now_ms = now_ms,
	.sleep_ms = sleep_ms,
	.open = open_path,
	.begin = begin,
	.ready = ready,
	.close = close_fd,
	.send = send_some,
	.receive = receive_some,
};
