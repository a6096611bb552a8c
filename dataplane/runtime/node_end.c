/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of every packet that is not sent: counts it by the reason in its metadata. */
#include "dataplane/runtime/node.h"
#include "dataplane/runtime/tap.h"

static uint16_t end_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);

	(void)graph;
	if (unlikely(w->taps != NULL))
		taps_ended(w, mbufs, n);
	for (uint16_t i = 0; i < n; i++) {
		const struct meta *meta = meta_of(w, mbufs[i]);

		w->drops[meta->drop]++;
		if (unlikely(meta->trace))
			node_trace(w, node, meta, "%s %s: %s",
				drop_is_outcome(meta->drop) ? "outcome" : "drop",
				drop_name(meta->drop), drop_text(meta->drop));
	}
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

static struct rte_node_register end_node = {
	.name = "end",
	.process = end_process,
	.init = node_init,
};
RTE_NODE_REGISTER(end_node)
