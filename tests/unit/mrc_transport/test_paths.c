/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths that go wrong under a connection that fills its link, after figures of the MRC paper,
 * scaled down: 4 (start-up with paths that are down), 12 and 13 (a path that drops 20 % is swapped
 * out and comes back), and a path that dies. Four planes of 12.5 Gb/s, virtual time. Each prints
 * what it saw. */
#include "tests/unit/mrc_transport/fabric.h"

#include <stdio.h>
#include <string.h>

enum { MBPS = 12500, WINDOW = 1 << 20 };

static const struct fabric_options two_per_plane = {.format = RNIC_MRC_SRV6,
	.ports = true,
	.n_paths = 2 * FABRIC_PORTS,
	.n_active = FABRIC_PORTS,
	.out = FABRIC_OUT};

static struct fabric *full_speed(const struct fabric_options *o)
{
	struct fabric *f = fabric_make(o);

	f->mbps = MBPS;
	f->mark_ns = FABRIC_RTT / 2;
	f->jitter = 0;
	f->fixed = FABRIC_LONGEST;
	fabric_messages(f, WINDOW, 0); /* more than it will do */
	return f;
}

/* Runs so long; Mb/s of payload that was placed for the first time. */
static uint64_t goodput(struct fabric *f, uint64_t ns)
{
	const uint64_t before = fabric_count(f, 1, "placed"), from = f->net.now;

	assert_false(fabric_run(f, ns));
	return (fabric_count(f, 1, "placed") - before) * FABRIC_MTU * 8000 / (f->net.now - from);
}

static enum mrc_ev_state state_of(const struct fabric *f, unsigned path)
{
	enum mrc_ev_state ev;

	assert_int_equal(0, rnic_mrc_ev_get(f->net.end[0].qp, path, &ev));
	return ev;
}

/* In use now, of the two of the first plane. */
static unsigned in_use(const struct fabric *f)
{
	return f->last[0][0] > f->last[0][FABRIC_PORTS] ? 0 : FABRIC_PORTS;
}

static void figures_12_and_13(void **state)
{
	struct fabric *f = full_speed(&two_per_plane);
	uint64_t usual, least = UINT64_MAX, before[2] = {0};
	unsigned a, b;

	(void)state;
	goodput(f, 2 * MS);
	usual = goodput(f, 7 * MS);
	a = in_use(f);
	b = FABRIC_PORTS - a;
	printf("# MRC paper, figures 12, 13: one EV drops 20%% from 0 ms to 5 ms; 2 paths in each "
	       "of 4 "
	       "planes\n#   ms   Gb/s  EV-A  EV-B  (packets)\n");
	for (unsigned ms = 0; ms < 9; ms++) {
		uint64_t mbps;

		f->path_loss[a] = ms < 5 ? 200 : 0;
		before[0] = f->data[0][a];
		before[1] = f->data[0][b];
		mbps = goodput(f, MS);
		least = mbps < least ? mbps : least;
		printf("# %4u %6.1f %5lu %5lu\n", ms, (double)mbps / 1000,
			(unsigned long)(f->data[0][a] - before[0]),
			(unsigned long)(f->data[0][b] - before[1]));
		/* EV-A carries nothing soon after, EV-B all. */
		assert_true(ms == 0 || ms >= 5 || f->data[0][a] == before[0]);
		assert_true(ms == 0 || ms >= 5 || f->data[0][b] - before[1] > 500);
	}
	printf("# least %.1f of %.1f Gb/s; %lu packets lost; EV-A %s, EV-B carries on. Paper: "
	       "retired at "
	       "once, bandwidth unchanged\n",
		(double)least / 1000, (double)usual / 1000,
		(unsigned long)fabric_count(f, 0, "lost"),
		state_of(f, a) == MRC_EV_GOOD ? "good again by probes" : "still bad");
	assert_true(usual > 4 * MBPS * 85 / 100);
	assert_true(least * 100 >= usual * 95);
	/* Probes have brought A back, as a backup: it would be gone to because of marks alone. */
	assert_int_equal(MRC_EV_GOOD, state_of(f, a));
	fabric_free(f);
}

/* Detection is the first path that is taken for bad. */
static void a_path_dies(void **state)
{
	const struct fabric_options o = {.format = RNIC_MRC_SRV6, .ports = true, .out = FABRIC_OUT};
	struct fabric *f = full_speed(&o);
	uint64_t usual, dead, detected, recovered = 0;

	(void)state;
	goodput(f, 2 * MS);
	usual = goodput(f, 4 * MS);
	while (f->last[0][5] + FABRIC_HOP < f->net.now || state_of(f, 5) != MRC_EV_GOOD)
		goodput(f, FABRIC_HOP); /* it is in use */
	f->dead[5] = true;
	dead = f->net.now;
	while (state_of(f, 5) == MRC_EV_GOOD) {
		goodput(f, 1000);
		assert_true(f->net.now - dead < 5 * MS);
	}
	detected = f->net.now;
	/* The first base RTT in which what arrives is what usually does. */
	while (recovered == 0) {
		if (goodput(f, FABRIC_RTT) * 100 >= usual * 95)
			recovered = f->net.now;
		assert_true(f->net.now - detected < MS);
	}
	printf("# a path dies: detected after %.1f base RTTs, as before %.1f base RTTs later (aim: "
	       "within "
	       "3); %lu packets lost\n",
		(double)(detected - dead) / FABRIC_RTT, (double)(recovered - detected) / FABRIC_RTT,
		(unsigned long)f->lost);
	assert_true(recovered - detected <= 3 * FABRIC_RTT + 1000);
	fabric_free(f);
}

/* A quarter of the paths is down at the start, and nobody has said so. */
static void figure_4(void **state)
{
	const struct fabric_options o = {.format = RNIC_MRC_SRV6, .ports = true, .out = FABRIC_OUT};
	struct fabric *f = full_speed(&o);
	uint64_t lost[3], mbps;

	(void)state;
	for (unsigned p = 0; p < FABRIC_PATHS; p += 4)
		f->dead[p + p / 8 % 4] = true;
	printf("# MRC paper, figure 4: start with 8 of 32 paths down\n");
	for (unsigned i = 0; i < 3; i++) {
		mbps = goodput(f, 2 * MS);
		lost[i] = fabric_count(f, 0, "lost");
		printf("#   until %lu ms: %lu packets lost, %.1f Gb/s\n",
			(unsigned long)(f->net.now / MS), (unsigned long)lost[i],
			(double)mbps / 1000);
	}
	printf("# Paper: lost at the start, then next to nothing: bad paths are mapped out. Probes "
	       "of "
	       "dead paths go on, data takes them no more\n");
	assert_true(lost[0] > 0);
	assert_int_equal(lost[1], lost[2]);
	assert_true(mbps > 4 * MBPS * 85 / 100);
	fabric_free(f);
}

/* Planes that nobody calls down carry nothing any more, in either direction. Once that is known
 * neither data nor words take them: all goes on as before on the others. */
static void half_the_planes_die(void **state)
{
	static const unsigned paths[] = {FABRIC_PATHS, 2 * FABRIC_PORTS};

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		const struct fabric_options o = {.format = RNIC_MRC_SRV6,
			.ports = true,
			.n_paths = paths[k],
			.n_active = paths[k],
			.out = 8};
		struct fabric *f = fabric_make(&o);
		uint64_t usual, least = UINT64_MAX;

		f->fixed = 8 * FABRIC_LONGEST;
		fabric_messages(f, WINDOW, 0);
		usual = goodput(f, 5 * MS);
		for (unsigned p = 0; p < FABRIC_PATHS; p++)
			f->dead[p] = p % FABRIC_PORTS >= FABRIC_PORTS / 2;
		goodput(f, 6 * MS);
		for (unsigned ms = 0; ms < 30; ms++) {
			const uint64_t mbps = goodput(f, MS);

			least = mbps < least ? mbps : least;
		}
		printf("# half of the planes die, %u paths: 6 ms later %.1f of %.1f Gb/s in the "
		       "worst ms\n",
			paths[k], (double)least / 1000, (double)usual / 1000);
		assert_true(least * 100 >= usual * 90);
		fabric_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_12_and_13),
		cmocka_unit_test(a_path_dies),
		cmocka_unit_test(half_the_planes_die),
		cmocka_unit_test(figure_4),
	};

	return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
