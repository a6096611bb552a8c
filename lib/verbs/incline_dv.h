/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct verbs: what the incline device offers beyond libibverbs. A program finds these functions
 * at run time with dlsym(RTLD_DEFAULT, ...), so that it also runs without the device; with objects
 * of another device each of them returns EOPNOTSUPP. Return 0 or a positive errno, as libibverbs.
 */
#ifndef INCLINE_DV_H
#define INCLINE_DV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum inc_dv_dir {
	INC_DV_SEND, /* this QP's requests: the next message starts at from + count */
	INC_DV_RECV, /* the peer's requests: lazily, from + count is in order after from - 1 */
};

/* True if the context is of an incline device. */
bool inc_dv_is_supported(const struct ibv_context *context);

/* Declares that the PSNs from .. from + count - 1 (modulo 2^24) will not be used in one direction
 * (docs/inc-protocol.md, 3.7). SEND is ordered like a work request behind all that were posted;
 * from must be the PSN at which the next message would start. EINVAL: count 0 or above 2^22, QP not
 * in RTR (receive) or RTS, from already passed. ENOSPC: 16 ranges are pending. */
int inc_dv_qp_skip(struct ibv_qp *qp, enum inc_dv_dir dir, uint32_t from, uint32_t count);

/* ibv_create_qp of a QP that libibverbs has no word for. INC_DV_QP_SELECTIVE: a reliable connection
 * with selective acknowledgement, for links that lose packets. The peer's must be one too: the
 * packets have opcodes of their own. No SRQ, no inc_dv_qp_skip; the path MTU and 92 bytes must fit
 * the port's. INC_DV_QP_MULTICAST: of type UC, with a multicast group for its peer (the dgid of its
 * address, dest_qp_num 0xffffff), for WRITEs with Immediate of one packet (docs/multicast.md).
 * INC_DV_QP_WORKER(n), by itself for a QP of type UD, or with INC_DV_QP_MULTICAST: what the QP
 * receives is taken by receive worker n of the device, from 1 on. Its receive CQ is then for
 * receive queues of that worker alone, another one than its send CQ; no SRQ. NULL and errno:
 * EOPNOTSUPP for flags that are not known or do not go together, or none; EINVAL for a worker that
 * is not there, or a CQ that is for others. */
enum inc_dv_qp_flags { INC_DV_QP_SELECTIVE = 1 << 0, INC_DV_QP_MULTICAST = 1 << 1 };
#define INC_DV_QP_WORKER(n) ((uint32_t)(n) > 0xff ? UINT32_C(0xff00) : (uint32_t)(n) << 8)
struct ibv_qp *inc_dv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t flags);

/* How many the device has ("rx_workers", docs/rnic-config.md). 0: also of another device. */
unsigned inc_dv_receive_workers(struct ibv_context *context);

/* Where WRITEs to the groups that such a QP is attached to (ibv_attach_mcast) go: all receivers
 * agree on key and offsets. Each writer has a part, which it fills with packets of the path MTU (or
 * `chunk`), the last one may be shorter; the immediate data must be first and so many more as there
 * are packets before it in the part, modulo mask + 1, the bits above as in first. Writers are in
 * the order of these numbers, counted from the first one's. What is not so is dropped. Each that
 * comes, also one that has come before, takes a receive request, of no bytes.
 *
 * With marks (chunk is not 0) the device tells only when `expect` packets have come, by a receive
 * request that the last one takes, and sets a bit for each when its bytes are there: that of the
 * first writer's first packet is mark_first, those of other numbers follow. Packets that come again
 * are counted, not written. So may datagrams be taken, by a QP of type UD, from each writer's queue
 * pair: they go from the port's receive buffers to their places, without staging, by number alone
 * (key and offsets are WRITEs'). Such a QP takes nothing else meanwhile; without writers, nothing.
 */
struct inc_dv_mcast_writer {
	union ibv_gid gid; /* source address */
	uint64_t offset, length;
	uint32_t first;
	uint32_t qp_num; /* UD */
};
/* The caller's until the window is closed; stored by a thread of the device, with release. */
struct inc_dv_mcast_marks {
	uint64_t *bit;
	uint64_t again; /* packets that have come once more */
	uint32_t n_bits, mark_first, expect;
	uint32_t reserved;
};
struct inc_dv_mcast_window {
	uint32_t key;
	uint32_t number_mask; /* one less than a power of two, or all ones */
	struct ibv_mr *mr;    /* of the QP's domain, with LOCAL_WRITE */
	void *addr;           /* of offset 0 */
	uint64_t length;
	const struct inc_dv_mcast_writer *writer;
	uint32_t n_writers;
	uint32_t chunk;                   /* 0: the path MTU, and no marks */
	struct inc_dv_mcast_marks *marks; /* looked at if chunk is not 0 */
};
/* From RTR on; instead of the one before. NULL: there is none any more, and when this returns
 * nothing is written or marked. EINVAL: state, memory, parts beyond the window or out of order,
 * bits beyond the marks, mask, chunk above the MTU; ENOMEM. */
int inc_dv_qp_mcast_window(struct ibv_qp *qp, const struct inc_dv_mcast_window *window);

/* Where the transport of a QP stands. */
struct inc_dv_qp_stats {
	uint32_t sq_una;  /* oldest unacknowledged PSN */
	uint32_t sq_next; /* next PSN to send */
	uint32_t epsn;    /* next PSN expected from the peer */
	uint32_t retries_left;
	uint32_t rnr_retries_left;
	uint32_t reserved;
	uint64_t retransmits; /* packets sent again */
	uint64_t timeouts;
};
int inc_dv_query_qp_stats(struct ibv_qp *qp, struct inc_dv_qp_stats *stats);

/* Counters and drop reasons of the device by name. Fills at most n entries, *count is how many
 * there are. Names are static strings. */
struct inc_dv_stat {
	const char *name;
	uint64_t value;
};
int inc_dv_query_stats(
	struct ibv_context *context, struct inc_dv_stat *stats, unsigned n, unsigned *count);

#ifdef __cplusplus
}
#endif

#endif
