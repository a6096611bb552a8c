/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/rsp.h"

#include <errno.h>
#include <string.h>

#include "lib/mrc/seeded_bugs.h"
#include "lib/wire/psn.h"
#include "lib/wire/roce.h"

enum { WORD = 64, PLACES_OF_WORD = WORD / 2, PMTU_LEAST = 256 };

static size_t places_bytes(unsigned mpr_units)
{
	return 2 * mrc_rcv_bytes(mpr_units);
}

size_t mrc_rsp_bytes(const struct mrc_rsp_config *c)
{
	if (c->mpr_units < 1 || c->mpr_units > MRC_MPR_MAX || c->max_wimm < 1 ||
		c->max_wimm > MRC_MAX_WIMM || c->pmtu < PMTU_LEAST || c->pmtu > UINT16_MAX ||
		c->first_psn > PSN_MASK || c->dqpn > PSN_MASK)
		return 0;
	return mrc_rcv_bytes(c->mpr_units) + places_bytes(c->mpr_units) +
	       c->max_wimm * sizeof(struct mrc_wimm);
}

int mrc_rsp_init(struct mrc_rsp *r, const struct mrc_rsp_config *c, void *mem)
{
	const uint32_t before = psn_add(c->first_psn, -1);
	uint8_t *at = mem;

	if (mrc_rsp_bytes(c) == 0)
		return -EINVAL;
	_Static_assert(sizeof(struct mrc_wimm) % 8 == 0, "memory comes in words");
	memset(r, 0, sizeof(*r));
	memset(mem, 0, mrc_rsp_bytes(c));
	mrc_rcv_init(&r->rcv, c->first_psn, c->mpr_units, at);
	r->ends = (uint64_t *)(at + mrc_rcv_bytes(c->mpr_units));
	r->wimm = (struct mrc_wimm *)((uint8_t *)r->ends + places_bytes(c->mpr_units));
	r->c = *c;
	r->c.sack_bytes = c->sack_bytes ? c->sack_bytes : MRC_DFLT_sack_bytes;
	r->c.sack_least_bytes =
		c->sack_least_bytes ? c->sack_least_bytes : MRC_DFLT_sack_least_bytes;
	r->c.wimm_syndrome = c->wimm_syndrome ? c->wimm_syndrome : MRC_DFLT_wimm_syndrome;
	r->mpr_units = (uint8_t)c->mpr_units;
	r->walked = r->done_psn = before;
	return 0;
}

/* ---- messages ---- */

static unsigned shift_of(uint32_t psn)
{
	return psn % PLACES_OF_WORD * 2;
}

static uint64_t *ends_of(const struct mrc_rsp *r, uint32_t psn)
{
	return &r->ends[(psn & r->rcv.mask) / PLACES_OF_WORD];
}

static void set_place(struct mrc_rsp *r, uint32_t psn, uint8_t place)
{
	uint64_t *word = ends_of(r, psn);

	*word = (*word & ~(UINT64_C(3) << shift_of(psn))) | (uint64_t)place << shift_of(psn);
}

static struct mrc_wimm *wimm_at(struct mrc_rsp *r, unsigned i)
{
	return &r->wimm[(r->wimm_head + i) % r->c.max_wimm];
}

/* Into its place by PSN, mostly the last. */
static void hold(struct mrc_rsp *r, const struct mrc_data *d)
{
	unsigned i = r->n_wimm++;

	for (; i > 0 && psn_lt(d->psn, wimm_at(r, i - 1)->psn) && !MRC_BUG(WIMM_ORDER); i--)
		*wimm_at(r, i) = *wimm_at(r, i - 1);
	*wimm_at(r, i) =
		(struct mrc_wimm){.psn = d->psn, .imm = d->imm, .bytes = d->pay_len, .se = d->se};
}

/* First and Middle fill the MTU; a Last has something, an Only need not (IBTA 9.7.4.1.7). */
static bool length_ok(const struct mrc_rsp *r, const struct mrc_data *d)
{
	if (!(d->place & MRC_LAST))
		return d->pay_len == r->c.pmtu;
	return d->pay_len <= r->c.pmtu && (d->pay_len > 0 || d->place == MRC_ONLY);
}

static bool wimm_full(const struct mrc_rsp *r, const struct mrc_data *d)
{
	return d->has_imm && r->n_wimm == r->c.max_wimm;
}

enum mrc_arrival mrc_rsp_look(const struct mrc_rsp *r, const struct mrc_data *d)
{
	const enum mrc_arrival arrival = mrc_rcv_look(&r->rcv, d->psn);

	return arrival == MRC_NEW && (!length_ok(r, d) || wimm_full(r, d)) ? MRC_MISFIT : arrival;
}

void mrc_rsp_refuse(struct mrc_rsp *r, uint32_t psn, uint8_t syndrome)
{
	r->refused++;
	if (r->fault && psn_le(r->fault_psn, psn))
		return;
	r->fault = true;
	r->fault_psn = psn;
	r->fault_syndrome = syndrome;
}

void mrc_rsp_fail(struct mrc_rsp *r, uint32_t psn, uint8_t syndrome)
{
	if (r->failed)
		return;
	r->failed = r->nak_due = true;
	r->syndrome = syndrome;
	r->nak_psn = psn;
	r->wimm_out = false;
}

static void message_done(struct mrc_rsp *r)
{
	r->msn = (r->msn + 1) & PSN_MASK;
	r->done_psn = r->walked;
	r->ack_due = true;
	r->wimm_out = false;
	r->packets = 0;
}

static bool wimm_due(const struct mrc_rsp *r)
{
	return r->n_wimm && r->wimm[r->wimm_head].psn == r->walked;
}

static void give_out(struct mrc_rsp *r, struct mrc_wimm *wimm)
{
	*wimm = r->wimm[r->wimm_head];
	wimm->bytes += (r->packets - 1) * r->c.pmtu;
	r->wimm_head = (r->wimm_head + 1) % r->c.max_wimm;
	r->n_wimm--;
	r->wimm_out = true;
}

enum mrc_step mrc_rsp_step(struct mrc_rsp *r, struct mrc_wimm *wimm)
{
	if (r->wimm_out)
		message_done(r);
	while (!r->failed && r->walked != (MRC_BUG(WALK_HIGH) ? r->rcv.high : r->rcv.cack)) {
		const uint32_t psn = psn_add(r->walked, 1);
		const unsigned place = *ends_of(r, psn) >> shift_of(psn) & 3;

		if (!(place & MRC_FIRST) != (r->packets > 0)) {
			mrc_rsp_fail(r, psn, ROCE_AETH_NAK | ROCE_NAK_INVALID_REQUEST);
			break;
		}
		r->walked = psn;
		r->packets++;
		if (!(place & MRC_LAST))
			continue;
		if (wimm_due(r)) {
			give_out(r, wimm);
			return MRC_STEP_WIMM;
		}
		message_done(r);
	}
	if (r->fault && r->fault_psn == psn_add(r->rcv.cack, 1))
		mrc_rsp_fail(r, r->fault_psn, r->fault_syndrome);
	return r->failed ? MRC_STEP_FAILED : MRC_STEP_NONE;
}

/* ---- what is to be said ---- */

static struct mrc_saying saying_of(const struct mrc_met *met, uint32_t psn, bool rtx)
{
	return (struct mrc_saying){.at = met->at,
		.psn = psn,
		.ev = met->ev,
		.ts = met->ts,
		.mark = met->path_bad ? MRC_ALWAYS_SKIP
			: met->ecn    ? MRC_SKIP_ONCE
				      : MRC_MARK_NONE,
		.rtx = rtx};
}

/* A SACK that waits and is said as well by the new one: a mark is told of its own EV only, and
 * never lost; the answer to a probe and the proof of a repetition stand for themselves. */
static struct mrc_saying *covered(struct mrc_rsp *r, const struct mrc_saying *s)
{
	for (uint32_t i = r->say_tail; !s->reason && !s->probe && !s->rtx && i != r->say_head;) {
		struct mrc_saying *old = &r->say[--i % MRC_SAYINGS];

		if (old->reason || old->probe || old->rtx || old->mark != s->mark)
			continue;
		if (s->mark == MRC_MARK_NONE || old->ev == s->ev)
			return old;
	}
	return NULL;
}

static void say(struct mrc_rsp *r, struct mrc_saying s)
{
	struct mrc_saying *old = covered(r, &s);

	if (!s.reason) {
		r->unsacked = 0;
		r->guard = false;
	}
	if (old != NULL) {
		*old = s;
		return;
	}
	if (r->say_tail - r->say_head == MRC_SAYINGS) {
		r->lost_sayings++;
		return;
	}
	r->say[r->say_tail++ % MRC_SAYINGS] = s;
}

static void say_nack(struct mrc_rsp *r, const struct mrc_met *met, uint32_t psn, uint8_t reason)
{
	struct mrc_saying s = saying_of(met, psn, false);

	s.reason = reason;
	say(r, s);
}

static void beyond(struct mrc_rsp *r, uint32_t psn, const struct mrc_met *met, uint64_t now)
{
	r->beyond++;
	if (r->c.no_oor || now < r->oor_at)
		return;
	r->oor_at = now + r->c.oor_ns;
	say_nack(r, met, psn, MRC_NACK_PSN_OOR);
}

/* MRC_NEW and MRC_REPEATED and MRC_DUPLICATE. */
static void account(struct mrc_rsp *r, const struct mrc_data *d, const struct mrc_met *met,
	enum mrc_arrival arrival)
{
	const struct mrc_saying s = saying_of(met, d->psn, d->rtx);

	r->duplicates += arrival != MRC_NEW;
	if (arrival == MRC_DUPLICATE && r->msn && !MRC_BUG(NO_DUP_ACK))
		r->ack_due = true;
	r->unsacked += d->pay_len > r->c.sack_least_bytes ? d->pay_len : r->c.sack_least_bytes;
	if (s.mark || d->rtx || d->ackreq || arrival != MRC_NEW || r->unsacked >= r->c.sack_bytes) {
		say(r, s);
		return;
	}
	r->guard = true;
	r->last = s;
}

static void misfit(struct mrc_rsp *r, const struct mrc_data *d)
{
	if (length_ok(r, d))
		mrc_rsp_fail(r, psn_add(r->rcv.cack, 1), r->c.wimm_syndrome);
	else
		mrc_rsp_refuse(r, d->psn, ROCE_AETH_NAK | ROCE_NAK_INVALID_REQUEST);
}

static void placed(struct mrc_rsp *r, const struct mrc_data *d)
{
	set_place(r, d->psn, d->place);
	if (d->has_imm)
		hold(r, d);
	if (r->fault && r->fault_psn == d->psn)
		r->fault = false;
}

enum mrc_arrival mrc_rsp_data(
	struct mrc_rsp *r, const struct mrc_data *d, const struct mrc_met *met, uint64_t now)
{
	const enum mrc_arrival arrival = mrc_rsp_look(r, d);

	if (r->failed)
		return arrival;
	if (arrival == MRC_BEYOND) {
		beyond(r, d->psn, met, now);
		return arrival;
	}
	if (arrival == MRC_MISFIT) {
		misfit(r, d);
		return arrival;
	}
	mrc_rcv_packet(&r->rcv, d->psn, met->bytes);
	if (arrival == MRC_NEW)
		placed(r, d);
	account(r, d, met, arrival);
	return arrival;
}

void mrc_rsp_trimmed(
	struct mrc_rsp *r, uint32_t psn, bool lasthop, const struct mrc_met *met, uint64_t now)
{
	const enum mrc_arrival arrival = mrc_rcv_look(&r->rcv, psn);

	if (r->failed)
		return;
	r->trimmed++;
	if (arrival == MRC_BEYOND)
		beyond(r, psn, met, now);
	else if (arrival == MRC_NEW)
		say_nack(r, met, psn, lasthop ? MRC_NACK_TRIMMED_LASTHOP : MRC_NACK_TRIMMED);
	else
		say(r, saying_of(met, psn, false));
}

void mrc_rsp_probe(struct mrc_rsp *r, const struct mrc_probe *probe, const struct mrc_met *met)
{
	struct mrc_saying s = saying_of(met, r->rcv.cack, false);

	if (r->failed)
		return;
	s.probe = true;
	s.probe_id = probe->id;
	say(r, s);
}

int mrc_rsp_set_mpr(struct mrc_rsp *r, unsigned mpr_units)
{
	if (!r->c.dynamic_mpr || mpr_units < 1 || mpr_units > r->c.mpr_units)
		return -EINVAL;
	r->mpr_units = (uint8_t)mpr_units;
	return 0;
}

/* ---- saying it ---- */

static uint16_t reflected(const struct mrc_rsp *r, const struct mrc_saying *s, uint64_t now)
{
	if (!r->c.service_time || now < s->at)
		return s->ts;
	return (uint16_t)(s->ts + (now - s->at) / MRC_TS_NS);
}

static void sack_of(
	struct mrc_rsp *r, const struct mrc_saying *s, uint64_t now, struct mrc_pkt *pkt)
{
	pkt->kind = MRC_KIND_SACK;
	pkt->sack = (struct mrc_sack){.dqpn = r->c.dqpn,
		.mark = s->mark,
		.rtx = s->rtx,
		.probe = s->probe,
		.probe_id = s->probe_id,
		.entropy = s->ev,
		.mpr = r->c.dynamic_mpr ? r->mpr_units : 0,
		.spdcid = r->c.qpn_low,
		.dpdcid = (uint16_t)r->c.dqpn,
		.ts = reflected(r, s, now)};
	mrc_rcv_sack(&r->rcv, s->psn, &pkt->sack);
}

static void nack_of(
	const struct mrc_rsp *r, const struct mrc_saying *s, uint64_t now, struct mrc_pkt *pkt)
{
	pkt->kind = MRC_KIND_NACK;
	pkt->nack = (struct mrc_nack){.dqpn = r->c.dqpn,
		.psn = s->psn,
		.reason = s->reason,
		.entropy = s->ev,
		.spdcid = r->c.qpn_low,
		.dpdcid = (uint16_t)r->c.dqpn,
		.ts = reflected(r, s, now)};
}

static void ack_of(struct mrc_rsp *r, struct mrc_pkt *pkt)
{
	pkt->kind = MRC_KIND_ACK;
	pkt->ack = (struct mrc_ack){.dqpn = r->c.dqpn,
		.psn = r->nak_due ? r->nak_psn : r->done_psn,
		.syndrome = r->nak_due ? r->syndrome : MRC_SYNDROME_ACK,
		.msn = r->msn};
	r->ack_due = r->nak_due = false;
}

bool mrc_rsp_pending(const struct mrc_rsp *r)
{
	return r->nak_due || (!r->failed && (r->ack_due || r->say_head != r->say_tail));
}

bool mrc_rsp_tx(struct mrc_rsp *r, uint64_t now, struct mrc_pkt *pkt)
{
	const struct mrc_saying *s;

	if (!mrc_rsp_pending(r))
		return false;
	memset(pkt, 0, sizeof(*pkt));
	pkt->depth = MRC_DEPTH_ALL;
	if (r->failed || r->say_head == r->say_tail) {
		ack_of(r, pkt);
		return true;
	}
	s = &r->say[r->say_head++ % MRC_SAYINGS];
	if (s->reason)
		nack_of(r, s, now, pkt);
	else
		sack_of(r, s, now, pkt);
	return true;
}

uint64_t mrc_rsp_deadline(const struct mrc_rsp *r)
{
	return r->guard && r->c.guard_ns && !r->failed ? r->last.at + r->c.guard_ns : UINT64_MAX;
}

void mrc_rsp_timer(struct mrc_rsp *r, uint64_t now)
{
	if (mrc_rsp_deadline(r) <= now)
		say(r, r->last);
}
