/* SPDX-License-Identifier: BSD-3-Clause */
/* Over TCP without TLS nobody is asked who he is: he speaks for no rank but his own, takes the
 * place of nobody who is there, and a rank that has crashed comes back all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static struct world w;
static struct store store;
static struct manager_peer rank[RANKS], eve;
static uint64_t epoch;

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

/* Rank i's process has the number 70 + i. */
static json_t *join_params(const char *job, unsigned ranks, unsigned i, unsigned who)
{
	char ip[24];

	snprintf(ip, sizeof(ip), "10.1.%u.0", i % LEAVES);
	return json_pack("{s:s,s:i,s:i,s:i,s:s,s:i}", "job", job, "ranks", (int)ranks, "rank",
		(int)i, "who", (int)who, "ip", ip, "mtu", 1024);
}

static json_t *rank_params(const char *job, uint64_t of, unsigned i, unsigned who)
{
	return json_pack("{s:s,s:o,s:i,s:i}", "job", job, "epoch", ctl_u64(of), "rank", (int)i,
		"who", (int)who);
}

/* What was done, and the run's epoch; the phase that it is in. */
static uint64_t done(struct manager_peer *p, const char *method, json_t *params, const char *phase)
{
	json_t *a = ask(p, method, params), *r = json_object_get(a, "result");
	uint64_t of = 0;

	if (ctl_get_u64(json_object_get(r, "epoch"), &of))
		fail_msg("%s: %s", method, rpc_string(json_object_get(a, "error"), "message"));
	if (phase)
		assert_string_equal(rpc_string(r, "phase"), phase);
	json_decref(a);
	return of;
}

static void become_stranger(struct manager_peer *p)
{
	memset(p, 0, sizeof(*p));
	p->who.role = CTL_STRANGER;
}

static void join_all(void)
{
	for (unsigned i = 0; i < RANKS; i++)
		epoch = done(&rank[i], "job.join", join_params("hers", RANKS, i, 70 + i), NULL);
	world_pass(&w, 200);
}

static int setup(void **state)
{
	(void)state;
	assert_int_equal(store_memory_open(&store), 0);
	world_open_with(&w, &store);
	become_stranger(&eve);
	for (unsigned i = 0; i < RANKS; i++)
		become_stranger(&rank[i]);
	join_all();
	return 0;
}

static void all_gone(void)
{
	for (unsigned i = 0; i < RANKS; i++)
		manager_gone(w.m, &rank[i]);
	manager_gone(w.m, &eve);
}

static int teardown(void **state)
{
	(void)state;
	all_gone();
	world_close(&w);
	store.close(store.arg);
	return 0;
}

/* ---- what there is ---- */

static uint64_t counted(const char *what)
{
	json_t *r = world_ask(&w, "manager.who", NULL);
	uint64_t n = UINT64_MAX;

	ctl_get_u64(json_object_get(r, what), &n);
	json_decref(r);
	return n;
}

/* Refused with these words, counted, and nothing is another. */
static void refused(const char *method, json_t *params, const char *says, const char *counter)
{
	char *before = world_everything(&w), *after;
	const uint64_t n = counted(counter);
	json_t *a = ask(&eve, method, params);
	const char *message = rpc_string(json_object_get(a, "error"), "message");

	if (!message || !strstr(message, says))
		fail_msg("%s: \"%s\" lacks \"%s\"", method, message ? message : "done", says);
	json_decref(a);
	world_pass(&w, 200);
	after = world_everything(&w);
	assert_string_equal(before, after);
	assert_int_equal(counted(counter), n + 1);
	assert_false(eve.joined && eve.epoch == epoch);
	free(before);
	free(after);
}

/* ---- tests ---- */

static void test_speaks_for_another(void **state)
{
	static const char *const methods[] = {"job.heartbeat", "job.ready", "job.leave"};

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		for (unsigned r = 0; r < RANKS; r++) {
			refused(methods[i], rank_params("hers", epoch, r, 0), "who: rank ",
				"not_the_rank");
			refused(methods[i], rank_params("hers", epoch, r, 71 - r),
				" of job \"hers\" is another process", "not_the_rank");
		}
	for (unsigned r = 0; r < RANKS; r++)
		done(&rank[r], "job.ready", rank_params("hers", epoch, r, 70 + r), NULL);
	world_pass(&w, 200);
	for (unsigned r = 0; r < RANKS; r++)
		done(&rank[r], "job.heartbeat", rank_params("hers", epoch, r, 70 + r), "active");
}

/* Whatever he says of the job's size. */
static void test_takes_a_place(void **state)
{
	(void)state;
	refused("job.join", join_params("hers", RANKS, 0, 7), "rank: 0 of job \"hers\" is there",
		"place_taken");
	refused("job.join", join_params("hers", 1, 0, 7), "is there", "place_taken");
	refused("job.join", join_params("hers", 9, 8, 7), "is there", "place_taken");
	/* One that has not all ranks yet. */
	done(&rank[0], "job.join", join_params("next", RANKS, 0, 80), "joining");
	refused("job.join", join_params("next", RANKS, 0, 7), "is there", "place_taken");
}

/* The connection of a process that has crashed is gone: who comes next takes its place, and the job
 * begins another run. So does who joins anew on his own connection. */
static void test_comes_back(void **state)
{
	uint64_t later;

	(void)state;
	manager_gone(w.m, &rank[1]);
	become_stranger(&rank[1]);
	refused("job.join", join_params("hers", RANKS, 0, 7), "is there", "place_taken");
	later = done(&rank[1], "job.join", join_params("hers", RANKS, 1, 75), "joining");
	assert_true(later > epoch);
	done(&rank[0], "job.heartbeat", rank_params("hers", epoch, 0, 70), "over");
	assert_int_equal(
		done(&rank[0], "job.join", join_params("hers", RANKS, 0, 74), NULL), later);
	world_pass(&w, 200);
	done(&rank[0], "job.heartbeat", rank_params("hers", later, 0, 74), "connecting");
	assert_true(done(&rank[0], "job.join", join_params("hers", RANKS, 0, 76), NULL) > later);
}

/* Whose place another process has taken, by the UNIX socket here, has none: he does not take it
 * back by the connection that he still has, nor is that the other one's sign of life. */
static void test_displaced(void **state)
{
	static struct manager_peer local[RANKS];

	(void)state;
	memset(local, 0, sizeof(local));
	epoch = done(&eve, "job.join", join_params("next", RANKS, 0, 7), "joining");
	assert_int_equal(
		done(&local[0], "job.join", join_params("next", RANKS, 0, 80), "joining"), epoch);
	refused("job.join", join_params("next", RANKS, 0, 8), "is there", "place_taken");
	epoch = done(&eve, "job.join", join_params("last", RANKS, 0, 7), "joining");
	for (unsigned i = 0; i < RANKS; i++)
		assert_int_equal(
			done(&local[i], "job.join", join_params("last", RANKS, i, 80 + i), NULL),
			epoch);
	manager_gone(w.m, &local[0]);
	world_pass(&w, 2000);
	done(&local[1], "job.heartbeat", rank_params("last", epoch, 1, 81), "connecting");
	world_pass(&w, 2000);
	done(&local[1], "job.heartbeat", rank_params("last", epoch, 1, 81), "over");
	manager_gone(w.m, &local[1]);
}

/* A connection that ends does not make a rank another: with its number it goes on by the next one,
 * and its place is its own again. */
static void test_connects_anew(void **state)
{
	(void)state;
	manager_gone(w.m, &rank[0]);
	become_stranger(&rank[0]);
	refused("job.heartbeat", rank_params("hers", epoch, 0, 7), "another process",
		"not_the_rank");
	done(&rank[0], "job.heartbeat", rank_params("hers", epoch, 0, 70), "connecting");
	refused("job.join", join_params("hers", RANKS, 0, 7), "is there", "place_taken");
}

/* The successor knows whose the ranks are before he has heard of them. */
static void test_successor(void **state)
{
	(void)state;
	all_gone();
	world_kill_manager(&w);
	world_start_manager(&w);
	become_stranger(&eve);
	world_pass(&w, 200);
	refused("job.leave", rank_params("hers", epoch, 0, 7), "another process", "not_the_rank");
	refused("job.join", join_params("hers", RANKS, 0, 7), "is there", "place_taken");
	for (unsigned r = 0; r < RANKS; r++) {
		become_stranger(&rank[r]);
		done(&rank[r], "job.heartbeat", rank_params("hers", epoch, r, 70 + r),
			"connecting");
	}
}

static bool leaf_has(const char *job)
{
	return sw_group_find(w.sw[0].sw, job) > 0;
}

/* What a rank of such a job hears when it leaves is what any other does: nothing. */
static void leaves_adopted(void)
{
	json_t *a = ask(&eve, "job.leave", rank_params("other", 3, 0, 7)),
	       *result = json_object_get(a, "result");

	assert_true(json_is_object(result));
	assert_int_equal(json_object_size(result), 0);
	assert_false(eve.joined);
	json_decref(a);
}

/* A manager that remembers nothing believes ranks, but no switch loses a group because somebody
 * said so, and who was heard first is the rank. */
static void test_adopted(void **state)
{
	(void)state;
	world_open(&w);
	become_stranger(&eve);
	world_start_job(&w, 0);
	world_pass(&w, 300);
	assert_true(world_active(&w, 0));
	epoch = w.job[0].rank[0].epoch;
	world_kill_manager(&w);
	world_start_manager(&w);
	done(&eve, "job.heartbeat", rank_params("job0", epoch + 1, 0, 7), "adopted");
	manager_gone(w.m, &eve);
	world_pass(&w, 300);
	assert_string_equal(w.job[0].rank[0].phase, "adopted");
	leaves_adopted();
	refused("job.heartbeat", rank_params("job0", epoch, 1, 7), "another process",
		"not_the_rank");
	refused("job.join", join_params("job0", RANKS, 0, 7), "is there", "place_taken");
	/* Nor does it help to speak for the run that there is not. */
	done(&eve, "job.heartbeat", rank_params("other", 0, 0, 7), "adopted");
	refused("job.join", join_params("job0", 1, 0, 7), "is there", "place_taken");
	manager_gone(w.m, &eve);
	world_pass(&w, 20000);
	assert_true(leaf_has("job0"));
	refused("job.join", join_params("job0", RANKS, 0, 7), "is there", "place_taken");
	/* When nobody of it is there any more the name is free. */
	world_kill_rank(&w, 0, 0);
	world_kill_rank(&w, 0, 1);
	done(&eve, "job.join", join_params("job0", RANKS, 0, 7), "joining");
	world_pass(&w, 2000);
	assert_false(leaf_has("job0"));
	manager_gone(w.m, &eve);
	world_pass(&w, 500);
	world_close(&w);
}

/* What strangers say of jobs that there are not takes no room from those that there are, whether
 * they speak for the next one, leave, or hang up; and no name makes two lines of the log's. */
static void test_many_adopted(void **state)
{
	enum { MANY = 17000 }; /* more than a manager adopts */
	char name[16];

	(void)state;
	world_open(&w);
	become_stranger(&eve);
	world_start_job(&w, 0);
	world_pass(&w, 300);
	world_kill_manager(&w);
	world_start_manager(&w);
	for (unsigned i = 0; i < 3 * MANY; i++) {
		snprintf(name, sizeof(name), "a\n%u", i);
		done(&eve, "job.heartbeat", rank_params(name, 1, 0, 7), "adopted");
		if (i / MANY == 1)
			json_decref(ask(&eve, "job.leave", rank_params(name, 1, 0, 7)));
		if (i / MANY == 2)
			manager_gone(w.m, &eve);
	}
	assert_non_null(strstr(w.said, "job a?50999, epoch 1, "));
	manager_gone(w.m, &eve);
	world_pass(&w, 300);
	for (unsigned r = 0; r < RANKS; r++)
		assert_string_equal(w.job[0].rank[r].phase, "adopted");
	world_close(&w);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int open_store(void **state)
{
	(void)state;
	return store_memory_open(&store);
}

static int close_store(void **state)
{
	(void)state;
	store.close(store.arg);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_speaks_for_another),
		T(test_takes_a_place),
		T(test_comes_back),
		T(test_displaced),
		T(test_connects_anew),
		T(test_successor),
		cmocka_unit_test_setup_teardown(test_adopted, open_store, close_store),
		cmocka_unit_test(test_many_adopted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
