/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-II AllReduce on one core, fed and drained from memory, beside the limit that the same work
 * on the same memory sets: the ICRC of every packet, the additions, the CRC of every result, by
 * bare kernels. The two alternate within one run; the best of several repetitions counts for each.
 *
 * Frames of one operation are made beforehand. The group's block is flat, so restoring a copy of it
 * makes the next repetition see the same PSNs as new (outside the measured time). */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "dataplane/inc/modules.h"
#include "tests/unit/inc/fixture.h"

enum { BURST = 32, FAN_IN = 4, STRIDE_EXTRA = 128, OUT_RING = 256 };

/* Parts of the path that are timed apart, burst by burst. */
enum part { PARSE, LOOKUP, ENGINE, TRANSLATE, N_PARTS };
static const char *const part_names[N_PARTS] = {
	"parse", "lookup", "icrc_aggregate", "translate_header"};

struct bench {
	struct fx fx;
	uint32_t mtu, n_psn, stride;
	uint8_t *frames;
	size_t frame_len;
	void *block;   /* the group as it was before the first data packet */
	uint8_t *ring; /* the limit's accumulators, as large as the group's */
	struct inc_emit emits[BURST];
	unsigned n_emits;
	uint64_t tsc[N_PARTS];
	uint64_t sent;
	uint8_t heads[OUT_RING][WIRE_TEMPLATE_LEN];
	uint8_t tails[OUT_RING][8];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint8_t *frame_at(const struct bench *b, uint32_t i)
{
	return b->frames + (size_t)i * b->stride;
}

static void make_frames(struct bench *b)
{
	float *payload = malloc(b->mtu);
	uint8_t ctrl[INC_CTRL_LEN];

	fx_ctrl_payload(&b->fx, (uint64_t)b->n_psn * b->mtu, ctrl);
	for (unsigned ep = 0; ep < FAN_IN; ep++) {
		const struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM,
			.psn = b->fx.g->start_psn,
			.imm = fx_imm(0, REDUCE_SUM, REDUCE_FP32)};

		fx_packet(&b->fx, ep, &hdr, ctrl, sizeof(ctrl));
	}
	b->frames = aligned_alloc(4096, ((size_t)b->n_psn * FAN_IN * b->stride + 4095) & ~4095ul);
	for (uint32_t i = 0; i < b->n_psn * FAN_IN; i++) {
		struct wire_hdr hdr = {
			.psn = psn_add(b->fx.g->start_psn, 1 + (int32_t)(i / FAN_IN))};
		struct inc_desc *d = inc_desc_find(b->fx.g, hdr.psn);

		hdr.opcode = inc_position_of(b->fx.g, d, hdr.psn).opcode;
		for (uint32_t k = 0; k < b->mtu / 4; k++)
			payload[k] = (float)(i % 1000 + k);
		b->frame_len =
			(size_t)fx_build(&b->fx, i % FAN_IN, &hdr, payload, b->mtu, frame_at(b, i));
	}
	free(payload);
}

static void open_bench(struct bench *b, uint32_t mtu, size_t pool)
{
	const struct fx_opts opts = {.n_hosts = FAN_IN,
		.mtu = (uint16_t)mtu,
		.m = 4,
		.w = 8,
		.start_psn = 256,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR};

	memset(b, 0, sizeof(*b));
	fx_open(&b->fx, &opts);
	b->mtu = mtu;
	b->stride = mtu + STRIDE_EXTRA;
	b->n_psn = (uint32_t)(pool / b->stride / FAN_IN) / BURST * BURST;
	make_frames(b);
	b->block = malloc(b->fx.g->bytes);
	memcpy(b->block, b->fx.g, b->fx.g->bytes);
	b->ring = aligned_alloc(4096, b->fx.arena.size);
	memset(b->ring, 0, b->fx.arena.size);
}

static void close_bench(struct bench *b)
{
	fx_close(&b->fx);
	free(b->frames);
	free(b->block);
	free(b->ring);
}

static void keep_emit(void *arg, struct inc_group *g, const struct inc_emit *emit)
{
	struct bench *b = arg;

	(void)g;
	b->emits[b->n_emits++] = *emit;
}

static void translate_burst(struct bench *b)
{
	for (unsigned i = 0; i < b->n_emits; i++) {
		uint64_t outs = b->emits[i].out_mask;

		for (; outs; outs &= outs - 1) {
			unsigned at = b->sent++ % OUT_RING, tail_len;

			inc_translate_header(b->fx.g, (unsigned)__builtin_ctzll(outs), &b->emits[i],
				(uint16_t)b->sent, b->heads[at], b->tails[at], &tail_len);
		}
	}
	b->n_emits = 0;
}

static void engine_burst(struct bench *b, uint32_t first)
{
	const struct inc_sink sink = {b, keep_emit};
	struct wire_pkt pkt[BURST];
	struct inc_look look[BURST];
	uint64_t t[N_PARTS + 1];
	bool ok = true;

	t[0] = __rdtsc();
	for (unsigned i = 0; i < BURST; i++)
		ok &= wire_parse(frame_at(b, first + i), b->frame_len, &pkt[i]) == WIRE_OK;
	t[1] = __rdtsc();
	for (unsigned i = 0; i < BURST; i++)
		ok &= inc_lookup(&b->fx.table, &pkt[i], 0, &look[i]) == INC_OK;
	t[2] = __rdtsc();
	/* Check and aggregate packet by packet: the second pass finds the payload in L1. */
	for (unsigned i = 0; i < BURST; i++) {
		const uint8_t *frame = frame_at(b, first + i);
		uint32_t crc = 0;

		ok &= inc_check_icrc(&look[i], frame, &pkt[i], &crc);
		inc_mode2(look[i].group, &b->fx.arena, &look[i], &pkt[i], frame + pkt[i].pay_off,
			crc, 1, &sink);
	}
	t[3] = __rdtsc();
	translate_burst(b);
	t[4] = __rdtsc();
	for (unsigned k = 0; k < N_PARTS; k++)
		b->tsc[k] += t[k + 1] - t[k];
	if (!ok)
		abort();
}

/* One repetition; returns nanoseconds per packet. */
static double run_engine(struct bench *b)
{
	uint32_t n = b->n_psn * FAN_IN;
	uint64_t start, sent = b->sent;

	memcpy(b->fx.g, b->block, b->fx.g->bytes);
	memset(b->tsc, 0, sizeof(b->tsc));
	start = now_ns();
	for (uint32_t i = 0; i < n; i += BURST)
		engine_burst(b, i);
	start = now_ns() - start;
	if (b->sent - sent != n) { /* every PSN completed and went to every endpoint */
		fprintf(stderr, "bench-inc: %" PRIu64 " results instead of %u\n", b->sent - sent,
			n);
		exit(1);
	}
	return (double)start / n;
}

static double run_limit(struct bench *b)
{
	reduce_fn add = reduce_kernel(REDUCE_SUM, REDUCE_FP32);
	uint32_t n = b->n_psn * FAN_IN, slots = 1u << b->fx.g->log2n, head;
	volatile uint32_t crc = 0;
	uint64_t start;

	head = (uint32_t)(b->frame_len - b->mtu - ROCE_ICRC_LEN);
	start = now_ns();
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *frame = frame_at(b, i);
		uint8_t *acc = b->ring + (size_t)(i / FAN_IN % slots) * b->mtu;

		crc ^= icrc_append(
			0, frame + ETH_HDR_LEN, b->frame_len - ETH_HDR_LEN - ROCE_ICRC_LEN);
		if (i % FAN_IN == 0)
			memcpy(acc, frame + head, b->mtu);
		else
			add(acc, frame + head, b->mtu);
		if (i % FAN_IN == FAN_IN - 1)
			crc ^= icrc_append(0, acc, b->mtu);
	}
	return (double)(now_ns() - start) / n;
}

static json_t *measure(uint32_t mtu, size_t pool, unsigned reps)
{
	static struct bench b;
	double best = 1e18, limit = 1e18, gbps, limit_gbps;
	uint64_t parts[N_PARTS] = {0};
	json_t *modules = json_object(), *row;
	uint32_t n;

	open_bench(&b, mtu, pool);
	n = b.n_psn * FAN_IN;
	for (unsigned r = 0; r < reps; r++) {
		double l = run_limit(&b), e = run_engine(&b);

		limit = l < limit ? l : limit;
		if (e < best) {
			best = e;
			memcpy(parts, b.tsc, sizeof(parts));
		}
	}
	gbps = mtu * 8 / best;
	limit_gbps = mtu * 8 / limit;
	printf("%8u %6u %12.1f %9.1f %12.1f %7.2f ", mtu, FAN_IN, best, gbps, limit_gbps,
		limit / best);
	for (unsigned k = 0; k < N_PARTS; k++) {
		printf(" %s %.0f", part_names[k], (double)parts[k] / n);
		json_object_set_new(modules, part_names[k], json_real((double)parts[k] / n));
	}
	printf("\n");
	row = json_pack("{s:i,s:i,s:f,s:f,s:f,s:f,s:o}", "payload", (int)mtu, "fan_in", FAN_IN,
		"ns_per_packet", best, "gbps", gbps, "limit_gbps", limit_gbps, "ratio",
		limit / best, "cycles_per_packet", modules);
	close_bench(&b);
	return row;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", required_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'}, {"pool-mb", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'}, {0}};
	const char *file = NULL;
	unsigned reps = 31;
	size_t pool = 8;
	json_t *root, *results = json_array();
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			file = optarg;
		else if (opt == 'q')
			reps = 7;
		else if (opt == 'p' && atoi(optarg) >= 1 && atoi(optarg) <= 1024)
			pool = (size_t)atoi(optarg);
		else {
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: bench-inc [--quick] [--pool-mb 1..1024] [--json FILE]\n");
			return opt == 'h' ? 0 : 2;
		}
	}
	printf("# Mode-II AllReduce fp32 sum, one core, %s kernels, packets in a pool of %zu MB\n",
		reduce_isa_name(reduce_isa_best()), pool);
	printf("# limit: ICRC, addition and result CRC by bare kernels on the same memory\n");
	printf("%8s %6s %12s %9s %12s %7s  %s\n", "payload", "fan_in", "ns/packet", "Gb/s",
		"limit Gb/s", "ratio", "TSC cycles/packet by module");
	json_array_append_new(results, measure(1024, pool << 20, reps));
	json_array_append_new(results, measure(4096, pool << 20, reps));
	root = json_pack("{s:s,s:o}", "bench", "inc", "results", results);
	if (file && json_dump_file(root, file, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "bench-inc: cannot write %s\n", file);
		return 1;
	}
	json_decref(root);
	return 0;
}
