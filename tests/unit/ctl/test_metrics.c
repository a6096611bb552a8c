/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenMetrics: how it is written, and what the agent writes of a switch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/metrics.h"
#include "lib/ctl/metrics.h"
#include "tests/unit/ctl/rpc_helper.h"

static const char *const colours[] = {"red", "green", NULL};

static const struct ctl_field fields[] = {
	{"name", CTL_STRING, .metric = CTL_LABEL, .help = "of it"},
	{"queue", CTL_INT, .metric = CTL_LABEL, .help = "number"},
	{"rx_bytes", CTL_U64, .metric = CTL_COUNTER, .help = "received \"here\\there\"\nand so on"},
	{"held_ms", CTL_U64, .metric = CTL_GAUGE, .help = "since"},
	{"count", CTL_U64, .metric = CTL_COUNTER, .help = "of all"},
	{"colour", CTL_STRING, .values = colours, .metric = CTL_STATES, .help = "now"},
	{"full", CTL_BOOL, .metric = CTL_GAUGE, .help = "or not"},
	{"note", CTL_STRING, .help = "is no metric"}, {0}};

static char *finish(struct metrics *m)
{
	size_t len;
	char *text = metrics_end(m, &len);

	assert_non_null(text);
	assert_int_equal(strlen(text), len);
	return text;
}

static void test_rows(void **state)
{
	struct metrics *m = metrics_begin();
	json_t *rows = json_pack("[{s:s,s:i,s:s,s:i,s:i,s:s,s:b,s:s},{s:s,s:i}]", "name",
		"a\"\\\nb", "queue", 3, "rx_bytes", "18446744073709551615", "held_ms", 1500,
		"count", 7, "colour", "green", "full", 1, "note", "n", "name", "z", "count", 8);
	char *text;

	(void)state;
	metrics_rows(m, "box", fields, rows);
	text = finish(m);
	assert_string_equal(text,
		"# TYPE incline_box_rx_bytes counter\n"
		"# UNIT incline_box_rx_bytes bytes\n"
		"# HELP incline_box_rx_bytes received \\\"here\\\\there\\\"\\nand so on\n"
		"incline_box_rx_bytes_total{box=\"a\\\"\\\\\\nb\",queue=\"3\"} "
		"18446744073709551615\n"
		"# TYPE incline_box_held_seconds gauge\n"
		"# UNIT incline_box_held_seconds seconds\n"
		"# HELP incline_box_held_seconds since\n"
		"incline_box_held_seconds{box=\"a\\\"\\\\\\nb\",queue=\"3\"} 1.500000000\n"
		"# TYPE incline_boxs counter\n"
		"# HELP incline_boxs of all\n"
		"incline_boxs_total{box=\"a\\\"\\\\\\nb\",queue=\"3\"} 7\n"
		"incline_boxs_total{box=\"z\"} 8\n"
		"# TYPE incline_box_colour stateset\n"
		"# HELP incline_box_colour now\n"
		"incline_box_colour{box=\"a\\\"\\\\\\nb\",queue=\"3\",incline_box_colour=\"red\"} "
		"0\n"
		"incline_box_colour{box=\"a\\\"\\\\\\nb\",queue=\"3\",incline_box_colour=\"green\"}"
		" 1\n"
		"# TYPE incline_box_full gauge\n"
		"# HELP incline_box_full or not\n"
		"incline_box_full{box=\"a\\\"\\\\\\nb\",queue=\"3\"} 1\n"
		"# TYPE incline_metrics_rows_left_out gauge\n"
		"# HELP incline_metrics_rows_left_out Groups and others of which this page has no "
		"samples: there are too many.\n"
		"incline_metrics_rows_left_out 0\n"
		"# EOF\n");
	free(text);
	json_decref(rows);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void test_too_many_rows(void **state)
{
	struct metrics *m = metrics_begin();
	json_t *rows = json_array();
	char *text;

	(void)state;
	for (int i = 0; i < METRICS_MAX_ROWS + 5; i++)
		json_array_append_new(rows, json_pack("{s:i,s:i}", "queue", i, "count", 1));
	metrics_rows(m, "box", fields, rows);
	text = finish(m);
	assert_int_equal(count(text, "incline_boxs_total{"), METRICS_MAX_ROWS);
	assert_int_equal(count(text, "incline_metrics_rows_left_out 5\n"), 1);
	free(text);
	json_decref(rows);
}

/* No page at all, rather than a part of one. */
static void test_too_many_bytes(void **state)
{
	struct metrics *m = metrics_begin();
	char labels[200];
	size_t len;

	(void)state;
	memset(labels, 'x', sizeof(labels));
	labels[sizeof(labels) - 1] = '\0';
	metrics_family(m, "wide", CTL_GAUGE, "too many of these");
	for (unsigned i = 0; i < METRICS_MAX_BYTES / 100; i++)
		metrics_sample(m, labels, i);
	assert_null(metrics_end(m, &len));
	assert_in_range(len, METRICS_MAX_BYTES, METRICS_MAX_BYTES + 1000);
}

static void test_label_without_room(void **state)
{
	char buf[20];
	size_t used;

	(void)state;
	used = metrics_label(buf, sizeof(buf), 0, "port", "h0");
	assert_string_equal(buf, "port=\"h0\"");
	assert_int_equal(metrics_label(buf, sizeof(buf), used, "reason", "too long"), used);
	assert_string_equal(buf, "port=\"h0\"");
	memset(buf, 'x', sizeof(buf)); /* of whoever had the memory before */
	assert_int_equal(metrics_label(buf, sizeof(buf), 0, "reason", "too long by far"), 0);
	assert_string_equal(buf, "");
}

/* ---- of a switch ---- */

static void expect(const char *text, const char *line)
{
	if (!text || !strstr(text, line))
		fail_msg("no \"%s\" in\n%s", line, text ? text : "nothing");
}

static void test_switch(void **state)
{
	struct rpc_fixture *f = *state;
	size_t len;
	char *text;

	json_decref(call_ok(f, "group.create",
		"{'name':'gang','mode':'II','kind':'mixed','mtu':1024,'M':4,'W':8,'ranks':2,"
		"'endpoints':[{'ip':'10.0.0.1','qpn':257,'port':'p0',"
		"'mac':'02:00:00:00:00:01','ranks':[0]},{'ip':'10.0.0.2',"
		"'qpn':258,'port':'p1','mac':'02:00:00:00:00:02','ranks':[1]}]}"));
	text = agent_metrics(f->agent, &len);
	assert_non_null(text);
	assert_int_equal(strlen(text), len);
	expect(text, "# TYPE incline_port_rx_packets counter\n# UNIT incline_port_rx_packets "
		     "packets\n# HELP incline_port_rx_packets received\n"
		     "incline_port_rx_packets_total{port=\"");
	expect(text, ",incline_port_link=\"up\"} 1\n");
	expect(text, "incline_uptime_seconds 0.123456789\n");
	expect(text, "# TYPE incline_emitted counter\n# HELP incline_emitted packets of its own\n"
		     "incline_emitted_total 17\n");
	expect(text, "incline_mbufs_free 4000\n");
	expect(text, "incline_drops_total{reason=\"");
	expect(text, "incline_outcomes_total{outcome=\"inc_consumed\"} 21\n");
	expect(text, "incline_node_cycles_total{node=\"parse\"} 4500\n");
	expect(text, "incline_group_state{group=\"gang\",incline_group_state=\"active\"} 1\n");
	expect(text, "# HELP incline_group_duplicates duplicates received\n"
		     "incline_group_duplicates_total{group=\"gang\"} 0\n");
	assert_string_equal(text + len - 6, "# EOF\n");
	free(text);
}

/* A family is there once, and before its samples there is its type: also of lists without rows. */
static void test_families(void **state)
{
	struct rpc_fixture *f = *state;
	size_t len;
	char *text = agent_metrics(f->agent, &len), *at, *save, type[160];
	unsigned n = 0;

	assert_non_null(text);
	char *copy = strdup(text);
	for (at = strtok_r(copy, "\n", &save); at; at = strtok_r(NULL, "\n", &save)) {
		if (strncmp(at, "# TYPE ", 7) != 0)
			continue;
		snprintf(type, sizeof(type), "# TYPE %.*s ", (int)strcspn(at + 7, " "), at + 7);
		assert_int_equal(count(text, type), 1);
		n++;
	}
	assert_in_range(n, 60, 200);
	expect(text, "# TYPE incline_neighbours gauge\n");
	expect(text, "# TYPE incline_group_operations counter\n");
	expect(text, "# TYPE incline_lease_held_seconds gauge\n");
	free(copy);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_too_many_bytes),
		cmocka_unit_test(test_label_without_room),
		cmocka_unit_test_setup_teardown(test_switch, rpc_setup, rpc_teardown),
		cmocka_unit_test_setup_teardown(test_families, rpc_setup, rpc_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
