/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark of collectives in the network, with the columns and flags of the benchmarks people
 * know. Every result can be checked, element by element. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/rank.h"
#include "lib/ccl/group.h"

enum { PERIOD = 8191 }; /* prime: no packet or message length is a multiple of it */

struct options {
	uint64_t min, max, seed;
	double factor;
	long iters, warmup, checks;
	enum reduce_dtype dtype;
	const char *type_name;
	const char *json;
	bool staged;
};

/* What ranks contribute: element i in round k is own[(i + shift(k)) mod PERIOD], a small integer
 * that depends on the rank; so sums are exact in fp32, and neither another round's result nor a
 * shifted one passes for the right one. */
struct pattern {
	uint8_t own[PERIOD];
	int32_t sum[PERIOD];
};

struct timing {
	double us;             /* of the slowest rank, per operation */
	double p50, p99, p999; /* of rank 0's operations */
	uint64_t wrong;
};

struct bench {
	struct rank rank;
	struct options opt;
	struct pattern pattern;
	unsigned n_ranks;
	uint64_t rounds;
	void *send, *recv;
	uint64_t *samples; /* ns, of the timed operations */
	uint64_t *gathered;
	double busbw_sum;
	unsigned n_timings;
	uint64_t wrong;
	json_t *rows;
};

static const char usage[] =
	"Usage: incline-perf --group FILE --rank N [options]\n"
	"Measures AllReduce in the network; every rank runs it, rank 0 prints.\n"
	"  -b, --minbytes SIZE   smallest size (4K)      -e, --maxbytes SIZE  largest size (1M)\n"
	"  -f, --stepfactor F    from size to size (4)   -n, --iters N        timed operations "
	"(20)\n"
	"  -w, --warmup_iters N  before them (5)         -c, --check N        checked operations "
	"(1)\n"
	"  -d, --datatype TYPE   float or int32 (float)  -o, --op OP          sum\n"
	"      --group FILE      group file (INCLINE_GROUP)\n"
	"      --rank N          own rank (INCLINE_RANK)\n"
	"      --timeout MS      without any progress (group file)\n"
	"      --json FILE       results as JSON (rank 0)\n"
	"      --seed N          of the data (1)\n"
	"      --staged          do not register the buffers: copy every message\n"
	"  -h, --help            this text                -V, --version\n"
	"SIZE may end in K, M or G (powers of 1024). Times are those of the slowest rank.\n"
	"algbw = size / time; busbw = algbw * 2 (n-1) / n for n ranks, comparable with ring "
	"algorithms.\n"
	"With reduction in the network each rank sends and receives `size` bytes once, whatever n "
	"is.\n"
	"Exit status: 0, 1 failure or wrong results, 2 usage.\n";

static int bad(const char *option, const char *value)
{
	fprintf(stderr, "incline-perf: %s: \"%s\" is not valid; see --help\n", option, value);
	return 2;
}

static int parse_type(struct options *o, const char *text)
{
	if (!strcmp(text, "float") || !strcmp(text, "fp32")) {
		o->dtype = REDUCE_FP32;
		o->type_name = "float";
	} else if (!strcmp(text, "int32") || !strcmp(text, "int")) {
		o->dtype = REDUCE_INT32;
		o->type_name = "int32";
	} else {
		return bad("-d", text);
	}
	return 0;
}

static bool parse_one(struct bench *b, int c, const char *arg)
{
	struct options *o = &b->opt;
	long n = 0;
	bool ok = true;

	switch (c) {
	case 'b':
		return rank_parse_size(arg, &o->min) && o->min >= 4;
	case 'e':
		return rank_parse_size(arg, &o->max) && o->max >= 4;
	case 'f':
		o->factor = strtod(arg, NULL);
		return o->factor > 1;
	case 'n':
		return rank_parse_int(arg, 1, 100000000, &o->iters);
	case 'w':
		return rank_parse_int(arg, 0, 100000000, &o->warmup);
	case 'c':
		return rank_parse_int(arg, 0, 1000000, &o->checks);
	case 'o':
		return !strcmp(arg, "sum");
	case 'd':
		return parse_type(o, arg) == 0;
	case 'g':
		b->rank.group_file = arg;
		return true;
	case 'j':
		o->json = arg;
		return true;
	case 'S':
		o->staged = true;
		return true;
	case 'r':
		ok = rank_parse_int(arg, 0, 1 << 20, &n);
		b->rank.number = (int)n;
		return ok;
	case 't':
		ok = rank_parse_int(arg, 1, 3600000, &n);
		b->rank.timeout_ns = (uint64_t)n * 1000000;
		return ok;
	case 's':
		ok = rank_parse_int(arg, 0, 1l << 60, &n);
		o->seed = (uint64_t)n;
		return ok;
	default:
		return false;
	}
}

/* 0: go on; else the exit status + 1. */
static int parse(struct bench *b, int argc, char **argv)
{
	static const struct option longs[] = {{"minbytes", 1, NULL, 'b'},
		{"maxbytes", 1, NULL, 'e'}, {"stepfactor", 1, NULL, 'f'}, {"iters", 1, NULL, 'n'},
		{"warmup_iters", 1, NULL, 'w'}, {"warmup", 1, NULL, 'w'}, {"check", 1, NULL, 'c'},
		{"datatype", 1, NULL, 'd'}, {"op", 1, NULL, 'o'}, {"group", 1, NULL, 'g'},
		{"rank", 1, NULL, 'r'}, {"timeout", 1, NULL, 't'}, {"json", 1, NULL, 'j'},
		{"seed", 1, NULL, 's'}, {"staged", 0, NULL, 'S'}, {"help", 0, NULL, 'h'},
		{"version", 0, NULL, 'V'}, {0}};
	int c;

	b->opt = (struct options){.min = 4096,
		.max = 1 << 20,
		.seed = 1,
		.factor = 4,
		.iters = 20,
		.warmup = 5,
		.checks = 1,
		.dtype = REDUCE_FP32,
		.type_name = "float"};
	while ((c = getopt_long(argc, argv, "b:e:f:n:w:c:d:o:hV", longs, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			fputs(c == 'h' ? usage : "incline-perf " INCLINE_VERSION "\n", stdout);
			return 1;
		}
		if (c == '?' || !parse_one(b, c, optarg))
			return 1 + (c == '?' ? 2 : bad((char[]){'-', (char)c, 0}, optarg));
	}
	if (optind < argc)
		return 1 + bad("argument", argv[optind]);
	if (b->opt.max < b->opt.min)
		b->opt.max = b->opt.min;
	return 0;
}

/* ---- data ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void make_pattern(struct bench *b)
{
	struct pattern *p = &b->pattern;

	for (unsigned r = 0; r < b->n_ranks; r++) {
		for (unsigned i = 0; i < PERIOD; i++) {
			const uint8_t v = mix(b->opt.seed << 32 ^ (uint64_t)r << 16 ^ i) & 63;

			p->sum[i] += v;
			if (r == (unsigned)b->rank.number)
				p->own[i] = v;
		}
	}
}

static unsigned shift(uint64_t round)
{
	return (unsigned)(round * 911 % PERIOD);
}

static void fill(const struct bench *b, void *buf, uint64_t count, uint64_t round)
{
	unsigned at = shift(round);
	float *f = buf;
	int32_t *n = buf;

	for (uint64_t i = 0; i < count; i++) {
		if (b->opt.dtype == REDUCE_FP32)
			f[i] = b->pattern.own[at];
		else
			n[i] = b->pattern.own[at];
		at = at + 1 == PERIOD ? 0 : at + 1;
	}
}

static uint64_t count_wrong(const struct bench *b, const void *buf, uint64_t count, uint64_t round)
{
	unsigned at = shift(round);
	const float *f = buf;
	const int32_t *n = buf;
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (b->opt.dtype == REDUCE_FP32)
			wrong += f[i] != (float)b->pattern.sum[at];
		else
			wrong += n[i] != b->pattern.sum[at];
		at = at + 1 == PERIOD ? 0 : at + 1;
	}
	return wrong;
}

/* ---- measuring ---- */

static int check(struct bench *b, uint64_t count, bool in_place, uint64_t *wrong)
{
	void *send = in_place ? b->recv : b->send;
	uint64_t mine = 0;
	int rc = 0;

	for (long i = 0; i < b->opt.checks && !rc; i++) {
		const uint64_t round = b->rounds++;

		memset(b->recv, 0xff, count * 4); /* NaN, or -1: never right */
		fill(b, send, count, round);
		rc = rank_allreduce(&b->rank, send, b->recv, count, b->opt.dtype);
		if (!rc)
			mine += count_wrong(b, b->recv, count, round);
	}
	if (!rc)
		rc = rank_gather(&b->rank, mine, b->gathered);
	*wrong = 0;
	for (unsigned r = 0; r < b->n_ranks && !rc; r++)
		*wrong += b->gathered[r];
	return rc;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double percentile(const uint64_t *sorted, long n, double p)
{
	long at = (long)(p * (double)n);

	return (double)sorted[at < n ? at : n - 1] / 1000;
}

static int measure(struct bench *b, uint64_t count, bool in_place, struct timing *t)
{
	const long n = b->opt.iters;
	void *send = in_place ? b->recv : b->send;
	uint64_t start, before, most = 0;
	int rc = 0;

	fill(b, send, count, b->rounds++);
	for (long i = 0; i < b->opt.warmup && !rc; i++)
		rc = rank_allreduce(&b->rank, send, b->recv, count, b->opt.dtype);
	if (!rc)
		rc = rank_barrier(&b->rank);
	before = start = rank_clock_ns();
	for (long i = 0; i < n && !rc; i++) {
		const uint64_t now =
			(rc = rank_allreduce(&b->rank, send, b->recv, count, b->opt.dtype),
				rank_clock_ns());

		b->samples[i] = now - before;
		before = now;
	}
	if (!rc)
		rc = rank_gather(&b->rank, before - start, b->gathered);
	for (unsigned r = 0; r < b->n_ranks && !rc; r++)
		most = b->gathered[r] > most ? b->gathered[r] : most;
	if (!rc)
		rc = check(b, count, in_place, &t->wrong);
	if (rc)
		return rc;
	qsort(b->samples, (size_t)n, sizeof(*b->samples), by_value);
	t->us = (double)most / 1000 / (double)n;
	t->p50 = percentile(b->samples, n, 0.5);
	t->p99 = percentile(b->samples, n, 0.99);
	t->p999 = percentile(b->samples, n, 0.999);
	return 0;
}

/* ---- reporting ---- */

static double algbw_gbps(uint64_t bytes, const struct timing *t)
{
	return (double)bytes * 8 / 1000 / t->us;
}

static double busbw_factor(const struct bench *b)
{
	return 2.0 * (b->n_ranks - 1) / b->n_ranks;
}

static void print_header(const struct bench *b)
{
	char host[64] = "?", cpu[128] = "?", line[256], local[WIRE_IP_STRLEN], sw[WIRE_IP_STRLEN];
	const struct options *o = &b->opt;
	FILE *f = fopen("/proc/cpuinfo", "re");
	struct ccl_info info;

	gethostname(host, sizeof(host) - 1);
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "model name : %127[^\n]", cpu) == 1)
			break;
	if (f)
		fclose(f);
	ccl_query(b->rank.comm, &info);
	printf("# incline-perf %s, host %s, CPU %s (%ld online)\n", INCLINE_VERSION, host, cpu,
		sysconf(_SC_NPROCESSORS_ONLN));
	printf("# AllReduce in the network, mode %s: %u ranks; rank 0 on %s (%s), switch %s\n",
		b->rank.group->mode, b->n_ranks, info.device,
		wire_ip_format(&info.local_ip, local, sizeof(local)),
		wire_ip_format(&info.remote_ip, sw, sizeof(sw)));
	printf("# MTU %u, M %u packets per message, W %u messages; buffers %s\n", info.mtu, info.m,
		info.w, o->staged ? "staged" : "registered");
	printf("# minBytes %llu maxBytes %llu step: %g(factor) warmup iters: %ld iters: %ld "
	       "validation: %ld seed: %llu\n#\n",
		(unsigned long long)o->min, (unsigned long long)o->max, o->factor, o->warmup,
		o->iters, o->checks, (unsigned long long)o->seed);
	printf("# %56s %38s\n", "out-of-place", "in-place");
	printf("# %10s %13s %8s %7s %6s", "size", "count", "type", "redop", "root");
	for (int i = 0; i < 2; i++)
		printf(" %9s %7s %7s %6s", "time", "algbw", "busbw", "#wrong");
	printf("\n# %10s %13s %8s %7s %6s", "(B)", "(elements)", "", "", "");
	for (int i = 0; i < 2; i++)
		printf(" %9s %7s %7s %6s", "(us)", "(GB/s)", "(GB/s)", "");
	printf("\n");
	fflush(stdout);
}

static void print_timing(const struct bench *b, uint64_t bytes, const struct timing *t)
{
	const double gbytes = algbw_gbps(bytes, t) / 8;
	char wrong[24] = "N/A";

	if (b->opt.checks)
		snprintf(wrong, sizeof(wrong), "%llu", (unsigned long long)t->wrong);
	printf(" %9.*f %7.3f %7.3f %6s", t->us < 1000 ? 2 : 1, t->us, gbytes,
		gbytes * busbw_factor(b), wrong);
}

static json_t *json_timing(const struct bench *b, uint64_t bytes, const struct timing *t)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "time_us", t->us, "algbw_gbps",
		algbw_gbps(bytes, t), "busbw_gbps", algbw_gbps(bytes, t) * busbw_factor(b),
		"p50_us", t->p50, "p99_us", t->p99, "p999_us", t->p999, "wrong",
		(json_int_t)t->wrong);
}

static void report(
	struct bench *b, uint64_t bytes, const struct timing *out, const struct timing *in)
{
	json_t *row = json_timing(b, bytes, out);

	/* wrong of the row counts both, so that nobody overlooks it. */
	json_object_update_new(
		row, json_pack("{s:I, s:I, s:s, s:s, s:I, s:o}", "bytes", (json_int_t)bytes,
			     "count", (json_int_t)(bytes / 4), "type", b->opt.type_name, "redop",
			     "sum", "wrong", (json_int_t)(out->wrong + in->wrong), "in_place",
			     json_timing(b, bytes, in)));
	json_array_append_new(b->rows, row);
	printf("  %10llu %13llu %8s %7s %6d", (unsigned long long)bytes,
		(unsigned long long)bytes / 4, b->opt.type_name, "sum", -1);
	print_timing(b, bytes, out);
	print_timing(b, bytes, in);
	printf("\n");
	fflush(stdout);
}

static int write_json(const struct bench *b, double avg_busbw_gbps)
{
	char host[64] = "?";
	struct ccl_info info;

	gethostname(host, sizeof(host) - 1);
	ccl_query(b->rank.comm, &info);
	return rank_write_json(&b->rank, b->opt.json,
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:i, s:i, s:i, s:b, s:i, s:i, s:i, s:I, "
			  "s:O, "
			  "s:I, s:f}",
			"tool", "incline-perf", "version", INCLINE_VERSION, "host", host, "mode",
			b->rank.group->mode, "ranks", (int)b->n_ranks, "device", info.device, "mtu",
			(int)info.mtu, "M", (int)info.m, "W", (int)info.w, "registered",
			!b->opt.staged, "iters", (int)b->opt.iters, "warmup", (int)b->opt.warmup,
			"checks", (int)b->opt.checks, "seed", (json_int_t)b->opt.seed, "allreduce",
			b->rows, "wrong", (json_int_t)b->wrong, "avg_busbw_gbps", avg_busbw_gbps));
}

/* ---- all together ---- */

static int one_size(struct bench *b, uint64_t bytes)
{
	struct timing out = {0}, in = {0};
	int rc = measure(b, bytes / 4, false, &out);

	if (!rc)
		rc = measure(b, bytes / 4, true, &in);
	if (rc)
		return rank_failed(&b->rank, rc);
	b->wrong += out.wrong + in.wrong;
	b->busbw_sum += (algbw_gbps(bytes, &out) + algbw_gbps(bytes, &in)) * busbw_factor(b);
	b->n_timings += 2;
	if (b->rank.number == 0)
		report(b, bytes, &out, &in);
	return 0;
}

static int allocate(struct bench *b)
{
	const size_t len = b->opt.max & ~3ull;
	int rc = 0;

	b->n_ranks = ccl_size(b->rank.comm);
	b->samples = calloc((size_t)b->opt.iters, sizeof(*b->samples));
	b->gathered = calloc(b->n_ranks, sizeof(*b->gathered));
	b->send = aligned_alloc(4096, (len + 4095) & ~4095ull);
	b->recv = aligned_alloc(4096, (len + 4095) & ~4095ull);
	b->rows = json_array();
	if (!b->samples || !b->gathered || !b->send || !b->recv || !b->rows) {
		fprintf(stderr, "incline-perf: no memory for two buffers of %zu bytes\n", len);
		return 1;
	}
	memset(b->send, 0, len);
	memset(b->recv, 0, len);
	if (!b->opt.staged)
		rc = ccl_register(b->rank.comm, b->send, len);
	if (!b->opt.staged && !rc)
		rc = ccl_register(b->rank.comm, b->recv, len);
	if (rc)
		fprintf(stderr, "incline-perf: registering %zu bytes: %s (ulimit -l?)\n", len,
			strerror(-rc));
	return rc ? 1 : 0;
}

static int run(struct bench *b)
{
	double avg;
	int status = allocate(b);

	if (status)
		return status;
	make_pattern(b);
	if (b->rank.number == 0)
		print_header(b);
	for (double size = (double)b->opt.min; size <= (double)b->opt.max && !status;
		size *= b->opt.factor)
		status = one_size(b, (uint64_t)size & ~3ull);
	if (status)
		return status;
	avg = b->busbw_sum / b->n_timings;
	if (b->rank.number == 0) {
		printf("# Out of bounds values : %llu %s\n", (unsigned long long)b->wrong,
			b->wrong ? "FAILED" : "OK");
		printf("# Avg bus bandwidth    : %g\n#\n", avg / 8);
		if (b->opt.json)
			status = write_json(b, avg);
	}
	return status;
}

int main(int argc, char **argv)
{
	static struct bench b;
	int status;

	rank_init(&b.rank, "incline-perf");
	status = parse(&b, argc, argv);
	if (status)
		return status - 1;
	status = rank_join(&b.rank);
	if (status)
		return status;
	status = run(&b);
	status = rank_leave(&b.rank, status);
	if (b.wrong)
		status = 1;
	json_decref(b.rows);
	free(b.samples);
	free(b.gathered);
	free(b.send);
	free(b.recv);
	return status;
}
