/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end of each port of a switch or a host, as far as LLDP says it (IEEE
 * 802.1AB), and when a port has to say who we are. A neighbour is forgotten when its time is over,
 * or LLDP_KEPT_S, when it says that it goes, and when the port's link does. Few are kept of a port:
 * a cable has one other end, and what a NIC says by itself beside its host. Who comes when there is
 * no room is counted, and waits until there is.
 *
 * A port speaks every LLDP_EVERY_NS; LLDP_FAST times every LLDP_FAST_NS when its link has come, and
 * when somebody new has spoken (9.2.7, txFast): he may just have started. Nothing that is received
 * makes it speak more often than that. No I/O, time (nanoseconds) is an argument, one owner. */
#ifndef LLDP_TABLE_H
#define LLDP_TABLE_H

#include "lib/wire/lldp.h"

enum {
	LLDP_PER_PORT = 4,
	LLDP_FAST = 4,
	LLDP_TTL_S = 121, /* four times the interval, and one: three frames may be lost */
	LLDP_KEPT_S = 4 * LLDP_TTL_S, /* at most, whatever a neighbour asks for */
};
static const uint64_t LLDP_EVERY_NS = UINT64_C(30000000000);
static const uint64_t LLDP_FAST_NS = UINT64_C(1000000000);

struct lldp_neighbour {
	bool used;
	uint64_t heard, until;
	struct wire_lldp says;
};

/* X(field, meaning) */
#define LLDP_COUNTERS(X)                                                             \
	X(sent, "times that a port has said who we are")                             \
	X(heard, "times that a neighbour has spoken")                                \
	X(expired, "neighbours that were forgotten: they have been silent too long") \
	X(refused, "times that a neighbour was not kept: its port has 4 others")

struct lldp_table {
	struct lldp_counters {
#define X(field, text) uint64_t field;
		LLDP_COUNTERS(X)
#undef X
	} count;
	unsigned n_ports;
	struct lldp_port {
		bool up;
		unsigned fast; /* frames of the fast ones that are still to come */
		uint64_t next; /* frame */
		struct lldp_neighbour neighbour[LLDP_PER_PORT];
	} port[];
};

/* An empty one; free() it. NULL: no memory. Ports below are among these. */
struct lldp_table *lldp_table_new(unsigned n_ports);

void lldp_heard(struct lldp_table *t, unsigned port, const struct wire_lldp *says, uint64_t now);

/* What time does to a port, and whether its link is there; true: it has to speak now (whether it
 * did, the caller counts). */
bool lldp_turn(struct lldp_table *t, unsigned port, bool up, uint64_t now);

/* When lldp_turn next has something to do, unless the link changes; UINT64_MAX: never. */
uint64_t lldp_due(const struct lldp_table *t, unsigned port);

/* How many there are, of all ports. */
unsigned lldp_neighbours(const struct lldp_table *t);

/* What a port says that speaks: the MAC address of its chassis, its own name, and the system's. Of
 * names the first LLDP_ID_MAX bytes; the port's is not empty. */
struct wire_lldp lldp_introduce(const uint8_t chassis[6], const char *port, const char *system);
/* What it says last, as it is about to go: without the system's name, for no time to live. */
struct wire_lldp lldp_goodbye(const uint8_t chassis[6], const char *port);

#endif
