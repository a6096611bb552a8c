/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/flowsim_multi.h"

#include <errno.h>
#include <time.h>

#include "lib/flowsim/many.h"

enum { REFRESH_MS = 500 };
static const double MIB = 1048576;

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

static int measure(
	const struct flowsim_options *o, unsigned trace, enum fs_setting setting, struct fs_many *m)
{
	struct fs_many_ask ask = {.trace = trace,
		.setting = setting,
		.jobs = o->jobs,
		.slots = o->slots,
		.sram = o->sram,
		.load = o->load,
		.config = o->config};
	struct progress p = {fs_setting_name(setting), o->jobs, 0};
	char err[FS_ERR_LEN];
	int rc = fs_many_run(&ask, m, o->quiet ? NULL : show, &p, err);

	if (p.last)
		fprintf(stderr, "\r%40s\r", "");
	if (rc)
		fprintf(stderr, "incline-flowsim: %s\n", err);
	return rc ? -EIO : 0;
}

static void print_setting(FILE *out, enum fs_setting s, const struct fs_many *m, double seconds,
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

/* One column of a table: all settings. of_small: what counts are the jobs of FS_SMALL_GPUS. */
static int column(const struct flowsim_options *o, unsigned trace, bool of_small, const char *at,
	const double paper[FS_SETTINGS], json_t *rows, unsigned *differ)
{
	double ours[FS_SETTINGS];

	head(o->out);
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		struct fs_many m;
		int rc = measure(o, trace, s, &m);

		if (rc)
			return rc;
		ours[s] = of_small ? m.small_mean : m.mean;
		print_setting(o->out, s, &m, ours[s], ours[FS_RING], paper[s], paper[FS_RING]);
		flowsim_row(rows, fs_setting_name(s), at, ours[s], paper[s]);
		fs_many_free(&m);
	}
	*differ += flowsim_orders(o->out, at, ours, paper);
	return 0;
}

static void say_what(const struct flowsim_options *o)
{
	fprintf(o->out, "%u jobs, load %g, seed %llu, %u slots per switch%s%s%s\n", o->jobs,
		o->load, (unsigned long long)o->config.seed, o->slots ? o->slots : FS_MANY_SLOTS,
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

static int draw(const struct fs_figure *f, const struct flowsim_options *o, json_t *rows)
{
	unsigned n;
	const double *at = fs_figure_percents(f, &n);

	fprintf(o->out, "%-10s", "percent");
	for (unsigned i = 0; i < n; i++)
		fprintf(o->out, " %7g", at[i]);
	fputc('\n', o->out);
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		struct fs_many m;
		int rc = measure(o, f->trace, s, &m);

		if (rc)
			return rc;
		fprintf(o->out, "%-10s", fs_setting_name(s));
		for (unsigned i = 0; i < n; i++) {
			char label[16];
			double v = fs_figure_at(f, &m, at[i]);

			snprintf(label, sizeof(label), "%g", at[i]);
			fprintf(o->out, " %7.1f", v);
			flowsim_row(
				rows, fs_setting_name(s), label, v, fs_figure_paper(f, s, at[i]));
		}
		fputc('\n', o->out);
		fs_many_free(&m);
	}
	return 0;
}

int flowsim_figure(unsigned number, const struct flowsim_options *o, json_t *result)
{
	for (unsigned i = 0; i < FS_FIGURES; i++) {
		const struct fs_figure *f = &fs_figures[i];
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
