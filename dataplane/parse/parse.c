/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the headers of each packet into its metadata and decides what kind of packet it is for the
 * switch. */
#include "dataplane/parse/parse.h"

#include "dataplane/acl/acl.h"
#include "dataplane/l2/bridge.h"
#include "dataplane/parse/edges.h"
#include "dataplane/runtime/node.h"
#include "lib/wire/bytes.h"
#include "lib/wire/lldp.h"
#include "lib/wire/multicast.h"

enum {
	EDGE_ACL = EDGE_BRIDGE + 1,
	N_EDGES,
	LOOK_INTO /* no edge: there is more to parse */
};

/* Beside the kinds that wire_parse_l3 and wire_parse_udp tell apart. */
enum { STATE_MULTICAST = WIRE_UDP + 1, STATE_RING, STATE_LLDP, N_STATES };

/* Where packets go, by what they are: addressed to the switch, and else. */
static const struct {
	const char *name, *help;
	rte_edge_t ours, others;
} states[N_STATES] = {
	[WIRE_L2] = {"l2", "neither ARP nor IP", EDGE_DROP, EDGE_DROP},
	[WIRE_ARP] = {"arp", "ARP, whoever is asked for", EDGE_NEIGH, EDGE_NEIGH},
	[WIRE_IP] = {"ip", "IP, and none of the others", EDGE_DROP, EDGE_IP_FORWARD},
	[WIRE_ICMP_ECHO] = {"icmp_echo", "ICMP or ICMPv6 echo request", EDGE_ICMP_ECHO,
		EDGE_IP_FORWARD},
	[WIRE_ND_NS] = {"nd_ns", "neighbour solicitation, whoever is asked for", EDGE_NEIGH,
		EDGE_NEIGH},
	[WIRE_ND_NA] = {"nd_na", "neighbour advertisement", EDGE_NEIGH, EDGE_NEIGH},
	[WIRE_ROCE] = {"roce", "UDP port 4791 with a well-formed BTH", EDGE_INC_LOOKUP,
		EDGE_IP_FORWARD},
	[WIRE_UDP] = {"udp", "UDP; what is addressed to the switch is ip or roce then", LOOK_INTO,
		EDGE_IP_FORWARD},
	[STATE_MULTICAST] = {"multicast", "IP to a multicast address, but for ND", EDGE_MCAST,
		EDGE_MCAST},
	[STATE_RING] = {"roce_any", "UDP while there is a NetReduce ring, and roce then",
		EDGE_NETREDUCE, EDGE_NETREDUCE},
	[STATE_LLDP] = {"lldp", "LLDP to the nearest bridge, while the switch speaks it; l2 then",
		EDGE_LLDP, EDGE_LLDP},
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

/* By its state; what has no node to go to ends. */
static rte_edge_t go(struct meta *meta, unsigned state, bool ours)
{
	meta->drop = state == WIRE_L2 ? DROP_L2_UNKNOWN : DROP_LOCAL_PROTO;
	return ours ? states[state].ours : states[state].others;
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
		if (w->lldp_notes != NULL && wire_is_lldp(frame, m->data_len))
			return go(meta, STATE_LLDP, false);
		return go(meta, WIRE_L2, false);
	case WIRE_ARP:
	case WIRE_ND_NS:
	case WIRE_ND_NA:
		return go(meta, meta->pkt.kind, false);
	default:
		break;
	}
	if (unlikely(wire_is_multicast(&meta->pkt.dst)))
		return go(meta, STATE_MULTICAST, false);
	if (unlikely(w->clt != NULL) && meta->pkt.kind == WIRE_UDP) {
		drop = wire_parse_udp(frame, &meta->pkt);
		if (meta->pkt.kind == WIRE_ROCE)
			return go(meta, STATE_RING, false);
	}
	ours = fwd_is_local(w->fwd, &meta->pkt.dst);
	if (ours && meta->pkt.kind == WIRE_UDP)
		drop = wire_parse_udp(frame, &meta->pkt);
	if (ours && drop != WIRE_OK)
		return refuse(meta, drop_of_wire(drop));
	return go(meta, meta->pkt.kind, ours);
}

/* While acl has rows. What cannot be read cannot be looked up: it passes no bridge either. */
static rte_edge_t screen(const struct worker *w, struct meta *meta, rte_edge_t edge)
{
	const bool past =
		meta - w->meta < w->n_over; /* the worker that received it has done that */

	if (meta->drop < WIRE_N_DROPS && (edge == EDGE_BRIDGE || edge == EDGE_DROP))
		return EDGE_DROP;
	if (past || !acl_is_for(&meta->pkt))
		return edge;
	meta->next = (uint8_t)edge;
	return EDGE_ACL;
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
	const struct bridge *bridge = w->bridge;
	const bool tracing = w->tracing;
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
			if (unlikely(bridge != NULL) && bridge_takes(bridge, own, meta) &&
				meta->drop != DROP_RX_OVERSIZE) {
				meta->up = (uint8_t)next[i];
				next[i] = EDGE_BRIDGE;
			}
			if (unlikely(w->acl != NULL))
				next[i] = screen(w, meta, next[i]);
		}
		if (unlikely(tracing) && meta->trace)
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
#define X(sym, node) [EDGE_##sym] = node,
			PARSE_EDGES(X)
#undef X
				[EDGE_BRIDGE] = "bridge",
			[EDGE_ACL] = "acl",
		},
};
RTE_NODE_REGISTER(parse)

static const char *node_of(rte_edge_t edge)
{
	return edge < N_EDGES ? parse.next_nodes[edge] : NULL;
}

bool parse_state(unsigned i, struct parse_state *state)
{
	if (i >= N_STATES)
		return false;
	*state = (struct parse_state){
		states[i].name, states[i].help, node_of(states[i].ours), node_of(states[i].others)};
	return true;
}
