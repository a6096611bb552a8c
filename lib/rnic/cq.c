/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: the owner, or a worker, produces, one thread at a time consumes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/device.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/ring.h"
#include "lib/rnic/worker.h"

int rnic_cq_create(struct rnic *rnic, unsigned depth, void *user, struct rnic_cq **cq)
{
	struct rnic_cq *new;

	if (depth == 0 || depth > MAX_CQE)
		return -EINVAL;
	if (rnic->n_cq == rnic->max_cq)
		return -ENOMEM;
	new = aligned_alloc(_Alignof(struct rnic_cq), sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	memset(new, 0, sizeof(*new));
	if (ring_alloc(&new->ring, ring_depth(depth), sizeof(struct cqe)) < 0) {
		free(new);
		return -ENOMEM;
	}
	new->rnic = rnic;
	new->user = user;
	new->gather = &rnic->gather;
	LIST_INSERT_HEAD(&rnic->cqs, new, link);
	rnic->n_cq++;
	*cq = new;
	return 0;
}

int rnic_cq_destroy(struct rnic_cq *cq)
{
	if (cq->users > 0)
		return -EBUSY;
	LIST_REMOVE(cq, link);
	cq->rnic->n_cq--;
	ring_free(&cq->ring);
	free(cq);
	return 0;
}

static int resize(struct rnic_cq *cq, unsigned depth)
{
	uint32_t head = ring_head(&cq->ring), tail = ring_tail(&cq->ring);
	struct ring new;

	while (tail != head && !((struct cqe *)ring_at(&cq->ring, tail))->valid)
		tail++;
	if (depth == 0 || depth > MAX_CQE || head - tail > depth || cq_is_dead(cq))
		return -EINVAL;
	if (ring_alloc(&new, ring_depth(depth), sizeof(struct cqe)) < 0)
		return -ENOMEM;
	/* Indices go on, so that only places change. */
	for (uint32_t i = tail; i != head; i++)
		memcpy(ring_at(&new, i), ring_at(&cq->ring, i), sizeof(struct cqe));
	ring_free(&cq->ring);
	cq->ring.mem = new.mem;
	cq->ring.mask = new.mask;
	ring_release(&cq->ring, tail);
	return 0;
}

int rnic_cq_resize(struct rnic_cq *cq, unsigned depth)
{
	int err;

	workers_hold(cq->rnic);
	err = resize(cq, depth);
	workers_let_go(cq->rnic);
	return err;
}

unsigned rnic_cq_depth(const struct rnic_cq *cq)
{
	return cq->ring.mask + 1;
}

void *rnic_cq_user(const struct rnic_cq *cq)
{
	return cq->user;
}

int rnic_cq_poll(struct rnic_cq *cq, int n, struct ibv_wc *wc)
{
	/* Before the head: nothing is added to a dead one, so that this is all there ever was. */
	const bool dead = cq_is_dead(cq);
	uint32_t head = ring_head(&cq->ring), tail = ring_tail(&cq->ring);
	int found = 0;

	while (found < n && tail != head) {
		const struct cqe *cqe = ring_at(&cq->ring, tail++);

		if (atomic_load_explicit(&cqe->valid, memory_order_relaxed))
			wc[found++] = cqe->wc;
	}
	ring_release(&cq->ring, tail);
	return found == 0 && dead && n > 0 ? -EOVERFLOW : found;
}

void rnic_cq_arm(struct rnic_cq *cq, bool solicited_only)
{
	int disarmed = CQ_DISARMED;

	/* Sequentially consistent, as the producer's publication and its look at `armed`: a
	 * completion that this thread does not see by polling after arming raises the event. */
	if (solicited_only)
		atomic_compare_exchange_strong(&cq->armed, &disarmed, CQ_ARM_SOLICITED);
	else
		atomic_store(&cq->armed, CQ_ARM_ANY);
}

bool cq_is_dead(const struct rnic_cq *cq)
{
	return atomic_load_explicit(&cq->overrun, memory_order_acquire);
}

void cq_settle(struct rnic *rnic)
{
	/* flushing may overrun another one */
	while (atomic_exchange_explicit(&rnic->unsettled, false, memory_order_acquire)) {
		for (uint32_t i = 0; i < rnic->max_qp; i++) {
			struct rnic_qp *qp = rnic->qp[i];
			bool dead;

			if (qp == NULL || qp_state(qp) == IBV_QPS_RESET ||
				qp_state(qp) == IBV_QPS_ERR)
				continue;
			dead = cq_is_dead(qp->init.send_cq) || cq_is_dead(qp->init.recv_cq);
			if (dead || qp_is_broken(qp))
				qp_error(qp);
			if (dead)
				qp_event(qp, IBV_EVENT_QP_FATAL);
		}
	}
}

int cq_give(struct rnic_cq *cq, unsigned worker)
{
	if (cq->users > 0)
		return cq->worker == worker ? 0 : -EINVAL;
	cq->worker = worker;
	cq->gather = worker_gather(cq->rnic, worker);
	return 0;
}

/* What was gathered shows. */
static void show(struct rnic_cq *cq)
{
	const struct rnic_events *events = &cq->rnic->events;
	const bool wakes = cq->wakes;
	int armed;

	ring_post_all(&cq->ring, cq->unshown);
	cq->unshown = 0;
	cq->wakes = false;
	armed = atomic_load(&cq->armed);
	if (armed == CQ_DISARMED || (armed == CQ_ARM_SOLICITED && !wakes))
		return;
	atomic_store(&cq->armed, CQ_DISARMED);
	if (events->cq_event != NULL)
		events->cq_event(events->arg, cq);
}

/* A dead one shows nothing new: what came before is published, then it dies, and whoever waits for
 * it wakes up. */
static void overrun(struct rnic_cq *cq)
{
	struct rnic *rnic = cq->rnic;

	if (cq->unshown > 0)
		STAILQ_REMOVE(&cq->gather->unshown, cq, rnic_cq, unshown_link);
	ring_post_all(&cq->ring, cq->unshown);
	cq->unshown = 0;
	atomic_store_explicit(&cq->overrun, true, memory_order_release);
	atomic_store_explicit(&rnic->unsettled, true, memory_order_release);
	if (rnic->events.cq_error != NULL)
		rnic->events.cq_error(rnic->events.arg, cq);
	cq->wakes = true;
	show(cq);
}

void cq_publish(struct cq_gather *gather)
{
	struct rnic_cq *cq;

	gather->on = false;
	while ((cq = STAILQ_FIRST(&gather->unshown)) != NULL) {
		STAILQ_REMOVE_HEAD(&gather->unshown, unshown_link);
		show(cq);
	}
}

void cq_push(struct rnic_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	struct cq_gather *gather = cq->gather;
	struct cqe *cqe;

	if (atomic_load_explicit(&cq->overrun, memory_order_relaxed))
		return;
	cqe = ring_claim_behind(&cq->ring, cq->unshown);
	if (cqe == NULL) {
		overrun(cq);
		return;
	}
	cqe->wc = *wc;
	atomic_store_explicit(&cqe->valid, true, memory_order_relaxed);
	cq->wakes |= solicited || wc->status != IBV_WC_SUCCESS;
	if (!gather->on) {
		cq->unshown = 1;
		show(cq);
	} else if (cq->unshown++ == 0) {
		STAILQ_INSERT_TAIL(&gather->unshown, cq, unshown_link);
	}
}

void cq_purge(struct rnic_cq *cq, uint32_t qpn)
{
	uint32_t head = ring_head(&cq->ring);

	/* Entries that the consumer takes meanwhile are only marked in vain: no new ones are
	 * written before this returns. */
	for (uint32_t i = head - cq->ring.mask - 1; i != head; i++) {
		struct cqe *cqe = ring_at(&cq->ring, i);

		if (cqe->wc.qp_num == qpn)
			atomic_store_explicit(&cqe->valid, false, memory_order_relaxed);
	}
}
