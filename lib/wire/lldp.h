/* SPDX-License-Identifier: BSD-3-Clause */
/* LLDP (IEEE 802.1AB): what a port says of itself to the next one at its cable: chassis, port, how
 * long that holds, and perhaps the system's name. Nobody forwards it. Other TLVs are passed over.
 */
#ifndef WIRE_LLDP_H
#define WIRE_LLDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ETH_TYPE_LLDP = 0x88cc,
	LLDP_ID_MAX = 255,  /* bytes of an id behind its subtype, and of a name */
	LLDP_MAX_LEN = 818, /* the longest frame that is built, and more */
	/* Subtypes of ids, of those that are built or shown in a form of their own. */
	LLDP_CHASSIS_MAC = 4,
	LLDP_CHASSIS_NETWORK = 5,
	LLDP_PORT_MAC = 3,
	LLDP_PORT_NETWORK = 4,
	LLDP_PORT_INTERFACE = 5,
};

/* What is wrong with a frame, which is refused as a whole: X(symbol, name, meaning). */
#define WIRE_LLDP_ERRORS(X)                                                                       \
	X(LLDP_TLV, "lldp_tlv",                                                                   \
		"LLDP: a TLV goes on behind the frame's end, or the last one has "                \
		"something in it")                                                                \
	X(LLDP_ORDER, "lldp_order",                                                               \
		"LLDP: does not begin with chassis, port and time to live, or has one of them "   \
		"twice")                                                                          \
	X(LLDP_ID, "lldp_id",                                                                     \
		"LLDP: id of a chassis or port without bytes, too long, of a kind that there is " \
		"not, "                                                                           \
		"or a MAC address that is none")                                                  \
	X(LLDP_TTL, "lldp_ttl", "LLDP: time to live of less than two bytes")

enum wire_lldp_error {
	WIRE_LLDP_OK,
#define X(sym, name, text) WIRE_##sym,
	WIRE_LLDP_ERRORS(X)
#undef X
};

struct wire_lldp_id {
	uint8_t type; /* subtype */
	uint8_t len;  /* 1 .. LLDP_ID_MAX */
	uint8_t b[LLDP_ID_MAX];
};

struct wire_lldp {
	struct wire_lldp_id chassis, port;
	uint8_t name_len; /* of the system; 0: it says none */
	uint8_t name[LLDP_ID_MAX];
	uint16_t ttl; /* seconds; 0: it is about to go */
};

/* An untagged frame of LLDP's type to the nearest bridge, 01:80:c2:00:00:0e. */
bool wire_is_lldp(const uint8_t *frame, size_t len);

/* Reads such a frame; *says is complete with WIRE_LLDP_OK only. What is behind the last TLV is
 * padding; without a last one the frame's end is it. Of names, which should come once, the first
 * counts. */
enum wire_lldp_error wire_lldp_parse(const uint8_t *frame, size_t len, struct wire_lldp *says);

/* The frame's length (at least ETH_MIN_LEN), -ENOSPC: that is more than cap, or -EINVAL: an id that
 * the parser would refuse. */
int wire_build_lldp(uint8_t *out, size_t cap, const uint8_t smac[6], const struct wire_lldp *says);

/* Text of an id: a MAC or IP address in its usual form, else what it says if that is printable
 * ASCII, else 0x and hexadecimal digits. What does not fit into cap is cut off. Return buf. */
const char *wire_lldp_chassis_text(const struct wire_lldp_id *id, char *buf, size_t cap);
const char *wire_lldp_port_text(const struct wire_lldp_id *id, char *buf, size_t cap);
const char *wire_lldp_name_text(const struct wire_lldp *says, char *buf, size_t cap); /* "": none */

bool wire_lldp_id_eq(const struct wire_lldp_id *a, const struct wire_lldp_id *b);

#endif
