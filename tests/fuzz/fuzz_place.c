/* SPDX-License-Identifier: BSD-3-Clause */
/* The placement engine: bytes choose what the control path does and what packets arrive. After each
 * step: nothing was written outside of regions, nor into one that has gone. */
#include <string.h>

#include "lib/place/place.h"
#include "tests/fuzz/fuzz.h"

enum { REGIONS = 4, REGION = 256, GUARD = 32, STRIDE = REGION + GUARD, FLOWS = 3, MAX_STEPS = 500 };

static const struct place_config config = {
	.max_flows = FLOWS, .max_mrs = 6, .chunks = 12, .committed = 2, .peak = 8, .seed = 42};

struct world {
	struct place *p;
	uint32_t mr[REGIONS], flow[FLOWS];
	uint64_t cursor[FLOWS], sent[FLOWS];
	bool messages[FLOWS];
	uint8_t memory[REGIONS * STRIDE], gone[REGIONS][REGION];
	const uint8_t *data;
	size_t left;
};

static uint32_t take(struct world *w, unsigned bytes)
{
	uint32_t v = 0;

	while (bytes-- > 0 && w->left > 0) {
		v = v << 8 | *w->data++;
		w->left--;
	}
	return v;
}

static void toggle_region(struct world *w)
{
	const unsigned i = take(w, 1) % REGIONS;
	uint8_t *at = w->memory + i * STRIDE;

	if (w->mr[i] == 0) {
		if (place_mr_add(w->p, at, REGION, true, &w->mr[i]) < 0)
			w->mr[i] = 0;
		return;
	}
	fuzz_check(place_mr_remove(w->p, w->mr[i]) == 0, "a region can be removed");
	w->mr[i] = 0;
	memcpy(w->gone[i], at, REGION);
}

static void toggle_flow(struct world *w)
{
	const unsigned i = take(w, 1) % FLOWS;
	struct place_flow_init init = {.tuple.local_port = (uint16_t)i,
		.messages = take(w, 1) & 1,
		.rx = take(w, 4),
		.message = take(w, 4)};

	if (w->flow[i] != 0) {
		fuzz_check(place_flow_remove(w->p, w->flow[i]) == 0, "a flow can be removed");
		w->flow[i] = 0;
		return;
	}
	init.limit = init.rx + 500;
	w->cursor[i] = init.rx;
	w->sent[i] = 0;
	w->messages[i] = init.messages;
	if (place_flow_add(w->p, &init, &w->flow[i]) < 0)
		w->flow[i] = 0;
	fuzz_check(place_find(w->p, &init.tuple) == w->flow[i], "it is found if it is there");
}

static void arrive(struct world *w, uint32_t flow, uint64_t cursor)
{
	uint8_t payload[300];
	struct place_segment seg = {.payload = payload, .len = 1 + take(w, 2) % sizeof(payload)};
	struct place_result r;

	memset(payload, (int)take(w, 1), sizeof(payload));
	seg.seq = (uint32_t)cursor + take(w, 2) - 0x8000;
	if (take(w, 1) & 1)
		seg.seq = take(w, 4);
	seg.message = take(w, 4);
	seg.message_start = seg.seq - take(w, 2);
	r = place_packet(w->p, flow, &seg);
	fuzz_check((r.verdict == PLACE_DROP) == (r.drop != PLACE_OK), "a drop has a reason");
	fuzz_check(r.skip < seg.len, "what is taken has bytes");
}

static void on_flow(struct world *w, unsigned op, unsigned i)
{
	const uint32_t flow = w->flow[i], by = take(w, 1);
	uint8_t buf[64];

	switch (op) {
	case 0:
		place_post(
			w->p, flow, by & 1, w->mr[by / 2 % REGIONS], take(w, 1), take(w, 2) % 300);
		break;
	case 1:
		if (place_cursor(w->p, flow, w->cursor[i] + by, w->cursor[i] + by + 500) == 0)
			w->cursor[i] += by;
		break;
	case 2:
		place_retire(w->p, flow, PLACE_RX, w->cursor[i] - by);
		break;
	case 3:
		place_retire_messages(w->p, flow, take(w, 4));
		break;
	case 4:
		if (place_retire(w->p, flow, PLACE_TX, w->sent[i] + by) == 0)
			w->sent[i] += by;
		break;
	case 5:
		place_read(w->p, flow, w->sent[i] + by, buf, 1 + take(w, 1) % 64);
		break;
	case 6:
		memset(buf, (int)by, sizeof(buf));
		place_write(w->p, flow, w->cursor[i] - by, buf, 1 + take(w, 1) % 64);
		break;
	case 7:
		place_cut(w->p, flow, w->cursor[i] + by * 2);
		break;
	default:
		arrive(w, flow, w->cursor[i]);
	}
}

static void check(const struct world *w)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		const uint8_t *at = w->memory + i * STRIDE;

		for (unsigned k = 0; k < GUARD; k++)
			fuzz_check(at[REGION + k] == 0xee, "nothing outside of a region");
		fuzz_check(w->mr[i] != 0 || memcmp(w->gone[i], at, REGION) == 0,
			"nothing into what is gone");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t block[65536] __attribute__((aligned(64)));
	static struct world w;

	memset(&w, 0, sizeof(w));
	memset(w.memory, 0xee, sizeof(w.memory));
	memset(w.gone, 0xee, sizeof(w.gone));
	w.data = data;
	w.left = size;
	fuzz_check(place_size(&config) <= sizeof(block), "it fits");
	fuzz_check(place_init(&config, block, &w.p) == 0, "it begins");
	for (unsigned step = 0; step < MAX_STEPS && w.left > 0; step++) {
		const unsigned op = take(&w, 1);

		if (op < 16)
			toggle_region(&w);
		else if (op < 28)
			toggle_flow(&w);
		else if (op < 56)
			place_quiesce(w.p);
		else
			on_flow(&w, op % 16, op / 16 % FLOWS);
		check(&w);
	}
	return 0;
}

/* Random steps, after regions and flows that are there. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	uint64_t s = i + 1;
	size_t n = 0;

	if (i >= 32)
		return 0;
	for (unsigned k = 0; k < REGIONS; k++) {
		out[n++] = 0;
		out[n++] = (uint8_t)k;
	}
	for (unsigned k = 0; k < FLOWS; k++) {
		memset(out + n, 0, 11);
		out[n] = 16;
		out[n + 1] = (uint8_t)k;
		out[n + 2] = i & 1;
		n += 11;
	}
	while (n < 1500 && n < cap) {
		s = s * 6364136223846793005 + 1442695040888963407;
		out[n++] = (uint8_t)(s >> 56);
	}
	return n;
}
