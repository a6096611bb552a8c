/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of wire_parse() share. */
#ifndef WIRE_PARSE_CHECK_H
#define WIRE_PARSE_CHECK_H

#include "lib/wire/bytes.h"
#include "tests/unit/wire/wire_test.h"

enum { CAP = 8192, L3 = ETH_HDR_LEN, UDP4 = L3 + 20, UDP6 = L3 + 40, BTH4 = UDP4 + 8 };

static const int families[] = {4, 6};
static const uint16_t vlans[] = {0, 0x6064};
static const uint8_t opcodes[] = {ROCE_SEND_MIDDLE, ROCE_SEND_ONLY_IMM, ROCE_WRITE_ONLY_IMM,
	ROCE_ACK, ROCE_ATOMIC_ACK, ROCE_CMP_SWAP, ROCE_SEND_ONLY_INV, ROCE_UD | ROCE_SEND_ONLY_IMM,
	ROCE_CNP};

enum { N_OPCODES = sizeof(opcodes) / sizeof(*opcodes) };

/* Payload bytes for a frame of an opcode. */
size_t pay_len_of(uint8_t opcode);
/* wire_parse(), and what has to hold for any frame at all. */
enum wire_drop parse_checked(const uint8_t *frame, size_t len, struct wire_pkt *pkt);
void expect(const uint8_t *frame, size_t len, enum wire_drop expected);
void expect_kind(const uint8_t *frame, size_t len, enum wire_kind kind);
/* Sets both lengths as they should be for a frame that ends at len. */
void fix_lengths(uint8_t *frame, int family, size_t l3, size_t len);

#endif
