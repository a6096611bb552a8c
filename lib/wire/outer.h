/* SPDX-License-Identifier: BSD-3-Clause */
/* What a queue in the network reads and changes in the outermost IP header of any frame, whatever
 * that carries: DSCP, ECN and the length. No other header is touched: the ICRC masks DSCP and ECN,
 * and a frame that is cut off has no ICRC left. Pure functions; any thread. */
#ifndef WIRE_OUTER_H
#define WIRE_OUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_outer {
	uint8_t ver; /* 4 or 6; 0: no IP header, or not all of it, and nothing else is set */
	uint8_t tos; /* DSCP << 2 | ECN */
	uint16_t l3_off;
	uint16_t l3_len; /* of the header, with IPv4's options */
};

/* The first len bytes of a frame; up to two VLAN tags (IEEE 802.1Q, 802.1ad) come before it. */
struct wire_outer wire_outer(const uint8_t *frame, size_t len);

/* Another DSCP and ECN; the IPv4 checksum follows by RFC 1624, so that a wrong one stays wrong.
 * outer is what wire_outer gave, with ver not 0, and is kept up to date; so below. */
void wire_outer_set_tos(uint8_t *frame, struct wire_outer *outer, uint8_t tos);

/* Congestion Experienced (RFC 3168, section 5). False: the sender does not take part in ECN, and
 * nothing has changed. */
bool wire_outer_mark(uint8_t *frame, struct wire_outer *outer);

/* The frame has been cut to len bytes, at least its headers up to here: the IP length says so. */
void wire_outer_cut(uint8_t *frame, const struct wire_outer *outer, size_t len);

#endif
