/* SPDX-License-Identifier: BSD-3-Clause */
/* What switches tell of groups, leases and memory: the log has it, and job.explain. */
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static struct world w;

static void explains(const char *says)
{
	json_t *r = world_ask(&w, "job.explain", json_pack("{s:s}", "job", "job0"));

	if (!strstr(rpc_string(r, "line"), says))
		fail_msg("\"%s\" lacks \"%s\"", rpc_string(r, "line"), says);
	json_decref(r);
}

static void tell(const char *event)
{
	manager_heard(w.m, 0, event, strlen(event), w.now);
}

static struct inc_group *group_of(unsigned i, unsigned *slot)
{
	*slot = (unsigned)sw_group_find(w.sw[i].sw, "job0");
	assert_true(*slot > 0);
	return sw_group_get(w.sw[i].sw, *slot);
}

static int setup(void **state)
{
	(void)state;
	world_open(&w);
	world_start_job(&w, 0);
	world_pass(&w, 1000);
	assert_true(world_active(&w, 0));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_close(&w);
	for (unsigned r = 0; r < RANKS; r++)
		json_decref(w.job[0].rank[r].window);
	return 0;
}

/* Ranks' shares come to the spine from one leaf only. */
static void test_stalled(void **state)
{
	const unsigned spine = world_spine(&w, 0);
	unsigned slot;
	struct inc_group *g = group_of(spine, &slot);

	(void)state;
	fake_switch_arrived(w.sw[spine].sw, slot, g->start_psn, 1);
	g->last_progress_ns = w.now;
	world_pass(&w, 4500);
	assert_null(strstr(w.said, "no progress"));
	world_pass(&w, 1000);
	assert_non_null(strstr(w.said, "made no progress, waiting for rank 1"));
	explains("active: in the network");
	explains("; 0 s ago spine");
	explains(" made no progress, waiting for rank 1");
	assert_true(world_active(&w, 0));
}

static void tell_stall(const char *missing)
{
	char event[256];

	snprintf(event, sizeof(event),
		"{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"seq\":1,\"ns\":1,"
		"\"kind\":\"group_stalled\",\"group\":1,\"name\":\"x\",\"job\":\"job0\","
		"\"epoch\":%llu,\"missing\":[%s]}}",
		(unsigned long long)w.job[0].rank[0].epoch, missing);
	tell(event);
}

/* Who sees all of a leaf as one says less than the leaf, whichever is heard last. */
static void test_who_says_most(void **state)
{
	(void)state;
	tell_stall("2");
	tell_stall("2,3");
	explains("waiting for rank 2");
	world_pass(&w, 12000);
	explains("; 12 s ago leaf0 made no progress, waiting for rank 2");
	tell_stall("0,1");
	explains("; 0 s ago leaf0 made no progress, waiting for ranks 0,1");
}

static void test_failed(void **state)
{
	unsigned slot;
	struct inc_group *g = group_of(0, &slot);

	(void)state;
	g->fail_ep = 1;
	g->fail_reason = INC_FAIL_FATAL_NAK;
	g->state = INC_FAILED;
	world_pass(&w, 300);
	explains("over: its group failed on leaf0; fatal_nak, at its endpoint 1");
}

static void test_said(void **state)
{
	(void)state;
	tell("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"seq\":1,\"ns\":1,"
	     "\"kind\":\"lease_lost\",\"lease\":\"pool\"}}");
	assert_string_equal(w.said, "leaf0: lease pool was taken back from a holder in silence");
	tell("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"seq\":2,\"ns\":1,"
	     "\"kind\":\"memory_low\",\"arena_bytes\":100,\"arena_used_bytes\":95}}");
	assert_string_equal(w.said, "leaf0: its aggregation memory gets scarce");
	/* Of an event that says less, or of nobody's job, what there is. */
	tell("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"seq\":3,\"ns\":1,"
	     "\"kind\":\"group_stalled\",\"group\":1,\"name\":\"x\",\"job\":\"x\","
	     "\"epoch\":1,\"missing\":[0,1,2,3,4,5,6,7,8]}}");
	assert_string_equal(w.said, "job x: leaf0 made no progress, waiting for ranks "
				    "0,1,2,3,4,5,6,7 and more");
	tell("{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"seq\":4,\"ns\":1,"
	     "\"kind\":\"group_stalled\",\"group\":1,\"name\":\"x\",\"job\":\"x\"}}");
	assert_string_equal(w.said, "job x: leaf0 made no progress");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_stalled), T(test_who_says_most), T(test_failed), T(test_said)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
