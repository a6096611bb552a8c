/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets whose route leads into a tunnel: an outer header, and the lookup of its destination. */
#include "dataplane/runtime/node.h"
#include "dataplane/srv6/again.h"

enum { EDGE_IP_FORWARD, EDGE_DROP, N_EDGES };

static enum srv6_drop encap(const struct srv6_encap *e, struct rte_mbuf *m, struct meta *meta)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), outer[SRV6_ENCAP_MAX];
	const uint16_t l3 = meta->pkt.l3_off, own = (uint16_t)srv6_encap_len(e);
	enum srv6_drop drop;

	if (rte_pktmbuf_headroom(m) < own)
		return SRV6_NO_ROOM;
	drop = srv6_encap(e, frame + l3, (size_t)(meta->pkt.end - l3), outer);
	if (drop != SRV6_OK)
		return drop;
	frame = (uint8_t *)rte_pktmbuf_prepend(m, own);
	memmove(frame, frame + own, l3);
	memcpy(frame + l3, outer, own);
	put_be16(frame + l3 - 2, ETH_TYPE_IP6);
	meta->pkt.end = (uint16_t)(meta->pkt.end + own);
	srv6_again(frame, &meta->pkt);
	/* The outer header begins here: its source is ours, and no hop is behind it. */
	meta->srv6.hop_taken = true;
	meta->srv6.own = true;
	return SRV6_OK;
}

static uint16_t srv6_encap_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	rte_edge_t next[WORKER_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);
		const struct srv6_encap *e = &w->fwd->encap[w->fwd->adj[meta->adj].at];
		enum srv6_drop drop = encap(e, mbufs[i], meta);

		next[i] = drop == SRV6_OK ? EDGE_IP_FORWARD : EDGE_DROP;
		if (drop != SRV6_OK)
			meta->drop = (uint8_t)drop_of_srv6(drop);
		if (unlikely(w->tracing) && meta->trace && drop == SRV6_OK) {
			char text[WIRE_IP_STRLEN];

			node_trace(w, node, meta, "to %s, %u segments",
				wire_ip_format(&meta->pkt.dst, text, sizeof(text)), e->n);
		}
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register srv6_encap_node = {
	.name = "srv6_encap",
	.process = srv6_encap_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_IP_FORWARD] = "ip_forward", [EDGE_DROP] = "end"},
};
RTE_NODE_REGISTER(srv6_encap_node)
