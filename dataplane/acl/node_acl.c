/* SPDX-License-Identifier: BSD-3-Clause */
/* While table acl has rows: IP packets come by here with the way that parse has found for them, and
 * go it if they may. */
#include "dataplane/acl/acl.h"
#include "dataplane/parse/edges.h"
#include "dataplane/runtime/node.h"
#include "lib/wire/ip.h"

enum { N_EDGES = EDGE_BRIDGE + 1 };

/* The rows of a burst, by position, counted from 1; 0: none. */
static void lookup(struct worker *w, struct rte_mbuf *const *mbufs, uint16_t n,
	uint32_t row[WORKER_MAX_PACKETS])
{
	struct acl_key4 key4[WORKER_MAX_PACKETS];
	struct acl_key6 key6[WORKER_MAX_PACKETS];
	const uint8_t *keys4[WORKER_MAX_PACKETS], *keys6[WORKER_MAX_PACKETS];
	uint32_t found4[WORKER_MAX_PACKETS], found6[WORKER_MAX_PACKETS];
	unsigned n4 = 0, n6 = 0;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);
		const struct wire_pkt *pkt = &meta_of(w, mbufs[i])->pkt;

		if (pkt->ip_ver == 4) {
			keys4[n4] = (const uint8_t *)&key4[n4];
			acl_key4(&key4[n4++], frame, pkt, mbufs[i]->port);
		} else {
			keys6[n6] = (const uint8_t *)&key6[n6];
			acl_key6(&key6[n6++], frame, pkt, mbufs[i]->port);
		}
	}
	if (n4 > 0)
		ternary_lookup(w->acl->by4, keys4, found4, n4);
	if (n6 > 0)
		ternary_lookup(w->acl->by6, keys6, found6, n6);
	n4 = n6 = 0;
	for (uint16_t i = 0; i < n; i++)
		row[i] = meta_of(w, mbufs[i])->pkt.ip_ver == 4 ? found4[n4++] : found6[n6++];
}

static void set_dscp(struct rte_mbuf *m, struct meta *meta, uint8_t dscp)
{
	struct wire_pkt *pkt = &meta->pkt;

	pkt->tos = (uint8_t)(dscp << 2 | (pkt->tos & IP_ECN_MASK));
	ip_put_tos(rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3_off), pkt->tos);
}

/* row is one. */
static rte_edge_t decide(const struct acl *acl, uint32_t row, struct rte_mbuf *m, struct meta *meta)
{
	const struct acl_rule *rule = &acl->rule[row];

	if (rule->action == ACL_DENY) {
		meta->drop = DROP_ACL_DENIED;
		return EDGE_DROP;
	}
	if (rule->action == ACL_DSCP)
		set_dscp(m, meta, rule->dscp);
	return meta->next;
}

static uint16_t acl_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	uint64_t *hits = row_hits_of(&w->acl->hits, w->index);
	rte_edge_t next[WORKER_MAX_PACKETS];
	uint32_t row[WORKER_MAX_PACKETS];

	lookup(w, mbufs, n, row);
	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);

		next[i] = meta->next;
		if (row[i] != 0) {
			hits[row[i] - 1]++;
			next[i] = decide(w->acl, row[i] - 1, mbufs[i], meta);
		}
		if (unlikely(w->tracing) && meta->trace) {
			if (row[i] == 0)
				node_trace(w, node, meta, "no row");
			else
				node_trace(w, node, meta, "row %u: %s", row[i],
					acl_table.actions[w->acl->rule[row[i] - 1].action].name);
		}
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register acl_node = {
	.name = "acl",
	.process = acl_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes =
		{
#define X(sym, node) [EDGE_##sym] = node,
			PARSE_EDGES(X)
#undef X
				[EDGE_BRIDGE] = "bridge",
		},
};
RTE_NODE_REGISTER(acl_node)
