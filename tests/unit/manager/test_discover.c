/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric that no file describes, or not all of it: built from whom switches hear by LLDP. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

enum { HELLO_MS = 1500, MAX_NAMES = 512 };

static struct world w;
static struct store store;
static json_t *neighbours[SWITCHES]; /* that switches tell of */

/* The fake switch has no table of neighbours by the real one's name. */
static char *with_neighbours(unsigned i, char *answer)
{
	json_t *a = json_loads(answer, 0, NULL), *r = json_object_get(a, "result");

	if (json_object_get(r, "neighbours")) {
		json_object_set(r, "neighbours", neighbours[i]);
		free(answer);
		answer = json_dumps(a, JSON_COMPACT);
	}
	json_decref(a);
	return answer;
}

static void chassis_of(unsigned i, char text[SW_LLDP_TEXT])
{
	snprintf(text, SW_LLDP_TEXT, "02:00:00:00:02:%02x", i);
}

static void hear(
	unsigned i, unsigned port, const char *chassis, const char *its_port, const char *system)
{
	struct sw_lldp_info *info = &w.sw[i].sw->heard[port];

	*info = (struct sw_lldp_info){0};
	snprintf(info->chassis, sizeof(info->chassis), "%s", chassis);
	snprintf(info->port, sizeof(info->port), "%s", its_port);
	snprintf(info->system, sizeof(info->system), "%s", system);
}

static void hear_switch(unsigned i, unsigned port, unsigned peer, unsigned of)
{
	char chassis[SW_LLDP_TEXT], name[16];

	chassis_of(peer, chassis);
	snprintf(name, sizeof(name), "p%u", of);
	hear(i, port, chassis, name, "incline");
}

/* Host `name` says so at a port of a leaf; whose neighbour there has this address. */
static void host_at(unsigned leaf, unsigned port, const char *name, const char *ip)
{
	char chassis[SW_LLDP_TEXT], p[16];

	snprintf(chassis, sizeof(chassis), "02:00:00:00:07:%02x", 16 * leaf + port);
	snprintf(p, sizeof(p), "p%u", port);
	hear(leaf, port, chassis, "nic", name);
	json_array_append_new(
		neighbours[leaf], json_pack("{s:s,s:s,s:s}", "ip", ip, "mac", chassis, "port", p));
}

static void silence(unsigned i)
{
	memset(w.sw[i].sw->heard, 0, sizeof(w.sw[i].sw->heard));
}

static void cable_switches(void)
{
	for (unsigned l = 0; l < LEAVES; l++)
		for (unsigned s = 0; s < SPINES; s++) {
			hear_switch(l, s, LEAVES + s, l);
			hear_switch(LEAVES + s, l, l, s);
		}
}

/* The job's rank r has address 10.1.r.j, at leaf r. */
static void cable_hosts(void)
{
	char name[16], ip[40];

	for (unsigned l = 0; l < LEAVES; l++)
		for (unsigned j = 0; j < JOBS; j++) {
			snprintf(name, sizeof(name), "h%u", 10 * l + j);
			snprintf(ip, sizeof(ip), "10.1.%u.%u", l, j);
			host_at(l, SPINES + j, name, ip);
		}
}

static void start_with(const char *without)
{
	world_kill_manager(&w);
	if (without)
		json_object_del(w.config, without);
	json_object_set_new(w.config, "discover", json_true());
	json_object_set_new(w.config, "discover_mbps", json_integer(10000));
	world_start_manager(&w);
	world_pass(&w, HELLO_MS);
}

static int setup(void **state)
{
	(void)state;
	assert_int_equal(store_memory_open(&store), 0);
	world_open_with(&w, &store);
	for (unsigned i = 0; i < SWITCHES; i++) {
		chassis_of(i, w.sw[i].sw->chassis);
		neighbours[i] = json_array();
	}
	w.says = with_neighbours;
	json_object_del(w.config, "hosts");
	start_with("links");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_close(&w);
	for (unsigned i = 0; i < SWITCHES; i++)
		json_decref(neighbours[i]);
	store.close(store.arg);
	return 0;
}

/* How many links say that, of all (state NULL) or of those in this state. */
static unsigned links(const char *by, const char *state)
{
	json_t *t = world_ask(&w, "topology.get", NULL), *row;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(t, "links"), i, row)
	{
		n += !strcmp(rpc_string(row, "by"), by) &&
		     (!state || !strcmp(rpc_string(row, "state"), state));
		if (!strcmp(rpc_string(row, "by"), "lldp"))
			assert_int_equal(rpc_int(row, "mbps", 0), 10000);
	}
	json_decref(t);
	return n;
}

static bool cabled(const char *a, const char *a_port, const char *b, const char *b_port)
{
	json_t *t = world_ask(&w, "topology.get", NULL), *row;
	bool found = false;
	size_t i;

	json_array_foreach(json_object_get(t, "links"), i, row)
	{
		const bool turned = strcmp(rpc_string(row, "a"), a) != 0;

		found = found ||
			(!strcmp(rpc_string(row, turned ? "b" : "a"), a) &&
				!strcmp(rpc_string(row, turned ? "b_port" : "a_port"), a_port) &&
				!strcmp(rpc_string(row, turned ? "a" : "b"), b) &&
				!strcmp(rpc_string(row, turned ? "a_port" : "b_port"), b_port));
	}
	json_decref(t);
	return found;
}

static unsigned nodes(void)
{
	json_t *t = world_ask(&w, "topology.get", NULL);
	const unsigned n = (unsigned)json_array_size(json_object_get(t, "nodes"));

	json_decref(t);
	return n;
}

static void expect_conflicts(size_t n, const char *line)
{
	json_t *t = world_ask(&w, "topology.get", NULL);
	const json_t *list = json_object_get(t, "conflicts"), *item;
	bool found = line == NULL;
	size_t i;

	json_array_foreach(list, i, item) found = found || !strcmp(json_string_value(item), line);
	if (json_array_size(list) != n || !found)
		fail_msg("%s", json_dumps(list, 0));
	json_decref(t);
}

static void start_jobs(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		w.job[j].again = true;
		world_start_job(&w, j);
		world_pass(&w, 300);
		assert_true(world_active(&w, j));
	}
}

/* Nothing is known, and ranks are told to wait; then all is heard, and jobs run. */
static void all_of_it(void **state)
{
	(void)state;
	assert_int_equal(links("lldp", NULL) + links("file", NULL), 0);
	assert_int_equal(nodes(), SWITCHES);
	world_start_job(&w, 0);
	assert_false(w.job[0].rank[0].connected);
	world_kill_rank(&w, 0, 0);
	world_kill_rank(&w, 0, 1);
	cable_switches();
	cable_hosts();
	world_pass(&w, 2 * HELLO_MS);
	assert_int_equal(links("lldp", "up"), LEAVES * (SPINES + JOBS));
	assert_int_equal(nodes(), SWITCHES + LEAVES * JOBS);
	assert_true(cabled("leaf1", "p2", "spine2", "p1") && cabled("leaf1", "p5", "h12", "nic"));
	expect_conflicts(0, NULL);
	start_jobs();
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 3000);
	world_expect_clean(&w);
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
	json_object_set_new(w.config, "links", all);
	json_object_set_new(w.config, "hosts", hosts);
	cable_switches();
	cable_hosts();
	hear_switch(0, 0, LEAVES + 1, 0); /* not as the file has it */
	hear_switch(LEAVES + 1, 0, 0, 0);
	start_with(NULL);
	world_pass(&w, HELLO_MS);
	assert_int_equal(links("file", NULL), SPINES + JOBS);
	assert_int_equal(links("lldp", "up"), SPINES + JOBS);
	expect_conflicts(
		2, "leaf0:p0 hears spine1:p0 by LLDP, where the file has spine0:p0: not used");
	start_jobs();
}

/* What one end hears alone is no link: anybody on a host could have said it. */
static void one_end(void **state)
{
	(void)state;
	cable_switches();
	silence(LEAVES);
	world_pass(&w, 2 * HELLO_MS);
	assert_int_equal(links("lldp", NULL), LEAVES * (SPINES - 1));
	expect_conflicts(
		LEAVES, "leaf0:p0 hears spine0:p0 by LLDP, where the file has no link: not learnt");
}

/* A switch that has not said hello yet is heard by a chassis that nobody knows, and its address is
 * a neighbour: it is no host. Nor is who has no address there. */
static void no_hosts(void **state)
{
	(void)state;
	world_cut_off(&w, LEAVES, true);
	hear(0, 0, "02:00:00:00:02:77", "p0", "incline");
	json_array_append_new(neighbours[0], json_pack("{s:s,s:s,s:s}", "ip", "10.2.0.2", "mac",
						     "02:00:00:00:02:77", "port", "p0"));
	hear(0, 4, "02:00:00:00:02:78", "eth0", "nameless");
	world_pass(&w, 2 * HELLO_MS);
	assert_int_equal(nodes(), SWITCHES);
	assert_int_equal(links("lldp", NULL), 0);
	world_cut_off(&w, LEAVES, false);
}

/* What was learnt outlives the manager, and that nobody is heard any more. */
static void goes_on(void **state)
{
	uint64_t epoch[JOBS];

	(void)state;
	cable_switches();
	cable_hosts();
	world_pass(&w, 2 * HELLO_MS);
	start_jobs();
	for (unsigned j = 0; j < JOBS; j++)
		epoch[j] = w.job[j].rank[0].epoch;
	for (unsigned i = 0; i < SWITCHES; i++)
		silence(i);
	world_pass(&w, HELLO_MS);
	start_with(NULL);
	world_pass(&w, 5000);
	assert_int_equal(links("lldp", "up"), LEAVES * (SPINES + JOBS));
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&w, j) && w.job[j].rank[0].epoch == epoch[j]);
	world_end_job(&w, 0);
	world_pass(&w, 500);
	world_start_job(&w, 0); /* its addresses are still known */
	world_pass(&w, 500);
	assert_true(world_active(&w, 0));
	/* Without "discover" the file is all there is again, and the store forgets the rest. */
	json_object_del(w.config, "discover");
	json_object_set_new(w.config, "links",
		json_pack("[{s:s,s:s,s:s}]", "a", "leaf0", "a_port", "p0", "b", "spine0"));
	json_object_set_new(
		w.config, "hosts", json_pack("[{s:s,s:s}]", "name", "h0", "ip", "10.1.0.0"));
	world_kill_manager(&w);
	world_start_manager(&w);
	world_pass(&w, HELLO_MS);
	assert_int_equal(links("lldp", NULL), 0);
	start_with(NULL);
	assert_int_equal(links("lldp", NULL), 0);
}

/* Two cables are exchanged under jobs: those over them end, and both are learnt anew. */
static void exchanged(void **state)
{
	uint64_t epoch[JOBS];
	unsigned from[JOBS];

	(void)state;
	cable_switches();
	cable_hosts();
	world_pass(&w, 2 * HELLO_MS);
	start_jobs();
	for (unsigned j = 0; j < JOBS; j++) {
		epoch[j] = w.job[j].rank[0].epoch;
		from[j] = world_spine(&w, j) - LEAVES;
	}
	hear_switch(0, 0, LEAVES + 1, 0);
	hear_switch(0, 1, LEAVES + 0, 0);
	hear_switch(LEAVES + 0, 0, 0, 1);
	hear_switch(LEAVES + 1, 0, 0, 0);
	world_pass(&w, 10000);
	expect_conflicts(0, NULL);
	assert_true(cabled("leaf0", "p0", "spine1", "p0") && cabled("leaf0", "p1", "spine0", "p0"));
	assert_int_equal(links("lldp", "up"), LEAVES * (SPINES + JOBS));
	for (unsigned j = 0; j < JOBS; j++) {
		assert_true(world_active(&w, j));
		assert_int_equal(w.job[j].rank[0].epoch > epoch[j], from[j] != 2);
	}
}

/* A host is at another port. As long as it is heard at the first it stays there, and while a job
 * has its link; then it moves, with its address. */
static void moves(void **state)
{
	(void)state;
	cable_switches();
	cable_hosts();
	world_pass(&w, 2 * HELLO_MS);
	start_jobs();
	w.sw[1].sw->n_ports++;
	hear(1, SPINES + JOBS, "02:00:00:00:07:99", "nic", "h0");
	json_array_append_new(neighbours[1], json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.0", "mac",
						     "02:00:00:00:07:99", "port", "p6"));
	world_pass(&w, 2 * HELLO_MS);
	assert_true(cabled("leaf0", "p3", "h0", "nic"));
	expect_conflicts(
		1, "leaf1:p6 hears h0:nic by LLDP, where the file has no link: not learnt");
	w.sw[0].sw->heard[3] = (struct sw_lldp_info){0};
	world_pass(&w, 2 * HELLO_MS);
	assert_true(cabled("leaf0", "p3", "h0", "nic"));
	world_end_job(&w, 0);
	world_pass(&w, 5000);
	assert_true(cabled("leaf1", "p6", "h0", "nic"));
	assert_false(cabled("leaf0", "p3", "h0", "nic"));
	expect_conflicts(0, NULL);
	world_start_job(&w, 0);
	world_pass(&w, 500);
	assert_true(world_active(&w, 0));
	assert_null(strstr(w.job[0].tree, "leaf0"));
	/* Of a host that has moved, too, the store has which end is the switch's. */
	for (unsigned i = 0; i < SWITCHES; i++)
		silence(i);
	start_with(NULL);
	world_pass(&w, 5000);
	assert_true(cabled("leaf1", "p6", "h0", "nic"));
	assert_true(world_active(&w, 0));
}

/* While a switch cannot say whom it hears, nobody takes away whom it has heard. */
static void not_asked(void **state)
{
	(void)state;
	cable_switches();
	cable_hosts();
	world_pass(&w, 2 * HELLO_MS);
	assert_true(cabled("leaf0", "p3", "h0", "nic"));
	world_cut_off(&w, 0, true);
	w.sw[1].sw->n_ports++;
	hear(1, SPINES + JOBS, "02:00:00:00:07:99", "nic", "h0");
	json_array_append_new(neighbours[1], json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.0", "mac",
						     "02:00:00:00:07:99", "port", "p6"));
	world_pass(&w, 5 * HELLO_MS);
	assert_true(cabled("leaf0", "p3", "h0", "nic"));
	world_cut_off(&w, 0, false);
	world_pass(&w, 5 * HELLO_MS);
	assert_true(cabled("leaf0", "p3", "h0", "nic"));
}

/* A host that says another name with each hello teaches so many, and no more. */
static void names(void **state)
{
	char name[16], chassis[SW_LLDP_TEXT] = "02:00:00:00:07:33";

	(void)state;
	json_array_append_new(neighbours[0],
		json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.9", "mac", chassis, "port", "p3"));
	for (unsigned i = 0; i < MAX_NAMES + 20; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		hear(0, 3, chassis, "nic", name);
		world_pass(&w, HELLO_MS);
	}
	assert_int_equal(nodes(), SWITCHES + MAX_NAMES / 2); /* each had an address as well */
	assert_true(links("lldp", NULL) <= 1);
}

/* As before: a file without lists says what it lacks. */
static void file_is_all(void **state)
{
	const struct manager_io io = {0};
	char err[MANAGER_ERR_LEN];
	struct manager *m;

	(void)state;
	json_object_del(w.config, "discover");
	assert_int_equal(manager_create(w.config, &io, NULL, 1, 0, &m, err), -EINVAL);
	assert_string_equal(
		err, "hosts: is missing: without \"discover\" the file is all there is");
	json_object_set_new(w.config, "discover", json_true());
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {T(all_of_it), T(the_rest), T(one_end), T(no_hosts),
		T(goes_on), T(exchanged), T(moves), T(not_asked), T(names), T(file_is_all)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
