/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour cache on virtual time: who is asked when, what waits, what is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <string.h>

#include "dataplane/l2/neigh_cache.h"

static const uint64_t SECOND = UINT64_C(1000000000);
static const uint8_t old_mac[6] = {2, 0, 0, 0, 0, 1}, new_mac[6] = {2, 0, 0, 0, 0, 2};

static struct neigh_cache cache;
static unsigned asked[2], fates[3]; /* everybody, unicast; by fate */
static void *last_settled;
static bool is_needed, is_used;

static void ask(void *arg, const struct neigh_entry *e, bool unicast)
{
	(void)arg;
	assert_true(!unicast || e->state == NEIGH_PROBE);
	asked[unicast]++;
}

static void settle(void *arg, const struct neigh_entry *e, void *packet, enum neigh_fate fate)
{
	(void)arg;
	assert_true(fate != NEIGH_SEND || neigh_is_known(e));
	fates[fate]++;
	last_settled = packet;
}

static bool needed(void *arg, const struct neigh_entry *e)
{
	(void)arg, (void)e;
	return is_needed;
}

static bool used(void *arg, const struct neigh_entry *e)
{
	const bool was = is_used;

	(void)arg, (void)e;
	is_used = false;
	return was;
}

static const struct neigh_ops ops = {ask, settle, needed, used};

static int start(void **state)
{
	(void)state;
	neigh_cache_init(&cache, NEIGH_MAX, &ops, NULL);
	memset(asked, 0, sizeof(asked));
	memset(fates, 0, sizeof(fates));
	is_needed = is_used = false;
	return 0;
}

static struct wire_ip host(uint32_t i)
{
	return wire_ip_from4(0x0a010000 + i);
}

static void want(uint32_t i, int *packet, uint64_t now)
{
	const struct wire_ip ip = host(i);

	neigh_cache_want(&cache, 1, 0, &ip, packet, now);
}

static void hear(enum neigh_word word, uint32_t i, const uint8_t mac[6], uint64_t now)
{
	const struct wire_ip ip = host(i);

	neigh_cache_heard(&cache, word, 1, 0, &ip, mac, now);
}

static const struct neigh_entry *find(uint32_t i)
{
	const struct wire_ip ip = host(i);

	return neigh_cache_find(&cache, &ip);
}

static void answers(void **state)
{
	int p[NEIGH_MAX_WAITING + 1];

	(void)state;
	for (unsigned i = 0; i <= NEIGH_MAX_WAITING; i++)
		want(5, &p[i], SECOND);
	assert_int_equal(asked[0], 1);
	assert_ptr_equal(last_settled, &p[0]); /* the oldest made room */
	assert_int_equal(fates[NEIGH_CROWDED], 1);
	assert_int_equal(find(5)->state, NEIGH_INCOMPLETE);
	hear(NEIGH_ANSWERS, 5, old_mac, SECOND + 1);
	assert_int_equal(find(5)->state, NEIGH_REACHABLE);
	assert_int_equal(fates[NEIGH_SEND], NEIGH_MAX_WAITING);
	assert_ptr_equal(last_settled, &p[NEIGH_MAX_WAITING]);
	assert_true(cache.changed);
	want(5, &p[0], SECOND + 2);
	assert_int_equal(fates[NEIGH_SEND], NEIGH_MAX_WAITING + 1);
	assert_int_equal(asked[0], 1);
	assert_int_equal(cache.n_waiting, 0);
}

static void does_not_answer(void **state)
{
	int p;

	(void)state;
	want(5, &p, SECOND);
	for (uint64_t at = SECOND; at < 4 * SECOND; at += SECOND / 10)
		neigh_cache_tick(&cache, at);
	assert_int_equal(asked[0], 3);
	assert_int_equal(fates[NEIGH_UNREACHABLE], 0);
	neigh_cache_tick(&cache, 4 * SECOND);
	assert_int_equal(fates[NEIGH_UNREACHABLE], 1);
	assert_int_equal(find(5)->state, NEIGH_FAILED);
	want(5, &p, 5 * SECOND); /* at once, and nobody is asked */
	assert_int_equal(fates[NEIGH_UNREACHABLE], 2);
	assert_int_equal(asked[0], 3);
	neigh_cache_tick(&cache, 7 * SECOND);
	assert_null(find(5));
	assert_int_equal(cache.n, 0);
	assert_false(cache.changed);
}

/* Looked after while it is used, forgotten when it is not. */
static void ages(void **state)
{
	uint64_t at = SECOND;
	int p;

	(void)state;
	want(5, &p, at);
	hear(NEIGH_ANSWERS, 5, old_mac, at);
	is_used = true; /* before it is stale: of no account */
	neigh_cache_tick(&cache, at += NEIGH_REACHABLE_TIME);
	neigh_cache_tick(&cache, at);
	assert_int_equal(find(5)->state, NEIGH_STALE);
	is_used = true;
	neigh_cache_tick(&cache, at += SECOND);
	assert_int_equal(find(5)->state, NEIGH_PROBE);
	assert_int_equal(asked[1], 1);
	hear(NEIGH_ANSWERS, 5, old_mac, at);
	assert_int_equal(find(5)->state, NEIGH_REACHABLE);
	neigh_cache_tick(&cache, at += NEIGH_REACHABLE_TIME);
	neigh_cache_tick(&cache, at + NEIGH_STALE_TIME - 1);
	assert_int_equal(find(5)->state, NEIGH_STALE);
	cache.changed = false;
	neigh_cache_tick(&cache, at + NEIGH_STALE_TIME);
	assert_null(find(5));
	assert_true(cache.changed);
}

/* A used one that is silent: three requests to it, three to all; what a group needs stays. */
static void goes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = SECOND;
		int p;

		start(NULL);
		is_needed = i;
		want(5, &p, at);
		hear(NEIGH_ANSWERS, 5, old_mac, at);
		neigh_cache_tick(&cache, at += NEIGH_REACHABLE_TIME);
		is_used = true;
		for (unsigned k = 0; k < 70; k++)
			neigh_cache_tick(&cache, at += SECOND / 10);
		assert_int_equal(asked[1], 3);
		if (i) {
			assert_int_equal(find(5)->state, NEIGH_PROBE);
			assert_in_range(asked[0], 1 + 4, 1 + 5);
		} else {
			assert_int_equal(find(5)->state, NEIGH_FAILED);
			assert_int_equal(asked[0], 1 + 3);
		}
	}
}

/* Who says that a known neighbour has another MAC address is not believed while the old one
 * answers, whatever he says; when it does not any more, whoever is asked. */
static void claims(void **state)
{
	uint64_t at = SECOND;
	int p;

	(void)state;
	want(5, &p, at);
	hear(NEIGH_ANSWERS, 5, old_mac, at);
	cache.changed = false;
	for (unsigned word = NEIGH_ANSWERS; word <= NEIGH_ANNOUNCES; word++)
		hear(word, 5, new_mac, at);
	assert_int_equal(asked[1], 1); /* one question, however many say it */
	assert_memory_equal(find(5)->mac, old_mac, 6);
	hear(NEIGH_ANSWERS, 5, old_mac, at);
	assert_int_equal(find(5)->state, NEIGH_REACHABLE);
	for (unsigned i = 0; i < 1000; i++)
		hear(NEIGH_ANNOUNCES, 5, new_mac, at + i);
	assert_int_equal(asked[1], 1); /* and one in five seconds */
	assert_false(cache.changed);

	at += NEIGH_CHECK_EVERY;
	hear(NEIGH_ANNOUNCES, 5, new_mac, at);
	for (unsigned i = 0; i < 2; i++) {
		neigh_cache_tick(&cache, at += NEIGH_CHECK);
		hear(NEIGH_ANSWERS, 5, new_mac, at);
		assert_memory_equal(find(5)->mac, old_mac, 6);
	}
	assert_int_equal(asked[1], 4);
	neigh_cache_tick(&cache, at += NEIGH_RETRANS);
	assert_int_equal(asked[0], 2);
	hear(NEIGH_ANNOUNCES, 5, new_mac, at); /* no answer */
	assert_memory_equal(find(5)->mac, old_mac, 6);
	hear(NEIGH_ANSWERS, 5, new_mac, at);
	assert_memory_equal(find(5)->mac, new_mac, 6);
	assert_int_equal(find(5)->state, NEIGH_REACHABLE);
	assert_true(cache.changed);
	assert_int_equal(cache.count.moved, 1);
}

/* Who announces himself is nobody to us; who asks for us will want an answer. */
static void unasked(void **state)
{
	(void)state;
	hear(NEIGH_ANNOUNCES, 5, old_mac, SECOND);
	hear(NEIGH_ANSWERS, 5, old_mac, SECOND);
	assert_null(find(5));
	hear(NEIGH_ASKS, 5, old_mac, SECOND);
	assert_int_equal(find(5)->state, NEIGH_STALE);
	assert_int_equal(asked[0] + asked[1], 0);
	/* At another port or in another VLAN he is somebody else. */
	neigh_cache_heard(&cache, NEIGH_ASKS, 2, 0, &find(5)->ip, new_mac, SECOND);
	neigh_cache_heard(&cache, NEIGH_ASKS, 1, 7, &find(5)->ip, new_mac, SECOND);
	assert_int_equal(find(5)->state, NEIGH_STALE);
	assert_memory_equal(find(5)->mac, old_mac, 6);
}

/* Somebody sends to every address of a network; others still get through. */
static void scan(void **state)
{
	static int p[10000];
	uint64_t at = SECOND;
	const struct wire_ip friend = wire_ip_from4(0x0a020001);

	(void)state;
	for (unsigned i = 0; i < 10000; i++)
		want(i, &p[i], at += SECOND / 10000);
	assert_int_equal(cache.n, NEIGH_MAX_ASKED);
	assert_in_range(cache.count.requests, 64, NEIGH_BURST + NEIGH_RATE + 1);
	assert_int_equal(cache.n_waiting, NEIGH_MAX_ASKED);
	assert_int_equal(fates[NEIGH_CROWDED], 10000 - NEIGH_MAX_ASKED);
	/* At another port. */
	neigh_cache_want(&cache, 2, 0, &friend, &p[0], at);
	neigh_cache_heard(&cache, NEIGH_ANSWERS, 2, 0, &friend, old_mac, at);
	assert_int_equal(fates[NEIGH_SEND], 1);
	/* One that is scanned. */
	hear(NEIGH_ANSWERS, 7, old_mac, at);
	assert_int_equal(fates[NEIGH_SEND], 2);
	for (unsigned i = 0; i < 200; i++)
		neigh_cache_tick(&cache, at += SECOND / 10);
	assert_int_equal(cache.n, 2);
	assert_int_equal(cache.n_waiting, 0);
	neigh_cache_clear(&cache);
	assert_int_equal(cache.n, 0);
}

static void table_full(void **state)
{
	(void)state;
	cache.max_per_port = 100;
	for (unsigned i = 0; i < 1000; i++)
		hear(NEIGH_ASKS, i, old_mac, SECOND);
	assert_int_equal(cache.n, 100);
	assert_int_equal(cache.count.refused, 900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(answers, start),
		cmocka_unit_test_setup(does_not_answer, start),
		cmocka_unit_test_setup(ages, start),
		cmocka_unit_test_setup(goes, start),
		cmocka_unit_test_setup(claims, start),
		cmocka_unit_test_setup(unasked, start),
		cmocka_unit_test_setup(scan, start),
		cmocka_unit_test_setup(table_full, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
