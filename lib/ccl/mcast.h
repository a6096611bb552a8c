/* SPDX-License-Identifier: BSD-3-Clause */
/* AllGather and Broadcast by multicast, on verbs: the protocol of lib/mcast over one UD queue pair
 * that all ranks attach to a multicast group (or several of both), and RC connections to the
 * neighbours in the ring and the partners of the barrier. Datagrams are sent from the caller's
 * memory; they are received into staging and copied to their places; what is lost is read from the
 * left neighbour's result. Our software RNIC does the receiver's part by itself, and tells when all
 * is there (inc_dv_qp_mcast_window); also over a UC queue pair's WRITEs, as appendix C has it,
 * which no other device knows.
 *
 * The switches on the way must forward the group (docs/multicast.md). As in ccl.h the core never
 * blocks and never reads a clock, `now` is nanoseconds of any monotonic clock, one thread at a
 * time, errors are negative errno; the first one is final and ccl_mcast_error says what it was.
 * Buffers belong to it until the request is done. */
#ifndef CCL_MCAST_H
#define CCL_MCAST_H

#include <jansson.h>

#include "lib/ccl/ccl.h"
#include "lib/mcast/mcast.h"
#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"

struct ccl_mcast;
struct ccl_boot;

enum { CCL_MCAST_MAX_RANKS = 2048, CCL_MCAST_MAX_TREES = 8 };

/* 0 is a default where one is said. */
struct ccl_mcast_conf {
	struct ibv_context *context; /* stays the caller's */
	/* The caller's as well; NULL: its own one, and every buffer is registered for its
	 * collective. find: memory that is registered there, with REMOTE_READ, or NULL. */
	struct ibv_pd *pd;
	struct ibv_mr *(*find)(void *arg, const void *buf, uint64_t len);
	void *find_arg;
	uint8_t port;      /* 1 */
	uint8_t gid_index; /* of the rank's own address */
	unsigned rank, n_ranks;
	struct wire_ip group; /* of the family of that address, this communicator's alone */
	/* 1: groups, this one and those behind it (ccl_mcast_group), with a queue pair each, that
	 * share the chunks. */
	unsigned trees;
	/* Receive workers of the device: the trees' queue pairs are theirs, in turn by the groups'
	 * addresses, so that communicators share them too. 0: nobody's. */
	unsigned workers;
	bool uc;              /* over UC, all ranks alike; else over UD */
	bool staged;          /* not uc: received by the caller's thread though the device could */
	ccl_create_fn create; /* of UC, workers; these two NULL: looked for in the process */
	ccl_window_fn window;
	unsigned chains;     /* 1; divides n_ranks */
	uint32_t first_psn;  /* of the first chunk; all ranks alike */
	unsigned depth;      /* 1024: receives of all trees, a packet of staging each */
	uint64_t link_bps;   /* 10 Gb/s */
	uint64_t alpha_ns;   /* 20 ms */
	uint64_t timeout_ns; /* 10 s, without any progress */
};

/* The address of a tree, from 0 on. */
static inline struct wire_ip ccl_mcast_group(const struct wire_ip *first, unsigned tree)
{
	struct wire_ip ip = *first;

	put_be32(ip.b + 12, get_be32(first->b + 12) + tree);
	return ip;
}

/* Whether all trees, one or more, have addresses of groups. */
static inline bool ccl_mcast_has_groups(const struct wire_ip *first, unsigned trees)
{
	const struct wire_ip last = ccl_mcast_group(first, trees - 1);

	return wire_is_multicast(&last) && get_be32(last.b + 12) >= get_be32(first->b + 12);
}

/* -EOPNOTSUPP: uc or workers, and the device has no such queue pairs. */
int ccl_mcast_open(
	const struct ccl_mcast_conf *conf, struct ccl_mcast **mcast, char err[CCL_ERR_LEN]);
/* What the others have to know of a rank, a new reference; connects: all has that of each rank, in
 * order. -EPROTO: one makes no sense. All ranks must have connected before a collective begins. */
json_t *ccl_mcast_address(const struct ccl_mcast *mcast);
int ccl_mcast_connect(struct ccl_mcast *mcast, const json_t *all, char err[CCL_ERR_LEN]);
/* All ranks of a bootstrap: both, and a barrier. Bounded by its timeouts; an error has been told to
 * the others. */
int ccl_mcast_meet(struct ccl_mcast *mcast, struct ccl_boot *boot, char err[CCL_ERR_LEN]);
void ccl_mcast_close(struct ccl_mcast *mcast); /* may be NULL */

/* Whether so many bytes (of a block) can be told apart: 2^24 chunks. */
bool ccl_mcast_fits(const struct ccl_mcast *mcast, bool allgather, uint64_t bytes);

/* sendbuf: one block of `bytes`; recvbuf: n_ranks of them. In place: sendbuf is the own block.
 * -EMSGSIZE: as ccl_mcast_fits; -EAGAIN: CCL_MAX_QUEUED are unfinished. */
int ccl_mcast_iallgather(struct ccl_mcast *mcast, const void *sendbuf, void *recvbuf,
	uint64_t bytes, struct ccl_req *req);
int ccl_mcast_ibroadcast(
	struct ccl_mcast *mcast, void *buf, uint64_t bytes, unsigned root, struct ccl_req *req);

/* As ccl_test and ccl_progress. To be called again at the deadline (UINT64_MAX: no need). */
int ccl_mcast_test(const struct ccl_mcast *mcast, struct ccl_req req);
int ccl_mcast_progress(struct ccl_mcast *mcast, uint64_t now);
uint64_t ccl_mcast_deadline(const struct ccl_mcast *mcast);
bool ccl_mcast_busy(const struct ccl_mcast *mcast);
/* Fails it on purpose: the neighbours are told with the next ccl_mcast_progress. */
void ccl_mcast_fail(struct ccl_mcast *mcast, int error);

/* All of them complete on the channel; NULL: there are no more. */
struct ibv_cq *ccl_mcast_cq(const struct ccl_mcast *mcast, unsigned index);
struct ibv_comp_channel *ccl_mcast_channel(const struct ccl_mcast *mcast);

const char *ccl_mcast_error(const struct ccl_mcast *mcast); /* "" while it has not failed */
const struct mcast_counters *ccl_mcast_counters(const struct ccl_mcast *mcast);

/* Of the last collective that was finished; ended: its last message was out, and its request done.
 */
struct ccl_mcast_times {
	uint64_t begun, running, came, cut, whole; /* struct mcast_times */
	uint64_t ended;
};
void ccl_mcast_times(const struct ccl_mcast *mcast, struct ccl_mcast_times *times);

/* What it takes, for figure 7's sake. */
struct ccl_mcast_info {
	unsigned mtu, ud_qps, uc_qps, rc_qps;
	bool marked; /* by the device, which has no use for staging */
	uint64_t staging_bytes;
};
void ccl_mcast_query(const struct ccl_mcast *mcast, struct ccl_mcast_info *info);

#endif
