/* SPDX-License-Identifier: BSD-3-Clause */
/* 10 000 flows (ZeroNIC, 3.2): what they cost in memory, and that they do not meet. */
#include "tests/unit/place/place_test.h"

enum { FLOWS = 10000, PER_FLOW = 4096 };

/* 128 words of 8 bytes for each flow, 8 K segments for one that needs them, out of 1.28 M. */
static const struct place_config paper = {.max_flows = FLOWS,
	.max_mrs = 2048,
	.chunks = FLOWS * 4,
	.committed = 4,
	.peak = 8192 / PLACE_CHUNK_MS + 1,
	.seed = 0x5eed};

static void test_bytes(void **state)
{
	struct place_bytes b;
	const size_t store = FLOWS * 128 * 8;

	(void)state;
	place_bytes(&paper, &b);
	print_message("%u flows: segments %zu KB (paper 10240), flow table %zu KB (paper 700), "
		      "regions %zu KB (paper 100), all %zu KB\n",
		FLOWS, b.ms_store / 1000, b.flow_table / 1000, b.mr_table / 1000,
		place_size(&paper) / 1000);
	/* Links between chunks are 3 % on top. The flow table holds IPv6 addresses and two lists.
	 */
	assert_true(b.ms_store < store + store / 25);
	assert_true(b.flow_table <= 2100000);
	assert_true(b.mr_table <= 100000);
	assert_true(place_size(&paper) <= 12900000);
}

static void test_flows(void **state)
{
	struct place *p = engine(&paper);
	uint8_t *memory = calloc(FLOWS, 64);
	uint32_t *flow = calloc(FLOWS, sizeof(*flow)), mr = region(p, memory, FLOWS * 64);
	struct place_flow_init init = {.limit = 1000};

	(void)state;
	for (uint32_t i = 0; i < FLOWS; i++) {
		init.tuple = tuple_of(i);
		assert_int_equal(place_flow_add(p, &init, &flow[i]), 0);
		for (unsigned k = 0; k < 2 * PLACE_CHUNK_MS; k++) {
			assert_int_equal(
				place_post(p, flow[i], PLACE_RX, mr, i * 64 + k % 64, 1), 0);
			assert_int_equal(
				place_post(p, flow[i], PLACE_TX, mr, i * 64 + k % 64, 1), 0);
		}
	}
	assert_int_equal(place_flows(p), FLOWS);
	/* The store is empty; every flow had what it was promised. */
	assert_int_equal(place_post(p, flow[0], PLACE_RX, mr, 0, 1), -ENOBUFS);
	for (uint32_t i = 0; i < FLOWS; i++) {
		const struct place_tuple t = tuple_of(FLOWS - 1 - i);
		const struct place_segment seg = {(const uint8_t *)&i, sizeof(i), 8, 0, 0};
		const uint32_t found = place_find(p, &t);

		assert_int_equal(found, flow[FLOWS - 1 - i]);
		assert_int_equal(place_packet(p, found, &seg).verdict, PLACE_ACCEPT);
	}
	for (uint32_t i = 0; i < FLOWS; i++) {
		const uint32_t v = FLOWS - 1 - i;
		uint8_t expected[64] = {0};

		memcpy(expected + 8, &v, sizeof(v));
		assert_memory_equal(memory + i * 64, expected, 64);
		assert_int_equal(place_flow_remove(p, flow[i]), 0);
	}
	place_quiesce(p);
	place_reclaim(p);
	place_quiesce(p);
	/* One flow may have its peak: 8 K segments and more, and no more. */
	init.tuple = tuple_of(5);
	assert_int_equal(place_flow_add(p, &init, &flow[0]), 0);
	for (unsigned i = 0; i < paper.peak * PLACE_CHUNK_MS; i++)
		assert_int_equal(place_post(p, flow[0], PLACE_RX, mr, i, 1), 0);
	assert_int_equal(place_post(p, flow[0], PLACE_RX, mr, 0, 1), -ENOBUFS);
	assert_true(place_segments(p, flow[0], PLACE_RX) >= 8192);
	engine_free(p);
	free(memory);
	free(flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
