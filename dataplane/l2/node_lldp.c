/* SPDX-License-Identifier: BSD-3-Clause */
/* LLDP that neighbours send: its contents are for the control thread (l2/sw_lldp.c). Nothing is
 * forwarded, and nothing answered. */
#include "dataplane/l2/lldp_note.h"

static enum drop take(struct worker *w, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct lldp_note note = {.port = m->port};
	enum wire_lldp_error error;

	if (frame[6] & 1)
		return DROP_L2_SOURCE;
	error = wire_lldp_parse(frame, m->data_len, &note.says);
	if (error != WIRE_LLDP_OK)
		return drop_of_lldp(error);
	return lldp_tell(w, &note) ? DROP_LLDP : DROP_LLDP_FULL;
}

static uint16_t lldp_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);

		meta->drop = (uint8_t)take(w, mbufs[i]);
		if (unlikely(w->tracing) && meta->trace)
			node_trace(w, node, meta, "LLDP: %s", drop_name(meta->drop));
	}
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static struct rte_node_register lldp_node = {
	.name = "lldp",
	.process = lldp_process,
	.init = node_init,
	.nb_edges = 1,
	.next_nodes = {"end"},
};
RTE_NODE_REGISTER(lldp_node)
