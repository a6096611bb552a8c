/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/flowsim_multi.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { CLUSTER = 2048, SLOTS = 16, SMALL = 8, REFRESH_MS = 500 };
static const double NS_PER_S = 1e9, MIB = 1048576;

/* What came of a trace under a setting: seconds of its jobs, ascending. */
struct multi {
	unsigned n, small; /* of them, how many have SMALL GPUs */
	double *seconds, *small_seconds;
	double in_network; /* share of bytes */
	double mean, small_mean, wait;
	struct fs_totals totals;
};

struct progress {
	const char *name;
	unsigned n;
	long last;
};

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void show(void *arg, unsigned ended)
{
	struct progress *p = arg;
	long now = now_ms();

	if (now - p->last < REFRESH_MS)
		return;
	p->last = now;
	fprintf(stderr, "\r%s: %u of %u jobs ", p->name, ended, p->n);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void multi_free(struct multi *m)
{
	free(m->seconds);
	free(m->small_seconds);
}

/* From submission to end; small jobs' from their start, as the paper's cannot have waited. */
static int sum_up(struct multi *m, const struct fs_job *job, const struct fs_result *r)
{
	double bytes = 0, inside = 0;

	m->seconds = calloc(m->n + 1, sizeof(double));
	m->small_seconds = calloc(m->n + 1, sizeof(double));
	if (m->seconds == NULL || m->small_seconds == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < m->n; i++) {
		double s = (double)(r[i].end_ns - r[i].submit_ns) / NS_PER_S;

		m->seconds[i] = s;
		m->mean += s / m->n;
		m->wait += (double)(r[i].start_ns - r[i].submit_ns) / NS_PER_S / m->n;
		bytes += r[i].bytes;
		inside += r[i].in_network_bytes;
		if (job[i].gpus == SMALL)
			m->small_seconds[m->small++] =
				(double)(r[i].end_ns - r[i].start_ns) / NS_PER_S;
	}
	for (unsigned i = 0; i < m->small; i++)
		m->small_mean += m->small_seconds[i] / m->small;
	qsort(m->seconds, m->n, sizeof(double), ascending);
	qsort(m->small_seconds, m->small, sizeof(double), ascending);
	m->in_network = bytes > 0 ? inside / bytes : 0;
	return 0;
}

static int measure(
	const struct flowsim_options *o, unsigned trace, enum fs_setting setting, struct multi *m)
{
	struct fs_shape shape = *fs_multi_shape(trace);
	struct fs_config config = o->config;
	struct fs_job *job = calloc(o->jobs, sizeof(*job));
	struct fs_result *r = NULL;
	struct progress p = {fs_setting_name(setting), o->jobs, 0};
	char err[FS_ERR_LEN] = "out of memory";
	int rc = job ? 0 : -ENOMEM;

	*m = (struct multi){.n = o->jobs};
	shape.slots = o->slots ? o->slots : SLOTS;
	shape.sram = o->sram ? o->sram : shape.sram;
	config.policy = fs_setting_policy(setting);
	if (rc == 0)
		rc = fs_trace_make(
			fs_multi_trace(trace), config.seed, o->jobs, CLUSTER, o->load, job);
	if (rc == 0)
		rc = fs_run_jobs(&shape, &config, job, o->jobs, &r, &m->totals,
			o->quiet ? NULL : show, &p, err);
	if (rc == 0)
		rc = sum_up(m, job, r);
	if (p.last)
		fprintf(stderr, "\r%40s\r", "");
	free(r);
	free(job);
	if (rc) {
		fprintf(stderr, "incline-flowsim: %s\n", err);
		multi_free(m);
	}
	return rc ? -EIO : 0;
}

static void print_setting(FILE *out, enum fs_setting s, const struct multi *m, double seconds,
	double ring, double paper, double paper_ring)
{
	fprintf(out, "%-10s %9.1f %8.3f %9.1f %8.3f %8.1f %9.1f %9.1f %7u %9.1f\n",
		fs_setting_name(s), seconds, seconds / ring, paper, paper / paper_ring,
		100 * m->in_network, m->wait, m->totals.mean_groups, m->totals.peak_groups,
		m->totals.mean_bytes / MIB);
}

static void head(FILE *out)
{
	fprintf(out, "%-10s %9s %8s %9s %8s %8s %9s %9s %7s %9s\n", "", "seconds", "of ring",
		"paper", "of ring", "INC %", "waiting s", "groups", "most", "MiB");
}

/* One column of a table: all settings. of_small: what counts are the jobs of SMALL GPUs. */
static int column(const struct flowsim_options *o, unsigned trace, bool of_small, const char *at,
	const double paper[FS_SETTINGS], json_t *rows, unsigned *differ)
{
	double ours[FS_SETTINGS];

	head(o->out);
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		struct multi m;
		int rc = measure(o, trace, s, &m);

		if (rc)
			return rc;
		ours[s] = of_small ? m.small_mean : m.mean;
		print_setting(o->out, s, &m, ours[s], ours[FS_RING], paper[s], paper[FS_RING]);
		flowsim_row(rows, fs_setting_name(s), at, ours[s], paper[s]);
		multi_free(&m);
	}
	*differ += flowsim_orders(o->out, at, ours, paper);
	return 0;
}

static void say_what(const struct flowsim_options *o)
{
	fprintf(o->out, "%u jobs, load %g, seed %llu, %u slots per switch%s%s%s\n", o->jobs,
		o->load, (unsigned long long)o->config.seed, o->slots ? o->slots : SLOTS,
		o->config.scatter ? ", scattered" : "", o->config.hashed ? ", rings by hash" : "",
		o->config.exact ? ", exact rings" : "");
}

int flowsim_means(const struct flowsim_options *o, json_t *result)
{
	json_t *rows = flowsim_begin(result, 44, "mean seconds of jobs on 2048 GPUs");
	unsigned differ = 0;
	int rc = 0;

	say_what(o);
	for (unsigned trace = 1; trace <= FS_MULTIS && rc == 0; trace++) {
		char at[32];

		snprintf(at, sizeof(at), "trace %u%s", trace, trace > 1 ? " (substitute)" : "");
		fprintf(o->out, "EPIC table 44: mean seconds, %s\n", at);
		rc = column(o, trace, false, at, fs_paper_mean[trace - 1], rows, &differ);
	}
	fprintf(o->out, "  %u orders differ\n", differ);
	json_object_set_new(result, "orders_that_differ", json_integer(differ));
	return rc;
}

int flowsim_small_jobs(const struct flowsim_options *o, json_t *result)
{
	json_t *rows = flowsim_begin(result, 45, "mean seconds of jobs with 8 GPUs");
	unsigned differ = 0;
	int rc = 0;

	say_what(o);
	for (unsigned k = 0; k < 2 && rc == 0; k++) {
		struct flowsim_options with = *o;

		with.config.scaleup = k == 1;
		fprintf(o->out, "EPIC table 45: mean seconds of jobs with 8 GPUs, %s scale-up\n",
			k ? "with" : "without");
		rc = column(&with, 2, true, k ? "scale-up" : "no scale-up", fs_paper_small[k], rows,
			&differ);
	}
	fprintf(o->out, "  %u orders differ\n", differ);
	json_object_set_new(result, "orders_that_differ", json_integer(differ));
	return rc;
}

static const struct figure {
	unsigned number, trace;
	bool tail, small, scaleup, inc;
	const char *title;
} figures[] = {
	{16, 2, true, false, false, false, "tail of trace 2 (substitute)"},
	{20, 1, false, false, false, false, "trace 1"},
	{21, 2, false, false, false, false, "trace 2 (substitute)"},
	{22, 3, false, false, false, false, "trace 3 (substitute)"},
	{23, 2, false, true, true, false, "8 GPUs, scale-up, trace 2 (substitute)"},
	{24, 2, false, true, true, true, "8 GPUs, INC on scale-up, trace 2 (substitute)"},
};

/* The paper's text has these three of figure 16. */
static double paper_of(unsigned number, enum fs_setting s, double percent)
{
	static const double p99[FS_SETTINGS] = {7115, 5420, NAN, 4917};

	return number == 16 && percent == 99 ? p99[s] : NAN;
}

static double percentile(const double *sorted, unsigned n, double percent)
{
	unsigned at = n ? (unsigned)ceil(percent / 100 * n) : 0;

	return n ? sorted[at ? at - 1 : 0] : 0;
}

static int draw(const struct figure *f, const struct flowsim_options *o, json_t *rows)
{
	static const double whole[] = {1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100};
	static const double tail[] = {85, 86, 88, 90, 92, 94, 95, 96, 97, 98, 99, 99.5, 100};
	const double *at = f->tail ? tail : whole;
	unsigned n = f->tail ? sizeof(tail) / sizeof(tail[0]) : sizeof(whole) / sizeof(whole[0]);

	fprintf(o->out, "%-10s", "percent");
	for (unsigned i = 0; i < n; i++)
		fprintf(o->out, " %7g", at[i]);
	fputc('\n', o->out);
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		struct multi m;
		int rc = measure(o, f->trace, s, &m);

		if (rc)
			return rc;
		fprintf(o->out, "%-10s", fs_setting_name(s));
		for (unsigned i = 0; i < n; i++) {
			char label[16];
			double v = f->small ? percentile(m.small_seconds, m.small, at[i])
					    : percentile(m.seconds, m.n, at[i]);

			snprintf(label, sizeof(label), "%g", at[i]);
			fprintf(o->out, " %7.1f", v);
			flowsim_row(
				rows, fs_setting_name(s), label, v, paper_of(f->number, s, at[i]));
		}
		fputc('\n', o->out);
		multi_free(&m);
	}
	return 0;
}

int flowsim_figure(unsigned number, const struct flowsim_options *o, json_t *result)
{
	for (unsigned i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		const struct figure *f = &figures[i];
		struct flowsim_options with = *o;

		if (f->number != number)
			continue;
		with.config.scaleup = f->scaleup;
		with.config.scaleup_inc = f->inc;
		say_what(o);
		fprintf(o->out, "EPIC figure %u: seconds by percentile of jobs, %s\n", number,
			f->title);
		return draw(f, &with, flowsim_begin(result, number, f->title));
	}
	return -EINVAL;
}
