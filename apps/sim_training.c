/* SPDX-License-Identifier: BSD-3-Clause */
/* EPIC's tables 33 and 34, iterations of large models: SimAI's part by lib/sim/step_cost.h, the
 * network's measured here. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "apps/sim_measure.h"
#include "apps/sim_models.h"
#include "lib/sim/step_cost.h"

enum { N_MODELS = 4, N_WAYS = 3, GBPS = 100 };

/* How gradients are summed: one bucket after the other, of the size that PyTorch's
 * DistributedDataParallel has by default. */
static const double BUCKET = 25 << 20;

/* What the paper does not say: bytes per second of a GPU inside its machine. Such that the rows of
 * the three models without a pipeline are the paper's; one number for all rows. */
static const double TENSOR_RATE = 131.4e9;

static const struct {
	enum ccl_mode mode;
	const char *name;
} way[N_WAYS] = {{CCL_MODE_2, "Mode-II"}, {CCL_MODE_3, "Mode-III"}, {CCL_MODE_RING, "host ring"}};

/* Table 33; seconds of table 34. "dtype size 16" is taken for bits. */
static const struct {
	const char *name;
	struct step_cost_setting setting;
	double paper[N_WAYS];
} models[N_MODELS] = {
	{"GPT-3-175B", {125e12, 96, 12288, 175e9, 2048, 1536, 2, 4, 32, 8, TENSOR_RATE},
		{32.35, 32.37, 33.19}},
	{"GPT-3-13B", {312e12, 40, 5120, 13e9, 2048, 128, 2, 8, 16, 1, TENSOR_RATE},
		{1.154, 1.159, 1.403}},
	{"Llama-65B", {312e12, 80, 8192, 65e9, 4096, 128, 2, 8, 16, 1, TENSOR_RATE},
		{8.831, 8.856, 10.08}},
	{"Llama-7B", {312e12, 32, 4096, 6.7e9, 4096, 128, 2, 8, 16, 1, TENSOR_RATE},
		{1.132, 1.134, 1.261}},
};

/* Seconds of an AllReduce among so many ranks on one switch, as in table 25. NAN: err says why. */
static double measure(
	enum ccl_mode mode, unsigned ranks, uint64_t bytes, uint64_t seed, char err[CCL_ERR_LEN])
{
	char topology[16];
	const struct sim_job job = {.topology = topology,
		.conf = {.seed = seed, .link = {.mbps = GBPS * 1000, .delay_ns = 1000}},
		.group = {.mode = mode,
			.collectives = 1u << CCL_ALLREDUCE,
			.mtu = 1024,
			.m = 4,
			.w = 64,
			.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
			.start_psn = 1000},
		.op = CCL_ALLREDUCE,
		.bytes = bytes};

	snprintf(topology, sizeof(topology), "star:%u", ranks);
	return sim_measure(&job, err).ns * 1e-9;
}

/* Of a bucket: by two smaller sizes and a straight line. Of smaller ones than these a ring of 32
 * ranks is not yet as slow as its links. */
static double bucket_seconds(
	enum ccl_mode mode, unsigned ranks, uint64_t seed, char err[CCL_ERR_LEN])
{
	const uint64_t small = 1 << 20, large = 1 << 22;
	const double a = measure(mode, ranks, small, seed, err),
		     b = measure(mode, ranks, large, seed, err);

	return b + (BUCKET - (double)large) * (b - a) / (double)(large - small);
}

void sim_training_settings(json_t *result)
{
	json_t *rows = json_array();

	printf("EPIC table 33: settings, and what they make\n%-11s %5s %5s %5s %5s %8s %8s %8s %8s "
	       "%8s\n",
		"", "GPUs", "TP", "DP", "PP", "compute", "tensor", "bubble", "DP, GB", "buckets");
	for (unsigned i = 0; i < N_MODELS; i++) {
		const struct step_cost_setting *s = &models[i].setting;
		const struct step_cost c = step_cost_of(s);

		printf("%-11s %5u %5u %5u %5u %7.3fs %7.3fs %7.3fs %8.3f %8.0f\n", models[i].name,
			s->tp * s->dp * s->pp, s->tp, s->dp, s->pp, c.compute, c.tensor, c.bubble,
			c.data_bytes / 1e9, ceil(c.data_bytes / BUCKET));
		json_array_append_new(
			rows, json_pack("{s:s,s:f,s:f,s:f,s:f}", "model", models[i].name,
				      "compute_s", c.compute, "tensor_s", c.tensor, "bubble_s",
				      c.bubble, "data_bytes", c.data_bytes));
	}
	json_object_set_new(result, "table", json_integer(33));
	json_object_set_new(result, "rows", rows);
}

static void put(json_t *rows, const char *solution, unsigned i, double ours, json_t *paper)
{
	json_array_append_new(
		rows, json_pack("{s:s,s:s,s:o,s:o}", "solution", solution, "at", models[i].name,
			      "ours", isnan(ours) ? json_null() : json_real(ours), "paper", paper));
}

static void row(json_t *rows, unsigned w, unsigned i, double bucket)
{
	const struct step_cost c = step_cost_of(&models[i].setting);
	const double gradients = c.data_bytes / BUCKET * bucket,
		     ours = step_cost_seconds(&c, gradients), paper = models[i].paper[w];
	char part[32];

	printf("%-10s %-11s %9.3f %9.3f %9.3f %+8.1f %%\n", way[w].name, models[i].name, gradients,
		ours, paper, 100 * (ours / paper - 1));
	put(rows, way[w].name, i, ours, json_real(paper));
	snprintf(part, sizeof(part), "gradients, %s", way[w].name);
	put(rows, part, i, gradients, json_null());
}

int sim_training_table(uint64_t seed, json_t *result)
{
	json_t *rows = json_array();
	int rc = 0;

	printf("EPIC table 34: an iteration, seconds; gradients in buckets of %.0f MiB\n"
	       "%-10s %-11s %9s %9s %9s\n",
		BUCKET / (1 << 20), "", "", "gradients", "ours", "paper");
	for (unsigned w = 0; w < N_WAYS; w++) {
		unsigned ranks = 0;
		double bucket = NAN;

		for (unsigned i = 0; i < N_MODELS; i++) {
			char err[CCL_ERR_LEN] = "";

			if (models[i].setting.dp != ranks) {
				ranks = models[i].setting.dp;
				bucket = bucket_seconds(way[w].mode, ranks, seed, err);
			}
			if (isnan(bucket) && err[0])
				printf("%s: %s\n", way[w].name, err);
			rc = isnan(bucket) ? -EIO : rc;
			row(rows, w, i, bucket);
		}
	}
	json_object_set_new(result, "table", json_integer(34));
	json_object_set_new(result, "title", json_string("iteration of a large model"));
	json_object_set_new(result, "unit", json_string("s"));
	json_object_set_new(result, "rows", rows);
	return rc;
}
