/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a ring (docs/inc-protocol.md, 13.1): ranks that disagree, and how it is told. */
#include <stdio.h>

#include "dataplane/inc/seeded_bugs.h"
#include "dataplane/netreduce/frames.h"

enum { RANKS_TEXT = 96 };

static const uint64_t TELL_GAP_NS = 10000000;

/* ---- failing ---- */

static bool leave_active(struct nr_ring *r, uint8_t state)
{
	uint8_t expected = NR_ACTIVE;

	return __atomic_compare_exchange_n(
		&r->state, &expected, state, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool nr_set_failed(struct nr_ring *r)
{
	return leave_active(r, NR_FAILED);
}

void nr_disagree(const struct nr_ctx *c, const struct nr_fail *f)
{
	if (!c->sure || !leave_active(c->r, NR_FAILING))
		return;
	c->r->fail = *f;
	__atomic_store_n(&c->r->state, NR_FAILED, __ATOMIC_RELEASE);
}

/* ---- telling ---- */

bool nr_is_failure(const struct wire_pkt *pkt)
{
	return pkt->opcode == ROCE_ACK &&
	       pkt->syndrome == (ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION);
}

static bool due(const struct nr_ctx *c, uint64_t *told_ns)
{
	if (*told_ns != 0 && c->now - *told_ns < TELL_GAP_NS)
		return false;
	*told_ns = c->now;
	c->r->count[NR_C_FAIL_NAK]++;
	return true;
}

/* A NAK acknowledges all before the PSN that it names: none that the receiver has not acknowledged,
 * so it names the oldest such one, or the packet at hand if that is older still. Both were sent and
 * the sender does not know better. */
static void tell_host(const struct nr_ctx *c, struct nr_in *in)
{
	const uint32_t psn = c->pkt->psn;

	if (!in->reply_qpn || !in->acked_known || INC_BUG(NR_MUTE) || !due(c, &in->told_ns))
		return;
	nr_emit_answer(c, in, ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION,
		psn_lt(psn, in->acked) || INC_BUG(NR_NAK) ? psn : in->acked);
}

/* Whoever is the other end of a virtual connection, but the one that has said so itself. */
static void tell_switches(const struct nr_ctx *c, unsigned except)
{
	if (INC_BUG(NR_ALONE))
		return;
	for (unsigned i = 0; i < c->r->n_in; i++) {
		struct nr_in *in = nr_in_at(c->r, i);

		if (!in->host && i != except && due(c, &in->told_ns))
			nr_emit_failure(c, i);
	}
	if (c->r->has_parent && except != NR_PARENT_EP && due(c, &c->r->parent_told_ns))
		nr_emit_failure(c, NR_PARENT_EP);
}

enum nr_drop nr_answer_failed(const struct nr_ctx *c, unsigned i)
{
	if (i != NR_PARENT_EP && nr_in_at(c->r, i)->host)
		tell_host(c, nr_in_at(c->r, i));
	tell_switches(c, nr_is_failure(c->pkt) ? i : NR_NOBODY);
	return NR_DROP_FAILED;
}

/* ---- words ---- */

const char *nr_fail_name(unsigned reason)
{
	static const char *const names[] = {
#define X(sym, name) name,
		NR_FAILS(X)
#undef X
	};

	return reason < NR_N_FAILS ? names[reason] : "?";
}

void nr_ranks_of(struct nr_ring *r, uint64_t inputs, char *buf, size_t cap)
{
	const uint64_t above = inputs >> NR_PARENT_EP & 1;
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned k = 0; k < r->n_ranks && at < cap; k++) {
		const uint8_t in = nr_rank_in(r)[k];

		if (in == 0xff ? above : inputs >> in & 1)
			at += (size_t)snprintf(buf + at, cap - at, "%s%u", at ? "," : "", k);
	}
}

void nr_fail_value(const struct nr_fail *f, uint32_t value, char *buf, size_t cap)
{
	if (f->reason == NR_FAIL_DTYPE)
		snprintf(buf, cap, "%s", reduce_dtype_name((enum reduce_dtype)value));
	else if (f->reason == NR_FAIL_OP)
		snprintf(buf, cap, "%s", reduce_op_name((enum reduce_op)value));
	else
		snprintf(buf, cap, "%u", value);
}

static void who(struct nr_ring *r, unsigned in, char *buf, size_t cap)
{
	char ranks[RANKS_TEXT];

	nr_ranks_of(r, 1ULL << in, ranks, sizeof(ranks));
	if (in == NR_PARENT_EP)
		snprintf(buf, cap, "the switch above");
	else if (nr_in_at(r, in)->host)
		snprintf(buf, cap, "rank %s", ranks);
	else
		snprintf(buf, cap, "the switch of ranks %s", ranks);
}

void nr_fail_text(struct nr_ring *r, char *buf, size_t cap)
{
	static const char *const what[] = {[NR_FAIL_DTYPE] = "dtype ",
		[NR_FAIL_OP] = "operation ",
		[NR_FAIL_LENGTH] = "bytes of data: ",
		[NR_FAIL_PACKETS] = "packets of a message: "};
	const struct nr_fail *f = &r->fail;
	char one[RANKS_TEXT + 32], other[RANKS_TEXT + 32], value[32], other_value[32];

	if (f->reason == NR_FAIL_MANAGER) {
		snprintf(buf, cap, "somebody has ended it (ring.fail), or nobody held it");
		return;
	}
	who(r, f->in, one, sizeof(one));
	if (f->reason == NR_FAIL_SWITCH) {
		snprintf(buf, cap, "%s has failed it", one);
		return;
	}
	if (f->other == NR_NOBODY)
		snprintf(other, sizeof(other), "the ring");
	else
		who(r, f->other, other, sizeof(other));
	nr_fail_value(f, f->value, value, sizeof(value));
	nr_fail_value(f, f->other_value, other_value, sizeof(other_value));
	snprintf(buf, cap, "message %u, packet %u: %s%s of %s, %s of %s", f->msg, f->o,
		what[f->reason], value, one, other_value, other);
}
