/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: state of the reliable connection transport (IBTA vol. 1, 9.7), one
 * requester and one responder per QP, which share nothing but the QP's state. */
#ifndef RNIC_RC_H
#define RNIC_RC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/frame.h"

struct rnic_qp;
struct rnic_frame;

enum { RC_MAX_SKIPS = 16, RC_MAX_SKIP = 1 << 22, RC_SEQ_LIMIT = 1 << 23 };

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
	uint8_t retries, rnr_retries; /* left */
	bool rnr_wait;                /* the timer is that of an RNR NAK */
	bool draining;                /* SQD: requests begun are being finished */
	/* Request fault_idx cannot be sent; it fails when those before it are done. */
	bool fault;
	uint32_t fault_idx;
	enum ibv_wc_status fault_status;
	uint64_t retransmits, timeouts;
};

struct rc_skip {
	uint32_t from, count;
};

enum rc_message { RC_NO_MESSAGE, RC_IN_SEND, RC_IN_WRITE };
enum rc_answer { RC_NO_ANSWER, RC_ACK, RC_RNR, RC_NAK, RC_NAK_FATAL };

struct rc_responder {
	uint32_t epsn;  /* PSN after the last one taken in order */
	uint32_t msn;   /* messages completed, 24 bits */
	bool nak_sent;  /* for the present gap: no other until a packet in order comes */
	uint32_t ahead; /* while a NAK waits: the last PSN that was dropped behind the gap */
	bool heard;     /* IBV_EVENT_COMM_EST was raised */
	/* The message whose LAST is still to come. */
	enum rc_message message;
	uint64_t received; /* its bytes so far */
	uint64_t va;       /* RETH */
	uint32_t rkey, dmalen;
	/* One answer waits at most: it says all that earlier ones would have said. */
	enum rc_answer answer;
	uint8_t fatal_code; /* enum roce_nak */
	uint8_t n_skip;
	struct rc_skip skip[RC_MAX_SKIPS]; /* ascending */
};

/* requester.c */
bool rc_tx(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now);
unsigned rc_rx_ack(struct rnic_qp *qp, const struct wire_pkt *pkt, uint64_t now);
void rc_timer(struct rnic_qp *qp);
void rc_start_send(struct rnic_qp *qp);
void rc_drain(struct rnic_qp *qp, bool on);
int rc_skip_send(struct rnic_qp *qp, uint32_t from, uint32_t count);

/* responder.c */
unsigned rc_rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
bool rc_tx_answer(struct rnic_qp *qp, struct rnic_frame *frame);
void rc_start_recv(struct rnic_qp *qp);
int rc_skip_recv(struct rnic_qp *qp, uint32_t from, uint32_t count);

#endif
