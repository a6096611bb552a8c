/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/manager/dial.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/redial.h"
#include "lib/ctl/listen.h"
#include "lib/ctl/tls.h"

static const uint64_t DIAL_NS = 3000000000;
enum { MAX_ANSWER = 16 << 20, MAX_QUEUED = 4 << 20 };

struct link {
	struct manager_dial *d;
	unsigned i;
	struct ctl_address at;
	struct bufferevent *bev; /* NULL: not even dialled */
	bool up;
	bool answered; /* as a switch, on this connection */
	struct redial redial;
};

struct manager_dial {
	struct event_base *base;
	SSL_CTX *const *certificates;
	struct manager_dial_io io;
	unsigned n;
	struct link link[];
};

static void say(const struct link *l, const char *why)
{
	const struct manager_dial_io *io = &l->d->io;
	char line[REDIAL_WHY_LEN + 128];

	snprintf(line, sizeof(line), "%s: %s", io->control(io->arg, l->i), why);
	io->say(io->arg, JOURNAL_WARNING, line);
}

static void hang_up(struct link *l)
{
	if (l->bev)
		bufferevent_free(l->bev);
	l->bev = NULL;
	l->up = l->answered = false;
}

static void down(struct link *l, bool dead)
{
	hang_up(l);
	l->d->io.down(l->d->io.arg, l->i, dead);
}

/* ---- a connection ---- */

static void on_read(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct link *l = arg;
	char *line;
	size_t len;

	/* The manager may have hung up meanwhile. */
	while (l->bev == bev && (line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF))) {
		const bool answered = l->d->io.heard(l->d->io.arg, l->i, line, len);

		free(line);
		if (l->bev != bev || !answered || l->answered)
			continue;
		l->answered = true;
		redial_anew(&l->redial);
	}
	if (l->bev == bev && evbuffer_get_length(in) > MAX_ANSWER)
		down(l, false);
}

static bool is_tls(const struct link *l)
{
	return l->at.tcp && *l->d->certificates;
}

/* Who answers there is a switch, as far as certificates go; else why not. */
static bool is_trusted(struct bufferevent *bev, char why[REDIAL_WHY_LEN])
{
	SSL *ssl = bufferevent_openssl_get_ssl(bev);
	char text[CTL_TLS_ERR_LEN];
	struct ctl_who who;

	if (!ssl)
		return true;
	if (ctl_tls_who(ssl, &who, text))
		snprintf(why, REDIAL_WHY_LEN, "%s", text);
	else if (who.role == CTL_AGENT)
		return true;
	else
		snprintf(why, REDIAL_WHY_LEN, "has the certificate of %s \"%s\", not a switch's",
			ctl_role_name(who.role), who.name);
	return false;
}

/* What the peer has against us, as an alert; 0: nothing. Its end in the middle of the handshake is
 * nobody's no, nor is a plain line in its place: so speaks a switch that has no room for clients.
 */
static unsigned long tls_error(struct bufferevent *bev)
{
	unsigned long e;

	while ((e = bufferevent_get_openssl_error(bev)) &&
		(ERR_GET_LIB(e) != ERR_LIB_SSL || ERR_GET_REASON(e) < SSL_AD_REASON_OFFSET))
		;
	return e;
}

/* Has TLS ended this connection, and why? What a switch has against our certificate it says when
 * the handshake is over for us, or it just hangs up then. */
static bool tls_says_no(const struct link *l, struct bufferevent *bev, char why[REDIAL_WHY_LEN])
{
	SSL *ssl = bufferevent_openssl_get_ssl(bev);
	const unsigned long e = ssl ? tls_error(bev) : 0;
	const long verified = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;

	if (!ssl || l->answered)
		return false;
	if (verified != X509_V_OK)
		snprintf(why, REDIAL_WHY_LEN, "its certificate: %s",
			X509_verify_cert_error_string(verified));
	else if (e)
		snprintf(why, REDIAL_WHY_LEN, "TLS: %s", ERR_reason_error_string(e) ?: "failed");
	else if (l->up && l->redial.why[0])
		snprintf(why, REDIAL_WHY_LEN, "%s", l->redial.why); /* this time without a word */
	else if (l->up)
		snprintf(why, REDIAL_WHY_LEN,
			"hangs up after the handshake: it may not take this certificate");
	return e || l->up || verified != X509_V_OK;
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	const int err = EVUTIL_SOCKET_ERROR();
	const bool connected = what & BEV_EVENT_CONNECTED;
	struct link *l = arg;
	char why[REDIAL_WHY_LEN];

	if (connected && is_trusted(bev, why)) {
		l->up = true;
		if (l->at.tcp)
			ctl_tcp_options(bufferevent_getfd(bev));
		bufferevent_enable(bev, EV_READ | EV_WRITE);
		l->d->io.up(l->d->io.arg, l->i);
		return;
	}
	if (connected || tls_says_no(l, bev, why)) {
		if (redial_refused(&l->redial, why))
			say(l, why);
		down(l, false);
		return;
	}
	redial_anew(&l->redial);
	down(l, !l->up && (err == ECONNREFUSED || err == ENOENT));
}

static struct bufferevent *new_bufferevent(struct link *l)
{
	const int options = BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS;
	struct bufferevent *bev;
	SSL *ssl;

	if (!is_tls(l))
		return bufferevent_socket_new(l->d->base, -1, options);
	ssl = SSL_new(*l->d->certificates);
	bev = ssl ? bufferevent_openssl_socket_new(
			    l->d->base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, options)
		  : NULL;
	if (bev)
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	else
		SSL_free(ssl);
	return bev;
}

static void dial(struct link *l, uint64_t now)
{
	l->redial.dialled = now;
	/* Deferred: what fails at once is told from the loop as well. */
	l->bev = new_bufferevent(l);
	if (!l->bev)
		return;
	bufferevent_setcb(l->bev, on_read, NULL, on_event, l);
	if (bufferevent_socket_connect(l->bev, (struct sockaddr *)&l->at.sa, (int)l->at.len) == 0)
		return;
	const int err = EVUTIL_SOCKET_ERROR();
	redial_anew(&l->redial);
	down(l, err == ECONNREFUSED || err == ENOENT);
}

/* ---- all of them ---- */

unsigned manager_dial_tick(struct manager_dial *d, uint64_t now)
{
	unsigned dialled = 0;

	for (unsigned i = 0; i < d->n; i++) {
		struct link *l = &d->link[i];

		if (l->bev && !l->up && now - l->redial.dialled > DIAL_NS) {
			redial_anew(&l->redial);
			down(l, false);
		}
		if (l->bev || !redial_is_due(&l->redial, now))
			continue;
		dial(l, now);
		dialled++;
	}
	return dialled;
}

void manager_dial_send(struct manager_dial *d, unsigned i, const char *line)
{
	struct bufferevent *bev = d->link[i].bev;

	if (!d->link[i].up || evbuffer_get_length(bufferevent_get_output(bev)) > MAX_QUEUED)
		return;
	bufferevent_write(bev, line, strlen(line));
	bufferevent_write(bev, "\n", 1);
}

void manager_dial_drop(struct manager_dial *d, unsigned i)
{
	hang_up(&d->link[i]);
}

void manager_dial_renewed(struct manager_dial *d)
{
	for (unsigned i = 0; i < d->n; i++) {
		struct link *l = &d->link[i];
		SSL *ssl = l->bev ? bufferevent_openssl_get_ssl(l->bev) : NULL;

		redial_anew(&l->redial);
		/* Handshakes begin anew. */
		if (!ssl || (l->up && !ctl_tls_is_revoked(ssl, *d->certificates)))
			continue;
		if (l->up)
			say(l, "its certificate is revoked");
		down(l, false);
	}
}

/* ---- life ---- */

int manager_dial_open(struct event_base *base, SSL_CTX *const *certificates, unsigned n,
	const struct manager_dial_io *io, struct manager_dial **out, char err[MANAGER_ERR_LEN])
{
	struct manager_dial *d = calloc(1, sizeof(*d) + n * sizeof(d->link[0]));

	snprintf(err, MANAGER_ERR_LEN, "out of memory");
	if (!d)
		return -ENOMEM;
	*d = (struct manager_dial){.base = base, .certificates = certificates, .io = *io, .n = n};
	for (unsigned i = 0; i < n; i++) {
		const char *control = io->control(io->arg, i);
		const int rc = ctl_address_parse(control, &d->link[i].at);

		d->link[i].d = d;
		d->link[i].i = i;
		if (rc) {
			snprintf(err, MANAGER_ERR_LEN, "switches[%u].control: %s: %s", i, control,
				rc == -EINVAL ? "must be a path, unix:PATH or tcp:HOST:PORT"
					      : strerror(-rc));
			free(d);
			return rc;
		}
	}
	*out = d;
	return 0;
}

void manager_dial_close(struct manager_dial *d)
{
	for (unsigned i = 0; d && i < d->n; i++)
		hang_up(&d->link[i]);
	free(d);
}
