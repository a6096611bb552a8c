/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl/listen.h"
#include "lib/ctl/rpc.h"
#include "lib/ctl/tls.h"

enum {
	MAX_CLIENTS = 512,
	TICK_MS = 100,
	SLEPT_MS = 1000, /* a tick so late: it was the server that did not run */
	LINES_PER_TURN = 32,
	ACCEPTS_PER_TURN = 32,   /* then those who are there are served, and the gone go */
	HELD_OUTPUT = 256 << 10, /* answers that wait: no further requests are read */
	PATIENCE_MS = 10000,     /* for a line to be finished, for answers to be taken */
	INPUT_LIMIT = CTL_MAX_LINE + 4096,
	MAX_PARTING = 32,
	PARTING_TICKS = 10,
};

static const char REVOKED[] = "the certificate of this connection is revoked";

struct client {
	LIST_ENTRY(client) link;
	struct server *server;
	struct bufferevent *bev;
	bool tcp;
	bool unknown;        /* has not yet shown who it is */
	uint64_t used_ns;    /* when it last sent or took something */
	uint64_t partial_ns; /* since when a line is unfinished, 0: none is */
	uint64_t taken_ns;   /* when some of the answers that wait was taken last */
	bool held;           /* reading is off until answers are taken */
	bool eof;            /* the peer sends no more */
	bool closing;        /* to be closed when the answers are sent */
	_Alignas(max_align_t) char peer[];
};

struct server {
	const struct ctl_server_ops *ops;
	void *arg;
	struct event_base *base;
	struct evconnlistener *listener[CTL_MAX_LISTENERS];
	unsigned n_listeners;
	struct event *tick, *again; /* again: to accept */
	uint64_t ticked_ns;
	unsigned n_accepted;
	volatile sig_atomic_t *stop;
	struct ctl_server_limits limits;
	SSL_CTX *tls;      /* with which all have been looked at */
	char no_place[48]; /* why, the last time */
	bool paused;       /* accepting, after an error */
	unsigned n_clients, n_tcp;
	LIST_HEAD(, client) clients;
	/* Turned away, and told why. A socket that is closed with something unread resets its
	 * connection, and the peer may lose what it was told: closed when the peer has closed, or a
	 * second later. */
	struct parting {
		evutil_socket_t fd;
		unsigned ticks; /* left */
	} parting[MAX_PARTING];
	unsigned n_parting;
};

static uint64_t now(const struct server *s)
{
	return s->ops->now(s->arg);
}

static enum ctl_hold holds(const struct client *c)
{
	return c->server->ops->holds(c->server->arg, c->peer);
}

/* ---- connections ---- */

static void client_free(struct client *c)
{
	LIST_REMOVE(c, link);
	c->server->n_clients--;
	c->server->n_tcp -= c->tcp;
	c->server->ops->gone(c->server->arg, c->peer);
	bufferevent_free(c->bev);
	free(c);
}

static size_t waiting_output(const struct client *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev));
}

static void client_send(struct client *c, char *line)
{
	if (!line)
		return;
	bufferevent_write(c->bev, line, strlen(line));
	bufferevent_write(c->bev, "\n", 1);
	free(line);
}

/* Closes as soon as what is to be sent has been sent. May free c. */
static void client_finish(struct client *c)
{
	c->closing = true;
	bufferevent_disable(c->bev, EV_READ);
	if (!waiting_output(c))
		client_free(c);
}

static void client_refuse(struct client *c, const char *why)
{
	client_send(c, rpc_error_line(CTL_INVALID_REQUEST, why));
	client_finish(c);
}

static void note_partial(struct client *c, size_t left)
{
	if (!left)
		c->partial_ns = 0;
	else if (!c->partial_ns)
		c->partial_ns = now(c->server);
}

/* Serves whole lines. May free c. */
static void client_serve(struct client *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);

	for (unsigned turn = 0; turn < LINES_PER_TURN; turn++) {
		size_t len;

		if (waiting_output(c) > HELD_OUTPUT) {
			c->held = true;
			c->partial_ns = 0;
			bufferevent_disable(c->bev, EV_READ);
			return;
		}
		char *line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);
		if (!line) {
			if (evbuffer_get_length(in) > CTL_MAX_LINE)
				client_refuse(c, "request is longer than 1048576 bytes");
			else if (c->eof)
				client_finish(c);
			else
				note_partial(c, evbuffer_get_length(in));
			return;
		}
		c->partial_ns = 0;
		if (len > CTL_MAX_LINE) {
			free(line);
			client_refuse(c, "request is longer than 1048576 bytes");
			return;
		}
		client_send(c, c->server->ops->line(c->server->arg, c->peer, line, len));
		free(line);
	}
	/* The rest in another turn: others want to be served too. */
	bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct client *c = arg;

	(void)bev;
	c->used_ns = now(c->server);
	if (!c->held && !c->closing && !c->unknown)
		client_serve(c);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	struct client *c = arg;

	c->used_ns = now(c->server);
	if (c->closing) {
		if (!waiting_output(c))
			client_free(c);
		return;
	}
	if (!c->held)
		return;
	c->held = false;
	if (!c->eof)
		bufferevent_enable(bev, EV_READ);
	client_serve(c);
}

/* Answers are there that were not, or some are gone. */
static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
	struct client *c = arg;

	(void)out;
	if (info->n_deleted > 0 || info->orig_size == 0)
		c->taken_ns = now(c->server);
}

static void turn_away_unknown(struct client *c);

static void welcome(struct client *c, const struct ctl_who *who)
{
	c->unknown = false;
	c->partial_ns = 0;
	c->server->ops->come(c->server->arg, c->peer, who);
}

/* Certificates were read anew since it came, and its own is revoked. */
static bool is_revoked(struct client *c)
{
	SSL *ssl = bufferevent_openssl_get_ssl(c->bev);

	return ssl && ctl_tls_is_revoked(ssl, *c->server->limits.tls);
}

/* The handshake is over. */
static void introduce(struct client *c)
{
	char why[CTL_TLS_ERR_LEN];
	struct ctl_who who;

	if (ctl_tls_who(bufferevent_openssl_get_ssl(c->bev), &who, why))
		client_refuse(c, why);
	else if (is_revoked(c))
		client_refuse(c, REVOKED);
	else
		welcome(c, &who);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *c = arg;

	(void)bev;
	if (what & BEV_EVENT_CONNECTED) {
		introduce(c);
		return;
	}
	if (c->unknown && what & BEV_EVENT_ERROR) {
		turn_away_unknown(c);
		return;
	}
	if (!(what & BEV_EVENT_EOF)) {
		client_free(c);
		return;
	}
	c->eof = true;
	if (c->unknown)
		client_free(c);
	else if (!c->held && !c->closing)
		client_serve(c);
}

/* ---- accepting ---- */

/* Has the peer closed? */
static bool is_gone(evutil_socket_t fd)
{
	char unread[4096];
	ssize_t n = 1;

	for (int i = 0; i < 16 && n > 0; i++)
		n = recv(fd, unread, sizeof(unread), MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void part(struct server *s, bool all)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < s->n_parting; i++) {
		struct parting *p = &s->parting[i];

		if (all || p->ticks-- == 0 || is_gone(p->fd))
			evutil_closesocket(p->fd);
		else
			s->parting[kept++] = *p;
	}
	s->n_parting = kept;
}

/* What was sent is to be read; closes the descriptor, later. */
static void say_goodbye(struct server *s, evutil_socket_t fd)
{
	if (s->n_parting == MAX_PARTING) {
		evutil_closesocket(fd);
		return;
	}
	shutdown(fd, SHUT_WR);
	s->parting[s->n_parting++] = (struct parting){fd, PARTING_TICKS};
}

static void turn_away(struct server *s, evutil_socket_t fd, const char *why)
{
	char *line = rpc_error_line(CTL_REFUSED, why);

	if (line && send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		(void)!send(fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	free(line);
	say_goodbye(s, fd);
}

/* No handshake came about: OpenSSL has sent an alert that says why. */
static void turn_away_unknown(struct client *c)
{
	const int fd = dup((int)bufferevent_getfd(c->bev));
	struct server *s = c->server;

	client_free(c);
	if (fd >= 0)
		say_goodbye(s, fd);
}

/* The one that has been silent longest and holds nothing makes room. */
static bool make_room(struct server *s, bool tcp)
{
	struct client *c, *oldest = NULL;

	LIST_FOREACH(c, &s->clients, link)
	if (holds(c) < CTL_HOLD_PLACE && (c->tcp || !tcp) &&
		(!oldest || c->used_ns < oldest->used_ns))
		oldest = c;
	if (oldest)
		client_free(oldest);
	return oldest != NULL;
}

/* Why there is no place for another, NULL: there is. Of all connections, only so many are TCP's,
 * and who lets them hold a place leaves some out: the operator on this machine always finds one, at
 * worst that of whoever has been silent longest and holds none. */
static const char *no_place(struct server *s, bool tcp)
{
	const unsigned most = s->limits.clients, tcp_most = most / 4 * 3;
	const bool tcp_full = tcp && s->n_tcp >= tcp_most && !make_room(s, true);

	if (!tcp_full && (s->n_clients < most || make_room(s, false)))
		return NULL;
	snprintf(s->no_place, sizeof(s->no_place), "too many %sclients, the limit is %u",
		tcp_full ? "TCP " : "", tcp_full ? tcp_most : most);
	return s->no_place;
}

static struct bufferevent *wrap(struct server *s, evutil_socket_t fd, bool tls)
{
	SSL *ssl = tls ? SSL_new(*s->limits.tls) : NULL;
	struct bufferevent *bev;

	if (!tls)
		return bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	bev = ssl ? bufferevent_openssl_socket_new(
			    s->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE)
		  : NULL;
	if (bev) /* clients may go without saying so */
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	else
		SSL_free(ssl);
	return bev;
}

/* Without TLS: what the kernel knows. */
static void look_at(struct client *c, evutil_socket_t fd)
{
	struct ctl_who who = {.role = c->tcp ? CTL_STRANGER : CTL_LOCAL};
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (!c->tcp && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		who.uid = cred.uid;
	welcome(c, &who);
}

/* libevent accepts for as long as somebody comes: a crowd would fill all places before anybody in
 * them is heard. */
static void rest_from_accepting(struct server *s)
{
	if (++s->n_accepted % ACCEPTS_PER_TURN != 0)
		return;
	for (unsigned i = 0; i < s->n_listeners; i++)
		evconnlistener_disable(s->listener[i]);
	event_active(s->again, EV_TIMEOUT, 0);
}

static void accept_again(struct server *s)
{
	for (unsigned i = 0; i < s->n_listeners; i++)
		evconnlistener_enable(s->listener[i]);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)fd, (void)what;
	if (!s->paused)
		accept_again(s);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
	int len, void *arg)
{
	struct server *s = arg;
	const bool tcp = from->sa_family != AF_UNIX;
	const char *why = no_place(s, tcp);
	struct client *c = NULL;
	struct bufferevent *bev = NULL;

	(void)listener, (void)len;
	rest_from_accepting(s);
	if (why) {
		turn_away(s, fd, why);
		return;
	}
	if (tcp)
		ctl_tcp_options(fd);
	if (tcp && s->limits.gone_ms)
		ctl_tcp_watch(fd, s->limits.gone_ms);
	c = calloc(1, sizeof(*c) + s->ops->peer_bytes);
	if (c)
		bev = wrap(s, fd, tcp && s->limits.tls);
	if (!bev) {
		free(c);
		turn_away(s, fd, "out of memory");
		return;
	}
	c->server = s;
	c->bev = bev;
	c->tcp = tcp;
	c->used_ns = now(s);
	if (tcp && s->limits.tls) {
		c->unknown = true;
		c->partial_ns = c->used_ns;
	} else {
		look_at(c, fd);
	}
	LIST_INSERT_HEAD(&s->clients, c, link);
	s->n_clients++;
	s->n_tcp += tcp;
	bufferevent_setcb(bev, on_read, on_written, on_event, c);
	bufferevent_setwatermark(bev, EV_READ, 0, INPUT_LIMIT);
	bufferevent_setwatermark(bev, EV_WRITE, HELD_OUTPUT / 2, 0);
	evbuffer_add_cb(bufferevent_get_output(bev), on_output, c);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

/* Out of descriptors: trying again at once would only burn CPU. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct server *s = arg;

	evconnlistener_disable(listener);
	s->paused = true;
}

/* As much as it takes; the rest at the next tick. */
static void tell(struct client *c)
{
	char *line;

	while (waiting_output(c) <= HELD_OUTPUT &&
		(line = c->server->ops->unasked(c->server->arg, c->peer)))
		client_send(c, line);
}

static uint64_t later(uint64_t since, uint64_t by, uint64_t limit)
{
	return limit - since < by ? limit : since + by;
}

/* A machine that slept, a process that was stopped: nobody was heard meanwhile, and it is nobody's
 * fault. */
static void excuse_sleep(struct server *s, uint64_t at)
{
	const uint64_t slept = at - s->ticked_ns;
	struct client *c;

	s->ticked_ns = at;
	if (slept < SLEPT_MS * UINT64_C(1000000))
		return;
	LIST_FOREACH(c, &s->clients, link)
	{
		c->used_ns = later(c->used_ns, slept, at);
		c->taken_ns = later(c->taken_ns, slept, at);
		if (c->partial_ns)
			c->partial_ns = later(c->partial_ns, slept, at);
	}
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;
	const uint64_t at = now(s);
	struct client *c, *next;
	SSL_CTX *before = s->tls;

	(void)fd, (void)what;
	if (*s->stop) {
		event_base_loopbreak(s->base);
		return;
	}
	excuse_sleep(s, at);
	s->ops->tick(s->arg, at);
	s->tls = s->limits.tls ? *s->limits.tls : NULL;
	part(s, false);
	for (c = LIST_FIRST(&s->clients); c; c = next) {
		next = LIST_NEXT(c, link);
		if (s->tls != before && !c->unknown && !c->closing && is_revoked(c))
			client_refuse(c, REVOKED);
		else if (waiting_output(c) && at - c->taken_ns > s->limits.stall_ms * 1000000ULL)
			client_free(c);
		else if (!c->closing && c->partial_ns &&
			 at - c->partial_ns > s->limits.line_ms * 1000000ULL) {
			if (c->unknown)
				client_free(c);
			else
				client_refuse(c, "line was not finished in time");
		} else if (holds(c) == CTL_HOLD_NOTHING &&
			   at - c->used_ns > s->limits.idle_ms * 1000000ULL)
			client_free(c);
		else if (!c->closing && !c->unknown)
			tell(c);
	}
	if (s->paused) {
		s->paused = false;
		accept_again(s);
	}
}

/* ---- life ---- */

/* Takes the descriptors: those that are not listened at are closed. */
static int server_open(struct server *s, const int *fd, unsigned n)
{
	static const struct timeval tick = {.tv_usec = TICK_MS * 1000};

	for (unsigned i = 0; i < n; i++) {
		struct evconnlistener *l = evconnlistener_new(s->base, on_accept, s,
			LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd[i]); /* listens */

		if (!l) {
			close(fd[i]);
			continue;
		}
		evconnlistener_set_error_cb(l, on_accept_error);
		s->listener[s->n_listeners++] = l;
	}
	if (s->n_listeners != n)
		return -ENOMEM;
	s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
	s->ticked_ns = now(s);
	s->again = event_new(s->base, -1, 0, on_again, s);
	return s->tick && s->again && !event_add(s->tick, &tick) ? 0 : -ENOMEM;
}

static void server_close(struct server *s)
{
	while (!LIST_EMPTY(&s->clients))
		client_free(LIST_FIRST(&s->clients));
	part(s, true);
	if (s->tick)
		event_free(s->tick);
	if (s->again)
		event_free(s->again);
	for (unsigned i = 0; i < s->n_listeners; i++)
		evconnlistener_free(s->listener[i]);
}

int ctl_serve(const struct ctl_server_ops *ops, void *arg, struct event_base *base, const int *fd,
	unsigned n, volatile sig_atomic_t *stop, const struct ctl_server_limits *limits)
{
	struct server s = {.ops = ops,
		.arg = arg,
		.base = base,
		.stop = stop,
		.limits = {.line_ms = limits->line_ms ? limits->line_ms : PATIENCE_MS,
			.stall_ms = limits->stall_ms ? limits->stall_ms : PATIENCE_MS,
			.idle_ms = limits->idle_ms,
			.gone_ms = limits->gone_ms,
			.clients = limits->clients ? limits->clients : MAX_CLIENTS,
			.tls = limits->tls},
		.tls = limits->tls ? *limits->tls : NULL};
	int rc = server_open(&s, fd, n);

	if (!rc && event_base_dispatch(base) < 0)
		rc = -EIO;
	server_close(&s);
	return rc;
}
