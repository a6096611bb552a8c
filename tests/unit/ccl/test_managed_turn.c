/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank makes of the turns that a manager gives it. The client of the control socket is this
 * file's (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/managed.h"
#include "lib/ctl/client.h"

static const char *says; /* the manager, to every question; JSON with ' for " */
static json_t *asked_with;
static int64_t clock_ms = 5000;

static int64_t fake_now(void *arg)
{
	(void)arg;
	return clock_ms;
}

static const struct ctl_io io = {.now_ms = fake_now};

int __wrap_ctl_connect_over(const struct ctl_io *over, const char *path, unsigned timeout_ms,
	struct ctl_client **client, struct ctl_error *error);
int __wrap_ctl_connect_over(const struct ctl_io *over, const char *path, unsigned timeout_ms,
	struct ctl_client **client, struct ctl_error *error)
{
	(void)over, (void)path, (void)timeout_ms, (void)error;
	*client = (struct ctl_client *)&clock_ms;
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
	return true;
}

int __wrap_ctl_call(struct ctl_client *client, const char *method, const json_t *params,
	unsigned timeout_ms, json_t **result, struct ctl_error *error);
int __wrap_ctl_call(struct ctl_client *client, const char *method, const json_t *params,
	unsigned timeout_ms, json_t **result, struct ctl_error *error)
{
	char *text = strdup(says);

	(void)client, (void)timeout_ms;
	*error = (struct ctl_error){.index = -1};
	for (char *p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	*result = json_loads(text, 0, NULL);
	assert_non_null(*result);
	free(text);
	if (!strcmp(method, "job.join"))
		asked_with = json_deep_copy(params);
	return 0;
}

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
	struct wire_ip ips[2] = {wire_ip_from4(0x0a000001), wire_ip_from4(0x0a000002)};
	struct ccl_group group = {.name = "job",
		.manager = "/m",
		.n_ranks = 2,
		.rank_ip = ips,
		.timeout_ns = UINT64_C(10000000000),
		.fallback = true,
		.duty = 300,
		.io = &io};
	const struct ccl_ability able = {.skip = true, .device = "rnic0"};
	char err[CCL_ERR_LEN] = "", why[CCL_ERR_LEN] = "";
	struct ccl_managed *managed;
	struct ccl_turn t;

	(void)state;
	says = "{'epoch':1,'phase':'connecting'," PLAN "," WINDOW(40000, 30000) "}";
	if (ccl_managed_join(&group, 0, 1024, &able, &managed, why, err))
		fail_msg("%s", err);
	says = "{'epoch':1,'phase':'active'," WINDOW(10000, 50000) "}";
	assert_int_equal(json_integer_value(json_object_get(asked_with, "duty")), 300);
	assert_true(json_is_true(json_object_get(asked_with, "lease")));
	assert_string_equal(group.lease, "manager-1");
	assert_int_equal(group.lease_wait_ms, 101);
	assert_int_equal(group.turn.cycle_ns, 100000000);
	assert_int_equal(group.turn.zero_ns, 60000000); /* 5000 ms are 40 ms behind it */
	assert_int_equal(group.turn.start_ns, 20000000);
	assert_int_equal(group.turn.length_ns, 30000000);
	assert_true(ccl_managed_turn(managed, &t) && t.zero_ns == 60000000);
	assert_false(ccl_managed_turn(managed, &t));
	clock_ms += 1000;
	assert_int_equal(ccl_managed_watch(managed, why), 0);
	assert_true(ccl_managed_turn(managed, &t));
	assert_true(t.zero_ns == 90000000 && t.length_ns == 50000000);
	says = "{'epoch':1,'phase':'active'," WINDOW(100000, 50000) "}";
	clock_ms += 1000;
	assert_int_equal(ccl_managed_watch(managed, why), 0);
	says = "{'epoch':1,'phase':'active'," WINDOW(0, 90000) "}";
	clock_ms += 1000;
	assert_int_equal(ccl_managed_watch(managed, why), 0);
	assert_false(ccl_managed_turn(managed, &t));
	ccl_managed_leave(managed, false);
	ccl_group_drop_tree(&group);
	json_decref(asked_with);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(turns)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
