/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to the switch's own SIDs: lib/srv6 says what becomes of one, this node where it goes. A
 * new destination is looked up like that of any other packet, and may be the switch's own again; an
 * unpacked packet begins anew. */
#include "dataplane/runtime/node.h"
#include "dataplane/srv6/again.h"

enum { EDGE_IP_FORWARD, EDGE_REWRITE, EDGE_PARSE, EDGE_ICMP_ECHO, EDGE_DROP, N_EDGES };

static rte_edge_t refuse(struct meta *meta, enum drop drop)
{
	meta->drop = (uint8_t)drop;
	return EDGE_DROP;
}

/* Bytes between the link layer's header and the packet go. */
static uint8_t *strip(struct rte_mbuf *m, struct meta *meta, uint16_t front)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(frame + front, frame, meta->pkt.l3_off);
	meta->pkt.end = (uint16_t)(meta->pkt.end - front);
	return (uint8_t *)rte_pktmbuf_adj(m, front);
}

static rte_edge_t to_neighbour(struct worker *w, const struct fwd_sid *sid, struct meta *meta)
{
	const struct adj *adj = &w->fwd->adj[sid->adj];

	meta->adj = sid->adj;
	if (adj->kind != ADJ_REWRITE)
		return refuse(meta, DROP_IP_NO_NEIGH);
	if (meta->pkt.end - meta->pkt.l3_off > adj->mtu)
		return refuse(meta, DROP_IP_MTU);
	return EDGE_REWRITE;
}

static rte_edge_t onward(struct worker *w, const struct fwd_sid *sid, struct rte_mbuf *m,
	struct meta *meta, const struct srv6_done *done)
{
	uint8_t *frame = done->front ? strip(m, meta, done->front) : rte_pktmbuf_mtod(m, uint8_t *);

	srv6_again(frame, &meta->pkt);
	meta->srv6.hop_taken = true;
	if (done->verdict == SRV6_ADJACENT)
		return to_neighbour(w, sid, meta);
	return fwd_is_local(w->fwd, &meta->pkt.dst) ? EDGE_PARSE : EDGE_IP_FORWARD;
}

static rte_edge_t unpacked(struct rte_mbuf *m, struct meta *meta, const struct srv6_done *done)
{
	const uint16_t type = done->proto == IP_PROTO_IP4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6;
	uint8_t *frame = strip(m, meta, done->front);

	put_be16(frame + meta->pkt.l3_off - 2, type);
	meta->srv6.hop_taken = false;
	meta->srv6.own = false;
	return EDGE_PARSE;
}

static rte_edge_t handle(struct worker *w, const struct fwd_sid *sid, struct rte_mbuf *m,
	struct meta *meta, struct srv6_done *done)
{
	uint8_t *ip6 = rte_pktmbuf_mtod(m, uint8_t *) + meta->pkt.l3_off;
	enum srv6_drop drop =
		srv6_endpoint(&sid->what, ip6, (size_t)(meta->pkt.end - meta->pkt.l3_off), done);

	if (drop != SRV6_OK)
		return refuse(meta, drop_of_srv6(drop));
	switch (done->verdict) {
	case SRV6_LOOKUP:
	case SRV6_ADJACENT:
		return onward(w, sid, m, meta, done);
	case SRV6_UNPACKED:
		return unpacked(m, meta, done);
	default:
		return meta->pkt.kind == WIRE_ICMP_ECHO ? EDGE_ICMP_ECHO
							: refuse(meta, DROP_SRV6_UPPER);
	}
}

static void trace(struct worker *w, const struct rte_node *node, const struct meta *meta,
	const struct fwd_sid *sid, const struct srv6_done *done)
{
	static const char *const names[] = {"uN", "uA", "End", "End.DT46"};
	char text[WIRE_IP_STRLEN];

	if (done->verdict == SRV6_UNPACKED || done->verdict == SRV6_ARRIVED)
		node_trace(w, node, meta, "%s: %s", names[sid->what.behaviour],
			done->verdict == SRV6_UNPACKED ? "unpacked" : "arrived");
	else
		node_trace(w, node, meta, "%s: to %s, hop limit %u%s", names[sid->what.behaviour],
			wire_ip_format(&meta->pkt.dst, text, sizeof(text)), meta->pkt.ttl,
			done->front ? ", SRH popped" : "");
}

static uint16_t srv6_local_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	rte_edge_t next[WORKER_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);
		struct fwd_sid *sid = &w->fwd->sid[w->fwd->adj[meta->adj].at];
		struct srv6_done done;

		__atomic_fetch_add(&sid->hits, 1, __ATOMIC_RELAXED);
		next[i] = handle(w, sid, mbufs[i], meta, &done);
		if (unlikely(w->tracing) && meta->trace && next[i] != EDGE_DROP)
			trace(w, node, meta, sid, &done);
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register srv6_local = {
	.name = "srv6_local",
	.process = srv6_local_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes =
		{
			[EDGE_IP_FORWARD] = "ip_forward",
			[EDGE_REWRITE] = "rewrite",
			[EDGE_PARSE] = "parse",
			[EDGE_ICMP_ECHO] = "icmp_echo",
			[EDGE_DROP] = "end",
		},
};
RTE_NODE_REGISTER(srv6_local)
