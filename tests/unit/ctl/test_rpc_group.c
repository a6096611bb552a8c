/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's group.* and lease.* methods. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/schema.h"
#include "tests/unit/ctl/rpc_helper.h"

enum { INVALID = CTL_INVALID_PARAMS, REFUSED = CTL_REFUSED };

#define GROUP1                                                                                 \
	"{'name':'g1','mode':'II','kind':'single','primitive':'allreduce','mtu':1024,'M':4,"   \
	"'W':8,'start_psn':16777214,'ranks':3,'endpoints':["                                   \
	"{'ip':'10.0.0.1','qpn':257,'port':'p0','ranks':[0]},"                                 \
	"{'ip':'10.0.0.2','qpn':258,'port':'p1','mac':'02:00:00:00:00:77','vlan':5,'dscp':26," \
	"'ranks':[1]},{'ip':'10.0.0.3','qpn':%s,'port':'p1','ranks':[2]}]%s}"

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
		"{'groups':[{'group':1,'name':'g1','worker':0,'state':'active','generation':5,'"
		"mode':'II',"
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
		"{'group':1,'name':'g1','worker':0,'state':'active','generation':5,'mode':'II',"
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

static void test_group_resync(void **state)
{
	struct rpc_fixture *f = *state;

	json_decref(create(f, "1", ""));
	call_bad(f, "group.resync", "{'group':'g1','psn':7}", -32602, "EINVAL", -1, "psn",
		"psn: the next operation's is 16777214");
	call_bad(f, "group.resync", "{'group':'g1'}", -32602, "EINVAL", -1, "psn",
		"psn: is missing");
	call_bad(f, "group.resync", "{'group':'g1','psn':16777216}", -32602, "EINVAL", -1, "psn",
		"psn: 16777216 is not in 0..16777215");
	expect_json(call_ok(f, "group.resync", "{'group':'g1','psn':16777214}"),
		"{'group':1,'name':'g1','done':true}");
	inc_ep_at(f->sw->group[1], 1)->ack_msn = 3; /* the fake is ready at the second question */
	expect_json(call_ok(f, "group.resync", "{'group':1,'psn':16777214}"),
		"{'group':1,'name':'g1','done':false}");
	expect_json(call_ok(f, "group.resync", "{'group':1,'psn':16777214}"),
		"{'group':1,'name':'g1','done':true}");
}

static void test_group_move(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *result;

	json_decref(create(f, "1", ""));
	expect_json(call_ok(f, "group.move", "{'group':'g1','worker':1}"),
		"{'group':1,'name':'g1','worker':1}");
	call_bad(f, "group.move", "{'group':'g1','worker':2}", -32000, "ENOENT", -1, "worker",
		"worker: there are 2, from 0 on");
	result = call_ok(f, "worker.list", NULL);
	expect_json(json_incref(json_array_get(json_object_get(result, "workers"), 1)),
		"{'worker':1,'cpu':3,'socket':0,'turns':0,'busy_cycles':0,'idle_cycles':0,"
		"'rx_packets':0,'tx_packets':0,'handed_over':1,'taken_over':0,'handoff_full':0,"
		"'groups':1,'rings':0,'arena_bytes':0}");
	assert_null(json_object_get(json_array_get(json_object_get(result, "workers"), 0), "cpu"));
	json_decref(result);
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
		T(test_group_create),
		T(test_group_two_steps),
		T(test_group_life),
		T(test_group_fail_and_status),
		T(test_group_show),
		T(test_group_rebind),
		T(test_group_resync),
		T(test_group_move),
		T(test_leases),
		T(test_group_in_tree),
		T(test_bad_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
