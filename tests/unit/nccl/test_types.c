/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's types and operations: which there are, and what they give. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/nccl/job.h"

static void types_and_operations(void **state)
{
	(void)state;
	for (int type = -1; type < 14; type++)
		for (int op = -1; op < 7; op++) {
			const bool byte = type == NCCL_INT8 || type == NCCL_UINT8;
			const bool have = type >= NCCL_INT8 && type <= NCCL_BFLOAT16 &&
					  op >= NCCL_SUM && op <= NCCL_MIN &&
					  !(byte && op == NCCL_PROD);
			int yes = -1;

			assert_int_equal(coll->supports(type, op, &yes), NCCL_OK);
			assert_int_equal(yes, have);
		}
}

/* ---- what they give ---- */

enum { COUNT = 300 };

/* Ranks contribute a and b in turn: bits, of which memory has as many of the lowest as the type. -3
 * tells signed from unsigned, and from what has the same size. */
static const struct row {
	enum nccl_type type;
	size_t size;
	uint64_t a, b;
	uint64_t result[4]; /* sum, prod, max, min */
} rows[] = {
	{NCCL_INT8, 1, 0xfd, 5, {4, 0, 5, 0xfd}},
	{NCCL_UINT8, 1, 0xfd, 5, {4, 0, 0xfd, 5}},
	{NCCL_INT32, 4, 0xfffffffd, 5, {4, 225, 5, 0xfffffffd}},
	{NCCL_UINT32, 4, 0xfffffffd, 5, {4, 225, 0xfffffffd, 5}},
	{NCCL_INT64, 8, 0xfffffffffffffffd, 5, {4, 225, 5, 0xfffffffffffffffd}},
	{NCCL_UINT64, 8, 0xfffffffffffffffd, 5, {4, 225, 0xfffffffffffffffd, 5}},
	{NCCL_FLOAT16, 2, 0xc200, 0x4500, {0x4400, 0x5b08, 0x4500, 0xc200}},
	{NCCL_FLOAT32, 4, 0xc0400000, 0x40a00000, {0x40800000, 0x43610000, 0x40a00000, 0xc0400000}},
	{NCCL_FLOAT64, 8, 0xc008000000000000, 0x4014000000000000,
		{0x4010000000000000, 0x406c200000000000, 0x4014000000000000, 0xc008000000000000}},
	{NCCL_BFLOAT16, 2, 0xc040, 0x40a0, {0x4080, 0x4361, 0x40a0, 0xc040}},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* In place, unregistered, registered for something else. */
static void compute(struct rank *me, char *buf, void *mem, const struct row *row, enum nccl_op op)
{
	const int len = COUNT * (int)row->size;
	void *request;

	for (unsigned i = 0; i < COUNT; i++)
		memcpy(buf + i * row->size, me->rank % 2 ? &row->b : &row->a, row->size);
	if (coll->allreduce(me->comm, buf, buf, COUNT, row->type, op, mem, mem, &request)) {
		me->wrong++;
		return;
	}
	me->wrong += complete(request) != len;
	for (unsigned i = 0; i < COUNT; i++)
		me->wrong += memcmp(buf + i * row->size, &row->result[op], row->size) != 0;
}

static void compute_all(struct rank *me)
{
	char *buf = malloc(COUNT * 8);
	void *mem;
	int yes;

	me->wrong += coll->reg(me->comm, buf, 100, NCCL_MEMORY_HOST, &mem) != NCCL_OK;
	for (unsigned i = 0; i < N_ROWS; i++)
		for (int op = NCCL_SUM; op <= NCCL_MIN; op++)
			if (!coll->supports(rows[i].type, op, &yes) && yes)
				compute(me, buf, mem, &rows[i], (enum nccl_op)op);
	coll->dereg(me->comm, mem);
	me->wrong += coll->close(me->comm) != NCCL_OK;
	free(buf);
}

static void results(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, N, compute_all);
	run(&j);
	all_right(&j);
	finish(&j);
}

/* NCCL asks for types without saying of which group: the file cannot take some away. */
static void without_half(void **state)
{
	json_t *doc;
	struct job j;

	(void)state;
	prepare(&j, N, compute_all);
	doc = json_load_file(j.path, 0, NULL);
	assert_int_equal(json_object_set_new(doc, "flags", json_pack("{s:b}", "half", 0)), 0);
	assert_int_equal(json_dump_file(doc, j.path, 0), 0);
	json_decref(doc);
	run(&j);
	all_right(&j);
	finish(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_and_operations),
		cmocka_unit_test(results),
		cmocka_unit_test(without_half),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
