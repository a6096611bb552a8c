/* SPDX-License-Identifier: BSD-3-Clause */
/* CheckDuplicate, RecycleBuffer, AggregateData on the slot ring (docs/inc-protocol.md, 3.1). */
#include "dataplane/inc/modules.h"

uint8_t *inc_payload_at(
	const struct inc_group *g, const struct inc_arena *arena, enum inc_pipe pipe, uint32_t psn)
{
	uint8_t *base = arena->base + g->pay_off;
	uint64_t i = inc_idx(g, psn);

	return pipe == INC_AGG ? base + i * g->pay_stride : base + g->bcast_off + i * g->mtu;
}

void inc_prefetch(struct inc_group *g, const struct inc_arena *arena, uint32_t psn)
{
	const uint8_t *sum;

	__builtin_prefetch(inc_slot_at(g, psn), 1);
	if (g->pay_off == INC_NO_ARENA)
		return;
	sum = inc_payload_at(g, arena, INC_AGG, psn);
	for (unsigned i = 0; i < 4; i++)
		__builtin_prefetch(sum + 64 * i, 1);
}

void inc_recycle_buffer(struct inc_slot *slot, uint32_t psn)
{
	uint64_t arrived = slot->arrived;

	*slot = (struct inc_slot){.tag = psn};
	if (INC_BUG(T1))
		slot->arrived = arrived;
}

/* Has the PSN one ring before not completed here? Somebody then still waits for it, and of those
 * who keep the window (3.4) nobody sends this one yet. The first comparison is the usual case. */
static bool is_ahead(struct inc_group *g, uint32_t psn)
{
	uint32_t before = psn_add(psn, -(1 << g->log2n));

	return g->mode == INC_MODE_2 && !psn_lt(before, g->sum_next) &&
	       !psn_lt(before, inc_sum_next(g)) && !INC_BUG(II_AHEAD);
}

enum inc_dup inc_check_duplicate(
	struct inc_group *g, struct inc_slot *slot, uint32_t psn, unsigned ep)
{
	int32_t age = psn_diff(psn, slot->tag);

	if (INC_BUG(T24))
		age = (int32_t)(psn - slot->tag);
	if (INC_BUG(T2)) {
		slot->tag = psn;
		age = 0;
	}
	if (age < 0)
		return INC_STALE;
	if (age > 0 && is_ahead(g, psn))
		return INC_AHEAD;
	if (age > 0)
		inc_recycle_buffer(slot, psn);
	if (INC_BUG(T21))
		return INC_FRESH;
	return slot->arrived >> ep & 1 ? INC_DUP : INC_FRESH;
}

/* REPRODUCIBLE groups keep each endpoint's payload beside the others'. */
static uint8_t *contribution(const struct inc_ctx *c, unsigned ep)
{
	uint8_t *base = inc_payload_at(c->g, c->arena, INC_AGG, c->pkt->psn);

	return c->g->flags & INC_F_REPRODUCIBLE ? base + (size_t)ep * c->g->mtu : base;
}

/* fp16 and bf16 are summed in fp32 and take twice their bytes: those of a payload's first half in
 * its own place, of the second half in another, so that all else keeps its stride. */
static uint8_t *second_half(const struct inc_ctx *c)
{
	const struct inc_group *g = c->g;

	return c->arena->base + g->pay_off + ((uint64_t)g->mtu << g->log2n) +
	       (uint64_t)inc_idx(g, c->pkt->psn) * g->mtu;
}

static size_t first_half_len(const struct inc_ctx *c, size_t len)
{
	size_t half = c->g->mtu / 2;

	return c->desc->wide && len > half ? half : len;
}

/* The payload of the packet into the slot's accumulator, as the first or added to others. */
static void accumulate(struct inc_ctx *c, bool first)
{
	const struct inc_desc *d = c->desc;
	reduce_fn fn = first ? reduce_widen(d->dtype) : reduce_accumulate(d->op, d->dtype);
	size_t len = c->pkt->pay_len, near = first_half_len(c, len);

	fn(contribution(c, 0), c->payload, near);
	if (near < len)
		fn(second_half(c), c->payload + near, len - near);
}

void inc_aggregate_data(struct inc_ctx *c, struct inc_slot *slot)
{
	if (c->ctrl)
		; /* a control is "added" by comparing, which inc_admit has done */
	else if (c->pipe == INC_BCAST)
		memcpy(inc_payload_at(c->g, c->arena, INC_BCAST, c->pkt->psn), c->payload,
			c->pkt->pay_len);
	else if (c->g->flags & INC_F_REPRODUCIBLE)
		memcpy(contribution(c, c->ep), c->payload, c->pkt->pay_len);
	else
		accumulate(c, slot->arrived == 0 && !INC_BUG(T2B));
	slot->arrived |= 1ULL << c->ep;
	slot->len = c->pkt->pay_len;
	slot->desc = c->desc->op_seq % INC_N_DESC;
	slot->ce |= (c->pkt->tos & IP_ECN_MASK) == IP_ECN_CE;
	c->g->last_progress_ns = c->now;
	inc_count(c->g, INC_C_CONSUMED);
}

/* All contributions in ascending order of endpoints, rounded once. Its CRC. */
static uint32_t sum_in_order(struct inc_ctx *c, size_t len)
{
	const struct inc_desc *d = c->desc;
	reduce_fn widen = reduce_widen(d->dtype), add = reduce_accumulate(d->op, d->dtype);
	reduce_fn narrow = reduce_narrow(d->dtype);
	uint8_t acc[2 * 4096] __attribute__((aligned(64)));
	uint64_t in = c->route->in;

	widen(acc, contribution(c, (unsigned)__builtin_ctzll(in)), len);
	for (in &= in - 1; in != 0; in &= in - 1)
		add(acc, contribution(c, (unsigned)__builtin_ctzll(in)), len);
	if (narrow)
		narrow(acc, acc, len);
	return icrc_copy(0, contribution(c, 0), acc, len);
}

static void round_once(struct inc_ctx *c, size_t len)
{
	reduce_fn narrow = reduce_narrow(c->desc->dtype);
	size_t near = first_half_len(c, len);
	uint8_t *result = contribution(c, 0);

	if (narrow == NULL)
		return;
	narrow(result, result, near);
	if (near < len)
		narrow(result + near, second_half(c), len - near);
}

void inc_complete(struct inc_ctx *c, struct inc_slot *slot)
{
	slot->complete = 1;
	if (INC_BUG(T2))
		*inc_slot_at(c->g, slot->tag + (uint32_t)c->g->m * c->g->w) = (struct inc_slot){0};
	inc_count(c->g, INC_C_COMPLETED);
	if (c->ctrl || c->pipe == INC_BCAST) {
		slot->pay_crc = c->ctrl ? c->desc->pay_crc : c->pay_crc;
		return;
	}
	if (c->g->flags & INC_F_REPRODUCIBLE) {
		slot->pay_crc = sum_in_order(c, slot->len);
		return;
	}
	round_once(c, slot->len);
	slot->pay_crc = icrc_append(0, contribution(c, 0), slot->len);
}

uint32_t inc_sum_next(struct inc_group *g)
{
	g->sum_next = inc_adjust(g, INC_FLOW_SUM, 0, g->sum_next);
	return g->sum_next;
}
