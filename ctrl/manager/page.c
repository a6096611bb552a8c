/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/manager/page.h"

#include <errno.h>

#include "ctrl/manager/manager.h"
#include "lib/ctl/listen.h"
#include "lib/ctl/metrics.h"

static char *make(void *arg, size_t *len)
{
	return manager_metrics(arg, len);
}

int manager_page_open(
	struct manager_page *p, struct event_base *base, struct manager *m, const char *where)
{
	int fd;

	*p = (struct manager_page){.page = {METRICS_CONTENT_TYPE, make, m}};
	if (!where)
		return 0;
	fd = ctl_listen_pages(where, &p->place);
	if (fd < 0)
		return fd;
	p->where = where;
	return ctl_http_open(base, fd, &p->page, 0, &p->http);
}

void manager_page_close(struct manager_page *p)
{
	if (p->http)
		ctl_http_close(p->http);
	if (p->where)
		ctl_unlisten_one(p->where, &p->place);
	*p = (struct manager_page){.where = NULL};
}
