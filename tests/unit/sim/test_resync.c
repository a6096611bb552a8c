/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixed groups of hosts that leave no PSNs out: any collectives in a row, over links that lose,
 * with the switches' agents and CommLib as they are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/sim/coll.h"

static const struct sim_link_conf clean = {.mbps = 100000, .delay_ns = 1000};
static const struct sim_link_conf faulty = {.mbps = 100000,
	.delay_ns = 1000,
	.loss = 0.01,
	.dup = 0.01,
	.reorder = 0.01,
	.corrupt = 0.005};

static const uint64_t LIMIT_NS = 120000000000;

/* Operations before which queue pairs begin anew: those behind a Reduce or Broadcast with data, and
 * ReduceScatter and AllGather are one per rank. */
static unsigned times(const struct sim_work *work, unsigned n_work, unsigned n_ranks)
{
	unsigned n = 0, last = 0;

	for (unsigned i = 0; i < n_work; i++) {
		const enum ccl_collective op = work[i].op;
		const unsigned blocks =
			op == CCL_REDUCE_SCATTER || op == CCL_ALLGATHER ? n_ranks : 1;

		last = op != CCL_ALLREDUCE && op != CCL_BARRIER && work[i].bytes > 0;
		n += last * blocks;
	}
	return n - last; /* nothing follows the last one */
}

static void expect_times(struct sim_coll *coll, unsigned n, unsigned n_ranks)
{
	char text[80];

	snprintf(text, sizeof(text), "; queue pairs begun anew %u times", n);
	for (unsigned r = 0; r < n_ranks; r++) {
		struct ccl_info info;

		ccl_query(sim_coll_comm(coll, r), &info);
		if (!strstr(info.selection, text))
			fail_msg(
				"rank %u: \"%s\" does not contain \"%s\"", r, info.selection, text);
	}
}

static bool done(void *coll)
{
	return sim_coll_done(coll, NULL);
}

struct world {
	struct sim_topo topo;
	struct sim_conf conf;
	struct sim_coll_conf group;
	struct sim_coll *coll;
};

static void open_world(struct world *w, const char *topology, enum ccl_mode mode, uint16_t flags,
	const struct sim_link_conf *link, uint64_t seed)
{
	char err[CCL_ERR_LEN];

	w->conf = (struct sim_conf){.topo = &w->topo, .link = *link, .seed = seed};
	w->group = (struct sim_coll_conf){.mode = mode,
		.kind = CCL_MIXED,
		.resync = true,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.flags = INC_F_LATE_FLUSH | flags,
		.start_psn = 0xffffc0};
	assert_int_equal(sim_topo_make(topology, &w->topo, err), 0);
	assert_int_equal(sim_create(&w->conf, &w->group.sim, err), 0);
	w->group.n_ranks = w->topo.n_hosts;
	assert_int_equal(sim_coll_create(&w->group, &w->coll, err), 0);
}

static void close_world(struct world *w)
{
	sim_coll_destroy(w->coll);
	sim_destroy(w->group.sim);
	sim_topo_free(&w->topo);
}

static void run(const char *topology, enum ccl_mode mode, uint16_t flags,
	const struct sim_work *work, unsigned n_work, const struct sim_link_conf *link,
	uint64_t seed)
{
	struct world w;
	int rc;

	open_world(&w, topology, mode, flags, link, seed);
	for (unsigned i = 0; i < n_work; i++)
		assert_int_equal(sim_coll_issue(w.coll, &work[i], 100000), 0);
	rc = sim_run(w.group.sim, done, w.coll, LIMIT_NS);
	if (rc)
		fail_msg("%s, mode %u, seed %llu: %d, %s", topology, mode, (unsigned long long)seed,
			rc, sim_coll_error(w.coll));
	expect_times(w.coll, times(work, n_work, w.topo.n_hosts), w.topo.n_hosts);
	assert_int_equal(sim_coll_check(w.coll), 0);
	close_world(&w);
}

static const struct sim_work all[] = {
	{CCL_ALLREDUCE, 0, 20000},
	{CCL_REDUCE, 1, 6000},
	{CCL_REDUCE, 1, 300},
	{CCL_BARRIER, 0, 0},
	{CCL_ALLREDUCE, 0, 5000},
	{CCL_BROADCAST, 2, 9000},
	{CCL_ALLREDUCE, 0, 12000},
	{CCL_REDUCE, 0, 0},
	{CCL_BROADCAST, 0, 20},
	{CCL_REDUCE_SCATTER, 0, 8000},
	{CCL_ALLGATHER, 0, 8000},
	{CCL_BROADCAST, 1, 700},
};
enum { N_ALL = sizeof(all) / sizeof(all[0]) };

static void test_in_a_row(void **state)
{
	(void)state;
	for (unsigned mode = CCL_MODE_2; mode <= CCL_MODE_3; mode++) {
		run("star:3", (enum ccl_mode)mode, INC_F_STALL_RNR, all, N_ALL, &clean, 1);
		run("tree:2x2", (enum ccl_mode)mode, INC_F_STALL_RNR, all, N_ALL, &clean, 1);
		run("tree:2x2", (enum ccl_mode)mode, INC_F_STALL_RNR | INC_F_WRITE, all, N_ALL,
			&clean, 1);
	}
}

/* Nothing but AllReduce and Barrier: nothing begins anew. */
static void test_symmetrical(void **state)
{
	static const struct sim_work same[] = {
		{CCL_ALLREDUCE, 0, 20000}, {CCL_BARRIER, 0, 0}, {CCL_ALLREDUCE, 0, 5000}};

	(void)state;
	run("star:4", CCL_MODE_2, INC_F_STALL_RNR, same, 3, &clean, 1);
	run("star:4", CCL_MODE_3, INC_F_STALL_RNR, same, 3, &faulty, 1);
}

static void test_faulty(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		for (unsigned mode = CCL_MODE_2; mode <= CCL_MODE_3; mode++) {
			run("star:3", (enum ccl_mode)mode, INC_F_STALL_RNR, all, N_ALL, &faulty,
				seed);
			run("tree:2x2", (enum ccl_mode)mode, seed % 2 ? INC_F_STALL_RNR : 0, all,
				N_ALL, &faulty, seed);
		}
}

/* A switch says no: everybody hears it from rank 0. */
static void test_refused(void **state)
{
	static const struct sim_work reduce = {CCL_REDUCE, 1, 5000},
				     next = {CCL_ALLREDUCE, 0, 5000};
	struct world w;
	int rc;

	(void)state;
	open_world(&w, "tree:2x2", CCL_MODE_3, INC_F_STALL_RNR, &clean, 1);
	assert_int_equal(sim_coll_issue(w.coll, &reduce, 0), 0);
	assert_int_equal(sim_run(w.group.sim, done, w.coll, LIMIT_NS), 0);
	assert_int_equal(sim_coll_check(w.coll), 0);
	for (unsigned slot = 0; slot < INC_GROUP_SLOTS; slot++)
		if (sim_switch(w.group.sim, 1)->table.group[slot])
			inc_group_fail(sim_switch(w.group.sim, 1)->table.group[slot],
				INC_FAIL_MANAGER, 0xff);
	assert_int_equal(sim_coll_issue(w.coll, &next, 0), 0);
	/* It stops whenever a rank has failed, until nothing happens any more. */
	while ((rc = sim_run(w.group.sim, done, w.coll, LIMIT_NS)) == -ECONNABORTED)
		;
	assert_int_equal(rc, -EDEADLK);
	for (unsigned r = 0; r < 4; r++) {
		const char *says = ccl_error(sim_coll_comm(w.coll, r));

		if (!strstr(says, "the group cannot begin anew: ") ||
			!strstr(says, "the group is failed"))
			fail_msg("rank %u: %s", r, says);
	}
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_a_row),
		cmocka_unit_test(test_symmetrical),
		cmocka_unit_test(test_faulty),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
