/* SPDX-License-Identifier: BSD-3-Clause */
/* EPIC, appendix K.3 and K.4: the packet-level simulations, with our code in the place of theirs.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "apps/sim_measure.h"
#include "apps/sim_models.h"
#include "apps/sim_scenario.h"

enum { N_SIZES = 9, GBPS = 100, N_LOSS = 10, N_LINKS = 9, N_WAYS = 3 };

static const struct {
	enum ccl_mode mode;
	const char *name;
} way[N_WAYS] = {{CCL_MODE_2, "Mode-II"}, {CCL_MODE_3, "Mode-III"}, {CCL_MODE_RING, "host ring"}};

static const char *const size_name[N_SIZES] = {
	"4K", "16K", "64K", "256K", "1M", "4M", "64M", "256M", "1G"};
static const uint64_t size[N_SIZES] = {
	4096, 16384, 65536, 1 << 18, 1 << 20, 1 << 22, 1 << 26, 1 << 28, 1 << 30};

/* Gb/s as the paper has them: EPIC-II, EPIC-III, ring. */
static const struct {
	unsigned table;
	enum ccl_collective op;
	double paper[N_WAYS][N_SIZES];
} throughput[] = {
	{25, CCL_ALLREDUCE,
		{{6.10, 20.35, 48.83, 75.12, 84.92, 87.54, 88.25, 88.28, 88.30},
			{10.17, 30.52, 61.04, 81.38, 88.78, 89.03, 89.90, 89.92, 89.92},
			{1.02, 3.81, 12.21, 27.90, 41.12, 46.64, 48.66, 48.76, 48.79}}},
	{26, CCL_REDUCE,
		{{10.17, 30.52, 61.04, 81.38, 88.78, 90.84, 91.46, 91.49, 91.50},
			{10.17, 30.52, 61.04, 81.38, 88.78, 90.84, 91.46, 91.49, 91.50},
			{1.80, 5.09, 9.39, 19.53, 47.64, 74.40, 90.19, 91.16, 91.41}}},
	{27, CCL_REDUCE_SCATTER,
		{{10.17, 30.52, 61.04, 81.38, 88.78, 90.84, 91.46, 91.49, 91.50},
			{10.17, 30.52, 61.04, 81.38, 88.78, 90.84, 91.46, 91.49, 91.50},
			{1.91, 7.12, 23.74, 53.41, 77.68, 87.64, 91.24, 91.43, 91.48}}},
	{28, CCL_BROADCAST,
		{{10.17, 30.52, 61.04, 81.38, 88.78, 90.84, 91.46, 91.49, 91.50},
			{10.17, 30.52, 61.04, 81.38, 88.78, 90.84, 91.46, 91.49, 91.50},
			{2.77, 6.78, 10.61, 20.78, 49.45, 75.48, 90.29, 91.19, 91.41}}},
	{29, CCL_ALLGATHER,
		{{6.98, 22.71, 52.08, 76.59, 87.29, 90.42, 91.43, 91.48, 91.49},
			{7.18, 23.25, 52.79, 76.97, 87.41, 90.45, 91.43, 91.48, 91.49},
			{13.35, 37.15, 67.02, 83.88, 89.50, 90.99, 91.47, 91.49, 91.50}}},
};
static const double paper_barrier[N_WAYS] = {2e5, 3.33e5, 1.42e5}; /* the last: to rank 0 */

static const double loss_percent[N_LOSS] = {0, 0.1, 0.5, 1, 2, 5, 8, 10, 12, 15};
static const double paper_loss[2][N_LOSS] = {
	{87.54, 86.33, 86.81, 86.09, 84.46, 79.52, 75.48, 73.01, 47.17, 39.01},
	{89.03, 88.53, 88.53, 88.28, 87.54, 84.92, 82.67, 81.17, 79.72, 77.74}};
static const double paper_lossy[2][N_LINKS] = {
	{87.54, 79.52, 74.05, 70.07, 64.97, 63.78, 59.07, 55.31, 52.52},
	{89.03, 84.92, 82.02, 79.31, 77.54, 76.78, 75.67, 74.94, 72.34}};

/* Goodput with one link congested to half, with and without CNPs to ranks that run ahead. The
 * paper's table has the two rows the other way round than its text (7.4): the text's is taken. */
static const double paper_sync[2][7] = {{13.96, 38.66, 88.09, 94.38, 44.60, 43.32, 20.25},
	{13.96, 38.66, 88.09, 94.38, 95.99, 95.87, 90.45}};

struct point {
	enum ccl_mode mode;
	enum ccl_collective op;
	uint64_t bytes, seed;
	double loss; /* of the first lossy hosts' links, both directions */
	unsigned lossy;
	bool sr;
};

/* Virtual nanoseconds of one collective on 8 ranks, NAN if it cannot be had: err says why. */
static double measure(const struct point *p, char err[CCL_ERR_LEN])
{
	struct sim_job job = {.topology = "star:8",
		.conf = {.seed = p->seed,
			.link = {.mbps = GBPS * 1000, .delay_ns = 1000, .priority = p->sr}},
		.group = {.mode = p->mode,
			.collectives = 1u << p->op,
			.mtu = 1024,
			.m = 4,
			.w = 64,
			.flags = (uint16_t)(INC_F_LATE_FLUSH | INC_F_STALL_RNR |
					    (p->sr ? INC_F_SR : 0)),
			.start_psn = 1000},
		.n_other = 2 * p->lossy,
		.op = p->op,
		.bytes = p->bytes};

	job.other = job.conf.link;
	job.other.loss = p->loss;
	return sim_measure(&job, err).ns;
}

static double gbps(double ns, uint64_t bytes)
{
	return (double)bytes * 8 / ns;
}

static void row(json_t *rows, const char *name, const char *label, double ours, double paper)
{
	if (isnan(ours))
		printf("%-12s %8s %12s %12.2f\n", name, label, "-", paper);
	else
		printf("%-12s %8s %12.2f %12.2f\n", name, label, ours, paper);
	json_array_append_new(
		rows, json_pack("{s:s,s:s,s:o,s:f}", "solution", name, "at", label, "ours",
			      isnan(ours) ? json_null() : json_real(ours), "paper", paper));
}

static void why_not(double ns, const char *name, const char *err)
{
	if (isnan(ns))
		printf("%s: %s\n", name, err);
}

static json_t *begin(json_t *result, unsigned table, const char *title, const char *unit)
{
	json_t *rows = json_array();

	printf("EPIC table %u: %s, %s\n%-12s %8s %12s %12s\n", table, title, unit, "", "at", "ours",
		"paper");
	json_object_set_new(result, "table", json_integer(table));
	json_object_set_new(result, "title", json_string(title));
	json_object_set_new(result, "unit", json_string(unit));
	json_object_set_new(result, "rows", rows);
	return rows;
}

static void sizes_table(unsigned i, uint64_t max_bytes, uint64_t seed, json_t *result)
{
	json_t *rows =
		begin(result, throughput[i].table, ccl_collective_name(throughput[i].op), "Gb/s");

	for (unsigned w = 0; w < N_WAYS; w++)
		for (unsigned k = 0; k < N_SIZES && size[k] <= max_bytes; k++) {
			const struct point p = {
				way[w].mode, throughput[i].op, size[k], seed, 0, 0, false};
			char err[CCL_ERR_LEN] = "";
			double ns = measure(&p, err);

			why_not(ns, way[w].name, err);
			if (isnan(ns))
				break;
			row(rows, way[w].name, size_name[k], gbps(ns, size[k]),
				throughput[i].paper[w][k]);
		}
}

static void barrier_table(uint64_t seed, json_t *result)
{
	json_t *rows = begin(result, 30, "barrier", "requests/s");

	for (unsigned w = 0; w < N_WAYS; w++) {
		const struct point p = {way[w].mode, CCL_BARRIER, 0, seed, 0, 0, false};
		char err[CCL_ERR_LEN] = "";
		double ns = measure(&p, err);

		why_not(ns, way[w].name, err);
		row(rows, way[w].name, "8 ranks", 1e9 / ns, paper_barrier[w]);
	}
}

/* The paper's 4 MB, over loss (31) or over lossy links at 5 % (32). */
static void loss_table(unsigned table, uint64_t max_bytes, uint64_t seed, json_t *result)
{
	const bool rates = table == 31;
	json_t *rows = begin(result, table,
		rates ? "allreduce over loss on one link (%)" : "allreduce over links losing 5 %",
		"Gb/s");
	const char *const solution[] = {way[0].name, way[1].name, "Mode-III SR", "Mode-II SR"};
	const uint64_t bytes = max_bytes < 1 << 22 ? max_bytes : 1 << 22;

	for (unsigned w = 0; w < 4; w++)
		for (unsigned k = 0; k < (rates ? N_LOSS : N_LINKS); k++) {
			const unsigned mode = w < 2 ? w : 3 - w; /* and both with selective hosts */
			const struct point p = {way[mode].mode, CCL_ALLREDUCE, bytes, seed,
				rates ? loss_percent[k] / 100 : 0.05, rates ? 1 : k, w >= 2};
			const char *name = solution[w];
			char err[CCL_ERR_LEN] = "", at[16];
			double ns = measure(&p, err);

			why_not(ns, name, err);
			if (isnan(ns) && k == 0)
				break;
			snprintf(at, sizeof(at), "%g", rates ? loss_percent[k] : (double)k);
			row(rows, name, at, gbps(ns, bytes),
				rates ? paper_loss[mode][k] : paper_lossy[mode][k]);
		}
}

/* Table 35: a tree of eight ranks at 200 Gb/s; what other traffic leaves of rank 0's link is half
 * of it, both ways; DCQCN. A queue pair may have 512 packets in flight: with pipes of 256 slots a
 * fast host runs ahead of them, with 512 none can. */
static const struct sync_way {
	const char *name;
	uint32_t slots;
	bool cnp;
	unsigned paper;
} sync_ways[] = {{"no CNP", 256, false, 0}, {"CNP", 256, true, 1}, {"long pipes", 512, true, 1}};

static double congested(
	uint64_t bytes, uint64_t seed, const struct sync_way *how, char err[CCL_ERR_LEN])
{
	struct sim_job job = {.topology = "tree:2x4",
		.conf = {.seed = seed,
			.link = {.mbps = 2 * GBPS * 1000, .delay_ns = 1000, .ecn_bytes = 100000},
			.congestion = {.ect = true},
			.no_rate_sync = !how->cnp},
		.group = {.mode = CCL_MODE_3,
			.collectives = 1u << CCL_ALLREDUCE,
			.mtu = 1024,
			.m = 4,
			.w = 256,
			.slots = how->slots,
			.flags = INC_F_STALL_RNR,
			.start_psn = 1000},
		.n_other = 2,
		.op = CCL_ALLREDUCE,
		.bytes = bytes};

	job.other = job.conf.link;
	job.other.mbps /= 2;
	return sim_measure(&job, err).ns;
}

static void sync_table(uint64_t max_bytes, uint64_t seed, json_t *result)
{
	static const char *const at[] = {"1K", "16K", "256K", "1M", "4M", "16M", "64M"};
	static const uint64_t bytes[] = {
		1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26};
	json_t *rows = begin(result, 35, "allreduce, one link congested to half", "Gb/s");

	for (unsigned w = 0; w < sizeof(sync_ways) / sizeof(sync_ways[0]); w++)
		for (unsigned k = 0; k < 7 && bytes[k] <= max_bytes; k++) {
			const struct sync_way *how = &sync_ways[w];
			char err[CCL_ERR_LEN] = "";
			double ns = congested(bytes[k], seed, how, err);

			why_not(ns, how->name, err);
			row(rows, how->name, at[k], gbps(ns, bytes[k]), paper_sync[how->paper][k]);
		}
}

int sim_epic_table(unsigned table, uint64_t max_bytes, uint64_t seed, json_t *result)
{
	for (unsigned i = 0; i < sizeof(throughput) / sizeof(throughput[0]); i++)
		if (throughput[i].table == table) {
			sizes_table(i, max_bytes, seed, result);
			return 0;
		}
	if (table == 30) {
		barrier_table(seed, result);
		return 0;
	}
	if (table == 31 || table == 32) {
		loss_table(table, max_bytes, seed, result);
		return 0;
	}
	if (table == 35) {
		sync_table(max_bytes, seed, result);
		return 0;
	}
	if (table == 33) {
		sim_training_settings(result);
		return 0;
	}
	if (table == 34)
		return sim_training_table(seed, result);
	fprintf(stderr, "incline-sim: epic-table: %u: 25..35 are built\n", table);
	return -EINVAL;
}
