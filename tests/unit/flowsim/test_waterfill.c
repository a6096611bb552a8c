/* SPDX-License-Identifier: BSD-3-Clause */
/* Water-filling by hand, beside filling by its definition in small steps of the level, and by what
 * makes rates max-min fair: every flow has a full link on which none is faster. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/flowsim/waterfill.h"
#include "tests/unit/flowsim/flowsim_test.h"

enum { LINKS = 12, FLOWS = 16, MOST = 6 };

static const double CLOSE = 1e-9;

static struct fs_water *links_of(const double *capacity, unsigned n)
{
	struct fs_water *w = fs_water_new(n);

	assert_non_null(w);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(fs_water_capacity(w, i, capacity[i]), 0);
	return w;
}

static void settle(struct fs_water *w)
{
	const int *changed;

	assert_true(fs_water_settle(w, &changed) >= 0);
}

static void near(double a, double b)
{
	if (fabs(a - b) > CLOSE * (1 + fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

/* Two links, one flow over both: the textbook's. */
static void by_hand(void **state)
{
	const double capacity[] = {10, 4};
	struct fs_water *w = links_of(capacity, 2);
	int both = fs_water_add(w, (const unsigned[]){0, 1}, 2), first, second;

	(void)state;
	settle(w);
	near(fs_water_rate(w, both), 4);
	first = fs_water_add(w, (const unsigned[]){0}, 1);
	second = fs_water_add(w, (const unsigned[]){1}, 1);
	settle(w);
	near(fs_water_rate(w, both), 2);
	near(fs_water_rate(w, second), 2);
	near(fs_water_rate(w, first), 8);
	near(fs_water_used(w, 0), 10);
	assert_int_equal(fs_water_load(w, 1), 2);
	assert_int_equal(fs_water_remove(w, both), 0);
	settle(w);
	near(fs_water_rate(w, first), 10);
	near(fs_water_rate(w, second), 4);
	assert_int_equal(fs_water_load(w, 1), 1);
	fs_water_free(w);
}

/* A flow that comes twice over a link takes two shares of it, at one pace. */
static void twice_over_a_link(void **state)
{
	const double capacity[] = {9, 100};
	struct fs_water *w = links_of(capacity, 2);
	int twice = fs_water_add(w, (const unsigned[]){0, 1, 0}, 3);
	int once = fs_water_add(w, (const unsigned[]){0}, 1);

	(void)state;
	settle(w);
	near(fs_water_rate(w, twice), 3);
	near(fs_water_rate(w, once), 3);
	near(fs_water_used(w, 0), 9);
	near(fs_water_used(w, 1), 3);
	assert_int_equal(fs_water_load(w, 0), 3);
	fs_water_free(w);
}

static void refused(void **state)
{
	const double capacity[] = {1};
	struct fs_water *w = links_of(capacity, 1), *bare = fs_water_new(1);

	(void)state;
	assert_int_equal(fs_water_add(w, NULL, 0), -EINVAL);
	assert_int_equal(fs_water_add(w, (const unsigned[]){1}, 1), -ERANGE);
	assert_int_equal(fs_water_add(bare, (const unsigned[]){0}, 1), -ERANGE);
	assert_int_equal(fs_water_capacity(w, 1, 1), -ERANGE);
	assert_int_equal(fs_water_capacity(w, 0, 0), -ERANGE);
	assert_int_equal(fs_water_capacity(w, 0, NAN), -ERANGE);
	assert_int_equal(fs_water_remove(w, 0), -ENOENT);
	assert_int_equal(fs_water_add(w, (const unsigned[]){0}, 1), 0);
	assert_int_equal(fs_water_remove(w, 0), 0);
	assert_int_equal(fs_water_remove(w, 0), -ENOENT);
	fs_water_free(w);
	fs_water_free(bare);
}

/* What does not hang together with a change is left alone. */
static void components(void **state)
{
	const double capacity[] = {8, 8, 8};
	struct fs_water *w = links_of(capacity, 3);
	const int *changed;
	int a, b;

	(void)state;
	a = fs_water_add(w, (const unsigned[]){0, 1}, 2);
	b = fs_water_add(w, (const unsigned[]){2}, 1);
	assert_int_equal(fs_water_settle(w, &changed), 2);
	assert_int_equal(fs_water_settle(w, &changed), 0);
	assert_int_equal(fs_water_add(w, (const unsigned[]){1}, 1), 2);
	assert_int_equal(fs_water_settle(w, &changed), 2);
	near(fs_water_rate(w, a), 4);
	near(fs_water_rate(w, b), 8);
	assert_int_equal(fs_water_remove(w, b), 0);
	assert_int_equal(fs_water_settle(w, &changed), 0);
	assert_int_equal(fs_water_capacity(w, 1, 4), 0);
	assert_int_equal(fs_water_settle(w, &changed), 2);
	near(fs_water_rate(w, a), 2);
	fs_water_free(w);
}

struct net {
	double capacity[LINKS];
	int flow[FLOWS]; /* -1: none */
	unsigned n[FLOWS], link[FLOWS][MOST];
};

static unsigned times_over(const struct net *net, unsigned flow, unsigned link)
{
	unsigned times = 0;

	for (unsigned i = 0; i < net->n[flow]; i++)
		times += net->link[flow][i] == link;
	return net->flow[flow] >= 0 ? times : 0;
}

/* By definition: the level rises to where the next link is full, what goes over that stays. */
static void by_definition(const struct net *net, double rate[FLOWS])
{
	bool still[FLOWS] = {false};
	double level = 0;

	for (unsigned round = 0; round <= FLOWS; round++) {
		double step = INFINITY, room[LINKS];

		for (unsigned l = 0; l < LINKS; l++) {
			unsigned rising = 0;

			room[l] = net->capacity[l];
			for (unsigned f = 0; f < FLOWS; f++) {
				unsigned times = times_over(net, f, l);

				room[l] -= times * (still[f] ? rate[f] : level);
				rising += still[f] ? 0 : times;
			}
			if (rising > 0 && room[l] / rising < step)
				step = room[l] / rising;
		}
		if (isinf(step))
			return;
		level += step;
		for (unsigned l = 0; l < LINKS; l++) {
			double used = 0;

			for (unsigned f = 0; f < FLOWS; f++)
				used += times_over(net, f, l) * (still[f] ? rate[f] : level);
			if (used < net->capacity[l] * (1 - CLOSE))
				continue;
			for (unsigned f = 0; f < FLOWS; f++) {
				if (!still[f] && times_over(net, f, l)) {
					still[f] = true;
					rate[f] = level;
				}
			}
		}
	}
}

/* Nothing over capacity; each flow has a full link on which it is among the fastest. */
static void fair(const struct fs_water *w, const struct net *net)
{
	for (unsigned f = 0; f < FLOWS; f++) {
		bool held = net->flow[f] < 0;

		for (unsigned l = 0; l < LINKS; l++) {
			bool fastest = times_over(net, f, l) > 0;

			assert_true(fs_water_used(w, l) <= net->capacity[l] * (1 + CLOSE));
			for (unsigned o = 0; fastest && o < FLOWS; o++)
				fastest = !times_over(net, o, l) ||
					  fs_water_rate(w, net->flow[o]) <=
						  fs_water_rate(w, net->flow[f]) * (1 + CLOSE);
			held = held ||
			       (fastest && fs_water_used(w, l) >= net->capacity[l] * (1 - CLOSE));
		}
		assert_true(held);
	}
}

static void change(struct fs_water *w, struct net *net, uint64_t *random)
{
	unsigned f = test_random(random) % FLOWS, l = test_random(random) % LINKS;

	if (test_random(random) % 8 == 0) {
		net->capacity[l] = 1 + test_random(random) % 20;
		assert_int_equal(fs_water_capacity(w, l, net->capacity[l]), 0);
		return;
	}
	if (net->flow[f] >= 0) {
		assert_int_equal(fs_water_remove(w, net->flow[f]), 0);
		net->flow[f] = -1;
		return;
	}
	net->n[f] = 1 + test_random(random) % MOST;
	for (unsigned i = 0; i < net->n[f]; i++)
		net->link[f][i] = test_random(random) % LINKS;
	net->flow[f] = fs_water_add(w, net->link[f], net->n[f]);
	assert_true(net->flow[f] >= 0);
}

static void beside_the_definition(void **state)
{
	uint64_t random = 51;

	(void)state;
	for (unsigned k = 0; k < 200; k++) {
		struct net net;
		struct fs_water *w;

		memset(&net, 0, sizeof(net));
		for (unsigned i = 0; i < LINKS; i++)
			net.capacity[i] = 1 + test_random(&random) % 20;
		for (unsigned i = 0; i < FLOWS; i++)
			net.flow[i] = -1;
		w = links_of(net.capacity, LINKS);
		for (unsigned step = 0; step < 40; step++) {
			double rate[FLOWS] = {0};
			unsigned changes = 1 + test_random(&random) % 3;

			for (unsigned i = 0; i < changes; i++)
				change(w, &net, &random);
			settle(w);
			by_definition(&net, rate);
			for (unsigned f = 0; f < FLOWS; f++) {
				if (net.flow[f] >= 0)
					near(fs_water_rate(w, net.flow[f]), rate[f]);
			}
			fair(w, &net);
		}
		fs_water_free(w);
	}
}

/* Thousands of flows, none left over; links no fuller than they are. */
static void many(void **state)
{
	enum { MANY_LINKS = 2000, MANY = 5000 };
	struct fs_water *w = fs_water_new(MANY_LINKS);
	uint64_t random = 52;
	double sum = 0, used = 0;

	(void)state;
	for (unsigned i = 0; i < MANY_LINKS; i++)
		assert_int_equal(fs_water_capacity(w, i, 12.5), 0);
	for (int i = 0; i < MANY; i++) {
		unsigned link[4];

		for (unsigned k = 0; k < 4; k++)
			link[k] = test_random(&random) % MANY_LINKS;
		assert_int_equal(fs_water_add(w, link, 4), i);
	}
	settle(w);
	for (int i = 0; i < MANY; i++) {
		assert_true(fs_water_rate(w, i) > 0);
		sum += 4 * fs_water_rate(w, i);
	}
	for (unsigned i = 0; i < MANY_LINKS; i++)
		used += fs_water_used(w, i);
	near(used, sum);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(fs_water_remove(w, i), 0);
	settle(w);
	for (unsigned i = 0; i < MANY_LINKS; i++)
		assert_int_equal(fs_water_load(w, i), 0);
	fs_water_free(w);
}

int run_waterfill_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand),
		cmocka_unit_test(twice_over_a_link), cmocka_unit_test(refused),
		cmocka_unit_test(components), cmocka_unit_test(beside_the_definition),
		cmocka_unit_test(many)};

	return cmocka_run_group_tests_name("waterfill", tests, NULL, NULL);
}
