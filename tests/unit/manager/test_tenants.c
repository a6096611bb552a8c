/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates at the manager: every method of the schema is tried on another tenant's job, which
 * stays as it is; limits per tenant; what the audit log says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/manager_schema.h"
#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static struct world w;
static struct store store;
static struct manager_peer alice[RANKS], bob, leaf;

static void become(struct manager_peer *p, enum ctl_role role, const char *name)
{
	memset(p, 0, sizeof(*p));
	p->who.role = role;
	snprintf(p->who.name, sizeof(p->who.name), "%s", name);
}

/* The answer (new reference). */
static json_t *ask(struct manager_peer *p, const char *method, json_t *params)
{
	json_t *request = json_pack("{s:s,s:i,s:s,s:o}", "jsonrpc", "2.0", "id", 1, "method",
		       method, "params", params),
	       *answer;
	char *line = json_dumps(request, JSON_COMPACT),
	     *text = manager_line(w.m, p, line, strlen(line), w.now);

	answer = json_loads(text, 0, NULL);
	assert_non_null(answer);
	free(text);
	free(line);
	json_decref(request);
	return answer;
}

static json_t *join_params(const char *job, unsigned ranks, unsigned rank)
{
	char ip[24];

	snprintf(ip, sizeof(ip), "10.1.%u.0", rank);
	return json_pack("{s:s,s:i,s:i,s:i,s:s,s:i}", "job", job, "ranks", (int)ranks, "rank",
		(int)rank, "who", 77 + (int)rank, "ip", ip, "mtu", 1024);
}

static uint64_t join(struct manager_peer *p, const char *job, unsigned ranks, unsigned rank)
{
	json_t *a = ask(p, "job.join", join_params(job, ranks, rank));
	uint64_t epoch = 0;

	if (ctl_get_u64(json_object_get(json_object_get(a, "result"), "epoch"), &epoch))
		fail_msg("%s",
			json_string_value(json_object_get(json_object_get(a, "error"), "message")));
	json_decref(a);
	return epoch;
}

static json_t *rank_params(const char *job, uint64_t epoch, unsigned rank)
{
	return json_pack("{s:s,s:o,s:i,s:i}", "job", job, "epoch", ctl_u64(epoch), "rank",
		(int)rank, "who", 77 + (int)rank);
}

static void refused(
	struct manager_peer *p, const char *method, json_t *params, int code, const char *says)
{
	json_t *a = ask(p, method, params), *e = json_object_get(a, "error");
	const char *message = json_string_value(json_object_get(e, "message"));

	if (json_integer_value(json_object_get(e, "code")) != code)
		fail_msg("%s: %s", method, message ? message : "was done");
	if (!strstr(message, says))
		fail_msg("%s: \"%s\" lacks \"%s\"", method, message, says);
	json_decref(a);
}

static uint64_t epoch;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(store_memory_open(&store), 0);
	world_open_with(&w, &store);
	for (unsigned r = 0; r < RANKS; r++)
		become(&alice[r], CTL_TENANT, "alice");
	become(&bob, CTL_TENANT, "bob");
	become(&leaf, CTL_AGENT, "leaf0");
	for (unsigned r = 0; r < RANKS; r++)
		epoch = join(&alice[r], "hers", RANKS, r);
	world_pass(&w, 200);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned r = 0; r < RANKS && w.m; r++)
		manager_gone(w.m, &alice[r]);
	if (w.m)
		manager_gone(w.m, &bob);
	world_close(&w);
	store.close(store.arg);
	return 0;
}

/* ---- what there is ---- */

static void expect_refused(
	struct manager_peer *p, const char *method, json_t *params, int code, const char *says)
{
	char *before = world_everything(&w), *after;

	refused(p, method, params, code, says);
	after = world_everything(&w);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

/* ---- tests ---- */

/* Bob tries all there is. */
static void test_every_method(void **state)
{
	unsigned tried = 0;

	(void)state;
	for (unsigned i = 0; i < ctl_manager_schema.n; i++) {
		const char *name = ctl_manager_schema.methods[i].name;

		tried++;
		if (!strcmp(name, "ping") || !strcmp(name, "version") ||
			!strcmp(name, "manager.who"))
			json_decref(ask(&bob, name, json_object()));
		else if (!strcmp(name, "job.join"))
			expect_refused(&bob, name, join_params("hers", RANKS, 0), CTL_NOT_ALLOWED,
				"job: the name belongs to somebody else");
		else if (!strcmp(name, "job.heartbeat") || !strcmp(name, "job.ready") ||
			 !strcmp(name, "job.leave"))
			expect_refused(&bob, name, rank_params("hers", epoch, 0), CTL_NOT_ALLOWED,
				"job: it belongs to somebody else");
		else if (!strcmp(name, "job.explain"))
			expect_refused(&bob, name, json_pack("{s:s}", "job", "hers"), CTL_REFUSED,
				"no job is named \"hers\"");
		else if (!strcmp(name, "topology.get") || !strcmp(name, "policy.set"))
			expect_refused(&bob, name,
				json_pack("{s:s*}", "policy", name[0] == 'p' ? "edt" : NULL),
				CTL_NOT_ALLOWED,
				"a tenant's certificate is not allowed to ask that");
		else if (!strcmp(name, "job.list")) {
			json_t *a = ask(&bob, name, json_object());

			assert_int_equal(json_array_size(json_object_get(
						 json_object_get(a, "result"), "jobs")),
				0);
			json_decref(a);
		} else
			fail_msg("%s is not tried", name);
	}
	assert_int_equal(tried, ctl_manager_schema.n);
	for (unsigned i = 0; i < ctl_manager_schema.n; i++) {
		const char *name = ctl_manager_schema.methods[i].name;

		if (strcmp(name, "ping") && strcmp(name, "version"))
			expect_refused(&leaf, name, json_object(), CTL_NOT_ALLOWED,
				"a switch's certificate is not allowed to ask that");
	}
	/* Alice goes on, and sees her job as ever. */
	for (unsigned r = 0; r < RANKS; r++)
		json_decref(ask(&alice[r], "job.heartbeat", rank_params("hers", epoch, r)));
	json_t *a = ask(&alice[0], "job.list", json_object());
	json_t *row = json_array_get(json_object_get(json_object_get(a, "result"), "jobs"), 0);
	assert_string_equal(rpc_string(row, "tenant"), "alice");
	assert_string_equal(rpc_string(row, "phase"), "connecting");
	json_decref(a);
}

/* Whose a job is outlives the manager; and a tenant cannot claim what nobody has written down. */
static void test_restart(void **state)
{
	(void)state;
	for (unsigned r = 0; r < RANKS; r++)
		manager_gone(w.m, &alice[r]);
	world_kill_manager(&w);
	world_start_manager(&w);
	expect_refused(&bob, "job.join", join_params("hers", RANKS, 0), CTL_NOT_ALLOWED,
		"job: the name belongs to somebody else");
	expect_refused(&bob, "job.heartbeat", rank_params("his", 3, 0), CTL_REFUSED, "is over");
	for (unsigned r = 0; r < RANKS; r++) {
		json_t *a = ask(&alice[r], "job.heartbeat", rank_params("hers", epoch, r));

		assert_string_equal(
			rpc_string(json_object_get(a, "result"), "phase"), "connecting");
		json_decref(a);
	}
	/* When it is over the name is free. */
	for (unsigned r = 0; r < RANKS; r++)
		json_decref(ask(&alice[r], "job.leave", rank_params("hers", epoch, r)));
	assert_true(join(&bob, "hers", RANKS, 0) > epoch);
}

static void test_limits(void **state)
{
	char name[16];

	(void)state;
	manager_gone(w.m, &bob);
	for (unsigned r = 0; r < RANKS; r++)
		manager_gone(w.m, &alice[r]);
	world_kill_manager(&w);
	json_object_set_new(w.config, "tenant_jobs", json_integer(3));
	json_object_set_new(w.config, "tenant_ranks", json_integer(9));
	world_start_manager(&w);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "his%u", i);
		join(&bob, name, 3, 0);
	}
	expect_refused(&bob, "job.join", join_params("big", 4, 0), CTL_REFUSED,
		"ranks: the jobs of bob would have 10 ranks, the limit is 9");
	join(&bob, "his2", 3, 0);
	expect_refused(&bob, "job.join", join_params("his3", 1, 0), CTL_REFUSED,
		"job: bob has 3 jobs, the limit is 3");
	/* Who is in takes nothing more; others have their own. */
	join(&bob, "his2", 3, 0);
	join(&alice[0], "more", 9 - RANKS, 0);
}

static uint64_t promised(const char *node)
{
	json_t *t = world_ask(&w, "topology.get", NULL), *row;
	uint64_t bytes = 0;
	size_t i;

	json_array_foreach(json_object_get(t, "nodes"), i, row)
	{
		if (!strcmp(rpc_string(row, "name"), node))
			ctl_get_u64(json_object_get(row, "promised_bytes"), &bytes);
	}
	json_decref(t);
	return bytes;
}

/* A job of two ranks, placed: its phase, and why in line. */
static const char *place(
	struct manager_peer p[RANKS], const char *who, const char *job, char line[512])
{
	static char phase[16];
	json_t *a = NULL;

	for (unsigned r = 0; r < RANKS; r++) {
		json_decref(a);
		become(&p[r], CTL_TENANT, who);
		a = ask(&p[r], "job.join", join_params(job, RANKS, r));
	}
	snprintf(phase, sizeof(phase), "%s", rpc_string(json_object_get(a, "result"), "phase"));
	snprintf(line, 512, "%s", rpc_string(json_object_get(a, "result"), "line"));
	json_decref(a);
	return phase;
}

/* Half as much again as the job that she has: others get windows that fit into the rest, until
 * nothing is left; what other tenants get is not less for it; and it comes back. */
static void test_memory(void **state)
{
	enum { MOST = 12 };
	static struct manager_peer more[MOST][RANKS], his[RANKS];
	const uint64_t one = promised("leaf0"), limit = one + one / 2;
	char name[16], line[512];
	unsigned n = 0, placed = 0;

	(void)state;
	assert_true(one > 0);
	for (unsigned r = 0; r < RANKS; r++)
		manager_gone(w.m, &alice[r]);
	world_kill_manager(&w);
	json_object_set_new(w.config, "tenant_bytes", json_integer((json_int_t)limit));
	world_start_manager(&w);
	world_pass(&w, 500);
	assert_int_equal(promised("leaf0"), one);
	for (; n < MOST; n++) {
		snprintf(name, sizeof(name), "more%u", n);
		if (strcmp(place(more[n], "alice", name, line), "ring") == 0)
			break;
		placed++;
		assert_true(promised("leaf0") <= limit && promised("leaf1") <= limit);
	}
	assert_true(placed > 0 && n < MOST);
	assert_non_null(strstr(line, "its tenant's jobs have all memory that they may have"));
	assert_string_not_equal(place(his, "bob", "his", line), "ring");
	assert_true(promised("leaf0") > limit);
	/* One goes, drained and all. */
	for (unsigned r = 0; r < RANKS; r++)
		manager_gone(w.m, &more[0][r]);
	world_pass(&w, 6000);
	snprintf(name, sizeof(name), "again");
	assert_string_not_equal(place(more[0], "alice", name, line), "ring");
	for (unsigned i = 0; i <= n; i++)
		for (unsigned r = 0; r < RANKS; r++)
			manager_gone(w.m, &more[i][r]);
	for (unsigned r = 0; r < RANKS; r++)
		manager_gone(w.m, &his[r]);
}

/* The switches are told whose the groups of a job may be, before its ranks hear of them. */
static void test_switches_know(void **state)
{
	static const char create[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.create\",\"params\":{\"name\":"
		"\"g\","
		"\"mode\":\"II\",\"kind\":\"mixed\",\"mtu\":1024,\"M\":4,\"W\":8,\"ranks\":2,"
		"\"job\":"
		"\"hers\",\"epoch\":%llu,\"endpoints\":[{\"ip\":\"10.0.0.1\",\"qpn\":257,\"port\":"
		"\"p0\","
		"\"mac\":\"02:00:00:00:00:01\",\"ranks\":[0]},{\"ip\":\"10.0.0.2\",\"qpn\":258,"
		"\"port\":\"p1\",\"mac\":\"02:00:00:00:00:02\",\"ranks\":[1]}]}}";
	static const char hold[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"owner.hold\","
				   "\"params\":{\"owner\":\"0123456789abcdef\"}}";
	struct agent_peer at = {0};
	char line[1024], *answer;

	(void)state;
	snprintf(line, sizeof(line), create, (unsigned long long)epoch);
	for (unsigned i = 0; i < 2; i++) {
		const struct ctl_who who = i ? alice[0].who : bob.who;

		agent_peer_came(&at, &who, false);
		free(agent_handle_line(w.sw[0].agent, &at, hold, strlen(hold)));
		answer = agent_handle_line(w.sw[0].agent, &at, line, strlen(line));
		if (!strstr(answer, i ? "\"result\"" : "job: belongs to somebody else"))
			fail_msg("%s: %s", who.name, answer);
		free(answer);
		agent_peer_gone(w.sw[0].agent, &at);
		at = (struct agent_peer){0};
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_every_method),
		T(test_restart),
		T(test_limits),
		T(test_memory),
		T(test_switches_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
