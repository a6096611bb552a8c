/* SPDX-License-Identifier: BSD-3-Clause */
/* What switches hear by LLDP beside what the file says: who is where he should be changes nothing;
 * a cable in the wrong place is not used, is said, and what ran over it goes on elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "lib/rnic/rnic.h"
#include "tests/unit/manager/world.h"

enum { HELLO_MS = 1500 };

static struct world w;
static struct store store;

static void chassis_of(unsigned i, char text[SW_LLDP_TEXT])
{
	snprintf(text, SW_LLDP_TEXT, "02:00:00:00:02:%02x", i);
}

/* Switch i hears this at its port. */
static void hear(
	unsigned i, unsigned port, const char *chassis, const char *its_port, const char *system)
{
	struct sw_lldp_info *info = &w.sw[i].sw->heard[port];

	*info = (struct sw_lldp_info){0};
	snprintf(info->chassis, sizeof(info->chassis), "%s", chassis);
	snprintf(info->port, sizeof(info->port), "%s", its_port);
	snprintf(info->system, sizeof(info->system), "%s", system);
}

/* Switch i hears port `of` of switch `peer`; its name there is nobody's business. */
static void hear_switch(unsigned i, unsigned port, unsigned peer, unsigned of)
{
	char chassis[SW_LLDP_TEXT], name[16];

	chassis_of(peer, chassis);
	snprintf(name, sizeof(name), "p%u", of);
	hear(i, port, chassis, name, "incline");
}

/* What a software RNIC says by its two ports on this host. */
static void rnic_says(const char *host, struct wire_lldp says[2])
{
	struct rnic_config config = {.n_ports = 2,
		.lldp = true,
		.port = {{.mac = {2, 0, 0, 0, 9, 1}, .mtu = 4200, .name = "host0"},
			{.mac = {2, 0, 0, 0, 9, 2}, .mtu = 4200, .name = "host1"}}};
	struct rnic_frame frame;
	struct rnic *rnic;
	uint8_t bytes[256];

	snprintf(config.host, sizeof(config.host), "%s", host);
	assert_int_equal(rnic_create(&config, &rnic), 0);
	rnic_timer(rnic, 0);
	for (unsigned i = 0; i < 2; i++) {
		int len;

		assert_true(rnic_tx(rnic, RNIC_ALL_PORTS, &frame, 0));
		len = rnic_frame_flatten(&frame, bytes, sizeof(bytes));
		assert_true(len > 0 && wire_is_lldp(bytes, (size_t)len));
		assert_int_equal(wire_lldp_parse(bytes, (size_t)len, &says[i]), WIRE_LLDP_OK);
	}
	rnic_destroy(rnic);
}

/* Switch i hears that at its port, and tells of it as switches do (sw_lldp.c). */
static void hear_rnic(unsigned i, unsigned port, const struct wire_lldp *says)
{
	char chassis[SW_LLDP_TEXT], its_port[SW_LLDP_TEXT], system[SW_LLDP_TEXT];

	hear(i, port, wire_lldp_chassis_text(&says->chassis, chassis, sizeof(chassis)),
		wire_lldp_port_text(&says->port, its_port, sizeof(its_port)),
		wire_lldp_name_text(says, system, sizeof(system)));
}

static void speak(unsigned i)
{
	chassis_of(i, w.sw[i].sw->chassis);
}

/* All switches speak, and all cables are where the file has them. */
static int setup(void **state)
{
	(void)state;
	assert_int_equal(store_memory_open(&store), 0);
	world_open_with(&w, &store);
	for (unsigned i = 0; i < SWITCHES; i++)
		speak(i);
	for (unsigned l = 0; l < LEAVES; l++)
		for (unsigned s = 0; s < SPINES; s++) {
			hear_switch(l, s, LEAVES + s, l);
			hear_switch(LEAVES + s, l, l, s);
		}
	world_pass(&w, HELLO_MS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_close(&w);
	store.close(store.arg);
	return 0;
}

static json_t *conflicts(void)
{
	json_t *t = world_ask(&w, "topology.get", NULL);
	json_t *list = json_incref(json_object_get(t, "conflicts"));

	json_decref(t);
	return list;
}

/* n of them, and this is one. */
static void expect(size_t n, const char *line)
{
	json_t *list = conflicts(), *item;
	bool found = line == NULL;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (line && !strcmp(json_string_value(item), line))
			found = true;
	}
	if (json_array_size(list) != n || !found)
		fail_msg("%s", json_dumps(list, 0));
	json_decref(list);
}

/* Of the link between a leaf and a spine. */
static bool link_up(unsigned leaf, unsigned spine)
{
	json_t *t = world_ask(&w, "topology.get", NULL), *row;
	char a[16], b[16];
	int up = -1;
	size_t i;

	snprintf(a, sizeof(a), "leaf%u", leaf);
	snprintf(b, sizeof(b), "spine%u", spine);
	json_array_foreach(json_object_get(t, "links"), i, row)
	{
		if (!strcmp(rpc_string(row, "a"), a) && !strcmp(rpc_string(row, "b"), b))
			up = !strcmp(rpc_string(row, "state"), "up");
	}
	json_decref(t);
	assert_true(up >= 0);
	return up;
}

/* Of the jobs when they began: what they are, and over which spine they run. */
static uint64_t epoch[JOBS];
static unsigned from[JOBS];

static void start_all(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		w.job[j].again = true;
		world_start_job(&w, j);
		world_pass(&w, 300);
		assert_true(world_active(&w, j));
		epoch[j] = w.job[j].rank[0].epoch;
		from[j] = world_spine(&w, j) - LEAVES;
	}
}

static void nobody_notices(void)
{
	for (unsigned j = 0; j < JOBS; j++)
		assert_true(world_active(&w, j) && w.job[j].rank[0].epoch == epoch[j]);
}

/* Leaf 0's cables to the first two spines. */
static void exchange(void)
{
	hear_switch(0, 0, LEAVES + 1, 0);
	hear_switch(0, 1, LEAVES + 0, 0);
	hear_switch(LEAVES + 0, 0, 0, 1);
	hear_switch(LEAVES + 1, 0, 0, 0);
}

static void all_well(void **state)
{
	(void)state;
	expect(0, NULL);
	for (unsigned l = 0; l < LEAVES; l++)
		for (unsigned s = 0; s < SPINES; s++)
			assert_true(link_up(l, s));
	start_all();
	world_pass(&w, 5000);
	nobody_notices();
}

/* Leaf 0's cables to two spines are exchanged while jobs run: those that ran over them go on by the
 * third, nobody else notices; put right, both links are there again. */
static void exchanged(void **state)
{
	(void)state;
	start_all();
	exchange();
	world_pass(&w, 5000);
	expect(4, "leaf0:p0 hears spine1:p0 by LLDP, where the file has spine0:p0: not used");
	expect(4, "spine1:p0 hears leaf0:p0 by LLDP, where the file has leaf0:p1: not used");
	assert_false(link_up(0, 0) || link_up(0, 1));
	assert_true(link_up(0, 2) && link_up(1, 0) && link_up(1, 1));
	for (unsigned j = 0; j < JOBS; j++) {
		assert_true(world_active(&w, j));
		assert_int_equal(world_spine(&w, j), LEAVES + 2);
		if (from[j] == 2)
			assert_int_equal(w.job[j].rank[0].epoch, epoch[j]);
		else
			assert_true(w.job[j].rank[0].epoch > epoch[j]);
	}
	/* The link itself comes and goes, and stays what it is. */
	world_cut(&w, 0, LEAVES + 0, true);
	world_pass(&w, 300);
	world_cut(&w, 0, LEAVES + 0, false);
	world_pass(&w, 300);
	assert_false(link_up(0, 0));
	hear_switch(0, 0, LEAVES + 0, 0);
	hear_switch(0, 1, LEAVES + 1, 0);
	hear_switch(LEAVES + 0, 0, 0, 0);
	hear_switch(LEAVES + 1, 0, 0, 1);
	world_pass(&w, HELLO_MS);
	expect(0, NULL);
	assert_true(link_up(0, 0) && link_up(0, 1));
}

/* Exchanged while nobody led, and only spines hear it, each in its first word to the new manager.
 */
static void exchanged_meanwhile(void **state)
{
	(void)state;
	start_all();
	world_kill_manager(&w);
	exchange();
	memset(w.sw[0].sw->heard, 0, sizeof(w.sw[0].sw->heard));
	world_start_manager(&w);
	world_pass(&w, 5000);
	expect(2, "spine0:p0 hears leaf0:p1 by LLDP, where the file has leaf0:p0: not used");
	for (unsigned j = 0; j < JOBS; j++) {
		assert_true(world_active(&w, j));
		assert_int_equal(world_spine(&w, j), LEAVES + 2);
		assert_int_equal(w.job[j].rank[0].epoch > epoch[j], from[j] != 2);
	}
}

/* A port towards a host: any program there may have sent that, or a switch is there indeed; it is
 * said, and ranks at that host go on, and begin. */
static void at_a_host(void **state)
{
	(void)state;
	start_all();
	hear_switch(0, SPINES, LEAVES + 1, 0);
	hear(1, SPINES + 1, "0c:42:a1:00:00:03", "eth7", "h0");
	world_pass(&w, 5000);
	expect(2, "leaf0:p3 hears spine1:p0 by LLDP, where the file has h0:nic: used all the same");
	expect(2, "leaf1:p4 hears h0:eth7 by LLDP, where the file has h11:nic: used all the same");
	nobody_notices();
	world_end_job(&w, 0);
	world_pass(&w, 500);
	world_start_job(&w, 0);
	world_pass(&w, 500);
	assert_true(world_active(&w, 0));
}

/* A software RNIC on a host, at two ports of a leaf: where the file has that host nothing is said,
 * elsewhere it is; under a name that the file does not have it is nobody. */
static void rnic_host(void **state)
{
	struct wire_lldp says[2];

	(void)state;
	rnic_says("h0", says);
	hear_rnic(0, SPINES, &says[0]);
	world_pass(&w, HELLO_MS);
	expect(0, NULL);
	start_all();
	hear_rnic(0, SPINES + 1, &says[1]); /* h1's */
	hear_rnic(1, 0, &says[1]);          /* a spine's */
	world_pass(&w, HELLO_MS);
	expect(2, "leaf0:p4 hears h0:host1 by LLDP, where the file has h1:nic: used all the same");
	expect(2, "leaf1:p0 hears h0:host1 by LLDP, where the file has spine0:p1: not used");
	assert_false(link_up(1, 0));
	hear_switch(1, 0, LEAVES, 1);
	rnic_says("elsewhere", says);
	hear_rnic(0, SPINES + 1, &says[1]);
	world_pass(&w, HELLO_MS);
	expect(0, NULL);
	assert_true(link_up(1, 0));
}

/* Where LLDP is only to tell, nothing ends, and everything is used. */
static void only_said(void **state)
{
	(void)state;
	json_object_set_new(w.config, "lldp", json_string("say"));
	world_kill_manager(&w);
	world_start_manager(&w);
	world_pass(&w, HELLO_MS);
	start_all();
	exchange();
	world_pass(&w, 5000);
	expect(4, "leaf0:p0 hears spine1:p0 by LLDP, where the file has spine0:p0: used all the "
		  "same");
	assert_true(link_up(0, 0) && link_up(0, 1));
	nobody_notices();
}

/* Who is no node of the fabric, a host by its name or by none, and who has no link in the file. */
static void others(void **state)
{
	(void)state;
	hear(0, 0, "00:11:22:33:44:55", "Ethernet1/7", "some bridge");
	hear(0, SPINES, "0c:42:a1:00:00:01", "0c:42:a1:00:00:01", "");
	hear(0, SPINES + 1, "0c:42:a1:00:00:02", "eth7", "h1");
	hear(1, SPINES, "0c:42:a1:00:00:03", "eth7", "h1"); /* h10's */
	world_pass(&w, HELLO_MS);
	expect(1, "leaf1:p3 hears h1:eth7 by LLDP, where the file has h10:nic: used all the same");
	assert_true(link_up(0, 0));
	/* A switch's name is nothing that it is known by. */
	hear(1, SPINES, "0c:42:a1:00:00:03", "eth7", "spine0");
	world_pass(&w, HELLO_MS);
	expect(0, NULL);
	/* A cable too many. */
	w.sw[0].sw->n_ports++;
	hear_switch(0, SPINES + JOBS, LEAVES + 2, 9);
	world_pass(&w, HELLO_MS);
	expect(1, "leaf0:p6 hears spine2:p9 by LLDP, where the file has no link");
}

/* Anew with another chassis: the old one, which is still heard, is nobody's then; and one that two
 * have is neither's. */
static void other_chassis(void **state)
{
	(void)state;
	hear_switch(0, 0, LEAVES + 1, 0);
	world_pass(&w, HELLO_MS);
	expect(1, NULL);
	snprintf(w.sw[LEAVES + 1].sw->chassis, SW_LLDP_TEXT, "02:00:00:00:03:07");
	world_pass(&w, HELLO_MS);
	world_pass(&w, HELLO_MS);
	expect(0, NULL);
	hear(0, 0, "02:00:00:00:03:07", "p0", "");
	world_pass(&w, HELLO_MS);
	expect(1, NULL);
	snprintf(w.sw[1].sw->chassis, SW_LLDP_TEXT, "02:00:00:00:03:07");
	world_pass(&w, HELLO_MS);
	world_pass(&w, HELLO_MS);
	expect(0, NULL);
	/* It has it alone again. Switched off, nobody is heard. */
	speak(1);
	hear_switch(0, 1, LEAVES + 0, 0);
	world_pass(&w, HELLO_MS);
	world_pass(&w, HELLO_MS);
	expect(2, "leaf0:p1 hears spine0:p0 by LLDP, where the file has spine1:p0: not used");
	expect(2, "leaf0:p0 hears spine1:p0 by LLDP, where the file has spine0:p0: not used");
	w.sw[0].sw->chassis[0] = '\0';
	memset(w.sw[0].sw->heard, 0, sizeof(w.sw[0].sw->heard));
	world_pass(&w, HELLO_MS);
	expect(0, NULL);
}

/* Two switches have one chassis, and one of them is late when a manager begins: the other one is
 * not taken for it. */
static void same_chassis(void **state)
{
	const unsigned late = LEAVES + 1;

	(void)state;
	memcpy(w.sw[late].sw->chassis, w.sw[LEAVES].sw->chassis, SW_LLDP_TEXT);
	hear_switch(0, 1, LEAVES, 0);
	hear_switch(1, 1, LEAVES, 1);
	world_pass(&w, 2 * HELLO_MS);
	start_all();
	world_kill_manager(&w);
	world_cut_off(&w, late, true);
	world_start_manager(&w);
	world_pass(&w, 2 * HELLO_MS);
	nobody_notices();
	expect(0, NULL);
	world_cut_off(&w, late, false);
	world_pass(&w, 2 * HELLO_MS);
	nobody_notices();
	expect(0, NULL);
	assert_true(link_up(0, 1));
	/* With a chassis of its own it is not who is heard there: found as ever. */
	chassis_of(late, w.sw[late].sw->chassis);
	world_pass(&w, HELLO_MS);
	expect(2, "leaf0:p1 hears spine0:p0 by LLDP, where the file has spine1:p0: not used");
}

/* A switch says more than anybody can keep, and of its links last: those count. */
static void says_much(void **state)
{
	json_t *ports = json_array(), *hello, *t = world_ask(&w, "topology.get", NULL);
	char name[16], chassis[SW_LLDP_TEXT], *line;

	(void)state;
	chassis_of(LEAVES + 2, chassis);
	for (unsigned i = 0; i <= 5000; i++) {
		snprintf(name, sizeof(name), i < 5000 ? "x%u" : "p0", i);
		json_array_append_new(
			ports, json_pack("{s:s,s:s,s:[{s:s,s:s}]}", "name", name, "link", "up",
				       "lldp", "chassis", chassis, "port", "p0"));
	}
	hello = json_pack("{s:s,s:s,s:{s:O,s:i,s:o}}", "jsonrpc", "2.0", "id", "hello", "result",
		"boot", json_object_get(json_array_get(json_object_get(t, "nodes"), 0), "boot"),
		"max_groups", 8, "ports", ports);
	assert_true(link_up(0, 0));
	line = json_dumps(hello, JSON_COMPACT);
	manager_heard(w.m, 0, line, strlen(line), w.now);
	assert_false(link_up(0, 0));
	free(line);
	json_decref(hello);
	json_decref(t);
}

/* A job that gets no tree for it hears of it. */
static void explained(void **state)
{
	json_t *r;

	(void)state;
	for (unsigned s = 0; s < SPINES; s++)
		hear_switch(0, s, LEAVES + (s + 1) % SPINES, 0);
	world_pass(&w, HELLO_MS);
	world_start_job(&w, 0);
	world_pass(&w, 500);
	assert_string_equal(w.job[0].rank[0].phase, "ring");
	r = world_ask(&w, "job.explain", json_pack("{s:s}", "job", "job0"));
	assert_non_null(strstr(rpc_string(r, "line"),
		"; leaf0:p0 hears spine1:p0 by LLDP, where the file has spine0:p0: not used, and 2 "
		"links more"));
	json_decref(r);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {T(all_well), T(exchanged), T(exchanged_meanwhile),
		T(at_a_host), T(rnic_host), T(only_said), T(others), T(other_chassis),
		T(same_chassis), T(says_much), T(explained)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
