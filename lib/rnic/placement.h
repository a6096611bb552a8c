/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: the placement engine, after ZeroNIC (OSDI '24), 3.2 and
 * figure 8. It lies between the transports, which see headers only, and registered memory: what
 * becomes of a packet that arrives, and the one copy of its payload from the receive buffer to its
 * final address. Nothing is staged. Who calls has verified the packet's ICRC (io.c): the headers
 * that name an address are covered by it. */
#ifndef RNIC_PLACEMENT_H
#define RNIC_PLACEMENT_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct rnic_pd;
struct rnic_qp;

/* ---- what becomes of a packet ---- */

enum place_verdict {
	PLACE_ACCEPT, /* its payload goes to its final address now */
	PLACE_DROP,
	PLACE_BUFFER, /* no address now: its headers are kept, it has its turn later */
	PLACE_DEFER,  /* no address now: the sender is asked to come back */
};

/* A flow, as its transport sees it when a packet comes. Positions count from the flow's cursor (the
 * first one not yet taken in order), in the transport's units: packets of a reliable connection,
 * bytes of a stream. */
struct place_flow {
	int64_t reach;  /* end of what may be taken ahead of the cursor; 0: only in order */
	int64_t posted; /* end of what has a destination */
	enum place_verdict unmatched; /* what the transport does with what has none */
};

struct place_decision {
	enum place_verdict verdict;
	uint32_t skip; /* PLACE_ACCEPT: units at the packet's start that were taken before */
};

/* A packet at position `at`, len units long, len > 0. */
struct place_decision place_decide(const struct place_flow *flow, int64_t at, uint32_t len);

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

#endif
