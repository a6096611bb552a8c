/* SPDX-License-Identifier: BSD-3-Clause */
/* Which QP sends next. Posting threads ring a bell: one bit per QP, and one per 64 QPs above it.
 * The owner turns bells into entries of the ready list, which it serves round robin. A QP without
 * work is on no list and costs nothing. */
#include "lib/rnic/core.h"

void sched_ring_bell(struct rnic *rnic, uint32_t slot)
{
	uint32_t word = slot / 64;

	/* Release: who takes the bit sees what was posted before. The upper bit comes second, so
	 * that the owner, who takes it first, finds the lower one. */
	atomic_fetch_or_explicit(&rnic->bell[word], UINT64_C(1) << slot % 64, memory_order_release);
	atomic_fetch_or_explicit(
		&rnic->bell_sum[word / 64], UINT64_C(1) << word % 64, memory_order_release);
}

static void mark_left(struct rnic *rnic)
{
	if (!atomic_load_explicit(&rnic->left, memory_order_relaxed))
		atomic_store_explicit(&rnic->left, true, memory_order_relaxed);
}

void qp_ready(struct rnic_qp *qp)
{
	if (qp->en_ready)
		return;
	qp->en_ready = true;
	qp->quantum = QUANTUM;
	TAILQ_INSERT_TAIL(&qp->rnic->ready, qp, ready);
	mark_left(qp->rnic);
}

void qp_answer(struct rnic_qp *qp)
{
	if (qp->en_answer)
		return;
	qp->en_answer = true;
	TAILQ_INSERT_TAIL(&qp->rnic->answers, qp, answer);
	mark_left(qp->rnic);
}

void sched_remove(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;

	if (qp->en_ready)
		TAILQ_REMOVE(&rnic->ready, qp, ready);
	if (qp->en_answer)
		TAILQ_REMOVE(&rnic->answers, qp, answer);
	qp->en_ready = qp->en_answer = false;
}

static void collect_word(struct rnic *rnic, uint32_t word)
{
	uint64_t bits = atomic_exchange_explicit(&rnic->bell[word], 0, memory_order_acquire);

	while (bits != 0) {
		uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);

		bits &= bits - 1;
		if (rnic->qp[slot] != NULL)
			qp_ready(rnic->qp[slot]);
	}
}

void sched_collect(struct rnic *rnic)
{
	for (uint32_t i = 0; i < rnic->n_bell_sum; i++) {
		uint64_t words;

		if (atomic_load_explicit(&rnic->bell_sum[i], memory_order_relaxed) == 0)
			continue;
		words = atomic_exchange_explicit(&rnic->bell_sum[i], 0, memory_order_acquire);
		while (words != 0) {
			collect_word(rnic, i * 64 + (uint32_t)__builtin_ctzll(words));
			words &= words - 1;
		}
	}
}

bool rnic_has_work(const struct rnic *rnic)
{
	if (atomic_load_explicit(&rnic->left, memory_order_acquire))
		return true;
	for (uint32_t i = 0; i < rnic->n_bell_sum; i++) {
		if (atomic_load_explicit(&rnic->bell_sum[i], memory_order_acquire) != 0)
			return true;
	}
	return false;
}
