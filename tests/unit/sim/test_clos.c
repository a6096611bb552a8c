/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/sim/clos.h"
#include "lib/sim/topo.h"

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* The MRC paper, section 2: switches of 51.2 Tb/s, NICs of 800 Gb/s. */
static void as_the_paper_says(void **state)
{
	struct sim_clos three, two;

	(void)state;
	assert_int_equal(0, sim_clos_size(64, 1, 3, &three));
	assert_int_equal(three.hosts, 65536);
	assert_int_equal(three.near, 32);
	assert_int_equal(three.path_switches, 5);
	assert_true(near(three.up_link_share, 1.0 / 32));
	assert_int_equal(0, sim_clos_size(64, 8, 2, &two));
	assert_int_equal(two.hosts, 131072);
	assert_int_equal(two.near, 256);
	assert_int_equal(two.path_switches, 3);
	assert_true(near(two.up_link_share, 1.0 / 256));
	assert_true(near(two.nic_link_share, 0.125));
	assert_true(near(two.ends_per_host / three.ends_per_host, 2.0 / 3));
	assert_true(near(two.switches_per_host / three.switches_per_host, 3.0 / 5));
	assert_int_equal(sim_clos_tiers(64, 1, 100000), 4);
	assert_int_equal(sim_clos_tiers(64, 8, 100000), 2);
}

/* One tier is one switch; three are the fat tree that the simulator builds. */
static void as_built(void **state)
{
	struct sim_clos clos;
	struct sim_topo topo;
	char err[SIM_ERR_LEN];

	(void)state;
	assert_int_equal(0, sim_clos_size(16, 2, 1, &clos));
	assert_int_equal(clos.hosts, 32);
	assert_int_equal(clos.near, 32);
	assert_int_equal(clos.switches, 2);
	assert_int_equal(clos.links, 64);
	assert_int_equal(0, sim_clos_size(8, 1, 3, &clos));
	assert_int_equal(0, sim_topo_make("fattree:8", &topo, err));
	assert_int_equal(clos.hosts, topo.n_hosts);
	assert_int_equal(clos.switches, topo.n_switches);
	assert_int_equal(clos.links, topo.n_hosts + topo.n_edges);
	sim_topo_free(&topo);
	/* Two planes of switches with 8 ports: 8 T0s, 4 T1s, 4 hosts each. */
	assert_int_equal(0, sim_clos_size(4, 2, 2, &clos));
	assert_int_equal(0, sim_topo_make("planes:2x8x4x4", &topo, err));
	assert_int_equal(clos.hosts, topo.n_hosts);
	assert_int_equal(clos.switches, topo.n_switches);
	assert_int_equal(clos.links, 2 * topo.n_hosts + topo.n_edges);
	sim_topo_free(&topo);
}

static void refusals(void **state)
{
	struct sim_clos clos = {.hosts = 7};

	(void)state;
	assert_int_equal(-EINVAL, sim_clos_size(0, 1, 1, &clos));
	assert_int_equal(-EINVAL, sim_clos_size(63, 1, 1, &clos));
	assert_int_equal(-EINVAL, sim_clos_size(SIM_CLOS_MAX_RADIX + 2, 1, 1, &clos));
	assert_int_equal(-EINVAL, sim_clos_size(64, 0, 1, &clos));
	assert_int_equal(-EINVAL, sim_clos_size(64, SIM_CLOS_MAX_PLANES + 1, 1, &clos));
	assert_int_equal(-EINVAL, sim_clos_size(64, 1, 0, &clos));
	assert_int_equal(-EINVAL, sim_clos_size(64, 1, SIM_CLOS_MAX_TIERS + 1, &clos));
	assert_int_equal(-ERANGE,
		sim_clos_size(SIM_CLOS_MAX_RADIX, SIM_CLOS_MAX_PLANES, SIM_CLOS_MAX_TIERS, &clos));
	assert_int_equal(clos.hosts, 7);
	assert_int_equal(sim_clos_tiers(63, 1, 10), 0);
	assert_int_equal(sim_clos_tiers(2, 1, 3), 0); /* never more than two */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_paper_says),
		cmocka_unit_test(as_built),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
