/* SPDX-License-Identifier: BSD-3-Clause */
/* A job whose hosts pass data round a ring, each going on when its neighbour's has come, so that
 * the slowest decides: figures 5 to 8 of the MRC paper, where links and switches fail under it, and
 * 15, where there are many of them. Four planes, four hosts to a T0 where nothing else is said;
 * minutes there are milliseconds here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/sim_mrc.h"

enum { PLANES = 4, MAX_RANKS = 256, RACKS = 3, PER_RACK = 4, T1S = 16, STEP = MRC_MS / 4 };
enum { NOBODY = UINT32_MAX };

struct job {
	struct fig_run run;
	unsigned n;                  /* ranks */
	unsigned racks, hosts, idle; /* hosts: per rack; idle: one that has no part in it */
	unsigned slices;             /* that a rank has under way at a time */
	uint64_t part;               /* bytes of one */
	uint64_t warm_ns;            /* that it runs before anything is measured */
	struct sim_conn_conf conn[MAX_RANKS];
	unsigned host[MAX_RANKS];
	uint64_t lost[MAX_RANKS]; /* by the last look_back() */
};

/* What has come goes on to the next. */
static void arrived(void *arg, unsigned conn, unsigned nth)
{
	struct job *j = arg;

	(void)nth;
	sim_conn_post(j->run.conns, (conn + 1) % j->n, j->part);
}

/* Neighbours in the ring are in different racks, so that all of it crosses T1s. */
static void place(struct job *j)
{
	for (unsigned i = 0; i < j->racks * j->hosts; i++) {
		const unsigned host = i % j->racks * j->hosts + i / j->racks;

		if (host != j->idle)
			j->host[j->n++] = host;
	}
	for (unsigned i = 0; i < j->n; i++)
		j->conn[i] = (struct sim_conn_conf){
			.from = j->host[i], .to = j->host[(i + 1) % j->n], .mrc = true};
}

/* As job_of made it, or with other numbers; it has run for warm_ns. */
static bool job_open(struct job *j, struct mrc_figure *fig, unsigned t1)
{
	const struct fig_fabric f = {.planes = PLANES,
		.t0 = j->racks,
		.hosts = j->hosts,
		.t1 = t1,
		.arrived = arrived,
		.arg = j};

	place(j);
	if (!fig_open(&j->run, fig, &f, j->conn, j->n))
		return false;
	for (unsigned i = 0; i < j->n * j->slices; i++)
		sim_conn_post(j->run.conns, i % j->n, j->part);
	if (fig_run_for(&j->run, j->warm_ns))
		return true;
	fig_close(&j->run);
	return false;
}

static struct job *job_of(const struct mrc_figure *fig, unsigned idle)
{
	struct job *j = calloc(1, sizeof(*j));

	if (j)
		*j = (struct job){.racks = RACKS,
			.hosts = PER_RACK,
			.idle = idle,
			.slices = 4,
			.part = 256 << 10,
			.warm_ns = fig->quick ? MRC_MS : 4 * MRC_MS};
	return j;
}

static void job_close(struct job *j)
{
	fig_close(&j->run);
	free(j);
}

/* Gb/s of a rank, and in the worst step; NAN: a write has failed. */
struct rate {
	double mean, least;
};

static struct rate measure(struct job *j, uint64_t ns, uint64_t step)
{
	struct rate r = {0, INFINITY};
	double gbps[MAX_RANKS];

	for (uint64_t t = 0; t < ns; t += step) {
		double mean = 0;

		if (!fig_gbps_all(&j->run, step, gbps))
			return (struct rate){NAN, NAN};
		for (unsigned i = 0; i < j->n; i++)
			mean += gbps[i] / j->n;
		r.mean += mean * (double)step / (double)ns;
		r.least = fmin(r.least, mean);
	}
	return r;
}

/* Data packets that each rank's queue pair has taken as lost since the last time. */
static void look_back(struct job *j, uint64_t lost[MAX_RANKS])
{
	for (unsigned i = 0; i < j->n; i++) {
		const uint64_t now = sim_conn_count(j->run.conns, i, "lost");

		lost[i] = now - j->lost[i];
		j->lost[i] = now;
	}
}

static uint64_t sum(const uint64_t *of, unsigned n)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < n; i++)
		all += of[i];
	return all;
}

static double percent(double of, double whole)
{
	return 100 * of / whole;
}

static void set_link(struct job *j, unsigned plane, unsigned t0, unsigned t1, bool up)
{
	const unsigned l = fig_up_link(&j->run, plane, t0, t1);

	fig_link_set(&j->run, l, up, 0);
	fig_link_set(&j->run, l - 1, up, 0);
}

/* ---- 5: links between T0 and T1 flap all the time ---- */

bool mrc_figure_5(struct mrc_figure *fig)
{
	const unsigned flaps = fig->quick ? 3 : 60;
	/* Up from the rack's hosts, and down to them. */
	enum { QPS = 2 * PER_RACK };
	struct job *j = job_of(fig, NOBODY);
	uint64_t seed = fig->seed, lost[MAX_RANKS], worst = 0, all = 0;
	struct rate usual, now = {0, INFINITY}, step;

	if (!j || !job_open(j, fig, T1S))
		return free(j), false;
	usual = measure(j, j->warm_ns, STEP);
	look_back(j, lost);
	for (unsigned i = 0; i < flaps;
		i++) { /* one at a time: a quarter of it down, then up again */
		const unsigned plane = (unsigned)(sim_random(&seed) % PLANES),
			       t0 = (unsigned)(sim_random(&seed) % RACKS),
			       t1 = (unsigned)(sim_random(&seed) % T1S);

		set_link(j, plane, t0, t1, false);
		step = measure(j, STEP, STEP);
		now.mean += step.mean / (4 * flaps);
		now.least = fmin(now.least, step.least);
		set_link(j, plane, t0, t1, true);
		step = measure(j, 3 * STEP, STEP);
		now.mean += step.mean * 3 / (4 * flaps);
		now.least = fmin(now.least, step.least);
		look_back(j, lost);
		all += sum(lost, j->n);
		for (unsigned k = 0; k < j->n; k++)
			worst = lost[k] > worst ? lost[k] : worst;
	}
	job_close(j);
	fig_row(fig, "a flap every ms: the job, of what it has without",
		percent(now.mean, usual.mean), "%", "almost no impact", "97 %",
		now.mean >= 0.97 * usual.mean);
	fig_row(fig, "in the worst 0.25 ms", percent(now.least, usual.mean), "%", "negligible",
		"80 %", now.least >= 0.8 * usual.mean);
	fig_row(fig, "packets lost in a flap, of a queue pair that takes the link",
		(double)all / flaps / QPS, "", "very few, often just one", "at most 8",
		all > 0 && all <= 8 * QPS * flaps);
	fig_row(fig, "of the one that lost most", (double)worst, "", "-", "", true);
	return true;
}

/* ---- 6 and 7: the transceiver of four links of a T0 to four hosts flaps, of which three have a
 * part in the job ---- */

enum {
	FLAPPING = 1,
	BYSTANDER = PER_RACK - 1
}; /* plane; the host of the first rack that is idle */

/* NICs and the switch see it at times that are not quite the same, link by link. */
static bool flap(struct job *j, struct rate *during)
{
	const unsigned shots = j->run.fig->quick ? 3 : 12;
	double mean = 0;

	for (unsigned i = 0; i < shots; i++) {
		struct rate r;

		for (unsigned h = 0; h < PER_RACK; h++) {
			sim_set_port(j->run.sim, h, FLAPPING, false);
			if (!fig_run_for(&j->run, MRC_MS / 100))
				return false;
		}
		r = measure(j, STEP, STEP);
		mean += r.mean / (2 * shots);
		during->least = fmin(during->least, r.mean);
		for (unsigned h = 0; h < PER_RACK; h++)
			sim_set_port(j->run.sim, h, FLAPPING, true);
		r = measure(j, STEP, STEP);
		mean += r.mean / (2 * shots);
		during->least = fmin(during->least, r.mean);
	}
	during->mean = mean;
	return true;
}

static void loss_rows(struct mrc_figure *fig, const struct job *j, const uint64_t *lost)
{
	uint64_t own = 0, to = 0, others = 0;

	for (unsigned i = 0; i < j->n; i++) {
		if (j->host[i] < PER_RACK)
			own += lost[i];
		else if (j->host[(i + 1) % j->n] < PER_RACK)
			to += lost[i];
		else
			others += lost[i];
	}
	fig_row(fig, "7: packets lost by the three hosts whose ports flap", (double)own, "",
		"most affected", "", true);
	fig_row(fig, "7: by the three that write to them", (double)to, "", "most affected",
		"more than none", to > 0);
	fig_row(fig, "7: by the others", (double)others, "", "not among the eight", "none",
		others == 0);
}

bool mrc_figure_6(struct mrc_figure *fig)
{
	struct job *j = job_of(fig, BYSTANDER);
	uint64_t lost[MAX_RANKS];
	struct rate usual, during = {0, INFINITY}, after;
	bool ok;

	if (!j || !job_open(j, fig, T1S))
		return free(j), false;
	usual = measure(j, j->warm_ns, STEP);
	look_back(j, lost);
	ok = flap(j, &during);
	look_back(j, lost);
	after = measure(j, MRC_MS, STEP);
	fig_row(fig, "6: the job while four links of a T0 flap", percent(during.mean, usual.mean),
		"%", "75", "70 %", during.mean >= 0.7 * usual.mean);
	fig_row(fig, "6: in the worst 0.25 ms", percent(during.least, usual.mean), "%", "-", "50 %",
		during.least >= 0.5 * usual.mean);
	fig_row(fig, "6: in the ms after it", percent(after.mean, usual.mean), "%",
		"full speed immediately", "98 %", after.mean >= 0.98 * usual.mean);
	loss_rows(fig, j, lost);
	job_close(j);
	return ok;
}

/* ---- 8: a T1 stops forwarding, and is rebooted ---- */

enum { DEAD_PLANE = 2, DEAD_T1 = 5 };

static void dead_rows(struct mrc_figure *fig, struct job *j, const struct rate *usual)
{
	const unsigned sw = DEAD_PLANE * (RACKS + T1S) + DEAD_T1;
	uint64_t lost[MAX_RANKS], dropped;
	unsigned affected = 0;
	struct rate first, then;

	fig_switch_stop(&j->run, DEAD_PLANE, true, DEAD_T1, true);
	first = measure(j, MRC_MS / 2, STEP);
	look_back(j, lost);
	then = measure(j, fig->quick ? MRC_MS : 20 * MRC_MS, STEP);
	dropped = sim_switch(j->run.sim, sw)->stopped_drop;
	for (unsigned i = 0; i < j->n; i++)
		affected += lost[i] > 0;
	fig_row(fig, "it stops: the job in the worst 0.25 ms", percent(first.least, usual->mean),
		"%", "dips", "50 %", first.least >= 0.5 * usual->mean);
	fig_row(fig, "from 0.5 ms later on, dead", percent(then.mean, usual->mean), "%",
		"largely unaffected", "97 %", then.mean >= 0.97 * usual->mean);
	fig_row(fig, "queue pairs that lost something", percent(affected, j->n), "%", "a quarter",
		"", true);
	fig_row(fig, "packets that it dropped, for each queue pair", (double)dropped / j->n, "",
		"580K in all", "at most 16", dropped > 0 && dropped <= 16 * j->n);
}

bool mrc_figure_8(struct mrc_figure *fig)
{
	const uint64_t ms = fig->quick ? MRC_MS / 2 : 5 * MRC_MS;
	struct job *j = job_of(fig, NOBODY);
	struct rate usual, down, up;

	if (!j || !job_open(j, fig, T1S))
		return free(j), false;
	usual = measure(j, j->warm_ns, STEP);
	dead_rows(fig, j, &usual);
	for (unsigned t0 = 0; t0 < RACKS; t0++)
		set_link(j, DEAD_PLANE, t0, DEAD_T1, false);
	down = measure(j, ms, STEP);
	fig_switch_stop(&j->run, DEAD_PLANE, true, DEAD_T1, false);
	for (unsigned t0 = 0; t0 < RACKS; t0++)
		set_link(j, DEAD_PLANE, t0, DEAD_T1, true);
	up = measure(j, ms, STEP);
	fig_row(fig, "it reboots, its links are down: the worst 0.25 ms",
		percent(down.least, usual.mean), "%", "no impact", "95 %",
		down.least >= 0.95 * usual.mean);
	fig_row(fig, "it forwards again: the worst 0.25 ms", percent(up.least, usual.mean), "%",
		"no impact", "95 %", up.least >= 0.95 * usual.mean);
	job_close(j);
	return true;
}

/* ---- 15: send and receive with a neighbour, on many hosts ---- */

/* Of a rank, and of the slowest. */
static bool send_and_receive(
	struct mrc_figure *fig, unsigned racks, uint64_t bytes, uint64_t ns, struct rate *out)
{
	/* As NCCL cuts a message for the slots of a channel: what is in one may be on its way while
	 * the next ones wait for theirs to come. */
	enum { HOSTS = 8, SLOTS = 8 };
	struct job *j = job_of(fig, NOBODY);
	double gbps[MAX_RANKS];
	bool ok;

	if (!j)
		return false;
	j->racks = racks;
	j->hosts = HOSTS;
	j->slices = SLOTS;
	j->part = bytes / SLOTS;
	j->warm_ns = fig->quick ? MRC_MS / 2 : 2 * MRC_MS;
	if (!job_open(j, fig, HOSTS))
		return free(j), false;
	*out = (struct rate){0, INFINITY};
	ok = fig_gbps_all(&j->run, ns, gbps);
	for (unsigned i = 0; ok && i < j->n; i++) {
		out->mean += gbps[i] / j->n;
		out->least = fmin(out->least, gbps[i]);
	}
	job_close(j);
	return ok;
}

bool mrc_figure_15(struct mrc_figure *fig)
{
	static const struct {
		const char *name;
		uint64_t bytes, ns;
	} size[] = {
		{"64 KB", 64 << 10, MRC_MS},
		{"1 MB", 1 << 20, 2 * MRC_MS},
		{"4 MB", 4 << 20, 4 * MRC_MS},
		{"16 MB", 16 << 20, 12 * MRC_MS},
	};
	enum { FEW = 2, QUICK = 8, MANY = 16, LARGE = 4 << 20 }; /* racks of eight hosts; bytes */
	const unsigned racks = fig->quick ? QUICK : MANY;
	const double link = PLANES * MRC_MBPS / 1000.0;

	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		const bool large = size[i].bytes >= LARGE;
		const uint64_t ns = fig->quick ? MRC_MS / 2 : size[i].ns;
		struct rate few, many;
		char what[80];

		if (fig->quick && size[i].bytes != LARGE)
			continue;
		if (!send_and_receive(fig, FEW, size[i].bytes, ns, &few) ||
			!send_and_receive(fig, racks, size[i].bytes, ns, &many))
			return false;
		snprintf(what, sizeof(what), "%s, %u hosts: of a host's links", size[i].name,
			racks * 8);
		fig_row(fig, what, percent(many.mean, link), "%", large ? "92" : "",
			large ? "80 %" : "", !large || many.mean >= 0.8 * link);
		snprintf(what, sizeof(what), "%s: the slowest of them, of the mean", size[i].name);
		fig_row(fig, what, percent(many.least, many.mean), "%", "", large ? "90 %" : "",
			!large || many.least >= 0.9 * many.mean);
		snprintf(what, sizeof(what), "%s: beside 16 hosts", size[i].name);
		fig_row(fig, what, many.mean / few.mean, "times", "scales", "0.97",
			many.mean >= 0.97 * few.mean);
	}
	return true;
}
