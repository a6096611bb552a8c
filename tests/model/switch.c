/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch: a real engine on its flat block and its arena. Its state is every byte of both but for
 * what the engine's mask leaves out; it is kept as the chunks that differ from the first. */
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

enum { CHUNK = 64, PAGE = 4096, MAX_CHUNKS = 16384 };

void mc_switch_image(
	struct mc_switch *sw, const struct mc_engine *engine, size_t block, size_t arena)
{
	sw->engine = engine;
	sw->block = (block + CHUNK - 1) & ~(size_t)(CHUNK - 1);
	sw->arena.size = arena;
	sw->len = (sw->block + arena + CHUNK - 1) & ~(size_t)(CHUNK - 1);
	if (sw->len / CHUNK > MAX_CHUNKS)
		abort();
	sw->image = aligned_alloc(CHUNK, sw->len);
	sw->base = aligned_alloc(CHUNK, sw->len);
	memset(sw->image, 0, sw->len);
	sw->arena.base = sw->image + sw->block;
}

void mc_switch_done(struct mc_sys *s, struct mc_switch *sw)
{
	sw->engine->mask(s, sw, true);
	memcpy(sw->base, sw->image, sw->len);
}

struct mc_out *mc_switch_out(struct mc_result *r)
{
	if (r->n == MC_MAX_EMIT) {
		r->violation = "a switch answers one packet with too many";
		return NULL;
	}
	return &r->out[r->n++];
}

static uint32_t save(struct mc_sys *s, unsigned node, bool age)
{
	struct mc_switch *sw = &s->sw[node];
	uint32_t diff[2 * MAX_CHUNKS];
	unsigned n = 0;

	sw->engine->mask(s, sw, age);
	for (size_t at = 0; at < sw->len; at += CHUNK) {
		if (at % PAGE == 0 && at + PAGE <= sw->len &&
			memcmp(sw->image + at, sw->base + at, PAGE) == 0) {
			at += PAGE - CHUNK;
			continue;
		}
		if (memcmp(sw->image + at, sw->base + at, CHUNK) == 0)
			continue;
		diff[n++] = (uint32_t)at;
		diff[n++] = intern_add(&s->chunks, sw->image + at, CHUNK);
	}
	return intern_add(&s->nodes[node], diff, n * (unsigned)sizeof(diff[0]));
}

static void load(struct mc_sys *s, unsigned node, uint32_t state)
{
	struct mc_switch *sw = &s->sw[node];
	uint32_t len, n;
	const uint32_t *diff = intern_get(&s->nodes[node], state, &len);

	memcpy(sw->image, sw->base, sw->len);
	for (uint32_t i = 0; i < len / sizeof(*diff); i += 2)
		memcpy(sw->image + diff[i], intern_get(&s->chunks, diff[i + 1], &n), CHUNK);
}

uint32_t mc_switch_initial(struct mc_sys *s, unsigned node)
{
	memcpy(s->sw[node].image, s->sw[node].base, s->sw[node].len);
	return save(s, node, true);
}

void mc_switch_step(struct mc_sys *s, unsigned node, uint32_t state, enum mc_event ev,
	unsigned port, uint32_t frame, struct mc_result *r)
{
	struct mc_switch *sw = &s->sw[node];

	s->engine_calls++;
	load(s, node, state);
	if (ev == MC_EV_PACKET) {
		sw->engine->receive(s, node, port, frame, r);
	} else if (ev == MC_EV_FAIL) {
		sw->engine->fail(s, node, r);
		r->verdict = "failed by the manager";
	} else if (ev == MC_EV_TICK) {
		sw->engine->tick(s, node, port, r);
		r->verdict = "timer";
	} else if (ev == MC_EV_DRAIN) {
		sw->engine->drain(s, node);
	} else if (ev == MC_EV_ANEW) {
		sw->engine->anew(s, node);
	} else if (ev == MC_EV_END) {
		memset(sw->image, 0, sw->len);
	} else if (ev == MC_EV_AGAIN) {
		memcpy(sw->image, sw->again, sw->len);
	}
	sw->engine->check(s, sw, r);
	r->state = save(s, node, ev == MC_EV_AGE);
}

bool mc_switch_notices(
	struct mc_sys *s, unsigned node, uint32_t state, unsigned port, uint32_t psn, uint32_t next)
{
	load(s, node, state);
	return s->sw[node].engine->notices(&s->sw[node], port, psn, next);
}

unsigned mc_switch_flags(struct mc_sys *s, unsigned node, uint32_t state)
{
	uint32_t *have = &s->switch_flags[node][state];

	if (*have == 0) {
		load(s, node, state);
		*have = 0x80000000 | s->sw[node].engine->flags(&s->sw[node]);
	}
	return *have & 0x7fffffff;
}
