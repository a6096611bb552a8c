/* SPDX-License-Identifier: BSD-3-Clause */
/* The orders of EPIC's tables 44 and 45 that ours have too:
 *	orders JOBS LOAD SEED...
 * Prints means; fails where an order does not hold. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/flowsim/paper.h"

enum { CLUSTER = 2048, SLOTS = 16, SMALL = 8 };

struct means {
	double all[FS_SETTINGS], small[FS_SETTINGS];
};

static int measure(
	unsigned trace, bool scaleup, unsigned n, double load, uint64_t seed, struct means *m)
{
	struct fs_job *job = calloc(n, sizeof(*job));
	int rc = job ? fs_trace_make(fs_multi_trace(trace), seed, n, CLUSTER, load, job) : -1;

	for (unsigned s = 0; s < FS_SETTINGS && rc == 0; s++) {
		struct fs_shape shape = *fs_multi_shape(trace);
		struct fs_config config = {
			.policy = fs_setting_policy(s), .scaleup = scaleup, .seed = seed};
		struct fs_totals t;
		struct fs_result *r;
		char err[FS_ERR_LEN];
		unsigned small = 0;

		shape.slots = SLOTS;
		rc = fs_run_jobs(&shape, &config, job, n, &r, &t, NULL, NULL, err);
		m->all[s] = m->small[s] = 0;
		for (unsigned i = 0; rc == 0 && i < n; i++) {
			double seconds = (double)(r[i].end_ns - r[i].submit_ns) / 1e9;

			m->all[s] += seconds / n;
			if (job[i].gpus == SMALL)
				m->small[s] += (double)(r[i].end_ns - r[i].start_ns) / 1e9;
			small += job[i].gpus == SMALL;
		}
		m->small[s] /= small ? small : 1;
		if (rc == 0)
			free(r);
	}
	free(job);
	return rc;
}

/* or_same: by one in a hundred. */
static int holds(const char *what, double more, double less, bool or_same)
{
	if (more > less || (or_same && more >= less * 0.99))
		return 0;
	printf("  does not hold: %s\n", what);
	return 1;
}

static int one(unsigned trace, bool scaleup, unsigned n, double load, uint64_t seed)
{
	struct means m;
	int failed = 0;

	if (measure(trace, scaleup, n, load, seed, &m))
		return 1;
	printf("trace %u%s, seed %llu:", trace, scaleup ? ", scale-up" : "",
		(unsigned long long)seed);
	for (unsigned s = 0; s < FS_SETTINGS; s++)
		printf(" %s %.1f (%.1f)", fs_setting_name(s), m.all[s], m.small[s]);
	printf("\n");
	if (!scaleup) /* where few groups are left, trees that do not see rings may be slower */
		failed += holds("ring > edt", m.all[FS_RING], m.all[FS_EDT], false);
	failed += holds("ring > spatial", m.all[FS_RING], m.all[FS_SPATIAL], false);
	failed += holds("ring > temporal", m.all[FS_RING], m.all[FS_TEMPORAL], false);
	failed += holds("edt > temporal", m.all[FS_EDT], m.all[FS_TEMPORAL], scaleup);
	failed += holds("spatial >= temporal", m.all[FS_SPATIAL], m.all[FS_TEMPORAL], true);
	failed += holds("edt + 10 % > spatial", 1.1 * m.all[FS_EDT], m.all[FS_SPATIAL], false);
	failed += holds("8 GPUs: ring >= edt", m.small[FS_RING], m.small[FS_EDT], true);
	failed += holds("8 GPUs: edt >= temporal", m.small[FS_EDT], m.small[FS_TEMPORAL], true);
	return failed;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	double load = argc > 2 ? atof(argv[2]) : 0;
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4 || n == 0) {
		fputs("orders JOBS LOAD SEED...\n", stderr);
		return 2;
	}
	for (int i = 3; i < argc; i++) {
		uint64_t seed = strtoull(argv[i], NULL, 0);

		for (unsigned trace = 1; trace <= FS_MULTIS; trace++)
			failed += one(trace, false, n, load, seed);
		failed += one(2, true, n, load, seed);
	}
	printf("%d orders do not hold\n", failed);
	return failed != 0;
}
