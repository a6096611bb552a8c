/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in mbufs, of one segment or of three as the engine sends them. */
#ifndef EGRESS_PACKETS_H
#define EGRESS_PACKETS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <rte_mbuf.h>

#include "lib/wire/frame.h"

enum { FRAME_MAX = 9000 };

/* A RoCE frame of pay_len bytes of payload with this TOS; its length. */
unsigned frame_of(uint8_t *out, int family, uint16_t vlan, uint8_t tos, unsigned pay_len);
/* The same as a packet; chained: header | payload | trailer. */
struct rte_mbuf *packet(int family, uint16_t vlan, uint8_t tos, unsigned pay_len, bool chained);
/* Its bytes; returns pkt_len. */
unsigned bytes_of(const struct rte_mbuf *m, uint8_t *out);
/* A packet's number is its PSN. */
struct rte_mbuf *numbered(uint32_t number, uint8_t tos, unsigned pay_len);
uint32_t number_of(const struct rte_mbuf *m);

unsigned packets_in_use(void);
int packets_setup(void **state);
int packets_teardown(void **state);

#endif
