/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections in both directions under loss, doubling, overtaking and damage. Whatever happens,
 * each user hears of an end once, nobody is left waiting, and the tables are empty at the end. */
#include "tests/unit/cm/pair.h"

enum { CONNECTIONS = 20, SEEDS = 150 };

static bool ended(const struct user *user)
{
	return user->disconnected || user->rejected || user->unreachable;
}

/* What a user does when he has the turn. */
static void act(struct pair *pair, unsigned at, struct user *user)
{
	unsigned dice = (unsigned)(pair_random(pair) % 100);

	if (user->conn == NULL)
		return;
	if (ended(user)) {
		if (user->disconnected && dice < 50)
			cm_disconnect(user->conn, pair->now);
		else
			pair_release(pair, user);
	} else if (user->requested) {
		user->requested = false;
		if (dice < 10)
			cm_reject(user->conn, CM_REJ_CONSUMER, "no", 3, pair->now);
		else if (dice < 15)
			pair_release(pair, user);
		else
			pair_accept(pair, user,
				0x10000 * (at + 1) + (uint32_t)(user - pair->end[at].user));
	} else if (user->rep && !user->established) {
		if (dice < 10)
			cm_reject(user->conn, CM_REJ_CONSUMER, NULL, 0, pair->now);
		else
			user->established = cm_establish(user->conn, NULL, 0, pair->now) == 0;
	} else if (user->established && dice < 30) {
		cm_disconnect(user->conn, pair->now);
	} else if (dice < 2) {
		pair_release(pair, user);
	}
}

static unsigned run(uint64_t seed, unsigned loss, unsigned dup, unsigned late, unsigned corrupt)
{
	struct pair *pair = pair_create(seed);
	unsigned connected = 0;

	pair->loss = loss;
	pair->dup = dup;
	pair->late = late;
	pair->corrupt = corrupt;
	for (unsigned step = 0; step < 3000; step++) {
		unsigned at = (unsigned)(pair_random(pair) % 2);
		struct end *end = &pair->end[at];

		if (step % 100 == 0 && step / 100 < CONNECTIONS)
			pair_connect(pair, at, 0x1000 + step);
		if (end->n_user > 0)
			act(pair, at, &end->user[pair_random(pair) % end->n_user]);
		pair_run(pair, pair->now + 30 * MS);
	}
	for (unsigned i = 0; i < 2; i++)
		for (unsigned u = 0; u < pair->end[i].n_user; u++) {
			connected +=
				pair->end[i].user[u].established && pair->end[i].user[u].passive;
			pair_release(pair, &pair->end[i].user[u]);
		}
	pair_settle(pair);
	assert_int_equal(cm_conns(pair->end[0].cm), 0);
	assert_int_equal(cm_conns(pair->end[1].cm), 0);
	pair_destroy(pair);
	return connected;
}

static void weather(void **state)
{
	unsigned fine = 0, bad = 0, damaged = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		fine += run(seed, 0, 0, 0, 0);
		bad += run(seed, 150, 100, 200, 0);
		damaged += run(seed, 50, 50, 100, 100);
	}
	print_message("%u, %u and %u of %u connections were there\n", fine, bad, damaged,
		SEEDS * CONNECTIONS);
	/* Users reject or leave by dice; weather alone must not cost many. */
	assert_true(fine > SEEDS * CONNECTIONS / 2);
	assert_true(bad > fine * 3 / 4);
	assert_true(damaged > fine / 2);
}

int run_weather_tests(void);
int run_weather_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(weather)};

	return cmocka_run_group_tests_name("weather", tests, NULL, NULL);
}
