/* SPDX-License-Identifier: BSD-3-Clause */
/* A host: go-back-N requester and responder of one queue pair, and CommLib's rules for what may be
 * sent when (docs/inc-protocol.md, 2.3, 2.4, 3.7). One NAK for a gap, an ACK for a message, the
 * last ACK again for a duplicate, lazy skipping of PSNs that the rank does not receive. */
#include <string.h>

#include "dataplane/inc/seeded_bugs.h"
#include "tests/model/host_answer.h"
#include "tests/model/host_priv.h"
#include "tests/model/host_sr.h"
#include "tests/model/model.h"
#include "tests/model/mutants.h"

enum { RNR_CODE = 12 };

const struct mc_host_state *mc_host(const struct mc_sys *s, unsigned node, uint32_t state)
{
	uint32_t len;

	return intern_get(&s->nodes[node], state, &len);
}

static bool is_sr(const struct mc_sys *s)
{
	return s->cfg.flags & INC_F_SR;
}

/* As it begins, in the first group or in the second. */
static struct mc_host_state fresh(const struct mc_sys *s, unsigned node, bool again)
{
	struct mc_host_state h = {.again = again};

	h.una = h.next = h.high = mc_next_send(s, &h, mc_rank_of(s, node), 0);
	return h;
}

uint32_t mc_host_initial(struct mc_sys *s, unsigned node)
{
	const struct mc_host_state h = fresh(s, node, false);

	return intern_add(&s->nodes[node], &h, sizeof(h));
}

/* ---- PSNs ---- */

/* In Mode-I each direction of a connection numbers what is sent on it, and nothing else. */
static uint32_t psn_of(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i, bool sent)
{
	unsigned n = i;

	for (unsigned k = 0; s->cfg.mode == INC_MODE_1 && k < i; k++)
		n -= !(sent ? mc_sends(s, r, k) : mc_receives(s, r, k));
	return psn_add(s->first_psn[h->again], (int32_t)n);
}

/* The inverse; what is behind the last one stays out of range. */
static unsigned index_of(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, uint32_t psn, bool sent)
{
	unsigned i = (psn - s->first_psn[h->again]) & PSN_MASK, n = 0;

	if (s->cfg.mode != INC_MODE_1)
		return i;
	for (unsigned k = 0; k < s->prog.n; k++)
		if ((sent ? mc_sends(s, r, k) : mc_receives(s, r, k)) && n++ == i)
			return k;
	return i == n ? s->prog.n : s->prog.n + 1;
}

/* Again from op `from` on, as a queue pair that was reset: what it has done is done. */
static struct mc_host_state begun_anew(const struct mc_sys *s, unsigned r, unsigned from)
{
	struct mc_host_state h = {.from = (uint8_t)from, .epsn = s->prog.ctrl[from]};

	h.una = h.next = h.high = mc_next_send(s, &h, r, h.epsn);
	return h;
}

bool mc_host_finished(const struct mc_sys *s, unsigned node, uint32_t state, unsigned ops)
{
	return mc_finished_before(
		s, mc_host(s, node, state), mc_rank_of(s, node), s->prog.ctrl[ops]);
}

/* Packets that were sent and are not acknowledged. */
static unsigned in_flight(const struct mc_sys *s, const struct mc_host_state *h, unsigned r)
{
	unsigned n = 0;

	for (unsigned i = h->una; i < h->next; i++)
		n += mc_sends(s, r, i);
	return n;
}

static unsigned flags_of(const struct mc_sys *s, const struct mc_host_state *state, unsigned r)
{
	struct mc_host_state looks = *state;
	const struct mc_host_state *h = &looks;
	unsigned flags = h->again ? MC_H_AGAIN : 0;

	if (is_sr(s) && !h->rnr)
		mc_sr_pass(&looks);
	if (h->gone) {
		flags |= MC_H_GONE;
	} else if (h->err) {
		flags |= MC_H_ERR;
	} else {
		if (!h->rnr && h->next < mc_host_end(s, h) &&
			in_flight(s, h, r) < s->cfg.in_flight &&
			(h->next < h->high || !s->prog.psn[h->next].first ||
				mc_admitted(s, h, r, h->next)))
			flags |= MC_H_SEND;
		if (h->rnr)
			flags |= MC_H_RNR;
		else if (h->una < h->high && h->next > h->una)
			flags |= MC_H_TIMER;
		if (h->una == s->prog.n && mc_next_receive(s, h, r, h->epsn) == s->prog.n &&
			!h->answer)
			flags |= MC_H_DONE;
		if (h->answer)
			flags |= MC_H_ANSWER;
	}
	return flags;
}

unsigned mc_host_flags(struct mc_sys *s, unsigned node, uint32_t state)
{
	uint16_t *have = &s->host_flags[node][state];

	if (*have == 0)
		*have = (uint16_t)(0x8000 |
				   flags_of(s, mc_host(s, node, state), mc_rank_of(s, node)));
	return *have & 0x7fffu;
}

/* ---- packets out ---- */

static void emit(struct mc_sys *s, const struct wire_flow *flow, const struct wire_hdr *hdr,
	const void *payload, unsigned len, struct mc_result *res)
{
	uint8_t frame[MC_FRAME];
	int n = wire_build_frame(frame, sizeof(frame), flow, hdr, payload, len);

	res->out[res->n].port = 0;
	res->out[res->n++].frame = mc_frame_id(s, frame, (size_t)n);
}

static unsigned first_of(const struct mc_sys *s, unsigned i)
{
	while (!s->prog.psn[i].first)
		i--;
	return i;
}

static void send_next(struct mc_sys *s, struct mc_host_state *h, unsigned r, struct mc_result *res)
{
	const struct mc_psn *q = &s->prog.psn[h->next];
	const bool asks = is_sr(s) && h->next < h->high && !MUT(SR_SILENT);
	uint8_t payload[MC_MTU];
	unsigned len = mc_payload_sent(&s->cfg, &s->prog, r, h->again, h->next, payload);
	const struct wire_hdr hdr = {
		.opcode = q->opcode,
		.ackreq = asks || (MUT(ACKREQ_FIRST) ? q->first : q->last),
		.mig = true,
		.dqpn = s->cfg.again ? s->peer_qpn[h->again][r] : s->dqpn[r],
		.psn = psn_of(s, h, r, h->next, true),
		.imm = mc_has_imm(&s->cfg, q) ? mc_imm(&s->cfg, &s->prog, h->next) +
							(MUT(IMM_RESENT) && h->next < h->high)
					      : 0,
		/* Of a WRITE: in a ring the next rank's, else the switch looks at none of them. */
		.va = mc_write_va(&s->cfg, &s->prog, h->next),
		.rkey = mc_write_rkey((r + 1) % s->n_ranks),
		.dmalen = mc_write_len(&s->cfg, &s->prog, h->next),
		.pos_offset = (h->next - first_of(s, h->next)) * MC_MTU,
		.pos_recv = mc_messages_sent(s, h, r, h->next),
	};

	emit(s, &s->flow[r], &hdr, payload, len, res);
	if (is_sr(s))
		mc_sr_sent(h);
	h->next = h->one ? h->high : mc_next_send(s, h, r, h->next + 1u);
	h->one = 0;
	if (h->next > h->high)
		h->high = h->next;
}

/* SR: what has come behind a missing packet goes with each ACK and NAK. */
static void answer(struct mc_sys *s, struct mc_host_state *h, unsigned r, uint8_t syndrome,
	uint32_t psn, struct mc_result *res)
{
	const bool tells = is_sr(s) && (syndrome == ROCE_AETH_NAK ||
					       (syndrome == ROCE_AETH_ACK && !MUT(SR_NO_TALE)));
	const uint64_t map = tells ? mc_sr_map(h) : 0;
	uint8_t bytes[8];
	const struct wire_hdr hdr = {
		.opcode = ROCE_ACK | (is_sr(s) ? ROCE_SEL : 0),
		.mig = true,
		.syndrome = map ? ROCE_AETH_NAK : syndrome,
		.dqpn = s->cfg.again ? s->peer_qpn[h->again][r] : s->reply_qpn[r],
		.psn = map ? psn_of(s, h, r, h->epsn, false) : psn,
		.msn = mc_messages_received(s, h, r, h->epsn),
	};

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(map >> 8 * i);
	if (map)
		h->nak = 1;
	emit(s, &s->reply[r], &hdr, bytes, map ? sizeof(bytes) : 0, res);
}

/* What has waited: as things are now. */
static void send_answer(
	struct mc_sys *s, struct mc_host_state *h, unsigned r, struct mc_result *res)
{
	const uint8_t kind = h->answer;
	const uint32_t missing = psn_of(s, h, r, mc_next_receive(s, h, r, h->epsn), false);

	if (kind == MC_ANSWER_ACK)
		answer(s, h, r, ROCE_AETH_ACK, psn_add(psn_of(s, h, r, h->acks, false), -1), res);
	else if (kind == MC_ANSWER_NAK)
		answer(s, h, r, ROCE_AETH_NAK, missing, res);
	else
		answer(s, h, r, ROCE_AETH_RNR | RNR_CODE, missing, res);
	mc_answered(h);
}

/* ---- packets in ---- */

static const char *check_delivery(struct mc_sys *s, const struct mc_host_state *h, unsigned r,
	unsigned i, const struct wire_pkt *pkt, const uint8_t *payload)
{
	const struct mc_psn *q = &s->prog.psn[i];
	uint8_t due[MC_MTU];
	unsigned len = mc_payload_due(&s->cfg, &s->prog, r, h->again, i, due);

	if (pkt->opcode != q->opcode)
		return "a delivered packet has a wrong opcode";
	if (is_sr(s) && (pkt->pos_recv != mc_messages_received(s, h, r, i) ||
				pkt->pos_offset != (i - first_of(s, i)) * MC_MTU))
		return "a delivered packet has a wrong place";
	/* A switch of Mode-III asks more often (T17), and with SR of whom it sends something again.
	 */
	if (!pkt->ackreq && q->last)
		return "a delivered packet lacks AckReq";
	if (pkt->ackreq && !q->last && s->cfg.mode != INC_MODE_3 && !is_sr(s))
		return "a delivered packet has a wrong AckReq";
	if (mc_has_imm(&s->cfg, q) && pkt->imm != mc_imm(&s->cfg, &s->prog, i))
		return "a delivered packet has a wrong immediate";
	if (pkt->flags & ROCE_F_WRITE && q->first &&
		(pkt->rkey != mc_write_rkey(r) || pkt->va != mc_write_va(&s->cfg, &s->prog, i) ||
			pkt->dmalen != mc_write_len(&s->cfg, &s->prog, i)))
		return "a delivered packet is to be written elsewhere";
	if (pkt->pay_len != len || memcmp(payload, due, len) != 0)
		return "a delivered result differs from the reference";
	return NULL;
}

/* Mode-I: the WRITE with which a group that has failed ends whoever only waits. */
static bool is_last_word(const struct mc_sys *s, const struct wire_pkt *pkt)
{
	return s->cfg.mode == INC_MODE_1 && pkt->flags & ROCE_F_WRITE;
}

/* Refused, once it is its turn. */
static void last_word(struct mc_sys *s, struct mc_host_state *h, unsigned r,
	const struct wire_pkt *pkt, struct mc_result *res)
{
	const uint32_t due = psn_of(s, h, r, mc_next_receive(s, h, r, h->epsn), false);

	if (!mc_may_fail(&s->cfg)) {
		res->violation = "a WRITE";
	} else if (pkt->psn == due) {
		answer(s, h, r, ROCE_AETH_NAK | ROCE_NAK_REMOTE_ACCESS, pkt->psn, res);
		res->verdict = "refused: the group has failed";
		h->err = 1;
	} else if (psn_lt(due, pkt->psn) && !h->nak) {
		answer(s, h, r, ROCE_AETH_NAK, due, res);
		res->verdict = "gap";
		h->nak = 1;
	} else {
		res->verdict = "gap, NAK was sent";
	}
}

/* What was sent to a queue pair that had this number before: old, or behind a gap. */
static void of_the_first(struct mc_sys *s, struct mc_host_state *h, unsigned r,
	const struct wire_pkt *pkt, struct mc_result *res)
{
	const uint32_t expected = psn_of(s, h, r, mc_next_receive(s, h, r, h->epsn), false);

	res->verdict = "of the first group";
	if (psn_lt(pkt->psn, expected)) {
		answer(s, h, r, ROCE_AETH_ACK, psn_add(psn_of(s, h, r, h->epsn, false), -1), res);
	} else if (!h->nak) {
		h->nak = 1;
		answer(s, h, r, ROCE_AETH_NAK, expected, res);
	}
}

/* SR: the one that is missing, or one behind it. */
static void receive_next(struct mc_sys *s, struct mc_host_state *h, unsigned r,
	const struct wire_pkt *pkt, struct mc_result *res)
{
	res->verdict = "delivered";
	if (mc_sr_take(h, pkt->ackreq))
		answer(s, h, r, ROCE_AETH_ACK, psn_add(psn_of(s, h, r, h->epsn, false), -1), res);
}

static void receive_ahead(struct mc_sys *s, struct mc_host_state *h, unsigned r, unsigned i,
	const struct wire_pkt *pkt, struct mc_result *res)
{
	res->verdict = "kept";
	if (!mc_sr_keep(h, i, pkt->ackreq) && h->nak)
		return;
	h->nak = 1;
	answer(s, h, r, ROCE_AETH_NAK, psn_of(s, h, r, h->epsn, false), res);
}

static void receive_data(struct mc_sys *s, struct mc_host_state *h, unsigned r,
	const struct wire_pkt *pkt, const uint8_t *payload, struct mc_result *res)
{
	unsigned i = index_of(s, h, r, pkt->psn, false),
		 expected = mc_next_receive(s, h, r, h->epsn);

	if (is_last_word(s, pkt)) {
		last_word(s, h, r, pkt, res);
	} else if (s->cfg.resync && (i >= mc_host_end(s, h) || (i >= h->epsn && i < expected))) {
		res->violation = "a packet comes that an unmodified NIC would take for another";
	} else if (i >= s->prog.n && h->again) {
		of_the_first(s, h, r, pkt, res);
	} else if (i >= s->prog.n) {
		res->violation = "a packet has a PSN that nobody uses";
	} else if (s->cfg.mismatch_rank != MC_NONE && s->prog.psn[i].op >= s->cfg.mismatch_op &&
		   (i == expected || !mc_is_ring(s))) {
		/* Of a ring what is behind the disagreement may come: it is behind a gap. */
		res->violation = "a result of an operation on which the ranks disagree";
	} else if (is_sr(s) && i >= expected) {
		res->violation = check_delivery(s, h, r, i, pkt, payload);
		if (i == expected)
			receive_next(s, h, r, pkt, res);
		else
			receive_ahead(s, h, r, i, pkt, res);
	} else if (i == expected) {
		res->violation = check_delivery(s, h, r, i, pkt, payload);
		res->verdict = "delivered";
		h->epsn = (uint8_t)(i + 1);
		if (INC_BUG(T7))
			h->epsn = mc_next_receive(s, h, r, h->epsn);
		if (s->cfg.coalesce) {
			mc_answer_taken(h, i, pkt->ackreq);
			return;
		}
		h->nak = MUT(NAK_STICKS) ? h->nak : 0;
		if ((pkt->ackreq || MUT(ACK_EACH)) && !MUT(ACK_NEVER))
			answer(s, h, r, ROCE_AETH_ACK, psn_add(pkt->psn, -MUT(ACK_BEFORE)), res);
	} else if (i < h->epsn) {
		res->verdict = "duplicate";
		h->nak = MUT(DUP_GAP) ? 0 : h->nak;
		if (s->cfg.coalesce)
			mc_answer_duplicate(h);
		else if (!MUT(DUP_SILENT))
			answer(s, h, r, ROCE_AETH_ACK,
				MUT(DUP_OWN_PSN) ? pkt->psn
						 : psn_add(psn_of(s, h, r, h->epsn, false), -1),
				res);
	} else if (i < expected) {
		res->verdict = "skipped PSN";
	} else if (s->cfg.coalesce) {
		res->verdict = "gap";
		mc_answer_gap(h, i);
	} else if (!h->nak && !MUT(NAK_NEVER)) {
		res->verdict = "gap";
		h->nak = !MUT(NAK_EACH);
		answer(s, h, r, ROCE_AETH_NAK,
			MUT(NAK_PSN) ? pkt->psn : psn_of(s, h, r, expected, false), res);
	} else {
		res->verdict = "gap, NAK was sent";
	}
}

bool mc_host_would_take(struct mc_sys *s, unsigned node, uint32_t state, uint32_t frame)
{
	const struct mc_host_state *h = mc_host(s, node, state);
	const uint8_t *bytes;
	const struct wire_pkt *pkt = mc_frame_pkt(s, frame, &bytes);

	if (h->err || !(pkt->flags & (ROCE_F_SEND | ROCE_F_WRITE)))
		return false;
	return index_of(s, h, mc_rank_of(s, node), pkt->psn, false) ==
	       mc_next_receive(s, h, mc_rank_of(s, node), h->epsn);
}

bool mc_host_may_hold(struct mc_sys *s, unsigned node, uint32_t state, uint32_t frame)
{
	const uint8_t *bytes;

	return mc_frame_pkt(s, frame, &bytes)->flags & (ROCE_F_SEND | ROCE_F_IMM) &&
	       mc_host_would_take(s, node, state, frame);
}

static void go_back(const struct mc_sys *s, struct mc_host_state *h)
{
	if (is_sr(s))
		mc_sr_go_back(h);
	h->next = h->una;
	h->one = s->cfg.selective;
	h->rnr = 0;
}

/* It ends the connection, if it names what is outstanding, and acknowledges what is before it: of a
 * ring the next rank has that, and the switch, which speaks in its name, knows what was sent. */
static void receive_fatal(
	struct mc_sys *s, struct mc_host_state *h, uint8_t una, unsigned seq, struct mc_result *res)
{
	res->verdict = "fatal: the group has failed";
	if ((mc_is_ring(s) && una < h->una) ||
		(s->cfg.mode == INC_MODE_1 && (una < h->una || seq >= h->high))) {
		res->verdict = "old or out of range";
		return;
	}
	if (mc_is_ring(s) && seq >= h->high)
		res->violation = "a NAK names a packet that was not sent";
	res->acked = mc_is_ring(s) && una > h->una;
	h->una = una;
	h->err = 1;
}

/* --resync: of what is in flight, or (a NAK) behind it; to an unmodified NIC all else is old, or
 * was never sent. */
static bool was_sent(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned seq, bool ack)
{
	return ack ? seq > h->una && mc_sends(s, r, seq - 1)
		   : seq == h->una || (seq > h->una && mc_sends(s, r, seq - 1));
}

static void receive_ack(struct mc_sys *s, struct mc_host_state *h, unsigned r,
	const struct wire_pkt *pkt, const uint8_t *map, struct mc_result *res)
{
	unsigned class = pkt->syndrome & ROCE_AETH_CLASS;
	bool ack = class == ROCE_AETH_ACK;
	unsigned seq = index_of(s, h, r, psn_add(pkt->psn, ack && !MUT(UNA_SHORT)), true);
	uint8_t una = mc_next_send(s, h, r, seq < s->prog.n ? seq : s->prog.n);
	bool progress;

	if (class == ROCE_AETH_NAK && (pkt->syndrome & ROCE_AETH_VALUE) != ROCE_NAK_SEQUENCE) {
		receive_fatal(s, h, una, seq, res);
		return;
	}
	if (class != ROCE_AETH_NAK && pkt->pay_len > 0)
		res->violation = "an acknowledgement that is no NAK has a map";
	/* high is the next PSN that would be sent: all before it were, or are skipped. */
	if (seq > s->prog.n || una < h->una || una > h->high || h->una == h->high ||
		(s->cfg.resync && !was_sent(s, h, r, seq, ack))) {
		res->verdict = "old or out of range";
		return;
	}
	/* Where PSNs are not left out, an unmodified NIC may count on MSNs, too. */
	if ((s->cfg.kind == INC_SINGLE || s->cfg.resync) &&
		(pkt->msn < mc_messages_sent(s, h, r, seq) ||
			pkt->msn > mc_messages_sent(s, h, r, h->high)))
		res->violation = "an acknowledgement has an MSN older than its PSN, or not sent";
	progress = una > h->una && !(MUT(NAK_NO_PROGRESS) && class == ROCE_AETH_NAK);
	if (progress) {
		if (is_sr(s))
			mc_sr_acked(h, una);
		h->una = una;
		if (h->next < una && !MUT(RESEND_ACKED)) {
			h->next = h->one ? h->high : una;
			h->one = 0;
		}
		h->rnr = MUT(RNR_STICKS) ? h->rnr : 0;
		h->asked = 0;
		res->acked = true;
	}
	res->verdict = progress ? "progress" : "no progress";
	if (ack || h->una == h->high)
		return;
	if (class == ROCE_AETH_RNR)
		h->rnr = !MUT(RNR_IGNORED);
	else if (is_sr(s))
		mc_sr_nak(h, map, pkt->pay_len);
	else if (!h->rnr && !h->asked && !MUT(NAK_IGNORED)) {
		/* As lib/rnic does; hosts of another kind take every NAK for one. */
		h->asked = !s->cfg.selective && !s->cfg.every_nak && !MUT(NAK_COPY);
		go_back(s, h);
		h->one |= MUT(NAK_ONE);
	}
}

/* SR: `next` passes what is not lost when a packet is to leave, as in lib/rnic; at once if none is,
 * whose queue pair finds that out at once. */
static void settle(const struct mc_sys *s, struct mc_host_state *h, unsigned r)
{
	if (!h->rnr && !h->err && !(flags_of(s, h, r) & MC_H_SEND))
		mc_sr_pass(h);
	mc_sr_settle(h);
}

void mc_host_step(struct mc_sys *s, unsigned node, uint32_t state, enum mc_event ev, uint32_t frame,
	struct mc_result *res)
{
	struct mc_host_state h = *mc_host(s, node, state);
	unsigned r = mc_rank_of(s, node);
	const struct wire_pkt *pkt;
	const uint8_t *bytes;

	res->verdict = "";
	if (ev == MC_EV_SEND) {
		if (is_sr(s))
			mc_sr_pass(&h);
		send_next(s, &h, r, res);
	} else if (ev == MC_EV_TIMEOUT) {
		h.asked = h.rnr ? h.asked : 0;
		go_back(s, &h);
		h.one |= MUT(TIMER_ONE);
		if (MUT(TIMER_LATE) && mc_next_send(s, &h, r, h.una + 1u) < h.high)
			h.next = mc_next_send(s, &h, r, h.una + 1u);
	} else if (ev == MC_EV_HOLD) {
		pkt = mc_frame_pkt(s, frame, &bytes);
		res->verdict = "no receive posted";
		if (s->cfg.coalesce)
			mc_answer_hold(&h);
		else
			answer(s, &h, r, ROCE_AETH_RNR | (RNR_CODE + MUT(RNR_CODE)), pkt->psn, res);
		h.nak = !MUT(RNR_NAKS); /* it asks for nothing until that one comes */
	} else if (ev == MC_EV_END) {
		h = (struct mc_host_state){.gone = 1};
	} else if (ev == MC_EV_AGAIN) {
		h = fresh(s, node, true);
	} else if (ev == MC_EV_ANEW) {
		h = begun_anew(s, r, mc_anew_next(&s->cfg, h.from));
	} else if (ev == MC_EV_ANSWER) {
		send_answer(s, &h, r, res);
	} else if (h.err) {
		res->verdict = "ignored: in error";
	} else if (h.gone || (s->cfg.again && mc_frame_pkt(s, frame, &bytes)->dqpn !=
						      s->own_qpn[h.again][r])) {
		res->verdict = "no such queue pair";
	} else {
		pkt = mc_frame_pkt(s, frame, &bytes);
		if (pkt->opcode != ROCE_CNP && (pkt->opcode & ROCE_OP_MASK) == ROCE_ACK)
			receive_ack(s, &h, r, pkt, bytes + pkt->pay_off, res);
		else if (pkt->opcode != ROCE_CNP)
			receive_data(s, &h, r, pkt, bytes + pkt->pay_off, res);
	}
	if (h.err)
		h = (struct mc_host_state){.err = 1, .una = mc_is_ring(s) ? h.una : 0};
	if (is_sr(s))
		settle(s, &h, r);
	res->state = intern_add(&s->nodes[node], &h, sizeof(h));
}
