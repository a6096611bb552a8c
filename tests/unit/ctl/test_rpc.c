/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent without its socket: what it refuses as a request, and every method. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/ctl/schema.h"
#include "tests/unit/ctl/rpc_helper.h"

enum { INVALID = CTL_INVALID_PARAMS, REFUSED = CTL_REFUSED };

#define GROUP1                                                                                 \
	"{'name':'g1','mode':'II','kind':'single','primitive':'allreduce','mtu':1024,'M':4,"   \
	"'W':8,'start_psn':16777214,'ranks':3,'endpoints':["                                   \
	"{'ip':'10.0.0.1','qpn':257,'port':'p0','ranks':[0]},"                                 \
	"{'ip':'10.0.0.2','qpn':258,'port':'p1','mac':'02:00:00:00:00:77','vlan':5,'dscp':26," \
	"'ranks':[1]},{'ip':'10.0.0.3','qpn':%s,'port':'p1','ranks':[2]}]%s}"

/* ---- requests ---- */

static void bad_line(struct rpc_fixture *f, const char *line, size_t len, int code)
{
	json_t *answer = send_line(f, line, len);
	json_t *error = json_object_get(answer, "error");

	assert_int_equal(json_integer_value(json_object_get(error, "code")), code);
	assert_true(json_string_length(json_object_get(error, "message")) > 0);
	assert_true(json_is_null(json_object_get(answer, "id")) || code != CTL_PARSE_ERROR);
	json_decref(answer);
}

#define BAD(f, line, code) bad_line(f, line, strlen(line), code)

static void test_not_json(void **state)
{
	static const char nul[] = "{\"jsonrpc\":\"2.0\"\0,\"id\":1,\"method\":\"ping\"}";
	struct rpc_fixture *f = *state;

	BAD(f, "hello", CTL_PARSE_ERROR);
	BAD(f, "{", CTL_PARSE_ERROR);
	BAD(f, "{}}", CTL_PARSE_ERROR);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x", CTL_PARSE_ERROR);
	BAD(f, "{\"id\":1,\"id\":2}", CTL_PARSE_ERROR);
	BAD(f, "{\"id\":\"\xff\"}", CTL_PARSE_ERROR);
	BAD(f, "{\"id\":\"\\u0000\"}", CTL_PARSE_ERROR);
	BAD(f, "{\"id\":\"\\ud800\"}", CTL_PARSE_ERROR);
	BAD(f, "{\"id\":99999999999999999999}", CTL_PARSE_ERROR);
	BAD(f, "{\"id\":9223372036854775808}", CTL_PARSE_ERROR);
	BAD(f, "{\"a\":{\"b\":18446744073709551616}}", CTL_PARSE_ERROR);
	BAD(f, "{\"a\":{\"b\":-9223372036854775809}}", CTL_PARSE_ERROR);
	BAD(f, "{\"a\":{\"b\":09223372036854775808}}", CTL_PARSE_ERROR);
	BAD(f, "{\"a\":{\"b\":18446744073709551615", CTL_PARSE_ERROR);
	BAD(f, "5 6", CTL_PARSE_ERROR);
	BAD(f, "{\"id\":1e999}", CTL_PARSE_ERROR);
	BAD(f, "{\"id\":NaN}", CTL_PARSE_ERROR);
	bad_line(f, nul, sizeof(nul) - 1, CTL_PARSE_ERROR);
	assert_null(send_line(f, "", 0));
	assert_null(send_line(f, " \t\r", 3));
}

static void test_deep_and_long(void **state)
{
	enum { DEEP = 500000, LONG = 10 << 20 };
	struct rpc_fixture *f = *state;
	char *text = malloc(LONG);

	memset(text, '[', DEEP);
	bad_line(f, text, DEEP, CTL_PARSE_ERROR);
	for (unsigned i = 0; i < DEEP / 5; i++)
		memcpy(text + 5 * i, "{\"a\":", 5);
	bad_line(f, text, DEEP, CTL_PARSE_ERROR);
	memset(text, ' ', LONG);
	text[LONG - 1] = 'x';
	bad_line(f, text, LONG, CTL_PARSE_ERROR);
	/* Valid, but longer than a line may be. */
	static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
	memset(text, ' ', LONG);
	memcpy(text + LONG - sizeof(ping) + 1, ping, sizeof(ping) - 1);
	bad_line(f, text, LONG, CTL_PARSE_ERROR);
	expect_json(send_line(f, text + LONG - CTL_MAX_LINE, CTL_MAX_LINE),
		"{'jsonrpc':'2.0','id':1,'result':{}}");
	free(text);
}

static void test_bad_requests(void **state)
{
	struct rpc_fixture *f = *state;

	BAD(f, "[]", CTL_INVALID_REQUEST);
	BAD(f, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", CTL_INVALID_REQUEST);
	BAD(f, "{}", CTL_INVALID_REQUEST);
	BAD(f, "5", CTL_INVALID_REQUEST);
	BAD(f, "-0.5e3", CTL_INVALID_REQUEST);
	BAD(f, "\"x\"", CTL_INVALID_REQUEST);
	BAD(f, "true", CTL_INVALID_REQUEST);
	BAD(f, "null", CTL_INVALID_REQUEST);
	BAD(f, "{\"id\":1,\"method\":\"ping\"}", CTL_INVALID_REQUEST);
	BAD(f, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", CTL_INVALID_REQUEST);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":1}", CTL_INVALID_REQUEST);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}", CTL_INVALID_REQUEST);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", CTL_INVALID_REQUEST);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", CTL_INVALID_REQUEST);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":1}", CTL_INVALID_REQUEST);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"reboot\"}", CTL_UNKNOWN_METHOD);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
		CTL_INVALID_PARAMS);
	BAD(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":null}",
		CTL_INVALID_PARAMS);
}

static void test_ids(void **state)
{
	static const char notification[] = "{\"jsonrpc\":\"2.0\",\"method\":\"table.write\"}";
	static const char word[] = "{\"jsonrpc\":\"2.0\",\"id\":\"a b\",\"method\":\"ping\"}\r";
	static const char null[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}";
	struct rpc_fixture *f = *state;

	assert_null(send_line(f, notification, strlen(notification)));
	expect_json(send_line(f, word, strlen(word)), "{'jsonrpc':'2.0','id':'a b','result':{}}");
	expect_json(send_line(f, null, strlen(null)), "{'jsonrpc':'2.0','id':null,'result':{}}");
}

/* Each method of the schema has a handler, and refuses what the schema does not name. */
static void test_all_methods(void **state)
{
	struct rpc_fixture *f = *state;

	for (unsigned i = 0; i < ctl_switch_schema.n; i++) {
		const char *name = ctl_switch_schema.methods[i].name;

		call_bad(f, name, "{'nonsense':1}", INVALID, "EINVAL", -1, "nonsense",
			"nonsense: is not a known field");
	}
}

/* ---- state ---- */

static void test_version_and_status(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *status;

	expect_json(call_ok(f, "ping", NULL), "{}");
	expect_json(call_ok(f, "version", "{}"),
		"{'server':'incline-switch','name':'leaf1','version':'" INCLINE_VERSION
		"','api':[1]}");
	status = call_ok(f, "status", NULL);
	json_object_del(status, "uptime_s");
	expect_json(status, "{'name':'leaf1','version':'" INCLINE_VERSION
			    "','ports':2,'ports_up':1,'tables':4,'entries':1,"
			    "'groups':0,'groups_active':0,'groups_failed':0,'owners':0,'orphans':0,"
			    "'arena_bytes':65536,"
			    "'arena_used_bytes':1024,'drops':5,'outcomes':21}");
}

static void test_schema_get(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *result = call_ok(f, "schema.get", NULL);

	assert_int_equal(json_array_size(json_object_get(result, "methods")), ctl_switch_schema.n);
	json_decref(result);
}

static void test_ports(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *result = call_ok(f, "port.list", NULL), *p1;

	p1 = json_array_get(json_object_get(result, "ports"), 1);
	expect_json(json_incref(p1),
		"{'name':'p1','type':'null','id':5,'mac':'02:00:00:00:01:01','mtu':4200,"
		"'link':'down','rx_packets':11,'rx_bytes':'1152921504606846976','tx_packets':0,"
		"'tx_bytes':0,'tx_drops':0}");
	json_decref(result);
}

static void test_stats(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "stats.get", "{'what':'values'}"),
		"{'values':[{'name':'uptime_ns','value':123456789,'help':'since the start'},"
		"{'name':'mbufs_free','value':4000,'help':'buffers left'}]}");
	expect_json(call_ok(f, "stats.get", "{'what':'nodes'}"),
		"{'nodes':[{'node':'parse','calls':3,'packets':100,'cycles':4500,"
		"'packets_per_call':33.33,'cycles_per_packet':45.0},"
		"{'node':'end','calls':0,'packets':0,'cycles':0,'packets_per_call':0.0,"
		"'cycles_per_packet':0.0}]}");
	expect_json(call_ok(f, "stats.get", "{'what':'groups'}"), "{'groups':[]}");
	json_t *all = call_ok(f, "stats.get", NULL);
	assert_int_equal(json_object_size(all), 3);
	json_decref(all);
	call_bad(f, "stats.get", "{'what':'all'}", INVALID, "EINVAL", -1, "what",
		"what: \"all\" must be values or nodes or groups");
}

static void test_drops(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "drops.get", "{'nonzero':true,'clear':true}"),
		"{'drops':[{'reason':'icrc_bad','count':7,'help':'wrong CRC'},"
		"{'reason':'inc_source','count':'18446744073709551614','help':'not a member'}],"
		"'outcomes':[{'outcome':'inc_consumed','count':21,'help':'aggregated'}]}");
	expect_json(call_ok(f, "drops.get", "{'nonzero':true}"), "{'drops':[],'outcomes':[]}");
	json_t *all = call_ok(f, "drops.get", NULL);
	assert_int_equal(json_array_size(json_object_get(all, "drops")), 3);
	json_decref(all);
}

static void test_trace(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "trace.start", "{'port':'p1','count':2}"), "{'count':2}");
	assert_int_equal(f->sw->trace_port, 1);
	expect_json(call_ok(f, "trace.read", "{'from':1,'limit':2}"),
		"{'next':3,'records':["
		"{'packet':0,'ns':1001,'node':'inc','text':'qpn 0x1000 ?'},"
		"{'packet':1,'ns':1002,'node':'parse','text':'qpn 0x1000 ?'}]}");
	expect_json(call_ok(f, "trace.start", NULL), "{'count':1}");
	assert_int_equal(f->sw->trace_port, -1);
	call_bad(f, "trace.start", "{'port':'p9'}", REFUSED, "ENOENT", -1, "port",
		"port: no port is named \"p9\"");
	call_bad(f, "trace.start", "{'count':4097}", INVALID, "EINVAL", -1, "count",
		"count: 4097 is not in 1..4096");
	call_bad(f, "trace.start", "{'count':4096}", REFUSED, "EBUSY", -1, NULL,
		"a trace is running");
}

/* ---- tables ---- */

static void test_pipeline(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "pipeline.get", "{'table':'routes'}"),
		"{'tables':[{'name':'routes','help':'where networks are','size':200000,"
		"'entries':0,'priorities':false,'keys':[{'name':'dst','type':'ip','match':'lpm',"
		"'optional':false,'help':'network'}],'actions':[{'name':'via',"
		"'help':'through a router','params':[{'name':'hop','type':'ip',"
		"'optional':false,'help':'the router'}]},"
		"{'name':'blackhole','help':'drop','params':[]}]}]}");
	json_t *all = call_ok(f, "pipeline.get", NULL);
	assert_int_equal(json_array_size(json_object_get(all, "tables")), 4);
	json_decref(all);
	call_bad(f, "pipeline.get", "{'table':'nat'}", REFUSED, "ENOENT", -1, "table",
		"table: no table is named \"nat\", there are: neighbours, routes, classes, "
		"local_addr");
	json_t *list = call_ok(f, "table.list", NULL);
	expect_json(json_incref(json_array_get(json_object_get(list, "tables"), 1)),
		"{'name':'routes','entries':0,'size':200000,'keys':['dst'],"
		"'actions':['via','blackhole'],'help':'where networks are'}");
	json_decref(list);
}

static json_t *read_all(struct rpc_fixture *f, const char *table)
{
	char params[64];

	snprintf(params, sizeof(params), "{'table':'%s'}", table);
	json_t *result = call_ok(f, "table.read", params);
	json_t *entries = json_incref(json_object_get(result, "entries"));
	json_decref(result);
	return entries;
}

#define ONE(op, table, rest) "{'updates':[{'op':'" op "','table':'" table "'," rest "}]}"

static void test_write_and_read_back(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "table.write",
			    "{'updates':["
			    "{'op':'insert','table':'neighbours','key':{'ip':'10.0.0.1'},"
			    "'action':'set','data':{'mac':'02:00:00:00:00:0A','port':'p1'}},"
			    "{'op':'insert','table':'neighbours','key':{'ip':'FD00::0:1'},"
			    "'action':'set','data':{'mac':'02:00:00:00:00:0b','port':'p0','vlan':'"
			    "0x10'}},"
			    "{'op':'insert','table':'routes','key':{'dst':'10.1.0.0/16'},"
			    "'action':'via','data':{'hop':'10.0.0.1'}},"
			    "{'op':'insert','table':'routes','key':{'dst':'10.1.0.7'},"
			    "'action':'blackhole'}]}"),
		"{'applied':4}");
	expect_json(read_all(f, "neighbours"), "[{'key':{'ip':'10.0.0.1'},'action':'set','data':{'"
					       "mac':'02:00:00:00:00:0a','port':'p1'}},"
					       "{'key':{'ip':'fd00::1'},'action':'set','data':{'"
					       "mac':'02:00:00:00:00:0b','port':'p0',"
					       "'vlan':16}}]");
	expect_json(read_all(f, "routes"),
		"[{'key':{'dst':'10.1.0.0/16'},'action':'via','data':{'hop':'10.0.0.1'}},"
		"{'key':{'dst':'10.1.0.7/32'},'action':'blackhole','data':{}}]");
	expect_json(call_ok(f, "table.write",
			    ONE("modify", "routes",
				    "'key':{'dst':'10.1.0.0/16'},'action':'blackhole'")),
		"{'applied':1}");
	expect_json(
		call_ok(f, "table.write", ONE("delete", "routes", "'key':{'dst':'10.1.0.7/32'}")),
		"{'applied':1}");
	expect_json(read_all(f, "routes"),
		"[{'key':{'dst':'10.1.0.0/16'},'action':'blackhole','data':{}}]");
}

static void test_ternary_and_range(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "table.write",
			    "{'updates':["
			    "{'op':'insert','table':'classes','priority':7,'key':{'type':'0x0400&&&"
			    "0xfc00',"
			    "'dport':'4791','tagged':true,'in':'p0'},'action':'mark','data':{'dscp'"
			    ":26}},"
			    "{'op':'insert','table':'classes','key':{'type':2048,'dport':'1..1023',"
			    "'tagged':'false','in':'p1'},'action':'mark',"
			    "'data':{'dscp':'0','cookie':'0xffffffffffffffff'}},"
			    "{'op':'insert','table':'classes','priority':-1,'key':{'tagged':false,'"
			    "in':'p1'},"
			    "'action':'mark','data':{'dscp':1}},"
			    "{'op':'insert','table':'classes','priority':-2,'key':{'type':'*','"
			    "dport':'*',"
			    "'tagged':false,'in':'p1'},'action':'mark','data':{'dscp':1}}]}"),
		"{'applied':4}");
	expect_json(read_all(f, "classes"),
		"[{'key':{'type':'0x0400&&&0xfc00','dport':'4791..4791','tagged':true,'in':'p0'},"
		"'priority':7,'action':'mark','data':{'dscp':26}},"
		"{'key':{'type':'0x0800&&&0xffff','dport':'1..1023','tagged':false,'in':'p1'},"
		"'priority':0,'action':'mark','data':{'dscp':0,'cookie':'18446744073709551615'}},"
		"{'key':{'tagged':false,'in':'p1'},'priority':-1,'action':'mark','data':{'dscp':1}}"
		","
		"{'key':{'tagged':false,'in':'p1'},'priority':-2,'action':'mark','data':{'dscp':1}}"
		"]");
}

/* What is read can be written: deletes all that the page shows. */
static void test_round_trip(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *entries, *entry, *updates = json_array();
	size_t i;

	test_ternary_and_range(state);
	entries = read_all(f, "classes");
	json_array_foreach(entries, i, entry)
	{
		json_object_del(entry, "action");
		json_object_del(entry, "data");
		json_object_set_new(entry, "op", json_string("delete"));
		json_object_set_new(entry, "table", json_string("classes"));
		json_array_append(updates, entry);
	}
	json_t *request = json_pack("{s:s,s:i,s:s,s:{s:o}}", "jsonrpc", "2.0", "id", 1, "method",
		"table.write", "params", "updates", updates);
	char *line = json_dumps(request, 0);
	expect_json(send_line(f, line, strlen(line)),
		"{'jsonrpc':'2.0','id':1,'result':{'applied':4}}");
	free(line);
	json_decref(request);
	json_decref(entries);
	expect_json(read_all(f, "classes"), "[]");
}

/* Each bad update is the second of three: its index and path are told, and nothing happens. */
static void bad_update(struct rpc_fixture *f, const char *update, int code, const char *name,
	const char *path, const char *message)
{
	static const char good[] = "{'op':'insert','table':'routes','key':{'dst':'10.%u.0.0/"
				   "16'},'action':'blackhole'}";
	char params[1024], one[128], two[128], full_path[64], full_message[512];

	snprintf(one, sizeof(one), good, 1);
	snprintf(two, sizeof(two), good, 2);
	snprintf(params, sizeof(params), "{'updates':[%s,%s,%s]}", one, update, two);
	snprintf(full_path, sizeof(full_path), "updates[1]%s", path);
	snprintf(full_message, sizeof(full_message), "updates[1]%s: %s", path, message);
	call_bad(f, "table.write", params, code, name, 1, full_path, full_message);
	expect_json(read_all(f, "routes"), "[]");
	assert_int_equal(f->sw->publishes, 0);
}

static void test_bad_values(void **state)
{
	static const char route[] = "{'op':'insert','table':'routes','key':{'dst':%s},"
				    "'action':'blackhole'}";
	static const struct {
		const char *value, *message;
	} cases[] = {
		{"'10.0.0.1/24'", "10.0.0.1/24 has host bits set, the network is 10.0.0.0/24"},
		{"'10.0.0.0/33'", "prefix length 33 > 32"},
		{"'fd00::/129'", "prefix length 129 > 128"},
		{"'10.0.0.0/256'", "must be \"address/length\""},
		{"'10.0.0.0/'", "must be \"address/length\""},
		{"'10.0.0.0/-1'", "must be \"address/length\""},
		{"'10.0.0/24'", "must be \"address/length\""},
		{"'/24'", "must be \"address/length\""},
		{"''", "must be \"address/length\""},
		{"7", "must be \"address/length\""},
		{"null", "must be \"address/length\""},
		{"{}", "must be \"address/length\""},
		{"'0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/8'",
			"must be \"address/length\""},
	};
	struct rpc_fixture *f = *state;
	char update[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(update, sizeof(update), route, cases[i].value);
		bad_update(f, update, INVALID, "EINVAL", ".key.dst", cases[i].message);
	}
}

static void test_bad_fields(void **state)
{
	static const struct {
		const char *rest, *path, *message;
	} cases[] = {
		{"'key':{'dst':'::/0'},'action':'nat'", ".action",
			"\"nat\" is not an action of table routes, which has: via, blackhole"},
		{"'key':{'dst':'::/0'}", ".action", "is missing"},
		{"'key':{},'action':'blackhole'", ".key.dst", "is missing"},
		{"'key':{'dst':'::/0','x':1},'action':'blackhole'", ".key.x",
			"is not a field of the key of table routes, which has: dst"},
		{"'key':{'dst':'::/0'},'action':'blackhole','data':{'hop':'::1'}", ".data.hop",
			"is not a field of action blackhole, which has: none"},
		{"'key':{'dst':'::/0'},'action':'via','data':{}", ".data.hop", "is missing"},
		{"'key':{'dst':'::/0'},'action':'via'", ".data.hop", "is missing"},
		{"'key':{'dst':'::/0'},'action':'via','data':{'hop':'::1/64'}", ".data.hop",
			"must be an IP address"},
		{"'key':{'dst':'::/0'},'action':'blackhole','priority':1", ".priority",
			"table routes has no ternary or range key, so no priorities"},
	};
	struct rpc_fixture *f = *state;
	char update[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(update, sizeof(update), "{'op':'insert','table':'routes',%s}",
			cases[i].rest);
		bad_update(f, update, INVALID, "EINVAL", cases[i].path, cases[i].message);
	}
	bad_update(f, "{'op':'delete','table':'routes','key':{'dst':'::/0'},'action':'via'}",
		INVALID, "EINVAL", ".action", "is not for delete");
	bad_update(f, "{'op':'delete','table':'routes','key':{'dst':'::/0'},'data':{}}", INVALID,
		"EINVAL", ".data", "is not for delete");
	bad_update(f, "{'op':'delete','table':'routes','key':{'dst':'::/0'}}", REFUSED, "ENOENT",
		".key", "table routes has no entry with this key");
	bad_update(f, "{'op':'insert','table':'nat','key':{}}", REFUSED, "ENOENT", ".table",
		"no table is named \"nat\", there are: neighbours, routes, classes, local_addr");
}

static void test_bad_class_values(void **state)
{
	static const struct {
		const char *key, *data, *path, *message;
	} cases[] = {
		{"'type':'1&&&'", "'dscp':1", ".key.type", "must be \"value&&&mask\""},
		{"'type':'0x10000&&&0x10000'", "'dscp':1", ".key.type",
			"mask 0x10000 is wider than 0xffff"},
		{"'type':'0x1001&&&0x1000'", "'dscp':1", ".key.type",
			"value 0x1001 has bits outside its mask 0x1000"},
		{"'type':-1", "'dscp':1", ".key.type",
			"must be an integer, \"value&&&mask\" or \"*\""},
		{"'dport':'9..1'", "'dscp':1", ".key.dport", "range 9..1 is empty"},
		{"'dport':'..9'", "'dscp':1", ".key.dport", "must be \"low..high\""},
		{"'dport':65536", "'dscp':1", ".key.dport", "65536 is not in 0..65535"},
		{"'dport':1.0", "'dscp':1", ".key.dport",
			"must be an integer, \"low..high\" or \"*\""},
		{"'type':1", "'dscp':64", ".data.dscp", "64 is not in 0..63"},
		{"'type':1", "'dscp':'18446744073709551616'", ".data.dscp",
			"must be an integer, or a string of digits"},
		{"'type':1", "'dscp':' 1'", ".data.dscp",
			"must be an integer, or a string of digits"},
	};
	struct rpc_fixture *f = *state;
	char update[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(update, sizeof(update),
			"{'op':'insert','table':'classes','key':{%s,'tagged':true,'in':'p0'},"
			"'action':'mark','data':{%s}}",
			cases[i].key, cases[i].data);
		bad_update(f, update, INVALID, "EINVAL", cases[i].path, cases[i].message);
	}
	bad_update(f,
		"{'op':'insert','table':'classes','key':{'tagged':1,'in':'p0'},"
		"'action':'mark','data':{'dscp':1}}",
		INVALID, "EINVAL", ".key.tagged", "must be true or false");
	bad_update(f,
		"{'op':'insert','table':'classes','key':{'tagged':true,'in':'p7'},"
		"'action':'mark','data':{'dscp':1}}",
		INVALID, "EINVAL", ".key.in", "no port has this name");
	bad_update(f,
		"{'op':'insert','table':'classes','key':{'tagged':true,'in':4},"
		"'action':'mark','data':{'dscp':1}}",
		INVALID, "EINVAL", ".key.in", "must be the name of a port");
	bad_update(f,
		"{'op':'insert','table':'neighbours','key':{'ip':'10.0.0.1'},'action':'set',"
		"'data':{'mac':'02:00:00:00:00','port':'p0'}}",
		INVALID, "EINVAL", ".data.mac", "must be a MAC address");
}

/* What the schema refuses is named by its path; there is no batch yet, so no index. */
static void test_bad_batches(void **state)
{
	struct rpc_fixture *f = *state;

	call_bad(f, "table.write", NULL, INVALID, "EINVAL", -1, "updates", "updates: is missing");
	call_bad(f, "table.write", "{'updates':[]}", INVALID, "EINVAL", -1, "updates",
		"updates: must have 1..65536 items, has 0");
	call_bad(f, "table.write", "{'updates':{}}", INVALID, "EINVAL", -1, "updates",
		"updates: must be list of objects, not an object");
	call_bad(f, "table.write", "{'updates':[7]}", INVALID, "EINVAL", -1, "updates[0]",
		"updates[0]: must be object, not an integer");
	call_bad(f, "table.write", "{'updates':[{'op':'replace','table':'routes','key':{}}]}",
		INVALID, "EINVAL", -1, "updates[0].op",
		"updates[0].op: \"replace\" must be insert or modify or delete");
	call_bad(f, "table.write", "{'updates':[{'op':'insert','table':'routes'}]}", INVALID,
		"EINVAL", -1, "updates[0].key", "updates[0].key: is missing");
	call_bad(f, "table.write",
		"{'updates':[{'op':'insert','table':'routes','key':{},'prio':1}]}", INVALID,
		"EINVAL", -1, "updates[0].prio", "updates[0].prio: is not a known field");
	call_bad(f, "table.write",
		"{'updates':[{'op':'insert','table':'classes','key':{},'priority':2147483648}]}",
		INVALID, "EINVAL", -1, "updates[0].priority",
		"updates[0].priority: 2147483648 is not in -2147483648..2147483647");
}

static void test_publish_fails(void **state)
{
	struct rpc_fixture *f = *state;

	f->sw->refuse = 1;
	call_bad(f, "table.write",
		ONE("insert", "routes", "'key':{'dst':'::/0'},'action':'blackhole'"), REFUSED,
		"ENOMEM", 0, "updates[0]", "updates[0]: no memory for the lookup structure");
	call_bad(f, "table.write",
		"{'updates':["
		"{'op':'insert','table':'routes','key':{'dst':'::/0'},'action':'blackhole'},"
		"{'op':'delete','table':'routes','key':{'dst':'::/0'}}]}",
		REFUSED, "ENOMEM", -1, NULL, "no memory for the lookup structure");
	expect_json(read_all(f, "routes"), "[]");
}

static void write_routes(struct rpc_fixture *f, unsigned n)
{
	json_t *updates = json_array();
	char dst[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(dst, sizeof(dst), "10.%u.%u.0/24", i / 256, i % 256);
		json_array_append_new(
			updates, json_pack("{s:s,s:s,s:{s:s},s:s}", "op", "insert", "table",
					 "routes", "key", "dst", dst, "action", "blackhole"));
	}
	json_t *request = json_pack("{s:s,s:i,s:s,s:{s:o}}", "jsonrpc", "2.0", "id", 1, "method",
		"table.write", "params", "updates", updates);
	char *line = json_dumps(request, JSON_COMPACT);
	json_t *answer = send_line(f, line, strlen(line));

	assert_non_null(json_object_get(answer, "result"));
	json_decref(answer);
	json_decref(request);
	free(line);
}

static void test_paging_and_filter(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *page;

	write_routes(f, 2500);
	page = call_ok(f, "table.read", "{'table':'routes','limit':1000,'offset':1000}");
	assert_int_equal(json_array_size(json_object_get(page, "entries")), 1000);
	assert_int_equal(json_integer_value(json_object_get(page, "total")), 2500);
	assert_int_equal(json_integer_value(json_object_get(page, "next")), 2000);
	json_decref(page);
	page = call_ok(f, "table.read", "{'table':'routes','limit':500,'offset':2000}");
	assert_int_equal(json_array_size(json_object_get(page, "entries")), 500);
	assert_null(json_object_get(page, "next"));
	json_decref(page);
	page = call_ok(f, "table.read", "{'table':'routes','offset':9999}");
	assert_int_equal(json_array_size(json_object_get(page, "entries")), 0);
	json_decref(page);
	page = call_ok(f, "table.read", "{'table':'routes'}");
	assert_int_equal(json_integer_value(json_object_get(page, "next")), 100);
	json_decref(page);
	expect_json(call_ok(f, "table.read", "{'table':'routes','key':{'dst':'10.1.0.0/24'}}"),
		"{'table':'routes','total':1,'entries':[{'key':{'dst':'10.1.0.0/24'},"
		"'action':'blackhole','data':{}}]}");
	expect_json(call_ok(f, "table.read", "{'table':'routes','action':'via'}"),
		"{'table':'routes','total':0,'entries':[]}");
	call_bad(f, "table.read", "{'table':'routes','limit':1001}", INVALID, "EINVAL", -1, "limit",
		"limit: 1001 is not in 1..1000");
	call_bad(f, "table.read", "{'table':'routes','key':{'src':'::'}}", INVALID, "EINVAL", -1,
		"key.src", "key.src: is not a field of the key of table routes, which has: dst");
	call_bad(f, "table.read", "{'table':'routes','action':'nat'}", INVALID, "EINVAL", -1,
		"action", "action: \"nat\" is not an action of table routes");
	call_bad(f, "table.read", "{'table':'nat'}", REFUSED, "ENOENT", -1, "table",
		"table: no table is named \"nat\", there are: neighbours, routes, classes, "
		"local_addr");
}

/* ---- configuration ---- */

static void test_apply_tables(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *tables = quoted(
		"{'#':'comment','neighbours':[{'#note':'x','key':{'ip':'10.0.0.1'},'action':'set',"
		"'data':{'mac':'02:00:00:00:00:01','port':'p0'}}],"
		"'routes':[{'key':{'dst':'::/0'},'action':'blackhole'}]}");
	json_t *own = quoted("{'local_addr':[{'key':{'ip':'10.0.0.254'},'action':'local'},"
			     "{'key':{'ip':'10.0.0.253'},'action':'local'}]}");
	json_t *twice = quoted("{'routes':[{'key':{'dst':'10.0.0.0/8'},'action':'blackhole'},"
			       "{'key':{'dst':'10.0.0.0/8'},'action':'blackhole'}]}");
	char err[256] = "";

	assert_int_equal(agent_apply_tables(f->sw, NULL, err, sizeof(err)), 0);
	assert_int_equal(agent_apply_tables(f->sw, tables, err, sizeof(err)), 0);
	assert_int_equal(f->sw->publishes, 1);
	/* What is there already may be named again; not so within the file. */
	assert_int_equal(agent_apply_tables(f->sw, own, err, sizeof(err)), 0);
	expect_json(read_all(f, "local_addr"),
		"[{'key':{'ip':'10.0.0.254'},'action':'local','data':{}},"
		"{'key':{'ip':'10.0.0.253'},'action':'local','data':{}}]");
	assert_int_equal(agent_apply_tables(f->sw, twice, err, sizeof(err)), -EEXIST);
	assert_string_equal(err, "tables.routes[1].key: table routes has an entry with this key");
	json_decref(own);
	json_decref(twice);
	json_decref(tables);
}

static void test_apply_bad_tables(void **state)
{
	static const struct {
		const char *tables, *err;
	} cases[] = {
		{"[]", "tables: must be an object of lists"},
		{"{'nat':[]}", "tables.nat: no table is named \"nat\", there are: neighbours, "
			       "routes, classes, local_addr"},
		{"{'routes':{}}", "tables.routes: must be a list of entries"},
		{"{'routes':[7]}", "tables.routes[0]: must be an object, not an integer"},
		{"{'routes':[{'key':{'dst':'::/0'}}]}", "tables.routes[0].action: is missing"},
		{"{'routes':[{'key':{'dst':'::/0'},'action':'via','op':'insert'}]}",
			"tables.routes[0].op: is not a known field"},
		{"{'classes':[],'routes':[{'key':{'dst':'::/0'},'action':'blackhole'},"
		 "{'key':{'dst':'::1/0'},'action':'blackhole'}]}",
			"tables.routes[1].key.dst: ::1/0 has host bits set, the network is ::/0"},
	};
	struct rpc_fixture *f = *state;
	char err[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *tables = quoted(cases[i].tables);

		assert_true(agent_apply_tables(f->sw, tables, err, sizeof(err)) < 0);
		assert_string_equal(err, cases[i].err);
		json_decref(tables);
	}
	assert_int_equal(f->sw->publishes, 0);
}

static void test_config(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "config.get", NULL),
		"{'config':{'#':'made by a test','name':'leaf1','addresses':['10.0.0.254'],"
		"'arena_kb':64,'tables':{}}}");
	write_routes(f, 1);
	expect_json(call_ok(f, "config.get", NULL),
		"{'config':{'#':'made by a test','name':'leaf1','addresses':['10.0.0.254'],"
		"'arena_kb':64,'tables':{'routes':[{'key':{'dst':'10.0.0.0/24'},"
		"'action':'blackhole','data':{}}]}}}");
	expect_json(call_ok(f, "config.get", "{'tables':false}"),
		"{'config':{'#':'made by a test','name':'leaf1','addresses':['10.0.0.254'],"
		"'arena_kb':64}}");
}

/* What is saved, and read at the next start, makes the same tables. */
static void test_config_save(void **state)
{
	struct rpc_fixture *f = *state;
	struct stat st;
	char err[256];

	test_ternary_and_range(state);
	write_routes(f, 3);
	assert_int_equal(close(open(f->file, O_CREAT | O_WRONLY, 0640)), 0);
	assert_int_equal(chmod(f->file, 0640), 0); /* whatever the umask is */
	json_t *saved = call_ok(f, "config.save", NULL);
	assert_int_equal(stat(f->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_size, json_integer_value(json_object_get(saved, "bytes")));
	assert_int_equal(json_integer_value(json_object_get(saved, "entries")), 7);
	assert_string_equal(json_string_value(json_object_get(saved, "file")), f->file);
	json_decref(saved);

	json_t *config = json_load_file(f->file, JSON_REJECT_DUPLICATES, NULL);
	struct sw *again = fake_switch_create();
	assert_int_equal(
		agent_apply_tables(again, json_object_get(config, "tables"), err, sizeof(err)), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct table_rows a, b;

		table_rows(f->sw->tables, i, &a);
		table_rows(again->tables, i, &b);
		assert_int_equal(a.n, b.n);
		if (a.n)
			assert_memory_equal(a.entry, b.entry, a.n * sizeof(a.entry[0]));
	}
	fake_switch_destroy(again);
	json_decref(config);
}

static void test_config_save_fails(void **state)
{
	struct rpc_fixture *f = *state;
	char message[256];

	agent_destroy(f->agent);
	assert_int_equal(agent_create(f->sw, NULL, &f->agent), 0);
	call_bad(f, "config.save", NULL, REFUSED, "ENOENT", -1, NULL,
		"the switch was started without a configuration file to save to");
	agent_destroy(f->agent);
	assert_int_equal(agent_create(f->sw, "/nonexistent/switch.json", &f->agent), 0);
	snprintf(message, sizeof(message),
		"cannot write /nonexistent/switch.json: No such file or directory");
	call_bad(f, "config.save", NULL, REFUSED, "ENOENT", -1, NULL, message);
	/* The target is a directory: the temporary file must not stay behind. */
	agent_destroy(f->agent);
	assert_int_equal(mkdir(f->file, 0700), 0);
	assert_int_equal(agent_create(f->sw, f->file, &f->agent), 0);
	snprintf(message, sizeof(message), "cannot write %s: Is a directory", f->file);
	call_bad(f, "config.save", NULL, REFUSED, "EISDIR", -1, NULL, message);
	assert_int_equal(rmdir(f->file), 0);
	assert_int_equal(rmdir(f->dir), 0);
	assert_int_equal(mkdir(f->dir, 0700), 0);
}

/* ---- groups ---- */

static json_t *create(struct rpc_fixture *f, const char *qpn3, const char *more)
{
	char params[1024];

	snprintf(params, sizeof(params), GROUP1, qpn3, more);
	return call_ok(f, "group.create", params);
}

static void test_group_create(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(create(f, "259", ""),
		"{'group':1,'name':'g1','generation':5,'state':'active','mtu':1024,'M':4,'W':8,"
		"'slots':64,'start_psn':16777214,'endpoints':["
		"{'index':0,'port':'p0','ip':'10.0.0.254','qpn':4101,'mac':'02:00:00:00:01:00',"
		"'remote_ip':'10.0.0.1','remote_qpn':257,'remote_mac':'02:00:00:00:00:01',"
		"'role':'host','vlan':0,'dscp':0,'ranks':[0]},"
		"{'index':1,'port':'p1','ip':'10.0.0.254','qpn':4165,'mac':'02:00:00:00:01:01',"
		"'remote_ip':'10.0.0.2','remote_qpn':258,'remote_mac':'02:00:00:00:00:77',"
		"'role':'host','vlan':5,'dscp':26,'ranks':[1]},"
		"{'index':2,'port':'p1','ip':'10.0.0.254','qpn':4229,'mac':'02:00:00:00:01:01',"
		"'remote_ip':'10.0.0.3','remote_qpn':259,'remote_mac':'02:00:00:00:00:03',"
		"'role':'host','vlan':0,'dscp':0,'ranks':[2]}]}");
	assert_int_equal(f->sw->group[1]->flags,
		INC_F_LATE_FLUSH | INC_F_STALL_RNR | INC_F_STRICT_PORT | INC_F_HALF);
	assert_int_equal(inc_ep_at(f->sw->group[1], 0)->port, 4);
	assert_int_equal(inc_ep_at(f->sw->group[1], 1)->port, 5);
	char params[1024];
	snprintf(params, sizeof(params), GROUP1, "259", "");
	call_bad(f, "group.create", params, REFUSED, "EEXIST", -1, "name",
		"name: a group of this name exists");
}

static void test_group_two_steps(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *g = create(
		f, "0", ",'flags':{'reproducible':true,'stall_rnr':false,'strict_port':false}");

	assert_string_equal(json_string_value(json_object_get(g, "state")), "installed");
	json_decref(g);
	assert_int_equal(
		f->sw->group[1]->flags, INC_F_LATE_FLUSH | INC_F_REPRODUCIBLE | INC_F_HALF);
	call_bad(f, "group.activate", "{'group':'g1'}", INVALID, "EINVAL", -1, "endpoints",
		"endpoints: the QPN of endpoint 2 is not known yet: give it here");
	call_bad(f, "group.activate", "{'group':'g1','endpoints':[{'index':3,'qpn':1}]}", INVALID,
		"EINVAL", -1, "endpoints[0].index", "endpoints[0].index: 3 is not in 0..2");
	call_bad(f, "group.activate",
		"{'group':'g1','endpoints':[{'index':2,'qpn':1},{'index':2,'qpn':2}]}", INVALID,
		"EINVAL", -1, "endpoints[1].index", "endpoints[1].index: 2 is given twice");
	call_bad(f, "group.fail", "{'group':'g1'}", REFUSED, "EBUSY", -1, "state",
		"state: group is installed, must be active");
	expect_json(
		call_ok(f, "group.activate", "{'group':'g1','endpoints':[{'index':2,'qpn':260}]}"),
		"{'group':1,'name':'g1','state':'active'}");
	assert_int_equal(inc_ep_at(f->sw->group[1], 2)->remote_qpn, 260);
	assert_int_equal(inc_ep_at(f->sw->group[1], 0)->remote_qpn, 257);
}

static void test_group_life(void **state)
{
	struct rpc_fixture *f = *state;

	json_decref(create(f, "1", ",'activate':false"));
	assert_int_equal(f->sw->group[1]->state, INC_INSTALLED);
	expect_json(call_ok(f, "group.activate", "{'group':1}"),
		"{'group':1,'name':'g1','state':'active'}");
	expect_json(call_ok(f, "group.list", NULL),
		"{'groups':[{'group':1,'name':'g1','state':'active','generation':5,'mode':'II',"
		"'kind':'single','primitive':'allreduce','ranks':3,'endpoints':3,"
		"'operations':0}]}");
	expect_json(call_ok(f, "group.delete", "{'group':'g1'}"),
		"{'group':1,'name':'g1','state':'draining'}");
	expect_json(call_ok(f, "group.delete", "{'group':1,'force':true}"),
		"{'group':1,'name':'g1','state':'free'}");
	call_bad(f, "group.delete", "{'group':1}", REFUSED, "ENOENT", -1, "group",
		"group: slot 1 holds no group");
	call_bad(f, "group.show", "{'group':'g1'}", REFUSED, "ENOENT", -1, "group",
		"group: no group is named \"g1\"");
	call_bad(f, "group.fail", "{'group':4096}", INVALID, "EINVAL", -1, "group",
		"group: 4096 is not in 1..4095");
	call_bad(f, "group.activate", "{'group':true}", INVALID, "EINVAL", -1, "group",
		"group: must be name or slot, not a boolean");
}

static void test_group_fail_and_status(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *show;

	json_decref(create(f, "1", ""));
	expect_json(call_ok(f, "group.fail", "{'group':'g1'}"),
		"{'group':1,'name':'g1','state':'failed'}");
	show = call_ok(f, "group.show", "{'group':'g1'}");
	assert_string_equal(json_string_value(json_object_get(show, "fail_reason")), "manager");
	assert_null(json_object_get(show, "fail_endpoint"));
	json_decref(show);
	show = call_ok(f, "status", NULL);
	assert_int_equal(json_integer_value(json_object_get(show, "groups_failed")), 1);
	assert_int_equal(json_integer_value(json_object_get(show, "groups_active")), 0);
	json_decref(show);
}

static void test_group_show(void **state)
{
	struct rpc_fixture *f = *state;

	json_decref(create(f, "1", ""));
	/* Three slots wait across the PSN wrap; the oldest is not the one with the lowest number.
	 */
	fake_switch_arrived(f->sw, 1, 1, 1);
	fake_switch_arrived(f->sw, 1, 0xfffffe, 5);
	fake_switch_arrived(f->sw, 1, 0xffffff, 7);
	fake_switch_arrived(f->sw, 1, 0, 6);
	json_t *show = call_ok(f, "group.show", "{'group':1,'slots':true}");
	expect_json(json_incref(json_object_get(show, "waiting")),
		"{'psn':16777214,'arrived':[0,2],'missing':[1],'missing_ranks':[1]}");
	expect_json(json_incref(json_object_get(show, "waiting_slots")),
		"[{'psn':16777214,'arrived':[0,2],'missing':[1],'missing_ranks':[1]},"
		"{'psn':0,'arrived':[1,2],'missing':[0],'missing_ranks':[0]},"
		"{'psn':1,'arrived':[0],'missing':[1,2],'missing_ranks':[1,2]}]");
	json_t *counters = json_object_get(show, "counters");
	assert_int_equal(json_object_size(counters), INC_N_COUNTERS);
	assert_string_equal(
		json_string_value(json_object_get(counters, "rx_packets")), "1152921504606846976");
	json_object_del(show, "waiting");
	json_object_del(show, "waiting_slots");
	json_object_del(show, "counters");
	json_object_del(show, "endpoints");
	expect_json(show,
		"{'group':1,'name':'g1','state':'active','generation':5,'mode':'II',"
		"'kind':'single','primitive':'allreduce','flags':['late_flush','stall_rnr',"
		"'strict_port','half'],"
		"'mtu':1024,'M':4,'W':8,'slots':64,'arena':{'bound':true,'bytes':131072,'offset':0}"
		","
		"'start_psn':16777214,"
		"'next_psn':16777214,'ranks':3}");
}

static void test_group_rebind(void **state)
{
	struct rpc_fixture *f = *state;

	json_decref(create(f, "1", ""));
	expect_json(call_ok(f, "group.rebind", "{'group':'g1','bound':false}"),
		"{'group':1,'name':'g1','state':'active','arena':{'bound':false,'bytes':131072}}");
	expect_json(call_ok(f, "group.rebind", "{'group':1,'bound':true}"),
		"{'group':1,'name':'g1','state':'active',"
		"'arena':{'bound':true,'bytes':131072,'offset':0}}");
	fake_switch_arrived(f->sw, 1, 1, 1);
	call_bad(f, "group.rebind", "{'group':1,'bound':false}", -32000, "EBUSY", -1, NULL,
		"an operation is not finished: PSN 1");
}

static void test_leases(void **state)
{
	struct rpc_fixture *f = *state;

	json_decref(create(f, "1", ",'lease':'pool','tenant':'job','lease_ms':100"));
	json_t *show = call_ok(f, "group.show", "{'group':'g1'}");
	expect_json(json_incref(json_object_get(show, "lease")), "{'name':'pool','tenant':'job'}");
	json_decref(show);
	expect_json(call_ok(f, "lease.list", "{}"),
		"{'leases':[{'name':'pool','bytes':4096,'groups':2,'offset':0,'acquired':1,"
		"'refused':2,'released':3,'taken_back':4}]}");
	expect_json(call_ok(f, "lease.acquire", "{'lease':'pool','tenant':'job'}"),
		"{'lease':'pool','holder':'job'}");
	call_bad(f, "lease.acquire", "{'lease':'pool','tenant':'b'}", -32000, "EBUSY", -1, NULL,
		"lease \"pool\" is held by \"job\"");
	call_bad(f, "lease.acquire", "{'lease':'p','tenant':'b'}", -32000, "ENOENT", -1, "lease",
		"lease: no group names a lease \"p\"");
	call_bad(f, "lease.acquire", "{'lease':'p'}", -32602, "EINVAL", -1, "tenant",
		"tenant: is missing");
	expect_json(call_ok(f, "lease.list", "{}"),
		"{'leases':[{'name':'pool','bytes':4096,'groups':2,'offset':0,'holder':'job',"
		"'held_ms':0,'releasing':false,'acquired':1,'refused':2,'released':3,"
		"'taken_back':4}]}");
	expect_json(call_ok(f, "lease.release", "{'lease':'pool','tenant':'b'}"),
		"{'lease':'pool','pending':true}");
	expect_json(call_ok(f, "lease.release", "{'lease':'pool','tenant':'job'}"),
		"{'lease':'pool','pending':false}");
}

/* A tree: switches below, a parent that leads to all other ranks. */
static void test_group_in_tree(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *g = call_ok(f, "group.create",
		"{'name':'t','mode':'II','kind':'single','primitive':'allreduce','mtu':256,'M':1,"
		"'W':2,'ranks':6,'endpoints':["
		"{'ip':'10.0.0.1','qpn':1,'port':'p0','ranks':[4,0],'host':false},"
		"{'ip':'10.0.0.2','qpn':2,'port':'p1','ranks':[2]},"
		"{'ip':'10.0.0.3','qpn':3,'port':'p1','parent':true}]}");
	json_t *eps = json_object_get(g, "endpoints");

	for (unsigned i = 0; i < 3; i++) {
		static const char *const ranks[] = {"[0,4]", "[2]", "[1,3,5]"};
		static const char *const roles[] = {"switch", "host", "parent"};
		json_t *ep = json_array_get(eps, i);

		expect_json(json_incref(json_object_get(ep, "ranks")), ranks[i]);
		assert_string_equal(json_string_value(json_object_get(ep, "role")), roles[i]);
	}
	assert_true(json_integer_value(json_object_get(g, "start_psn")) <= 0xffffff);
	json_decref(g);
}

static void bad_group(struct rpc_fixture *f, const char *key, const char *value, int code,
	const char *name, const char *path, const char *message)
{
	json_t *g =
		quoted("{'name':'g','mode':'II','kind':'single','primitive':'allreduce','mtu':1024,"
		       "'M':4,'W':8,'ranks':1,'endpoints':["
		       "{'ip':'10.0.0.1','qpn':257,'port':'p0','ranks':[0]}]}");
	json_t *target = key[0] == '.' ? json_array_get(json_object_get(g, "endpoints"), 0) : g;
	const char *field = key[0] == '.' ? key + 1 : key;
	char full[512];

	if (value)
		json_object_set_new(target, field, quoted(value));
	else
		json_object_del(target, field);
	char *params = json_dumps(g, 0);
	snprintf(full, sizeof(full), "%s%s%s", path ? path : "", path ? ": " : "", message);
	call_bad(f, "group.create", params, code, name, -1, path, full);
	for (unsigned i = 0; i < INC_GROUP_SLOTS; i++)
		assert_null(f->sw->group[i]);
	free(params);
	json_decref(g);
}

static void test_bad_groups(void **state)
{
	static const struct {
		const char *key, *value, *path, *message;
	} cases[] = {
		{"name", NULL, "name", "is missing"},
		{"name", "''", "name", "must have 1..31 bytes, has 0"},
		{"name", "'a b'", "name", "must consist of letters, digits, '_', '.' and '-'"},
		{"name", "'12'", "name", "must not be digits alone: that is a number"},
		{"name", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "name",
			"must have 1..31 bytes, has 32"},
		{"mode", "'IV'", "mode", "\"IV\" must be I or II or III or netreduce"},
		{"mode", "2", "mode", "must be I or II or III or netreduce, not an integer"},
		{"primitive", NULL, "primitive", "is missing: a single group has one"},
		{"kind", "'mixed'", "primitive", "is for single groups"},
		{"mtu", "1000", "mtu", "1000, must be 256, 512, 1024, 2048 or 4096"},
		{"mtu", "8192", "mtu", "8192 is not in 256..4096"},
		{"M", "0", "M", "0 is not in 1..32768"},
		{"W", "32768", NULL, "m, w: 4 x 32768, the product must be 2..32768"},
		{"slots", "100", "slots",
			"100, must be a power of two, 64..65536 (2 M W and more)"},
		{"start_psn", "16777216", "start_psn", "16777216 is not in 0..16777215"},
		{"start_psn", "-1", "start_psn", "-1 is not in 0..16777215"},
		{"ranks", "2", "endpoints", "1 of 2 ranks are behind none"},
		{"ranks", "2049", "ranks", "2049 is not in 1..2048"},
		{"flags", "{'fast':true}", "flags.fast", "is not a known field"},
		{"flags", "{'dup_all':1}", "flags.dup_all", "must be boolean, not an integer"},
		{"endpoints", "[]", "endpoints", "must have 1..64 items, has 0"},
		{"lease", "'a b'", "lease", "must consist of letters, digits, '_', '.' and '-'"},
		{"lease", "''", "lease", "must have 1..31 bytes, has 0"},
		{"tenant", "'t'", "tenant", "is for groups with a lease: name that too"},
		{"lease_ms", "9", "lease_ms", "9 is not in 10..3600000"},
		{"lease_ms", "10", "lease_ms", "is for groups with a lease: name that too"},
		{"verb", "'read'", "verb", "\"read\" must be send or write"},
		{"verb", "'write'", "endpoints[0].mr_len",
			"0, must be a multiple of M x mtu, 4096, and not 0"},
		{".mr_len", "4096", "endpoints[0].mr_len", "is for verb write"},
		{".mr_addr", "-1", "endpoints[0].mr_addr", "must be u64, not an integer"},
		{"activate", "'yes'", "activate", "must be boolean, not a string"},
		{".ip", "'10.0.0.1/24'", "endpoints[0].ip", "\"10.0.0.1/24\" is not an IP address"},
		{".ip", NULL, "endpoints[0].ip", "is missing"},
		{".local_ip", "'x'", "endpoints[0].local_ip", "\"x\" is not an IP address"},
		{".local_ip", "'fd00::1'", "endpoints[0].local_ip", "not of the peer's family"},
		{".qpn", "16777216", "endpoints[0].qpn", "16777216 is not in 0..16777215"},
		{".mac", "'02'", "endpoints[0].mac", "\"02\" is not a MAC address"},
		{".vlan", "4096", "endpoints[0].vlan", "4096 is not in 0..4095"},
		{".dscp", "64", "endpoints[0].dscp", "64 is not in 0..63"},
		{".ranks", NULL, "endpoints[0].ranks", "is missing"},
		{".ranks", "[]", "endpoints[0].ranks", "empty"},
		{".ranks", "[1]", "endpoints[0].ranks[0]", "1 is not in 0..0"},
		{".ranks", "[-1]", "endpoints[0].ranks[0]", "-1 is not in 0..0"},
		{".ranks", "[65536]", "endpoints[0].ranks[0]", "65536 is not in 0..0"},
		{".ranks", "['0']", "endpoints[0].ranks[0]", "must be integer, not a string"},
	};
	struct rpc_fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		bad_group(f, cases[i].key, cases[i].value, INVALID, "EINVAL", cases[i].path,
			cases[i].message);
	bad_group(f, "mode", "'netreduce'", REFUSED, "EOPNOTSUPP", "mode",
		"netreduce has rings: see ring.create");
	bad_group(f, ".port", "'p9'", REFUSED, "ENOENT", "endpoints[0].port",
		"no port is named \"p9\"");
	bad_group(f, ".ip", "'10.0.0.99'", REFUSED, "ENOENT", "endpoints[0].mac",
		"no neighbour entry");
}

#define T(name) cmocka_unit_test_setup_teardown(name, rpc_setup, rpc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_not_json),
		T(test_deep_and_long),
		T(test_bad_requests),
		T(test_ids),
		T(test_all_methods),
		T(test_version_and_status),
		T(test_schema_get),
		T(test_ports),
		T(test_stats),
		T(test_drops),
		T(test_trace),
		T(test_pipeline),
		T(test_write_and_read_back),
		T(test_ternary_and_range),
		T(test_round_trip),
		T(test_bad_values),
		T(test_bad_fields),
		T(test_bad_class_values),
		T(test_bad_batches),
		T(test_publish_fails),
		T(test_paging_and_filter),
		T(test_apply_tables),
		T(test_apply_bad_tables),
		T(test_config),
		T(test_config_save),
		T(test_config_save_fails),
		T(test_group_create),
		T(test_group_two_steps),
		T(test_group_life),
		T(test_group_fail_and_status),
		T(test_group_show),
		T(test_group_rebind),
		T(test_leases),
		T(test_group_in_tree),
		T(test_bad_groups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
