/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS of clients that know their connections by descriptors (client_io.c). */
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/ctl/tls.h"

struct secured {
	LIST_ENTRY(secured) link;
	int fd;
	SSL *ssl;
};

/* A process has a handful of them; its threads may open and close them at the same time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, secured) all = LIST_HEAD_INITIALIZER(all);

SSL *ctl_tls_of(int fd)
{
	struct secured *s;
	SSL *ssl = NULL;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(s, &all, link)
	if (s->fd == fd)
		ssl = s->ssl;
	pthread_mutex_unlock(&lock);
	return ssl;
}

void ctl_tls_end(int fd)
{
	struct secured *s;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(s, &all, link)
	if (s->fd == fd)
		break;
	if (s)
		LIST_REMOVE(s, link);
	pthread_mutex_unlock(&lock);
	if (s) {
		if (SSL_is_init_finished(s->ssl))
			SSL_shutdown(s->ssl);
		SSL_free(s->ssl);
		free(s);
	}
}

/* OpenSSL's own would raise SIGPIPE when the server has gone. */
static int quiet_write(BIO *b, const char *buf, int len)
{
	const int n = (int)send((int)BIO_get_fd(b, NULL), buf, (size_t)len, MSG_NOSIGNAL);

	BIO_clear_retry_flags(b);
	if (n <= 0 && BIO_sock_should_retry(n))
		BIO_set_retry_write(b);
	return n;
}

/* NULL without memory. Made once, and kept. */
static const BIO_METHOD *quiet_socket(void)
{
	static BIO_METHOD *method;
	const BIO_METHOD *plain = BIO_s_socket();

	pthread_mutex_lock(&lock);
	if (!method)
		method = BIO_meth_new(BIO_TYPE_SOCKET, "quiet socket");
	if (method) {
		BIO_meth_set_write(method, quiet_write);
		BIO_meth_set_read(method, BIO_meth_get_read(plain));
		BIO_meth_set_ctrl(method, BIO_meth_get_ctrl(plain));
		BIO_meth_set_create(method, BIO_meth_get_create(plain));
		BIO_meth_set_destroy(method, BIO_meth_get_destroy(plain));
	}
	pthread_mutex_unlock(&lock);
	return method;
}

static int connect_to(SSL *ssl, int fd)
{
	const BIO_METHOD *method = ssl ? quiet_socket() : NULL;
	BIO *bio = method ? BIO_new(method) : NULL;

	if (!bio)
		return -ENOMEM;
	BIO_set_fd(bio, fd, BIO_NOCLOSE);
	SSL_set_bio(ssl, bio, bio);
	return 0;
}

/* Of a handshake that SSL_get_error says `why` has failed of: who hangs up has said nothing of what
 * he speaks. */
static int failed(SSL *ssl, int why)
{
	if (SSL_get_verify_result(ssl) != X509_V_OK)
		return -EACCES;
	return why == SSL_ERROR_SSL ? -EPROTO : -ECONNRESET;
}

static int handshake(
	SSL *ssl, int fd, int (*wait)(int fd, short events, int64_t deadline), int64_t deadline)
{
	struct ctl_who who;
	char err[CTL_TLS_ERR_LEN];

	for (;;) {
		ERR_clear_error();
		const int n = SSL_connect(ssl), why = SSL_get_error(ssl, n);
		int rc;

		if (n == 1)
			break;
		if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
			rc = wait(fd, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline);
		else
			rc = failed(ssl, why);
		if (rc)
			return rc;
	}
	return ctl_tls_who(ssl, &who, err) || !ctl_tls_may_serve(&who) ? -EACCES : 0;
}

/* *ssl stays as it is without CTL_TLS_ENV. */
static int secure(int fd, SSL **ssl)
{
	const char *dir = getenv(CTL_TLS_ENV);
	struct secured *s;
	char err[CTL_TLS_ERR_LEN];
	SSL_CTX *ctx;
	int rc;

	if (!dir || !dir[0])
		return 0;
	if (ctl_tls_open(dir, CTL_TLS_ASKS, &ctx, err)) {
		fprintf(stderr, "%s: %s\n", CTL_TLS_ENV, err);
		return -EACCES;
	}
	s = calloc(1, sizeof(*s));
	if (s)
		*s = (struct secured){.fd = fd, .ssl = SSL_new(ctx)};
	SSL_CTX_free(ctx);
	rc = s ? connect_to(s->ssl, fd) : -ENOMEM;
	if (rc) {
		SSL_free(s ? s->ssl : NULL);
		free(s);
		return rc;
	}
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&all, s, link);
	pthread_mutex_unlock(&lock);
	*ssl = s->ssl;
	return 0;
}

int ctl_tls_begin(int fd, int (*wait)(int fd, short events, int64_t deadline), int64_t deadline)
{
	SSL *ssl = ctl_tls_of(fd);
	const int rc = ssl ? 0 : secure(fd, &ssl);

	return rc || !ssl ? rc : handshake(ssl, fd, wait, deadline);
}
