/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet sent once is lost if one behind it that was sent once has arrived. One sent again may
 * overtake those: it is lost if something that was sent later has arrived. order[i] is that of
 * packet i among those sent since the last one that has arrived, from 1; 0: before it. */
#include "tests/model/host_sr.h"

#include "tests/model/mutants.h"

enum { TELL_EVERY = 4 }; /* packets that were kept and not told of */

static uint64_t bit(unsigned i)
{
	return UINT64_C(1) << i;
}

static bool is_lost(const struct mc_host_state *h, unsigned i)
{
	if (h->sacked & bit(i))
		return false;
	if (MUT(SR_BELOW))
		return h->order[i] == 0 || i < h->end;
	return h->resent & bit(i) ? h->order[i] == 0 : i < h->end;
}

void mc_sr_pass(struct mc_host_state *h)
{
	while (h->next < h->high && !is_lost(h, h->next))
		h->next++;
}

void mc_sr_sent(struct mc_host_state *h)
{
	const unsigned i = h->next;
	unsigned last = 0;

	for (unsigned k = h->una; k < h->high; k++)
		last = h->order[k] > last ? h->order[k] : last;
	h->order[i] = (uint8_t)(last + 1);
	if (i < h->high)
		h->resent |= bit(i);
}

static void arrived(struct mc_host_state *h, unsigned i)
{
	const unsigned order = h->order[i];

	for (unsigned k = h->una; k < h->high; k++)
		h->order[k] = (uint8_t)(h->order[k] > order ? h->order[k] - order : 0);
	if (!(h->resent & bit(i)) && i >= h->end)
		h->end = (uint8_t)(i + 1);
}

void mc_sr_acked(struct mc_host_state *h, unsigned una)
{
	for (unsigned i = h->una; i < una; i++)
		if (!(h->sacked & bit(i)))
			arrived(h, i);
}

static void lose(struct mc_host_state *h, unsigned i)
{
	h->resent |= bit(i);
	h->order[i] = 0;
}

void mc_sr_go_back(struct mc_host_state *h)
{
	if (h->una < h->high) /* what was to acknowledge it may be lost */
		h->sacked &= ~bit(h->una);
	for (unsigned i = h->una; i < h->high; i++)
		lose(h, i);
	h->next = h->una;
}

void mc_sr_nak(struct mc_host_state *h, const uint8_t *map, unsigned len)
{
	for (unsigned k = 0; k < 8 * len && h->una + 1 + k < h->high; k++) {
		const unsigned i = h->una + 1 + k;

		if (!roce_sack_bit(map, k) || h->sacked & bit(i))
			continue;
		h->sacked |= bit(i);
		arrived(h, i);
	}
	if (h->rnr)
		return;
	if (len > 0)
		h->next = h->una;
	else if (!(h->resent & bit(h->una)) || is_lost(h, h->una) || MUT(SR_NO_MAP))
		mc_sr_go_back(h);
}

void mc_sr_settle(struct mc_host_state *h)
{
	uint64_t flying = 0;
	unsigned rank = 0;

	for (unsigned i = h->una; i < h->high; i++)
		flying |= bit(i);
	h->sacked &= flying;
	h->resent &= flying & ~h->sacked;
	for (unsigned i = 0; i < MC_SR_PSN; i++)
		if (!(flying & ~h->sacked & bit(i)))
			h->order[i] = 0;
	/* Without the gaps that those have left, in the same order. */
	for (unsigned want = 1; want <= MC_SR_PSN; want++)
		for (unsigned i = h->una; i < h->high; i++)
			if (h->order[i] == want)
				h->order[i] = (uint8_t)++rank;
	while (h->end > h->una && (h->end > h->high || (h->sacked | h->resent) & bit(h->end - 1u)))
		h->end--;
	if (h->end <= h->una)
		h->end = 0;
}

/* ---- responder ---- */

bool mc_sr_take(struct mc_host_state *h, bool ackreq)
{
	bool asks = ackreq;

	for (h->epsn++; h->epsn < MC_SR_PSN && h->kept & bit(h->epsn); h->epsn++) {
		asks |= (h->asking & bit(h->epsn)) || MUT(SR_FILLED);
		h->kept &= ~bit(h->epsn);
		h->asking &= ~bit(h->epsn);
	}
	h->nak = 0;
	return asks;
}

bool mc_sr_keep(struct mc_host_state *h, unsigned i, bool ackreq)
{
	if (h->kept & bit(i))
		return true;
	h->kept |= bit(i);
	if (ackreq)
		h->asking |= bit(i);
	return ackreq || ++h->unsaid >= TELL_EVERY + MUT(SR_SELDOM);
}

uint64_t mc_sr_map(struct mc_host_state *h)
{
	if (h->kept == 0)
		return 0;
	h->unsaid = 0;
	return h->kept >> h->epsn >> 1;
}
