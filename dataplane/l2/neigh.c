/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers ARP requests and neighbour solicitations: for the switch's own addresses on any port, and
 * on ports with proxy_arp for every address that is routed to another port or into a tunnel, or is
 * one of the switch's SIDs. On ports with neigh_learn the control plane hears what those say of
 * themselves whom a route that is "direct" there may lead to, as far as it could be news. */
#include "dataplane/ip/asker.h"
#include "dataplane/l2/neigh_note.h"

enum { EDGE_TX, EDGE_DROP, N_EDGES };

static bool wanted(
	const struct worker *w, const struct wire_ip *target, uint16_t port, uint16_t tci)
{
	const struct adj *adj;

	if (fwd_is_local(w->fwd, target))
		return true;
	if (!w->port[port].proxy_arp || !fwd_vlan_ok(w->fwd, port, tci))
		return false;
	adj = fwd_lookup(w->fwd, target);
	if (adj->kind == ADJ_ENCAP || adj->kind == ADJ_SID)
		return true;
	/* Whoever is on the asking port, in the same VLAN, answers for himself. */
	return (adj->kind == ADJ_REWRITE || adj->kind == ADJ_GLEAN) &&
	       (adj->port != port || adj->vlan != (tci & WIRE_VLAN_ID));
}

/* Where an answer to the sender goes. */
static const uint8_t *sender_mac(const uint8_t *frame, const struct wire_pkt *pkt)
{
	if (pkt->kind == WIRE_ARP)
		return pkt->arp_sha;
	return pkt->has_lladdr ? pkt->nd_lladdr : frame + 6;
}

/* What the packet says of its sender's own address, ip. False: nothing. */
static bool word_of(const struct worker *w, const uint8_t *frame, const struct wire_pkt *pkt,
	uint16_t port, struct neigh_note *note)
{
	const bool to_us = fwd_is_local(w->fwd, &pkt->dst);

	note->ip = pkt->src;
	if (pkt->kind == WIRE_ND_NA) {
		note->ip = pkt->nd_target;
		note->word = wire_na_is_solicited(frame, pkt) ? NEIGH_ANSWERS : NEIGH_ANNOUNCES;
		return pkt->has_lladdr;
	}
	if (pkt->kind == WIRE_ND_NS) {
		note->word = NEIGH_ASKS;
		return pkt->has_lladdr && wanted(w, &pkt->nd_target, port, pkt->vlan);
	}
	if (pkt->arp_op == ARP_REQUEST && !wire_ip_eq(&pkt->src, &pkt->dst)) {
		note->word = NEIGH_ASKS;
		return wanted(w, &pkt->dst, port, pkt->vlan);
	}
	/* What was asked for without an address of our own is answered to none. */
	note->word = pkt->arp_op == ARP_REPLY && (to_us || wire_ip_to4(&pkt->dst) == 0)
			     ? NEIGH_ANSWERS
			     : NEIGH_ANNOUNCES;
	return true;
}

static void learn(struct worker *w, uint16_t port, const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct neigh_note note = {.port = port, .vlan = pkt->vlan & WIRE_VLAN_ID};
	const struct adj *adj;

	if (!w->port[port].neigh_learn || !word_of(w, frame, pkt, port, &note))
		return;
	memcpy(note.mac, sender_mac(frame, pkt), sizeof(note.mac));
	adj = fwd_lookup(w->fwd, &note.ip);
	if (adj->port != port || adj->vlan != note.vlan)
		return;
	if (adj->kind == ADJ_GLEAN ||
		(adj->kind == ADJ_REWRITE && adj->learnt && fwd_is_neigh(w->fwd, adj, &note.ip) &&
			(note.word == NEIGH_ANSWERS ||
				memcmp(adj->dmac, note.mac, sizeof(note.mac)) != 0)))
		neigh_tell(w, port, &note);
}

/* A probe for an address before its sender takes it (RFC 5227, 2.1.1): has no source of its own,
 * and whoever has the address says so. */
static bool is_probe(const struct worker *w, const struct wire_pkt *pkt)
{
	return pkt->kind == WIRE_ARP && wire_ip_to4(&pkt->src) == 0 &&
	       fwd_is_local(w->fwd, &pkt->dst);
}

static enum drop check(struct worker *w, const struct rte_mbuf *m, const struct wire_pkt *pkt)
{
	const struct wire_ip *target = pkt->kind == WIRE_ARP ? &pkt->dst : &pkt->nd_target;
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	enum drop drop = asker_check(w, frame, sender_mac(frame, pkt), &pkt->src);

	if (drop == DROP_NONE) {
		worker_note_mac(w, m->port, &pkt->src, sender_mac(frame, pkt));
		learn(w, m->port, frame, pkt);
	}
	if (drop == DROP_L2_SOURCE || drop == DROP_IP_FORGED)
		return drop;
	if (pkt->kind == WIRE_ND_NA || (pkt->kind == WIRE_ARP && pkt->arp_op != ARP_REQUEST) ||
		wire_ip_eq(&pkt->src, target))
		return DROP_NEIGH_IGNORED; /* answers, and announcements of one's own address */
	if (pkt->kind == WIRE_ND_NS && wire_ip_is_zero(&pkt->src))
		return DROP_NEIGH_IGNORED; /* duplicate address detection: nobody here takes
					      addresses by himself */
	if (drop != DROP_NONE && !is_probe(w, pkt))
		return drop;
	return wanted(w, target, m->port, pkt->vlan) ? DROP_NONE : DROP_NEIGH_UNKNOWN;
}

/* The reply in place of the request, or 0 if it needs none. */
static int answer(struct worker *w, struct rte_mbuf *m, const struct wire_pkt *pkt, enum drop *drop)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const struct wire_ip *target = pkt->kind == WIRE_ARP ? &pkt->dst : &pkt->nd_target;
	const uint8_t *mac = w->port[m->port].port->mac;
	size_t cap = m->buf_len - m->data_off;
	uint8_t dmac[6];

	*drop = check(w, m, pkt);
	if (*drop != DROP_NONE)
		return 0;
	memcpy(dmac, sender_mac(frame, pkt), sizeof(dmac));
	if (pkt->kind == WIRE_ARP)
		return wire_build_arp(
			frame, cap, ARP_REPLY, mac, target, dmac, &pkt->src, pkt->vlan);
	return wire_build_na(frame, cap, mac, dmac, target, &pkt->src, pkt->vlan);
}

static uint16_t neigh_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	rte_edge_t next[WORKER_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);
		const struct wire_pkt *pkt = &meta->pkt;
		enum drop drop;
		int len = answer(w, mbufs[i], pkt, &drop);

		next[i] = len > 0 ? EDGE_TX : EDGE_DROP;
		if (len > 0)
			mbufs[i]->pkt_len = mbufs[i]->data_len = (uint16_t)len;
		else
			meta->drop = (uint8_t)(len < 0 ? DROP_NO_MBUF : drop);
		if (unlikely(w->tracing) && meta->trace) {
			char text[WIRE_IP_STRLEN];

			node_trace(w, node, meta, "%s for %s: %s",
				pkt->kind == WIRE_ARP ? "ARP" : "ND",
				wire_ip_format(pkt->kind == WIRE_ARP ? &pkt->dst : &pkt->nd_target,
					text, sizeof(text)),
				len > 0 ? "answered" : "not answered");
		}
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register neigh = {
	.name = "neigh",
	.process = neigh_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_TX] = "port_tx", [EDGE_DROP] = "end"},
};
RTE_NODE_REGISTER(neigh)
