/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of the host ring on virtual time, over links that lose, duplicate, reorder and
 * corrupt. Run with a seed as argument to repeat a run. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/integration/tasks.h"

static const uint64_t second = 1000000000;
static uint64_t seed = 20262;

static const struct fab_faults bad_weather = {
	.loss = 0.01, .dup = 0.01, .reorder = 0.01, .corrupt = 0.002};

static struct fab_opts options(unsigned n_hosts)
{
	return (struct fab_opts){
		.tree = fab_leaves(n_hosts, 0),
		.mode = CCL_MODE_RING,
		.mtu = 256,
		.m = 4,
		.w = 4,
		.start_psn = 0xfffff0,
		.seed = seed,
		.timeout_ns = 20 * second,
	};
}

static const uint64_t counts[] = {0, 1, 2, 5, 255, 256, 257, 1023, 1024, 1025, 5000};

static void test_sizes(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 5; n++) {
		struct fab_opts opts = options(n);
		struct fabric *f = fab_create(&opts);

		for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			for (int k = 0; k < CCL_N_COLLECTIVES; k++)
				fab_exact(f, (enum ccl_collective)k, counts[i],
					(i + (unsigned)k) % n, false);
			fab_exact(f, CCL_ALLREDUCE, counts[i], 0, true);
		}
		fab_destroy(f);
	}
}

/* Any collective after any other, on links in bad weather. */
static void lossy(unsigned n, uint16_t m, uint16_t w, unsigned rounds)
{
	struct fab_opts opts = options(n);
	struct fabric *f;

	opts.faults = bad_weather;
	opts.m = m;
	opts.w = w;
	f = fab_create(&opts);
	for (unsigned i = 0; i < rounds; i++) {
		const uint64_t count = sim_random(&f->rng) % 4000;
		const unsigned root = (unsigned)(sim_random(&f->rng) % n);

		fab_exact(f, (enum ccl_collective)(sim_random(&f->rng) % CCL_N_COLLECTIVES), count,
			root, i % 2);
	}
	for (unsigned r = 0; r < n; r++)
		assert_true(rnic_count(fab_rnic(f, r), RNIC_C_RETRANSMITS) > 0);
	fab_destroy(f);
}

static void test_lossy(void **state)
{
	(void)state;
	lossy(4, 4, 4, 60);
	lossy(3, 1, 1, 20);
	lossy(7, 2, 5, 20);
}

/* Many issued at once: they finish in order and each is right. */
static void test_queued(void **state)
{
	enum { OPS = 20 };
	struct fab_opts opts = options(3);
	static struct task t[OPS];
	struct fabric *f;

	(void)state;
	opts.faults = bad_weather;
	f = fab_create(&opts);
	for (unsigned op = 0; op < OPS; op++) {
		task_make_exact(&t[op], &f->rng, 3, CCL_ALLREDUCE, REDUCE_SUM, 300, 0, true);
		fab_start_all(f, &t[op]);
	}
	fab_must(f, fab_wait(f, t[OPS - 1].req, 60 * second));
	for (unsigned op = 0; op < OPS; op++) {
		assert_true(fab_task_done(f, &t[op]));
		fab_finish(f, &t[op]);
	}
	fab_destroy(f);
}

/* A rank that calls late holds its neighbour's slots full, but nothing is written over. */
static void test_late_rank(void **state)
{
	struct fab_opts opts = options(3);
	struct fabric *f = fab_create(&opts);
	struct task t;

	(void)state;
	task_make_exact(&t, &f->rng, 3, CCL_BROADCAST, REDUCE_SUM, 20000, 0, false);
	assert_int_equal(fab_start(f, &t, 0), 0);
	assert_int_equal(fab_start(f, &t, 2), 0);
	fab_run(f, second);
	assert_int_equal(fab_start(f, &t, 1), 0);
	fab_finish(f, &t);
	fab_destroy(f);
}

/* Sent from registered memory, and refused arguments. */
static void test_arguments(void **state)
{
	static int32_t a[4000], b[4000];
	struct fab_opts opts = options(2);
	struct fabric *f = fab_create(&opts);
	struct ccl_ring *r = fab_ring(f, 0);
	struct ccl_ring_info info;
	struct ccl_req req;

	(void)state;
	assert_int_equal(ccl_ring_register(r, a, sizeof(a)), 0);
	assert_int_equal(ccl_ring_register(r, a + 1, 8), -EEXIST);
	assert_int_equal(ccl_ring_deregister(r, b), -ENOENT);
	assert_int_equal(
		ccl_ring_iallreduce(r, a, a + 1, 10, REDUCE_INT32, REDUCE_SUM, &req), -EINVAL);
	assert_int_equal(
		ccl_ring_iallreduce(r, a, b, 10, REDUCE_INT32, REDUCE_NONE, &req), -EOPNOTSUPP);
	assert_int_equal(ccl_ring_ibroadcast(r, a, 10, 2, &req), -EINVAL);
	assert_int_equal(ccl_ring_ireduce(r, a, b, 10, REDUCE_INT32, REDUCE_SUM, 2, &req), -EINVAL);
	assert_int_equal(ccl_ring_test(r, (struct ccl_req){0}), -EINVAL);
	assert_int_equal(ccl_ring_iallgather(r, b + 4000 - 20, b + 100, 40, &req), 0);
	assert_int_equal(ccl_ring_register(r, b, 400), 0);
	assert_int_equal(ccl_ring_deregister(r, b), 0); /* ends where its result begins */
	assert_int_equal(ccl_ring_register(r, b + 119, 4), 0);
	assert_int_equal(ccl_ring_deregister(r, b + 119), -EBUSY);
	assert_int_equal(
		ccl_ring_iallgather(fab_ring(f, 1), a, a + 100, 40, &(struct ccl_req){0}), 0);
	fab_must(f, fab_wait(f, (const struct ccl_req[]){req, {0}}, second));
	assert_int_equal(ccl_ring_deregister(r, b + 119), 0);
	fab_exact(f, CCL_ALLREDUCE, 4000, 0, true);
	ccl_ring_query(r, &info);
	assert_true(info.staged_sends > 0);
	assert_int_equal(ccl_ring_deregister(r, a), 0);
	fab_destroy(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_lossy),
		cmocka_unit_test(test_queued),
		cmocka_unit_test(test_late_rank),
		cmocka_unit_test(test_arguments),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
