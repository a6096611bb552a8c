/* SPDX-License-Identifier: BSD-3-Clause */
/* CommLib: collectives in the network over any libibverbs device (EPIC section 3; the messages and
 * their pacing are docs/inc-protocol.md, section 2). AllReduce and Barrier so far.
 *
 * A communicator has one RC queue pair, connected to its first-hop switch. What an application
 * gives away with ccl_iallreduce is cut into messages, sent under a window, and comes back reduced.
 *
 * Two layers. The core (ccl_iallreduce, ccl_test, ccl_progress) never blocks and never reads a
 * clock: time is `now`, nanoseconds of any monotonic clock, given to ccl_progress. The wrappers
 * (ccl_allreduce, ccl_barrier, ccl_wait) read CLOCK_MONOTONIC and wait. Do not mix the two clocks
 * on one communicator.
 *
 * Threads: one thread at a time per communicator. There are no globals.
 *
 * Errors are negative errno. Once an operation has failed the communicator has failed: every later
 * call returns the same error, and ccl_error() says in one sentence what happened. Receive buffers
 * of unfinished operations then hold partial results, and the device may write to them until
 * ccl_comm_destroy. */
#ifndef CCL_CCL_H
#define CCL_CCL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/reduce/reduce.h"
#include "lib/wire/ip.h"

struct ccl_comm;
struct ccl_group; /* lib/ccl/group.h */

enum {
	CCL_ERR_LEN = 512,
	CCL_MAX_OPS = 4, /* operations on the wire at a time (docs/inc-protocol.md, 2.2 rule 7) */
	CCL_MAX_QUEUED = 64, /* collectives issued and unfinished */
	CCL_MAX_REGIONS = 64,
};

/* ---- communicators ---- */

/* Reads a group file (lib/ccl/README.md describes it). -errno of the file, or -EINVAL: a field is
 * missing, wrong or unknown; err names it. Freed with ccl_group_free. */
int ccl_group_load(const char *path, struct ccl_group **group, char err[CCL_ERR_LEN]);
void ccl_group_free(struct ccl_group *group);
/* Overrides what the file says, 1 ms .. 1 h; before ccl_comm_create. */
int ccl_group_set_timeout(struct ccl_group *group, uint64_t timeout_ns);

/* Collective over all ranks: every process calls it with its own rank. Opens the device that has
 * the rank's address, meets the others at the group's bootstrap address, has rank 0 create the
 * group on every switch, connects. Takes at most the group's timeout per step. On failure nothing
 * is left behind, on the switches neither, and err says why at every rank that could be reached.
 * Blocks; the group must outlive the communicator. */
int ccl_comm_create(const struct ccl_group *group, unsigned rank, struct ccl_comm **comm,
	char err[CCL_ERR_LEN]);

/* Collective over all ranks (bounded wait for the others), then frees everything; comm may be NULL.
 * Rank 0 deletes the group on the switches. Returns 0, or the error of saying goodbye: the
 * communicator is gone in any case. For a communicator of ccl_comm_create_connected: local. */
int ccl_comm_destroy(struct ccl_comm *comm);

/* Without files and sockets: somebody else has made the group on the switch and knows the numbers.
 * Two steps, because the switch needs the queue pair's number first: ccl_comm_open makes it,
 * ccl_comm_connect brings it to RTS. ccl_comm_create_connected does both. */
struct ccl_conn {
	struct ibv_context *context; /* stays the caller's, must outlive the communicator */
	uint8_t port;                /* 0: 1 */
	uint8_t gid_index;           /* of the rank's own address */
	unsigned rank, n_ranks;
	unsigned m, w;        /* packets per message, messages per window; m * w >= 2 */
	uint64_t timeout_ns;  /* without any progress; 0: 10 s */
	uint32_t max_packets; /* of one operation; 0: the protocol's 2^22 - 1 */
	/* Needed by ccl_comm_connect. */
	unsigned mtu;             /* payload bytes of a full packet: 256 .. 4096 */
	struct wire_ip remote_ip; /* the switch */
	uint32_t remote_qpn;
	uint32_t start_psn;
};
int ccl_comm_open(const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN]);
int ccl_comm_connect(struct ccl_comm *comm, const struct ccl_conn *conn, char err[CCL_ERR_LEN]);
int ccl_comm_create_connected(
	const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN]);

/* Fails the communicator on purpose (an interrupted program): ccl_comm_destroy then waits for
 * nobody and the others hear the reason. */
void ccl_abort(struct ccl_comm *comm, const char *reason);

uint32_t ccl_qpn(const struct ccl_comm *comm); /* of the own queue pair */
unsigned ccl_rank(const struct ccl_comm *comm);
unsigned ccl_size(const struct ccl_comm *comm);     /* number of ranks */
const char *ccl_error(const struct ccl_comm *comm); /* "" while it has not failed */

/* How the communicator was set up and what it has done, for reports. */
struct ccl_info {
	char device[64];
	struct wire_ip local_ip, remote_ip;
	uint32_t local_qpn, remote_qpn, start_psn;
	unsigned mtu, m, w, gid_index;
	uint64_t operations, messages;          /* finished */
	uint64_t staged_sends, staged_receives; /* data messages that were copied */
};
void ccl_query(const struct ccl_comm *comm, struct ccl_info *info);

/* ---- registered memory ---- */

/* Registers a buffer with the device: AllReduce on buffers inside it sends from and receives into
 * it without a copy. Others are staged. An in-place AllReduce still stages what it sends, because
 * the result may arrive before the request is acknowledged. -EEXIST: overlaps a region; -ENOSPC:
 * more than CCL_MAX_REGIONS; -errno of the device (often a limit on locked memory). */
int ccl_register(struct ccl_comm *comm, void *buf, size_t len);
/* buf as given to ccl_register. -ENOENT; -EBUSY while collectives are unfinished. */
int ccl_deregister(struct ccl_comm *comm, void *buf);

/* ---- collectives ---- */

/* A collective that was issued. Nothing to free; may be copied and tested any number of times. */
struct ccl_req {
	uint64_t seq;
};

/* recvbuf[i] = op over all ranks of sendbuf[i]. Every rank calls it with the same count, dtype and
 * op and in the same order; the switches compare, and a rank that disagrees fails the group.
 * sendbuf == recvbuf is allowed, any other overlap is -EINVAL. The buffers stay the communicator's
 * until the request is done. -EOPNOTSUPP: dtype and op other than fp32 and int32 sum;
 * -EAGAIN: CCL_MAX_QUEUED collectives are unfinished. */
int ccl_iallreduce(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req);
int ccl_ibarrier(struct ccl_comm *comm, struct ccl_req *req);

/* 1 if done (results are in recvbuf and sendbuf is the caller's again), 0 if not, or the
 * communicator's error. Looks only: ccl_progress does the work. */
int ccl_test(const struct ccl_comm *comm, struct ccl_req req);

/* Reaps completions, copies, posts. Returns how many completions it handled, or the communicator's
 * error. Fails with -ETIMEDOUT after timeout_ns in which something was outstanding and nothing
 * happened; pauses of more than half that time between two calls do not count. */
int ccl_progress(struct ccl_comm *comm, uint64_t now);

/* Blocking. ccl_wait returns -ETIMEDOUT if the request is not done after timeout_ns (UINT64_MAX:
 * only the communicator's own timeout ends it); the communicator has failed only if ccl_error()
 * says so. When the wait ends in an error of the network the switches are asked whom they wait for.
 */
int ccl_wait(struct ccl_comm *comm, struct ccl_req req, uint64_t timeout_ns);
int ccl_allreduce(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op);
int ccl_barrier(struct ccl_comm *comm);

#endif
