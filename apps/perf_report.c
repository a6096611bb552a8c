/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables for people, JSON for programs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/perf.h"
#include "lib/ccl/group.h"

bool perf_is_rooted(enum ccl_collective collective)
{
	return collective == CCL_REDUCE || collective == CCL_BROADCAST;
}

double perf_algbw_gbps(uint64_t bytes, const struct perf_timing *t)
{
	return t->us > 0 ? (double)bytes * 8 / 1000 / t->us : 0;
}

double perf_busbw_factor(const struct perf *p, enum ccl_collective collective)
{
	const double n = p->n_ranks;

	if (collective == CCL_ALLREDUCE)
		return 2 * (n - 1) / n;
	return perf_is_rooted(collective) ? 1 : (n - 1) / n;
}

int perf_refuse(const struct perf *p)
{
	const enum ccl_algorithm a = (enum ccl_algorithm)p->rank.algorithm;
	const unsigned wrong =
		p->rank.algorithm < 0 ? 0 : p->opt.collectives & ~ccl_algorithm_does(a);

	if (!wrong || p->opt.collectives == CCL_ALL_COLLECTIVES)
		return 0;
	fprintf(stderr, "incline-perf: --algorithm %s: does no %s\n", ccl_algorithm_name(a),
		ccl_collective_name((enum ccl_collective)__builtin_ctz(wrong)));
	return 2;
}

/* Sizes of a collective, as far as they are done alike. */
static void show_sizes(const struct perf *p, enum ccl_collective collective)
{
	enum ccl_algorithm last = CCL_N_ALGORITHMS, algorithm;
	char why[CCL_ERR_LEN];
	double size = (double)p->opt.min;

	for (; size <= (double)p->opt.max; size = size < 1 ? 1 : size * p->opt.factor) {
		if (ccl_selected(p->rank.comm, collective, (uint64_t)size, &algorithm, why) ||
			algorithm == last)
			continue;
		printf("%-14s from %10llu bytes: %s: %s\n", ccl_collective_name(collective),
			(unsigned long long)size, ccl_algorithm_name(algorithm), why);
		last = algorithm;
	}
}

int perf_show_selection(const struct perf *p)
{
	struct ccl_info info;

	ccl_query(p->rank.comm, &info);
	printf("mode %s, %s: %s%s\n", ccl_comm_group(p->rank.comm)->mode, ccl_kind_name(info.kind),
		info.fallback ? "FALLBACK: " : "", info.selection);
	for (unsigned k = 0; k < CCL_N_COLLECTIVES; k++)
		if (p->opt.collectives >> k & info.collectives >> k & 1)
			show_sizes(p, (enum ccl_collective)k);
	return 0;
}

void perf_print_header(const struct perf *p)
{
	char host[64] = "?", cpu[128] = "?", line[256];
	const struct perf_options *o = &p->opt;
	FILE *f = fopen("/proc/cpuinfo", "re");
	struct ccl_info info;

	gethostname(host, sizeof(host) - 1);
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "model name : %127[^\n]", cpu) == 1)
			break;
	if (f)
		fclose(f);
	ccl_query(p->rank.comm, &info);
	printf("# incline-perf %s, host %s, CPU %s (%ld online)\n", INCLINE_VERSION, host, cpu,
		sysconf(_SC_NPROCESSORS_ONLN));
	printf("# Collectives %s, mode %s: %u ranks; rank 0 on %s (%s)",
		info.fallback || info.mode == CCL_MODE_RING ? "of the hosts" : "in the network",
		ccl_comm_group(p->rank.comm)->mode, p->n_ranks, info.device, info.local_ip);
	if (info.kind <= CCL_RING)
		printf(", %s %s", info.kind == CCL_RING ? "next rank" : "switch", info.remote_ip);
	printf("\n");
	printf("# selection: %s%s\n", info.fallback ? "FALLBACK: " : "", info.selection);
	printf("# MTU %u, M %u packets per message, W %u messages; buffers %s\n", info.mtu, info.m,
		info.w, o->staged ? "staged" : "registered");
	printf("# minBytes %llu maxBytes %llu step: %g(factor) warmup iters: %ld iters: %ld "
	       "validation: %ld seed: %llu data: %s\n",
		(unsigned long long)o->min, (unsigned long long)o->max, o->factor, o->warmup,
		o->iters, o->checks, (unsigned long long)o->seed,
		o->reals ? "random floats, right within a bound" : "exact");
	fflush(stdout);
}

void perf_print_collective(enum ccl_collective collective, bool offered)
{
	printf("#\n# Collective: %s%s\n", ccl_collective_name(collective),
		offered ? "" : ": not offered by this communicator");
	if (!offered)
		return;
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

static void print_timing(const struct perf *p, enum ccl_collective collective, uint64_t bytes,
	const struct perf_timing *t)
{
	const double gbytes = perf_algbw_gbps(bytes, t) / 8;
	char wrong[24] = "N/A";

	if (p->opt.checks)
		snprintf(wrong, sizeof(wrong), "%llu", (unsigned long long)t->wrong);
	printf(" %9.*f %7.3f %7.3f %6s", t->us < 1000 ? 2 : 1, t->us, gbytes,
		gbytes * perf_busbw_factor(p, collective), wrong);
}

double perf_percentile(const uint64_t *sorted, long n, unsigned thousandths)
{
	return (double)sorted[(n * thousandths + 999) / 1000 - 1] / 1000;
}

/* Of too few operations it would be the slowest one. */
static json_t *json_percentile(const struct perf *p, double us, long least)
{
	return p->opt.iters < least ? json_null() : json_real(us);
}

static json_t *json_timing(const struct perf *p, enum ccl_collective collective, uint64_t bytes,
	const struct perf_timing *t)
{
	const double algbw = perf_algbw_gbps(bytes, t);

	return json_pack("{s:f, s:f, s:f, s:f, s:o, s:o, s:I}", "time_us", t->us, "algbw_gbps",
		algbw, "busbw_gbps", algbw * perf_busbw_factor(p, collective), "p50_us", t->p50,
		"p99_us", json_percentile(p, t->p99, 100), "p999_us",
		json_percentile(p, t->p999, 1000), "wrong", (json_int_t)t->wrong);
}

static const char *op_name(const struct perf_case *c)
{
	return c->op == REDUCE_NONE ? "none" : reduce_op_name(c->op);
}

static json_t *json_row(const struct perf *p, const struct perf_case *c, uint64_t bytes,
	uint64_t count, const struct perf_timing *out, const struct perf_timing *in)
{
	json_t *row = json_timing(p, c->collective, bytes, out);
	enum ccl_algorithm algorithm = CCL_BY_AUTO;
	char why[CCL_ERR_LEN];
	struct ccl_info info;

	ccl_query(p->rank.comm, &info);
	ccl_selected(p->rank.comm, c->collective, bytes, &algorithm, why);
	/* wrong of the row counts both, so that nobody overlooks it. */
	json_object_update_new(
		row, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:i, s:I, s:o}",
			     "collective", ccl_collective_name(c->collective), "mode",
			     ccl_comm_group(p->rank.comm)->mode, "kind", ccl_kind_name(info.kind),
			     "algorithm", ccl_algorithm_name(algorithm), "bytes", (json_int_t)bytes,
			     "count", (json_int_t)count, "type", perf_type_name(c->dtype), "dtype",
			     reduce_dtype_name(c->dtype), "redop", op_name(c), "op", op_name(c),
			     "root", perf_is_rooted(c->collective) ? (int)c->root : -1, "wrong",
			     (json_int_t)(out->wrong + in->wrong), "in_place",
			     json_timing(p, c->collective, bytes, in)));
	return row;
}

void perf_report(struct perf *p, const struct perf_case *c, uint64_t bytes, uint64_t count,
	const struct perf_timing *out, const struct perf_timing *in)
{
	json_array_append_new(p->rows, json_row(p, c, bytes, count, out, in));
	printf("  %10llu %13llu %8s %7s %6d", (unsigned long long)bytes, (unsigned long long)count,
		perf_type_name(c->dtype), op_name(c),
		perf_is_rooted(c->collective) ? (int)c->root : -1);
	print_timing(p, c->collective, bytes, out);
	print_timing(p, c->collective, bytes, in);
	printf("\n");
	fflush(stdout);
}

/* Rows of one collective. */
static json_t *rows_of(const struct perf *p, const char *collective)
{
	json_t *some = json_array(), *row;
	size_t i;

	json_array_foreach(p->rows, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "collective"));

		if (strcmp(name, collective) == 0)
			json_array_append(some, row);
	}
	return some;
}

int perf_write_json(const struct perf *p, double avg_busbw_gbps)
{
	char host[64] = "?";
	struct ccl_info info;
	json_t *doc;

	gethostname(host, sizeof(host) - 1);
	ccl_query(p->rank.comm, &info);
	doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:i, s:s, s:i, s:i, s:i, s:b}", "tool",
		"incline-perf", "version", INCLINE_VERSION, "host", host, "mode",
		ccl_comm_group(p->rank.comm)->mode, "kind", ccl_kind_name(info.kind), "fallback",
		info.fallback, "selection", info.selection, "ranks", (int)p->n_ranks, "device",
		info.device, "mtu", (int)info.mtu, "M", (int)info.m, "W", (int)info.w, "registered",
		!p->opt.staged);
	if (p->rank.group->lease[0])
		json_object_update_new(doc,
			json_pack("{s:I, s:I}", "lease_granted", (json_int_t)info.lease_granted,
				"lease_refused", (json_int_t)info.lease_refused));
	json_object_update_new(
		doc, json_pack("{s:i, s:i, s:i, s:I, s:s, s:O, s:o, s:I, s:f}", "iters",
			     (int)p->opt.iters, "warmup", (int)p->opt.warmup, "checks",
			     (int)p->opt.checks, "seed", (json_int_t)p->opt.seed, "data",
			     p->opt.reals ? "random" : "exact", "results", p->rows, "allreduce",
			     rows_of(p, "allreduce"), "wrong", (json_int_t)p->wrong,
			     "avg_busbw_gbps", avg_busbw_gbps));
	return rank_write_json(&p->rank, p->opt.json, doc);
}
