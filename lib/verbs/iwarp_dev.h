/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of a device whose queue pairs are iWARP's: for each of its port's addresses a TCP of
 * lib/stream and the connections of lib/iwarp on it. The rnic beside it has the objects, answers
 * ARP, ND and echo requests, and resolves.
 *
 * All of it by the owner of the device. */
#ifndef VERBS_IWARP_DEV_H
#define VERBS_IWARP_DEV_H

#include "lib/iwarp/link.h"
#include "lib/verbs/internal.h"

enum {
	IV_IWARP_CONNS = 128,               /* of an address, at the same time */
	IV_IWARP_RING = 1 << 18,            /* bytes of a connection, each way */
	IV_IWARP_WAIT_NS = 20 * 1000000000L /* for a word of the peer's */
};

struct iv_iwarp;

/* For a device with its rnic in place, which has one port. 0 or -errno. */
int iv_iwarp_create(
	struct iv_dev *dev, const struct rnic_port_config *port, struct iv_iwarp **iwarp);
/* Connections that are left are lost without a word: iv_iwarp_open says how many there are. */
void iv_iwarp_destroy(struct iv_iwarp *iwarp);

/* False: the frame is none of TCP's for here, and nothing was done with it. */
bool iv_iwarp_rx(struct iv_iwarp *iwarp, const uint8_t *frame, size_t len);
/* What frames have brought, what has been asked for, and what is due. */
unsigned iv_iwarp_turn(struct iv_iwarp *iwarp, uint64_t now);
/* The same, and up to room frames into the port, which has room for them; how many. */
unsigned iv_iwarp_transmit(struct iv_iwarp *iwarp, unsigned room, uint64_t now);
/* When to take a turn at the latest; 0: at once. */
uint64_t iv_iwarp_deadline(const struct iv_iwarp *iwarp);

/* That of place i; NULL: there are no more. */
struct iwarp_link *iv_iwarp_link(const struct iv_iwarp *iwarp, unsigned i, struct wire_ip *ip);
/* That of the address; NULL: none of the configured ones. */
struct iwarp_link *iv_iwarp_find(const struct iv_iwarp *iwarp, const struct wire_ip *ip);
/* The next event of any; false: none. */
bool iv_iwarp_poll(struct iv_iwarp *iwarp, struct iwarp_link **link, struct iwarp_event *event);
/* Connections whose end iv_iwarp_poll has not told. */
unsigned iv_iwarp_open(const struct iv_iwarp *iwarp);

/* Counters of all addresses, added up; at most n of them, returns how many there are. */
unsigned iv_iwarp_stats(const struct iv_iwarp *iwarp, struct inc_dv_stat *stats, unsigned n);

/* What the rnic says of itself, and iWARP has not. */
void iv_iwarp_query_device(struct ibv_device_attr *attr);

#endif
