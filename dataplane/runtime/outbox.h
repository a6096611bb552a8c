/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control thread sends by ports of its own, or loses for a reason that workers count:
 * collected, and given to the workers, which have the ports dealt out, in one call each
 * (sw_worker_call). A worker that takes no calls costs a second. After the first that does, nobody
 * is called any more until the next tick (sw_tick), and what there is to send is not sent. */
#ifndef DATAPLANE_OUTBOX_H
#define DATAPLANE_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/runtime/drop.h"

struct rte_mbuf;
struct sw;

enum { OUTBOX = 128 };

/* A switch has one, in which each turn leaves nothing. Zero is empty. */
struct outbox {
	unsigned n, sent;
	unsigned worker; /* that is called */
	bool hangs;      /* one has, since the last tick began */
	struct outbox_packet {
		struct rte_mbuf *mbuf;
		uint16_t port; /* DPDK port id */
		uint16_t worker;
		uint8_t drop, l3_off;
	} packet[OUTBOX];
};

/* Takes mbuf over: it is sent by a port (its index) at the end of the turn, or before. */
void outbox_send(struct sw *sw, struct rte_mbuf *mbuf, unsigned port);

/* The same for an IP packet that was to be sent by that port and is lost for this reason; l3_off:
 * of its header. With DROP_IP_NO_NEIGH its source is told (icmp_error.h). */
void outbox_lose(
	struct sw *sw, struct rte_mbuf *mbuf, unsigned port, enum drop why, unsigned l3_off);

/* The turn is over: returns how many packets of it workers have sent. */
unsigned outbox_end(struct sw *sw);

#endif
