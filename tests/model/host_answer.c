/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/host_answer.h"

#include "tests/model/mutants.h"

/* What no other step depends on is put to 0. */
static void becomes(struct mc_host_state *h, enum mc_answer answer)
{
	h->answer = (uint8_t)answer;
	if (answer != MC_ANSWER_ACK)
		h->acks = 0;
	if (answer != MC_ANSWER_NAK)
		h->ahead = 0;
}

/* An ACK of all before `next`, no older than one that waits. A NAK that waits says as much. */
static void acknowledge(struct mc_host_state *h, unsigned next)
{
	if (h->answer == MC_ANSWER_NAK)
		return;
	becomes(h, MC_ANSWER_ACK);
	h->acks = (uint8_t)next;
}

void mc_answer_taken(struct mc_host_state *h, unsigned i, bool ackreq)
{
	bool due = ackreq || h->answer == MC_ANSWER_RNR ||
		   (h->answer == MC_ANSWER_ACK && !MUT(CO_STAYS));

	if (h->answer == MC_ANSWER_NAK) {
		/* It has something to ask for, unless all that was dropped has come. */
		if (i < h->ahead && !MUT(CO_FORGETS))
			return;
		becomes(h, MC_ANSWER_NONE);
		due = true;
	}
	h->nak = 0;
	if (due)
		acknowledge(h, i + 1);
}

void mc_answer_duplicate(struct mc_host_state *h)
{
	if (h->answer != MC_ANSWER_RNR || MUT(CO_DUP))
		acknowledge(h, h->epsn);
}

void mc_answer_gap(struct mc_host_state *h, unsigned i)
{
	if (!h->nak)
		becomes(h, MC_ANSWER_NAK);
	h->nak = 1;
	if (h->answer == MC_ANSWER_NAK && i > h->ahead)
		h->ahead = (uint8_t)i;
}

void mc_answer_hold(struct mc_host_state *h)
{
	becomes(h, MC_ANSWER_RNR);
}

void mc_answered(struct mc_host_state *h)
{
	h->nak |= h->answer == MC_ANSWER_NAK;
	becomes(h, MC_ANSWER_NONE);
}
