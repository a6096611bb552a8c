/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues of ports (dataplane/egress): as shared out, and as told. */
#include <errno.h>
#include <string.h>

#include "dataplane/sw.h"

struct egress_config sw_queue_share(const struct egress_config *c, unsigned n)
{
	struct egress_config share = *c;

	for (unsigned q = 0; q < EGRESS_N_QUEUES; q++)
		share.limit[q] /= n;
	share.red.min /= n;
	share.red.max /= n;
	share.rate /= n;
	return share;
}

unsigned sw_queue_places(const struct egress_config *c)
{
	return egress_fifo_places(c->limit[EGRESS_Q_CONTROL]) +
	       egress_fifo_places(c->limit[EGRESS_Q_DATA]);
}

int sw_queue_get(struct sw *sw, unsigned port, unsigned which, struct sw_queue *q)
{
	static const char *const names[EGRESS_N_QUEUES] = {"control", "data"};

	if (port >= sw->n_ports || which >= EGRESS_N_QUEUES)
		return -ENOENT;
	*q = (struct sw_queue){.name = names[which]};
	memcpy(q->port, sw->ports[port].config.name, sizeof(q->port));
	for (unsigned i = 0; i < sw->n_workers; i++) {
		const struct egress *e = &sw->worker[i]->port[sw->ports[port].id].egress;

		q->packets += egress_fifo_count(&e->queue[which]);
		q->bytes += e->queue[which].bytes;
		q->limit_bytes += e->queue[which].limit;
#define X(field, text) q->count.field += e->count[which].field;
		EGRESS_COUNTERS(X)
#undef X
	}
	return 0;
}
