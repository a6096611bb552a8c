/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-II, connection translated: AllReduce (EPIC algorithm 1 with the repairs of
 * docs/inc-protocol.md, section 3). The switch has no timers and starts nothing by itself. */
#include "dataplane/inc/modules.h"

enum { FAIL_NAK_GAP_NS = 10000000, STALL_TIMER_CODE = 14 /* 1.28 ms */ };

/* Forward + ReplicateData: sends the result of a completed slot to every endpoint in outs. */
static void forward_slot(struct inc_ctx *c, const struct inc_slot *slot, uint64_t outs, bool mig)
{
	struct inc_desc *d = inc_desc_at(c->g, slot->desc);
	struct inc_position pos = inc_position_of(c->g, d, slot->tag);
	const struct inc_emit emit = {
		.out_mask = outs,
		.payload = slot->tag == d->ctrl_psn ? d->payload
						    : inc_payload_at(c->g, c->arena, slot->tag),
		.pay_crc = slot->pay_crc,
		.pay_len = slot->len,
		.opcode = pos.opcode,
		.ackreq = pos.ackreq,
		.mig = mig,
		.ce = slot->ce,
		.psn = slot->tag,
		.imm = d->imm,
	};

	c->g->count[INC_C_TX] += (unsigned)__builtin_popcountll(outs);
	c->sink->emit(c->sink->arg, c->g, &emit);
}

static bool is_root(const struct inc_group *g)
{
	return g->parent_ep == 0xff;
}

static uint64_t outs_up(const struct inc_group *g)
{
	return is_root(g) ? g->child_mask : 1ULL << g->parent_ep;
}

/* Receivers discarded the results that overtook a late one: send the run behind it again (3.4). */
static void late_flush(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	uint32_t window = (uint32_t)g->m * g->w;

	for (uint32_t k = 1; k < window; k++) {
		uint32_t psn = psn_add(c->pkt->psn, (int32_t)k);
		const struct inc_slot *slot = inc_slot_at(g, psn);

		if (!psn_le(psn, c->desc->last) || slot->tag != psn || !slot->complete)
			return;
		inc_count(g, INC_C_LATE_FLUSHED);
		forward_slot(c, slot, g->child_mask, c->pkt->mig);
	}
}

/* A host that waits long for its peers resends; without an answer its NIC would give up (3.6). Only
 * its oldest unacknowledged PSN may draw an RNR NAK: the NAK acknowledges everything before it. */
static void stall_rnr(struct inc_ctx *c)
{
	const struct inc_ep *ep = inc_ep_at(c->g, c->ep);

	if (!(c->g->flags & INC_F_STALL_RNR) || !ep->host || c->pkt->psn != ep->refl_next)
		return;
	inc_count(c->g, INC_C_STALL_RNR);
	inc_send_ack(c, c->ep, ROCE_AETH_RNR | STALL_TIMER_CODE, c->pkt->psn);
}

/* The asker has the result and lacks only the acknowledgement (3.3). Never answered from the slot,
 * which belongs to another PSN. */
static enum inc_drop answer_stale(struct inc_ctx *c)
{
	inc_count(c->g, INC_C_STALE);
	if (!inc_ep_at(c->g, c->ep)->host)
		return INC_DROP_PSN_STALE;
	inc_send_ack(c, c->ep, ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS, c->pkt->psn);
	return INC_DROP_DONE;
}

/* A duplicate of a complete slot (3.4): the tree root has the result, an interior switch only its
 * subtree's sum, which it sends upward again. */
static enum inc_drop answer_duplicate(struct inc_ctx *c, const struct inc_slot *slot)
{
	bool root = is_root(c->g);
	uint64_t asker = c->g->flags & INC_F_DUP_ALL ? c->g->child_mask : 1ULL << c->ep;

	inc_count(c->g, INC_C_DUP_ANSWERED);
	forward_slot(c, slot, root ? asker : outs_up(c->g), c->pkt->mig);
	if (!root) /* the result may still wait for ranks elsewhere in the tree */
		stall_rnr(c);
	return INC_DROP_DONE;
}

/* Control and data from a child: aggregated. */
static enum inc_drop up(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	struct inc_slot *slot = inc_slot_at(g, c->pkt->psn);
	enum inc_dup dup = inc_check_duplicate(g, slot, c->pkt->psn, c->ep);

	if (dup == INC_STALE)
		return answer_stale(c);
	if (dup == INC_FRESH)
		inc_aggregate_data(c, slot);
	else
		inc_count(g, INC_C_DUP);
	if ((slot->arrived & g->child_mask) != g->child_mask) {
		if (dup == INC_FRESH)
			return INC_DROP_CONSUMED;
		stall_rnr(c);
		return INC_DROP_DUP_WAIT;
	}
	if (dup == INC_DUP)
		return answer_duplicate(c, slot);
	inc_complete(c, slot);
	forward_slot(c, slot, outs_up(g), c->pkt->mig);
	if (is_root(g) && (g->flags & INC_F_LATE_FLUSH))
		late_flush(c);
	return INC_DROP_DONE;
}

/* Control and data from the parent: results, replicated without being stored. */
static enum inc_drop down(struct inc_ctx *c)
{
	struct inc_position pos = inc_position_of(c->g, c->desc, c->pkt->psn);
	const struct inc_emit emit = {
		.out_mask = c->g->child_mask,
		.payload = c->payload,
		.from_packet = true,
		.pay_crc = c->pay_crc,
		.pay_len = c->pkt->pay_len,
		.opcode = pos.opcode,
		.ackreq = pos.ackreq,
		.mig = c->pkt->mig,
		.ce = (c->pkt->tos & IP_ECN_MASK) == IP_ECN_CE,
		.psn = c->pkt->psn,
		.imm = c->pkt->imm,
	};

	c->g->last_progress_ns = c->now;
	c->g->count[INC_C_TX] += (unsigned)__builtin_popcountll(c->g->child_mask);
	c->sink->emit(c->sink->arg, c->g, &emit);
	return INC_DROP_DONE;
}

static enum inc_drop control(struct inc_ctx *c)
{
	enum inc_drop drop = inc_control(c);

	c->ctrl = true;
	if (drop == INC_DROP_PSN_STALE && c->ep != c->g->parent_ep)
		return answer_stale(c);
	if (drop != INC_OK)
		return drop;
	return c->ep == c->g->parent_ep ? down(c) : up(c);
}

static enum inc_drop data(struct inc_ctx *c)
{
	uint32_t psn = c->pkt->psn;
	struct inc_position pos;

	c->desc = inc_desc_find(c->g, psn);
	if (c->desc == NULL) {
		if (psn_le(c->g->next_ctrl, psn))
			return INC_DROP_NO_CONTROL;
		return c->cls == INC_CLASS_UP_DATA ? answer_stale(c) : INC_DROP_PSN_STALE;
	}
	/* Results may come down as soon as the operation is known: their senders have agreed. */
	if (c->cls == INC_CLASS_UP_DATA && !(c->desc->ctrl_seen >> c->ep & 1))
		return INC_DROP_NO_CONTROL;
	pos = inc_position_of(c->g, c->desc, psn);
	if (c->pkt->opcode != pos.opcode)
		return INC_DROP_OPCODE_POS;
	if (c->pkt->pay_len != pos.len)
		return INC_DROP_LENGTH_POS;
	return c->cls == INC_CLASS_UP_DATA ? up(c) : down(c);
}

/* A failed group says so once in a while, so that queue pairs stop at once (8.1). */
static enum inc_drop answer_failed(struct inc_ctx *c)
{
	struct inc_ep *ep = inc_ep_at(c->g, c->ep);
	bool request = c->cls == INC_CLASS_CTRL || c->cls == INC_CLASS_UP_DATA;

	if (request && (ep->fail_nak_ns == 0 || c->now - ep->fail_nak_ns >= FAIL_NAK_GAP_NS)) {
		ep->fail_nak_ns = c->now;
		inc_send_ack(c, c->ep, ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION, c->pkt->psn);
	}
	return INC_DROP_GROUP_FAILED;
}

enum inc_drop inc_mode2(struct inc_group *g, const struct inc_arena *arena,
	const struct inc_look *look, const struct wire_pkt *pkt, const uint8_t *payload,
	uint32_t pay_crc, uint64_t now, const struct inc_sink *sink)
{
	struct inc_ctx c = {
		.g = g,
		.arena = arena,
		.pkt = pkt,
		.payload = payload,
		.sink = sink,
		.now = now,
		.pay_crc = pay_crc,
		.ep = look->ep,
		.cls = look->cls,
	};

	inc_count(g, INC_C_RX);
	if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == INC_FAILED)
		return answer_failed(&c);
	switch (look->cls) {
	case INC_CLASS_CTRL:
		return control(&c);
	case INC_CLASS_UP_DATA:
	case INC_CLASS_DOWN_DATA:
		return data(&c);
	case INC_CLASS_ACK:
	case INC_CLASS_NAK:
	case INC_CLASS_RNR:
		return inc_reflect_ack(&c);
	case INC_CLASS_FATAL:
		inc_group_fail(g, INC_FAIL_FATAL_NAK, c.ep);
		return INC_DROP_GROUP_FAILED;
	default:
		return inc_reflect_cnp(&c);
	}
}
