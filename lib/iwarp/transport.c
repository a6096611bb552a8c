/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device asks of a transport; how a queue pair and its stream begin and end. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/iwarp/priv.h"
#include "lib/rnic/mr.h"

static void clear(struct iwarp *iw)
{
	memset(iw, 0, offsetof(struct iwarp, part));
	iw->terminated.layer = NO_TERMINATE;
	for (unsigned i = 0; i < DDP_N_QUEUES; i++)
		iw->msn[i] = iw->next_msn[i] = 1;
}

int iwarp_attach(struct rnic_qp *qp, const struct iwarp_attach *a)
{
	struct iwarp *iw;

	if (qp->ops != &iwarp_transport || qp_state(qp) != IBV_QPS_INIT ||
		a->mulpdu < IWARP_MIN_MULPDU || a->ird > RNIC_MAX_RD_ATOMIC ||
		a->ord > RNIC_MAX_RD_ATOMIC || a->ready == NULL || a->gone == NULL)
		return -EINVAL;
	iw = iwarp_of(qp);
	if (iw->attached && !(iw->set.pending && iw->set.arg == a->arg))
		return -EBUSY;
	clear(iw);
	iw->set = *a;
	iw->attached = true;
	iw->rtr_due = a->rtr;
	iw->snd = ring_tail(&qp->sq);
	iw->read_stag = qp->qpn << KEY_FREE_BITS;
	qp->attr.max_rd_atomic = (uint8_t)a->ord;
	qp->attr.max_dest_rd_atomic = (uint8_t)a->ird;
	return 0;
}

void iwarp_detach(struct rnic_qp *qp)
{
	struct iwarp *iw = iwarp_of(qp);

	iw->attached = false;
	if (qp_state(qp) == IBV_QPS_RTS)
		qp_error(qp);
	iwarp_settle_queues(qp);
}

static enum ibv_event_type event_of(enum iwarp_fault fault)
{
	switch (fault) {
	case IWARP_FAULT_STAG:
	case IWARP_FAULT_BOUNDS:
	case IWARP_FAULT_ACCESS:
	case IWARP_FAULT_STREAM:
	case IWARP_FAULT_WRAP:
	case IWARP_FAULT_TAGGED_STAG:
	case IWARP_FAULT_TAGGED_BOUNDS:
	case IWARP_FAULT_TAGGED_STREAM:
	case IWARP_FAULT_TAGGED_WRAP:
		return IBV_EVENT_QP_ACCESS_ERR;
	case IWARP_FAULT_CATASTROPHIC:
	case IWARP_FAULT_LOST:
		return IBV_EVENT_QP_FATAL;
	default:
		return IBV_EVENT_QP_REQ_ERR;
	}
}

static void terminate(
	struct iwarp *iw, enum iwarp_fault fault, const uint8_t *ulpdu, size_t ulpdu_len)
{
	iw->fault = fault;
	iw->faults[fault]++;
	iw->dead = true;
	iw->terminate_len = (uint16_t)rdmap_terminate_build(iw->terminate, fault, ulpdu, ulpdu_len);
	iw->terminate_due = fault != IWARP_FAULT_LOST;
}

void iwarp_fail(struct rnic_qp *qp, enum iwarp_fault fault, const uint8_t *ulpdu, size_t ulpdu_len)
{
	terminate(iwarp_of(qp), fault, ulpdu, ulpdu_len);
	qp_event(qp, event_of(fault));
	qp_error(qp);
}

bool iwarp_failed(const struct rnic_qp *qp)
{
	return qp_state(qp) == IBV_QPS_ERR;
}

bool iwarp_waits(const struct rnic_qp *qp)
{
	return iwarp_of(qp)->set.waits;
}

bool iwarp_over(const struct rnic_qp *qp)
{
	return qp_state(qp) == IBV_QPS_ERR && !iwarp_of(qp)->terminate_due;
}

void iwarp_lost(struct rnic_qp *qp, int err)
{
	struct iwarp *iw = iwarp_of(qp);

	if (!iwarp_rx_open(qp)) {
		iw->terminate_due = false;
		iw->dead = true;
		return;
	}
	if (iw->have > 0) {
		iwarp_fail(qp, IWARP_FAULT_LOST, NULL, 0);
	} else {
		iw->dead = true;
		if (err < 0)
			qp_event(qp, IBV_EVENT_QP_FATAL);
		qp_error(qp);
	}
	iwarp_settle_queues(qp);
}

enum iwarp_fault iwarp_fault(const struct rnic_qp *qp)
{
	return iwarp_of(qp)->fault;
}

struct rdmap_terminate iwarp_terminated(const struct rnic_qp *qp)
{
	return iwarp_of(qp)->terminated;
}

/* ---- what the device asks ---- */

static int check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const struct iwarp *iw = iwarp_of(qp);

	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RTS &&
		(!iw->attached || iw->set.pending || iw->dead))
		return -ENOTCONN;
	return 0;
}

static void query(const struct rnic_qp *qp, struct ibv_qp_attr *attr)
{
	(void)qp, (void)attr;
}

static void stats(const struct rnic_qp *qp, struct rnic_qp_stats *s)
{
	s->sq_una = ring_tail(&qp->sq);
	s->sq_next = iwarp_of(qp)->snd;
	s->epsn = iwarp_of(qp)->msn[DDP_QN_SEND];
}

static void enter(struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now)
{
	(void)from, (void)to, (void)now;
	iwarp_wake(qp);
}

static bool queue_is_dead(const struct rnic_qp *qp)
{
	return cq_is_dead(qp->init.send_cq) || cq_is_dead(qp->init.recv_cq);
}

static void fail(struct rnic_qp *qp)
{
	struct iwarp *iw = iwarp_of(qp);

	/* Of all that ends a queue pair here, the peer is told of what the program did not ask for.
	 */
	if (iw->attached && !iw->set.pending && !iw->dead && queue_is_dead(qp))
		terminate(iw, IWARP_FAULT_CATASTROPHIC, NULL, 0);
	iw->snd = ring_head(&qp->sq);
	iw->sent = iw->reads = 0;
	iw->middle = iw->imm_due = iw->rtr_due = false;
	iw->answer_tail = iw->answer_head;
	iw->dead = true;
	iwarp_wake(qp);
}

static void reset(struct rnic_qp *qp)
{
	struct iwarp *iw = iwarp_of(qp);

	if (iw->attached)
		iw->set.gone(iw->set.arg);
	clear(iw);
	iw->snd = ring_tail(&qp->sq);
}

/* Its packets are none of RoCE's. */
static unsigned rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	(void)qp, (void)port, (void)frame, (void)pkt, (void)now;
	return RNIC_DROP_QP_TYPE;
}

static enum tx_control tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)qp, (void)ports, (void)frame, (void)now;
	return CONTROL_NONE;
}

/* Something was posted: the stream will ask. */
static bool tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)ports, (void)frame, (void)now;
	if (qp_state(qp) == IBV_QPS_ERR)
		qp_flush(qp);
	else
		iwarp_wake(qp);
	return false;
}

static void timer(struct rnic_qp *qp, uint64_t now)
{
	(void)qp, (void)now;
}

static const struct transition transitions[QP_N_STATES][QP_N_STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_INIT] = {true, 0,
				IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_INIT] = {true, 0,
				IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_RTS] = {true, 0, IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_ERR] = {true},
		},
};

static const struct transport_counter counters[] = {
	{"fpdu_tx", offsetof(struct iwarp, fpdu_tx)},
	{"fpdu_rx", offsetof(struct iwarp, fpdu_rx)},
	{"terminate_tx", offsetof(struct iwarp, terminate_tx)},
	{"terminate_rx", offsetof(struct iwarp, terminate_rx)},
	{"ignored_bytes", offsetof(struct iwarp, ignored)},
#define X(sym, layer, type, code, name, text) \
	{name, offsetof(struct iwarp, faults[IWARP_FAULT_##sym])},
	IWARP_FAULTS(X)
#undef X
		{NULL, 0},
};

const struct transport_ops iwarp_transport = {
	.name = "iwarp",
	.type = IBV_QPT_RC,
	.connected = true,
	.opcodes = ROCE_RD, /* which lib/wire refuses: no packet is for it */
	.state_size = sizeof(struct iwarp),
	.send_ops = 1 << IBV_WR_SEND | 1 << IBV_WR_SEND_WITH_INV | 1 << IBV_WR_RDMA_WRITE |
		    1 << IBV_WR_RDMA_WRITE_WITH_IMM | 1 << IBV_WR_RDMA_READ |
		    1 << IBV_WR_LOCAL_INV | 1 << IBV_WR_BIND_MW,
	.transitions = transitions,
	.counters = counters,
	.check_attr = check_attr,
	.query = query,
	.stats = stats,
	.enter = enter,
	.fail = fail,
	.reset = reset,
	.rx = rx,
	.tx_control = tx_control,
	.tx = tx,
	.timer = timer,
};
