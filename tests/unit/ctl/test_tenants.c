/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates at a switch: every method of the schema is tried on another tenant's things, which
 * stay as they are; and what the audit log says of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/schema.h"
#include "tests/unit/ctl/rpc_helper.h"

#define TOKEN "{'owner':'alice-0123456789'}"
#define NOT_YOURS "belongs to somebody else: not with a tenant's certificate"

static struct agent_peer alice, bob, leaf, boss;
static char *audited; /* the last line */

static void audit(void *arg, const char *line)
{
	(void)arg;
	free(audited);
	audited = strdup(line);
}

static struct agent_peer peer_of(enum ctl_role role, const char *name)
{
	struct agent_peer p = {0};
	struct ctl_who who = {.role = role};

	snprintf(who.name, sizeof(who.name), "%s", name);
	agent_peer_came(&p, &who, false);
	return p;
}

#define EP(i)                                                                         \
	"{'ip':'10.0.0." #i "','qpn':25" #i ",'port':'p0','mac':'02:00:00:00:00:0" #i \
	"','ranks':[" #i "]}"
#define GROUP(name, more)                                                                      \
	"{'name':'" name "','mode':'II','kind':'mixed','mtu':1024,'M':4,'W':8,'ranks':2," more \
	"'endpoints':[" EP(0) "," EP(1) "]}"
#define RING(name)                                                      \
	"{'name':'" name "','mtu':1024,'M':4,'W':8,'ranks':2,'flows':[" \
	"{'rank':0,'src':'10.0.0.1','dst':'10.0.0.2','qpn':23},"        \
	"{'rank':1,'src':'10.0.0.2','dst':'10.0.0.1','qpn':18}]}"

static void as(
	struct rpc_fixture *f, struct agent_peer *peer, const char *method, const char *params)
{
	f->peer = peer;
	json_decref(call_ok(f, method, params));
}

static int setup(void **state)
{
	struct rpc_fixture *f;

	rpc_setup(state);
	f = *state;
	f->sw->now = 1000000000;
	alice = peer_of(CTL_TENANT, "alice");
	bob = peer_of(CTL_TENANT, "bob");
	leaf = peer_of(CTL_AGENT, "leaf0");
	boss = peer_of(CTL_OPERATOR, "manager");
	agent_audit_to(f->agent, audit, NULL);
	as(f, &boss, "epoch.end", "{'job':'hers','epoch':6,'remove':true,'tenant':'alice'}");
	as(f, &alice, "owner.hold", TOKEN);
	as(f, &alice, "group.create", GROUP("g1", "'job':'hers','epoch':7,"));
	as(f, &alice, "group.create", GROUP("lent", "'lease':'l','tenant':'t',"));
	as(f, &alice, "ring.create", RING("r1"));
	/* The same secret, another certificate: another owner. */
	f->peer = &bob;
	expect_json(call_ok(f, "owner.hold", TOKEN), "{'groups':0,'rings':0}");
	return 0;
}

static int teardown(void **state)
{
	struct rpc_fixture *f = *state;
	char err[SW_ERR_LEN];

	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		if (sw_ring_get(f->sw, i))
			sw_ring_delete(f->sw, i, err);
	free(audited);
	audited = NULL;
	return rpc_teardown(state);
}

/* All that the switch has, as its operator sees it. */
static char *everything(struct rpc_fixture *f)
{
	static const char *const ask[][2] = {{"group.show", "{'group':'g1'}"}, {"group.list", "{}"},
		{"ring.list", "{}"}, {"ring.show", "{'ring':'r1'}"}, {"lease.list", "{}"},
		{"epoch.list", "{}"}, {"config.get", "{}"}, {"event.list", "{}"}};
	struct agent_peer *peer = f->peer;
	json_t *all = json_array();
	char *text;

	f->peer = NULL;
	for (size_t i = 0; i < sizeof(ask) / sizeof(*ask); i++)
		json_array_append_new(all, call_ok(f, ask[i][0], ask[i][1]));
	f->peer = peer;
	text = json_dumps(all, JSON_SORT_KEYS);
	json_decref(all);
	return text;
}

/* On Alice's things; what its path is. */
static const struct attempt {
	const char *method, *params, *path, *says;
} attempts[] = {
	{"group.create", GROUP("g2", "'job':'hers','epoch':99,"), "job", NOT_YOURS},
	{"group.create", GROUP("g2", "'job':'other','epoch':99,"), "job",
		"is not one of the manager's: not with a tenant's certificate"},
	{"group.create", GROUP("g2", "'lease':'l','tenant':'t',"), "tenant", NOT_YOURS},
	{"group.activate", "{'group':'g1'}", "group", NOT_YOURS},
	{"group.rebind", "{'group':'g1','bound':true}", "group", NOT_YOURS},
	{"group.resync", "{'group':'g1','psn':1}", "group", NOT_YOURS},
	{"group.delete", "{'group':'g1'}", "group", NOT_YOURS},
	{"group.delete", "{'group':'g1','force':true}", "group", NOT_YOURS},
	{"group.fail", "{'group':'g1'}", "group", NOT_YOURS},
	{"group.show", "{'group':'g1'}", "group", NOT_YOURS},
	{"lease.acquire", "{'lease':'l','tenant':'t'}", "tenant", NOT_YOURS},
	{"lease.release", "{'lease':'l','tenant':'t'}", "tenant", NOT_YOURS},
	{"ring.activate", "{'ring':'r1'}", "ring", NOT_YOURS},
	{"ring.delete", "{'ring':'r1'}", "ring", NOT_YOURS},
	{"ring.fail", "{'ring':'r1'}", "ring", NOT_YOURS},
	{"ring.show", "{'ring':'r1'}", "ring", NOT_YOURS},
};

/* The answer's error; NULL: it was done. */
static json_t *try(struct rpc_fixture *f, const char *method, const char *params)
{
	json_t *p = quoted(params), *request, *answer, *error;
	char *line;

	request = json_pack(
		"{s:s,s:i,s:s,s:o}", "jsonrpc", "2.0", "id", 1, "method", method, "params", p);
	line = json_dumps(request, JSON_COMPACT);
	answer = send_line(f, line, strlen(line));
	error = json_incref(json_object_get(answer, "error"));
	free(line);
	json_decref(request);
	json_decref(answer);
	return error;
}

static void expect_denied(struct rpc_fixture *f, const char *method, const char *params,
	const char *path, const char *says)
{
	char *before = everything(f), *after;
	json_t *error = try(f, method, params);
	const char *message = json_string_value(json_object_get(error, "message"));

	if (json_integer_value(json_object_get(error, "code")) != CTL_NOT_ALLOWED)
		fail_msg("%s: %s", method, message ? message : "was done");
	if (path && path[0])
		assert_string_equal(path,
			json_string_value(json_object_get(json_object_get(error, "data"), "path")));
	if (!strstr(message, says))
		fail_msg("%s: \"%s\" lacks \"%s\"", method, message, says);
	after = everything(f);
	assert_string_equal(before, after);
	json_decref(error);
	free(before);
	free(after);
}

/* A method that is only for oneself is in the table; a new one must be. */
static void test_every_method(void **state)
{
	struct rpc_fixture *f = *state;
	const size_t n = sizeof(attempts) / sizeof(*attempts);

	f->peer = &bob;
	for (unsigned i = 0; i < ctl_switch_schema.n; i++) {
		const struct ctl_method *m = &ctl_switch_schema.methods[i];
		size_t k = 0;

		while (k < n && strcmp(attempts[k].method, m->name))
			k++;
		if (m->tcp == CTL_TCP_NO)
			expect_denied(
				f, m->name, "{}", "", "not allowed with a tenant's certificate");
		else if (m->tcp == CTL_TCP_OWN && k == n && strcmp(m->name, "ring.create"))
			fail_msg("%s is not tried", m->name);
	}
	for (size_t k = 0; k < n; k++)
		expect_denied(f, attempts[k].method, attempts[k].params, attempts[k].path,
			attempts[k].says);
	/* By its name only: the name is taken, the ring Alice's. */
	json_t *error = try(f, "ring.create", RING("r1"));
	assert_non_null(error);
	json_decref(error);
	f->peer = &alice;
	json_decref(call_ok(f, "ring.show", "{'ring':'r1'}"));
}

/* A switch's certificate opens nothing here; the operator's everything. */
static void test_other_roles(void **state)
{
	struct rpc_fixture *f = *state;

	f->peer = &leaf;
	for (unsigned i = 0; i < ctl_switch_schema.n; i++) {
		const char *name = ctl_switch_schema.methods[i].name;

		if (strcmp(name, "ping") && strcmp(name, "version"))
			expect_denied(f, name, "{}", "", "not allowed with a switch's certificate");
	}
	json_decref(call_ok(f, "ping", "{}"));
	as(f, &boss, "group.fail", "{'group':'g1'}");
	as(f, &boss, "group.delete", "{'group':'g1','force':true}");
}

/* Who keeps his own out of a job keeps working: groups that name no job. */
static void test_own_things(void **state)
{
	struct rpc_fixture *f = *state;

	as(f, &bob, "group.create", GROUP("his", ""));
	as(f, &bob, "group.show", "{'group':'his'}");
	f->peer = &alice;
	expect_denied(f, "group.show", "{'group':'his'}", "group", NOT_YOURS);
	as(f, &bob, "group.delete", "{'group':'his','force':true}");
	as(f, &alice, "group.show", "{'group':'g1'}");
	/* The job is over, and becomes somebody else's. */
	as(f, &boss, "epoch.end", "{'job':'hers','epoch':8,'remove':true,'tenant':'bob'}");
	as(f, &bob, "group.create", GROUP("his", "'job':'hers','epoch':9,"));
}

static void expect_audit(const char *role, const char *name, const char *method, const char *result)
{
	json_t *j = json_loads(audited ? audited : "null", 0, NULL);

	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "role")), role);
	assert_string_equal(json_string_value(json_object_get(j, "name")), name);
	assert_string_equal(json_string_value(json_object_get(j, "method")), method);
	assert_non_null(strstr(json_string_value(json_object_get(j, "result")), result));
	assert_null(strstr(audited, "alice-0123456789"));
	json_decref(j);
	audit(NULL, "");
}

static void test_audit(void **state)
{
	struct rpc_fixture *f = *state;

	as(f, &alice, "owner.hold", TOKEN);
	expect_audit("tenant", "alice", "owner.hold", "done");
	f->peer = &bob;
	json_decref(try(f, "group.delete", "{'group':'g1'}"));
	assert_non_null(strstr(audited, "\"about\":{\"group\":\"g1\"}"));
	expect_audit("tenant", "bob", "group.delete", "belongs to somebody else");
	json_decref(try(f, "stats.get", "{}"));
	expect_audit("tenant", "bob", "stats.get", "not allowed");
	as(f, &boss, "group.fail", "{'group':'g1'}");
	expect_audit("operator", "manager", "group.fail", "done");
	json_decref(try(f, "group.fail", "{'group':'none'}"));
	expect_audit("operator", "manager", "group.fail", "no group is named");
	as(f, &boss, "group.list", "{}");
	assert_string_equal(audited, ""); /* changes nothing */
	f->peer = NULL;
	json_decref(call_ok(f, "group.delete", "{'group':'g1','force':true}"));
	assert_non_null(strstr(audited, "\"uid\":0"));
	expect_audit("local", "", "group.delete", "done");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_every_method),
		T(test_other_roles),
		T(test_own_things),
		T(test_audit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
