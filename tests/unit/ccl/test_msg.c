/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "lib/ccl/msg.h"
#include "lib/reduce/reduce.h"

static const struct ccl_ctrl sample = {
	.prim = CCL_PRIM_RED,
	.op = REDUCE_MAX,
	.dtype = REDUCE_INT32,
	.op_seq = 0xa5,
	.root = 0x123,
	.n = 0x00030201,
	.bytes = 0x0000000403020100,
	.flags = CCL_F_LAST,
	.m = 4,
	.tag = 0x1122334455667788,
};

/* The bytes of docs/inc-protocol.md, 2.1, written out by hand. */
static void control_golden(void **state)
{
	static const uint8_t want[CCL_CTRL_LEN] = {
		0x49, 0x4e, 0x43, 0x31,                         /* "INC1" as little-endian */
		0x01, 0x02, 0x03, 0x00,                         /* n */
		0x00, 0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00, /* nBytes */
		0x02, 0x00, 0x00, 0x00,                         /* flags: last */
		0x04, 0x00, 0x00, 0x00,                         /* M */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* tag */
	};
	uint8_t got[CCL_CTRL_LEN];

	(void)state;
	ccl_ctrl_encode(&sample, got);
	assert_memory_equal(got, want, sizeof(want));
	/* 001 001 010 0011 00100100011 10100101 */
	assert_int_equal(ccl_ctrl_imm(&sample), 0x251923a5);
	assert_int_equal(ccl_ctrl_imm(&(struct ccl_ctrl){.op = REDUCE_NONE, .dtype = REDUCE_BYTES}),
		1u << 29 | 7u << 23 | 15u << 19);
}

static void control_round_trip(void **state)
{
	uint8_t raw[CCL_CTRL_LEN];
	struct ccl_ctrl back;

	(void)state;
	ccl_ctrl_encode(&sample, raw);
	assert_int_equal(ccl_ctrl_decode(ccl_ctrl_imm(&sample), raw, &back), 0);
	assert_null(ccl_ctrl_differ(&sample, &back));
	assert_int_equal(ccl_ctrl_decode(2u << 29, raw, &back), -EINVAL);
	raw[3] ^= 1;
	assert_int_equal(ccl_ctrl_decode(ccl_ctrl_imm(&sample), raw, &back), -EINVAL);
}

static void control_differences_are_named(void **state)
{
	struct ccl_ctrl c = sample;

	(void)state;
	c.bytes++;
	assert_string_equal(ccl_ctrl_differ(&sample, &c), "size in bytes");
	c = sample;
	c.tag ^= 1ull << 63;
	assert_string_equal(ccl_ctrl_differ(&sample, &c), "tag");
	c.dtype = REDUCE_FP32;
	assert_string_equal(ccl_ctrl_differ(&sample, &c), "dtype");
}

static void plan_of_sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t mtu, m, n, msgs, last_len;
	} t[] = {
		{0, 1024, 4, 0, 1, 32}, /* the control alone */
		{4, 1024, 4, 1, 2, 4},
		{1024, 1024, 4, 1, 2, 1024},
		{1028, 1024, 4, 2, 2, 1028},
		{4096, 1024, 4, 4, 2, 4096},
		{4100, 1024, 4, 5, 3, 4},
		{40960, 1024, 4, 40, 11, 4096},
		{38440, 4096, 1, 10, 11, 1576},
		{256ull * CCL_MAX_PACKETS, 256, 3, CCL_MAX_PACKETS, 1398102, 768},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct ccl_plan p;
		uint64_t sum = 0;

		ccl_plan_init(&p, t[i].bytes, t[i].mtu, t[i].m);
		assert_int_equal(p.n, t[i].n);
		assert_int_equal(p.n_msgs, t[i].msgs);
		assert_int_equal(ccl_plan_len(&p, p.n_msgs - 1), t[i].last_len);
		for (uint32_t j = 1; j < p.n_msgs; j++) {
			assert_int_equal(ccl_plan_offset(&p, j), sum);
			assert_int_equal(ccl_plan_psn(&p, j), 1 + sum / t[i].mtu);
			sum += ccl_plan_len(&p, j);
		}
		assert_int_equal(sum, t[i].bytes);
	}
}

static void parts_of_large_collectives(void **state)
{
	const uint64_t most = (uint64_t)CCL_MAX_PACKETS / 4 * 4 * 1024;

	(void)state;
	assert_int_equal(ccl_plan_part(0, 1024, 4, CCL_MAX_PACKETS), 0);
	assert_int_equal(ccl_plan_part(100, 1024, 4, CCL_MAX_PACKETS), 100);
	assert_int_equal(ccl_plan_part(most, 1024, 4, CCL_MAX_PACKETS), most);
	assert_int_equal(ccl_plan_part(most + 4, 1024, 4, CCL_MAX_PACKETS), most);
	assert_int_equal(ccl_plan_part(1 << 20, 256, 4, 10), 8 * 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_golden),
		cmocka_unit_test(control_round_trip),
		cmocka_unit_test(control_differences_are_named),
		cmocka_unit_test(plan_of_sizes),
		cmocka_unit_test(parts_of_large_collectives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
