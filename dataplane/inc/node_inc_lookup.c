/* SPDX-License-Identifier: BSD-3-Clause */
/* RoCE packets to the switch itself: finds the group and endpoint and checks membership. The ICRC
 * is left to the mode's node, which reads the payload anyway: so it comes from memory once. */
#include "dataplane/inc/mode1.h"
#include "dataplane/runtime/handoff.h"
#include "dataplane/runtime/node.h"
#include "dataplane/switch_rnic.h"
#include "dataplane/views.h"

enum { EDGE_ENGINE, EDGE_RNIC, EDGE_HANDOFF, EDGE_DROP, N_EDGES };

static const char *const class_names[] = {
	[INC_CLASS_CTRL] = "control",
	[INC_CLASS_DATA] = "data",
	[INC_CLASS_ACK] = "ACK",
	[INC_CLASS_NAK] = "NAK",
	[INC_CLASS_RNR] = "RNR NAK",
	[INC_CLASS_FATAL] = "fatal NAK",
	[INC_CLASS_CNP] = "CNP",
};

/* Blocks of many groups are not in the cache: first where a packet's group is, then its endpoint.
 */
enum { GROUP_AHEAD = 8, EP_AHEAD = 4 };

static inline struct inc_group *group_of(struct worker *w, const struct rte_mbuf *m)
{
	return __atomic_load_n(
		&w->inc->group[inc_qpn_slot(meta_of(w, m)->pkt.dqpn)], __ATOMIC_ACQUIRE);
}

static inline void prefetch_group(struct worker *w, const struct rte_mbuf *m)
{
	const struct inc_group *g = group_of(w, m);

	if (g == NULL)
		return;
	rte_prefetch0(g);
	rte_prefetch0(&g->ep_off);
}

static inline void prefetch_ep(struct worker *w, const struct rte_mbuf *m)
{
	struct inc_group *g = group_of(w, m);
	const unsigned ep = inc_qpn_ep(meta_of(w, m)->pkt.dqpn);

	if (g != NULL && ep < g->n_ep)
		rte_prefetch0(inc_ep_at(g, ep));
}

static uint16_t inc_lookup_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	rte_edge_t next[WORKER_MAX_PACKETS];
	enum inc_drop drop;

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);

		if (i + GROUP_AHEAD < n)
			prefetch_group(w, mbufs[i + GROUP_AHEAD]);
		if (i + EP_AHEAD < n)
			prefetch_ep(w, mbufs[i + EP_AHEAD]);
		if (meta->pkt.dqpn < MODE1_QPN_LIMIT) {
			meta->owner = RNIC_WORKER;
			next[i] = w->rnic != NULL ? EDGE_RNIC : EDGE_HANDOFF;
			continue;
		}
		drop = inc_lookup(w->inc, &meta->pkt, mbufs[i]->port, &meta->look);
		if (drop == INC_OK && handoff_needed(w, meta->look.group->slot, meta)) {
			next[i] = EDGE_HANDOFF;
			continue;
		}
		if (drop == INC_OK && meta->look.cls == INC_CLASS_CTRL)
			worker_note_mac(w, mbufs[i]->port, &meta->pkt.src,
				rte_pktmbuf_mtod(mbufs[i], const uint8_t *) + 6);
		meta->drop = (uint8_t)drop_of_inc(drop);
		next[i] = drop == INC_OK ? EDGE_ENGINE : EDGE_DROP;
		if (unlikely(w->tracing) && meta->trace && drop == INC_OK)
			node_trace(w, node, meta, "group %s, endpoint %u, %s",
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
	.next_nodes = {[EDGE_ENGINE] = "inc_engine",
		[EDGE_RNIC] = "rnic",
		[EDGE_HANDOFF] = "handoff",
		[EDGE_DROP] = "end"},
};
RTE_NODE_REGISTER(inc_lookup_node)

/* What inc_lookup matches. */
const struct table_desc inc_endpoint_view = {
	.name = "inc_endpoint",
	.node = "inc_lookup",
	.miss = "inc_no_group",
	.help = "endpoints of groups of Mode-II and Mode-III (group.show)",
	.n_keys = 4,
	.keys = {{.name = "qpn",
			 .help = "group, its generation and the endpoint",
			 .type = TABLE_UINT,
			 .min = MODE1_QPN_LIMIT,
			 .max = 0xffffff},
		{.name = "src", .help = "the member's address", .type = TABLE_IP},
		{.name = "dst", .help = "the switch's address", .type = TABLE_IP},
		{.name = "vlan", .help = "0: untagged", .type = TABLE_UINT, .max = WIRE_VLAN_ID}},
	.n_actions = 1,
	.actions = {{.name = "engine", .help = "to the group's worker, and the IncEngine"}},
	.size = INC_GROUP_SLOTS * INC_MAX_EP,
};
