/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark of collectives in the network, with the columns and flags of the benchmarks people
 * know. Every result can be checked, element by element. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/perf.h"
#include "lib/ccl/group.h"
#include "lib/ctl/config.h"

static const char usage[] =
	"Usage: incline-perf --group FILE --rank N [options]\n"
	"Measures collectives in the network; every rank runs it, rank 0 prints.\n"
	"  -b, --minbytes SIZE   smallest size (4K)      -e, --maxbytes SIZE  largest size (1M)\n"
	"  -f, --stepfactor F    from size to size (4)   -n, --iters N        timed operations "
	"(20)\n"
	"  -w, --warmup_iters N  before them (5)         -c, --check N        checked operations "
	"(1)\n"
	"      --collective C    allreduce (default), reduce, broadcast, barrier, reduce_scatter,\n"
	"                        allgather, several with commas, or all\n"
	"  -d, --datatype TYPE   float (default), half, bfloat16, double, int8, uint8, int32,\n"
	"                        uint32, int64, uint64, several with commas, or all\n"
	"  -o, --op OP           sum (default), min, max, prod, several with commas, or all\n"
	"      --algorithm A     auto, inc, multicast (broadcast, allgather), ring,\n"
	"                        tree (broadcast); else as the group file says\n"
	"  -r, --root RANK       of reduce and broadcast (0), or all\n"
	"      --group FILE      group file (INCLINE_GROUP)\n"
	"      --help-config[=markdown]\n"
	"                        print what can be in FILE\n"
	"      --rank N          own rank (INCLINE_RANK, or as Open MPI, MPICH, PMIx,\n"
	"                        torchrun, Slurm set it)\n"
	"      --timeout MS      without any progress (group file)\n"
	"      --json FILE       results as JSON (rank 0)\n"
	"      --seed N          of the data (1)\n"
	"      --reals           random floats, checked within a bound; else exact numbers\n"
	"      --staged          do not register the buffers: copy every message\n"
	"      --show-selection  only say how the ranks are joined, and why; by collective and\n"
	"                        size, how it would be done\n"
	"  -h, --help            this text                -V, --version\n"
	"SIZE may end in K, M or G (powers of 1024); of reduce_scatter and allgather it is that "
	"of\n"
	"all blocks together. Times are those of the slowest rank. algbw = size / time; busbw is\n"
	"comparable with ring algorithms: algbw times 2 (n-1) / n (allreduce), (n-1) / n\n"
	"(reduce_scatter, allgather) or 1. With reduction in the network each rank sends and\n"
	"receives `size` bytes once at most, whatever n is.\n"
	"Exit status: 0, 1 failure or wrong results, 2 usage.\n";

/* ---- options ---- */

static int bad(const char *option, const char *value)
{
	fprintf(stderr, "incline-perf: %s: \"%s\" is not valid; see --help\n", option, value);
	return 2;
}

static int parse_reducing(const char *name)
{
	const int op = reduce_op_parse(name);

	return op == REDUCE_NONE ? -EINVAL : op;
}

/* Names with commas between them, as a set of numbers; "all" is given. */
static bool parse_set(const char *text, int (*parse)(const char *), unsigned all, unsigned *set)
{
	char copy[200], *save, *name;

	if (strcmp(text, "all") == 0) {
		*set = all;
		return true;
	}
	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	*set = 0;
	for (name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		const int n = parse(name);

		if (n < 0)
			return false;
		*set |= 1u << n;
	}
	return *set != 0;
}

static bool parse_root(struct perf_options *o, const char *text)
{
	long n = -1;

	if (strcmp(text, "all") != 0 && !rank_parse_int(text, 0, 1 << 20, &n))
		return false;
	o->root = (int)n;
	return true;
}

static bool parse_number(struct perf *p, int c, const char *arg)
{
	struct perf_options *o = &p->opt;
	bool ok;
	long n;

	switch (c) {
	case 'n':
		return rank_parse_int(arg, 1, 100000000, &o->iters);
	case 'w':
		return rank_parse_int(arg, 0, 100000000, &o->warmup);
	case 'c':
		return rank_parse_int(arg, 0, 1000000, &o->checks);
	case 'R':
		ok = rank_parse_int(arg, 0, 1 << 20, &n);
		p->rank.number = (int)n;
		return ok;
	case 't':
		ok = rank_parse_int(arg, 1, 3600000, &n);
		p->rank.timeout_ns = (uint64_t)n * 1000000;
		return ok;
	default:
		ok = rank_parse_int(arg, 0, 1l << 20, &n);
		o->seed = (uint64_t)n;
		return ok;
	}
}

static bool parse_one(struct perf *p, int c, const char *arg)
{
	struct perf_options *o = &p->opt;

	switch (c) {
	case 'b':
		return rank_parse_size(arg, &o->min);
	case 'e':
		return rank_parse_size(arg, &o->max);
	case 'f':
		o->factor = strtod(arg, NULL);
		return o->factor > 1;
	case 'C':
		return parse_set(arg, ccl_collective_parse, CCL_ALL_COLLECTIVES, &o->collectives);
	case 'd':
		return parse_set(arg, perf_type_parse, (1u << (REDUCE_UINT64 + 1)) - 1, &o->dtypes);
	case 'o':
		return parse_set(arg, parse_reducing,
			1u << REDUCE_SUM | 1u << REDUCE_MIN | 1u << REDUCE_MAX | 1u << REDUCE_PROD,
			&o->ops);
	case 'r':
		return parse_root(o, arg);
	case 'A':
		return (p->rank.algorithm = ccl_algorithm_parse(arg)) >= 0;
	case 'g':
		p->rank.group_file = arg;
		return true;
	case 'j':
		o->json = arg;
		return true;
	case 'S':
		return o->staged = true;
	case 'F':
		return o->reals = true;
	case 'W':
		return o->show_selection = true;
	default:
		return parse_number(p, c, arg);
	}
}

/* 0: go on; else the exit status + 1. */
static int parse(struct perf *p, int argc, char **argv)
{
	static const struct option longs[] = {{"minbytes", 1, NULL, 'b'},
		{"maxbytes", 1, NULL, 'e'}, {"stepfactor", 1, NULL, 'f'}, {"iters", 1, NULL, 'n'},
		{"warmup_iters", 1, NULL, 'w'}, {"warmup", 1, NULL, 'w'}, {"check", 1, NULL, 'c'},
		{"collective", 1, NULL, 'C'}, {"algorithm", 1, NULL, 'A'},
		{"datatype", 1, NULL, 'd'}, {"op", 1, NULL, 'o'}, {"root", 1, NULL, 'r'},
		{"group", 1, NULL, 'g'}, {"rank", 1, NULL, 'R'}, {"timeout", 1, NULL, 't'},
		{"json", 1, NULL, 'j'}, {"seed", 1, NULL, 's'}, {"reals", 0, NULL, 'F'},
		{"staged", 0, NULL, 'S'}, {"show-selection", 0, NULL, 'W'}, {"help", 0, NULL, 'h'},
		{"version", 0, NULL, 'V'}, {"help-config", 2, NULL, 'G'}, {0}};
	int c;

	p->opt = (struct perf_options){.min = 4096,
		.max = 1 << 20,
		.seed = 1,
		.factor = 4,
		.iters = 20,
		.warmup = 5,
		.checks = 1,
		.collectives = 1u << CCL_ALLREDUCE,
		.dtypes = 1u << REDUCE_FP32,
		.ops = 1u << REDUCE_SUM};
	while ((c = getopt_long(argc, argv, "b:e:f:n:w:c:d:o:r:hV", longs, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			fputs(c == 'h' ? usage : "incline-perf " INCLINE_VERSION "\n", stdout);
			return 1;
		}
		if (c == 'G')
			return 1 + ctl_config_help("incline-perf", &ccl_group_file, optarg);
		if (c == '?' || !parse_one(p, c, optarg))
			return 1 + (c == '?' ? 2 : bad(argv[optind - 1], optarg));
	}
	if (optind < argc)
		return 1 + bad("argument", argv[optind]);
	if (p->opt.max < p->opt.min)
		p->opt.max = p->opt.min;
	return 0;
}

/* ---- one collective ---- */

/* Where a rank's contribution is, and where its result goes, for blocks of `len` bytes. */
struct place {
	uint8_t *send, *recv;
};

static struct place place_of(
	const struct perf *p, const struct perf_case *c, size_t len, bool in_place)
{
	const size_t own = (size_t)p->rank.number * len;
	struct place at = {p->send, p->recv};

	if (!in_place)
		return at;
	at.send = p->recv;
	if (c->collective == CCL_REDUCE_SCATTER)
		at.recv += own;
	if (c->collective == CCL_ALLGATHER)
		at.send += own;
	return at;
}

static int run_once(struct perf *p, const struct perf_case *c, struct place at, uint64_t count)
{
	struct ccl_comm *comm = p->rank.comm;
	struct ccl_req req = {0};
	int rc;

	switch (c->collective) {
	case CCL_ALLREDUCE:
		rc = ccl_iallreduce(comm, at.send, at.recv, count, c->dtype, c->op, &req);
		break;
	case CCL_REDUCE:
		rc = ccl_ireduce(comm, at.send, at.recv, count, c->dtype, c->op, c->root, &req);
		break;
	case CCL_BROADCAST:
		rc = ccl_ibroadcast(comm, at.send, at.recv, count, c->dtype, c->root, &req);
		break;
	case CCL_REDUCE_SCATTER:
		rc = ccl_ireduce_scatter(comm, at.send, at.recv, count, c->dtype, c->op, &req);
		break;
	case CCL_ALLGATHER:
		rc = ccl_iallgather(comm, at.send, at.recv, count, c->dtype, &req);
		break;
	default:
		rc = ccl_ibarrier(comm, &req);
	}
	return rank_wait(&p->rank, rc, req);
}

/* Elements of a rank's contribution. */
static uint64_t contributed(const struct perf *p, const struct perf_case *c, uint64_t count)
{
	return c->collective == CCL_REDUCE_SCATTER ? count * p->n_ranks : count;
}

/* AllGather's contributions are the blocks of one long vector. */
static uint64_t first_of(const struct perf_case *c, unsigned rank, uint64_t count)
{
	return c->collective == CCL_ALLGATHER ? rank * count : 0;
}

static bool contributes(const struct perf *p, const struct perf_case *c)
{
	return c->collective != CCL_BROADCAST || (unsigned)p->rank.number == c->root;
}

static void contribute(
	struct perf *p, const struct perf_case *c, struct place at, uint64_t count, uint64_t round)
{
	if (contributes(p, c))
		perf_fill(&p->data, p->own, round, first_of(c, (unsigned)p->rank.number, count),
			contributed(p, c, count), at.send);
}

static uint64_t wrong_blocks(struct perf *p, const struct perf_case *c, const uint8_t *recv,
	uint64_t count, uint64_t round)
{
	uint64_t wrong = 0;

	for (unsigned r = 0; r < p->n_ranks; r++) {
		perf_table(&p->data, r, p->table);
		wrong += perf_wrong_copy(&p->data, p->table, round, first_of(c, r, count), count,
			recv + r * count * p->data.size);
	}
	return wrong;
}

static uint64_t count_wrong(
	struct perf *p, const struct perf_case *c, struct place at, uint64_t count, uint64_t round)
{
	const unsigned rank = (unsigned)p->rank.number;

	switch (c->collective) {
	case CCL_ALLGATHER:
		return wrong_blocks(p, c, at.recv, count, round);
	case CCL_BROADCAST:
		perf_table(&p->data, c->root, p->table);
		return perf_wrong_copy(&p->data, p->table, round, 0, count, at.recv);
	case CCL_REDUCE:
		return rank == c->root ? perf_wrong_result(&p->data, round, 0, count, at.recv) : 0;
	case CCL_REDUCE_SCATTER:
		return perf_wrong_result(&p->data, round, rank * count, count, at.recv);
	case CCL_ALLREDUCE:
		return perf_wrong_result(&p->data, round, 0, count, at.recv);
	default:
		return 0;
	}
}

/* ---- measuring ---- */

static int check(
	struct perf *p, const struct perf_case *c, uint64_t count, bool in_place, uint64_t *wrong)
{
	const struct place at = place_of(p, c, count * p->data.size, in_place);
	uint64_t mine = 0;
	int rc = 0;

	for (long i = 0; i < p->opt.checks && !rc; i++) {
		const uint64_t round = p->rounds++;

		memset(p->recv, 0xff, p->opt.max); /* NaN, or -1: never right */
		contribute(p, c, at, count, round);
		rc = run_once(p, c, at, count);
		if (!rc)
			mine += count_wrong(p, c, at, count, round);
	}
	if (!rc)
		rc = rank_gather(&p->rank, mine, p->gathered);
	*wrong = 0;
	for (unsigned r = 0; r < p->n_ranks && !rc; r++)
		*wrong += p->gathered[r];
	return rc;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double percentile(const uint64_t *sorted, long n, double at)
{
	const long i = (long)(at * (double)n);

	return (double)sorted[i < n ? i : n - 1] / 1000;
}

static int measure(struct perf *p, const struct perf_case *c, uint64_t count, bool in_place,
	struct perf_timing *t)
{
	const struct place at = place_of(p, c, count * p->data.size, in_place);
	const long n = p->opt.iters;
	uint64_t start, before, most = 0;
	int rc = 0;

	contribute(p, c, at, count, p->rounds++);
	for (long i = 0; i < p->opt.warmup && !rc; i++)
		rc = run_once(p, c, at, count);
	if (!rc)
		rc = rank_barrier(&p->rank);
	before = start = rank_clock_ns();
	for (long i = 0; i < n && !rc; i++) {
		uint64_t now;

		rc = run_once(p, c, at, count);
		now = rank_clock_ns();
		p->samples[i] = now - before;
		before = now;
	}
	if (!rc)
		rc = rank_gather(&p->rank, before - start, p->gathered);
	for (unsigned r = 0; r < p->n_ranks && !rc; r++)
		most = p->gathered[r] > most ? p->gathered[r] : most;
	if (!rc)
		rc = check(p, c, count, in_place, &t->wrong);
	if (rc)
		return rc;
	qsort(p->samples, (size_t)n, sizeof(*p->samples), by_value);
	t->us = (double)most / 1000 / (double)n;
	t->p50 = percentile(p->samples, n, 0.5);
	t->p99 = percentile(p->samples, n, 0.99);
	t->p999 = percentile(p->samples, n, 0.999);
	return 0;
}

/* ---- all together ---- */

static bool has_blocks(enum ccl_collective collective)
{
	return collective == CCL_REDUCE_SCATTER || collective == CCL_ALLGATHER;
}

static int one_size(struct perf *p, const struct perf_case *c, uint64_t bytes)
{
	const unsigned blocks = has_blocks(c->collective) ? p->n_ranks : 1;
	const uint64_t count = bytes / p->data.size / blocks;
	struct perf_timing out = {0}, in = {0};
	int rc = measure(p, c, count, false, &out);

	bytes = count * p->data.size * blocks;
	if (!rc)
		rc = measure(p, c, count, true, &in);
	if (rc)
		return rank_failed(&p->rank, rc);
	p->wrong += out.wrong + in.wrong;
	if (c->collective != CCL_BARRIER) {
		p->busbw_sum += (perf_algbw_gbps(bytes, &out) + perf_algbw_gbps(bytes, &in)) *
				perf_busbw_factor(p, c->collective);
		p->n_timings += 2;
	}
	if (p->rank.number == 0)
		perf_report(p, c, bytes, count, &out, &in);
	return 0;
}

static int one_case(struct perf *p, const struct perf_case *c)
{
	double size = (double)p->opt.min;
	int status = 0;

	p->data = (struct perf_data){.dtype = c->dtype,
		.op = c->op,
		.n_ranks = p->n_ranks,
		.seed = p->opt.seed,
		.reals = p->opt.reals};
	if (!perf_data_make(&p->data)) {
		fprintf(stderr, "incline-perf: out of memory\n");
		return 1;
	}
	perf_table(&p->data, (unsigned)p->rank.number, p->own);
	if (c->collective == CCL_BARRIER)
		status = one_size(p, c, 0);
	for (; c->collective != CCL_BARRIER && size <= (double)p->opt.max && !status;
		size = size < 1 ? 1 : size * p->opt.factor)
		status = one_size(p, c, (uint64_t)size);
	perf_data_free(&p->data);
	return status;
}

static int all_roots(struct perf *p, struct perf_case c)
{
	const unsigned first = p->opt.root < 0 ? 0 : (unsigned)p->opt.root;
	const unsigned end = p->opt.root < 0 ? p->n_ranks : first + 1;
	int status = 0;

	if (!perf_is_rooted(c.collective))
		return one_case(p, &c);
	for (c.root = first; c.root < end && !status; c.root++)
		status = one_case(p, &c);
	return status;
}

/* Types and operations that make sense for it. */
static int all_types(struct perf *p, enum ccl_collective collective)
{
	const bool moves = collective == CCL_BROADCAST || collective == CCL_ALLGATHER;
	struct perf_case c = {.collective = collective, .op = REDUCE_NONE, .dtype = REDUCE_BYTES};
	int status = 0;

	if (collective == CCL_BARRIER)
		return one_case(p, &c);
	for (unsigned d = REDUCE_FP32; d <= REDUCE_UINT64 && !status; d++) {
		c.dtype = (enum reduce_dtype)d;
		if (!(p->opt.dtypes >> d & 1))
			continue;
		if (moves)
			status = all_roots(p, c);
		for (unsigned op = REDUCE_SUM; !moves && op <= REDUCE_PROD && !status; op++) {
			c.op = (enum reduce_op)op;
			if (p->opt.ops >> op & 1 && reduce_kernel(c.op, c.dtype))
				status = all_roots(p, c);
		}
	}
	return status;
}

static int allocate(struct perf *p)
{
	const size_t len = p->opt.max ? p->opt.max : 1;
	int rc = 0;

	p->n_ranks = ccl_size(p->rank.comm);
	p->samples = calloc((size_t)p->opt.iters, sizeof(*p->samples));
	p->gathered = calloc(p->n_ranks, sizeof(*p->gathered));
	p->send = aligned_alloc(4096, (len + 4095) & ~4095ull);
	p->recv = aligned_alloc(4096, (len + 4095) & ~4095ull);
	p->own = malloc(PERF_PERIOD * 8);
	p->table = malloc(PERF_PERIOD * 8);
	p->rows = json_array();
	if (!p->samples || !p->gathered || !p->send || !p->recv || !p->own || !p->table ||
		!p->rows) {
		fprintf(stderr, "incline-perf: no memory for two buffers of %zu bytes\n", len);
		return 1;
	}
	memset(p->send, 0, len);
	memset(p->recv, 0, len);
	if (!p->opt.staged)
		rc = ccl_register(p->rank.comm, p->send, len);
	if (!p->opt.staged && !rc)
		rc = ccl_register(p->rank.comm, p->recv, len);
	if (rc)
		fprintf(stderr, "incline-perf: registering %zu bytes: %s (ulimit -l?)\n", len,
			strerror(-rc));
	return rc ? 1 : 0;
}

static int conclude(struct perf *p)
{
	const double avg = p->n_timings ? p->busbw_sum / p->n_timings : 0;
	struct ccl_info info;

	if (p->rank.number != 0)
		return 0;
	printf("# Out of bounds values : %llu %s\n", (unsigned long long)p->wrong,
		p->wrong ? "FAILED" : "OK");
	printf("# Avg bus bandwidth    : %g\n#\n", avg / 8);
	ccl_query(p->rank.comm, &info);
	if (p->rank.group->lease[0])
		printf("# selection: %s\n", info.selection);
	return p->opt.json ? perf_write_json(p, avg) : 0;
}

static int run(struct perf *p)
{
	struct ccl_info info;
	int status = allocate(p);

	if (status)
		return status;
	if (p->opt.root >= (int)p->n_ranks)
		return bad("-r", "root");
	ccl_query(p->rank.comm, &info);
	if (p->opt.show_selection) {
		/* With a lease every collective is joined anew. */
		if (p->rank.group->lease[0] && (status = rank_barrier(&p->rank)))
			return rank_failed(&p->rank, status);
		return p->rank.number == 0 ? perf_show_selection(p) : 0;
	}
	if (p->rank.number == 0)
		perf_print_header(p);
	for (unsigned k = 0; k < CCL_N_COLLECTIVES && !status; k++) {
		const bool offered = info.collectives >> k & 1;

		if (!(p->opt.collectives >> k & 1))
			continue;
		if (p->rank.number == 0)
			perf_print_collective((enum ccl_collective)k, offered);
		/* Asked for by name it is an error, among all it is not. */
		if (!offered && p->opt.collectives != CCL_ALL_COLLECTIVES)
			return 1;
		if (offered)
			status = all_types(p, (enum ccl_collective)k);
	}
	return status ? status : conclude(p);
}

int main(int argc, char **argv)
{
	static struct perf p;
	int status;

	rank_init(&p.rank, "incline-perf");
	status = parse(&p, argc, argv);
	if (status)
		return status - 1;
	status = perf_refuse(&p);
	if (status == 0)
		status = rank_join(&p.rank);
	if (status)
		return status;
	status = run(&p);
	status = rank_leave(&p.rank, status);
	if (p.wrong)
		status = 1;
	json_decref(p.rows);
	free(p.samples);
	free(p.gathered);
	free(p.send);
	free(p.recv);
	free(p.own);
	free(p.table);
	return status;
}
