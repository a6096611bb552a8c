/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that go down and come back, on virtual time: a collective goes on where it was, or
 * all ranks learn that it has failed.
 *   test_failures [SEED [TEST]] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/integration/fabric.h"
#include "tests/unit/ccl/task.h"

enum { BYTES = 400000 };

static const uint64_t MS = 1000000, TIMEOUT = 5000000000;
static uint64_t seed = 20264;

/* Pulls a link out in the middle of a collective: host 1's, or that of the last switch to its
 * parent. */
static void pull(struct fabric *fab, bool uplink, bool up)
{
	if (uplink)
		fab_set_uplink(fab, fab_n_switches(fab) - 1, up);
	else
		fab_set_host_link(fab, 1, up);
}

struct cable {
	const struct fab_tree *tree;
	bool uplink;
};

static struct fabric *make(const struct cable *cable, unsigned mode, unsigned kind)
{
	const struct fab_opts opts = {.tree = cable->tree,
		.mode = (uint8_t)mode,
		.kind = (uint8_t)kind,
		.collectives = CCL_ALL_COLLECTIVES,
		.mtu = 1024,
		.m = 4,
		.w = 8,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.start_psn = 0xffffe0,
		.seed = seed,
		.timeout_ns = TIMEOUT};

	return fab_create(&opts);
}

/* One that takes long enough to be interrupted. */
static void draw(struct task *t, unsigned n_ranks, int k)
{
	uint64_t rng = seed;

	task_make(t, &rng, n_ranks, k, BYTES);
	while (t->size < BYTES / 2 && k != CCL_BARRIER) {
		task_free(t);
		task_make(t, &rng, n_ranks, k, BYTES);
	}
}

/* Within the bound every rank knows why, or has its part done. */
static void all_failed(struct fabric *fab, unsigned n_ranks, const struct task *t)
{
	for (unsigned i = 0; i < 11; i++) /* whoever only waits must be asked */
		fab_run(fab, TIMEOUT / 10);
	for (unsigned r = 0; r < n_ranks; r++)
		if (ccl_test(fab_comm(fab, r), t->req[r]) != 1 &&
			strstr(ccl_error(fab_comm(fab, r)), "10.77.255.") == NULL)
			fail_msg("%s: rank %u: \"%s\"", ccl_collective_name(t->kind), r,
				ccl_error(fab_comm(fab, r)));
}

static void link_down(const struct cable *cable, unsigned mode, unsigned kind, int k, uint64_t down,
	bool may_fail)
{
	struct fabric *fab = make(cable, mode, kind);
	const unsigned n = cable->tree->n_hosts;
	struct ccl_comm *comm[FAB_MAX_HOSTS];
	struct task t;
	char why[200];
	int rc;

	for (unsigned r = 0; r < n; r++)
		comm[r] = fab_comm(fab, r);
	draw(&t, n, k);
	for (unsigned r = 0; r < n; r++)
		assert_int_equal(task_start(&t, comm, r), 0);
	fab_run(fab, k == CCL_BARRIER ? 1 : 15000);
	assert_false(task_done(&t, comm));
	pull(fab, cable->uplink, false);
	fab_run(fab, down);
	assert_false(task_done(&t, comm));
	pull(fab, cable->uplink, true);
	rc = fab_wait(fab, t.req, 10 * TIMEOUT);
	if (rc != 0 && may_fail)
		all_failed(fab, n, &t);
	else if (rc != 0)
		fail_msg("%s over %s: %s", ccl_collective_name((enum ccl_collective)k),
			cable->tree->name, strerror(-rc));
	else if (!task_right(&t, why, sizeof(why)))
		fail_msg("%s", why);
	fab_destroy(fab); /* before the buffers: the device may still write to them */
	task_free(&t);
}

/* A third of a second is nothing; after two seconds a queue pair may have given up. */
static void all_collectives(unsigned mode, unsigned kind)
{
	const struct cable cables[] = {
		{&fab_star4, false}, {&fab_tree_2x2, false}, {&fab_tree_2x2, true}};

	for (int k = 0; k < CCL_N_COLLECTIVES; k++)
		for (unsigned i = 0; i < sizeof(cables) / sizeof(cables[0]); i++) {
			link_down(&cables[i], mode, kind, k, 300 * MS, false);
			link_down(&cables[i], mode, kind, k, 2000 * MS, true);
		}
}

/* A Mode-I group that fails at one switch: all ranks hear it at once, through the other switches
 * and whether they have something to send or only wait. */
static void mode1_group_fails(void **state)
{
	const struct cable cable = {&fab_tree_2x2, false};
	const unsigned n = cable.tree->n_hosts;

	(void)state;
	for (unsigned sw = 0; sw < cable.tree->n_switches; sw++) {
		struct fabric *fab = make(&cable, INC_MODE_1, INC_MIXED);
		struct ccl_comm *comm[FAB_MAX_HOSTS];
		struct task t;

		for (unsigned r = 0; r < n; r++)
			comm[r] = fab_comm(fab, r);
		draw(&t, n, CCL_ALLREDUCE);
		for (unsigned r = 0; r < n; r++)
			assert_int_equal(task_start(&t, comm, r), 0);
		fab_run(fab, 15000);
		assert_false(task_done(&t, comm));
		inc_group_fail(fab_switch(fab, sw)->group, INC_FAIL_MANAGER, 0xff);
		mode1_stop(fab_switch(fab, sw)->connections[0], fab_now(fab));
		fab_run(fab, 50 * MS);
		for (unsigned r = 0; r < n; r++)
			if (strstr(ccl_error(comm[r]), "the switch has failed the group") == NULL)
				fail_msg("switch %u: rank %u: \"%s\"", sw, r, ccl_error(comm[r]));
		fab_destroy(fab);
		task_free(&t);
	}
}

static void mode1(void **state)
{
	(void)state;
	all_collectives(INC_MODE_1, INC_MIXED);
}

static void mode3(void **state)
{
	(void)state;
	all_collectives(INC_MODE_3, INC_MIXED);
}

static void mode2_single(void **state)
{
	(void)state;
	all_collectives(INC_MODE_2, INC_SINGLE);
}

static void mode2_mixed(void **state)
{
	(void)state;
	all_collectives(INC_MODE_2, INC_MIXED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mode1_group_fails),
		cmocka_unit_test(mode1),
		cmocka_unit_test(mode2_single),
		cmocka_unit_test(mode2_mixed),
		cmocka_unit_test(mode3),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
