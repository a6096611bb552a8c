/* SPDX-License-Identifier: BSD-3-Clause */
/* Routing: one longest-prefix lookup per packet, in bulk per family, to an adjacency. */
#include "dataplane/ip/ecmp.h"
#include "dataplane/ip/icmp_error.h"
#include "dataplane/ip/stays.h"
#include "dataplane/runtime/node.h"

enum { EDGE_REWRITE, EDGE_SRV6_LOCAL, EDGE_SRV6_ENCAP, EDGE_NEIGH_WAIT, EDGE_DROP, N_EDGES };

/* All lookups of a burst. */
static void lookup(struct worker *w, struct rte_mbuf *const *mbufs, uint16_t n)
{
	struct meta *meta4[WORKER_MAX_PACKETS], *meta6[WORKER_MAX_PACKETS];
	struct wire_ip ip6[WORKER_MAX_PACKETS];
	uint32_t ip4[WORKER_MAX_PACKETS];
	uint64_t nh[WORKER_MAX_PACKETS];
	uint16_t adj[WORKER_MAX_PACKETS];
	unsigned n4 = 0, n6 = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);

		if (meta->pkt.ip_ver == 4) {
			meta4[n4] = meta;
			ip4[n4++] = wire_ip_to4(&meta->pkt.dst);
		} else {
			meta6[n6] = meta;
			ip6[n6++] = meta->pkt.dst;
		}
	}
	if (n4 > 0)
		rte_fib_lookup_bulk(w->fwd->fib4, ip4, nh, (int)n4);
	for (unsigned i = 0; i < n4; i++)
		meta4[i]->adj = (uint16_t)nh[i];
	if (n6 > 0)
		prefix6_lookup(w->fwd->fib6, ip6, adj, n6);
	for (unsigned i = 0; i < n6; i++)
		meta6[i]->adj = adj[i];
}

static enum drop fit(const struct meta *meta, const struct adj *adj)
{
	return meta->pkt.end - meta->pkt.l3_off > adj->mtu ? DROP_IP_MTU : DROP_NONE;
}

static enum drop decide(
	const struct worker *w, const struct rte_mbuf *m, struct meta *meta, const struct adj *adj)
{
	const struct lport *in = &w->port[m->port];
	const uint8_t *dmac = rte_pktmbuf_mtod(m, const uint8_t *);

	if (memcmp(dmac, in->port->mac, sizeof(in->port->mac)) != 0 && !(dmac[0] & 1))
		return DROP_L2_NOT_OURS;
	if (unlikely(!fwd_vlan_ok(w->fwd, m->port, meta->pkt.vlan)))
		return DROP_L2_VLAN;
	if (ip_stays(&meta->pkt.dst) || ip_stays(&meta->pkt.src))
		return DROP_IP_NOT_ROUTABLE;
	/* Two routers of a segment would both send it on (RFC 1812, 5.3.4). */
	if (dmac[0] & 1)
		return DROP_L2_GROUP;
	if (dmac[6] & 1)
		return DROP_L2_SOURCE;
	/* Members of a group believe what comes from the switch. */
	if (fwd_is_local(w->fwd, &meta->pkt.src) && !meta->srv6.own)
		return DROP_IP_FORGED;
	if (likely(adj->kind == ADJ_REWRITE))
		return fit(meta, adj);
	if (likely(adj->kind == ADJ_SID || adj->kind == ADJ_ENCAP))
		return ++meta->srv6.passes > FWD_SRV6_MAX_PASSES ? DROP_SRV6_LOOP : DROP_NONE;
	switch (adj->kind) {
	case ADJ_GLEAN: /* who has no hop left need not wait */
		if (meta->pkt.ttl <= 1 && !meta->srv6.hop_taken)
			return DROP_IP_TTL;
		return fit(meta, adj);
	case ADJ_BLACKHOLE:
		return DROP_IP_BLACKHOLE;
	case ADJ_NO_NEIGH:
		return DROP_IP_NO_NEIGH;
	default:
		return DROP_IP_NO_ROUTE;
	}
}

static rte_edge_t edge_of(enum adj_kind kind)
{
	if (likely(kind == ADJ_REWRITE))
		return EDGE_REWRITE;
	if (kind == ADJ_GLEAN)
		return EDGE_NEIGH_WAIT;
	return kind == ADJ_SID ? EDGE_SRV6_LOCAL : EDGE_SRV6_ENCAP;
}

static uint16_t ip_forward_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	const struct fwd *fwd = w->fwd;
	const struct adj *adjs = fwd->adj;
	rte_edge_t next[WORKER_MAX_PACKETS];

	lookup(w, mbufs, n);
	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);
		const struct adj *adj = &adjs[meta->adj];
		enum drop drop;

		if (unlikely(adj->kind == ADJ_ECMP)) {
			meta->adj = ecmp_adj(fwd, adj, &meta->pkt,
				rte_pktmbuf_mtod_offset(
					mbufs[i], const uint8_t *, meta->pkt.l3_off));
			adj = &adjs[meta->adj];
		}
		drop = decide(w, mbufs[i], meta, adj);
		meta->drop = (uint8_t)drop;
		next[i] = drop == DROP_NONE ? edge_of(adj->kind) : EDGE_DROP;
		if (unlikely(drop != DROP_NONE) && !ip_is_tunnelled(meta))
			icmp_error(w, mbufs[i], &meta->pkt, drop, adj->mtu);
		if (unlikely(adj->learnt))
			fwd_note_used(fwd, meta->adj);
		if (unlikely(w->tracing) && meta->trace && next[i] == EDGE_REWRITE) {
			char mac[WIRE_MAC_STRLEN];

			node_trace(w, node, meta, "to %s at port %s",
				wire_mac_format(adj->dmac, mac, sizeof(mac)),
				w->port[adj->port].port->config.name);
		}
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register ip_forward = {
	.name = "ip_forward",
	.process = ip_forward_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes =
		{
			[EDGE_REWRITE] = "rewrite",
			[EDGE_SRV6_LOCAL] = "srv6_local",
			[EDGE_SRV6_ENCAP] = "srv6_encap",
			[EDGE_NEIGH_WAIT] = "neigh_wait",
			[EDGE_DROP] = "end",
		},
};
RTE_NODE_REGISTER(ip_forward)
