/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's ring.* methods. */
#include <errno.h>
#include <string.h>

#include "lib/ctl/schema.h"
#include "tests/unit/ctl/rpc_helper.h"

enum { INVALID = CTL_INVALID_PARAMS, REFUSED = CTL_REFUSED };

#define STAR                                                                               \
	"{'name':'r1','id':7,'mtu':1024,'M':4,'W':8,'ranks':2,'flows':["                   \
	"{'rank':0,'src':'10.0.0.1','dst':'10.0.0.2','qpn':23,'reply_qpn':17,'psn':4711}," \
	"{'rank':1,'src':'10.0.0.2','dst':'10.0.0.1','qpn':18}]%s}"
#define LEAF                                                                               \
	"{'name':'leaf','mtu':256,'M':1,'W':1,'ranks':3,'flows':["                         \
	"{'rank':1,'src':'fd00::1','dst':'fd00::2','qpn':23}],'leaves':[{'ip':'10.0.0.9'," \
	"'local_ip':'10.0.0.254','ranks':[2]}],'parent':{'ip':'10.0.0.8','local_ip':"      \
	"'10.0.0.254'}}"

static const char *with(const char *more)
{
	static char text[1024];

	snprintf(text, sizeof(text), STAR, more);
	return text;
}

static void test_life(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *r;

	expect_json(call_ok(f, "ring.list", "{}"), "{'rings':[]}");
	r = call_ok(f, "ring.create", with(""));
	expect_json(r, "{'ring':0,'name':'r1','state':'active','leaves':[],'buffer_bytes':155648}");
	assert_int_equal(sw_ring_get(f->sw, 0)->flags, NR_F_STALL_RNR | NR_F_STRICT_PORT);
	expect_json(call_ok(f, "ring.list", "{}"),
		"{'rings':[{'ring':0,'name':'r1','state':'active','ranks':2,'flows':2,'leaves':0,"
		"'root':true,'completed':0}]}");
	r = call_ok(f, "ring.show", "{'ring':'r1'}");
	assert_int_equal(json_integer_value(json_object_get(r, "id")), 7);
	assert_null(json_object_get(r, "waiting"));
	assert_null(json_object_get(r, "parent"));
	expect_json(json_incref(json_array_get(json_object_get(r, "inputs"), 0)),
		"{'input':0,'kind':'host','src':'10.0.0.1','dst':'10.0.0.2','qpn':23,'reply_qpn':"
		"17,"
		"'message':0,'psn':4711,'ranks':[0]}");
	expect_json(json_incref(json_array_get(json_object_get(r, "inputs"), 1)),
		"{'input':1,'kind':'host','src':'10.0.0.2','dst':'10.0.0.1','qpn':18,'reply_qpn':0,"
		"'ranks':[1]}");
	json_decref(r);
	call_bad(f, "ring.create", with(""), REFUSED, "EEXIST", -1, "name",
		"name: there is a ring \"r1\" already");
	expect_json(
		call_ok(f, "ring.delete", "{'ring':0}"), "{'ring':0,'name':'r1','state':'free'}");
	call_bad(f, "ring.delete", "{'ring':0}", REFUSED, "ENOENT", -1, "ring",
		"ring: there is no ring 0");
	call_bad(f, "ring.show", "{'ring':'r1'}", REFUSED, "ENOENT", -1, "ring",
		"ring: no ring is named \"r1\"");
}

/* A switch in a tree: its neighbours' QPNs come later. */
static void test_two_steps(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *r;

	r = call_ok(f, "ring.create", LEAF);
	expect_json(r, "{'ring':0,'name':'leaf','state':'installed','leaves':[{'input':1,'qpn':"
		       "16515136,'ranks':[2]}],'parent_qpn':16519104,'buffer_bytes':1792}");
	call_bad(f, "ring.activate",
		"{'ring':'leaf','leaves':[{'input':1,'qpn':5},{'input':1,'qpn':6}]}", INVALID,
		"EINVAL", -1, "leaves[1].input", "leaves[1].input: 1 is given twice");
	expect_json(call_ok(f, "ring.activate",
			    "{'ring':'leaf','leaves':[{'input':1,'qpn':77}],'parent_qpn':88}"),
		"{'ring':0,'name':'leaf','state':'active'}");
	r = call_ok(f, "ring.show", "{'ring':0}");
	expect_json(json_incref(json_object_get(r, "parent")),
		"{'ip':'10.0.0.8','qpn':88,'local_qpn':16519104}");
	expect_json(json_incref(json_array_get(json_object_get(r, "inputs"), 1)),
		"{'input':1,'kind':'switch','src':'10.0.0.9','dst':'10.0.0.254','qpn':16515136,"
		"'reply_qpn':77,'ranks':[2]}");
	json_decref(r);
	json_decref(call_ok(f, "ring.delete", "{'ring':'leaf'}"));
}

/* Whom a ring waits for. */
static void test_waiting(void **state)
{
	struct rpc_fixture *f = *state;
	struct nr_agg *a;
	json_t *r;

	json_decref(call_ok(f, "ring.create", with(",'first_message':4294967295")));
	a = nr_agg_at(sw_ring_get(f->sw, 0), nr_index(sw_ring_get(f->sw, 0), UINT32_MAX, 2));
	*a = (struct nr_agg){.msg = UINT32_MAX, .arrived = 1};
	r = call_ok(f, "ring.show", "{'ring':0}");
	expect_json(json_incref(json_object_get(r, "waiting")),
		"{'message':4294967295,'packet':2,'missing_ranks':[1]}");
	json_decref(r);
	json_decref(call_ok(f, "ring.delete", "{'ring':0}"));
}

static json_t *listed(struct rpc_fixture *f)
{
	json_t *r = call_ok(f, "ring.list", "{}");
	json_t *first = json_incref(json_array_get(json_object_get(r, "rings"), 0));

	json_decref(r);
	return first;
}

/* What it has failed of, as the engine notes it. */
static void test_failed(void **state)
{
	struct rpc_fixture *f = *state;
	struct nr_ring *ring;
	json_t *r;

	json_decref(call_ok(f, "ring.create", with("")));
	r = listed(f);
	assert_null(json_object_get(r, "fail_reason"));
	json_decref(r);
	ring = sw_ring_get(f->sw, 0);
	ring->fail = (struct nr_fail){.reason = NR_FAIL_DTYPE,
		.in = 1,
		.other = 0,
		.msg = 4000000000,
		.o = 2,
		.value = REDUCE_FP16,
		.other_value = REDUCE_INT32};
	r = call_ok(f, "ring.show", "{'ring':0}");
	assert_null(json_object_get(r, "disagreement"));
	json_decref(r);
	assert_true(nr_set_failed(ring));
	r = listed(f);
	assert_string_equal(json_string_value(json_object_get(r, "state")), "failed");
	assert_string_equal(json_string_value(json_object_get(r, "fail_reason")), "dtype_mismatch");
	assert_string_equal(json_string_value(json_object_get(r, "failure")),
		"message 4000000000, packet 2: dtype fp16 of rank 1, int32 of rank 0");
	json_decref(r);
	r = call_ok(f, "ring.show", "{'ring':0}");
	expect_json(json_incref(json_object_get(r, "disagreement")),
		"{'message':4000000000,'packet':2,'ranks':[1],'value':'fp16','other_ranks':[0],"
		"'other_value':'int32'}");
	json_decref(r);
	ring->fail.reason = NR_FAIL_PACKETS;
	ring->fail.other = NR_NOBODY;
	ring->fail.value = 3;
	ring->fail.other_value = 4;
	r = call_ok(f, "ring.show", "{'ring':0}");
	expect_json(json_incref(json_object_get(r, "disagreement")),
		"{'message':4000000000,'packet':2,'ranks':[1],'value':'3','other_value':'4'}");
	json_decref(r);
	r = call_ok(f, "status", "{}");
	assert_int_equal(json_integer_value(json_object_get(r, "rings_failed")), 1);
	json_decref(r);
	json_decref(call_ok(f, "ring.delete", "{'ring':0}"));
}

/* By somebody: as group.fail. It can be made again once it is deleted. */
static void test_fail(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *r;

	json_decref(call_ok(f, "ring.create", with("")));
	expect_json(call_ok(f, "ring.fail", "{'ring':'r1'}"),
		"{'ring':0,'name':'r1','state':'failed'}");
	expect_json(
		call_ok(f, "ring.fail", "{'ring':0}"), "{'ring':0,'name':'r1','state':'failed'}");
	r = call_ok(f, "ring.show", "{'ring':0}");
	assert_string_equal(json_string_value(json_object_get(r, "fail_reason")), "manager");
	assert_null(json_object_get(r, "disagreement"));
	json_decref(r);
	json_decref(call_ok(f, "ring.delete", "{'ring':0}"));
	r = call_ok(f, "ring.create", with(""));
	assert_string_equal(json_string_value(json_object_get(r, "state")), "active");
	json_decref(r);
	json_decref(call_ok(f, "ring.delete", "{'ring':0}"));
	call_bad(f, "ring.fail", "{'ring':0}", REFUSED, "ENOENT", -1, "ring",
		"ring: there is no ring 0");
}

static void test_refusals(void **state)
{
	static const struct {
		const char *from, *to, *path, *message;
	} t[] = {
		{"'name':'r1'", "'name':'r 1'", "name",
			"name: must consist of letters, digits, '_', '.' and '-'"},
		{"'name':'r1'", "'name':'12'", "name",
			"name: must not be digits alone: that is a number"},
		{"'id':7", "'id':65536", "id", "id: 65536 is not in 0..65535"},
		{"'M':4", "'M':0", "M", "M: 0 is not in 1..1024"},
		{"'ranks':2", "'ranks':1", "ranks", "ranks: 1 is not in 2..2048"},
		{"'ranks':2", "'ranks':3", NULL,
			"flows, leaves: 1 of 3 ranks are missing, and there is no parent"},
		{"10.0.0.2'", "10.0.0.300'", "flows[0].dst",
			"flows[0].dst: \"10.0.0.300\" is not an IP address"},
		{"'qpn':23", "'qpn':1", "flows[0].qpn", "flows[0].qpn: 1 is not in 2..16777215"},
		{"'psn':4711", "'psn':16777216", "flows[0].psn",
			"flows[0].psn: 16777216 is not in 0..16777215"},
		{"'rank':1", "'rank':0", "ranks", "ranks: 0 is named twice"},
		{"'mtu':1024", "'mtu':1000", "mtu",
			"mtu: 1000, must be 256, 512, 1024, 2048 or 4096"},
		{"'id':7", "'first_message':'4294967296'", "first_message",
			"first_message: must be 0..4294967295"},
	};
	struct rpc_fixture *f = *state;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const char *star = with(""), *at = strstr(star, t[i].from);
		char text[1200];

		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - star), star, t[i].to,
			at + strlen(t[i].from));
		call_bad(f, "ring.create", text, INVALID, NULL, -1, t[i].path, t[i].message);
	}
	expect_json(call_ok(f, "ring.list", "{}"), "{'rings':[]}");
}

#define T(test) cmocka_unit_test_setup_teardown(test, rpc_setup, rpc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_life), T(test_two_steps), T(test_waiting),
		T(test_failed), T(test_fail), T(test_refusals)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
