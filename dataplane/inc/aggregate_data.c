/* SPDX-License-Identifier: BSD-3-Clause */
/* CheckDuplicate, RecycleBuffer, AggregateData on the slot ring (docs/inc-protocol.md, 3.1). */
#include "dataplane/inc/modules.h"

uint8_t *inc_payload_at(const struct inc_group *g, const struct inc_arena *arena, uint32_t psn)
{
	return arena->base + g->pay_off + (uint64_t)inc_idx(g, psn) * g->pay_stride;
}

/* RecycleBuffer: everything about the slot in a few stores. The payload need not be cleared: the
 * first contribution is copied. */
static void recycle_buffer(struct inc_slot *slot, uint32_t psn)
{
	*slot = (struct inc_slot){.tag = psn};
}

enum inc_dup inc_check_duplicate(
	struct inc_group *g, struct inc_slot *slot, uint32_t psn, unsigned ep)
{
	int32_t age = psn_diff(psn, slot->tag);

	(void)g;
	if (age < 0)
		return INC_STALE;
	if (age > 0)
		recycle_buffer(slot, psn);
	return slot->arrived >> ep & 1 ? INC_DUP : INC_FRESH;
}

/* REPRODUCIBLE groups keep each child's payload beside the others'. */
static uint8_t *contribution(const struct inc_ctx *c, unsigned ep)
{
	uint8_t *base = inc_payload_at(c->g, c->arena, c->pkt->psn);

	return c->g->flags & INC_F_REPRODUCIBLE ? base + (size_t)ep * c->g->mtu : base;
}

void inc_aggregate_data(struct inc_ctx *c, struct inc_slot *slot)
{
	uint8_t *to = contribution(c, c->ep);

	if (!c->ctrl) { /* a control is "added" by comparing, which inc_admit has done */
		if (slot->arrived == 0 || (c->g->flags & INC_F_REPRODUCIBLE))
			memcpy(to, c->payload, c->pkt->pay_len);
		else
			reduce_kernel(c->desc->op, c->desc->dtype)(to, c->payload, c->pkt->pay_len);
	}
	slot->arrived |= 1ULL << c->ep;
	slot->len = c->pkt->pay_len;
	slot->desc = c->desc->op_seq % INC_N_DESC;
	slot->ce |= (c->pkt->tos & IP_ECN_MASK) == IP_ECN_CE;
	c->g->last_progress_ns = c->now;
	inc_count(c->g, INC_C_CONSUMED);
}

void inc_complete(struct inc_ctx *c, struct inc_slot *slot)
{
	uint8_t *result = contribution(c, 0);

	slot->complete = 1;
	inc_count(c->g, INC_C_COMPLETED);
	if (c->ctrl) {
		slot->pay_crc = c->desc->pay_crc;
		return;
	}
	if (c->g->flags & INC_F_REPRODUCIBLE) {
		reduce_fn add = reduce_kernel(c->desc->op, c->desc->dtype);

		for (uint64_t in = c->route->in & (c->route->in - 1); in != 0; in &= in - 1)
			add(result, contribution(c, (unsigned)__builtin_ctzll(in)), slot->len);
	}
	slot->pay_crc = icrc_append(0, result, slot->len);
}
