/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 8 in bytes, case by case; what posts, retires and removes, and what is refused. */
#include "tests/unit/place/place_test.h"

static const struct place_config small = {
	.max_flows = 4, .max_mrs = 8, .chunks = 8, .committed = 1, .peak = 4, .seed = 7};

enum { START = 1000 };

/* A stream at 1000 with buffers of 10, 5 and 20 bytes, in the order c, a, b of one region. */
struct stream {
	struct place *p;
	uint32_t flow, mr;
	uint8_t memory[64];
};

static int setup(void **state)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct place_flow_init init = {
		.tuple = tuple_of(0), .rx = START, .tx = START, .limit = START + 100};

	s->p = engine(&small);
	memset(s->memory, '.', sizeof(s->memory));
	s->mr = region(s->p, s->memory, sizeof(s->memory));
	assert_int_equal(place_flow_add(s->p, &init, &s->flow), 0);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 40, 10), 0);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 0, 5), 0);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 20, 20), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct stream *s = *state;

	engine_free(s->p);
	free(s);
	return 0;
}

static struct place_result send_text(struct stream *s, uint32_t seq, const char *text)
{
	struct place_segment seg = {
		.payload = (const uint8_t *)text, .len = (uint32_t)strlen(text), .seq = seq};

	return place_packet(s->p, s->flow, &seg);
}

static void expect(const struct stream *s, unsigned at, const char *text)
{
	assert_memory_equal(s->memory + at, text, strlen(text));
}

static unsigned untouched(const struct stream *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(s->memory); i++)
		n += s->memory[i] == '.';
	return n;
}

static void test_next(void **state)
{
	struct stream *s = *state;
	struct place_result r = send_text(s, START, "abcdefgh");

	assert_int_equal(r.verdict, PLACE_ACCEPT);
	assert_int_equal(r.position, START);
	expect(s, 40, "abcdefgh..");
	assert_int_equal(place_cursor(s->p, s->flow, START + 8, START + 100), 0);
	/* Payload and segments do not have to align: it ends one, fills one, begins one. */
	assert_int_equal(send_text(s, START + 8, "ij01234K").verdict, PLACE_ACCEPT);
	expect(s, 40, "abcdefghij");
	expect(s, 0, "01234.");
	expect(s, 20, "K.");
	assert_int_equal(untouched(s), 64 - 16);
}

static void test_old(void **state)
{
	struct stream *s = *state;
	struct place_result r;

	assert_int_equal(place_cursor(s->p, s->flow, START + 10, START + 100), 0);
	r = send_text(s, START, "0123456789");
	assert_int_equal(r.verdict, PLACE_DROP);
	assert_int_equal(r.drop, PLACE_DROP_OLD);
	assert_int_equal(send_text(s, START - 5000, "x").drop, PLACE_DROP_OLD);
	assert_int_equal(untouched(s), 64);
	assert_int_equal(place_counters(s->p)->drops[PLACE_DROP_OLD], 2);
}

static void test_overlap(void **state)
{
	struct stream *s = *state;
	struct place_result r;

	assert_int_equal(place_cursor(s->p, s->flow, START + 12, START + 100), 0);
	r = send_text(s, START + 5, "0123456789");
	assert_int_equal(r.verdict, PLACE_ACCEPT);
	assert_int_equal(r.skip, 7);
	assert_int_equal(r.at, -7);
	expect(s, 0, "..789");
	assert_int_equal(untouched(s), 64 - 3);
	assert_int_equal(place_counters(s->p)->overlaps, 1);
	assert_int_equal(place_counters(s->p)->bytes, 3);
}

static void test_hole(void **state)
{
	struct stream *s = *state;

	/* Two segments on; they are not retired although they are full. */
	assert_int_equal(send_text(s, START + 10, "01234").verdict, PLACE_ACCEPT);
	assert_int_equal(send_text(s, START + 16, "future").verdict, PLACE_ACCEPT);
	expect(s, 0, "01234");
	expect(s, 20, ".future.");
	assert_int_equal(place_segments(s->p, s->flow, PLACE_RX), 3);
	/* What lies ahead may be written again, with other bytes. */
	assert_int_equal(send_text(s, START + 10, "56789").verdict, PLACE_ACCEPT);
	expect(s, 0, "56789");
	assert_int_equal(place_counters(s->p)->ahead, 3);
}

static void test_unmatched(void **state)
{
	struct stream *s = *state;
	struct place_result r = send_text(s, START + 33, "abc");

	assert_int_equal(r.verdict, PLACE_DEFER);
	assert_int_equal(untouched(s), 64);
	/* Then there is a buffer: the copying path. */
	assert_int_equal(
		place_write(s->p, s->flow, START + 33, (const uint8_t *)"abc", 3), -ENOENT);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 50, 4), 0);
	assert_int_equal(place_cursor(s->p, s->flow, START + 36, START + 100), 0);
	assert_int_equal(place_write(s->p, s->flow, START + 33, (const uint8_t *)"abc", 3), 0);
	expect(s, 38, "ab");
	expect(s, 50, "c...");
	assert_int_equal(place_counters(s->p)->copied, 3);
}

static void test_window(void **state)
{
	struct stream *s = *state;

	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 0, 64), 0);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 0, 64), 0);
	assert_int_equal(send_text(s, START + 99, "x").verdict, PLACE_ACCEPT);
	assert_int_equal(send_text(s, START + 99, "xy").drop, PLACE_DROP_WINDOW);
	assert_int_equal(send_text(s, START + 100, "x").drop, PLACE_DROP_WINDOW);
	assert_int_equal(send_text(s, START + 0x7fffffffu, "x").drop, PLACE_DROP_WINDOW);
	assert_int_equal(send_text(s, START + 0x80000000u, "x").drop, PLACE_DROP_OLD);
	assert_int_equal(place_counters(s->p)->drops[PLACE_DROP_WINDOW], 3);
}

static void test_memory_gone(void **state)
{
	struct stream *s = *state;
	uint64_t ticket;

	assert_int_equal(place_mr_remove(s->p, s->mr), 0);
	assert_int_equal(send_text(s, START, "abc").drop, PLACE_DROP_MEMORY);
	assert_int_equal(untouched(s), 64);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 0, 1), -EINVAL);
	assert_int_equal(place_mr_remove(s->p, s->mr), -EINVAL);
	ticket = place_grace(s->p);
	assert_false(place_passed(s->p, ticket));
	place_quiesce(s->p);
	assert_true(place_passed(s->p, ticket));
}

/* An index does not come back while a segment names it, whatever is added and removed. */
static void test_index_rests(void **state)
{
	struct stream *s = *state;
	uint8_t other[8] = {0};
	uint32_t mr;

	place_mr_remove(s->p, s->mr);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(place_mr_add(s->p, other, sizeof(other), true, &mr), 0);
		assert_int_not_equal(mr & 0x3fff, s->mr & 0x3fff);
		assert_int_equal(place_mr_remove(s->p, mr), 0);
		assert_int_equal(place_mr_remove(s->p, mr), -EINVAL);
		place_quiesce(s->p);
	}
	assert_int_equal(send_text(s, START, "abc").drop, PLACE_DROP_MEMORY);
}

static void test_refused(void **state)
{
	struct stream *s = *state;
	struct place_flow_init init = {.tuple = tuple_of(0)};
	uint32_t flow, mr;

	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 64, 1), -EINVAL);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 60, 5), -EINVAL);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, UINT64_MAX, 2), -EINVAL);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 0, 0), -EINVAL);
	assert_int_equal(place_post(s->p, s->flow + 0x10000, PLACE_RX, s->mr, 0, 1), -EINVAL);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr + 1, 0, 1), -EINVAL);
	assert_int_equal(place_flow_add(s->p, &init, &flow), -EEXIST);
	assert_int_equal(place_cursor(s->p, s->flow, START - 1, START + 100), -EINVAL);
	assert_int_equal(place_cursor(s->p, s->flow, START, START + 99), -EINVAL);
	assert_int_equal(place_retire(s->p, s->flow, PLACE_RX, START + 1), -EINVAL);
	assert_int_equal(place_mr_add(s->p, s->memory, 0, true, &mr), -EINVAL);
	assert_int_equal(place_mr_add(s->p, s->memory, (1ull << 32) + 1, true, &mr), -EINVAL);
	assert_int_equal(place_mr_add(s->p, s->memory, 8, false, &mr), 0);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, mr, 0, 8), -EINVAL);
	assert_int_equal(place_post(s->p, s->flow, PLACE_TX, mr, 0, 8), 0);
}

/* Sending: from the peer's acknowledgement to the end of what is posted, and again. */
static void test_send(void **state)
{
	struct stream *s = *state;
	uint8_t out[16] = {0};

	memcpy(s->memory, "ABCDEFGHIJ", 10);
	assert_int_equal(place_post(s->p, s->flow, PLACE_TX, s->mr, 5, 5), 0);
	assert_int_equal(place_post(s->p, s->flow, PLACE_TX, s->mr, 0, 5), 0);
	assert_int_equal(place_read(s->p, s->flow, START + 3, out, 4), 0);
	assert_memory_equal(out, "IJAB", 4);
	assert_int_equal(place_read(s->p, s->flow, START + 8, out, 3), -ENOENT);
	assert_int_equal(place_retire(s->p, s->flow, PLACE_TX, START + 6), 0);
	assert_int_equal(place_segments(s->p, s->flow, PLACE_TX), 1);
	assert_int_equal(place_read(s->p, s->flow, START + 5, out, 4), -ESTALE);
	assert_int_equal(place_read(s->p, s->flow, START + 6, out, 4), 0);
	assert_memory_equal(out, "BCDE", 4);
	assert_int_equal(place_retire(s->p, s->flow, PLACE_TX, START + 11), -EINVAL);
	place_mr_remove(s->p, s->mr);
	assert_int_equal(place_read(s->p, s->flow, START + 6, out, 4), -EFAULT);
}

/* The store: what a flow is sure of, what it may have, and that all of it comes back. */
static void test_store(void **state)
{
	struct stream *s = *state;
	struct place_flow_init init = {.tuple = tuple_of(1), .limit = 1000000};
	uint32_t flow;
	unsigned n = 0;

	assert_int_equal(place_flow_add(s->p, &init, &flow), 0);
	while (place_post(s->p, flow, PLACE_RX, s->mr, 0, 1) == 0)
		n++;
	assert_int_equal(n, small.peak * PLACE_CHUNK_MS);
	assert_int_equal(place_post(s->p, flow, PLACE_RX, s->mr, 0, 1), -ENOBUFS);
	/* The other flow still gets its own, and more. */
	for (unsigned i = 0; i < 2 * PLACE_CHUNK_MS; i++)
		assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 0, 1), 0);
	/* Retired, but the data path may still be there. */
	assert_int_equal(place_cursor(s->p, flow, n, 1000000), 0);
	assert_int_equal(place_retire(s->p, flow, PLACE_RX, n), 0);
	assert_int_equal(place_segments(s->p, flow, PLACE_RX), 0);
	place_quiesce(s->p);
	for (unsigned i = 0; i < 10000; i++) {
		assert_int_equal(place_post(s->p, flow, PLACE_RX, s->mr, i % 64, 1), 0);
		assert_int_equal(place_cursor(s->p, flow, n + i + 1, 1000000), 0);
		assert_int_equal(place_retire(s->p, flow, PLACE_RX, n + i + 1), 0);
		place_quiesce(s->p);
	}
	for (unsigned i = 0; i < 10000; i++) {
		assert_int_equal(place_flow_remove(s->p, flow), 0);
		assert_int_equal(place_flow_remove(s->p, flow), -EINVAL);
		assert_int_equal(place_find(s->p, &init.tuple), 0);
		place_quiesce(s->p);
		assert_int_equal(place_flow_add(s->p, &init, &flow), 0);
		assert_int_equal(place_find(s->p, &init.tuple), flow);
		assert_int_equal(place_post(s->p, flow, PLACE_RX, s->mr, 0, 60), 0);
	}
}

/* A full table, or a store that could not keep its promises: such a flow is not there. */
static void test_full(void **state)
{
	struct stream *s = *state;
	struct place_flow_init init = {0};
	struct place_config greedy = small;
	struct place *p;
	uint32_t flow;

	for (unsigned i = 1; i < small.max_flows; i++) {
		init.tuple = tuple_of(i);
		assert_int_equal(place_flow_add(s->p, &init, &flow), 0);
	}
	init.tuple = tuple_of(9);
	assert_int_equal(place_flow_add(s->p, &init, &flow), -ENOSPC);
	assert_int_equal(place_find(s->p, &init.tuple), 0);
	greedy.committed = 4;
	p = engine(&greedy);
	for (unsigned i = 0; i < 3; i++) {
		init.tuple = tuple_of(i);
		assert_int_equal(place_flow_add(p, &init, &flow), i < 2 ? 0 : -ENOSPC);
	}
	engine_free(p);
}

/* Buffers that are taken back: within a segment, before one, all; what is in front stays. */
static void test_cut(void **state)
{
	struct stream *s = *state;
	const uint8_t *const base = s->memory;

	assert_int_equal(send_text(s, START + 9, "J0123").verdict, PLACE_ACCEPT);
	assert_int_equal(place_cut(s->p, s->flow, START + 12), 0);
	assert_int_equal(place_posted(s->p, s->flow, PLACE_RX), START + 12);
	assert_int_equal(place_segments(s->p, s->flow, PLACE_RX), 2);
	assert_int_equal(send_text(s, START + 11, "xx").verdict, PLACE_DEFER);
	/* Other memory in their place; the packet after spans both. */
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 60, 4), 0);
	assert_int_equal(send_text(s, START + 10, "01ABCD").verdict, PLACE_ACCEPT);
	expect(s, 0, "0123.");
	expect(s, 60, "ABCD");
	assert_true(base[4] == '.');
	/* Where one ends, twice; then all that is not retired. */
	assert_int_equal(place_cut(s->p, s->flow, START + 12), 0);
	assert_int_equal(place_cut(s->p, s->flow, START + 12), 0);
	assert_int_equal(place_cut(s->p, s->flow, START + 13), -EINVAL);
	assert_int_equal(place_cursor(s->p, s->flow, START + 10, START + 100), 0);
	assert_int_equal(place_retire(s->p, s->flow, PLACE_RX, START + 10), 0);
	assert_int_equal(place_cut(s->p, s->flow, START + 9), -EINVAL);
	assert_int_equal(place_cut(s->p, s->flow, START + 10), 0);
	assert_int_equal(place_segments(s->p, s->flow, PLACE_RX), 0);
	/* Nothing names the region any more: it goes at once. */
	assert_int_equal(place_mr_remove(s->p, s->mr), 0);
	assert_int_equal(place_post(s->p, s->flow, PLACE_RX, s->mr, 0, 1), -EINVAL);
	assert_int_equal(place_cut(s->p, s->flow + 1, START + 10), -EINVAL);
}

/* Chunks behind the cut are the store's again; indices of regions as well. */
static void test_cut_gives_back(void **state)
{
	struct stream *s = *state;

	for (unsigned round = 0; round < 200; round++) {
		uint32_t mr = region(s->p, s->memory, 64);
		unsigned n = 0;

		while (place_post(s->p, s->flow, PLACE_RX, mr, n % 64, 1) == 0)
			n++;
		assert_int_equal(n, 4 * PLACE_CHUNK_MS - 3);
		assert_int_equal(place_cut(s->p, s->flow, START + 35 + round % 2 * n / 2), 0);
		assert_int_equal(place_cut(s->p, s->flow, START + 35), 0);
		assert_int_equal(place_segments(s->p, s->flow, PLACE_RX), 3);
		assert_int_equal(place_mr_remove(s->p, mr), 0);
		place_reclaim(s->p);
		place_quiesce(s->p);
		place_reclaim(s->p);
	}
}

static void test_config(void **state)
{
	struct place_config c = small;

	(void)state;
	assert_true(place_size(&c) > 0);
	c.max_flows = PLACE_MAX_FLOWS + 1;
	assert_int_equal(place_size(&c), 0);
	c = small;
	c.max_mrs = PLACE_MAX_MRS + 1;
	assert_int_equal(place_size(&c), 0);
	c = small;
	c.committed = c.peak + 1;
	assert_int_equal(place_size(&c), 0);
	for (unsigned i = 0; i < PLACE_N_DROPS; i++)
		assert_non_null(place_drop_name(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_next, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmatched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_window, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_index_rests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_gives_back, setup, teardown),
		cmocka_unit_test(test_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
