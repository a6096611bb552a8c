/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts packets into the queue of the port in mbuf->port. Queues are sent when full and at the end
 * of the turn (worker_flush). */
#include "dataplane/runtime/node.h"

static void trace(
	struct worker *w, const struct rte_node *node, struct rte_mbuf *const *mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct meta *meta = meta_of(w, mbufs[i]);

		if (meta->trace)
			node_trace(w, node, meta, "port %s, %u bytes",
				w->port[mbufs[i]->port].port->config.name, mbufs[i]->pkt_len);
	}
}

static uint16_t port_tx_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);

	(void)graph;
	if (unlikely(w->tracing))
		trace(w, node, mbufs, n);
	for (uint16_t i = 0; i < n; i++)
		worker_tx(w, mbufs[i]->port, mbufs[i]);
	return n;
}

static struct rte_node_register port_tx = {
	.name = "port_tx",
	.process = port_tx_process,
	.init = node_init,
};
RTE_NODE_REGISTER(port_tx)
