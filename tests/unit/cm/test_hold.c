/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come before anybody listens, how soon what was lost is said again, and who has not
 * heard of the end. */
#include <errno.h>

#include "tests/unit/cm/pair.h"

int run_hold_tests(void);

static void expect_held(const struct pair *pair, unsigned held, unsigned refused)
{
	assert_int_equal(cm_count(pair->end[1].cm, CM_C_HELD), held);
	assert_int_equal(cm_count(pair->end[1].cm, CM_C_HELD_REFUSED), refused);
}

static void listens_in_time(void **state)
{
	struct pair *pair = pair_create(1);
	struct user *a, *b;

	(void)state;
	pair->end[1].answer = CM_LATER;
	a = pair_connect(pair, 0, 0x77);
	pair_run(pair, pair->now + 200 * MS);
	assert_int_equal(pair->end[1].n_user, 0);
	assert_false(a->rejected);
	pair->end[1].answer = 0;
	pair_run(pair, pair->now + 6 * MS);
	assert_int_equal(pair->end[1].n_user, 1);
	b = pair_last(pair, 1);
	assert_int_equal(b->msg.req.qpn, 0x77);
	assert_string_equal((const char *)b->msg.private_data, "hello");
	assert_int_equal(pair_accept(pair, b, 0x88), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(a->rep);
	expect_held(pair, 1, 0);
	pair_finish(pair);
}

static void nobody_comes(void **state)
{
	struct pair *pair = pair_create(2);
	struct user *a;

	(void)state;
	pair->end[1].answer = CM_LATER;
	a = pair_connect(pair, 0, 1);
	pair_run(pair, pair->now + 300 * MS);
	assert_true(a->rejected);
	assert_int_equal(a->msg.rej.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(cm_conns(pair->end[1].cm), 0);
	expect_held(pair, 1, 1);
	pair_finish(pair);
}

/* The listener has come, and has no use for this one. */
static void refused_at_last(void **state)
{
	struct pair *pair = pair_create(3);
	struct user *a;

	(void)state;
	pair->end[1].answer = CM_LATER;
	a = pair_connect(pair, 0, 1);
	pair_run(pair, pair->now + 20 * MS);
	pair->end[1].answer = CM_REJ_CONSUMER;
	pair_run(pair, pair->now + 20 * MS);
	assert_true(a->rejected);
	assert_int_equal(a->msg.rej.reason, CM_REJ_CONSUMER);
	expect_held(pair, 1, 1);
	pair_finish(pair);
}

static void sidr_waits_too(void **state)
{
	for (unsigned comes = 0; comes < 2; comes++) {
		struct pair *pair = pair_create(4);
		const struct cm_path path = pair_path(pair, 0);
		const struct cm_sidr_rep rep = {.qpn = 0x55, .qkey = 1};
		struct user *a = &pair->end[0].user[0];

		(void)state;
		pair->end[0].n_user = 1;
		pair->end[1].answer = CM_LATER;
		assert_int_equal(cm_sidr_request(pair->end[0].cm, &path, 0x1110007, NULL, 0, a,
					 pair->now, &a->conn),
			0);
		/* The request comes again, and is the same one. */
		pair_run(pair, pair->now + 150 * MS);
		assert_int_equal(pair->end[0].sent[CM_SIDR_REQ], 2);
		if (comes) {
			pair->end[1].answer = 0;
			pair_run(pair, pair->now + 20 * MS);
			assert_int_equal(pair->end[1].n_user, 1);
			assert_int_equal(
				cm_sidr_reply(pair_last(pair, 1)->conn, &rep, NULL, 0, pair->now),
				0);
		}
		pair_run(pair, pair->now + 300 * MS);
		assert_true(a->sidr);
		assert_int_equal(
			a->msg.sidr_rep.status, comes ? CM_SIDR_VALID : CM_SIDR_NO_SERVICE);
		expect_held(pair, 1, !comes);
		pair_finish(pair);
	}
}

/* Requests for nothing must not fill the table. */
static void only_so_many(void **state)
{
	struct pair *pair = pair_create(5);
	unsigned rejected = 0;

	(void)state;
	pair->end[1].answer = CM_LATER;
	for (unsigned i = 0; i < 20; i++)
		pair_connect(pair, 0, 100 + i);
	pair_run(pair, pair->now + 20 * MS);
	for (unsigned i = 0; i < 20; i++)
		rejected += pair->end[0].user[i].rejected;
	assert_int_equal(rejected, 4);
	assert_int_equal(cm_conns(pair->end[1].cm), 16);
	pair_run(pair, pair->now + 300 * MS);
	expect_held(pair, 16, 16);
	/* And there is room again. */
	pair_connect(pair, 0, 200);
	pair_run(pair, pair->now + 20 * MS);
	expect_held(pair, 17, 16);
	pair_finish(pair);
}

static void shut_while_held(void **state)
{
	struct pair *pair = pair_create(6);
	struct user *a;

	(void)state;
	pair->end[1].answer = CM_LATER;
	a = pair_connect(pair, 0, 1);
	pair_run(pair, pair->now + 20 * MS);
	pair->end[1].answer = 0;
	cm_shutdown(pair->end[1].cm, pair->now);
	pair_run(pair, pair->now + 20 * MS);
	assert_true(a->rejected);
	assert_int_equal(pair->end[1].n_user, 0);
	pair_finish(pair);
}

static void soon_said_again(void **state)
{
	struct pair *pair = pair_create(7);
	struct user *a, *b;

	(void)state;
	pair->lose_attr = CM_REQ;
	pair->lose_n = 1;
	pair_connect(pair, 0, 1);
	pair_run(pair, pair->now + 100 * MS);
	assert_int_equal(pair->end[1].n_user, 1);
	pair_finish(pair);

	pair = pair_create(8);
	pair_establish(pair, &a, &b);
	pair->lose_attr = CM_DREQ;
	pair->lose_n = 2;
	assert_int_equal(cm_disconnect(a->conn, pair->now), 0);
	pair_run(pair, pair->now + 100 * MS);
	assert_int_equal(cm_unheard(pair->end[0].cm), 1);
	assert_false(b->disconnected);
	pair_run(pair, pair->now + 150 * MS);
	assert_true(b->disconnected);
	assert_int_equal(cm_disconnect(b->conn, pair->now), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_int_equal(cm_unheard(pair->end[0].cm), 0);
	pair_finish(pair);
}

int run_hold_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listens_in_time),
		cmocka_unit_test(nobody_comes),
		cmocka_unit_test(refused_at_last),
		cmocka_unit_test(sidr_waits_too),
		cmocka_unit_test(only_so_many),
		cmocka_unit_test(shut_while_held),
		cmocka_unit_test(soon_said_again),
	};

	return cmocka_run_group_tests_name("cm: held", tests, NULL, NULL);
}
