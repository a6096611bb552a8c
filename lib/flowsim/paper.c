/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/flowsim/paper.h"

#include <math.h>
#include <stdlib.h>

enum { EVERY = 4096 }; /* steps */
static const double NS_PER_S = 1e9;

static const struct {
	const char *name;
	const struct mgr_policy *policy;
} settings[FS_SETTINGS] = {
	[FS_RING] = {"ring", NULL},
	[FS_EDT] = {"edt", &mgr_policy_edt},
	[FS_SPATIAL] = {"spatial", &mgr_policy_spatial},
	[FS_TEMPORAL] = {"temporal", &mgr_policy_temporal},
};

const char *fs_setting_name(enum fs_setting setting)
{
	return settings[setting].name;
}

const struct mgr_policy *fs_setting_policy(enum fs_setting setting)
{
	return settings[setting].policy;
}

const unsigned fs_units[FS_UNITS] = {4, 8, 16, 32};

const struct fs_single fs_singles[FS_SINGLES] = {
	{36, FS_GPT3_175B, false,
		{{253, 253, 253, 253}, {179, 179, 179, 179}, {179, 158, 137, 137},
			{158, 137, 137, 137}}},
	{37, FS_GPT3_13B, false,
		{{33.55, 33.55, 33.55, 33.55}, {20.66, 20.66, 20.66, 20.66},
			{20.66, 19.10, 17.54, 17.54}, {19.10, 17.54, 17.54, 17.54}}},
	{38, FS_LLAMA_65B, false,
		{{211, 211, 211, 211}, {129, 129, 129, 129}, {129, 121, 113, 113},
			{121, 113, 113, 113}}},
	{39, FS_LLAMA_7B, false,
		{{37.78, 37.78, 37.78, 37.78}, {21.29, 21.29, 21.29, 21.29},
			{21.29, 20.49, 19.68, 19.68}, {20.49, 19.68, 19.68, 19.68}}},
	{40, FS_GPT3_175B, true,
		{{106, 106, 106, 106}, {84.6, 84.6, 84.6, 84.6}, {84.6, 63.6, 63.6, 63.6},
			{84.6, 63.6, 63.6, 63.6}}},
	{41, FS_GPT3_13B, true,
		{{7.94, 7.94, 7.94, 7.94}, {6.38, 6.38, 6.38, 6.38}, {6.38, 4.82, 4.82, 4.82},
			{6.38, 4.82, 4.82, 4.82}}},
	{42, FS_LLAMA_65B, true,
		{{47.6, 47.6, 47.6, 47.6}, {39.8, 39.8, 39.8, 39.8}, {110.0, 39.8, 32.0, 32.0},
			{110.0, 39.8, 32.0, 32.0}}},
	{43, FS_LLAMA_7B, true,
		{{5.01, 5.01, 5.01, 5.01}, {4.20, 4.20, 4.20, 4.20}, {4.20, 3.40, 3.40, 3.40},
			{4.20, 3.40, 3.40, 3.40}}},
};

const double fs_paper_mean[FS_MULTIS][FS_SETTINGS] = {
	{6190, 4108, 3920, 3750}, {6245, 4635, 4722, 4621}, {6267, 4666, 4791, 4618}};
const double fs_paper_small[2][FS_SETTINGS] = {{72.0, 56.0, 56.2, 56.0}, {41.9, 41.1, 40.9, 40.9}};

const struct fs_shape *fs_multi_shape(unsigned trace)
{
	return trace == FS_MULTIS ? &fs_shape_2048_half : &fs_shape_2048;
}

unsigned fs_multi_trace(unsigned trace)
{
	return trace == FS_MULTIS ? 2 : trace;
}

/* The paper has whole numbers above 110, one place above 30, two below, but for table 37's and 39's
 * rings. */
double fs_as_printed(double seconds, double paper)
{
	double unit = 1;

	while (unit > 0.01 && fabs(paper / unit - round(paper / unit)) > 1e-6)
		unit /= 10;
	return round(seconds / unit) * unit;
}

int fs_run_jobs(const struct fs_shape *shape, const struct fs_config *config,
	const struct fs_job *job, unsigned n, struct fs_result **out, struct fs_totals *totals,
	void (*each)(void *arg, unsigned ended), void *arg, char err[FS_ERR_LEN])
{
	struct fs_fabric *f;
	struct fs_sim *s;
	unsigned steps = 0;
	int rc = fs_fabric_new(shape, &f, err);

	if (rc)
		return rc;
	rc = fs_sim_new(f, config, job, n, &s, err);
	if (rc) {
		fs_fabric_free(f);
		return rc;
	}
	while ((rc = fs_sim_step(s)) == 1) {
		if (each && ++steps % EVERY == 0)
			each(arg, fs_sim_ended(s));
	}
	*out = rc ? NULL : malloc((n + 1) * sizeof(**out));
	for (unsigned i = 0; *out && i < n; i++)
		(*out)[i] = *fs_sim_result(s, i);
	*totals = fs_sim_totals(s);
	fs_sim_free(s);
	fs_fabric_free(f);
	return *out ? 0 : -1;
}

int fs_run_single(const struct fs_single *t, enum fs_setting setting, unsigned slots,
	const struct fs_config *options, double *seconds, struct fs_totals *totals,
	char err[FS_ERR_LEN])
{
	struct fs_shape shape = fs_shape_128;
	struct fs_config config = *options;
	struct fs_job job = fs_model_job(&fs_models[t->model], FS_SINGLE_GPUS, FS_ITERATIONS);
	struct fs_result *result;
	int rc;

	shape.slots = slots;
	config.policy = fs_setting_policy(setting);
	config.scaleup = t->scaleup;
	rc = fs_run_jobs(&shape, &config, &job, 1, &result, totals, NULL, NULL, err);
	if (rc)
		return rc;
	*seconds = (double)result->end_ns / NS_PER_S;
	free(result);
	return 0;
}
