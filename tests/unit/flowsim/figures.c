/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes of EPIC's figures 16 and 20 to 24, as far as its text and tables 44 and 45 tell them
 * (the figures' points are not to be had):
 *	figures JOBS LOAD SEED...
 * Prints some percentiles; fails where a shape does not hold. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/flowsim/many.h"

struct curves {
	const struct fs_figure *f;
	struct fs_many of[FS_SETTINGS];
};

/* What lies between two that are the same to the paper: 41.9 and 40.9 in table 45. */
static const double ALIKE = 1.025;
/* By which table 44's means of traces 2 and 3 differ: ring 6245 and 6267, spatial 4722 and 4791;
 * ours by more. */
static const double HALF_THE_CORES = 1.05, UNHURT = 1.01;

static void measure(
	const struct fs_figure *f, unsigned jobs, double load, uint64_t seed, struct curves *c)
{
	c->f = f;
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		struct fs_many_ask ask = {.trace = f->trace,
			.setting = s,
			.jobs = jobs,
			.load = load,
			.config = {.scaleup = f->scaleup, .scaleup_inc = f->inc, .seed = seed}};
		char err[FS_ERR_LEN];

		if (fs_many_run(&ask, &c->of[s], NULL, NULL, err)) {
			printf("%s\n", err);
			exit(2);
		}
	}
}

static double at(const struct curves *c, enum fs_setting s, double percent)
{
	return fs_figure_at(c->f, &c->of[s], percent);
}

static void print(const struct curves *c, uint64_t seed)
{
	static const double percent[] = {50, 90, 99, 100};

	printf("figure %u, seed %llu:", c->f->number, (unsigned long long)seed);
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		printf(" %s", fs_setting_name(s));
		for (unsigned i = 0; i < sizeof(percent) / sizeof(percent[0]); i++)
			printf(" %.1f", at(c, s, percent[i]));
	}
	printf("\n");
}

static int holds(const struct curves *c, const char *what, double percent, bool ok)
{
	if (!ok)
		printf("  figure %u at %g %%: does not hold: %s\n", c->f->number, percent, what);
	return !ok;
}

/* Each solution left of the ring's, all along. */
static int left_of_ring(const struct curves *c)
{
	unsigned n;
	const double *percent = fs_figure_percents(c->f, &n);
	int failed = 0;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned s = FS_EDT; s < FS_SETTINGS; s++)
			failed += holds(c, fs_setting_name(s), percent[i],
				at(c, s, percent[i]) < at(c, FS_RING, percent[i]));
	}
	return failed;
}

/* "Drastically reduces tail latency": 4917, 5420 and 7115 s at 99 % of figure 16. */
static int tail(const struct curves *c)
{
	double t = at(c, FS_TEMPORAL, 99), e = at(c, FS_EDT, 99), s = at(c, FS_SPATIAL, 99);
	int failed = 0;

	failed += holds(c, "temporal < EDT", 99, t < e);
	failed += holds(c, "temporal <= spatial", 99, t <= s);
	failed += holds(c, "temporal <= EDT", 100, at(c, FS_TEMPORAL, 100) <= at(c, FS_EDT, 100));
	return failed;
}

static int mean_holds(const struct curves *c, const char *what, bool ok)
{
	if (!ok)
		printf("  figure %u, means: does not hold: %s\n", c->f->number, what);
	return !ok;
}

/* Figure 22 is 21 with half the cores, which cost no setting much. */
static int half_the_cores(const struct curves *half, const struct curves *all)
{
	double cost[FS_SETTINGS];
	int failed = 0;

	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		cost[s] = half->of[s].mean / all->of[s].mean;
		failed += mean_holds(
			half, fs_setting_name(s), cost[s] < HALF_THE_CORES && cost[s] > 1 / UNHURT);
	}
	failed += mean_holds(half, "ring unhurt", cost[FS_RING] < UNHURT);
	failed += mean_holds(half, "temporal unhurt", cost[FS_TEMPORAL] < UNHURT);
	return failed;
}

/* Of one server each: nothing is left for a policy to do. */
static int all_alike(const struct curves *c)
{
	unsigned n;
	const double *percent = fs_figure_percents(c->f, &n);
	int failed = 0;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned s = FS_EDT; s < FS_SETTINGS; s++)
			failed += holds(c, fs_setting_name(s), percent[i],
				at(c, s, percent[i]) <= ALIKE * at(c, FS_RING, percent[i]) &&
					at(c, FS_RING, percent[i]) <= ALIKE * at(c, s, percent[i]));
	}
	return failed;
}

/* Links that reduce are faster, whatever the policy; they do not reduce what is computed. */
static int improved(const struct curves *with, const struct curves *without)
{
	unsigned n;
	const double *percent = fs_figure_percents(with->f, &n);
	int failed = 0;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned s = 0; s < FS_SETTINGS; s++) {
			double a = at(with, s, percent[i]), b = at(without, s, percent[i]);

			failed += holds(with, fs_setting_name(s), percent[i], a < b && a > b / 2);
		}
	}
	return failed;
}

static int all(unsigned jobs, double load, uint64_t seed)
{
	struct curves c[FS_FIGURES];
	const struct curves *f20 = &c[1], *f21 = &c[2], *f22 = &c[3], *f23 = &c[4], *f24 = &c[5];
	int failed = 0;

	for (unsigned i = 0; i < FS_FIGURES; i++) {
		measure(&fs_figures[i], jobs, load, seed, &c[i]);
		print(&c[i], seed);
	}
	for (const struct curves *f = c; f <= f22; f++)
		failed += left_of_ring(f) + tail(f);
	failed += half_the_cores(f22, f21);
	failed += all_alike(f23) + all_alike(f24) + improved(f24, f23);
	failed += mean_holds(f20, "another trace", f20->of[FS_RING].mean != f21->of[FS_RING].mean);
	for (unsigned i = 0; i < FS_FIGURES; i++) {
		for (unsigned s = 0; s < FS_SETTINGS; s++)
			fs_many_free(&c[i].of[s]);
	}
	return failed;
}

int main(int argc, char **argv)
{
	unsigned jobs = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	double load = argc > 2 ? atof(argv[2]) : 0;
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4 || jobs == 0) {
		fputs("figures JOBS LOAD SEED...\n", stderr);
		return 2;
	}
	for (int i = 3; i < argc; i++)
		failed += all(jobs, load, strtoull(argv[i], NULL, 0));
	printf("%d shapes do not hold\n", failed);
	return failed != 0;
}
