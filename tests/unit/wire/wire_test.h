/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this test program share. */
#ifndef WIRE_TEST_H
#define WIRE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/wire/frame.h"

extern const char *pcap_dir;

int run_roce_tests(void);
int run_ip_tests(void);
int run_icrc_tests(void);
int run_icrc_kernel_tests(void);
int run_parse_tests(void);
int run_parse_other_tests(void);
int run_build_tests(void);
int run_neigh_tests(void);
int run_inplace_tests(void);
int run_pcap_tests(void);
int run_cm_tests(void);
int run_mrc_tests(void);
int run_outer_tests(void);

/* xorshift64*: the same numbers in every run. */
static inline uint64_t test_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline void test_fill(uint64_t *state, uint8_t *p, size_t len)
{
	while (len--)
		*p++ = (uint8_t)(test_random(state) >> 56);
}

/* Parses a copy of exactly len bytes, so that ASan sees a read past the end. */
static inline enum wire_drop parse_exact(const uint8_t *frame, size_t len, struct wire_pkt *pkt)
{
	uint8_t *copy = malloc(len ? len : 1);
	enum wire_drop rc;

	memcpy(copy, frame, len);
	rc = wire_parse(len ? copy : copy + 1, len, pkt);
	free(copy);
	return rc;
}

/* A flow between two addresses of the family, TTL 64. */
struct wire_flow test_flow(int family, uint16_t vlan);

/* Headers with every field set to something that shows where it went. */
struct wire_hdr test_hdr(uint8_t opcode);

/* wire_build_frame() with a payload of 0, 1, 2 ...; fails the test on an error. */
size_t test_frame(
	uint8_t *out, size_t cap, int family, uint16_t vlan, uint8_t opcode, size_t pay_len);

/* Puts right what a test that changed the IP header wants right: IPv4 checksum. */
void test_fix_ip4(uint8_t *l3);

#endif
