/* SPDX-License-Identifier: BSD-3-Clause */
/* The start-up file as data: what is checked, what is said, what is documented and shipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/ctl/fields_check.h"
#include "tests/unit/shipped.h"

static json_t *parse(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return json;
}

/* A field of a type comes before the common one of the same name, as do its default and limits. */
static void types_of_ports(void **state)
{
	json_t *tap = parse("{\"name\":\"t\",\"type\":\"tap\",\"iface\":\"i\"}");
	json_t *null = parse("{\"name\":\"n\",\"type\":\"null\",\"mtu\":1501}");
	struct ctl_problem problem;

	(void)state;
	assert_int_equal(ctl_int(&ctl_port_config, tap, "mtu"), 1500);
	assert_int_equal(ctl_int(&ctl_port_config, null, "mtu"), 1501);
	assert_int_equal(ctl_int(&ctl_port_config, null, "rxd"), 1024);
	assert_null(ctl_text(&ctl_port_config, null, "mac"));
	assert_int_equal(ctl_check_value(&ctl_port_config, tap, "", &problem), 0);
	assert_int_equal(ctl_check_value(&ctl_port_config, null, "", &problem), 0);
	json_object_set_new(tap, "mtu", json_integer(1501));
	assert_int_not_equal(ctl_check_value(&ctl_port_config, tap, "", &problem), 0);
	assert_string_equal(problem.path, "mtu");
	json_decref(tap);
	json_decref(null);
}

/* The agent's fields, which it takes from the table. */
static void control(void **state)
{
	static const struct {
		const char *json, *at;
	} cases[] = {
		{"{\"control_tcp\":9}", "control_tcp"},
		{"{\"control_tcp_full\":1}", "control_tcp_full"},
		{"{\"control_idle_ms\":999}", "control_idle_ms"},
		{"{\"control_idle_ms\":true}", "control_idle_ms"},
		{"{\"control_idle_ms\":3600001}", "control_idle_ms"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json = parse(cases[i].json);
		struct ctl_problem problem;

		assert_int_not_equal(ctl_check_value(&ctl_switch_config, json, "", &problem), 0);
		assert_string_equal(problem.path, cases[i].at);
		json_decref(json);
	}
	assert_int_equal(ctl_int(&ctl_switch_config, NULL, "control_idle_ms"), 60000);
	json_t *word = parse("{\"workers\":\"auto\"}");
	assert_int_equal(ctl_int(&ctl_switch_config, word, "workers"), 0);
	json_decref(word);
	assert_false(ctl_bool(&ctl_switch_config, NULL, "control_tcp_full"));
}

/* Who mistypes is told what there is; who is far off is not led astray. */
static void near_misses(void **state)
{
	static const struct {
		const char *json, *problem;
	} cases[] = {
		{"{\"adresses\":[]}", "adresses: is not a known field, \"addresses\" is"},
		{"{\"memory\":1}", "memory: is not a known field"},
		{"{\"zzz\":1}", "zzz: is not a known field"},
		{"{\"ports\":[{\"name\":\"a\",\"type\":\"memif\",\"sokcet\":\"/x\"}]}",
			"ports[0].sokcet: is not a known field, \"socket\" is"},
		{"{\"ports\":[{\"name\":\"a\",\"type\":\"tap\",\"iface\":\"x\",\"socket\":\"/"
		 "x\"}]}",
			"ports[0].socket: is not a known field for type tap"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json = parse(cases[i].json);
		struct ctl_problem problem;
		char text[400];

		assert_int_not_equal(ctl_check_value(&ctl_switch_config, json, "", &problem), 0);
		ctl_problem_text(&problem, text, sizeof(text));
		assert_string_equal(text, cases[i].problem);
		json_decref(json);
	}
}

static void every_default(void **state)
{
	(void)state;
	fields_are_sound(ctl_switch_config.fields);
	fields_are_sound(ctl_rnic_config.fields);
}

static void pages(void **state)
{
	(void)state;
	page_is_made_of("config.md", "<!-- generated: incline-switch --help-config=markdown -->\n",
		&ctl_switch_config);
	page_is_made_of("rnic-config.md",
		"<!-- generated: incline-netd --help-config=markdown -->\n", &ctl_rnic_config);
}

/* Sockets and files lie where the unit of deploy/ lets them: in its run-time directory. */
static void in_run(const char *file, const json_t *object, const char *key)
{
	const char *path = json_string_value(json_object_get(object, key));

	if (path && strncmp(path, "/run/incline/", 13) != 0)
		fail_msg("%s: %s is %s, not in /run/incline", file, key, path);
}

static void check_switch(const char *file, const json_t *json)
{
	struct ctl_problem problem;
	json_t *port;
	size_t i;

	if (ctl_check_value(&ctl_switch_config, json, "", &problem))
		fail_msg("%s: %s: %s", file, problem.path, problem.msg);
	assert_non_null(json_object_get(json, "control"));
	in_run(file, json, "control");
	json_array_foreach(json_object_get(json, "ports"), i, port)
	{
		in_run(file, port, "socket");
		in_run(file, port, "tx");
	}
}

static void check_shipped(const char *file, const json_t *json)
{
	json_t *plain = ctl_strip_comments(json);

	if (strncmp(file, "rnic-", 5) != 0)
		check_switch(file, plain);
	else
		in_run(file, json_object_get(plain, "port"), "socket");
	json_decref(plain);
}

static void shipped(void **state)
{
	(void)state;
	assert_true(shipped_configs(check_shipped) >= 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_of_ports),
		cmocka_unit_test(control),
		cmocka_unit_test(near_misses),
		cmocka_unit_test(every_default),
		cmocka_unit_test(pages),
		cmocka_unit_test(shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
