/* SPDX-License-Identifier: BSD-3-Clause */
/* A state's name: a hash of all that decides what can happen from here on, and of nothing else.
 * Times count from now, probes from the last one; turns on a path and bytes received are compared
 * and nothing else, so that their order is all there is of them. What nobody will look at any more
 * is left out: of a packet that has arrived most of what was noted of it, once nothing is on its
 * way that a word could name it for. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/mrc/snd_ring.h"
#include "tests/model/intern.h"
#include "tests/model/mrc_pair.h"

enum {
	LONG_RTTS = 64,
	PROBES = MRC_PROBES_OUT,
	TURNS = MRC_M_MESSAGES * MRC_M_PACKETS + MRC_DOUBTS + PROBES
};

/* A requestor, and what is about that concerns it. */
struct view {
	const struct mrc_m_end *e, *peer;
	uint32_t named;  /* packets, a bit each, that a word may still name */
	uint32_t probes; /* those of the last that an answer may still come to: bit 0 the last */
	struct {
		unsigned n;
		uint32_t turn[TURNS]; /* that something may still be compared with */
	} path[MRC_M_EVS];
};

static uint64_t add(uint64_t h, const void *data, size_t len)
{
	return mc_hash(data, len, h);
}
#define ADD(h, field) add(h, &(field), sizeof(field))

static uint64_t number(uint64_t h, uint64_t n)
{
	return add(h, &n, sizeof(n));
}

static uint64_t ago(uint64_t at)
{
	return mrc_m.now - at;
}

/* ---- what is about ---- */

/* How many probes before the last; PROBES: nobody looks for its answer any more. */
static unsigned probe_back(const struct view *v, uint16_t id)
{
	const uint16_t back = (uint16_t)(v->e->req.probe_id - id);

	return back < PROBES ? back : PROBES;
}

static void name(struct view *v, bool probe, uint32_t psn, uint16_t id)
{
	if (probe)
		v->probes |= 1u << probe_back(v, id);
	else
		v->named |= 1u << psn_diff(psn, MRC_M_FIRST_PSN);
}

static void name_queue(struct view *v, const struct mrc_m_queue *q)
{
	for (unsigned i = 0; i < q->n; i++) {
		const struct mrc_pkt *p = &q->p[i].pkt;

		if (p->kind == MRC_KIND_PROBE)
			name(v, true, 0, p->probe.id);
		else
			name(v, false, p->data.psn, 0);
	}
}

static void name_words(struct view *v, const struct mrc_m_words *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		const struct mrc_pkt *p = &w->p[i];

		if (p->kind == MRC_KIND_SACK)
			name(v, p->sack.probe, p->sack.trigger_psn, p->sack.probe_id);
		else if (p->kind == MRC_KIND_NACK)
			name(v, false, p->nack.psn, 0);
	}
}

static void name_sayings(struct view *v, const struct mrc_rsp *r)
{
	for (uint32_t i = r->say_head; i != r->say_tail; i++) {
		const struct mrc_saying *s = &r->say[i % MRC_SAYINGS];

		name(v, s->probe, s->psn, s->probe_id);
	}
	if (r->guard)
		name(v, r->last.probe, r->last.psn, r->last.probe_id);
}

static const struct mrc_probe_out *probe_out(const struct view *v, unsigned back)
{
	return &v->e->req.probe_out[(uint16_t)(v->e->req.probe_id - back) % PROBES];
}

/* An answer to it would count. */
static bool is_asked(const struct view *v, unsigned back)
{
	return v->probes >> back & 1 && probe_out(v, back)->ev != MRC_NO_EV;
}

static void note_turn(struct view *v, unsigned ev, uint32_t turn)
{
	v->path[ev].turn[v->path[ev].n++] = turn;
}

static void note_turns(struct view *v)
{
	const struct mrc_snd *s = &v->e->req.snd;

	for (uint32_t psn = MRC_M_FIRST_PSN; psn != s->next; psn = psn_add(psn, 1)) {
		const struct mrc_sent *e = &s->sent[snd_place(s, psn)];

		if (e->state != MRC_ARRIVED)
			note_turn(v, e->ev, e->on_path);
	}
	for (unsigned i = 0; i < s->doubts.n; i++)
		note_turn(v, s->doubts.d[i].ev, s->doubts.d[i].on_path);
	for (unsigned back = 0; back < PROBES; back++)
		if (is_asked(v, back))
			note_turn(v, (unsigned)probe_out(v, back)->ev, probe_out(v, back)->turn);
}

static void look(struct view *v, unsigned end)
{
	*v = (struct view){.e = &mrc_m.end[end], .peer = &mrc_m.end[!end]};
	for (unsigned i = 0; i < MRC_M_EVS; i++)
		name_queue(v, &v->e->data[i]);
	name_queue(v, &v->e->cut);
	for (unsigned i = 0; i < MRC_M_PLANES; i++)
		name_words(v, &v->peer->word[i]);
	name_sayings(v, &v->peer->rsp);
	note_turns(v);
}

/* Where a turn is among those that count; two more for each before it. */
static unsigned place_of(const struct view *v, unsigned ev, uint32_t turn)
{
	unsigned place = 0;

	for (unsigned i = 0; i < v->path[ev].n; i++)
		place += 2 * snd_later(turn, v->path[ev].turn[i]) + (turn == v->path[ev].turn[i]);
	return place;
}

static uint32_t units_now(const struct view *v)
{
	const struct mrc_rcv *r = &v->peer->rsp.rcv;

	return psn_add(r->rcvd_units, r->rcvd_rest > 0);
}

/* The same of bytes received: as the words on their way have them, and the newest that was heard.
 */
static unsigned units_place(const struct view *v, uint32_t units)
{
	unsigned place = psn_lt(units_now(v), units) + 2 * psn_lt(v->e->req.snd.told_units, units);

	for (unsigned i = 0; i < MRC_M_PLANES; i++)
		for (unsigned k = 0; k < v->peer->word[i].n; k++) {
			const struct mrc_pkt *p = &v->peer->word[i].p[k];

			place +=
				3 * (p->kind == MRC_KIND_SACK && psn_lt(p->sack.rcvd_units, units));
		}
	return place;
}

/* ---- the requestor ---- */

/* How long a path has been bad: which of them the longest, and whether for as long as evset.c wants
 * before it takes its turn, which is less than LONG. */
static uint64_t bad_for(const struct mrc_evset *s, const struct mrc_ev *e)
{
	const uint64_t most = LONG_RTTS * s->base_rtt_ns;
	uint64_t before = 0;

	for (unsigned i = 0; i < MRC_M_EVS; i++)
		before += s->ev[i].state == MRC_EV_BAD && s->ev[i].bad_since < e->bad_since;
	return before << 48 | snd_least(ago(e->bad_since), most);
}

/* No mark but of packets that were trimmed, at most three: too few to go to a backup for. */
static uint64_t hash_path(uint64_t h, const struct mrc_evset *s, const struct mrc_ev *e)
{
	h = number(h, e->state | e->active << 8 | e->probing << 9 | e->successes << 16);
	if (e->state == MRC_EV_SKIP)
		h = number(h, e->skip_until > mrc_m.now ? ago(e->skip_until) : 0);
	if (e->state != MRC_EV_BAD)
		return h;
	return number(number(number(h, bad_for(s, e)), ago(e->probe_at)), e->probe_wait);
}

static uint64_t hash_paths(uint64_t h, const struct mrc_evset *s)
{
	h = number(number(h, s->turn), s->random);
	h = number(h, s->next_probe > mrc_m.now ? ago(s->next_probe) : 0);
	for (unsigned i = 0; i < MRC_M_EVS; i++)
		h = hash_path(h, s, &s->ev[i]);
	for (unsigned p = 0; p < MRC_M_PLANES; p++)
		h = add(h, &s->ring[p], offsetof(__typeof__(s->ring[0]), index) + s->ring[p].n);
	return h;
}

static uint64_t hash_sent(uint64_t h, const struct view *v, uint32_t psn)
{
	const struct mrc_snd *s = &v->e->req.snd;
	const struct mrc_sent *e = &s->sent[snd_place(s, psn)];
	const bool named = v->named >> psn_diff(psn, MRC_M_FIRST_PSN) & 1;
	const bool waits = e->state != MRC_ARRIVED;

	h = number(h, e->state);
	if (waits || named)
		h = number(h, e->ev | e->again << 16 | (uint64_t)(uint16_t)e->lost_on << 32);
	if (e->state == MRC_FLIGHT || named)
		h = number(h, e->asked);
	if (named || (waits && e->state != MRC_LOST))
		h = number(h, ago(e->at));
	if (waits || psn_lt(s->acked, psn))
		h = number(h, e->hurried);
	if (waits)
		h = number(h, e->next | (uint64_t)place_of(v, e->ev, e->on_path) << 32);
	if (e->state == MRC_FLIGHT)
		h = number(h, (s->heard - e->mark) | (uint64_t)e->missed << 32);
	return h;
}

static uint64_t hash_doubts(uint64_t h, const struct view *v)
{
	const struct mrc_doubts *ds = &v->e->req.snd.doubts;

	for (unsigned i = 0; i < ds->n; i++) {
		const struct mrc_doubt *d = &ds->d[i];

		h = number(h, d->psn | (uint64_t)d->ev << 32 | (uint64_t)d->again << 48 |
				      (uint64_t)d->suspect << 49);
		h = number(number(h, ago(d->at)), place_of(v, d->ev, d->on_path));
	}
	return number(h, ds->n);
}

/* Samples are too few for the shortest to be forgotten. */
static uint64_t hash_rtt(uint64_t h, const struct mrc_rtt *r)
{
	if (r->ns != 0 && r->young == 0) {
		fprintf(stderr, "incline-model-mrc: more round trips than are told apart\n");
		exit(2);
	}
	return number(number(number(h, r->ns), r->off_ns), r->least_ns);
}

/* Of a time that counts only if it is later than that of the oldest packet on its way, which only
 * becomes later. */
static uint64_t since(const struct mrc_snd *s, uint64_t at)
{
	const uint16_t i = s->list[MRC_FLIGHT].head;

	return i != SND_NONE && at > s->sent[i].at ? ago(at) + 1 : 0;
}

static uint64_t hash_snd(uint64_t h, const struct view *v)
{
	const struct mrc_snd *s = &v->e->req.snd;

	h = number(number(number(h, s->next), s->cack), s->acked);
	h = number(h, s->window | (uint64_t)s->dry << 32);
	h = number(number(number(h, s->tries), s->probed), since(s, s->probed_at));
	h = number(h, s->dry ? 0 : since(s, s->heard_at));
	h = number(h, s->acked == s->cack ? 0 : ago(s->acked_at)); /* waits_for_ack */
	h = number(h, s->try_at > mrc_m.now ? ago(s->try_at) : 0);
	h = number(h, units_place(v, s->told_units));
	for (unsigned i = 0; i < MRC_N_SENT_STATES; i++)
		h = number(h, s->list[i].head);
	for (uint32_t psn = MRC_M_FIRST_PSN; psn != s->next; psn = psn_add(psn, 1))
		h = hash_sent(h, v, psn);
	for (unsigned ev = 0; ev < MRC_M_EVS; ev++) {
		h = number(h, place_of(v, ev, s->path[ev].arrived));
		h = number(h, place_of(v, ev, s->path[ev].sent)); /* asks_about */
	}
	return hash_rtt(hash_doubts(h, v), &s->rtt);
}

static uint64_t hash_req(uint64_t h, const struct view *v)
{
	const struct mrc_req *q = &v->e->req;

	h = hash_snd(h, v);
	h = add(h, q->queue, MRC_M_MESSAGES * sizeof(q->queue[0]));
	h = number(h, q->head | (uint64_t)q->next << 32);
	h = number(h, q->msn | (uint64_t)q->rqmsn << 32);
	h = number(h, q->wimms | (uint64_t)q->status << 32);
	h = number(h, (uint64_t)(q->probe_ev + 1) | (uint64_t)q->tail_probe << 32);
	for (unsigned back = 0; back < PROBES; back++) {
		const struct mrc_probe_out *p = probe_out(v, back);

		if (is_asked(v, back))
			h = number(
				h, back | (uint64_t)p->ev << 8 |
					   (uint64_t)place_of(v, (unsigned)p->ev, p->turn) << 32);
	}
	return h;
}

/* ---- the responder, and what is on its way ---- */

/* at: nobody adds the time that it waits. */
static uint64_t hash_saying(uint64_t h, const struct view *v, const struct mrc_saying *s)
{
	h = number(h, s->psn | (uint64_t)s->ev << 32);
	h = number(h, s->reason | s->mark << 8 | s->rtx << 16 | s->probe << 17);
	return s->probe ? number(h, probe_back(v, s->probe_id)) : h;
}

/* The peer's, of this requestor's packets. */
static uint64_t hash_rsp(uint64_t h, const struct view *v)
{
	const struct mrc_rsp *r = &v->peer->rsp;
	const size_t bits = (size_t)((const uint64_t *)r->wimm - v->peer->rsp_mem);

	h = number(number(h, r->rcv.cack), r->rcv.high);
	h = number(number(h, r->rcv.rcvd_rest), units_place(v, units_now(v)));
	h = add(h, &r->mpr_units,
		offsetof(struct mrc_rsp, ends) - offsetof(struct mrc_rsp, mpr_units));
	h = add(h, v->peer->rsp_mem, bits * sizeof(uint64_t));
	for (unsigned i = 0; i < r->n_wimm; i++)
		h = ADD(h, r->wimm[(r->wimm_head + i) % r->c.max_wimm]);
	h = number(h, r->n_wimm | (uint64_t)r->fault << 32 | (uint64_t)r->failed << 33 |
			      (uint64_t)r->nak_due << 34);
	h = number(h, r->unsacked);
	for (uint32_t i = r->say_head; i != r->say_tail; i++)
		h = hash_saying(h, v, &r->say[i % MRC_SAYINGS]);
	h = number(h, r->say_tail - r->say_head);
	return r->guard ? number(hash_saying(h, v, &r->last), ago(r->last.at)) : number(h, 0);
}

static uint64_t hash_queue(uint64_t h, const struct view *v, const struct mrc_m_queue *q)
{
	for (unsigned i = 0; i < q->n; i++) {
		const struct mrc_pkt *p = &q->p[i].pkt;

		if (p->kind == MRC_KIND_PROBE)
			h = number(h, probe_back(v, p->probe.id));
		else
			h = number(h, 1u << 16 | p->data.ackreq << 17 | p->data.rtx << 18 |
					      (uint64_t)p->data.psn << 32);
		h = number(h, q->p[i].ev);
	}
	return number(h, q->n);
}

static uint64_t hash_words(uint64_t h, const struct view *v, const struct mrc_m_words *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		struct mrc_pkt p = w->p[i];

		if (p.kind == MRC_KIND_SACK) {
			p.sack.rcvd_units = units_place(v, p.sack.rcvd_units);
			p.sack.probe_id =
				(uint16_t)(p.sack.probe ? probe_back(v, p.sack.probe_id) : 0);
		}
		h = ADD(h, p);
	}
	return number(h, w->n);
}

/* From the requestor to the peer and back. */
static uint64_t hash_way(uint64_t h, const struct view *v)
{
	for (unsigned i = 0; i < MRC_M_EVS; i++)
		h = hash_queue(h, v, &v->e->data[i]);
	h = hash_queue(h, v, &v->e->cut);
	for (unsigned i = 0; i < MRC_M_PLANES; i++)
		h = hash_words(h, v, &v->peer->word[i]);
	return number(h, v->peer->turn);
}

static uint64_t hash_checks(uint64_t h, const struct mrc_m_end *e)
{
	for (unsigned i = 0; i < MRC_M_EVS && mrc_m_knows(); i++)
		h = number(h, e->lost_on[i] > 0);
	return add(h, e->placed, sizeof(*e) - offsetof(struct mrc_m_end, placed));
}

uint64_t mrc_m_hash(void)
{
	uint64_t h = number(0, mrc_m.losses | (uint64_t)mrc_m.trims << 32);

	h = number(h, mrc_m.twice | (uint64_t)mrc_m.early << 32);
	h = number(h, mrc_m_knows());
	for (unsigned i = 0; i < 2; i++) {
		struct view v;

		look(&v, i);
		h = hash_paths(h, &v.e->evs);
		h = hash_req(h, &v);
		h = hash_rsp(h, &v);
		h = hash_way(h, &v);
		h = hash_checks(h, v.e);
	}
	return h;
}
