/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: work requests as they lie in the rings (wq.c writes them).
 */
#ifndef RNIC_WQE_H
#define RNIC_WQE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/rnic/ring.h"

enum { MAX_WR = 1 << 14 }; /* of a queue */

struct rnic_pd;
struct rnic_qp;
struct rnic_frame;

struct send_wqe {
	uint64_t wr_id;
	uint64_t raddr;
	uint64_t first;   /* sequence number of the first packet (owner) */
	uint64_t skipped; /* PSNs skipped on this QP before it (owner) */
	uint32_t rkey;
	uint32_t len;
	uint32_t imm;               /* as a number; or the key to invalidate */
	uint32_t bytes;             /* of requests before it, modulo 2^32 (owner) */
	uint64_t swap_add, compare; /* of an atomic; or as in window.c */
	uint32_t recv;              /* messages before it that use up a receive request (owner) */
	uint8_t opcode;             /* enum ibv_wr_opcode */
	bool signaled, solicited, inlined, fenced;
	bool done; /* one that sends nothing: carried out (owner) */
	uint8_t n_sge;
	struct ibv_sge sge[]; /* or the inline bytes */
};

struct recv_wqe {
	uint64_t wr_id;
	uint64_t len;
	uint32_t n_sge;
	struct ibv_sge sge[];
};

/* Names len bytes from offset on of a send request as the frame's pieces (placement.c); -EFAULT if
 * memory registration forbids it. */
int gather_payload(const struct rnic_pd *pd, const struct send_wqe *wqe, uint64_t offset,
	size_t len, struct rnic_frame *frame);

/* A request out of a user's: checks and copies. Any one thread per ring. */
int recv_post(struct ring *ring, uint32_t max_sge, const struct ibv_recv_wr *wr);

#endif
