/* SPDX-License-Identifier: BSD-3-Clause */
/* What a manager asks of a switch: who it is, what happens to it, which epochs are over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctrl/agent/epochs.h"
#include "ctrl/agent/events.h"
#include "lib/ctl/schema.h"
#include "tests/unit/ctl/rpc_helper.h"

static const uint64_t MS = 1000000;

static int setup(void **state)
{
	struct rpc_fixture *f;

	rpc_setup(state);
	f = *state;
	f->sw->now = 1000 * MS;
	agent_tick(f->agent, f->sw->now);
	return 0;
}

static const char *group(const char *name, const char *more)
{
	static char text[1024];

	snprintf(text, sizeof(text),
		"{'name':'%s','mode':'II','kind':'mixed','mtu':1024,'M':4,'W':8,'ranks':2,%s"
		"'endpoints':[{'ip':'10.0.0.1','qpn':257,'port':'p0','mac':'02:00:00:00:00:01',"
		"'ranks':[0]},{'ip':'10.0.0.2','qpn':258,'port':'p1','mac':'02:00:00:00:00:02',"
		"'ranks':[1]}]}",
		name, more);
	return text;
}

static void pass(struct rpc_fixture *f, uint64_t ms)
{
	f->sw->now += ms * MS;
	agent_tick(f->agent, f->sw->now);
}

static void ask(struct rpc_fixture *f, const char *method, const char *params)
{
	json_decref(call_ok(f, method, params));
}

/* ---- node.hello ---- */

static void test_hello(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *h = call_ok(f, "node.hello", NULL), *again;
	struct agent *other;
	char *boot = strdup(json_string_value(json_object_get(h, "boot")));

	assert_string_equal(json_string_value(json_object_get(h, "name")), "leaf1");
	assert_int_equal(strlen(boot), 16);
	assert_int_equal(json_array_size(json_object_get(h, "ports")), 2);
	assert_int_equal(json_integer_value(json_object_get(h, "groups")), 0);
	expect_json(json_incref(json_object_get(h, "workers")), "[{},{'cpu':3,'socket':0}]");
	assert_null(json_object_get(json_array_get(json_object_get(h, "ports"), 0), "mbps"));
	json_decref(h);
	f->sw->mbps = 25000;
	again = call_ok(f, "node.hello", NULL);
	expect_json(json_incref(json_object_get(
			    json_array_get(json_object_get(again, "ports"), 0), "mbps")),
		"25000");
	assert_string_equal(json_string_value(json_object_get(again, "boot")), boot);
	json_decref(again);
	/* Another start, another number. */
	assert_int_equal(agent_create(f->sw, NULL, &other), 0);
	agent_destroy(f->agent);
	f->agent = other;
	again = call_ok(f, "node.hello", NULL);
	assert_string_not_equal(json_string_value(json_object_get(again, "boot")), boot);
	json_decref(again);
	free(boot);
}

/* Who is at the other end of ports, and of which. */
static void test_lldp(void **state)
{
	struct rpc_fixture *f = *state;
	json_t *h = call_ok(f, "node.hello", NULL);

	assert_null(json_object_get(h, "chassis"));
	json_decref(h);
	expect_json(call_ok(f, "lldp.list", NULL), "{'neighbours':[]}");
	snprintf(f->sw->chassis, sizeof(f->sw->chassis), "02:00:00:00:01:00");
	f->sw->heard[1] = (struct sw_lldp_info){
		"02:00:00:00:09:09", "p7", "spine0", .age_ns = UINT64_C(2900000000)};
	h = call_ok(f, "node.hello", NULL);
	assert_string_equal(json_string_value(json_object_get(h, "chassis")), "02:00:00:00:01:00");
	assert_null(json_object_get(json_array_get(json_object_get(h, "ports"), 0), "lldp"));
	expect_json(json_incref(json_object_get(
			    json_array_get(json_object_get(h, "ports"), 1), "lldp")),
		"[{'chassis':'02:00:00:00:09:09','port':'p7','system':'spine0','age_s':2}]");
	json_decref(h);
	f->sw->heard[1].system[0] = '\0';
	expect_json(call_ok(f, "lldp.list", NULL),
		"{'chassis':'02:00:00:00:01:00','neighbours':[{'port':'p1',"
		"'chassis':'02:00:00:00:09:09','peer_port':'p7','age_s':2}]}");
}

/* ---- events ---- */

/* The events from one on, as "kind kind". */
static const char *happened(struct rpc_fixture *f, unsigned from)
{
	static char text[256];
	char params[32];
	json_t *r, *e;
	size_t i;

	snprintf(params, sizeof(params), "{'from':%u}", from);
	r = call_ok(f, "event.list", params);
	text[0] = '\0';
	json_array_foreach(json_object_get(r, "events"), i, e)
	{
		const size_t n = strlen(text);

		assert_int_equal(json_integer_value(json_object_get(e, "seq")), from + i);
		snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
			json_string_value(json_object_get(e, "kind")));
	}
	json_decref(r);
	return text;
}

static void test_events(void **state)
{
	struct rpc_fixture *f = *state;

	assert_string_equal(happened(f, 0), "");
	f->sw->unplugged = true;
	pass(f, 100);
	pass(f, 100); /* once */
	assert_string_equal(happened(f, 0), "port_down");
	f->sw->unplugged = false;
	pass(f, 100);
	assert_string_equal(happened(f, 0), "port_down port_up");
	ask(f, "group.create", group("g1", ""));
	pass(f, 100);
	ask(f, "group.fail", "{'group':'g1'}");
	f->sw->taken_back++;
	pass(f, 100);
	pass(f, 100);
	assert_string_equal(happened(f, 2), "group_failed lease_lost");
	/* The same slot and another group, which fails between two looks. */
	ask(f, "group.delete", "{'group':'g1','force':true}");
	pass(f, 100);
	ask(f, "group.create", group("g2", "'job':'j','epoch':7,"));
	ask(f, "group.fail", "{'group':'g2'}");
	pass(f, 100);
	json_t *r = call_ok(f, "event.list", "{'from':4}");
	json_t *e = json_array_get(json_object_get(r, "events"), 0);
	json_object_del(e, "ns");
	expect_json(json_incref(e), "{'seq':4,'kind':'group_failed','group':1,'name':'g2',"
				    "'job':'j','epoch':7,'reason':'manager'}");
	json_decref(r);
}

/* Lines for the operator: with levels where they go into the journal, and where they do not, alone.
 */
static void test_journal(void **state)
{
	struct rpc_fixture *f = *state;
	FILE *out = tmpfile();
	char stream[64], text[512] = "";
	struct stat st;

	assert_int_equal(fstat(fileno(out), &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	f->sw->unplugged = true;
	pass(f, 100);
	agent_say(f->agent, out);
	agent_say(f->agent, out); /* once */
	setenv("JOURNAL_STREAM", stream, 1);
	f->sw->unplugged = false;
	ask(f, "group.create", group("g1", "'job':'j','epoch':7,"));
	pass(f, 100);
	ask(f, "group.fail", "{'group':'g1'}");
	pass(f, 100);
	agent_say(f->agent, out);
	unsetenv("JOURNAL_STREAM");
	rewind(out);
	assert_true(fread(text, 1, sizeof(text) - 1, out) > 0);
	assert_string_equal(text, "leaf1: port p0: its link is down\n"
				  "<5>leaf1: port p0: its link is up\n"
				  "<3>leaf1: group g1 (job j) has failed: manager\n");
	fclose(out);
}

/* A worker that fails a group says first that it has failed, and then why. */
static void test_failing(void **state)
{
	struct rpc_fixture *f = *state;
	struct inc_group *g;
	json_t *r, *e;

	ask(f, "group.create", group("g1", ""));
	pass(f, 100);
	g = sw_group_get(f->sw, 1);
	assert_non_null(g);
	g->state = INC_FAILED;
	pass(f, 100);
	assert_string_equal(happened(f, 0), "");
	g->fail_ep = 1;
	g->fail_reason = INC_FAIL_FATAL_NAK;
	pass(f, 100);
	pass(f, 100);
	assert_string_equal(happened(f, 0), "group_failed");
	r = call_ok(f, "event.list", "{'from':0}");
	e = json_array_get(json_object_get(r, "events"), 0);
	assert_string_equal(json_string_value(json_object_get(e, "reason")), "fatal_nak");
	assert_int_equal(json_integer_value(json_object_get(e, "ep")), 1);
	json_decref(r);
}

/* Memory that gets full, once; it is anew when some was free in between. */
static void test_memory_low(void **state)
{
	struct rpc_fixture *f = *state;

	ask(f, "group.create", group("g1", ""));
	f->sw->arena = f->sw->group[1]->pay_bytes * 100 / 85;
	pass(f, 100);
	assert_string_equal(happened(f, 0), "");
	f->sw->arena = f->sw->group[1]->pay_bytes;
	pass(f, 100);
	f->sw->arena = f->sw->group[1]->pay_bytes * 100 / 85;
	pass(f, 100);
	f->sw->arena = f->sw->group[1]->pay_bytes;
	pass(f, 100);
	assert_string_equal(happened(f, 0), "memory_low");
	f->sw->arena = f->sw->group[1]->pay_bytes * 2;
	pass(f, 100);
	f->sw->arena = f->sw->group[1]->pay_bytes;
	pass(f, 100);
	assert_string_equal(happened(f, 0), "memory_low memory_low");
}

static void test_stalled(void **state)
{
	struct rpc_fixture *f = *state;
	struct inc_group *g;

	ask(f, "group.create", group("g1", ""));
	g = f->sw->group[1];
	fake_switch_arrived(f->sw, 1, g->start_psn, 1);
	g->last_progress_ns = f->sw->now;
	pass(f, 4900);
	assert_string_equal(happened(f, 0), "");
	pass(f, 200);
	pass(f, 5000);
	assert_string_equal(happened(f, 0), "group_stalled");
	json_t *r = call_ok(f, "event.list", "{'from':0}");
	expect_json(json_incref(json_object_get(
			    json_array_get(json_object_get(r, "events"), 0), "missing")),
		"[1]"); /* rank 0's has arrived */
	json_decref(r);
	g->last_progress_ns = f->sw->now;
	pass(f, 100);
	pass(f, 5000);
	assert_string_equal(happened(f, 0), "group_stalled group_stalled");
}

#define RING                                                      \
	"{'name':'r1','mtu':1024,'M':4,'W':8,'ranks':2,'flows':[" \
	"{'rank':0,'src':'10.0.0.1','dst':'10.0.0.2','qpn':23},"  \
	"{'rank':1,'src':'10.0.0.2','dst':'10.0.0.1','qpn':18}]}"

/* Rings, as groups: one that waits, one that fails, another of the same number that does. */
static void test_rings(void **state)
{
	struct rpc_fixture *f = *state;
	struct nr_ring *ring;
	json_t *r, *e;

	pass(f, 100);
	ask(f, "ring.create", RING);
	ring = sw_ring_get(f->sw, 0);
	*nr_agg_at(ring, 0) = (struct nr_agg){.msg = 0, .arrived = 1};
	ring->last_progress_ns = f->sw->now;
	pass(f, 4900);
	assert_string_equal(happened(f, 0), "");
	pass(f, 200);
	pass(f, 5000);
	assert_string_equal(happened(f, 0), "ring_stalled");
	ring->fail =
		(struct nr_fail){.reason = NR_FAIL_LENGTH, .in = 1, .value = 4, .other_value = 8};
	nr_set_failed(ring);
	pass(f, 100);
	pass(f, 5000);
	assert_string_equal(happened(f, 0), "ring_stalled ring_failed");
	r = call_ok(f, "event.list", "{'from':1}");
	e = json_array_get(json_object_get(r, "events"), 0);
	json_object_del(e, "ns");
	expect_json(json_incref(e),
		"{'seq':1,'kind':'ring_failed','ring':0,'name':'r1','reason':'length_mismatch',"
		"'failure':'message 0, packet 0: bytes of data: 4 of rank 1, 8 of rank 0'}");
	json_decref(r);
	ask(f, "ring.delete", "{'ring':0}");
	pass(f, 100);
	ask(f, "ring.create", RING);
	pass(f, 100);
	ask(f, "ring.fail", "{'ring':0}");
	pass(f, 100);
	assert_string_equal(happened(f, 0), "ring_stalled ring_failed ring_failed");
	ask(f, "ring.delete", "{'ring':0}");
}

/* Told in order, each once; who is too slow hears how many are lost to it. */
static void test_subscription(void **state)
{
	struct rpc_fixture *f = *state;
	struct agent_peer peer = {0};
	char *line;

	assert_null(agent_next_event(f->agent, &peer));
	f->peer = &peer;
	f->sw->unplugged = true;
	pass(f, 100); /* before */
	expect_json(call_ok(f, "event.subscribe", NULL), "{'next':1}");
	assert_null(agent_next_event(f->agent, &peer));
	f->sw->unplugged = false;
	pass(f, 100);
	line = agent_next_event(f->agent, &peer);
	json_t *e = json_loads(line, 0, NULL);
	json_object_del(json_object_get(e, "params"), "ns");
	expect_json(e, "{'jsonrpc':'2.0','method':'event','params':{'seq':1,'kind':'port_up',"
		       "'port':'p0'}}");
	free(line);
	assert_null(agent_next_event(f->agent, &peer));
	for (unsigned i = 0; i < EVENT_KEPT + 10; i++) {
		f->sw->unplugged = !f->sw->unplugged;
		pass(f, 100);
	}
	line = agent_next_event(f->agent, &peer);
	assert_non_null(strstr(line, "\"seq\":12"));
	assert_non_null(strstr(line, "\"dropped\":10"));
	free(line);
	for (unsigned i = 1; i < EVENT_KEPT; i++) {
		line = agent_next_event(f->agent, &peer);
		assert_non_null(line);
		assert_null(strstr(line, "dropped"));
		free(line);
	}
	assert_null(agent_next_event(f->agent, &peer));
	f->peer = NULL;
	call_bad(f, "event.subscribe", "{}", CTL_REFUSED, "EOPNOTSUPP", -1, NULL,
		"there is no connection to be told events");
}

/* Whoever asks for what is not kept any more hears how much that was. */
static void test_missed(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "event.list", "{'from':0}"), "{'next':0,'missed':0,'events':[]}");
	for (unsigned i = 0; i < EVENT_KEPT + 10; i++) {
		f->sw->unplugged = !f->sw->unplugged;
		pass(f, 100);
	}
	for (unsigned from = 0; from < 13; from++) {
		char params[32];
		json_t *r, *first;

		snprintf(params, sizeof(params), "{'from':%u}", from);
		r = call_ok(f, "event.list", params);
		first = json_array_get(json_object_get(r, "events"), 0);
		assert_int_equal(json_integer_value(json_object_get(r, "missed")),
			from < 10 ? 10 - from : 0);
		assert_int_equal(
			json_integer_value(json_object_get(first, "seq")), from < 10 ? 10 : from);
		json_decref(r);
	}
	json_t *all = call_ok(f, "event.list", NULL);
	assert_int_equal(json_array_size(json_object_get(all, "events")), EVENT_KEPT);
	assert_int_equal(json_integer_value(json_object_get(all, "missed")), 0);
	json_decref(all);
	/* The numbers of a switch before it was started again. */
	expect_json(
		call_ok(f, "event.list", "{'from':4000}"), "{'next':266,'missed':0,'events':[]}");
}

/* ---- epochs ---- */

static void test_fenced(void **state)
{
	struct rpc_fixture *f = *state;

	ask(f, "group.create", group("a", "'job':'j','epoch':7,"));
	ask(f, "group.create", group("b", "'job':'j','epoch':7,"));
	ask(f, "group.create", group("other", "'job':'k','epoch':3,"));
	ask(f, "group.create", group("nobodys", ""));
	call_bad(f, "group.create", group("c", "'job':'j','epoch':6,"), CTL_REFUSED, "ESTALE", -1,
		"epoch", "epoch: 6 of job \"j\" is over, the newest is 7");
	call_bad(f, "group.create", group("c", "'job':'j',"), CTL_INVALID_PARAMS, "EINVAL", -1,
		"epoch", "epoch: is missing: both or none");
	call_bad(f, "group.create", group("c", "'epoch':8,"), CTL_INVALID_PARAMS, "EINVAL", -1,
		"job", "job: is missing: both or none");
	/* A newer one; the old one's groups are there until they are ended. */
	ask(f, "group.create", group("new", "'job':'j','epoch':9,"));
	expect_json(call_ok(f, "epoch.list", NULL),
		"{'jobs':[{'job':'j','epoch':9,'ended':false,'groups':3,'failed':0},"
		"{'job':'k','epoch':3,'ended':false,'groups':1,'failed':0}]}");
	expect_json(call_ok(f, "epoch.end", "{'job':'j','epoch':7}"), "{'groups':2}");
	expect_json(call_ok(f, "epoch.end", "{'job':'j','epoch':7}"), "{'groups':0}");
	assert_int_equal(f->sw->group[1]->state, INC_FAILED);
	assert_int_equal(f->sw->group[2]->state, INC_FAILED);
	assert_int_equal(f->sw->group[5]->state, INC_ACTIVE);
	expect_json(call_ok(f, "epoch.end", "{'job':'j','epoch':7,'remove':true}"), "{'groups':2}");
	assert_null(f->sw->group[1]);
	/* The newest is over: only what is newer still comes in. */
	expect_json(call_ok(f, "epoch.end", "{'job':'j','epoch':9,'remove':true}"), "{'groups':1}");
	call_bad(f, "group.create", group("c", "'job':'j','epoch':9,"), CTL_REFUSED, "ESTALE", -1,
		"epoch", "epoch: 9 of job \"j\" is over, the newest is 9");
	ask(f, "group.create", group("c", "'job':'j','epoch':10,"));
	/* Others' are as they were. */
	assert_int_equal(f->sw->group[3]->state, INC_ACTIVE);
	assert_int_equal(f->sw->group[4]->state, INC_ACTIVE);
}

/* Ended between being made and being activated: it never works. */
static void test_not_activated(void **state)
{
	struct rpc_fixture *f = *state;

	ask(f, "group.create", group("a", "'activate':false,'job':'j','epoch':7,"));
	ask(f, "group.create", group("b", "'activate':false,'job':'j','epoch':9,"));
	ask(f, "epoch.end", "{'job':'j','epoch':7}");
	call_bad(f, "group.activate", "{'group':'a'}", CTL_REFUSED, "ESTALE", -1, "group",
		"group: 7 of job \"j\" is over, the newest is 9");
	assert_int_equal(f->sw->group[1]->state, INC_INSTALLED);
	ask(f, "group.activate", "{'group':'b'}");
	expect_json(call_ok(f, "epoch.end", "{'job':'j','epoch':7,'remove':true}"), "{'groups':1}");
	assert_null(f->sw->group[1]);
}

/* Ended before the switch has heard of it: a late request is refused all the same. */
static void test_ended_first(void **state)
{
	struct rpc_fixture *f = *state;

	expect_json(call_ok(f, "epoch.end", "{'job':'j','epoch':'18446744073709551615'}"),
		"{'groups':0}");
	call_bad(f, "group.create", group("c", "'job':'j','epoch':'18446744073709551615',"),
		CTL_REFUSED, "ESTALE", -1, "epoch",
		"epoch: 18446744073709551615 of job \"j\" is over, the newest is "
		"18446744073709551615");
	ask(f, "group.create", group("c", "'job':'k','epoch':1,"));
}

/* A slot's next group is not of the former one's job. */
static void test_slot_again(void **state)
{
	struct rpc_fixture *f = *state;

	ask(f, "group.create", group("a", "'job':'j','epoch':1,"));
	ask(f, "group.delete", "{'group':'a','force':true}");
	ask(f, "group.create", group("b", ""));
	expect_json(call_ok(f, "epoch.end", "{'job':'j','epoch':5,'remove':true}"), "{'groups':0}");
	assert_int_equal(f->sw->group[1]->state, INC_ACTIVE);
}

/* Those with groups are kept, of the others the last. */
static void test_many_jobs(void **state)
{
	struct rpc_fixture *f = *state;
	char params[64];

	ask(f, "group.create", group("a", "'job':'keeps','epoch':5,"));
	for (unsigned i = 0; i < EPOCH_MAX_JOBS + 5; i++) {
		snprintf(params, sizeof(params), "{'job':'j%u','epoch':9}", i);
		ask(f, "epoch.end", params);
	}
	call_bad(f, "group.create", group("b", "'job':'keeps','epoch':4,"), CTL_REFUSED, "ESTALE",
		-1, "epoch", "epoch: 4 of job \"keeps\" is over, the newest is 5");
	snprintf(params, sizeof(params), "'job':'j%u','epoch':9,", EPOCH_MAX_JOBS + 4);
	call_bad(f, "group.create", group("b", params), CTL_REFUSED, "ESTALE", -1, "epoch",
		"epoch: 9 of job \"j1028\" is over, the newest is 9");
	ask(f, "group.create", group("b", "'job':'j0','epoch':9,"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, rpc_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_hello),
		T(test_lldp),
		T(test_events),
		T(test_journal),
		T(test_failing),
		T(test_stalled),
		T(test_memory_low),
		T(test_rings),
		T(test_subscription),
		T(test_missed),
		T(test_fenced),
		T(test_not_activated),
		T(test_ended_first),
		T(test_slot_again),
		T(test_many_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
