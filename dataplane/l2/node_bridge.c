/* SPDX-License-Identifier: BSD-3-Clause */
/* Learning bridges: frames of ports and VLANs that are in one come by here, with the way that parse
 * has found for them. What is for the switch itself goes that way, the rest to where its address
 * has been seen, or to all the bridge's other ports. Frames stay as they are, tag and all. */
#include "dataplane/l2/bridge.h"
#include "dataplane/parse/edges.h"
#include "dataplane/views.h"

enum { EDGE_TX = N_PARSE_EDGES, N_EDGES };

static rte_edge_t end(struct meta *meta, enum drop drop)
{
	meta->drop = (uint8_t)drop;
	return EDGE_DROP;
}

static bool is_own(const struct bridge *b, const uint8_t mac[6])
{
	if (likely(!(b->own_ends[mac[5] / 64] >> mac[5] % 64 & 1)))
		return false;
	for (unsigned i = 0; i < b->n_own; i++)
		if (memcmp(b->own[i], mac, 6) == 0)
			return true;
	return false;
}

static bool find(const struct bridge *b, const uint8_t mac[6], uint16_t vlan, uintptr_t *data)
{
	const uint64_t key = mac_key(mac, vlan);
	void *at;

	if (rte_hash_lookup_data(b->macs, &key, &at) < 0)
		return false;
	*data = (uintptr_t)at;
	return true;
}

/* ---- learning ---- */

static void note(struct worker *w, uint16_t port, uint64_t key)
{
	const struct bridge_note n = {.key = key, .port = port};
	struct lport *lp = &w->port[port];

	if (w->now - lp->mac_notes_at >= BRIDGE_NOTES_NS) {
		lp->mac_notes_at = w->now;
		lp->mac_notes_left = BRIDGE_NOTES_OF_PORT;
		lp->mac_noted = 0;
	}
	if (lp->mac_noted == key)
		return; /* control has not come to it yet */
	if (lp->mac_notes_left == 0 ||
		rte_ring_enqueue_elem(w->bridge->notes, (void *)(uintptr_t)&n, sizeof(n)) != 0) {
		w->bridge_held++;
		return;
	}
	lp->mac_notes_left--;
	lp->mac_noted = key;
	wake_call(w->wake);
}

/* smac is no group's and not ours. */
static void learn(struct worker *w, uint16_t port, const uint8_t smac[6], uint16_t vlan)
{
	const struct bridge *b = w->bridge;
	const uint64_t key = mac_key(smac, vlan);
	uint8_t *heard;
	uintptr_t data;

	if (unlikely(key == mac_key((const uint8_t[6]){0}, vlan)))
		return;
	if (unlikely(!find(b, smac, vlan, &data))) {
		note(w, port, key);
		return;
	}
	if (unlikely(bridge_data_port(data) != port)) {
		if (!bridge_data_pinned(data))
			note(w, port, key);
		return;
	}
	heard = &b->heard[bridge_data_entry(data)];
	if (unlikely(__atomic_load_n(heard, __ATOMIC_RELAXED) == 0))
		__atomic_store_n(heard, 1, __ATOMIC_RELAXED);
}

/* ---- sending ---- */

static bool fits(
	const struct worker *w, const struct rte_mbuf *m, const struct meta *meta, uint16_t port)
{
	return m->pkt_len <= meta->pkt.l3_off + w->port[port].port->config.mtu;
}

static enum drop copy_to(
	struct worker *w, const struct rte_mbuf *m, const struct meta *meta, uint16_t port)
{
	struct rte_mbuf *copy;

	if (unlikely(!fits(w, m, meta, port)))
		return DROP_IP_MTU;
	copy = rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);
	if (unlikely(copy == NULL))
		return DROP_NO_MBUF;
	if (unlikely(copy->nb_segs != 1)) {
		rte_pktmbuf_free(copy);
		return DROP_NO_MBUF;
	}
	worker_tx(w, port, copy);
	return DROP_NONE;
}

/* To all other ports of the bridge that have a link, if the one that it came by may do that now. */
static enum drop flood(struct worker *w, const struct rte_mbuf *m, const struct meta *meta)
{
	const uint16_t vlan = meta->pkt.vlan & WIRE_VLAN_ID;
	struct egress_bucket *bucket = &w->port[m->port].flood;

	if (egress_bucket_left(bucket, w->now) <= 0)
		return DROP_BRIDGE_FLOOD;
	egress_bucket_take(bucket, 1);
	for (unsigned i = 0; i < w->n_ports; i++) {
		const uint16_t port = w->port_id[i];
		enum drop drop;

		if (port == m->port || !bridge_has(w->bridge, port, vlan) ||
			!port_link_up(w->port[port].port))
			continue;
		w->emitted++;
		drop = copy_to(w, m, meta, port);
		if (unlikely(drop != DROP_NONE))
			w->drops[drop]++;
	}
	return DROP_BRIDGE_FLOODED;
}

/* ---- deciding ---- */

/* Asks the switch itself; all others may hear what is said of others. */
static bool asks_us(const struct worker *w, const struct wire_pkt *pkt)
{
	if (pkt->kind == WIRE_ND_NS)
		return fwd_is_local(w->fwd, &pkt->nd_target);
	return pkt->kind == WIRE_ARP && pkt->arp_op == ARP_REQUEST &&
	       fwd_is_local(w->fwd, &pkt->dst);
}

/* Says something of its sender that the switch should hear as well. */
static bool announces(const struct wire_pkt *pkt)
{
	return pkt->kind == WIRE_ND_NA ||
	       (pkt->kind == WIRE_ARP &&
		       (pkt->arp_op != ARP_REQUEST || wire_ip_eq(&pkt->src, &pkt->dst)));
}

/* To a multicast group that the multicast node knows, or a report for it. */
static bool is_routed_group(
	const struct worker *w, const struct rte_mbuf *m, const struct wire_pkt *pkt)
{
	return (w->port[m->port].mcast_learn && mcast_is_report(pkt)) ||
	       mcast_find(w->mcast, &pkt->dst) != NULL;
}

static rte_edge_t to_group(struct worker *w, const struct rte_mbuf *m, struct meta *meta)
{
	/* 01:80:c2:00:00:00 to 0f: never forwarded by a bridge (IEEE 802.1Q, 8.6.3). */
	static const uint8_t reserved[5] = {0x01, 0x80, 0xc2, 0, 0};
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	enum drop drop;

	if (unlikely(meta->up == EDGE_LLDP))
		return EDGE_LLDP;
	if (unlikely(memcmp(frame, reserved, sizeof(reserved)) == 0 && frame[5] < 0x10))
		return end(meta, DROP_BRIDGE_RESERVED);
	if (meta->up == EDGE_NEIGH && asks_us(w, &meta->pkt))
		return EDGE_NEIGH;
	if (meta->up == EDGE_MCAST && is_routed_group(w, m, &meta->pkt))
		return EDGE_MCAST;
	drop = flood(w, m, meta);
	return meta->up == EDGE_NEIGH && announces(&meta->pkt) ? EDGE_NEIGH : end(meta, drop);
}

static rte_edge_t decide(struct worker *w, struct rte_mbuf *m, struct meta *meta)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint16_t vlan = meta->pkt.vlan & WIRE_VLAN_ID;
	uintptr_t data;
	uint16_t port;

	if (unlikely(frame[6] & 1))
		return end(meta, DROP_L2_SOURCE);
	if (unlikely(is_own(w->bridge, frame + 6)))
		return end(meta, DROP_BRIDGE_OWN_MAC);
	learn(w, m->port, frame + 6, vlan);
	if (frame[0] & 1)
		return to_group(w, m, meta);
	/* Packets to the switch's own IP addresses are taken whatever their MAC address is. */
	if (is_own(w->bridge, frame) ||
		(meta->pkt.ip_ver != 0 && fwd_is_local(w->fwd, &meta->pkt.dst)))
		return meta->up;
	if (!find(w->bridge, frame, vlan, &data))
		return end(meta, flood(w, m, meta));
	port = bridge_data_port(data);
	w->bridge_hits += !bridge_data_pinned(data);
	if (unlikely(port == m->port))
		return end(meta, DROP_BRIDGE_STAYS);
	if (unlikely(!fits(w, m, meta, port)))
		return end(meta, DROP_IP_MTU);
	m->port = port;
	return EDGE_TX;
}

static void trace(struct worker *w, const struct rte_node *node, const struct rte_mbuf *m,
	const struct meta *meta, rte_edge_t next)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	char mac[WIRE_MAC_STRLEN];

	node_trace(w, node, meta, "VLAN %u, to %s: %s%s", meta->pkt.vlan & WIRE_VLAN_ID,
		wire_mac_format(frame, mac, sizeof(mac)),
		next == EDGE_TX     ? "port "
		: next == EDGE_DROP ? ""
				    : "for the switch",
		next == EDGE_TX ? w->port[m->port].port->config.name : "");
}

static uint16_t bridge_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	rte_edge_t next[WORKER_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);

		next[i] = decide(w, mbufs[i], meta);
		if (unlikely(w->tracing) && meta->trace)
			trace(w, node, mbufs[i], meta, next[i]);
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register bridge_node = {
	.name = "bridge",
	.process = bridge_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes =
		{
#define X(sym, node) [EDGE_##sym] = node,
			PARSE_EDGES(X)
#undef X
				[EDGE_TX] = "port_tx",
		},
};
RTE_NODE_REGISTER(bridge_node)

/* What bridges have learnt; rows of table mac go before. */
const struct table_desc mac_learnt_view = {
	.name = "mac_learnt",
	.node = "bridge",
	.miss = "bridge_flooded",
	.help = "addresses that bridges have learnt (mac.list)",
	.n_keys = 2,
	.keys = {{.name = "mac", .help = "MAC address", .type = TABLE_MAC},
		{.name = "vlan", .help = "0: untagged", .type = TABLE_UINT, .max = WIRE_VLAN_ID}},
	.n_actions = 1,
	.actions = {{.name = "forward",
		.help = "send by this port",
		.n_params = 1,
		.params = {{.name = "port", .help = "port name", .type = TABLE_PORT}}}},
	.size = MAC_MAX,
};
