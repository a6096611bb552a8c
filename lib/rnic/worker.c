/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/transport.h"
#include "lib/wire/multicast.h"

enum {
	AHEAD = 3,        /* headers fetched so many frames before they are read */
	WAIT_SPINS = 200, /* of the owner, before it gives others the CPU */
};

int workers_alloc(struct rnic *rnic, unsigned n)
{
	if (n > RNIC_MAX_WORKERS)
		return -EINVAL;
	if (n == 0)
		return 0;
	rnic->worker = aligned_alloc(_Alignof(struct rnic_worker), n * sizeof(*rnic->worker));
	if (rnic->worker == NULL)
		return -ENOMEM;
	memset(rnic->worker, 0, n * sizeof(*rnic->worker));
	for (unsigned i = 0; i < n; i++)
		STAILQ_INIT(&rnic->worker[i].gather.unshown);
	rnic->n_workers = n;
	return 0;
}

void workers_free(struct rnic *rnic)
{
	free(rnic->worker);
}

struct cq_gather *worker_gather(struct rnic *rnic, unsigned worker)
{
	return worker == 0 ? &rnic->gather : &rnic->worker[worker - 1].gather;
}

int worker_check(
	const struct rnic *rnic, const struct rnic_qp_init *init, const struct transport_ops *ops)
{
	if (init->worker == 0)
		return 0;
	if (init->worker > rnic->n_workers || !ops->by_worker || init->srq != NULL ||
		init->send_cq == init->recv_cq)
		return -EINVAL;
	return 0;
}

unsigned rnic_n_workers(const struct rnic *rnic)
{
	return rnic->n_workers;
}

/* ---- owner and workers keep apart ---- */

/* Each says first what it does, and then looks at what the other does, sequentially consistent: so
 * at least one of them sees the other. A worker that does gives way. */

void workers_wait(struct rnic *rnic)
{
	atomic_store(&rnic->held, true);
	for (unsigned i = 0; i < rnic->n_workers; i++) {
		for (unsigned spins = 0; atomic_load(&rnic->worker[i].inside); spins++) {
			if (spins >= WAIT_SPINS)
				sched_yield();
		}
	}
}

void workers_resume(struct rnic *rnic)
{
	atomic_store_explicit(&rnic->held, false, memory_order_release);
}

static bool enter(struct rnic *rnic, struct rnic_worker *w)
{
	atomic_store(&w->inside, true);
	if (!atomic_load(&rnic->held))
		return true;
	atomic_store_explicit(&w->inside, false, memory_order_release);
	return false;
}

static void leave(struct rnic_worker *w)
{
	atomic_store_explicit(&w->inside, false, memory_order_release);
}

/* ---- counters ---- */

static void add(_Atomic uint64_t *counter, uint64_t n)
{
	const uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

static void count(struct rnic_worker *w, unsigned port, size_t len, unsigned drop)
{
	add(&w->count[RNIC_C_RX_FRAMES], 1);
	add(&w->count[RNIC_C_RX_BYTES], len);
	add(&w->port_count[port][RNIC_PORT_C_RX_FRAMES], 1);
	add(&w->port_count[port][RNIC_PORT_C_RX_BYTES], len);
	if (drop == 0) {
		add(&w->count[RNIC_C_RX_ACCEPTED], 1);
		return;
	}
	add(&w->port_count[port][RNIC_PORT_C_RX_DROPS], 1);
	add(&w->drop[drop], 1);
}

uint64_t workers_count(const struct rnic *rnic, enum rnic_counter c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rnic->n_workers; i++)
		sum += atomic_load_explicit(&rnic->worker[i].count[c], memory_order_relaxed);
	return sum;
}

uint64_t workers_drop(const struct rnic *rnic, unsigned drop)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rnic->n_workers; i++)
		sum += atomic_load_explicit(&rnic->worker[i].drop[drop], memory_order_relaxed);
	return sum;
}

uint64_t workers_port_count(const struct rnic *rnic, unsigned port, enum rnic_port_counter c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rnic->n_workers; i++)
		sum += atomic_load_explicit(
			&rnic->worker[i].port_count[port][c], memory_order_relaxed);
	return sum;
}

/* ---- frames ---- */

/* It was steered here when its queue pair was this worker's; that may have changed. */
unsigned worker_take(struct rnic *rnic, unsigned worker, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	struct rnic_qp *qp;

	if (pkt->kind != WIRE_ROCE)
		return RNIC_DROP_NOT_ROCE;
	if (wire_is_multicast(&pkt->dst))
		return mcast_rx(rnic, worker, port, frame, pkt, now);
	qp = rnic_qp_find(rnic, pkt->dqpn);
	return qp != NULL && qp->worker == worker ? qp_rx(qp, port, frame, pkt, now)
						  : RNIC_DROP_NO_QP;
}

static void take_one(struct rnic *rnic, unsigned worker, unsigned port,
	const struct rnic_rx_frame *frame, uint64_t now)
{
	const unsigned drop = rx_frame(rnic, worker, port, frame->data, frame->len, now);

	count(&rnic->worker[worker - 1], port, frame->len, drop);
}

bool rnic_worker_rx(struct rnic *rnic, unsigned worker, unsigned port,
	const struct rnic_rx_frame *frames, unsigned n, uint64_t now)
{
	struct rnic_worker *w = &rnic->worker[worker - 1];

	if (!enter(rnic, w))
		return false;
	cq_gather(&w->gather);
	for (unsigned i = 0; i < n; i++) {
		if (i + AHEAD < n) {
			__builtin_prefetch(frames[i + AHEAD].data);
			__builtin_prefetch(frames[i + AHEAD].data + 64);
		}
		take_one(rnic, worker, port, &frames[i], now);
	}
	cq_publish(&w->gather);
	leave(w);
	return true;
}
