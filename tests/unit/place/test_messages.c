/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over a stream (ZeroNIC, 3.5): a message may end before its buffer does, so each packet
 * says which message it belongs to and where that begins. */
#include "tests/unit/place/place_test.h"

static const struct place_config small = {
	.max_flows = 2, .max_mrs = 4, .chunks = 64, .committed = 1, .peak = 60, .seed = 7};

enum { BUFFER = 100, MESSAGES = 200 };

struct flow {
	struct place *p;
	uint32_t flow, mr;
	uint8_t memory[MESSAGES * BUFFER];
};

static void open_flow(struct flow *f, uint64_t rx, uint32_t message)
{
	struct place_flow_init init = {.tuple = tuple_of(0),
		.rx = rx,
		.limit = rx + 1000000,
		.messages = true,
		.message = message};

	f->p = engine(&small);
	memset(f->memory, 0, sizeof(f->memory));
	f->mr = region(f->p, f->memory, sizeof(f->memory));
	assert_int_equal(place_flow_add(f->p, &init, &f->flow), 0);
}

static struct place_result put(struct flow *f, uint32_t message, uint64_t start, uint32_t offset,
	const void *bytes, uint32_t len)
{
	struct place_segment seg = {.payload = bytes,
		.len = len,
		.seq = (uint32_t)start + offset,
		.message = message,
		.message_start = (uint32_t)start};

	return place_packet(f->p, f->flow, &seg);
}

/* Random lengths, each packet sent once or more, in any order; sequence and message numbers wrap.
 */
static void test_any_order(void **state)
{
	enum { MAX_PACKETS = MESSAGES * 8 };
	static struct {
		uint32_t message, offset, len;
	} packet[MAX_PACKETS];
	static uint8_t truth[MESSAGES][BUFFER];
	static uint64_t start[MESSAGES];
	uint32_t len[MESSAGES];
	uint64_t s = 99, at = 0xfffff000;
	const uint32_t number = UINT32_MAX - MESSAGES / 2;
	unsigned n = 0;
	static struct flow f;

	(void)state;
	open_flow(&f, at, number);
	for (unsigned m = 0; m < MESSAGES; m++) {
		assert_int_equal(place_post(f.p, f.flow, PLACE_RX, f.mr, m * BUFFER, BUFFER), 0);
		len[m] = 1 + (uint32_t)(next_random(&s) % BUFFER);
		start[m] = at;
		at += len[m];
		for (uint32_t i = 0; i < len[m]; i++)
			truth[m][i] = (uint8_t)(1 + next_random(&s) % 255);
		for (uint32_t o = 0; o < len[m] && n < MAX_PACKETS; o += packet[n++].len) {
			packet[n].message = m;
			packet[n].offset = o;
			packet[n].len = 1 + (uint32_t)(next_random(&s) % 40);
			if (packet[n].len > len[m] - o)
				packet[n].len = len[m] - o;
		}
	}
	for (unsigned i = 0; i < 2 * n; i++) { /* every second one twice, all of them shuffled */
		const unsigned a = i % n, b = (unsigned)(next_random(&s) % n);
		const typeof(packet[0]) t = packet[a];

		packet[a] = packet[b];
		packet[b] = t;
	}
	for (unsigned i = 0; i < n + n / 2; i++) {
		const typeof(packet[0]) *k = &packet[i % n];

		assert_int_equal(put(&f, number + k->message, start[k->message], k->offset,
					 truth[k->message] + k->offset, k->len)
					 .verdict,
			PLACE_ACCEPT);
	}
	for (unsigned m = 0; m < MESSAGES; m++) {
		assert_memory_equal(f.memory + m * BUFFER, truth[m], len[m]);
		for (unsigned i = len[m]; i < BUFFER; i++)
			assert_int_equal(f.memory[m * BUFFER + i], 0);
	}
	/* Those in front end early, and go; the others stay. */
	assert_int_equal(place_cursor(f.p, f.flow, start[150], at + 1000000), 0);
	assert_int_equal(place_retire_messages(f.p, f.flow, number + 150), 0);
	assert_int_equal(place_segments(f.p, f.flow, PLACE_RX), MESSAGES - 150);
	assert_int_equal(put(&f, number + 150, start[150], 0, truth[0], 1).verdict, PLACE_ACCEPT);
	assert_int_equal(put(&f, number + 149, start[149], 0, truth[0], 1).drop, PLACE_DROP_OLD);
	engine_free(f.p);
}

/* Numbers that lie: never outside of a buffer that waits. */
static void test_lies(void **state)
{
	static struct flow f;
	static const uint8_t x[BUFFER + 1] = "xxxxxxxxxx";

	(void)state;
	open_flow(&f, 5000, 7);
	for (unsigned m = 0; m < 3; m++)
		assert_int_equal(place_post(f.p, f.flow, PLACE_RX, f.mr, m * BUFFER, BUFFER), 0);
	assert_int_equal(put(&f, 7, 5000, 0, x, BUFFER + 1).drop, PLACE_DROP_OVERRUN);
	assert_int_equal(put(&f, 7, 5000, BUFFER, x, 1).drop, PLACE_DROP_OVERRUN);
	assert_int_equal(put(&f, 7, 5000, BUFFER - 1, x, 2).drop, PLACE_DROP_OVERRUN);
	assert_int_equal(put(&f, 6, 5000, 0, x, 1).drop, PLACE_DROP_MESSAGE);
	assert_int_equal(put(&f, 7, 6000, (uint32_t)-1000, x, 1).drop, PLACE_DROP_OVERRUN);
	assert_int_equal(put(&f, 7 + 0x80000000, 5000, 0, x, 1).drop, PLACE_DROP_MESSAGE);
	assert_int_equal(put(&f, 10, 5000, 0, x, 1).verdict, PLACE_DEFER);
	for (unsigned i = 0; i < sizeof(f.memory); i++)
		assert_int_equal(f.memory[i], 0);
	/* A message that is done is not written to, though its chunk is still there. */
	assert_int_equal(place_cursor(f.p, f.flow, 5050, 2000000), 0);
	assert_int_equal(place_retire_messages(f.p, f.flow, 8), 0);
	assert_int_equal(put(&f, 7, 5050, 0, x, 1).drop, PLACE_DROP_MESSAGE);
	assert_int_equal(place_retire_messages(f.p, f.flow, 7), -EINVAL);
	assert_int_equal(place_retire(f.p, f.flow, PLACE_RX, 5050), -EINVAL);
	assert_int_equal(put(&f, 8, 5050, 0, x, BUFFER).verdict, PLACE_ACCEPT);
	assert_memory_equal(f.memory + BUFFER, x, BUFFER);
	engine_free(f.p);
}

/* A message's buffer longer than a segment. */
static void test_long(void **state)
{
	static struct flow f;
	const uint32_t len = 3 * PLACE_MS_MAX + 5;
	uint8_t *big = calloc(1, 2 * len), *data = malloc(len);
	uint32_t mr;

	(void)state;
	open_flow(&f, 1, 0);
	mr = region(f.p, big, 2 * len);
	assert_int_equal(place_post(f.p, f.flow, PLACE_RX, mr, 0, len), 0);
	assert_int_equal(place_post(f.p, f.flow, PLACE_RX, mr, len, len), 0);
	assert_int_equal(place_segments(f.p, f.flow, PLACE_RX), 8);
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 9));
	assert_int_equal(put(&f, 1, 21, 0, data, len).verdict, PLACE_ACCEPT);
	assert_int_equal(put(&f, 0, 1, 3, data, 17).verdict, PLACE_ACCEPT);
	assert_memory_equal(big + len, data, len);
	assert_memory_equal(big + 3, data, 17);
	assert_int_equal(big[20], 0);
	assert_int_equal(place_cursor(f.p, f.flow, 21, 3000000), 0);
	assert_int_equal(place_retire_messages(f.p, f.flow, 1), 0);
	assert_int_equal(place_segments(f.p, f.flow, PLACE_RX), 4);
	free(big);
	free(data);
	engine_free(f.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
