/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of EPIC (section 4, appendix B) that modes are composed of, and the context of one
 * packet that they share. Internal to the engine. */
#ifndef INC_MODULES_H
#define INC_MODULES_H

#include "dataplane/inc/engine.h"
#include "dataplane/inc/seeded_bugs.h"

/* One packet on its way through the modules. */
struct inc_ctx {
	struct inc_group *g;
	const struct inc_arena *arena;
	const struct wire_pkt *pkt;
	const uint8_t *payload;
	const struct inc_sink *sink;
	uint64_t now;
	struct inc_desc *desc;         /* operation of the packet's PSN, once found */
	const struct inc_route *route; /* of the packet's PSN, once known */
	uint32_t pay_crc;
	uint8_t ep, cls;
	uint8_t pipe; /* enum inc_pipe: where the packet's slot is */
	bool ctrl;
	bool mig;   /* of the packets that leave */
	bool owed;  /* Mode-III: the packet's own endpoint is to be acknowledged */
	bool again; /* what is emitted was sent before: Mode-III, SR in Mode-II */
};

/* What differs between the modes: what a group may ask for and has, whom it waits for, and what
 * becomes of a packet, once its class is known. Mode-I has no part in the latter (mode1.h). */
struct inc_mode_ops {
	unsigned pipes; /* 2: what is replicated is kept, too */
	/* Limits of the mode's own; completes the spec. 0 or inc_refuse(). */
	int (*check)(struct inc_group_spec *spec, char *err);
	/* Of a pipe, in the arena. */
	size_t (*pay_bytes)(const struct inc_group_spec *spec, enum inc_pipe pipe);
	/* inc_group_missing(), where no slot lacks a contribution; and when that is nobody, who is
	 * not through with the newest operation: what inc_group_busy() adds. */
	uint64_t (*missing)(struct inc_group *g, uint32_t *psn);
	uint64_t (*behind)(struct inc_group *g, uint32_t *psn);
	enum inc_drop (*data)(struct inc_ctx *c); /* control messages, too */
	enum inc_drop (*ack)(struct inc_ctx *c);  /* ACK, NAK, RNR NAK */
	enum inc_drop (*cnp)(struct inc_ctx *c);
	/* Is nobody waited for any more in this operation? Then its descriptor is forgotten. */
	bool (*retire)(struct inc_group *g, const struct inc_desc *d);
	/* What the turn before has left to be sent: as far as this turn goes. */
	void (*go_on)(struct inc_ctx *c);
	/* The timer of endpoint i, which only Mode-III sets. */
	void (*expired)(struct inc_ctx *c, unsigned i);
};
extern const struct inc_mode_ops inc_mode1, inc_mode2, inc_mode3;

/* NULL: there is no such mode. The likeliest come first. */
static inline const struct inc_mode_ops *inc_ops(unsigned mode)
{
	return mode == INC_MODE_2   ? &inc_mode2
	       : mode == INC_MODE_3 ? &inc_mode3
	       : mode == INC_MODE_1 ? &inc_mode1
				    : NULL;
}
static inline const struct inc_mode_ops *inc_ops_of(const struct inc_group *g)
{
	return inc_ops(g->mode);
}

static inline void inc_count(struct inc_group *g, enum inc_counter c)
{
	g->count[c]++;
}

/* ---- group.c, group_check.c, missing.c: for the modes ---- */

/* Of payloads, one for each slot. */
size_t inc_pipe_bytes(const struct inc_group_spec *spec, enum inc_pipe pipe);

/* Writes the reason; -code. */
int inc_refuse(char *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* M x W of at least least, slots of at least least_slots (why: text behind that), which become the
 * power of two from 2 M W on if they are not given. */
int inc_check_window(
	struct inc_group_spec *s, uint32_t least, uint32_t least_slots, const char *why, char *err);

/* Hosts that have not acknowledged the newest operation's results, if they get any here. */
uint64_t inc_unacknowledged(struct inc_group *g, uint32_t *psn);

/* ---- budget.c ---- */

/* A turn begins for the group, unless one of this time has; allowance: its packets. */
void inc_turn_begin(struct inc_group *g, uint64_t now, uint32_t allowance);
/* May n packets more be sent in this turn? If not they are to be sent in the next one: inc_tick
 * will be called. What a packet may set off, by itself or by what it asks for again, takes no
 * worker from other groups: each packet a group gets adds one for each endpoint, all else comes
 * from the group's burst. */
bool inc_may_send(struct inc_ctx *c, unsigned n);

/* ---- control.c: operations ---- */

/* Reads a control message of INC_CTRL_LEN bytes and checks all limits of 2.1. Fills d except for
 * what belongs to its place in the ring. */
bool inc_control_parse(
	const struct inc_group *g, uint32_t imm, const uint8_t *payload, struct inc_desc *d);

/* The k-th newest descriptor's place, from 1. */
static inline struct inc_desc *inc_desc_newest(struct inc_group *g, unsigned k)
{
	return inc_desc_at(g, (uint8_t)(g->next_seq - k) % INC_N_DESC);
}

static inline bool inc_desc_covers(const struct inc_desc *d, uint32_t psn)
{
	return d->valid && psn_in(psn, d->ctrl_psn, d->last);
}

/* The descriptor whose control or data PSNs cover psn, or NULL. The newest is the likeliest, and
 * asked for many times per packet. */
struct inc_desc *inc_desc_find_older(struct inc_group *g, uint32_t psn);
static inline struct inc_desc *inc_desc_find(struct inc_group *g, uint32_t psn)
{
	struct inc_desc *d = inc_desc_newest(g, 1);

	return inc_desc_covers(d, psn) ? d : inc_desc_find_older(g, psn);
}

/* Is a data packet of this PSN from this endpoint to be added to others? False as well when its
 * operation is not known. */
bool inc_aggregates(struct inc_group *g, unsigned ep, uint32_t psn);

/* A sequence of PSNs that carries some operations and not others: what an endpoint sends to us, or
 * we to it (i: the endpoint), what goes through a pipe (i: the pipe), or from pipe to pipe at the
 * tree root, or is aggregated here. */
enum inc_flow { INC_FLOW_RX, INC_FLOW_TX, INC_FLOW_PIPE, INC_FLOW_LOOP, INC_FLOW_SUM };

/* The next PSN, from psn on, that is not known to be none of the flow's: adj() of section 4.1. */
uint32_t inc_adjust(struct inc_group *g, enum inc_flow flow, unsigned i, uint32_t psn);

/* Out endpoints of a pipe, for PSNs with this route. At the tree root an allreduce leaves the first
 * pipe for the second: no endpoint. */
uint64_t inc_pipe_outs(
	const struct inc_group *g, const struct inc_route *route, enum inc_pipe pipe);

/* The pipe that this PSN leaves for the endpoint. */
static inline enum inc_pipe inc_pipe_to(
	struct inc_group *g, const struct inc_desc *d, unsigned ep, uint32_t psn)
{
	return inc_pipe_outs(g, inc_route_at(g, d, psn), INC_AGG) >> ep & 1 ? INC_AGG : INC_BCAST;
}

/* Checks 12 to 15 of 1.5 for a control or data packet: finds or installs its operation and its
 * route, and what the endpoint's packets are on it. INC_OK with c->desc and c->route set;
 * INC_DROP_PSN_STALE if the operation is past; else the reason to drop it. */
enum inc_drop inc_admit(struct inc_ctx *c, enum inc_role *role);

/* What 2.4 says of the packet at psn of an operation: opcode and payload length. */
struct inc_position {
	uint8_t opcode;
	bool ackreq;
	uint16_t len;
	uint32_t imm;     /* of a control, or its message's number in the operation */
	uint64_t msg;     /* number of the message of data in all operations */
	uint32_t msg_len; /* its bytes */
	/* SR: where the payload begins in its message, and the messages before it. */
	uint32_t offset, recv;
};
struct inc_position inc_position_of(
	const struct inc_group *g, const struct inc_desc *d, uint32_t psn);
/* Its ackreq alone: the packet is the last of its message. */
static inline bool inc_ends_message(const struct inc_desc *d, uint32_t psn)
{
	const uint32_t k = (psn - d->ctrl_psn) & PSN_MASK; /* packets of data up to it */

	return k == 0 || k == d->n || k % d->m == 0;
}

/* ---- aggregate_data.c: slots ---- */

enum inc_dup { INC_FRESH, INC_DUP, INC_STALE, INC_AHEAD };

/* RecycleBuffer: the slot is psn's, with nothing in it. The payload need not be cleared: the first
 * contribution is copied. */
void inc_recycle_buffer(struct inc_slot *slot, uint32_t psn);

/* CheckDuplicate (3.1): whose slot is this? A newer PSN claims it (RecycleBuffer); in Mode-II when
 * its last owner is through, else it is INC_AHEAD. */
enum inc_dup inc_check_duplicate(
	struct inc_group *g, struct inc_slot *slot, uint32_t psn, unsigned ep);

/* AggregateData: adds this endpoint's contribution. */
void inc_aggregate_data(struct inc_ctx *c, struct inc_slot *slot);

/* The slot's last contribution is in: makes the result and its CRC. */
void inc_complete(struct inc_ctx *c, struct inc_slot *slot);

/* The first PSN that is aggregated here and not complete. */
uint32_t inc_sum_next(struct inc_group *g);

uint8_t *inc_payload_at(
	const struct inc_group *g, const struct inc_arena *arena, enum inc_pipe pipe, uint32_t psn);

/* ---- replicate_data.c ---- */

/* Forward and ReplicateData: the result of a complete slot, or the packet itself as it came, to
 * each endpoint of outs. */
void inc_forward_slot(
	struct inc_ctx *c, enum inc_pipe pipe, const struct inc_slot *slot, uint64_t outs);
void inc_forward_packet(struct inc_ctx *c, uint64_t outs);

/* ---- send_ack.c ---- */

/* SendAck: an acknowledgement to each endpoint of outs. Notes for hosts what it tells them. */
void inc_send_ack(struct inc_ctx *c, uint64_t outs, uint8_t syndrome, uint32_t psn, uint32_t msn);

/* The packet, an acknowledgement, back to the endpoint that it is from, which sent what it
 * acknowledges; of a selective host with its map of what it has behind what it lacks (4.11). */
void inc_send_back(struct inc_ctx *c, uint8_t syndrome);

/* A NAK to one of them, with a map of what has come behind psn. */
void inc_send_map(
	struct inc_ctx *c, unsigned ep, uint32_t psn, uint32_t msn, const uint8_t *map, size_t len);

/* A CNP to each endpoint of outs that has had none for 50 us; INC_DROP_CNP_RATE if none got it. */
enum inc_drop inc_send_cnp(struct inc_ctx *c, uint64_t outs);

/* ---- mode2.c, mode2_ack.c: Mode-II ---- */

enum inc_drop inc_mode2_ack(struct inc_ctx *c);

/* Those of outs that a NAK or RNR NAK for psn tells anything: a host that was told to wait before
 * it sends psn again hears no more of it until it has. Notes whom an RNR NAK tells. For every
 * packet that a slow receiver refuses it sends another, and rdma_rxe takes one at a time, at its
 * next tick.
 */
uint64_t inc_not_told(struct inc_ctx *c, uint64_t outs, uint8_t syndrome, uint32_t psn);
enum inc_drop inc_mode2_cnp(struct inc_ctx *c);

/* PSNs before this one have been acknowledged by all receivers of a broadcast, not counting
 * what lies behind its operation; *msn: of the slowest of them. */
uint32_t inc_node_ack(
	struct inc_group *g, const struct inc_route *route, uint32_t end, uint32_t *msn);
/* The same for a NAK, which says nothing of what is before `first`: in a MIXED group all ranks have
 * that (2.3), and as many messages as this sender has itself. */
uint32_t inc_not_before(
	const struct inc_ctx *c, unsigned sender, uint32_t first, uint32_t node, uint32_t *msn);

/* ---- window.c: where Mode-III stands ---- */

/* First PSN of a pipe, and the one after the last of a pipe that begins at start. */
uint32_t inc_pipe_start(struct inc_group *g, unsigned pipe);
uint32_t inc_pipe_end(const struct inc_group *g, uint32_t start);

/* PSNs that may be sent beyond what was acknowledged: by a host its window, by a switch half a
 * pipe. */
uint32_t inc_credit(const struct inc_group *g, const struct inc_ep *ep);
/* PSNs that may be sent to it beyond tx_una. */
uint32_t inc_tx_limit(const struct inc_group *g, const struct inc_ep *ep);

/* Has this PSN come from the endpoint, in whatever order? What the pipe has released has. */
bool inc_received(struct inc_group *g, unsigned ep, uint32_t psn);

/* Acknowledged to endpoint i are now all PSNs before to; counts the messages among them. */
void inc_move_acked(struct inc_group *g, unsigned i, uint32_t to);

/* inc_mode_ops.check, missing, behind and retire of Mode-III. */
int inc_pipes_check(struct inc_group_spec *spec, char *err);
uint64_t inc_window_missing(struct inc_group *g, uint32_t *psn);
uint64_t inc_window_behind(struct inc_group *g, uint32_t *psn);
bool inc_retire(struct inc_group *g, const struct inc_desc *d);

/* ---- acknowledge.c: how far a peer is acknowledged in Mode-III (4.9) ---- */

/* The packet's endpoint is to hear how far it was received: by inc_ack_flush, now or later. */
void inc_ack_owed(struct inc_ctx *c);
/* Acknowledges to whoever is owed it, as far as there is room. After every step that may have made
 * some. */
void inc_ack_flush(struct inc_ctx *c);

/* Answers a duplicate: with an ACK, or an RNR NAK if it is held back. */
enum inc_drop inc_ack_again(struct inc_ctx *c);
/* A NAK for what the packet's endpoint is to send next, once per gap; SR: also for whoever asks, if
 * the packet was kept. */
void inc_nak(struct inc_ctx *c, bool kept);
/* An RNR NAK: expected came too early. Acknowledges all before it. */
void inc_hold(struct inc_ctx *c, uint32_t expected, uint8_t timer_code);

/* ---- receive_ack.c, pipe.c, timer.c, retransmit.c: Mode-III ---- */

enum inc_drop inc_receive_ack(struct inc_ctx *c);

/* ---- selective.c: the SR flag (4.10) ---- */

/* Receiving. Is something missing before the last PSN that has come from it? */
bool inc_sr_gap(struct inc_group *g, unsigned ep);
/* Says that psn is missing, all before it is not, and what has come behind it. */
void inc_sr_tell(struct inc_ctx *c, unsigned ep, uint32_t psn);

/* Sending. The packet psn leaves; c->again. */
void inc_sr_sent(struct inc_ctx *c, unsigned ep, uint32_t psn);
/* tx_una moves on to next. */
void inc_sr_acked(struct inc_ctx *c, unsigned ep, uint32_t next);
/* Takes the map that came with a NAK for tx_una: what is lost is to be sent again from there. */
void inc_sr_heard(struct inc_ctx *c, struct inc_ep *ep);
/* Moves tx_next past what need not be sent again. */
void inc_sr_pass(struct inc_group *g, unsigned ep);
/* So many of the oldest that have not arrived are to be sent again. */
void inc_sr_lose(struct inc_group *g, unsigned ep, unsigned n);
static inline void inc_sr_catch_up(struct inc_ep *ep, uint32_t psn)
{
	ep->rx_high = psn_max(ep->rx_high, psn);
	ep->sack_end = psn_max(ep->sack_end, psn);
}

/* Pump (4.4): moves what can be moved: from pipe to pipe at the tree root, to the endpoints of
 * outs, which may have got something to send, and out of the pipes. */
void inc_pump(struct inc_ctx *c, uint64_t outs);

/* The round trip to an endpoint (4.5): psn is sent to it, all before next is acknowledged by it.
 * True if the latter tells how long it takes. */
void inc_rtt_sent(struct inc_ctx *c, struct inc_ep *ep, uint32_t psn);
bool inc_rtt_heard(struct inc_ctx *c, struct inc_ep *ep, uint32_t next);

/* The timer of an endpoint (4.5): runs while something sent is not acknowledged. */
void inc_timer_start(struct inc_ctx *c, unsigned ep);   /* unless it runs */
void inc_timer_restart(struct inc_ctx *c, unsigned ep); /* or stops it, if nothing is out */
void inc_timer_hold(struct inc_ctx *c, unsigned ep, uint64_t ns); /* an RNR wait */
void inc_timer_expired(struct inc_ctx *c, unsigned ep);

#endif
