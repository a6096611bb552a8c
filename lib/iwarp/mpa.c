/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/iwarp/mpa.h"

#include <errno.h>
#include <string.h>

enum { REVISION = 2 };

int mpa_connect(struct mpa *mpa, const struct mpa_offer *offer, uint8_t *out, size_t cap)
{
	const struct mpa_start start = {.crc = true,
		.revision = REVISION,
		.enhanced = true,
		.peer_to_peer = true,
		.rtr = MPA_RTR_WRITE,
		.ird = offer->ird,
		.ord = offer->ord,
		.private_len = offer->private_len,
		.private_data = offer->private_data};

	*mpa = (struct mpa){.initiator = true, .offer = *offer};
	return mpa_start_build(out, cap, &start);
}

void mpa_listen(struct mpa *mpa)
{
	*mpa = (struct mpa){0};
}

/* RFC 6581 has all ones for depths that are not agreed upon here, but by the programs. In one of
 * the two it goes for both: so irdma and nes of Linux read it, and keep their own depths. A number
 * beside it asks us for nothing, but as the peer's limit it does no harm: it is kept. */
static bool unagreed(const struct mpa_start *p)
{
	return p->ird == MPA_MAX_DEPTH || p->ord == MPA_MAX_DEPTH;
}

/* What a well-formed frame may not ask for. */
static enum iwarp_fault check(const struct mpa *mpa)
{
	const struct mpa_start *p = &mpa->peer;

	if (p->revision > REVISION)
		return IWARP_FAULT_START;
	if (p->markers)
		return IWARP_FAULT_MARKER;
	if (p->enhanced && p->peer_to_peer && !(p->rtr & MPA_RTR_WRITE))
		return IWARP_FAULT_RTR;
	/* A reply may lower what we have outstanding, and not ask for more than we take. */
	if (mpa->initiator && p->enhanced && !unagreed(p) && p->ord > mpa->offer.ird)
		return IWARP_FAULT_IRD;
	return IWARP_OK;
}

int mpa_rx(struct mpa *mpa, const uint8_t *bytes, size_t len, size_t *used, enum iwarp_fault *fault)
{
	*used = 0;
	*fault = IWARP_OK;
	for (;;) {
		const int need = mpa_start_parse(mpa->bytes, mpa->have, mpa->initiator, &mpa->peer);
		size_t take;

		if (need < 0) {
			*fault = IWARP_FAULT_START;
			return need;
		}
		if (need == 0)
			break;
		take = (size_t)need - mpa->have;
		if (take > len - *used)
			take = len - *used;
		if (take == 0)
			return 0;
		memcpy(mpa->bytes + mpa->have, bytes + *used, take);
		mpa->have += take;
		*used += take;
	}
	if (mpa->peer.reject)
		return -ECONNREFUSED;
	*fault = check(mpa);
	mpa->done = mpa->initiator && *fault == IWARP_OK;
	return *fault == IWARP_OK ? 1 : -EPROTO;
}

static uint16_t lesser(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

/* In the words of the request: its revision, and what it offers. */
static struct mpa_start answer(const struct mpa *mpa)
{
	const struct mpa_start *p = &mpa->peer;

	return (struct mpa_start){.reply = true,
		.crc = true,
		.revision = p->revision < 1 || p->revision > REVISION ? REVISION : p->revision,
		.enhanced = p->enhanced && p->revision <= REVISION,
		.peer_to_peer = p->peer_to_peer,
		.rtr = p->peer_to_peer ? MPA_RTR_WRITE : 0};
}

int mpa_accept(struct mpa *mpa, const struct mpa_offer *offer, uint8_t *out, size_t cap)
{
	struct mpa_start start = answer(mpa);
	int len;

	start.ird = offer->ird;
	start.ord = mpa->peer.enhanced ? lesser(offer->ord, mpa->peer.ird) : offer->ord;
	start.private_len = offer->private_len;
	start.private_data = offer->private_data;
	len = mpa_start_build(out, cap, &start);
	if (len > 0) {
		mpa->offer = *offer;
		mpa->offer.ord = start.ord;
		mpa->done = true;
	}
	return len;
}

int mpa_reject(
	struct mpa *mpa, const void *private_data, uint16_t private_len, uint8_t *out, size_t cap)
{
	struct mpa_start start = answer(mpa);

	start.reject = true;
	start.private_data = private_data;
	start.private_len = private_len;
	return mpa_start_build(out, cap, &start);
}

struct mpa_agreed mpa_agree(const struct mpa *mpa)
{
	const struct mpa_start *p = &mpa->peer;
	struct mpa_agreed a = {.ird = mpa->offer.ird,
		.ord = mpa->offer.ord,
		.rtr = p->enhanced && p->peer_to_peer,
		/* RFC 5044, 7.1.2: in any revision. */
		.waits = !mpa->initiator};

	if (p->enhanced)
		a.ord = lesser(a.ord, p->ird);
	return a;
}
