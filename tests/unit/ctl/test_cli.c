/* SPDX-License-Identifier: BSD-3-Clause */
/* inclinectl against the agent, without a socket: what is typed, offered and read from files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctrl/agent/events.h"
#include "tests/unit/ctl/cli_helper.h"

/* ---- usage ---- */

static void test_usage(void **state)
{
	static const struct {
		const char *line, *err;
	} cases[] = {
		{"reboot", "error: reboot: is not a command, see \"help\"\n"},
		{"group", "error: group: is not a command, see \"help\"; did you mean: group "
			  "activate, "
			  "group create, group delete, group fail, group list, group move, group "
			  "rebind, group resync, group "
			  "show\n"},
		{"prots", "error: prots: is not a command, see \"help\"; did you mean: drops, "
			  "port impair, ports\n"},
		{"lease lst", "error: lease: is not a command, see \"help\"; did you mean: lease "
			      "acquire, lease list, lease release\n"},
		{"show nothing", "error: nothing: is not a command, see \"help\"\n"},
		{"ports p0", "error: ports: p0: is one word too many\n"},
		{"tpo", "error: tpo: is not a command, see \"help\"; did you mean: top\n"},
		{"laese lst", "error: laese: is not a command, see \"help\"; did you mean: lease "
			      "acquire, lease list, lease release\n"},
		{"drops --nonzer",
			"error: drops: --nonzer: is not an option; did you mean --nonzero\n"},
		{"top --cuont=3",
			"error: top: --cuont=3: is not an option; did you mean --count\n"},
		{"drops --zero", "error: drops: --zero: is not an option\n"},
		{"drops --clear --clear", "error: drops: clear: is given twice\n"},
		{"drops --clear=1", "error: drops: clear: must be boolean, not a string\n"},
		{"group show", "error: group show: group: is missing\n"},
		{"group show 0", "error: group show: group: 0 is not in 1..4095\n"},
		{"table read", "error: table read: table: is missing\n"},
		{"table read routes --limit", "error: table read: --limit: wants a value\n"},
		{"table read routes --limit ten", "error: table read: limit: must be "
						  "integer 1..1000, not a string\n"},
		{"table read routes --limit=1001",
			"error: table read: limit: 1001 is not in 1..1000\n"},
		{"table read routes a=1 a=2", "error: table read: a: is given twice\n"},
		{"table read routes \xff=1", "error: table read: \xff: is not UTF-8\n"},
		{"stats everything", "error: stats: what: \"everything\" must be values or "
				     "nodes or groups\n"},
		{"table insert", "error: table insert: updates[0].table: is missing\n"},
		{"table insert routes dst=::/0 via hop=::1 more",
			"error: table insert: more: must be PARAM=VALUE\n"},
		{"table insert routes dst=::/0 via --priority",
			"error: table insert: --priority: wants an integer\n"},
		{"port impair p1 loss", "error: port impair: loss: must be FIELD=VALUE\n"},
		{"port impair p1 loss=x",
			"error: port impair: loss: wants a number, true or false\n"},
		{"port impair p1 loss=2", "error: port impair: impair.loss: 2 is not in 0..1\n"},
		{"port impair p1 loss=-1", "error: port impair: impair.loss: -1 is not in 0..1\n"},
		{"port impair p1 seed=-1", "error: port impair: impair.seed: -1 is not in "
					   "0..9223372036854775807\n"},
		{"port impair p1 loss=0.5 lose.17=-1",
			"error: port impair: impair.lose[0].loss: -1 is not in 0..1\n"},
		{"port impair p1 lose.-1=1",
			"error: port impair: impair.lose[0].opcode: -1 is not in 0..255\n"},
		{"port impair p1 lose.0=1 lose.1=1 lose.2=1 lose.3=1 lose.4=1 lose.5=1 lose.6=1 "
		 "lose.7=1 lose.8=1 lose.9=1 lose.10=1 lose.11=1 lose.12=1 lose.13=1 lose.14=1 "
		 "lose.15=1 lose.16=1",
			"error: port impair: impair.lose: must have 0..16 items, has 17\n"},
		{"port impair p1 lose.x=1", "error: port impair: lose.x: must be lose.OPCODE\n"},
		{"group activate g 1", "error: group activate: 1: must be INDEX=QPN\n"},
		{"group activate g 1=x", "error: group activate: 1=x: must be INDEX=QPN\n"},
		{"group activate g 1=0", "error: group activate: endpoints[0].qpn: 0 is "
					 "not in 1..16777215\n"},
		{"group create", "error: group create: wants one file\n"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_bad(f, cases[i].line, CLI_USAGE, cases[i].err);
}

static void test_failures(void **state)
{
	struct fixture *f = *state;
	char line[256], err[512];

	run_bad(f, "group create /nonexistent", CLI_FAILED,
		"error: group create: /nonexistent: No such file or directory\n");
	run_bad(f, "table insert routes dst=10.0.0.1/8 blackhole", CLI_FAILED,
		"error: table insert: updates[0].key.dst: 10.0.0.1/8 has host bits set, the "
		"network is 10.0.0.0/8\n");
	run_bad(f, "table delete routes dst=10.0.0.0/8", CLI_FAILED,
		"error: table delete: updates[0].key: table routes has no entry with this key\n");
	run_bad(f, "group delete nobody", CLI_FAILED,
		"error: group delete: group: no group is named \"nobody\"\n");
	write_file(f, "{\"name\":\"x\",\n\"mode\":}");
	snprintf(line, sizeof(line), "group create %s", f->file);
	snprintf(err, sizeof(err),
		"error: group create: %s: line 2, column 8: unexpected token near '}'\n", f->file);
	run_bad(f, line, CLI_USAGE, err);
	write_file(f, "[]");
	snprintf(err, sizeof(err), "error: group create: %s: must hold one object\n", f->file);
	run_bad(f, line, CLI_USAGE, err);
	f->down = true;
	run_bad(f, "ports", CLI_FAILED, "error: ports: nobody listens\n");
}

/* ---- files ---- */

static unsigned n_routes(struct fixture *f)
{
	struct table_rows rows;

	table_rows(f->rpc->sw->tables, 1, &rows);
	return rows.n;
}

static int run_file(struct fixture *f, bool keep)
{
	rewind(f->cli.out);
	rewind(f->cli.err);
	int rc = cli_run_file(&f->cli, f->file, keep);
	fputc('\0', f->cli.err);
	fflush(f->cli.err);
	return rc;
}

static void test_file(void **state)
{
	struct fixture *f = *state;
	char err[256];

	write_file(f, "# routes\n\ntable insert routes dst=10.1.0.0/16 blackhole\n"
		      "  table insert 'routes' \"dst=10.2.0.0/16\" blackhole");
	assert_int_equal(run_file(f, false), CLI_OK);
	assert_int_equal(n_routes(f), 2);
	write_file(f, "table insert routes dst=10.1.0.0/16 blackhole\n"
		      "table insert routes dst=10.3.0.0/16 blackhole\nnonsense\n");
	assert_int_equal(run_file(f, false), CLI_FAILED);
	snprintf(err, sizeof(err),
		"error: %s:1: table insert: updates[0].key: table routes has an entry with this "
		"key\n",
		f->file);
	assert_string_equal(f->err, err);
	assert_int_equal(n_routes(f), 2);
	assert_int_equal(run_file(f, true), CLI_USAGE);
	assert_int_equal(n_routes(f), 3);
	write_file(f, "quit\nnonsense\n");
	assert_int_equal(run_file(f, false), CLI_OK);
	f->cli.quit = false;
	write_file(f, "ports 'p0\n");
	assert_int_equal(run_file(f, false), CLI_USAGE);
	unlink(f->file);
	assert_int_equal(run_file(f, false), CLI_FAILED);
}

static void test_table_write_file(void **state)
{
	struct fixture *f = *state;
	char line[256];

	write_file(f, "[{\"op\":\"insert\",\"table\":\"routes\",\"key\":{\"dst\":\"::/0\"},"
		      "\"action\":\"blackhole\"}]");
	snprintf(line, sizeof(line), "table write %s", f->file);
	run_ok(f, line);
	assert_string_equal(f->out, "applied  1\n");
	write_file(f, "{\"updates\":[{\"op\":\"delete\",\"table\":\"routes\","
		      "\"key\":{\"dst\":\"::/0\"}}]}");
	run_ok(f, line);
	assert_int_equal(n_routes(f), 0);
}

/* More entries than a page holds. */
static void test_paging(void **state)
{
	enum { N = 2345 };
	struct fixture *f = *state;
	struct table_update *u = calloc(N, sizeof(*u));
	struct table_error err;

	for (unsigned i = 0; i < N; i++) {
		u[i].table = 1;
		u[i].entry.key[0].ip = wire_ip_from4(0x0a000000 + i);
		u[i].entry.key[0].prefix = 32;
		u[i].entry.action = 1;
	}
	assert_int_equal(table_write(f->rpc->sw->tables, u, N, &err), 0);
	free(u);
	f->cli.json = true;
	run_ok(f, "table read routes");
	json_t *all = json_loads(f->out, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(all, "entries")), N);
	assert_int_equal(json_integer_value(json_object_get(all, "total")), N);
	assert_null(json_object_get(all, "next"));
	json_decref(all);
	run_ok(f, "table read routes --limit 10 --offset 5");
	all = json_loads(f->out, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(all, "entries")), 10);
	assert_int_equal(json_integer_value(json_object_get(all, "next")), 15);
	json_decref(all);
	run_ok(f, "port impair p1 loss=0.5 seed=7 lose.17=0.25 lose.0x11=1");
	assert_int_equal(f->rpc->sw->impaired, 1);
	run_ok(f, "port impair p1");
	assert_int_equal(f->rpc->sw->impaired, -1);
	run_ok(f, "trace start --count 1500");
	run_ok(f, "trace read --from 7");
	all = json_loads(f->out, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(all, "records")), 3000 - 7);
	assert_int_equal(json_integer_value(json_object_get(all, "next")), 3000);
	json_decref(all);
}

/* As options of inclinectl, for one command; and a command that came as one word. */
static void test_after_command(void **state)
{
	static const char *const line[] = {"table list --json"};
	struct fixture *f = *state;
	json_t *json;

	run_ok(f, "ports -j");
	json = json_loads(f->out, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(json, "ports")), 2);
	json_decref(json);
	run_ok(f, "ports");
	assert_null(json_loads(f->out, 0, NULL));
	rewind(f->cli.out);
	assert_int_equal(cli_run(&f->cli, 1, line), CLI_OK);
	fputc('\0', f->cli.out);
	fflush(f->cli.out);
	json = json_loads(f->out, 0, NULL);
	assert_non_null(json_object_get(json, "tables"));
	json_decref(json);
}

/* ---- help and completion ---- */

static void test_help(void **state)
{
	struct fixture *f = *state;

	run_ok(f, "help");
	for (unsigned i = 0; i < cli_n_commands(); i++)
		assert_non_null(strstr(f->out, cli_command(i)->words));
	run_ok(f, "help group delete");
	assert_string_equal(f->out,
		"group delete GROUP [--force]\n"
		"    Removes a group, by default after draining.\n"
		"      group      name or slot: name, or slot as an integer\n"
		"    --force      boolean: at once, without draining; default false\n");
	run_ok(f, "help table");
	assert_non_null(strstr(f->out, "table insert TABLE FIELD=VALUE..."));
	assert_null(strstr(f->out, "group"));
	run_bad(f, "help reboot", CLI_USAGE, "error: help: no command begins with \"reboot\"\n");
}

/* Every method that has no command of its own is reached by one that sends it, but for those that
 * are for programs. */
static void test_all_reachable(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ctl_switch_schema.n; i++) {
		const char *name = ctl_switch_schema.methods[i].name;
		bool found = !strcmp(name, "schema.get") || !strcmp(name, "owner.hold") ||
			     !strcmp(name, "event.subscribe") || !strcmp(name, "capture.read") ||
			     !strcmp(name, "capture.stop");

		for (unsigned k = 0; k < cli_n_commands(); k++)
			found |= cli_command(k)->method == &ctl_switch_schema.methods[i];
		assert_true(found);
	}
}

static void join(void *arg, const char *candidate)
{
	char *all = arg;

	strcat(strcat(all, all[0] ? " " : ""), candidate);
}

/* line up to the cursor; the word that is typed follows the last blank. */
static void offers(struct fixture *f, const char *line, const char *want)
{
	const char *argv[64];
	char *copy = strdup(line), *last = strrchr(copy, ' '), all[2048] = "";
	char *partial = strdup(last ? last + 1 : copy);

	*(last ? last : copy) = '\0';
	cli_complete(&f->cli, split(copy, argv), argv, partial, join, all);
	assert_string_equal(all, want);
	free(partial);
	free(copy);
}

static void test_complete(void **state)
{
	struct fixture *f = *state;

	create_group(f);
	offers(f, "s", "stats status show");
	offers(f, "gr", "group");
	offers(f, "group ", "activate create delete fail list move rebind resync show");
	offers(f, "show gr", "group");
	offers(f, "show group ",
		"activate create delete fail list move rebind resync show job-7 --slots");
	offers(f, "help tr", "trace");
	offers(f, "to", "top topology");
	offers(f, "top --", "--count --once --interval");
	offers(f, "doctor ", "--config --root");
	offers(f, "group show ", "job-7 --slots");
	offers(f, "group show job-7 --", "--slots");
	offers(f, "group activate j", "job-7");
	offers(f, "stats ", "values nodes groups");
	offers(f, "trace start ", "p0 p1 --count");
	offers(f, "table read ", "neighbours routes classes local_addr --action --offset --limit");
	offers(f, "table read routes ", "dst= --action --offset --limit");
	offers(f, "table insert r", "routes");
	offers(f, "table insert routes ", "dst= via blackhole");
	offers(f, "table insert routes dst=::/0 v", "via");
	offers(f, "table insert routes dst=::/0 via ", "hop=");
	offers(f, "table insert neighbours ip=::1 set port=p0 ", "mac= vlan=");
	offers(f, "table delete classes tagged=true ", "type= dport= in=");
	offers(f, "table insert neighbours ip=::1 set mac=02:00:00:00:00:01 po", "port=");
	offers(f, "table insert neighbours ip=::1 set port=", "port=p0 port=p1");
	offers(f, "table insert classes tagged=t", "tagged=true");
	offers(f, "table delete routes ", "dst=");
	offers(f, "ports x", "");
	offers(f, "nonsense ", "");
	f->down = true;
	cli_forget(&f->cli);
	offers(f, "table insert ", "");
	offers(f, "group show ", "--slots");
}

/* ---- the reference page ---- */

static char *generated(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ctl_markdown(&ctl_switch_schema, out);
	fclose(out);
	return text;
}

/* ---- events -f ---- */

/* Something happens with every look but the last; then there is more than the switch keeps; then
 * the switch is another. */
static bool as_time_passes(struct fixture *f)
{
	struct rpc_fixture *rpc = f->rpc;
	unsigned n = f->pauses == 1 ? EVENT_KEPT + 5 : 1;

	switch (++f->pauses) {
	case 3:
		agent_destroy(rpc->agent);
		rpc->sw->unplugged = false;
		assert_int_equal(agent_create(rpc->sw, rpc->file, &rpc->agent), 0);
		break;
	case 4:
		return true;
	}
	for (; n > 0; n--) {
		rpc->sw->unplugged = !rpc->sw->unplugged;
		rpc->sw->now += 1000000;
		agent_tick(rpc->agent, rpc->sw->now);
	}
	return false;
}

static void test_follow(void **state)
{
	static const char begins[] = "0 2000000 port_down port=p0\nmissed 5\n6 8000000 port_down ";
	struct fixture *f = *state;
	json_t *line;

	f->paused = as_time_passes;
	f->rpc->sw->now = 1000000;
	agent_tick(f->rpc->agent, f->rpc->sw->now);
	assert_int_equal(run(f, "events -f"), CLI_OK);
	assert_string_equal(f->err, "events: the switch was started again\n");
	assert_memory_equal(f->out, begins, strlen(begins));
	assert_non_null(strstr(f->out, "\n261 263000000 port_up port=p0\n0 264000000 port_down "
				       "port=p0\n"));
	/* The same fields as JSON, and options as without -f. */
	f->pauses = 0;
	f->paused = NULL;
	assert_int_equal(run(f, "events --json --follow --from 0"), CLI_OK);
	line = json_loads(f->out, JSON_DISABLE_EOF_CHECK, NULL);
	expect_json(line, "{'seq':0,'ns':264000000,'kind':'port_down','port':'p0'}");
	run_bad(f, "events -f --to 1", CLI_USAGE, "error: events: --to: is not an option\n");
	f->down = true;
	run_bad(f, "events -f", CLI_FAILED, "error: events: nobody listens\n");
}

static void test_reference_page(void **state)
{
	static const char begin[] = "<!-- generated: inclinectl help --markdown -->\n";
	static const char end[] = "<!-- end of generated part -->";
	FILE *in = fopen(CONTROL_SOCKET_PAGE, "r");
	char *page = calloc(1, 1 << 20), *want = generated();

	(void)state;
	assert_non_null(in);
	assert_true(fread(page, 1, (1 << 20) - 1, in) > 0);
	fclose(in);
	char *from = strstr(page, begin), *to = strstr(page, end);
	assert_non_null(from);
	assert_non_null(to);
	*to = '\0';
	assert_string_equal(from + strlen(begin), want);
	free(page);
	free(want);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_usage),
		T(test_failures),
		T(test_file),
		T(test_table_write_file),
		T(test_paging),
		T(test_after_command),
		T(test_help),
		cmocka_unit_test(test_all_reachable),
		T(test_complete),
		T(test_follow),
		cmocka_unit_test(test_reference_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
