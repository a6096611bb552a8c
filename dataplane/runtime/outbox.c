/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/outbox.h"

#include "dataplane/ip/icmp_error.h"
#include "dataplane/sw.h"

static void lose(struct worker *w, struct outbox_packet *p)
{
	struct wire_pkt pkt;

	w->drops[p->drop]++;
	if (p->drop == DROP_IP_NO_NEIGH) {
		wire_parse_ip(rte_pktmbuf_mtod(p->mbuf, const uint8_t *), p->mbuf->data_len,
			p->l3_off, &pkt);
		icmp_error(w, p->mbuf, &pkt, DROP_IP_NO_NEIGH, 0);
	}
	rte_pktmbuf_free(p->mbuf);
}

static void work_off(struct worker *w, void *arg)
{
	struct outbox *o = arg;

	for (unsigned i = 0; i < o->n; i++) {
		struct outbox_packet *p = &o->packet[i];

		if (p->worker != o->worker)
			continue;
		w->emitted++;
		if (p->drop != DROP_NONE) {
			lose(w, p);
		} else {
			worker_tx(w, p->port, p->mbuf);
			o->sent++;
		}
		p->mbuf = NULL;
	}
}

static bool any_of(const struct outbox *o, unsigned worker)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->packet[i].worker == worker)
			return true;
	return false;
}

static void flush(struct sw *sw)
{
	struct outbox *o = &sw->out;

	for (o->worker = 0; o->worker < sw->n_workers && !o->hangs; o->worker++)
		if (any_of(o, o->worker))
			o->hangs = sw_worker_call(sw, o->worker, work_off, o) < 0;
	for (unsigned i = 0; i < o->n; i++)
		rte_pktmbuf_free(o->packet[i].mbuf);
	o->n = 0;
}

void outbox_lose(
	struct sw *sw, struct rte_mbuf *mbuf, unsigned port, enum drop why, unsigned l3_off)
{
	struct outbox *o = &sw->out;

	if (o->n == OUTBOX)
		flush(sw);
	o->packet[o->n++] = (struct outbox_packet){.mbuf = mbuf,
		.port = sw->ports[port].id,
		.worker = (uint16_t)(port % sw->n_workers),
		.drop = (uint8_t)why,
		.l3_off = (uint8_t)l3_off};
}

void outbox_send(struct sw *sw, struct rte_mbuf *mbuf, unsigned port)
{
	outbox_lose(sw, mbuf, port, DROP_NONE, 0);
}

unsigned outbox_end(struct sw *sw)
{
	unsigned sent;

	flush(sw);
	sent = sw->out.sent;
	sw->out.sent = 0;
	return sent;
}
