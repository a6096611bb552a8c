/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/cookie.h"

#include <string.h>

#include "lib/wire/siphash.h"

/* The low 8 bits, before they are hidden. */
enum { NEXT_STEP = 1, SACK = 2, MSS_SHIFT = 2, WSCALE_SHIFT = 5, INDEX = 7 };

/* What is usual: IPv6's least, tunnels, Ethernet, pages, jumbo frames. */
static const uint16_t mss_of[INDEX + 1] = {64, 536, 1220, 1360, 1440, 1460, 4036, 8940};
/* Taken as less, a peer's window is seen too small, never too large. */
static const uint8_t wscale_of[INDEX + 1] = {TCP_NO_WSCALE, 0, 2, 4, 6, 7, 8, 10};

static uint32_t sealed(const uint64_t key[2], const struct place_tuple *tuple, uint64_t step,
	uint32_t peer_isn, uint8_t said)
{
	struct {
		struct place_tuple tuple;
		uint64_t step, isn_said;
	} in;
	uint32_t mac;

	memset(&in, 0, sizeof(in));
	in.tuple = *tuple;
	in.step = step;
	in.isn_said = (uint64_t)peer_isn << 8 | said;
	mac = (uint32_t)wire_siphash(key, &in, sizeof(in)) & ~0xffu;
	return mac | (said ^ mac >> 24);
}

uint32_t cookie_make(const uint64_t key[2], const struct place_tuple *tuple, uint64_t now,
	const struct wire_tcp *syn)
{
	const uint64_t step = now / COOKIE_STEP;
	const uint32_t mss = syn->mss != 0 ? syn->mss : 536;
	unsigned m = INDEX, w = 0;

	while (m > 0 && mss_of[m] > mss)
		m--;
	if (syn->wscale != TCP_NO_WSCALE)
		for (w = INDEX; wscale_of[w] > syn->wscale;)
			w--;
	return sealed(key, tuple, step, syn->seq,
		(uint8_t)((step & NEXT_STEP) | (syn->sack_ok ? SACK : 0) | m << MSS_SHIFT |
			  w << WSCALE_SHIFT));
}

bool cookie_read(const uint64_t key[2], const struct place_tuple *tuple, uint64_t now,
	uint32_t cookie, uint32_t peer_isn, struct wire_tcp *syn)
{
	const uint8_t said = (uint8_t)(cookie ^ cookie >> 24);
	uint64_t step = now / COOKIE_STEP;

	if ((step & NEXT_STEP) != (said & NEXT_STEP) && step-- == 0)
		return false;
	if (sealed(key, tuple, step, peer_isn, said) != cookie)
		return false;
	*syn = (struct wire_tcp){.seq = peer_isn,
		.flags = TCP_SYN,
		.mss = mss_of[said >> MSS_SHIFT & INDEX],
		.wscale = wscale_of[said >> WSCALE_SHIFT],
		.sack_ok = (said & SACK) != 0};
	return true;
}
