/* SPDX-License-Identifier: BSD-3-Clause */
/* Many senders for one receiver: figures 18, 21 and 22 of the MRC paper, on its Cluster D at a
 * quarter of the speed: one plane, four racks of four hosts, four T1s. */
#include <math.h>
#include <stdio.h>

#include "apps/sim_mrc.h"

enum { MBPS = 100000, RACKS = 4, PER_RACK = 4, HOSTS = RACKS * PER_RACK };

static struct fig_fabric cluster(enum fig_queues queues, const struct rnic_congestion *congestion)
{
	return (struct fig_fabric){.planes = 1,
		.t0 = RACKS,
		.hosts = PER_RACK,
		.t1 = PER_RACK,
		.mbps = MBPS,
		.queues = queues,
		.congestion = congestion};
}

/* ---- 18 and 21: seven hosts of two racks write to a host of another one; the victim, of the
 * fourth rack, to that one's neighbour ---- */

enum { TARGET = 0, IDLE = 1, FIRST = PER_RACK, SENDERS = 7, VICTIM = SENDERS };

struct incast {
	double alone, victim, least; /* Gb/s: the victim before, during, in the worst step */
	double mean, off;            /* of the seven; %: the one that is farthest from the mean */
	uint64_t pauses;
	/* From the start on: MRC's packets that were trimmed, and told of by NACK; that a queue
	 * dropped; that were taken as lost for want of a word; and timeouts. */
	uint64_t trimmed, dropped, lost, timeouts;
};

static bool measure(struct fig_run *r, struct incast *out)
{
	const unsigned steps = r->fig->quick ? 8 : 600; /* of 0.5 ms */
	double gbps[SENDERS + 1], sum[SENDERS + 1] = {0};

	*out = (struct incast){.least = INFINITY};
	if (!fig_run_for(r, MRC_MS))
		return false;
	out->alone = fig_gbps(r, VICTIM, MRC_MS);
	if (!fig_run_for(r, 2 * MRC_MS)) /* the seven begin in the first of them */
		return false;
	for (unsigned s = 0; s < steps; s++) {
		if (!fig_gbps_all(r, MRC_MS / 2, gbps))
			return false;
		for (unsigned i = 0; i <= SENDERS; i++)
			sum[i] += gbps[i] / steps;
		out->least = fmin(out->least, gbps[VICTIM]);
	}
	out->victim = sum[VICTIM];
	for (unsigned i = 0; i < SENDERS; i++)
		out->mean += sum[i] / SENDERS;
	for (unsigned i = 0; i < SENDERS; i++)
		out->off = fmax(out->off, 100 * fabs(sum[i] / out->mean - 1));
	out->pauses = fig_links(r, SIM_L_PAUSES);
	out->trimmed = fig_count(r, "trimmed");
	out->dropped = fig_links(r, SIM_L_QUEUE_DROP);
	out->lost = fig_count(r, "lost");
	out->timeouts = sim_conns_timeouts(r->conns);
	return true;
}

/* qa_gate: NSCC's, 0: the default. set: MRC's, NULL: the defaults. */
static bool incast(struct mrc_figure *fig, enum fig_queues queues, unsigned qps, uint8_t qa_gate,
	const struct mrc_settings *set, struct incast *out)
{
	struct fig_fabric f = cluster(queues, NULL);
	struct sim_conn_conf conn[SENDERS + 1];
	struct fig_run r;
	bool ok;

	for (unsigned i = 0; i <= SENDERS; i++)
		conn[i] = (struct sim_conn_conf){.from = i == VICTIM ? HOSTS - 1 : FIRST + i,
			.to = i == VICTIM ? IDLE : TARGET,
			.qps = qps,
			.mrc = queues == FIG_TRIM || queues == FIG_DROP,
			.start_ns = i == VICTIM ? 0 : 2 * MRC_MS,
			.attr.cc.nscc.qa_gate = qa_gate,
			.attr_mask = RNIC_MRC_CC,
			.endless = true};
	f.settings = set;
	if (!fig_open(&r, fig, &f, conn, SENDERS + 1))
		return false;
	ok = measure(&r, out);
	fig_close(&r);
	return ok;
}

static void row(struct mrc_figure *fig, const char *of, const char *what, double ours,
	const char *paper, const char *aim, bool met)
{
	char text[80];

	snprintf(text, sizeof(text), "%s: %s", of, what);
	fig_row(fig, text, ours, "%", paper, aim, met);
}

/* Quick adapt, by default, cuts who gets less than 1/8 of its largest window through: a little less
 * than a seventh of this link. At first that keeps the weak weak. */
enum { QA_DEFAULT = 0, QA_OF_MANY = 5 };

/* What did not fit was cut, and asked for by its name: nobody waits for a timeout, nor has to guess
 * from what came later, but for what even as a header found no room, one in a thousand. Without
 * trimming guessing is how one learns of it. */
static void loss_rows(struct mrc_figure *fig, const struct incast *in, bool trims)
{
	fig_row(fig, "    timeouts", (double)in->timeouts, "", "-", "none", in->timeouts == 0);
	fig_row(fig, "    packets trimmed, and asked for by NACK", (double)in->trimmed, "",
		trims ? "some" : "none", trims ? "more than none" : "none",
		trims == (in->trimmed > 0));
	fig_row(fig, "    packets dropped", (double)in->dropped, "", trims ? "hardly any" : "some",
		trims ? "0.1 % of the trimmed" : "more than none",
		trims ? in->dropped * 1000 <= in->trimmed : in->dropped > 0);
	fig_row(fig, "    packets taken as lost for want of a word", (double)in->lost, "", "these",
		"these, and 0.1 %", in->lost * 1000 <= in->dropped * 1001 + in->trimmed);
}

static bool mrc_rows_of(struct mrc_figure *fig, const char *of, enum fig_queues queues,
	unsigned qps, uint8_t qa_gate, const struct mrc_settings *set)
{
	/* Windows wander for tens of milliseconds; shares are of 300. */
	const bool aimed = !fig->quick && qa_gate && !set;
	struct incast in;

	if (!incast(fig, queues, qps, qa_gate, set, &in))
		return false;
	row(fig, of, "victim, of what it has alone", 100 * in.victim / in.alone, "no impact",
		"95 %", in.victim >= 0.95 * in.alone);
	row(fig, of, "the seven, of the receiver's link", 100 * SENDERS * in.mean / (MBPS / 1000),
		"the link", "85 %", SENDERS * in.mean >= 0.85 * MBPS / 1000);
	row(fig, of, "the share farthest from their mean, off by", in.off, "almost perfect",
		aimed ? "5 %" : "", !aimed || in.off <= 5);
	loss_rows(fig, &in, queues == FIG_TRIM);
	return true;
}

static bool mrc_rows(struct mrc_figure *fig, const char *of, enum fig_queues queues, unsigned qps,
	uint8_t qa_gate)
{
	return mrc_rows_of(fig, of, queues, qps, qa_gate, NULL);
}

static bool rc_rows(struct mrc_figure *fig, const char *of, enum fig_queues queues, unsigned qps,
	const char *paper, const char *worst)
{
	struct incast in;

	if (!incast(fig, queues, qps, 0, NULL, &in))
		return false;
	row(fig, of, "victim, of what it has alone", 100 * in.victim / in.alone, paper, "", true);
	row(fig, of, "victim, the worst 0.5 ms", 100 * in.least / in.alone, worst, "", true);
	row(fig, of, "the share farthest from their mean, off by", in.off, "uneven", "", true);
	fig_row(fig, "    pauses", (double)in.pauses, "", "some", "more than none", in.pauses > 0);
	return true;
}

bool mrc_figure_18(struct mrc_figure *fig)
{
	return rc_rows(fig, "a: RC, DCQCN, 1 QP", FIG_PFC_DCQCN, 1, "75", "") &&
	       rc_rows(fig, "b: RC, DCQCN, 8 QPs", FIG_PFC_DCQCN, 8, "more than with 1 QP", "25") &&
	       mrc_rows(fig, "c: MRC, 1 QP", FIG_TRIM, 1, QA_OF_MANY) &&
	       mrc_rows(fig, "c: MRC, 1 QP, default gate", FIG_TRIM, 1, QA_DEFAULT) &&
	       mrc_rows(fig, "MRC, 1 QP, no trimming", FIG_DROP, 1, QA_OF_MANY);
}

bool mrc_figure_21(struct mrc_figure *fig)
{
	struct mrc_settings shared = mrc_settings_default();

	shared.nscc_shared = 1;
	return rc_rows(fig, "a: RC, PFC alone, 1 QP", FIG_PFC, 1, "7.5 to 25", "") &&
	       rc_rows(fig, "b: RC, PFC alone, 8 QPs", FIG_PFC, 8, "7.5 to 25", "") &&
	       mrc_rows(fig, "c: MRC, 8 QPs", FIG_TRIM, 8, QA_OF_MANY) &&
	       mrc_rows_of(fig, "c: MRC, 8 QPs, nscc_shared", FIG_TRIM, 8, QA_OF_MANY, &shared);
}

/* ---- 22: fifteen flows to one host begin one after the other ---- */

/* The receiver's T0 asks each of seven links (four T1s, three hosts) for a pause, from 8 us of the
 * link's rate on, and still takes what is under way (set_pfc). */
enum { MOST_WAITING = 7 * (12 * MBPS / 8 + 4 * 4352) / 1000 }; /* KB */
/* Of 4096 bytes of payload on the wire: Ethernet, IPv6, UDP, BTH, ICRC. */
enum { FLOWS = HOSTS - 1, FEW = 9, FULL = 4096 + 14 + 40 + 8 + 12 + 4 + SIM_WIRE_OVERHEAD };

struct queue {
	const struct fig_run *run;
	unsigned link;
	uint64_t samples, empty, peak;
	double sum;
};

static void look(void *arg, uint64_t now)
{
	struct queue *q = arg;
	const uint64_t bytes = sim_link_backlog(sim_link(q->run->sim, q->link), now);

	q->samples++;
	q->empty += bytes == 0;
	q->sum += (double)bytes;
	q->peak = bytes > q->peak ? bytes : q->peak;
}

struct dynamics {
	double few_peak, peak, mean; /* KB: up to FEW flows, of all */
	double empty;                /* %: of the time, with all flows */
	double gbps;                 /* of all flows */
	uint64_t few_pauses, pauses;
};

static bool watch(struct fig_run *r, uint64_t gap, struct dynamics *out)
{
	struct queue q = {.run = r, .link = sim_host_link(r->sim, TARGET, 0) + 1};
	double gbps[FLOWS];

	*out = (struct dynamics){0};
	sim_set_sampler(r->sim, 1000, look, &q);
	if (!fig_run_for(r, FEW * gap))
		return false;
	out->few_peak = (double)q.peak / 1000;
	out->few_pauses = fig_links(r, SIM_L_PAUSES);
	if (!fig_run_for(r, (FLOWS + 1 - FEW) * gap))
		return false;
	q = (struct queue){.run = r, .link = q.link, .peak = q.peak};
	if (!fig_gbps_all(r, 4 * gap, gbps))
		return false;
	for (unsigned i = 0; i < FLOWS; i++)
		out->gbps += gbps[i];
	out->peak = (double)q.peak / 1000;
	out->mean = q.sum / (double)q.samples / 1000;
	out->empty = 100 * (double)q.empty / (double)q.samples;
	out->pauses = fig_links(r, SIM_L_PAUSES);
	return true;
}

static bool profile(
	struct mrc_figure *fig, const struct rnic_congestion *congestion, struct dynamics *out)
{
	const struct fig_fabric f = cluster(FIG_PFC_DCQCN, congestion);
	const uint64_t gap = fig->quick ? MRC_MS / 2 : 4 * MRC_MS;
	struct sim_conn_conf conn[FLOWS];
	struct fig_run r;
	bool ok;

	for (unsigned i = 0; i < FLOWS; i++)
		conn[i] = (struct sim_conn_conf){
			.from = 1 + i, .to = TARGET, .start_ns = i * gap, .endless = true};
	if (!fig_open(&r, fig, &f, conn, FLOWS))
		return false;
	ok = watch(&r, gap, out);
	fig_close(&r);
	return ok;
}

/* The paper names its three profiles and does not give them. Ours: the RNIC's defaults; a rate that
 * comes back more slowly; and one that is also cut deeper and more often. */
static const struct {
	const char *name, *paper;
	struct rnic_congestion congestion;
} profiles[] = {
	{"a: default", "line rate, in PFC mode from 10 flows on", {0}},
	{"b: aggressive", "10 % less", {.ai_mbps = 5, .hai_mbps = 50, .timer_us = 300}},
	{"c: most aggressive", "20 % less",
		{.ai_mbps = 5,
			.hai_mbps = 50,
			.timer_us = 1500,
			.alpha_shift = 4,
			.cnp_us = 10,
			.alpha_us = 200}},
};

/* Of a profile, beside the one before it (NULL: it is the first), which is less aggressive. The
 * short form ends while rates still come back: then queues are empty more often. */
static void queue_rows(
	struct mrc_figure *fig, const struct dynamics *d, const struct dynamics *last)
{
	const double paused = (double)(d->pauses - d->few_pauses);

	fig_row(fig, "    longest queue, up to 9 flows", d->few_peak, "KB",
		"controlled below 10 flows", "what pauses let wait", d->few_peak <= MOST_WAITING);
	fig_row(fig, "    longest queue of all", d->peak, "KB", last ? "similar spikes" : "",
		last ? "half to all of it" : "what pauses let wait",
		last ? d->peak >= last->peak / 2 && d->peak <= last->peak
		     : d->peak <= MOST_WAITING);
	fig_row(fig, "    queue with 15 flows, average", d->mean, "KB", last ? "lower" : "",
		last ? "less than before" : "", !last || d->mean < last->mean);
	if (!last)
		fig_row(fig, "    empty with 15 flows, of the time", d->empty, "%", "never",
			fig->quick ? "at most 10 %" : "at most 1 %",
			d->empty <= (fig->quick ? 10 : 1));
	else
		fig_row(fig, "    empty with 15 flows, of the time", d->empty, "%", "sometimes",
			"more than before", d->empty > last->empty);
	fig_row(fig, "    pauses up to 9 flows", (double)d->few_pauses, "", "", "", true);
	fig_row(fig, "    pauses from 10 flows on", paused, "", last ? "" : "PFC mode",
		last ? "fewer than before" : "more than none",
		last ? paused < (double)(last->pauses - last->few_pauses) : paused > 0);
}

bool mrc_figure_22(struct mrc_figure *fig)
{
	struct dynamics d[sizeof(profiles) / sizeof(profiles[0])];
	char text[80];

	for (unsigned i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		const struct dynamics *last = i ? &d[i - 1] : NULL;

		if (!profile(fig, &profiles[i].congestion, &d[i]))
			return false;
		const double share = 100 * d[i].gbps / (MBPS / 1000.0) * FULL / 4096;

		snprintf(text, sizeof(text), "%s: of the receiver's link", profiles[i].name);
		fig_row(fig, text, share, "%", profiles[i].paper,
			last ? "less than before" : "95 %",
			last ? d[i].gbps < last->gbps : share >= 95);
		queue_rows(fig, &d[i], last);
	}
	return true;
}
