/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's desk: the lease on all switches of a tree or on none; the group that begins anew on all
 * of them. Switches are imaginary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/ccl/group.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/resync.h"
#include "tests/unit/ccl/fake_switch.h"

/* The desk's patience with a switch is a part of the timeout: not of a crowded machine's. */
enum { N = 3, LONG_MS = 60000, TIMEOUT_MS = 3600000 };

static struct ccl_group *group;
static struct fake_switch sw[N];
static struct ccl_desk desk;

/* A spine with the highest address and two leaves. */
static json_t *document(void)
{
	static const char *const fields[] = {"10.77.255.9", "10.77.255.2", "10.77.255.1"};
	json_t *switches = json_array(), *doc;

	for (unsigned s = 0; s < N; s++) {
		char name[8];
		json_t *one;

		snprintf(name, sizeof(name), "s%u", s);
		one = json_pack(
			"{s:s, s:s, s:s}", "name", name, "socket", sw[s].path, "ip", fields[s]);
		if (s == 0)
			json_object_set_new(one, "children",
				json_pack("[{s:s, s:s}, {s:s, s:s}]", "switch", "s1", "port", "a",
					"switch", "s2", "port", "b"));
		else
			json_object_update_new(
				one, json_pack("{s:s, s:s, s:[{s:i, s:s}]}", "parent", "s0",
					     "parent_port", "up", "children", "rank", (int)s - 1,
					     "port", "h"));
		json_array_append_new(switches, one);
	}
	doc = json_pack("{s:s, s:s, s:i, s:s, s:s, s:[{s:s}, {s:s}], s:o}", "name", "job", "lease",
		"pool", "timeout_ms", TIMEOUT_MS, "bootstrap", "unix:/tmp/ccl-lease", "mode", "III",
		"ranks", "ip", "10.77.0.1", "ip", "10.77.0.2", "switches", switches);
	return doc;
}

static int set_up(void **state)
{
	char err[CCL_ERR_LEN];
	json_t *doc;

	(void)state;
	for (unsigned s = 0; s < N; s++) {
		sw[s] = (struct fake_switch){.number = s, .missing_rank = -1};
		snprintf(sw[s].path, sizeof(sw[s].path), "/tmp/ccl-lease-%d-%u", getpid(), s);
		fake_switch_start(&sw[s]);
	}
	doc = document();
	assert_int_equal(ccl_group_parse(doc, &group, err), 0);
	json_decref(doc);
	assert_int_equal(ccl_lease_desk_open(group, &desk, err), 0);
	return 0;
}

static void stop_switches(void)
{
	for (unsigned s = 0; s < N; s++) {
		if (sw[s].stop)
			continue;
		fake_switch_stop(&sw[s]);
		assert_string_equal(sw[s].breach, "");
	}
}

static int tear_down(void **state)
{
	(void)state;
	if (desk.close)
		desk.close(desk.arg);
	desk.close = NULL;
	stop_switches();
	ccl_group_free(group);
	return 0;
}

static int last_rc;

static bool acquire(char why[CCL_DESK_WHY])
{
	struct pollfd p = {.fd = desk.fd, .events = POLLIN};
	int rc = 1;

	desk.ask(desk.arg, CCL_LEASE_ACQUIRE);
	assert_int_equal(poll(&p, 1, LONG_MS), 1);
	assert_int_equal(desk.answer(desk.arg, &last_rc, why), 1);
	assert_int_equal(desk.answer(desk.arg, &rc, why), 0);
	return last_rc == 0;
}

/* To look at what has happened, the desk's work must be done. */
static void close_desk(void)
{
	desk.close(desk.arg);
	desk.close = NULL;
	stop_switches();
}

/* In the order of addresses; a release before the next acquire. */
static void all(void **state)
{
	char why[CCL_DESK_WHY];

	(void)state;
	assert_true(acquire(why));
	desk.ask(desk.arg, CCL_LEASE_RELEASE);
	assert_true(acquire(why));
	desk.ask(desk.arg, CCL_LEASE_RELEASE);
	close_desk();
	for (unsigned s = 0; s < N; s++) {
		assert_int_equal(sw[s].acquires, 2);
		assert_int_equal(sw[s].releases, 2);
	}
	assert_true(sw[2].acquired_at < sw[1].acquired_at);
	assert_true(sw[1].acquired_at < sw[0].acquired_at);
}

/* The last one asked says no: what the others have given is given back at once. */
static void or_nothing(void **state)
{
	char why[CCL_DESK_WHY];

	(void)state;
	sw[0].fail_method = "lease.acquire";
	sw[0].fail_errno = EBUSY;
	sw[0].fail_times = 1;
	assert_false(acquire(why));
	assert_string_equal(why, "switch s0: the test says no");
	assert_int_equal(last_rc, -EBUSY); /* may be waited for */
	assert_true(acquire(why));
	close_desk();
	assert_int_equal(sw[0].acquires, 1);
	assert_int_equal(sw[0].releases, 0);
	for (unsigned s = 1; s < N; s++) {
		assert_int_equal(sw[s].acquires, 2);
		assert_int_equal(sw[s].releases, 1);
	}
}

static void first_refuses(void **state)
{
	char why[CCL_DESK_WHY];

	(void)state;
	sw[2].fail_method = "lease.acquire";
	sw[2].fail_errno = EBUSY;
	assert_false(acquire(why));
	close_desk();
	for (unsigned s = 0; s < N; s++) {
		assert_int_equal(sw[s].acquires, 0);
		assert_int_equal(sw[s].releases, 0);
	}
}

/* A switch that cannot be reached. */
static void unreachable(void **state)
{
	char why[CCL_DESK_WHY];

	(void)state;
	fake_switch_stop(&sw[1]);
	assert_false(acquire(why));
	assert_non_null(strstr(why, "switch s1: "));
	assert_non_null(strstr(why, "no such socket"));
	assert_int_equal(last_rc, -ETIMEDOUT); /* that nobody waits for */
	close_desk();
	assert_int_equal(sw[2].acquires, 1);
	assert_int_equal(sw[2].releases, 1);
	assert_int_equal(sw[0].acquires, 0);
}

/* ---- queue pairs that begin anew ---- */

static int begin_anew(uint32_t psn, unsigned timeout_ms, char why[CCL_DESK_WHY])
{
	struct ccl_desk d;
	char err[CCL_ERR_LEN];
	struct pollfd p;
	int rc = 1;

	group->timeout_ns = timeout_ms * 1000000ull;
	assert_int_equal(ccl_resync_desk_open(group, &d, err), 0);
	p = (struct pollfd){.fd = d.fd, .events = POLLIN};
	d.ask(d.arg, psn);
	assert_int_equal(poll(&p, 1, LONG_MS), 1);
	assert_int_equal(d.answer(d.arg, &rc, why), 1);
	d.close(d.arg);
	stop_switches();
	return rc;
}

/* A switch that is not ready, or does not know yet that all have finished, is asked again. */
static void anew(void **state)
{
	char why[CCL_DESK_WHY];

	(void)state;
	sw[1].not_ready = 2;
	sw[0].fail_method = "group.resync";
	sw[0].fail_errno = EBUSY;
	sw[0].fail_times = 3;
	assert_int_equal(begin_anew(0xfffffe, TIMEOUT_MS, why), 0);
	assert_int_equal(sw[2].resyncs, 1);
	assert_int_equal(sw[1].resyncs, 3);
	assert_int_equal(sw[0].resyncs, 1);
	for (unsigned s = 0; s < N; s++)
		assert_int_equal(sw[s].psn, 0xfffffe);
}

static void not_anew(void **state)
{
	char why[CCL_DESK_WHY];

	(void)state;
	sw[1].fail_method = "group.resync";
	sw[1].fail_errno = EINVAL;
	assert_int_equal(begin_anew(5, TIMEOUT_MS, why), -EINVAL);
	assert_string_equal(why, "switch s1: the test says no");
	assert_int_equal(sw[2].resyncs, 1);
	assert_int_equal(sw[0].resyncs, 0);
}

/* Before the other ranks lose their patience. */
static void not_anew_in_time(void **state)
{
	char why[CCL_DESK_WHY];

	(void)state;
	sw[2].not_ready = UINT32_MAX;
	assert_int_equal(begin_anew(5, 200, why), -ETIMEDOUT);
	assert_memory_equal(why, "switch s2", 9); /* is not ready, or did not say so in time */
}

static void refused(const char *field, json_t *value, const char *text)
{
	json_t *doc = document();
	struct ccl_group *g;
	char err[CCL_ERR_LEN];

	json_object_set_new(doc, field, value);
	assert_int_equal(ccl_group_parse(doc, &g, err), -EINVAL);
	if (!strstr(err, text))
		fail_msg("\"%s\" does not contain \"%s\"", err, text);
	json_decref(doc);
}

static void group_files(void **state)
{
	json_t *doc = document();
	struct ccl_group *g;
	char err[CCL_ERR_LEN];

	(void)state;
	assert_string_equal(group->lease, "pool");
	assert_int_equal(group->lease_ms, TIMEOUT_MS);
	refused("lease", json_string("a b"), "lease: \"a b\" is not made of letters");
	refused("lease", json_string(""), "lease: must have 1..31 bytes");
	refused("lease_ms", json_integer(9), "lease_ms: 9 is not in 10..3600000");
	refused("mode", json_string("I"), "lease: is for modes II and III, not I");
	refused("mode", json_string("ring"), "lease: is for modes II and III, not ring");
	refused("verb", json_string("read"), "verb: \"read\" must be send or write");
	refused("fallback", json_false(), "lease: needs \"fallback\"");
	refused("flags", json_pack("{s:b}", "reproducible", 1), "lease: a reproducible group");
	refused("lease_wait_ms", json_integer(-1), "lease_wait_ms: -1 is not in 0..900000");
	assert_int_equal(group->lease_wait_ms, 0);
	json_object_set_new(doc, "timeout_ms", json_integer(1000));
	json_object_set_new(doc, "lease_wait_ms", json_integer(250));
	assert_int_equal(ccl_group_parse(doc, &g, err), 0);
	assert_int_equal(g->lease_wait_ms, 250);
	ccl_group_free(g);
	json_object_set_new(doc, "lease_wait_ms", json_integer(251));
	assert_int_equal(ccl_group_parse(doc, &g, err), -EINVAL);
	assert_string_equal(err, "lease_wait_ms: 251 is more than 250, a quarter of timeout_ms, in "
				 "which all ranks have to know");
	json_object_del(doc, "lease_wait_ms");
	json_object_set_new(doc, "lease_ms", json_integer(50));
	json_object_del(doc, "lease");
	assert_int_equal(ccl_group_parse(doc, &g, err), -EINVAL);
	assert_string_equal(err, "lease_ms: is for groups with a \"lease\"");
	json_object_del(doc, "lease_ms");
	json_object_set_new(doc, "lease_wait_ms", json_integer(50));
	assert_int_equal(ccl_group_parse(doc, &g, err), -EINVAL);
	assert_string_equal(err, "lease_wait_ms: is for groups with a \"lease\"");
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(all),
		T(or_nothing),
		T(first_refuses),
		T(unreachable),
		T(anew),
		T(not_anew),
		T(not_anew_in_time),
		T(group_files),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
