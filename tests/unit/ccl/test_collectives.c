/* SPDX-License-Identifier: BSD-3-Clause */
/* The six collectives over imaginary verbs, in each kind of groups: random sequences against a
 * reference. Run with a seed as argument to repeat one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "tests/unit/ccl/fake_verbs.h"
#include "tests/unit/ccl/task.h"

enum { MAX_RANKS = 4, MTU = 256, M = 2, W = 4, MSG = MTU * M, BATCH = 12 };

static struct ccl_comm *comm[MAX_RANKS];
static unsigned n_ranks;
static uint64_t seed = 20262, rng;

static unsigned rnd(unsigned n)
{
	return task_random(&rng, n);
}

static void open_all(enum fake_kind kind, unsigned n, uint32_t max_packets)
{
	static const enum ccl_mode mode[] = {CCL_MODE_2, CCL_MODE_1, CCL_MODE_2, CCL_MODE_3};
	struct ccl_remote remote[2 * MAX_RANKS + 1];
	char err[CCL_ERR_LEN];

	n_ranks = n;
	fake_init(n, MTU, rng);
	fake_set_kind(kind);
	fake_window(W);
	for (unsigned g = 0; g < 2 * MAX_RANKS + 1; g++)
		remote[g] = (struct ccl_remote){0x1040 + g, 0xfffff0 + g * 1000};
	for (unsigned r = 0; r < n; r++) {
		const struct ccl_conn conn = {
			.context = fake_context(r),
			.gid_index = 1,
			.rank = r,
			.n_ranks = n,
			.m = M,
			.w = W,
			.mode = mode[kind],
			.kind = kind == FAKE_SINGLE ? CCL_SINGLE : CCL_MIXED,
			.collectives = CCL_ALL_COLLECTIVES,
			.skip = kind == FAKE_SINGLE || kind == FAKE_MODE1 ? NULL : fake_skip,
			.timeout_ns = 100000000,
			.max_packets = max_packets,
			.mtu = MTU,
			.remote_ip = wire_ip_from4(0x0a4dff01),
			.remote = remote,
		};

		assert_int_equal(ccl_comm_create_connected(&conn, &comm[r], err), 0);
	}
}

static void close_all(void)
{
	for (unsigned r = 0; r < n_ranks; r++)
		ccl_comm_destroy(comm[r]);
	assert_int_equal(fake_rnr(), 0);
	fake_fini();
}

/* Runs ranks and network in turn until all have finished. */
static void run(struct task *t, unsigned n)
{
	for (unsigned turn = 0; turn < 1000000; turn++) {
		unsigned done = 0;

		fake_step();
		if (ccl_progress(comm[turn % n_ranks], 1) < 0)
			fail_msg("%s", ccl_error(comm[turn % n_ranks]));
		for (unsigned i = 0; i < n; i++)
			done += task_done(&t[i], comm);
		if (done == n)
			return;
	}
	fail_msg("no end, seed %llu: %s", (unsigned long long)seed, ccl_collective_name(t[0].kind));
}

static void batch(unsigned n, int kind)
{
	struct task t[BATCH];
	char why[200];

	for (unsigned i = 0; i < n; i++) {
		task_make(&t[i], &rng, n_ranks, kind, (W + 3) * MSG);
		assert_int_equal(task_register(&t[i], comm, true), 0);
	}
	/* Ranks are ahead of one another by any number of collectives. */
	for (unsigned next[MAX_RANKS] = {0}, left = n * n_ranks; left;) {
		const unsigned r = rnd(n_ranks);

		if (next[r] == n)
			continue;
		assert_int_equal(task_start(&t[next[r]++], comm, r), 0);
		left--;
		for (unsigned k = rnd(4); k > 0; k--) {
			fake_step();
			assert_true(ccl_progress(comm[rnd(n_ranks)], 1) >= 0);
		}
	}
	run(t, n);
	for (unsigned i = 0; i < n; i++) {
		if (!task_right(&t[i], why, sizeof(why)))
			fail_msg("%s, seed %llu", why, (unsigned long long)seed);
		task_register(&t[i], comm, false);
		task_free(&t[i]);
	}
}

/* ---- tests ---- */

static void sequences(enum fake_kind kind)
{
	rng = seed + kind;
	for (unsigned round = 0; round < 6; round++) {
		open_all(kind, round == 5 ? 1 : 2 + round % 3, round == 1 ? 4 : 0);
		for (unsigned i = 0; i < CCL_N_COLLECTIVES; i++)
			batch(1, (int)i);
		for (unsigned i = 0; i < 12; i++)
			batch(1 + rnd(BATCH), -1);
		close_all();
	}
}

static void single(void **state)
{
	(void)state;
	sequences(FAKE_SINGLE);
}

static void mixed_mode1(void **state)
{
	(void)state;
	sequences(FAKE_MODE1);
}

static void mixed_mode2(void **state)
{
	(void)state;
	sequences(FAKE_MODE2);
}

static void mixed_mode3(void **state)
{
	(void)state;
	sequences(FAKE_MODE3);
}

/* In groups of their own ReduceScatter and AllGather go on side by side: a short one that was
 * issued later is done before a long one. */
static void side_by_side(void **state)
{
	enum { COUNT = 400 * MSG / 4, SHORT = MSG / 4 };
	static int32_t in[MAX_RANKS][MAX_RANKS * COUNT], out[MAX_RANKS][COUNT],
		all[MAX_RANKS][MAX_RANKS * SHORT];
	struct ccl_req rs[MAX_RANKS], ag[MAX_RANKS];
	struct ccl_info info;
	unsigned done = 0;

	(void)state;
	rng = seed;
	open_all(FAKE_SINGLE, 3, 0);
	ccl_query(comm[0], &info);
	assert_int_equal(info.n_groups, 7);
	assert_int_equal(info.kind, CCL_SINGLE);
	for (unsigned r = 0; r < 3; r++) {
		assert_int_equal(ccl_ireduce_scatter(comm[r], in[r], out[r], COUNT, REDUCE_INT32,
					 REDUCE_SUM, &rs[r]),
			0);
		assert_int_equal(
			ccl_iallgather(comm[r], in[r], all[r], SHORT, REDUCE_INT32, &ag[r]), 0);
	}
	for (unsigned turn = 0; done < 3; turn++) {
		assert_true(turn < 100000);
		fake_step();
		assert_true(ccl_progress(comm[turn % 3], 1) >= 0);
		done = 0;
		for (unsigned r = 0; r < 3; r++)
			done += ccl_test(comm[r], ag[r]) == 1;
	}
	for (unsigned r = 0; r < 3; r++)
		assert_int_equal(ccl_test(comm[r], rs[r]), 0);
	close_all();
}

static void bad_arguments(void **state)
{
	int32_t x[64] = {0}, y[64] = {0};
	struct ccl_req req;

	(void)state;
	rng = seed;
	open_all(FAKE_SINGLE, 4, 0);
	assert_int_equal(ccl_ireduce(comm[0], x, y, 8, REDUCE_INT32, REDUCE_SUM, 4, &req), -EINVAL);
	assert_int_equal(ccl_ibroadcast(comm[0], x, y, 8, REDUCE_INT32, 4, &req), -EINVAL);
	assert_int_equal(
		ccl_ireduce(comm[0], x, NULL, 8, REDUCE_INT32, REDUCE_SUM, 0, &req), -EINVAL);
	assert_int_equal(ccl_ibroadcast(comm[0], NULL, y, 8, REDUCE_INT32, 0, &req), -EINVAL);
	assert_int_equal(ccl_ibroadcast(comm[1], x, NULL, 8, REDUCE_INT32, 0, &req), -EINVAL);
	/* Overlaps: only the own block is in place. */
	assert_int_equal(
		ccl_ireduce_scatter(comm[1], x, x, 8, REDUCE_INT32, REDUCE_SUM, &req), -EINVAL);
	assert_int_equal(ccl_iallgather(comm[1], x, x, 8, REDUCE_INT32, &req), -EINVAL);
	assert_int_equal(ccl_ibroadcast(comm[0], x, x + 1, 8, REDUCE_INT32, 0, &req), -EINVAL);
	assert_int_equal(
		ccl_ireduce(comm[0], x, y, 8, REDUCE_BYTES, REDUCE_SUM, 0, &req), -EOPNOTSUPP);
	assert_int_equal(
		ccl_ireduce(comm[0], x, y, 8, REDUCE_INT32, REDUCE_NONE, 0, &req), -EOPNOTSUPP);
	assert_int_equal(
		ccl_ibroadcast(comm[0], x, y, 8, (enum reduce_dtype)12, 0, &req), -EOPNOTSUPP);
	assert_int_equal(
		ccl_iallgather(comm[0], x, y, UINT64_MAX / 4, REDUCE_INT32, &req), -EINVAL);
	assert_int_equal(fake_sends(0), 0);
	close_all();
}

/* Who calls something else than the others is found out by those who receive its messages. */
static void disagreement(void **state)
{
	int32_t x[8] = {0}, y[8] = {0};
	struct ccl_req req;
	int rc = 0;

	(void)state;
	rng = seed;
	open_all(FAKE_SINGLE, 2, 0);
	assert_int_equal(ccl_ibroadcast(comm[0], x, y, 8, REDUCE_INT32, 0, &req), 0);
	assert_int_equal(ccl_ibroadcast(comm[1], x, y, 8, REDUCE_FP32, 0, &req), 0);
	for (unsigned turn = 0; turn < 1000 && rc >= 0; turn++) {
		fake_step();
		ccl_progress(comm[0], 1);
		rc = ccl_progress(comm[1], 1);
	}
	assert_int_equal(rc, -EPROTO);
	assert_non_null(strstr(ccl_error(comm[1]), "the ranks disagree on operation 0: other tag"));
	close_all();
}

/* A mixed group is refused where PSNs cannot be left out. */
static void needs_skip(void **state)
{
	struct ccl_conn conn = {.n_ranks = 2, .m = M, .w = W, .mtu = MTU, .kind = CCL_MIXED};
	struct ccl_comm *c;
	char err[CCL_ERR_LEN];

	(void)state;
	fake_init(2, MTU, 0);
	conn.context = fake_context(0);
	assert_int_equal(ccl_comm_open(&conn, &c, err), -EOPNOTSUPP);
	assert_non_null(strstr(err, "fake0 cannot leave out PSNs"));
	fake_can_skip(0, true); /* found in the process by name */
	assert_int_equal(ccl_comm_open(&conn, &c, err), 0);
	ccl_comm_destroy(c);
	fake_can_skip(0, false);
	conn.mode = CCL_MODE_1;
	assert_int_equal(ccl_comm_open(&conn, &c, err), 0);
	ccl_comm_destroy(c);
	conn.mode = (enum ccl_mode)9;
	assert_int_equal(ccl_comm_open(&conn, &c, err), -EINVAL);
	fake_fini();
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(ccl_collective_name(CCL_REDUCE_SCATTER), "reduce_scatter");
	assert_string_equal(ccl_collective_name((enum ccl_collective)99), "?");
	for (int i = 0; i < CCL_N_COLLECTIVES; i++)
		assert_int_equal(ccl_collective_parse(ccl_collective_name(i)), i);
	assert_int_equal(ccl_collective_parse("alltoall"), -EINVAL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single),
		cmocka_unit_test(mixed_mode1),
		cmocka_unit_test(mixed_mode2),
		cmocka_unit_test(mixed_mode3),
		cmocka_unit_test(side_by_side),
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(disagreement),
		cmocka_unit_test(needs_skip),
		cmocka_unit_test(names),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
