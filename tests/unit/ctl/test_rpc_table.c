/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's tables and its configuration. */
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

/* ---- tables ---- */

static void test_pipeline(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "pipeline.get", "{'table':'routes'}"),
		"{'tables':[{'name':'routes','help':'where networks are','node':'forward',"
		"'miss':'no_route','size':200000,'entries':0,'priorities':false,'keys':[{'name':'"
		"dst','type':'ip','match':'lpm',"
		"'optional':false,'help':'network'}],'actions':[{'name':'via',"
		"'help':'through a router','params':[{'name':'hop','type':'ip',"
		"'optional':false,'help':'the router'}]},"
		"{'name':'blackhole','help':'drop','params':[]}]}]}");
	json_t *all = call_ok(f, "pipeline.get", NULL);
	assert_int_equal(json_array_size(json_object_get(all, "tables")), 4);
	expect_json(json_incref(json_object_get(all, "parser")),
		"[{'state':'udp','others':'forward','help':'looked into'},"
		"{'state':'roce','ours':'engine','others':'forward','help':'of a collective'}]");
	expect_json(json_incref(json_object_get(all, "stages")),
		"[{'node':'parse','packets':9,'tables':[],'next':['engine','forward']},"
		"{'node':'engine','packets':5,'tables':['members'],'next':[]},"
		"{'node':'forward','packets':4,'tables':['routes'],'next':[]}]");
	expect_json(json_incref(json_object_get(all, "views")),
		"[{'name':'members','help':'of groups','node':'engine','miss':'end','size':64,"
		"'entries':3,'hits':5,'priorities':false,'keys':[{'name':'qpn','type':'uint',"
		"'match':'exact','min':0,'max':16777215,'optional':false,'help':'number'}],"
		"'actions':[]}]");
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
		"'priority':7,'action':'mark','data':{'dscp':26},'hits':1},"
		"{'key':{'type':'0x0800&&&0xffff','dport':'1..1023','tagged':false,'in':'p1'},"
		"'priority':0,'action':'mark','data':{'dscp':0,'cookie':'18446744073709551615'},'"
		"hits':2},"
		"{'key':{'tagged':false,'in':'p1'},'priority':-1,'action':'mark','data':{'dscp':1},"
		"'hits':3}"
		","
		"{'key':{'tagged':false,'in':'p1'},'priority':-2,'action':'mark','data':{'dscp':1},"
		"'hits':4}"
		"]");
}

/* What is read can be written, but for what is counted: deletes all that the page shows. */
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
		json_object_del(entry, "hits");
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
		INVALID, "EINVAL", ".key.in", "is not a port of this switch, which has: p0, p1");
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

#define T(name) cmocka_unit_test_setup_teardown(name, rpc_setup, rpc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
