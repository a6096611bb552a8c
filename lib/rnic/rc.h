/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: state of the reliable connection transport (IBTA vol. 1, 9.7), one
 * requester and one responder per QP, which share nothing but the QP's state. */
#ifndef RNIC_RC_H
#define RNIC_RC_H

#include "lib/rnic/congestion.h"
#include "lib/rnic/message.h"
#include "lib/rnic/transport.h"
#include "lib/wire/psn.h"

enum { RC_MAX_RD = 16 }; /* RNIC_MAX_RD_ATOMIC */
enum { RC_MAX_SKIPS = 16, RC_SEQ_LIMIT = 1 << 23 };

/* Packets are counted by 64-bit sequence numbers, whose low 24 bits are the PSN: they never wrap,
 *so they compare as numbers. Work requests are counted by their ring index.
 *
 *	una <= next <= high <= assign
 *
 * una	  oldest unacknowledged packet; una_idx the request it belongs to (the ring's tail)
 * next	  the packet to send next: behind high after going back
 * high	  the first packet never sent
 * assign the packet at which the next request that has no sequence numbers yet would start
 *
 * Each of them that stands at the end of a request is moved on to where the next one starts: past
 * skipped PSNs (docs/inc-protocol.md, 3.7). So an acknowledgement inside a skipped range is in
 *range, and going back to one resends from its end. */
struct rc_requester {
	uint64_t una, next, high, assign;
	uint64_t skipped; /* PSNs skipped so far */
	uint32_t una_idx, next_idx, high_idx, assign_idx;
	uint32_t since_ackreq;
	uint32_t recvs;               /* messages before assign that use up a receive request */
	uint8_t retries, rnr_retries; /* left */
	bool rnr_wait;                /* retry_at is that of an RNR NAK */
	bool draining;                /* SQD: requests begun are being finished */
	bool implied;    /* a lost response was asked for again, and nothing new has come since */
	bool nak_done;   /* so was what a NAK of the packet at una misses */
	uint32_t rd_out; /* READs and atomics before next that have not been answered */
	/* Request fault_idx cannot be sent, or the peer has refused it; it fails when those before
	 * it are done. */
	bool fault;
	uint32_t fault_idx;
	enum ibv_wc_status fault_status;
	uint64_t retry_at; /* retransmission, or the end of rnr_wait; UINT64_MAX: not waiting */
	uint64_t retransmits, timeouts;
};

struct rc_skip {
	uint32_t from, count;
};

/* A READ or an atomic that is to be answered. */
struct rc_pending {
	bool atomic;
	bool repeat;  /* of a duplicate, which may be an old one that the peer waits for no more */
	uint32_t psn; /* of the first packet of the answer */
	uint32_t n; /* packets to send: fewer than the answer has if the rest was asked for anew */
	uint32_t sent;
	uint32_t msn;
	uint32_t rkey, len; /* READ */
	uint64_t va;
	uint64_t orig; /* atomic */
};

/* Atomics are not executed twice: what the last ones gave is kept for duplicates. */
struct rc_replay {
	bool valid;
	uint32_t psn, msn;
	uint64_t orig;
};

enum { RC_MAX_PENDING = 2 * RC_MAX_RD };

enum rc_answer { RC_NO_ANSWER, RC_ACK, RC_RNR, RC_NAK, RC_NAK_FATAL };

struct rc_responder {
	uint32_t epsn;  /* PSN after the last one taken in order */
	bool nak_sent;  /* for the present gap: no other until a packet in order comes */
	uint32_t ahead; /* while a NAK waits: the last PSN that was dropped behind the gap */
	bool heard;     /* IBV_EVENT_COMM_EST was raised */
	struct message message;
	/* One answer waits at most: it says all that earlier ones would have said. */
	enum rc_answer answer;
	uint32_t ack_psn;   /* RC_ACK: the PSN it names, never one of a READ or an atomic */
	uint32_t rd_psn;    /* last PSN of the last READ or atomic executed */
	uint8_t fatal_code; /* enum roce_nak */
	uint32_t fatal_psn, fatal_msn; /* what it names */
	bool refuses;                  /* rnic_qp_refuse: every request is answered with it */
	uint8_t n_skip;
	struct rc_skip skip[RC_MAX_SKIPS]; /* ascending */
	/* READs and atomics to answer, by PSN. ACK and NAK wait until there are none, also a NAK
	 * that ends the connection: what came before the refused request is answered. */
	uint8_t n_pending;
	bool yielded; /* the last packet sent was a response: the requester's turn */
	struct rc_pending pending[RC_MAX_PENDING];
	uint8_t replay_at;
	struct rc_replay replay[RC_MAX_RD];
};

/* ---- selective acknowledgement (sel.c) ---- */

enum {
	SEL_REACH = ROCE_SACK_BITS,      /* PSNs in flight, and remembered behind a missing one */
	SEL_PROBE = 16,                  /* packets that a probe sends at most */
	SEL_ROOM = 40 + 8 + 12 + 28 + 4, /* headers around a payload */
};

struct rc_selective {
	/* Requester. sacked[seq % SEL_REACH] == seq: that packet has arrived. */
	uint64_t sacked[SEL_REACH];
	/* When each was sent last: 2 x its place in the order of sending, odd if it was sent more
	 * than once. One that was sent once is lost when one behind it has arrived; others, which
	 * may have overtaken those, when something that was sent later has. */
	uint64_t order[SEL_REACH];
	uint64_t n_sent, newest; /* packets; the last of them that has arrived */
	uint64_t sack_end;       /* behind the last one that arrived when it was sent once */
	uint64_t acked;          /* una, when it was last looked at */
	/* The round trip: of the packet rtt_seq, sent once at rtt_from (0: none is timed). When
	 * nothing new has come for one and a half of it, the oldest that are missing are sent
	 * again: a probe. The third and all after it wait twice as long as the one before, until
	 * the QP's timeout is shorter. */
	uint64_t rtt_seq, rtt_from, rtt_ns;
	unsigned probes;
	bool probing; /* the timer that runs is a probe's */
	/* Responder: packets behind a missing one. Payloads are in their places, headers wait here
	 * for their turn. */
	uint64_t taken[SEL_REACH / 64]; /* bit psn % SEL_REACH */
	uint32_t n_taken;
	uint32_t unsaid; /* packets kept since the map was last sent */
	uint32_t recvs;  /* messages taken that used up a receive request */
	uint8_t map[ROCE_SACK_LEN];
	struct wire_pkt pkt[SEL_REACH];
};

/* ---- the state behind a QP ---- */

struct rc {
	struct congestion cc;
	uint64_t pace_at; /* the rate allows a packet then; UINT64_MAX: nothing waits for it */
	struct rc_requester req;
	struct rc_responder resp;
	struct rc_selective *sel; /* or NULL */
};

static inline struct rc *rc_of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

/* req.retry_at or pace_at has changed. */
static inline void rc_schedule(struct rnic_qp *qp)
{
	const struct rc *rc = rc_of(qp);

	transport_schedule(qp, rc->req.retry_at < rc->pace_at ? rc->req.retry_at : rc->pace_at);
}

static inline void rc_retry_at(struct rnic_qp *qp, uint64_t at)
{
	rc_of(qp)->req.retry_at = at;
	rc_schedule(qp);
}

/* Moves `next` on past what need not be sent again. */
void sel_pass(struct rnic_qp *qp);
/* From now on all that has not arrived is sent again. */
void sel_go_back(struct rnic_qp *qp);
/* A sequence NAK, with the map of what has come behind the missing packet. */
unsigned sel_rx_nak(struct rnic_qp *qp, const uint8_t *map, const struct wire_pkt *pkt,
	uint64_t missing, bool progress, uint64_t now);
/* The packet at `next` leaves, before `next` and high are moved on; it asks for an acknowledgement.
 */
void sel_sent(struct rnic_qp *qp, bool asks, uint64_t now);
/* una has moved. */
void sel_progressed(struct rnic_qp *qp, uint64_t now);
/* How long to wait for an acknowledgement: not longer than limit, 0: any time. */
uint64_t sel_timeout(struct rnic_qp *qp, uint64_t limit);
/* The timer has ended: true if that was a probe's, which now goes. */
bool sel_probe(struct rnic_qp *qp);
/* Names the map of what has arrived as the frame's payload; its length. */
size_t sel_put_map(struct rnic_qp *qp, struct rnic_frame *frame);

/* request.c */
struct send_wqe;
/* PSNs of a request: a READ has as many as its response has packets. */
uint32_t rc_packets(const struct rnic_qp *qp, const struct send_wqe *wqe);
bool rc_is_atomic(const struct send_wqe *wqe);
/* Completed by its response, not by an acknowledgement. */
bool rc_is_rd(const struct send_wqe *wqe);
/* Its message uses up a receive request of the peer's. */
bool rc_takes_recv(uint8_t wr_opcode);
uint8_t rc_opcode(const struct send_wqe *wqe, bool first, bool last);

/* requester.c */
/* Moves `next` behind its packet; last: of its request. */
void rc_step(struct rnic_qp *qp, bool last);
/* All from una on that has not arrived is sent again; one more try without progress; the same
 * because a response has not come. */
void rc_go_back(struct rnic_qp *qp);
/* What of that is lost is sent again; the timer runs on. */
void rc_rewind(struct rnic_qp *qp);
void rc_try_again(struct rnic_qp *qp);
/* The peer has said something new, though una stays: the timer begins anew. */
void rc_heard(struct rnic_qp *qp, uint64_t now);
unsigned rc_response_lost(struct rnic_qp *qp, bool progress);
bool rc_tx_request(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now);
/* ACK, NAK, READ RESPONSE, ATOMIC ACKNOWLEDGE. */
unsigned rc_rx_answer(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now);
/* req.retry_at has come. */
void rc_retry(struct rnic_qp *qp);
void rc_start_send(struct rnic_qp *qp);
void rc_drain(struct rnic_qp *qp, bool on);
int rc_skip_send(struct rnic_qp *qp, uint32_t from, uint32_t count);

/* responder.c */
unsigned rc_rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
/* The one at epsn, without skipped PSNs. placed: its payload is where it belongs. */
unsigned rc_take_next(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, bool placed);
/* One behind a missing one. repeat: asked for again even if it was before. */
unsigned rc_ahead(struct rnic_qp *qp, uint32_t psn, bool repeat);
unsigned rc_duplicate(struct rnic_qp *qp, const struct wire_pkt *pkt);
bool rc_is_rd_request(const struct wire_pkt *pkt);
/* The QP fails, its peer gets a NAK of the request at the expected PSN, behind the answers to those
 * before it. Returns the drop reason. */
unsigned rc_refuse(struct rnic_qp *qp, const struct message_fault *fault);
/* The answer to an earlier one cannot be given: the NAK names its packet psn, and no more answers
 * follow. */
void rc_refuse_answer(
	struct rnic_qp *qp, const struct message_fault *fault, uint32_t psn, uint32_t msn);
/* The ACK or NAK that is due; false: none is. */
bool rc_tx_answer(struct rnic_qp *qp, struct rnic_frame *frame);
void rc_refuse_all(struct rnic_qp *qp);
void rc_start_recv(struct rnic_qp *qp);
int rc_skip_recv(struct rnic_qp *qp, uint32_t from, uint32_t count);

/* responder_rd.c: READs and atomics. */
/* In PSN order: NULL and taken, *n the PSNs that its answer has; or what is wrong. */
const struct message_fault *rc_take_rd(struct rnic_qp *qp, const struct wire_pkt *pkt, uint32_t *n);
/* A duplicate. */
void rc_repeat_rd(struct rnic_qp *qp, const struct wire_pkt *pkt);
/* The next packet of an answer; false: none. */
bool rc_tx_response(struct rnic_qp *qp, struct rnic_frame *frame);

/* rc.c: entries of struct transport_ops that RC and SR have in common. */
enum {
	RC_SEND_OPS = 1 << IBV_WR_SEND | 1 << IBV_WR_SEND_WITH_IMM | 1 << IBV_WR_SEND_WITH_INV |
		      1 << IBV_WR_RDMA_WRITE | 1 << IBV_WR_RDMA_WRITE_WITH_IMM |
		      1 << IBV_WR_RDMA_READ | 1 << IBV_WR_ATOMIC_CMP_AND_SWP |
		      1 << IBV_WR_ATOMIC_FETCH_AND_ADD | 1 << IBV_WR_LOCAL_INV |
		      1 << IBV_WR_BIND_MW,
};
extern const struct transport_counter rc_counters[];
bool rc_tx(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now);
enum tx_control rc_tx_control(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now);
void rc_timer(struct rnic_qp *qp, uint64_t now);
int rc_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask);
void rc_set_attr(struct rnic_qp *qp, int mask);
void rc_query(const struct rnic_qp *qp, struct ibv_qp_attr *attr);
void rc_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats);
void rc_enter(struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now);
void rc_fail_all(struct rnic_qp *qp);
void rc_reset(struct rnic_qp *qp);

#endif
