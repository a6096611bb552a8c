/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths that are bad or shared: figures 12 and 13, and 14, of the MRC paper. */
#include <math.h>
#include <stdio.h>

#include "apps/sim_mrc.h"

/* ---- 12 and 13: two paths per plane, one in use; the one in use of plane 0 drops 20 % ---- */

enum { PLANES = 8, STEP = MRC_MS / 4 };
/* Of 4096 bytes of payload on the wire: Ethernet, IPv6 twice, UDP, BTH, METH, TSETH, RETH, ICRC. */
enum { FULL = 4096 + 14 + 2 * 40 + 8 + 12 + 4 + 4 + 16 + 4 + SIM_WIRE_OVERHEAD };

/* Bytes: the words of the other direction, which take that link too, are short. */
static uint64_t through(const struct fig_run *r, unsigned link)
{
	return sim_link(r->sim, link)->count[SIM_L_BYTES];
}

static enum mrc_ev_state state_of(const struct fig_run *r, uint32_t ev)
{
	const struct rnic_mrc_paths *paths = sim_conn_paths(r->conns, 0);
	enum mrc_ev_state state = MRC_EV_GOOD;

	for (unsigned i = 0; i < paths->n; i++)
		if (paths->path[i].ev == ev)
			rnic_mrc_ev_get(sim_conn_qp(r->conns, 0, 0), i, &state);
	return state;
}

/* Until the path is in that state: virtual ns, or UINT64_MAX. */
static uint64_t until(struct fig_run *r, uint32_t ev, enum mrc_ev_state state, uint64_t longest)
{
	const uint64_t from = sim_now(r->sim), step = MRC_RTT_NS / 4;

	while (state_of(r, ev) != state && sim_now(r->sim) - from < longest)
		if (!fig_run_for(r, step))
			return UINT64_MAX;
	return state_of(r, ev) == state ? sim_now(r->sim) - from : UINT64_MAX;
}

bool mrc_figure_12(struct mrc_figure *fig)
{
	const struct fig_fabric f = {.planes = PLANES, .t0 = 2, .hosts = 1, .t1 = 2};
	const struct sim_conn_conf conn[2] = {
		{.from = 0, .to = 1, .mrc = true, .active = PLANES, .endless = true},
		{.from = 1, .to = 0, .mrc = true, .active = PLANES, .endless = true}};
	const uint64_t ms = fig->quick ? 3 * MRC_MS : 10 * MRC_MS;
	struct fig_run r;
	double usual, bad, least;
	uint64_t took, on_a, on_b, out, back;
	unsigned a = 0, link_a, link_b;

	if (!fig_open(&r, fig, &f, conn, 2))
		return false;
	fig_run_for(&r, 2 * MRC_MS);
	usual = fig_gbps(&r, 0, ms);
	if (through(&r, fig_up_link(&r, 0, 0, 1)) > through(&r, fig_up_link(&r, 0, 0, 0)))
		a = 1;
	link_a = fig_up_link(&r, 0, 0, a);
	link_b = fig_up_link(&r, 0, 0, !a);
	fig_link_set(&r, link_a, true, 0.2);
	took = until(&r, a, MRC_EV_BAD, MRC_MS);
	on_a = through(&r, link_a);
	on_b = through(&r, link_b);
	bad = fig_gbps_least(&r, 0, ms, STEP, &least);
	on_a = through(&r, link_a) - on_a;
	on_b = through(&r, link_b) - on_b;
	/* EV-A heals, it is EV-B's turn to drop, and EV-B heals as soon as it is out. */
	fig_link_set(&r, link_a, true, 0);
	fig_link_set(&r, link_b, true, 0.2);
	out = until(&r, !a, MRC_EV_BAD, MRC_MS);
	fig_link_set(&r, link_b, true, 0);
	back = until(&r, !a, MRC_EV_GOOD, 400 * (uint64_t)MRC_MS);
	fig_row(fig, "EV-A bad after", (double)took / 1000, "us", "immediately",
		"within 3 base RTTs, 66 us", took <= 3 * MRC_RTT_NS);
	fig_row(fig, "goodput of the worst 0.25 ms", 100 * least / usual, "%",
		"sustained line rate", "90 %", least >= 0.9 * usual);
	fig_row(fig, "goodput while EV-A drops", 100 * bad / usual, "%", "sustained line rate",
		"98 %", bad >= 0.98 * usual);
	fig_row(fig, "bytes on EV-A for each on EV-B meanwhile", (double)on_a / (double)on_b, "",
		"EV-B takes EV-A's place", "0.02", (double)on_a <= 0.02 * (double)on_b);
	fig_row(fig, "EV-B bad when it drops in turn, after", (double)out / 1000, "us",
		"immediately", "within 3 base RTTs", out > 0 && out <= 3 * MRC_RTT_NS);
	fig_row(fig, "EV-B, healed, good again by probes after", (double)back / 1e6, "ms", "-",
		"more than 0, 5 ms", back > 0 && back <= 5 * MRC_MS);
	fig_close(&r);
	return true;
}

/* ---- 14: two pairs on one plane with two T1s. Flow 1 begins on EV-A, flow 2 has no other. ---- */

struct shared {
	double usual, least,
		gbps[2]; /* Gb/s: flow 1 alone, in the worst step as flow 2 begins, both */
	double part;     /* of what is on EV-A that is flow 1's */
};

/* active: of flow 1's two paths, so many in use at first. */
static bool share(struct mrc_figure *fig, unsigned active, struct shared *out)
{
	const struct fig_fabric f = {.planes = 1, .t0 = 2, .hosts = 2, .t1 = 2};
	const uint64_t ms = fig->quick ? 4 * MRC_MS : 20 * MRC_MS, start = 4 * MRC_MS;
	const struct sim_conn_conf conn[2] = {
		{.from = 0, .to = 2, .mrc = true, .active = active, .endless = true},
		{.from = 1, .to = 3, .mrc = true, .endless = true, .start_ns = start}};
	struct fig_run r;
	uint64_t on_a;
	unsigned a = 0, other;
	bool ok;

	if (!fig_open(&r, fig, &f, conn, 2))
		return false;
	fig_run_for(&r, MRC_MS);
	out->usual = fig_gbps(&r, 0, 2 * MRC_MS);
	if (through(&r, fig_up_link(&r, 0, 0, 1)) > through(&r, fig_up_link(&r, 0, 0, 0)))
		a = 1;
	other = sim_conn_paths(r.conns, 1)->path[0].ev == a ? 1 : 0;
	rnic_mrc_ev_set(sim_conn_qp(r.conns, 1, 0), other, MRC_EV_DENIED);
	fig_gbps_least(
		&r, 0, 3 * MRC_MS, STEP, &out->least); /* flow 2 begins in the second of them */
	on_a = through(&r, fig_up_link(&r, 0, 0, a));
	ok = fig_gbps_all(&r, ms, out->gbps);
	on_a = through(&r, fig_up_link(&r, 0, 0, a)) - on_a;
	/* What flow 2 has there is as long on the wire as flow 1's was alone. */
	out->part = 1 - out->gbps[1] * (double)ms / 8 * FULL / 4096 / (double)on_a;
	fig_close(&r);
	return ok;
}

bool mrc_figure_14(struct mrc_figure *fig)
{
	struct shared one, both;

	if (!share(fig, 1, &one) || !share(fig, 2, &both))
		return false;
	fig_row(fig, "flow 1 alone, EV-B as backup", one.usual, "Gb/s", "near line rate",
		"92 % of the link", one.usual >= 0.92 * MRC_MBPS / 1000);
	fig_row(fig, "flow 1 in the worst 0.25 ms as flow 2 begins", 100 * one.least / one.usual,
		"%", "no degradation", "50 %", one.least >= 0.5 * one.usual);
	fig_row(fig, "flow 1 beside flow 2", 100 * one.gbps[0] / one.usual, "%", "near peak",
		"98 %", one.gbps[0] >= 0.98 * one.usual);
	fig_row(fig, "flow 2, on EV-A only", 100 * one.gbps[1] / one.usual, "%", "near peak",
		"98 %", one.gbps[1] >= 0.98 * one.usual);
	fig_row(fig, "flow 1's part of what is on EV-A", 100 * one.part, "%",
		"EV-A is flow 2's alone", "1 %", fabs(one.part) <= 0.01);
	/* Not the paper's: a mark has its path passed over once, so that of two in use the marked
	 * one still gets a turn in three; without marks it would be half. */
	fig_row(fig, "flow 2, both paths in use by flow 1", 100 * both.gbps[1] / both.usual, "%",
		"-", "60 %", both.gbps[1] >= 0.6 * both.usual);
	fig_row(fig, "flow 1's part of EV-A then", 100 * both.part, "%", "-", "45 %",
		both.part <= 0.45);
	return true;
}
