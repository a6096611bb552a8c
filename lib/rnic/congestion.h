/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: congestion control, between the transports that have a flow and the ways to
 * find its rate (after ngtcp2's struct ngtcp2_cc and Linux's tcp_congestion_ops). A transport has a
 * struct congestion in its state, gives it every packet that came, asks it before it sends, and
 * tells it what it sent. One whose packets are acknowledged has a window, too (cwnd.h), whatever
 * finds the rate. The notification point (a frame marked CE draws a CNP) is here, too. */
#ifndef RNIC_CONGESTION_H
#define RNIC_CONGESTION_H

#include "lib/rnic/cwnd.h"
#include "lib/rnic/dcqcn.h"
#include "lib/rnic/rnic.h"
#include "lib/wire/frame.h"
#include "lib/wire/ip.h"
#include "lib/wire/roce.h"

struct congestion;

struct cc_ops {
	const char *name;
	/* The peer says that frames of the flow met congestion. True: the rate was cut, and so is
	 * the window. */
	bool (*notified)(struct congestion *cc, uint64_t now);
	/* Of a limited flow: the time before which it must not send, 0: it may now. */
	uint64_t (*hold)(struct congestion *cc, uint64_t now);
	/* A limited flow sent a frame of so many bytes. */
	void (*sent)(struct congestion *cc, uint32_t bytes, uint64_t now);
	/* Bit/s of a limited flow, as of its last frame. */
	uint64_t (*rate)(const struct congestion *cc);
};

extern const struct cc_ops cc_dcqcn, cc_none;

struct congestion {
	const struct cc_ops *ops;
	bool limited;           /* it has a rate; one that has none pays for this question alone */
	bool cnp_due, cnp_sent; /* to the peer; one was, at cnp_at */
	uint64_t cnp_at;
	const struct dcqcn_params *params; /* the device's */
	struct dcqcn dcqcn;
	struct cwnd window; /* of RC, SR */
};

/* As the device's configuration says. */
void congestion_init(struct congestion *cc, const struct rnic *rnic);

/* A CNP came. */
void congestion_rx_cnp(struct rnic_qp *qp, struct congestion *cc, uint64_t now);
/* A frame marked CE did: its sender is to know, by tx_control. */
void congestion_marked(struct rnic_qp *qp, struct congestion *cc, uint64_t now);

/* A packet came. True: it was a CNP, which goes no further. */
static inline bool congestion_rx(
	struct rnic_qp *qp, struct congestion *cc, const struct wire_pkt *pkt, uint64_t now)
{
	if (pkt->opcode == ROCE_CNP) {
		congestion_rx_cnp(qp, cc, now);
		return true;
	}
	if ((pkt->tos & IP_ECN_MASK) == IP_ECN_CE)
		congestion_marked(qp, cc, now);
	return false;
}

/* Makes the CNP that is due (Annex A17.9.3). */
void congestion_tx_cnp(struct rnic_qp *qp, struct congestion *cc, struct rnic_frame *frame);

/* For a limited flow: true if it must not send before *until. */
bool congestion_hold(struct rnic_qp *qp, struct congestion *cc, uint64_t now, uint64_t *until);

static inline void congestion_sent(struct congestion *cc, uint32_t bytes, uint64_t now)
{
	if (cc->limited)
		cc->ops->sent(cc, bytes, now);
}

static inline uint64_t congestion_rate(const struct congestion *cc)
{
	return cc->limited ? cc->ops->rate(cc) : 0;
}

#endif
