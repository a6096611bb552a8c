/* SPDX-License-Identifier: BSD-3-Clause */
/* A device with one queue pair of iWARP, its memory and its queues; and what tests ask of it. */
#ifndef IWARP_END_H
#define IWARP_END_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/iwarp/iwarp.h"

enum {
	END_BYTES = 1 << 16, /* of buf */
	END_GUARD = 4096,    /* before and behind buf: nobody may write there */
	END_FILL = 0xa5,
	END_ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_MW_BIND,
};

struct end {
	struct rnic *rnic;
	struct rnic_pd *pd, *other;
	struct rnic_cq *scq, *rcq;
	struct rnic_qp *qp;
	struct rnic_srq *srq; /* the test's, of queue pairs that end_qp makes; NULL: none */
	struct rnic_mr *mr;   /* of buf, all rights */
	uint8_t *memory, *buf;
	enum ibv_event_type event[8];
	unsigned n_event;
	unsigned readies, gones; /* end_attach's */
};

void end_open(struct end *e, unsigned index);
void end_close(struct end *e);
/* A queue pair in INIT. */
struct rnic_qp *end_qp(struct end *e, int access);
/* Attached without a link, and in RTS. */
void end_attach(struct end *e, const struct iwarp_attach *attach);

/* addr: of buf; of the peer's for raddr. Flags: IBV_SEND_*, signaled anyway. */
int end_post(struct end *e, enum ibv_wr_opcode opcode, uint64_t id, size_t addr, uint32_t len,
	const struct end *peer, size_t raddr, unsigned flags);
int end_recv(struct end *e, uint64_t id, size_t addr, uint32_t len);
/* Exactly one, or none. */
struct ibv_wc end_wc(struct rnic_cq *cq);
void end_no_wc(struct rnic_cq *cq);
uint64_t end_count(const struct end *e, const char *counter);
/* What stands in buf for byte i of message `seed`. */
void end_fill(struct end *e, size_t addr, size_t len, unsigned seed);
void end_check(const struct end *e, size_t addr, size_t len, unsigned seed);
/* Nothing of buf was written but [from, to), and nothing around it. */
void end_untouched(const struct end *e, size_t from, size_t to);
void end_rnic_tx(struct end *e, uint64_t now);

#endif
