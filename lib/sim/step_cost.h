/* SPDX-License-Identifier: BSD-3-Clause */
/* Time of an iteration that trains a large model, by arithmetic, in the place of SimAI for EPIC's
 * tables 33 and 34: replicas (data parallel), each a pipeline of stages, each stage some GPUs with
 * a part of every layer (tensor parallel). The parts follow one another, none hides another:
 *
 *  compute  6 floating-point operations per parameter and token, at the GPUs' peak
 *  tensor   four AllReduces a layer of a micro-batch's activations (two forward, two back), by a
 *           ring inside the machine
 *  bubble   what a stage waits while the pipeline fills and drains
 *  data     one AllReduce of the gradients of a GPU's parameters among the replicas
 *
 * Only the last is in EPIC's network. */
#ifndef SIM_STEP_COST_H
#define SIM_STEP_COST_H

struct step_cost_setting {
	double flops; /* of a GPU, per second */
	unsigned layers, hidden;
	double params;
	unsigned seq, batch; /* tokens of a sequence, sequences of all replicas */
	unsigned dtype;      /* bytes of an activation or gradient */
	unsigned tp, dp, pp;
	double tensor_rate; /* bytes per second that a GPU sends inside the machine */
};

struct step_cost {
	double compute, tensor, bubble; /* seconds */
	double data_bytes;              /* of a GPU's gradients */
};

/* pp divides layers, dp divides batch; nothing is 0. */
struct step_cost step_cost_of(const struct step_cost_setting *s);

/* Bytes of a replica's sequences that one AllReduce of a layer sums, all micro-batches together. */
double step_cost_activations(const struct step_cost_setting *s);

/* The iteration, with so many seconds for the AllReduce of data_bytes. */
double step_cost_seconds(const struct step_cost *c, double data_seconds);

#endif
