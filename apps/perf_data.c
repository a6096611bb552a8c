/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks contribute and what must come out.
 *
 * By default all numbers are small integers, chosen so that every partial result of every order is
 * exact in the type: results then have to be right to the bit. With `reals` floats are random and
 * a result may be off by as many roundings as there can be. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/perf.h"

static const struct {
	enum reduce_dtype dtype;
	const char *name;
} types[] = {
	{REDUCE_FP32, "float"},
	{REDUCE_FP16, "half"},
	{REDUCE_BF16, "bfloat16"},
	{REDUCE_FP64, "double"},
	{REDUCE_INT32, "int"},
	{REDUCE_INT32, "int32"},
};

const char *perf_type_name(enum reduce_dtype dtype)
{
	if (dtype == REDUCE_INT32)
		return "int32";
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].dtype == dtype)
			return types[i].name;
	return reduce_dtype_name(dtype);
}

int perf_type_parse(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, name) == 0)
			return (int)types[i].dtype;
	return reduce_dtype_parse(name);
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static bool is_float(enum reduce_dtype dtype)
{
	return dtype == REDUCE_FP32 || dtype == REDUCE_FP16 || dtype == REDUCE_BF16 ||
	       dtype == REDUCE_FP64;
}

static bool is_signed(enum reduce_dtype dtype)
{
	return is_float(dtype) || dtype == REDUCE_INT32 || dtype == REDUCE_INT64 ||
	       dtype == REDUCE_INT8;
}

/* Largest integer up to which a type has all of them. */
static int64_t exact_up_to(enum reduce_dtype dtype)
{
	return dtype == REDUCE_BF16 ? 256 : dtype == REDUCE_FP16 ? 2048 : 1 << 24;
}

/* ---- one element ---- */

static int64_t small(const struct perf_data *d, unsigned rank, unsigned i)
{
	const uint64_t dice = mix(d->seed << 40 ^ (uint64_t)rank << 16 ^ i);
	int64_t most = 63;

	if (d->op == REDUCE_PROD) {
		static const int64_t factor[] = {1, 2, 3, 5};

		/* One rank's factor, and the others' signs. */
		return (i % d->n_ranks == rank ? factor[dice & 3] : 1) *
		       (is_signed(d->dtype) && dice & 4 ? -1 : 1);
	}
	if (d->op == REDUCE_SUM && most > exact_up_to(d->dtype) / d->n_ranks)
		most = exact_up_to(d->dtype) / d->n_ranks;
	if (most == 0)
		return rank < (unsigned)exact_up_to(d->dtype) ? (int64_t)(dice & 1) : 0;
	return (int64_t)(dice % (uint64_t)(most + 1)) - (is_signed(d->dtype) ? most / 2 : 0);
}

static double real(const struct perf_data *d, unsigned rank, unsigned i)
{
	const uint64_t dice = mix(d->seed << 40 ^ (uint64_t)rank << 16 ^ i ^ 1ull << 63);

	return (double)(int64_t)dice * 0x1p-63;
}

static void put_float(const struct perf_data *d, double x, uint8_t *out)
{
	const float f = (float)x;
	const reduce_fn narrow = reduce_narrow(d->dtype);

	if (d->dtype == REDUCE_FP64)
		memcpy(out, &x, sizeof(x));
	else if (narrow)
		narrow(out, &f, d->size);
	else
		memcpy(out, &f, sizeof(f));
}

static double get_float(const struct perf_data *d, const uint8_t *in)
{
	double x;
	float f;

	if (d->dtype == REDUCE_FP64) {
		memcpy(&x, in, sizeof(x));
		return x;
	}
	reduce_widen(d->dtype)(&f, in, d->size);
	return (double)f;
}

static void put_int(const struct perf_data *d, int64_t n, uint8_t *out)
{
	if (is_float(d->dtype))
		put_float(d, (double)n, out);
	else
		memcpy(out, &n, d->size); /* little-endian: the low bytes, as sums wrap */
}

static void element(const struct perf_data *d, unsigned rank, unsigned i, uint8_t *out)
{
	if (d->reals)
		put_float(d, real(d, rank, i), out);
	else
		put_int(d, small(d, rank, i), out);
}

/* ---- results ---- */

static void want_exact(const struct perf_data *d, unsigned i, uint8_t *out)
{
	uint64_t acc = (uint64_t)small(d, 0, i);

	for (unsigned r = 1; r < d->n_ranks; r++) {
		const int64_t n = small(d, r, i);

		if (d->op == REDUCE_SUM)
			acc += (uint64_t)n;
		else if (d->op == REDUCE_PROD)
			acc *= (uint64_t)n;
		else if (d->op == REDUCE_MIN ? n < (int64_t)acc : n > (int64_t)acc)
			acc = (uint64_t)n;
	}
	put_int(d, (int64_t)acc, out);
}

/* Every addition or multiplication and every switch on the way may round once. */
static void want_real(struct perf_data *d, unsigned i)
{
	const double unit = d->dtype == REDUCE_FP64   ? 0x1p-53
			    : d->dtype == REDUCE_FP32 ? 0x1p-24
			    : d->dtype == REDUCE_FP16 ? 0x1p-11
						      : 0x1p-8;
	double acc = 0, sizes = 0;

	for (unsigned r = 0; r < d->n_ranks; r++) {
		uint8_t bytes[8];
		double x;

		element(d, r, i, bytes);
		x = get_float(d, bytes);
		sizes += fabs(x);
		if (r == 0)
			acc = x;
		else if (d->op == REDUCE_SUM)
			acc += x;
		else if (d->op == REDUCE_PROD)
			acc *= x;
		else
			acc = d->op == REDUCE_MIN ? fmin(acc, x) : fmax(acc, x);
	}
	d->value[i] = acc;
	if (d->op == REDUCE_PROD)
		sizes = fabs(acc);
	d->bound[i] = d->op == REDUCE_MIN || d->op == REDUCE_MAX
			      ? 0
			      : (2 * d->n_ranks + 2) * (unit * sizes + 0x1p-25 * (unit == 0x1p-11));
}

bool perf_data_make(struct perf_data *d)
{
	d->size = reduce_size(d->dtype);
	d->reals = d->reals && is_float(d->dtype);
	if (d->op == REDUCE_NONE)
		return true;
	d->want = malloc(PERF_PERIOD * d->size);
	d->value = d->reals ? malloc(PERF_PERIOD * sizeof(double)) : NULL;
	d->bound = d->reals ? malloc(PERF_PERIOD * sizeof(double)) : NULL;
	if (!d->want || (d->reals && (!d->value || !d->bound)))
		return false;
	for (unsigned i = 0; i < PERF_PERIOD; i++) {
		if (d->reals)
			want_real(d, i);
		else
			want_exact(d, i, d->want + i * d->size);
	}
	return true;
}

void perf_data_free(struct perf_data *d)
{
	free(d->want);
	free(d->value);
	free(d->bound);
	d->want = NULL;
	d->value = d->bound = NULL;
}

void perf_table(const struct perf_data *d, unsigned rank, uint8_t *table)
{
	for (unsigned i = 0; i < PERF_PERIOD; i++)
		element(d, rank, i, table + i * d->size);
}

/* ---- buffers ---- */

static unsigned start(uint64_t round, uint64_t first)
{
	return (unsigned)((first % PERF_PERIOD + round * 911 % PERF_PERIOD) % PERF_PERIOD);
}

/* How many elements there are until the table's end. */
static uint64_t run_of(unsigned at, uint64_t count)
{
	return count < PERF_PERIOD - at ? count : PERF_PERIOD - at;
}

void perf_fill(const struct perf_data *d, const uint8_t *table, uint64_t round, uint64_t first,
	uint64_t count, void *buf)
{
	uint8_t *out = buf;

	for (unsigned at = start(round, first); count > 0; at = 0) {
		const uint64_t n = run_of(at, count);

		memcpy(out, table + at * d->size, n * d->size);
		out += n * d->size;
		count -= n;
	}
}

uint64_t perf_wrong_copy(const struct perf_data *d, const uint8_t *table, uint64_t round,
	uint64_t first, uint64_t count, const void *buf)
{
	const uint8_t *in = buf;
	uint64_t wrong = 0;

	for (unsigned at = start(round, first); count > 0; at = 0) {
		const uint64_t n = run_of(at, count);
		const uint8_t *t = table + at * d->size;

		const bool differs = memcmp(in, t, n * d->size) != 0;

		for (uint64_t i = 0; differs && i < n; i++)
			wrong += memcmp(in + i * d->size, t + i * d->size, d->size) != 0;
		in += n * d->size;
		count -= n;
	}
	return wrong;
}

uint64_t perf_wrong_result(
	const struct perf_data *d, uint64_t round, uint64_t first, uint64_t count, const void *buf)
{
	const uint8_t *in = buf;
	unsigned at = start(round, first);
	uint64_t wrong = 0;

	if (!d->reals)
		return perf_wrong_copy(d, d->want, round, first, count, buf);
	for (uint64_t i = 0; i < count; i++) {
		const double x = get_float(d, in + i * d->size);

		wrong += !(fabs(x - d->value[at]) <= d->bound[at]); /* a NaN is wrong, too */
		at = at + 1 == PERF_PERIOD ? 0 : at + 1;
	}
	return wrong;
}
