/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable Broadcast and AllGather over unreliable multicast: the protocol of "multicast-based
 * Broadcast and Allgather" (sections III, IV, appendix A) as a state machine of one rank of one
 * communicator. It takes datagrams, messages, completions and time, and says what to post; memory,
 * queue pairs and clocks are the caller's.
 *
 *   barrier    nobody sends before everybody has receives posted: recursive doubling, the ranks
 *              beyond a power of two fold into others first
 *   multicast  a root sends its block in chunks; of several, M at a time, each telling the next of
 *              its chain when it is ready; whoever gets a chunk marks it in a bitmap and copies it
 *              from staging to its place
 *   fetch      N/B + alpha after the barrier: each block that lacks a chunk is asked for at the
 * left neighbour, who says yes when he has all of it; then the missing runs are read handshake  a
 * rank that has everything tells its left neighbour, and is ready when its right one has told it:
 * nobody reads its buffer any more
 *
 * Broadcast is AllGather with one block. A block is asked for by itself, and its root has it: so
 * the chain of those who wait for their left neighbours ends there, and if all is lost this is the
 * ring.
 *
 * One thread at a time. Nothing is allocated. */
#ifndef MCAST_MCAST_H
#define MCAST_MCAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MCAST_MIN_RANKS = 2,
	MCAST_MAX_RANKS = 1 << 16,
	MCAST_MAX_PEERS = 2 + 17, /* neighbours, partners of the barrier */
};

struct mcast_config {
	unsigned rank, n_ranks;
	unsigned chains;      /* of an AllGather; divides n_ranks */
	uint32_t chunk;       /* bytes of a datagram's payload */
	unsigned psn_bits;    /* of the immediate data, 1..31; the others are the collective's */
	unsigned send_window; /* multicasts that are posted at a time, 1.. */
	unsigned read_window; /* READs, likewise */
	uint32_t read_bytes;  /* of one READ, at most: chunk .. */
	uint64_t link_bps;    /* B: bits per second */
	uint64_t alpha_ns;    /* of the cutoff timer */
	uint64_t give_up_ns;  /* without any progress */
	uint32_t first_id;    /* of the first collective */
	uint32_t first_psn;   /* of its first chunk */
};

/* X(name, meaning) */
#define MCAST_COUNTERS(X)                                                             \
	X(taken, "chunks that came by multicast")                                     \
	X(duplicate, "chunks that were there already")                                \
	X(stale, "datagrams of another collective, or of none")                       \
	X(range, "datagrams with a number beyond the buffer")                         \
	X(length, "datagrams of a wrong length")                                      \
	X(forged, "datagrams from a rank that is not the root of their chunk")        \
	X(fetched, "chunks that were read from the left neighbour")                   \
	X(asked, "blocks that were asked for there")                                  \
	X(cutoffs, "collectives in which the cutoff timer ended with chunks missing") \
	X(bad_message, "messages that make no sense")

struct mcast_counters {
#define X(name, text) uint64_t name;
	MCAST_COUNTERS(X)
#undef X
};

/* A message between two ranks, over a reliable connection, in order. */
enum mcast_message_type {
	MCAST_MSG_BARRIER,  /* arg: the round, or one of the two below */
	MCAST_MSG_ACTIVATE, /* your turn to multicast */
	MCAST_MSG_ASK,      /* arg: block */
	MCAST_MSG_GRANT,    /* arg: block, which may be read now */
	MCAST_MSG_FINAL,    /* I have all */
	MCAST_MSG_ABORT,    /* the collective has failed */
};
enum { MCAST_FOLD = 30, MCAST_UNFOLD = 31 };

struct mcast_message {
	uint8_t type;
	uint32_t id; /* of the collective, all bits */
	uint32_t arg;
};

/* What the caller is to post. */
enum mcast_request_type { MCAST_POST_SEND, MCAST_POST_MESSAGE, MCAST_POST_READ };

struct mcast_request {
	uint8_t type;
	unsigned peer; /* MESSAGE, READ: the rank */
	/* SEND: bytes of the result buffer, sent as they lie there; READ: of the peer's, into the
	 * same place of the own one, read_bytes at most: a longer run is read in parts. */
	uint64_t offset, len;
	uint32_t imm;                 /* SEND */
	struct mcast_message message; /* MESSAGE */
	uint32_t block, first, n;     /* READ: chunks, for mcast_read_done */
};

enum mcast_phase { MCAST_IDLE, MCAST_BARRIER, MCAST_RUNNING, MCAST_DONE, MCAST_FAILED };

enum mcast_verdict {
	MCAST_TAKE, /* copy it to the offset now, before anything else is called */
	MCAST_DUPLICATE,
	MCAST_STALE,
	MCAST_RANGE,
	MCAST_LENGTH,
	MCAST_FORGED,
};

struct mcast_block {
	uint32_t missing; /* chunks */
	uint32_t cursor;  /* READs are posted up to here */
	uint8_t state;    /* enum block_state in inside.h */
	bool grant_due, wanted;
};

/* When a collective came to its steps, by the caller's clock; 0: it did not (yet). */
struct mcast_times {
	uint64_t begun;
	uint64_t running; /* the barrier was over */
	uint64_t came;    /* the last chunk by multicast */
	uint64_t cut;     /* the cutoff timer ended, and chunks were missing */
	uint64_t whole;   /* everything was here, and the own chunks were out */
};

struct mcast {
	struct mcast_config config;
	struct mcast_counters count;
	uint64_t now; /* of the last event that was one */
	struct mcast_times times;
	uint8_t phase;
	int error; /* FAILED: negative errno */
	uint32_t id, next_psn;
	uint32_t heard, heard_early; /* barrier messages: of this collective, of the next */
	/* the collective */
	bool all; /* AllGather */
	unsigned root;
	uint64_t block_bytes;
	uint32_t first_psn, n_blocks, block_chunks, n_missing; /* blocks */
	struct mcast_block *block;
	uint64_t *bitmap;
	uint64_t cutoff_at, give_up_at;
	/* barrier */
	unsigned round;
	bool folded;
	/* sending */
	bool active, handed_on;
	uint32_t to_send, sending;
	/* fetching */
	bool cut;
	uint32_t ask_from, grants_due, asks_due, reading, granted;
	/* handshake */
	bool final_said, final_heard;
	/* messages that wait to be posted */
	struct mcast_message say[64];
	unsigned say_to[64];
	unsigned say_head, say_tail;
};

/* -EINVAL: a number out of its range, chains that do not divide the ranks. */
int mcast_init(struct mcast *m, const struct mcast_config *config);

/* Ranks that this one needs a reliable connection to, the left and the right neighbour first. How
 * many. */
unsigned mcast_peers(const struct mcast_config *config, unsigned peer[MCAST_MAX_PEERS]);

/* Bytes of memory that a collective takes, 8 byte aligned; 0: its chunks are more than the PSN's
 * bits can tell apart. */
size_t mcast_memory(const struct mcast_config *config, bool all, uint64_t block_bytes);

/* Begins the next collective, of which all ranks say the same; the result buffer has a block of
 * each rank, in order, the own one filled in, or (Broadcast) one block, filled in at the root.
 * Receives are posted before. memory, cap: as mcast_memory says, until the collective is over.
 * -EBUSY: the one before is not; -EINVAL: no such root, no bytes; -EMSGSIZE: as mcast_memory;
 * -ENOSPC; -ECONNABORTED: the one before has failed, and with it the communicator. */
int mcast_begin_allgather(
	struct mcast *m, uint64_t block_bytes, void *memory, size_t cap, uint64_t now);
int mcast_begin_broadcast(
	struct mcast *m, unsigned root, uint64_t bytes, void *memory, size_t cap, uint64_t now);

/* The next thing to post: false, nothing for now. */
bool mcast_next(struct mcast *m, struct mcast_request *request);

/* A datagram of len bytes from a rank. TAKE: into *offset of the result buffer. */
enum mcast_verdict mcast_datagram(
	struct mcast *m, unsigned from, uint32_t imm, uint64_t len, uint64_t now, uint64_t *offset);
/* Chunks that a device has judged, placed and marked by itself, as many bits as mcast_marks says,
 * in words that it may be setting at the same time: bit n is the collective's n-th chunk, block
 * behind block, and stands for bytes that are there. What was taken otherwise may be among them.
 * again: how many chunks have come once more since the last time. */
void mcast_marked(struct mcast *m, const uint64_t *marks, uint64_t again, uint64_t now);
/* For that: where in the result buffer a block of the collective begins, the immediate data of its
 * first chunk, and who sends it. A block has block_bytes, there are n_blocks. */
uint64_t mcast_part(const struct mcast *m, uint32_t block, uint32_t *imm);
unsigned mcast_root(const struct mcast *m, uint32_t block);
/* A message. 0, or -EPROTO: it makes no sense, nothing has changed. */
int mcast_message(
	struct mcast *m, unsigned from, const struct mcast_message *message, uint64_t now);
/* n multicasts have been sent; a READ has ended. */
void mcast_sent(struct mcast *m, uint32_t n, uint64_t now);
void mcast_read_done(struct mcast *m, uint32_t block, uint32_t first, uint32_t n, uint64_t now);
/* A connection or the multicast queue pair is broken: the collective fails, neighbours are told. */
void mcast_fail(struct mcast *m, int error);

/* To be called when mcast_deadline is over. */
void mcast_tick(struct mcast *m, uint64_t now);
/* UINT64_MAX: no need. */
uint64_t mcast_deadline(const struct mcast *m);

static inline uint32_t mcast_marks(const struct mcast *m)
{
	return m->n_blocks * m->block_chunks;
}

static inline bool mcast_has(const struct mcast *m, uint32_t block, uint32_t chunk)
{
	const uint64_t at = (uint64_t)block * m->block_chunks + chunk;

	return m->bitmap[at / 64] >> at % 64 & 1;
}

#endif
