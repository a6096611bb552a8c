/* SPDX-License-Identifier: BSD-3-Clause */
/* Links and switches that fail under a pair of hosts which write to each other: figures 4, 9a to
 * 9d, 10 and 11 of the MRC paper. Seconds there are milliseconds here. */
#include <math.h>
#include <stdio.h>

#include "apps/sim_mrc.h"

enum { THERE = 0, BACK = 1, QPS = 4 };

static double fraction(double now, double usual)
{
	return 100 * now / usual;
}

/* Both ways at once, host 0 to `peer` and back: the slower one. */
static double both(struct fig_run *r, uint64_t ns, uint64_t step, double *least)
{
	const uint64_t before = sim_conn_acked(r->conns, BACK);
	const double there = fig_gbps_least(r, THERE, ns, step, least),
		     back = (double)(sim_conn_acked(r->conns, BACK) - before) * 8 / (double)ns;

	return there < back ? there : back;
}

/* Data packets of both directions that were taken as lost. */
static uint64_t lost(const struct fig_run *r)
{
	return fig_count(r, "lost");
}

static bool open_pair(struct fig_run *r, struct mrc_figure *fig, const struct fig_fabric *f,
	unsigned peer, unsigned paths)
{
	const struct sim_conn_conf conn[2] = {
		{.from = 0, .to = peer, .qps = QPS, .mrc = true, .paths = paths, .endless = true},
		{.from = peer, .to = 0, .qps = QPS, .mrc = true, .paths = paths, .endless = true}};

	return fig_open(r, fig, f, conn, 2);
}

/* ---- NIC-T0 links ---- */

static const struct fig_fabric eight = {.planes = 8, .t0 = 1, .hosts = 2, .t1 = 1};

bool mrc_figure_9a(struct mrc_figure *fig)
{
	const uint64_t ms = fig->quick ? MRC_MS : 4 * MRC_MS;
	struct fig_run r;
	double usual, least;
	char what[64];

	if (!open_pair(&r, fig, &eight, 1, 0))
		return false;
	fig_run_for(&r, 2 * MRC_MS);
	usual = both(&r, ms, ms, &least);
	fig_row(fig, "all eight links", usual, "Gb/s", "770 of 800", "92 % of the links",
		usual >= 0.92 * 8 * MRC_MBPS / 1000);
	for (unsigned i = 0; i < 14; i++) { /* seven go, and come back */
		const bool up = i >= 7;
		const unsigned plane = up ? i - 7 : i, left = up ? 2 + plane : 7 - plane;
		double now;

		sim_set_port(r.sim, 0, plane, up);
		fig_run_for(&r, MRC_MS);
		now = both(&r, ms, ms, &least);
		snprintf(what, sizeof(what), "%u links %s", left, up ? "again" : "left");
		fig_row(fig, what, fraction(now, usual), "%", "as many eighths",
			"within 5 % of them",
			fabs(now - usual * left / 8) <= 0.05 * usual * left / 8);
	}
	fig_close(&r);
	return true;
}

bool mrc_figure_9b(struct mrc_figure *fig)
{
	const uint64_t ms = fig->quick ? 2 * MRC_MS : 6 * MRC_MS;
	struct fig_run r;
	double usual, half, again, least;

	if (!open_pair(&r, fig, &eight, 1, 0))
		return false;
	fig_run_for(&r, 2 * MRC_MS);
	usual = both(&r, ms, ms, &least);
	for (unsigned p = 0; p < 4; p++)
		sim_set_port(r.sim, 0, p, false);
	fig_run_for(&r, MRC_MS / 2);
	half = both(&r, ms, MRC_MS / 4, &least);
	for (unsigned p = 0; p < 4; p++)
		sim_set_port(r.sim, 0, p, true);
	fig_run_for(&r, 3 * MRC_MS); /* what was taken for bad before the news came is probed */
	again = both(&r, ms, ms, &least);
	fig_row(fig, "four of eight links down, after 0.5 ms", fraction(half, usual), "%",
		"half, within about a second", "48 to 52 %", fabs(fraction(half, usual) - 50) <= 2);
	fig_row(fig, "restored, after 3 ms", fraction(again, usual), "%", "recovers rapidly",
		"98 %", again >= 0.98 * usual);
	fig_close(&r);
	return true;
}

/* ---- T0-T1 links ---- */

enum { T1S = 16, FAILED = 20 };

static const struct fig_fabric cross = {.planes = 4, .t0 = 2, .hosts = 2, .t1 = T1S};

static void set_both(struct fig_run *r, unsigned plane, unsigned t1, bool up)
{
	const unsigned l = fig_up_link(r, plane, 0, t1);

	fig_link_set(r, l, up, 0);
	fig_link_set(r, l - 1, up, 0);
}

bool mrc_figure_9c(struct mrc_figure *fig)
{
	const uint64_t gap = fig->quick ? MRC_MS / 4 : MRC_MS;
	struct fig_run r;
	double usual, now, least = INFINITY, worst;

	if (!open_pair(&r, fig, &cross, 2, 0))
		return false;
	fig_run_for(&r, 2 * MRC_MS);
	usual = both(&r, 2 * MRC_MS, MRC_MS, &worst);
	for (unsigned i = 0; i < FAILED; i++) {
		set_both(&r, i % 4, i / 4 * 3, false);
		now = both(&r, gap, gap, &worst);
		least = now < least ? now : least;
	}
	now = both(&r, 2 * MRC_MS, MRC_MS, &worst);
	fig_row(fig, "20 of 64 links down one by one, the worst interval", fraction(least, usual),
		"%", "minimal impact", "70 %", least >= 0.7 * usual);
	fig_row(fig, "all 20 down", fraction(now, usual), "%", "minimal impact", "95 %",
		now >= 0.95 * usual);
	fig_close(&r);
	return true;
}

bool mrc_figure_9d(struct mrc_figure *fig)
{
	const uint64_t ms = fig->quick ? 2 * MRC_MS : 5 * MRC_MS;
	struct fig_run r;
	double usual, down, again, least, worst;

	if (!open_pair(&r, fig, &cross, 2, 0))
		return false;
	fig_run_for(&r, 2 * MRC_MS);
	usual = both(&r, 2 * MRC_MS, MRC_MS, &least);
	for (unsigned i = 0; i < 8; i++)
		set_both(&r, i % 4, i / 4 * 3, false);
	down = both(&r, ms, MRC_MS / 4, &worst);
	for (unsigned i = 0; i < 8; i++)
		set_both(&r, i % 4, i / 4 * 3, true);
	again = both(&r, ms, MRC_MS / 4, &least);
	fig_row(fig, "eight links down at once, the worst 0.25 ms", fraction(worst, usual), "%",
		"recovers rapidly", "50 %", worst >= 0.5 * usual);
	fig_row(fig, "while they are down", fraction(down, usual), "%", "negligible impact", "95 %",
		down >= 0.95 * usual);
	fig_row(fig, "restored", fraction(again, usual), "%", "negligible impact", "98 %",
		again >= 0.98 * usual);
	fig_close(&r);
	return true;
}

/* ---- switches that stop forwarding, with their links up ---- */

/* Packets. A queue pair has four on a plane in a base RTT; the first that is missed ends that,
 * after one and a half windows of later ones, of which SACKs tell: up to ten RTTs, since words take
 * the dead plane as well until nobody has answered probes there. Of a T1's 64 paths there is hardly
 * one on its way. */
enum { T0_LOST = 40, T1_LOST = 4 };

/* Of a queue pair. */
static void lost_row(struct mrc_figure *fig, uint64_t packets, unsigned most)
{
	char aim[32];

	snprintf(aim, sizeof(aim), "at most %u", most);
	fig_row(fig, "data packets lost, of a queue pair", (double)packets / (2 * QPS), "", "few",
		aim, packets > 0 && packets <= (uint64_t)most * 2 * QPS);
}

bool mrc_figure_10(struct mrc_figure *fig)
{
	const uint64_t ms = fig->quick ? 2 * MRC_MS : 10 * MRC_MS;
	struct fig_run r;
	double usual, down, again, least;
	uint64_t gone;

	if (!open_pair(&r, fig, &eight, 1, 0))
		return false;
	fig_run_for(&r, 2 * MRC_MS);
	usual = both(&r, ms, ms, &least);
	gone = lost(&r);
	fig_switch_stop(&r, 3, false, 0, true);
	fig_run_for(&r, MRC_MS);
	down = both(&r, ms, MRC_MS / 2, &least);
	gone = lost(&r) - gone;
	fig_switch_stop(&r, 3, false, 0, false);
	fig_row(fig, "one T0 of eight planes dead", fraction(down, usual), "%",
		"100 Gb/s of 800 less: 87.5", "85 to 89 %",
		down >= 0.85 * usual && down <= 0.89 * usual);
	lost_row(fig, gone, T0_LOST);
	if (fig->quick) {
		fig_close(&r);
		return true;
	}
	fig_run_for(&r, 110 * (uint64_t)MRC_MS); /* probes come at most 100 ms apart */
	again = both(&r, ms, ms, &least);
	fig_row(fig, "it forwards again", fraction(again, usual), "%", "", "98 %",
		again >= 0.98 * usual);
	fig_close(&r);
	return true;
}

bool mrc_figure_11(struct mrc_figure *fig)
{
	const uint64_t ms = fig->quick ? 2 * MRC_MS : 10 * MRC_MS;
	struct fig_run r;
	double usual, down, again, least;
	uint64_t gone;

	if (!open_pair(&r, fig, &cross, 2, 0))
		return false;
	fig_run_for(&r, 2 * MRC_MS);
	usual = both(&r, ms, ms, &least);
	gone = lost(&r);
	fig_switch_stop(&r, 1, true, 5, true);
	fig_run_for(&r, MRC_MS);
	down = both(&r, ms, MRC_MS / 2, &least);
	gone = lost(&r) - gone;
	fig_switch_stop(&r, 1, true, 5, false);
	again = both(&r, ms, ms, &least);
	fig_row(fig, "one T1 dead", fraction(down, usual), "%", "no steady-state degradation",
		"97 %", down >= 0.97 * usual);
	lost_row(fig, gone, T1_LOST);
	fig_row(fig, "it forwards again", fraction(again, usual), "%", "a stable level", "98 %",
		again >= 0.98 * usual);
	fig_close(&r);
	return true;
}

/* ---- start-up ---- */

bool mrc_figure_4(struct mrc_figure *fig)
{
	const uint64_t ms = fig->quick ? 4 * MRC_MS : 40 * MRC_MS;
	struct fig_run r;
	uint64_t first, then;
	double least, gbps;

	if (!open_pair(&r, fig, &cross, 2, 0))
		return false;
	for (unsigned i = 0; i < 4; i++) /* one in sixteen */
		set_both(&r, i, 3 * i, false);
	fig_run_for(&r, 4 * MRC_MS);
	first = lost(&r);
	gbps = both(&r, ms, ms, &least);
	then = lost(&r) - first;
	fig_row(fig, "data packets lost in the first 4 ms", (double)first, "",
		"a burst at the start", "some", first > 0);
	fig_row(fig, "in each 4 ms after that", (double)then * 4 * MRC_MS / (double)ms, "",
		"falls quickly, below 1/s and NIC", "1 % of the first",
		(double)then * 4 * MRC_MS / (double)ms <= 0.01 * (double)first);
	fig_row(fig, "goodput then", gbps, "Gb/s", "", "90 % of the links",
		gbps >= 0.9 * 4 * MRC_MBPS / 1000);
	fig_close(&r);
	return true;
}
