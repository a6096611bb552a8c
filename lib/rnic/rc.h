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
 * so they compare as numbers. Work requests are counted by their ring index.
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
 * range, and going back to one resends from its end. */
struct rc_requester {
	uint64_t una, next, high, assign;
	uint64_t skipped; /* PSNs skipped so far */
	uint32_t una_idx, next_idx, high_idx, assign_idx;
	uint64_t asked; /* behind the last packet sent that asks for an answer */
	uint32_t since_ackreq;
	uint32_t bytes;               /* of requests before assign_idx, modulo 2^32 */
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
	/* The memory of request from_idx, if it is one piece, and was translated when its first
	 * packet left, at mr_changes. */
	const uint8_t *from;
	uint64_t from_changes;
	uint32_t from_idx;
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

/* ---- loss recovery ---- */

/* What is done about packets that are lost: go-back-N (gbn.c), or selective repeat (sr.c). NULL:
 * nothing is to be done there. */
struct rc_recovery {
	uint64_t reach;   /* PSNs in flight at most */
	bool repeats_ask; /* nothing may follow a packet that is sent again: it asks for an ACK */
	/* Requester. The packet at `next` leaves, before `next` and high are moved on; asks: for an
	 * acknowledgement. */
	void (*sent)(struct rnic_qp *qp, bool asks, uint64_t now);
	/* una has moved. */
	void (*progressed)(struct rnic_qp *qp, uint64_t now);
	/* Moves `next` on past what need not be sent again. */
	void (*pass)(struct rnic_qp *qp);
	/* From now on all that has not arrived is sent again. */
	void (*go_back)(struct rnic_qp *qp);
	/* A sequence NAK of the packet `missing`, which is outstanding, with pkt->pay_len bytes of
	 * what has come behind it; progress: it acknowledged something. 0 or the drop reason. */
	unsigned (*on_nak)(struct rnic_qp *qp, const uint8_t *sack, const struct wire_pkt *pkt,
		uint64_t missing, bool progress, uint64_t now);
	/* How long to wait for an acknowledgement: not longer than limit, 0: any time. */
	uint64_t (*timeout)(struct rnic_qp *qp, uint64_t limit);
	/* That time is over: true if it was shorter than the QP's, and no try is used up. */
	bool (*probe)(struct rnic_qp *qp);
	/* Responder. Something is missing, and there is something behind it. */
	bool (*gap)(const struct rnic_qp *qp);
	/* Names the map of what that is as a NAK's payload; its length. */
	size_t (*put_sack)(struct rnic_qp *qp, struct rnic_frame *frame);
};

extern const struct rc_recovery gbn_recovery;

/* ---- the state behind a QP ---- */

struct rc {
	const struct rc_recovery *recovery;
	struct congestion cc;
	uint64_t pace_at; /* the rate allows a packet then; UINT64_MAX: nothing waits for it */
	struct rc_requester req;
	struct rc_responder resp;
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

/* request.c */
struct send_wqe;
/* Packets of so many bytes: one at least. */
static inline uint32_t rc_packets_of(const struct rnic_qp *qp, uint32_t len)
{
	return len == 0 ? 1 : (len + qp->mtu - 1) / qp->mtu;
}
/* PSNs of a request: a READ has as many as its response has packets. */
uint32_t rc_packets(const struct rnic_qp *qp, const struct send_wqe *wqe);
bool rc_is_atomic(const struct send_wqe *wqe);
/* Completed by its response, not by an acknowledgement. */
bool rc_is_rd(const struct send_wqe *wqe);
/* Its message uses up a receive request of the peer's. */
bool rc_takes_recv(uint8_t wr_opcode);
uint8_t rc_opcode(const struct send_wqe *wqe, bool first, bool last);

/* requester.c */
/* retry_at begins anew, or stops if no answer is due. */
void rc_restart_timer(struct rnic_qp *qp, uint64_t now);
/* Moves `next` behind its packet; last: of its request. */
void rc_step(struct rnic_qp *qp, bool last);
/* All from una on that has not arrived is sent again; one more try without progress; the same
 * because a response has not come. */
void rc_go_back(struct rnic_qp *qp);
/* What of that is lost is sent again; the timer runs on. */
void rc_rewind(struct rnic_qp *qp);
void rc_try_again(struct rnic_qp *qp);
unsigned rc_response_lost(struct rnic_qp *qp, bool progress);
bool rc_tx_request(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now);
/* ACK, NAK, READ RESPONSE, ATOMIC ACKNOWLEDGE. */
unsigned rc_rx_answer(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now);
/* As transport_ops.place and rx_placed, of READs' responses. */
uint8_t *rc_place_response(const struct rnic_qp *qp, const struct wire_pkt *pkt);
void rc_response_placed(struct rnic_qp *qp, uint64_t now);
/* req.retry_at has come. */
void rc_retry(struct rnic_qp *qp);
void rc_start_send(struct rnic_qp *qp);
void rc_drain(struct rnic_qp *qp, bool on);
int rc_skip_send(struct rnic_qp *qp, uint32_t from, uint32_t count);

/* responder.c */
unsigned rc_rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
/* As transport_ops.place and rx_placed, of requests. */
uint8_t *rc_place_request(const struct rnic_qp *qp, const struct wire_pkt *pkt);
void rc_request_placed(struct rnic_qp *qp, const struct wire_pkt *pkt);
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
bool rc_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now);
enum tx_control rc_tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now);
void rc_timer(struct rnic_qp *qp, uint64_t now);
void rc_port(struct rnic_qp *qp, unsigned port, bool up, uint64_t now);
int rc_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask);
void rc_set_attr(struct rnic_qp *qp, int mask);
void rc_query(const struct rnic_qp *qp, struct ibv_qp_attr *attr);
void rc_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats);
void rc_enter(struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now);
void rc_fail_all(struct rnic_qp *qp);
void rc_reset(struct rnic_qp *qp); /* to go-back-N */

#endif
