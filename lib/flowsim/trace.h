/* SPDX-License-Identifier: BSD-3-Clause */
/* What jobs do: the models of EPIC's tables 36 to 43, and traces of many jobs.
 *
 * The paper gives neither volumes nor compute times. These ones follow from its figures, to the
 * last digit (docs/flowsim.md): groups of 8 for tensor parallelism, two all-reduces of activations
 * per layer and direction, in 2 bytes; the rest data parallel, one all-reduce of gradients in 4
 * bytes. */
#ifndef FLOWSIM_TRACE_H
#define FLOWSIM_TRACE_H

#include <stdint.h>

struct fs_model {
	const char *name;
	double parameters;
	unsigned layers, hidden, sequence;
};

enum { FS_GPT3_175B, FS_GPT3_13B, FS_LLAMA_65B, FS_LLAMA_7B, FS_MODELS };
extern const struct fs_model fs_models[FS_MODELS];

enum { FS_TP = 8, FS_SAMPLES = 16 }; /* per group of FS_TP and iteration */

/* An iteration: all compute, then all groups of tp GPUs, then the tp groups across those. */
struct fs_job {
	uint64_t submit_ns;
	unsigned gpus, tp, iterations;
	uint64_t compute_ns;
	double tp_bytes, dp_bytes; /* of a rank's buffer, summed up per iteration */
};

struct fs_job fs_model_job(const struct fs_model *m, unsigned gpus, unsigned iterations);

/* Trace 1 is the paper's mix of sizes. Trace 2 stands in for the mix that the paper took from
 * Alibaba's Lingjun, which is not to be had: sizes from 8 to 256, each half as frequent as the one
 * before. Both: Llama-7B on 8 GPUs, GPT-3-13B on 16 and 32, Llama-65B on 64, GPT-3-175B above; 10
 * to 30 iterations; submitted at random, so that GPUs would be busy for the share load of the time
 * if all rings had their links to themselves. */
enum { FS_TRACES = 2 };

/* 0; -EINVAL: no such trace, a load that is not above 0. */
int fs_trace_make(unsigned trace, uint64_t seed, unsigned n, unsigned cluster, double load,
	struct fs_job *out);

/* What an iteration takes by rings that share no link but those of a leaf's hosts. */
uint64_t fs_job_alone_ns(const struct fs_job *job, double bytes_per_ns);

/* splitmix64 */
uint64_t fs_random(uint64_t *state);

#endif
