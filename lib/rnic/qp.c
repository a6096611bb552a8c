/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creation, completions, errors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/cq.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/srq.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/worker.h"

static const struct transport_ops *transport_of(const struct rnic_qp_init *init)
{
	if (init->transport != NULL)
		return init->transport;
	switch (init->type) {
	case IBV_QPT_RC:
		return &rnic_rc;
	case IBV_QPT_UC:
		return &rnic_uc;
	case IBV_QPT_UD:
		return &rnic_ud;
	default:
		return NULL;
	}
}

static int check_init(const struct rnic *rnic, const struct rnic_qp_init *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	const struct transport_ops *ops = transport_of(init);

	if (ops == NULL)
		return -EOPNOTSUPP;
	if (ops->type != init->type)
		return -EINVAL;
	if (init->pd == NULL || init->send_cq == NULL || init->recv_cq == NULL)
		return -EINVAL;
	if (init->pd->rnic != rnic || init->send_cq->rnic != rnic || init->recv_cq->rnic != rnic)
		return -EINVAL;
	if (init->srq != NULL && init->srq->pd->rnic != rnic)
		return -EINVAL;
	if (cq_is_dead(init->send_cq) || cq_is_dead(init->recv_cq))
		return -EINVAL;
	if (cap->max_send_wr > MAX_WR || cap->max_recv_wr > MAX_WR)
		return -EINVAL;
	if (cap->max_send_sge > RNIC_MAX_SGE || cap->max_recv_sge > RNIC_MAX_SGE)
		return -EINVAL;
	if (cap->max_inline_data > RNIC_MAX_INLINE)
		return -EINVAL;
	if (worker_check(rnic, init, ops) < 0)
		return -EINVAL;
	return ops->check != NULL ? ops->check(rnic, init) : 0;
}

static int make_rings(struct rnic_qp *qp)
{
	struct ibv_qp_cap *cap = &qp->init.cap;
	uint32_t sges, room;

	cap->max_send_wr = ring_depth(cap->max_send_wr);
	cap->max_recv_wr = ring_depth(cap->max_recv_wr);
	cap->max_send_sge += cap->max_send_sge == 0;
	cap->max_recv_sge += cap->max_recv_sge == 0;
	sges = cap->max_send_sge * (uint32_t)sizeof(struct ibv_sge);
	room = sges > cap->max_inline_data ? sges : (cap->max_inline_data + 15) / 16 * 16;
	cap->max_inline_data = room > RNIC_MAX_INLINE ? RNIC_MAX_INLINE : room;
	qp->dest_off = (uint32_t)sizeof(struct send_wqe) + room;
	sges = qp->dest_off;
	if (qp->init.type == IBV_QPT_UD)
		sges += (uint32_t)(sizeof(struct ud_dest) + 7) / 8 * 8;
	if (ring_alloc(&qp->sq, cap->max_send_wr, sges) < 0)
		return -ENOMEM;
	if (qp->init.srq != NULL) {
		cap->max_recv_wr = cap->max_recv_sge = 0;
		qp->held = calloc(1, qp->init.srq->ring.stride);
	}
	room = cap->max_recv_sge * (uint32_t)sizeof(struct ibv_sge);
	if ((qp->init.srq != NULL && qp->held == NULL) ||
		ring_alloc(&qp->rq, cap->max_recv_wr > 0 ? cap->max_recv_wr : 1,
			(uint32_t)sizeof(struct recv_wqe) + room) < 0) {
		ring_free(&qp->sq);
		free(qp->held);
		return -ENOMEM;
	}
	return 0;
}

static void free_queues(struct rnic_qp *qp)
{
	ring_free(&qp->sq);
	ring_free(&qp->rq);
	free(qp->held);
	free(qp);
}

static void take_number(struct rnic *rnic, struct rnic_qp *qp)
{
	qp->slot = rnic->qp_free[rnic->qp_free_head];
	rnic->qp_free_head = (rnic->qp_free_head + 1) % rnic->max_qp;
	rnic->n_qp++;
	rnic->qp_generation[qp->slot] = (rnic->qp_generation[qp->slot] + 1) % rnic->qp_generations;
	qp->qpn = rnic->qp_generation[qp->slot] << rnic->qp_bits | (qp->slot + 2);
	workers_hold(rnic);
	rnic->qp[qp->slot] = qp;
	workers_let_go(rnic);
}

static struct rnic_qp *alloc_qp(const struct transport_ops *ops)
{
	const size_t align = _Alignof(struct rnic_qp);
	const size_t size = (sizeof(struct rnic_qp) + ops->state_size + align - 1) / align * align;
	struct rnic_qp *qp = aligned_alloc(align, size);

	if (qp == NULL)
		return NULL;
	memset(qp, 0, size);
	qp->ops = ops;
	return qp;
}

int rnic_qp_create(struct rnic *rnic, struct rnic_qp_init *init, struct rnic_qp **qp)
{
	struct rnic_qp *new;
	int err = check_init(rnic, init);

	if (err < 0)
		return err;
	if (rnic->n_qp == rnic->max_qp)
		return -ENOMEM;
	if (cq_give(init->send_cq, 0) < 0 || cq_give(init->recv_cq, init->worker) < 0)
		return -EINVAL;
	new = alloc_qp(transport_of(init));
	if (new == NULL)
		return -ENOMEM;
	new->init = *init;
	if (make_rings(new) < 0) {
		free(new);
		return -ENOMEM;
	}
	new->rnic = rnic;
	new->worker = (uint8_t)init->worker;
	rnic->n_pinned += init->worker != 0;
	/* UD's, until it has a port; connections are told theirs */
	new->mtu = roce_mtu_bytes(rnic->port[0].active_mtu);
	new->lane = new->ops->several_ports ? LANE_SEVERAL : 0;
	atomic_init(&new->state, IBV_QPS_RESET);
	timer_stop(&new->timer);
	new->ops->reset(new);
	if (new->ops->own_codec)
		atomic_fetch_or(&rnic->own_codecs, 1u << (new->ops->opcodes >> 5));
	take_number(rnic, new);
	init->pd->users++;
	init->send_cq->users++;
	init->recv_cq->users++;
	if (init->srq != NULL)
		init->srq->users++;
	init->cap = new->init.cap;
	*qp = new;
	return 0;
}

/* An acknowledgement that is due must leave though its QP goes: the peer's request was completed
 * here, and nobody will answer when it asks again. */
static void send_last_control(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;
	enum tx_control got = qp->en_control ? CONTROL_MORE : CONTROL_NONE;
	struct rnic_frame frame;

	for (unsigned i = 0; i < N_REPLIES && got == CONTROL_MORE; i++) {
		uint8_t *bytes;

		frame.stays = frame.unsealed = false;
		got = qp->ops->tx_control(qp, rnic->up, &frame, rnic->rx_at);
		bytes = got != CONTROL_NONE ? rnic_reply(rnic, frame.port) : NULL;
		if (bytes == NULL)
			return;
		rnic_reply_send(rnic, frame.port,
			rnic_frame_flatten(&frame, bytes, rnic->port[frame.port].reply_cap));
	}
}

/* Workers are held. */
void qp_reset(struct rnic_qp *qp)
{
	send_last_control(qp);
	sched_remove(qp);
	timer_stop(&qp->timer);
	atomic_store(&qp->state, IBV_QPS_RESET);
	ring_release(&qp->sq, ring_head(&qp->sq));
	ring_release(&qp->rq, ring_head(&qp->rq));
	cq_purge(qp->init.send_cq, qp->qpn);
	cq_purge(qp->init.recv_cq, qp->qpn);
	qp->ops->reset(qp);
	qp->holds = false;
	atomic_store_explicit(&qp->broken, false, memory_order_relaxed);
	qp->attr = (struct ibv_qp_attr){0};
}

int rnic_qp_destroy(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;

	workers_hold(rnic);
	qp_reset(qp);
	timer_remove(&rnic->timers, &qp->timer);
	rnic->qp[qp->slot] = NULL;
	rnic->qp_free[(rnic->qp_free_head + rnic->max_qp - rnic->n_qp) % rnic->max_qp] = qp->slot;
	rnic->n_qp--;
	qp->init.pd->users--;
	qp->init.send_cq->users--;
	qp->init.recv_cq->users--;
	if (qp->init.srq != NULL)
		qp->init.srq->users--;
	mcast_forget(qp);
	rnic->n_pinned -= qp->worker != 0;
	free_queues(qp);
	workers_let_go(rnic);
	return 0;
}

uint32_t rnic_qp_num(const struct rnic_qp *qp)
{
	return qp->qpn;
}

void *rnic_qp_user(const struct rnic_qp *qp)
{
	return qp->init.user;
}

struct rnic_qp *rnic_qp_find(const struct rnic *rnic, uint32_t qpn)
{
	uint32_t slot = (qpn & ((1u << rnic->qp_bits) - 1)) - 2;
	struct rnic_qp *qp = slot < rnic->max_qp ? rnic->qp[slot] : NULL;

	return qp != NULL && qp->qpn == qpn ? qp : NULL;
}

void qp_event(struct rnic_qp *qp, enum ibv_event_type type)
{
	const struct rnic_events *events = &qp->rnic->events;

	if (events->qp_event != NULL)
		events->qp_event(events->arg, qp, type);
}

static enum ibv_wc_opcode wc_opcode(uint8_t wr_opcode)
{
	switch (wr_opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

/* The place in the ring is given back before the completion shows: whoever sees the completion may
 * post at once, from another thread. */
void qp_complete_send(struct rnic_qp *qp, enum ibv_wc_status status)
{
	uint32_t tail = ring_tail(&qp->sq);
	const struct send_wqe *wqe = ring_at(&qp->sq, tail);
	bool report = wqe->signaled || status != IBV_WC_SUCCESS;
	struct ibv_wc wc = {.wr_id = wqe->wr_id,
		.status = status,
		.opcode = wc_opcode(wqe->opcode),
		.byte_len = wqe->len,
		.qp_num = qp->qpn,
		.src_qp = qp->attr.dest_qp_num};

	ring_release(&qp->sq, tail + 1);
	if (report)
		cq_push(qp->init.send_cq, &wc, false);
}

void qp_complete_recv(struct rnic_qp *qp, struct ibv_wc *wc, bool solicited)
{
	wc->wr_id = qp_recv(qp)->wr_id;
	wc->qp_num = qp->qpn;
	if (qp->ops->connected)
		wc->src_qp = qp->attr.dest_qp_num;
	if (qp->held != NULL)
		qp->holds = false;
	else
		ring_release_one(&qp->rq);
	cq_push(qp->init.recv_cq, wc, solicited);
}

bool qp_take_recv(struct rnic_qp *qp)
{
	if (qp->held == NULL)
		return ring_tail(&qp->rq) != ring_head(&qp->rq);
	if (!qp->holds)
		qp->holds = srq_take(qp->init.srq, qp->held);
	return qp->holds;
}

const struct recv_wqe *qp_next_recv(const struct rnic_qp *qp)
{
	if (qp->held != NULL)
		return qp->holds ? qp->held : srq_next(qp->init.srq);
	return ring_tail(&qp->rq) != ring_head(&qp->rq) ? qp_recv(qp) : NULL;
}

static void flush_send(struct rnic_qp *qp)
{
	qp->ops->fail(qp);
	while (ring_tail(&qp->sq) != ring_head(&qp->sq))
		qp_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
}

void qp_flush(struct rnic_qp *qp)
{
	flush_send(qp);
	if (qp->worker != 0)
		workers_hold(qp->rnic);
	while (qp->held != NULL ? qp->holds : ring_tail(&qp->rq) != ring_head(&qp->rq)) {
		struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV};

		qp_complete_recv(qp, &wc, false);
	}
	if (qp->worker != 0)
		workers_let_go(qp->rnic);
}

void qp_sq_error(struct rnic_qp *qp)
{
	atomic_store(&qp->state, IBV_QPS_SQE);
	flush_send(qp);
}

void qp_error(struct rnic_qp *qp)
{
	bool was = qp_state(qp) == IBV_QPS_ERR;

	if (qp->worker != 0)
		workers_hold(qp->rnic);
	atomic_store(&qp->state, IBV_QPS_ERR);
	atomic_store_explicit(&qp->broken, false, memory_order_relaxed);
	qp_flush(qp);
	if (qp->worker != 0)
		workers_let_go(qp->rnic);
	/* It takes no more from the SRQ. */
	if (qp->held != NULL && !was)
		qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void qp_break(struct rnic_qp *qp)
{
	atomic_store_explicit(&qp->broken, true, memory_order_relaxed);
	atomic_store_explicit(&qp->rnic->unsettled, true, memory_order_release);
}

/* ---- queries ---- */

void rnic_qp_query(
	const struct rnic_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp_state(qp);
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = qp->init.cap;
	qp->ops->query(qp, attr);
	*init = (struct ibv_qp_init_attr){
		.cap = qp->init.cap, .qp_type = qp->init.type, .sq_sig_all = qp->init.sq_sig_all};
}

int rnic_qp_skip(struct rnic_qp *qp, enum rnic_dir dir, uint32_t from, uint32_t count)
{
	enum ibv_qp_state state = qp_state(qp);

	if (count == 0 || count > RNIC_MAX_SKIP || from > 0xffffff)
		return -EINVAL;
	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD &&
		(state != IBV_QPS_RTR || dir == RNIC_SEND))
		return -EINVAL;
	return qp->ops->skip != NULL ? qp->ops->skip(qp, dir, from, count) : -EOPNOTSUPP;
}

int rnic_qp_refuse(struct rnic_qp *qp)
{
	if (qp->ops->refuse == NULL)
		return -EOPNOTSUPP;
	if (!qp_receives(qp))
		return -EINVAL;
	qp->ops->refuse(qp);
	return 0;
}

void rnic_qp_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats)
{
	*stats = (struct rnic_qp_stats){0};
	qp->ops->stats(qp, stats);
}

const char *rnic_qp_transport(const struct rnic_qp *qp)
{
	return qp->ops->name;
}

const char *rnic_qp_counter(const struct rnic_qp *qp, unsigned index, uint64_t *value)
{
	const struct transport_counter *c = qp->ops->counters;

	for (; c != NULL && c->name != NULL; c++) {
		if (index-- > 0)
			continue;
		memcpy(value, (const uint8_t *)transport_state(qp) + c->offset, sizeof(*value));
		return c->name;
	}
	return NULL;
}
