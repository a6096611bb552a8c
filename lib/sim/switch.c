/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch: what is addressed to it goes to its groups, the rest on a shortest way to its host,
 * one of several by the flow. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/agent.h"
#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"

const size_t SIM_ARENA_BYTES = (size_t)4 << 30;

struct sim_switch *sim_switch(struct sim *sim, unsigned i)
{
	return &sim->sw[i].pub;
}

void sim_switch_mac(unsigned sw, uint8_t mac[6])
{
	const uint8_t m[6] = {2, 0, 0, 1, (uint8_t)(sw >> 8), (uint8_t)sw};

	memcpy(mac, m, sizeof(m));
}

/* ---- making ---- */

static void add_port(struct sim *sim, unsigned sw, unsigned link)
{
	struct sim_node_switch *s = &sim->sw[sw];

	sim->link[link].from_port = s->n_ports;
	sim->link[link ^ 1].to_port = s->n_ports;
	s->port[s->n_ports++] = (struct sim_peer){sim->link[link].to, link};
}

static int add_ports(struct sim *sim)
{
	const struct sim_topo *t = sim->topo;
	unsigned *count = calloc(t->n_switches, sizeof(*count)), l;

	if (!count)
		return -ENOMEM;
	for (l = 0; l < sim->n_links; l++)
		if (sim->link[l].from >= t->n_hosts)
			count[sim->link[l].from - t->n_hosts]++;
	for (unsigned i = 0; i < t->n_switches; i++)
		sim->sw[i].port = calloc(count[i] + 1, sizeof(*sim->sw[i].port));
	free(count);
	for (l = 0; l < sim->n_links; l++)
		if (sim->link[l].from >= t->n_hosts) {
			struct sim_node_switch *s = &sim->sw[sim->link[l].from - t->n_hosts];

			if (!s->port)
				return -ENOMEM;
			add_port(sim, sim->link[l].from - t->n_hosts, l);
			s->n_hosts += sim->link[l].to < t->n_hosts;
			if (s->n_ports - s->n_hosts > SIM_MAX_UPLINKS)
				return -E2BIG;
		}
	return 0;
}

/* Breadth first from one switch: everybody's ports that lead closer to it. */
static int find_ways(struct sim *sim, unsigned to, unsigned *dist, unsigned *queue)
{
	const unsigned n = sim->topo->n_switches, first = sim->topo->n_hosts;
	unsigned head = 0, tail = 0;

	for (unsigned i = 0; i < n; i++)
		dist[i] = UINT32_MAX;
	dist[to] = 0;
	queue[tail++] = to;
	while (head < tail) {
		const unsigned at = queue[head++];
		const struct sim_node_switch *s = &sim->sw[at];

		for (unsigned p = s->n_hosts; p < s->n_ports; p++) {
			const unsigned peer = s->port[p].node - first;

			if (dist[peer] == UINT32_MAX) {
				dist[peer] = dist[at] + 1;
				queue[tail++] = peer;
			}
			if (dist[peer] + 1 == dist[at])
				s->next[to] |= UINT64_C(1) << (p - s->n_hosts);
		}
	}
	return tail * sim_topo_planes(sim->topo) == n ? 0 : -ENETUNREACH;
}

int sim_switches_open(struct sim *sim)
{
	const unsigned n = sim->topo->n_switches;
	unsigned *dist = calloc(n, sizeof(*dist)), *queue = calloc(n, sizeof(*queue));
	int rc = dist && queue ? add_ports(sim) : -ENOMEM;

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		sim->sw[i].next = calloc(n, sizeof(uint64_t));
		rc = sim->sw[i].next ? 0 : -ENOMEM;
	}
	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = find_ways(sim, i, dist, queue);
	free(dist);
	free(queue);
	return rc;
}

void sim_switches_close(struct sim *sim)
{
	sim_multicast_close(sim);
	for (unsigned i = 0; i < sim->topo->n_switches; i++) {
		sim_agent_close(sim->sw[i].agent);
		sim_mode1_close(&sim->sw[i]);
		free(sim->sw[i].port);
		free(sim->sw[i].next);
	}
}

/* ---- forwarding ---- */

enum { FLOW_LABEL = 0xfffff };

/* The same for every packet of a flow, and different from switch to switch. A flow is what
 * incline-switch takes for one (dataplane/ip/ecmp.h). */
static uint64_t flow_hash(unsigned sw, const struct sim_frame *f, const struct wire_pkt *pkt)
{
	uint64_t h = (uint64_t)sw << 32 | (uint32_t)pkt->sport << 8 | pkt->ip_proto;

	if (pkt->ip_ver == 6)
		h ^= (uint64_t)(get_be32(f->data + ETH_HDR_LEN) & FLOW_LABEL) << 44;
	for (unsigned i = 0; i < 16; i++)
		h = (h ^ pkt->src.b[i] ^ (uint64_t)pkt->dst.b[i] << 8) * 0x100000001b3;
	return sim_random(&h);
}

/* Ports on the shortest ways to a node; 0: there is none. Those to hosts are not among them. */
static uint64_t ways_to(const struct sim *sim, unsigned sw, unsigned node, int *to_host)
{
	const struct sim_topo *t = sim->topo;
	const bool host = node < t->n_hosts;
	const unsigned plane = sim_topo_plane_of(t, sw);
	const unsigned leaf = host ? sim_topo_leaf(t, node, plane) : node - t->n_hosts;

	/* Down links follow up links. */
	*to_host = host && leaf == sw
			   ? (int)sim->link[sim_host_link(sim, node, plane) + 1].from_port
			   : -ENOENT;
	return sim->sw[sw].next[leaf];
}

int sim_port_to_node(const struct sim *sim, unsigned sw, unsigned node)
{
	int port;
	const uint64_t ways = ways_to(sim, sw, node, &port);

	return port >= 0 || !ways ? port : (int)sim->sw[sw].n_hosts + __builtin_ctzll(ways);
}

static int way_to(const struct sim *sim, unsigned sw, unsigned node, const struct sim_frame *f,
	const struct wire_pkt *pkt)
{
	unsigned skip;
	int port;
	uint64_t ways = ways_to(sim, sw, node, &port);

	if (port >= 0 || !ways)
		return port;
	skip = (unsigned)(flow_hash(sw, f, pkt) % (unsigned)__builtin_popcountll(ways));
	while (skip--)
		ways &= ways - 1;
	return (int)sim->sw[sw].n_hosts + __builtin_ctzll(ways);
}

static void forward(
	struct sim *sim, unsigned sw, struct sim_frame *f, const struct wire_pkt *pkt, int node)
{
	struct sim_node_switch *s = &sim->sw[sw];
	int port = node >= 0 ? way_to(sim, sw, (unsigned)node, f, pkt) : -1;
	uint8_t dmac[6], smac[6];
	unsigned peer;

	if (port >= 0) {
		peer = s->port[port].node;
		if (peer < sim->topo->n_hosts)
			sim_host_port_mac(peer, sim_topo_plane_of(sim->topo, sw), dmac);
		else
			sim_switch_mac(peer - sim->topo->n_hosts, dmac);
		sim_switch_mac(sw, smac);
	}
	if (port < 0 || wire_forward(f->data, pkt, dmac, smac) != 0) {
		s->pub.unroutable++;
		sim_frame_put(sim, f);
		return;
	}
	s->pub.forwarded++;
	sim_send(sim, s->port[port].link, f);
}

void sim_switch_send(struct sim *sim, unsigned sw, struct sim_frame *f, const struct wire_ip *dst)
{
	struct wire_pkt pkt;

	if (wire_parse(f->data, f->len, &pkt) != WIRE_OK || !wire_ip_eq(&pkt.dst, dst))
		abort(); /* the engine made it */
	forward(sim, sw, f, &pkt, sim_node_of(sim, dst));
}

uint64_t sim_port_bytes(struct sim *sim)
{
	const unsigned hosts = sim->topo->n_hosts;
	uint64_t sum = 0;

	for (unsigned i = 0; i < sim->n_links; i++) {
		const struct sim_link *l = &sim->link[i];

		sum += l->count[SIM_L_BYTES] * (unsigned)((l->from >= hosts) + (l->to >= hosts));
	}
	return sum;
}

/* ---- groups ---- */

struct emitting {
	struct sim *sim;
	unsigned sw;
	bool no_cnp;
};

static void emit_one(
	const struct emitting *em, struct inc_group *g, unsigned i, const struct inc_emit *emit)
{
	struct sim *sim = em->sim;
	struct sim_frame *f =
		sim_frame_get(sim, WIRE_MAX_HEADERS + emit->pay_len + WIRE_MAX_TRAILER);
	uint8_t tail[WIRE_MAX_TRAILER];
	unsigned tail_len, port = inc_ep_at(g, i)->port;
	int head = inc_translate_header(g, i, emit, (uint16_t)sim->hops, f->data, tail, &tail_len);

	if (emit->pay_len)
		memcpy(f->data + head, emit->payload, emit->pay_len);
	memcpy(f->data + head + emit->pay_len, tail, tail_len);
	f->len = (unsigned)head + emit->pay_len + tail_len;
	f->first = emit->again;
	sim_send(sim, sim->sw[em->sw].port[port].link, f);
}

static void emit_all(void *arg, struct inc_group *g, const struct inc_emit *emit)
{
	const struct emitting *em = arg;

	if (em->no_cnp && emit->opcode == ROCE_CNP)
		return;
	for (uint64_t outs = emit->out_mask; outs; outs &= outs - 1)
		emit_one(arg, g, (unsigned)__builtin_ctzll(outs), emit);
}

static void to_group(struct sim *sim, unsigned i, unsigned port, const struct sim_frame *f,
	const struct wire_pkt *pkt)
{
	struct sim_switch *sw = &sim->sw[i].pub;
	/* A CNP that neither a mark nor another CNP has caused tells of a pipe's end. */
	const bool congested = pkt->opcode == ROCE_CNP || (pkt->tos & IP_ECN_MASK) == IP_ECN_CE;
	struct emitting em = {sim, i, sim->conf.no_rate_sync && !congested};
	const struct inc_sink sink = {&em, emit_all};
	struct inc_look look;
	enum inc_drop drop = inc_lookup(&sw->table, pkt, (uint16_t)port, &look);
	uint32_t crc = 0;

	if (drop != INC_OK) {
		sw->inc_drop[drop]++;
	} else if (!inc_check_icrc(&look, f->data, pkt, &crc)) {
		sw->wire_drop[WIRE_ICRC_BAD]++;
	} else {
		drop = inc_packet(look.group, &sw->arena, &look, pkt, f->data + pkt->pay_off, crc,
			sim->now, &sink);
		sw->inc_drop[drop]++;
		sim_switch_wake(sim, i, look.group->timer_ns);
	}
}

void sim_switch_tick(struct sim *sim, unsigned i)
{
	struct sim_switch *sw = &sim->sw[i].pub;
	struct emitting em = {.sim = sim, .sw = i};
	const struct inc_sink sink = {&em, emit_all};

	for (unsigned slot = 0; slot < sw->n_slots; slot++)
		if (sw->table.group[slot])
			sim_switch_wake(sim, i,
				inc_tick(sw->table.group[slot], &sw->arena, sim->now, &sink));
	sim_mode1_turn(sim, i);
}

/* What is on its way to others needs an IP header only, as in incline-switch: what is in it may be
 * another transport's, or cut off. */
static bool is_for_others(
	const struct sim *sim, unsigned i, const struct sim_frame *f, struct wire_pkt *pkt)
{
	return wire_parse_l3(f->data, f->len, pkt) == WIRE_OK && pkt->ip_ver &&
	       !wire_is_multicast(&pkt->dst) &&
	       sim_node_of(sim, &pkt->dst) != (int)(sim->topo->n_hosts + i);
}

void sim_switch_rx(struct sim *sim, unsigned i, unsigned port, struct sim_frame *f)
{
	struct sim_switch *sw = &sim->sw[i].pub;
	struct wire_pkt pkt;
	enum wire_drop bad = wire_parse(f->data, f->len, &pkt);
	int node;

	sw->rx++;
	if (sw->stopped) {
		sw->stopped_drop++;
		sim_frame_put(sim, f);
		return;
	}
	if (sim_srv6_rx(sim, i, f))
		return;
	if (bad != WIRE_OK && !is_for_others(sim, i, f, &pkt)) {
		sw->wire_drop[bad]++;
		sim_frame_put(sim, f);
		return;
	}
	if (sim->sw[i].pub.n_rings && pkt.kind == WIRE_ROCE && sim_ring_rx(sim, i, port, f, &pkt))
		return;
	if (wire_is_multicast(&pkt.dst)) {
		sim_multicast_rx(sim, i, port, f, &pkt);
		return;
	}
	node = sim_node_of(sim, &pkt.dst);
	if (node != (int)(sim->topo->n_hosts + i)) {
		forward(sim, i, f, &pkt, node);
		return;
	}
	if (pkt.kind == WIRE_ROCE && pkt.dqpn < MODE1_QPN_LIMIT)
		sim_mode1_rx(sim, i, port, f, &pkt);
	else if (pkt.kind == WIRE_ROCE)
		to_group(sim, i, port, f, &pkt);
	sim_frame_put(sim, f);
}
