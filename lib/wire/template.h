/* SPDX-License-Identifier: BSD-3-Clause */
/* Header templates: for a run of packets that differ only in opcode, SE, MigReq, AckReq, PSN and
 * IPv4 ID, the headers are copied and patched instead of built, and the ICRC follows from the
 * template's without reading them back. CRC-32 is linear: changing a word w that n bytes follow
 * changes the CRC by w x^(8(n + 4)) mod P, one carry-less multiplication per word. */
#ifndef WIRE_TEMPLATE_H
#define WIRE_TEMPLATE_H

#include "lib/wire/frame.h"
#include "lib/wire/icrc.h"

enum { WIRE_TEMPLATE_LEN = 112 }; /* also holds all headers of any packet: WIRE_MAX_HEADERS */

struct wire_template {
	uint8_t head[WIRE_TEMPLATE_LEN]; /* what changes is zero */
	uint8_t len;                     /* bytes of headers */
	uint8_t l3, bth;                 /* offsets */
	uint8_t ip_ver;
	uint16_t ip_sum;                   /* sum of the IPv4 header without its ID, not inverted */
	uint16_t pay_len;                  /* payload bytes, a multiple of 4 */
	uint32_t crc;                      /* the template's share of the ICRC */
	struct icrc_shift opcode, psn, id; /* of the payload's length, whatever the flow */
};

/* For packets of this flow with these header fields (opcode: any without extended headers; what
 * changes is ignored) and payloads of pay_len bytes. 0, or -EINVAL: opcode with extended headers,
 * pay_len not a multiple of 4, or what wire_build_headers refuses. */
int wire_template_init(struct wire_template *t, const struct wire_flow *flow,
	const struct wire_hdr *hdr, size_t pay_len);

/* Writes the headers of one packet (t->len bytes; out has room for WIRE_TEMPLATE_LEN, all of which
 * may be written) and returns its ICRC. Of hdr only what changes is read. pay_crc as for
 * icrc_combine. Same bytes as wire_build_headers. */
uint32_t wire_template_write(
	const struct wire_template *t, const struct wire_hdr *hdr, uint32_t pay_crc, uint8_t *out);

/* The same in two steps, for packets to several receivers that differ in nothing but their
 * templates, all of one pay_len: what they have in common is worked out once, from any of them. */
struct wire_common {
	uint32_t crc;    /* share of the ICRC: payload, opcode, flags, PSN */
	uint32_t id_crc; /* IPv4: that of the ID */
	uint32_t word;   /* AckReq and PSN, as on the wire */
	uint16_t ip_id;
	uint8_t opcode, flags;
};
struct wire_common wire_template_common(
	const struct wire_template *t, const struct wire_hdr *hdr, uint32_t pay_crc);
uint32_t wire_template_copy(
	const struct wire_template *t, const struct wire_common *common, uint8_t *out);

#endif
