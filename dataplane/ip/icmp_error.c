/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/ip/icmp_error.h"

#include "dataplane/ip/asker.h"
#include "lib/wire/icmp_error.h"

/* False: nobody is told. A blackhole is one. */
static bool error_of(enum drop why, enum wire_icmp_error *error)
{
	switch (why) {
	case DROP_IP_TTL:
	case DROP_SRV6_HOP_LIMIT:
		*error = WIRE_ICMP_TIME_EXCEEDED;
		return true;
	case DROP_IP_NO_ROUTE:
		*error = WIRE_ICMP_NO_ROUTE;
		return true;
	case DROP_IP_NO_NEIGH:
		*error = WIRE_ICMP_NO_NEIGHBOUR;
		return true;
	case DROP_IP_MTU:
		*error = WIRE_ICMP_TOO_BIG;
		return true;
	case DROP_SRV6_BAD_SRH:
		*error = WIRE_ICMP_SEGMENTS_LEFT;
		return true;
	case DROP_SRV6_UPPER:
		*error = WIRE_ICMP_UPPER_LAYER;
		return true;
	default:
		return false;
	}
}

static bool may_send(struct worker *w, struct lport *from)
{
	if (egress_bucket_left(&from->icmp_errors, w->now) <= 0) {
		w->icmp_held++;
		return false;
	}
	egress_bucket_take(&from->icmp_errors, 1);
	return true;
}

void icmp_error(struct worker *w, const struct rte_mbuf *m, const struct wire_pkt *pkt,
	enum drop why, uint16_t value)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct wire_icmp_way way = {.src = w->fwd->own[pkt->ip_ver == 4]};
	enum wire_icmp_error error;
	struct rte_mbuf *out;
	const struct adj *adj;
	int len;

	if (!w->icmp || !error_of(why, &error) || wire_ip_is_zero(&way.src) ||
		!asker_is_host(&pkt->src) || !wire_icmp_error_due(frame, pkt, error))
		return;
	adj = fwd_lookup(w->fwd, &pkt->src);
	if (adj->kind != ADJ_REWRITE || !may_send(w, &w->port[m->port]))
		return;
	out = rte_pktmbuf_alloc(w->pool);
	if (out == NULL)
		return;
	memcpy(way.dmac, adj->dmac, sizeof(way.dmac));
	memcpy(way.smac, adj->smac, sizeof(way.smac));
	way.vlan = adj->vlan;
	len = wire_build_icmp_error(rte_pktmbuf_mtod(out, uint8_t *), rte_pktmbuf_tailroom(out),
		&way, error, value, frame, pkt);
	if (len < 0) {
		rte_pktmbuf_free(out);
		return;
	}
	out->data_len = (uint16_t)len;
	out->pkt_len = (uint32_t)len;
	w->emitted++;
	w->icmp_sent++;
	worker_tx(w, adj->port, out);
}
