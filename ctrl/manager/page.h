/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager's counters over HTTP (lib/ctl/http.h). */
#ifndef MANAGER_PAGE_H
#define MANAGER_PAGE_H

#include "lib/ctl/http.h"
#include "lib/ctl/listen.h"

struct event_base;
struct manager;

struct manager_page {
	struct ctl_http_page page;
	struct ctl_http *http;
	const char *where; /* NULL: nowhere */
	struct ctl_place place;
};

/* where: unix:PATH or ADDRESS:PORT, stays the caller's; NULL: nothing is served. 0, or -errno after
 * a line on stderr; to be closed before the base is freed, either way. */
int manager_page_open(
	struct manager_page *p, struct event_base *base, struct manager *m, const char *where);
void manager_page_close(struct manager_page *p);

#endif
