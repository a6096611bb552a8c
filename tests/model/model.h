/* SPDX-License-Identifier: BSD-3-Clause */
/* The system that is explored: switches that are the real IncEngine, hosts that are the smallest
 * faithful go-back-N requester and responder with CommLib's rules, links that are FIFOs of real
 * frames. docs/model-checking.md describes it. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/inc/engine.h"
#include "dataplane/netreduce/engine.h"
#include "tests/model/intern.h"

enum {
	MC_MAX_RANKS = 8,
	MC_MAX_SWITCHES = 8,
	MC_MAX_NODES = MC_MAX_RANKS + MC_MAX_SWITCHES,
	MC_MAX_PORTS = 9,
	MC_MAX_LINKS = 2 * MC_MAX_NODES,
	MC_MAX_OPS = 12,
	MC_MAX_PSN = 200,
	MC_SR_PSN = 64, /* of selective hosts */
	MC_MAX_EMIT = 64,
	MC_MAX_WORDS = MC_MAX_NODES + MC_MAX_LINKS + 1,
	MC_MTU = 256,  /* U */
	MC_SHORT = 16, /* payload bytes of an operation's last packet */
	MC_FRAME = 512,
	MC_WRITE_VA = 0x10000, /* where a rank has its messages, with RDMA WRITE */
	MC_NONE = 0xff,
	MC_MAX_PERMS = 47,
	MC_NETREDUCE = 4,  /* beside INC_MODE_1 to INC_MODE_3 */
	MC_FIRST_MSG = -1, /* of a ring: the numbers of messages wrap as well */
};

/* What keeps the packets of a group that has ended from the one that is made in its place. */
enum mc_again {
	MC_ONCE,    /* there is one group */
	MC_NUMBERS, /* other queue pairs, the same PSNs */
	MC_BEHIND,  /* the same queue pairs; old PSNs are behind the new ones, or ahead of them */
	MC_AHEAD,
};

struct mc_op {
	uint8_t prim, root;
	uint8_t n; /* data packets */
};

/* What is to be explored. Filled by config.c. */
struct mc_config {
	uint8_t mode, kind;
	uint8_t n_leaf;                 /* 0: a star; else leaf switches under a root */
	uint8_t hosts[MC_MAX_SWITCHES]; /* of each leaf; of the star in [0] */
	uint8_t n_ranks, n_ops;
	struct mc_op op[MC_MAX_OPS];
	uint16_t m, w;       /* packets per message, messages per window */
	uint16_t host_w;     /* the hosts' own, if smaller */
	uint32_t slots;      /* 0: the default of the engine */
	bool any_slots;      /* past the engine's check: rings that are too small */
	uint8_t in_flight;   /* packets that a host sends unacknowledged */
	bool window_results; /* the hosts' windows follow results alone */
	bool learn;          /* a ring's first PSNs are not configured */
	uint32_t start_psn;
	uint16_t flags;
	uint8_t loss, reorder, dup, early, rnr; /* how often each may happen */
	uint8_t mismatch_rank, mismatch_op;     /* this rank's control differs; MC_NONE: none */
	bool fail;                              /* somebody fails one switch's group, at any time */
	bool drain;       /* the only switch's group is destroyed, at any time, by and by */
	uint8_t again;    /* enum mc_again: the group ends anywhere, and is made once more */
	bool fast;        /* rate limits hold between timeouts, else they never do */
	bool prompt;      /* timers are only for what was lost, and nothing is */
	bool least_burst; /* a switch's turn ends as soon as it can */
	bool noticed;     /* but for packets whose loss the next one shows */
	bool every_nak;   /* hosts send again for each NAK, a copy of the last one too */
	bool resync;      /* hosts leave no PSNs out: they and their switches begin anew (3.7) */
	bool coalesce;    /* what a host answers waits, and becomes one with what comes then */
	bool selective;   /* hosts send again what is missing, and nothing behind it */
	uint32_t max_states;
	uint32_t max_trace; /* a longer counterexample is an error of its own; 0: any */
	bool symmetry;      /* equal ranks taken for equal */
	bool por;           /* partial-order reduction */
	bool quiet, expect_violation;
	const char *json, *pcap;
	double paper_states; /* of EPIC, 0: none */
	double spec_states;  /* that an explorer of the specification had; 0: unknown */
};

/* Do groups end before all is done? */
static inline bool mc_may_end(const struct mc_config *c)
{
	return c->drain || c->again != MC_ONCE;
}

/* The operation before which all begin anew, of those behind op `from`; n_ops: none. */
unsigned mc_anew_next(const struct mc_config *c, unsigned from);

/* Do groups fail? */
static inline bool mc_may_fail(const struct mc_config *c)
{
	return c->fail || c->mismatch_rank != MC_NONE;
}

/* Fills in a configuration from command-line words; returns 0 or -EINVAL after saying why. */
int mc_config_parse(struct mc_config *c, int argc, char **argv);
void mc_config_defaults(struct mc_config *c);
void mc_config_usage(void);

/* One PSN of the whole run, counted from start_psn. */
struct mc_psn {
	uint8_t op, msg;
	bool ctrl, first, last; /* of its message */
	bool blank;             /* carries zeros, to make a message full */
	uint8_t opcode;
	uint16_t len;
	uint8_t prim, root;         /* route */
	uint8_t senders, receivers; /* masks of ranks */
};

struct mc_program {
	unsigned n, n_msg;
	struct mc_psn psn[MC_MAX_PSN + 1];
	uint8_t msg_last[MC_MAX_PSN]; /* last PSN of a message */
	uint8_t ctrl[MC_MAX_OPS + 1]; /* index of an operation's control; [n_ops] = n */
};

void mc_program_make(struct mc_program *p, const struct mc_config *c);
/* The payload that rank r sends, or the result that it must get, at index i of the first group, or
 * of the one made in its place. Returns its length. */
unsigned mc_payload_sent(const struct mc_config *c, const struct mc_program *p, unsigned r,
	bool again, unsigned i, uint8_t *out);
unsigned mc_payload_due(const struct mc_config *c, const struct mc_program *p, unsigned r,
	bool again, unsigned i, uint8_t *out);
/* Does PSN i carry an immediate, and which? */
bool mc_has_imm(const struct mc_config *c, const struct mc_psn *q);
uint32_t mc_imm(const struct mc_config *c, const struct mc_program *p, unsigned i);
/* RDMA WRITE: where a rank wants the message of PSN i (in a ring its neighbour's), by which key,
 * and its length. */
uint64_t mc_write_va(const struct mc_config *c, const struct mc_program *p, unsigned i);
uint32_t mc_write_rkey(unsigned r);
uint32_t mc_write_len(const struct mc_config *c, const struct mc_program *p, unsigned i);
uint32_t mc_write_room(const struct mc_config *c);

struct mc_host_state {
	uint8_t una, next, high; /* requester: oldest unacknowledged, next, newest sent + 1 */
	uint8_t epsn, nak;       /* responder: last in order + 1; NAK sent for this gap */
	uint8_t rnr, err;        /* waits for its RNR timer; has been told that the group failed */
	uint8_t one;             /* selective: only the next one is sent again */
	uint8_t asked;           /* una was asked for by a NAK: another is a copy of it */
	uint8_t gone, again;     /* has left the first group; is in the second */
	uint8_t from;            /* --resync: the first operation since it began anew */
	/* --coalesce: what it is to answer (enum mc_answer), the newest packet that an ACK is for,
	 * the newest that was dropped for the gap that a NAK is for. */
	uint8_t answer, acks, ahead;
	/* SR (host_sr.c); masks are of PSNs. Of those in flight: behind the last one that has
	 * arrived and was sent once; which have, which were sent more than once; who left when. */
	uint8_t end, order[MC_SR_PSN];
	uint64_t sacked, resent;
	/* Behind epsn: what has come, what of it asked for an ACK; packets since a map was sent. */
	uint64_t kept, asking;
	uint8_t unsaid;
};

enum mc_event {
	MC_EV_PACKET,
	MC_EV_SEND,
	MC_EV_TIMEOUT,
	MC_EV_AGE,
	MC_EV_FAIL,
	MC_EV_TICK,
	MC_EV_HOLD,
	MC_EV_DRAIN,
	MC_EV_END,
	MC_EV_AGAIN,
	MC_EV_ANEW,
	MC_EV_ANSWER,
};

enum mc_host_flags {
	MC_H_SEND = 1,  /* has a packet to send */
	MC_H_TIMER = 2, /* its retransmission timer runs */
	MC_H_RNR = 4,   /* its RNR timer runs */
	MC_H_DONE = 8,  /* all sends acknowledged, all results delivered */
	MC_H_ERR = 16,
	MC_H_GONE = 32,
	MC_H_AGAIN = 64,
	MC_H_ANSWER = 128, /* has an answer to send */
};

/* What an event did to a node: as long as its emissions need. */
struct mc_result {
	uint32_t state;
	const char *violation; /* or NULL */
	const char *verdict;   /* drop reason, for traces */
	bool acked;            /* the host's una moved: check what that claims */
	uint8_t n;
	struct mc_out {
		uint32_t frame;
		uint8_t port;
	} out[MC_MAX_EMIT];
};

struct mc_link {
	uint8_t from, to; /* nodes */
	uint8_t from_port, to_port;
};

/* Ranks in other places: where nodes, links and ports go, and what values become (+1; 0: not
 * known). */
struct mc_perm {
	uint8_t node[MC_MAX_NODES], link[MC_MAX_LINKS], port[MC_MAX_NODES][MC_MAX_PORTS];
	uint32_t *state[MC_MAX_NODES], *frame, *queue;
};

struct mc_sys;
struct mc_switch;

/* An engine, at work on a switch's scratch image. */
struct mc_engine {
	/* Leaves out what a step does not depend on; age: much time has passed. */
	void (*mask)(const struct mc_sys *s, struct mc_switch *sw, bool age);
	void (*receive)(struct mc_sys *s, unsigned node, unsigned port, uint32_t frame,
		struct mc_result *r);
	void (*tick)(struct mc_sys *s, unsigned node, unsigned port, struct mc_result *r);
	void (*fail)(struct mc_sys *s, unsigned node, struct mc_result *r);
	void (*drain)(struct mc_sys *s, unsigned node); /* NULL: is not explored */
	void (*anew)(struct mc_sys *s, unsigned node);  /* likewise */
	void (*check)(struct mc_sys *s, struct mc_switch *sw, struct mc_result *r); /* each step */
	unsigned (*flags)(struct mc_switch *sw);
	/* Mode-III: does the switch see that psn is missing when next comes, and keep that? */
	bool (*notices)(struct mc_switch *sw, unsigned port, uint32_t psn, uint32_t next);
};

struct mode1;

struct mc_switch {
	const struct mc_engine *engine;
	/* In the image: the state being worked on. */
	struct inc_group *g;
	struct nr_ring *ring;
	struct mode1 *mode1;
	struct inc_arena arena;
	struct inc_table table;
	struct nr_key key[NR_MAX_ROWS]; /* of a ring */
	struct nr_look look[NR_MAX_ROWS];
	unsigned n_rows;
	uint8_t *base, *image; /* initial, scratch: block, then arena */
	uint8_t *again;        /* initial, of the second group; NULL: there is none */
	size_t block, len;
};

struct mc_sys {
	struct mc_config cfg;
	struct mc_program prog;
	unsigned n_sw, n_ranks, n_nodes, n_links, words;
	struct mc_link link[MC_MAX_LINKS];
	uint8_t out_link[MC_MAX_NODES][MC_MAX_PORTS]; /* link that leaves a node's port */
	struct mc_switch sw[MC_MAX_SWITCHES];
	/* Of what a host sends, and of what it answers: the other way only in a ring. */
	struct wire_flow flow[MC_MAX_RANKS], reply[MC_MAX_RANKS];
	uint32_t dqpn[MC_MAX_RANKS], reply_qpn[MC_MAX_RANKS];
	/* With --again: of each group a host's queue pair, the switch's for it, and the first PSN.
	 */
	uint32_t own_qpn[2][MC_MAX_RANKS], peer_qpn[2][MC_MAX_RANKS], first_psn[2];
	struct intern chunks, nodes[MC_MAX_NODES], queues, frames;
	struct wire_pkt *pkt; /* of each frame, parsed */
	uint32_t parsed;
	struct memo memo[MC_MAX_NODES];
	uint8_t *results; /* struct mc_result, cut off behind its last emission */
	uint64_t results_used;
	uint16_t *host_flags[MC_MAX_NODES]; /* by state, +1; 0: not known */
	uint32_t *switch_flags[MC_MAX_NODES];
	uint64_t engine_calls;
	struct mc_perm perm[MC_MAX_PERMS + 1];
	unsigned n_perm;
};

/* ---- network.c: nodes and links ---- */
void mc_sys_open(struct mc_sys *s, const struct mc_config *c);
uint32_t mc_frame_id(struct mc_sys *s, const uint8_t *frame, size_t len);
const struct wire_pkt *mc_frame_pkt(struct mc_sys *s, uint32_t id, const uint8_t **frame);
/* Port of a switch toward node. */
unsigned mc_port_to(const struct mc_sys *s, unsigned sw, unsigned node);
struct wire_ip mc_address(unsigned node);
static inline bool mc_is_host(const struct mc_sys *s, unsigned node)
{
	return node >= s->n_sw;
}
static inline unsigned mc_index(const struct mc_sys *s, uint32_t psn)
{
	return (psn - s->cfg.start_psn) & PSN_MASK;
}

static inline bool mc_is_ring(const struct mc_sys *s)
{
	return s->cfg.mode == MC_NETREDUCE;
}

/* ---- switch.c, and the engines: switch_inc.c, switch_ring.c, switch_mode1.c ---- */
/* Memory for a block and an arena, zeroed, in the switch's image; once they are filled, done. */
void mc_switch_image(
	struct mc_switch *sw, const struct mc_engine *engine, size_t block, size_t arena);
void mc_switch_done(struct mc_sys *s, struct mc_switch *sw);
/* The next frame that goes out, or NULL: too many. */
struct mc_out *mc_switch_out(struct mc_result *r);
void mc_inc_open(struct mc_sys *s, unsigned node, struct inc_group_spec *spec);
/* The second group, in the place of the first. */
void mc_inc_again(
	struct mc_sys *s, unsigned node, const struct inc_group_spec *spec, unsigned generation);
void mc_ring_open(struct mc_sys *s, unsigned node, struct nr_spec *spec);
/* In two steps: the queue pairs' numbers are known after the first. remote_qpn: by port. */
void mc_mode1_open(struct mc_sys *s, unsigned node, struct inc_group_spec *spec);
void mc_mode1_connect(struct mc_sys *s, unsigned node, const uint32_t *remote_qpn);
void mc_switch_step(struct mc_sys *s, unsigned node, uint32_t state, enum mc_event ev,
	unsigned port, uint32_t frame, struct mc_result *r);
uint32_t mc_switch_initial(struct mc_sys *s, unsigned node);
/* A bit for each port whose timer runs, and for each whose peer has told the switch to wait. */
enum mc_switch_flags {
	MC_S_TIMERS = 0x1ff,
	MC_S_CLEAN = 0x200,
	MC_S_FAILED = 0x400,
	MC_S_HELD = 0x1ff000,
	MC_S_HELD_SHIFT = 12,
	MC_S_GONE = 1 << 21, /* it has no group; has the second one */
	MC_S_AGAIN = 1 << 22,
	MC_S_DRAINS = 1 << 23,
	MC_S_OPS_SHIFT = 24, /* operations that it has begun */
	MC_S_OPS = 0xf << MC_S_OPS_SHIFT,
	MC_S_ANEW = 1 << 28,    /* nothing has happened since it was made, or began anew */
	MC_S_STOPPED = 1 << 29, /* it takes nothing now */
	MC_S_BUSY = 1 << 30,    /* somebody is waited for */
};
bool mc_switch_notices(struct mc_sys *s, unsigned node, uint32_t state, unsigned port, uint32_t psn,
	uint32_t next);
unsigned mc_switch_flags(struct mc_sys *s, unsigned node, uint32_t state);

/* ---- host.c ---- */
uint32_t mc_host_initial(struct mc_sys *s, unsigned node);
void mc_host_step(struct mc_sys *s, unsigned node, uint32_t state, enum mc_event ev, uint32_t frame,
	struct mc_result *r);
const struct mc_host_state *mc_host(const struct mc_sys *s, unsigned node, uint32_t state);
/* Is this frame the data that the host expects next? And something that needs a receive? */
bool mc_host_would_take(struct mc_sys *s, unsigned node, uint32_t state, uint32_t frame);
bool mc_host_may_hold(struct mc_sys *s, unsigned node, uint32_t state, uint32_t frame);
unsigned mc_host_flags(struct mc_sys *s, unsigned node, uint32_t state);
/* The first so many operations are over for it. */
bool mc_host_finished(const struct mc_sys *s, unsigned node, uint32_t state, unsigned ops);

/* ---- step.c: a state is `words` numbers: nodes, links' queues, budgets ---- */
enum mc_kind {
	MC_DELIVER,
	MC_LOSE,
	MC_DUP,
	MC_SWAP,
	MC_HOLD, /* delivered to a host that has no receive posted: RNR NAK */
	MC_SEND,
	MC_TIMEOUT,
	MC_MANAGER,
	MC_TICK,
	MC_DRAIN, /* a switch's group is destroyed, by and by */
	MC_END,   /* a switch loses its group, a host leaves it */
	MC_AGAIN, /* all have: the second one is there */
	MC_ANEW,  /* a switch stops, and then goes on, from the next operation on; so does a host */
	MC_ANSWER,
};
struct mc_action {
	uint8_t kind, index; /* link, or node */
	uint8_t port;        /* MC_TICK */
};
const struct mc_result *mc_node_step(struct mc_sys *s, unsigned node, uint32_t state,
	enum mc_event ev, unsigned port, uint32_t frame);
void mc_initial(struct mc_sys *s, uint32_t *v);
unsigned mc_actions(struct mc_sys *s, const uint32_t *v, struct mc_action *a);
/* NULL, or what is wrong with the step. res: what the node did, if one did anything. */
const char *mc_apply(struct mc_sys *s, const uint32_t *v, struct mc_action a, uint32_t *to,
	const struct mc_result **res);
bool mc_quiet(const struct mc_sys *s, const uint32_t *v);
/* Finished; *why if it should not have ended so. */
bool mc_final(struct mc_sys *s, const uint32_t *v, const char **why);

/* ---- anew.c: groups of hosts that leave no PSNs out (--resync) ---- */
unsigned mc_anew_actions(struct mc_sys *s, const uint32_t *v, struct mc_action *a);
const char *mc_anew_apply(struct mc_sys *s, unsigned node, const uint32_t *v, uint32_t *to);
/* Can nobody begin anew before one of these nodes has done something? */
bool mc_anew_waits_for(struct mc_sys *s, const uint32_t *v, unsigned nodes);

/* ---- symmetry.c ---- */
void mc_symmetry_open(struct mc_sys *s, const uint32_t *initial);
/* Mirrors a step that was computed, and all it leads to. */
void mc_mirror(struct mc_sys *s, unsigned node, uint32_t state, enum mc_event ev, unsigned port,
	uint32_t frame, const struct mc_result *r);
/* Makes v the least of those that differ by the places of equal ranks; the permutation, or -1. */
int mc_canonical(struct mc_sys *s, uint32_t *v);

/* ---- explore.c ---- */
struct mc_outcome {
	uint64_t states, transitions, finals;
	unsigned depth;
	bool complete;
	const char *violation; /* NULL: none */
	struct mc_action *trace;
	unsigned n_trace;
	uint64_t doomed; /* states from which no final one can be reached */
	double seconds, collision;
	uint64_t bytes;
};
void mc_explore(struct mc_sys *s, struct mc_outcome *o);

/* ---- trace.c ---- */
void mc_trace_print(struct mc_sys *s, const struct mc_outcome *o);
int mc_trace_pcap(struct mc_sys *s, const struct mc_outcome *o, const char *path);

#endif
