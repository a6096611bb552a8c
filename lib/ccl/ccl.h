/* SPDX-License-Identifier: BSD-3-Clause */
/* CommLib as the programs of this repository have it: the public interface, and communicators that
 * somebody else has found the partners of. */
#ifndef CCL_CCL_H
#define CCL_CCL_H

#include <incline/ccl.h>
#include <infiniband/verbs.h>

#include "lib/reduce/reduce.h"
#include "lib/wire/ip.h"

enum {
	/* Operations of a group on the wire at a time (docs/inc-protocol.md, 2.2 rule 7). */
	CCL_MAX_OPS = 4,
	/* Ranks that can have groups per primitive and root: 2 n + 1 of them. */
	CCL_MAX_SUBGROUP_RANKS = 64,
};

struct ccl_remote {
	uint32_t qpn; /* the switch's */
	uint32_t start_psn;
};

/* As inc_dv_qp_skip (lib/verbs/incline_dv.h). */
typedef int (*ccl_skip_fn)(struct ibv_qp *qp, int dir, uint32_t from, uint32_t count);

/* As inc_dv_create_qp. */
typedef struct ibv_qp *(*ccl_create_fn)(
	struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint32_t flags);

/* As inc_dv_qp_mcast_window. */
struct inc_dv_mcast_window;
typedef int (*ccl_window_fn)(struct ibv_qp *qp, const struct inc_dv_mcast_window *window);

/* Without files and sockets: somebody else has made the groups on the switch and knows the numbers.
 * Two steps, because the switch needs the queue pairs' numbers first: ccl_comm_open makes them,
 * ccl_comm_connect brings them to RTS. ccl_comm_create_connected does both. */
struct ccl_conn {
	struct ibv_context *context; /* stays the caller's, must outlive the communicator */
	uint8_t port;                /* 0: 1 */
	uint8_t gid_index;           /* of the rank's own address */
	unsigned rank, n_ranks;
	unsigned m, w;        /* packets per message, messages per window; m * w >= 2 */
	uint64_t timeout_ns;  /* without any progress; 0: 10 s */
	uint32_t max_packets; /* of one operation; 0: the protocol's 2^22 - 1 */
	enum ccl_mode mode;   /* I, II or III; 0: II */
	enum ccl_kind kind;   /* single or mixed */
	/* Bit per collective that will be called: decides which groups there are if kind is single.
	 * 0: AllReduce and Barrier if single, all if mixed. */
	unsigned collectives;
	ccl_skip_fn skip; /* NULL: looked for in the process */
	/* Mixed, modes II and III: nobody leaves PSNs out; ccl_resync_attach follows (resync.h). */
	bool resync;
	/* Queue pairs with selective acknowledgement, for groups with the flag SR: kind single,
	 * mode III, or II with AllReduce and Barrier alone. -EOPNOTSUPP if the device has none. */
	bool selective;
	ccl_create_fn create; /* NULL: looked for in the process */
	/* Data by RDMA WRITE with Immediate instead of SEND; ccl_comm_open needs mtu, too, and
	 * ccl_member says where each rank gets its results. Modes II and III. */
	bool write;
	struct ccl_comm *place; /* all zero: made there; NULL: anywhere */
	/* Needed by ccl_comm_connect. */
	unsigned mtu;             /* payload bytes of a full packet: 256 .. 4096 */
	struct wire_ip remote_ip; /* the switch */
	uint32_t remote_qpn;
	uint32_t start_psn;
	const struct ccl_remote *remote; /* if there are several groups: one each, else NULL */
};
int ccl_comm_open(const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN]);
int ccl_comm_connect(struct ccl_comm *comm, const struct ccl_conn *conn, char err[CCL_ERR_LEN]);
int ccl_comm_create_connected(
	const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN]);

/* The groups that the communicator is a member of, and its own queue pair in each: the first is the
 * mixed one or AllReduce's. -ENOENT: there are no more. */
struct ccl_member {
	enum ccl_kind kind;
	unsigned prim, root; /* single: 0 AllReduce, 1 Reduce, 2 Broadcast */
	uint32_t qpn;
	uint64_t mr_addr; /* RDMA WRITE, a rank that gets results; else mr_len is 0 */
	uint32_t mr_len, rkey;
};
int ccl_member(const struct ccl_comm *comm, unsigned i, struct ccl_member *member);

uint32_t ccl_qpn(const struct ccl_comm *comm); /* of the first */

#endif
