/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and links: a star, or leaf switches under a root. Nodes are the switches (0 is the tree's
 * root), then the ranks' hosts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

enum {
	SLOT = 1,
	GEN = 1,
	HOST_QPN = 0x100,
	RECV_QPN = 0x200, /* in a ring a host receives from another queue pair than it sends to */
	NEW_QPN = 0x400,  /* more than of the first group */
	MAX_FRAMES = 1 << 22
};
static const size_t RESULTS_MAX = (size_t)8 << 30;

struct wire_ip mc_address(unsigned node)
{
	return wire_ip_from4(0x0a000001u + node);
}

unsigned mc_port_to(const struct mc_sys *s, unsigned sw, unsigned node)
{
	unsigned last = 0;

	for (unsigned l = 0; l < s->n_links; l++) {
		if (s->link[l].from != sw)
			continue;
		last = s->link[l].from_port;
		if (s->link[l].to == node)
			return last;
		/* Behind one of the tree's leaves. */
		for (unsigned k = 0; sw == 0 && k < s->n_links; k++)
			if (s->link[k].from == s->link[l].to && s->link[k].to == node)
				return last;
	}
	return last; /* of a leaf, that to the root */
}

static void connect_nodes(struct mc_sys *s, unsigned a, unsigned pa, unsigned b, unsigned pb)
{
	s->link[s->n_links] = (struct mc_link){(uint8_t)a, (uint8_t)b, (uint8_t)pa, (uint8_t)pb};
	s->out_link[a][pa] = (uint8_t)s->n_links++;
	s->link[s->n_links] = (struct mc_link){(uint8_t)b, (uint8_t)a, (uint8_t)pb, (uint8_t)pa};
	s->out_link[b][pb] = (uint8_t)s->n_links++;
}

/* One endpoint of a switch towards node peer. */
static void endpoint(const struct mc_sys *s, struct inc_ep_spec *e, unsigned self, unsigned port,
	unsigned peer, unsigned peer_port)
{
	memset(e, 0, sizeof(*e));
	e->remote_ip = mc_address(peer);
	e->local_ip = mc_address(self);
	e->host = mc_is_host(s, peer);
	e->parent = self != 0 && peer == 0;
	e->remote_qpn = e->host ? HOST_QPN + peer : inc_qpn(SLOT, peer_port, GEN);
	e->port = (uint16_t)port;
	if (e->host && s->cfg.flags & INC_F_WRITE) {
		e->mr_addr = MC_WRITE_VA;
		e->mr_len = mc_write_room(&s->cfg);
		e->rkey = mc_write_rkey(peer - s->n_sw);
	}
	e->dmac[0] = e->smac[0] = 2;
	e->dmac[5] = (uint8_t)peer;
	e->smac[5] = (uint8_t)self;
}

static unsigned generation_again(const struct mc_sys *s)
{
	return GEN + (s->cfg.again == MC_NUMBERS);
}

static uint32_t host_again(const struct mc_sys *s)
{
	return s->cfg.again == MC_NUMBERS ? NEW_QPN : 0;
}

/* Hosts of one switch, from rank first on. */
static void hosts_of(struct mc_sys *s, unsigned sw, struct inc_ep_spec *ep, unsigned first)
{
	unsigned n = s->cfg.hosts[sw == 0 ? 0 : sw - 1];

	for (unsigned i = 0; i < n; i++) {
		unsigned rank = first + i, node = s->n_sw + rank;

		connect_nodes(s, node, 0, sw, i);
		endpoint(s, &ep[i], sw, i, node, 0);
		ep[i].ranks[ep[i].n_ranks++] = (uint16_t)rank;
		s->flow[rank] = (struct wire_flow){.src = mc_address(node),
			.dst = mc_address(sw),
			.tos = IP_ECN_ECT0,
			.ttl = 64,
			.sport = 0xc000};
		memcpy(s->flow[rank].dmac, ep[i].smac, 6);
		memcpy(s->flow[rank].smac, ep[i].dmac, 6);
		s->reply[rank] = s->flow[rank];
		s->dqpn[rank] = s->reply_qpn[rank] = inc_qpn(SLOT, i, GEN);
		s->peer_qpn[0][rank] = s->dqpn[rank];
		s->peer_qpn[1][rank] = inc_qpn(SLOT, i, generation_again(s));
		s->own_qpn[0][rank] = HOST_QPN + node;
		s->own_qpn[1][rank] = HOST_QPN + node + host_again(s);
	}
}

/* The group that is made in the place of the first. */
static void open_again(struct mc_sys *s, unsigned sw, struct inc_group_spec *spec)
{
	const unsigned gen = generation_again(s);

	spec->start_psn = s->first_psn[1];
	for (unsigned i = 0; i < spec->n_ep; i++) {
		struct inc_ep_spec *e = &spec->ep[i];

		e->remote_qpn = e->host ? e->remote_qpn + host_again(s)
					: inc_qpn(SLOT, inc_qpn_ep(e->remote_qpn), gen);
	}
	mc_inc_again(s, sw, spec, gen);
}

/* Numbers of both groups. */
static void number_hosts(struct mc_sys *s)
{
	static const int32_t apart[] = {[MC_BEHIND] = 0x300000, [MC_AHEAD] = -0x300000};

	s->first_psn[0] = s->first_psn[1] = s->cfg.start_psn;
	if (s->cfg.again == MC_BEHIND || s->cfg.again == MC_AHEAD)
		s->first_psn[1] = psn_add(s->cfg.start_psn, apart[s->cfg.again]);
}

static void open_switch(struct mc_sys *s, unsigned sw, struct inc_ep_spec *ep, unsigned n_ep)
{
	const struct mc_config *c = &s->cfg;
	struct inc_group_spec spec = {
		.name = "model",
		.mode = c->mode,
		.kind = c->kind,
		.prim = c->kind == INC_SINGLE ? c->op[0].prim : (uint8_t)INC_AR,
		.root = c->kind == INC_SINGLE ? c->op[0].root : 0,
		.mtu = MC_MTU,
		.m = c->m,
		.w = c->w,
		.slots = c->slots,
		.start_psn = c->start_psn,
		.flags = c->flags,
		.n_ranks = c->n_ranks,
		.n_ep = (uint8_t)n_ep,
		.ep = ep,
	};
	char err[INC_ERR_LEN];

	if (mc_is_ring(s))
		return;
	if (!c->any_slots && inc_group_check(&spec, err) != 0) {
		fprintf(stderr, "incline-model: %s\n", err);
		exit(2);
	}
	if (c->mode == INC_MODE_1)
		mc_mode1_open(s, sw, &spec);
	else
		mc_inc_open(s, sw, &spec);
	if (c->again)
		open_again(s, sw, &spec);
}

static void open_tree(struct mc_sys *s)
{
	const struct mc_config *c = &s->cfg;
	struct inc_ep_spec *root = calloc(MC_MAX_PORTS, sizeof(*root));
	struct inc_ep_spec *leaf = calloc(MC_MAX_PORTS, sizeof(*leaf));

	for (unsigned l = 0, first = 0; l < c->n_leaf; first += c->hosts[l++]) {
		unsigned n = c->hosts[l], sw = l + 1;

		hosts_of(s, sw, leaf, first);
		connect_nodes(s, sw, n, 0, l);
		endpoint(s, &leaf[n], sw, n, 0, l);
		endpoint(s, &root[l], 0, l, sw, n);
		for (unsigned r = 0; r < c->n_ranks; r++) {
			struct inc_ep_spec *e = r - first < n ? &root[l] : &leaf[n];

			e->ranks[e->n_ranks++] = (uint16_t)r;
		}
		open_switch(s, sw, leaf, n + 1);
	}
	open_switch(s, 0, root, c->n_leaf);
	free(root);
	free(leaf);
}

/* Queue pairs have the numbers that the switches' devices gave them. */
static void connect_mode1(struct mc_sys *s)
{
	for (unsigned sw = 0; sw < s->n_sw; sw++) {
		uint32_t remote[MC_MAX_PORTS];

		for (unsigned l = 0; l < s->n_links; l++) {
			const struct mc_link *a = &s->link[l];

			if (a->from != sw)
				continue;
			remote[a->from_port] = HOST_QPN + a->to;
			if (!mc_is_host(s, a->to))
				remote[a->from_port] =
					inc_ep_at(s->sw[a->to].g, a->to_port)->local_qpn;
			else
				s->dqpn[a->to - s->n_sw] = s->reply_qpn[a->to - s->n_sw] =
					inc_ep_at(s->sw[sw].g, a->from_port)->local_qpn;
		}
		mc_mode1_connect(s, sw, remote);
	}
}

/* ---- NetReduce: hosts in a ring ---- */

static unsigned next_rank(const struct mc_sys *s, unsigned r)
{
	return (r + 1) % s->n_ranks;
}

/* What a host sends goes to the next one, what it answers to the one before. */
static void ring_flows(struct mc_sys *s)
{
	for (unsigned r = 0; r < s->n_ranks; r++) {
		unsigned next = next_rank(s, r), node = s->n_sw + r, other = s->n_sw + next;

		s->flow[r].src = s->reply[next].dst = mc_address(node);
		s->flow[r].dst = s->reply[next].src = mc_address(other);
		s->dqpn[r] = RECV_QPN + other;
		s->reply_qpn[next] = HOST_QPN + node;
	}
}

static void ring_hosts(struct mc_sys *s, struct nr_in_spec *in, unsigned first, unsigned n)
{
	static uint16_t rank[MC_MAX_RANKS];

	for (unsigned i = 0; i < n; i++) {
		unsigned r = first + i, next = next_rank(s, r);

		rank[r] = (uint16_t)r;
		in[i] = (struct nr_in_spec){
			.host = true,
			.key = {mc_address(s->n_sw + r), mc_address(s->n_sw + next), s->dqpn[r]},
			.reply_qpn = s->reply_qpn[next],
			.psn_known = !s->cfg.learn,
			.psn = s->cfg.start_psn,
			.n_ranks = 1,
			.ranks = &rank[r],
		};
	}
}

static void open_ring(struct mc_sys *s, unsigned sw, struct nr_in_spec *in, unsigned n_in)
{
	const struct mc_config *c = &s->cfg;
	struct nr_spec spec = {
		.name = "model",
		.id = 1,
		.mtu = MC_MTU,
		.m = c->m,
		.w = c->w,
		.n_ranks = c->n_ranks,
		.first_msg = (uint32_t)MC_FIRST_MSG,
		.flags = c->flags & INC_F_STALL_RNR ? NR_F_STALL_RNR : 0,
		.n_in = n_in,
		.in = in,
	};
	char err[NR_ERR_LEN];

	if (sw != 0) {
		spec.has_parent = true;
		spec.parent_ip = mc_address(0);
		spec.parent_local_ip = mc_address(sw);
		spec.parent_qpn = inc_qpn(SLOT, sw - 1, GEN);
	}
	if (nr_check(&spec, err) != 0) {
		fprintf(stderr, "incline-model: %s\n", err);
		exit(2);
	}
	mc_ring_open(s, sw, &spec);
}

/* Links as for the other modes; hosts_of has made them. */
static void open_rings(struct mc_sys *s)
{
	static const uint16_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct nr_in_spec in[MC_MAX_PORTS], root[MC_MAX_SWITCHES];

	ring_flows(s);
	if (s->n_sw == 1) {
		ring_hosts(s, in, 0, s->n_ranks);
		open_ring(s, 0, in, s->n_ranks);
		return;
	}
	for (unsigned sw = 1, first = 0; sw < s->n_sw; first += s->cfg.hosts[sw++ - 1]) {
		unsigned n = s->cfg.hosts[sw - 1];

		root[sw - 1] = (struct nr_in_spec){
			.remote_ip = mc_address(sw),
			.local_ip = mc_address(0),
			.remote_qpn = inc_qpn(SLOT, NR_PARENT_EP, GEN),
			.n_ranks = n,
			.ranks = all + first,
		};
		ring_hosts(s, in, first, n);
		open_ring(s, sw, in, n);
	}
	open_ring(s, 0, root, s->n_sw - 1);
}

static void open_star(struct mc_sys *s)
{
	struct inc_ep_spec *ep = calloc(MC_MAX_PORTS, sizeof(*ep));

	hosts_of(s, 0, ep, 0);
	open_switch(s, 0, ep, s->n_ranks);
	free(ep);
}

void mc_sys_open(struct mc_sys *s, const struct mc_config *c)
{
	memset(s, 0, sizeof(*s));
	s->cfg = *c;
	mc_program_make(&s->prog, c);
	number_hosts(s);
	s->n_sw = c->n_leaf ? c->n_leaf + 1u : 1;
	s->n_ranks = c->n_ranks;
	s->n_nodes = s->n_sw + s->n_ranks;
	intern_init(&s->chunks);
	intern_init(&s->queues);
	intern_init(&s->frames);
	intern_add(&s->queues, "", 0); /* queue 0 is empty */
	s->pkt = mc_reserve((size_t)MAX_FRAMES * sizeof(*s->pkt));
	s->results = mc_reserve(RESULTS_MAX);
	s->results_used = 8; /* 0 is no result */
	for (unsigned i = 0; i < s->n_nodes; i++) {
		intern_init(&s->nodes[i]);
		memo_init(&s->memo[i]);
		s->host_flags[i] = mc_reserve((size_t)1 << 29);
		s->switch_flags[i] = mc_reserve((size_t)1 << 30);
	}
	if (c->n_leaf)
		open_tree(s);
	else
		open_star(s);
	if (mc_is_ring(s))
		open_rings(s);
	if (c->mode == INC_MODE_1)
		connect_mode1(s);
	s->words = s->n_nodes + s->n_links + 1;
}

uint32_t mc_frame_id(struct mc_sys *s, const uint8_t *frame, size_t len)
{
	uint32_t id = intern_add(&s->frames, frame, (uint32_t)len);

	if (id == s->parsed) { /* new: every frame is a valid one, with a right ICRC */
		struct wire_pkt *pkt = &s->pkt[id];

		if (id == MAX_FRAMES || wire_parse(frame, len, pkt) != WIRE_OK ||
			pkt->kind != WIRE_ROCE || !wire_icrc_ok(frame, pkt)) {
			fprintf(stderr, "incline-model: a node built an invalid frame\n");
			exit(2);
		}
		s->parsed++;
	}
	return id;
}

const struct wire_pkt *mc_frame_pkt(struct mc_sys *s, uint32_t id, const uint8_t **frame)
{
	uint32_t len;

	*frame = intern_get(&s->frames, id, &len);
	return &s->pkt[id];
}
