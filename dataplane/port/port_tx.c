/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts packets into the queue of the port in mbuf->port. Queues are sent when full and at the end
 * of the turn (lcore_flush). */
#include "dataplane/node.h"

static void trace(
	struct lcore *lc, const struct rte_node *node, struct rte_mbuf *const *mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct meta *meta = meta_of(lc, mbufs[i]);

		if (meta->trace)
			node_trace(lc, node, meta, "port %s, %u bytes",
				lc->port[mbufs[i]->port].port->config.name, mbufs[i]->pkt_len);
	}
}

static uint16_t port_tx_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct lcore *lc = node_lcore(node);

	(void)graph;
	if (unlikely(lc->tracing))
		trace(lc, node, mbufs, n);
	for (uint16_t i = 0; i < n; i++)
		lcore_tx(lc, mbufs[i]->port, mbufs[i]);
	return n;
}

static struct rte_node_register port_tx = {
	.name = "port_tx",
	.process = port_tx_process,
	.init = node_init,
};
RTE_NODE_REGISTER(port_tx)
