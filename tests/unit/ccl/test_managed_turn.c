/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank makes of the turns that a manager gives it. */
#include "fake_manager.h"

#define PLAN                                                                                       \
	"'plan':{'mode':'II','M':4,'W':8,'switches':[{'name':'s0','socket':'/s0','ip':'10.2.0.1'," \
	"'children':[{'rank':0,'port':'p0'},{'rank':1,'port':'p1'}]}]}"
#define WINDOW(at, length)                                                                  \
	"'window':{'lease':'manager-1','cycle_us':100000,'at_us':" #at ",'start_us':20000," \
	"'length_us':" #length "}"

/* A job that does not communicate all the time says so, gets a lease and its turn, and hears of it
 * anew; a turn that makes no sense is none. */
static void turns(void **state)
{
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";
	struct ccl_turn t;

	(void)state;
	fake_manager_start();
	fake.clock_ms = 5000;
	job.group.timeout_ns = UINT64_C(10000000000);
	job.group.duty = 300;
	if (fake_manager_join("{'epoch':1,'phase':'connecting'," PLAN "," WINDOW(40000, 30000) "}",
		    NULL, err))
		fail_msg("%s", err);
	fake.answers[0] = "{'epoch':1,'phase':'active'," WINDOW(10000, 50000) "}";
	assert_int_equal(json_integer_value(json_object_get(fake.asked_with, "duty")), 300);
	assert_true(json_is_true(json_object_get(fake.asked_with, "lease")));
	assert_string_equal(job.group.lease, "manager-1");
	assert_int_equal(job.group.lease_wait_ms, 101);
	assert_int_equal(job.group.turn.cycle_ns, 100000000);
	assert_int_equal(job.group.turn.zero_ns, 60000000); /* 5000 ms are 40 ms behind it */
	assert_int_equal(job.group.turn.start_ns, 20000000);
	assert_int_equal(job.group.turn.length_ns, 30000000);
	assert_true(ccl_managed_turn(job.managed, &t) && t.zero_ns == 60000000);
	assert_false(ccl_managed_turn(job.managed, &t));
	fake.clock_ms += 1000;
	assert_int_equal(ccl_managed_watch(job.managed, why), 0);
	assert_true(ccl_managed_turn(job.managed, &t));
	assert_true(t.zero_ns == 90000000 && t.length_ns == 50000000);
	fake.answers[0] = "{'epoch':1,'phase':'active'," WINDOW(100000, 50000) "}";
	fake.clock_ms += 1000;
	assert_int_equal(ccl_managed_watch(job.managed, why), 0);
	fake.answers[0] = "{'epoch':1,'phase':'active'," WINDOW(0, 90000) "}";
	fake.clock_ms += 1000;
	assert_int_equal(ccl_managed_watch(job.managed, why), 0);
	assert_false(ccl_managed_turn(job.managed, &t));
	fake_manager_stop();
	ccl_group_drop_tree(&job.group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(turns)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
