/* SPDX-License-Identifier: BSD-3-Clause */
/* Between racks: figures 19 and 20 of the MRC paper, its table of section 5.2.1, and section 2's
 * numbers. */
#include <math.h>
#include <stdio.h>

#include "apps/sim_mrc.h"
#include "lib/sim/clos.h"

enum { MBPS = 100000, T1S = 4 };

/* ---- 19: two hosts in two racks, four links up, of which three fail ---- */

static void set_up_link(struct fig_run *r, unsigned t1, bool up)
{
	const unsigned l = fig_up_link(r, 0, 0, t1);

	fig_link_set(r, l, up, 0);
	fig_link_set(r, l - 1, up, 0);
}

static bool open_racks(struct fig_run *r, struct mrc_figure *fig, uint64_t up_mbps)
{
	static const struct sim_conn_conf conn = {
		.from = 0, .to = 1, .qps = 4, .mrc = true, .endless = true};
	const struct fig_fabric f = {
		.planes = 1, .t0 = 2, .hosts = 1, .t1 = T1S, .mbps = MBPS, .up_mbps = up_mbps};

	return fig_open(r, fig, &f, &conn, 1) && fig_run_for(r, 2 * MRC_MS);
}

/* After a link has come back it is probed: the longer it was away, the later. */
static double settled(struct fig_run *r, bool up)
{
	const uint64_t ms = r->fig->quick ? MRC_MS : 4 * MRC_MS;

	fig_run_for(r, up ? 8 * ms : MRC_MS);
	return fig_gbps(r, 0, ms);
}

static bool enough_links(struct mrc_figure *fig)
{
	struct fig_run r;
	double usual, now, least = INFINITY;

	if (!open_racks(&r, fig, 0))
		return false;
	usual = fig_gbps(&r, 0, MRC_MS);
	for (unsigned i = 0; i < 3; i++) {
		set_up_link(&r, i, false);
		now = settled(&r, false);
		least = fmin(least, now);
	}
	fig_close(&r);
	fig_row(fig, "a: three of four links gone, each as fast as the NIC", 100 * least / usual,
		"%", "no discernible impact", "97 %", least >= 0.97 * usual);
	return true;
}

static bool too_few_links(struct mrc_figure *fig, unsigned at_once)
{
	const unsigned gone = at_once > 1 ? at_once : 3;
	struct fig_run r;
	double usual, now;
	char what[80];

	if (!open_racks(&r, fig, MBPS / 4))
		return false;
	usual = fig_gbps(&r, 0, 2 * MRC_MS);
	for (unsigned i = 0; i < 2 * gone; i += at_once) { /* they go, and come back */
		const bool up = i >= gone;
		unsigned left = T1S;

		for (unsigned k = 0; k < at_once; k++)
			set_up_link(&r, (i + k) % gone, up);
		for (unsigned k = 0; k < gone; k++)
			left -= sim_link(r.sim, fig_up_link(&r, 0, 0, k))->conf.n_down;
		now = settled(&r, up);
		snprintf(what, sizeof(what), "%s: %u links of a quarter %s",
			at_once > 1 ? "c" : "b", left, up ? "again" : "left");
		fig_row(fig, what, 100 * now / usual, "%", "tracks what is left",
			"within 6 % of it", fabs(now / usual * T1S / left - 1) <= 0.06);
	}
	fig_close(&r);
	return true;
}

bool mrc_figure_19(struct mrc_figure *fig)
{
	return enough_links(fig) && too_few_links(fig, 1) && too_few_links(fig, 2);
}

/* ---- 20: eight hosts of two racks to eight of two others, one to one ---- */

enum { PAIRS = 8 };

struct permutation {
	double mean, least, most;
};

static bool permute(
	struct mrc_figure *fig, enum fig_queues queues, unsigned qps, struct permutation *out)
{
	const struct fig_fabric f = {
		.planes = 1, .t0 = 4, .hosts = T1S, .t1 = T1S, .mbps = MBPS, .queues = queues};
	struct sim_conn_conf conn[PAIRS];
	double gbps[PAIRS];
	struct fig_run r;
	bool ok;

	for (unsigned i = 0; i < PAIRS; i++)
		conn[i] = (struct sim_conn_conf){.from = i,
			.to = PAIRS + (i * 3 + 1) % PAIRS,
			.qps = qps,
			.mrc = queues == FIG_TRIM,
			.endless = true};
	if (!fig_open(&r, fig, &f, conn, PAIRS))
		return false;
	ok = fig_run_for(&r, 2 * MRC_MS) &&
	     fig_gbps_all(&r, fig->quick ? 2 * MRC_MS : 10 * MRC_MS, gbps);
	fig_close(&r);
	*out = (struct permutation){.least = INFINITY};
	for (unsigned i = 0; i < PAIRS; i++) {
		out->mean += gbps[i] / PAIRS;
		out->least = fmin(out->least, gbps[i]);
		out->most = fmax(out->most, gbps[i]);
	}
	return ok;
}

static bool rc_permutation(struct mrc_figure *fig, const char *name, enum fig_queues queues,
	unsigned qps, const char *paper)
{
	struct permutation p;
	char what[80];

	if (!permute(fig, queues, qps, &p))
		return false;
	snprintf(what, sizeof(what), "%s: mean", name);
	fig_row(fig, what, p.mean, "Gb/s", "", "", true);
	snprintf(what, sizeof(what), "%s: the slowest flow, of the mean", name);
	fig_row(fig, what, 100 * p.least / p.mean, "%", paper, "", true);
	return true;
}

static bool mrc_permutation(struct mrc_figure *fig, unsigned qps)
{
	struct permutation p;
	char what[80];

	if (!permute(fig, FIG_TRIM, qps, &p))
		return false;
	snprintf(what, sizeof(what), "MRC, %u QP: mean", qps);
	fig_row(fig, what, p.mean, "Gb/s", "390 of 400", "90 % of the link",
		p.mean >= 0.9 * MBPS / 1000);
	snprintf(what, sizeof(what), "MRC, %u QP: the slowest flow, of the mean", qps);
	fig_row(fig, what, 100 * p.least / p.mean, "%", "all alike", "97 %",
		p.least >= 0.97 * p.mean);
	return true;
}

bool mrc_figure_20(struct mrc_figure *fig)
{
	return rc_permutation(fig, "a: RC, PFC, 1 QP", FIG_PFC, 1, "a half or a third") &&
	       rc_permutation(fig, "b: RC, PFC, 8 QPs", FIG_PFC, 8, "helps only marginally") &&
	       rc_permutation(fig, "c: RC, PFC and DCQCN, 8 QPs", FIG_PFC_DCQCN, 8, "better") &&
	       mrc_permutation(fig, 1) && mrc_permutation(fig, 8);
}

/* ---- 5.2.1: below one T0, and across T1s ---- */

static const struct fig_fabric eight = {.planes = 8, .t0 = 2, .hosts = 2, .t1 = 4};

struct idle {
	const struct fig_run *run;
};

static bool is_idle(void *arg)
{
	return sim_conn_idle(((const struct idle *)arg)->run->conns, 0);
}

/* us: half the time until a write of two bytes is complete at its sender. */
static bool latency(struct mrc_figure *fig, unsigned to, double *us)
{
	const struct sim_conn_conf conn = {.from = 0, .to = to, .mrc = true};
	struct fig_run r;
	struct idle idle = {&r};
	uint64_t from;
	int rc;

	if (!fig_open(&r, fig, &eight, &conn, 1))
		return false;
	from = sim_now(r.sim);
	sim_conn_post(r.conns, 0, 2);
	rc = sim_run(r.sim, is_idle, &idle, from + 10 * MRC_MS);
	*us = (double)(sim_now(r.sim) - from) / 2000;
	fig_close(&r);
	return rc == 0;
}

static bool bandwidth(struct mrc_figure *fig, unsigned to, double *gbps)
{
	const struct sim_conn_conf conn = {
		.from = 0, .to = to, .qps = 4, .mrc = true, .endless = true};
	struct fig_run r;

	if (!fig_open(&r, fig, &eight, &conn, 1))
		return false;
	fig_run_for(&r, 2 * MRC_MS);
	*gbps = fig_gbps(&r, 0, 2 * MRC_MS);
	fig_close(&r);
	return true;
}

bool mrc_table_521(struct mrc_figure *fig)
{
	const double peak = 8 * MRC_MBPS / 1000.0;
	double near_us, far_us, near, far;

	if (!latency(fig, 1, &near_us) || !latency(fig, 2, &far_us) || !bandwidth(fig, 1, &near) ||
		!bandwidth(fig, 2, &far))
		return false;
	fig_row(fig, "2 B, across T1s beside T0-local", far_us / near_us, "times", "1.28",
		"twice the links: 1.9 to 2.1", far_us >= 1.9 * near_us && far_us <= 2.1 * near_us);
	fig_row(fig, "2 B, what two links more add to a way", far_us - near_us, "us", "1.45",
		"two links", fabs(far_us - near_us - 2 * MRC_DELAY_NS / 1000.0) < 0.5);
	fig_row(fig, "32 KB writes, T0-local, of the peak", 100 * near / peak, "%", "96", "92 %",
		near >= 0.92 * peak);
	fig_row(fig, "32 KB writes, across T1s beside T0-local", far / near, "times", "1.00",
		"0.99", far >= 0.99 * near);
	return true;
}

/* ---- 2: 51.2 Tb/s switches and NICs of 800 Gb/s ---- */

enum { RADIX = 64, PLANES = 8, WANTED = 100000 };

static void exact(struct mrc_figure *fig, const char *what, double ours, const char *unit,
	const char *paper, double is)
{
	fig_row(fig, what, ours, unit, paper, "as the paper", fabs(ours - is) < 1e-6 * is);
}

bool mrc_section_2(struct mrc_figure *fig)
{
	struct sim_clos three, two;

	if (sim_clos_size(RADIX, 1, 3, &three) || sim_clos_size(RADIX, PLANES, 2, &two))
		return false;
	exact(fig, "NICs, three tiers of one plane", (double)three.hosts, "", "64K", 65536);
	exact(fig, "NICs, two tiers of eight planes", (double)two.hosts, "", "131072", 131072);
	exact(fig, "tiers for 100 000 NICs, one plane", sim_clos_tiers(RADIX, 1, WANTED), "", "4",
		4);
	exact(fig, "tiers for 100 000 NICs, eight planes", sim_clos_tiers(RADIX, PLANES, WANTED),
		"", "2", 2);
	exact(fig, "switches per NIC, beside three tiers",
		two.switches_per_host / three.switches_per_host, "times", "3/5", 0.6);
	exact(fig, "optics per NIC, beside three tiers", two.ends_per_host / three.ends_per_host,
		"times", "2/3", 2.0 / 3);
	exact(fig, "NICs within one hop, one plane", (double)three.near, "", "32", 32);
	exact(fig, "NICs within one hop, eight planes", (double)two.near, "", "256", 256);
	exact(fig, "switches of the longest path, one plane", three.path_switches, "", "5", 5);
	exact(fig, "switches of the longest path, eight planes", two.path_switches, "", "3", 3);
	exact(fig, "a T0-T1 link of the way up, one plane", 100 * three.up_link_share, "%", "3",
		3.125);
	exact(fig, "a T0-T1 link of the way up, eight planes", 100 * two.up_link_share, "%", "0.4",
		0.390625);
	exact(fig, "a NIC-T0 link of the NIC, eight planes", 100 * two.nic_link_share, "%", "12",
		12.5);
	fig_row(fig, "switches in all, eight planes", (double)two.switches, "", "", "", true);
	fig_row(fig, "links in all, eight planes", (double)two.links, "", "", "", true);
	return true;
}
