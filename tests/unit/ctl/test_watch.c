/* SPDX-License-Identifier: BSD-3-Clause */
/* "top" and -w against the agent of a switch without packets, on a clock that waits move. */
#include <stdio.h>
#include <string.h>

#include "lib/ctl/schema.h"
#include "tests/unit/ctl/cli_helper.h"

static bool lose(struct fixture *f)
{
	f->rpc->sw->drops[1] += 4;
	return f->pauses-- == 0;
}

static void test_top(void **state)
{
	struct fixture *f = *state;
	json_t *json;

	create_group(f);
	f->paused = lose;
	f->pauses = 9;
	run_ok(f, "top -n 1 -i 2");
	assert_non_null(strstr(f->out, "time       2023-11-15T12:00:02.000Z\n"));
	assert_non_null(strstr(f->out, "seconds    2.00\n"));
	assert_non_null(strstr(f->out, "drops_s    2.00\n"));
	assert_non_null(strstr(f->out, "\nports:\n  name  link"));
	assert_non_null(
		strstr(f->out, "\ngroups:\n  name   state      operations  operations_s  "));
	/* A line each, and the second is of what came after the first. */
	run_ok(f, "top -n 2 --json");
	char *second = strchr(f->out, '\n') + 1;
	assert_string_equal(strchr(second, '\n'), "\n");
	json = json_loads(second, 0, NULL);
	expect_json(json_incref(json_object_get(json, "drops")),
		"[{'reason':'icrc_bad','count':19,'per_s':4.0}]");
	expect_json(json_incref(json_object_get(json, "groups")),
		"[{'name':'job-7','state':'installed','operations':0,'operations_s':0.0,"
		"'missing':0,'waits_for':[],'stuck':false}]");
	json_decref(json);
	/* One that waits is stuck the second time that it is found so. */
	run_ok(f, "group activate job-7 1=18");
	fake_switch_arrived(f->rpc->sw, 1, 100, 2);
	f->pauses = 9;
	run_ok(f, "top -n 2 --json");
	const char *group = strstr(strchr(f->out, '\n'), "\"groups\"");
	assert_non_null(strstr(group, "\"missing\":1,\"waits_for\":[0],\"stuck\":true"));
	/* Until it is interrupted. */
	f->pauses = 1;
	run_ok(f, "top --json");
	assert_int_equal(strchr(f->out, '\n') - f->out + 1, (long)strlen(f->out));
	run_bad(f, "top --once -n 2", CLI_USAGE, "error: top: count: not with once\n");
	run_bad(f, "top -n 0", CLI_USAGE, "error: top: count: 0 is not in 1..2147483647\n");
	run_bad(f, "top -i 9999", CLI_USAGE, "error: top: interval: 9999 is not in 1..3600\n");
	f->down = true;
	run_bad(f, "top --once", CLI_FAILED, "error: top: nobody listens\n");
}

static void watch(struct fixture *f, bool json, const char *word)
{
	rewind(f->cli.out);
	f->cli.json = json;
	f->pauses = 1; /* so two runs */
	assert_int_equal(cli_watch(&f->cli, 2000, 1, &word), CLI_OK);
	fputc('\0', f->cli.out);
	fflush(f->cli.out);
	f->cli.json = false;
}

static void test_text(void **state)
{
	struct fixture *f = *state;

	f->paused = lose;
	watch(f, false, "drops");
	char *second = strstr(f->out, "\n\n2023-11-15T12:00:02.000Z\n");
	assert_non_null(second);
	*second = '\0';
	assert_null(strstr(f->out, "/s)"));
	assert_non_null(strstr(second + 1, "icrc_bad             11 (+2.00/s)  "));
	assert_non_null(strstr(second + 1, "inc_consumed  33 (+6.00/s)  "));
	/* What has not changed is as it was. */
	assert_non_null(strstr(second + 1, " 18446744073709551614  "));
	/* Round the end of 64 bits. */
	f->rpc->sw->drops[1] = UINT64_MAX - 2;
	watch(f, false, "drops");
	assert_non_null(strstr(f->out, "  18446744073709551613  "));
	assert_non_null(strstr(f->out, "  1 (+2.00/s)  "));
}

static bool clear(struct fixture *f)
{
	f->rpc->sw->drops[1] = 3;
	return f->pauses-- == 0;
}

static void test_json(void **state)
{
	struct fixture *f = *state;

	f->paused = lose;
	watch(f, true, "drops");
	char *second = strchr(f->out, '\n') + 1;
	assert_non_null(strstr(second, "{\"time\":\"2023-11-15T12:00:02.000Z\",\"result\":{"));
	assert_non_null(strstr(second, "\"count\":11,"));
	assert_non_null(strstr(second, "\"count_per_s\":2.0}"));
	assert_string_equal(strchr(second, '\n'), "\n");
	second[-1] = '\0';
	assert_null(strstr(f->out, "per_s"));
	/* A counter that began anew, and the sum, which is none. */
	f->paused = clear;
	f->rpc->sw->drops[2] = 0;
	watch(f, true, "drops");
	assert_null(strstr(f->out, "per_s"));
	f->rpc->sw->drops[1] = 13;
	watch(f, true, "status");
	assert_non_null(strstr(f->out, "\"drops_per_s\":-5.0"));
	f->down = true;
	const char *word = "drops";
	assert_int_equal(cli_watch(&f->cli, 2000, 1, &word), CLI_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
		cmocka_unit_test_setup_teardown(test_top, setup, teardown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
