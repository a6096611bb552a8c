/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-II AllReduce on one core, fed and drained from memory, beside the machine's limit: the ICRC
 * of every packet, the additions, the CRC of every result, by the best bare kernels on a copy of
 * the packets that lies as well as possible; one limit for both paths. It alternates with them
 * within one run; the best of several repetitions counts for each.
 *
 * Frames of one operation are made beforehand. The group's block is flat, so restoring a copy of it
 * makes the next repetition see the same PSNs as new (outside the measured time). */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "dataplane/inc/modules.h"
#include "tests/bench/inc_path.h"

enum { HUGE_PAGE = 2 << 20, LINE = 64 };

uint64_t path_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint32_t path_n_psn(uint32_t mtu, size_t pool)
{
	return (uint32_t)(pool / (mtu + PATH_HEAD_ROOM) / PATH_FAN_IN) / PATH_BURST * PATH_BURST;
}

/* As host ep's NIC would address it. */
static int build(struct path *p, unsigned ep, const struct wire_hdr *hdr, const void *payload,
	size_t len, uint8_t *out)
{
	struct fx fx = {.g = p->g};
	const struct wire_flow *flow = &inc_ep_at(p->g, ep)->flow;
	int n = fx_build(&fx, ep, hdr, payload, len, out);

	memcpy(out, flow->smac, 6);
	memcpy(out + 6, flow->dmac, 6);
	return n;
}

int path_control_frame(struct path *p, unsigned ep, uint8_t *out)
{
	const struct fx fx = {.g = p->g};
	const struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM,
		.psn = PATH_START_PSN,
		.imm = fx_imm(0, REDUCE_SUM, REDUCE_FP32)};
	uint8_t payload[INC_CTRL_LEN];

	fx_ctrl_payload(&fx, (uint64_t)p->n_psn * p->mtu, payload);
	return build(p, ep, &hdr, payload, sizeof(payload), out);
}

void path_make_frames(struct path *p)
{
	struct inc_desc *d = inc_desc_find(p->g, PATH_START_PSN);
	float *payload = malloc(p->mtu);

	for (uint32_t i = 0; i < p->n_psn * PATH_FAN_IN; i++) {
		struct wire_hdr hdr = {.mig = true, .psn = PATH_START_PSN + 1 + i / PATH_FAN_IN};

		hdr.opcode = inc_position_of(p->g, d, hdr.psn).opcode;
		for (uint32_t k = 0; k < p->mtu / 4; k++)
			payload[k] = (float)(i % 1000 + k);
		p->frame_len =
			(size_t)build(p, i % PATH_FAN_IN, &hdr, payload, p->mtu, p->frame[i]);
	}
	free(payload);
	p->block = malloc(p->g->bytes);
	memcpy(p->block, p->g, p->g->bytes);
}

/* The packets are where the one before left them, the limit's or the path's: both start with theirs
 * in the cache that holds them, as a NIC leaves them. */
static void warm(const uint8_t *p, size_t len)
{
	volatile uint8_t sink;

	for (size_t at = 0; at < len; at += LINE)
		sink = p[at];
	sink = p[len - 1];
	(void)sink;
}

/* ---- the limit ---- */

/* The frames of a path once more, one behind the other, payloads on cache lines, in huge pages
 * where the system gives them; and a ring of accumulators. */
struct slab {
	uint8_t *frames, *ring;
	size_t stride, head, mtu;
	uint32_t n, slots;
	uint64_t best_ns;
};

static void *huge_alloc(size_t bytes)
{
	const size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	void *p = aligned_alloc(HUGE_PAGE, whole);

	madvise(p, whole, MADV_HUGEPAGE);
	memset(p, 0, whole);
	return p;
}

static void slab_open(struct slab *s, const struct path *p)
{
	s->mtu = p->mtu;
	s->n = p->n_psn * PATH_FAN_IN;
	s->slots = 1u << p->g->log2n;
	s->head = p->frame_len - p->mtu - ROCE_ICRC_LEN;
	s->stride = (p->frame_len + LINE - 1) / LINE * LINE;
	s->frames = huge_alloc(s->n * s->stride + LINE);
	s->ring = huge_alloc(s->slots * s->mtu);
	s->best_ns = UINT64_MAX;
	for (uint32_t i = 0; i < s->n; i++)
		memcpy(s->frames + i * s->stride + LINE - s->head % LINE, p->frame[i],
			p->frame_len);
}

static void slab_close(struct slab *s)
{
	free(s->frames);
	free(s->ring);
}

/* What no implementation can go below: the ICRC of every packet, copying the first of each PSN and
 * adding the others, the CRC of every sum. */
static void run_limit(struct slab *s)
{
	reduce_fn add = reduce_kernel(REDUCE_SUM, REDUCE_FP32);
	volatile uint32_t sink = 0;
	uint64_t start, ns;

	warm(s->frames, s->n * s->stride);
	start = path_now_ns();
	for (uint32_t i = 0; i < s->n; i++) {
		const uint8_t *payload =
			s->frames + i * s->stride + LINE - s->head % LINE + s->head;
		const uint8_t *l3 = payload - s->head + ETH_HDR_LEN;
		uint8_t *acc = s->ring + i / PATH_FAN_IN % s->slots * s->mtu;
		const uint32_t crc = icrc_headers(l3, s->head - ETH_HDR_LEN);

		if (i % PATH_FAN_IN == 0) {
			sink ^= icrc_copy(crc, acc, payload, s->mtu);
			continue;
		}
		sink ^= icrc_append(crc, payload, s->mtu);
		add(acc, payload, s->mtu);
		if (i % PATH_FAN_IN == PATH_FAN_IN - 1)
			sink ^= icrc_append(0, acc, s->mtu);
	}
	(void)sink;
	ns = path_now_ns() - start;
	s->best_ns = ns < s->best_ns ? ns : s->best_ns;
}

/* ---- the paths ---- */

struct row {
	struct path best; /* parts of the fastest repetition */
	uint64_t ns;
};

static json_t *report(const struct row *row, uint64_t limit_ns)
{
	const struct path *p = &row->best;
	const double n = (double)p->n_psn * PATH_FAN_IN, ns = (double)row->ns / n,
		     gbps = p->mtu * 8 / ns, limit = p->mtu * 8 * n / (double)limit_ns;
	json_t *modules = json_object();

	printf("%-7s %7u %6u %10.1f %7.1f %11.1f %6.2f ", p->name, p->mtu, PATH_FAN_IN, ns, gbps,
		limit, gbps / limit);
	for (unsigned k = 0; k < p->n_parts; k++) {
		double cycles = (double)p->part[k].cycles / n;

		if (cycles < 0.5)
			continue;
		printf(" %s %.0f", p->part[k].name, cycles);
		json_object_set_new(modules, p->part[k].name, json_real(cycles));
	}
	printf("\n");
	return json_pack("{s:s,s:i,s:i,s:f,s:f,s:f,s:f,s:o}", "path", p->name, "payload",
		(int)p->mtu, "fan_in", PATH_FAN_IN, "ns_per_packet", ns, "gbps", gbps, "limit_gbps",
		limit, "ratio", gbps / limit, "cycles_per_packet", modules);
}

/* In turn with the limit, which is opened with the first path. */
static struct row measure(void (*open)(struct path *, uint32_t, size_t), uint32_t mtu, size_t pool,
	unsigned reps, struct slab *slab)
{
	struct row row = {.ns = UINT64_MAX};
	struct path p;

	open(&p, mtu, pool);
	if (!slab->frames)
		slab_open(slab, &p);
	for (unsigned r = 0; r < reps; r++) {
		uint64_t ns;

		run_limit(slab);
		for (uint32_t i = 0; i < p.n_psn * PATH_FAN_IN; i++)
			warm(p.frame[i], p.frame_len);
		memcpy(p.g, p.block, p.g->bytes);
		ns = p.run(&p);
		if (ns < row.ns) {
			row.ns = ns;
			row.best = p;
		}
	}
	free(p.block);
	free(p.frame);
	p.close(&p);
	return row;
}

static void both(uint32_t mtu, size_t pool, unsigned reps, json_t *results)
{
	struct slab slab = {0};
	const struct row graph = measure(path_graph_open, mtu, pool, reps, &slab),
			 engine = measure(path_engine_open, mtu, pool, reps, &slab);

	json_array_append_new(results, report(&graph, slab.best_ns));
	json_array_append_new(results, report(&engine, slab.best_ns));
	slab_close(&slab);
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
		else if (opt == 'p' && atoi(optarg) >= 1 && atoi(optarg) <= 64)
			pool = (size_t)atoi(optarg);
		else {
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: bench-inc [--quick] [--pool-mb 1..64] [--json FILE]\n");
			return opt == 'h' ? 0 : 2;
		}
	}
	printf("# Mode-II AllReduce fp32 sum, one core, packets in a pool of %zu MB, kernels: ICRC "
	       "%s, "
	       "addition %s\n",
		pool, icrc_kernel_name(), reduce_isa_name(reduce_isa_best()));
	printf("# graph: the switch's worker between ring ports; engine: its functions alone\n");
	printf("# limit: ICRC, addition and result CRC by the bare kernels, packets side by "
	       "side\n");
	printf("%-7s %7s %6s %10s %7s %11s %6s  %s\n", "path", "payload", "fan_in", "ns/packet",
		"Gb/s", "limit Gb/s", "ratio", "TSC cycles/packet by module");
	for (uint32_t mtu = 1024; mtu <= 4096; mtu *= 4)
		both(mtu, pool << 20, reps, results);
	root = json_pack("{s:s,s:s,s:s,s:o}", "bench", "inc", "icrc", icrc_kernel_name(), "reduce",
		reduce_isa_name(reduce_isa_best()), "results", results);
	if (file && json_dump_file(root, file, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "bench-inc: cannot write %s\n", file);
		return 1;
	}
	json_decref(root);
	return 0;
}
