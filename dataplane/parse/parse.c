/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the headers of each packet into its metadata and decides what kind of packet it is for the
 * switch. */
#include "dataplane/runtime/node.h"
#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"

enum {
	EDGE_INC_LOOKUP,
	EDGE_IP_FORWARD,
	EDGE_NEIGH,
	EDGE_ICMP_ECHO,
	EDGE_NETREDUCE,
	EDGE_MCAST,
	EDGE_DROP,
	N_EDGES
};

/* Later nodes write into the packet and want it in one piece. A packet from a ring may be shared
 * with others, or chained. NULL if it does not fit, or no buffer is left. */
static struct rte_mbuf *make_own(struct worker *w, struct rte_mbuf *m, enum drop *drop)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);

	if (copy == NULL) {
		*drop = DROP_NO_MBUF;
		return NULL;
	}
	if (copy->nb_segs != 1) {
		rte_pktmbuf_free(copy);
		*drop = DROP_RX_OVERSIZE;
		return NULL;
	}
	copy->port = m->port;
	copy->hash.usr = m->hash.usr;
	rte_pktmbuf_free(m);
	return copy;
}

static bool is_own(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m);
}

static rte_edge_t refuse(struct meta *meta, enum drop drop)
{
	meta->drop = (uint8_t)drop;
	return EDGE_DROP;
}

/* A packet that says it is longer than the port's MTU, of which the driver has kept a part. */
static bool is_cut_off(const struct worker *w, const struct rte_mbuf *m, const struct wire_pkt *pkt)
{
	const uint8_t *l3 = rte_pktmbuf_mtod(m, const uint8_t *) + pkt->l3_off;
	const unsigned left = m->data_len - RTE_MIN(m->data_len, pkt->l3_off);
	const uint16_t mtu = w->port[m->port].port->config.mtu;
	unsigned len = 0;

	if (pkt->l3_off >= ETH_HDR_LEN && left >= sizeof(struct ip4_hdr) && l3[0] >> 4 == 4)
		len = get_be16(l3 + offsetof(struct ip4_hdr, len));
	else if (pkt->l3_off >= ETH_HDR_LEN && left >= sizeof(struct wire_ip6_hdr) &&
		 l3[0] >> 4 == 6)
		len = get_be16(l3 + offsetof(struct wire_ip6_hdr, len)) +
		      (unsigned)sizeof(struct wire_ip6_hdr);
	return len > mtu && len > left;
}

static rte_edge_t local(struct meta *meta)
{
	switch (meta->pkt.kind) {
	case WIRE_ROCE:
		return EDGE_INC_LOOKUP;
	case WIRE_ICMP_ECHO:
		return EDGE_ICMP_ECHO;
	default:
		return refuse(meta, DROP_LOCAL_PROTO);
	}
}

/* What is on its way to others needs an IP header only, and may be cut behind it; what is in a UDP
 * packet is looked at where the packet is the switch's, or may be of a NetReduce ring. */
static rte_edge_t classify(
	const struct worker *w, struct meta *meta, const struct rte_mbuf *m, enum wire_drop drop)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	bool ours;

	if (drop == WIRE_PARSE_SHORT && is_cut_off(w, m, &meta->pkt))
		return refuse(meta, DROP_RX_OVERSIZE);
	if (drop != WIRE_OK && drop != WIRE_PARSE_FRAG)
		return refuse(meta, drop_of_wire(drop));
	switch (meta->pkt.kind) {
	case WIRE_L2:
		return refuse(meta, DROP_L2_UNKNOWN);
	case WIRE_ARP:
	case WIRE_ND_NS:
	case WIRE_ND_NA:
		return EDGE_NEIGH;
	default:
		break;
	}
	if (unlikely(wire_is_multicast(&meta->pkt.dst)))
		return EDGE_MCAST;
	if (unlikely(w->clt != NULL) && meta->pkt.kind == WIRE_UDP) {
		drop = wire_parse_udp(frame, &meta->pkt);
		if (meta->pkt.kind == WIRE_ROCE)
			return EDGE_NETREDUCE;
	}
	ours = fwd_is_local(w->fwd, &meta->pkt.dst);
	if (ours && meta->pkt.kind == WIRE_UDP)
		drop = wire_parse_udp(frame, &meta->pkt);
	if (ours && drop != WIRE_OK)
		return refuse(meta, drop_of_wire(drop));
	return ours ? local(meta) : EDGE_IP_FORWARD;
}

static void trace(struct worker *w, const struct rte_node *node, const struct meta *meta,
	const struct rte_mbuf *m)
{
	char src[WIRE_IP_STRLEN] = "", dst[WIRE_IP_STRLEN] = "";
	struct wire_pkt whole = meta->pkt, *p = &whole;

	if (p->kind == WIRE_UDP)
		wire_parse_udp(rte_pktmbuf_mtod(m, const uint8_t *), p);
	if (p->ip_ver == 0) {
		node_trace(w, node, meta, "%s, %u bytes", p->kind == WIRE_ARP ? "ARP" : "not IP",
			m->pkt_len);
		return;
	}
	wire_ip_format(&p->src, src, sizeof(src));
	wire_ip_format(&p->dst, dst, sizeof(dst));
	if (p->kind == WIRE_ROCE)
		node_trace(w, node, meta, "%s > %s %s, QPN 0x%06x, PSN %u, %u bytes, ECN %u", src,
			dst, roce_opcode_name(p->opcode), p->dqpn, p->psn, p->pay_len,
			p->tos & IP_ECN_MASK);
	else
		node_trace(w, node, meta, "%s > %s protocol %u, TTL %u, %u bytes", src, dst,
			p->ip_proto, p->ttl, p->end - p->l3_off);
}

static uint16_t parse_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	rte_edge_t next[WORKER_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);
		enum drop drop = DROP_NONE;
		struct rte_mbuf *own = mbufs[i];

		if (unlikely(!is_own(own)))
			own = make_own(w, own, &drop);
		if (unlikely(own == NULL)) {
			meta->pkt = (struct wire_pkt){0};
			next[i] = refuse(meta, drop);
		} else {
			mbufs[i] = own;
			next[i] = classify(w, meta, own,
				wire_parse_l3(rte_pktmbuf_mtod(own, const uint8_t *), own->data_len,
					&meta->pkt));
		}
		if (unlikely(w->tracing) && meta->trace)
			trace(w, node, meta, mbufs[i]);
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register parse = {
	.name = "parse",
	.process = parse_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes =
		{
			[EDGE_INC_LOOKUP] = "inc_lookup",
			[EDGE_IP_FORWARD] = "ip_forward",
			[EDGE_NEIGH] = "neigh",
			[EDGE_ICMP_ECHO] = "icmp_echo",
			[EDGE_NETREDUCE] = "netreduce",
			[EDGE_MCAST] = "mcast",
			[EDGE_DROP] = "end",
		},
};
RTE_NODE_REGISTER(parse)
