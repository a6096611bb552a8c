/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets whose neighbour is not known yet go to the control plane, which asks for it and sends
 * them on, or loses them (l2/sw_neigh.c). */
#include "dataplane/l2/neigh_note.h"

static bool wait_for(struct worker *w, struct rte_mbuf *m, struct meta *meta)
{
	const struct adj *adj = &w->fwd->adj[meta->adj];
	const struct wire_ip *nexthop = &w->fwd->glean[adj->at].nexthop;
	const struct neigh_note note = {
		.ip = adj->at != 0 ? *nexthop : meta->pkt.dst,
		.mbuf = m,
		.port = adj->port,
		.vlan = adj->vlan,
		.l3_off = (uint8_t)meta->pkt.l3_off,
		.hop_taken = meta->srv6.hop_taken,
	};

	if (!neigh_tell(w, m->port, &note)) {
		meta->drop = DROP_NEIGH_FULL;
		return false;
	}
	w->drops[DROP_NEIGH_WAIT]++;
	return true;
}

static uint16_t neigh_wait_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	uint16_t n_end = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = mbufs[i];
		struct meta *meta = meta_of(w, m);

		if (unlikely(w->tracing) && meta->trace)
			node_trace(w, node, meta, "neighbour is asked for");
		objs[n_end] = m;
		n_end += !wait_for(w, m, meta);
	}
	if (n_end > 0)
		rte_node_enqueue(graph, node, 0, objs, n_end);
	return n;
}

static struct rte_node_register neigh_wait = {
	.name = "neigh_wait",
	.process = neigh_wait_process,
	.init = node_init,
	.nb_edges = 1,
	.next_nodes = {"end"},
};
RTE_NODE_REGISTER(neigh_wait)
