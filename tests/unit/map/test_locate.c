/* SPDX-License-Identifier: BSD-3-Clause */
/* Every link and every switch of a fabric of two planes, three T0s and T1s, six hosts, broken one
 * at a time; pairs of links; flaps; and what follows for paths. */
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

enum { MAX_FAULTS = 64, ALL = 1000, LINKS = F_HOSTS + F_T0 * F_T1 };
static const uint64_t MS = 1000000;
static struct fabric *f;

static struct map_config config(void)
{
	struct map_config c = map_defaults;

	c.timeout_ns = 2 * MS;
	return c;
}

static int start(void **state)
{
	const struct map_config c = config();

	(void)state;
	f = fabric_start(&c);
	fabric_run(f, 10 * MS);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	fabric_stop(f);
	return 0;
}

static struct map_fault fault(enum map_kind kind, unsigned plane, unsigned a, unsigned b)
{
	struct map_fault e = {(uint8_t)kind, (uint8_t)(plane + 1), MAP_DEAD, true, MAP_NOBODY,
		MAP_NOBODY, MAP_NOBODY};

	switch (kind) {
	case MAP_HOST_LINK:
		e.host = (uint16_t)a;
		e.group = (uint16_t)(a / F_DOWN);
		break;
	case MAP_T0:
		e.group = (uint16_t)a;
		break;
	case MAP_UPLINK:
		e.group = (uint16_t)a;
		e.uplink = (uint16_t)b;
		break;
	default:
		e.uplink = (uint16_t)a;
	}
	return e;
}

static void expect(const struct map_fault *want, unsigned n)
{
	struct map_fault got[MAX_FAULTS];
	const unsigned m = fabric_locate(f, got, MAX_FAULTS);

	for (unsigned i = 0; i < n; i++) {
		bool found = false;

		for (unsigned k = 0; k < m && k < MAX_FAULTS; k++)
			found |= got[k].kind == want[i].kind && got[k].plane == want[i].plane &&
				 got[k].state == want[i].state && got[k].sure == want[i].sure &&
				 got[k].host == want[i].host && got[k].group == want[i].group &&
				 got[k].uplink == want[i].uplink;
		if (!found)
			fail_msg("%s of plane %u, host %u, t0 %u, t1 %u is not named, %u others",
				map_kind_name(want[i].kind), want[i].plane, want[i].host,
				want[i].group, want[i].uplink, m);
	}
	assert_int_equal(m, n);
}

static unsigned *part(const struct map_fault *e)
{
	const unsigned p = e->plane - 1u;

	switch (e->kind) {
	case MAP_HOST_LINK:
		return &f->host_link[p][e->host];
	case MAP_T0:
		return &f->t0[p][e->group];
	case MAP_UPLINK:
		return &f->uplink[p][e->group][e->uplink];
	default:
		return &f->t1[p][e->uplink];
	}
}

/* In a fabric that was well. Then all is well again once enough probes have come back. */
static void breaks(void **state, struct map_fault want)
{
	start(state);
	*part(&want) = ALL;
	fabric_run(f, 10 * MS);
	expect(&want, 1);
	*part(&want) = 0;
	fabric_run(f, 50 * MS);
	want.state = MAP_LOSSY;
	expect(&want, 1);
	fabric_run(f, 60 * MS);
	expect(NULL, 0);
	stop(state);
}

static void nothing(void **state)
{
	(void)state;
	expect(NULL, 0);
	assert_in_range(f->sent, F_HOSTS * 8 * 10, F_HOSTS * 8 * 11);
}

static void every_single_one(void **state)
{
	for (unsigned p = 0; p < F_PLANES; p++) {
		for (unsigned i = 0; i < F_HOSTS; i++)
			breaks(state, fault(MAP_HOST_LINK, p, i, 0));
		for (unsigned i = 0; i < F_T0; i++)
			breaks(state, fault(MAP_T0, p, i, 0));
		for (unsigned i = 0; i < F_T1; i++)
			breaks(state, fault(MAP_T1, p, i, 0));
		for (unsigned i = 0; i < F_T0 * F_T1; i++)
			breaks(state, fault(MAP_UPLINK, p, i / F_T1, i % F_T1));
	}
}

static struct map_fault link_at(unsigned i)
{
	const unsigned p = i / LINKS, k = i % LINKS, u = k - F_HOSTS;

	if (k < F_HOSTS)
		return fault(MAP_HOST_LINK, p, k, 0);
	return fault(MAP_UPLINK, p, u / F_T1, u % F_T1);
}

/* Any two links are named as such; but for both that a T0 has to hosts: then nobody sees it. */
static void pairs(void **state)
{
	for (unsigned i = 0; i < F_PLANES * LINKS; i++)
		for (unsigned k = i + 1; k < F_PLANES * LINKS; k++) {
			struct map_fault want[] = {link_at(i), link_at(k)};

			start(state);
			*part(&want[0]) = *part(&want[1]) = ALL;
			fabric_run(f, 10 * MS);
			if (want[0].kind == MAP_HOST_LINK && want[1].kind == MAP_HOST_LINK &&
				want[0].plane == want[1].plane && want[0].group == want[1].group) {
				want[0] = fault(MAP_T0, want[0].plane - 1u, want[0].group, 0);
				expect(want, 1);
			} else {
				expect(want, 2);
			}
			fabric_stop(f);
		}
}

/* A T0 that is gone is not also the loss of its uplinks, and its silence accuses no T1. */
static void switches_together(void **state)
{
	const struct map_fault want[] = {fault(MAP_T0, 0, 1, 0), fault(MAP_T1, 0, 2, 0),
		fault(MAP_T1, 1, 2, 0), fault(MAP_UPLINK, 0, 0, 1)};

	(void)state;
	f->t0[0][1] = f->t1[0][2] = f->t1[1][2] = f->uplink[0][0][1] = ALL;
	fabric_run(f, 10 * MS);
	expect(want, 4);
}

/* A T0, or the link to it, that comes and goes accuses nobody behind it, whatever their rate. */
static void t0_flaps(void **state)
{
	struct map_fault got[MAX_FAULTS];

	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		f->t0[0][1] = f->host_link[1][5] = ALL;
		fabric_run(f, 20 * MS);
		f->t0[0][1] = f->host_link[1][5] = 0;
		for (unsigned i = 0; i < 40; i++) {
			unsigned n = fabric_locate(f, got, MAX_FAULTS);

			while (n-- > 0)
				assert_true(got[n].kind == MAP_T0 || got[n].kind == MAP_HOST_LINK);
			fabric_run(f, 5 * MS);
		}
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(map_agent_target(f->agent[2 + i], 0, 0)->link.flaps, 0);
}

/* One packet of five: lossy, and the switch is named for it as well as for silence. */
static void lossy(void **state)
{
	struct map_fault want[] = {fault(MAP_T1, 1, 0, 0), fault(MAP_HOST_LINK, 0, 4, 0)};

	(void)state;
	want[0].state = want[1].state = MAP_LOSSY;
	f->t1[1][0] = 200;
	f->host_link[0][4] = 200;
	fabric_run(f, 200 * MS);
	expect(want, 2);
}

/* Up for 150 ms, down for 20: good at first, then no more, however it is at the moment. */
static void flapping(void **state)
{
	struct map_fault want = fault(MAP_UPLINK, 0, 2, 1);
	const struct map_link *l = &map_agent_target(f->agent[4], 0, 1)->link;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		f->uplink[0][2][1] = ALL;
		fabric_run(f, 20 * MS);
		f->uplink[0][2][1] = 0;
		fabric_run(f, 150 * MS);
		assert_int_equal(l->state, i == 0 ? MAP_GOOD : MAP_LOSSY);
	}
	want.state = MAP_LOSSY;
	expect(&want, 1);
	fabric_run(f, 100 * MS);
	expect(NULL, 0);
}

/* Nobody else to compare with: said as not sure. */
static void one_agent(void **state)
{
	struct map_seen seen = {.host = 7, .group = 3, .plane = 1, .t0 = MAP_GOOD};
	struct map_fault got[4];

	(void)state;
	seen.t1[0] = MAP_GOOD;
	seen.t1[1] = MAP_DEAD;
	assert_int_equal(map_locate(&seen, 1, 2, got, 4), 1);
	assert_int_equal(got[0].kind, MAP_UPLINK);
	assert_false(got[0].sure);
	seen.t0 = MAP_DEAD;
	assert_int_equal(map_locate(&seen, 1, 2, got, 4), 1);
	assert_int_equal(got[0].kind, MAP_HOST_LINK);
	assert_false(got[0].sure);
	seen.t0 = seen.t1[1] = MAP_UNKNOWN;
	assert_int_equal(map_locate(&seen, 1, 2, got, 4), 0);
	seen.t0 = MAP_GOOD;
	seen.t1[0] = seen.t1[1] = MAP_DEAD;
	assert_int_equal(map_locate(&seen, 1, 2, got, 1), 2); /* more than there is room for */
}

static bool denied(const struct map_fault *e, unsigned from, unsigned to, unsigned uplink)
{
	const struct map_path p = {1, (uint16_t)from, (uint16_t)(from / F_DOWN), (uint16_t)to,
		(uint16_t)(to / F_DOWN), (uint16_t)uplink};

	return map_denied(e, 1, &p);
}

/* Exactly the paths that a fault lies on. */
static void denylists(void **state)
{
	const struct map_fault e[] = {fault(MAP_HOST_LINK, 0, 2, 0), fault(MAP_T0, 0, 1, 0),
		fault(MAP_UPLINK, 0, 1, 2), fault(MAP_T1, 0, 2, 0), fault(MAP_T1, 1, 2, 0)};

	(void)state;
	for (unsigned from = 0; from < F_HOSTS; from++)
		for (unsigned to = 0; to < F_HOSTS; to++)
			for (unsigned k = 0; k < F_T1; k++) {
				const bool near = from / F_DOWN == to / F_DOWN,
					   at1 = from / F_DOWN == 1 || to / F_DOWN == 1;
				const unsigned up = near ? (unsigned)MAP_NOBODY : k;

				if (from == to)
					continue;
				assert_int_equal(denied(&e[0], from, to, up), from == 2 || to == 2);
				assert_int_equal(denied(&e[1], from, to, up), at1);
				assert_int_equal(
					denied(&e[2], from, to, up), !near && at1 && k == 2);
				assert_int_equal(denied(&e[3], from, to, up), !near && k == 2);
				assert_false(denied(&e[4], from, to, up)); /* another plane */
			}
}

/* The largest fabric that files may say of: as many rows times uplinks are looked at, not as many
 * times as many. In any order. */
static void large(void **state)
{
	enum { HOSTS = 4096, PLANES = 16, N = HOSTS * PLANES };
	struct map_seen *seen = calloc(N, sizeof(*seen));
	struct map_fault got[3];

	(void)state;
	assert_non_null(seen);
	for (unsigned i = 0; i < N; i++) {
		const unsigned at = i * 40503u % N; /* odd: each once */

		seen[at] = (struct map_seen){.host = (uint16_t)(i / PLANES),
			.group = (uint16_t)(i / PLANES),
			.plane = (uint8_t)(i % PLANES),
			.t0 = MAP_GOOD};
		memset(seen[at].t1, MAP_GOOD, sizeof(seen[at].t1));
		if (i % PLANES == 3)
			seen[at].t1[63] = MAP_DEAD;
		if (i == 77 * PLANES + 5)
			seen[at].t1[1] = MAP_LOSSY;
	}
	assert_int_equal(map_locate(seen, N, MAP_MAX_UPLINKS, NULL, 0), 2);
	assert_int_equal(map_locate(seen, N, MAP_MAX_UPLINKS, got, 3), 2);
	assert_true(got[0].kind == MAP_T1 && got[0].plane == 3 && got[0].uplink == 63);
	assert_true(got[1].kind == MAP_UPLINK && got[1].plane == 5 && got[1].group == 77);
	free(seen);
}

int test_locate(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing, start, stop),
		cmocka_unit_test(every_single_one),
		cmocka_unit_test(pairs),
		cmocka_unit_test_setup_teardown(switches_together, start, stop),
		cmocka_unit_test_setup_teardown(t0_flaps, start, stop),
		cmocka_unit_test_setup_teardown(lossy, start, stop),
		cmocka_unit_test_setup_teardown(flapping, start, stop),
		cmocka_unit_test(one_agent),
		cmocka_unit_test(denylists),
		cmocka_unit_test(large),
	};

	return cmocka_run_group_tests_name("locate", tests, NULL, NULL);
}
