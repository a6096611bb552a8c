/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside Mode-I: what its two files share. mode1.c makes connections and buffers, mode1_flow.c
 * moves messages. */
#ifndef INC_MODE1_STATE_H
#define INC_MODE1_STATE_H

#include <sys/queue.h>

#include "dataplane/inc/mode1.h"

/* wr_id: endpoint and buffer; sends have one more bit, and no buffer if they are a control. */
#define WR_ID(ep, buf) ((uint64_t)(ep) << 32 | (buf))
#define WR_EP(id) ((unsigned)((id) >> 32 & 0xff))
#define WR_BUF(id) ((uint32_t)(id))
#define WR_SEND (1ull << 63)
#define WR_NO_BUF 0xffffffffu

/* A message that came and was not dealt with yet. */
struct mode1_message {
	uint32_t buf; /* its receive buffer */
	uint32_t len, imm;
	bool ctrl;     /* came with immediate data */
	bool admitted; /* it is what its number demands */
};

/* The number of the message at the head of the queue is inc_ep.ack_next, of the next one to be sent
 * inc_ep.refl_next. */
struct mode1_ep {
	struct mode1 *m;
	uint8_t index;
	struct rnic_qp *qp;
	uint16_t head, n;            /* of queue */
	uint16_t sends;              /* posted, not completed */
	struct mode1_message *queue; /* as many as receives are posted */
};

/* Results go up and down at the same time: each direction has buffers of its own, so that neither
 * can starve the other. */
enum mode1_pool { MODE1_UP, MODE1_DOWN, MODE1_N_POOLS };

struct mode1_buf {
	uint8_t sends; /* that still read it */
	uint8_t pool;  /* where it returns to */
};

struct mode1 {
	struct mode1_device *dev;
	struct inc_group *g;
	struct rnic_cq *cq;
	uint8_t *base;         /* of the buffers, in the arena */
	uint32_t buf_len;      /* room for a message */
	uint16_t credits;      /* receives posted per endpoint: W + 2 */
	uint16_t sq_depth;     /* sends that may be outstanding per endpoint */
	struct mode1_buf *buf; /* receive buffers, then those of results */
	uint32_t *free[MODE1_N_POOLS];
	uint16_t n_free[MODE1_N_POOLS];
	uint16_t ready_eps; /* endpoints whose receives are all posted */
	uint16_t posted;    /* of the next one's */
	bool stopped, is_ready;
	STAILQ_ENTRY(mode1) ready;
	struct mode1_ep ep[];
};

struct mode1_device {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_mr *mr; /* the whole arena */
	struct inc_arena arena;
	unsigned n_groups;
	STAILQ_HEAD(, mode1) ready; /* have completions */
};

static inline uint8_t *mode1_buf_at(const struct mode1 *m, uint32_t buf)
{
	return m->base + (size_t)buf * m->buf_len;
}

/* A receive into this buffer. 0 or -errno. */
int mode1_post_recv(struct mode1 *m, unsigned ep, uint32_t buf);

#endif
