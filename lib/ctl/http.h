/* SPDX-License-Identifier: BSD-3-Clause */
/* One page over HTTP, for monitoring systems: GET or HEAD of /metrics, anything else is refused,
 * and a header that is too long gets no answer. An answer to a connection, which then ends. A
 * client takes no more than its share: of few connections one, of header bytes and time a bounded
 * number; who comes when all are taken waits. One thread, that of the event loop. */
#ifndef CTL_HTTP_H
#define CTL_HTTP_H

#include <stddef.h>

struct event_base;
struct ctl_http;

enum { CTL_HTTP_CLIENTS = 16, CTL_HTTP_HEADER = 8192, CTL_HTTP_MS = 10000 };

struct ctl_http_page {
	const char *type;                      /* Content-Type */
	char *(*make)(void *arg, size_t *len); /* to be freed; NULL: it cannot be made */
	void *arg;
};

/* Serves at the listening descriptor, which is closed at the end or on error. ms: a connection's
 * whole life; 0: CTL_HTTP_MS. *page stays the caller's, until ctl_http_close. 0 or -ENOMEM. */
int ctl_http_open(struct event_base *base, int fd, const struct ctl_http_page *page, unsigned ms,
	struct ctl_http **http);
void ctl_http_close(struct ctl_http *http);

#endif
