/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOK_MS = 100 };

/* evhttp bounds what is silent, not how many there are nor how long a slow one may take; so each
 * connection is held by a reference of ours, and looked at. */
struct held {
	struct bufferevent *bev; /* NULL: free */
	unsigned left_ms;
};

struct ctl_http {
	const struct ctl_http_page *page;
	struct evhttp *server;
	struct evconnlistener *listener; /* the server's */
	struct event *look;
	unsigned ms;
	struct held held[CTL_HTTP_CLIENTS];
};

/* ---- connections ---- */

/* evhttp has taken its callbacks off, that is, has done with it. */
static bool is_over(struct bufferevent *bev)
{
	bufferevent_data_cb read, write;
	bufferevent_event_cb event;
	void *arg;

	bufferevent_getcb(bev, &read, &write, &event, &arg);
	return !read && !write && !event;
}

/* Whether there is a place for another. */
static bool clear_up(struct ctl_http *h)
{
	bool room = false;

	for (unsigned i = 0; i < CTL_HTTP_CLIENTS; i++) {
		struct held *c = &h->held[i];

		if (c->bev && is_over(c->bev)) {
			bufferevent_decref(c->bev);
			c->bev = NULL;
		}
		room |= !c->bev;
	}
	return room;
}

/* A connection comes: the listener was on, so there is a place. The descriptor stays evhttp's to
 * close, at once when it has done. */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct ctl_http *h = arg;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
	unsigned i = 0;

	if (!bev)
		return NULL;
	while (i < CTL_HTTP_CLIENTS - 1 && h->held[i].bev)
		i++;
	bufferevent_incref(bev);
	h->held[i] = (struct held){bev, h->ms};
	for (i = 0; i < CTL_HTTP_CLIENTS && h->held[i].bev; i++)
		;
	if (i == CTL_HTTP_CLIENTS)
		evconnlistener_disable(h->listener);
	return bev;
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct ctl_http *h = arg;

	(void)fd, (void)what;
	if (clear_up(h))
		evconnlistener_enable(h->listener);
	for (unsigned i = 0; i < CTL_HTTP_CLIENTS; i++) {
		struct held *c = &h->held[i];

		if (!c->bev)
			continue;
		if (c->left_ms > LOOK_MS)
			c->left_ms -= LOOK_MS;
		else /* evhttp takes it for the client's doing, and ends it */
			shutdown(bufferevent_getfd(c->bev), SHUT_RDWR);
	}
}

/* ---- requests ---- */

static void refuse(struct evhttp_request *req, int code, const char *reason, const char *why)
{
	struct evbuffer *body = evbuffer_new();

	if (body)
		evbuffer_add_printf(body, "%s\n", why);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type", "text/plain");
	evhttp_send_reply(req, code, reason, body);
	if (body)
		evbuffer_free(body);
}

static void free_text(const void *data, size_t len, void *arg)
{
	(void)data, (void)len;
	free(arg);
}

static void on_page(struct evhttp_request *req, void *arg)
{
	const struct ctl_http *h = arg;
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct evbuffer *body = evbuffer_new();
	size_t len = 0;
	char *text = body ? h->page->make(h->page->arg, &len) : NULL;

	evhttp_add_header(headers, "Connection", "close");
	if (!text || evbuffer_add_reference(body, text, len, free_text, text)) {
		free(text);
		refuse(req, HTTP_INTERNAL, "Internal Server Error",
			"the page cannot be made: it is too large, or there is no memory");
	} else {
		evhttp_add_header(headers, "Content-Type", h->page->type);
		evhttp_send_reply(req, HTTP_OK, "OK", body);
	}
	if (body)
		evbuffer_free(body);
}

static void on_other(struct evhttp_request *req, void *arg)
{
	(void)arg;
	evhttp_add_header(evhttp_request_get_output_headers(req), "Connection", "close");
	refuse(req, HTTP_NOTFOUND, "Not Found", "there is only /metrics");
}

/* ---- life ---- */

static int serve_at(struct ctl_http *h, struct event_base *base, int fd)
{
	static const struct timeval look = {.tv_usec = LOOK_MS * 1000};
	const struct timeval silence = {.tv_sec = h->ms / 1000, .tv_usec = h->ms % 1000 * 1000};

	h->server = evhttp_new(base);
	h->listener = h->server ? evconnlistener_new(base, NULL, NULL,
					  LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1, fd)
				: NULL;
	if (!h->listener) {
		close(fd);
		return -ENOMEM;
	}
	if (!evhttp_bind_listener(h->server, h->listener)) {
		evconnlistener_free(h->listener);
		return -ENOMEM;
	}
	evhttp_set_bevcb(h->server, on_connection, h);
	evhttp_set_allowed_methods(h->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(h->server, CTL_HTTP_HEADER);
	evhttp_set_max_body_size(h->server, 0);
	evhttp_set_timeout_tv(h->server, &silence);
	evhttp_set_cb(h->server, "/metrics", on_page, h);
	evhttp_set_gencb(h->server, on_other, h);
	h->look = event_new(base, -1, EV_PERSIST, on_look, h);
	return h->look && !event_add(h->look, &look) ? 0 : -ENOMEM;
}

int ctl_http_open(struct event_base *base, int fd, const struct ctl_http_page *page, unsigned ms,
	struct ctl_http **http)
{
	struct ctl_http *h = calloc(1, sizeof(*h));
	int rc;

	if (!h) {
		close(fd);
		return -ENOMEM;
	}
	h->page = page;
	h->ms = ms ? ms : CTL_HTTP_MS;
	rc = serve_at(h, base, fd);
	if (rc)
		ctl_http_close(h);
	else
		*http = h;
	return rc;
}

void ctl_http_close(struct ctl_http *h)
{
	if (!h)
		return;
	if (h->look)
		event_free(h->look);
	if (h->server) /* with its connections and its listener */
		evhttp_free(h->server);
	for (unsigned i = 0; i < CTL_HTTP_CLIENTS; i++)
		if (h->held[i].bev)
			bufferevent_decref(h->held[i].bev);
	free(h);
}
