/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and what is wrong with them; the state of the program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/schema.h"
#include "lib/reduce/reduce.h"
#include "lib/wire/icrc.h"
#include "tests/unit/ctl/rpc_helper.h"

enum { INVALID = CTL_INVALID_PARAMS, REFUSED = CTL_REFUSED };

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
	char text[200];

	snprintf(text, sizeof(text),
		"{'server':'incline-switch','name':'leaf1','version':'" INCLINE_VERSION
		"','api':[1],'icrc':'%s','reduce':'%s'}",
		icrc_kernel_name(), reduce_isa_name(reduce_isa_best()));
	expect_json(call_ok(f, "version", "{}"), text);
	status = call_ok(f, "status", NULL);
	json_object_del(status, "uptime_s");
	expect_json(status, "{'name':'leaf1','version':'" INCLINE_VERSION
			    "','ports':2,'ports_up':1,'tables':4,'entries':1,"
			    "'groups':0,'groups_active':0,'groups_failed':0,"
			    "'rings_failed':0,'owners':0,'orphans':0,"
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
		"'tx_bytes':0,'tx_drops':0,'rx_missed':0,'rx_errors':0,'rx_nombuf':0,"
		"'mac_mismatch':0,'mac_unlisted':0}");
	json_decref(result);
}

static void test_queues(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *result = call_ok(f, "queue.list", NULL), *list = json_object_get(result, "queues");

	assert_int_equal(json_array_size(list), 4);
	expect_json(json_incref(json_array_get(list, 3)),
		"{'port':'p1','queue':'data','packets':11,'bytes':1000,'limit_bytes':2000,"
		"'queued':7,'peak_bytes':1500,'marked':3,'trimmed':2,'full':5,'stale':4}");
	json_decref(result);
}

static void test_members(void **state)
{
	expect_json(call_ok(*state, "mcast.members", NULL),
		"{'members':["
		"{'group':'239.1.2.3','port':'p1','leaving':false,'seconds':2},"
		"{'group':'ff0e::7','port':'p1','vlan':7,'leaving':true,'seconds':2}],"
		"'total':2,'joined':4,'left':3,'expired':2,'refused':1,'bad':5,'deferred':6}");
}

static void test_neighbours(void **state)
{
	expect_json(call_ok(*state, "neigh.list", NULL),
		"{'neighbours':["
		"{'ip':'10.0.0.7','port':'p1','vlan':5,'mac':'02:00:00:00:00:07',"
		"'state':'reachable','age':3,'waiting':0},"
		"{'ip':'10.0.0.7','port':'p1','vlan':5,'state':'incomplete','age':3,'waiting':1}],"
		"'total':2,'learnt':9,'forgotten':8,'unanswered':7,'requests':6,'requests_held':5,"
		"'claims':4,'moved':3,'refused':2,'crowded':1}");
}

static void test_macs(void **state)
{
	expect_json(call_ok(*state, "mac.list", NULL),
		"{'macs':["
		"{'mac':'02:00:00:00:00:07','port':'p1','kind':'learnt','idle':3},"
		"{'mac':'02:00:00:00:00:07','vlan':5,'port':'p1','kind':'static'}],"
		"'total':2,'learnt':5,'aged':4,'flushed':3,'moved':2,'refused':1,'held':6}");
}

static void test_stats(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "stats.get", "{'what':'values'}"),
		"{'values':[{'name':'uptime_ns','value':123456789,'kind':'gauge',"
		"'help':'since the start'},"
		"{'name':'mbufs_free','value':4000,'kind':'gauge','help':'buffers left'},"
		"{'name':'emitted','value':17,'kind':'counter','help':'packets of its own'}]}");
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

#define LOSE "{'opcode':17,'loss':0.5}"
#define FOUR LOSE "," LOSE "," LOSE "," LOSE
#define SIXTEEN FOUR "," FOUR "," FOUR "," FOUR

static void test_weather(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "port.impair", "{'port':'p1','impair':{'loss':0.5}}"), "{}");
	assert_int_equal(f->sw->impaired, 1);
	expect_json(call_ok(f, "port.impair", "{'port':'p1'}"), "{}");
	assert_int_equal(f->sw->impaired, -1);
	call_bad(f, "port.impair", "{'port':'p9'}", REFUSED, "ENOENT", -1, "port",
		"port: no port is named \"p9\"");
	call_bad(f, "port.impair", "{'port':'p1','impair':{'loss':-1}}", INVALID, "EINVAL", -1,
		"impair.loss", "impair.loss: -1 is not in 0..1");
	call_bad(f, "port.impair", "{'port':'p1','impair':{'seed':-1}}", INVALID, "EINVAL", -1,
		"impair.seed", "impair.seed: -1 is not in 0..9223372036854775807");
	call_bad(f, "port.impair", "{'port':'p1','impair':{'lose':[{'opcode':-1,'loss':1}]}}",
		INVALID, "EINVAL", -1, "impair.lose[0].opcode",
		"impair.lose[0].opcode: -1 is not in 0..255");
	call_bad(f, "port.impair",
		"{'port':'p1','impair':{'lose':[{'opcode':1,'loss':0.5},{'opcode':2,'loss':-1}]}}",
		INVALID, "EINVAL", -1, "impair.lose[1].loss",
		"impair.lose[1].loss: -1 is not in 0..1");
	call_bad(f, "port.impair",
		"{'port':'p1','impair':{'lose':[" SIXTEEN ",{'opcode':17,'loss':1}]}}", INVALID,
		"EINVAL", -1, "impair.lose", "impair.lose: must have 0..16 items, has 17");
	assert_int_equal(f->sw->impaired, -1);
	expect_json(
		call_ok(f, "port.impair", "{'port':'p0','impair':{'lose':[" SIXTEEN "]}}"), "{}");
	assert_int_equal(f->sw->impaired, 0);
	expect_json(call_ok(f, "port.impair", "{'port':'p0'}"), "{}");
	call_bad(f, "port.impair", "{'port':'p1','impair':{'dup':1}}", INVALID, "EINVAL", -1,
		"impair.dup", "impair.dup: not here");
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
		T(test_queues),
		T(test_members),
		T(test_neighbours),
		T(test_macs),
		T(test_stats),
		T(test_drops),
		T(test_trace),
		T(test_weather),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
