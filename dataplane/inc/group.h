/* SPDX-License-Identifier: BSD-3-Clause */
/* State of one INC group on one switch: a single block without pointers
 * (docs/inc-protocol.md, 1.3), so that it can be copied, hashed and compared. The block holds the
 * header, the endpoints, a ring of operation descriptors and one ring of slot records; payload lies
 * in the arena at pay_off.
 *
 *	| inc_group | inc_ep[n_ep] | inc_desc[8] | u8 rank_ep[n_ranks] | inc_slot[N] |
 *
 * Mode-III has two rings, its pipes: inc_slot[N] for what is aggregated, and once more for what is
 * replicated; payloads of the second lie at pay_off + bcast_off.
 *
 * One worker owns a group: it alone writes the block, except state (see inc_group_set_state). */
#ifndef INC_GROUP_H
#define INC_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/reduce/reduce.h"
#include "lib/wire/frame.h"
#include "lib/wire/icrc.h"
#include "lib/wire/psn.h"
#include "lib/wire/template.h"

enum {
	INC_MAX_EP = 64,
	INC_MAX_RANKS = 2048,
	INC_MAX_SLOTS = 65536, /* N: a power of two, so that idx() is continuous over the wrap */
	INC_MAX_OP_PACKETS = (1 << 22) - 1,
	INC_GROUP_SLOTS = 4096, /* slot 0 is unused: QPNs below 0x1000 are the switch's own */
	INC_N_DESC = 8,
	INC_CTRL_LEN = 32,
	INC_NAME_LEN = 32,
	INC_MIN_LEASE_MS = 10,
	INC_MAX_LEASE_MS = 3600000,
	INC_RTO_US = 1000,
	INC_MIN_RTO_US = 10,
	INC_MAX_RTO_US = 64000,
	INC_BURST = 64,
};

#define INC_NO_ARENA UINT64_MAX /* pay_off of a group that has no aggregation memory now */

/* Switch queue pair numbers (1.2): group slot 23..12, endpoint 11..6, generation 5..0. */
enum { INC_GENERATIONS = 64 };
static inline uint32_t inc_qpn(unsigned slot, unsigned ep, unsigned gen)
{
	return (slot << 12 | ep << 6 | gen % INC_GENERATIONS) & 0xffffff;
}
static inline unsigned inc_qpn_slot(uint32_t qpn)
{
	return qpn >> 12;
}
static inline unsigned inc_qpn_ep(uint32_t qpn)
{
	return qpn >> 6 & 0x3f;
}
static inline unsigned inc_qpn_gen(uint32_t qpn)
{
	return qpn % INC_GENERATIONS;
}

enum inc_mode { INC_MODE_1 = 1, INC_MODE_2 = 2, INC_MODE_3 = 3, INC_MODE_NETREDUCE = 4 };
enum inc_kind { INC_SINGLE = 0, INC_MIXED = 1 };
enum inc_prim { INC_AR = 0, INC_RED = 1, INC_BC = 2 };
enum inc_state { INC_FREE, INC_INSTALLED, INC_ACTIVE, INC_DRAINING, INC_FAILED };

/* X(symbol, name): why a group has failed. Mode-I: MODE1_QP is a completion in error, whose enum
 * ibv_wc_status is in fail_status; MODE1_SEQUENCE a message that is not the one that follows,
 * control or data, or its length; CTRL_INVALID is dropped in the other modes, and comes again. */
#define INC_FAILS(X)                          \
	X(NONE, "none")                       \
	X(CTRL_MISMATCH, "ctrl_mismatch")     \
	X(FATAL_NAK, "fatal_nak")             \
	X(MANAGER, "manager")                 \
	X(MODE1_QP, "mode1_qp")               \
	X(MODE1_SEQUENCE, "mode1_sequence")   \
	X(CTRL_INVALID, "ctrl_invalid")       \
	X(RETRY_EXHAUSTED, "retry_exhausted") \
	X(LEASE_EXPIRED, "lease_expired")

enum inc_fail {
#define X(sym, name) INC_FAIL_##sym,
	INC_FAILS(X)
#undef X
};

const char *inc_state_name(unsigned state);
const char *inc_fail_name(unsigned reason);
const char *inc_fail_status_name(unsigned status);

enum inc_group_flags {
	INC_F_REPRODUCIBLE = 1 << 0, /* keep each endpoint's payload, add in endpoint order */
	INC_F_DUP_ALL = 1 << 1,      /* answer a duplicate to all children, not only to the asker */
	INC_F_LATE_FLUSH = 1 << 2,   /* 3.4 */
	INC_F_STALL_RNR = 1 << 3,    /* 3.6 */
	INC_F_STRICT_PORT = 1 << 4,
	INC_F_HALF = 1 << 5,  /* memory for fp16 and bf16, which are summed in fp32 */
	INC_F_WRITE = 1 << 6, /* data by RDMA WRITE with Immediate (2.4) */
	INC_F_SR = 1 << 7,    /* selective acknowledgement: Mode-III (4.10), Mode-II (4.11) */
};

/* What a group is made from; the JSON of group.create becomes this. */
struct inc_ep_spec {
	struct wire_ip remote_ip, local_ip;
	uint32_t remote_qpn; /* 0: not known yet, given by inc_group_activate */
	uint16_t port;       /* DPDK port id */
	uint16_t vlan;
	uint8_t dmac[6], smac[6];
	uint8_t dscp;
	bool host;   /* a host is behind it, else a switch */
	bool parent; /* towards the tree root; at most one, the last endpoint */
	/* INC_F_WRITE, a host that gets data: where that goes, message after message, a whole
	 * number of M x mtu bytes, as many messages as it may leave untaken. */
	uint64_t mr_addr;
	uint32_t mr_len, rkey;
	uint16_t n_ranks;
	uint16_t ranks[INC_MAX_RANKS]; /* ranks behind this endpoint (the parent: all others) */
};

struct inc_group_spec {
	char name[INC_NAME_LEN];
	uint8_t mode;       /* enum inc_mode */
	uint8_t kind;       /* enum inc_kind */
	uint8_t prim;       /* SINGLE: its primitive */
	uint16_t root;      /* SINGLE RED/BC: its root rank */
	uint16_t mtu;       /* U: 256, 512, 1024, 2048 or 4096 */
	uint16_t m, w;      /* packets per message, messages per window; Mode-II: M*W >= 2 */
	uint32_t slots;     /* N; 0: smallest power of two >= 2 M W */
	uint32_t start_psn; /* 24 bits */
	uint32_t rto_us;    /* Mode-III: least retransmission timeout; 0: INC_RTO_US */
	uint16_t flags;     /* enum inc_group_flags */
	bool unbound;       /* without aggregation memory at first */
	/* Not "": no memory of its own, but a lease's, while its tenant ("": the group's name)
	 * holds that, and for lease_ms without progress at most (0: the default). */
	char lease[INC_NAME_LEN], tenant[INC_NAME_LEN];
	uint32_t lease_ms;
	uint32_t activate_ms; /* taken away again unless activated by then; 0: stays */
	uint16_t n_ranks;
	uint8_t n_ep;
	struct inc_ep_spec *ep; /* n_ep of them, the caller's */
};

enum { INC_ERR_LEN = 192 };

/* 0, or -EINVAL / -EOPNOTSUPP (mode, kind or primitive not built) / -E2BIG with "field: reason,
 * limit" in err. Fills in the default of slots. Ranks must be 0..n_ranks-1, each behind exactly one
 * child endpoint or the parent. */
int inc_group_check(struct inc_group_spec *spec, char err[INC_ERR_LEN]);

/* What a PSN's packets do at this switch (1.4): they are aggregated from the endpoints in, or come
 * in on the only one of them, and go to outs. */
struct inc_route {
	uint64_t in, outs;
	uint8_t prim;
	uint8_t via; /* RED, BC: the endpoint through which the root rank is reached; AR: 0xff */
	uint8_t pad[6];
};

enum inc_role {
	INC_ROLE_NONE,
	INC_ROLE_UP,  /* aggregated */
	INC_ROLE_DOWN /* replicated */
};

struct inc_desc { /* one collective operation in flight */
	uint8_t valid, prim, op, dtype;
	uint8_t op_seq;
	uint8_t elem; /* element size */
	bool wide;    /* the sum takes more bytes than the element: fp16, bf16 */
	bool write;   /* data by RDMA WRITE */
	uint16_t m;
	uint32_t ctrl_psn, last;
	uint32_t n; /* data packets */
	uint32_t imm;
	struct inc_route route; /* of the data */
	uint64_t ctrl_seen;     /* endpoints whose control was accepted */
	uint64_t bytes;
	uint64_t first_msg; /* messages of data in all operations before */
	uint32_t first_op;  /* operations before */
	uint8_t payload[INC_CTRL_LEN];
	uint32_t pay_crc; /* of payload */
};

struct inc_slot {
	uint64_t arrived; /* bit per endpoint; one store clears the slot */
	uint32_t tag;     /* owner PSN */
	uint32_t pay_crc; /* of the result, once complete */
	uint16_t len;     /* payload bytes */
	uint8_t desc;     /* index of the descriptor */
	uint8_t ce;       /* a contribution was marked CE */
	uint8_t complete; /* the result stands in the arena */
	uint8_t reserved[3];
	uint64_t sacked; /* SR: bit per endpoint that has said it has it */
};

/* Mode-III: the gap that is open now has drawn its NAK; what is acknowledged has not moved since a
 * NAK named it; the gap's NAK waits for that (docs/inc-protocol.md, 4.2). */
enum inc_nak_sent { INC_NAK_SENT = 1, INC_NAK_SAME = 2, INC_NAK_OWED = 4 };

struct inc_ep {
	struct wire_flow flow; /* toward the peer: out addresses; flow.dst is the remote IP */
	uint32_t remote_qpn, local_qpn;
	uint16_t port;
	uint16_t min_rank;
	uint8_t host;
	uint8_t pad[3];
	uint64_t mr_addr; /* RDMA WRITE: the host's memory for results */
	uint32_t mr_len, rkey;
	/* PSNs < ack_next acknowledged through this endpoint. Mode-I: messages < ack_next from it
	 * have been dealt with. */
	uint32_t ack_next, ack_msn;
	/* PSNs < refl_next reflected (or acknowledged) to this host. Mode-I: messages < refl_next
	 * are in its send queue. */
	uint32_t refl_next;
	/* Mode-II: told to wait before it sends rnr_psn again; since then it has not sent it, nor
	 * was it acknowledged. */
	uint32_t rnr_psn;
	bool rnr_told;
	/* Mode-III, the connection to the peer. Receiving: PSNs < rx_epsn received in order, those
	 * < rx_acked acknowledged, whole messages among these. */
	uint32_t rx_epsn, rx_acked, rx_msn;
	/* Sending: PSNs < tx_una acknowledged, the next to send, the highest sent + 1. The first
	 * and the last in Mode-II, too: what an endpoint may refuse. */
	uint32_t tx_una, tx_next, tx_high;
	uint32_t resent_psn;
	/* SR. Behind the last PSN that has come, in any order; behind the last one that came to
	 * the peer when it was sent once. Packets sent, and the last of them that has come. */
	uint32_t rx_high, sack_end;
	uint64_t n_sent, newest;
	/* Its round trip: of the packet rtt_psn, sent for the first time at rtt_from (0: none is
	 * timed), and as measured so far (0: not yet). */
	uint32_t rtt_psn, rtt_ns;
	uint64_t rtt_from;
	uint8_t nak_sent; /* enum inc_nak_sent */
	uint8_t rto_shift, retries;
	uint8_t rnr_wait;             /* timer_ns ends an RNR wait: until then nothing is sent */
	uint64_t timer_ns;            /* 0: stopped */
	uint64_t resent_ns;           /* when a NAK made it send resent_psn again */
	uint64_t cnp_ns, fail_nak_ns; /* last time, for rate limits */
	struct wire_template full;    /* headers of data packets of a whole MTU, ECT(0) */
};

/* X(symbol, name, meaning): what a group has done. */
#define INC_COUNTERS(X)                                                               \
	X(RX, "rx_packets", "packets accepted for the group")                         \
	X(CONTROLS, "operations", "operations begun")                                 \
	X(COMPLETED, "slots_completed", "PSNs whose aggregation completed")           \
	X(CONSUMED, "contributions", "packets aggregated")                            \
	X(DUP, "duplicates", "duplicates received")                                   \
	X(DUP_ANSWERED, "duplicates_answered", "duplicates answered with the result") \
	X(LATE_FLUSHED, "late_flushed", "results sent again behind a late one")       \
	X(STALE, "stale", "packets older than their slot's owner")                    \
	X(REFLECTED, "reflected", "acknowledgements reflected")                       \
	X(STALL_RNR, "stall_rnr", "RNR NAKs to hosts that wait for others")           \
	X(ACKS, "acks", "acknowledgements of its own making")                         \
	X(NAKS, "naks", "NAKs of its own making, one per gap")                        \
	X(AHEAD, "ahead", "packets beyond the end of a pipe")                         \
	X(RESENT, "resent", "packets sent again")                                     \
	X(TIMEOUTS, "timeouts", "retransmission timers that expired")                 \
	X(CUT, "turns_cut", "turns that left packets for the next one")               \
	X(TX, "tx_packets", "packets emitted")

enum inc_counter {
#define X(sym, name, text) INC_C_##sym,
	INC_COUNTERS(X)
#undef X
		INC_N_COUNTERS
};
const char *inc_counter_name(enum inc_counter c);

struct inc_group {
	uint32_t bytes; /* of the whole block */
	uint16_t slot;
	uint8_t gen, mode, kind, prim, n_ep, parent_ep; /* parent_ep 0xff at the tree root */
	uint8_t state, fail_reason, fail_ep, fail_status, log2n;
	uint16_t flags, mtu, m, w, n_ranks, root;
	uint32_t start_psn;
	uint32_t next_ctrl; /* PSN at which the next operation's control is expected */
	uint8_t next_seq;
	uint8_t pad[2];
	uint64_t child_mask, host_mask;
	uint64_t next_msg;        /* messages of data in all operations so far */
	uint32_t next_op, pad6;   /* operations so far */
	uint64_t in_front;        /* Mode-I: endpoints that have messages waiting */
	struct inc_route control; /* of the control messages; in a SINGLE group of the data, too */
	/* Broadcast in Mode-II: what the sender was told all receivers have, and the last NAK. */
	uint32_t node_ack, nak_fwd_psn;
	uint64_t nak_fwd_ns;
	uint32_t aged_psn; /* when slots were last looked through for old owners */
	uint32_t bc_next;  /* PSNs < bc_next of the newest broadcast have passed */
	uint32_t red_ack;  /* Mode-II: PSNs < red_ack acknowledged by the root of a reduce */
	/* Mode-II: PSNs < sum_next that are aggregated here are complete. Results in [flush_next,
	 * flush_end) are to be sent again (3.4). */
	uint32_t sum_next, flush_next, flush_end;
	/* Mode-II: when receivers of a reduce or broadcast last got or acknowledged anything new.
	 */
	uint64_t moved_ns;
	/* Mode-III: PSNs < psn_start have left the pipe, < loop_next gone from one to the other. */
	uint32_t psn_start[2], loop_next, pad3;
	uint64_t timer_ns; /* no endpoint's timer ends before; UINT64_MAX: none runs */
	uint64_t owed;     /* endpoints that were not acknowledged all that they are to be */
	/* What may still be sent again in the turn of turn_ns, whether that was not enough, and
	 * what it begins with at least. Mode-III: endpoints that have more to get than that, and
	 * whose turn it is first. */
	uint64_t turn_ns, unsent;
	uint32_t allowance;
	uint16_t burst;
	bool cut;
	uint8_t next_out;
	uint32_t rto_min_ns;
	bool rto_given; /* else SR takes less */
	uint8_t pad5[3];
	/* From the start of the block. order_off: inc_order(), SR groups only. */
	uint32_t ep_off, desc_off, rank_off, slot_off[2], order_off;
	uint64_t bcast_off;          /* of the second pipe's payloads, from pay_off */
	uint64_t pay_off;            /* in the arena, or INC_NO_ARENA */
	uint64_t pay_bytes;          /* taken there */
	uint32_t pay_stride;         /* bytes from one payload to the next */
	struct icrc_shift mtu_shift; /* joins the CRC of a payload of mtu bytes */
	uint64_t last_progress_ns;
	char name[INC_NAME_LEN];
	uint64_t count[INC_N_COUNTERS];
};

static inline struct inc_ep *inc_ep_at(struct inc_group *g, unsigned i)
{
	return (struct inc_ep *)((uint8_t *)g + g->ep_off) + i;
}
static inline struct inc_desc *inc_desc_at(struct inc_group *g, unsigned i)
{
	return (struct inc_desc *)((uint8_t *)g + g->desc_off) + i;
}
static inline uint8_t *inc_rank_ep(struct inc_group *g)
{
	return (uint8_t *)g + g->rank_off;
}
/* The opcodes of its packets: ordinary ones, or those of selective acknowledgement. */
static inline uint8_t inc_transport(const struct inc_group *g)
{
	return g->flags & INC_F_SR ? ROCE_SEL : ROCE_RC;
}
static inline uint32_t inc_idx(const struct inc_group *g, uint32_t psn)
{
	return psn & ((1u << g->log2n) - 1);
}

/* Mode-III's pipes; Mode-II has the first alone. */
enum inc_pipe { INC_AGG, INC_BCAST };

static inline struct inc_slot *inc_pipe_slot(struct inc_group *g, enum inc_pipe pipe, uint32_t psn)
{
	return (struct inc_slot *)((uint8_t *)g + g->slot_off[pipe]) + inc_idx(g, psn);
}
/* SR: when a PSN was last sent to an endpoint: 2 x its place in the order of sending, odd if it was
 * sent more than once. */
static inline uint32_t inc_n_order(unsigned log2n)
{
	return 1u << log2n < (unsigned)ROCE_SACK_BITS ? 1u << log2n : (unsigned)ROCE_SACK_BITS;
}
static inline uint64_t *inc_order(struct inc_group *g, unsigned ep, uint32_t psn)
{
	uint32_t n = inc_n_order(g->log2n);

	return (uint64_t *)((uint8_t *)g + g->order_off) + ep * n + (psn & (n - 1));
}
static inline struct inc_slot *inc_slot_at(struct inc_group *g, uint32_t psn)
{
	return inc_pipe_slot(g, INC_AGG, psn);
}

/* The route of a primitive with this root; AR has none (any value). */
struct inc_route inc_route_of(const struct inc_group *g, enum inc_prim prim, unsigned root);
/* What a packet from endpoint ep is on this route. */
enum inc_role inc_role_of(const struct inc_group *g, const struct inc_route *route, unsigned ep);

/* The route of one PSN of an operation: its control's or its data's. */
static inline const struct inc_route *inc_route_at(
	const struct inc_group *g, const struct inc_desc *d, uint32_t psn)
{
	return psn == d->ctrl_psn ? &g->control : &d->route;
}

/* The endpoints that a slot with contributions is filled by. */
uint64_t inc_slot_fan_in(struct inc_group *g, const struct inc_slot *slot);

/* Bytes of the block, and of arena memory, for a checked spec. */
size_t inc_group_bytes(const struct inc_group_spec *spec);
size_t inc_group_payload_bytes(const struct inc_group_spec *spec);

/* Fills a zeroed block of inc_group_bytes(). State becomes INSTALLED. pay_off: the arena range of
 * inc_group_payload_bytes(), or INC_NO_ARENA. */
void inc_group_init(struct inc_group *g, const struct inc_group_spec *spec, unsigned slot,
	unsigned gen, uint64_t pay_off);

/* The peer of an endpoint has another MAC address from now on. Also while a worker works with the
 * group: a frame that is being built may have some bytes of each, and is lost like any other. */
void inc_ep_set_dmac(struct inc_group *g, unsigned ep, const uint8_t mac[6]);

/* Gives the group other aggregation memory, or none (INC_NO_ARENA): EPIC's indirection layer,
 * section 6. Every operation begun is forgotten: a packet of one is stale from now on. Only while
 * no worker can see the group as ACTIVE, and all ranks have finished. */
void inc_group_rebind(struct inc_group *g, uint64_t pay_off);

/* The queue pairs of all hosts begin anew at the next operation's PSN (3.7), after all of them have
 * met: whatever was before is acknowledged, and no message has been counted. The memory stays.
 * Otherwise as inc_group_rebind, but not for Mode-I, whose queue pairs are here. */
void inc_group_resync(struct inc_group *g);

/* Is it as that leaves it, or as it was made? Only while no worker sees it as ACTIVE, or no host
 * sends anything. */
bool inc_group_is_anew(struct inc_group *g);

/* Can it be told here that some rank has not finished? Its operation's PSN and the endpoints that
 * are waited for. Only a switch that has hosts can tell for certain. A reader on another thread may
 * see a group that works in transition, and be told either; only of a group that no worker sees as
 * ACTIVE (stopped, and a quiescent state passed) is "no" exact. Nothing rests on it but when a
 * caller that says that all ranks have finished is believed: it takes no memory that is in use, for
 * that is let go only after the group was stopped and the worker has passed a quiescent state. */
bool inc_group_busy(struct inc_group *g, uint32_t *psn, uint64_t *eps);

/* Moves INSTALLED to ACTIVE; -EINVAL naming the endpoint if one has no remote QPN yet. */
int inc_group_activate(struct inc_group *g, char err[INC_ERR_LEN]);

/* Compare-and-swap on the state, from any thread; false if it was not `from` any more. */
bool inc_group_set_state(struct inc_group *g, enum inc_state from, enum inc_state to);

/* ACTIVE -> FAILED with a reason and the endpoint it came from (0xff: none). */
void inc_group_fail(struct inc_group *g, enum inc_fail reason, unsigned ep);

/* The oldest PSN that some endpoint has filled, or should have acknowledged, and the endpoints it
 * waits for (bits). 0 if none waits. A reader on another thread may see a slot in transition. */
uint64_t inc_group_missing(struct inc_group *g, uint32_t *psn);

/* The ranks behind the endpoints of a mask, as "0,3,7" for messages; cut off at cap. */
void inc_group_ranks_of(struct inc_group *g, uint64_t eps, char *buf, size_t cap);

#endif
