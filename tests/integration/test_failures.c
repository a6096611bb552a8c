/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that go down and come back, on virtual time: a collective goes on where it was, or
 * all ranks learn that it has failed.
 *   test_failures [SEED [TEST [short]]]
 * In short: every collective of every mode, and every kind of death in it, but not each at every
 * place of the fabric. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/ctl/client.h"
#include "lib/sim/control_priv.h"
#include "tests/integration/tasks.h"

static const uint64_t MS = 1000000, TIMEOUT = 5000000000;
static uint64_t seed = 20264;

static struct fabric *make(const struct fab_tree *tree, enum ccl_mode mode, enum ccl_kind kind)
{
	const struct fab_opts opts = {.tree = *tree,
		.mode = mode,
		.kind = kind,
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

static bool everywhere = true;

/* A third of a second is nothing; after two seconds a queue pair may have given up. */
static void all_collectives(enum ccl_mode mode, enum ccl_kind kind)
{
	static const struct {
		const struct fab_tree *tree;
		bool uplink;
	} cables[] = {{&fab_star4, false}, {&fab_tree_2x2, false}, {&fab_tree_2x2, true}};

	for (int k = 0; k < CCL_N_COLLECTIVES; k++)
		for (unsigned i = 0; i < sizeof(cables) / sizeof(cables[0]); i++) {
			if (!everywhere && (unsigned)k % 3 != i)
				continue;
			if (everywhere || (k + (int)mode + (int)kind) % 2)
				fab_pull(make(cables[i].tree, mode, kind), k, cables[i].uplink,
					300 * MS, false);
			if (everywhere || (k + (int)mode + (int)kind) % 2 == 0)
				fab_pull(make(cables[i].tree, mode, kind), k, cables[i].uplink,
					2000 * MS, true);
		}
}

/* As an operator would: over the control connection. */
static void fail_group(struct fabric *fab, unsigned sw)
{
	json_t *params = json_pack("{s:s}", "group", fab_group(fab, sw)->name);
	struct ctl_client *client;
	struct ctl_error error;
	char path[16];

	snprintf(path, sizeof(path), "sim:%u", sw);
	assert_int_equal(
		ctl_connect_over(sim_control_io(fab->sim), path, 1000, &client, &error), 0);
	assert_int_equal(ctl_call(client, "group.fail", params, 1000, NULL, &error), 0);
	ctl_close(client);
	json_decref(params);
}

/* A Mode-I group that fails at one switch: all ranks hear it at once, through the other switches
 * and whether they have something to send or only wait. */
static void mode1_group_fails(void **state)
{
	static uint8_t data[4][400000];
	struct ccl_req req[4];

	(void)state;
	for (unsigned sw = 0; sw < fab_tree_2x2.n_switches; sw++) {
		struct fabric *fab = make(&fab_tree_2x2, CCL_MODE_1, CCL_MIXED);

		for (unsigned r = 0; r < fab->n; r++)
			assert_int_equal(ccl_iallreduce(fab_comm(fab, r), data[r], data[r], 100000,
						 REDUCE_INT32, REDUCE_SUM, &req[r]),
				0);
		fab_run(fab, 15000);
		fail_group(fab, sw);
		fab_run(fab, 50 * MS);
		for (unsigned r = 0; r < fab->n; r++)
			if (!strstr(fab_error(fab, r), "the switch has failed the group"))
				fail_msg("switch %u: rank %u: \"%s\"", sw, r, fab_error(fab, r));
		fab_destroy(fab);
	}
}

/* Whoever dies in the midst of a collective, a host or a switch: all others hear of it in time,
 * nothing stays behind on the switches that live, and the next communicator works. */
static void somebody_dies(enum ccl_mode mode, enum ccl_kind kind, bool sw)
{
	const unsigned n = sw ? 3 : 4;

	for (unsigned dead = everywhere ? 0 : (unsigned)mode % n; dead < n;
		dead += everywhere ? 1 : n) {
		struct fabric *fab = make(&fab_tree_2x2, mode, kind);
		struct task t;

		fab_begin(fab, &t, CCL_ALLREDUCE);
		if (sw)
			fab_kill(fab, dead);
		else
			sim_freeze(fab->sim, dead, UINT64_MAX);
		assert_true(fab_wait(fab, t.req, 3 * TIMEOUT) < 0);
		fab_all_failed(fab, &t, sw ? fab->n : dead);
		fab_renew(fab);
		task_free(&t);
		fab_exact(fab, CCL_ALLREDUCE, 1000, 0, false);
		fab_destroy(fab);
	}
}

static void mode1(void **state)
{
	(void)state;
	all_collectives(CCL_MODE_1, CCL_MIXED);
}

static void mode3(void **state)
{
	(void)state;
	all_collectives(CCL_MODE_3, CCL_MIXED);
}

static void deaths(void **state)
{
	static const struct {
		enum ccl_mode mode;
		enum ccl_kind kind;
	} ways[] = {{CCL_MODE_1, CCL_MIXED}, {CCL_MODE_2, CCL_MIXED}, {CCL_MODE_2, CCL_SINGLE},
		{CCL_MODE_3, CCL_MIXED}, {CCL_MODE_NETREDUCE, CCL_RING}, {CCL_MODE_RING, CCL_RING}};

	(void)state;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		somebody_dies(ways[i].mode, ways[i].kind, false);
		somebody_dies(ways[i].mode, ways[i].kind, true);
	}
}

static void mode2_single(void **state)
{
	(void)state;
	all_collectives(CCL_MODE_2, CCL_SINGLE);
}

static void mode2_mixed(void **state)
{
	(void)state;
	all_collectives(CCL_MODE_2, CCL_MIXED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deaths),
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
	everywhere = argc <= 3;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
