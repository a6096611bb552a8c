/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/snd.h"

#include <errno.h>
#include <string.h>

#include "lib/mrc/rcv.h"
#include "lib/mrc/seeded_bugs.h"
#include "lib/mrc/snd_ring.h"
#include "lib/mrc/tail.h"
#include "lib/wire/psn.h"

enum { NONE = SND_NONE, TICK_NS = 1024 };

size_t mrc_snd_bytes(unsigned mpr_units)
{
	return snd_capacity(mpr_units) * sizeof(struct mrc_sent);
}

void mrc_snd_patience(struct mrc_snd *s, uint8_t timeout, uint8_t linear_cnt, uint8_t exp_cnt)
{
	s->interval = (uint64_t)TICK_NS << (timeout ? timeout : MRC_TIMEOUT_DEFAULT);
	s->linear_cnt = linear_cnt;
	s->exp_cnt = exp_cnt;
	s->try_at = 0;
}

int mrc_snd_init(struct mrc_snd *s, const struct mrc_snd_config *config, struct mrc_sent *sent)
{
	if (config->mpr_units < 1 || config->mpr_units > MRC_MPR_MAX ||
		config->timeout > MRC_TIMEOUT_MAX || config->linear_cnt > MRC_LINEAR_MAX ||
		config->exp_cnt > MRC_EXP_ENDLESS || config->first_psn > PSN_MASK)
		return -EINVAL;
	*s = (struct mrc_snd){
		.next = config->first_psn,
		.cack = psn_add(config->first_psn, -1),
		.acked = psn_add(config->first_psn, -1),
		.window = config->mpr_units * MRC_MPR_UNIT,
		.mask = (uint32_t)snd_capacity(config->mpr_units) - 1,
		.later_ns = config->later_ns,
		.tail_ns = config->tail_ns,
		.tail_rtts = config->tail_rtts,
		.tail_again = config->tail_again,
		.late_ns = config->late_ns,
		.guard_ns = config->guard_ns,
		.loss_least = config->loss_least ? config->loss_least : MRC_DFLT_loss_least,
		.tail_probes = config->tail_probes ? config->tail_probes : MRC_DFLT_tail_probes,
		.sent = sent,
	};
	mrc_snd_patience(s, config->timeout, config->linear_cnt, config->exp_cnt);
	for (unsigned i = 0; i < MRC_N_SENT_STATES; i++)
		s->list[i] = (struct mrc_list){NONE, NONE, 0};
	memset(sent, 0, mrc_snd_bytes(config->mpr_units));
	return 0;
}

/* ---- sending ---- */

static void depart(struct mrc_snd *s, uint16_t i, unsigned ev, uint64_t now)
{
	struct mrc_sent *e = &s->sent[i];

	e->at = now;
	e->mark = s->heard + s->list[MRC_FLIGHT].n;
	s->flight_bytes += e->bytes;
	e->ev = (uint16_t)ev;
	e->on_path = ++s->path[ev].sent;
	e->missed = false;
	snd_push(s, i, MRC_FLIGHT);
}

bool mrc_snd_may_send(const struct mrc_snd *s)
{
	return psn_diff(s->next, s->cack) <= (int32_t)s->window &&
	       psn_diff(s->next, s->acked) <= (int32_t)s->mask + 1;
}

uint32_t mrc_snd_new(struct mrc_snd *s, unsigned ev, uint16_t bytes, uint64_t user, uint64_t now)
{
	const uint32_t psn = s->next;
	struct mrc_sent *e = &s->sent[snd_place(s, psn)];

	*e = (struct mrc_sent){.user = user, .bytes = bytes, .lost_on = MRC_NO_EV};
	s->next = psn_add(psn, 1);
	depart(s, snd_place(s, psn), ev, now);
	return psn;
}

const struct mrc_sent *mrc_snd_lost(const struct mrc_snd *s, uint32_t *psn)
{
	const uint16_t i = s->list[MRC_LOST].head;

	if (i == NONE)
		return NULL;
	*psn = snd_psn_of(s, i);
	return &s->sent[i];
}

void mrc_snd_again(struct mrc_snd *s, unsigned ev, uint64_t now)
{
	const uint16_t i = s->list[MRC_LOST].head;

	snd_cut(s, i);
	s->sent[i].again = true;
	depart(s, i, ev, now);
}

void mrc_snd_asked(struct mrc_snd *s, uint32_t psn, bool asked)
{
	s->sent[snd_place(s, psn)].asked = asked;
}

void mrc_snd_rtt(struct mrc_snd *s, uint64_t ns)
{
	mrc_rtt_sample(&s->rtt, ns);
}

/* ---- what became of packets ---- */

static bool was_sent(const struct mrc_snd *s, uint32_t psn)
{
	return psn_lt(psn, s->next);
}

static void lose(struct mrc_snd *s, uint16_t i, struct mrc_news *news)
{
	struct mrc_sent *e = &s->sent[i];

	snd_leave(s, i, false);
	snd_push(s, i, MRC_LOST);
	e->lost_on = (int16_t)e->ev;
	snd_count_lost(news, e->ev, e->bytes);
}

/* Which transmission a SACK speaks of. */
struct proof {
	bool valid; /* it names one */
	bool again;
	uint32_t psn;
	int ev;
};

static bool proves(const struct proof *p, const struct mrc_sent *e, uint32_t psn)
{
	return !e->again || (p->valid && p->again && p->psn == psn && p->ev == e->ev);
}

/* A packet has arrived. If this transmission has, so have those before it on its path, or never
 * will. */
static void arrive(
	struct mrc_snd *s, uint32_t psn, const struct proof *p, uint64_t now, struct mrc_news *news)
{
	const uint16_t i = snd_place(s, psn);
	struct mrc_sent *e = &s->sent[i];
	const bool proven = proves(p, e, psn);

	if (e->state == MRC_ARRIVED)
		return;
	if (e->hurried)
		mrc_doubts_came(&s->doubts, psn,
			e->state == MRC_FLIGHT && e->again && now >= e->at + s->rtt.least_ns);
	if (e->state == MRC_FLIGHT)
		snd_leave(s, i, proven);
	else
		snd_cut(s, i);
	if (proven && snd_later(e->on_path, s->path[e->ev].arrived))
		s->path[e->ev].arrived = e->on_path;
	news->arrived++;
}

/* The last packet that had arrived may have gone out once more, to ask for a transport ACK: any
 * word of the peer settles that. */
static void settle_asked(struct mrc_snd *s, uint64_t now)
{
	const uint16_t i = snd_place(s, s->cack);
	const struct mrc_sent *e = &s->sent[i];

	if (s->acked == s->cack || e->state == MRC_ARRIVED)
		return;
	mrc_doubts_came(
		&s->doubts, s->cack, e->state == MRC_FLIGHT && now >= e->at + s->rtt.least_ns);
	if (e->state == MRC_FLIGHT)
		snd_leave(s, i, false);
	else
		snd_cut(s, i);
}

/* Moves everything of a list to those that go again. */
static void release(struct mrc_snd *s, enum mrc_sent_state state)
{
	for (uint16_t i; (i = s->list[state].head) != NONE;) {
		snd_cut(s, i);
		snd_push(s, i, MRC_LOST);
	}
}

/* All up to cack have arrived, and those of the bitmap. */
static void tell(struct mrc_snd *s, uint32_t cack, uint64_t bitmap, uint32_t base,
	const struct proof *p, uint64_t now, struct mrc_news *news)
{
	const uint32_t from = psn_add(s->cack, 1);

	for (uint32_t psn = from; psn_le(psn, cack); psn = psn_add(psn, 1))
		arrive(s, psn, p, now, news);
	for (uint64_t bits = bitmap; bits; bits &= bits - 1)
		arrive(s, psn_add(base, __builtin_ctzll(bits) + MRC_BUG(BITMAP_OFF)), p, now, news);
}

static bool is_late(const struct mrc_snd *s, const struct mrc_sent *e, uint64_t now)
{
	return s->late_ns && e->at + s->late_ns <= now;
}

/* Whether a SACK tells of a packet that had left before: the transmission that has drawn it was
 * sent behind, in the same burst perhaps. */
static bool is_behind(const struct mrc_snd *s, const struct proof *p, uint32_t psn)
{
	const struct mrc_sent *e = &s->sent[snd_place(s, p->psn)];
	const uint64_t at = s->sent[snd_place(s, psn)].at;

	return p->valid && e->again == p->again && e->ev == p->ev &&
	       (e->at > at || (e->at == at && psn_lt(psn, p->psn)));
}

/* What a SACK says is missing, though a packet or a probe that left after it on its path has
 * arrived, or though it left so long ago that no queue can hold it still. What its bitmap does not
 * reach is not known, and an older SACK says nothing of what came since. */
static void miss(struct mrc_snd *s, const struct mrc_sack *sack, const struct proof *p,
	uint64_t now, struct mrc_news *news)
{
	if (psn_lt(sack->rcvd_units, s->told_units))
		return;
	s->told_units = sack->rcvd_units;
	for (uint64_t bits = ~sack->bitmap; bits; bits &= bits - 1) {
		const uint32_t psn = psn_add(sack->base_psn, __builtin_ctzll(bits));
		struct mrc_sent *e = &s->sent[snd_place(s, psn)];

		if (psn_le(psn, sack->cack_psn) || psn_le(psn, s->cack))
			continue;
		if (!was_sent(s, psn))
			break;
		if (e->state != MRC_FLIGHT)
			continue;
		if (snd_later(s->path[e->ev].arrived, e->on_path) || is_late(s, e, now))
			lose(s, snd_place(s, psn), news);
		else
			e->missed |= is_behind(s, p, psn);
	}
}

static void heard(struct mrc_snd *s, uint64_t now)
{
	s->heard_at = now;
	s->probed = 0;
}

static void move_cack(struct mrc_snd *s, uint32_t cack, uint64_t now)
{
	if (psn_le(cack, s->cack))
		return;
	s->cack = cack;
	s->acked_at = now;
	release(s, MRC_HELD);
}

/* The bits of a SACK that tell something: those beyond s->cack. */
static uint64_t beyond_cack(const struct mrc_snd *s, uint64_t bitmap, uint32_t base)
{
	const int32_t known = psn_diff(s->cack, base) + 1;

	if (known <= 0)
		return bitmap;
	return known >= 64 ? 0 : bitmap & ~UINT64_C(0) << known;
}

int mrc_snd_asks_about(const struct mrc_snd *s)
{
	const uint16_t i = s->list[MRC_FLIGHT].head;
	const struct mrc_sent *e = i == NONE ? NULL : &s->sent[i];

	return s->dry && e && s->path[e->ev].sent == e->on_path ? (int)e->ev : MRC_NO_EV;
}

uint32_t mrc_snd_probe(struct mrc_snd *s, unsigned ev)
{
	return ++s->path[ev].sent;
}

/* A probe has come, and so has all that was before it on its path, or never will: the next in doubt
 * may be asked about. */
static void probe_came(struct mrc_snd *s, int ev, uint32_t turn)
{
	const uint16_t i = s->list[MRC_FLIGHT].head;

	if (ev == MRC_NO_EV || !snd_later(turn, s->path[ev].arrived))
		return;
	s->path[ev].arrived = turn;
	if (i != NONE && s->sent[i].ev == ev)
		s->probed_at = 0;
}

/* The peer lives. */
static void no_tries(struct mrc_snd *s)
{
	s->tries = 0;
	s->try_at = 0;
}

int mrc_snd_sack(struct mrc_snd *s, const struct mrc_sack *sack, int ev, uint32_t turn,
	uint32_t loss_window, uint64_t now, struct mrc_news *news)
{
	const struct proof proof = {
		.valid = !sack->probe, .again = sack->rtx, .psn = sack->trigger_psn, .ev = ev};
	const uint64_t bits = beyond_cack(s, sack->bitmap, sack->base_psn);
	const uint32_t least = loss_window > s->loss_least ? loss_window : s->loss_least;
	const uint32_t room = s->mask + 1;
	uint64_t at;

	memset(news, 0, sizeof(*news));
	if (!was_sent(s, sack->cack_psn) || (!sack->probe && !was_sent(s, sack->trigger_psn)) ||
		(bits && !was_sent(s, psn_add(sack->base_psn, 63 - __builtin_clzll(bits)))))
		return -EINVAL;
	settle_asked(s, now);
	if (sack->probe)
		probe_came(s, ev, turn);
	else if (mrc_doubts_named(&s->doubts, sack->trigger_psn, ev, sack->rtx, &at))
		mrc_snd_rtt(s, now - at); /* it was in a hurry */
	tell(s, sack->cack_psn, bits, sack->base_psn, &proof, now, news);
	miss(s, sack, &proof, now, news);
	if (sack->mpr && psn_le(s->cack, sack->cack_psn))
		s->window = sack->mpr * MRC_MPR_UNIT < room ? sack->mpr * MRC_MPR_UNIT : room;
	move_cack(s, sack->cack_psn, now);
	for (uint16_t i; (i = s->list[MRC_FLIGHT].head) != NONE;) {
		if ((int32_t)(s->heard - s->sent[i].mark) < (int32_t)least)
			break;
		lose(s, i, news);
	}
	snd_tail_judge(s, now, news);
	if (news->arrived)
		no_tries(s);
	heard(s, now);
	return 0;
}

int mrc_snd_ack(struct mrc_snd *s, uint32_t psn, uint64_t now, struct mrc_news *news)
{
	const struct proof none = {.valid = false};

	memset(news, 0, sizeof(*news));
	if (!was_sent(s, psn))
		return -EINVAL;
	if (psn_le(psn, s->acked))
		return 0;
	settle_asked(s, now);
	tell(s, psn, 0, 0, &none, now, news);
	move_cack(s, psn, now);
	s->acked = psn;
	s->acked_at = now;
	no_tries(s);
	news->acked = true;
	heard(s, now);
	return 0;
}

static void count_try(struct mrc_snd *s, struct mrc_news *news)
{
	if (s->tries < s->linear_cnt + s->exp_cnt)
		s->tries++;
	else if (s->exp_cnt < MRC_EXP_ENDLESS)
		news->gone = true;
}

/* A refusal that leaves the connection as it is. */
static bool is_plain(uint8_t reason)
{
	return reason == MRC_NACK_TRIMMED || reason == MRC_NACK_TRIMMED_LASTHOP ||
	       reason == MRC_NACK_NO_BITMAP || reason == MRC_NACK_NO_PKT_BUFFER ||
	       reason == MRC_NACK_NO_RESOURCE || reason == MRC_NACK_PSN_OOR;
}

/* A transmission that was taken as lost had been trimmed. */
static bool was_trimmed(struct mrc_snd *s, const struct mrc_nack *nack, int ev)
{
	struct mrc_sent *e = &s->sent[snd_place(s, nack->psn)];

	if ((nack->reason != MRC_NACK_TRIMMED && nack->reason != MRC_NACK_TRIMMED_LASTHOP) ||
		ev == MRC_NO_EV || e->lost_on != ev)
		return false;
	e->lost_on = MRC_NO_EV;
	return true;
}

int mrc_snd_nack(
	struct mrc_snd *s, const struct mrc_nack *nack, int ev, uint64_t now, struct mrc_news *news)
{
	const uint16_t i = snd_place(s, nack->psn);
	struct mrc_sent *e = &s->sent[i];
	enum mrc_sent_state to;
	uint64_t at;

	memset(news, 0, sizeof(*news));
	if (!was_sent(s, nack->psn))
		return -EINVAL;
	if (!(e->state == MRC_FLIGHT && e->ev == ev) && is_plain(nack->reason) &&
		(mrc_doubts_named(&s->doubts, nack->psn, ev, false, &at) ||
			mrc_doubts_named(&s->doubts, nack->psn, ev, true, &at)))
		return 0; /* it has gone again */
	if (psn_le(nack->psn, s->acked))
		return -EINVAL;
	if (e->state != MRC_FLIGHT || e->ev != ev) {
		news->not_lost = was_trimmed(s, nack, ev);
		return news->not_lost ? 0 : -EINVAL;
	}
	switch (nack->reason) {
	case MRC_NACK_TRIMMED:
	case MRC_NACK_TRIMMED_LASTHOP:
		to = MRC_LOST;
		break;
	case MRC_NACK_NO_BITMAP:
	case MRC_NACK_NO_PKT_BUFFER:
	case MRC_NACK_NO_RESOURCE:
		to = MRC_LATER;
		break;
	case MRC_NACK_PSN_OOR:
		to = MRC_HELD;
		break;
	default:
		return -EPROTO;
	}
	snd_leave(s, i, false);
	e->at = to == MRC_LOST ? e->at : now;
	if (!MRC_BUG(FORGET_CUT))
		snd_push(s, i, to);
	if (to != MRC_LOST)
		count_try(s, news);
	heard(s, now);
	return 0;
}

/* ---- time ---- */

static uint64_t wait(const struct mrc_snd *s)
{
	const uint64_t longest = (uint64_t)TICK_NS << MRC_TIMEOUT_MAX;
	const unsigned doublings = s->tries > s->linear_cnt ? s->tries - s->linear_cnt : 0;
	const uint64_t ns = s->interval << doublings;

	return ns < longest ? ns : longest;
}

/* Everything sent has arrived, and a transport ACK is missing. */
static bool waits_for_ack(const struct mrc_snd *s)
{
	return !MRC_BUG(NO_ASK) && s->acked != s->cack && psn_add(s->cack, 1) == s->next &&
	       !s->list[MRC_FLIGHT].n && !s->list[MRC_LOST].n;
}

/* When it is asked for. */
static uint64_t ask_at(const struct mrc_snd *s)
{
	return waits_for_ack(s) ? snd_least(s->acked_at + wait(s), snd_tail_ask_at(s)) : UINT64_MAX;
}

static uint64_t head_at(const struct mrc_snd *s, enum mrc_sent_state state, uint64_t after)
{
	const uint16_t i = s->list[state].head;

	return i == NONE ? UINT64_MAX : s->sent[i].at + after;
}

/* What follows a packet tells of it, or there is silence. Behind the last one nothing follows: its
 * age counts, and it is asked about less and less often. */
static uint64_t probe_at(const struct mrc_snd *s)
{
	const uint64_t oldest = head_at(s, MRC_FLIGHT, 0);
	const bool tail = snd_is_tail(s);
	const uint64_t after = tail ? snd_tail_wait(s, s->probed) : s->late_ns;
	const uint64_t since = tail || s->probed ? s->probed_at : s->heard_at;

	if (after == 0 || s->probed == s->tail_probes || oldest == UINT64_MAX || snd_tail_again(s))
		return UINT64_MAX;
	return (oldest > since ? oldest : since) + after;
}

uint64_t mrc_snd_deadline(const struct mrc_snd *s)
{
	uint64_t at =
		snd_least(head_at(s, MRC_FLIGHT, wait(s)), head_at(s, MRC_LATER, s->later_ns));

	at = snd_least(at, snd_least(head_at(s, MRC_HELD, wait(s)), probe_at(s)));
	return snd_least(at, snd_least(snd_tail_deadline(s), ask_at(s)));
}

static void ask_again(struct mrc_snd *s, uint64_t now)
{
	struct mrc_sent *e = &s->sent[snd_place(s, s->cack)];

	snd_push(s, snd_place(s, s->cack), MRC_LOST);
	e->hurried += e->hurried < s->tail_probes;
	s->acked_at = now;
}

void mrc_snd_timer(struct mrc_snd *s, uint64_t now, bool *probe, struct mrc_news *news)
{
	const uint64_t patience = wait(s);
	bool over = false;

	memset(news, 0, sizeof(*news));
	*probe = probe_at(s) <= now;
	if (*probe) {
		s->probed++;
		s->probed_at = now;
	}
	while (head_at(s, MRC_LATER, s->later_ns) <= now) {
		const uint16_t i = s->list[MRC_LATER].head;

		snd_cut(s, i);
		snd_push(s, i, MRC_LOST);
	}
	if (head_at(s, MRC_HELD, patience) <= now) {
		release(s, MRC_HELD);
		over = true;
	}
	for (; head_at(s, MRC_FLIGHT, patience) <= now; over = true)
		lose(s, s->list[MRC_FLIGHT].head, news);
	snd_tail_hurry(s, now);
	snd_tail_judge(s, now, news);
	if (ask_at(s) <= now) {
		over |= s->acked_at + patience <= now;
		ask_again(s, now);
	}
	if (over && now >= s->try_at) {
		count_try(s, news);
		s->try_at = now + wait(s);
	}
}
