/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of docs/inc-protocol.md, section 6. */
#include "dataplane/netreduce/engine.h"

#include "dataplane/inc/seeded_bugs.h"
#include "dataplane/netreduce/frames.h"

enum { MAX_MTU = 4096 };

/* ---- aggregators ---- */

static struct nr_buf *buf_at(const struct nr_ctx *c, const struct nr_agg *a, unsigned in)
{
	const uint32_t index = (uint32_t)(a - nr_agg_at(c->r, 0));

	return (struct nr_buf *)(c->arena->base + c->r->pay_off +
				 ((uint64_t)index * c->r->n_in + in) * c->r->buf_stride);
}

enum whose { OLDER, SAME, TOO_NEW };

/* Whose is the place (msg, o)? A message claims the slot of the one 2N' before it, which by the
 * window argument is complete in all its packets: whoever comes otherwise does not keep the rules.
 * Nothing is cleared but by the first arrival of a newer message. */
static enum whose claim(const struct nr_ctx *c, uint32_t msg, uint32_t o, struct nr_agg **agg)
{
	struct nr_msg *m = nr_msg_at(c->r, msg);
	const int32_t age = (int32_t)(msg - m->msg);

	*agg = nr_agg_at(c->r, nr_index(c->r, msg, o));
	if (age < 0)
		return OLDER;
	if (age > 0) {
		if ((age != (int32_t)c->r->n_msgs || m->results != c->r->m) && !INC_BUG(NR_AHEAD))
			return TOO_NEW;
		*m = (struct nr_msg){.msg = msg};
	}
	if ((*agg)->msg != msg && INC_BUG(NR_CLAIM))
		(*agg)->msg = msg;
	if ((*agg)->msg != msg)
		**agg = (struct nr_agg){.msg = msg};
	/* Before the first message there was none: what claims to be of one is not answered. */
	return (*agg)->result && !(*agg)->arrived ? OLDER : SAME;
}

/* What is to be done with a message: all ranks must say the same. */
static bool agree(const struct nr_ctx *c, unsigned i, const struct ina_hdr *h, uint32_t o)
{
	struct nr_msg *m = nr_msg_at(c->r, h->msg);
	struct nr_fail f = {.in = (uint8_t)i, .other = m->by, .msg = h->msg, .o = o};

	if (!m->known) {
		m->known = true;
		m->dtype = h->dtype;
		m->op = h->op;
		m->by = (uint8_t)i;
		return true;
	}
	if (m->dtype == h->dtype && m->op == h->op)
		return true;
	f.reason = m->dtype != h->dtype ? NR_FAIL_DTYPE : NR_FAIL_OP;
	f.value = m->dtype != h->dtype ? h->dtype : h->op;
	f.other_value = m->dtype != h->dtype ? m->dtype : m->op;
	nr_disagree(c, &f);
	return false;
}

/* The others of a packet have another length: the first of them is named. */
static void lengths_differ(const struct nr_ctx *c, const struct nr_agg *a, unsigned i)
{
	const uint64_t others = a->arrived & ~(1ULL << i);
	const uint32_t o = (uint32_t)(a - nr_agg_at(c->r, 0)) % c->r->m;

	if (others)
		nr_disagree(c, &(struct nr_fail){.reason = NR_FAIL_LENGTH,
				       .in = (uint8_t)i,
				       .other = (uint8_t)__builtin_ctzll(others),
				       .msg = a->msg,
				       .o = o,
				       .value = c->len,
				       .other_value = a->len});
}

static void store(const struct nr_ctx *c, struct nr_agg *a, unsigned in)
{
	const uint64_t bit = 1ULL << in;

	memcpy(nr_buf_data(buf_at(c, a, in)), c->data, c->len);
	a->ce |= (c->pkt->tos & IP_ECN_MASK) == IP_ECN_CE;
	a->len = c->len;
	c->r->last_progress_ns = c->now;
	c->r->count[a->arrived & bit ? NR_C_DUP : NR_C_CONSUMED]++;
	a->arrived |= bit;
}

/* The sum in ascending order of the inputs' ranks, whatever order they came in; it is always the
 * same bytes that are added, so that doing it again would change nothing. fp16 and bf16 are rounded
 * once. */
static void add_up(const struct nr_ctx *c, struct nr_agg *a, const struct nr_msg *m)
{
	const enum reduce_dtype dtype = (enum reduce_dtype)m->dtype;
	const reduce_fn add = reduce_accumulate((enum reduce_op)m->op, dtype);
	const reduce_fn narrow = reduce_narrow(dtype);
	const size_t len = a->len - a->len % reduce_size(dtype);
	uint8_t wide[2 * MAX_MTU], *first = nr_buf_data(buf_at(c, a, 0));
	uint8_t *sum = narrow ? wide : first;

	if (narrow)
		reduce_widen(dtype)(sum, first, len);
	for (unsigned i = 1; i < c->r->n_in; i++)
		add(sum, nr_buf_data(buf_at(c, a, i)), len);
	if (narrow)
		narrow(first, sum, len);
	a->pay_crc = icrc_append(0, first, a->len);
	a->sum = 1;
	c->r->count[NR_C_COMPLETED]++;
}

static void send_result(const struct nr_ctx *c, const struct nr_agg *a, unsigned i)
{
	const uint8_t *result = nr_buf_data(buf_at(c, a, 0));

	if (nr_in_at(c->r, i)->host)
		nr_emit_host(c, a, buf_at(c, a, i), i, result);
	else
		nr_emit_switch(c, a, i, result);
}

static void send_results(const struct nr_ctx *c, struct nr_agg *a)
{
	a->result = 1;
	nr_msg_at(c->r, a->msg)->results++;
	for (unsigned i = 0; i < c->r->n_in; i++)
		send_result(c, a, i);
}

/* All inputs are there: to the parent, or it is the result. */
static void complete(const struct nr_ctx *c, struct nr_agg *a, const struct nr_msg *m)
{
	add_up(c, a, m);
	if (c->r->has_parent)
		nr_emit_switch(c, a, NR_PARENT_EP, nr_buf_data(buf_at(c, a, 0)));
	else
		send_results(c, a);
}

/* A host that waits for slower ones resends until its NIC gives up. Only its oldest unacknowledged
 * packet may be answered so: the answer acknowledges everything before it (3.6). */
static void stall_rnr(const struct nr_ctx *c, unsigned i)
{
	const struct nr_in *in = nr_in_at(c->r, i);

	if (!(c->r->flags & NR_F_STALL_RNR) || !in->host || !in->reply_qpn || !in->acked_known ||
		c->pkt->psn != in->acked)
		return;
	c->r->count[NR_C_STALL_RNR]++;
	nr_emit_rnr(c, in);
}

/* A contribution that passed all checks, for an aggregator of its message. */
static enum nr_drop contribute(const struct nr_ctx *c, struct nr_agg *a, unsigned i)
{
	const struct nr_msg *m = nr_msg_at(c->r, a->msg);
	const bool dup = a->arrived >> i & 1;

	if (a->arrived && c->len != a->len) {
		lengths_differ(c, a, i);
		return NR_DROP_LENGTH;
	}
	if (nr_in_at(c->r, i)->host)
		nr_store_head(
			c, buf_at(c, a, i)); /* also of a repetition: it is the one to answer */
	if (a->result) {
		c->r->count[NR_C_DUP_ANSWERED]++;
		if (!INC_BUG(NR_DUP))
			send_result(c, a, i);
		return NR_DROP_DONE;
	}
	if (a->sum) { /* the sum or the result was lost between switches */
		c->r->count[NR_C_UP_AGAIN]++;
		if (!INC_BUG(NR_UP))
			nr_emit_switch(c, a, NR_PARENT_EP, nr_buf_data(buf_at(c, a, 0)));
		stall_rnr(c, i);
		return NR_DROP_DONE;
	}
	store(c, a, i);
	/* Without any rank's first packet it is not known what to do: it will be sent again. */
	if (a->arrived == c->r->inputs && m->known) {
		complete(c, a, m);
		return NR_DROP_DONE;
	}
	if (!dup)
		return NR_DROP_CONSUMED;
	stall_rnr(c, i);
	return NR_DROP_DUP_WAIT;
}

/* ---- hosts ---- */

static uint16_t full_len(const struct nr_ring *r, uint32_t o)
{
	return (uint16_t)(r->mtu - (o == 0 ? INA_LEN : 0));
}

/* A host has set out with other numbers than the ring was made with. */
static enum nr_drop not_as_made(const struct nr_ctx *c, struct nr_fail f, enum nr_drop drop)
{
	f.other = NR_NOBODY;
	nr_disagree(c, &f);
	return drop;
}

/* Packets have the path MTU but for a message's last. Of input i, message msg, place o. */
static enum nr_drop check_place(const struct nr_ctx *c, unsigned i, uint32_t msg, uint32_t o)
{
	const bool last = o == c->r->m - 1u, ends = c->pkt->flags & ROCE_F_LAST;
	struct nr_fail f = {.in = (uint8_t)i, .msg = msg, .o = o};

	if (!(c->pkt->flags & ROCE_F_FIRST) != (o != 0))
		return NR_DROP_OPCODE;
	if (ends != last) {
		f.reason = NR_FAIL_PACKETS;
		f.value = ends ? o + 1 : c->r->m + 1u; /* at least */
		f.other_value = c->r->m;
		return not_as_made(c, f, NR_DROP_OPCODE);
	}
	if (last ? c->len > full_len(c->r, o) : c->len != full_len(c->r, o)) {
		f.reason = NR_FAIL_LENGTH;
		f.value = c->len;
		f.other_value = full_len(c->r, o);
		return not_as_made(c, f, NR_DROP_LENGTH);
	}
	return NR_FORWARD;
}

static bool belongs(const struct nr_ring *r, const struct ina_hdr *h, uint16_t rank)
{
	return h->ring == r->id && h->rank == rank;
}

static bool can_add(const struct ina_hdr *h)
{
	return reduce_kernel((enum reduce_op)h->op, (enum reduce_dtype)h->dtype) != NULL;
}

static enum nr_drop forward_stale(const struct nr_ctx *c)
{
	c->r->count[NR_C_STALE_FORWARDED]++;
	return NR_FORWARD;
}

static enum nr_drop foreign(const struct nr_ctx *c)
{
	c->r->count[NR_C_FOREIGN]++;
	return NR_FORWARD;
}

/* Messages of a connection lie M PSNs apart, in the order of their numbers. Where messages of
 * others are between them, they lie further apart. */
static bool in_order(const struct nr_ring *r, const struct nr_in *in, uint32_t msg, uint32_t psn)
{
	const int32_t ahead = (int32_t)(msg - in->top_msg), limit = (int32_t)r->n_msgs;
	const int32_t psns = psn_diff(psn, in->top_psn0);

	if (ahead < -limit || ahead > limit)
		return false;
	if (!in->mixed)
		return psns == ahead * r->m;
	return ahead >= 0 ? psns >= ahead * r->m : psns <= ahead * r->m;
}

static void move_row(struct nr_in *in, uint32_t msg, uint32_t psn)
{
	if (!in->known || (int32_t)(msg - in->top_msg) > 0) {
		in->top_msg = msg;
		in->top_psn0 = psn;
	}
	in->known = true;
	in->foreign = false;
	in->msg = msg;
	in->psn0 = psn;
}

/* First packet of a message: says which one, and moves the connection's row there, forward or (the
 * sender goes back) backward. */
static enum nr_drop host_first(struct nr_ctx *c, unsigned i)
{
	struct nr_in *in = nr_in_at(c->r, i);
	struct ina_hdr h;
	struct nr_agg *a;
	enum nr_drop bad;
	enum whose whose;

	if (c->pkt->pay_len < INA_LEN || !ina_decode(c->data, &h)) {
		in->foreign = in->mixed = true;
		in->foreign_psn = c->pkt->psn;
		return foreign(c);
	}
	if (!belongs(c->r, &h, in->min_rank) ||
		(in->known && !in_order(c->r, in, h.msg, c->pkt->psn)))
		return NR_DROP_HEADER;
	c->sure = true;
	if (h.packets != c->r->m)
		return not_as_made(c,
			(struct nr_fail){.reason = NR_FAIL_PACKETS,
				.in = (uint8_t)i,
				.msg = h.msg,
				.value = h.packets,
				.other_value = c->r->m},
			NR_DROP_HEADER);
	if (!can_add(&h))
		return NR_DROP_HEADER;
	nr_skip_ina(c);
	bad = check_place(c, i, h.msg, 0);
	if (bad != NR_FORWARD)
		return bad;
	whose = claim(c, h.msg, 0, &a);
	if (whose == TOO_NEW)
		return NR_DROP_AHEAD;
	if (whose == OLDER && !in->known) /* how could it be complete without this rank? */
		return NR_DROP_HEADER;
	if (whose == SAME && !agree(c, i, &h, 0))
		return NR_DROP_MISMATCH;
	move_row(in, h.msg, c->pkt->psn);
	return whose == OLDER ? forward_stale(c) : contribute(c, a, i);
}

/* Any other packet: its place follows from the PSN, because all messages have M packets. It may be
 * of a later message than the row's (the first packet was lost) or of an earlier one (the sender
 * went back into its middle): the row stays. */
static enum nr_drop host_other(struct nr_ctx *c, unsigned i)
{
	const struct nr_in *in = nr_in_at(c->r, i);
	const int32_t m = c->r->m, range = (int32_t)c->r->n_msgs * m;
	int32_t o = psn_diff(c->pkt->psn, in->psn0), k;
	enum nr_drop bad;
	struct nr_agg *a;

	if (in->foreign && psn_le(in->foreign_psn, c->pkt->psn))
		return foreign(c);
	if (!in->known)
		return NR_DROP_NO_FIRST;
	if (o < -range || o >= range || (INC_BUG(T25) && o < 0))
		return NR_DROP_RANGE;
	k = (o >= 0 ? o : o - m + 1) / m; /* floor */
	o -= k * m;
	/* Behind a first packet that was not seen may be a message of others. */
	c->sure = k == 0 || (k < 0 && !in->mixed);
	bad = check_place(c, i, in->msg + (uint32_t)k, (uint32_t)o);
	if (bad != NR_FORWARD)
		return bad;
	switch (claim(c, in->msg + (uint32_t)k, (uint32_t)o, &a)) {
	case OLDER:
		return forward_stale(c);
	case TOO_NEW:
		return NR_DROP_AHEAD;
	default:
		return contribute(c, a, i);
	}
}

static bool is_request(const struct nr_ctx *c)
{
	return c->pkt->flags & (ROCE_F_SEND | ROCE_F_WRITE) &&
	       (c->pkt->opcode & ~ROCE_OP_MASK) == ROCE_RC;
}

static enum nr_drop host(struct nr_ctx *c, unsigned i)
{
	if (!is_request(c))
		return NR_FORWARD;
	if (!nr_icrc_ok(c))
		return NR_ICRC_BAD;
	return c->pkt->flags & ROCE_F_FIRST ? host_first(c, i) : host_other(c, i);
}

/* What the receiver of a host's packets answers goes on as it is; but note how far it is. */
static enum nr_drop reply(struct nr_ctx *c, unsigned i)
{
	struct nr_in *in = nr_in_at(c->r, i);
	const uint8_t cls = c->pkt->syndrome & ROCE_AETH_CLASS;
	uint32_t next = c->pkt->psn;

	if (c->pkt->opcode != ROCE_ACK || !nr_icrc_ok(c))
		return NR_FORWARD;
	if (cls == ROCE_AETH_ACK)
		next = psn_add(next, 1);
	else if (cls != ROCE_AETH_RNR && c->pkt->syndrome != ROCE_AETH_NAK)
		return NR_FORWARD;
	if (in->known && !in->mixed && !psn_le(next, psn_add(in->top_psn0, c->r->m)))
		return NR_FORWARD; /* of what its sender has not begun to send */
	if (!in->acked_known || psn_lt(in->acked, next)) {
		in->acked_known = true;
		in->acked = next;
		in->ack_msn = c->pkt->msn;
	}
	return NR_FORWARD;
}

/* ---- switches ---- */

/* Place of a packet between switches: PSN = msg * M + o, and the header says msg. */
static enum nr_drop read_virtual(struct nr_ctx *c, uint16_t rank, struct ina_hdr *h, uint32_t *o)
{
	if (c->pkt->opcode != ROCE_SEND_ONLY)
		return NR_DROP_OPCODE;
	if (!nr_icrc_ok(c))
		return NR_ICRC_BAD;
	if (c->pkt->pay_len < INA_LEN || !ina_decode(c->data, h) || !belongs(c->r, h, rank) ||
		h->packets != c->r->m || !can_add(h))
		return NR_DROP_HEADER;
	*o = (c->pkt->psn - h->msg * c->r->m) & PSN_MASK;
	if (*o >= c->r->m)
		return NR_DROP_RANGE;
	nr_skip_ina(c);
	if (*o + 1 < c->r->m ? c->len != full_len(c->r, *o) : c->len > full_len(c->r, *o))
		return NR_DROP_LENGTH;
	c->sure = true;
	return NR_FORWARD;
}

/* The ring has failed at the other end of a virtual connection. */
static enum nr_drop failed_there(struct nr_ctx *c, unsigned i)
{
	if (!nr_icrc_ok(c))
		return NR_ICRC_BAD;
	c->sure = true;
	nr_disagree(c, &(struct nr_fail){.reason = NR_FAIL_SWITCH, .in = (uint8_t)i});
	return NR_DROP_FAILED;
}

/* A subtree's sum. */
static enum nr_drop from_below(struct nr_ctx *c, unsigned i)
{
	struct ina_hdr h;
	struct nr_agg *a;
	uint32_t o;
	enum nr_drop bad = read_virtual(c, nr_in_at(c->r, i)->min_rank, &h, &o);

	if (bad != NR_FORWARD)
		return bad;
	switch (claim(c, h.msg, o, &a)) {
	case OLDER:
		return NR_DROP_STALE;
	case TOO_NEW:
		return NR_DROP_AHEAD;
	default:
		return agree(c, i, &h, o) ? contribute(c, a, i) : NR_DROP_MISMATCH;
	}
}

/* A result: takes the sum's place and goes to all inputs. */
static enum nr_drop from_parent(struct nr_ctx *c)
{
	struct ina_hdr h;
	struct nr_agg *a;
	uint32_t o;
	enum nr_drop bad = read_virtual(c, nr_in_at(c->r, 0)->min_rank, &h, &o);

	if (bad != NR_FORWARD)
		return bad;
	a = nr_agg_at(c->r, nr_index(c->r, h.msg, o));
	if (a->msg != h.msg)
		return (int32_t)(h.msg - a->msg) < 0 ? NR_DROP_STALE : NR_DROP_AHEAD;
	if (a->result)
		return NR_DROP_DUP_RESULT;
	if (!a->sum)
		return NR_DROP_AHEAD;
	if (!agree(c, NR_PARENT_EP, &h, o))
		return NR_DROP_MISMATCH;
	if (c->len != a->len) {
		lengths_differ(c, a, NR_PARENT_EP);
		return NR_DROP_LENGTH;
	}
	a->pay_crc = icrc_copy(0, nr_buf_data(buf_at(c, a, 0)), c->data, c->len);
	a->ce |= (c->pkt->tos & IP_ECN_MASK) == IP_ECN_CE;
	c->r->last_progress_ns = c->now;
	c->r->count[NR_C_RESULTS]++;
	send_results(c, a);
	return NR_DROP_DONE;
}

/* ---- any ---- */

/* No sum is made any more. Whoever asks is told; what hosts say to each other but requests goes on.
 */
static enum nr_drop has_failed(struct nr_ctx *c, const struct nr_look *look)
{
	if (look->row == NR_ROW_REPLY)
		return reply(c, look->in);
	if (look->row == NR_ROW_HOST && (!is_request(c) || INC_BUG(NR_PASS)))
		return NR_FORWARD;
	if (!nr_icrc_ok(c))
		return NR_ICRC_BAD;
	if (nr_is_failure(c->pkt))
		return NR_DROP_FAILED; /* it is known */
	return nr_answer_failed(c, look->row == NR_ROW_PARENT ? NR_PARENT_EP : look->in);
}

static enum nr_drop works(struct nr_ctx *c, const struct nr_look *look)
{
	switch (look->row) {
	case NR_ROW_HOST:
		return host(c, look->in);
	case NR_ROW_REPLY:
		return reply(c, look->in);
	case NR_ROW_SWITCH:
		return nr_is_failure(c->pkt) ? failed_there(c, look->in) : from_below(c, look->in);
	default:
		return nr_is_failure(c->pkt) ? failed_there(c, NR_PARENT_EP) : from_parent(c);
	}
}

static bool is_failed(const struct nr_ring *r)
{
	return __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) >= NR_FAILING;
}

enum nr_drop nr_rx(const struct nr_look *look, const struct inc_arena *arena, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now, const struct nr_sink *sink)
{
	struct nr_ctx c = {
		.r = look->ring,
		.arena = arena,
		.pkt = pkt,
		.frame = frame,
		.data = frame + pkt->pay_off,
		.len = pkt->pay_len,
		.now = now,
		.sink = sink,
	};
	enum nr_drop drop;

	c.r->count[NR_C_RX]++;
	if (is_failed(c.r))
		return has_failed(&c, look);
	drop = works(&c, look);
	if (is_failed(c.r) && drop != NR_FORWARD && drop != NR_ICRC_BAD)
		nr_answer_failed(&c, look->row == NR_ROW_PARENT ? NR_PARENT_EP : look->in);
	return drop;
}

/* ---- the table ---- */

unsigned nr_rows(
	struct nr_ring *r, struct nr_key key[NR_MAX_ROWS], struct nr_look look[NR_MAX_ROWS])
{
	const bool strict = r->flags & NR_F_STRICT_PORT;
	unsigned n = 0;

	for (unsigned i = 0; i < r->n_in; i++) {
		const struct nr_in *in = nr_in_at(r, i);

		key[n] = in->key;
		look[n++] = (struct nr_look){r, in->host ? NR_ROW_HOST : NR_ROW_SWITCH, (uint8_t)i,
			strict ? in->port : NR_ANY_PORT};
		if (!in->host || !in->reply_qpn)
			continue;
		key[n] = (struct nr_key){in->key.dst, in->key.src, in->reply_qpn};
		look[n++] = (struct nr_look){
			r, NR_ROW_REPLY, (uint8_t)i, strict ? in->back_port : NR_ANY_PORT};
	}
	if (r->has_parent) {
		key[n] = r->parent_key;
		look[n++] = (struct nr_look){
			r, NR_ROW_PARENT, 0, strict ? r->parent_port : NR_ANY_PORT};
	}
	return n;
}
