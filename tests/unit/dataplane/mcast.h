/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch of four ports, groups on it, and packets to these. */
#ifndef TEST_DATAPLANE_MCAST_H
#define TEST_DATAPLANE_MCAST_H

#include "harness.h"

enum { N = 4, L3 = ETH_HDR_LEN, TTL = 9, MTU = 1500, PROTO = 253 };

#define GROUP4 "239.129.2.3"
#define GROUP6 "ff0e::7:5"

extern struct sw *sw;

/* Setup and teardown of each test. */
int m_start(void **state);
int m_stop(void **state);

/* Rows of mcast_group and mcast_sender. */
struct table_entry m_member(const char *group, unsigned port, unsigned vlan);
struct table_entry m_sender(const char *group, const struct wire_ip *src, unsigned port);
void m_write(enum table_verb verb, unsigned table, const struct table_entry *e);
void m_join(const char *group, unsigned port, unsigned vlan);
void m_leave(const char *group, unsigned port);
void m_join_all(const char *group);

/* To a group, from a host of its family, with len bytes behind the IP header. Its length. */
unsigned m_packet(uint8_t *b, const char *group, unsigned host, uint8_t ttl, unsigned len);
/* What a copy of an untagged packet looks like at an untagged port: all as it was but for the
 * source MAC address and the hop. */
void m_is_copy(const struct frame *f, const uint8_t *b, unsigned len, unsigned port);
/* Comes in at a port; the ports of the mask get it once each, nobody else anything. */
void m_reaches(unsigned in, const uint8_t *b, unsigned len, unsigned ports);

#endif
