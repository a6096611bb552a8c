/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/flowsim/trace.h"

#include <errno.h>
#include <math.h>

#include "lib/wire/random.h"

/* 6 floating-point operations per parameter and token, on an A100 with sparsity. */
static const double FLOPS = 624e12, PER_TOKEN = 6;
static const double NS_PER_S = 1e9;
enum { ALLREDUCES = 4, ACTIVATION = 2, GRADIENT = 4, LEAST = 10, SPREAD = 21 };

const struct fs_model fs_models[FS_MODELS] = {
	[FS_GPT3_175B] = {"gpt3-175b", 175e9, 96, 12288, 2048},
	[FS_GPT3_13B] = {"gpt3-13b", 13e9, 40, 5120, 2048},
	[FS_LLAMA_65B] = {"llama-65b", 65e9, 80, 8192, 4096},
	[FS_LLAMA_7B] = {"llama-7b", 6.7e9, 32, 4096, 4096},
};

struct fs_job fs_model_job(const struct fs_model *m, unsigned gpus, unsigned iterations)
{
	double tokens = (double)FS_SAMPLES * m->sequence;

	return (struct fs_job){.gpus = gpus,
		.tp = FS_TP,
		.iterations = iterations,
		.compute_ns =
			(uint64_t)(PER_TOKEN * m->parameters * tokens / FS_TP / FLOPS * NS_PER_S),
		.tp_bytes = ALLREDUCES * ACTIVATION * (double)m->layers * m->hidden * tokens,
		.dp_bytes = gpus > FS_TP ? GRADIENT * m->parameters / FS_TP : 0};
}

uint64_t fs_random(uint64_t *state)
{
	return wire_random(state);
}

static double fraction(uint64_t *state)
{
	return (double)(fs_random(state) >> 11) * 0x1p-53;
}

uint64_t fs_job_alone_ns(const struct fs_job *job, double bytes_per_ns)
{
	return job->compute_ns + (uint64_t)(2 * (job->tp_bytes + job->dp_bytes) / bytes_per_ns);
}

static const struct {
	unsigned gpus;
	unsigned model;
	double share[FS_TRACES]; /* percent */
} mix[] = {
	{8, FS_LLAMA_7B, {30, 100.0 * 32 / 63}},
	{16, FS_GPT3_13B, {30, 100.0 * 16 / 63}},
	{32, FS_GPT3_13B, {25, 100.0 * 8 / 63}},
	{64, FS_LLAMA_65B, {10, 100.0 * 4 / 63}},
	{128, FS_GPT3_175B, {5, 100.0 * 2 / 63}},
	{256, FS_GPT3_175B, {0, 100.0 * 1 / 63}},
};
enum { SIZES = sizeof(mix) / sizeof(mix[0]) };

static struct fs_job draw(unsigned trace, uint64_t *random)
{
	double at = 100 * fraction(random);
	unsigned i = 0;

	while (i + 1 < SIZES && at >= mix[i].share[trace]) {
		at -= mix[i].share[trace];
		i++;
	}
	while (mix[i].share[trace] <= 0) /* rounding */
		i--;
	return fs_model_job(
		&fs_models[mix[i].model], mix[i].gpus, LEAST + fs_random(random) % SPREAD);
}

int fs_trace_make(unsigned trace, uint64_t seed, unsigned n, unsigned cluster, double load,
	struct fs_job *out)
{
	static const double LINE = 12.5; /* bytes per nanosecond */
	uint64_t random = seed;
	double work = 0, at = 0, gap;

	if (trace == 0 || trace > FS_TRACES || !(load > 0) || cluster == 0)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++) {
		out[i] = draw(trace - 1, &random);
		work += (double)out[i].gpus * out[i].iterations *
			(double)fs_job_alone_ns(&out[i], LINE);
	}
	gap = n ? work / n / cluster / load : 0;
	for (unsigned i = 0; i < n; i++) {
		out[i].submit_ns = (uint64_t)at;
		at += -log(1 - fraction(&random)) * gap;
	}
	return 0;
}
