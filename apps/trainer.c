/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const float FIXED_ONE = (float)(1 << TRAINER_BITS);

/* ---- opening ---- */

static void divide(struct trainer *t, const struct digit *digit, unsigned n)
{
	uint64_t rng = t->conf.seed;

	memcpy(t->digit, digit, n * sizeof(*digit));
	for (unsigned i = n - 1; i > 0; i--) {
		const unsigned j = (unsigned)(model_random(&rng) % (i + 1));
		const struct digit swap = t->digit[i];

		t->digit[i] = t->digit[j];
		t->digit[j] = swap;
	}
	t->n_train = n * 4 / 5;
	t->n_test = n - t->n_train;
}

static bool allocate(struct trainer *t, unsigned n_digits)
{
	const size_t all = (size_t)t->block * t->conf.n_ranks;

	t->digit = calloc(n_digits, sizeof(*t->digit));
	t->order = calloc(n_digits, sizeof(*t->order));
	t->param = calloc(all, sizeof(*t->param));
	t->own = t->conf.sharded ? calloc(t->block, sizeof(*t->own)) : t->param;
	t->velocity = calloc(all, sizeof(*t->velocity));
	t->slope = calloc(all, sizeof(*t->slope));
	t->grad = calloc(all, sizeof(*t->grad));
	t->part = calloc(all, sizeof(*t->part));
	return t->digit && t->order && t->param && t->own && t->velocity && t->slope && t->grad &&
	       t->part;
}

int trainer_open(struct trainer *t, const struct trainer_conf *conf, const struct digit *digit,
	unsigned n_digits)
{
	*t = (struct trainer){.conf = *conf, .n_params = model_params(conf->model)};
	t->n_sum = t->n_params + 1;
	t->block = (t->n_sum + conf->n_ranks - 1) / conf->n_ranks;
	if (n_digits < DIGITS_MIN)
		return -EINVAL;
	if (!allocate(t, n_digits)) {
		trainer_close(t);
		return -ENOMEM;
	}
	divide(t, digit, n_digits);
	return 0;
}

void trainer_close(struct trainer *t)
{
	if (t->own != t->param)
		free(t->own);
	free(t->digit);
	free(t->order);
	free(t->param);
	free(t->velocity);
	free(t->slope);
	free(t->grad);
	free(t->part);
	*t = (struct trainer){0};
}

enum reduce_dtype trainer_dtype(const struct trainer *t)
{
	return t->conf.fixed ? REDUCE_INT32 : REDUCE_FP32;
}

/* ---- weights ---- */

/* The first element that this rank keeps, and how many. */
static unsigned own_first(const struct trainer *t)
{
	return t->conf.sharded ? t->conf.rank * t->block : 0;
}

static unsigned own_count(const struct trainer *t)
{
	return t->conf.sharded ? t->block : t->n_sum;
}

/* The others' weights: whoever used them after that would compute with NaN. */
static void forget(struct trainer *t)
{
	if (t->conf.sharded)
		memset(t->param, 0xff, sizeof(*t->param) * t->block * t->conf.n_ranks);
}

void trainer_begin(struct trainer *t)
{
	const size_t all = (size_t)t->block * t->conf.n_ranks;

	t->rng = t->conf.seed + 1;
	t->steps = 0;
	memset(t->param, 0, all * sizeof(*t->param));
	memset(t->velocity, 0, all * sizeof(*t->velocity));
	model_init(t->conf.model, t->param, t->conf.seed + 2);
	if (t->conf.sharded)
		memcpy(t->own, t->param + own_first(t), t->block * sizeof(*t->own));
	forget(t);
}

void trainer_epoch(struct trainer *t)
{
	const unsigned first = own_first(t), loss = t->n_params;

	for (unsigned i = 0; i < t->n_train; i++)
		t->order[i] = i;
	for (unsigned i = t->n_train - 1; i > 0; i--) {
		const unsigned j = (unsigned)(model_random(&t->rng) % (i + 1)), swap = t->order[i];

		t->order[i] = t->order[j];
		t->order[j] = swap;
	}
	if (loss >= first && loss < first + own_count(t))
		t->own[loss - first] = 0;
}

unsigned trainer_batch(const struct trainer *t, unsigned first)
{
	const unsigned left = t->n_train - first;

	return left < t->conf.batch ? left : t->conf.batch;
}

/* ---- gradients ---- */

static int32_t to_fixed(const struct trainer *t, float x)
{
	const int32_t most = INT32_MAX / (int32_t)t->conf.n_ranks;

	x *= FIXED_ONE;
	if (!(x > -(float)most)) /* also NaN */
		return -most;
	return x < (float)most ? (int32_t)lrintf(x) : most;
}

static float to_real(const struct trainer *t, union trainer_sum x)
{
	return t->conf.fixed ? (float)x.fixed / FIXED_ONE : x.real;
}

/* Every n_ranks-th digit of the step's. */
void trainer_share(
	struct trainer *t, unsigned rank, unsigned first, unsigned n, union trainer_sum *to)
{
	const unsigned all = t->block * t->conf.n_ranks;

	memset(t->slope, 0, all * sizeof(*t->slope));
	for (unsigned i = rank; i < n; i += t->conf.n_ranks)
		model_backward(t->conf.model, t->param, &t->digit[t->order[first + i]], t->slope);
	for (unsigned i = 0; i < all; i++)
		if (t->conf.fixed)
			to[i].fixed = to_fixed(t, t->slope[i]);
		else
			to[i].real = t->slope[i];
}

void trainer_gradient(struct trainer *t, unsigned first, unsigned n)
{
	trainer_share(t, t->conf.rank, first, n, t->grad);
}

void trainer_add(const struct trainer *t, union trainer_sum *to, const union trainer_sum *from)
{
	for (unsigned i = 0; i < t->n_sum; i++)
		if (t->conf.fixed)
			to[i].fixed += from[i].fixed;
		else
			to[i].real += from[i].real;
}

void trainer_step(struct trainer *t, const union trainer_sum *sum, unsigned n)
{
	const unsigned first = own_first(t);
	const float scale = 1.0f / (float)n;

	for (unsigned i = 0; i < own_count(t) && first + i < t->n_sum; i++) {
		const float g = to_real(t, sum[i]);

		if (first + i == t->n_params) {
			t->own[i] += g; /* the loss */
			continue;
		}
		t->velocity[i] = t->conf.momentum * t->velocity[i] + g * scale;
		t->own[i] -= t->conf.rate * t->velocity[i];
	}
	t->steps++;
	forget(t);
}

/* ---- results ---- */

double trainer_accuracy(const struct trainer *t)
{
	unsigned right = 0;

	for (unsigned i = t->n_train; i < t->n_train + t->n_test; i++)
		right += model_classify(t->conf.model, t->param, &t->digit[i]) == t->digit[i].label;
	return (double)right / t->n_test;
}

double trainer_loss(const struct trainer *t)
{
	return (double)t->param[t->n_params] / t->n_train;
}

uint32_t trainer_checksum(const struct trainer *t)
{
	return (uint32_t)crc32(0, (const void *)t->param, (uInt)(t->n_params * sizeof(*t->param)));
}
