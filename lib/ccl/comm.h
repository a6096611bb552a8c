/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a communicator. engine.c moves messages, qp.c owns verbs objects, wait.c blocks,
 * setup.c meets the other ranks.
 *
 * Messages of a communicator are numbered from 0 through all its operations. Four cursors walk over
 * them, in this order: receives posted, sends posted, sends acknowledged, results received. A
 * message is finished once it is acknowledged and its result is there; the window is W messages
 * from the oldest unfinished one.
 *
 * Receives are posted for known operations only: no result can come for a message that this rank
 * has not sent, and each receive can thus point at the result's final place. */
#ifndef CCL_COMM_H
#define CCL_COMM_H

#include "lib/ccl/ccl.h"
#include "lib/ccl/msg.h"

enum {
	CCL_RECV_EXTRA = 2, /* receives beyond the window, so that replenishing is never late */
	CCL_OP_RING = 8,    /* power of two > CCL_MAX_OPS */
	CCL_POLL = 16,      /* completions taken at a time */
	CCL_BATCH = 8,      /* work requests posted at a time */
};

/* A collective as the application issued it. */
struct ccl_coll {
	const uint8_t *send;
	uint8_t *recv;
	uint64_t bytes;
	uint64_t opened;    /* bytes that operations have been made of */
	uint32_t send_lkey; /* valid if send_direct; likewise receive */
	uint32_t recv_lkey;
	bool send_direct, recv_direct;
	bool barrier;
	uint8_t op, dtype;
};

/* One operation on the wire: one control message and its data. */
struct ccl_op {
	uint64_t coll;   /* number of its collective */
	uint64_t offset; /* in the collective's buffers */
	bool last;       /* of its collective */
	struct ccl_plan plan;
	struct ccl_ctrl ctrl;
	uint32_t psn; /* of the control */
};

struct ccl_cursor {
	uint64_t msg; /* number of the message */
	uint64_t op;  /* number of its operation */
	uint32_t in;  /* message within the operation: 0 is the control */
};

struct ccl_region {
	uint8_t *base;
	size_t len;
	struct ibv_mr *mr; /* NULL: free entry */
};

struct ccl_comm {
	unsigned rank, n_ranks;
	unsigned mtu, m, w, n_recv;
	uint64_t timeout_ns;
	uint32_t max_packets;

	/* qp.c */
	struct ibv_context *context;
	bool own_context;
	uint8_t port, gid_index;
	struct wire_ip local_ip, remote_ip;
	uint32_t remote_qpn, start_psn;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *stage; /* w send slots, then n_recv receive slots */
	size_t slot_len;
	struct ibv_mr *stage_mr;
	struct ccl_region region[CCL_MAX_REGIONS];
	bool connected;

	/* engine.c */
	struct ccl_coll coll[CCL_MAX_QUEUED];
	uint64_t coll_issued, coll_open, coll_done;
	struct ccl_op op[CCL_OP_RING];
	uint64_t op_made, op_done;
	uint32_t next_psn;
	struct ccl_cursor rx_post, tx_post, tx_ack, rx;
	uint64_t staged_sends, staged_receives;

	uint64_t progress_ns; /* when something last happened */
	uint64_t looked_ns;   /* when ccl_progress was last called */
	bool fresh;           /* something happened since the last ccl_progress: take its now */
	int failed;           /* 0 or -errno */
	bool diagnosed;
	char err[CCL_ERR_LEN];

	/* wait.c */
	uint64_t watched_ns; /* when the other processes were last looked at */

	/* setup.c */
	struct ccl_setup *setup; /* NULL: made by ccl_comm_open */
};

static inline struct ccl_coll *ccl_coll_at(struct ccl_comm *c, uint64_t n)
{
	return &c->coll[n % CCL_MAX_QUEUED];
}

static inline struct ccl_op *ccl_op_at(struct ccl_comm *c, uint64_t n)
{
	return &c->op[n % CCL_OP_RING];
}

/* ---- engine.c ---- */

/* Fails the communicator once; later failures are consequences and are ignored. Returns the error
 * it has failed with. */
int ccl_fail(struct ccl_comm *c, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Work is outstanding on the wire. */
bool ccl_busy(const struct ccl_comm *c);

/* ---- qp.c ---- */

/* Finds and opens the device and GID that have an address: device "" is any, gid_index -1 any. On
 * success *context is the caller's; -ENODEV with what was found in err. */
int ccl_device_open(const char *device, const struct wire_ip *ip, int gid_index,
	struct ibv_context **context, uint8_t *port, uint8_t *gid, char err[CCL_ERR_LEN]);

/* Active RoCE MTU of the port in bytes, or -errno. */
int ccl_port_mtu(struct ibv_context *context, uint8_t port);

void ccl_qp_to_error(struct ccl_comm *c);
void ccl_comm_free(struct ccl_comm *c);

/* ---- setup.c ---- */

/* Has another process failed or gone? 0, or -ECONNABORTED and why. Does not block. */
int ccl_setup_watch(struct ccl_setup *setup, char why[CCL_ERR_LEN]);

/* Tells the other processes why this one has failed. */
void ccl_setup_tell(struct ccl_setup *setup, const char *why);

/* Writes "; switch s0 waits for ranks 2,3" and the like to text, as far as it can be found out
 * within a second or so. */
void ccl_setup_diagnose(struct ccl_setup *setup, char *text, size_t cap);

#endif
