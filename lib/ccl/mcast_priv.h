/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a communicator by multicast: mcast_qp.c owns verbs objects, mcast_meet.c meets the
 * other ranks, mcast_run.c moves what the protocol says, mcast_marks.c is for what the device takes
 * by itself, mcast_uc.c for WRITEs. */
#ifndef CCL_MCAST_PRIV_H
#define CCL_MCAST_PRIV_H

#include "lib/ccl/mcast.h"
#include "lib/verbs/incline_dv.h"

enum {
	MC_PSN_BITS = 24,
	MC_GRH = 40,
	MC_SENDS = 64,    /* datagrams that are posted at a time */
	MC_BATCH = 16,    /* of a tree in one call; and of so many the last one completes */
	MC_READS = 4,     /* READs, likewise */
	MC_MESSAGES = 96, /* messages, to all peers */
	MC_PEER_RECVS = 32,
	MC_POLL = 16,      /* completions at a time */
	MC_QPN = 0xffffff, /* of every multicast group */
	MC_QKEY = 0x6d637374,
};

/* Of one READ: what verbs count a message with (32 bits), and InfiniBand's limit, is no less. */
static const uint32_t MC_READ_MAX = 1u << 30;

/* A message as it is sent, big endian. */
struct mc_wire {
	uint8_t type, zero[3];
	uint8_t id[4], arg[4];
	uint8_t rkey[4], addr[8]; /* GRANT: the result buffer of who says it */
};

/* wr_id: the kind above, an index below. */
enum mc_kind { MC_CHUNK_RECV, MC_CHUNK_SEND, MC_RC_RECV, MC_RC_SEND, MC_RC_READ };

struct mc_rank {
	struct wire_ip ip;
	uint32_t group_qpn[CCL_MCAST_MAX_TREES]; /* of datagrams */
};

/* Chunks of a tree that are posted together. */
struct mc_batch {
	struct ibv_send_wr wr[MC_BATCH];
	struct ibv_sge sge[MC_BATCH];
	unsigned n;
};

/* A group that carries a part of the chunks: of those in flight each the next, in turn. */
struct mc_tree {
	struct wire_ip group;
	struct ibv_qp *qp; /* UD or UC */
	struct ibv_cq *cq; /* of what it receives: with workers its own, else the communicator's */
	struct ibv_ah *ah; /* UD */
	bool attached;
	struct mc_batch batch;
	unsigned quiet; /* chunks behind the last that completes */
	/* Of the collective's chunks, by the device. */
	struct inc_dv_mcast_marks marks;
	uint64_t again; /* of those, told to the core */
};

struct mc_read {
	bool busy;
	uint32_t block, first, n;
};

/* A collective as it was issued. */
struct mc_coll {
	uint8_t *buf;
	uint64_t block;
	bool all;
	unsigned root;
};

struct ccl_mcast {
	struct ccl_mcast_conf conf;
	struct mcast core;
	bool ready;
	unsigned mtu, n_peers;
	uint32_t read_bytes;            /* of a READ: what the port carries in a message */
	unsigned peer[MCAST_MAX_PEERS]; /* ranks */
	struct wire_ip ip;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct mc_tree tree[CCL_MCAST_MAX_TREES];
	int member; /* ccl_member_join; -1: none */
	struct ibv_qp *rc[MCAST_MAX_PEERS];
	uint32_t key, own_key; /* UC: what a window's key is counted from */
	bool marked;           /* the device marks and places chunks */
	struct inc_dv_mcast_writer *writer;
	uint64_t *mark_words; /* of all trees */
	uint64_t looked;      /* when at these */
	/* staging | messages that come, by peer | messages that go */
	uint8_t *memory;
	struct ibv_mr *mr;
	struct mc_rank *rank;
	unsigned used[MC_POLL], n_used; /* slots of chunks that are to be posted again */
	unsigned sender;                /* of the last datagram: most often also of the next */
	bool message_busy[MC_MESSAGES];
	unsigned n_messages;
	struct mc_read read[MC_READS];
	/* the collective */
	uint8_t *buf;
	struct ibv_mr *buf_mr, *own_mr; /* own: registered for this one alone */
	void *core_memory;
	bool begun;           /* it is the core's */
	uint64_t drain_until; /* it is over, but for messages to the neighbours; 0: it is not */
	struct mc_coll coll[CCL_MAX_QUEUED];
	uint64_t issued, done;
	struct ccl_mcast_times times; /* of the last that is done */
	int failed;
	uint64_t left_addr;
	uint32_t left_rkey;
	char err[CCL_ERR_LEN];
};

static inline size_t mc_slot_len(const struct ccl_mcast *c)
{
	return c->marked ? 0 : MC_GRH + c->mtu;
}
static inline uint8_t *mc_staging(const struct ccl_mcast *c, unsigned slot)
{
	return c->memory + slot * mc_slot_len(c);
}
static inline struct mc_wire *mc_incoming(const struct ccl_mcast *c, unsigned peer, unsigned slot)
{
	return (struct mc_wire *)mc_staging(c, c->conf.depth) + peer * MC_PEER_RECVS + slot;
}
static inline struct mc_wire *mc_outgoing(const struct ccl_mcast *c, unsigned slot)
{
	return mc_incoming(c, c->n_peers, slot);
}

/* Of so many chunks of a tree one completes (section V-A): half of those that may be posted at a
 * time are known to be sent when their trees have got that far. */
static inline unsigned mc_signal_every(const struct ccl_mcast *c)
{
	const unsigned n = MC_SENDS / 2 / c->conf.trees;

	return n < MC_BATCH ? n : MC_BATCH;
}

/* Whose a receive is. */
static inline unsigned mc_tree_of(const struct ccl_mcast *c, unsigned slot)
{
	return slot % c->conf.trees;
}
/* How many a tree has. */
static inline unsigned mc_tree_depth(const struct ccl_mcast *c)
{
	return (c->conf.depth + c->conf.trees - 1) / c->conf.trees;
}

/* n: up to MC_POLL; those of a tree that follow one another in one call. */
int mc_post_chunk_recvs(struct ccl_mcast *c, const unsigned *slot, unsigned n);
int mc_post_rc_recv(struct ccl_mcast *c, unsigned peer, unsigned slot);

/* mcast_uc.c. What all trees need; a tree's queue pair to RTS: 0 or a positive errno. */
int mc_uc_open(struct ccl_mcast *c, char *err);
int mc_uc_join(struct ccl_mcast *c, unsigned tree);

/* mcast_marks.c; where the device marks nothing, nothing. Windows of the collective that has begun:
 * 0 or a positive errno; what has been marked is told to the core; the windows are closed, and
 * nothing is written to the buffer any more. */
int mc_marks_open(struct ccl_mcast *c, char *err);
int mc_marks_begin(struct ccl_mcast *c);
void mc_marks_look(struct ccl_mcast *c, uint64_t now);
void mc_marks_end(struct ccl_mcast *c);

int mc_say(const struct ccl_mcast *c, char *err, const char *what, int error);

/* mcast_qp.c: after the others' addresses are known. qpn: of peer i for this rank. */
int mc_connect(struct ccl_mcast *c, const uint32_t *qpn, char *err);

#endif
