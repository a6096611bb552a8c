/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank makes of the answers of a manager that is not as it should be, and of a kernel that
 * gives no random numbers. The client of the control socket is this file's (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/managed.h"
#include "lib/ccl/random.h"
#include "lib/ctl/client.h"

/* ---- fakes ---- */

static const char *answers[4]; /* in turn, the last one again; JSON with ' for " */
static unsigned n_calls;
static int64_t clock_ms;
static int random_error, interrupted;

static int64_t fake_now(void *arg)
{
	(void)arg;
	return clock_ms;
}

static void fake_sleep(void *arg, unsigned ms)
{
	(void)arg;
	clock_ms += ms;
}

static const struct ctl_io io = {.now_ms = fake_now, .sleep_ms = fake_sleep};

/* Managers: who does not listen, and who listens and answers nothing or hangs up (addresses of one
 * letter). */
struct ctl_client {
	char path[64];
};
static struct ctl_client client_to;
static const char *nobody_at, *hangs_at, *resets_at; /* NULL: none; "": all */
static bool silent;                                  /* all but /a and /b: no word at all */
enum { DIAL_MS = 500 };                              /* that such a one has */
static int nobody_rc, resets_rc; /* what a dial of nobody, a call of who hangs up comes to */
static unsigned looks;           /* at a dial, before it is a connection */
static bool is_open;
static unsigned turn_at; /* from this call on the first one hangs up, 0: never */
static unsigned taken;   /* that many times a rank may not join */
static const char *busy; /* for this field's sake */
static char asked[256];  /* addresses that were called, and the last letter of the method */

static bool is(const char *which, const char *path)
{
	return which && (!which[0] || strstr(which, path));
}

int __wrap_ctl_connect_over(const struct ctl_io *over, const char *path, unsigned timeout_ms,
	struct ctl_client **client, struct ctl_error *error);
int __wrap_ctl_connect_over(const struct ctl_io *over, const char *path, unsigned timeout_ms,
	struct ctl_client **client, struct ctl_error *error)
{
	(void)over;
	if (is(nobody_at, path)) {
		clock_ms += timeout_ms;
		*error = (struct ctl_error){.index = -1};
		snprintf(error->msg, sizeof(error->msg), "%s: nobody listens", path);
		return nobody_rc;
	}
	snprintf(client_to.path, sizeof(client_to.path), "%s", path);
	*client = &client_to;
	is_open = true;
	return 0;
}

int __wrap_ctl_connect_begin(const struct ctl_io *over, const char *path,
	struct ctl_client **client, struct ctl_error *error);
int __wrap_ctl_connect_begin(const struct ctl_io *over, const char *path,
	struct ctl_client **client, struct ctl_error *error)
{
	const int rc = __wrap_ctl_connect_over(over, path, 0, client, error);

	is_open = false;
	return rc;
}

int __wrap_ctl_connected(struct ctl_client *client, struct ctl_error *error);
int __wrap_ctl_connected(struct ctl_client *client, struct ctl_error *error)
{
	(void)error;
	if (silent && !is("/a,/b", client->path))
		return -EINPROGRESS;
	if (looks) {
		looks--;
		return -EINPROGRESS;
	}
	is_open = true;
	return 0;
}

void __wrap_ctl_close(struct ctl_client *client);
void __wrap_ctl_close(struct ctl_client *client)
{
	(void)client;
}

bool __wrap_ctl_is_open(const struct ctl_client *client);
bool __wrap_ctl_is_open(const struct ctl_client *client)
{
	(void)client;
	return is_open;
}

static json_t *json_of(const char *text)
{
	char *copy = strdup(text);
	json_t *json;

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	json = json_loads(copy, JSON_DECODE_ANY, NULL);
	assert_non_null(json);
	free(copy);
	return json;
}

static json_t *asked_with; /* of the last call */
int __wrap_ctl_call(struct ctl_client *client, const char *method, const json_t *params,
	unsigned timeout_ms, json_t **result, struct ctl_error *error);
int __wrap_ctl_call(struct ctl_client *client, const char *method, const json_t *params,
	unsigned timeout_ms, json_t **result, struct ctl_error *error)
{
	const size_t at = strlen(asked);
	unsigned i;

	json_decref(asked_with);
	asked_with = json_deep_copy(params);
	if (at + 16 < sizeof(asked))
		snprintf(asked + at, sizeof(asked) - at, "%s.%c ", client->path, method[4]);
	*error = (struct ctl_error){.index = -1};
	if (is(hangs_at, client->path)) {
		clock_ms += timeout_ms;
		snprintf(error->msg, sizeof(error->msg), "no answer");
		return -ETIMEDOUT;
	}
	if (is(resets_at, client->path) ||
		(turn_at && n_calls >= turn_at && !strcmp(client->path, "/a") && turn_at--)) {
		snprintf(error->msg, sizeof(error->msg), "closed");
		is_open = false;
		return resets_rc;
	}
	if (taken && !strcmp(method, "job.join")) {
		taken--;
		error->code = -32000;
		snprintf(error->path, sizeof(error->path), "%s", busy);
		snprintf(error->msg, sizeof(error->msg), "0 is there");
		return -EBUSY;
	}
	i = n_calls++;
	if (result)
		*result = json_of(answers[i < 3 && answers[i] ? i : answers[1] ? 1 : 0]);
	return 0;
}

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

/* ---- */

static struct wire_ip ips[2];
static struct ccl_group group;
static struct ccl_managed *managed;
static const struct ccl_ability able = {.skip = true, .device = "rnic0"};

static int start(void **state)
{
	(void)state;
	memset(answers, 0, sizeof(answers));
	n_calls = 0;
	nobody_at = hangs_at = resets_at = NULL;
	nobody_rc = -ECONNREFUSED;
	resets_rc = -ECONNRESET;
	turn_at = looks = taken = 0;
	busy = "rank";
	silent = false;
	asked[0] = '\0';
	random_error = interrupted = 0;
	ips[0] = wire_ip_from4(0x0a000001);
	ips[1] = wire_ip_from4(0x0a000002);
	memset(&group, 0, sizeof(group));
	snprintf(group.name, sizeof(group.name), "job");
	snprintf(group.manager, sizeof(group.manager), "/m");
	group.n_ranks = 2;
	group.rank_ip = ips;
	group.timeout_ns = UINT64_C(1000000000);
	group.fallback = true;
	group.io = &io;
	managed = NULL;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	ccl_managed_leave(managed, false);
	return 0;
}

static int join(const char *first, const char *second, char err[CCL_ERR_LEN])
{
	char why[CCL_ERR_LEN];

	answers[0] = first;
	answers[1] = second;
	return ccl_managed_join(&group, 0, 1024, &able, &managed, why, err);
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
		assert_int_equal(join(bad[i].first, bad[i].second, err), bad[i].rc);
		if (!strstr(err, bad[i].said))
			fail_msg("%zu: \"%s\" does not say \"%s\"", i, err, bad[i].said);
		assert_null(managed);
	}
}

/* A job that is over for a reason that the manager keeps to itself. */
static void over_without_reason(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	(void)state;
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", "{'epoch':1,'phase':'over'}", err), 0);
	clock_ms += 1000;
	assert_int_equal(ccl_managed_watch(managed, why), -ECONNABORTED);
	assert_string_equal(why, "the manager says: over");
}

/* ---- one of several leads ---- */

static void several(const char *managers)
{
	snprintf(group.manager, sizeof(group.manager), "%s", managers);
	group.timeout_ns = UINT64_C(10000000000);
}

/* The first does not listen, hangs, hangs up, or does so in the handshake: the next is asked, and
 * stays the one. */
static void another_leads(void **state)
{
	char err[CCL_ERR_LEN] = "";

	for (unsigned i = 0; i < 4; i++) {
		start(state);
		several("/a,/b");
		nobody_at = i == 0 || i == 3 ? "/a" : NULL;
		nobody_rc = i == 3 ? -ECONNRESET : -ECONNREFUSED;
		hangs_at = i == 1 ? "/a" : NULL;
		resets_at = i == 2 ? "/a" : NULL;
		assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
		assert_int_equal(ccl_managed_ready(managed, err), 0);
		assert_string_equal(asked, nobody_at ? "/b.j /b.r " : "/a.j /b.j /b.r ");
		ccl_managed_leave(managed, false);
		managed = NULL;
	}
}

/* What a manager answers is its answer, whoever else there may be. */
static void an_answer_is_one(void **state)
{
	char err[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b");
	assert_int_equal(join("{'epoch':1,'phase':'over'}", NULL, err), -ECONNABORTED);
	assert_string_equal(asked, "/a.j ");
	asked[0] = '\0';
	assert_int_equal(join("{}", NULL, err), -EPROTO);
	assert_string_equal(asked, "/a.j ");
	assert_non_null(strstr(err, "manager /a: its answer makes no sense"));
}

/* Nobody leads, for as long as the group's timeout: round after round, and then an error that names
 * one of them. One manager alone is waited for as ever. */
static void nobody_leads(void **state)
{
	const int64_t from = clock_ms;
	char err[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b,/c");
	nobody_at = "";
	assert_int_equal(join("{}", NULL, err), -ECONNREFUSED);
	assert_true(clock_ms - from >= 10000 && clock_ms - from < 10200);
	assert_true(!strncmp(err, "manager /", 9) && strstr(err, ": nobody listens"));
	assert_null(managed);
	hangs_at = "";
	nobody_at = NULL;
	assert_int_equal(join("{}", NULL, err), -ETIMEDOUT);
	assert_true(clock_ms - from < 10200 + 12200);
	several("/a");
	asked[0] = '\0';
	assert_int_equal(join("{}", NULL, err), -ETIMEDOUT);
	assert_string_equal(asked, "/a.j ");
}

/* What the device can do, and what the group file asks of it. */
static void says_what_it_can(void **state)
{
	json_t *says = json_of("{'kind':'auto','sr':true,'verb':'send','basic':true,'device':{"
			       "'name':'rnic0','skip':true,'selective':false,'mtu':1024}}");
	char err[CCL_ERR_LEN] = "";

	(void)state;
	group.sr = true;
	group.collectives = 1u << CCL_ALLREDUCE | 1u << CCL_BARRIER;
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	json_object_update_missing(says, asked_with);
	assert_true(json_equal(says, asked_with));
	json_decref(says);
}

/* A process that has ended may hold its place for a while yet: who comes after it asks again, for
 * as long as the group's timeout, and then hears why. */
static void place_taken(void **state)
{
	const int64_t from = clock_ms;
	char err[CCL_ERR_LEN] = "";

	(void)state;
	taken = 40;
	several("/a");
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	assert_int_equal(taken, 0);
	assert_in_range(clock_ms - from, 4000, 5000);
	ccl_managed_leave(managed, false);
	managed = NULL;
	taken = 1000;
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), -EBUSY);
	assert_string_equal(err, "manager /a: rank: 0 is there");
	assert_in_range(clock_ms - from, 14000, 15200);
	/* Likewise for a host that the manager has not heard of yet. */
	taken = 3;
	busy = "ip";
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	ccl_managed_leave(managed, false);
	managed = NULL;
	taken = 1;
	busy = "job";
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), -EBUSY);
}

/* Who led ends while a job waits to be placed: it is joined anew at his successor. */
static void ends_meanwhile(void **state)
{
	char err[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b");
	turn_at = 1;
	assert_int_equal(
		join("{'epoch':1,'phase':'joining'}", "{'epoch':2,'phase':'ring'}", err), 0);
	assert_string_equal(asked, "/a.j /a.h /b.j ");
	assert_int_equal(group.epoch, 2);
	/* And while it starts. */
	resets_at = "/b";
	assert_int_equal(ccl_managed_ready(managed, err), 0);
	assert_string_equal(asked, "/a.j /a.h /b.j /b.r /a.r ");
}

static void watch(unsigned times)
{
	char why[CCL_ERR_LEN] = "";

	for (unsigned i = 0; i < times; i++) {
		clock_ms += 600;
		assert_int_equal(ccl_managed_watch(managed, why), 0);
	}
}

/* While the job works: who has gone is followed by whoever listens, who hangs as well; one that
 * loses an answer now and then stays. */
static void followed(void **state)
{
	char err[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b");
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	asked[0] = '\0';
	is_open = false;
	nobody_at = "/a";
	watch(5);
	assert_non_null(strstr(asked, "/b.h "));
	assert_null(strstr(asked, "/a.h "));
	nobody_at = NULL;
	asked[0] = '\0';
	hangs_at = "/b";
	watch(2);
	hangs_at = NULL;
	watch(1);
	hangs_at = "/b";
	watch(2);
	assert_string_equal(asked, "/b.h /b.h /b.h /b.h /b.h ");
	watch(6);
	assert_non_null(strstr(asked, "/a.h "));
}

/* Watches ten times a second, none of which takes any time, until this is called: ms. */
static int64_t watch_until(const char *call)
{
	const int64_t from = clock_ms;
	char why[CCL_ERR_LEN] = "";

	while (!strstr(asked, call) && clock_ms - from < 20000) {
		const int64_t at = clock_ms += 100;

		assert_int_equal(ccl_managed_watch(managed, why), 0);
		assert_int_equal(clock_ms, at);
	}
	return clock_ms - from;
}

/* Who takes each connection and closes it, or speaks something else, is nobody: neither who joins
 * nor who works stays with it. However many they are, a round is one by all of them before there is
 * a pause. */
static void takes_and_closes(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		char err[CCL_ERR_LEN] = "";

		start(state);
		resets_rc = i ? -EPROTO : -ECONNRESET;
		several("/a,/b,/c,/d");
		assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
		asked[0] = '\0';
		resets_at = "/a,/b,/c";
		assert_in_range(watch_until("/d.h "), 0, 1000);
		resets_at = "";
		watch_until("/a.h /b.h /c.h /d.h ");
		asked[0] = '\0';
		assert_in_range(watch_until("/a.h /b.h /c.h /d.h "), 2000, 2600);
		ccl_managed_leave(managed, false);
		managed = NULL;
	}
}

/* Machines that are off answer nothing: each has what is a dial's, without a pause after it, and
 * nobody stands meanwhile; a round in which nobody was found is followed by one. */
static void silent_ones(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/s,/t,/u,/b");
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	asked[0] = '\0';
	is_open = false;
	nobody_at = "/a";
	silent = true;
	assert_in_range(watch_until("/b.h "), 3 * DIAL_MS, 3 * (DIAL_MS + 100) + 100);
	several("/a,/s");
	ccl_managed_leave(managed, false);
	managed = NULL;
	nobody_at = NULL;
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	is_open = false;
	nobody_at = "/a";
	clock_ms += 500;
	assert_int_equal(ccl_managed_watch(managed, why), 0);
	nobody_at = NULL;
	asked[0] = '\0';
	assert_in_range(watch_until("/a.h "), DIAL_MS + 2000, DIAL_MS + 2100);
}

/* A dial that takes a while is looked at each time, and who leaves then says nothing. */
static void dialled_meanwhile(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	(void)state;
	several("/a,/b");
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
	asked[0] = '\0';
	is_open = false;
	looks = 3;
	assert_in_range(watch_until("/a.h "), 400, 400);
	is_open = false;
	looks = 3;
	clock_ms += 2000;
	asked[0] = '\0';
	assert_int_equal(ccl_managed_watch(managed, why), 0);
	ccl_managed_leave(managed, true);
	managed = NULL;
	assert_string_equal(asked, "");
}

/* Whose program computes looks once a second: a handshake gets the looks that it needs, and one
 * that says nothing is given up after a few. */
static void seldom_looked_at(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";

	for (unsigned i = 0; i < 2; i++) {
		start(state);
		several(i ? "/s,/b" : "/a");
		assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), 0);
		asked[0] = '\0';
		is_open = false;
		silent = true;
		looks = i ? 0 : 3;
		clock_ms += 2000;
		for (unsigned n = 0; n < 4; n++) {
			assert_string_equal(asked, "");
			clock_ms += 1000;
			assert_int_equal(ccl_managed_watch(managed, why), 0);
		}
		assert_string_equal(asked, i ? "/b.h " : "/a.h ");
		ccl_managed_leave(managed, false);
		managed = NULL;
	}
}

/* No random numbers, now or ever: that is said; it is not waited for. */
static void no_random(void **state)
{
	char err[CCL_ERR_LEN] = "";
	uint64_t n;

	(void)state;
	random_error = ENOSYS;
	assert_int_equal(join("{'epoch':1,'phase':'ring'}", NULL, err), -ENOSYS);
	assert_non_null(strstr(err, "no random numbers"));
	assert_int_equal(n_calls, 0);
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
		cmocka_unit_test_setup_teardown(followed, start, stop),
		cmocka_unit_test_setup_teardown(takes_and_closes, start, stop),
		cmocka_unit_test_setup_teardown(silent_ones, start, stop),
		cmocka_unit_test_setup_teardown(dialled_meanwhile, start, stop),
		cmocka_unit_test_setup_teardown(seldom_looked_at, start, stop),
		cmocka_unit_test_setup_teardown(no_random, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
