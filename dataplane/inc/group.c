/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/inc/modules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	g->slot_off[INC_AGG] = g->slot_off[INC_BCAST] = (uint32_t)at;
	at += (size_t)s->slots * sizeof(struct inc_slot);
	if (inc_ops(s->mode)->pipes < 2)
		return at;
	g->slot_off[INC_BCAST] = (uint32_t)at;
	at += (size_t)s->slots * sizeof(struct inc_slot);
	if (!(s->flags & INC_F_SR))
		return at;
	g->order_off = (uint32_t)at;
	return at +
	       (size_t)s->n_ep * inc_n_order((unsigned)__builtin_ctz(s->slots)) * sizeof(uint64_t);
}

size_t inc_group_bytes(const struct inc_group_spec *spec)
{
	struct inc_group g;

	return layout(spec, &g);
}

size_t inc_pipe_bytes(const struct inc_group_spec *spec, enum inc_pipe pipe)
{
	bool reproducible = spec->flags & INC_F_REPRODUCIBLE;
	unsigned copies = reproducible ? spec->n_ep : spec->flags & INC_F_HALF ? 2 : 1;
	enum inc_prim other = pipe == INC_AGG ? INC_BC : INC_RED;

	/* What leaves without a pipe passes without being stored. */
	if (pipe >= inc_ops(spec->mode)->pipes || (spec->kind == INC_SINGLE && spec->prim == other))
		return 0;
	return (size_t)(pipe == INC_AGG ? copies : 1) * spec->slots * spec->mtu;
}

size_t inc_group_payload_bytes(const struct inc_group_spec *spec)
{
	const struct inc_mode_ops *ops = inc_ops(spec->mode);

	return ops->pay_bytes(spec, INC_AGG) + ops->pay_bytes(spec, INC_BCAST);
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
	ep->mr_addr = spec->mr_addr;
	ep->mr_len = spec->mr_len;
	ep->rkey = spec->rkey;
	ep->min_rank = INC_MAX_RANKS;
	for (unsigned k = 0; k < spec->n_ranks; k++) {
		inc_rank_ep(g)[spec->ranks[k]] = (uint8_t)i;
		if (spec->ranks[k] < ep->min_rank)
			ep->min_rank = spec->ranks[k];
	}
	if (spec->parent)
		g->parent_ep = (uint8_t)i;
	else
		g->child_mask |= 1ULL << i;
	if (spec->host)
		g->host_mask |= 1ULL << i;
}

void inc_ep_set_dmac(struct inc_group *g, unsigned ep, const uint8_t mac[6])
{
	struct inc_ep *e = inc_ep_at(g, ep);

	memcpy(e->flow.dmac, mac, sizeof(e->flow.dmac));
	memcpy(e->full.head, mac, sizeof(e->flow.dmac)); /* Ethernet comes first */
}

/* Connections and pipes, where the mode has any, are through with what was before the next
 * operation. */
static void restart(struct inc_group *g)
{
	uint32_t psn = g->next_ctrl;

	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);

		ep->rx_epsn = ep->rx_acked = ep->tx_una = ep->tx_next = ep->tx_high = psn;
		ep->rx_high = ep->sack_end = psn;
		ep->nak_sent = ep->rto_shift = ep->retries = ep->rnr_wait = 0;
		ep->timer_ns = ep->resent_ns = ep->rtt_from = 0;
	}
	g->psn_start[INC_AGG] = g->psn_start[INC_BCAST] = g->loop_next = g->sum_next = psn;
	g->flush_next = g->flush_end = 0;
	g->unsent = g->turn_ns = 0;
	g->next_out = 0;
	g->timer_ns = UINT64_MAX;
	g->owed = 0;
}

void inc_group_rebind(struct inc_group *g, uint64_t pay_off)
{
	g->pay_off = pay_off;
	memset(inc_desc_at(g, 0), 0, INC_N_DESC * sizeof(struct inc_desc));
	restart(g);
	/* Every slot belongs to the last PSN before the next operation that maps to it. */
	for (uint32_t k = 1; k <= 1u << g->log2n; k++) {
		uint32_t psn = psn_add(g->next_ctrl, -(int32_t)k);

		*inc_slot_at(g, psn) = (struct inc_slot){.tag = psn};
		*inc_pipe_slot(g, INC_BCAST, psn) = (struct inc_slot){.tag = psn};
	}
}

/* Of what was before the next operation every host has every acknowledgement. */
static void all_acknowledged(struct inc_group *g)
{
	const uint32_t psn = g->next_ctrl;

	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);

		ep->ack_next = ep->refl_next = psn;
		ep->rnr_told = false;
		ep->rnr_psn = 0;
	}
	g->node_ack = g->nak_fwd_psn = g->bc_next = g->red_ack = g->aged_psn = psn;
	g->nak_fwd_ns = 0;
}

void inc_group_resync(struct inc_group *g)
{
	inc_group_rebind(g, g->pay_off);
	all_acknowledged(g);
	for (unsigned i = 0; i < g->n_ep && !INC_BUG(ANEW_MSN); i++)
		inc_ep_at(g, i)->ack_msn = inc_ep_at(g, i)->rx_msn = 0;
}

bool inc_group_is_anew(struct inc_group *g)
{
	bool anew = true;

	for (unsigned i = 0; i < INC_N_DESC; i++)
		anew &= !inc_desc_at(g, (uint8_t)i)->valid;
	for (unsigned i = 0; i < g->n_ep; i++)
		anew &= (!inc_ep_at(g, i)->ack_msn && !inc_ep_at(g, i)->rx_msn) ||
			INC_BUG(ANEW_MSN);
	return anew;
}

void inc_group_init(struct inc_group *g, const struct inc_group_spec *spec, unsigned slot,
	unsigned gen, uint64_t pay_off)
{
	g->bytes = (uint32_t)layout(spec, g);
	g->slot = (uint16_t)slot;
	g->gen = (uint8_t)(gen % INC_GENERATIONS);
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
	g->pay_stride = spec->flags & INC_F_REPRODUCIBLE ? spec->n_ep * spec->mtu : spec->mtu;
	g->mtu_shift = icrc_shift_for(spec->mtu);
	g->burst = INC_BURST;
	g->rto_given = spec->rto_us != 0;
	g->rto_min_ns = (spec->rto_us ? spec->rto_us : INC_RTO_US) * 1000;
	memcpy(g->name, spec->name, sizeof(g->name));
	for (unsigned i = 0; i < spec->n_ep; i++)
		init_ep(g, i, &spec->ep[i]);
	g->control = inc_route_of(g, spec->prim, spec->root);
	all_acknowledged(g);
	g->pay_bytes = inc_group_payload_bytes(spec);
	g->bcast_off = inc_ops(spec->mode)->pay_bytes(spec, INC_AGG);
	inc_group_rebind(g, pay_off);
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
			return snprintf(err, INC_ERR_LEN, "endpoints[%u].qpn: not known yet", i),
			       -EINVAL;
		/* Constant per endpoint, so that ECMP keeps a flow on one path. */
		ep->flow.sport = (uint16_t)(0xc000 | ((product ^ product >> 14) & 0x3fff));
		make_template(g, ep);
	}
	if (!inc_group_set_state(g, INC_INSTALLED, INC_ACTIVE))
		return snprintf(err, INC_ERR_LEN, "state: group is %s, must be installed",
			       inc_state_name(g->state)),
		       -EINVAL;
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
	g->fail_ep = (uint8_t)ep;
	__atomic_store_n(&g->fail_reason, (uint8_t)reason, __ATOMIC_RELEASE);
}

void inc_group_ranks_of(struct inc_group *g, uint64_t eps, char *buf, size_t cap)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned r = 0; r < g->n_ranks && at < cap; r++)
		if (eps >> inc_rank_ep(g)[r] & 1)
			at += (size_t)snprintf(buf + at, cap - at, "%s%u", at ? "," : "", r);
}
