/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/rcv.h"

#include <errno.h>
#include <string.h>

#include "lib/mrc/seeded_bugs.h"
#include "lib/wire/psn.h"

enum { WORD = 64, LOW_END_EVERY = 4, OOO_MAX = 0x7fff, OFFSET_MAX = 0x7fff };

static uint32_t capacity(unsigned mpr_units)
{
	uint32_t n = MRC_MPR_UNIT;

	while (n < mpr_units * MRC_MPR_UNIT)
		n *= 2;
	return n;
}

size_t mrc_rcv_bytes(unsigned mpr_units)
{
	return capacity(mpr_units) / 8;
}

int mrc_rcv_init(struct mrc_rcv *r, uint32_t first_psn, unsigned mpr_units, void *bits)
{
	if (mpr_units == 0 || mpr_units > MRC_MPR_MAX)
		return -EINVAL;
	memset(bits, 0, mrc_rcv_bytes(mpr_units));
	*r = (struct mrc_rcv){
		.cack = psn_add(first_psn, -1),
		.high = psn_add(first_psn, -1),
		.mpr = mpr_units * MRC_MPR_UNIT,
		.bits = bits,
		.mask = capacity(mpr_units) - 1,
	};
	return 0;
}

static uint64_t *word_of(const struct mrc_rcv *r, uint32_t psn)
{
	return &r->bits[(psn & r->mask) / WORD];
}

static uint64_t bit_of(uint32_t psn)
{
	return (uint64_t)1 << psn % WORD;
}

enum mrc_arrival mrc_rcv_look(const struct mrc_rcv *r, uint32_t psn)
{
	int32_t ahead = psn_diff(psn, r->cack);

	if (ahead <= 0)
		return MRC_DUPLICATE;
	if ((uint32_t)ahead > r->mpr)
		return MRC_BEYOND;
	return *word_of(r, psn) & bit_of(psn) && !MRC_BUG(PLACE_TWICE) ? MRC_REPEATED : MRC_NEW;
}

static void advance(struct mrc_rcv *r)
{
	for (uint32_t next = psn_add(r->cack, 1); *word_of(r, next) & bit_of(next);
		next = psn_add(next, 1)) {
		*word_of(r, next) &= ~bit_of(next);
		r->cack = next;
		r->ooo--;
	}
}

enum mrc_arrival mrc_rcv_packet(struct mrc_rcv *r, uint32_t psn, uint32_t bytes)
{
	enum mrc_arrival arrival = mrc_rcv_look(r, psn);

	if (arrival == MRC_BEYOND)
		return arrival;
	r->rcvd_rest += bytes;
	r->rcvd_units = (r->rcvd_units + r->rcvd_rest / MRC_RCVD_UNIT) & PSN_MASK;
	r->rcvd_rest %= MRC_RCVD_UNIT;
	if (arrival != MRC_NEW)
		return arrival;
	*word_of(r, psn) |= bit_of(psn);
	r->ooo++;
	r->high = psn_max(r->high, psn);
	advance(r);
	return arrival;
}

/* 64 PSNs from base on; those up to cack have arrived, those beyond the highest have not. */
static uint64_t window_at(const struct mrc_rcv *r, uint32_t base)
{
	uint64_t bitmap = 0;

	for (unsigned i = 0; i < WORD; i++) {
		uint32_t psn = psn_add(base, (int32_t)i);
		int32_t ahead = psn_diff(psn, r->cack);

		if (ahead <= 0 || (psn_le(psn, r->high) && *word_of(r, psn) & bit_of(psn)))
			bitmap |= (uint64_t)1 << i;
	}
	return bitmap;
}

void mrc_rcv_sack(struct mrc_rcv *r, uint32_t psn, struct mrc_sack *sack)
{
	uint32_t base = psn_add(r->cack, 1);
	int32_t span = psn_diff(r->high, r->cack), ahead = psn_diff(psn, r->cack);

	/* The hole at the low end is cack + 1 itself. */
	if (span > WORD && ++r->sacks % LOW_END_EVERY != 0) {
		if (ahead > WORD / 2)
			base = psn_add(psn, -WORD / 2);
		if (psn_diff(r->high, base) < WORD)
			base = psn_add(r->high, 1 - WORD);
	}
	sack->cack_psn = r->cack;
	sack->trigger_psn = ahead < -OFFSET_MAX ? r->cack : psn;
	sack->base_psn = base;
	sack->bitmap = window_at(r, base);
	sack->ooo_count = (uint16_t)(r->ooo < OOO_MAX ? r->ooo : OOO_MAX);
	sack->rcvd_units = (r->rcvd_units + (r->rcvd_rest > 0)) & PSN_MASK;
}
