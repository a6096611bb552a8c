/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose groups and rings are: who keeps them, what becomes of them when nobody does, and what may
 * be done over TCP, where nobody is asked who he is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctrl/agent/owners.h"
#include "lib/ctl/schema.h"
#include "tests/unit/ctl/rpc_helper.h"

#define HOLD(who) "{'owner':'" who "','owner_ms':3000}"
#define ALICE "alice-0123456789"
#define BOB "bob-0123456789ab"
#define DENIED " over TCP: use the UNIX socket, or \"control_tcp_full\""
#define NOT_YOURS "belongs to somebody else: not" DENIED

static const uint64_t MS = 1000000;

static struct agent_peer alice, bob, operator_;

static int setup(void **state)
{
	struct rpc_fixture *f;

	rpc_setup(state);
	f = *state;
	f->sw->now = 1000 * MS;
	alice = bob = (struct agent_peer){.restricted = true};
	operator_ = (struct agent_peer){0};
	return 0;
}

static int teardown(void **state)
{
	struct rpc_fixture *f = *state;
	char err[SW_ERR_LEN];

	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		if (sw_ring_get(f->sw, i))
			sw_ring_delete(f->sw, i, err);
	return rpc_teardown(state);
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

static const char *const ring =
	"{'name':'r1','mtu':1024,'M':4,'W':8,'ranks':2,'flows':["
	"{'rank':0,'src':'10.0.0.1','dst':'10.0.0.2','qpn':23,'reply_qpn':17,'psn':4711},"
	"{'rank':1,'src':'10.0.0.2','dst':'10.0.0.1','qpn':18}]}";

static void as(
	struct rpc_fixture *f, struct agent_peer *peer, const char *method, const char *params)
{
	f->peer = peer;
	json_decref(call_ok(f, method, params));
}

static void denied(struct rpc_fixture *f, struct agent_peer *peer, const char *method,
	const char *params, const char *path, const char *message)
{
	f->peer = peer;
	call_bad(f, method, params, CTL_NOT_ALLOWED, "EPERM", -1, path, message);
}

static void pass(struct rpc_fixture *f, uint64_t ms)
{
	for (uint64_t end = f->sw->now + ms * MS; f->sw->now < end;) {
		f->sw->now += 100 * MS;
		agent_tick(f->agent, f->sw->now);
	}
}

static void gone(struct rpc_fixture *f, struct agent_peer *peer)
{
	agent_peer_gone(f->agent, peer);
}

/* ---- what becomes of it ---- */

static const char *shown(struct rpc_fixture *f)
{
	static char text[64];
	json_t *g;

	f->peer = NULL;
	g = call_ok(f, "group.show", "{'group':'g1'}");
	snprintf(text, sizeof(text), "%s, %s", json_string_value(json_object_get(g, "state")),
		json_string_value(json_object_get(g, "owner")));
	json_decref(g);
	return text;
}

static int64_t of_status(struct rpc_fixture *f, const char *field)
{
	f->peer = NULL;
	json_t *s = call_ok(f, "status", "{}");
	const int64_t n = json_integer_value(json_object_get(s, field));

	json_decref(s);
	return n;
}

/* Its maker ends without a word: ranks are told, then it goes. */
static void test_orphans(void **state)
{
	struct rpc_fixture *f = *state;

	as(f, &alice, "owner.hold", HOLD(ALICE));
	as(f, &alice, "group.create", group("g1", ""));
	as(f, &alice, "group.create", group("installed", "'activate':false,"));
	as(f, &alice, "ring.create", ring);
	as(f, NULL, "group.create", group("operators", ""));
	pass(f, 60000);
	assert_string_equal(shown(f), "active, held");
	gone(f, &alice);
	pass(f, 2900);
	assert_string_equal(shown(f), "active, alone");
	assert_int_equal(of_status(f, "orphans"), 0);
	pass(f, 100);
	assert_string_equal(shown(f), "failed, ending");
	assert_int_equal(of_status(f, "orphans"), 3);
	assert_int_equal(sw_ring_get(f->sw, 0)->state, NR_FAILED);
	pass(f, 2000);
	assert_int_equal(sw_ring_find(f->sw, "r1"), -ENOENT);
	assert_int_equal(sw_group_find(f->sw, "g1"), -ENOENT);
	assert_int_equal(sw_group_find(f->sw, "installed"), -ENOENT);
	assert_true(sw_group_find(f->sw, "operators") > 0);
	assert_int_equal(of_status(f, "owners"), 0);
	/* The name is free, and the slot nobody's. */
	as(f, NULL, "group.create", group("g1", ""));
	assert_string_equal(shown(f), "active, (null)");
	pass(f, 60000);
	assert_string_equal(shown(f), "active, (null)");
}

/* Killed between group.create and group.activate: nobody is there to be told. */
static void test_killed_in_set_up(void **state)
{
	struct rpc_fixture *f = *state;

	as(f, &alice, "owner.hold", HOLD(ALICE));
	as(f, &alice, "group.create", group("g1", "'activate':false,'activate_ms':3600000,"));
	gone(f, &alice);
	pass(f, 3000);
	assert_int_equal(sw_group_find(f->sw, "g1"), -ENOENT);
	assert_int_equal(of_status(f, "owners"), 0);
}

/* Another connection takes it up in time; of several, the last one counts. */
static void test_taken_up(void **state)
{
	struct rpc_fixture *f = *state;
	struct agent_peer again = {.restricted = true};

	as(f, &alice, "owner.hold", HOLD(ALICE));
	as(f, &alice, "group.create", group("g1", ""));
	gone(f, &alice);
	pass(f, 2900);
	f->peer = &again;
	expect_json(call_ok(f, "owner.hold", HOLD(ALICE)), "{'groups':1,'rings':0}");
	pass(f, 60000);
	assert_string_equal(shown(f), "active, held");
	as(f, &alice, "owner.hold", HOLD(ALICE));
	as(f, &alice, "owner.hold", HOLD(ALICE)); /* counts once */
	gone(f, &again);
	pass(f, 60000);
	assert_string_equal(shown(f), "active, held");
	as(f, &alice, "group.delete", "{'group':'g1','force':true}");
	gone(f, &alice);
	assert_int_equal(of_status(f, "owners"), 0);
	assert_int_equal(of_status(f, "orphans"), 0);
}

/* Its maker is cut off from the control socket, but all ranks work. */
static void test_progress_keeps_it(void **state)
{
	struct rpc_fixture *f = *state;

	as(f, &alice, "owner.hold", HOLD(ALICE));
	as(f, &alice, "group.create", group("g1", ""));
	gone(f, &alice);
	for (unsigned i = 0; i < 50; i++) {
		pass(f, 2900);
		f->sw->group[1]->last_progress_ns = f->sw->now;
	}
	assert_string_equal(shown(f), "active, alone");
	pass(f, 2900);
	assert_string_equal(shown(f), "active, alone");
	pass(f, 100);
	assert_string_equal(shown(f), "failed, ending");
}

static void test_hold(void **state)
{
	struct rpc_fixture *f = *state;
	struct agent_peer many[OWNER_MAX_HELD] = {{0}};
	char params[64];

	as(f, &alice, "owner.hold", HOLD(ALICE));
	f->peer = &alice;
	call_bad(f, "owner.hold", HOLD(BOB), CTL_REFUSED, "EBUSY", -1, "owner",
		"owner: this connection holds another one already");
	call_bad(f, "owner.hold", "{'owner':'short'}", CTL_INVALID_PARAMS, "EINVAL", -1, "owner",
		"owner: must have 16..64 bytes, has 5");
	f->peer = NULL;
	call_bad(f, "owner.hold", HOLD(BOB), CTL_REFUSED, "EOPNOTSUPP", -1, NULL,
		"there is no connection to hold an owner");
	gone(f, &alice);
	for (unsigned i = 0; i < OWNER_MAX_HELD; i++) {
		snprintf(params, sizeof(params), "{'owner':'somebody-%010u'}", i);
		as(f, &many[i], "owner.hold", params);
	}
	f->peer = &alice;
	call_bad(f, "owner.hold", HOLD(ALICE), CTL_REFUSED, "EMFILE", -1, NULL,
		"too many connections hold owners, the limit is 448");
	gone(f, &many[7]);
	as(f, &alice, "owner.hold", HOLD(ALICE));
	for (unsigned i = 0; i < OWNER_MAX_HELD; i++)
		gone(f, &many[i]);
	assert_int_equal(of_status(f, "owners"), 1);
	gone(f, &alice);
	assert_int_equal(of_status(f, "owners"), 0);
}

/* ---- over TCP ---- */

/* Every method does what its row in the schema says, and nothing else. */
static void test_every_method(void **state)
{
	struct rpc_fixture *f = *state;

	for (unsigned i = 0; i < ctl_switch_schema.n; i++) {
		const struct ctl_method *m = &ctl_switch_schema.methods[i];

		if (m->tcp == CTL_TCP_NO)
			denied(f, &alice, m->name, "{}", NULL, "not allowed" DENIED);
		else if (m->tcp == CTL_TCP_OWN)
			denied(f, &alice, m->name, "{}", NULL,
				"not allowed without owner.hold" DENIED);
		else if (strcmp(m->name, "owner.hold"))
			as(f, &alice, m->name, "{}");
		/* What reads or changes the switch itself, or other people's things. */
		if (!strncmp(m->name, "table.", 6) || !strncmp(m->name, "config.", 7) ||
			!strncmp(m->name, "trace.", 6) || !strcmp(m->name, "drops.get") ||
			strstr(m->name, ".list") != NULL)
			assert_true(m->tcp == CTL_TCP_NO || !strcmp(m->name, "port.list"));
	}
}

static void test_others_groups(void **state)
{
	static const char *const methods[] = {
		"group.show", "group.activate", "group.delete", "group.fail"};
	struct rpc_fixture *f = *state;

	as(f, &alice, "owner.hold", HOLD(ALICE));
	as(f, &bob, "owner.hold", HOLD(BOB));
	as(f, &alice, "group.create", group("g1", "'activate':false,"));
	as(f, NULL, "group.create", group("g2", "'activate':false,"));
	for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		denied(f, &bob, methods[i], "{'group':'g1'}", "group", "group: " NOT_YOURS);
		denied(f, &bob, methods[i], "{'group':1}", "group", "group: " NOT_YOURS);
		denied(f, &bob, methods[i], "{'group':'g2'}", "group", "group: " NOT_YOURS);
		denied(f, &alice, methods[i], "{'group':2}", "group", "group: " NOT_YOURS);
	}
	denied(f, &bob, "group.rebind", "{'group':'g1','bound':false}", "group",
		"group: " NOT_YOURS);
	denied(f, &bob, "group.resync", "{'group':'g1','psn':1}", "group", "group: " NOT_YOURS);
	f->peer = &bob;
	call_bad(f, "group.show", "{'group':'g3'}", CTL_REFUSED, "ENOENT", -1, "group",
		"group: no group is named \"g3\"");
	as(f, &alice, "group.activate", "{'group':'g1'}");
	as(f, &alice, "group.show", "{'group':1}");
	as(f, &operator_, "group.fail", "{'group':'g1'}");
	as(f, &alice, "group.delete", "{'group':'g1'}");
}

static void test_others_rings(void **state)
{
	static const char *const methods[] = {
		"ring.show", "ring.activate", "ring.fail", "ring.delete"};
	struct rpc_fixture *f = *state;

	as(f, &alice, "owner.hold", HOLD(ALICE));
	as(f, &bob, "owner.hold", HOLD(BOB));
	as(f, &alice, "ring.create", ring);
	for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		denied(f, &bob, methods[i], "{'ring':'r1'}", "ring", "ring: " NOT_YOURS);
		denied(f, &bob, methods[i], "{'ring':0}", "ring", "ring: " NOT_YOURS);
	}
	as(f, &alice, "ring.show", "{'ring':'r1'}");
	as(f, &alice, "ring.delete", "{'ring':'r1'}");
}

/* Nobody takes another's lease, nor slips groups in among another's. */
static void test_others_tenants(void **state)
{
	struct rpc_fixture *f = *state;

	snprintf(f->sw->group_lease, sizeof(f->sw->group_lease), "pool");
	snprintf(f->sw->group_tenant, sizeof(f->sw->group_tenant), "t");
	as(f, &alice, "owner.hold", HOLD(ALICE));
	as(f, &bob, "owner.hold", HOLD(BOB));
	as(f, &alice, "group.create", group("g1", "'lease':'pool','tenant':'t',"));
	denied(f, &bob, "lease.acquire", "{'lease':'pool','tenant':'t'}", "tenant",
		"tenant: " NOT_YOURS);
	as(f, &alice, "lease.acquire", "{'lease':'pool','tenant':'t'}");
	denied(f, &bob, "lease.release", "{'lease':'pool','tenant':'t'}", "tenant",
		"tenant: " NOT_YOURS);
	denied(f, &bob, "group.create", group("g2", "'lease':'pool','tenant':'t',"), "tenant",
		"tenant: " NOT_YOURS);
	denied(f, &bob, "group.create", group("t", "'lease':'pool',"), "tenant",
		"tenant: " NOT_YOURS);
	as(f, &alice, "group.create", group("g2", "'lease':'pool','tenant':'t',"));
	as(f, &alice, "lease.release", "{'lease':'pool','tenant':'t'}");
	as(f, &bob, "group.create", group("g3", "'lease':'pool','tenant':'u',"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_orphans),
		T(test_killed_in_set_up),
		T(test_taken_up),
		T(test_progress_keeps_it),
		T(test_hold),
		T(test_every_method),
		T(test_others_groups),
		T(test_others_rings),
		T(test_others_tenants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
