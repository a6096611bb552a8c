/* SPDX-License-Identifier: BSD-3-Clause */
/* The software RNIC on one core: two of them in one process, frames handed over through 64 buffers,
 * as memif does; both ends' work is in the figure. Beside it, on the same memory and in turn, what
 * can not be left out: the payload's copy into a frame and its CRC, in one pass by the best kernels
 * of this CPU, and at the other end once more. The best of several repetitions counts for each. All
 * bytes are compared at the end. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/icrc.h"
#include "tests/bench/ends.h"

enum { PING = 20000 };

static const struct load loads[] = {
	{"WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 1, true},
	{"WRITE", IBV_WR_RDMA_WRITE, 65536, 1024, 1, true},
	{"WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 64, true},
	{"SEND", IBV_WR_SEND, 65536, 4096, 1, true},
	{"READ", IBV_WR_RDMA_READ, 65536, 4096, 1, true},
	{"WRITE", IBV_WR_RDMA_WRITE, 64, 1024, 1, false},
	{"WRITE", IBV_WR_RDMA_WRITE, 64, 1024, 64, false},
	{"SEND", IBV_WR_SEND, 64, 1024, 1, false},
	{"READ", IBV_WR_RDMA_READ, 64, 1024, 1, false},
	{"SR-WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 1, true, .selective = true},
	{"SR-WRITE", IBV_WR_RDMA_WRITE, 65536, 1024, 1, true, .selective = true},
	{"MRC-WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 1, true, true},
	{"MRC-WRITE", IBV_WR_RDMA_WRITE, 65536, 1024, 1, true, true},
	{"MRC-WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 64, true, true},
	{"MRC-WRITE", IBV_WR_RDMA_WRITE, 64, 1024, 1, false, true},
	{"FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1024, 1, false},
};

/* The same memory in the same order: a burst into frames, the burst out of them. Messages per
 * second. */
static double run_limit(struct end ends[2], const struct load *load, uint64_t messages)
{
	volatile uint32_t sink = 0;
	const uint64_t packets = messages * (load->size / load->mtu), start = work_ns();

	for (uint64_t first = 0; first < packets; first += BURST) {
		uint8_t *src = ends[0].memory, *dst = ends[1].memory;

		for (uint64_t i = first; i < first + BURST; i++)
			sink += icrc_copy(0, bench_frames[i % SLOTS] + 64,
				src + i * load->mtu % MEMORY, load->mtu);
		for (uint64_t i = first; i < first + BURST; i++)
			sink += icrc_copy(0, dst + i * load->mtu % MEMORY,
				bench_frames[i % SLOTS] + 64, load->mtu);
	}
	(void)sink;
	return (double)messages * 1e9 / (double)(work_ns() - start);
}

static void report(struct end ends[2], const struct load *load, unsigned reps, json_t *results)
{
	const uint64_t messages = load->bandwidth ? 4096 : 200000;
	double best = 0, limit = 0, gbps;

	for (unsigned r = 0; r < reps; r++) {
		double rate, most;

		connect_all(ends, load);
		rate = run(ends, load, messages);
		disconnect_all(ends, load);
		most = load->bandwidth ? run_limit(ends, load, messages) : 0;
		best = rate > best ? rate : best;
		limit = most > limit ? most : limit;
	}
	gbps = best * load->size * 8e-9;
	printf("%-9s %6u %5u %4u %9.2f %9.2f", load->name, load->size, load->mtu, load->qps, gbps,
		best * 1e-6);
	if (load->bandwidth)
		printf(" %9.2f %6.2f", limit * load->size * 8e-9, best / limit);
	printf("\n");
	json_array_append_new(results,
		json_pack("{s:s,s:i,s:i,s:i,s:f,s:f,s:o,s:o}", "operation", load->name, "bytes",
			(int)load->size, "mtu", (int)load->mtu, "qps", (int)load->qps, "gbps", gbps,
			"messages_per_s", best, "limit_gbps",
			load->bandwidth ? json_real(limit * load->size * 8e-9) : json_null(),
			"ratio", load->bandwidth ? json_real(best / limit) : json_null()));
}

static bool is_wanted(const struct load *load, const char *only)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%u/%u/%u", load->name, load->size, load->mtu, load->qps);
	return only == NULL || strcmp(name, only) == 0;
}

/* Nothing but right bytes counts: one WRITE of everything. */
static void verify(struct end ends[2])
{
	static const struct load all = {"WRITE", IBV_WR_RDMA_WRITE, MEMORY, 4096, 1, true};

	memset(ends[1].memory, 0, MEMORY);
	connect_all(ends, &all);
	run(ends, &all, 1);
	disconnect_all(ends, &all);
	check(memcmp(ends[0].memory, ends[1].memory, MEMORY) == 0, "the bytes are wrong");
}

/* ---- latency: the processor's part of it ---- */

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void ping(struct end ends[2], const struct load *load, unsigned from)
{
	struct ibv_wc wc[4];
	int n = 0;

	post(&ends[from], &ends[!from], load, 0, 0);
	while (n == 0) {
		carry(&ends[from], &ends[!from]);
		n = rnic_cq_poll(ends[!from].cq, 4, wc);
	}
	for (int i = 0; i < n; i++)
		if (wc[i].opcode & IBV_WC_RECV)
			post_recv(&ends[!from], load, 0, 0);
	carry(&ends[!from], &ends[from]);
	rnic_cq_poll(ends[from].cq, 4, wc);
}

static void latency(struct end ends[2], json_t *root)
{
	static const struct load load = {"SEND", IBV_WR_SEND, 8, 1024, 1, false};
	static uint32_t ns[PING];
	static const struct {
		const char *name;
		double at;
	} points[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};
	json_t *out = json_object();

	connect_all(ends, &load);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < 8; i++)
			post_recv(&ends[k], &load, 0, 0);
	for (unsigned i = 0; i < PING; i++) {
		uint64_t start = clock_ns();

		ping(ends, &load, i & 1);
		ns[i] = (uint32_t)(clock_ns() - start);
	}
	disconnect_all(ends, &load);
	qsort(ns, PING, sizeof(ns[0]), by_size);
	printf("SEND of 8 bytes, post to completion, both ends and the ACK, ns:");
	for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		uint32_t v = ns[(unsigned)(points[i].at * PING)];

		printf("  %s %u", points[i].name, v);
		json_object_set_new(out, points[i].name, json_integer(v));
	}
	printf("\n");
	json_object_set_new(root, "send_ns", out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", required_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'}, {"only", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'}, {0}};
	struct end ends[2] = {0};
	const char *file = NULL, *only = NULL;
	unsigned reps = 7;
	json_t *root, *results = json_array();
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			file = optarg;
		else if (opt == 'q')
			reps = 2;
		else if (opt == 'o')
			only = optarg;
		else {
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: bench-rnic [--quick] [--only OPERATION/BYTES/MTU/QPS] "
				"[--json FILE]\n");
			return opt == 'h' ? 0 : 2;
		}
	}
	for (unsigned k = 0; k < 2; k++)
		end_create(&ends[k], k);
	verify(ends);
	printf("# two RNICs on one core; limit: the payload's copy and CRC at both ends, alone, in "
	       "one pass by the %s kernels\n",
		icrc_kernel_name());
	printf("%-9s %6s %5s %4s %9s %9s %9s %6s\n", "operation", "bytes", "MTU", "QPs", "Gb/s",
		"Mmsg/s", "limit", "ratio");
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		if (is_wanted(&loads[i], only))
			report(ends, &loads[i], reps, results);
	root = json_pack(
		"{s:s,s:s,s:o}", "bench", "rnic", "icrc", icrc_kernel_name(), "results", results);
	latency(ends, root);
	if (file && json_dump_file(root, file, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "bench-rnic: cannot write %s\n", file);
		return 1;
	}
	json_decref(root);
	for (unsigned k = 0; k < 2; k++)
		end_destroy(&ends[k]);
	return 0;
}
