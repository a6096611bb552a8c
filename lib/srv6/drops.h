/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a segment endpoint or the head of a tunnel refuses a packet. The switch makes counters, drop
 * edges and documentation of it. */
#ifndef SRV6_DROPS_H
#define SRV6_DROPS_H

/* X(symbol, name, meaning) */
#define SRV6_DROPS(X)                                                                             \
	X(HOP_LIMIT, "srv6_hop_limit",                                                            \
		"hop limit has run out at a segment endpoint, or TTL before a tunnel")            \
	X(BAD_SRH, "srv6_bad_srh",                                                                \
		"lengths, last entry and segments left of the extension headers disagree")        \
	X(ROUTING, "srv6_routing",                                                                \
		"routing header of another type than segment routing has segments left")          \
	X(SEGMENT, "srv6_segment", "next segment is an address that no packet is routed to")      \
	X(SEGMENTS, "srv6_segments", "segments are left where the packet is to be unpacked")      \
	X(UPPER, "srv6_upper", "has reached its last segment here, and nothing takes it")         \
	X(INNER, "srv6_inner", "what is to be unpacked, or packed, is no whole IP packet")        \
	X(INNER_ND, "srv6_inner_nd", "neighbour discovery out of a tunnel: belongs on a link")    \
	X(ECN, "srv6_ecn", "congestion is marked outside, and inside says ECN is not understood") \
	X(TOO_LONG, "srv6_too_long", "larger than an IPv6 packet with the outer header")          \
	X(NO_ROOM, "srv6_no_room", "no room in the buffer for an outer header")                   \
	X(LOOP, "srv6_loop", "meets the switch's own segments and tunnels too often in a row")

enum srv6_drop {
	SRV6_OK = 0,
#define X(sym, name, text) SRV6_##sym,
	SRV6_DROPS(X)
#undef X
		SRV6_N_DROPS
};

#endif
