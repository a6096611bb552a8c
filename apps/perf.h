/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of incline-perf: data that can be checked, measurements, reports. */
#ifndef APPS_PERF_H
#define APPS_PERF_H

#include "apps/rank.h"

enum { PERF_PERIOD = 8191 }; /* prime: no packet or message length is a multiple of it */

/* ---- perf_data.c ----
 *
 * Element i of a rank's contribution in round k is table[(i + shift(k)) mod PERF_PERIOD]; tables
 * depend on seed and rank, so that neither another rank's, another round's nor a shifted result
 * passes for the right one. */

struct perf_data {
	enum reduce_dtype dtype;
	enum reduce_op op;
	unsigned n_ranks;
	uint64_t seed;
	bool reals; /* floats: random numbers in [-1, 1), results within a bound; else exact ones */
	size_t size;           /* of an element */
	uint8_t *want;         /* op over all ranks */
	double *value, *bound; /* reals: the same, and how far off it may be */
};

/* The result of op over all ranks. false: no memory. */
bool perf_data_make(struct perf_data *data);
void perf_data_free(struct perf_data *data);

/* One rank's contribution: PERF_PERIOD elements. */
void perf_table(const struct perf_data *data, unsigned rank, uint8_t *table);

/* Elements first .. first + count - 1 of a round. */
void perf_fill(const struct perf_data *data, const uint8_t *table, uint64_t round, uint64_t first,
	uint64_t count, void *buf);

/* How many elements differ from the table, or from the result of op over all ranks. */
uint64_t perf_wrong_copy(const struct perf_data *data, const uint8_t *table, uint64_t round,
	uint64_t first, uint64_t count, const void *buf);
uint64_t perf_wrong_result(const struct perf_data *data, uint64_t round, uint64_t first,
	uint64_t count, const void *buf);

/* Names as NCCL's benchmarks have them ("float", "half"), or as lib/reduce ("fp32"). */
const char *perf_type_name(enum reduce_dtype dtype);
int perf_type_parse(const char *name); /* or -EINVAL */

/* ---- incline-perf.c ---- */

struct perf_options {
	uint64_t min, max, seed;
	double factor;
	long iters, warmup, checks;
	unsigned collectives; /* bit per enum ccl_collective */
	unsigned dtypes, ops; /* bit per enum reduce_dtype, reduce_op */
	int root;             /* -1: all */
	const char *json;
	bool staged, reals, show_selection;
};

/* What is measured. */
struct perf_case {
	enum ccl_collective collective;
	enum reduce_dtype dtype;
	enum reduce_op op; /* REDUCE_NONE: it does not reduce */
	unsigned root;
};

struct perf_timing {
	double us;             /* of the slowest rank, per operation */
	double p50, p99, p999; /* of rank 0's operations */
	uint64_t wrong;
};

struct perf {
	struct rank rank;
	struct perf_options opt;
	struct perf_data data;
	uint8_t *own, *table; /* contribution of this rank; of another one */
	unsigned n_ranks;
	uint64_t rounds;
	uint8_t *send, *recv;
	uint64_t *samples; /* ns, of the timed operations */
	uint64_t *gathered;
	double busbw_sum;
	unsigned n_timings;
	uint64_t wrong;
	json_t *rows;
};

/* ---- perf_options.c ---- */

/* 0: go on; else the exit status + 1. */
int perf_parse(struct perf *p, int argc, char **argv);

/* ---- perf_report.c: rank 0 ---- */

bool perf_is_rooted(enum ccl_collective collective);
double perf_algbw_gbps(uint64_t bytes, const struct perf_timing *t); /* Gb/s: size / time */
double perf_busbw_factor(const struct perf *p, enum ccl_collective collective);

/* The nearest rank: of n sorted samples the least that so many thousandths are no more than. us of
 * ns; n > 0. */
double perf_percentile(const uint64_t *sorted, long n, unsigned thousandths);

/* An algorithm that is asked for by name, and a collective that it does not do: said, before
 * anything starts. "all" is what it does. Exit status. */
int perf_refuse(const struct perf *p);

/* How the ranks are joined; how each of the collectives and sizes asked for is done. Exit status.
 */
int perf_show_selection(const struct perf *p);
void perf_print_header(const struct perf *p);
void perf_print_collective(enum ccl_collective collective, bool offered);
/* bytes: of the whole vector; count: elements of a rank's block. */
void perf_report(struct perf *p, const struct perf_case *c, uint64_t bytes, uint64_t count,
	const struct perf_timing *out, const struct perf_timing *in);
int perf_write_json(const struct perf *p, double avg_busbw_gbps);

#endif
