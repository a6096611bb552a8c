/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives a routed packet the MAC addresses and the VLAN of its next hop and takes one from its TTL.
 */
#include "dataplane/ip/icmp_error.h"
#include "dataplane/retag.h"
#include "dataplane/runtime/node.h"

enum { EDGE_TX, EDGE_DROP, N_EDGES };

/* False: no hop is left. */
static bool forward(uint8_t *frame, const struct meta *meta, const struct adj *adj)
{
	if (likely(!meta->srv6.hop_taken))
		return wire_forward(frame, &meta->pkt, adj->dmac, adj->smac) == 0;
	memcpy(frame, adj, sizeof(adj->dmac) + sizeof(adj->smac));
	return true;
}

static uint16_t rewrite_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	const struct adj *adjs = w->fwd->adj;
	rte_edge_t next[WORKER_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = mbufs[i];
		struct meta *meta = meta_of(w, m);
		const struct adj *adj = &adjs[meta->adj];

		next[i] = EDGE_TX;
		if (!forward(rte_pktmbuf_mtod(m, uint8_t *), meta, adj)) {
			meta->drop = DROP_IP_TTL;
			next[i] = EDGE_DROP;
			if (!ip_is_tunnelled(meta))
				icmp_error(w, m, &meta->pkt, DROP_IP_TTL, 0);
		} else if (unlikely(meta->pkt.l3_off != ETH_HDR_LEN || adj->vlan != 0) &&
			   !retag(m, meta->pkt.l3_off != ETH_HDR_LEN, adj->vlan)) {
			meta->drop = DROP_NO_MBUF;
			next[i] = EDGE_DROP;
		}
		if (likely(next[i] == EDGE_TX))
			m->port = adj->port;
		if (unlikely(w->tracing) && meta->trace)
			node_trace(w, node, meta, "TTL %u", meta->pkt.ttl);
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register rewrite = {
	.name = "rewrite",
	.process = rewrite_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_TX] = "port_tx", [EDGE_DROP] = "end"},
};
RTE_NODE_REGISTER(rewrite)
