/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank's part of a data-parallel training, without its collectives: whoever has it calls those
 * in between. A step is
 *
 *	if sharded: AllGather of own (block elements) to param
 *	trainer_gradient
 *	AllReduce of grad (n_sum elements); if sharded ReduceScatter of grad, block elements each
 *	trainer_step
 *
 * Sharded, as FSDP does: a rank keeps a block of the weights and of their momentum, and forgets the
 * others' after each step. The loss is an element behind the parameters and travels with them. */
#ifndef APPS_TRAINER_H
#define APPS_TRAINER_H

#include "apps/model.h"
#include "lib/reduce/reduce.h"

struct trainer_conf {
	const struct model *model;
	unsigned rank, n_ranks;
	bool sharded;
	/* Each rank's gradient as int32 times 2^-TRAINER_BITS: sums are exact, in whatever order,
	 * and so are the weights. What is beyond INT32_MAX / n_ranks is cut there. Else as fp32. */
	bool fixed;
	unsigned batch; /* digits per step, all ranks together */
	uint64_t seed;  /* of weights and shuffles, the same at all ranks */
	float rate, momentum;
};

enum { TRAINER_BITS = 18 };

union trainer_sum {
	float real;
	int32_t fixed;
};

struct trainer {
	struct trainer_conf conf;
	struct digit *digit;
	unsigned n_train, n_test; /* those to train with come first */
	unsigned *order;          /* of these in this epoch */
	unsigned n_params, n_sum; /* n_sum: with the loss */
	unsigned block;           /* of a rank: n_ranks of them have room for n_sum */
	unsigned steps;           /* since trainer_begin */
	uint64_t rng;
	float *param; /* n_ranks blocks. Sharded: not there but from AllGather to trainer_step */
	float *own;   /* sharded: block elements; else param itself */
	float *velocity, *slope;
	union trainer_sum *grad, *part; /* n_ranks blocks; part is for what ReduceScatter gives */
};

/* Of the digits, which are copied, four fifths to train with, by a seeded shuffle. -ENOMEM;
 * -EINVAL: fewer than DIGITS_MIN. */
int trainer_open(struct trainer *t, const struct trainer_conf *conf, const struct digit *digit,
	unsigned n_digits);
void trainer_close(struct trainer *t);

enum reduce_dtype trainer_dtype(const struct trainer *t);

/* Weights as they are at first. */
void trainer_begin(struct trainer *t);
/* Another order, and loss 0. */
void trainer_epoch(struct trainer *t);
/* How many digits the step has that begins with that one. */
unsigned trainer_batch(const struct trainer *t, unsigned first);

/* The own share of a step's n digits to grad; or any rank's, to n_ranks blocks elsewhere. */
void trainer_gradient(struct trainer *t, unsigned first, unsigned n);
void trainer_share(
	struct trainer *t, unsigned rank, unsigned first, unsigned n, union trainer_sum *to);
/* Adds one to another, all elements. */
void trainer_add(const struct trainer *t, union trainer_sum *to, const union trainer_sum *from);

/* Along the sum over all ranks: of all elements, or, sharded, of the own block. */
void trainer_step(struct trainer *t, const union trainer_sum *sum, unsigned n);

/* With all weights in param: share of the test digits that are told, mean loss of the epoch, a
 * checksum of the weights. */
double trainer_accuracy(const struct trainer *t);
double trainer_loss(const struct trainer *t);
uint32_t trainer_checksum(const struct trainer *t);

#endif
