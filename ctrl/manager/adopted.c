/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that were there before this manager was, as far as it is not their ranks who say so. */
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/priv.h"

struct mg_adopted *mg_adopted_find(struct manager *m, const char *job, uint64_t epoch)
{
	struct mg_adopted *a;

	LIST_FOREACH(a, &m->adopted, link)
	if (a->epoch == epoch && !strcmp(a->job, job))
		return a;
	return NULL;
}

uint64_t mg_learns_for(const struct manager *m)
{
	const uint64_t end = m->started + mgr_return_ns(m->heartbeat_ns);

	return end > m->now ? end - m->now : 0;
}

void mg_adopted_end(struct manager *m, struct mg_adopted *a, const char *why)
{
	mg_say(m, JOURNAL_NOTICE, "job %s, epoch %llu, is over: %s", a->job,
		(unsigned long long)a->epoch, why);
	if (a->there)
		mg_end_everywhere(m, a->job, a->epoch, false);
	/* With nobody to claim it, it goes when the switches next tell what they have. */
	LIST_REMOVE(a, link);
	m->n_adopted--;
	free(a);
}
