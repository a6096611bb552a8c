/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers echo requests to the switch, back through the port they came from. */
#include "dataplane/node.h"

enum { EDGE_TX, N_EDGES };

static uint16_t icmp_echo_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct lcore *lc = node_lcore(node);

	for (uint16_t i = 0; i < n; i++) {
		const struct meta *meta = meta_of(lc, mbufs[i]);

		wire_icmp_echo_reply(rte_pktmbuf_mtod(mbufs[i], uint8_t *), &meta->pkt);
		if (unlikely(lc->tracing) && meta->trace)
			node_trace(lc, node, meta, "echo request answered");
	}
	rte_node_next_stream_move(graph, node, EDGE_TX);
	return n;
}

static struct rte_node_register icmp_echo = {
	.name = "icmp_echo",
	.process = icmp_echo_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_TX] = "port_tx"},
};
RTE_NODE_REGISTER(icmp_echo)
