/* SPDX-License-Identifier: BSD-3-Clause */
/* What "top" makes of two reads, and that it is what rates_result says. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apps/inclinectl_rates.h"
#include "tests/unit/ctl/rpc_helper.h"

static json_t *object(const char *text)
{
	json_error_t e;
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &e);

	if (!json)
		fail_msg("%s: %s", text, e.text);
	return json;
}

#define PORT(name, rx, rx_bytes, lost)                                                        \
	"{\"name\":\"" name "\",\"link\":\"up\",\"rx_packets\":" rx ",\"rx_bytes\":" rx_bytes \
	",\"tx_packets\":5,\"tx_bytes\":50,\"tx_drops\":" lost ",\"rx_missed\":0,"            \
	"\"rx_errors\":0,\"rx_nombuf\":0}"

static json_t *read_of(unsigned s, unsigned uptime, const char *rest)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"{\"ns\":%u000000000,\"time\":\"t%u\",\"status\":{\"name\":\"s0\",\"uptime_s\":%u}%"
		"s%s}",
		s, s, uptime, rest[0] ? "," : "", rest);
	return object(text);
}

/* Rates of both, which must be as the schema says but for what may be absent. */
static json_t *rates(json_t *before, json_t *after)
{
	json_t *out = rates_between(before, after);

	json_decref(before);
	json_decref(after);
	assert_non_null(out);
	return out;
}

/* One list of the result, as JSON with ' for ". */
static void expect_list(json_t *result, const char *list, const char *expected)
{
	char *text = json_dumps(json_object_get(result, list), JSON_COMPACT);

	for (char *c = text; *c; c++)
		*c = *c == '"' ? '\'' : *c;
	assert_string_equal(text, expected);
	free(text);
}

static void test_grown(void **state)
{
	uint64_t by = 77;

	(void)state;
	assert_int_equal(rates_grown(5, 5, &by), 0);
	assert_int_equal(by, 0);
	assert_int_equal(rates_grown(5, 12, &by), 0);
	assert_int_equal(by, 7);
	/* Past the end. */
	assert_int_equal(rates_grown(UINT64_MAX - 2, 4, &by), 0);
	assert_int_equal(by, 7);
	/* Anew. */
	assert_int_equal(rates_grown(1000, 999, &by), -ERANGE);
	assert_int_equal(rates_grown(1ULL << 40, 0, &by), -ERANGE);
	assert_int_equal(by, 7);
}

static void test_ports(void **state)
{
	json_t *r;

	(void)state;
	/* h0 goes on, h1's counters began anew, h2 is gone, h3 has come, h4 passes 2^64. */
	r = rates(read_of(10, 100,
			  "\"ports\":[" PORT("h0", "100", "1000", "1") "," PORT(
				  "h1", "900", "9000", "0") "," PORT("h2", "1", "1",
				  "0") "," PORT("h4", "\"18446744073709551606\"", "0", "0") "]"),
		read_of(12, 102,
			"\"ports\":[" PORT("h0", "300", "250001000", "4") "," PORT(
				"h1", "10", "100", "0") "," PORT("h3", "1", "1", "0") "," PORT("h4",
				"10", "0", "0") "]"));
	expect_list(r, "ports",
		"[{'name':'h0','link':'up','rx_packets_s':100.0,'rx_gbit_s':1.0,"
		"'tx_packets_s':0.0,'tx_gbit_s':0.0,'lost_s':1.5},"
		"{'name':'h1','link':'up','tx_packets_s':0.0,'tx_gbit_s':0.0,'lost_s':0.0},"
		"{'name':'h3','link':'up'},"
		"{'name':'h4','link':'up','rx_packets_s':10.0,'rx_gbit_s':0.0,'tx_packets_s':0.0,"
		"'tx_gbit_s':0.0,'lost_s':0.0},"
		"{'name':'h2','link':'gone'}]");
	assert_null(json_object_get(r, "workers"));
	expect_list(r, "groups", "[]");
	assert_string_equal(json_string_value(json_object_get(r, "time")), "t12");
	assert_string_equal(json_string_value(json_object_get(r, "name")), "s0");
	assert_true(json_real_value(json_object_get(r, "seconds")) == 2.0);
	json_decref(r);
}

#define BUSY(n, busy, idle, rx)                                                      \
	"{\"worker\":" n ",\"cpu\":3,\"busy_cycles\":" busy ",\"idle_cycles\":" idle \
	",\"rx_packets\":" rx ",\"tx_packets\":0,\"groups\":2}"

static void test_workers(void **state)
{
	json_t *r;

	(void)state;
	/* Two that work, one without packets, one whose counters stand still. */
	r = rates(read_of(1, 1,
			  "\"workers\":[" BUSY("0", "100", "100", "10") "," BUSY(
				  "1", "0", "0", "0") "," BUSY("2", "7", "7", "7") "]"),
		read_of(2, 2,
			"\"workers\":[" BUSY("0", "400", "200", "12") "," BUSY(
				"1", "0", "9", "0") "," BUSY("2", "7", "7", "7") "," BUSY("3", "1",
				"1", "1") "]"));
	expect_list(r, "workers",
		"[{'worker':0,'cpu':3,'busy_percent':75.0,'rx_packets_s':2.0,'tx_packets_s':0.0,"
		"'cycles_per_packet':150.0,'groups':2},"
		"{'worker':1,'cpu':3,'busy_percent':0.0,'rx_packets_s':0.0,'tx_packets_s':0.0,"
		"'groups':2},"
		"{'worker':2,'cpu':3,'rx_packets_s':0.0,'tx_packets_s':0.0,'groups':2},"
		"{'worker':3,'cpu':3,'groups':2}]");
	json_decref(r);
}

#define GROUP(slot, name, generation, operations) \
	"{\"group\":" slot ",\"name\":\"" name    \
	"\",\"state\":\"active\",\"generation\":" generation ",\"operations\":" operations "}"
#define WAITS(name, psn) "\"" name "\":{\"psn\":" psn ",\"missing_ranks\":[1,3]}"

static void test_groups(void **state)
{
	json_t *r;

	(void)state;
	/* a works; b is stuck; c waits for the same PSN of another operation; d is another group
	 * of that name. */
	r = rates(read_of(1, 1,
			  "\"groups\":[" GROUP("1", "a", "1", "10") "," GROUP(
				  "2", "b", "1", "5") "," GROUP("3", "c", "1", "5") "," GROUP("4",
				  "d", "1", "9") "],\"waiting\":{" WAITS("b", "7") "," WAITS("c",
				  "8") "," WAITS("d", "9") "}"),
		read_of(3, 3,
			"\"groups\":[" GROUP("1", "a", "1", "15") "," GROUP(
				"2", "b", "1", "5") "," GROUP("3", "c", "1", "6") "," GROUP("4",
				"d", "2", "9") "],\"waiting\":{" WAITS("b", "7") "," WAITS("c",
				"8") "," WAITS("d", "9") "}"));
	expect_list(r, "groups",
		"[{'name':'a','state':'active','operations':15,'operations_s':2.5,'missing':0,"
		"'waits_for':[],'stuck':false},"
		"{'name':'b','state':'active','operations':5,'operations_s':0.0,'missing':2,"
		"'waits_for':[1,3],'stuck':true},"
		"{'name':'c','state':'active','operations':6,'operations_s':0.5,'missing':2,"
		"'waits_for':[1,3],'stuck':false},"
		"{'name':'d','state':'active','operations':9,'missing':2,'waits_for':[1,3],"
		"'stuck':false}]");
	assert_null(json_object_get(r, "groups_left_out"));
	json_decref(r);
}

static void test_many(void **state)
{
	json_t *a = read_of(1, 1, ""), *b = read_of(2, 2, ""), *groups = json_array();
	json_t *ranks = json_array(), *r;

	(void)state;
	for (int i = 0; i < RATES_MAX_GROUPS + 3; i++)
		json_array_append_new(groups, json_pack("{s:i,s:o,s:s,s:i,s:i}", "group", i, "name",
						      json_sprintf("g%d", i), "state", "active",
						      "generation", 1, "operations", i));
	for (int i = 0; i < 2048; i++)
		json_array_append_new(ranks, json_integer(i));
	json_object_set(a, "groups", groups);
	json_object_set_new(b, "groups", groups);
	json_object_set_new(
		b, "waiting", json_pack("{s:{s:i,s:o}}", "g0", "psn", 1, "missing_ranks", ranks));
	r = rates(a, b);
	groups = json_object_get(r, "groups");
	assert_int_equal(json_array_size(groups), RATES_MAX_GROUPS);
	assert_int_equal(json_integer_value(json_object_get(r, "groups_left_out")), 3);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(groups, 0), "missing")), 2048);
	assert_int_equal(json_array_size(json_object_get(json_array_get(groups, 0), "waits_for")),
		RATES_MAX_WAITED_FOR);
	json_decref(r);
}

#define DROP(reason, count) "{\"reason\":\"" reason "\",\"count\":" count "}"

static void test_drops(void **state)
{
	json_t *r;

	(void)state;
	/* One stands, one grew, one was cleared and counts again, one is new. */
	r = rates(read_of(1, 1,
			  "\"drops\":[" DROP("a", "5") "," DROP("b", "5") "," DROP("c", "50") "]"),
		read_of(3, 3,
			"\"drops\":[" DROP("a", "5") "," DROP("b", "8") "," DROP("c", "2") "," DROP(
				"d", "1") "]"));
	expect_list(r, "drops",
		"[{'reason':'b','count':8,'per_s':1.5},{'reason':'c','count':2,'per_s':1.0},"
		"{'reason':'d','count':1,'per_s':0.5}]");
	assert_true(json_real_value(json_object_get(r, "drops_s")) == 3.0);
	json_decref(r);
}

/* Counters of the switch before are no beginning for those of the one after, even where they are
 * less. */
static void test_restart(void **state)
{
	static const struct {
		unsigned seconds, was, is;
		bool restarted;
	} cases[] = {{1, 50, 0, true}, {5, 1, 2, true}, {60, 40, 42, true}, {2, 50, 51, false},
		{2, 50, 52, false}, {2, 50, 53, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *r = rates(read_of(10, cases[i].was,
					  "\"ports\":[" PORT("h0", "1", "1",
						  "1") "],\"drops\":[" DROP("a", "1") "]"),
			read_of(10 + cases[i].seconds, cases[i].is,
				"\"ports\":[" PORT("h0", "9", "9", "9") "],\"drops\":[" DROP(
					"a", "9") "],\"workers\":[" BUSY("0", "4", "2", "1") "]"));

		assert_int_equal(json_is_true(json_object_get(r, "restarted")), cases[i].restarted);
		assert_int_equal(json_object_get(r, "drops_s") == NULL, cases[i].restarted);
		assert_int_equal(json_array_size(json_object_get(r, "drops")), !cases[i].restarted);
		if (cases[i].restarted) {
			expect_list(r, "ports", "[{'name':'h0','link':'up'}]");
			expect_list(r, "workers", "[{'worker':0,'cpu':3,'groups':2}]");
		}
		json_decref(r);
	}
}

/* What a read lacks, or has of another kind, is as if it were not there. */
static void test_hostile(void **state)
{
	static const char *const reads[] = {"{}", "{\"ns\":-1}", "{\"ns\":\"x\"}", "{\"ns\":5}",
		"{\"ns\":6,\"status\":[],\"ports\":{},\"workers\":3,\"groups\":\"g\",\"drops\":"
		"null}",
		"{\"ns\":7,\"ports\":[1,{},{\"name\":{}}],\"workers\":[[]],\"groups\":[{},{"
		"\"name\":"
		"7}],\"waiting\":[],\"drops\":[{},{\"count\":\"9\"},null]}",
		"{\"ns\":8,\"groups\":[{\"name\":\"g\"}],\"waiting\":{\"g\":{\"missing_ranks\":{},"
		"\"psn\":[]}},\"status\":{\"uptime_s\":\"-\",\"name\":5}}"};
	const size_t n = sizeof(reads) / sizeof(reads[0]);

	(void)state;
	for (size_t i = 0; i < n * n; i++) {
		json_t *a = object(reads[i / n]), *b = object(reads[i % n]);

		json_t *r = rates_between(a, b);
		/* Both have a time, and the second is later. */
		assert_int_equal(r != NULL, i / n >= 3 && i % n > i / n);
		json_decref(r);
		json_decref(a);
		json_decref(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_grown),
		cmocka_unit_test(test_ports), cmocka_unit_test(test_workers),
		cmocka_unit_test(test_groups), cmocka_unit_test(test_many),
		cmocka_unit_test(test_drops), cmocka_unit_test(test_restart),
		cmocka_unit_test(test_hostile)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
