/* SPDX-License-Identifier: BSD-3-Clause */
/* Which QP sends next. Posting threads ring a bell: one bit per QP, one per 64 QPs above it, one
 * per 64 of these above it, all in one word. The owner turns bells into entries of the ready list,
 * which it serves round robin; each port has such a list, and so have those that use several ports,
 * so that a port without room holds up nobody else. A QP without work is on no list and costs
 * nothing, however many there are: the owner looks at one word, and at those below it that have
 * something new. */
#include "lib/rnic/scheduler.h"
#include "lib/rnic/cq.h"
#include "lib/rnic/device.h"
#include "lib/rnic/qp.h"

/* A bit that is there already stays: whoever takes it looks at the queues after that, and finds
 * what was posted before this look at it (the fence in sched_collect). So most posts
 * of a burst need no locked instruction. Sequentially consistent, as take_bits: a bit that was set
 * here in the word below is found by whoever takes the one that is seen here above it. The
 * publication of what was posted is sequentially consistent, too (ring_post): it needs no fence
 * before the look. */
static void set_bit(_Atomic uint64_t *word, uint32_t bit)
{
	const uint64_t mask = UINT64_C(1) << bit % 64;

	if (!(atomic_load(word) & mask))
		atomic_fetch_or(word, mask);
}

void sched_ring_bell(struct rnic *rnic, uint32_t slot)
{
	uint32_t word = slot / 64, sum = word / 64;

	/* From below: the owner, who takes the upper one first, finds the lower one. */
	set_bit(&rnic->bell[word], slot);
	set_bit(&rnic->bell_sum[sum], word);
	set_bit(&rnic->bell_top, sum);
}

static void mark_left(struct rnic *rnic)
{
	if (!atomic_load_explicit(&rnic->left, memory_order_relaxed))
		atomic_store_explicit(&rnic->left, true, memory_order_relaxed);
}

void qp_ready(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;

	qp->refused = 0;
	if (qp->en_ready)
		return;
	qp->en_ready = true;
	qp->quantum = rnic->quantum;
	TAILQ_INSERT_TAIL(&rnic->ready[qp->lane], qp, ready);
	rnic->has_ready |= 1u << qp->lane;
	mark_left(rnic);
}

void qp_has_control(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;

	qp->control_refused = 0;
	if (qp->en_control)
		return;
	qp->en_control = true;
	qp->budget = rnic->quantum;
	TAILQ_INSERT_TAIL(&rnic->controls[qp->lane], qp, control);
	rnic->has_controls |= 1u << qp->lane;
	mark_left(rnic);
}

void sched_unready(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;

	TAILQ_REMOVE(&rnic->ready[qp->lane], qp, ready);
	qp->en_ready = false;
	if (TAILQ_EMPTY(&rnic->ready[qp->lane]))
		rnic->has_ready &= ~(1u << qp->lane);
}

void sched_uncontrol(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;

	TAILQ_REMOVE(&rnic->controls[qp->lane], qp, control);
	qp->en_control = false;
	if (TAILQ_EMPTY(&rnic->controls[qp->lane]))
		rnic->has_controls &= ~(1u << qp->lane);
}

void sched_rotate_ready(struct rnic_qp *qp)
{
	struct qp_list *list = &qp->rnic->ready[qp->lane];

	TAILQ_REMOVE(list, qp, ready);
	TAILQ_INSERT_TAIL(list, qp, ready);
}

void sched_rotate_control(struct rnic_qp *qp)
{
	struct qp_list *list = &qp->rnic->controls[qp->lane];

	TAILQ_REMOVE(list, qp, control);
	TAILQ_INSERT_TAIL(list, qp, control);
}

void sched_remove(struct rnic_qp *qp)
{
	if (qp->en_ready)
		sched_unready(qp);
	if (qp->en_control)
		sched_uncontrol(qp);
}

void sched_move(struct rnic_qp *qp, unsigned lane)
{
	const bool ready = qp->en_ready, control = qp->en_control;

	if (lane == qp->lane)
		return;
	sched_remove(qp);
	qp->lane = (uint8_t)lane;
	if (ready)
		qp_ready(qp);
	if (control)
		qp_has_control(qp);
}

/* Takes the lowest bit out of *bits: its number. */
static uint32_t next_bit(uint64_t *bits)
{
	uint32_t bit = (uint32_t)__builtin_ctzll(*bits);

	*bits &= *bits - 1;
	return bit;
}

static uint64_t take_bits(struct rnic *rnic, _Atomic uint64_t *word)
{
	rnic->sched_steps++;
	return atomic_exchange(word, 0);
}

static void collect_word(struct rnic *rnic, uint32_t word)
{
	uint64_t bits = take_bits(rnic, &rnic->bell[word]);

	while (bits != 0) {
		uint32_t slot = word * 64 + next_bit(&bits);

		rnic->sched_steps++;
		if (rnic->qp[slot] != NULL)
			qp_ready(rnic->qp[slot]);
	}
}

void sched_collect(struct rnic *rnic)
{
	uint64_t sums;

	if (atomic_load_explicit(&rnic->bell_top, memory_order_relaxed) == 0)
		return;
	sums = take_bits(rnic, &rnic->bell_top);
	while (sums != 0) {
		uint32_t sum = next_bit(&sums);
		uint64_t words = take_bits(rnic, &rnic->bell_sum[sum]);

		while (words != 0)
			collect_word(rnic, sum * 64 + next_bit(&words));
	}
	atomic_thread_fence(memory_order_seq_cst);
}

bool rnic_rang(const struct rnic *rnic)
{
	return atomic_load_explicit(&rnic->bell_top, memory_order_acquire) != 0;
}

bool rnic_has_work(const struct rnic *rnic)
{
	return atomic_load_explicit(&rnic->left, memory_order_acquire) || rnic_rang(rnic) ||
	       cq_unsettled(rnic);
}
