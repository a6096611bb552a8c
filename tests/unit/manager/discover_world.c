/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/manager/discover_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world dw;
static struct store store;
json_t *dw_neighbours[SWITCHES];
void (*dw_changes_hello)(unsigned i, json_t *hello);

/* The fake switch has no table of neighbours by the real one's name. */
static char *with_neighbours(unsigned i, char *answer)
{
	json_t *a = json_loads(answer, 0, NULL), *r = json_object_get(a, "result");

	if (json_object_get(r, "neighbours")) {
		json_object_set(r, "neighbours", dw_neighbours[i]);
		if (dw_changes_hello)
			dw_changes_hello(i, r);
		free(answer);
		answer = json_dumps(a, JSON_COMPACT);
	}
	json_decref(a);
	return answer;
}

void dw_chassis_of(unsigned i, char text[SW_LLDP_TEXT])
{
	snprintf(text, SW_LLDP_TEXT, "02:00:00:00:02:%02x", i);
}

void dw_hear(
	unsigned i, unsigned port, const char *chassis, const char *its_port, const char *system)
{
	struct sw_lldp_info *info = &dw.sw[i].sw->heard[port];

	*info = (struct sw_lldp_info){0};
	snprintf(info->chassis, sizeof(info->chassis), "%s", chassis);
	snprintf(info->port, sizeof(info->port), "%s", its_port);
	snprintf(info->system, sizeof(info->system), "%s", system);
}

void dw_hear_switch(unsigned i, unsigned port, unsigned peer, unsigned of)
{
	char chassis[SW_LLDP_TEXT], name[16];

	dw_chassis_of(peer, chassis);
	snprintf(name, sizeof(name), "p%u", of);
	dw_hear(i, port, chassis, name, "incline");
}

/* Host `name` says so at a port of a leaf; whose neighbour there has this address. */
void dw_host_at(unsigned leaf, unsigned port, const char *name, const char *ip)
{
	char chassis[SW_LLDP_TEXT], p[16];

	snprintf(chassis, sizeof(chassis), "02:00:00:00:07:%02x", 16 * leaf + port);
	snprintf(p, sizeof(p), "p%u", port);
	dw_hear(leaf, port, chassis, "nic", name);
	json_array_append_new(dw_neighbours[leaf],
		json_pack("{s:s,s:s,s:s}", "ip", ip, "mac", chassis, "port", p));
}

void dw_silence(unsigned i)
{
	memset(dw.sw[i].sw->heard, 0, sizeof(dw.sw[i].sw->heard));
}

void dw_cable_switches(void)
{
	for (unsigned l = 0; l < LEAVES; l++)
		for (unsigned s = 0; s < SPINES; s++) {
			dw_hear_switch(l, s, LEAVES + s, l);
			dw_hear_switch(LEAVES + s, l, l, s);
		}
}

/* The job's rank r has address 10.1.r.j, at leaf r. */
void dw_cable_hosts(void)
{
	char name[16], ip[40];

	for (unsigned l = 0; l < LEAVES; l++)
		for (unsigned j = 0; j < JOBS; j++) {
			snprintf(name, sizeof(name), "h%u", 10 * l + j);
			snprintf(ip, sizeof(ip), "10.1.%u.%u", l, j);
			dw_host_at(l, SPINES + j, name, ip);
		}
}

void dw_start_with(const char *without)
{
	world_kill_manager(&dw);
	if (without)
		json_object_del(dw.config, without);
	json_object_set_new(dw.config, "discover", json_true());
	json_object_set_new(dw.config, "discover_mbps", json_integer(10000));
	world_start_manager(&dw);
	world_pass(&dw, HELLO_MS);
}

int dw_setup(void **state)
{
	(void)state;
	assert_int_equal(store_memory_open(&store), 0);
	world_open_with(&dw, &store);
	for (unsigned i = 0; i < SWITCHES; i++) {
		dw_chassis_of(i, dw.sw[i].sw->chassis);
		dw_neighbours[i] = json_array();
	}
	dw.says = with_neighbours;
	json_object_del(dw.config, "hosts");
	dw_start_with("links");
	return 0;
}

int dw_teardown(void **state)
{
	(void)state;
	world_close(&dw);
	for (unsigned i = 0; i < SWITCHES; i++)
		json_decref(dw_neighbours[i]);
	store.close(store.arg);
	return 0;
}

/* How many links say that, of all (state NULL) or of those in this state. */
unsigned dw_links(const char *by, const char *state)
{
	json_t *t = world_ask(&dw, "topology.get", NULL), *row;
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

bool dw_cabled(const char *a, const char *a_port, const char *b, const char *b_port)
{
	json_t *t = world_ask(&dw, "topology.get", NULL), *row;
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

unsigned dw_nodes(void)
{
	json_t *t = world_ask(&dw, "topology.get", NULL);
	const unsigned n = (unsigned)json_array_size(json_object_get(t, "nodes"));

	json_decref(t);
	return n;
}

void dw_expect_conflicts(size_t n, const char *line)
{
	json_t *t = world_ask(&dw, "topology.get", NULL);
	const json_t *list = json_object_get(t, "conflicts"), *item;
	bool found = line == NULL;
	size_t i;

	json_array_foreach(list, i, item) found = found || !strcmp(json_string_value(item), line);
	if (json_array_size(list) != n || !found)
		fail_msg("%s", json_dumps(list, 0));
	json_decref(t);
}

void dw_start_jobs(void)
{
	for (unsigned j = 0; j < JOBS; j++) {
		dw.job[j].again = true;
		world_start_job(&dw, j);
		world_pass(&dw, 300);
		assert_true(world_active(&dw, j));
	}
}
