/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a ring. ring_issue.c takes collectives, ring_queue.c
 * tells of them, ring.c moves their messages, ring_plan.c says
 * which bytes a message is, ring_qp.c owns verbs objects, ring_meet.c meets the other ranks.
 *
 * Messages of each of the two connections are numbered from 0 through all collectives. To the next
 * rank: posted, acknowledged. From the rank before: arrived, taken (copied or reduced). */
#ifndef CCL_RING_PRIV_H
#define CCL_RING_PRIV_H

#include "lib/ccl/ring.h"
#include "lib/wire/netreduce.h"

enum ring_kind {
	RING_ALLREDUCE,
	RING_REDUCE,
	RING_BROADCAST,
	RING_REDUCE_SCATTER,
	RING_ALLGATHER,
	RING_BARRIER,
};

/* A collective as the application issued it. */
struct ring_coll {
	enum ring_kind kind;
	enum reduce_op op;
	enum reduce_dtype dtype;
	reduce_fn add; /* NULL: nothing is reduced at this host */
	const uint8_t *send;
	uint8_t *recv;
	uint8_t *work; /* partial results; recv, or scratch */
	uint8_t *scratch;
	uint64_t bytes; /* of the vector; reduce_scatter, allgather: of a block */
	unsigned root;
	uint64_t per;                /* messages of a chunk */
	uint64_t n_tx, n_rx;         /* messages */
	uint64_t tx_first, rx_first; /* numbers of the first ones */
};

/* What a message carries: bytes to send, or where what came goes. */
struct ring_part {
	const uint8_t *from; /* send: the bytes. receive: what is added to them, or NULL */
	uint8_t *to;
	uint32_t len;
};

struct ring_region {
	uint8_t *base;
	size_t len;
	struct ibv_mr *mr; /* NULL: free entry */
};

struct ccl_ring {
	struct ccl_ring_conf conf;
	unsigned rank, n_ranks, m, w, mtu;
	uint32_t cap; /* data bytes of a full message */
	uint64_t timeout_ns;

	/* ring_qp.c */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *next, *prev;
	/* w slots for what is sent, w for what comes, zeros, headers */
	uint8_t *memory;
	struct ibv_mr *mr;
	uint32_t slot_len;
	struct wire_ip ip;
	struct ccl_ring_address next_at, prev_at;
	struct ring_region region[CCL_RING_MAX_REGIONS];
	bool connected;

	/* ring_issue.c, ring.c */
	struct ring_coll coll[CCL_RING_MAX_QUEUED];
	uint64_t issued, done;
	uint64_t tx_total, rx_total; /* messages of all that was issued */
	uint64_t tx_coll, rx_coll;   /* collectives that the cursors are in */
	uint64_t tx_posted, tx_acked, rx_arrived, rx_taken;
	uint64_t tx_credit;   /* messages that the next rank has taken */
	uint64_t credit_told; /* rx_taken as the rank before knows it */
	bool credit_busy;     /* telling it is not acknowledged yet */
	uint64_t staged_sends;
	uint64_t progress_ns, looked_ns; /* as in comm.h */
	bool fresh;
	int failed;
	char err[CCL_ERR_LEN];
	char plain[CCL_ERR_LEN]; /* why it is no NetReduce ring although one was wished */
};

static inline struct ring_coll *ring_coll_at(struct ccl_ring *r, uint64_t n)
{
	return &r->coll[n % CCL_RING_MAX_QUEUED];
}

/* A rank as people know it. */
static inline unsigned ring_known_as(const struct ccl_ring *r, unsigned rank)
{
	return r->conf.of_step ? r->conf.of_first + rank * r->conf.of_step : rank;
}

static inline uint8_t *ring_send_slot(const struct ccl_ring *r, uint64_t msg)
{
	return r->memory + msg % r->w * r->slot_len;
}
static inline uint8_t *ring_recv_slot(const struct ccl_ring *r, uint64_t msg)
{
	return r->memory + (r->w + msg % r->w) * r->slot_len;
}
static inline uint8_t *ring_zeros(const struct ccl_ring *r)
{
	return r->memory + 2 * (size_t)r->w * r->slot_len;
}
static inline uint8_t *ring_header(const struct ccl_ring *r, uint64_t msg)
{
	return ring_zeros(r) + r->slot_len + msg % r->w * INA_LEN;
}

/* ---- ring_plan.c: pure functions ---- */

/* Fills in per, n_tx, n_rx. */
void ring_plan(const struct ccl_ring *r, struct ring_coll *c);
struct ring_part ring_tx_part(const struct ccl_ring *r, const struct ring_coll *c, uint64_t k);
struct ring_part ring_rx_part(const struct ccl_ring *r, const struct ring_coll *c, uint64_t k);
/* Own messages of the collective that must have been taken before message k can be sent. */
uint64_t ring_tx_needs(const struct ccl_ring *r, const struct ring_coll *c, uint64_t k);

/* ---- ring_queue.c ---- */

/* A collective that is unfinished has a buffer there. */
bool ring_uses(struct ccl_ring *r, const void *base, size_t len);

/* ---- ring.c ---- */

/* Sends make room for receives and the other way round: until nothing moves. 0, or what the ring
 * has failed with. */
int ring_pump(struct ccl_ring *r);

/* ---- ring_meet.c ---- */

/* Ranks of a bootstrap that meet, each with something to say (an object): its address in a ring, or
 * in several. Rank 0 looks at the list of it; all get the list, and connect. plain: of CCL_ERR_LEN,
 * becomes why there is a fallback, or "". */
struct ring_meeting {
	struct ccl_boot *boot;
	unsigned rank, n_ranks;
	bool fallback; /* if there is no room, say so in plain, and go on */
	char *plain;
	int (*look)(void *arg, const json_t *list, char *err);
	int (*connect)(void *arg, const json_t *list, char *err);
	void *arg;
};
int ring_meet(const struct ring_meeting *meeting, json_t *own, char *err);
/* One address; mtu becomes the least. */
int ring_address_read(
	const json_t *json, unsigned rank, struct ccl_ring_address *at, unsigned *mtu, char *err);

/* ---- ring_qp.c ---- */
void ring_qps_to_error(struct ccl_ring *r);

enum { RING_CREDIT_RECVS = 4 };

/* wr_id: what a completion is of. Within a queue they come in order of posting. */
enum { RING_WR_SEND, RING_WR_TOLD, RING_WR_RECV, RING_WR_CREDIT };

#endif
