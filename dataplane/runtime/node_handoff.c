/* SPDX-License-Identifier: BSD-3-Clause */
/* To the worker that owns the packet's group or ring (meta->owner). */
#include "dataplane/runtime/handoff.h"
#include "dataplane/runtime/node.h"

static void prepare(struct worker *w, const struct rte_node *node, struct rte_mbuf *m)
{
	const struct meta *meta = meta_of(w, m);

	if (unlikely(meta->trace))
		node_trace(w, node, meta, "to worker %u", meta->owner);
	m->hash.fdir.hi = meta->trace;
}

/* The index into the metadata of this turn is not touched by what is written beside it. */
static_assert(offsetof(struct rte_mbuf, hash.usr) != offsetof(struct rte_mbuf, hash.fdir.hi),
	"room for both");

static void give(struct worker *w, unsigned owner, void **objs, unsigned n)
{
	const unsigned sent = rte_ring_sp_enqueue_burst(w->to[owner], objs, n, NULL);

	w->handed_over += sent;
	if (unlikely(sent < n)) {
		w->drops[DROP_HANDOFF_FULL] += n - sent;
		rte_pktmbuf_free_bulk((struct rte_mbuf **)objs + sent, n - sent);
	}
}

static uint16_t handoff_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	unsigned start = 0, owner = 0;

	(void)graph;
	for (unsigned i = 0; i < n; i++) {
		const unsigned next = meta_of(w, mbufs[i])->owner;

		prepare(w, node, mbufs[i]);
		if (i > start && next != owner) {
			give(w, owner, objs + start, i - start);
			start = i;
		}
		owner = next;
	}
	if (n > start)
		give(w, owner, objs + start, n - start);
	return n;
}

static struct rte_node_register handoff_node = {
	.name = "handoff",
	.process = handoff_process,
	.init = node_init,
};
RTE_NODE_REGISTER(handoff_node)
