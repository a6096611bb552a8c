/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation on every type end to end, over links that lose, duplicate and reorder, bit for
 * bit against the oracle of docs/arithmetic.md. In a reproducible group any values, in the order of
 * the tree; otherwise values whose result no order of arrival changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/integration/fabric.h"
#include "tests/unit/reduce/oracle.h"

enum { RANKS = 4, COUNT = 1003, ROOT = 2 };

static uint64_t random_state;

struct scenario {
	struct fabric *fab;
	const struct fab_tree *tree;
	bool reproducible;
};

static uint64_t next_random(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static struct scenario scenario_new(
	const struct fab_tree *tree, enum ccl_mode mode, bool reproducible)
{
	const struct fab_opts opts = {.tree = *tree,
		.mode = mode,
		.kind = mode == CCL_MODE_2 ? CCL_SINGLE : CCL_MIXED,
		.collectives = 1 << CCL_ALLREDUCE | 1 << CCL_REDUCE,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR |
			 (reproducible ? INC_F_REPRODUCIBLE : INC_F_HALF),
		.start_psn = 0xfffff0,
		.seed = 20261,
		.timeout_ns = 60000000000,
		.faults = {.loss = 0.01, .dup = 0.01, .reorder = 0.05}};

	random_state = 7;
	return (struct scenario){fab_create(&opts), tree, reproducible};
}

static bool is_float(enum reduce_dtype t)
{
	return t == REDUCE_FP32 || t == REDUCE_FP16 || t == REDUCE_BF16 || t == REDUCE_FP64;
}

/* A float of 2^-2 to 2^2 or so with few digits: sums of a few are exact in the accumulator and
 * products too; at the end fp16 and bf16 still have to round. */
static uint64_t plain_float(enum reduce_dtype t)
{
	static const unsigned mantissa[] = {
		[REDUCE_FP32] = 23, [REDUCE_FP16] = 10, [REDUCE_BF16] = 7, [REDUCE_FP64] = 52};
	static const uint64_t one[] = {[REDUCE_FP32] = 0x3f800000,
		[REDUCE_FP16] = 0x3c00,
		[REDUCE_BF16] = 0x3f80,
		[REDUCE_FP64] = 0x3ff0000000000000};
	const uint64_t r = next_random(), sign = r & 1;
	const unsigned m = mantissa[t];

	return (one[t] + ((r >> 1 & 3) << m) - (2ULL << m)) | (r >> 8 & 31) << (m - 5) |
	       sign << (8 * reduce_size(t) - 1);
}

static uint64_t any(enum reduce_dtype t)
{
	uint64_t specials[ORACLE_SPECIALS], r = next_random();

	if (r % 4 == 0)
		return specials[(r >> 8) % oracle_specials(t, specials)];
	return next_random() >> (64 - 8 * reduce_size(t));
}

static uint64_t element(const struct scenario *s, enum reduce_op op, enum reduce_dtype t)
{
	const bool ordered = is_float(t) && (op == REDUCE_SUM || op == REDUCE_PROD);

	return ordered && !s->reproducible ? plain_float(t) : any(t);
}

/* What a switch makes of its inputs, in this order. */
static uint64_t at_switch(enum reduce_op op, enum reduce_dtype t, const uint64_t *in, unsigned n)
{
	uint64_t acc = oracle_widen(t, in[0]);

	for (unsigned i = 1; i < n; i++)
		acc = oracle_accumulate(op, t, acc, in[i]);
	return oracle_narrow(t, acc);
}

static uint64_t all_reduced(
	const struct scenario *s, enum reduce_op op, enum reduce_dtype t, const uint64_t *in)
{
	uint64_t leaf[2];

	if (s->tree == &fab_star4)
		return at_switch(op, t, in, RANKS);
	leaf[0] = at_switch(op, t, in, 2);
	leaf[1] = at_switch(op, t, in + 2, 2);
	return at_switch(op, t, leaf, 2);
}

/* The switch adds the others; the root's CommLib adds its own. */
static uint64_t reduced_to_root(enum reduce_op op, enum reduce_dtype t, const uint64_t *in)
{
	uint64_t others[RANKS];
	unsigned n = 0;

	for (unsigned r = 0; r < RANKS; r++)
		if (r != ROOT)
			others[n++] = in[r];
	return oracle(op, t, at_switch(op, t, others, n), in[ROOT]);
}

struct data {
	uint64_t in[COUNT][RANKS];
	uint8_t send[RANKS][COUNT * 8], recv[RANKS][COUNT * 8];
};

static void fill(const struct scenario *s, enum reduce_op op, enum reduce_dtype t, struct data *d)
{
	const size_t size = reduce_size(t);

	for (size_t i = 0; i < COUNT; i++) {
		for (unsigned r = 0; r < RANKS; r++) {
			d->in[i][r] = element(s, op, t);
			memcpy(d->send[r] + i * size, &d->in[i][r], size);
		}
	}
	memset(d->recv, 0xa5, sizeof(d->recv));
}

static void check(const struct data *d, unsigned rank, enum reduce_op op, enum reduce_dtype t,
	size_t i, uint64_t expected)
{
	uint64_t is = 0;

	memcpy(&is, d->recv[rank] + i * reduce_size(t), reduce_size(t));
	if (is != expected)
		fail_msg("%s %s, rank %u, element %zu: %#llx, not %#llx", reduce_op_name(op),
			reduce_dtype_name(t), rank, i, (unsigned long long)is,
			(unsigned long long)expected);
}

static void all_reduce(
	const struct scenario *s, enum reduce_op op, enum reduce_dtype t, struct data *d)
{
	struct ccl_req req[RANKS] = {{0}};

	fill(s, op, t, d);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(ccl_iallreduce(fab_comm(s->fab, r), d->send[r], d->recv[r], COUNT,
					 t, op, &req[r]),
			0);
	assert_int_equal(fab_wait(s->fab, req, 100000000000), 0);
	for (size_t i = 0; i < COUNT; i++)
		for (unsigned r = 0; r < RANKS; r++)
			check(d, r, op, t, i, all_reduced(s, op, t, d->in[i]));
}

static void reduce(const struct scenario *s, enum reduce_op op, enum reduce_dtype t, struct data *d)
{
	struct ccl_req req[RANKS] = {{0}};

	fill(s, op, t, d);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(ccl_ireduce(fab_comm(s->fab, r), d->send[r], d->recv[r], COUNT, t,
					 op, ROOT, &req[r]),
			0);
	assert_int_equal(fab_wait(s->fab, req, 100000000000), 0);
	for (size_t i = 0; i < COUNT; i++)
		check(d, ROOT, op, t, i, reduced_to_root(op, t, d->in[i]));
}

static void every_pair_in(const struct fab_tree *tree, enum ccl_mode mode, bool reproducible)
{
	struct scenario s = scenario_new(tree, mode, reproducible);
	struct data *d = malloc(sizeof(*d));
	unsigned pairs = 0;

	for (int op = 0; op <= REDUCE_NONE; op++) {
		for (int t = 0; t <= REDUCE_BYTES; t++) {
			if (!oracle_supports((enum reduce_op)op, (enum reduce_dtype)t))
				continue;
			pairs++;
			all_reduce(&s, (enum reduce_op)op, (enum reduce_dtype)t, d);
			if (tree == &fab_star4)
				reduce(&s, (enum reduce_op)op, (enum reduce_dtype)t, d);
		}
	}
	assert_int_equal(pairs, 38);
	fab_destroy(s.fab);
	free(d);
}

static void every_pair(const struct fab_tree *tree, bool reproducible)
{
	static const enum ccl_mode modes[] = {CCL_MODE_1, CCL_MODE_2, CCL_MODE_3};

	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		every_pair_in(tree, modes[i], reproducible);
}

static void in_order_of_arrival(void **state)
{
	(void)state;
	every_pair(&fab_star4, false);
}

static void reproducible(void **state)
{
	(void)state;
	every_pair(&fab_star4, true);
}

static void reproducible_in_a_tree(void **state)
{
	(void)state;
	every_pair(&fab_tree_2x2, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_of_arrival),
		cmocka_unit_test(reproducible),
		cmocka_unit_test(reproducible_in_a_tree),
	};

	return cmocka_run_group_tests_name("types", tests, NULL, NULL);
}
