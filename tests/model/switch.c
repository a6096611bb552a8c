/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch: the real engine on a flat group block and its arena. Its state is every byte of both
 * but for what the mask below leaves out; it is kept as the chunks that differ from the first. */
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

enum { CHUNK = 64, MAX_CHUNKS = 4096 };
static const uint64_t NOW = 1000000000, ARMED = 9000000000; /* of a timer that runs */

/* Timers either run or do not: when they fire is the checker's to say. Back-off and the count of
 * tries are left out, so nobody gives up. */
static void mask_timers(struct inc_group *g)
{
	g->timer_ns = UINT64_MAX;
	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);

		ep->retries = ep->rto_shift = 0;
		ep->rtt_from = ep->rtt_ns = ep->rtt_psn = 0;
		if (ep->timer_ns)
			ep->timer_ns = g->timer_ns = ARMED;
	}
}

/* What a step does not depend on, or only through time, which the checker rules: statistics and
 * the times of the last event of a kind. With `fast`, times stay until a timeout passes: they then
 * are either 0, long ago, or NOW, just so. */
static void mask_block(const struct mc_sys *s, struct inc_group *g, bool age)
{
	memset(g->count, 0, sizeof(g->count));
	g->last_progress_ns = 0;
	mask_timers(g);
	if (s->cfg.fast && !age)
		return;
	g->nak_fwd_ns = g->moved_ns = 0;
	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);

		ep->cnp_ns = ep->fail_nak_ns = ep->resent_ns = 0;
		ep->resent_psn = 0;
	}
}

void mc_switch_open(struct mc_sys *s, unsigned node, struct inc_group_spec *spec)
{
	struct mc_switch *sw = &s->sw[node];
	char err[INC_ERR_LEN];

	sw->block = (inc_group_bytes(spec) + CHUNK - 1) & ~(size_t)(CHUNK - 1);
	sw->arena.size = inc_group_payload_bytes(spec);
	sw->len = (sw->block + sw->arena.size + CHUNK - 1) & ~(size_t)(CHUNK - 1);
	if (sw->len / CHUNK > MAX_CHUNKS)
		abort();
	sw->image = aligned_alloc(CHUNK, sw->len);
	sw->base = aligned_alloc(CHUNK, sw->len);
	memset(sw->image, 0, sw->len);
	sw->g = (struct inc_group *)sw->image;
	sw->arena.base = sw->image + sw->block;
	inc_group_init(sw->g, spec, 1, 1, 0);
	if (inc_group_activate(sw->g, err) != 0)
		abort();
	mask_block(s, sw->g, true);
	memcpy(sw->base, sw->image, sw->len);
	inc_table_set(&sw->table, 1, sw->g);
}

static uint32_t save(struct mc_sys *s, unsigned node, bool age)
{
	struct mc_switch *sw = &s->sw[node];
	uint32_t diff[2 * MAX_CHUNKS];
	unsigned n = 0;

	mask_block(s, sw->g, age);
	for (size_t at = 0; at < sw->len; at += CHUNK) {
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

struct sink {
	struct mc_sys *s;
	struct mc_result *r;
};

/* What leaves is a whole frame, as TranslateHeader makes it. */
static void emit(void *arg, struct inc_group *g, const struct inc_emit *e)
{
	const struct sink *sink = arg;
	uint8_t frame[MC_FRAME], tail[WIRE_MAX_TRAILER];

	for (uint64_t outs = e->out_mask; outs != 0; outs &= outs - 1) {
		unsigned ep = (unsigned)__builtin_ctzll(outs), tail_len;
		struct mc_out *out = &sink->r->out[sink->r->n];
		size_t len;

		/* A host may be as slow as it likes without being told. */
		if (e->opcode == ROCE_CNP && inc_ep_at(g, ep)->host)
			continue;
		len = (size_t)inc_translate_header(g, ep, e, 0, frame, tail, &tail_len);

		if (sink->r->n == MC_MAX_EMIT) {
			sink->r->violation = "a switch answers one packet with too many";
			return;
		}
		sink->r->n++;
		if (e->pay_len)
			memcpy(frame + len, e->payload, e->pay_len);
		len += e->pay_len;
		memcpy(frame + len, tail, tail_len);
		out->port = (uint8_t)ep;
		out->frame = mc_frame_id(sink->s, frame, len + tail_len);
	}
}

static enum inc_drop receive(
	struct mc_sys *s, struct mc_switch *sw, unsigned port, uint32_t id, struct mc_result *r)
{
	struct sink arg = {s, r};
	const struct inc_sink sink = {&arg, emit};
	const uint8_t *frame;
	const struct wire_pkt *pkt = mc_frame_pkt(s, id, &frame);
	struct inc_look look;
	uint32_t crc = 0;
	enum inc_drop drop = inc_lookup(&sw->table, pkt, (uint16_t)port, &look);

	if (drop != INC_OK)
		return drop;
	if (!inc_check_icrc(&look, frame, pkt, &crc)) {
		r->violation = "inc_check_icrc refuses a right packet";
		return INC_OK;
	}
	return inc_packet(
		look.group, &sw->arena, &look, pkt, frame + pkt->pay_off, crc, NOW, &sink);
}

/* The timer of one endpoint, and no other. */
static void tick(struct mc_sys *s, struct mc_switch *sw, unsigned port, struct mc_result *r)
{
	struct sink arg = {s, r};
	const struct inc_sink sink = {&arg, emit};

	inc_ep_at(sw->g, port)->timer_ns = sw->g->timer_ns = NOW;
	inc_tick(sw->g, &sw->arena, NOW, &sink);
	r->verdict = "timer";
}

/* The deadline that the owner of the group watches is not after any timer's. */
static void check_deadline(struct inc_group *g, struct mc_result *r)
{
	for (unsigned i = 0; i < g->n_ep; i++) {
		uint64_t timer = inc_ep_at(g, i)->timer_ns;

		if (timer && timer < g->timer_ns)
			r->violation = "a timer runs that the group's deadline does not cover";
	}
}

void mc_switch_step(struct mc_sys *s, unsigned node, uint32_t state, enum mc_event ev,
	unsigned port, uint32_t frame, struct mc_result *r)
{
	struct mc_switch *sw = &s->sw[node];
	enum inc_drop drop;

	s->engine_calls++;
	load(s, node, state);
	if (ev == MC_EV_PACKET) {
		drop = receive(s, sw, port, frame, r);
		r->verdict = drop == INC_OK ? "?" : inc_drop_name(drop);
	} else if (ev == MC_EV_FAIL) {
		inc_group_fail(sw->g, INC_FAIL_MANAGER, 0xff);
		r->verdict = "failed by the manager";
	}
	if (ev == MC_EV_TICK)
		tick(s, sw, port, r);
	check_deadline(sw->g, r);
	r->state = save(s, node, ev == MC_EV_AGE);
}

/* Nobody is waited for; in Mode-III both pipes are empty. */
static bool is_clean(struct inc_group *g)
{
	uint64_t eps;
	uint32_t psn;

	if (inc_group_busy(g, &psn, &eps))
		return false;
	for (uint32_t i = 0; g->mode == INC_MODE_3 && i < 1u << g->log2n; i++)
		if (inc_pipe_slot(g, INC_AGG, i)->arrived ||
			inc_pipe_slot(g, INC_BCAST, i)->arrived)
			return false;
	return true;
}

unsigned mc_switch_flags(struct mc_sys *s, unsigned node, uint32_t state)
{
	uint16_t *have = &s->switch_flags[node][state];
	struct inc_group *g = s->sw[node].g;

	if (*have == 0) {
		load(s, node, state);
		*have = 0x8000;
		for (unsigned i = 0; i < g->n_ep; i++)
			if (inc_ep_at(g, i)->timer_ns && g->state != INC_FAILED)
				*have |= 1u << i;
		for (unsigned i = 0; i < g->n_ep; i++)
			*have |= inc_ep_at(g, i)->rnr_wait ? MC_S_HELD : 0;
		*have |= is_clean(g) ? MC_S_CLEAN : 0;
		*have |= g->state == INC_FAILED ? MC_S_FAILED : 0;
	}
	return *have & 0x7fffu;
}
