/* SPDX-License-Identifier: BSD-3-Clause */
/* RoCE packets to the switch itself: finds the group and endpoint, checks membership and the ICRC.
 */
#include "dataplane/node.h"

enum { EDGE_MODE2, EDGE_DROP, N_EDGES };

static const char *const class_names[] = {
	[INC_CLASS_CTRL] = "control",
	[INC_CLASS_UP_DATA] = "data up",
	[INC_CLASS_DOWN_DATA] = "data down",
	[INC_CLASS_ACK] = "ACK",
	[INC_CLASS_NAK] = "NAK",
	[INC_CLASS_RNR] = "RNR NAK",
	[INC_CLASS_FATAL] = "fatal NAK",
	[INC_CLASS_CNP] = "CNP",
};

static enum drop check(struct lcore *lc, struct meta *meta, const struct rte_mbuf *m)
{
	enum inc_drop drop = inc_lookup(lc->inc, &meta->pkt, m->port, &meta->look);

	if (drop != INC_OK)
		return drop_of_inc(drop);
	if (!inc_check_icrc(
		    &meta->look, rte_pktmbuf_mtod(m, const uint8_t *), &meta->pkt, &meta->pay_crc))
		return DROP_WIRE_ICRC_BAD;
	return DROP_NONE;
}

static uint16_t inc_lookup_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct lcore *lc = node_lcore(node);
	rte_edge_t next[LCORE_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(lc, mbufs[i]);
		enum drop drop = check(lc, meta, mbufs[i]);

		meta->drop = (uint16_t)drop;
		next[i] = drop == DROP_NONE ? EDGE_MODE2 : EDGE_DROP;
		if (unlikely(lc->tracing) && meta->trace && drop == DROP_NONE)
			node_trace(lc, node, meta, "group %s, endpoint %u, %s",
				meta->look.group->name, meta->look.ep, class_names[meta->look.cls]);
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register inc_lookup_node = {
	.name = "inc_lookup",
	.process = inc_lookup_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_MODE2] = "inc_mode2", [EDGE_DROP] = "drop"},
};
RTE_NODE_REGISTER(inc_lookup_node)
