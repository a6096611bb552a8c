/* SPDX-License-Identifier: BSD-3-Clause */
/* EPIC, section 5.2 and appendix F, beside the simulator. */
#include <math.h>
#include <stdio.h>

#include "apps/sim_measure.h"
#include "apps/sim_models.h"
#include "lib/sim/epic_cost.h"

/* EXTRA: Ethernet, IPv4, UDP, BTH, ICRC, and SIM_WIRE_OVERHEAD. */
enum { MBPS = 100000, DELAY_NS = 1000, MTU = 1024, EXTRA = 82, N_MODES = 3, N_SHAPES = 3 };

/* Percent. */
static const double TIME_BOUND = 1.5, LOSS_BOUND = 5;

static const char *const mode_name[N_MODES] = {"Mode-I", "Mode-II", "Mode-III"};
static const enum ccl_mode mode_of[N_MODES] = {CCL_MODE_1, CCL_MODE_2, CCL_MODE_3};

static const struct shape {
	const char *topology;
	unsigned h, d;
} shapes[N_SHAPES] = {{"star:8", 2, 8}, {"tree:2x4", 3, 5}, {"tree:2x2x2", 4, 3}};

static struct epic_cost cost_of(const struct shape *s, unsigned m, unsigned w)
{
	return (struct epic_cost){.h = s->h,
		.d = s->d,
		.u = MTU,
		.m = m,
		.w = w,
		.extra = EXTRA,
		.b = MBPS * 1e6 / 8,
		.l = DELAY_NS * 1e-9};
}

static struct sim_job job_of(const struct shape *s, enum epic_mode mode, unsigned m, unsigned w)
{
	return (struct sim_job){.topology = s->topology,
		.conf = {.seed = 1, .link = {.mbps = MBPS, .delay_ns = DELAY_NS}},
		.group = {.mode = mode_of[mode],
			.collectives = 1u << CCL_ALLREDUCE,
			.mtu = MTU,
			.m = (uint16_t)m,
			.w = (uint16_t)w,
			.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
			.start_psn = 1000},
		.op = CCL_ALLREDUCE};
}

/* Farther than the bound, in percent, from what was predicted: 1. */
static int off(double ours, double predicted, double bound)
{
	return !(fabs(ours - predicted) <= bound / 100 * predicted);
}

static int time_row(json_t *rows, const struct shape *s, enum epic_mode mode, uint64_t bytes)
{
	const struct epic_cost c = cost_of(s, 4, 64);
	struct sim_job job = job_of(s, mode, 4, 64);
	const double printed = epic_cost_printed(&c, mode, (double)bytes) * 1e6,
		     predicted = epic_cost_seconds(&c, mode, (double)bytes) * 1e6;
	char err[CCL_ERR_LEN] = "";
	double us;
	int bad;

	job.bytes = bytes;
	us = sim_measure(&job, err).ns / 1e3;
	bad = off(us, predicted, TIME_BOUND);
	if (isnan(us))
		printf("%s\n", err);
	printf("%-11s %-9s %9llu %10.3f %10.3f %10.3f%s\n", s->topology, mode_name[mode],
		(unsigned long long)bytes, printed, predicted, us, bad ? "  beyond the bound" : "");
	json_array_append_new(
		rows, json_pack("{s:s,s:s,s:I,s:f,s:f,s:f}", "topology", s->topology, "mode",
			      mode_name[mode], "bytes", (json_int_t)bytes, "printed_us", printed,
			      "predicted_us", predicted, "measured_us", isnan(us) ? -1 : us));
	return bad;
}

static int times(json_t *rows)
{
	static const uint64_t size[] = {4096, 65536, 1 << 20};
	int bad = 0;

	printf("AllReduce, 100 Gb/s, 1 us per link, MTU 1024, M 4, W 64, us; within %g %%\n"
	       "%-11s %-9s %9s %10s %10s %10s\n",
		TIME_BOUND, "", "", "bytes", "printed", "predicted", "measured");
	for (unsigned i = 0; i < N_SHAPES; i++)
		for (unsigned mode = 0; mode < N_MODES; mode++)
			for (unsigned k = 0; k < sizeof(size) / sizeof(size[0]); k++)
				bad |= time_row(rows, &shapes[i], (enum epic_mode)mode, size[k]);
	return bad;
}

/* With the window that fills the way that acknowledges. */
static int memory_row(json_t *rows, const struct shape *s, enum epic_mode mode, bool reproducible)
{
	const struct epic_cost l = cost_of(s, 4, 1);
	const unsigned w = (epic_cost_window(&l, mode) + 3) / 4;
	const struct epic_cost c = cost_of(s, 4, w);
	struct sim_job job = job_of(s, mode, 4, w);
	const double printed = epic_cost_memory_printed(&c, mode, reproducible) / 1024,
		     predicted = (double)epic_cost_memory(&c, mode, reproducible) / 1024;
	struct sim_measured got;
	char err[CCL_ERR_LEN] = "";
	int bad;

	job.bytes = 4096;
	if (reproducible)
		job.group.flags |= INC_F_REPRODUCIBLE;
	got = sim_measure(&job, err);
	bad = isnan(got.ns) || (double)got.memory / 1024 != predicted;
	if (isnan(got.ns))
		printf("%s\n", err);
	printf("%-11s %-9s %-5s %4u %10.0f %10.0f %10.0f%s\n", s->topology, mode_name[mode],
		reproducible ? "repr." : "", 4 * w, printed, predicted, (double)got.memory / 1024,
		bad ? "  differs" : "");
	json_array_append_new(
		rows, json_pack("{s:s,s:s,s:b,s:i,s:f,s:f,s:f}", "topology", s->topology, "mode",
			      mode_name[mode], "reproducible", reproducible, "window", (int)(4 * w),
			      "printed_kbytes", printed, "predicted_kbytes", predicted,
			      "measured_kbytes", (double)got.memory / 1024));
	return bad;
}

static int memory(json_t *rows)
{
	int bad = 0;

	printf("aggregation memory of the switch that has most, KiB; the same\n"
	       "%-11s %-9s %5s %4s %10s %10s %10s\n",
		"", "", "", "MW", "printed", "predicted", "measured");
	for (unsigned i = 0; i < N_SHAPES; i++)
		for (unsigned mode = 0; mode < N_MODES; mode++)
			for (unsigned r = mode == EPIC_MODE_1; r < 2; r++)
				bad |= memory_row(rows, &shapes[i], (enum epic_mode)mode, r);
	return bad;
}

/* All links lose; Mode-III with selective repeat and priority, as table 32's last row. The model is
 * of hosts that repeat what was lost and nothing else: Mode-II's go back N, so no bound for it. */
static int loss_row(json_t *rows, enum epic_mode mode, double percent)
{
	const struct shape *s = &shapes[0];
	const bool sr = mode == EPIC_MODE_3;
	const struct epic_cost c = cost_of(s, 4, 64);
	struct sim_job job = job_of(s, mode, 4, 64);
	const double predicted = 100 * epic_cost_loss(&c, mode, 1 - percent / 100);
	char err[CCL_ERR_LEN] = "";
	double lossless, share;
	int bad;

	job.bytes = 1 << 22;
	job.conf.link.priority = sr;
	job.group.flags |= sr ? INC_F_SR : 0;
	lossless = sim_measure(&job, err).ns;
	job.conf.link.loss = percent / 100;
	share = 100 * lossless / sim_measure(&job, err).ns;
	bad = sr && off(share, predicted, LOSS_BOUND);
	printf("%-11s %-9s %9g %10.1f %10.1f%s\n", s->topology, mode_name[mode], percent, predicted,
		share, bad ? "  beyond the bound" : "");
	json_array_append_new(rows, json_pack("{s:s,s:f,s:f,s:f}", "mode", mode_name[mode],
					    "loss_percent", percent, "predicted_percent", predicted,
					    "measured_percent", isnan(share) ? -1 : share));
	return bad;
}

static int loss(json_t *rows, bool quick)
{
	static const double percent[] = {1, 0.1, 2, 5};
	const size_t n = quick ? 1 : sizeof(percent) / sizeof(percent[0]);
	int bad = 0;

	printf("AllReduce of 4 MB, every link loses, %% of the lossless throughput;"
	       " Mode-III SR within %g %%\n%-11s %-9s %9s %10s %10s\n",
		LOSS_BOUND, "", "", "loss %", "F.4", "measured");
	for (unsigned k = 0; k < n; k++)
		bad |= loss_row(rows, EPIC_MODE_3, percent[k]);
	return bad | (quick ? 0 : loss_row(rows, EPIC_MODE_2, 0.1));
}

int sim_epic_model(bool quick, json_t *result)
{
	json_t *of_time = json_array(), *of_memory = json_array(), *of_loss = json_array();
	int bad = times(of_time);

	bad |= memory(of_memory);
	bad |= loss(of_loss, quick);
	json_object_set_new(result, "time", of_time);
	json_object_set_new(result, "memory", of_memory);
	json_object_set_new(result, "loss", of_loss);
	return bad;
}
