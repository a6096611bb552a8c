/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/req.h"

#include <errno.h>
#include <string.h>

#include "lib/mrc/rcv.h"
#include "lib/mrc/seeded_bugs.h"
#include "lib/wire/psn.h"
#include "lib/wire/roce.h"

enum {
	PMTU_LEAST = 256,
	/* Of a data packet besides its payload: UDP, BTH, METH, TSETH, RETH, ICRC, and the 40 that
	 * both ends add. */
	OVERHEAD = 8 + 12 + 4 + 4 + 16 + 4 + 40,
	IMM_LEN = 4,
	NS_PER_US = 1000
};

/* ---- messages ---- */

static bool config_ok(const struct mrc_req_config *c)
{
	return c->snd.mpr_units >= 1 && c->snd.mpr_units <= MRC_MPR_MAX && c->pmtu >= PMTU_LEAST &&
	       c->pmtu <= MRC_PMTU_MAX && c->messages > 0 && c->messages <= MRC_MAX_MESSAGES &&
	       (c->messages & (c->messages - 1)) == 0 && c->max_wimm > 0 && c->dqpn <= PSN_MASK;
}

size_t mrc_req_bytes(const struct mrc_req_config *c)
{
	if (!config_ok(c))
		return 0;
	_Static_assert(sizeof(struct mrc_request) % 8 == 0, "memory comes in words");
	return mrc_snd_bytes(c->snd.mpr_units) + c->messages * sizeof(struct mrc_request);
}

int mrc_req_init(struct mrc_req *q, const struct mrc_req_config *c, struct mrc_evset *evs,
	struct nscc *nscc, void *mem)
{
	memset(q, 0, sizeof(*q));
	if (!config_ok(c) || c->cc != (nscc != NULL) || mrc_snd_init(&q->snd, &c->snd, mem) < 0)
		return -EINVAL;
	q->c = *c;
	q->c.loss_percent = c->loss_percent ? c->loss_percent : MRC_DFLT_loss_percent;
	q->c.stamps_us = c->stamps_us ? c->stamps_us : MRC_DFLT_stamps_us;
	q->c.wimm_syndrome = c->wimm_syndrome ? c->wimm_syndrome : MRC_DFLT_wimm_syndrome;
	q->evs = evs;
	q->nscc = nscc;
	q->queue = (struct mrc_request *)((uint8_t *)mem + mrc_snd_bytes(c->snd.mpr_units));
	q->probe_ev = MRC_NO_EV;
	for (unsigned i = 0; i < MRC_PROBES_OUT; i++)
		q->probe_out[i].ev = MRC_NO_EV;
	return 0;
}

static struct mrc_request *at(struct mrc_req *q, uint32_t i)
{
	return &q->queue[i & (q->c.messages - 1)];
}

int mrc_req_post(struct mrc_req *q, const struct mrc_msg *msg)
{
	if (q->status)
		return -ENOTCONN;
	if (msg->length > UINT32_C(1) << 31)
		return -EINVAL;
	if (q->tail - q->head == q->c.messages)
		return -ENOSPC;
	*at(q, q->tail++) = (struct mrc_request){
		.m = *msg, .packets = msg->length ? (msg->length + q->c.pmtu - 1) / q->c.pmtu : 1};
	q->snd.dry = false;
	return 0;
}

void mrc_req_fail(struct mrc_req *q, enum mrc_status status)
{
	if (!q->status)
		q->status = status;
}

static bool head_done(struct mrc_req *q)
{
	const struct mrc_request *r = at(q, q->head);

	if (MRC_BUG(LAST_ONLY))
		return q->head != q->next &&
		       q->snd.sent[r->last_psn & q->snd.mask].state == MRC_ARRIVED;
	return q->head != q->next && psn_le(r->last_psn, q->snd.acked);
}

bool mrc_req_done(struct mrc_req *q, struct mrc_done *done)
{
	const struct mrc_request *r = at(q, q->head);

	if (q->head == q->tail)
		return false;
	if (head_done(q)) {
		done->status = MRC_STATUS_OK;
	} else if (q->status) {
		done->status = q->status_told ? MRC_STATUS_FLUSHED : q->status;
		q->status_told = true;
	} else {
		return false;
	}
	done->cookie = r->m.cookie;
	q->wimms -= r->m.has_imm && r->sent > 0;
	if (q->next == q->head)
		q->next++;
	q->head++;
	return true;
}

/* ---- packets ---- */

static uint32_t payload_of(const struct mrc_req *q, const struct mrc_request *r, uint32_t i)
{
	return i + 1 < r->packets ? q->c.pmtu : r->m.length - i * q->c.pmtu;
}

static uint16_t packet_bytes(const struct mrc_req *q, const struct mrc_request *r, uint32_t i)
{
	const bool imm = r->m.has_imm && i + 1 == r->packets;

	return (uint16_t)(OVERHEAD + (imm ? IMM_LEN : 0) + ((payload_of(q, r, i) + 3) & ~3u));
}

static void packet_of(const struct mrc_req *q, const struct mrc_request *r, uint32_t i,
	uint32_t psn, uint64_t now, struct mrc_out *out)
{
	const bool last = i + 1 == r->packets;

	out->pkt.kind = MRC_KIND_DATA;
	out->pkt.data = (struct mrc_data){
		.place = (uint8_t)((i == 0 ? MRC_FIRST : 0) | (last ? MRC_LAST : 0)),
		.has_imm = last && r->m.has_imm,
		.se = last && r->m.has_imm && r->m.se,
		.has_ts = true,
		.ts = mrc_ts(now),
		.dqpn = q->c.dqpn,
		.psn = psn,
		.msn = r->msn,
		.rqmsn = r->rqmsn,
		.rkey = r->m.rkey,
		.dmalen = r->m.length,
		.imm = last && r->m.has_imm ? r->m.imm : 0,
		.va = r->m.va + (uint64_t)i * q->c.pmtu,
		.pay_len = (uint16_t)payload_of(q, r, i)};
	out->cookie = r->m.cookie;
	out->offset = i * q->c.pmtu;
}

static void on_path(const struct mrc_req *q, int ev, struct mrc_out *out)
{
	out->pkt.depth = MRC_DEPTH_ALL;
	out->ev = q->evs->ev[ev].ev;
	out->port = q->evs->ev[ev].port;
}

static bool window_open(const struct mrc_req *q, uint32_t bytes)
{
	return !q->held && (q->nscc == NULL || nscc_may_send(q->nscc, bytes));
}

/* Nothing else can leave after this packet until the peer says something. */
static bool runs_dry(const struct mrc_req *q)
{
	const bool last = q->next == q->tail || !mrc_snd_may_send(&q->snd);

	return q->nscc ? nscc_want_ack(q->nscc, last) : last;
}

static void left(struct mrc_req *q, uint32_t bytes, struct mrc_out *out)
{
	if (q->nscc)
		nscc_sent(q->nscc, &q->in_window, bytes);
	out->pkt.data.ackreq = runs_dry(q);
	mrc_snd_asked(&q->snd, out->pkt.data.psn, out->pkt.data.ackreq);
}

static bool send_again(struct mrc_req *q, uint8_t room, uint64_t now, struct mrc_out *out)
{
	uint32_t psn;
	const struct mrc_sent *e = mrc_snd_lost(&q->snd, &psn);
	int ev;

	if (e == NULL || !window_open(q, e->bytes) ||
		(ev = mrc_evset_next(q->evs, room, now)) == MRC_NO_EV)
		return false;
	packet_of(q, at(q, (uint32_t)(e->user >> 32)), (uint32_t)e->user, psn, now, out);
	on_path(q, ev, out);
	out->pkt.data.rtx = true;
	out->class = q->c.peer_nacks_trimmed ? MRC_CLASS_TRIMMABLE_RETX : MRC_CLASS_NO_TRIM;
	mrc_snd_again(&q->snd, (unsigned)ev, now);
	left(q, e->bytes, out);
	q->again++;
	return true;
}

static struct mrc_probe_out *probe_slot(struct mrc_req *q, uint16_t id)
{
	return &q->probe_out[id % MRC_PROBES_OUT];
}

/* Where to ask what has become of the tail: on the path of the oldest packet, whose order tells
 * lost from late, unless that is out of use. */
static int tail_ev(struct mrc_req *q, uint8_t room, uint64_t now)
{
	const int ev = mrc_snd_asks_about(&q->snd);
	const struct mrc_ev *e = ev == MRC_NO_EV ? NULL : &q->evs->ev[ev];

	if (e && e->state <= MRC_EV_SKIP && q->evs->up & room & 1u << e->port)
		return ev;
	return mrc_evset_next(q->evs, room, now);
}

static bool send_probe(struct mrc_req *q, uint8_t room, uint64_t now, struct mrc_out *out)
{
	int ev = q->probe_ev;

	if (ev != MRC_NO_EV && !(room >> q->evs->ev[ev].port & 1))
		return false;
	if (ev == MRC_NO_EV && q->tail_probe)
		ev = tail_ev(q, room, now);
	if (ev == MRC_NO_EV)
		return false;
	if (q->probe_ev != MRC_NO_EV)
		q->probe_ev = MRC_NO_EV;
	else
		q->tail_probe = false;
	out->pkt.kind = MRC_KIND_PROBE;
	out->pkt.probe = (struct mrc_probe){.dqpn = q->c.dqpn,
		.id = ++q->probe_id,
		.spdcid = q->c.qpn_low,
		.dpdcid = (uint16_t)q->c.dqpn,
		.ts = mrc_ts(now)};
	on_path(q, ev, out);
	out->class = MRC_CLASS_NO_TRIM;
	*probe_slot(q, q->probe_id) = (struct mrc_probe_out){
		.id = q->probe_id, .ev = (int16_t)ev, .turn = mrc_snd_probe(&q->snd, (unsigned)ev)};
	q->probes++;
	return true;
}

static void begin(struct mrc_req *q, struct mrc_request *r)
{
	r->msn = q->msn++;
	r->rqmsn = r->m.has_imm ? q->rqmsn++ : 0;
	q->wimms += r->m.has_imm;
}

/* There is a new packet that the peer has room for; *bytes of it. */
static bool has_new(const struct mrc_req *q, uint16_t *bytes)
{
	const struct mrc_request *r = &q->queue[q->next & (q->c.messages - 1)];

	if (q->next == q->tail || !mrc_snd_may_send(&q->snd) ||
		(r->sent == 0 && r->m.has_imm && q->wimms >= q->c.max_wimm))
		return false;
	*bytes = packet_bytes(q, r, r->sent);
	return true;
}

/* The windows allow it. */
static bool may_begin(const struct mrc_req *q, uint16_t *bytes)
{
	return has_new(q, bytes) && window_open(q, *bytes);
}

bool mrc_req_blocked(const struct mrc_req *q)
{
	uint32_t psn;
	const struct mrc_sent *lost = mrc_snd_lost(&q->snd, &psn);
	uint16_t bytes;
	const bool new = has_new(q, &bytes);

	return !q->status && (lost != NULL || new) &&
	       !(lost != NULL && window_open(q, lost->bytes)) && !(new &&window_open(q, bytes));
}

void mrc_req_leave_window(struct mrc_req *q)
{
	if (q->nscc)
		nscc_set_inflight(q->nscc, &q->in_window, 0);
	q->nscc = NULL;
}

bool mrc_req_wants(const struct mrc_req *q)
{
	uint32_t psn;
	const struct mrc_sent *e = mrc_snd_lost(&q->snd, &psn);
	uint16_t bytes;

	return !q->status && ((e != NULL && window_open(q, e->bytes)) || q->probe_ev != MRC_NO_EV ||
				     q->tail_probe || may_begin(q, &bytes));
}

static bool send_new(struct mrc_req *q, uint8_t room, uint64_t now, struct mrc_out *out)
{
	struct mrc_request *r = at(q, q->next);
	uint16_t bytes;
	uint32_t psn;
	int ev;

	if (!may_begin(q, &bytes) || (ev = mrc_evset_next(q->evs, room, now)) == MRC_NO_EV)
		return false;
	if (r->sent == 0)
		begin(q, r);
	psn = mrc_snd_new(&q->snd, (unsigned)ev, bytes, (uint64_t)q->next << 32 | r->sent, now);
	packet_of(q, r, r->sent, psn, now, out);
	on_path(q, ev, out);
	out->class = q->c.peer_nacks_trimmed ? MRC_CLASS_TRIMMABLE : MRC_CLASS_NO_TRIM;
	if (++r->sent == r->packets) {
		r->last_psn = psn;
		q->snd.dry = ++q->next == q->tail;
	}
	left(q, bytes, out);
	return true;
}

bool mrc_req_tx(struct mrc_req *q, uint8_t room, uint64_t now, struct mrc_out *out)
{
	if (q->status || !room)
		return false;
	memset(out, 0, sizeof(*out));
	return send_again(q, room, now, out) || send_probe(q, room, now, out) ||
	       send_new(q, room, now, out);
}

/* ---- words of the peer ---- */

static int ignore(struct mrc_req *q)
{
	q->ignored++;
	return -EINVAL;
}

/* What a word or the time did. The window's count of bytes on the way is set anew each time: kept
 * from the peer's counters alone it would leak with every copy that a fabric makes, until nothing
 * may leave any more. */
static void take(struct mrc_req *q, const struct mrc_news *news, uint64_t now)
{
	for (unsigned w = 0; w < MRC_MAX_EVS / 64; w++) {
		for (uint64_t bits = news->bad_ev[w]; bits; bits &= bits - 1)
			mrc_evset_bad(q->evs, (int)(w * 64) + __builtin_ctzll(bits), now);
	}
	q->lost += news->lost;
	if (news->lost_bytes && q->nscc)
		nscc_lost(q->nscc, news->lost_bytes);
	if (q->nscc)
		nscc_set_inflight(q->nscc, &q->in_window, q->snd.flight_bytes);
	if (news->gone)
		mrc_req_fail(q, MRC_STATUS_RETRY);
}

/* The packet that a word is about, if this very transmission is remembered. */
static const struct mrc_sent *transmission(
	const struct mrc_req *q, uint32_t psn, int ev, bool again)
{
	const struct mrc_sent *e = &q->snd.sent[psn & q->snd.mask];
	const int32_t age = psn_diff(q->snd.next, psn);

	if (age < 1 || age > (int32_t)q->snd.mask + 1 || e->ev != ev || e->again != again)
		return NULL;
	return e;
}

/* By the reflected time, which may leave the peer's own share out; by our clock where 16 bits of it
 * do not tell. */
static uint64_t rtt_of(const struct mrc_req *q, uint16_t ts, uint64_t sent, uint64_t now)
{
	const uint64_t ours = now - sent, said = (uint64_t)(uint16_t)(mrc_ts(now) - ts) * MRC_TS_NS;
	const bool told = ours < q->c.stamps_us * (uint64_t)NS_PER_US && ts != 0;

	return told && said <= ours + MRC_TS_NS ? said : ours;
}

static void window_news(struct mrc_req *q, const struct mrc_sack *sack, bool marked,
	const struct mrc_sent *e, uint64_t now)
{
	const struct nscc_sack s = {.bytes = nscc_received(q->rcvd_units, sack->rcvd_units),
		.has_rtt = e != NULL,
		.rtt_ns = e ? rtt_of(q, sack->ts, e->at, now) : 0,
		.marked = marked,
		.penalty = sack->cwnd_penalty,
		.restore = sack->restore_cwnd};

	if (s.bytes)
		q->rcvd_units = sack->rcvd_units;
	if (q->nscc)
		nscc_sack(q->nscc, &s, now);
}

static void path_news(struct mrc_req *q, uint8_t mark, int ev, uint64_t now)
{
	if (mark == MRC_SKIP_ONCE)
		mrc_evset_skip(q->evs, ev, now);
	else if (mark == MRC_ALWAYS_SKIP)
		mrc_evset_bad(q->evs, ev, now);
}

static bool asked(const struct mrc_probe_out *p, uint16_t id, int ev)
{
	return ev != MRC_NO_EV && p->id == id && p->ev == ev;
}

static void probe_answer(struct mrc_req *q, const struct mrc_sack *sack, int ev, uint64_t now)
{
	probe_slot(q, sack->probe_id)->ev = MRC_NO_EV;
	if (sack->mark != MRC_ALWAYS_SKIP)
		mrc_evset_probe_answered(q->evs, ev, sack->mark != MRC_MARK_NONE, now);
}

static uint32_t loss_window(const struct mrc_req *q)
{
	const uint32_t bytes =
		q->nscc ? nscc_share(q->nscc, q->in_window) : q->snd.window * q->c.pmtu;

	return (uint32_t)((uint64_t)(bytes / q->c.pmtu) * q->c.loss_percent / 100);
}

int mrc_req_sack(struct mrc_req *q, const struct mrc_sack *sack, uint64_t now)
{
	const int ev = mrc_evset_echoed(q->evs, sack->entropy);
	const struct mrc_sent *e =
		sack->probe ? NULL : transmission(q, sack->trigger_psn, ev, sack->rtx);
	const struct mrc_probe_out *probe = probe_slot(q, sack->probe_id);
	struct mrc_news news;

	if (q->status || (sack->probe && !asked(probe, sack->probe_id, ev)))
		return ignore(q);
	if (mrc_snd_sack(&q->snd, sack, ev, probe->turn, loss_window(q), now, &news) < 0)
		return ignore(q);
	if (sack->probe)
		probe_answer(q, sack, ev, now);
	path_news(q, sack->mark, ev, now);
	q->unknown_evs += ev == MRC_NO_EV;
	/* Of two repetitions on one path it might be either. */
	if (e && !e->again && (e->asked || sack->mark != MRC_MARK_NONE))
		mrc_snd_rtt(&q->snd, now - e->at);
	window_news(q, sack, sack->mark != MRC_MARK_NONE && ev != MRC_NO_EV, e, now);
	take(q, &news, now);
	return 0;
}

int mrc_req_nack(struct mrc_req *q, const struct mrc_nack *nack, uint64_t now)
{
	const int ev = mrc_evset_echoed(q->evs, nack->entropy);
	const uint16_t bytes = q->snd.sent[nack->psn & q->snd.mask].bytes;
	struct mrc_news news;
	int rc;

	if (q->status)
		return ignore(q);
	rc = mrc_snd_nack(&q->snd, nack, ev, now, &news);
	if (rc == -EINVAL)
		return ignore(q);
	if (rc < 0) {
		mrc_req_fail(q, MRC_STATUS_OPERATION);
		return 0;
	}
	if (news.not_lost) {
		/* The window has paid for it as for a loss. */
		mrc_evset_reprieve(q->evs, ev, now);
		q->trimmed++;
		return 0;
	}
	if (nack->reason == MRC_NACK_TRIMMED)
		mrc_evset_skip(q->evs, ev, now);
	if (nack->reason == MRC_NACK_TRIMMED || nack->reason == MRC_NACK_TRIMMED_LASTHOP) {
		q->trimmed++;
		if (q->nscc)
			nscc_trimmed(q->nscc, bytes, now);
	} else if (q->nscc) {
		nscc_refused(q->nscc, bytes);
	}
	take(q, &news, now);
	return 0;
}

/* MRC_STATUS_OK: none that MRC has. */
static enum mrc_status status_of(const struct mrc_req *q, uint8_t syndrome)
{
	switch (syndrome) {
	case ROCE_AETH_NAK | ROCE_NAK_INVALID_REQUEST:
		return MRC_STATUS_INV_REQ;
	case ROCE_AETH_NAK | ROCE_NAK_REMOTE_ACCESS:
		return MRC_STATUS_ACCESS;
	case ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION:
		return MRC_STATUS_OPERATION;
	default:
		return syndrome == q->c.wimm_syndrome ? MRC_STATUS_INV_REQ : MRC_STATUS_OK;
	}
}

int mrc_req_ack(struct mrc_req *q, const struct mrc_ack *ack, uint64_t now)
{
	const bool nak = (ack->syndrome & ROCE_AETH_CLASS) != ROCE_AETH_ACK;
	const enum mrc_status status = nak ? status_of(q, ack->syndrome) : MRC_STATUS_OK;
	const uint32_t upto = nak ? psn_add(ack->psn, -1) : ack->psn;
	struct mrc_news news;

	if (q->status || (nak && !status) || !psn_lt(ack->psn, q->snd.next) ||
		(nak && psn_le(ack->psn, q->snd.acked)))
		return ignore(q);
	mrc_snd_ack(&q->snd, upto, now, &news);
	take(q, &news, now);
	if (nak)
		mrc_req_fail(q, status);
	return 0;
}

/* ---- time ---- */

uint64_t mrc_req_deadline(const struct mrc_req *q)
{
	const uint64_t sent = mrc_snd_deadline(&q->snd);
	const uint64_t probe =
		q->probe_ev == MRC_NO_EV ? mrc_evset_probe_deadline(q->evs) : UINT64_MAX;

	return q->status ? UINT64_MAX : sent < probe ? sent : probe;
}

void mrc_req_timer(struct mrc_req *q, uint64_t now)
{
	struct mrc_news news;
	bool probe = false;

	if (q->status)
		return;
	mrc_snd_timer(&q->snd, now, &probe, &news);
	q->tail_probe |= probe;
	take(q, &news, now);
	if (q->probe_ev == MRC_NO_EV)
		q->probe_ev = mrc_evset_probe_due(q->evs, now);
}
