/* SPDX-License-Identifier: BSD-3-Clause */
/* The orders of EPIC's tables 44 and 45 that ours have too:
 *	orders JOBS LOAD SEED...
 *	orders few JOBS LOAD SEED...	where a switch has 8 groups: Spatial behind EDT on traces 2,
 *3 Prints means; fails where an order does not hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/flowsim/many.h"

enum { FEW_SLOTS = 8 };

struct means {
	double all[FS_SETTINGS], small[FS_SETTINGS];
};

static int measure(unsigned trace, bool scaleup, unsigned slots, unsigned n, double load,
	uint64_t seed, struct means *m)
{
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		struct fs_many_ask ask = {.trace = trace,
			.setting = s,
			.jobs = n,
			.slots = slots,
			.load = load,
			.config = {.scaleup = scaleup, .seed = seed}};
		struct fs_many got;
		char err[FS_ERR_LEN];
		int rc = fs_many_run(&ask, &got, NULL, NULL, err);

		if (rc) {
			printf("%s\n", err);
			return rc;
		}
		m->all[s] = got.mean;
		m->small[s] = got.small_mean;
		fs_many_free(&got);
	}
	return 0;
}

/* or_same: by one in a hundred. */
static int holds(const char *what, double more, double less, bool or_same)
{
	if (more > less || (or_same && more >= less * 0.99))
		return 0;
	printf("  does not hold: %s\n", what);
	return 1;
}

static void print_means(unsigned trace, bool scaleup, uint64_t seed, const struct means *m)
{
	printf("trace %u%s, seed %llu:", trace, scaleup ? ", scale-up" : "",
		(unsigned long long)seed);
	for (unsigned s = 0; s < FS_SETTINGS; s++)
		printf(" %s %.1f (%.1f)", fs_setting_name(s), m->all[s], m->small[s]);
	printf("\n");
}

/* The paper's order on traces 2 and 3. */
static int few(unsigned trace, unsigned n, double load, uint64_t seed)
{
	struct means m;
	int failed = 0;

	if (measure(trace, false, FEW_SLOTS, n, load, seed, &m))
		return 1;
	print_means(trace, false, seed, &m);
	failed += holds("ring > spatial", m.all[FS_RING], m.all[FS_SPATIAL], false);
	failed += holds("spatial > edt", m.all[FS_SPATIAL], m.all[FS_EDT], false);
	failed += holds("edt > temporal", m.all[FS_EDT], m.all[FS_TEMPORAL], false);
	return failed;
}

static int one(unsigned trace, bool scaleup, unsigned n, double load, uint64_t seed)
{
	struct means m;
	int failed = 0;

	if (measure(trace, scaleup, FS_MANY_SLOTS, n, load, seed, &m))
		return 1;
	print_means(trace, scaleup, seed, &m);
	if (!scaleup) /* where few groups are left, trees that do not see rings may be slower */
		failed += holds("ring > edt", m.all[FS_RING], m.all[FS_EDT], false);
	failed += holds("ring > spatial", m.all[FS_RING], m.all[FS_SPATIAL], false);
	failed += holds("ring > temporal", m.all[FS_RING], m.all[FS_TEMPORAL], false);
	failed += holds("edt > temporal", m.all[FS_EDT], m.all[FS_TEMPORAL], scaleup);
	failed += holds("spatial > temporal", m.all[FS_SPATIAL], m.all[FS_TEMPORAL], scaleup);
	failed += holds("edt + 10 % > spatial", 1.1 * m.all[FS_EDT], m.all[FS_SPATIAL], false);
	failed += holds("8 GPUs: ring >= edt", m.small[FS_RING], m.small[FS_EDT], true);
	failed += holds("8 GPUs: edt >= temporal", m.small[FS_EDT], m.small[FS_TEMPORAL], true);
	return failed;
}

int main(int argc, char **argv)
{
	const bool only_few = argc > 1 && !strcmp(argv[1], "few");
	const int at = only_few ? 2 : 1;
	unsigned n = argc > at ? (unsigned)atoi(argv[at]) : 0;
	double load = argc > at + 1 ? atof(argv[at + 1]) : 0;
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < at + 3 || n == 0) {
		fputs("orders [few] JOBS LOAD SEED...\n", stderr);
		return 2;
	}
	for (int i = at + 2; i < argc; i++) {
		uint64_t seed = strtoull(argv[i], NULL, 0);

		for (unsigned trace = 2; only_few && trace <= FS_MULTIS; trace++)
			failed += few(trace, n, load, seed);
		if (only_few)
			continue;
		for (unsigned trace = 1; trace <= FS_MULTIS; trace++)
			failed += one(trace, false, n, load, seed);
		failed += one(2, true, n, load, seed);
	}
	printf("%d orders do not hold\n", failed);
	return failed != 0;
}
