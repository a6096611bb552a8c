/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to multicast groups: a copy to each member's port but the one that they came from. Copies
 * have headers of their own, since queues mark and trim, and share the payload of what was received
 * where it is long enough for that to pay. */
#include "dataplane/ip/stays.h"
#include "dataplane/mcast/mcast_fwd.h"
#include "dataplane/runtime/node.h"
#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"

enum {
	/* Of the headers from IP on: IPv6, UDP, BTH, DETH and a few bytes. */
	HEAD_LEN = 72,
	/* Payload up to here is copied: attaching a buffer costs about as much. */
	COPY_MAX = 512,
	MACS_LEN = 12,
};

/* The packet being copied. */
struct source {
	struct worker *w;
	struct rte_mbuf *m;
	const struct meta *meta;
};

static enum drop check_source(const struct worker *w, const struct rte_mbuf *m,
	const struct meta *meta, const struct mcast_group *g)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct wire_ip *src = &meta->pkt.src;
	uint8_t dmac[6];

	wire_multicast_mac(&g->ip, dmac);
	if (memcmp(frame, dmac, sizeof(dmac)) != 0)
		return DROP_MCAST_MAC;
	if (frame[6] & 1)
		return DROP_L2_SOURCE;
	if (ip_stays(src))
		return DROP_IP_NOT_ROUTABLE;
	if (fwd_is_local(w->fwd, src))
		return DROP_IP_FORGED;
	return mcast_hears(w->mcast, g, src, m->port, w->index) ? DROP_NONE : DROP_MCAST_SENDER;
}

/* From the VLAN of a neighbour there, or of the group's members. */
static bool vlan_ok(
	const struct worker *w, const struct mcast_group *g, uint16_t port, uint16_t tci)
{
	if (likely(fwd_vlan_ok(w->fwd, port, tci)))
		return true;
	for (unsigned i = g->out; i < g->out + g->n_out; i++)
		if (w->mcast->out[i].port == port)
			return w->mcast->out[i].vlan == (tci & WIRE_VLAN_ID);
	return false;
}

static enum drop decide(struct worker *w, const struct rte_mbuf *m, const struct meta *meta,
	const struct mcast_group *g)
{
	enum drop drop;

	if (wire_multicast_stays(&meta->pkt.dst))
		return DROP_IP_NOT_ROUTABLE;
	if (g == NULL)
		return DROP_MCAST_UNKNOWN;
	if (!vlan_ok(w, g, m->port, meta->pkt.vlan))
		return DROP_L2_VLAN;
	if (meta->pkt.ttl <= 1)
		return DROP_IP_TTL;
	drop = check_source(w, m, meta, g);
	return drop == DROP_NONE ? DROP_MCAST_DONE : drop;
}

/* Ethernet header of a copy, with the priority of the tag that it came with. Its length. */
static unsigned put_ethernet(const struct source *s, const struct mcast_out *out, uint8_t *to)
{
	const uint8_t *frame = rte_pktmbuf_mtod(s->m, const uint8_t *);
	unsigned len = MACS_LEN;

	memcpy(to, frame, sizeof(out->smac));
	memcpy(to + sizeof(out->smac), out->smac, sizeof(out->smac));
	if (out->vlan != 0) {
		put_be16(to + len, ETH_TYPE_VLAN);
		put_be16(to + len + 2, (uint16_t)((s->meta->pkt.vlan & ~WIRE_VLAN_ID) | out->vlan));
		len += VLAN_HDR_LEN;
	}
	put_be16(to + len, s->meta->pkt.ip_ver == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	return len + 2;
}

/* The first `own` bytes from IP on are the copy's, the others the source's. */
static struct rte_mbuf *share(const struct source *s, const struct mcast_out *out, unsigned own)
{
	const unsigned at = s->meta->pkt.l3_off + own;
	struct rte_mbuf *head = rte_pktmbuf_alloc(s->w->head_pool);
	struct rte_mbuf *rest = rte_pktmbuf_alloc(s->w->head_pool);
	unsigned len;

	static_assert(ETH_HDR_LEN + VLAN_HDR_LEN + HEAD_LEN <= (int)WIRE_TEMPLATE_LEN,
		"room in a head buffer");
	if (unlikely(head == NULL || rest == NULL)) {
		rte_pktmbuf_free(head);
		rte_pktmbuf_free(rest);
		return NULL;
	}
	rte_pktmbuf_attach(rest, s->m);
	rest->data_off = (uint16_t)(s->m->data_off + at);
	rest->data_len = (uint16_t)(s->m->data_len - at);
	len = put_ethernet(s, out, rte_pktmbuf_mtod(head, uint8_t *));
	memcpy(rte_pktmbuf_mtod(head, uint8_t *) + len,
		rte_pktmbuf_mtod(s->m, const uint8_t *) + s->meta->pkt.l3_off, own);
	head->data_len = (uint16_t)(len + own);
	head->pkt_len = (uint32_t)head->data_len + rest->data_len;
	head->next = rest;
	head->nb_segs = 2;
	return head;
}

static struct rte_mbuf *copy(const struct source *s, const struct mcast_out *out)
{
	const unsigned l3_len = s->m->data_len - s->meta->pkt.l3_off;
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->w->pool);
	unsigned len;

	if (unlikely(m == NULL))
		return NULL;
	if (unlikely(rte_pktmbuf_tailroom(m) < ETH_HDR_LEN + VLAN_HDR_LEN + l3_len)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	len = put_ethernet(s, out, rte_pktmbuf_mtod(m, uint8_t *));
	memcpy(rte_pktmbuf_mtod(m, uint8_t *) + len,
		rte_pktmbuf_mtod(s->m, const uint8_t *) + s->meta->pkt.l3_off, l3_len);
	m->data_len = (uint16_t)(len + l3_len);
	m->pkt_len = m->data_len;
	return m;
}

static void send_copy(const struct source *s, unsigned i)
{
	const struct wire_pkt *pkt = &s->meta->pkt;
	const struct mcast_out *out = &s->w->mcast->out[i];
	const bool shares = s->w->port[out->port].port->multi_seg &&
			    s->m->data_len - pkt->l3_off > HEAD_LEN + COPY_MAX;
	struct rte_mbuf *m;

	s->w->emitted++;
	if (unlikely(pkt->end - pkt->l3_off > out->mtu)) {
		s->w->drops[DROP_IP_MTU]++;
		return;
	}
	m = shares ? share(s, out, HEAD_LEN) : copy(s, out);
	if (unlikely(m == NULL)) {
		s->w->drops[DROP_NO_MBUF]++;
		return;
	}
	mcast_count_copy(s->w->mcast, i, s->w->index);
	worker_tx(s->w, out->port, m);
}

/* How many. */
static unsigned replicate(const struct source *s, const struct mcast_group *g)
{
	uint8_t *frame = rte_pktmbuf_mtod(s->m, uint8_t *), macs[MACS_LEN];
	unsigned n = 0;

	/* One hop less, for all copies at once. */
	memcpy(macs, frame, sizeof(macs));
	wire_forward(frame, &s->meta->pkt, macs, macs + 6);
	for (unsigned i = g->out; i < g->out + g->n_out; i++) {
		if (s->w->mcast->out[i].port == s->m->port)
			continue;
		send_copy(s, i);
		n++;
	}
	return n;
}

/* True: it has the packet. */
static bool to_control(struct worker *w, struct rte_mbuf *m, struct meta *meta)
{
	if (rte_ring_enqueue(w->reports, m) != 0) {
		meta->drop = DROP_MCAST_REPORTS;
		return false;
	}
	w->drops[DROP_MCAST_REPORT]++;
	return true;
}

static uint16_t mcast_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	const struct mcast_group *g = NULL;
	uint16_t n_end = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);
		const struct source s = {w, mbufs[i], meta};
		unsigned copies = 0;

		objs[n_end] = mbufs[i];
		if (unlikely(w->port[mbufs[i]->port].mcast_learn) && mcast_is_report(&meta->pkt)) {
			n_end += !to_control(w, mbufs[i], meta);
			continue;
		}
		n_end++;
		/* As a rule a burst is of one group. */
		if (g == NULL || !wire_ip_eq(&g->ip, &meta->pkt.dst))
			g = mcast_find(w->mcast, &meta->pkt.dst);
		meta->drop = (uint8_t)decide(w, mbufs[i], meta, g);
		if (meta->drop == DROP_MCAST_DONE)
			copies = replicate(&s, g);
		if (unlikely(w->tracing) && meta->trace)
			node_trace(w, node, meta, "to %u ports", copies);
	}
	if (likely(n_end == n))
		rte_node_next_stream_move(graph, node, 0);
	else
		rte_node_enqueue(graph, node, 0, objs, n_end);
	return n;
}

static struct rte_node_register mcast_node = {
	.name = "mcast",
	.process = mcast_process,
	.init = node_init,
	.nb_edges = 1,
	.next_nodes = {"end"},
};
RTE_NODE_REGISTER(mcast_node)
