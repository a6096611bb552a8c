/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to the switch's own SIDs: lib/srv6 says what becomes of one, this node where it goes. A
 * new destination is looked up like that of any other packet, and may be the switch's own again; an
 * unpacked packet begins anew.
 *
 * Most packets have another uSID, which leads to a neighbour. These are looked up here, a burst at
 * once, and go to `rewrite` as ip_forward would have them go: that has seen all of them already but
 * the new destination. What has any other way goes it through ip_forward, and so does what is
 * traced. */
#include "dataplane/ip/ecmp.h"
#include "dataplane/ip/icmp_error.h"
#include "dataplane/ip/stays.h"
#include "dataplane/runtime/node.h"
#include "dataplane/srv6/again.h"

enum { EDGE_IP_FORWARD, EDGE_REWRITE, EDGE_PARSE, EDGE_ICMP_ECHO, EDGE_DROP, N_EDGES };

static rte_edge_t refuse(struct meta *meta, enum drop drop)
{
	meta->drop = (uint8_t)drop;
	return EDGE_DROP;
}

/* Where a packet that its first segment here refuses is wrong, from its IP header on: Segments Left
 * of an SRH, or the upper layer; 0: nowhere that an ICMP error would name. */
static uint16_t wrong_at(const uint8_t *ip6, size_t len, enum drop drop)
{
	struct wire_ip6_ext ext = {0};
	const int rc = ip6_ext_walk(ip6, len, &ext);

	if (drop == DROP_SRV6_UPPER)
		return rc == 0 ? ext.off : 0;
	if (drop != DROP_SRV6_BAD_SRH || rc == 0 || ext.proto != IP_PROTO_ROUTING ||
		ext.off + sizeof(struct srh_hdr) > len ||
		ext.off + 8 * (ip6[ext.off + offsetof(struct srh_hdr, len)] + 1u) > len)
		return 0;
	return (uint16_t)(ext.off + offsetof(struct srh_hdr, left));
}

/* As refuse, and its source is told (RFC 8986, 4.1 and 4.1.1) if the packet is as that has sent it:
 * not out of a tunnel, nor with a segment of the switch's own behind it. */
static rte_edge_t lost(
	struct worker *w, const struct rte_mbuf *m, struct meta *meta, enum drop drop)
{
	const uint8_t *ip6 = rte_pktmbuf_mtod_offset(m, const uint8_t *, meta->pkt.l3_off);
	const uint16_t at = wrong_at(ip6, (size_t)(meta->pkt.end - meta->pkt.l3_off), drop);

	if (meta->srv6.passes == 1 && (drop == DROP_SRV6_HOP_LIMIT || at != 0))
		icmp_error(w, m, &meta->pkt, drop, at);
	return refuse(meta, drop);
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

/* To the new destination, as if the packet had come with it. */
static rte_edge_t again(struct worker *w, const uint8_t *frame, struct meta *meta)
{
	srv6_again(frame, &meta->pkt);
	return fwd_is_local(w->fwd, &meta->pkt.dst) ? EDGE_PARSE : EDGE_IP_FORWARD;
}

static rte_edge_t onward(struct worker *w, const struct fwd_sid *sid, struct rte_mbuf *m,
	struct meta *meta, const struct srv6_done *done)
{
	uint8_t *frame = done->front ? strip(m, meta, done->front) : rte_pktmbuf_mtod(m, uint8_t *);
	const rte_edge_t edge = again(w, frame, meta);

	meta->srv6.hop_taken = true;
	return done->verdict == SRV6_ADJACENT ? to_neighbour(w, sid, meta) : edge;
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
		return lost(w, m, meta, drop_of_srv6(drop));
	switch (done->verdict) {
	case SRV6_LOOKUP:
	case SRV6_ADJACENT:
		return onward(w, sid, m, meta, done);
	case SRV6_UNPACKED:
		return unpacked(m, meta, done);
	default:
		return meta->pkt.kind == WIRE_ICMP_ECHO ? EDGE_ICMP_ECHO
							: lost(w, m, meta, DROP_SRV6_UPPER);
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

/* Any packet. */
static rte_edge_t take(struct worker *w, const struct rte_node *node, const struct fwd_sid *sid,
	struct rte_mbuf *m, struct meta *meta)
{
	struct srv6_done done;
	const rte_edge_t edge = handle(w, sid, m, meta, &done);

	if (unlikely(w->tracing) && meta->trace && edge != EDGE_DROP)
		trace(w, node, meta, sid, &done);
	return edge;
}

/* Packets of a burst whose next uSID is to be looked up. */
struct shifted {
	uint16_t n, at[WORKER_MAX_PACKETS];
	struct meta *meta[WORKER_MAX_PACKETS];
	struct wire_ip dst[WORKER_MAX_PACKETS];
	uint16_t adj[WORKER_MAX_PACKETS];
};

/* Of uN and uA alone. The metadata are as they were, but for what `rewrite` reads. */
static bool shift(
	const struct fwd_sid *sid, struct rte_mbuf *m, struct meta *meta, struct shifted *s)
{
	uint8_t *ip6 = rte_pktmbuf_mtod_offset(m, uint8_t *, meta->pkt.l3_off);

	if (!srv6_next_usid(&sid->what, ip6, &s->dst[s->n]))
		return false;
	meta->srv6.hop_taken = true;
	s->meta[s->n] = meta;
	return true;
}

/* Where a packet goes whose new destination has this adjacency. */
static rte_edge_t route(struct worker *w, struct rte_mbuf *m, struct meta *meta,
	const struct wire_ip *dst, uint16_t to)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct adj *adj = &w->fwd->adj[to];

	if (adj->kind == ADJ_ECMP) {
		srv6_again(frame, &meta->pkt);
		to = ecmp_adj(w->fwd, adj, &meta->pkt, frame + meta->pkt.l3_off);
		adj = &w->fwd->adj[to];
	}
	if (unlikely(adj->kind != ADJ_REWRITE || !ip6_is_plain(dst) ||
		     meta->pkt.end - meta->pkt.l3_off > adj->mtu))
		return again(w, frame, meta);
	meta->adj = to;
	if (unlikely(adj->learnt))
		fwd_note_used(w->fwd, to);
	return EDGE_REWRITE;
}

static void look_up(struct worker *w, struct rte_mbuf *const *mbufs, struct shifted *s,
	rte_edge_t next[WORKER_MAX_PACKETS])
{
	prefix6_lookup(w->fwd->fib6, s->dst, s->adj, s->n);
	for (uint16_t k = 0; k < s->n; k++) {
		const uint16_t i = s->at[k];

		next[i] = route(w, mbufs[i], s->meta[k], &s->dst[k], s->adj[k]);
	}
}

static uint16_t srv6_local_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	const struct fwd *fwd = w->fwd;
	uint64_t *hits = row_hits_of(&fwd->sids.hits, w->index);
	rte_edge_t next[WORKER_MAX_PACKETS];
	struct shifted s;

	s.n = 0;
	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);
		const unsigned row = fwd->adj[meta->adj].at;
		const struct fwd_sid *sid = &fwd->sids.row[row];

		hits[row]++;
		if (unlikely(w->tracing) || !shift(sid, mbufs[i], meta, &s))
			next[i] = take(w, node, sid, mbufs[i], meta);
		else if (sid->what.behaviour == SRV6_UA)
			next[i] = to_neighbour(w, sid, meta);
		else
			s.at[s.n++] = i;
	}
	if (s.n > 0)
		look_up(w, mbufs, &s, next);
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
