/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/flowsim/many.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLUSTER = 2048 };
static const double NS_PER_S = 1e9;

const struct fs_figure fs_figures[FS_FIGURES] = {
	{16, 2, true, false, false, false, "tail of trace 2 (substitute)"},
	{20, 1, false, false, false, false, "trace 1"},
	{21, 2, false, false, false, false, "trace 2 (substitute)"},
	{22, 3, false, false, false, false, "trace 3 (substitute)"},
	{23, 2, false, true, true, false, "8 GPUs, scale-up, trace 2 (substitute)"},
	{24, 2, false, true, true, true, "8 GPUs, INC on scale-up, trace 2 (substitute)"},
};

const double *fs_figure_percents(const struct fs_figure *f, unsigned *n)
{
	static const double whole[] = {1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100};
	static const double tail[] = {85, 86, 88, 90, 92, 94, 95, 96, 97, 98, 99, 99.5, 100};

	*n = f->tail ? sizeof(tail) / sizeof(tail[0]) : sizeof(whole) / sizeof(whole[0]);
	return f->tail ? tail : whole;
}

double fs_percentile(const double *sorted, unsigned n, double percent)
{
	unsigned at = n ? (unsigned)ceil(percent / 100 * n) : 0;

	return n ? sorted[at ? at - 1 : 0] : 0;
}

double fs_figure_at(const struct fs_figure *f, const struct fs_many *m, double percent)
{
	return f->small ? fs_percentile(m->small_seconds, m->small, percent)
			: fs_percentile(m->seconds, m->n, percent);
}

double fs_figure_paper(const struct fs_figure *f, enum fs_setting setting, double percent)
{
	static const double p99[FS_SETTINGS] = {7115, 5420, NAN, 4917};

	return f->number == 16 && percent == 99 ? p99[setting] : NAN;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double seconds(uint64_t from, uint64_t to)
{
	return (double)(to - from) / NS_PER_S;
}

static void sum_up(struct fs_many *m, const struct fs_job *job, const struct fs_result *r)
{
	double bytes = 0, inside = 0;

	for (unsigned i = 0; i < m->n; i++) {
		m->seconds[i] = seconds(r[i].submit_ns, r[i].end_ns);
		m->mean += m->seconds[i] / m->n;
		m->wait += seconds(r[i].submit_ns, r[i].start_ns) / m->n;
		bytes += r[i].bytes;
		inside += r[i].in_network_bytes;
		if (job[i].gpus == FS_SMALL_GPUS)
			m->small_seconds[m->small++] = seconds(r[i].start_ns, r[i].end_ns);
	}
	for (unsigned i = 0; i < m->small; i++)
		m->small_mean += m->small_seconds[i] / m->small;
	qsort(m->seconds, m->n, sizeof(double), ascending);
	qsort(m->small_seconds, m->small, sizeof(double), ascending);
	m->in_network = bytes > 0 ? inside / bytes : 0;
}

static int run(const struct fs_many_ask *ask, struct fs_many *m, struct fs_job *job,
	void (*each)(void *arg, unsigned ended), void *arg, char err[FS_ERR_LEN])
{
	struct fs_shape shape = *fs_multi_shape(ask->trace);
	struct fs_config config = ask->config;
	struct fs_result *r;
	int rc = fs_trace_make(
		fs_multi_trace(ask->trace), config.seed, ask->jobs, CLUSTER, ask->load, job);

	if (rc) {
		snprintf(
			err, FS_ERR_LEN, "trace %u, load %g: there is none", ask->trace, ask->load);
		return rc;
	}
	shape.slots = ask->slots ? ask->slots : FS_MANY_SLOTS;
	shape.sram = ask->sram ? ask->sram : shape.sram;
	config.policy = fs_setting_policy(ask->setting);
	rc = fs_run_jobs(&shape, &config, job, ask->jobs, &r, &m->totals, each, arg, err);
	if (rc)
		return rc;
	sum_up(m, job, r);
	free(r);
	return 0;
}

int fs_many_run(const struct fs_many_ask *ask, struct fs_many *m,
	void (*each)(void *arg, unsigned ended), void *arg, char err[FS_ERR_LEN])
{
	struct fs_job *job = calloc(ask->jobs + 1, sizeof(*job));
	int rc = -ENOMEM;

	*m = (struct fs_many){.n = ask->jobs,
		.seconds = calloc(ask->jobs + 1, sizeof(double)),
		.small_seconds = calloc(ask->jobs + 1, sizeof(double))};
	snprintf(err, FS_ERR_LEN, "out of memory");
	if (job && m->seconds && m->small_seconds)
		rc = run(ask, m, job, each, arg, err);
	free(job);
	if (rc)
		fs_many_free(m);
	return rc;
}

void fs_many_free(struct fs_many *m)
{
	free(m->seconds);
	free(m->small_seconds);
	m->seconds = m->small_seconds = NULL;
}
