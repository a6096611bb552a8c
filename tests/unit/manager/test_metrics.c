/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager's counters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		world_pass(&w, 300);
		assert_true(world_active(&w, j));
	}
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
	world_pass(&w, 500);
	page_has("incline_manager_jobs{phase=\"active\"} 0");
	page_has("incline_manager_jobs{phase=\"over\"} 3");
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_page)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
