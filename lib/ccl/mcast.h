/* SPDX-License-Identifier: BSD-3-Clause */
/* AllGather and Broadcast by multicast, on verbs: the protocol of lib/mcast over one UD queue pair
 * that all ranks attach to a multicast group, and RC connections to the neighbours in the ring and
 * the partners of the barrier. Datagrams are sent from the caller's memory; they are received into
 * staging and copied to their places; what is lost is read from the left neighbour's result.
 *
 * The switches on the way must forward the group (docs/multicast.md). Calls block; errors are
 * negative errno, the first one is final and ccl_mcast_error says what it was. One thread at a
 * time.
 */
#ifndef CCL_MCAST_H
#define CCL_MCAST_H

#include "lib/ccl/ccl.h"
#include "lib/mcast/mcast.h"

struct ccl_mcast;
struct ccl_boot;

enum { CCL_MCAST_MAX_RANKS = 256 };

/* 0 is a default where one is said. */
struct ccl_mcast_conf {
	struct ibv_context *context; /* stays the caller's */
	uint8_t port;                /* 1 */
	uint8_t gid_index;           /* of the rank's own address */
	unsigned rank, n_ranks;
	struct wire_ip group; /* of the family of that address, this communicator's alone */
	unsigned chains;      /* 1; divides n_ranks */
	unsigned depth;       /* 1024: receives, a packet of staging each */
	uint64_t link_bps;    /* 10 Gb/s */
	uint64_t alpha_ns;    /* 20 ms */
	uint64_t timeout_ns;  /* 10 s, without any progress */
};

int ccl_mcast_open(
	const struct ccl_mcast_conf *conf, struct ccl_mcast **mcast, char err[CCL_ERR_LEN]);
/* All ranks of a bootstrap: exchanges addresses and connects. Bounded by its timeouts. */
int ccl_mcast_meet(struct ccl_mcast *mcast, struct ccl_boot *boot, char err[CCL_ERR_LEN]);
void ccl_mcast_close(struct ccl_mcast *mcast); /* may be NULL */

/* sendbuf: one block of `bytes`; recvbuf: n_ranks of them. In place: sendbuf is the own block.
 * -EMSGSIZE: more than 2^24 chunks. */
int ccl_mcast_allgather(
	struct ccl_mcast *mcast, const void *sendbuf, void *recvbuf, uint64_t bytes);
int ccl_mcast_broadcast(struct ccl_mcast *mcast, void *buf, uint64_t bytes, unsigned root);

const char *ccl_mcast_error(const struct ccl_mcast *mcast); /* "" while it has not failed */
const struct mcast_counters *ccl_mcast_counters(const struct ccl_mcast *mcast);

/* What it takes, for figure 7's sake. */
struct ccl_mcast_info {
	unsigned mtu, ud_qps, rc_qps;
	uint64_t staging_bytes;
};
void ccl_mcast_query(const struct ccl_mcast *mcast, struct ccl_mcast_info *info);

#endif
