/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch's own RNIC in the graph: packets to its queue pairs end here, their ICRC is checked by
 * the device. What it sends is made once per turn, with addresses and port of the endpoint that its
 * queue pair is. */
#include "dataplane/runtime/node.h"
#include "dataplane/switch_rnic.h"
#include "lib/wire/bytes.h"

enum { EDGE_DROP, N_EDGES };
enum { MACS_LEN = 12 };

/* Frames per turn: what is left is sent in the next one. */
enum { TURN_FRAMES = 256 };

/* Is it of the endpoint that the queue pair is? A queue pair without a group is in no VLAN. */
static enum drop check(struct sw_rnic *r, const struct wire_pkt *pkt, uint16_t in_port)
{
	unsigned i;
	struct inc_group *g = mode1_owner(r->dev, pkt->dqpn, &i);
	const struct inc_ep *ep = g != NULL ? inc_ep_at(g, i) : NULL;

	if (g != NULL && (g->flags & INC_F_STRICT_PORT) && ep->port != in_port)
		return DROP_INC_PORT;
	if ((pkt->vlan ^ (ep != NULL ? ep->flow.vlan : 0)) & WIRE_VLAN_ID)
		return DROP_INC_VLAN;
	return DROP_NONE;
}

/* The device knows of no VLANs: what it gets and makes has no tags. */
static void untag(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(frame + VLAN_HDR_LEN, frame, MACS_LEN);
	rte_pktmbuf_adj(m, VLAN_HDR_LEN);
}

static bool tag(struct rte_mbuf *m, uint16_t tci)
{
	uint8_t *frame = (uint8_t *)rte_pktmbuf_prepend(m, VLAN_HDR_LEN);

	if (frame == NULL)
		return false;
	memmove(frame, frame + VLAN_HDR_LEN, MACS_LEN);
	put_be16(frame + MACS_LEN, ETH_TYPE_VLAN);
	put_be16(frame + MACS_LEN + 2, tci);
	return true;
}

static enum drop receive(struct worker *w, struct rte_mbuf *m, const struct meta *meta)
{
	struct sw_rnic *r = w->rnic;
	enum drop drop = check(r, &meta->pkt, m->port);
	uint8_t *frame;

	if (drop != DROP_NONE)
		return drop;
	if (meta->pkt.vlan & WIRE_VLAN_ID)
		untag(m);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	/* One device behind all ports: it has one of their MAC addresses. */
	rnic_mac(mode1_rnic(r->dev), 0, frame);
	return drop_of_rnic(rnic_rx(mode1_rnic(r->dev), 0, frame, m->data_len, w->now));
}

static uint16_t rnic_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);

		meta->drop = (uint8_t)receive(w, mbufs[i], meta);
		if (unlikely(w->tracing) && meta->trace)
			node_trace(w, node, meta, "queue pair 0x%06x, PSN %u: %s", meta->pkt.dqpn,
				meta->pkt.psn, drop_name(meta->drop));
	}
	rte_node_next_stream_move(graph, node, EDGE_DROP);
	return n;
}

/* ---- sending ---- */

/* Port, VLAN and MAC addresses for a frame. False: nobody knows where its destination is. */
static bool address(struct worker *w, const struct rnic_frame *f, uint8_t *frame, uint16_t *port,
	uint16_t *vlan)
{
	const uint8_t *dmac, *smac;
	struct wire_pkt pkt;
	unsigned i;
	struct inc_group *g = mode1_owner(w->rnic->dev, f->qpn, &i);

	if (g != NULL) {
		const struct inc_ep *ep = inc_ep_at(g, i);

		dmac = ep->flow.dmac;
		smac = ep->flow.smac;
		*port = ep->port;
		*vlan = ep->flow.vlan;
	} else { /* the last acknowledgement of a queue pair that is gone */
		const struct adj *adj;

		if (wire_parse(frame, f->len, &pkt) != WIRE_OK)
			return false;
		adj = fwd_lookup(w->fwd, &pkt.dst);
		if (adj->kind != ADJ_REWRITE)
			return false;
		dmac = adj->dmac;
		smac = adj->smac;
		*port = adj->port;
		*vlan = adj->vlan;
	}
	memcpy(frame, dmac, 6);
	memcpy(frame + 6, smac, 6);
	return true;
}

static void send_frame(struct worker *w, const struct rnic_frame *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	uint8_t *frame;
	uint16_t port, vlan;

	w->emitted++;
	if (unlikely(m == NULL)) {
		w->drops[DROP_NO_MBUF]++;
		return;
	}
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	if (rnic_frame_flatten(f, frame, rte_pktmbuf_tailroom(m)) < 0 ||
		!address(w, f, frame, &port, &vlan)) {
		w->drops[DROP_IP_NO_NEIGH]++;
		rte_pktmbuf_free(m);
		return;
	}
	m->data_len = (uint16_t)f->len;
	m->pkt_len = f->len;
	if (vlan != 0 && !tag(m, vlan)) {
		w->drops[DROP_NO_MBUF]++;
		rte_pktmbuf_free(m);
		return;
	}
	worker_tx(w, port, m);
}

uint64_t rnic_turn(struct worker *w)
{
	struct sw_rnic *r = w->rnic;
	struct rnic *rnic = mode1_rnic(r->dev);
	struct rnic_frame frame;
	unsigned n = 0;
	uint64_t deadline;

	if (atomic_load_explicit(&r->active, memory_order_relaxed) == 0 && !rnic_has_work(rnic))
		return UINT64_MAX;
	if (rnic_deadline(rnic) <= w->now)
		rnic_timer(rnic, w->now);
	mode1_run(r->dev, w->now);
	while (n < TURN_FRAMES && rnic_tx(rnic, RNIC_ALL_PORTS, &frame, w->now)) {
		send_frame(w, &frame);
		n++;
	}
	mode1_run(r->dev, w->now); /* a NAK that was sent may have ended a queue pair */
	deadline = rnic_has_work(rnic) ? w->now : rnic_deadline(rnic);
	w->work += n;
	return deadline;
}

static struct rte_node_register rnic_node = {
	.name = "rnic",
	.process = rnic_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_DROP] = "end"},
};
RTE_NODE_REGISTER(rnic_node)
