/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP segments (RFC 9293): headers with the options that we speak (maximum segment size; window
 * scale, RFC 7323; selective acknowledgements, RFC 2018), over IPv4 and IPv6. */
#ifndef WIRE_TCP_H
#define WIRE_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/frame.h"

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16 };
enum {
	TCP_HDR_LEN = 20,
	TCP_MAX_OPTIONS = 40,
	TCP_MAX_SACK = 4,
	TCP_MAX_WSCALE = 14,
	TCP_NO_WSCALE = 15,
	/* Ethernet, IPv6, TCP with all of its options. */
	WIRE_TCP_MAX_HEADERS = 14 + 40 + 60,
};

/* X(symbol, name, meaning) */
#define WIRE_TCP_DROPS(X)                                                                         \
	X(OTHER, "tcp_other", "no TCP segment, or a fragment of one")                             \
	X(LENGTH, "tcp_length", "data offset points into the header, or behind the packet")       \
	X(OPTIONS, "tcp_options", "an option is longer than the header, or not as long as it is") \
	X(CHECKSUM, "tcp_checksum", "checksum is wrong")

enum wire_tcp_drop {
	WIRE_TCP_OK = 0,
#define X(sym, name, text) WIRE_TCP_##sym,
	WIRE_TCP_DROPS(X)
#undef X
		WIRE_TCP_N_DROPS
};
const char *wire_tcp_drop_name(enum wire_tcp_drop drop);

struct wire_tcp {
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint16_t window; /* as carried */
	uint8_t flags;
	uint8_t wscale; /* TCP_NO_WSCALE: no such option */
	uint16_t mss;   /* 0: no such option */
	bool sack_ok;
	uint8_t n_sack;
	struct {
		uint32_t from, to;
	} sack[TCP_MAX_SACK];
};

/* Of a frame that wire_parse took; sets pay_off and pay_len of pkt. Looks at the payload only for
 * the checksum. Options that it does not know are passed over. */
enum wire_tcp_drop wire_tcp_parse(const uint8_t *frame, struct wire_pkt *pkt, struct wire_tcp *tcp);
bool wire_tcp_checksum_ok(const uint8_t *frame, const struct wire_pkt *pkt);

/* Headers from Ethernet on before pay_len bytes of payload; flow->sport is not looked at, and there
 * is no VLAN tag. The TCP checksum is missing. Their length; -ENOSPC: cap is less than
 * WIRE_TCP_MAX_HEADERS; -EINVAL: more options than a header holds. */
int wire_tcp_build(uint8_t *out, size_t cap, const struct wire_flow *flow,
	const struct wire_tcp *tcp, size_t pay_len);
/* Puts the checksum into a frame that is complete. len: of all of it. */
void wire_tcp_finish(uint8_t *frame, size_t len);

#endif
