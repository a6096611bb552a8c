/* SPDX-License-Identifier: BSD-3-Clause */
/* inclinectl against the agent, without a socket: what is printed. */
#include <stdio.h>
#include <string.h>

#include "lib/reduce/reduce.h"
#include "lib/wire/icrc.h"
#include "tests/unit/ctl/cli_helper.h"

static void fill(struct fixture *f)
{
	run_ok(f, "table insert routes dst=10.1.0.0/16 via hop=10.0.0.1");
	run_ok(f, "table insert routes dst=::/0 blackhole");
	run_ok(f, "table insert classes type=0x800&&&0xff00 tagged=true in=p0 mark dscp=26 "
		  "cookie=0xffffffffffffffff --priority -3");
	run_ok(f, "table insert classes dport=4791 tagged=false in=p1 mark dscp=1 --priority 0x10");
	create_group(f);
}

/* ---- text ---- */

static void test_tables_text(void **state)
{
	struct fixture *f = *state;

	fill(f);
	run_ok(f, "table read routes");
	assert_string_equal(f->out, "table  routes\n"
				    "total  2\n"
				    "entries:\n"
				    "  key              action     data\n"
				    "  dst=10.1.0.0/16  via        hop=10.0.0.1\n"
				    "  dst=::/0         blackhole  -\n");
	run_ok(f, "table read classes tagged=false");
	assert_string_equal(f->out,
		"table  classes\n"
		"total  1\n"
		"entries:\n"
		"  key                                  priority  action  data    hits\n"
		"  dport=4791..4791 tagged=false in=p1        16  mark    dscp=1     2\n");
}

static void test_group_text(void **state)
{
	struct fixture *f = *state;

	create_group(f);
	run_ok(f, "group list");
	assert_string_equal(f->out,
		"group  name   state      generation  mode  kind    primitive  ranks  endpoints  "
		"operations  worker\n"
		"    1  job-7  installed           5  II    single  allreduce      2          2  "
		"         0       0\n");
	run_ok(f, "group activate job-7 1=0x12");
	assert_string_equal(f->out, "group  1\nname   job-7\nstate  active\n");
	assert_int_equal(inc_ep_at(f->rpc->sw->group[1], 1)->remote_qpn, 0x12);
	run_ok(f, "show group job-7");
	assert_non_null(strstr(f->out, "\nwaiting:\n  psn            100\n  arrived        1\n"
				       "  missing        0\n  missing_ranks  0\n"));
	assert_non_null(strstr(f->out, "\nflags       late_flush,stall_rnr,strict_port,half\n"));
	assert_non_null(
		strstr(f->out, "\ncounters:\n  rx_packets           1152921504606846976\n"));
	run_ok(f, "group delete 1 --force");
	assert_string_equal(f->out, "group  1\nname   job-7\nstate  free\n");
	run_ok(f, "groups");
	assert_string_equal(f->out, "group  name  state  generation  mode  kind  ranks  endpoints  "
				    "operations  worker\n");
}

static void test_other_text(void **state)
{
	struct fixture *f = *state;
	char text[200];

	run_ok(f, "ping");
	assert_string_equal(f->out, "ok\n");
	run_ok(f, "drops --nonzero");
	assert_string_equal(f->out, "drops:\n"
				    "  reason                     count  help\n"
				    "  icrc_bad                       7  wrong CRC\n"
				    "  inc_source  18446744073709551614  not a member\n"
				    "outcomes:\n"
				    "  outcome       count  help\n"
				    "  inc_consumed     21  aggregated\n");
	run_ok(f, "nodes");
	assert_string_equal(f->out,
		"nodes:\n"
		"  node   calls  packets  cycles  packets_per_call  cycles_per_packet\n"
		"  parse      3      100    4500             33.33              45.00\n"
		"  end        0        0       0              0.00               0.00\n");
	run_ok(f, "version");
	snprintf(text, sizeof(text),
		"server   incline-switch\nname     leaf1\nversion  " INCLINE_VERSION
		"\napi      1\nicrc     %s\nreduce   %s\n",
		icrc_kernel_name(), reduce_isa_name(reduce_isa_best()));
	assert_string_equal(f->out, text);
	run_ok(f, "trace start p1 --count 3");
	run_ok(f, "trace read --limit 2");
	assert_string_equal(f->out, "next  2\n"
				    "records:\n"
				    "  packet    ns  node   text\n"
				    "       0  1000  parse  qpn 0x1000 ?\n"
				    "       0  1001  inc    qpn 0x1000 ?\n");
	run_ok(f, "config get --tables=false");
	assert_non_null(strstr(f->out, "\"arena_kb\": 64"));
	/* The bare command is the summary. */
	run_ok(f, "");
	assert_non_null(strstr(f->out, "\nports_up          1\n"));
	run_ok(f, "pipeline routes");
	assert_non_null(strstr(f->out, "name        routes\n"));
	assert_non_null(strstr(f->out, "keys:\n    name  type  match"));
}

/* ---- text and JSON say the same ---- */

static bool has_word(const char *text, const char *word)
{
	static const char sep[] = " \n=,:[]{}\"";
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at++)
		if ((at == text || strchr(sep, at[-1])) && strchr(sep, at[len]))
			return true;
	return false;
}

static void check_in_text(const char *text, const json_t *v)
{
	char number[64];
	const char *key;
	json_t *item;
	size_t i;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		json_object_foreach((json_t *)v, key, item)
		{
			if (!has_word(text, key))
				fail_msg("field %s is not in: %s", key, text);
			check_in_text(text, item);
		}
		return;
	case JSON_ARRAY:
		json_array_foreach(v, i, item) check_in_text(text, item);
		return;
	case JSON_STRING:
		snprintf(number, sizeof(number), "%s", json_string_value(v));
		break;
	case JSON_INTEGER:
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
		break;
	case JSON_REAL:
		snprintf(number, sizeof(number), "%.2f", json_real_value(v));
		break;
	default:
		snprintf(number, sizeof(number), "%s", json_is_true(v) ? "true" : "false");
	}
	if (number[0] && !has_word(text, number))
		fail_msg("value %s is not in: %s", number, text);
}

static void test_parity(void **state)
{
	static const char *const lines[] = {"", "version", "status", "ports", "stats",
		"stats values", "nodes", "drops", "drops --nonzero", "pipeline", "pipeline classes",
		"tables", "table read routes", "table read classes", "table read neighbours",
		"groups", "group show job-7", "group show 1 --slots", "config get", "trace read",
		"group fail job-7", "group show 1", "macs"};
	struct fixture *f = *state;

	fill(f);
	run_ok(f, "group activate job-7 1=5");
	run_ok(f, "trace start --count 4");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		bool changes = !strcmp(lines[i], "group fail job-7");

		f->cli.json = true;
		run_ok(f, lines[i]);
		json_t *json = json_loads(f->out, JSON_REJECT_DUPLICATES, NULL);
		assert_true(json_is_object(json));
		f->cli.json = false;
		if (!changes) {
			run_ok(f, lines[i]);
			/* Counted in seconds; the two may differ. */
			json_object_del(json, "uptime_s");
			assert_true(json_object_size(json) == 1 || has_word(f->out, "name") ||
				    has_word(f->out, "total") || has_word(f->out, "next") ||
				    has_word(f->out, "values") || has_word(f->out, "outcomes:"));
			/* The name of a list that is alone is not repeated. */
			if (json_object_size(json) == 1) {
				const json_t *only = json_object_iter_value(json_object_iter(json));

				check_in_text(f->out, only);
			} else {
				check_in_text(f->out, json);
			}
		}
		json_decref(json);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_tables_text),
		T(test_group_text),
		T(test_other_text),
		T(test_parity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
