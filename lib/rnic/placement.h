/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: between the transports, which see headers only, and
 * registered memory, after ZeroNIC (OSDI '24), 3.2. What becomes of a packet that arrives is
 * decided by lib/place/decide.h; here is the one copy of its payload from the receive buffer to its
 * final address. Nothing is staged. Who calls has verified the packet's ICRC (rx.c): the headers
 * that name an address are covered by it. Where the address is known without them there is another
 * way in, transport_ops.place. */
#ifndef RNIC_PLACEMENT_H
#define RNIC_PLACEMENT_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/place/decide.h"

struct rnic_pd;
struct rnic_qp;

/* ---- where payload goes ---- */

/* Decided by the transport from the headers alone. A transport that accepts packets in any order
 * names any offset. */
struct placement {
	enum { PLACE_NOTHING, PLACE_LIST, PLACE_REMOTE } kind;
	const struct rnic_qp *qp;  /* PLACE_REMOTE: by whose peer */
	const struct ibv_sge *sge; /* PLACE_LIST: the scatter list */
	uint32_t n_sge;
	uint32_t rkey;   /* PLACE_REMOTE */
	uint64_t offset; /* PLACE_LIST: bytes of the message before this packet */
	uint64_t va;     /* PLACE_REMOTE */
};

/* Checks every byte's destination, then copies. -EFAULT and nothing written if memory registration
 * forbids it. The lengths were checked by the transport. */
int place_payload(const struct rnic_pd *pd, const struct placement *place, const uint8_t *payload,
	size_t len);

/* Whether place_payload would do it. */
int place_check(const struct rnic_pd *pd, const struct placement *place, size_t len);

/* Where it would, if that is one piece; else NULL. */
uint8_t *place_piece(const struct rnic_pd *pd, const struct placement *place, size_t len);

#endif
