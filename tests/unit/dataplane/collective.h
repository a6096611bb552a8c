/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with four ports and groups on it; what hosts send, and what they must get. */
#ifndef TEST_COLLECTIVE_H
#define TEST_COLLECTIVE_H

#include "harness.h"

enum { MAX_HOSTS = 4, HOST_QPN = 0x20, START_PSN = 0xfffffe, CTRL_LEN = 32, M = 2, W = 2 };

/* Of the test at hand. */
extern struct sw *sw;
extern struct inc_ep_spec eps[MAX_HOSTS + 1];
extern struct inc_group_spec spec;
extern char err[SW_ERR_LEN];

/* Set-up and tear-down of every test; the latter checks that no packet and no buffer is missing. */
int c_start(void **state);
int c_stop(void **state);

/* Fills spec and eps: n hosts at ports 0..n-1; parent: the last of them is a switch above. */
void c_spec(unsigned n, unsigned mtu, bool v6, bool parent);
/* Makes the group of spec, active; its slot. */
unsigned c_create(void);

/* A control message's payload, and its immediate: AllReduce of int32, sum. */
uint32_t c_control(uint8_t payload[CTRL_LEN], unsigned bytes, unsigned mtu, unsigned seq);
/* What host i of the group in slot sends. Returns the frame's length. */
unsigned c_host_frame(uint8_t *out, unsigned slot, unsigned i, uint8_t opcode, uint32_t psn,
	uint32_t imm, const void *payload, unsigned len);
/* A NAK of host i, which waits for psn. */
unsigned c_nak_frame(uint8_t *out, unsigned slot, unsigned i, uint32_t psn);
/* What the switch must send to endpoint i. */
unsigned c_result_frame(uint8_t *out, unsigned slot, unsigned i, uint8_t opcode, uint32_t psn,
	uint32_t imm, const void *payload, unsigned len, uint16_t ip_id);

#endif
