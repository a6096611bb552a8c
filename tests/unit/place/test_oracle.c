/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine beside an oracle that keeps, byte by byte, where each position lies and what is there:
 * random segments, overlaps, losses, retransmissions with other bytes, segments of one byte to more
 * than a packet, regions that go away, a start just before the sequence numbers wrap. After each
 * step all of memory is compared, also that which nobody posted. */
#include "tests/unit/place/place_test.h"

static const struct place_config config = {
	.max_flows = 3, .max_mrs = 6, .chunks = 40, .committed = 2, .peak = 30, .seed = 1};

enum { REGIONS = 4, REGION = 2048, GUARD = 64, STRIDE = REGION + GUARD };
enum { ARENA = REGIONS * STRIDE, SPAN = 1 << 16, LONGEST = 700, STEPS = 1500 };

struct world {
	struct place *p;
	uint32_t flow, mr[REGIONS];
	bool gone[REGIONS];
	uint64_t start, cursor, limit, posted, retired; /* the first: of all positions */
	uint64_t s;
	uint8_t memory[ARENA], expected[ARENA];
	int32_t where[SPAN]; /* by position - start */
	bool have[SPAN];
	unsigned verdicts[3];
};

static uint32_t below(struct world *w, uint32_t n)
{
	return (uint32_t)(next_random(&w->s) >> 11) % n;
}

static int region_at(int32_t where)
{
	return where / STRIDE;
}

static void post(struct world *w)
{
	const uint32_t r = below(w, REGIONS), len = 1 + below(w, below(w, 4) ? 40 : 900);
	const uint32_t offset = below(w, REGION - len + 1);
	int err;

	if (w->posted - w->start + len > SPAN)
		return;
	err = place_post(w->p, w->flow, PLACE_RX, w->mr[r], offset, len);
	if (w->gone[r])
		assert_int_equal(err, -EINVAL);
	if (err == -ENOBUFS || w->gone[r])
		return;
	assert_int_equal(err, 0);
	for (uint32_t i = 0; i < len; i++)
		w->where[w->posted - w->start + i] = (int32_t)(r * STRIDE + offset + i);
	w->posted += len;
	assert_int_equal(place_posted(w->p, w->flow, PLACE_RX), w->posted);
}

/* What is to become of len bytes at position, byte by byte. */
static enum place_verdict foretell(const struct world *w, int64_t at, uint32_t len)
{
	bool gone = false;

	if (at + (int64_t)len > (int64_t)(w->limit - w->cursor) || at + (int64_t)len <= 0)
		return PLACE_DROP;
	if (w->cursor + (uint64_t)at + len > w->posted)
		return PLACE_DEFER;
	for (uint32_t i = at < 0 ? (uint32_t)-at : 0; i < len; i++)
		gone |= w->gone[region_at(w->where[w->cursor + (uint64_t)at + i - w->start])];
	return gone ? PLACE_DROP : PLACE_ACCEPT;
}

static void packet(struct world *w)
{
	const uint32_t len = 1 + below(w, below(w, 3) ? 100 : LONGEST);
	const int64_t at = below(w, 4) == 0 ? 0 : (int64_t)below(w, 1500) - 500;
	const enum place_verdict verdict = foretell(w, at, len);
	uint8_t payload[LONGEST];
	struct place_segment seg = {payload, len, (uint32_t)(w->cursor + (uint64_t)at), 0, 0};
	struct place_result r;

	for (uint32_t i = 0; i < len; i++)
		payload[i] = (uint8_t)next_random(&w->s);
	r = place_packet(w->p, w->flow, &seg);
	assert_int_equal(r.verdict, verdict);
	assert_int_equal(r.at, at);
	w->verdicts[verdict == PLACE_ACCEPT ? 0 : verdict == PLACE_DROP ? 1 : 2]++;
	if (verdict != PLACE_ACCEPT)
		return;
	assert_int_equal(r.skip, at < 0 ? -at : 0);
	for (uint32_t i = r.skip; i < len; i++) {
		const uint64_t k = w->cursor + (uint64_t)at + i - w->start;

		w->expected[w->where[k]] = payload[i];
		w->have[k] = true;
	}
}

/* To the first hole, or not as far. */
static void advance(struct world *w)
{
	const uint64_t was = w->cursor, most = 1 + below(w, 600);

	while (w->cursor < w->posted && w->cursor - was < most && w->have[w->cursor - w->start])
		w->cursor++;
	if (w->limit < w->cursor + 800)
		w->limit = w->cursor + 400 + below(w, 400) > w->limit ? w->cursor + 800 : w->limit;
	assert_int_equal(place_cursor(w->p, w->flow, w->cursor, w->limit), 0);
	if (below(w, 2))
		assert_int_equal(place_retire(w->p, w->flow, PLACE_RX, w->cursor), 0);
	if (below(w, 2))
		place_quiesce(w->p);
}

/* A region goes, and after a while another is where it was; positions in it stay without. */
static void lose(struct world *w)
{
	const uint32_t r = below(w, REGIONS);

	if (below(w, 40) != 0 || w->gone[r])
		return;
	assert_int_equal(place_mr_remove(w->p, w->mr[r]), 0);
	w->gone[r] = true;
}

/* What has been posted ahead is taken back, and other memory, or none, is there for it. */
static void cut(struct world *w)
{
	const uint64_t ahead = w->posted - w->cursor;
	const uint64_t at = w->posted - below(w, ahead < 1200 ? (uint32_t)ahead + 1 : 1200);

	assert_int_equal(place_cut(w->p, w->flow, at), 0);
	memset(w->have + (at - w->start), 0, w->posted - at);
	w->posted = at;
	assert_int_equal(place_posted(w->p, w->flow, PLACE_RX), at);
}

static void play(uint64_t seed, unsigned total[3])
{
	static struct world w;
	struct place_flow_init init = {.tuple = tuple_of(3)};

	memset(&w, 0, sizeof(w));
	w.s = seed * 0x9e3779b97f4a7c15;
	w.start = w.cursor = w.posted = 0xffffffff - below(&w, 3000) + ((seed & 1) << 32);
	w.limit = w.start + 1000;
	w.p = engine(&config);
	for (unsigned i = 0; i < ARENA; i++)
		w.memory[i] = w.expected[i] = (uint8_t)(i * 31);
	for (unsigned r = 0; r < REGIONS; r++)
		w.mr[r] = region(w.p, w.memory + r * STRIDE, REGION);
	init.rx = w.start;
	init.limit = w.limit;
	assert_int_equal(place_flow_add(w.p, &init, &w.flow), 0);
	for (unsigned i = 0; i < STEPS; i++) {
		if (w.posted - w.cursor < below(&w, 900) && below(&w, 3) == 0)
			post(&w);
		if (seed % 3 == 0 && below(&w, 8) == 0)
			cut(&w);
		packet(&w);
		if (below(&w, 3) == 0)
			advance(&w);
		if (seed % 4 == 0 && i > STEPS / 2)
			lose(&w);
		assert_memory_equal(w.memory, w.expected, ARENA);
	}
	for (unsigned i = 0; i < 3; i++)
		total[i] += w.verdicts[i];
	engine_free(w.p);
}

static void test_oracle(void **state)
{
	unsigned total[3] = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++)
		play(seed, total);
	print_message("accepted %u, dropped %u, deferred %u\n", total[0], total[1], total[2]);
	for (unsigned i = 0; i < 3; i++)
		assert_true(total[i] > 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oracle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
