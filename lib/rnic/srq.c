/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: a ring that the owner consumes on behalf of several QPs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/ring.h"
#include "lib/rnic/srq.h"
#include "lib/rnic/wqe.h"

int rnic_srq_create(
	struct rnic_pd *pd, struct ibv_srq_attr *attr, void *user, struct rnic_srq **srq)
{
	struct rnic *rnic = pd->rnic;
	uint32_t sges = attr->max_sge > 0 ? attr->max_sge : 1;
	struct rnic_srq *new;
	uint32_t wr;

	if (attr->max_wr == 0 || attr->max_wr > MAX_WR || attr->max_sge > RNIC_MAX_SGE)
		return -EINVAL;
	if (rnic->n_srq == rnic->max_qp)
		return -ENOMEM;
	wr = ring_depth(attr->max_wr);
	new = aligned_alloc(_Alignof(struct rnic_srq), sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	memset(new, 0, sizeof(*new));
	if (ring_alloc(&new->ring, wr,
		    (uint32_t)(sizeof(struct recv_wqe) + sges * sizeof(struct ibv_sge))) < 0) {
		free(new);
		return -ENOMEM;
	}
	new->pd = pd;
	new->user = user;
	attr->max_wr = new->max_wr = wr;
	attr->max_sge = new->max_sge = sges;
	pd->users++;
	LIST_INSERT_HEAD(&rnic->srqs, new, link);
	rnic->n_srq++;
	*srq = new;
	return 0;
}

int rnic_srq_destroy(struct rnic_srq *srq)
{
	if (srq->users > 0)
		return -EBUSY;
	srq->pd->users--;
	LIST_REMOVE(srq, link);
	srq->pd->rnic->n_srq--;
	ring_free(&srq->ring);
	free(srq);
	return 0;
}

static uint32_t posted(const struct rnic_srq *srq)
{
	return ring_head(&srq->ring) - ring_tail(&srq->ring);
}

/* Fewer are left than the limit that was asked for. */
static void check_limit(struct rnic_srq *srq)
{
	const struct rnic_events *events = &srq->pd->rnic->events;

	if (posted(srq) >= srq->limit)
		return;
	srq->limit = 0;
	if (events->srq_event != NULL)
		events->srq_event(events->arg, srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

int rnic_srq_modify(struct rnic_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	if (mask & IBV_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if ((mask & ~IBV_SRQ_LIMIT) || ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > srq->max_wr))
		return -EINVAL;
	if (mask & IBV_SRQ_LIMIT) {
		srq->limit = attr->srq_limit;
		check_limit(srq);
	}
	return 0;
}

void rnic_srq_query(const struct rnic_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = (struct ibv_srq_attr){srq->max_wr, srq->max_sge, srq->limit};
}

void *rnic_srq_user(const struct rnic_srq *srq)
{
	return srq->user;
}

int rnic_srq_post_recv(struct rnic_srq *srq, const struct ibv_recv_wr *wr)
{
	return recv_post(&srq->ring, srq->max_sge, wr);
}

const struct recv_wqe *srq_next(const struct rnic_srq *srq)
{
	const uint32_t tail = ring_tail(&srq->ring);

	return tail != ring_head(&srq->ring) ? ring_at(&srq->ring, tail) : NULL;
}

bool srq_take(struct rnic_srq *srq, struct recv_wqe *to)
{
	uint32_t tail = ring_tail(&srq->ring);

	if (tail == ring_head(&srq->ring))
		return false;
	memcpy(to, ring_at(&srq->ring, tail), srq->ring.stride);
	ring_release(&srq->ring, tail + 1);
	check_limit(srq);
	return true;
}
