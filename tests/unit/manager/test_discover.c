/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric that no file describes, or not all of it: built from whom switches hear by LLDP. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/manager/discover_world.h"

/* Nothing is known, and ranks are told to wait; then all is heard, and jobs run. */
static void all_of_it(void **state)
{
	(void)state;
	assert_int_equal(dw_links("lldp", NULL) + dw_links("file", NULL), 0);
	assert_int_equal(dw_nodes(), SWITCHES);
	world_start_job(&dw, 0);
	assert_false(dw.job[0].rank[0].connected);
	world_kill_rank(&dw, 0, 0);
	world_kill_rank(&dw, 0, 1);
	dw_cable_switches();
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	assert_int_equal(dw_links("lldp", "up"), LEAVES * (SPINES + JOBS));
	assert_int_equal(dw_nodes(), SWITCHES + LEAVES * JOBS);
	assert_true(
		dw_cabled("leaf1", "p2", "spine2", "p1") && dw_cabled("leaf1", "p5", "h12", "nic"));
	dw_expect_conflicts(0, NULL);
	dw_start_jobs();
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&dw, j);
	world_pass(&dw, 3000);
	world_expect_clean(&dw);
}

/* The file has hosts, and leaf 0's links: the others are learnt, and the file's are not touched,
 * whatever is heard there. */
static void the_rest(void **state)
{
	json_t *all = json_array(), *hosts = json_array();
	char name[16], ip[40], p[16];

	(void)state;
	for (unsigned i = 0; i < SPINES + JOBS; i++) {
		snprintf(p, sizeof(p), "p%u", i);
		snprintf(name, sizeof(name), i < SPINES ? "spine%u" : "h%u",
			i < SPINES ? i : i - SPINES);
		snprintf(ip, sizeof(ip), "10.1.0.%u", i - SPINES);
		json_array_append_new(
			all, json_pack("{s:s,s:s,s:s,s:s,s:i}", "a", "leaf0", "a_port", p, "b",
				     name, "b_port", i < SPINES ? "p0" : "nic", "mbps", 10000));
		if (i >= SPINES)
			json_array_append_new(
				hosts, json_pack("{s:s,s:s}", "name", name, "ip", ip));
	}
	json_object_set_new(dw.config, "links", all);
	json_object_set_new(dw.config, "hosts", hosts);
	dw_cable_switches();
	dw_cable_hosts();
	dw_hear_switch(0, 0, LEAVES + 1, 0); /* not as the file has it */
	dw_hear_switch(LEAVES + 1, 0, 0, 0);
	dw_start_with(NULL);
	world_pass(&dw, HELLO_MS);
	assert_int_equal(dw_links("file", NULL), SPINES + JOBS);
	assert_int_equal(dw_links("lldp", "up"), SPINES + JOBS);
	dw_expect_conflicts(
		2, "leaf0:p0 hears spine1:p0 by LLDP, where the file has spine0:p0: not used");
	dw_start_jobs();
}

static int64_t mbps_at(const char *switch_, const char *port)
{
	json_t *t = world_ask(&dw, "topology.get", NULL), *row;
	int64_t mbps = -1;
	size_t i;

	json_array_foreach(json_object_get(t, "links"), i, row)
	{
		const bool a = !strcmp(rpc_string(row, "a"), switch_);

		if ((a || !strcmp(rpc_string(row, "b"), switch_)) &&
			!strcmp(rpc_string(row, a ? "a_port" : "b_port"), port))
			mbps = rpc_int(row, "mbps", 0);
	}
	json_decref(t);
	return mbps;
}

/* NICs: p0 of leaf 0, its far end at spine 0, which is slower, and p3, towards a host. */
static void with_speeds(unsigned i, json_t *hello)
{
	json_t *ports = json_object_get(hello, "ports");

	if (i == 0) {
		json_object_set_new(json_array_get(ports, 0), "mbps", json_integer(400000));
		json_object_set_new(json_array_get(ports, 3), "mbps", json_integer(25000));
		json_object_set_new(json_array_get(ports, 4), "mbps", json_string("fast"));
	}
	if (i == LEAVES)
		json_object_set_new(json_array_get(ports, 0), "mbps", json_integer(200000));
}

/* Who knows how fast a link is says so; that outlives the manager, too. */
static void speeds(void **state)
{
	(void)state;
	dw_changes_hello = with_speeds;
	dw_cable_switches();
	dw_cable_hosts();
	for (unsigned again = 0; again < 2; again++) {
		world_pass(&dw, 2 * HELLO_MS);
		assert_int_equal(mbps_at("leaf0", "p0"), 200000);
		assert_int_equal(mbps_at("leaf0", "p3"), 25000);
		assert_int_equal(mbps_at("leaf0", "p4"), 10000);
		assert_int_equal(mbps_at("leaf1", "p0"), 10000);
		dw_changes_hello = NULL;
		world_kill_manager(&dw);
		world_start_manager(&dw);
	}
}

/* What one end hears alone is no link: anybody on a host could have said it. */
static void one_end(void **state)
{
	(void)state;
	dw_cable_switches();
	dw_silence(LEAVES);
	world_pass(&dw, 2 * HELLO_MS);
	assert_int_equal(dw_links("lldp", NULL), LEAVES * (SPINES - 1));
	dw_expect_conflicts(
		LEAVES, "leaf0:p0 hears spine0:p0 by LLDP, where the file has no link: not learnt");
}

/* A switch that has not said hello yet is heard by a chassis that nobody knows, and its address is
 * a neighbour: it is no host. Nor is who has no address there. */
static void no_hosts(void **state)
{
	(void)state;
	world_cut_off(&dw, LEAVES, true);
	dw_hear(0, 0, "02:00:00:00:02:77", "p0", "incline");
	json_array_append_new(dw_neighbours[0], json_pack("{s:s,s:s,s:s}", "ip", "10.2.0.2", "mac",
							"02:00:00:00:02:77", "port", "p0"));
	dw_hear(0, 4, "02:00:00:00:02:78", "eth0", "nameless");
	world_pass(&dw, 2 * HELLO_MS);
	assert_int_equal(dw_nodes(), SWITCHES);
	assert_int_equal(dw_links("lldp", NULL), 0);
	world_cut_off(&dw, LEAVES, false);
}

/* What was learnt outlives the manager, and that nobody is heard any more. */
static void goes_on(void **state)
{
	uint64_t epoch[JOBS];

	(void)state;
	dw_cable_switches();
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	dw_start_jobs();
	for (unsigned j = 0; j < JOBS; j++)
		epoch[j] = dw.job[j].rank[0].epoch;
	for (unsigned i = 0; i < SWITCHES; i++)
		dw_silence(i);
	world_pass(&dw, HELLO_MS);
	dw_start_with(NULL);
	world_pass(&dw, 5000);
	assert_int_equal(dw_links("lldp", "up"), LEAVES * (SPINES + JOBS));
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&dw, j) && dw.job[j].rank[0].epoch == epoch[j]);
	world_end_job(&dw, 0);
	world_pass(&dw, 500);
	world_start_job(&dw, 0); /* its addresses are still known */
	world_pass(&dw, 500);
	assert_true(world_active(&dw, 0));
	/* Without "discover" the file is all there is again, and the store forgets the rest. */
	json_object_del(dw.config, "discover");
	json_object_set_new(dw.config, "links",
		json_pack("[{s:s,s:s,s:s}]", "a", "leaf0", "a_port", "p0", "b", "spine0"));
	json_object_set_new(
		dw.config, "hosts", json_pack("[{s:s,s:s}]", "name", "h0", "ip", "10.1.0.0"));
	world_kill_manager(&dw);
	world_start_manager(&dw);
	world_pass(&dw, HELLO_MS);
	assert_int_equal(dw_links("lldp", NULL), 0);
	dw_start_with(NULL);
	assert_int_equal(dw_links("lldp", NULL), 0);
}

/* Two cables are exchanged under jobs: those over them end, and both are learnt anew. */
static void exchanged(void **state)
{
	uint64_t epoch[JOBS];
	unsigned from[JOBS];

	(void)state;
	dw_cable_switches();
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	dw_start_jobs();
	for (unsigned j = 0; j < JOBS; j++) {
		epoch[j] = dw.job[j].rank[0].epoch;
		from[j] = world_spine(&dw, j) - LEAVES;
	}
	dw_hear_switch(0, 0, LEAVES + 1, 0);
	dw_hear_switch(0, 1, LEAVES + 0, 0);
	dw_hear_switch(LEAVES + 0, 0, 0, 1);
	dw_hear_switch(LEAVES + 1, 0, 0, 0);
	world_pass(&dw, 10000);
	dw_expect_conflicts(0, NULL);
	assert_true(dw_cabled("leaf0", "p0", "spine1", "p0") &&
		    dw_cabled("leaf0", "p1", "spine0", "p0"));
	assert_int_equal(dw_links("lldp", "up"), LEAVES * (SPINES + JOBS));
	for (unsigned j = 0; j < JOBS; j++) {
		assert_true(world_active(&dw, j));
		assert_int_equal(dw.job[j].rank[0].epoch > epoch[j], from[j] != 2);
	}
}

/* A host is at another port. As long as it is heard at the first it stays there, and while a job
 * has its link; then it moves, with its address. */
static void moves(void **state)
{
	(void)state;
	dw_cable_switches();
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	dw_start_jobs();
	dw.sw[1].sw->n_ports++;
	dw_hear(1, SPINES + JOBS, "02:00:00:00:07:99", "nic", "h0");
	json_array_append_new(dw_neighbours[1], json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.0", "mac",
							"02:00:00:00:07:99", "port", "p6"));
	world_pass(&dw, 2 * HELLO_MS);
	assert_true(dw_cabled("leaf0", "p3", "h0", "nic"));
	dw_expect_conflicts(1,
		"leaf1:p6 hears h0:nic by LLDP with chassis 02:00:00:00:07:99, where h0 has "
		"02:00:00:00:07:03: not learnt");
	dw.sw[0].sw->heard[3] = (struct sw_lldp_info){0};
	world_pass(&dw, 2 * HELLO_MS);
	assert_true(dw_cabled("leaf0", "p3", "h0", "nic"));
	world_end_job(&dw, 0);
	world_pass(&dw, 5000);
	assert_true(dw_cabled("leaf1", "p6", "h0", "nic"));
	assert_false(dw_cabled("leaf0", "p3", "h0", "nic"));
	dw_expect_conflicts(0, NULL);
	world_start_job(&dw, 0);
	world_pass(&dw, 500);
	assert_true(world_active(&dw, 0));
	assert_null(strstr(dw.job[0].tree, "leaf0"));
	/* Of a host that has moved, too, the store has which end is the switch's. */
	for (unsigned i = 0; i < SWITCHES; i++)
		dw_silence(i);
	dw_start_with(NULL);
	world_pass(&dw, 5000);
	assert_true(dw_cabled("leaf1", "p6", "h0", "nic"));
	assert_true(world_active(&dw, 0));
}

/* While a switch cannot say whom it hears, nobody takes away whom it has heard. */
static void not_asked(void **state)
{
	(void)state;
	dw_cable_switches();
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	assert_true(dw_cabled("leaf0", "p3", "h0", "nic"));
	world_cut_off(&dw, 0, true);
	dw.sw[1].sw->n_ports++;
	dw_hear(1, SPINES + JOBS, "02:00:00:00:07:99", "nic", "h0");
	json_array_append_new(dw_neighbours[1], json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.0", "mac",
							"02:00:00:00:07:99", "port", "p6"));
	world_pass(&dw, 5 * HELLO_MS);
	assert_true(dw_cabled("leaf0", "p3", "h0", "nic"));
	world_cut_off(&dw, 0, false);
	world_pass(&dw, 5 * HELLO_MS);
	assert_true(dw_cabled("leaf0", "p3", "h0", "nic"));
}

/* As before: a file without lists says what it lacks. */
static void file_is_all(void **state)
{
	const struct manager_io io = {0};
	char err[MANAGER_ERR_LEN];
	struct manager *m;

	(void)state;
	json_object_del(dw.config, "discover");
	assert_int_equal(manager_create(dw.config, &io, NULL, 1, 0, &m, err), -EINVAL);
	assert_string_equal(
		err, "hosts: is missing: without \"discover\" the file is all there is");
	json_object_set_new(dw.config, "discover", json_true());
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, dw_setup, dw_teardown)
	const struct CMUnitTest tests[] = {T(all_of_it), T(the_rest), T(one_end), T(no_hosts),
		T(goes_on), T(speeds), T(exchanged), T(moves), T(not_asked), T(file_is_all)};

	return cmocka_run_group_tests(tests, NULL, NULL) + dw_refused_tests();
}
