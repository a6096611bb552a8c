/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce on virtual time: random sequences of what it offers (AllReduce of any type and
 * operation, Barrier) over links that lose, duplicate and reorder, and links that are pulled.
 *   test_netreduce_tasks [SEED [TEST [COLLECTIVES [MAXBYTES]]]] repeats one, or runs a longer one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/ring.h"
#include "tests/integration/tasks.h"

static const uint64_t timeout = 5000000000;
static uint64_t seed = 20265;
static unsigned n_collectives = 1000;
static size_t max_bytes = 20000;

static bool by_ipv6;
static unsigned n_ranks = 4, rings = 1;

static struct fabric *make(unsigned leaves)
{
	const struct fab_opts opts = {
		.tree = fab_leaves(n_ranks, leaves),
		.rings = rings,
		.ipv6 = by_ipv6,
		.mode = CCL_MODE_NETREDUCE,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.flags = INC_F_STALL_RNR,
		.start_psn = 0xffff00,
		.first_msg = 0xfffffff0,
		.seed = seed,
		.timeout_ns = timeout,
	};

	return fab_create(&opts);
}

static void sequence(unsigned leaves)
{
	static const struct fab_faults one_percent = {.loss = 0.01, .dup = 0.01, .reorder = 0.01};
	struct tasks w = {make(leaves), seed, max_bytes, 0};

	fab_sequence(&w, &one_percent, n_collectives);
	assert_true(sim_switch_ring(w.fab->sim, rings > 1 ? 0 : leaves)->count[NR_C_DUP] > 0);
	fab_destroy(w.fab);
}

static void star(void **state)
{
	(void)state;
	sequence(0);
}

static void racks(void **state)
{
	(void)state;
	sequence(2);
}

static void ipv6(void **state)
{
	(void)state;
	by_ipv6 = true;
	sequence(2);
	by_ipv6 = false;
}

/* Memory is both rings' of a rank. Where one has let go of it, and the other could not, it is taken
 * away when that is asked for again, whichever it was. */
static void half_taken_away(struct ccl_comm *comm)
{
	static uint8_t buf[4096];

	for (unsigned i = 0; i < 2; i++) {
		struct ccl_ring *first = i ? comm->across : comm->ring;
		struct ccl_ring *other = i ? comm->ring : comm->across;

		assert_int_equal(ccl_register(comm, buf, sizeof(buf)), 0);
		assert_int_equal(ccl_ring_deregister(first, buf), 0);
		assert_int_equal(ccl_deregister(comm, buf), 0);
		assert_int_equal(ccl_ring_deregister(other, buf), -ENOENT);
		assert_int_equal(ccl_deregister(comm, buf), -ENOENT);
	}
}

/* Parallel rings (NetReduce, 3.4), as a group file has them: two nodes of four, each below a switch
 * of its own, which passes the rings on; nodes of two, two of them below a switch, which is in the
 * rings; and nodes of two below one switch. */
static void parallel(void **state)
{
	static const struct {
		unsigned leaves, rings;
	} shape[] = {{2, 4}, {2, 2}, {0, 2}};

	struct fabric *fab;

	(void)state;
	n_ranks = 8;
	rings = 4;
	fab = make(2);
	for (unsigned s = 0; s < 3; s++)
		assert_int_equal(sim_switch(fab->sim, s)->n_rings, s == 0 ? 4 : 0);
	fab_renew(fab); /* leaves nothing behind */
	fab_exact(fab, CCL_ALLREDUCE, 1021, 0, false);
	half_taken_away(fab_comm(fab, 3));
	fab_destroy(fab);
	for (unsigned i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		rings = shape[i].rings;
		sequence(shape[i].leaves);
	}
	n_ranks = 4;
	rings = 1;
}

/* A third of a second is nothing; after two seconds a queue pair may have given up. */
static void links(void **state)
{
	static const uint64_t ms = 1000000;

	(void)state;
	for (unsigned cable = 0; cable < 3;
		cable++) { /* a host's to one switch, to a leaf; a leaf's */
		const unsigned leaves = cable ? 2 : 0;

		fab_pull(make(leaves), CCL_ALLREDUCE, cable == 2, 300 * ms, false);
		fab_pull(make(leaves), CCL_ALLREDUCE, cable == 2, 2000 * ms, true);
	}
}

static void parallel_links(void **state)
{
	n_ranks = 8;
	rings = 4;
	links(state);
	n_ranks = 4;
	rings = 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(star),
		cmocka_unit_test(racks),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(links),
		cmocka_unit_test(parallel),
		cmocka_unit_test(parallel_links),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	if (argc > 3)
		n_collectives = (unsigned)strtoul(argv[3], NULL, 0);
	if (argc > 4)
		max_bytes = strtoul(argv[4], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
