/* SPDX-License-Identifier: BSD-3-Clause */
/* What is heard by LLDP and not learnt, or not any more, and that this is shown; what many links
 * cost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/discover.h"
#include "lib/ctl/manager_schema.h"
#include "tests/unit/manager/discover_world.h"

/* Who says a host's name at another port, and another name for its port, is not believed: a host
 * says one chassis at all its ports. Who says that too has a second link. */
static void joins_in(void **state)
{
	(void)state;
	dw_cable_switches();
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	dw.sw[1].sw->n_ports++;
	dw_hear(1, SPINES + JOBS, "02:00:00:00:07:99", "second", "h0");
	json_array_append_new(dw_neighbours[1], json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.77", "mac",
							"02:00:00:00:07:99", "port", "p6"));
	world_pass(&dw, 2 * HELLO_MS);
	assert_int_equal(dw_links("lldp", NULL), LEAVES * (SPINES + JOBS));
	dw_expect_conflicts(1,
		"leaf1:p6 hears h0:second by LLDP with chassis 02:00:00:00:07:99, where h0 has "
		"02:00:00:00:07:03: not learnt");
	for (unsigned i = 0; i < SWITCHES; i++)
		dw_silence(i);
	dw_hear(0, SPINES, "02:00:00:00:07:03", "nic", "h0");
	dw_hear(1, SPINES + JOBS, "02:00:00:00:07:99", "second", "h0");
	dw_start_with(NULL); /* whose chassis that is outlives the manager */
	world_pass(&dw, 2 * HELLO_MS);
	assert_int_equal(dw_links("lldp", NULL), LEAVES * (SPINES + JOBS));
	dw_hear(1, SPINES + JOBS, "02:00:00:00:07:03", "second", "h0");
	world_pass(&dw, 2 * HELLO_MS);
	assert_true(
		dw_cabled("leaf1", "p6", "h0", "second") && dw_cabled("leaf0", "p3", "h0", "nic"));
	dw_expect_conflicts(0, NULL);
}

static void address_at(unsigned leaf, const char *port, const char *ip)
{
	json_t *row;
	size_t i;

	json_array_foreach(dw_neighbours[leaf], i, row) if (!strcmp(rpc_string(row, "port"), port))
		json_object_set_new(row, "ip", json_string(ip));
}

/* An address is another host's: when no switch tells of it at the first, and no job goes there. */
static void address_moves(void **state)
{
	(void)state;
	dw_cable_switches();
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	dw_start_jobs();
	address_at(1, "p4", "10.1.0.0"); /* of h11; rank 0 of job 0 has it, on h0 at leaf 0 */
	world_pass(&dw, 2 * HELLO_MS);
	dw_expect_conflicts(
		1, "leaf1:p4 has a neighbour 10.1.0.0, which is h0's address: not learnt as h11's");
	address_at(0, "p3", "10.1.0.99");
	world_pass(&dw, 2 * HELLO_MS); /* the job runs */
	dw_expect_conflicts(
		1, "leaf1:p4 has a neighbour 10.1.0.0, which is h0's address: not learnt as h11's");
	world_end_job(&dw, 0);
	world_pass(&dw, 5000);
	dw_expect_conflicts(0, NULL);
	world_start_job(&dw, 0);
	world_pass(&dw, 500);
	assert_true(world_active(&dw, 0));
	assert_null(strstr(dw.job[0].tree, "leaf0"));
	for (unsigned i = 0; i < SWITCHES; i++)
		dw_silence(i);
	dw_start_with(NULL);
	world_pass(&dw, 5000);
	assert_true(world_active(&dw, 0));
	world_end_job(&dw, 0);
	world_pass(&dw, 3000);
	world_start_job(&dw, 0);
	world_pass(&dw, 500);
	assert_true(world_active(&dw, 0));
	assert_null(strstr(dw.job[0].tree, "leaf0"));
}

/* What is not learnt is shown, with the field and its limit. */
static void not_learnt(void **state)
{
	const char *ip = "10.1.0.50";

	(void)state;
	dw.sw[0].sw->n_ports = 8;
	for (unsigned port = 3; port < 7; port++) {
		char p[8];

		snprintf(p, sizeof(p), "p%u", port);
		json_array_append_new(dw_neighbours[0], json_pack("{s:s,s:s,s:s}", "ip", ip, "mac",
								"02:00:00:00:07:50", "port", p));
	}
	dw_hear(0, 3, "02:00:00:00:07:50", "nic", "a-name-of-thirty-one-bytes-fits");
	dw_hear(0, 4, "02:00:00:00:07:51", "nic", "a-name-of-two-and-thirty-bytes--");
	dw_hear(0, 5, "02:00:00:00:07:52", "a-port-name-of-two-and-thirty-by", "h5");
	dw_hear(0, 6, "02:00:00:00:07:53", "nic", "");
	world_pass(&dw, 2 * HELLO_MS);
	assert_true(dw_cabled("leaf0", "p3", "a-name-of-thirty-one-bytes-fits", "nic"));
	assert_int_equal(dw_links("lldp", NULL), 1);
	dw_expect_conflicts(2,
		"leaf0:p4 hears by LLDP a system named a-name-of-two-and-thirty-bytes--...: names "
		"have 31 bytes at most: not learnt");
	dw_expect_conflicts(2,
		"leaf0:p5 hears by LLDP a port named a-port-name-of-two-and-thirty-by... of h5: "
		"names have 31 bytes at most: not learnt");
}

static void two_speak(unsigned i, json_t *hello)
{
	json_t *port = json_array_get(json_object_get(hello, "ports"), 3);

	if (i != 0)
		return;
	json_object_set_new(port, "lldp",
		json_pack("[{s:s,s:s,s:s},{s:s,s:s,s:s}]", "chassis", "02:00:00:00:07:01", "port",
			"a", "system", "x", "chassis", "02:00:00:00:07:02", "port", "b", "system",
			"y"));
}

static void two_speakers(void **state)
{
	(void)state;
	json_array_append_new(dw_neighbours[0], json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.9", "mac",
							"02:00:00:00:07:01", "port", "p3"));
	dw_changes_hello = two_speak;
	world_pass(&dw, 2 * HELLO_MS);
	dw_changes_hello = NULL;
	assert_int_equal(dw_nodes(), SWITCHES);
	dw_expect_conflicts(1, "leaf0:p3 hears both x and y by LLDP: neither is learnt");
}

/* A host that says another name with each hello teaches so many, and no more, and says so; other
 * ports of its switch go on. */
static void names(void **state)
{
	char name[16], line[256], chassis[SW_LLDP_TEXT] = "02:00:00:00:07:33";

	(void)state;
	json_array_append_new(dw_neighbours[0],
		json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.9", "mac", chassis, "port", "p3"));
	for (unsigned i = 0; i < MG_MAX_AT_PORT + 6; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		dw_hear(0, 3, chassis, "nic", name);
		world_pass(&dw, HELLO_MS);
	}
	assert_int_equal(dw_nodes(), SWITCHES + MG_MAX_AT_PORT);
	snprintf(line, sizeof(line),
		"leaf0:p3 hears %s by LLDP, and has heard %d names of hosts and their ports "
		"before: "
		"no more are learnt until the manager starts anew",
		name, MG_MAX_AT_PORT);
	dw_expect_conflicts(1, line);
	dw_host_at(0, 4, "h1", "10.1.0.1");
	world_pass(&dw, HELLO_MS);
	assert_true(dw_cabled("leaf0", "p4", "h1", "nic"));
}

/* Likewise another name for its port. */
static void port_names(void **state)
{
	char name[16], line[256], chassis[SW_LLDP_TEXT] = "02:00:00:00:07:33";

	(void)state;
	json_array_append_new(dw_neighbours[0],
		json_pack("{s:s,s:s,s:s}", "ip", "10.1.0.9", "mac", chassis, "port", "p3"));
	for (unsigned i = 0; i < MG_MAX_AT_PORT + 6; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		dw_hear(0, 3, chassis, name, "h0");
		world_pass(&dw, HELLO_MS);
	}
	assert_int_equal(dw_nodes(), SWITCHES + 1);
	snprintf(line, sizeof(line),
		"leaf0:p3 hears h0 by LLDP, and has heard %d names of hosts and their ports "
		"before: "
		"no more are learnt until the manager starts anew",
		MG_MAX_AT_PORT);
	dw_expect_conflicts(1, line);
	snprintf(name, sizeof(name), "x%u", MG_MAX_AT_PORT - 1);
	assert_true(dw_cabled("leaf0", "p3", "h0", name)); /* the last that was learnt stays */
}

static bool has_address(const char *ip, const char *host)
{
	const struct mg_host *h = mg_host_by_ip(dw.m, ip);

	return h && !strcmp(h->name, host);
}

/* Likewise a host that has any number of addresses, or another one with each hello. */
static void addresses(void **state)
{
	char ip[32], line[256];

	(void)state;
	dw_host_at(0, 3, "h0", "10.1.0.0");
	world_pass(&dw, HELLO_MS);
	for (unsigned i = 0; i < MG_MAX_AT_PORT / 2; i++) {
		snprintf(ip, sizeof(ip), "10.8.0.%u", i);
		json_array_append_new(dw_neighbours[0], json_pack("{s:s,s:s,s:s}", "ip", ip, "mac",
								"02:00:00:00:07:03", "port", "p3"));
	}
	world_pass(&dw, HELLO_MS);
	for (unsigned i = 0; i < MG_MAX_AT_PORT / 2 + 6; i++) {
		snprintf(ip, sizeof(ip), "10.9.0.%u", i);
		address_at(0, "p3", ip); /* of all of them: one is left */
		world_pass(&dw, HELLO_MS);
	}
	assert_int_equal(dw.m->n_hosts, MG_MAX_AT_PORT);
	snprintf(line, sizeof(line),
		"leaf0:p3 has a neighbour %s, and has taught %d addresses before: no more are "
		"learnt until the manager starts anew",
		ip, MG_MAX_AT_PORT);
	dw_expect_conflicts(1, line);
	/* What it had stays its, and is not counted again. */
	address_at(0, "p3", "10.1.0.0");
	dw_host_at(0, 4, "h1", "10.1.0.1");
	world_pass(&dw, HELLO_MS);
	assert_true(has_address("10.1.0.0", "h0") && has_address("10.1.0.1", "h1"));
	dw_expect_conflicts(0, NULL);
}

/* Says so many names, one after the other, at port p3 of leaf 0. */
static void say_names(unsigned n)
{
	char name[16];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		dw_hear(0, SPINES, "02:00:00:00:07:33", "nic", name);
		world_pass(&dw, HELLO_MS);
	}
}

/* Where the file has a link there is nothing to learn, names neither. */
static void names_in_file(void **state)
{
	unsigned nodes;

	(void)state;
	json_object_set_new(dw.config, "links",
		json_pack("[{s:s,s:s,s:s,s:s,s:i}]", "a", "leaf0", "a_port", "p3", "b", "h0",
			"b_port", "nic", "mbps", 10000));
	json_object_set_new(
		dw.config, "hosts", json_pack("[{s:s,s:s}]", "name", "h0", "ip", "10.1.0.0"));
	dw_start_with(NULL);
	dw_host_at(0, SPINES, "h0", "10.1.0.0");
	world_pass(&dw, HELLO_MS);
	nodes = dw_nodes();
	say_names(3);
	assert_int_equal(dw_nodes(), nodes);
	assert_true(dw_cabled("leaf0", "p3", "h0", "nic"));
}

/* Where a tree is over what was learnt nobody else is linked, and his names count all the same. */
static void names_under_job(void **state)
{
	unsigned nodes;

	(void)state;
	dw_cable_switches();
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	dw_start_jobs();
	nodes = dw_nodes();
	say_names(MG_MAX_AT_PORT + 6);
	/* One went to the name of h0's port, which counts as one with h0's own. */
	assert_int_equal(dw_nodes(), nodes + MG_MAX_AT_PORT - 1);
	assert_true(dw_cabled("leaf0", "p3", "h0", "nic"));
}

/* Who says what a host says, at another port, changes nothing of that host's link. */
static void same_again(void **state)
{
	uint64_t version;

	(void)state;
	dw_cable_hosts();
	world_pass(&dw, 2 * HELLO_MS);
	dw.sw[1].sw->n_ports++;
	world_pass(&dw, HELLO_MS);
	version = mgr_graph_version(dw.m->g);
	dw_hear(1, SPINES + JOBS, "02:00:00:00:07:03", "nic", "h0");
	world_pass(&dw, 2 * HELLO_MS);
	dw_expect_conflicts(
		1, "leaf1:p6 hears h0:nic by LLDP, which is at another port: not learnt");
	assert_true(dw_cabled("leaf0", "p3", "h0", "nic"));
	assert_int_equal(mgr_graph_version(dw.m->g), version);
}

/* ---- many ---- */

enum { PER_LEAF = 32 };

static void to_nobody(void *arg, unsigned i, const char *line)
{
	(void)arg;
	(void)i;
	(void)line;
}

static void say_nothing(void *arg, enum journal_level level, const char *line)
{
	(void)arg, (void)level, (void)line;
}

static struct manager *manager_of(unsigned leaves, const struct store *store)
{
	const struct manager_io io = {.send = to_nobody, .say = say_nothing};
	json_t *config = json_pack("{s:[],s:b,s:s}", "switches", "discover", 1, "store", "memory");
	char err[MANAGER_ERR_LEN], name[32], ip[32];
	struct ctl_problem p;
	struct manager *m;

	for (unsigned i = 0; i < leaves; i++) {
		snprintf(name, sizeof(name), "leaf%u", i);
		snprintf(ip, sizeof(ip), "10.2.%u.%u", i / 256, i % 256);
		json_array_append_new(json_object_get(config, "switches"),
			json_pack("{s:s,s:s,s:s}", "name", name, "control", name, "ip", ip));
	}
	assert_int_equal(ctl_check_value(&ctl_manager_config, config, "", &p), 0);
	if (manager_create(config, &io, store, 1, 0, &m, err))
		fail_msg("%s", err);
	json_decref(config);
	return m;
}

/* Leaf i hears 32 hosts, each with its address. */
static void say_hello(struct manager *m, unsigned i)
{
	json_t *hello = json_pack("{s:s,s:s,s:{s:s,s:i,s:[],s:[],s:[]}}", "jsonrpc", "2.0", "id",
		"hello", "result", "boot", "1", "max_groups", 4, "modes", "ports", "neighbours");
	json_t *result = json_object_get(hello, "result");
	char port[16], name[32], ip[32], *line;

	for (unsigned k = 0; k < PER_LEAF; k++) {
		const unsigned host = i * PER_LEAF + k;

		snprintf(port, sizeof(port), "p%u", k);
		snprintf(name, sizeof(name), "h%u", host);
		snprintf(ip, sizeof(ip), "10.1.%u.%u", host / 256, host % 256);
		json_array_append_new(json_object_get(result, "ports"),
			json_pack("{s:s,s:s,s:[{s:s,s:s,s:s}]}", "name", port, "link", "up", "lldp",
				"chassis", name, "port", "nic", "system", name));
		json_array_append_new(json_object_get(result, "neighbours"),
			json_pack("{s:s,s:s}", "ip", ip, "port", port));
	}
	line = json_dumps(hello, JSON_COMPACT);
	manager_up(m, i, 1);
	manager_heard(m, i, line, strlen(line), 1);
	free(line);
	json_decref(hello);
}

/* What it costs to learn the links of so many leaves' hosts, and to have them again after a
 * restart. */
static void cost(unsigned leaves, uint64_t *learn, uint64_t *restore)
{
	struct store kept;
	struct manager *m;

	assert_int_equal(store_memory_open(&kept), 0);
	m = manager_of(leaves, &kept);
	for (unsigned i = 0; i < leaves; i++)
		say_hello(m, i);
	assert_int_equal(m->n_hosts, leaves * PER_LEAF);
	*learn = mgr_graph_work(m->g);
	manager_destroy(m);
	m = manager_of(leaves, &kept);
	assert_int_equal(m->n_hosts, leaves * PER_LEAF);
	*restore = mgr_graph_work(m->g);
	for (unsigned h = 0; h < leaves * PER_LEAF; h += 97) {
		char name[32];
		struct mgr_link l;

		snprintf(name, sizeof(name), "h%u", h);
		assert_true(mg_link_at(m, (unsigned)mgr_graph_find(m->g, name), "nic", &l) >= 0);
	}
	manager_destroy(m);
	kept.close(kept.arg);
}

/* Twice as many links are twice as much work. */
static void many(void **state)
{
	uint64_t learn[2], restore[2];

	(void)state;
	cost(32, &learn[0], &restore[0]);
	cost(64, &learn[1], &restore[1]);
	assert_true(learn[1] <= 2 * learn[0] + learn[0] / 8);
	assert_true(restore[1] <= 2 * restore[0] + restore[0] / 8);
}

int dw_refused_tests(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, dw_setup, dw_teardown)
	const struct CMUnitTest tests[] = {T(joins_in), T(address_moves), T(not_learnt),
		T(two_speakers), T(names), T(port_names), T(addresses), T(names_in_file),
		T(names_under_job), T(same_again), cmocka_unit_test(many)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
