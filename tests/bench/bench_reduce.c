/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction kernels, payload by payload, beside memcpy that reads and writes the same addresses
 * without computing. The two alternate within one run; the best of several repetitions counts for
 * each. Figures are in bytes of wire form. All pairs from cache, where computing shows; sums from a
 * pool that is larger, where the memory does. */
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/reduce/reduce.h"

enum { PAYLOAD = 4096, MIN_PASS = 1 << 20, WIDEST = 2 };

struct memory {
	const char *name;
	size_t bytes; /* of all payloads; the accumulators have up to WIDEST times as many */
	uint8_t *acc, *src;
};

enum form { WIRE, ACCUMULATE, WIDEN, NARROW, N_FORMS };

static const char *const form_names[N_FORMS] = {"wire", "accumulate", "widen", "narrow"};

struct kernel {
	enum form form;
	enum reduce_op op; /* of the first two forms */
	enum reduce_dtype dtype;
};

struct timing {
	double gbps, limit; /* GB/s */
};

static reduce_fn function_of(const struct kernel *k, enum reduce_isa isa)
{
	if (k->form == WIRE)
		return reduce_kernel_isa(k->op, k->dtype, isa);
	if (k->form == ACCUMULATE)
		return reduce_accumulate_isa(k->op, k->dtype, isa);
	if (k->form == WIDEN)
		return reduce_widen_isa(k->dtype, isa);
	return reduce_narrow_isa(k->dtype, isa);
}

static void copy(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

/* Into, and out of, an accumulator of twice the size. */
static void spread(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	memcpy((uint8_t *)to + bytes, from, bytes);
}

static void gather(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	memcpy(to, (const uint8_t *)from + bytes, bytes);
}

/* Ones: sums, products and extremes of them stay ordinary numbers. */
static void fill(uint8_t *p, size_t bytes, enum reduce_dtype dtype, size_t size)
{
	uint64_t one = 1;

	if (dtype == REDUCE_FP32)
		one = 0x3f800000;
	else if (dtype == REDUCE_FP64)
		one = 0x3ff0000000000000;
	else if (dtype == REDUCE_FP16)
		one = 0x3c00;
	else if (dtype == REDUCE_BF16)
		one = 0x3f80;
	for (size_t i = 0; i < bytes; i += size)
		memcpy(p + i, &one, size);
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* All payloads, again and again. */
static double run(reduce_fn fn, const struct memory *m, enum form form, size_t acc_step)
{
	const size_t passes = m->bytes < MIN_PASS ? MIN_PASS / m->bytes : 1;
	const double start = now_ns();

	for (size_t pass = 0; pass < passes; pass++) {
		for (size_t i = 0; i < m->bytes / PAYLOAD; i++) {
			uint8_t *acc = m->acc + i * acc_step, *src = m->src + i * PAYLOAD;

			if (form == NARROW)
				fn(src, acc, PAYLOAD);
			else
				fn(acc, src, PAYLOAD);
		}
	}
	return (double)(passes * m->bytes) / (now_ns() - start);
}

static struct timing measure(
	const struct kernel *k, reduce_fn fn, const struct memory *m, unsigned reps)
{
	const bool wire = k->form == WIRE;
	const size_t size = reduce_size(k->dtype);
	const size_t acc_size = wire ? size : reduce_acc_size(k->dtype);
	const size_t acc_step = PAYLOAD / size * acc_size;
	reduce_fn limit = wire ? copy : k->form == NARROW ? gather : spread;
	struct timing best = {0};

	fill(m->src, m->bytes, k->dtype, size);
	fill(m->acc, m->bytes / PAYLOAD * acc_step, wire ? k->dtype : REDUCE_FP32, acc_size);
	for (unsigned r = 0; r < reps; r++) {
		double gbps = run(fn, m, k->form, acc_step);
		double most = run(limit, m, k->form, acc_step);

		best.gbps = gbps > best.gbps ? gbps : best.gbps;
		best.limit = most > best.limit ? most : best.limit;
	}
	return best;
}

static void report(const struct kernel *k, const struct memory *m, unsigned reps, json_t *results)
{
	const bool has_op = k->form == WIRE || k->form == ACCUMULATE;
	double limit = 0, ratio = 0;

	printf("%-6s %-10s %-4s %-6s", m->name, form_names[k->form],
		has_op ? reduce_op_name(k->op) : "-", reduce_dtype_name(k->dtype));
	for (int i = 0; i < REDUCE_N_ISA; i++) {
		const enum reduce_isa isa = (enum reduce_isa)i;
		reduce_fn fn = function_of(k, isa);
		struct timing t;

		if (!fn) {
			printf(" %8s", "-");
			continue;
		}
		t = measure(k, fn, m, reps);
		limit = t.limit;
		ratio = t.gbps / t.limit;
		printf(" %8.1f", t.gbps);
		json_array_append_new(results,
			json_pack("{s:s,s:s,s:s?,s:s,s:s,s:i,s:i,s:f,s:f,s:f}", "memory", m->name,
				"form", form_names[k->form], "op",
				has_op ? reduce_op_name(k->op) : NULL, "dtype",
				reduce_dtype_name(k->dtype), "isa", reduce_isa_name(isa), "payload",
				PAYLOAD, "working_set", (int)m->bytes, "gbytes_per_s", t.gbps,
				"limit_gbytes_per_s", t.limit, "ratio", ratio));
	}
	printf(" %8.1f %6.2f\n", limit, ratio);
}

static void report_all(const struct memory *m, int n_ops, unsigned reps, json_t *results)
{
	for (int form = 0; form < N_FORMS; form++) {
		for (int op = 0; op < n_ops; op++) {
			for (int dtype = 0; dtype < REDUCE_BYTES; dtype++) {
				const struct kernel k = {(enum form)form, (enum reduce_op)op,
					(enum reduce_dtype)dtype};
				const bool half = reduce_acc_size(k.dtype) != reduce_size(k.dtype);

				if (form != WIRE && (!half || (form > ACCUMULATE && op > 0)))
					continue;
				if (function_of(&k, REDUCE_SCALAR))
					report(&k, m, reps, results);
			}
		}
	}
}

static void *pages(size_t bytes)
{
	void *p = aligned_alloc(4096, bytes);

	if (!p) {
		fprintf(stderr, "bench-reduce: no memory\n");
		exit(1);
	}
	memset(p, 0, bytes);
	return p;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", required_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'}, {"pool-mb", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'}, {0}};
	struct memory memory[] = {{"cache", 64 << 10, NULL, NULL}, {"pool", 8 << 20, NULL, NULL}};
	const char *file = NULL;
	unsigned reps = 5;
	json_t *root, *results = json_array();
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			file = optarg;
		else if (opt == 'q')
			reps = 2;
		else if (opt == 'p' && atoi(optarg) >= 1 && atoi(optarg) <= 256)
			memory[1].bytes = (size_t)atoi(optarg) << 20;
		else {
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: bench-reduce [--quick] [--pool-mb 1..256] [--json FILE]\n");
			return opt == 'h' ? 0 : 2;
		}
	}
	printf("# GB/s of payload through one core, payloads of %d bytes: 64 KB of them, and a "
	       "pool of "
	       "%zu MB\n",
		PAYLOAD, memory[1].bytes >> 20);
	printf("# limit: memcpy over the same addresses; ratio: of the last set to it\n");
	printf("%-6s %-10s %-4s %-6s", "memory", "form", "op", "dtype");
	for (int i = 0; i < REDUCE_N_ISA; i++)
		printf(" %8s", reduce_isa_name((enum reduce_isa)i));
	printf(" %8s %6s\n", "limit", "ratio");
	for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++) {
		memory[i].src = pages(memory[i].bytes);
		memory[i].acc = pages(WIDEST * memory[i].bytes);
		report_all(&memory[i], i == 0 ? REDUCE_NONE : REDUCE_SUM + 1, reps, results);
		free(memory[i].src);
		free(memory[i].acc);
	}
	root = json_pack("{s:s,s:o}", "bench", "reduce", "results", results);
	if (file && json_dump_file(root, file, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "bench-reduce: cannot write %s\n", file);
		return 1;
	}
	json_decref(root);
	return 0;
}
