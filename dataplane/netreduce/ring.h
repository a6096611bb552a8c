/* SPDX-License-Identifier: BSD-3-Clause */
/* State of one NetReduce ring on one switch (docs/inc-protocol.md, section 6): one block without
 * pointers, as an INC group's.
 *
 *	| nr_ring | nr_in[n_in] | u8 rank_in[n_ranks] | nr_msg[2N'] | nr_agg[2N' M] |
 *
 * Packet buffers lie in the arena: aggregator a of input i at
 * pay_off + (a * n_in + i) * buf_stride, a struct nr_buf and behind it mtu bytes of data.
 *
 * Words: an *input* is what an aggregator waits for: the connection of a host attached here to the
 * next rank, or the virtual connection from a switch below. A switch without parent is the root.
 *
 * One worker owns a ring: it alone writes the block once it is active, but for the state, which
 * nr_set_failed changes from any thread. */
#ifndef NR_RING_H
#define NR_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/reduce/reduce.h"
#include "lib/wire/frame.h"
#include "lib/wire/icrc.h"
#include "lib/wire/netreduce.h"

enum {
	NR_MAX_IN = 63,
	NR_MAX_RANKS = 2048,
	NR_MAX_M = 1024,
	NR_MAX_W = 1024,
	NR_MAX_AGGREGATORS = 65536,
	NR_MAX_RINGS = 64,
	NR_NAME_LEN = 32,
	NR_ERR_LEN = 256,
	NR_PARENT_EP = 63, /* endpoint bits of the virtual QPN toward the parent */
	/* Headers of a host's packet up to the payload, and the INA header of a first one. */
	NR_HEAD_LEN = WIRE_MAX_HEADERS + INA_LEN,
};

/* FAILING: the owner writes down why; to others that is FAILED, without a reason yet. */
enum nr_state { NR_FREE, NR_INSTALLED, NR_ACTIVE, NR_FAILING, NR_FAILED };
const char *nr_state_name(unsigned state);

/* X(symbol, name): why a ring has failed. DTYPE to PACKETS: what ranks disagree on about a message;
 * PACKETS is how many it has. */
#define NR_FAILS(X)                    \
	X(MANAGER, "manager")          \
	X(DTYPE, "dtype_mismatch")     \
	X(OP, "op_mismatch")           \
	X(LENGTH, "length_mismatch")   \
	X(PACKETS, "packets_mismatch") \
	X(SWITCH, "switch")

enum nr_fail_reason {
#define X(sym, name) NR_FAIL_##sym,
	NR_FAILS(X)
#undef X
		NR_N_FAILS
};
const char *nr_fail_name(unsigned reason);

/* A disagreement: input `in` says `value` of packet o of message msg, input `other` other_value. */
struct nr_fail {
	uint8_t reason; /* enum nr_fail_reason */
	uint8_t in;     /* NR_PARENT_EP: from above */
	uint8_t other;  /* NR_NOBODY: it is how the ring was made */
	uint32_t msg, o;
	uint32_t value, other_value;
};
enum { NR_NOBODY = 0xff };

/* STRICT_PORT: packets come in by the port that leads to their sender, or not at all. MARK_SUMS:
 * what a host gets can be told from what another one sent. */
enum nr_flag { NR_F_STALL_RNR = 1, NR_F_STRICT_PORT = 2, NR_F_MARK_SUMS = 4 };

/* A connection as it is seen in its packets: the key of the CLT and the CTT. */
struct nr_key {
	struct wire_ip src, dst;
	uint32_t qpn; /* of the destination */
};

#define NR_COUNTERS(X)                                                               \
	X(RX, "rx", "packets on registered connections")                             \
	X(TX, "tx", "packets made: results, sums, answers")                          \
	X(CONSUMED, "consumed", "contributions stored")                              \
	X(COMPLETED, "completed", "buffers that became complete")                    \
	X(RESULTS, "results", "results from the parent")                             \
	X(DUP, "dup", "packets that had been stored before")                         \
	X(DUP_ANSWERED, "dup_answered", "duplicates answered with the result")       \
	X(UP_AGAIN, "up_again", "sums sent to the parent again")                     \
	X(STALE_FORWARDED, "stale_forwarded", "stale packets forwarded as they are") \
	X(FOREIGN, "foreign", "packets of other messages forwarded as they are")     \
	X(STALL_RNR, "stall_rnr", "hosts told to wait for slower ones")              \
	X(FAIL_NAK, "fail_nak", "hosts and switches told that the ring has failed")

enum nr_counter {
#define X(sym, name, text) NR_C_##sym,
	NR_COUNTERS(X)
#undef X
		NR_N_COUNTERS
};
const char *nr_counter_name(enum nr_counter c);

/* ---- what the control plane asks for ---- */

struct nr_in_spec {
	bool host;
	/* host: the connection of `rank` to the next one */
	struct nr_key key;
	uint32_t reply_qpn; /* the sender's own; 0: not known, so it cannot be told to wait */
	bool psn_known;
	uint32_t psn; /* its first one */
	/* not host: a switch below */
	struct wire_ip remote_ip, local_ip;
	uint32_t remote_qpn; /* 0: told at activation */
	/* STRICT_PORT: the ports toward the sender, and toward what it sends to */
	uint16_t port, back_port;
	unsigned n_ranks;
	const uint16_t *ranks; /* host: one */
};

struct nr_spec {
	char name[NR_NAME_LEN];
	uint16_t id; /* in the INA header */
	uint16_t mtu, m, w, n_ranks;
	uint32_t first_msg;
	uint32_t activate_ms; /* taken away again unless activated by then; 0: stays */
	unsigned flags;
	unsigned n_in;
	struct nr_in_spec *in; /* sorted by nr_check */
	bool has_parent;
	struct wire_ip parent_ip, parent_local_ip;
	uint32_t parent_qpn;  /* 0: told at activation */
	uint16_t parent_port; /* STRICT_PORT */
};

/* Checks and completes a spec: sorts the inputs by their lowest rank. 0, or -EINVAL with
 * "field: reason". */
int nr_check(struct nr_spec *spec, char err[NR_ERR_LEN]);

/* ---- the block ---- */

/* An input. */
struct nr_in {
	struct nr_key key; /* of its packets */
	bool host;
	uint16_t min_rank;
	uint32_t local_qpn; /* switch below: the virtual connection's QPN here */
	uint16_t port, back_port;
	/* host: where the connection stands */
	bool known;    /* a first packet was seen, or the first PSN is configured */
	bool mixed;    /* messages that are none of ours have been seen */
	bool foreign;  /* packets from foreign_psn on belong to a message that is none of ours */
	uint32_t msg;  /* latest message */
	uint32_t psn0; /* of its first packet */
	uint32_t top_msg, top_psn0; /* of the newest message so far */
	uint32_t foreign_psn;
	uint32_t reply_qpn;
	bool acked_known;
	uint32_t acked, ack_msn; /* oldest PSN that its receiver has not acknowledged */
	/* switch below: how to send there */
	struct wire_flow flow;
	uint32_t remote_qpn;
	uint64_t told_ns; /* when it was last told of a failure, 0: never */
};

struct nr_msg {
	uint32_t msg;     /* owner of the slot */
	uint16_t results; /* packets whose result is there */
	bool known;       /* dtype and op, from some rank's header */
	uint8_t dtype, op;
	uint8_t by; /* the input that said so */
};

struct nr_agg {
	uint64_t arrived; /* bit per input */
	uint32_t msg;     /* owner */
	uint32_t pay_crc; /* of the sum, or of the result */
	uint16_t len;     /* bytes of data, the same for all inputs */
	uint8_t sum;      /* the inputs' sum is in the first buffer */
	uint8_t result;   /* the result is (at the root they are the same) */
	uint8_t ce;
};

/* One packet, or of a switch below only its data. */
struct nr_buf {
	uint16_t head_len; /* up to the data, the INA header of a first packet included */
	uint8_t l3_off, ip_ver, ttl, tos;
	uint32_t head_crc; /* ICRC up to the data */
	uint8_t head[NR_HEAD_LEN];
	/* data follows */
};

struct nr_ring {
	uint32_t bytes;
	uint16_t slot, id;
	uint8_t state; /* enum nr_state */
	uint8_t gen;
	uint8_t n_in;
	bool has_parent;
	uint16_t flags;
	uint16_t mtu, m, w, n_ranks;
	uint32_t n_msgs; /* 2N': slots for messages, a power of two */
	uint32_t first_msg;
	uint64_t inputs; /* mask of all */
	uint32_t in_off, rank_off, msg_off, agg_off;
	uint64_t pay_off;
	uint32_t buf_stride;
	struct icrc_shift shift_first, shift_full; /* join the CRC of mtu - 16 and mtu bytes */
	/* the parent */
	struct nr_key parent_key; /* of its packets */
	struct wire_flow parent_flow;
	uint32_t parent_qpn, parent_local_qpn;
	uint16_t parent_port;
	uint64_t parent_told_ns;
	uint64_t last_progress_ns;
	struct nr_fail fail; /* of a FAILED one */
	char name[NR_NAME_LEN];
	uint64_t count[NR_N_COUNTERS];
};

static inline struct nr_in *nr_in_at(struct nr_ring *r, unsigned i)
{
	return (struct nr_in *)((uint8_t *)r + r->in_off) + i;
}
/* Input behind which each rank is; 0xff: the parent. */
static inline uint8_t *nr_rank_in(struct nr_ring *r)
{
	return (uint8_t *)r + r->rank_off;
}
static inline struct nr_msg *nr_msg_at(struct nr_ring *r, uint32_t msg)
{
	return (struct nr_msg *)((uint8_t *)r + r->msg_off) + (msg & (r->n_msgs - 1));
}
static inline uint32_t nr_index(const struct nr_ring *r, uint32_t msg, uint32_t o)
{
	return (msg & (r->n_msgs - 1)) * r->m + o;
}
static inline struct nr_agg *nr_agg_at(struct nr_ring *r, uint32_t index)
{
	return (struct nr_agg *)((uint8_t *)r + r->agg_off) + index;
}

/* Bytes of the block, and of arena memory, for a checked spec. */
size_t nr_ring_bytes(const struct nr_spec *spec);
size_t nr_payload_bytes(const struct nr_spec *spec);

/* Fills a zeroed block. State becomes INSTALLED. slot and gen make the virtual QPNs (1.2). */
void nr_init(struct nr_ring *r, const struct nr_spec *spec, unsigned slot, unsigned gen,
	uint64_t pay_off);

/* INSTALLED to ACTIVE: -EINVAL naming the peer whose QPN is not known yet. */
int nr_activate(struct nr_ring *r, char err[NR_ERR_LEN]);

/* ACTIVE to FAILED, from any thread; false: it was not ACTIVE. The memory stays the ring's. */
bool nr_set_failed(struct nr_ring *r);

/* What has made a FAILED ring fail, for people: "message 3, packet 0: dtype int32 of rank 1, fp32
 * of rank 0". */
void nr_fail_text(struct nr_ring *r, char *buf, size_t cap);
/* A value of it, by itself. */
void nr_fail_value(const struct nr_fail *f, uint32_t value, char *buf, size_t cap);
/* The ranks behind the inputs of a mask (bit NR_PARENT_EP: all others), as "0,3,7"; cut off at cap.
 */
void nr_ranks_of(struct nr_ring *r, uint64_t inputs, char *buf, size_t cap);

/* The oldest packet that some inputs have sent and others have not, or (a leaf) whose result is
 * missing: its message and place, and the inputs waited for; bit 63: the parent. 0: none waits. A
 * reader on another thread may see one in transition. */
uint64_t nr_missing(struct nr_ring *r, uint32_t *msg, uint32_t *o);

#endif
