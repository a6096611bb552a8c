/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/tail.h"

#include "lib/mrc/snd_ring.h"

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Longer and longer, up to late_ns; where a round trip takes longer, not longer than once. */
uint64_t snd_tail_wait(const struct mrc_snd *s, unsigned before)
{
	const unsigned doubled = before < 20 ? before : 20; /* tail_probes may be 255 */
	const uint64_t once = s->tail_rtts && s->rtt.ns
				      ? snd_least(mrc_rtt_most(&s->rtt), UINT32_MAX) * s->tail_rtts
				      : s->tail_ns;
	const uint64_t longest = s->late_ns ? most(s->late_ns, once) : UINT64_MAX;

	return snd_least(once << doubled, longest);
}

/* The age at which nobody will name a transmission any more; 0: there is none. No queue that is
 * known of takes longer than what has been measured. */
static uint64_t silent_ns(const struct mrc_snd *s)
{
	return s->late_ns && s->rtt.ns ? most(s->late_ns, mrc_rtt_most(&s->rtt)) : s->late_ns;
}

bool snd_is_tail(const struct mrc_snd *s)
{
	return s->dry && s->tail_ns;
}

bool snd_tail_again(const struct mrc_snd *s)
{
	return snd_is_tail(s) && s->list[MRC_FLIGHT].n <= s->tail_again;
}

/* The peer names it at once when it comes. */
static bool draws_word(const struct mrc_sent *e)
{
	return e->asked || e->again;
}

/* When the last left of which the peer's word is put off: it counts from there. */
static uint64_t put_off_at(const struct mrc_snd *s)
{
	uint16_t i = s->list[MRC_FLIGHT].tail;

	while (i != SND_NONE && draws_word(&s->sent[i]))
		i = s->sent[i].prev;
	return i == SND_NONE ? 0 : s->sent[i].at;
}

static uint64_t goes_at(const struct mrc_snd *s, const struct mrc_sent *e, uint64_t put_off)
{
	const bool at_once = draws_word(e) || e->missed;

	if (e->hurried >= s->tail_probes)
		return UINT64_MAX;
	return (at_once ? e->at : put_off + s->guard_ns) + snd_tail_wait(s, e->hurried);
}

/* The one of a short tail that goes again first, and when. */
static uint16_t first(const struct mrc_snd *s, uint64_t *at)
{
	uint16_t found = SND_NONE;
	uint64_t put_off;

	*at = UINT64_MAX;
	if (!snd_tail_again(s))
		return SND_NONE;
	put_off = put_off_at(s);
	for (uint16_t i = s->list[MRC_FLIGHT].head; i != SND_NONE; i = s->sent[i].next) {
		const uint64_t t = goes_at(s, &s->sent[i], put_off);

		if (t < *at) {
			*at = t;
			found = i;
		}
	}
	return found;
}

uint64_t snd_tail_deadline(const struct mrc_snd *s)
{
	uint64_t at;

	first(s, &at);
	return snd_least(at, mrc_doubts_deadline(&s->doubts, silent_ns(s)));
}

/* The ACK is as long on its way as a word that the peer may put off. */
uint64_t snd_tail_ask_at(const struct mrc_snd *s)
{
	const struct mrc_sent *e = &s->sent[snd_place(s, s->cack)];

	if (!snd_is_tail(s) || !s->tail_again || e->hurried >= s->tail_probes)
		return UINT64_MAX;
	return s->acked_at + s->guard_ns + snd_tail_wait(s, e->hurried);
}

/* It goes again though nobody knows whether it is lost. Where no word names the first when it comes
 * there is nothing to find out by. */
static void hurry(struct mrc_snd *s, uint16_t i)
{
	struct mrc_sent *e = &s->sent[i];
	const struct mrc_doubt d = {.at = e->at,
		.psn = snd_psn_of(s, i),
		.on_path = e->on_path,
		.ev = e->ev,
		.bytes = e->bytes,
		.again = e->again};

	snd_leave(s, i, false);
	snd_push(s, i, MRC_LOST);
	e->hurried++;
	if (draws_word(e))
		mrc_doubts_add(&s->doubts, &d);
}

void snd_tail_hurry(struct mrc_snd *s, uint64_t now)
{
	uint64_t at;

	for (uint16_t i; (i = first(s, &at)) != SND_NONE && at <= now;)
		hurry(s, i);
}

void snd_tail_judge(struct mrc_snd *s, uint64_t now, struct mrc_news *news)
{
	const uint64_t silent = silent_ns(s);

	for (unsigned i = 0; i < s->doubts.n;) {
		const struct mrc_doubt *d = &s->doubts.d[i];

		if (d->suspect && (snd_later(s->path[d->ev].arrived, d->on_path) ||
					  (silent && d->at + silent <= now))) {
			const struct mrc_doubt lost = mrc_doubts_take(&s->doubts, i);

			snd_count_lost(news, lost.ev, lost.bytes);
		} else {
			i++;
		}
	}
}
