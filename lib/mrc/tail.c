/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/tail.h"

#include "lib/mrc/snd_ring.h"

/* Longer and longer, up to late_ns. */
uint64_t snd_tail_wait(const struct mrc_snd *s, unsigned before)
{
	const uint64_t longest = s->late_ns ? s->late_ns : UINT64_MAX;
	const unsigned doubled = before < 20 ? before : 20; /* tail_probes may be 255 */
	const uint64_t once = s->tail_rtts && s->rtt.ns
				      ? snd_least(mrc_rtt_most(&s->rtt), UINT32_MAX) * s->tail_rtts
				      : s->tail_ns;

	return snd_least(once << doubled, longest);
}

bool snd_is_tail(const struct mrc_snd *s)
{
	return s->dry && s->tail_ns;
}

bool snd_tail_again(const struct mrc_snd *s)
{
	return snd_is_tail(s) && s->list[MRC_FLIGHT].n <= s->tail_again;
}

/* When the oldest of a short tail goes again. */
static uint64_t hurry_at(const struct mrc_snd *s)
{
	const uint16_t i = s->list[MRC_FLIGHT].head;

	if (i == SND_NONE || !snd_tail_again(s) || s->sent[i].hurried >= s->tail_probes)
		return UINT64_MAX;
	return s->sent[i].at + snd_tail_wait(s, s->sent[i].hurried);
}

uint64_t snd_tail_deadline(const struct mrc_snd *s)
{
	return snd_least(hurry_at(s), mrc_doubts_deadline(&s->doubts, s->late_ns));
}

/* It goes again though nobody knows whether it is lost. */
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
	mrc_doubts_add(&s->doubts, &d);
}

void snd_tail_hurry(struct mrc_snd *s, uint64_t now)
{
	while (hurry_at(s) <= now)
		hurry(s, s->list[MRC_FLIGHT].head);
}

void snd_tail_judge(struct mrc_snd *s, uint64_t now, struct mrc_news *news)
{
	for (unsigned i = 0; i < s->doubts.n;) {
		const struct mrc_doubt *d = &s->doubts.d[i];

		if (d->suspect && (snd_later(s->path[d->ev].arrived, d->on_path) ||
					  (s->late_ns && d->at + s->late_ns <= now))) {
			const struct mrc_doubt lost = mrc_doubts_take(&s->doubts, i);

			snd_count_lost(news, lost.ev, lost.bytes);
		} else {
			i++;
		}
	}
}
