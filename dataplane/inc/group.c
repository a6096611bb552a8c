/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/inc/group.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int refuse(char *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(char *err, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, INC_ERR_LEN, format, args);
	va_end(args);
	return -code;
}

static int check_shape(struct inc_group_spec *s, char *err)
{
	uint32_t window = (uint32_t)s->m * s->w;

	if (s->mode != INC_MODE_2)
		return refuse(err, EOPNOTSUPP, "mode: only mode II is built so far");
	if (s->kind > INC_MIXED)
		return refuse(err, EINVAL, "kind: %u, must be single or mixed", s->kind);
	if (s->kind != INC_SINGLE || s->prim != INC_AR)
		return refuse(err, EOPNOTSUPP,
			"kind: only single groups of primitive allreduce are built so far");
	if (s->root != 0)
		return refuse(err, EINVAL, "root: %u, must be 0 for allreduce", s->root);
	if (!roce_mtu_code(s->mtu))
		return refuse(err, EINVAL, "mtu: %u, must be 256, 512, 1024, 2048 or 4096", s->mtu);
	if (s->m == 0 || s->w == 0 || window < 2 || 2 * window > INC_MAX_SLOTS)
		return refuse(err, EINVAL, "m, w: %u x %u, the product must be 2..%u", s->m, s->w,
			INC_MAX_SLOTS / 2);
	if (s->slots == 0)
		for (s->slots = 4; s->slots < 2 * window;)
			s->slots *= 2;
	if ((s->slots & (s->slots - 1)) != 0 || s->slots < 2 * window || s->slots > INC_MAX_SLOTS)
		return refuse(err, EINVAL,
			"slots: %u, must be a power of two, %u..%u (2 M W and more)", s->slots,
			2 * window, INC_MAX_SLOTS);
	if (s->start_psn > PSN_MASK)
		return refuse(err, EINVAL, "start_psn: 0x%x, must fit 24 bits", s->start_psn);
	if (s->n_ranks < 1 || s->n_ranks > INC_MAX_RANKS)
		return refuse(err, EINVAL, "ranks: %u, must be 1..%u", s->n_ranks, INC_MAX_RANKS);
	if (s->n_ep < 1 || s->n_ep > INC_MAX_EP)
		return refuse(err, EINVAL, "endpoints: %u, must be 1..%u", s->n_ep, INC_MAX_EP);
	if (s->name[0] == '\0' || memchr(s->name, '\0', sizeof(s->name)) == NULL)
		return refuse(err, EINVAL, "name: must have 1..%u bytes", INC_NAME_LEN - 1);
	return 0;
}

static int check_ep(const struct inc_group_spec *s, unsigned i, char *err)
{
	const struct inc_ep_spec *e = &s->ep[i];

	if (wire_ip_is_zero(&e->remote_ip) || wire_ip_is_zero(&e->local_ip))
		return refuse(err, EINVAL, "endpoints[%u].ip: missing", i);
	if (wire_ip_is4(&e->remote_ip) != wire_ip_is4(&e->local_ip))
		return refuse(err, EINVAL, "endpoints[%u].local_ip: not of the peer's family", i);
	if (e->remote_qpn > 0xffffff)
		return refuse(
			err, EINVAL, "endpoints[%u].qpn: 0x%x, must fit 24 bits", i, e->remote_qpn);
	if (e->vlan > 4095)
		return refuse(err, EINVAL, "endpoints[%u].vlan: %u, must be 0..4095", i, e->vlan);
	if (e->dscp > 63)
		return refuse(err, EINVAL, "endpoints[%u].dscp: %u, must be 0..63", i, e->dscp);
	if (e->parent && i != s->n_ep - 1u)
		return refuse(
			err, EINVAL, "endpoints[%u].parent: only the last endpoint may be it", i);
	if (e->parent && e->host)
		return refuse(err, EINVAL, "endpoints[%u].parent: a host cannot be a parent", i);
	if (e->n_ranks == 0 && !e->parent)
		return refuse(err, EINVAL, "endpoints[%u].ranks: empty", i);
	if (e->host && e->n_ranks != 1)
		return refuse(err, EINVAL, "endpoints[%u].ranks: a host is one rank, not %u", i,
			e->n_ranks);
	for (unsigned j = 0; j < i; j++)
		if (e->remote_qpn && s->ep[j].remote_qpn == e->remote_qpn &&
			wire_ip_eq(&s->ep[j].remote_ip, &e->remote_ip))
			return refuse(err, EINVAL,
				"endpoints[%u]: same ip and qpn as endpoints[%u]", i, j);
	return 0;
}

/* Each rank behind exactly one endpoint. */
static int check_ranks(const struct inc_group_spec *s, char *err)
{
	uint8_t seen[INC_MAX_RANKS] = {0};
	unsigned lowest = 0, total = 0;

	for (unsigned i = 0; i < s->n_ep; i++) {
		const struct inc_ep_spec *e = &s->ep[i];
		unsigned min = INC_MAX_RANKS;

		for (unsigned k = 0; k < e->n_ranks; k++) {
			unsigned rank = e->ranks[k];

			if (rank >= s->n_ranks)
				return refuse(err, EINVAL,
					"endpoints[%u].ranks: %u, must be below %u", i, rank,
					s->n_ranks);
			if (seen[rank]++)
				return refuse(err, EINVAL, "endpoints[%u].ranks: %u is named twice",
					i, rank);
			min = rank < min ? rank : min;
			total++;
		}
		if ((s->flags & INC_F_REPRODUCIBLE) && !e->parent && i > 0 && min < lowest)
			return refuse(err, EINVAL,
				"endpoints[%u].ranks: a reproducible group lists endpoints by "
				"lowest rank",
				i);
		lowest = min;
	}
	if (total != s->n_ranks)
		return refuse(err, EINVAL, "endpoints: %u of %u ranks are behind none",
			s->n_ranks - total, s->n_ranks);
	return 0;
}

int inc_group_check(struct inc_group_spec *spec, char err[INC_ERR_LEN])
{
	int rc = check_shape(spec, err);

	for (unsigned i = 0; rc == 0 && i < spec->n_ep; i++)
		rc = check_ep(spec, i, err);
	if (rc == 0 && spec->n_ep == 1 && spec->ep[0].parent)
		rc = refuse(err, EINVAL, "endpoints: a parent alone, no children");
	return rc ? rc : check_ranks(spec, err);
}

static unsigned n_children(const struct inc_group_spec *s)
{
	return s->n_ep - (s->ep[s->n_ep - 1].parent ? 1 : 0);
}

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Offsets of the block's parts; returns its size. */
static size_t layout(const struct inc_group_spec *s, struct inc_group *g)
{
	size_t at = align8(sizeof(*g));

	g->ep_off = (uint32_t)at;
	at += s->n_ep * sizeof(struct inc_ep);
	g->desc_off = (uint32_t)at;
	at += INC_N_DESC * sizeof(struct inc_desc);
	g->rank_off = (uint32_t)at;
	at = align8(at + s->n_ranks);
	g->slot_off = (uint32_t)at;
	return at + (size_t)s->slots * sizeof(struct inc_slot);
}

size_t inc_group_bytes(const struct inc_group_spec *spec)
{
	struct inc_group g;

	return layout(spec, &g);
}

size_t inc_group_payload_bytes(const struct inc_group_spec *spec)
{
	unsigned copies = spec->flags & INC_F_REPRODUCIBLE ? n_children(spec) : 1;

	return (size_t)copies * spec->slots * spec->mtu;
}

static void init_ep(struct inc_group *g, unsigned i, const struct inc_ep_spec *spec)
{
	struct inc_ep *ep = inc_ep_at(g, i);

	memcpy(ep->flow.dmac, spec->dmac, sizeof(ep->flow.dmac));
	memcpy(ep->flow.smac, spec->smac, sizeof(ep->flow.smac));
	ep->flow.vlan = spec->vlan;
	ep->flow.src = spec->local_ip;
	ep->flow.dst = spec->remote_ip;
	ep->flow.tos = (uint8_t)(spec->dscp << 2);
	ep->flow.ttl = 64;
	ep->remote_qpn = spec->remote_qpn;
	ep->local_qpn = inc_qpn(g->slot, i, g->gen);
	ep->port = spec->port;
	ep->host = spec->host;
	ep->min_rank = INC_MAX_RANKS;
	for (unsigned k = 0; k < spec->n_ranks; k++) {
		inc_rank_ep(g)[spec->ranks[k]] = (uint8_t)i;
		if (spec->ranks[k] < ep->min_rank)
			ep->min_rank = spec->ranks[k];
	}
	ep->ack_next = ep->refl_next = g->start_psn;
	if (spec->parent)
		g->parent_ep = (uint8_t)i;
	else
		g->child_mask |= 1ULL << i;
	if (spec->host)
		g->host_mask |= 1ULL << i;
}

void inc_group_init(struct inc_group *g, const struct inc_group_spec *spec, unsigned slot,
	unsigned gen, uint64_t pay_off)
{
	g->bytes = (uint32_t)layout(spec, g);
	g->slot = (uint16_t)slot;
	g->gen = (uint8_t)(gen & 0x3f);
	g->mode = spec->mode;
	g->kind = spec->kind;
	g->prim = spec->prim;
	g->root = spec->root;
	g->n_ep = spec->n_ep;
	g->parent_ep = 0xff;
	g->flags = spec->flags;
	g->mtu = spec->mtu;
	g->m = spec->m;
	g->w = spec->w;
	g->n_ranks = spec->n_ranks;
	g->log2n = (uint8_t)__builtin_ctz(spec->slots);
	g->start_psn = g->next_ctrl = spec->start_psn;
	g->pay_off = pay_off;
	g->pay_stride = spec->flags & INC_F_REPRODUCIBLE ? n_children(spec) * spec->mtu : spec->mtu;
	g->mtu_shift = icrc_shift_for(spec->mtu);
	memcpy(g->name, spec->name, sizeof(g->name));
	for (unsigned i = 0; i < spec->n_ep; i++)
		init_ep(g, i, &spec->ep[i]);
	/* Every slot starts out owned by the last PSN before start_psn that maps to it. */
	for (uint32_t k = 1; k <= spec->slots; k++) {
		uint32_t psn = psn_add(spec->start_psn, -(int32_t)k);

		inc_slot_at(g, psn)->tag = psn;
	}
	g->state = INC_INSTALLED;
}

static void make_template(struct inc_group *g, struct inc_ep *ep)
{
	const struct wire_hdr hdr = {.opcode = ROCE_SEND_MIDDLE, .dqpn = ep->remote_qpn};
	struct wire_flow flow = ep->flow;

	flow.tos |= IP_ECN_ECT0;
	wire_template_init(&ep->full, &flow, &hdr, g->mtu); /* cannot fail: families were checked */
}

int inc_group_activate(struct inc_group *g, char err[INC_ERR_LEN])
{
	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);
		uint32_t product = ep->local_qpn * ep->remote_qpn;

		if (ep->remote_qpn == 0)
			return refuse(err, EINVAL, "endpoints[%u].qpn: not known yet", i);
		/* Constant per endpoint, so that ECMP keeps a flow on one path. */
		ep->flow.sport = (uint16_t)(0xc000 | ((product ^ product >> 14) & 0x3fff));
		make_template(g, ep);
	}
	if (!inc_group_set_state(g, INC_INSTALLED, INC_ACTIVE))
		return refuse(err, EINVAL, "state: group is %s, must be installed",
			inc_state_name(g->state));
	return 0;
}

bool inc_group_set_state(struct inc_group *g, enum inc_state from, enum inc_state to)
{
	uint8_t expected = from;

	return __atomic_compare_exchange_n(
		&g->state, &expected, (uint8_t)to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void inc_group_fail(struct inc_group *g, enum inc_fail reason, unsigned ep)
{
	if (!inc_group_set_state(g, INC_ACTIVE, INC_FAILED) &&
		!inc_group_set_state(g, INC_DRAINING, INC_FAILED))
		return;
	g->fail_reason = reason;
	g->fail_ep = (uint8_t)ep;
}

uint64_t inc_group_missing(struct inc_group *g, uint32_t *psn)
{
	uint64_t missing = 0;

	for (uint32_t i = 0; i < 1u << g->log2n; i++) {
		const struct inc_slot *slot = inc_slot_at(g, i);
		uint64_t here = slot->arrived & g->child_mask;

		if (here == 0 || here == g->child_mask)
			continue;
		if (missing && psn_lt(*psn, slot->tag))
			continue;
		*psn = slot->tag;
		missing = g->child_mask & ~here;
	}
	return missing;
}

void inc_group_ranks_of(struct inc_group *g, uint64_t eps, char *buf, size_t cap)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned r = 0; r < g->n_ranks && at < cap; r++)
		if (eps >> inc_rank_ep(g)[r] & 1)
			at += (size_t)snprintf(buf + at, cap - at, "%s%u", at ? "," : "", r);
}
