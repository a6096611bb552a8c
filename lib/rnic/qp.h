/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: queue pairs (qp.c, qp_attr.c). */
#ifndef RNIC_QP_H
#define RNIC_QP_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/rnic/path.h"
#include "lib/rnic/ring.h"
#include "lib/rnic/rnic.h"
#include "lib/rnic/timer.h"
#include "lib/rnic/wqe.h"

/* A queue pair waits to send in its port's lane, or in that of those which have several ports. */
enum { LANE_SEVERAL = RNIC_MAX_PORTS, N_LANES };

struct mcast_window;

/* Behind it in memory is the state of its transport (transport.h). */
struct rnic_qp {
	struct rnic *rnic;
	const struct transport_ops *ops;
	_Atomic int state; /* enum ibv_qp_state; written by the owner */
	uint32_t qpn, slot;
	uint8_t lane;
	uint8_t worker;     /* that takes its packets; 0: the owner */
	atomic_bool broken; /* qp_break; nothing more is taken */
	uint32_t mtu;       /* bytes */
	/* To the peer if connected; else only its port counts, which is IBV_QP_PORT. */
	struct rnic_path path;
	struct wire_template full; /* path.full, of packets of mtu bytes */
	bool en_ready, en_control; /* on the device's lists */
	bool no_room;              /* what transport_no_room says */
	/* Ports that it had no use for: it is not asked again before there are others. */
	uint8_t refused, control_refused;
	uint8_t quantum, budget; /* packets until the next one of the list has its turn */
	TAILQ_ENTRY(rnic_qp) ready, control;
	struct timer timer; /* transport_schedule */
	struct ring sq, rq;
	uint32_t dest_off; /* of a send request's struct ud_dest */
	/* With an SRQ: the request taken from it, whole messages at a time. */
	struct recv_wqe *held;
	bool holds;
	struct mcast_window *window; /* mcast_place.h; changed while workers are held */
	struct ibv_qp_attr attr;     /* as set by rnic_qp_modify */
	struct rnic_qp_init init;
};

TAILQ_HEAD(qp_list, rnic_qp);

static inline enum ibv_qp_state qp_state(const struct rnic_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/* A receive request for a message that begins; false: there is none. */
bool qp_take_recv(struct rnic_qp *qp);
/* The one taken. */
static inline const struct recv_wqe *qp_recv(const struct rnic_qp *qp)
{
	return qp->held != NULL ? qp->held : ring_at(&qp->rq, ring_tail(&qp->rq));
}
/* The one that qp_take_recv would take; NULL: there is none. */
const struct recv_wqe *qp_next_recv(const struct rnic_qp *qp);
/* To RESET; what is on its way out of it still leaves. */
void qp_reset(struct rnic_qp *qp);
/* Puts the send queue into SQE: what is in it is flushed, receiving goes on. */
void qp_sq_error(struct rnic_qp *qp);
/* Puts the QP into ERR: no more packets, all work requests are flushed. */
void qp_error(struct rnic_qp *qp);
/* Completes with WR_FLUSH_ERR whatever is in the queues of a QP in ERR. */
void qp_flush(struct rnic_qp *qp);
/* As qp_error, as soon as the owner can: from where a worker may be the caller. */
void qp_break(struct rnic_qp *qp);
static inline bool qp_is_broken(const struct rnic_qp *qp)
{
	return atomic_load_explicit(&qp->broken, memory_order_relaxed);
}
void qp_event(struct rnic_qp *qp, enum ibv_event_type type);
/* Completion of the send request at the tail of the ring, which is released. */
void qp_complete_send(struct rnic_qp *qp, enum ibv_wc_status status);
/* Completion of the oldest receive request; wc's opcode, byte_len, imm and flags are set. */
void qp_complete_recv(struct rnic_qp *qp, struct ibv_wc *wc, bool solicited);

/* In a state in which packets are taken. */
bool qp_receives(const struct rnic_qp *qp);
/* A packet with the QP's number, from whom it may come: 0 or the drop reason. By the QP's worker,
 * or by the owner, while workers are held if it has one. */
unsigned qp_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt,
	uint64_t now);

#endif
