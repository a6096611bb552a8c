/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with ring ports p0, p1 ... in the test's own process, turned by hand: frames go in as
 * bytes and come out as bytes. */
#ifndef TEST_HARNESS_H
#define TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "ctrl/config/switch_config.h"
#include "dataplane/sw.h"
#include "lib/wire/frame.h"

enum { H_FRAME_MAX = 10000 };

struct frame {
	unsigned len, segs;
	uint8_t b[H_FRAME_MAX];
};

/* Starts with n ring ports, addresses 10.0.0.1 and fd00::1, without neigh_learn and icmp_errors,
 * and merges `more` (JSON with ' for ") into the configuration; port_more likewise into every port.
 * Host i (0, 1 ...) is 10.0.0.(10+i) and fd00::(10+i) at port i, with MAC 02:00:00:00:00:(10+i);
 * neighbours are entered. */
struct sw *h_start(unsigned n, const char *more, const char *port_more);
void h_stop(struct sw *sw);
/* The same, after nothing has been lost on the way: h_check_balance, and all buffers are back. */
void h_stop_whole(struct sw *sw);

json_t *h_json(const char *text);

struct wire_ip h_ip(const char *text);
struct wire_ip h_host4(unsigned i);
struct wire_ip h_host6(unsigned i);
void h_host_mac(unsigned i, uint8_t mac[6]);
const uint8_t *h_port_mac(struct sw *sw, unsigned port);

/* One frame received on port; the switch has not turned yet. */
void h_inject(struct sw *sw, unsigned port, const void *frame, unsigned len);
/* The next frame sent by port, or false. */
bool h_take(struct sw *sw, unsigned port, struct frame *frame);
/* Turns until nothing is received any more. */
void h_run(struct sw *sw);

/* h_inject and h_run; the frame that port `out` then sends must exist and be the only one anywhere.
 */
void h_exchange(struct sw *sw, unsigned in, const void *frame, unsigned len, unsigned out,
	struct frame *result);
/* The same, when the packet must end in the switch for this reason. */
void h_expect_drop(struct sw *sw, unsigned in, const void *frame, unsigned len, const char *reason);

/* Of a drop reason or an outcome. */
uint64_t h_drop(struct sw *sw, const char *reason);
uint64_t h_losses(struct sw *sw); /* all drop reasons, no outcomes */
uint64_t h_value(struct sw *sw, const char *name);
/* received + emitted + doubled == sent + waiting + all drops + all outcomes. */
void h_check_balance(struct sw *sw);

/* -errno and *e, or 0. text: a JSON table entry is not needed here, so fields are given directly.
 */
int h_write(struct sw *sw, enum table_verb verb, unsigned table, const struct table_entry *entry,
	struct table_error *e);

/* ARP from host 0's MAC address. Returns its length. */
unsigned h_arp(uint8_t *out, unsigned op, const struct wire_ip *sip, const struct wire_ip *tip,
	uint16_t vlan);

/* Puts a VLAN tag into a frame; its new length. */
unsigned h_tag(uint8_t *frame, unsigned len, uint16_t vlan);

/* An IP packet from src to dst with len bytes of payload after the IP header. Returns its length.
 */
unsigned h_ip4(uint8_t *out, const uint8_t dmac[6], const struct wire_ip *src,
	const struct wire_ip *dst, uint8_t proto, uint8_t ttl, const void *payload, unsigned len);
unsigned h_ip6(uint8_t *out, const uint8_t dmac[6], const struct wire_ip *src,
	const struct wire_ip *dst, uint8_t next, uint8_t hop_limit, const void *payload,
	unsigned len);

#endif
