/* SPDX-License-Identifier: BSD-3-Clause */
/* One job on 128 GPUs: EPIC's tables 6 and 36 to 43. What many jobs do is in flowsim_multi.c. */
#include "apps/flowsim_tables.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/flowsim_multi.h"

void flowsim_row(json_t *rows, const char *solution, const char *at, double ours, double paper)
{
	json_array_append_new(
		rows, json_pack("{s:s,s:s,s:f,s:o}", "solution", solution, "at", at, "ours", ours,
			      "paper", isnan(paper) ? json_null() : json_real(paper)));
}

json_t *flowsim_begin(json_t *result, unsigned table, const char *title)
{
	json_t *rows = json_array();

	json_object_set_new(result, "table", json_integer(table));
	json_object_set_new(result, "title", json_string(title));
	json_object_set_new(result, "unit", json_string("s"));
	json_object_set_new(result, "rows", rows);
	return rows;
}

/* Above 0: a takes longer; as printed, so that what is the same to the paper is. */
static int order(double a, double b)
{
	return fabs(a - b) < 0.002 * fmax(a, b) ? 0 : a > b ? 1 : -1;
}

unsigned flowsim_orders(
	FILE *out, const char *at, const double ours[FS_SETTINGS], const double paper[FS_SETTINGS])
{
	static const char *const word[] = {"below", "the same as", "above"};
	unsigned differ = 0;

	for (unsigned a = 0; a < FS_SETTINGS; a++) {
		for (unsigned b = a + 1; b < FS_SETTINGS; b++) {
			int got = order(ours[a], ours[b]), wanted = order(paper[a], paper[b]);

			if (got == wanted)
				continue;
			fprintf(out, "  order differs at %s: %s is %s %s, in the paper %s it\n", at,
				fs_setting_name(a), word[got + 1], fs_setting_name(b),
				word[wanted + 1]);
			differ++;
		}
	}
	return differ;
}

struct single {
	double ours[FS_SETTINGS][FS_UNITS];
	unsigned same, cells, differ;
};

static int measure(const struct fs_single *t, unsigned units, const struct flowsim_options *o,
	struct single *m)
{
	*m = (struct single){.cells = 0};
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		for (unsigned u = 0; u < units; u++) {
			struct fs_totals totals;
			char err[FS_ERR_LEN];
			int rc = fs_run_single(t, s, o->slots ? o->slots : fs_units[u], &o->config,
				&m->ours[s][u], &totals, err);

			if (rc) {
				fprintf(stderr, "incline-flowsim: %s\n", err);
				return -ENOMEM;
			}
			m->cells++;
			m->same += fabs(fs_as_printed(m->ours[s][u], t->paper[s][u]) -
					   t->paper[s][u]) < 1e-6;
		}
	}
	return 0;
}

static void print_single(const struct fs_single *t, unsigned units, const struct flowsim_options *o,
	struct single *m, json_t *rows)
{
	char at[32];

	fprintf(o->out, "%-10s", "slots");
	for (unsigned u = 0; u < units; u++)
		fprintf(o->out, " %10u %8s", o->slots ? o->slots : fs_units[u], "paper");
	fputc('\n', o->out);
	for (unsigned s = 0; s < FS_SETTINGS; s++) {
		fprintf(o->out, "%-10s", fs_setting_name(s));
		for (unsigned u = 0; u < units; u++) {
			fprintf(o->out, " %10.3f %8g", m->ours[s][u], t->paper[s][u]);
			snprintf(at, sizeof(at), "%u%s", fs_units[u],
				t->scaleup ? ", scale-up" : "");
			flowsim_row(rows, fs_setting_name(s), at, m->ours[s][u], t->paper[s][u]);
		}
		fputc('\n', o->out);
	}
	for (unsigned u = 0; u < units; u++) {
		double ours[FS_SETTINGS], paper[FS_SETTINGS];

		for (unsigned s = 0; s < FS_SETTINGS; s++) {
			ours[s] = m->ours[s][u];
			paper[s] = t->paper[s][u];
		}
		snprintf(at, sizeof(at), "%u slots", fs_units[u]);
		m->differ += flowsim_orders(o->out, at, ours, paper);
	}
	fprintf(o->out, "  %u of %u figures as the paper prints them, %u orders differ\n", m->same,
		m->cells, m->differ);
}

static int single(const struct fs_single *t, unsigned units, const struct flowsim_options *o,
	json_t *rows, unsigned sum[3])
{
	struct single m;
	int rc = measure(t, units, o, &m);

	if (rc)
		return rc;
	fprintf(o->out, "EPIC table %u: seconds of %u iterations, %s, %u GPUs%s\n", t->table,
		FS_ITERATIONS, fs_models[t->model].name, FS_SINGLE_GPUS,
		t->scaleup ? ", scale-up" : "");
	print_single(t, units, o, &m, rows);
	sum[0] += m.same;
	sum[1] += m.cells;
	sum[2] += m.differ;
	return 0;
}

/* Table 6 is the first half of 36 and of 40. */
static int singles(unsigned number, const struct flowsim_options *o, json_t *result)
{
	unsigned sum[3] = {0};
	json_t *rows = NULL;
	int rc = 0;

	for (unsigned i = 0; i < FS_SINGLES && rc == 0; i++) {
		const struct fs_single *t = &fs_singles[i];
		bool six = number == 6 && t->model == FS_GPT3_175B;

		if (!six && t->table != number)
			continue;
		if (rows == NULL)
			rows = flowsim_begin(result, number, fs_models[t->model].name);
		rc = single(t, six ? FS_UNITS / 2 : FS_UNITS, o, rows, sum);
	}
	json_object_set_new(result, "same", json_integer(sum[0]));
	json_object_set_new(result, "cells", json_integer(sum[1]));
	json_object_set_new(result, "orders_that_differ", json_integer(sum[2]));
	return rows ? rc : -EINVAL;
}

int flowsim_table(unsigned number, const struct flowsim_options *o, json_t *result)
{
	return number == 44   ? flowsim_means(o, result)
	       : number == 45 ? flowsim_small_jobs(o, result)
			      : singles(number, o, result);
}

static void put(json_t *result, FILE *out, const char *name, double value, const char *unit)
{
	fprintf(out, "  %-24s %14.3f %s\n", name, value, unit);
	json_object_set_new(result, name, json_real(value));
}

int flowsim_job(const struct flowsim_options *o, json_t *result)
{
	struct fs_shape shape = o->gpus > FS_SINGLE_GPUS ? fs_shape_2048 : fs_shape_128;
	struct fs_job job = fs_model_job(&fs_models[o->model], o->gpus, FS_ITERATIONS);
	struct fs_config config = o->config;
	struct fs_totals t;
	struct fs_result *r;
	char err[FS_ERR_LEN];

	shape.slots = o->slots ? o->slots : shape.slots;
	shape.sram = o->sram ? o->sram : shape.sram;
	config.policy = fs_setting_policy(o->setting);
	if (fs_run_jobs(&shape, &config, &job, 1, &r, &t, NULL, NULL, err)) {
		fprintf(stderr, "incline-flowsim: %s\n", err);
		return -EIO;
	}
	fprintf(o->out, "%s on %u GPUs, %s, %u slots per switch%s\n", fs_models[o->model].name,
		o->gpus, fs_setting_name(o->setting), shape.slots,
		config.scaleup ? ", scale-up" : "");
	put(result, o->out, "seconds", (double)(r->end_ns - r->start_ns) / 1e9, "");
	put(result, o->out, "groups", r->groups, "");
	put(result, o->out, "in_network", r->in_network, "");
	put(result, o->out, "in_network_bytes", r->in_network_bytes / fmax(r->bytes, 1) * 100, "%");
	put(result, o->out, "peak_groups", t.peak_groups, "on a switch");
	put(result, o->out, "peak_memory", (double)t.peak_bytes / 1048576, "MiB on all switches");
	put(result, o->out, "mean_memory", t.mean_bytes / 1048576, "MiB");
	free(r);
	return 0;
}
