/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: RC with selective acknowledgement (sr.c): RC's requester and responder with
 * a loss recovery of its own. */
#ifndef RNIC_SR_H
#define RNIC_SR_H

#include "lib/rnic/rc.h"

enum {
	SR_REACH = ROCE_SACK_BITS,      /* PSNs in flight, and remembered behind a missing one */
	SR_PROBE = 16,                  /* packets that a probe sends at most */
	SR_ROOM = 40 + 8 + 12 + 28 + 4, /* headers around a payload */
};

/* Headers of a packet that waits for its turn; its payload is in its place. */
struct sr_kept {
	uint64_t va;
	union {
		struct {
			uint32_t pos_offset, pos_recv, dmalen, imm;
		};
		struct { /* of an atomic */
			uint64_t swap_add, compare;
		};
	};
	uint32_t rkey;
	uint16_t pay_len;
	uint8_t opcode;
	bool ackreq : 1, se : 1;
};

struct sr {
	struct rc rc; /* first: rc_of */
	/* Requester. sacked[seq % SR_REACH] == seq: that packet has arrived. */
	uint64_t sacked[SR_REACH];
	/* When each was sent last: 2 x its transmission number, odd if it was sent more than once.
	 * One that was sent once is lost when one behind it has arrived; others, which may have
	 * overtaken those, when something that was sent later has. */
	uint64_t order[SR_REACH];
	uint64_t n_sent, largest_acked; /* packets; the last of them that has arrived */
	uint64_t sack_end;              /* behind the last one that arrived when it was sent once */
	uint64_t acked;                 /* una, when it was last looked at */
	/* The round trip: of the packet rtt_seq, sent once at rtt_from (0: none is timed). When an
	 * answer is due and nothing new has come for one and a half of it, the oldest that are
	 * missing are sent again: a probe. The third and all after it wait twice as long as the one
	 * before, until the QP's timeout is shorter. */
	uint64_t rtt_seq, rtt_from, rtt_ns;
	/* Of READs' answers: the news before, if it left one due, the time to the next, and the
	 * shorter one of the last two of these times: a probe waits for four. */
	uint64_t rd_from, last_gap_ns, gap_ns;
	uint64_t n_probes; /* in all */
	unsigned probes;   /* since the last news */
	bool probing;      /* what retry_at waits for is a probe */
	/* Responder: packets behind a missing one. */
	uint64_t received[SR_REACH / 64]; /* bit psn % SR_REACH */
	uint32_t n_received;
	uint32_t unsaid; /* packets kept since the sack bitmap was last sent */
	uint32_t recvs;  /* messages taken that used up a receive request */
	uint8_t sack[ROCE_SACK_LEN];
	struct sr_kept kept[SR_REACH];
};

static inline struct sr *sr_of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

/* sr_responder.c */
unsigned sr_rx_request(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt);
/* As transport_ops.place and rx_placed, of requests. */
uint8_t *sr_place_request(const struct rnic_qp *qp, const struct wire_pkt *pkt);
void sr_request_placed(struct rnic_qp *qp, const struct wire_pkt *pkt);
/* As rc_recovery.put_sack. */
size_t sr_put_sack(struct rnic_qp *qp, struct rnic_frame *frame);

#endif
