/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: protection domains, memory regions and windows, their table
 * (mr.c). */
#ifndef RNIC_MR_H
#define RNIC_MR_H

#include <sys/queue.h>

#include "lib/rnic/rnic.h"

struct rnic_pd {
	LIST_ENTRY(rnic_pd) link;
	struct rnic *rnic;
	uint32_t users;
};

/* The low bits of a key are the program's to choose where it may (type 2 windows); then comes the
 * index into the table of regions. */
enum { KEY_FREE_BITS = 8 };

/* A memory region, or a window: a part of a region, with a key and rights of its own. */
struct rnic_mr {
	struct rnic_pd *pd;
	uint8_t *addr;
	uint64_t len, iova;
	int access;
	uint32_t key;
	uint32_t windows;       /* bound to this region */
	uint8_t type;           /* enum ibv_mw_type; 0: a region */
	struct rnic_mr *region; /* of a window; NULL: not bound */
	uint32_t qpn;           /* of the QP that a type 2 window is bound to */
};

/* What a key belongs to, if it is valid. */
struct rnic_mr *mr_find(const struct rnic *rnic, uint32_t key);
/* The same whatever the key's free bits. */
struct rnic_mr *mr_find_any(const struct rnic *rnic, uint32_t key);
/* Memory behind len bytes at va, or NULL if key, domain, bounds or access forbid it. For local
 * access: no windows. */
uint8_t *mr_translate(
	const struct rnic_pd *pd, uint32_t key, uint64_t va, uint64_t len, int access);
/* The same for the peer of this QP. */
uint8_t *mr_translate_remote(
	const struct rnic_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access);

#endif
