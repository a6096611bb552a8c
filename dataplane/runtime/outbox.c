/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/outbox.h"

static void send(struct worker *w, void *arg)
{
	struct outbox *o = arg;

	for (unsigned i = 0; i < o->n; i++) {
		struct outbox_packet *p = &o->packet[i];

		if (p->worker != o->worker)
			continue;
		w->emitted++;
		worker_tx(w, p->port, p->mbuf);
		p->mbuf = NULL;
		o->sent++;
	}
}

static bool any_of(const struct outbox *o, unsigned worker)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->packet[i].worker == worker)
			return true;
	return false;
}

static void flush(struct outbox *o, struct sw *sw)
{
	for (o->worker = 0; o->worker < sw->n_workers && !o->hangs; o->worker++)
		if (any_of(o, o->worker))
			o->hangs = sw_worker_call(sw, o->worker, send, o) < 0;
	for (unsigned i = 0; i < o->n; i++)
		rte_pktmbuf_free(o->packet[i].mbuf);
	o->n = 0;
}

void outbox_put(struct outbox *o, struct sw *sw, struct rte_mbuf *mbuf, unsigned port)
{
	if (o->n == OUTBOX)
		flush(o, sw);
	o->packet[o->n++] =
		(struct outbox_packet){mbuf, sw->ports[port].id, (uint16_t)(port % sw->n_workers)};
}

unsigned outbox_end(struct outbox *o, struct sw *sw)
{
	unsigned sent;

	flush(o, sw);
	sent = o->sent;
	o->sent = 0;
	o->hangs = false;
	return sent;
}
