/* SPDX-License-Identifier: BSD-3-Clause */
/* AllReduce on one core, fed and drained from memory, beside the machine's limit: the ICRC of every
 * packet, the additions, the CRC of every result, by the best bare kernels on a copy of the packets
 * that lies as well as possible; one limit for all ways of a payload. It alternates with them
 * within one run; the best counts for each, once it does not get better, and the median says how
 * still the machine was. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dataplane/inc/modules.h"
#include "tests/bench/inc_path.h"
#include "tests/bench/machine.h"

enum { HUGE_PAGE = 2 << 20, LINE = 64, MAX_REPS = 300, SETTLED = 15, MAX_ROW = 7 };
static const double MOVED = 0.01; /* of the best */

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
	s->mtu = p->spec.mtu;
	s->n = p->n_psn * PATH_FAN_IN;
	s->slots = 2 * PATH_M * PATH_W;
	s->head = p->frame_len - s->mtu - ROCE_ICRC_LEN;
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
		const size_t headers = s->head - ETH_HDR_LEN;

		if (i % PATH_FAN_IN == 0) {
			sink ^= icrc_copy(icrc_headers(l3, headers), acc, payload, s->mtu);
			continue;
		}
		sink ^= icrc_packet(l3, headers + s->mtu);
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
	uint64_t ns, median, spread;
	unsigned tries;
};

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Whether the best of a row, or of the limit, is better than it was when last asked. */
static bool moved(uint64_t best, uint64_t *was)
{
	const bool is = (double)best < (double)*was * (1 - MOVED);

	if (is)
		*was = best;
	return is;
}

/* In turn with the limit, until neither has got better for so many times: the least of many tries
 * is less than that of few, and rows are to be compared with one another and with the limit, which
 * every row tries. */
static void repeat(struct path *p, unsigned settled, struct slab *slab, struct row *row)
{
	uint64_t ns[MAX_REPS], row_was = UINT64_MAX, limit_was = UINT64_MAX;
	unsigned n = 0, still = 0;

	*row = (struct row){.ns = UINT64_MAX};
	for (; n < MAX_REPS && still < settled; n++) {
		run_limit(slab);
		for (uint32_t i = 0; i < p->n_psn * PATH_FAN_IN; i++)
			warm(p->frame[i], p->frame_len);
		path_restore(p);
		ns[n] = p->run(p);
		if (ns[n] < row->ns) {
			row->ns = ns[n];
			row->best = *p;
		}
		still = moved(row->ns, &row_was) + moved(slab->best_ns, &limit_was) ? 0 : still + 1;
	}
	qsort(ns, n, sizeof(ns[0]), by_size);
	row->tries = n;
	row->median = ns[n / 2];
	row->spread = ns[n * 3 / 4] - ns[n / 4];
}

static json_t *report(const struct row *row, const struct slab *slab)
{
	const struct path *p = &row->best;
	const double n = (double)p->n_psn * PATH_FAN_IN, ns = (double)row->ns / n;
	const double gbps = p->spec.mtu * 8 / ns;
	const double limit = p->spec.mtu * 8 * (double)slab->n / (double)slab->best_ns;
	json_t *modules = json_object();

	printf("%-6s %-9s %6u %7u %4s %8.1f %8.1f %6.1f %6.1f %6.2f %5u ", p->name, p->spec.mode,
		p->spec.groups, p->spec.mtu, p->spec.acks ? "yes" : "no", ns,
		(double)row->median / n, gbps, limit, gbps / limit, row->tries);
	for (unsigned k = 0; k < p->n_parts; k++) {
		double cycles = (double)p->part[k].cycles / n;

		if (cycles < 0.5)
			continue;
		printf(" %s %.0f", p->part[k].name, cycles);
		json_object_set_new(modules, p->part[k].name, json_real(cycles));
	}
	printf("\n");
	return json_pack("{s:s,s:s,s:i,s:i,s:i,s:b,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:o}", "path",
		p->name, "mode", p->spec.mode, "groups", (int)p->spec.groups, "payload",
		(int)p->spec.mtu, "fan_in", PATH_FAN_IN, "acks", p->spec.acks, "tries",
		(int)row->tries, "ns_per_packet", ns, "median_ns_per_packet",
		(double)row->median / n, "middle_half_ns_per_packet", (double)row->spread / n,
		"gbps", gbps, "limit_gbps", limit, "ratio", gbps / limit, "cycles_per_packet",
		modules);
}

static void measure(void (*open)(struct path *, const struct path_spec *),
	const struct path_spec *spec, unsigned settled, struct slab *slab, struct row *row)
{
	struct path p;

	open(&p, spec);
	if (!slab->frames)
		slab_open(slab, &p);
	repeat(&p, settled, slab, row);
	for (unsigned i = 0; i < p.n_blocks; i++)
		free(p.block[i].copy);
	free(p.block);
	free(p.frame);
	p.close(&p);
}

/* All rows of one payload, or one of them, counted from 1; the limit is known when the last one is
 * through. */
static void all(uint32_t mtu, size_t pool, unsigned only, unsigned settled, json_t *results)
{
	const struct {
		void (*open)(struct path *, const struct path_spec *);
		struct path_spec spec;
	} rows[] = {
		{path_graph_open, {"II", mtu, pool, 1, false}},
		{path_engine_open, {"II", mtu, pool, 1, false}},
		{path_graph_open, {"II", mtu, pool, 64, false}},
		{path_graph_open, {"II", mtu, pool, 1024, false}},
		{path_graph_open, {"II", mtu, pool, 1, true}},
		{path_graph_open, {"III", mtu, pool, 1, true}},
		{path_graph_open, {"NetReduce", mtu, pool, 1, false}},
	};
	enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };
	static struct row row[N_ROWS];
	struct slab slab = {0};

	static_assert((int)N_ROWS == (int)MAX_ROW, "--row");
	for (unsigned i = 0; i < N_ROWS; i++)
		if (only == 0 || only == i + 1)
			measure(rows[i].open, &rows[i].spec, settled, &slab, &row[i]);
	for (unsigned i = 0; i < N_ROWS; i++)
		if (only == 0 || only == i + 1)
			json_array_append_new(results, report(&row[i], &slab));
	slab_close(&slab);
}

static json_t *replicas(unsigned reps)
{
	json_t *rows = json_array();

	printf("# one copy more of a result: its headers, buffers, sending and freeing\n");
	printf("%7s %10s\n", "payload", "ns/replica");
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		const double ns = path_replica_ns(mtu, reps);

		printf("%7u %10.1f\n", mtu, ns);
		json_array_append_new(
			rows, json_pack("{s:i,s:f}", "payload", (int)mtu, "ns_per_replica", ns));
	}
	return rows;
}

static int usage(FILE *f)
{
	fprintf(f, "usage: bench-inc [--quick] [--pool-mb 1..64] [--payload 1024|4096] "
		   "[--row 1..7] [--workers 2..8] [--json FILE]\n"
		   "--row: that one alone, and no replicas; for comparing two builds run by run\n"
		   "--workers: what that many do at the same time, beside one; nothing else\n");
	return f == stdout ? 0 : 2;
}

static int save(json_t *root, const char *file)
{
	const bool failed = file && json_dump_file(root, file, JSON_INDENT(1)) != 0;

	if (failed)
		fprintf(stderr, "bench-inc: cannot write %s\n", file);
	json_decref(root);
	return failed;
}

static int beside(unsigned workers, unsigned settled, size_t pool, const char *file)
{
	json_t *results = json_array(), *where;

	where = bench_machine("less than it can, and what is alone shares the CPU all the same");
	if (path_workers(workers, 2 * settled + 1, pool, results) != 0)
		return 1;
	return save(json_pack("{s:s,s:o,s:o}", "bench", "inc_workers", "machine", where, "results",
			    results),
		file);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", required_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'}, {"pool-mb", required_argument, NULL, 'p'},
		{"payload", required_argument, NULL, 'l'}, {"row", required_argument, NULL, 'r'},
		{"workers", required_argument, NULL, 'w'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *file = NULL;
	unsigned settled = SETTLED, payload = 0, row = 0, workers = 0;
	size_t pool = 8;
	json_t *root, *results = json_array(), *where;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			file = optarg;
		else if (opt == 'q')
			settled = 3;
		else if (opt == 'p' && atoi(optarg) >= 1 && atoi(optarg) <= 64)
			pool = (size_t)atoi(optarg);
		else if (opt == 'l' && (atoi(optarg) == 1024 || atoi(optarg) == 4096))
			payload = (unsigned)atoi(optarg);
		else if (opt == 'r' && atoi(optarg) >= 1 && atoi(optarg) <= MAX_ROW)
			row = (unsigned)atoi(optarg);
		else if (opt == 'w' && atoi(optarg) >= 2 && atoi(optarg) <= PATH_MAX_WORKERS)
			workers = (unsigned)atoi(optarg);
		else
			return usage(opt == 'h' ? stdout : stderr);
	}
	if (workers)
		return beside(workers, settled, pool << 20, file);
	printf("# AllReduce fp32 sum, fan-in %u, one core, packets in a pool of %zu MB, kernels: "
	       "ICRC %s, addition %s\n",
		PATH_FAN_IN, pool, icrc_kernel_name(), reduce_isa_name(reduce_isa_best()));
	where = bench_machine("less than it can, the best of each row counts");
	printf("# graph: the switch's worker between ring ports; engine: its functions alone; "
	       "acks: "
	       "hosts acknowledge results\n");
	printf("# limit: ICRC, addition and result CRC by the bare kernels, packets side by "
	       "side\n");
	printf("%-6s %-9s %6s %7s %4s %8s %8s %6s %6s %6s %5s  %s\n", "path", "mode", "groups",
		"payload", "acks", "ns/pkt", "median", "Gb/s", "limit", "ratio", "tries",
		"TSC cycles/packet by module");
	for (uint32_t mtu = 1024; mtu <= 4096; mtu *= 4)
		if (payload == 0 || payload == mtu)
			all(mtu, pool << 20, row, settled, results);
	root = json_pack("{s:s,s:o,s:s,s:s,s:o,s:o}", "bench", "inc", "machine", where, "icrc",
		icrc_kernel_name(), "reduce", reduce_isa_name(reduce_isa_best()), "results",
		results, "replicas", row == 0 ? replicas(2 * settled + 1) : json_array());
	return save(root, file);
}
