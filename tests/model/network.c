/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and links: a star, or leaf switches under a root. Nodes are the switches (0 is the tree's
 * root), then the ranks' hosts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

enum { SLOT = 1, GEN = 1, HOST_QPN = 0x100, MAX_FRAMES = 1 << 22 };
static const size_t RESULTS_MAX = (size_t)8 << 30;

static struct wire_ip address(unsigned node)
{
	return wire_ip_from4(0x0a000001u + node);
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
	e->remote_ip = address(peer);
	e->local_ip = address(self);
	e->host = mc_is_host(s, peer);
	e->parent = self != 0 && peer == 0;
	e->remote_qpn = e->host ? HOST_QPN + peer : inc_qpn(SLOT, peer_port, GEN);
	e->port = (uint16_t)port;
	e->dmac[0] = e->smac[0] = 2;
	e->dmac[5] = (uint8_t)peer;
	e->smac[5] = (uint8_t)self;
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
		s->flow[rank] = (struct wire_flow){.src = address(node),
			.dst = address(sw),
			.tos = IP_ECN_ECT0,
			.ttl = 64,
			.sport = 0xc000};
		memcpy(s->flow[rank].dmac, ep[i].smac, 6);
		memcpy(s->flow[rank].smac, ep[i].dmac, 6);
		s->dqpn[rank] = inc_qpn(SLOT, i, GEN);
	}
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

	if (!c->any_slots && inc_group_check(&spec, err) != 0) {
		fprintf(stderr, "incline-model: %s\n", err);
		exit(2);
	}
	mc_switch_open(s, sw, &spec);
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
		s->host_flags[i] = mc_reserve((size_t)1 << 28);
		s->switch_flags[i] = mc_reserve((size_t)1 << 29);
	}
	if (c->n_leaf)
		open_tree(s);
	else
		open_star(s);
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
