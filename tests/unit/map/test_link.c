/* SPDX-License-Identifier: BSD-3-Clause */
/* One path: when it is dead, lossy, good again, and what flapping costs. */
#include <errno.h>

#include "lib/map/link.h"
#include "map_test.h"

static const struct map_link_config config = {
	.dead_run = 5, .lossy = 4, .good_run = 100, .good_max = 1000, .calm_ns = 1000000};
static struct map_link l;
static uint64_t now;

static int start(void **state)
{
	(void)state;
	now = 1000;
	map_link_init(&l, &config, now);
	return 0;
}

/* n probes; whether the last one changed the state. */
static bool note(unsigned n, bool answered)
{
	bool changed = false;

	while (n-- > 0)
		changed = map_link_note(&l, &config, answered, ++now);
	return changed;
}

static void begins(void **state)
{
	(void)state;
	assert_int_equal(l.state, MAP_UNKNOWN);
	note(4, true);
	assert_int_equal(l.state, MAP_UNKNOWN);
	assert_true(note(1, true));
	assert_int_equal(l.state, MAP_GOOD);
	start(state);
	note(4, false);
	assert_int_equal(l.state, MAP_LOSSY);
	assert_true(note(1, false));
	assert_int_equal(l.state, MAP_DEAD);
	assert_int_equal(l.flaps, 0);
}

/* A few losses are the weather; in a row they are not, nor many of the last 64. */
static void goes_bad(void **state)
{
	(void)state;
	note(10, true);
	note(3, false);
	note(64, true);
	assert_int_equal(l.state, MAP_GOOD);
	for (unsigned i = 0; i < 3; i++) {
		note(1, false);
		note(15, true);
	}
	assert_int_equal(l.state, MAP_GOOD);
	assert_true(note(1, false));
	assert_int_equal(l.state, MAP_LOSSY);
	note(5, false);
	assert_int_equal(l.state, MAP_DEAD);
	assert_int_equal(l.flaps, 1);
}

static void comes_back(void **state)
{
	(void)state;
	note(10, true);
	note(5, false);
	assert_int_equal(l.state, MAP_DEAD);
	note(1, true);
	assert_int_equal(l.state, MAP_LOSSY);
	note(98, true);
	assert_int_equal(l.state, MAP_LOSSY);
	note(1, false); /* from the beginning */
	note(99, true);
	assert_int_equal(l.state, MAP_LOSSY);
	assert_true(note(1, true));
	assert_int_equal(l.state, MAP_GOOD);
}

static unsigned until_good(void)
{
	unsigned n = 0;

	while (l.state != MAP_GOOD) {
		note(1, true);
		assert_true(++n < 10000);
	}
	return n;
}

/* Each time that it goes bad too soon it needs twice as many, up to a limit; calm wipes it out. */
static void flapping(void **state)
{
	static const unsigned need[] = {100, 200, 400, 800, 1000, 1000};

	(void)state;
	note(10, true);
	for (unsigned i = 0; i < sizeof(need) / sizeof(need[0]); i++) {
		note(5, false);
		assert_int_equal(until_good(), need[i]);
		assert_int_equal(l.flaps, i + 1);
	}
	now += config.calm_ns;
	note(5, false);
	assert_int_equal(until_good(), 100);
}

static void refused(void **state)
{
	struct map_link_config c = config;

	(void)state;
	assert_int_equal(map_link_check(&c), 0);
	c.dead_run = 65;
	assert_int_equal(map_link_check(&c), -EINVAL);
	c = config;
	c.lossy = 0;
	assert_int_equal(map_link_check(&c), -EINVAL);
	c = config;
	c.good_run = 63; /* it would be good with losses that make it lossy */
	assert_int_equal(map_link_check(&c), -EINVAL);
	c = config;
	c.good_max = 99;
	assert_int_equal(map_link_check(&c), -EINVAL);
	assert_int_equal(map_state_parse("dead"), MAP_DEAD);
	assert_int_equal(map_state_parse("gone"), -EINVAL);
	assert_int_equal(map_state_parse(NULL), -EINVAL);
}

int test_link(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(begins, start),
		cmocka_unit_test_setup(goes_bad, start),
		cmocka_unit_test_setup(comes_back, start),
		cmocka_unit_test_setup(flapping, start),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
