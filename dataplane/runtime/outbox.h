/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control thread sends by ports of its own: collected, and given to the workers, which
 * have the ports dealt out, in one call each (sw_worker_call): a call may wait a second for a
 * worker that hangs. After the first that does, nobody is called any more in that turn, and what is
 * left of it is not sent. */
#ifndef DATAPLANE_OUTBOX_H
#define DATAPLANE_OUTBOX_H

#include "dataplane/sw.h"

enum { OUTBOX = 128 };

/* Zero is empty. */
struct outbox {
	unsigned n, sent;
	unsigned worker; /* that is called */
	bool hangs;      /* one has, in this turn */
	struct outbox_packet {
		struct rte_mbuf *mbuf;
		uint16_t port; /* DPDK port id */
		uint16_t worker;
	} packet[OUTBOX];
};

/* Takes mbuf over: it is sent by a port (its index) at the end of the turn, or before. */
void outbox_put(struct outbox *o, struct sw *sw, struct rte_mbuf *mbuf, unsigned port);

/* The turn is over: returns how many packets of it workers have sent. */
unsigned outbox_end(struct outbox *o, struct sw *sw);

#endif
