/* SPDX-License-Identifier: BSD-3-Clause */
/* SYN cookies (RFC 4987, 3.6): an initial sequence number that says what a SYN did, so that nothing
 * has to be kept until its sender has shown that it hears us. As FreeBSD has them, which needs no
 * timestamps: 24 bits of a keyed hash over both ends, the peer's initial number, the time and
 * these 8 bits: which of two steps of time, SACK-permitted, and of MSS and window scale the largest
 * listed that is not above the peer's. Pure. */
#ifndef STREAM_COOKIE_H
#define STREAM_COOKIE_H

#include "lib/place/place.h"
#include "lib/wire/tcp.h"

/* ns: a cookie is good for the rest of its step, and the next one. */
#define COOKIE_STEP (64ull * 1000000000)

/* syn: of it seq, mss, sack_ok, wscale. */
uint32_t cookie_make(const uint64_t key[2], const struct place_tuple *tuple, uint64_t now,
	const struct wire_tcp *syn);
/* false: never made, or too long ago. Else *syn is what the peer said: seq, mss, sack_ok, wscale.
 */
bool cookie_read(const uint64_t key[2], const struct place_tuple *tuple, uint64_t now,
	uint32_t cookie, uint32_t peer_isn, struct wire_tcp *syn);

#endif
