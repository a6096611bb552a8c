/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager's counters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/manager_schema.h"
#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static struct world w;

static void page_has(const char *line)
{
	size_t len;
	char *page = manager_metrics(w.m, &len);
	char whole[128];

	assert_non_null(page);
	assert_int_equal(strlen(page), len);
	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(page, whole))
		fail_msg("no line \"%s\" in:\n%s", line, page);
	free(page);
}

/* What a monitoring system is told, while jobs come and go. */
static void test_page(void **state)
{
	char line[96];
	json_t *top;
	size_t i;
	json_t *node;

	(void)state;
	world_open(&w);
	page_has("incline_manager_jobs{phase=\"active\"} 0");
	for (unsigned j = 0; j < JOBS; j++) {
		world_start_job(&w, j);
		world_pass(&w, 200);
		assert_true(world_active(&w, j));
	}
	page_has("incline_manager_jobs{phase=\"active\"} 0"); /* of the same second */
	world_pass(&w, 1000);
	page_has("incline_manager_jobs{phase=\"active\"} 3");
	page_has("incline_manager_jobs{phase=\"joining\"} 0");
	page_has("incline_manager_conflicts 0");
	page_has("incline_manager_not_the_rank_total 0");
	page_has("# TYPE incline_manager_switch_groups gauge");
	top = world_ask(&w, "topology.get", NULL);
	json_array_foreach(json_object_get(top, "nodes"), i, node)
	{
		uint64_t bytes;

		if (strcmp(rpc_string(node, "kind"), "switch") != 0)
			continue;
		assert_int_equal(ctl_get_u64(json_object_get(node, "promised_bytes"), &bytes), 0);
		snprintf(line, sizeof(line),
			"incline_manager_switch_promised_bytes{switch=\"%s\"} %llu",
			rpc_string(node, "name"), (unsigned long long)bytes);
		page_has(line);
		snprintf(line, sizeof(line), "incline_manager_switch_groups{switch=\"%s\"} %d",
			rpc_string(node, "name"), (int)rpc_int(node, "groups", -1));
		page_has(line);
		snprintf(line, sizeof(line), "incline_manager_switch_connected{switch=\"%s\"} 1",
			rpc_string(node, "name"));
		page_has(line);
	}
	json_decref(top);
	for (unsigned j = 0; j < JOBS; j++)
		world_end_job(&w, j);
	world_pass(&w, 1000);
	page_has("incline_manager_jobs{phase=\"active\"} 0");
	page_has("incline_manager_jobs{phase=\"over\"} 3");
	world_close(&w);
}

static unsigned count(const char *page, const char *word)
{
	unsigned n = 0;

	for (; (page = strstr(page, word)); page++)
		n++;
	return n;
}

/* Of more switches than a page has rows it says how many are not there. */
static void test_many(void **state)
{
	enum { MANY = 600, ROWS = 512 };
	json_t *config = json_pack("{s:[],s:b,s:s}", "switches", "discover", 1, "store", "memory");
	const struct manager_io io = {0};
	char err[MANAGER_ERR_LEN], name[32], ip[32], *page;
	struct ctl_problem p;
	struct manager *m;
	size_t len;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "leaf%u", i);
		snprintf(ip, sizeof(ip), "10.2.%u.%u", i / 256, i % 256);
		json_array_append_new(json_object_get(config, "switches"),
			json_pack("{s:s,s:s,s:s}", "name", name, "control", name, "ip", ip));
	}
	assert_int_equal(ctl_check_value(&ctl_manager_config, config, "", &p), 0);
	assert_int_equal(manager_create(config, &io, NULL, 1, 0, &m, err), 0);
	page = manager_metrics(m, &len);
	assert_int_equal(count(page, "\nincline_manager_switch_groups{"), ROWS);
	assert_int_equal(count(page, "\nincline_manager_switch_arena_bytes{"), ROWS);
	assert_int_equal(count(page, "\nincline_metrics_rows_left_out 88\n"), 1);
	free(page);
	manager_destroy(m);
	json_decref(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page), cmocka_unit_test(test_many)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
