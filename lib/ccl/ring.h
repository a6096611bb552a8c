/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks in a ring: each has one RC connection to the next rank and one from the rank before it,
 * ordinary host-to-host connections that carry RDMA WRITE with Immediate. Two uses:
 *
 *  - host ring: the ranks reduce themselves, 2 (P - 1) steps for an AllReduce. Needs nothing of the
 *    network; the fallback where switches have no room, and the yardstick.
 *  - NetReduce (docs/inc-protocol.md, section 6): every rank streams its whole vector to the next
 *    one in messages of M packets, and a switch on the way has put the sum in their place. Hosts
 *    only add a header of 16 bytes per message and keep a window of messages. AllReduce and
 * Barrier.
 *
 * As in ccl.h the core never blocks and never reads a clock, `now` is nanoseconds of any monotonic
 * clock, one thread at a time per ring, errors are negative errno. The first failure is final:
 * every later call returns it and ccl_ring_error() names the neighbour and what was waited for.
 * Buffers belong to the ring until the request is done. */
#ifndef CCL_RING_H
#define CCL_RING_H

#include <jansson.h>

#include "lib/ccl/ccl.h"

struct ccl_ring;
struct ccl_boot;

enum { CCL_RING_MAX_RANKS = 2048, CCL_RING_MAX_QUEUED = 64, CCL_RING_MAX_REGIONS = 64 };

struct ccl_ring_conf {
	struct ibv_context *context; /* stays the caller's, must outlive the ring */
	uint8_t port;                /* 0: 1 */
	uint8_t gid_index;           /* of the rank's own address */
	unsigned rank, n_ranks;
	unsigned mtu;        /* payload bytes of a packet; 0: the port's. See ccl_ring_connect */
	unsigned m, w;       /* packets per message 1..1024, messages per window 1..1024 */
	uint64_t timeout_ns; /* without any progress; 0: 10 s */
	uint32_t start_psn;  /* of the own requests, at random */
	/* NetReduce only */
	bool netreduce;
	uint16_t ring_id;   /* in the header; the same at all ranks and switches */
	uint32_t first_msg; /* number of the first message, the same everywhere: 0 */
	bool fallback;      /* to a host ring, if the switches cannot: see ccl_ring_meet */
	/* For messages to people: rank i of one of several rings is the job's rank
	 * of_first + i * of_step. of_step 0: the same. */
	unsigned of_first, of_step;
};

/* What the two neighbours, and for NetReduce the switch, have to know of a rank. */
struct ccl_ring_address {
	struct wire_ip ip;
	uint32_t next_qpn; /* sends to the next rank */
	uint32_t prev_qpn; /* receives from the rank before */
	uint32_t start_psn;
	unsigned mtu;
	uint64_t slots; /* where messages are written to: w slots of slot_len bytes */
	uint32_t slot_len, rkey;
	uint32_t first_msg;
};

/* Queue pairs and memory. On an error nothing is left behind. */
int ccl_ring_open(const struct ccl_ring_conf *conf, struct ccl_ring **ring, char err[CCL_ERR_LEN]);
void ccl_ring_address(const struct ccl_ring *ring, struct ccl_ring_address *address);
json_t *ccl_ring_address_json(const struct ccl_ring_address *address);
int ccl_ring_address_parse(const json_t *json, struct ccl_ring_address *address); /* -EPROTO */

/* Connects to the neighbours. mtu: the same at all ranks, the smallest of all addresses' or less.
 * All ranks must have connected before any of them issues a collective. One rank alone is its own
 * neighbour and needs no addresses (NULL). */
int ccl_ring_connect(struct ccl_ring *ring, const struct ccl_ring_address *prev,
	const struct ccl_ring_address *next, unsigned mtu, char err[CCL_ERR_LEN]);

/* Local: frees everything; ring may be NULL. */
void ccl_ring_close(struct ccl_ring *ring);

/* Collective over all ranks of a bootstrap: exchanges the addresses and connects. between, if not
 * NULL, is called at rank 0 once it has all addresses and the common mtu, before anybody connects
 * (NetReduce: it makes the ring on the switches); its error, with a reason in err, reaches
 * everybody. If it says that there is no room or no such thing (-ENOSPC, -EMFILE, -EAGAIN, -EBUSY,
 * -ENOMEM, -EOPNOTSUPP) and rank 0's conf.fallback is set, the same connections become a host ring
 * at all ranks instead, and ccl_ring_plain says why ("" otherwise). Blocks, bounded by the
 * bootstrap's timeouts. */
typedef int (*ccl_ring_between)(void *arg, const struct ccl_ring_address *all, unsigned n,
	unsigned mtu, char err[CCL_ERR_LEN]);
int ccl_ring_meet(struct ccl_ring *ring, struct ccl_boot *boot, ccl_ring_between between, void *arg,
	char err[CCL_ERR_LEN]);

const char *ccl_ring_plain(const struct ccl_ring *ring);

/* Registered memory is sent from without a copy. As ccl_register. */
int ccl_ring_register(struct ccl_ring *ring, void *buf, size_t len);
int ccl_ring_deregister(struct ccl_ring *ring, void *buf);

/* ---- collectives ----
 *
 * Every rank calls the same ones in the same order with the same arguments. sendbuf == recvbuf is
 * allowed, any other overlap is -EINVAL. -EOPNOTSUPP: no kernel for dtype and op; for NetReduce
 * also whatever is not AllReduce or Barrier. -EAGAIN: CCL_RING_MAX_QUEUED are unfinished. */

int ccl_ring_iallreduce(struct ccl_ring *ring, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req);
int ccl_ring_ibarrier(struct ccl_ring *ring, struct ccl_req *req);
/* recvbuf is the root's; the others may give NULL. Ranks but the root, and reduce_scatter, allocate
 * working memory of the size of sendbuf: -ENOMEM. */
int ccl_ring_ireduce(struct ccl_ring *ring, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, unsigned root, struct ccl_req *req);
int ccl_ring_ibroadcast(
	struct ccl_ring *ring, void *buf, uint64_t bytes, unsigned root, struct ccl_req *req);
/* sendbuf has n_ranks blocks of count elements; recvbuf is one block, the rank's own: it may be
 * sendbuf's. */
int ccl_ring_ireduce_scatter(struct ccl_ring *ring, const void *sendbuf, void *recvbuf,
	uint64_t count, enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req);
/* sendbuf: one block of `bytes`; recvbuf: n_ranks of them. In place: sendbuf is the own block. */
int ccl_ring_iallgather(struct ccl_ring *ring, const void *sendbuf, void *recvbuf, uint64_t bytes,
	struct ccl_req *req);

/* As ccl_test, ccl_progress, ccl_wait. */
int ccl_ring_test(const struct ccl_ring *ring, struct ccl_req req);
int ccl_ring_progress(struct ccl_ring *ring, uint64_t now);
int ccl_ring_wait(struct ccl_ring *ring, struct ccl_req req, uint64_t timeout_ns);

/* Fails the ring on purpose. Returns the error it has failed with. */
int ccl_ring_fail(struct ccl_ring *ring, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
const char *ccl_ring_error(const struct ccl_ring *ring); /* "" while it has not failed */
bool ccl_ring_busy(const struct ccl_ring *ring);         /* collectives are unfinished */

/* For sleeping: readable when a completion came after ibv_req_notify_cq. */
struct ibv_comp_channel *ccl_ring_channel(const struct ccl_ring *ring);
struct ibv_cq *ccl_ring_cq(const struct ccl_ring *ring);

struct ccl_ring_info {
	bool netreduce;
	unsigned mtu, m, w;
	struct wire_ip local_ip, prev_ip, next_ip;
	uint32_t next_qpn, prev_qpn;
	uint64_t collectives, messages_sent, messages_received, staged_sends;
};
void ccl_ring_query(const struct ccl_ring *ring, struct ccl_ring_info *info);

#endif
