/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a communicator. parts.c cuts collectives into parts, engine.c moves messages, qp.c owns
 * verbs objects, device.c finds devices, idle.c waits, wait.c blocks, setup.c meets the other
 * ranks.
 *
 * A communicator has members: one per group it belongs to, each with a queue pair, PSNs, a window.
 * A collective consists of parts, each a Reduce, a Broadcast or an AllReduce; a part belongs to one
 * member, is cut into operations (a control message and its data), and these into messages.
 *
 * Messages of a member are numbered from 0 through all its operations, also those that this rank
 * neither sends nor receives. Four cursors walk over them, in this order: receives posted, sends
 * posted, sends acknowledged, messages received. What a rank sends or receives of an operation is a
 * beginning of it: nothing, the control, or everything. A message is finished once both later
 * cursors have passed it; the window is W messages from the oldest unfinished one.
 *
 * Receives are posted for known operations only, so that each can point at its message's final
 * place. Who receives without sending first (a Broadcast in a group of its own) may be too late
 * with that: its NIC then holds the sender with RNR NAKs. */
#ifndef CCL_COMM_H
#define CCL_COMM_H

#include "lib/ccl/ccl.h"
#include "lib/ccl/msg.h"
#include "lib/ccl/rc.h"

enum {
	CCL_RECV_EXTRA = 2, /* receives beyond the window, so that replenishing is never late */
	CCL_RECV_AHEAD = 4, /* windows, of receives that need no slot */
	CCL_OP_RING = 8,    /* power of two > CCL_MAX_OPS */
	CCL_POLL = 16,      /* completions taken at a time */
	CCL_BATCH = 8,      /* work requests posted at a time */
};

/* A collective as the application issued it. */
struct ccl_coll {
	enum ccl_collective kind;
	uint8_t op, dtype;
	uint16_t root;
	const uint8_t *send;
	uint8_t *recv;
	uint64_t bytes; /* of a part */
	unsigned n_parts, parts_left;
	uint32_t send_lkey; /* valid if send_direct; likewise receive */
	uint32_t recv_lkey;
	bool send_direct, recv_direct;
	enum ccl_algorithm by;     /* not INC: handed on as a whole */
	struct ccl_req handed_req; /* of who does it */
};

/* What one group does for a collective. */
struct ccl_part {
	enum ccl_prim prim;
	uint16_t root;
	const uint8_t *send; /* what this rank contributes, if anything */
	uint8_t *recv;       /* where its result goes, if it gets one */
};

/* One operation on the wire: one control message and its data. */
struct ccl_op {
	uint64_t coll; /* number of its collective */
	struct ccl_part part;
	uint64_t offset; /* in the part */
	bool last;       /* of its part */
	unsigned w;      /* window up to its last message */
	bool fenced;     /* waits for the former one and for its own control (2.3) */
	bool resync;     /* queue pairs have to begin anew before it */
	struct ccl_plan plan;
	struct ccl_ctrl ctrl;
	uint32_t psn;              /* of the control */
	uint64_t first_msg;        /* number of the control */
	uint64_t first_data;       /* messages of data in all operations before */
	uint32_t n_tx, n_rx;       /* messages that this rank sends, receives: 0, 1 or all */
	bool skip_send, skip_recv; /* PSNs of the data that it does not */
	bool recv_direct;          /* data goes to its place, else through a slot */
	reduce_fn add;             /* root of a Reduce: adds its own */
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

struct ccl_lease;
struct ccl_resync;

/* Membership in one group. */
struct ccl_memb {
	struct ccl_comm *comm;
	unsigned number;
	bool mixed;
	enum ccl_prim prim; /* if not mixed */
	unsigned root;

	/* qp.c */
	unsigned w;     /* its window */
	unsigned share; /* the same, when the groups of all roots are in use */
	struct ibv_qp *qp;
	uint32_t remote_qpn, start_psn;
	unsigned n_send, n_recv; /* slots of the stage, and work requests */
	unsigned max_recv;       /* receives without a slot: further ahead */
	uint8_t *stage;          /* send slots, then receive slots */
	struct ibv_mr *stage_mr;
	uint8_t *inbox;   /* RDMA WRITE: n_inbox messages, written to by the switch */
	unsigned n_inbox; /* one more than can have come and not been taken */
	struct ibv_mr *inbox_mr;

	/* parts.c: what was taken of the collectives */
	uint64_t coll;
	unsigned part;
	uint64_t offset;

	/* engine.c */
	struct ccl_op op[CCL_OP_RING];
	uint64_t op_made, op_done;
	uint32_t next_psn;
	uint64_t next_msg, next_data;
	struct ccl_cursor rx_post, tx_post, tx_ack, rx;
	bool touched; /* completions came */
};

struct ccl_comm {
	unsigned rank, n_ranks;
	unsigned mtu, m, w;
	uint64_t timeout_ns;
	uint32_t max_packets;
	enum ccl_mode mode;
	enum ccl_kind kind;
	unsigned collectives;
	bool fallback;
	bool no_half;   /* the switches have no memory for fp16 and bf16 sums */
	bool write;     /* data by RDMA WRITE */
	bool selective; /* queue pairs with selective acknowledgement */
	bool stall_rnr; /* the switches hold waiting hosts: their timeouts may be short */
	char selection[CCL_ERR_LEN];

	/* qp.c */
	struct ibv_context *context;
	bool own_context;
	uint8_t port, gid_index;
	struct wire_ip local_ip, remote_ip;
	ccl_skip_fn skip;     /* NULL: the device cannot */
	ccl_create_fn create; /* NULL: the device has no selective queue pairs */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	unsigned n_memb;
	struct ccl_memb *memb;
	size_t slot_len;
	struct ccl_ring *ring;       /* instead of members: over_ring.c */
	struct ccl_ring *across;     /* beside ring, which is a node's: over_nodes.c; NULL: none */
	struct ccl_nodes *nodes;     /* on both */
	unsigned n_local;            /* ranks of a node */
	struct ccl_mcast *mcast;     /* by itself (kind multicast), or beside the others */
	uint64_t mcast_min;          /* bytes, beside the others */
	struct ccl_tree *tree;       /* kind tree */
	struct ccl_lease *lease;     /* memory per invocation: lease.c; NULL: always */
	struct ccl_meeting *meeting; /* with a lease or resync, whose it is */
	uint64_t lease_open;         /* with a lease: collectives that the groups may take up */
	struct ccl_resync *resync;   /* queue pairs begin anew: resync.c; NULL: PSNs are left out */
	struct ccl_region region[CCL_MAX_REGIONS];
	/* As the program has registered them, whichever of the above has them. len 0: free. */
	struct ccl_buffer {
		uint8_t *base;
		size_t len;
	} buffer[CCL_MAX_REGIONS];
	bool connected;

	/* coll.c */
	struct ccl_coll coll[CCL_MAX_QUEUED];
	uint64_t
		first; /* the first one, as requests count: from before it was renewed are others */
	uint64_t coll_issued, coll_done; /* all before coll_done are done, some after may be */

	uint64_t staged_sends, staged_receives;
	uint64_t progress_ns; /* when something last happened */
	uint64_t looked_ns;   /* when ccl_progress was last called */
	bool fresh;           /* something happened since the last ccl_progress: take its now */
	int failed;           /* 0 or -errno */
	bool diagnosed;
	char err[CCL_ERR_LEN];

	struct ccl_resume *resume; /* what is kept for going on by a ring; NULL: nothing */

	/* idle.c */
	uint64_t watched_ns; /* when the other processes were last looked at */

	/* setup.c */
	struct ccl_setup *setup;       /* NULL: made by ccl_comm_open, or could not be renewed */
	const struct ccl_group *given; /* with which it was; NULL: not by a group */
	bool placed;                   /* its memory is somebody else's */
};

static inline struct ccl_coll *ccl_coll_at(struct ccl_comm *c, uint64_t n)
{
	return &c->coll[n % CCL_MAX_QUEUED];
}

static inline struct ccl_op *ccl_op_at(struct ccl_memb *mb, uint64_t n)
{
	return &mb->op[n % CCL_OP_RING];
}

/* Messages that are finished: up to the oldest that is not. */
static inline uint64_t ccl_memb_finished(const struct ccl_memb *mb)
{
	return mb->tx_ack.msg < mb->rx.msg ? mb->tx_ack.msg : mb->rx.msg;
}

/* ---- parts.c ---- */

/* The part that a member has to go on with, at mb->coll, mb->part, mb->offset; false: none yet. */
bool ccl_next_part(struct ccl_memb *mb, struct ccl_part *part);

/* A part of a collective is finished. */
void ccl_part_done(struct ccl_comm *c, uint64_t coll);

/* Forgets collectives whose parts are all done. */
void ccl_retire(struct ccl_comm *c);
/* Collectives are unfinished. */
bool ccl_busy(const struct ccl_comm *c);

/* ---- coll.c ---- */

/* One that is unfinished has a buffer there. */
bool ccl_uses(const struct ccl_comm *c, const uint8_t *base, size_t len);

/* ---- trouble.c ---- */

/* Fails the communicator once; later failures are consequences and are ignored. Returns the error
 * it has failed with. */
int ccl_fail(struct ccl_comm *c, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The first member with unfinished operations; the first of all if there is none. */
struct ccl_memb *ccl_waiting_memb(struct ccl_comm *c);

/* What the oldest unfinished message is, for messages to people. */
void ccl_describe_wait(struct ccl_comm *c, char *buf, size_t cap);
/* Fails for a completion that is one. */
int ccl_completion_error(struct ccl_comm *c, const struct ibv_wc *wc);

/* ---- engine.c ---- */

/* Makes operations, posts what may be posted. 0 or the communicator's error. */
int ccl_pump(struct ccl_memb *mb);

/* Takes completions and goes on with what follows from them. How many, or the error. */
int ccl_reap(struct ccl_comm *c);

/* ---- device.c ---- */

/* Finds and opens the device and GID that have an address: device "" is any, gid_index -1 any. On
 * success *context is the caller's; -ENODEV with what was found in err. */
int ccl_device_open(const char *device, const struct wire_ip *ip, int gid_index,
	struct ibv_context **context, uint8_t *port, uint8_t *gid, char err[CCL_ERR_LEN]);

/* Active RoCE MTU of the port in bytes, or -errno. */
int ccl_port_mtu(struct ibv_context *context, uint8_t port);

/* The device's way of leaving out PSNs, if it is there and this context's; else NULL. */
ccl_skip_fn ccl_device_skip(struct ibv_context *context);
/* The device's way of making selective queue pairs, likewise. */
ccl_create_fn ccl_device_create(struct ibv_context *context);

/* Its way of giving memory to WRITEs that are multicast, likewise; it then makes their queue pairs.
 */
ccl_window_fn ccl_device_window(struct ibv_context *context);
/* How many receive workers it has, likewise. */
unsigned ccl_device_workers(struct ibv_context *context);

/* Can it be held with RNR NAKs? Linux's Soft-RoCE cannot: sending again after one, it may go on
 * with PSNs that it has used (docs/interop.md). */
bool ccl_device_rnr(struct ibv_context *context);

/* Can its UD queue pairs be members of multicast groups? */
bool ccl_device_mcast(struct ibv_context *context);

/* ---- comm.c ---- */

/* Everything that does not depend on the groups: then ccl_join. */
int ccl_comm_new(const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN]);

/* Data by RDMA WRITE from the next ccl_join on; needs the groups' MTU: -EINVAL. */
int ccl_use_write(struct ccl_comm *c, unsigned mtu);

void ccl_comm_free(struct ccl_comm *c);

/* ---- qp.c ---- */

/* Makes the queue pairs for the groups of a kind; ccl_leave undoes it, to try another kind. */
int ccl_join(struct ccl_comm *c, enum ccl_kind kind, unsigned collectives, char err[CCL_ERR_LEN]);
void ccl_leave(struct ccl_comm *c);

/* Groups of a kind for these collectives. */
unsigned ccl_count_groups(enum ccl_kind kind, unsigned collectives, unsigned n_ranks);
/* Group i of them. */
void ccl_describe_group(enum ccl_kind kind, unsigned collectives, unsigned n_ranks, unsigned i,
	enum ccl_prim *prim, unsigned *root);

/* Messages in a group's window, where the communicator's is w. shared: while the groups of all
 * roots are in use. */
unsigned ccl_group_window(
	enum ccl_kind kind, enum ccl_prim prim, bool shared, unsigned w, unsigned n_ranks);

void ccl_qp_to_error(struct ccl_comm *c);
/* A queue pair of one piece of memory per message, every send of which completes. NULL with errno.
 */
struct ibv_qp *ccl_qp_of(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type,
	unsigned sends, unsigned receives);
/* Buffers, and its queue pair as far as RTS. */
int ccl_connect_memb(struct ccl_memb *mb, const struct ccl_remote *remote, char *err);

/* The same queue pair from the beginning, at a PSN: nothing of it is unfinished. */
int ccl_memb_anew(struct ccl_memb *mb, uint32_t psn, char *err);

/* Completion queue and channel, of the members or of the ring. */
struct ibv_cq *ccl_cq(const struct ccl_comm *c);
struct ibv_comp_channel *ccl_channel(const struct ccl_comm *c);

/* ---- to_ring.c ---- */

struct ccl_ring;

/* Gives a collective to a ring: coll->handed_req, or the ring's error. */
int ccl_ring_issue(struct ccl_ring *ring, unsigned rank, struct ccl_coll *coll);

/* ---- over_ring.c ---- */

struct ccl_ring_conf;

/* Joins no groups, but a ring: collectives of those it can do. It has to meet before it is used. */
int ccl_over_ring(struct ccl_comm *c, const struct ccl_ring_conf *conf, unsigned collectives,
	char err[CCL_ERR_LEN]);
int ccl_ring_go_on(struct ccl_comm *c, uint64_t now); /* as ccl_progress */
void ccl_ring_describe(const struct ccl_comm *c, struct ccl_info *info);

/* ---- over_nodes.c ---- */

struct ccl_nodes;
struct ccl_ring_address;
struct ccl_boot;

/* As ccl_over_ring, by conf.n_ranks ranks in nodes of `rings`: one ring inside the node, one across
 * the nodes. They have to meet, or to connect: addresses are by rank, inside and across. */
int ccl_over_nodes(struct ccl_comm *c, const struct ccl_ring_conf *conf, unsigned rings,
	unsigned collectives, char err[CCL_ERR_LEN]);
void ccl_over_nodes_addresses(
	const struct ccl_comm *c, struct ccl_ring_address *inside, struct ccl_ring_address *across);
int ccl_over_nodes_connect(struct ccl_comm *c, const struct ccl_ring_address *inside,
	const struct ccl_ring_address *across, unsigned mtu, char err[CCL_ERR_LEN]);
/* As ccl_ring_meet; between gets the addresses across, and ccl_ring_plain is that ring's. */
int ccl_over_nodes_meet(struct ccl_comm *c, struct ccl_boot *boot,
	int (*between)(void *arg, const struct ccl_ring_address *all, unsigned n, unsigned mtu,
		char err[CCL_ERR_LEN]),
	void *arg, char err[CCL_ERR_LEN]);
int ccl_over_nodes_register(struct ccl_comm *c, void *buf, size_t len);
int ccl_over_nodes_deregister(struct ccl_comm *c, void *buf);
int ccl_over_nodes_issue(struct ccl_comm *c, struct ccl_coll *coll);
int ccl_over_nodes_go_on(struct ccl_comm *c, uint64_t now); /* as ccl_progress */
void ccl_over_nodes_describe(const struct ccl_comm *c, struct ccl_info *info);
void ccl_over_nodes_close(struct ccl_comm *c);

/* ---- algorithm.c ---- */

/* How a collective of the whole vector's bytes is done. */
enum ccl_algorithm ccl_pick(const struct ccl_comm *c, enum ccl_collective kind, uint64_t bytes);

/* ---- over_hosts.c ---- */

struct ccl_boot;
struct ccl_group;

/* Joined by the hosts alone: no groups, no answer of rank 0's. */
static inline bool ccl_by_hosts(const struct ccl_comm *c)
{
	return c->kind >= CCL_RING;
}
/* Multicast, by itself or beside what is there; a tree. All ranks, through the bootstrap; errors
 * have been told to the others. */
int ccl_over_mcast(struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot,
	char err[CCL_ERR_LEN]);
int ccl_over_tree(struct ccl_comm *c, const struct ccl_group *g, struct ccl_boot *boot,
	char err[CCL_ERR_LEN]);
/* Gives a collective to whom coll->by says. */
int ccl_hand_on(struct ccl_comm *c, struct ccl_coll *coll);
/* Those that were given to multicast or a tree, as ccl_progress. */
int ccl_hosts_go_on(struct ccl_comm *c, uint64_t now);
void ccl_hosts_close(struct ccl_comm *c);

/* ---- idle.c, blocking ---- */

uint64_t ccl_clock_ns(void);
/* A process that has failed or died says so on the bootstrap connection long before a timeout: 0,
 * or the communicator's error. */
int ccl_look_round(struct ccl_comm *c, uint64_t now);
/* Nothing has happened: yields, or after a while looks round and sleeps, not beyond until. *since:
 * when something last has. 0, or the error. */
int ccl_idle(struct ccl_comm *c, uint64_t now, uint64_t *since, uint64_t until);

/* ---- setup_watch.c ---- */

/* Has another process failed or gone? 0, or -ECONNABORTED and why; -ESTALE: all processes are
 * there, as far as is known, but the groups are over. Does not block. */
int ccl_setup_watch(struct ccl_setup *setup, char why[CCL_ERR_LEN]);
/* Its turn with memory that it shares, if that was said anew. */
struct ccl_turn;
bool ccl_setup_turn(struct ccl_setup *setup, struct ccl_turn *turn);

/* Tells the other processes why this one has failed. */
void ccl_setup_tell(struct ccl_setup *setup, const char *why);

/* Writes "; switch s0 waits for ranks 2,3" and the like, of one of the groups, to text, as far as
 * it can be found out within a second or so. */
void ccl_setup_diagnose(
	struct ccl_setup *setup, enum ccl_prim prim, unsigned root, char *text, size_t cap);

#endif
