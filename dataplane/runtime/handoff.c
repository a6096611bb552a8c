/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/handoff.h"

#include <errno.h>
#include <stdio.h>

static struct rte_ring *make(unsigned from, unsigned to)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "handoff%u-%u", from, to);
	return rte_ring_create(name, HANDOFF_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

int handoff_create(struct worker *const *workers, unsigned n)
{
	for (unsigned from = 0; from < n; from++)
		for (unsigned to = 0; to < n; to++) {
			struct rte_ring *r = from == to ? NULL : make(from, to);

			if (from != to && r == NULL)
				return -ENOMEM;
			workers[from]->to[to] = workers[to]->from[from] = r;
		}
	return 0;
}

static void empty(struct rte_ring *r)
{
	void *m;

	while (rte_ring_sc_dequeue(r, &m) == 0)
		rte_pktmbuf_free(m);
}

void handoff_destroy(struct worker *const *workers, unsigned n)
{
	for (unsigned from = 0; from < n; from++)
		for (unsigned to = 0; workers[from] != NULL && to < n; to++) {
			struct rte_ring *r = workers[from]->to[to];

			if (r != NULL)
				empty(r);
			rte_ring_free(r);
		}
}

unsigned handoff_take(struct worker *w, struct rte_mbuf **out)
{
	unsigned n = 0;

	for (unsigned k = 0; k < w->n_workers && n < HANDOFF_BURST; k++) {
		struct rte_ring *r = w->from[w->next_from];

		if (r != NULL)
			n += rte_ring_sc_dequeue_burst(
				r, (void **)(out + n), HANDOFF_BURST - n, NULL);
		w->next_from = w->next_from + 1 == w->n_workers ? 0 : w->next_from + 1;
	}
	w->taken_over += n;
	return n;
}
