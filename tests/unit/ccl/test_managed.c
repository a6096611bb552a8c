/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank makes of the answers of a manager that is not as it should be, and of a kernel that
 * gives no random numbers. */
#include "fake_manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/random.h"
#include "lib/ctl/client.h"

static int random_error, interrupted;

ssize_t __real_getrandom(void *to, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
	if (interrupted > 0) {
		interrupted--;
		errno = EINTR;
		return -1;
	}
	if (random_error) {
		errno = random_error;
		return -1;
	}
	return __real_getrandom(to, len, flags);
}

static int start(void **state)
{
	(void)state;
	fake_manager_start();
	random_error = interrupted = 0;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	fake_manager_stop();
	return 0;
}

static void answers_without_sense(void **state)
{
	static const struct {
		const char *first, *second;
		int rc;
		const char *said;
	} bad[] = {
		{"{}", NULL, -EPROTO, "manager /m: its answer makes no sense"},
		{"{'epoch':'x','phase':'ring'}", NULL, -EPROTO, "its answer makes no sense"},
		{"{'epoch':1}", NULL, -EPROTO, "its answer makes no sense"},
		{"{'epoch':1,'phase':7}", NULL, -EPROTO, "its answer makes no sense"},
		{"{'epoch':1,'phase':'joining'}", "5", -EPROTO, "its answer makes no sense"},
		{"{'epoch':1,'phase':'ready','plan':5}", NULL, -EPROTO, "its plan makes no sense"},
		{"{'epoch':1,'phase':'over'}", NULL, -ECONNABORTED, "manager: over"},
		{"{'epoch':1,'phase':'over','line':4}", NULL, -ECONNABORTED, "manager: over"},
		{"{'epoch':1,'phase':'over','line':'gone'}", NULL, -ECONNABORTED, "manager: gone"},
		{"{'epoch':1,'phase':'joining'}", NULL, -ETIMEDOUT, "in time"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char err[CCL_ERR_LEN] = "";

		start(state);
		assert_int_equal(fake_manager_join(bad[i].first, bad[i].second, err), bad[i].rc);
		if (!strstr(err, bad[i].said))
			fail_msg("%zu: \"%s\" does not say \"%s\"", i, err, bad[i].said);
		assert_null(job.managed);
	}
}

/* A job that is over for a reason that the manager keeps to itself. */
static void over_without_reason(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	(void)state;
	assert_int_equal(
		fake_manager_join("{'epoch':1,'phase':'ring'}", "{'epoch':1,'phase':'over'}", err),
		0);
	fake.clock_ms += 1000;
	assert_int_equal(ccl_managed_watch(job.managed, why), -ECONNABORTED);
	assert_string_equal(why, "the manager says: over");
}

/* ---- one of several leads ---- */

static void several(const char *managers)
{
	snprintf(job.group.manager, sizeof(job.group.manager), "%s", managers);
	job.group.timeout_ns = UINT64_C(10000000000);
}

/* The first does not listen, hangs, hangs up, or does so in the handshake: the next is asked, and
 * stays the one. */
static void another_leads(void **state)
{
	char err[CCL_ERR_LEN] = "";

	for (unsigned i = 0; i < 4; i++) {
		start(state);
		several("/a,/b");
		fake.nobody_at = i == 0 || i == 3 ? "/a" : NULL;
		fake.nobody_rc = i == 3 ? -ECONNRESET : -ECONNREFUSED;
		fake.hangs_at = i == 1 ? "/a" : NULL;
		fake.resets_at = i == 2 ? "/a" : NULL;
		assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
		assert_int_equal(ccl_managed_ready(job.managed, err), 0);
		assert_string_equal(fake.asked, fake.nobody_at ? "/b.j /b.r " : "/a.j /b.j /b.r ");
		ccl_managed_leave(job.managed, false);
		job.managed = NULL;
	}
}

/* What a manager answers is its answer, whoever else there may be. */
static void an_answer_is_one(void **state)
{
	char err[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b");
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'over'}", NULL, err), -ECONNABORTED);
	assert_string_equal(fake.asked, "/a.j ");
	fake.asked[0] = '\0';
	assert_int_equal(fake_manager_join("{}", NULL, err), -EPROTO);
	assert_string_equal(fake.asked, "/a.j ");
	assert_non_null(strstr(err, "manager /a: its answer makes no sense"));
}

/* Nobody leads, for as long as the group's timeout: round after round, and then an error that names
 * one of them. One manager alone is waited for as ever. */
static void nobody_leads(void **state)
{
	const int64_t from = fake.clock_ms;
	char err[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b,/c");
	fake.nobody_at = "";
	assert_int_equal(fake_manager_join("{}", NULL, err), -ECONNREFUSED);
	assert_true(fake.clock_ms - from >= 10000 && fake.clock_ms - from < 10200);
	assert_true(!strncmp(err, "manager /", 9) && strstr(err, ": nobody listens"));
	assert_null(job.managed);
	fake.hangs_at = "";
	fake.nobody_at = NULL;
	assert_int_equal(fake_manager_join("{}", NULL, err), -ETIMEDOUT);
	assert_true(fake.clock_ms - from < 10200 + 12200);
	several("/a");
	fake.asked[0] = '\0';
	assert_int_equal(fake_manager_join("{}", NULL, err), -ETIMEDOUT);
	assert_string_equal(fake.asked, "/a.j ");
}

/* What the device can do, and what the group file asks of it. */
static void says_what_it_can(void **state)
{
	json_t *says = fake_json("{'kind':'auto','sr':true,'verb':'send','basic':true,'device':{"
				 "'name':'rnic0','skip':true,'selective':false,'mtu':1024}}");
	char err[CCL_ERR_LEN] = "";

	(void)state;
	job.group.sr = true;
	job.group.collectives = 1u << CCL_ALLREDUCE | 1u << CCL_BARRIER;
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	json_object_update_missing(says, fake.asked_with);
	assert_true(json_equal(says, fake.asked_with));
	json_decref(says);
}

/* A process that has ended may hold its place for a while yet: who comes after it asks again, for
 * as long as the group's timeout, and then hears why. */
static void place_taken(void **state)
{
	const int64_t from = fake.clock_ms;
	char err[CCL_ERR_LEN] = "";

	(void)state;
	fake.taken = 40;
	several("/a");
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	assert_int_equal(fake.taken, 0);
	assert_in_range(fake.clock_ms - from, 4000, 5000);
	ccl_managed_leave(job.managed, false);
	job.managed = NULL;
	fake.taken = 1000;
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), -EBUSY);
	assert_string_equal(err, "manager /a: rank: 0 is there");
	assert_in_range(fake.clock_ms - from, 14000, 15200);
	/* Likewise for a host that the manager has not heard of yet. */
	fake.taken = 3;
	fake.busy = "ip";
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	ccl_managed_leave(job.managed, false);
	job.managed = NULL;
	fake.taken = 1;
	fake.busy = "job";
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), -EBUSY);
}

/* Who led ends while a job waits to be placed: it is joined anew at his successor. */
static void ends_meanwhile(void **state)
{
	char err[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b");
	fake.turn_at = 1;
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'joining'}",
				 "{'epoch':2,'phase':'ring'}", err),
		0);
	assert_string_equal(fake.asked, "/a.j /a.h /b.j ");
	assert_int_equal(job.group.epoch, 2);
	/* And while it starts. */
	fake.resets_at = "/b";
	assert_int_equal(ccl_managed_ready(job.managed, err), 0);
	assert_string_equal(fake.asked, "/a.j /a.h /b.j /b.r /a.r ");
}

static void watch(unsigned times)
{
	char why[CCL_ERR_LEN] = "";

	for (unsigned i = 0; i < times; i++) {
		fake.clock_ms += 600;
		assert_int_equal(ccl_managed_watch(job.managed, why), 0);
	}
}

/* A communicator that goes on by the ring of its hosts: the manager hears of it, and that the
 * network is not used is no failure; nor is it one if he does not know it any more. */
static void resumed(void **state)
{
	static const char *const last[] = {"{'epoch':1,'phase':'over','line':'gone'}", FAKE_STALE};
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	for (unsigned i = 0; i < 2; i++) {
		start(state);
		job.group.resume = true;
		assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
		job.group.mode_id = CCL_MODE_2; /* as if it had a tree */
		assert_true(json_is_true(json_object_get(fake.asked_with, "resume")));
		fake.clock_ms += 600;
		assert_int_equal(ccl_managed_watch(job.managed, why), -ECONNABORTED);
		assert_string_equal(why, "the manager says: ring");
		ccl_managed_resumed(job.managed);
		watch(2);
		assert_string_equal(fake.asked, "/m.j /m.h /m.h /m.h ");
		fake.answers[0] = last[i];
		watch(3);
		assert_string_equal(fake.asked, "/m.j /m.h /m.h /m.h /m.h ");
		ccl_managed_leave(job.managed, true); /* nor is he told of its end */
		job.managed = NULL;
		assert_string_equal(fake.asked, "/m.j /m.h /m.h /m.h /m.h ");
	}
	ccl_managed_resumed(NULL);
}

/* While the job works: who has gone is followed by whoever listens, who hangs as well; one that
 * loses an answer now and then stays. */
static void followed(void **state)
{
	char err[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b");
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	fake.asked[0] = '\0';
	fake.is_open = false;
	fake.nobody_at = "/a";
	watch(5);
	assert_non_null(strstr(fake.asked, "/b.h "));
	assert_null(strstr(fake.asked, "/a.h "));
	fake.nobody_at = NULL;
	fake.asked[0] = '\0';
	fake.hangs_at = "/b";
	watch(2);
	fake.hangs_at = NULL;
	watch(1);
	fake.hangs_at = "/b";
	watch(2);
	assert_string_equal(fake.asked, "/b.h /b.h /b.h /b.h /b.h ");
	watch(6);
	assert_non_null(strstr(fake.asked, "/a.h "));
}

/* Watches ten times a second, none of which takes any time, until this is called: ms. */
static int64_t watch_until(const char *call)
{
	const int64_t from = fake.clock_ms;
	char why[CCL_ERR_LEN] = "";

	while (!strstr(fake.asked, call) && fake.clock_ms - from < 20000) {
		const int64_t at = fake.clock_ms += 100;

		assert_int_equal(ccl_managed_watch(job.managed, why), 0);
		assert_int_equal(fake.clock_ms, at);
	}
	return fake.clock_ms - from;
}

/* Who takes each connection and closes it, or speaks something else, is nobody: neither who joins
 * nor who works stays with it. However many they are, a round is one by all of them before there is
 * a pause. */
static void takes_and_closes(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		char err[CCL_ERR_LEN] = "";

		start(state);
		fake.resets_rc = i ? -EPROTO : -ECONNRESET;
		several("/a,/b,/c,/d");
		assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
		fake.asked[0] = '\0';
		fake.resets_at = "/a,/b,/c";
		assert_in_range(watch_until("/d.h "), 0, 1000);
		fake.resets_at = "";
		watch_until("/a.h /b.h /c.h /d.h ");
		fake.asked[0] = '\0';
		assert_in_range(watch_until("/a.h /b.h /c.h /d.h "), 2000, 2600);
		ccl_managed_leave(job.managed, false);
		job.managed = NULL;
	}
}

/* Machines that are off answer nothing: each has what is a dial's, without a pause after it, and
 * nobody stands meanwhile; a round in which nobody was found is followed by one. */
static void silent_ones(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/s,/t,/u,/b");
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	fake.asked[0] = '\0';
	fake.is_open = false;
	fake.nobody_at = "/a";
	fake.silent = true;
	assert_in_range(watch_until("/b.h "), 3 * FAKE_DIAL_MS, 3 * (FAKE_DIAL_MS + 100) + 100);
	several("/a,/s");
	ccl_managed_leave(job.managed, false);
	job.managed = NULL;
	fake.nobody_at = NULL;
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	fake.is_open = false;
	fake.nobody_at = "/a";
	fake.clock_ms += 500;
	assert_int_equal(ccl_managed_watch(job.managed, why), 0);
	fake.nobody_at = NULL;
	fake.asked[0] = '\0';
	assert_in_range(watch_until("/a.h "), FAKE_DIAL_MS + 2000, FAKE_DIAL_MS + 2100);
}

/* A dial that takes a while is looked at each time, and who leaves then says nothing. */
static void dialled_meanwhile(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b");
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	fake.asked[0] = '\0';
	fake.is_open = false;
	fake.looks = 3;
	assert_in_range(watch_until("/a.h "), 400, 400);
	fake.is_open = false;
	fake.looks = 3;
	fake.clock_ms += 2000;
	fake.asked[0] = '\0';
	assert_int_equal(ccl_managed_watch(job.managed, why), 0);
	ccl_managed_leave(job.managed, true);
	job.managed = NULL;
	assert_string_equal(fake.asked, "");
}

/* Whose program computes looks once a second: a handshake gets the looks that it needs, and one
 * that says nothing is given up after a few. */
static void seldom_looked_at(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	for (unsigned i = 0; i < 2; i++) {
		start(state);
		several(i ? "/s,/b" : "/a");
		assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
		fake.asked[0] = '\0';
		fake.is_open = false;
		fake.silent = true;
		fake.looks = i ? 0 : 3;
		fake.clock_ms += 2000;
		for (unsigned n = 0; n < 4; n++) {
			assert_string_equal(fake.asked, "");
			fake.clock_ms += 1000;
			assert_int_equal(ccl_managed_watch(job.managed, why), 0);
		}
		assert_string_equal(fake.asked, i ? "/b.h " : "/a.h ");
		ccl_managed_leave(job.managed, false);
		job.managed = NULL;
	}
}

/* No random numbers, now or ever: that is said; it is not waited for. */
static void no_random(void **state)
{
	char err[CCL_ERR_LEN] = "";
	uint64_t n;

	(void)state;
	random_error = ENOSYS;
	assert_int_equal(fake_manager_join("{'epoch':1,'phase':'ring'}", NULL, err), -ENOSYS);
	assert_non_null(strstr(err, "no random numbers"));
	assert_int_equal(fake.n_calls, 0);
	random_error = 0;
	interrupted = 3;
	assert_int_equal(ccl_random(&n, sizeof(n)), 0);
	assert_int_equal(interrupted, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_without_sense, start, stop),
		cmocka_unit_test_setup_teardown(over_without_reason, start, stop),
		cmocka_unit_test_setup_teardown(another_leads, start, stop),
		cmocka_unit_test_setup_teardown(an_answer_is_one, start, stop),
		cmocka_unit_test_setup_teardown(nobody_leads, start, stop),
		cmocka_unit_test_setup_teardown(says_what_it_can, start, stop),
		cmocka_unit_test_setup_teardown(place_taken, start, stop),
		cmocka_unit_test_setup_teardown(ends_meanwhile, start, stop),
		cmocka_unit_test_setup_teardown(resumed, start, stop),
		cmocka_unit_test_setup_teardown(followed, start, stop),
		cmocka_unit_test_setup_teardown(takes_and_closes, start, stop),
		cmocka_unit_test_setup_teardown(silent_ones, start, stop),
		cmocka_unit_test_setup_teardown(dialled_meanwhile, start, stop),
		cmocka_unit_test_setup_teardown(seldom_looked_at, start, stop),
		cmocka_unit_test_setup_teardown(no_random, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
