/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/integration/tasks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LONG = 100000 }; /* elements: long enough to be interrupted */

static const uint64_t LIMIT_NS = 3600000000000;

/* ---- one ---- */

/* AllReduce and Barrier are all there is, and hosts name hosts. */
static bool by_ring(struct fabric *fab)
{
	return fab_ring(fab, 0) || fab->opts.rings > 1;
}

static void comms(struct fabric *fab, struct ccl_comm **comm)
{
	for (unsigned r = 0; r < fab->n; r++)
		comm[r] = fab_comm(fab, r);
}

static int start_ring(struct ccl_ring *ring, struct task *t, unsigned r)
{
	const void *send = t->send[r];
	void *recv = t->recv[r];

	switch (t->kind) {
	case CCL_ALLREDUCE:
		return ccl_ring_iallreduce(ring, send, recv, t->count, t->dtype, t->op, &t->req[r]);
	case CCL_REDUCE:
		return ccl_ring_ireduce(ring, send, r == t->root ? recv : NULL, t->count, t->dtype,
			t->op, t->root, &t->req[r]);
	case CCL_BROADCAST: /* in place */
		if (r == t->root)
			memcpy(recv, send, t->size);
		return ccl_ring_ibroadcast(ring, recv, t->size, t->root, &t->req[r]);
	case CCL_REDUCE_SCATTER:
		return ccl_ring_ireduce_scatter(
			ring, send, recv, t->count, t->dtype, t->op, &t->req[r]);
	case CCL_ALLGATHER:
		return ccl_ring_iallgather(ring, send, recv, t->size, &t->req[r]);
	default:
		return ccl_ring_ibarrier(ring, &t->req[r]);
	}
}

int fab_start(struct fabric *fab, struct task *t, unsigned r)
{
	struct ccl_ring *ring = fab_ring(fab, r);
	struct ccl_comm *comm[FAB_MAX_HOSTS];

	if (!ring) {
		comms(fab, comm);
		return task_start(t, comm, r);
	}
	return start_ring(ring, t, r);
}

void fab_start_all(struct fabric *fab, struct task *t)
{
	for (unsigned r = 0; r < fab->n; r++)
		assert_int_equal(fab_start(fab, t, r), 0);
}

bool fab_task_done(struct fabric *fab, const struct task *t)
{
	for (unsigned r = 0; r < fab->n; r++)
		if (fab_test(fab, r, t->req[r]) != 1)
			return false;
	return true;
}

static void register_task(struct fabric *fab, const struct task *t, bool on)
{
	struct ccl_comm *comm[FAB_MAX_HOSTS];

	if (!fab_ring(fab, 0)) {
		comms(fab, comm);
		assert_int_equal(task_register(t, comm, on), 0);
		return;
	}
	for (unsigned r = 0; t->registered && t->send_len && r < fab->n; r++)
		assert_int_equal(on ? ccl_ring_register(fab_ring(fab, r), t->send[r], t->send_len)
				    : ccl_ring_deregister(fab_ring(fab, r), t->send[r]),
			0);
}

static void check(struct fabric *fab, const struct task *t)
{
	char why[200];

	if (!task_right(t, why, sizeof(why)))
		fail_msg("%s; %s, seed %llu", why, fab->opts.tree.name,
			(unsigned long long)fab->opts.seed);
}

void fab_finish(struct fabric *fab, struct task *t)
{
	fab_must(fab, fab_wait(fab, t->req, LIMIT_NS));
	check(fab, t);
	task_free(t);
}

void fab_exact(
	struct fabric *fab, enum ccl_collective kind, uint64_t count, unsigned root, bool max)
{
	struct task t;

	task_make_exact(&t, &fab->rng, fab->n, kind, max ? REDUCE_MAX : REDUCE_SUM, count, root,
		max && kind == CCL_ALLREDUCE);
	fab_start_all(fab, &t);
	fab_finish(fab, &t);
}

/* ---- sequences ---- */

/* NetReduce: AllReduce, now and then a Barrier. */
static int any_kind(struct tasks *w)
{
	if (!by_ring(w->fab))
		return -1;
	return task_random(&w->rng, 6) == 0 ? CCL_BARRIER : CCL_ALLREDUCE;
}

void fab_batch(struct tasks *w, unsigned n, int kind)
{
	const unsigned n_ranks = w->fab->n;
	static struct task t[FAB_BATCH];

	for (unsigned i = 0; i < n; i++) {
		task_make(&t[i], &w->rng, n_ranks, kind < 0 ? any_kind(w) : kind, w->max_bytes);
		register_task(w->fab, &t[i], true);
	}
	for (unsigned r = 0; r < n_ranks; r++) {
		for (unsigned i = 0; i < n; i++)
			fab_must(w->fab, fab_start(w->fab, &t[i], r));
		if (task_random(&w->rng, 4) == 0)
			fab_run(w->fab, task_random(&w->rng, 3000000));
	}
	for (unsigned i = 0; i < n; i++)
		fab_must(w->fab, fab_wait(w->fab, t[i].req, LIMIT_NS));
	for (unsigned i = 0; i < n; i++) {
		check(w->fab, &t[i]);
		w->done++;
		register_task(w->fab, &t[i], false);
		task_free(&t[i]);
	}
}

void fab_sequence(struct tasks *w, const struct fab_faults *faults, unsigned n)
{
	printf("seed %llu: %s, %u collectives\n", (unsigned long long)w->fab->opts.seed,
		w->fab->opts.tree.name, n);
	for (int k = 0; k < CCL_N_COLLECTIVES; k++)
		if (!by_ring(w->fab) || k == CCL_ALLREDUCE || k == CCL_BARRIER)
			fab_batch(w, 1, k);
	fab_set_faults(w->fab, faults);
	while (w->done < n)
		fab_batch(w, 1 + task_random(&w->rng, FAB_BATCH), -1);
}

/* ---- links ---- */

static void set_link(struct fabric *fab, bool uplink, bool up)
{
	if (uplink)
		fab_set_uplink(fab, fab->opts.tree.n_switches - 1, up);
	else
		fab_set_host_link(fab, 1, up);
}

void fab_begin(struct fabric *fab, struct task *t, int kind)
{
	task_make_exact(t, &fab->rng, fab->n, (enum ccl_collective)kind, REDUCE_SUM, LONG,
		task_random(&fab->rng, fab->n), false);
	fab_start_all(fab, t);
	fab_run(fab, kind == CCL_BARRIER ? 1 : 15000);
	assert_false(fab_task_done(fab, t));
}

void fab_all_failed(struct fabric *fab, const struct task *t, unsigned but)
{
	const char *peer = by_ring(fab) ? "10.77.0." : "10.77.255."; /* a host's, a switch's */

	for (unsigned i = 0; i < 11; i++) /* whoever only waits must be asked */
		fab_run(fab, fab->opts.timeout_ns / 10);
	for (unsigned r = 0; r < fab->n; r++)
		if (r != but && fab_test(fab, r, t->req[r]) != 1 &&
			!strstr(fab_error(fab, r), peer))
			fail_msg("%s: rank %u: \"%s\"", ccl_collective_name(t->kind), r,
				fab_error(fab, r));
}

void fab_pull(struct fabric *fab, int kind, bool uplink, uint64_t down_ns, bool may_fail)
{
	struct task t;
	int rc;

	fab_begin(fab, &t, kind);
	set_link(fab, uplink, false);
	fab_run(fab, down_ns);
	assert_false(fab_task_done(fab, &t));
	set_link(fab, uplink, true);
	rc = fab_wait(fab, t.req, 10 * fab->opts.timeout_ns);
	if (rc != 0 && may_fail)
		fab_all_failed(fab, &t, fab->n);
	else
		fab_must(fab, rc);
	if (rc == 0)
		check(fab, &t);
	fab_destroy(fab); /* before the buffers: the device may still write to them */
	task_free(&t);
}
