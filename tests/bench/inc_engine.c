/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's functions alone, burst by burst: what the graph and the buffers add is the
 * difference to the other path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "tests/bench/inc_path.h"

enum { OUT_RING = 256 };

enum part { PARSE, LOOKUP, ENGINE, TRANSLATE, N_PARTS };
static const char *const part_names[N_PARTS] = {
	"parse", "lookup", "icrc_aggregate", "translate_header"};

struct engine {
	struct fx fx;
	uint8_t *slab;
	struct inc_emit emits[PATH_BURST];
	unsigned n_emits;
	uint64_t sent;
	uint8_t heads[OUT_RING][WIRE_TEMPLATE_LEN];
	uint8_t tails[OUT_RING][8];
};

static void keep_emit(void *arg, struct inc_group *g, const struct inc_emit *emit)
{
	struct engine *e = arg;

	(void)g;
	e->emits[e->n_emits++] = *emit;
}

static void translate_burst(struct engine *e)
{
	for (unsigned i = 0; i < e->n_emits; i++) {
		const struct inc_translation t =
			inc_translate_emit(e->fx.g, &e->emits[i], (uint16_t)e->sent);
		uint64_t outs = e->emits[i].out_mask;

		for (; outs; outs &= outs - 1) {
			unsigned at = e->sent++ % OUT_RING, tail_len;

			inc_translate_to(e->fx.g, (unsigned)__builtin_ctzll(outs), &t, e->heads[at],
				e->tails[at], &tail_len);
		}
	}
	e->n_emits = 0;
}

static void burst(struct path *p, uint8_t *const *frame)
{
	struct engine *e = p->priv;
	const struct inc_sink sink = {e, keep_emit};
	struct wire_pkt pkt[PATH_BURST];
	struct inc_look look[PATH_BURST];
	uint64_t t[N_PARTS + 1];
	bool ok = true;

	t[0] = __rdtsc();
	for (unsigned i = 0; i < PATH_BURST; i++)
		ok &= wire_parse(frame[i], p->frame_len, &pkt[i]) == WIRE_OK;
	t[1] = __rdtsc();
	for (unsigned i = 0; i < PATH_BURST; i++)
		ok &= inc_lookup(&e->fx.table, &pkt[i], 0, &look[i]) == INC_OK;
	t[2] = __rdtsc();
	/* Check and aggregate packet by packet: the second pass finds the payload in L1. */
	for (unsigned i = 0; i < PATH_BURST; i++) {
		uint32_t crc = 0;

		ok &= inc_check_icrc(&look[i], frame[i], &pkt[i], &crc);
		inc_packet(look[i].group, &e->fx.arena, &look[i], &pkt[i],
			frame[i] + pkt[i].pay_off, crc, 1, &sink);
	}
	t[3] = __rdtsc();
	translate_burst(e);
	t[4] = __rdtsc();
	for (unsigned k = 0; k < N_PARTS; k++)
		p->part[k].cycles += t[k + 1] - t[k];
	if (!ok)
		abort();
}

static uint64_t run(struct path *p)
{
	struct engine *e = p->priv;
	uint32_t n = p->n_psn * PATH_FAN_IN;
	uint64_t start, sent = e->sent;

	for (unsigned k = 0; k < N_PARTS; k++)
		p->part[k].cycles = 0;
	start = path_now_ns();
	for (uint32_t i = 0; i < n; i += PATH_BURST)
		burst(p, p->frame + i);
	start = path_now_ns() - start;
	if (e->sent - sent != n) { /* every PSN completed and went to every endpoint */
		fprintf(stderr, "bench-inc: %lu results instead of %u\n",
			(unsigned long)(e->sent - sent), n);
		exit(1);
	}
	return start;
}

static void close_engine(struct path *p)
{
	struct engine *e = p->priv;

	fx_close(&e->fx);
	free(e->slab);
	free(e);
}

void path_engine_open(struct path *p, const struct path_spec *spec)
{
	const uint32_t mtu = spec->mtu;
	const struct fx_opts opts = {.n_hosts = PATH_FAN_IN,
		.mtu = (uint16_t)mtu,
		.m = PATH_M,
		.w = PATH_W,
		.start_psn = PATH_START_PSN,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR};
	struct engine *e = calloc(1, sizeof(*e));
	uint8_t control[FX_FRAME];
	uint32_t n;

	*p = (struct path){.name = "engine",
		.spec = *spec,
		.n_psn = path_n_psn(spec),
		.run = run,
		.close = close_engine,
		.n_parts = N_PARTS,
		.priv = e};
	n = p->n_psn * PATH_FAN_IN;
	for (unsigned k = 0; k < N_PARTS; k++)
		snprintf(p->part[k].name, sizeof(p->part[k].name), "%s", part_names[k]);
	fx_open(&e->fx, &opts);
	p->g = &e->fx.g;
	e->slab = aligned_alloc(4096, ((size_t)n * (mtu + PATH_HEAD_ROOM) + 4095) & ~4095ul);
	p->frame = calloc(n, sizeof(*p->frame));
	for (uint32_t i = 0; i < n; i++)
		p->frame[i] = e->slab + (size_t)i * (mtu + PATH_HEAD_ROOM);
	for (unsigned ep = 0; ep < PATH_FAN_IN; ep++)
		fx_frame(&e->fx, control, (size_t)path_control_frame(p, 0, ep, control));
	path_make_frames(p);
}
