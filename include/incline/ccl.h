/* SPDX-License-Identifier: BSD-3-Clause */
/* CommLib: collectives in the network over any libibverbs device (EPIC section 3; the messages and
 * their pacing are docs/inc-protocol.md, section 2): AllReduce, Reduce, Broadcast, Barrier,
 * ReduceScatter and AllGather, any of them after any other.
 *
 * A communicator has RC queue pairs connected to its first-hop switch: one for everything, where
 * the device can leave out PSNs (or the mode needs no such thing), else one per primitive and root.
 * What an application gives away is cut into messages, sent under a window, and comes back.
 *
 * Two layers. The core (ccl_i..., ccl_test, ccl_progress) never blocks and never reads a clock:
 * time is `now`, nanoseconds of any monotonic clock, given to ccl_progress. The others (ccl_wait,
 * ccl_allreduce ...) read CLOCK_MONOTONIC and wait. Do not mix the two clocks on one communicator.
 *
 * Threads: one thread at a time per communicator. There are no globals.
 *
 * Errors are negative errno. Once an operation has failed the communicator has failed: every later
 * call returns the same error, and ccl_error() says in one sentence what happened. Receive buffers
 * of unfinished operations then hold partial results, and the device may write to them until
 * ccl_comm_destroy, or ccl_comm_renew.
 *
 * With "resume" in the group file a communicator whose groups fail goes on by a ring of its hosts,
 * once. Collectives that are finished at a rank are finished, and its buffers are the program's, as
 * ever; what others need of them is copied before. Those that are not are repeated from the
 * program's buffers, which is why these must stay as they are until the request is done; in place
 * from a copy. Only blocking calls (ccl_wait, ccl_allreduce ...) mend: ccl_test, ccl_progress and
 * ccl_i... return the error, and ccl_wait for any request goes on. All ranks have to be in one
 * within the group's timeout; a rank that is gone ends the communicator as without it. While the
 * ranks meet for that a blocking call waits for them, whatever timeout_ns says: up to some of the
 * group's timeouts. Who has several communicators to see to calls ccl_attend, and leaves the
 * ccl_wait for one that has failed to a thread: two ranks that wait for each other's otherwise do
 * so until both time out. */
#ifndef INCLINE_CCL_H
#define INCLINE_CCL_H

#include <incline/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ccl_comm;
struct ccl_group;

enum {
	CCL_ERR_LEN = 512,
	CCL_IP_LEN = 46,      /* an address as text */
	CCL_MAX_QUEUED = 64,  /* collectives issued and unfinished */
	CCL_MAX_REGIONS = 64, /* buffers registered at a time */
};

/* ---- words ---- */

/* Every collective and its name. */
#define CCL_COLLECTIVES(X)                  \
	X(ALLREDUCE, "allreduce")           \
	X(REDUCE, "reduce")                 \
	X(BROADCAST, "broadcast")           \
	X(BARRIER, "barrier")               \
	X(REDUCE_SCATTER, "reduce_scatter") \
	X(ALLGATHER, "allgather")
enum ccl_collective {
#define X(id, name) CCL_##id,
	CCL_COLLECTIVES(X)
#undef X
		CCL_N_COLLECTIVES
};
enum { CCL_ALL_COLLECTIVES = (1 << CCL_N_COLLECTIVES) - 1 };
const char *ccl_collective_name(enum ccl_collective collective);
int ccl_collective_parse(const char *name); /* or -EINVAL */

enum ccl_mode {
	CCL_MODE_1 = 1,
	CCL_MODE_2,
	CCL_MODE_3,
	CCL_MODE_NETREDUCE,
	CCL_MODE_RING, /* the ranks by themselves */
};

/* How the ranks are joined. */
enum ccl_kind {
	CCL_SINGLE,    /* a group per primitive and root: any device */
	CCL_MIXED,     /* one group for any sequence: needs PSN skip in Mode-II and III */
	CCL_RING,      /* ranks in a ring: NetReduce, or without help of the network */
	CCL_MULTICAST, /* a multicast group, and connections to fetch what is lost */
	CCL_TREE,      /* connections along the trees of all roots */
};
const char *ccl_kind_name(enum ccl_kind kind); /* "single", "mixed", "ring" ... */

/* Ways to do a collective: name, the collectives that it can do, how. */
#define CCL_ALGORITHMS(X)                                                       \
	X(AUTO, "auto", CCL_ALL_COLLECTIVES, "by collective, size and devices") \
	X(INC, "inc", CCL_ALL_COLLECTIVES, "in the switches")                   \
	X(MULTICAST, "multicast", 1 << CCL_BROADCAST | 1 << CCL_ALLGATHER,      \
		"by multicast, what is lost is fetched from the neighbour")     \
	X(RING, "ring", CCL_ALL_COLLECTIVES, "by a ring of the hosts")          \
	X(TREE, "tree", 1 << CCL_BROADCAST, "down a tree of the hosts")
enum ccl_algorithm {
#define X(id, name, does, how) CCL_BY_##id,
	CCL_ALGORITHMS(X)
#undef X
		CCL_N_ALGORITHMS
};
const char *ccl_algorithm_name(enum ccl_algorithm algorithm);
int ccl_algorithm_parse(const char *name);                 /* or -EINVAL */
unsigned ccl_algorithm_does(enum ccl_algorithm algorithm); /* bit per collective */

/* ---- communicators ---- */

/* Reads a group file (lib/ccl/README.md describes it). -errno of the file, or -EINVAL: a field is
 * missing, wrong or unknown; err names it. Freed with ccl_group_free. */
int ccl_group_load(const char *path, struct ccl_group **group, char err[CCL_ERR_LEN]);
/* The same from memory: text is what the file would hold. */
int ccl_group_load_text(const char *text, struct ccl_group **group, char err[CCL_ERR_LEN]);
void ccl_group_free(struct ccl_group *group);           /* may be NULL */
unsigned ccl_group_size(const struct ccl_group *group); /* number of ranks */
/* Overrides what the file says, 1 ms .. 1 h, else -EINVAL; before ccl_comm_create. */
int ccl_group_set_timeout(struct ccl_group *group, uint64_t timeout_ns);

/* Overrides the file's algorithm, before ccl_comm_create. -EINVAL with a reason in err, and nothing
 * has changed: the file lacks what it needs, or names collectives that it does not do. */
int ccl_group_set_algorithm(
	struct ccl_group *group, enum ccl_algorithm algorithm, char err[CCL_ERR_LEN]);

/* Which rank this process is, as its launcher's environment has it: INCLINE_RANK, which is believed
 * whatever else is there, or what Open MPI, MPICH (PMI), PMIx, torchrun and, if none of these,
 * Slurm set. *size: number of processes the launcher has started, 0: it does not say. -ENOENT: no
 * such variable is set; -EINVAL: one is no number, one of a pair is missing, two launchers
 * disagree, or the launcher's size is not the group's (group may be NULL): err names the variables.
 * rank and size are written on success only. Reads the environment. */
int ccl_launched(
	const struct ccl_group *group, unsigned *rank, unsigned *size, char err[CCL_ERR_LEN]);

/* An address of this machine by which a rank can be found: the first of the first RDMA device that
 * is not link-local; device: of this one, NULL: of any. -ENODEV with what was found in err. */
int ccl_own_address(const char *device, char ip[CCL_IP_LEN], char err[CCL_ERR_LEN]);

/* Collective over all ranks: every process calls it with its own rank. Opens the device that has
 * the rank's address, meets the others at the group's bootstrap address, has rank 0 create the
 * group on every switch, connects. Takes at most the group's timeout per step. On failure nothing
 * is left behind, on the switches neither, and err says why at every rank that could be reached.
 * Blocks; the group must outlive the communicator. */
int ccl_comm_create(const struct ccl_group *group, unsigned rank, struct ccl_comm **comm,
	char err[CCL_ERR_LEN]);

/* Collective over all ranks (bounded wait for the others), then frees everything; comm may be NULL.
 * With "resume" it helps the others to finish first, if nothing of this rank is unfinished. Rank 0
 * deletes the group on the switches. Returns 0, or the error of saying goodbye: the communicator is
 * gone in any case. */
int ccl_comm_destroy(struct ccl_comm *comm);

/* Collective over all ranks: makes a communicator that has failed anew, in place (EPIC 3.4).
 * Handle, rank and registered buffers stay; queue pairs, groups and, where a manager finds them,
 * tree and epoch are new ones. No collective is carried over: unfinished ones are lost, their
 * buffers the program's again, and all requests of before are -ECANCELED. Every rank calls it, as
 * ccl_comm_create, also a rank that takes the place of one that has died, which calls that. Blocks.
 * 0; -EINVAL: it has not failed, or was not made by ccl_comm_create; else the error of setting up,
 * or of registering a buffer again, with the reason in err: it has failed with that now, and may be
 * renewed again. */
int ccl_comm_renew(struct ccl_comm *comm, char err[CCL_ERR_LEN]);

/* Fails the communicator on purpose (an interrupted program): ccl_comm_destroy then waits for
 * nobody and the others hear the reason. */
void ccl_abort(struct ccl_comm *comm, const char *reason);

unsigned ccl_rank(const struct ccl_comm *comm);
unsigned ccl_size(const struct ccl_comm *comm);     /* number of ranks */
const char *ccl_error(const struct ccl_comm *comm); /* "" while it has not failed */

/* How the communicator was set up and what it has done, for reports. */
struct ccl_info {
	char device[64];
	char local_ip[CCL_IP_LEN], remote_ip[CCL_IP_LEN]; /* of the switch, or the next rank */
	uint32_t local_qpn, remote_qpn, start_psn;        /* of the first group */
	unsigned mtu, m, w, gid_index;
	enum ccl_mode mode;
	enum ccl_kind kind;
	unsigned n_groups;
	unsigned collectives; /* bit per collective that can be called */
	bool fallback;        /* the switches could not serve, or have failed: the ranks do */
	char selection[CCL_ERR_LEN]; /* the choice and its reason, one sentence */
	/* With a lease: collectives in the network, and by a ring of the hosts because the
	 * switches' memory was not to be had; fallback then says how the last one went, and
	 * selection why. */
	uint64_t lease_granted, lease_refused;
	uint64_t operations, messages;          /* finished */
	uint64_t staged_sends, staged_receives; /* data messages that were copied */
	bool resumed;                           /* the groups have failed, a ring goes on */
	uint64_t resumed_at;                    /* the first collective done by it */
};
void ccl_query(const struct ccl_comm *comm, struct ccl_info *info);

/* How the communicator does a collective of that many bytes (of the whole vector: all blocks of an
 * AllGather), and why, in one sentence. -EOPNOTSUPP: not at all. */
int ccl_selected(const struct ccl_comm *comm, enum ccl_collective collective, uint64_t bytes,
	enum ccl_algorithm *algorithm, char why[CCL_ERR_LEN]);

/* ---- registered memory ---- */

/* Registers a buffer with the device: collectives on buffers inside it send from and receive into
 * it without a copy. Others are staged. In place, AllReduce still stages what it sends, because the
 * result may arrive before the request is acknowledged, and the root of a Reduce what it receives,
 * to add it to its own. -EEXIST: overlaps a region; -ENOSPC: more than CCL_MAX_REGIONS; -errno of
 * the device (often a limit on locked memory). */
int ccl_register(struct ccl_comm *comm, void *buf, size_t len);
/* buf as given to ccl_register. -ENOENT; -EBUSY while an unfinished collective has a buffer there.
 */
int ccl_deregister(struct ccl_comm *comm, void *buf);

/* ---- collectives ---- */

/* A collective that was issued. Nothing to free; may be copied and tested any number of times. */
struct ccl_req {
	uint64_t seq;
};

/* Every rank issues the same collectives in the same order with the same count, dtype, op and root;
 * the switches (or the ranks that receive) compare, and who disagrees fails the group. Buffers stay
 * the communicator's until the request is done. Requests may finish out of order.
 *
 * In place means what is said with each; buffers that overlap in any other way are -EINVAL.
 * -EOPNOTSUPP: no kernel for dtype and op (Broadcast and AllGather need none), or the communicator
 * was made without this collective; -EINVAL: root; -EAGAIN: CCL_MAX_QUEUED are unfinished. Without
 * memory the communicator fails (-ECANCELED): the others have issued it. */

/* recvbuf[i] = op over all ranks of sendbuf[i]. In place: sendbuf == recvbuf. */
int ccl_iallreduce(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req);
/* The same for the root only; recvbuf of the others is not looked at. */
int ccl_ireduce(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, unsigned root, struct ccl_req *req);
/* recvbuf[i] = the root's sendbuf[i]; sendbuf of the others is not looked at. In place:
 * sendbuf == recvbuf. */
int ccl_ibroadcast(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, unsigned root, struct ccl_req *req);
int ccl_ibarrier(struct ccl_comm *comm, struct ccl_req *req);
/* sendbuf has a block of `count` elements for each rank; recvbuf[i] = op over all ranks of element
 * i of the own rank's block. In place: recvbuf is the own block of sendbuf. */
int ccl_ireduce_scatter(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req);
/* recvbuf gets a block of `count` elements from each rank. In place: sendbuf is the own block of
 * recvbuf. */
int ccl_iallgather(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, struct ccl_req *req);

/* 1 if done (results are in recvbuf and sendbuf is the caller's again), 0 if not, the
 * communicator's error, or -EINVAL for what was never issued. Looks only: ccl_progress does the
 * work. */
int ccl_test(const struct ccl_comm *comm, struct ccl_req req);

/* Reaps completions, copies, posts. Returns how many completions it handled, or the communicator's
 * error. Fails with -ETIMEDOUT after timeout_ns in which something was outstanding and nothing
 * happened; pauses of more than half that time between two calls do not count. */
int ccl_progress(struct ccl_comm *comm, uint64_t now);

/* Blocking. ccl_wait returns -ETIMEDOUT if the request is not done after timeout_ns (UINT64_MAX:
 * only the communicator's own timeout ends it; see "resume" above); the communicator has failed
 * only if ccl_error() says so. When the wait ends in an error of the network the switches are asked
 * whom they wait for.
 */
int ccl_wait(struct ccl_comm *comm, struct ccl_req req, uint64_t timeout_ns);
/* As ccl_wait, but never waits for longer than timeout_ns: an error is returned as it is, and the
 * next ccl_wait finds out more about it, or mends it. At most ten times a second it looks whether
 * other processes have failed, or are about to go on by a ring, even if timeout_ns is 0 and nothing
 * was issued (-EINVAL, while the communicator has not failed): that fails the communicator, for
 * ccl_wait to mend. */
int ccl_attend(struct ccl_comm *comm, struct ccl_req req, uint64_t timeout_ns);
int ccl_allreduce(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op);
int ccl_reduce(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, unsigned root);
int ccl_broadcast(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, unsigned root);
int ccl_barrier(struct ccl_comm *comm);
int ccl_reduce_scatter(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op);
int ccl_allgather(struct ccl_comm *comm, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
