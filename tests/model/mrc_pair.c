/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/mrc_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/psn.h"

enum { BASE_RTT = 4000, SPACE = 1 << 16, HEADERS = 48 };

struct mrc_m_pair mrc_m;

static const uint32_t evs[MRC_M_EVS] = {0x10, 0x11, 0x12};
static const uint8_t ports[MRC_M_EVS] = {0, 0, 1};

static struct mrc_m_end *other(const struct mrc_m_end *e)
{
	return &mrc_m.end[e == &mrc_m.end[0]];
}

static unsigned index_of(const struct mrc_m_end *e)
{
	return (unsigned)(e - mrc_m.end);
}

static unsigned packets_of(const struct mrc_m_message *m)
{
	return m->packets ? m->packets : 1;
}

/* ---- what leaves ---- */

static void full(void)
{
	fprintf(stderr, "incline-model-mrc: more packets on a path than there is room for\n");
	exit(2);
}

static void transmit(struct mrc_m_end *e)
{
	struct mrc_m_queue *q;
	struct mrc_out out;

	while (mrc_req_tx(&e->req, e->evs.up, mrc_m.now, &out)) {
		q = &e->data[mrc_evset_find(&e->evs, out.ev)];
		if (q->n == MRC_M_QUEUE)
			full();
		q->p[q->n++] = out;
	}
}

static void say_one(struct mrc_m_end *e)
{
	struct mrc_m_words *w = &e->word[e->turn];

	e->turn = (e->turn + 1) % MRC_M_PLANES;
	if (w->n == MRC_M_WORDS)
		full();
	mrc_rsp_tx(&e->rsp, mrc_m.now, &w->p[w->n++]);
}

static struct mrc_out pop(struct mrc_m_queue *q)
{
	const struct mrc_out p = q->p[0];

	memmove(q->p, q->p + 1, --q->n * sizeof(p));
	return p;
}

static struct mrc_pkt pop_word(struct mrc_m_words *w)
{
	const struct mrc_pkt p = w->p[0];

	memmove(w->p, w->p + 1, --w->n * sizeof(p));
	return p;
}

/* ---- what arrives ---- */

/* Messages lie SPACE apart in the peer's memory. */
static const char *place(struct mrc_m_end *to, const struct mrc_out *out)
{
	const struct mrc_data *d = &out->pkt.data;
	const unsigned from = index_of(other(to)), m = (unsigned)out->cookie;
	const unsigned i = out->offset / MRC_M_PMTU;

	if (m >= mrc_m.c.n[from] || i >= packets_of(&mrc_m.c.message[from][m]))
		return "a packet of no message";
	if (d->va != (uint64_t)m * SPACE + out->offset)
		return "a packet of a wrong address";
	if (to->placed[m][i]++)
		return "bytes are written twice";
	return NULL;
}

static bool is_there(const struct mrc_m_end *to, unsigned m)
{
	const struct mrc_m_message *msg = &mrc_m.c.message[index_of(other(to))][m];

	for (unsigned i = 0; i < packets_of(msg); i++)
		if (!to->placed[m][i])
			return false;
	return true;
}

/* Immediates complete in order, each when all before it is there. */
static const char *immediate(struct mrc_m_end *to, const struct mrc_wimm *wimm)
{
	const unsigned from = index_of(other(to));
	unsigned m = 0, n = 0;

	for (; m < mrc_m.c.n[from]; m++)
		if (mrc_m.c.message[from][m].imm && n++ == to->imms)
			break;
	if (m == mrc_m.c.n[from] || wimm->imm != m)
		return "an immediate out of order";
	if (wimm->bytes != mrc_m.c.message[from][m].packets * MRC_M_PMTU)
		return "an immediate of a wrong length";
	for (unsigned i = 0; i <= m; i++)
		if (!is_there(to, i))
			return "an immediate before the bytes";
	to->imms++;
	return NULL;
}

static struct mrc_met met_of(const struct mrc_out *out)
{
	return (struct mrc_met){.ev = out->ev,
		.ts = 0,
		.bytes = HEADERS + (out->pkt.kind == MRC_KIND_DATA ? out->pkt.data.pay_len : 0u),
		.at = mrc_m.now};
}

static const char *arrive(struct mrc_m_end *to, const struct mrc_out *out)
{
	const struct mrc_met met = met_of(out);
	const char *wrong = NULL;
	struct mrc_wimm wimm;
	enum mrc_step step;

	if (out->pkt.kind == MRC_KIND_PROBE) {
		mrc_rsp_probe(&to->rsp, &out->pkt.probe, &met);
		return NULL;
	}
	if (mrc_rsp_look(&to->rsp, &out->pkt.data) == MRC_NEW)
		wrong = place(to, out);
	mrc_rsp_data(&to->rsp, &out->pkt.data, &met, mrc_m.now);
	while (!wrong && (step = mrc_rsp_step(&to->rsp, &wimm)) != MRC_STEP_NONE)
		wrong = step == MRC_STEP_WIMM ? immediate(to, &wimm) : "the responder has failed";
	return wrong;
}

static void cut_arrives(struct mrc_m_end *to, const struct mrc_out *out)
{
	const struct mrc_met met = met_of(out);

	mrc_rsp_trimmed(&to->rsp, out->pkt.data.psn, false, &met, mrc_m.now);
}

static void word_arrives(struct mrc_m_end *to, const struct mrc_pkt *pkt)
{
	if (pkt->kind == MRC_KIND_SACK)
		mrc_req_sack(&to->req, &pkt->sack, mrc_m.now);
	else if (pkt->kind == MRC_KIND_NACK)
		mrc_req_nack(&to->req, &pkt->nack, mrc_m.now);
	else
		mrc_req_ack(&to->req, &pkt->ack, mrc_m.now);
}

/* ---- what must hold ---- */

static const char *completions(struct mrc_m_end *e)
{
	struct mrc_done done;

	while (mrc_req_done(&e->req, &done)) {
		if (done.status != MRC_STATUS_OK)
			return "the peer is taken to be gone";
		if (done.cookie != e->done)
			return "completions out of order";
		if (!is_there(other(e), e->done))
			return "complete before all bytes are there";
		e->done++;
	}
	return NULL;
}

/* Whether the packet of a PSN is in the peer's memory: PSNs count packets, message by message. */
static bool is_placed(const struct mrc_m_end *from, uint32_t psn)
{
	const struct mrc_m_message *m = mrc_m.c.message[index_of(from)];
	unsigned i = (unsigned)psn_diff(psn, MRC_M_FIRST_PSN);

	for (; i >= packets_of(m); m++)
		i -= packets_of(m);
	return other(from)->placed[m - mrc_m.c.message[index_of(from)]][i];
}

/* Each packet that was sent is known to have arrived, which is true, or is in a list. */
static const char *packets(struct mrc_m_end *e)
{
	const struct mrc_snd *s = &e->req.snd;
	unsigned waiting = 0, listed = 0;

	for (uint32_t psn = MRC_M_FIRST_PSN; psn != s->next; psn = psn_add(psn, 1)) {
		const bool arrived = s->sent[psn & s->mask].state == MRC_ARRIVED;

		if ((arrived || psn_le(psn, s->cack) || psn_le(psn, s->acked)) &&
			!is_placed(e, psn))
			return "taken to have arrived, and has not";
		waiting += !arrived;
	}
	for (unsigned i = MRC_FLIGHT; i < MRC_N_SENT_STATES; i++)
		listed += s->list[i].n;
	return listed == waiting ? NULL : "a packet is forgotten";
}

static const char *paths(const struct mrc_m_end *e)
{
	unsigned active = 0, in_rings = 0;

	for (unsigned i = 0; i < MRC_M_EVS; i++) {
		const struct mrc_ev *ev = &e->evs.ev[i];

		active += ev->active;
		if (ev->active && ev->state > MRC_EV_SKIP)
			return "a bad path is in use";
		if (ev->state == MRC_EV_BAD && !e->lost_on[i] && mrc_m_knows())
			return "a path is bad that has lost nothing";
	}
	for (unsigned p = 0; p < MRC_M_PLANES; p++) {
		in_rings += e->evs.ring[p].n;
		for (unsigned i = 0; i < e->evs.ring[p].n; i++)
			if (e->evs.ev[e->evs.ring[p].index[i]].port != p)
				return "a path is in another plane's ring";
	}
	if (active != e->evs.n_active || in_rings != active)
		return "rings and paths differ";
	return active < mrc_m.c.min_active ? "fewer paths than ev_min_active" : NULL;
}

static const char *check(void)
{
	const char *wrong = NULL;

	for (unsigned i = 0; i < 2 && !wrong; i++) {
		struct mrc_m_end *e = &mrc_m.end[i];

		wrong = completions(e);
		wrong = wrong ? wrong : packets(e);
		wrong = wrong ? wrong : paths(e);
		if (!wrong && e->req.status)
			wrong = "the connection has failed";
		if (!wrong && e->rsp.lost_sayings)
			wrong = "a word had no room";
	}
	return wrong;
}

/* ---- beginning ---- */

static void open_end(struct mrc_m_end *e)
{
	const struct mrc_req_config req = {.snd = {.first_psn = MRC_M_FIRST_PSN,
						   .mpr_units = 1,
						   .timeout = 5,
						   .linear_cnt = 7,
						   .exp_cnt = 7,
						   .later_ns = BASE_RTT,
						   .tail_ns = 2 * BASE_RTT,
						   .late_ns = 4 * BASE_RTT,
						   .guard_ns = BASE_RTT,
						   .tail_rtts = 1,
						   .tail_again = (uint8_t)mrc_m.c.tail_again},
		.pmtu = MRC_M_PMTU,
		.messages = MRC_M_MESSAGES,
		.max_wimm = 2,
		.peer_nacks_trimmed = true};
	const struct mrc_rsp_config rsp = {.first_psn = MRC_M_FIRST_PSN,
		.mpr_units = 1,
		.max_wimm = 2,
		.pmtu = MRC_M_PMTU,
		.guard_ns = BASE_RTT,
		.oor_ns = BASE_RTT};
	const struct mrc_evset_config ev = {.n_ports = MRC_M_PLANES,
		.max_active = MRC_M_EVS,
		.min_active = mrc_m.c.min_active,
		.base_rtt_ns = BASE_RTT,
		.probes_to_return = 2,
		.seed = 1};

	if (mrc_req_bytes(&req) > sizeof(e->req_mem) || mrc_rsp_bytes(&rsp) > sizeof(e->rsp_mem) ||
		mrc_evset_init(&e->evs, &ev, evs, ports, MRC_M_EVS) < 0 ||
		mrc_req_init(&e->req, &req, &e->evs, NULL, e->req_mem) < 0 ||
		mrc_rsp_init(&e->rsp, &rsp, e->rsp_mem) < 0)
		abort();
}

void mrc_m_begin(const struct mrc_m_config *c)
{
	memset(&mrc_m, 0, sizeof(mrc_m));
	mrc_m.c = *c;
	mrc_m.losses = c->losses;
	mrc_m.trims = c->trims;
	mrc_m.twice = c->twice;
	mrc_m.early = c->early;
	for (unsigned i = 0; i < 2; i++) {
		open_end(&mrc_m.end[i]);
		for (unsigned m = 0; m < c->n[i]; m++) {
			const struct mrc_msg msg = {.cookie = m,
				.va = (uint64_t)m * SPACE,
				.length = c->message[i][m].packets * MRC_M_PMTU,
				.has_imm = c->message[i][m].imm,
				.imm = m};

			if (mrc_req_post(&mrc_m.end[i].req, &msg) < 0)
				abort();
		}
		transmit(&mrc_m.end[i]);
	}
}

/* ---- steps ---- */

static uint64_t deadline(void)
{
	uint64_t at = UINT64_MAX;

	for (unsigned i = 0; i < 2; i++) {
		const uint64_t q = mrc_req_deadline(&mrc_m.end[i].req),
			       r = mrc_rsp_deadline(&mrc_m.end[i].rsp);

		at = q < at ? q : at;
		at = r < at ? r : at;
	}
	return at;
}

static bool quiet(void)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct mrc_m_end *e = &mrc_m.end[i];
		unsigned n = e->cut.n + mrc_rsp_pending(&e->rsp);

		for (unsigned k = 0; k < MRC_M_EVS; k++)
			n += e->data[k].n;
		for (unsigned k = 0; k < MRC_M_PLANES; k++)
			n += e->word[k].n;
		if (n > 0)
			return false;
	}
	return true;
}

bool mrc_m_ended(void)
{
	for (unsigned i = 0; i < 2; i++)
		if (mrc_m.end[i].done < mrc_m.c.n[i] || mrc_m.end[i].evs.n_bad)
			return false;
	return quiet();
}

static unsigned steps_of(unsigned from, struct mrc_m_step *step)
{
	const struct mrc_m_end *e = &mrc_m.end[from];
	unsigned n = 0;

#define ADD(k, i) (step[n++] = (struct mrc_m_step){k, (uint8_t)from, (uint8_t)(i)})
	for (unsigned i = 0; i < MRC_M_EVS; i++) {
		if (!e->data[i].n)
			continue;
		ADD(MRC_M_DELIVER, i);
		if (mrc_m.losses)
			ADD(MRC_M_LOSE, i);
		if (mrc_m.trims && e->data[i].p[0].pkt.kind == MRC_KIND_DATA)
			ADD(MRC_M_TRIM, i);
		if (mrc_m.twice)
			ADD(MRC_M_TWICE, i);
	}
	if (e->cut.n) {
		ADD(MRC_M_DELIVER_CUT, 0);
		if (mrc_m.losses)
			ADD(MRC_M_LOSE_CUT, 0);
	}
	for (unsigned i = 0; i < MRC_M_PLANES; i++) {
		if (!e->word[i].n)
			continue;
		ADD(MRC_M_DELIVER_WORD, i);
		if (mrc_m.losses)
			ADD(MRC_M_LOSE_WORD, i);
	}
	if (mrc_rsp_pending(&e->rsp))
		ADD(MRC_M_SAY, 0);
#undef ADD
	return n;
}

unsigned mrc_m_steps(struct mrc_m_step step[MRC_M_STEPS])
{
	unsigned n = steps_of(0, step);

	n += steps_of(1, step + n);
	if (deadline() != UINT64_MAX && (n == 0 || mrc_m.early))
		step[n++] = (struct mrc_m_step){MRC_M_TIMER, 0, 0};
	return n;
}

static void timers(void)
{
	const uint64_t at = deadline();

	if (!quiet()) {
		mrc_m.early--;
		mrc_m.was_early = true;
	}
	mrc_m.now = at > mrc_m.now ? at : mrc_m.now;
	for (unsigned i = 0; i < 2; i++) {
		struct mrc_m_end *e = &mrc_m.end[i];

		if (mrc_req_deadline(&e->req) <= mrc_m.now)
			mrc_req_timer(&e->req, mrc_m.now);
		if (mrc_rsp_deadline(&e->rsp) <= mrc_m.now)
			mrc_rsp_timer(&e->rsp, mrc_m.now);
	}
}

static void lose(struct mrc_m_end *e, const struct mrc_out *p)
{
	e->lost_on[mrc_evset_find(&e->evs, p->ev)]++;
	mrc_m.losses--;
}

static const char *step_of(struct mrc_m_end *e, const struct mrc_m_step *s)
{
	struct mrc_out p;
	struct mrc_pkt word;

	switch (s->kind) {
	case MRC_M_DELIVER:
		p = pop(&e->data[s->at]);
		return arrive(other(e), &p);
	case MRC_M_TWICE:
		mrc_m.twice--;
		p = e->data[s->at].p[0];
		return arrive(other(e), &p);
	case MRC_M_DELIVER_CUT:
		p = pop(&e->cut);
		cut_arrives(other(e), &p);
		return NULL;
	case MRC_M_DELIVER_WORD:
		word = pop_word(&e->word[s->at]);
		word_arrives(other(e), &word);
		return NULL;
	case MRC_M_SAY:
		say_one(e);
		return NULL;
	case MRC_M_LOSE:
		p = pop(&e->data[s->at]);
		lose(e, &p);
		return NULL;
	case MRC_M_LOSE_CUT:
		p = pop(&e->cut);
		lose(e, &p);
		return NULL;
	case MRC_M_LOSE_WORD:
		pop_word(&e->word[s->at]);
		mrc_m.losses--;
		mrc_m.word_lost = true;
		return NULL;
	case MRC_M_TRIM:
		mrc_m.trims--;
		if (e->cut.n == MRC_M_QUEUE)
			full();
		e->cut.p[e->cut.n++] = pop(&e->data[s->at]);
		/* What follows on the path may prove it missing before the NACK is heard. */
		e->lost_on[s->at]++;
		return NULL;
	default:
		timers();
		return NULL;
	}
}

const char *mrc_m_do(const struct mrc_m_step *s)
{
	const char *wrong = step_of(&mrc_m.end[s->from], s);

	for (unsigned i = 0; i < 2 && !wrong; i++)
		transmit(&mrc_m.end[i]);
	return wrong ? wrong : check();
}

/* ---- in words ---- */

void mrc_m_print(const struct mrc_m_step *s)
{
	static const char *const names[] = {"data arrives", "cut headers arrive", "a word arrives",
		"a word leaves", "timers", "data is lost", "cut headers are lost", "a word is lost",
		"data is cut", "data arrives and comes again"};

	printf("  %s", names[s->kind]);
	if (s->kind != MRC_M_TIMER)
		printf(", from end %u", s->from);
	if (s->kind == MRC_M_DELIVER || s->kind == MRC_M_LOSE || s->kind == MRC_M_TRIM ||
		s->kind == MRC_M_TWICE)
		printf(", path %u", s->at);
	printf("\n");
}
