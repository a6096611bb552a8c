/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark of collectives in the network, with the columns and flags of the benchmarks people
 * know. Every result can be checked, element by element. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/perf.h"
#include "lib/ccl/group.h"
#include "lib/ctl/config.h"

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
	t->p50 = perf_percentile(p->samples, n, 500);
	t->p99 = perf_percentile(p->samples, n, 990);
	t->p999 = perf_percentile(p->samples, n, 999);
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
	if (p->opt.root >= (int)p->n_ranks) {
		fprintf(stderr, "incline-perf: --root: %d is no rank: there are %u\n", p->opt.root,
			p->n_ranks);
		return 2;
	}
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
	status = perf_parse(&p, argc, argv);
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
