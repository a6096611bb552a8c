/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline.get of a real switch: what is registered is in it, all of it, and fits together. */
#include <rte_graph.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/agent.h"
#include "harness.h"

static struct sw *sw;
static json_t *pipeline;

static json_t *ask(const char *line)
{
	struct agent *agent;
	json_t *answer, *result;
	char *text;

	assert_int_equal(agent_create(sw, NULL, &agent), 0);
	text = agent_handle_line(agent, NULL, line, strlen(line));
	answer = json_loads(text, 0, NULL);
	result = json_incref(json_object_get(answer, "result"));
	if (result == NULL)
		fail_msg("%s", text);
	json_decref(answer);
	free(text);
	agent_destroy(agent);
	return result;
}

static json_t *get(void)
{
	return ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pipeline.get\"}");
}

static int start(void **state)
{
	(void)state;
	sw = h_start(3, NULL, NULL);
	pipeline = get();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	json_decref(pipeline);
	h_stop_whole(sw);
	return 0;
}

static const char *text(const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	if (s == NULL)
		fail_msg("no %s in %s", key, json_dumps(obj, 0));
	return s;
}

/* The item of a list whose field has this value, and its place. */
static json_t *find(const json_t *list, const char *field, const char *value, size_t *at)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		if (strcmp(text(item, field), value) != 0)
			continue;
		if (at != NULL)
			*at = i;
		return item;
	}
	return NULL;
}

static bool has(const json_t *names, const char *name)
{
	json_t *item;
	size_t i;

	json_array_foreach(names, i, item)
	{
		if (strcmp(json_string_value(item), name) == 0)
			return true;
	}
	return false;
}

/* ---- nodes ---- */

struct count {
	unsigned n;
};

static void each_node(
	void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles)
{
	struct count *c = arg;

	(void)calls, (void)packets, (void)cycles;
	if (strcmp(node, "port_tx_flush") == 0) /* no node: the end of a turn */
		return;
	if (find(json_object_get(pipeline, "stages"), "node", node, NULL) == NULL)
		fail_msg("node %s is not in the pipeline", node);
	c->n++;
}

/* Every node that runs, and with the edges of its registration. */
static void nodes(void **state)
{
	const json_t *stages = json_object_get(pipeline, "stages");
	struct count c = {0};
	json_t *stage;
	size_t i;

	(void)state;
	sw_nodes(sw, each_node, &c);
	assert_true(c.n > 10);
	assert_int_equal(json_array_size(stages), c.n);
	json_array_foreach(stages, i, stage)
	{
		const rte_node_t id = rte_node_from_name(text(stage, "node"));
		const json_t *next = json_object_get(stage, "next");
		char *names[SW_STAGE_EDGES];
		const rte_edge_t n = rte_node_edge_count(id);

		assert_in_range(n, 0, SW_STAGE_EDGES);
		assert_int_equal(json_array_size(next), n);
		rte_node_edge_get(id, names);
		for (unsigned k = 0; k < n; k++)
			assert_string_equal(json_string_value(json_array_get(next, k)), names[k]);
	}
}

/* A packet's way goes down the list; the ways back are known. */
static void order(void **state)
{
	static const char *const back[][2] = {{"srv6_local", "ip_forward"}, {"srv6_local", "parse"},
		{"srv6_encap", "ip_forward"}};
	const json_t *stages = json_object_get(pipeline, "stages");
	json_t *stage, *name;
	size_t i, k, to = 0;

	(void)state;
	assert_string_equal(text(json_array_get(stages, 0), "node"), "port_rx");
	json_array_foreach(stages, i, stage)
	{
		json_array_foreach(json_object_get(stage, "next"), k, name)
		{
			const char *from = text(stage, "node"), *next = json_string_value(name);
			bool is_back = false;

			for (unsigned b = 0; b < sizeof(back) / sizeof(back[0]); b++)
				is_back |= !strcmp(back[b][0], from) && !strcmp(back[b][1], next);
			assert_non_null(find(stages, "node", next, &to));
			if (!is_back && to <= i)
				fail_msg("%s comes before %s", next, from);
		}
	}
}

/* ---- tables ---- */

struct reason {
	const char *name;
	bool found;
};

static void each_reason(void *arg, const char *name, const char *help, uint64_t count)
{
	struct reason *r = arg;

	(void)help, (void)count;
	r->found |= strcmp(r->name, name) == 0;
}

/* It belongs to a node that there is, and what it does not match goes somewhere. */
static void check_table(const json_t *table)
{
	const json_t *stages = json_object_get(pipeline, "stages");
	const json_t *stage = find(stages, "node", text(table, "node"), NULL);
	struct reason r = {.name = text(table, "miss")};

	if (stage == NULL || !has(json_object_get(stage, "tables"), text(table, "name")))
		fail_msg("table %s belongs to no node", text(table, "name"));
	sw_drops(sw, each_reason, &r);
	sw_outcomes(sw, each_reason, &r);
	r.found |= find(json_object_get(table, "actions"), "name", r.name, NULL) != NULL;
	if (!r.found && find(stages, "node", r.name, NULL) == NULL)
		fail_msg("table %s: %s is no node, reason or action", text(table, "name"), r.name);
}

static void tables(void **state)
{
	const json_t *list = json_object_get(pipeline, "tables");
	const json_t *views = json_object_get(pipeline, "views");
	json_t *table;
	size_t i, n = 0;

	(void)state;
	assert_int_equal(json_array_size(list), table_count(sw_tables(sw)));
	for (unsigned t = 0; t < table_count(sw_tables(sw)); t++)
		assert_non_null(find(list, "name", table_desc(sw_tables(sw), t)->name, NULL));
	json_array_foreach(list, i, table) check_table(table);
	json_array_foreach(views, i, table) check_table(table);
	assert_non_null(find(views, "name", "inc_endpoint", NULL));
	assert_non_null(find(views, "name", "nr_connection", NULL));
	json_array_foreach(json_object_get(pipeline, "stages"), i, table) n +=
		json_array_size(json_object_get(table, "tables"));
	assert_int_equal(n, json_array_size(list) + json_array_size(views));
}

/* Rows of acl as they are written and read: what is absent stands for everything, and so does "*".
 */
static void acl(void **state)
{
	static const char *const rows[] = {
		"{'key':{'src':'10.0.0.0/28','protocol':'0x11&&&0xff','dport':'4791..4791',"
		"'port':'p0','vlan':'0x000&&&0xfff'},'priority':5,'action':'deny','data':{},'hits':"
		"1}",
		"{'key':{'dst':'fd00::13/128','has_ports':'0x0&&&0x1'},'priority':0,"
		"'action':'dscp','data':{'dscp':46},'hits':0}",
		"{'key':{},'priority':-1,'action':'permit','data':{},'hits':0}",
	};
	const struct wire_ip a = h_host4(0), b = h_host4(1);
	const uint8_t udp[8] = {0x12, 0x34, 4791 >> 8, 4791 & 255, 0, 8};
	json_t *result, *wanted;
	uint8_t frame[128];

	(void)state;
	json_decref(
		ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"table.write\",\"params\":{"
		    "\"updates\":[{\"op\":\"insert\",\"table\":\"acl\",\"priority\":5,\"key\":{"
		    "\"src\":\"10.0.0.0/28\",\"protocol\":17,\"dport\":4791,\"port\":\"p0\","
		    "\"vlan\":0},\"action\":\"deny\"},"
		    "{\"op\":\"insert\",\"table\":\"acl\",\"key\":{\"dst\":\"fd00::13\","
		    "\"has_ports\":0},\"action\":\"dscp\",\"data\":{\"dscp\":46}},"
		    "{\"op\":\"insert\",\"table\":\"acl\",\"priority\":-1,\"key\":{\"src\":\"*\","
		    "\"dst\":\"*\",\"protocol\":\"*\",\"sport\":\"*\",\"port\":\"*\"},"
		    "\"action\":\"permit\"}]}}"));
	h_expect_drop(sw, 0, frame,
		h_ip4(frame, h_port_mac(sw, 0), &a, &b, IP_PROTO_UDP, 9, udp, sizeof(udp)),
		"acl_denied");
	result = ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"table.read\","
		     "\"params\":{\"table\":\"acl\"}}");
	for (unsigned i = 0; i < 3; i++) {
		json_t *row = json_array_get(json_object_get(result, "entries"), i);

		wanted = h_json(rows[i]);
		if (!json_equal(row, wanted))
			fail_msg("%s", json_dumps(row, 0));
		json_decref(wanted);
	}
	json_decref(result);
}

/* ---- the parser ---- */

/* Where a packet goes is what its state says. */
static void parser(void **state)
{
	const json_t *states = json_object_get(pipeline, "parser"), *stage;
	const json_t *stages = json_object_get(pipeline, "stages"), *edges;
	json_t *s, *after;
	struct frame f;
	uint8_t b[256];
	size_t i;

	(void)state;
	edges = json_object_get(find(stages, "node", "parse", NULL), "next");
	json_array_foreach(states, i, s)
	{
		assert_true(has(edges, text(s, "others")));
		if (json_object_get(s, "ours") != NULL)
			assert_true(has(edges, text(s, "ours")));
	}
	assert_string_equal(text(find(states, "state", "roce", NULL), "ours"), "inc_lookup");
	assert_string_equal(text(find(states, "state", "ip", NULL), "others"), "ip_forward");
	assert_string_equal(text(find(states, "state", "ip", NULL), "ours"), "end");

	const struct wire_ip asker = h_host4(0), own = h_ip("10.0.0.1");
	const struct wire_ip other = h_host4(1);
	const unsigned len = h_arp(b, ARP_REQUEST, &asker, &own, 0);
	h_exchange(sw, 0, b, len, 0, &f);
	h_exchange(sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &asker, &other, 253, 9, "x", 1), 1, &f);
	after = get();
	stage = find(json_object_get(after, "stages"), "node", "parse", NULL);
	assert_int_equal(json_integer_value(json_object_get(stage, "packets")), 2);
	stage = find(json_object_get(after, "stages"), "node",
		text(find(states, "state", "arp", NULL), "others"), NULL);
	assert_int_equal(json_integer_value(json_object_get(stage, "packets")), 1);
	stage = find(json_object_get(after, "stages"), "node", "ip_forward", NULL);
	assert_int_equal(json_integer_value(json_object_get(stage, "packets")), 1);
	json_decref(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nodes, start, stop),
		cmocka_unit_test_setup_teardown(order, start, stop),
		cmocka_unit_test_setup_teardown(tables, start, stop),
		cmocka_unit_test_setup_teardown(acl, start, stop),
		cmocka_unit_test_setup_teardown(parser, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
