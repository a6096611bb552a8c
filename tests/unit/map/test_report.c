/* SPDX-License-Identifier: BSD-3-Clause */
/* From agents' reports to a map, its picture and its denylists. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

static const uint64_t MS = 1000000;

static json_t *agents(struct fabric *f)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < F_HOSTS; i++)
		json_array_append_new(list, map_agent_json(f->agent[i], f->paths[i]));
	return list;
}

static char *picture(const struct map *m)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	map_print(m, out);
	fclose(out);
	return text;
}

static void is_json(json_t *got, const char *want)
{
	char *text = json_dumps(got, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

	assert_string_equal(text, want);
	free(text);
	json_decref(got);
}

/* T1 2 of plane 1 is dead: its EVs, plane << 8 | 2, are denied between all hosts of different T0s.
 */
static void a_switch(void **state)
{
	struct map_config c = map_defaults;
	char err[MAP_ERR_LEN] = "", *text;
	struct fabric *f;
	struct map *m;
	json_t *list, *deny;

	(void)state;
	c.timeout_ns = 2 * MS;
	f = fabric_start(&c);
	f->t1[0][2] = 1000;
	fabric_run(f, 20 * MS);
	list = agents(f);
	if (map_join(list, NULL, &m, err) < 0)
		fail_msg("%s", err);
	is_json(json_incref(json_object_get(json_array_get(list, 0), "group")), "0");
	json_decref(list);
	deny = map_json(m);
	is_json(json_incref(json_object_get(deny, "faults")),
		"[{\"kind\":\"t1\",\"plane\":1,\"state\":\"dead\",\"sure\":true,\"t1\":2}]");
	json_decref(deny);
	deny = map_denylist(m, 8);
	assert_int_equal(json_object_size(deny), F_HOSTS);
	is_json(json_incref(json_object_get(deny, "h0")),
		"{\"h2\":[258],\"h3\":[258],\"h4\":[258],\"h5\":[258]}");
	json_decref(deny);
	text = picture(m);
	assert_non_null(strstr(text, "plane 1: switch t1 2: dead\n"));
	assert_non_null(strstr(text, "  h5         t0 2    good       good       good       dead"));
	assert_null(strstr(text, "nothing is wrong"));
	free(text);
	map_free(m);
	fabric_stop(f);
}

#define AGENT(name, more) "{'host':'" name "','group':0,'uplinks':1," more "}"
#define PLANE(t0, t1) "{'plane':1,'t0':{'state':'" t0 "'},'t1':[{'state':'" t1 "'}]}"

static int join_named(
	const char *text, const char *const *name, struct map **m, char err[MAP_ERR_LEN])
{
	char *copy = strdup(text);
	json_t *json;
	int rc;

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	json = json_loads(copy, 0, NULL);
	assert_non_null(json);
	free(copy);
	rc = map_join(json, name, m, err);
	json_decref(json);
	return rc;
}

static int join(const char *text, struct map **m, char err[MAP_ERR_LEN])
{
	return join_named(text, NULL, m, err);
}

static void well(void **state)
{
	char err[MAP_ERR_LEN] = "", *text;
	struct map *m;

	(void)state;
	assert_int_equal(
		join("[" AGENT("a", "'planes':[" PLANE("good", "unknown") "]") "]", &m, err), 0);
	text = picture(m);
	assert_non_null(strstr(text, "nothing is wrong\n"));
	free(text);
	is_json(map_denylist(m, 8), "{}");
	map_free(m);
}

/* How fast agents go, and that of one that does not say it nothing is said. */
static void pace(void **state)
{
	char err[MAP_ERR_LEN] = "", *text;
	struct map *m;
	json_t *all;

	(void)state;
	assert_int_equal(
		join("[" AGENT("a", "'rate_hz':1000,'sent':30,'skipped':90,'planes':[" PLANE(
					    "good", "good") "]") "," AGENT("b",
			     "'rate_hz':50,'sent':7,'skipped':0,'planes':[" PLANE(
				     "good", "good") "]") "," AGENT("c",
			     "'planes':[" PLANE("good", "good") "]") "]",
			&m, err),
		0);
	text = picture(m);
	assert_non_null(strstr(text,
		"\na: 250 of 1000 probes per second and link, 75.0 % skipped: it had to wait for a "
		"processor\n"));
	assert_non_null(strstr(text, "\nb: 50 of 50 probes per second and link\n"));
	assert_null(strstr(text, "\nc:"));
	free(text);
	all = map_json(m);
	is_json(json_incref(json_array_get(json_object_get(all, "hosts"), 0)),
		"{\"name\":\"a\",\"rate_hz\":1000,\"sent\":30,\"skipped\":90,\"t0\":0}");
	is_json(json_incref(json_array_get(json_object_get(all, "hosts"), 2)),
		"{\"name\":\"c\",\"t0\":0}");
	json_decref(all);
	map_free(m);
}

static void refused(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{"[]", "agents: must be a list of 1..4096"},
		{"{}", "agents: must be a list"},
		{"[5]", "agents[0].host: must be 1..31 characters"},
		{"[{'host':'a','group':-1,'uplinks':1}]", "agents[0].group: must be 0..65534"},
		{"[{'host':'a','group':0,'uplinks':65}]", "agents[0].uplinks: must be 0..64"},
		{"[" AGENT("a", "'rate_hz':0,'sent':1,'skipped':0,'planes':[" PLANE(
					"good", "good") "]") "]",
			"agents[0].rate_hz, sent, skipped: must be numbers"},
		{"[" AGENT("a", "'rate_hz':1,'sent':1,'planes':[" PLANE("good", "good") "]") "]",
			"agents[0].rate_hz, sent, skipped: must be numbers"},
		{"[" AGENT("a", "'planes':[]") "]", "agents[0].planes: must be a list of 1..16"},
		{"[" AGENT("a", "'planes':[" PLANE("good", "fine") "]") "]",
			"agents[0].planes.t1.state: is no state"},
		{"[" AGENT("a", "'planes':[" PLANE("", "good") "]") "]",
			"agents[0].planes.t0.state: is no state"},
		{"[" AGENT("a", "'planes':[{'plane':1,'t0':{'state':'good'},'t1':[]}]") "]",
			"agents[0].planes.t1: must be as many as uplinks"},
		{"[" AGENT("a", "'planes':[{'plane':256}]") "]", "agents[0].planes.plane"},
		{"[" AGENT(
			 "a", "'planes':[" PLANE("good", "good") "," PLANE("good", "dead") "]") "]",
			"agents[0].planes.plane: is there twice"},
		{"[" AGENT("a", "'planes':[" PLANE("good", "good") "]") "," AGENT(
			 "a", "'planes':[" PLANE("good", "good") "]") "]",
			"agents[1].host: is there twice"},
		{"[" AGENT("a", "'planes':[" PLANE("good", "good") "]") ",{'host':'b','group':0,"
									"'uplinks':2}]",
			"agents[1].uplinks: must be those of the first"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char err[MAP_ERR_LEN] = "";
		struct map *m = NULL;

		assert_int_equal(join(bad[i].text, &m, err), -EINVAL);
		if (strstr(err, bad[i].said) == NULL)
			fail_msg("%zu: \"%s\" does not say \"%s\"", i, err, bad[i].said);
		assert_null(m);
	}
}

/* Whose file it was. */
static void bad_file(void **state)
{
	static const char *const name[] = {"a.json", "dir/b.json"};
	char err[MAP_ERR_LEN] = "";
	struct map *m = NULL;

	(void)state;
	assert_int_equal(join_named("[" AGENT("a", "'planes':[" PLANE("good", "good") "]") ",5]",
				 name, &m, err),
		-EINVAL);
	assert_string_equal(err, "dir/b.json: host: must be 1..31 characters");
}

/* More faults than a table of some size would hold: all are there. */
static void every_fault(void **state)
{
	enum { HOSTS = 4096, UPLINKS = 2 };
	json_t *list = json_array(), *out;
	char err[MAP_ERR_LEN] = "";
	struct map *m;

	(void)state;
	for (int i = 0; i < HOSTS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "h%d", i);
		json_array_append_new(
			list, json_pack("{s:s,s:i,s:i,s:[{s:i,s:{s:s},s:[{s:s},{s:s}]}]}", "host",
				      name, "group", i / 2, "uplinks", UPLINKS, "planes", "plane",
				      1, "t0", "state", "good", "t1", "state",
				      i < 2 ? "good" : "dead", "state", i < 2 ? "good" : "lossy"));
	}
	assert_int_equal(map_join(list, NULL, &m, err), 0);
	json_decref(list);
	assert_int_equal(m->n_faults, (HOSTS / 2 - 1) * UPLINKS);
	out = map_json(m);
	assert_int_equal(json_array_size(json_object_get(out, "faults")), m->n_faults);
	json_decref(out);
	map_free(m);
}

int test_report(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_switch),
		cmocka_unit_test(well),
		cmocka_unit_test(pace),
		cmocka_unit_test(refused),
		cmocka_unit_test(bad_file),
		cmocka_unit_test(every_fault),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
