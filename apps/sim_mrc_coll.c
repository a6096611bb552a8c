/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of writes over MRC, and over RC with PFC and ECMP on one queue pair and on 16:
 * figures 16 and 17 of the MRC paper. As there RC has one plane and MRC four with a quarter of the
 * rate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/sim_mrc.h"
#include "lib/sim/loss_cost.h"

enum { MAX_RANKS = 16, PLANES = 4, LIMIT_MS = 60, SLICES = 4 };
enum { ONE_PLANE_MBPS = PLANES * MRC_MBPS };

enum where { NOWHERE, EVERYWHERE, ONE_LINK };

/* One run of a collective. */
struct task {
	bool mrc, ring;
	unsigned planes; /* that share ONE_PLANE_MBPS */
	unsigned qps;
	unsigned racks, hosts; /* per rack */
	uint64_t bytes;        /* of each rank's data */
	unsigned rounds;       /* one after the other */
	enum where where;      /* it is lossy */
	double loss;
	const struct mrc_settings *settings; /* NULL: the defaults */
	uint64_t *at; /* of every round, when each connection's transfer has arrived in it; NULL */
};

struct coll {
	struct fig_run run;
	const struct task *task;
	struct sim_conn_conf conn[MAX_RANKS * MAX_RANKS];
	unsigned n_ranks, n;
	uint64_t part;         /* bytes of a transfer */
	uint64_t arrived, all; /* all: of a round */
	uint64_t goal;
	unsigned round;
	uint64_t began;
};

/* The ring goes from rack to rack, so that every step crosses the T1s. */
static unsigned host_of(const struct coll *c, unsigned rank)
{
	rank %= c->n_ranks;
	return rank % c->task->racks * c->task->hosts + rank / c->task->racks;
}

static unsigned steps_of(unsigned n_ranks)
{
	return 2 * (n_ranks - 1);
}

/* In the ring what has come goes on, slice by slice, until it has been all the way round twice. */
static void arrived(void *arg, unsigned conn, unsigned nth)
{
	struct coll *c = arg;
	const unsigned steps = steps_of(c->n_ranks);

	c->arrived++;
	if (c->task->at)
		c->task->at[c->round * c->n + conn] = sim_now(c->run.sim) - c->began;
	if (c->task->ring && nth / SLICES % steps + 1 < steps)
		sim_conn_post(c->run.conns, (conn + 1) % c->n_ranks, c->part);
}

static bool is_done(void *arg)
{
	const struct coll *c = arg;

	return c->arrived == c->goal;
}

static void add(struct coll *c, unsigned from, unsigned to)
{
	c->conn[c->n++] = (struct sim_conn_conf){
		.from = from, .to = to, .qps = c->task->qps, .mrc = c->task->mrc};
}

static void connect(struct coll *c)
{
	const struct task *t = c->task;

	for (unsigned i = 0; i < c->n_ranks; i++)
		for (unsigned k = 1; k < (t->ring ? 2 : c->n_ranks); k++)
			add(c, host_of(c, i), host_of(c, i + k));
	c->all = t->ring ? (uint64_t)SLICES * steps_of(c->n_ranks) * c->n_ranks : c->n;
	c->part = t->bytes / c->n_ranks / (t->ring ? SLICES : 1);
}

/* What the NICs do not take of what comes, as the paper's programs in them; or a link between two
 * switches. */
static void spoil(struct coll *c)
{
	const struct task *t = c->task;
	struct fig_run *r = &c->run;

	if (t->where == ONE_LINK)
		fig_link_set(r, fig_up_link(r, 0, 0, 0), true, t->loss);
	for (unsigned h = 0; t->where == EVERYWHERE && h < r->topo.n_hosts; h++)
		for (unsigned p = 0; p < sim_topo_planes(&r->topo); p++)
			fig_link_set(r, sim_host_link(r->sim, h, p) + 1, true, t->loss);
}

/* A round begins when the one before it has been done everywhere. */
static void run_rounds(struct coll *c, unsigned rounds)
{
	const unsigned at_once = c->n * (c->task->ring ? SLICES : 1);

	for (unsigned k = 0; k < rounds && c->arrived == c->goal; k++) {
		c->goal += c->all;
		c->round = k;
		c->began = sim_now(c->run.sim);
		for (unsigned i = 0; i < at_once; i++)
			sim_conn_post(c->run.conns, i % c->n, c->part);
		sim_run(c->run.sim, is_done, c, sim_now(c->run.sim) + LIMIT_MS * (uint64_t)MRC_MS);
	}
}

/* Gb/s of a rank: 2 (n - 1) / n of its data in all-reduce, (n - 1) / n in all-to-all. What is not
 * done in LIMIT_MS a round, or ends with an error, counts with what has arrived by then. NAN: no
 * fabric. */
static double run_task(struct mrc_figure *fig, const struct task *t)
{
	struct coll *c = calloc(1, sizeof(*c));
	const struct fig_fabric f = {.planes = t->planes,
		.t0 = t->racks,
		.hosts = t->hosts,
		.t1 = t->hosts,
		.mbps = ONE_PLANE_MBPS / t->planes,
		.queues = t->mrc ? FIG_TRIM : FIG_PFC_DCQCN,
		.settings = t->settings,
		.arrived = arrived,
		.arg = c};
	double gbps = NAN;
	uint64_t from;

	if (!c)
		return NAN;
	c->task = t;
	c->n_ranks = t->racks * t->hosts;
	connect(c);
	if (fig_open(&c->run, fig, &f, c->conn, c->n)) {
		spoil(c);
		from = sim_now(c->run.sim);
		run_rounds(c, t->rounds);
		gbps = (double)(c->arrived * c->part) * 8 / c->n_ranks /
		       (double)(sim_now(c->run.sim) - from);
		fig_close(&c->run);
	}
	free(c);
	return gbps;
}

/* ---- the rows ---- */

struct series {
	struct mrc_figure *fig;
	struct task task;
	const char *size;
};

static double run_of(const struct series *s, bool mrc, unsigned qps, enum where where, double loss)
{
	struct task t = s->task;

	t.mrc = mrc;
	t.planes = mrc && !t.planes ? PLANES : 1;
	t.qps = qps;
	t.where = where;
	t.loss = loss;
	t.at = mrc && qps == 1 && where == NOWHERE ? s->task.at : NULL;
	return run_task(s->fig, &t);
}

static void row(const struct series *s, const char *what, double ours, const char *unit,
	const char *paper, const char *aim, bool met)
{
	char text[80];

	snprintf(text, sizeof(text), "%s: %s", s->size, what);
	fig_row(s->fig, text, ours, unit, paper, aim, met);
}

struct lossless {
	double mrc, rc1, rc16;
};

/* What the paper says of MRC, RC and RC on 16 queue pairs is in paper. */
static struct lossless lossless_rows(const struct series *s, const char *const paper[3])
{
	const struct lossless g = {run_of(s, true, 1, NOWHERE, 0), run_of(s, false, 1, NOWHERE, 0),
		run_of(s, false, 16, NOWHERE, 0)};

	row(s, "MRC, 1 QP", g.mrc, "Gb/s", paper[0], "", true);
	row(s, "RC, 1 QP", g.rc1, "Gb/s", paper[1], "", true);
	row(s, "RC, 16 QPs", g.rc16, "Gb/s", paper[2], "", true);
	return g;
}

static void rc_loss_rows(const struct series *s, const struct lossless *g)
{
	row(s, "RC, 1 QP, 0.1 % loss", 100 * run_of(s, false, 1, EVERYWHERE, 0.001) / g->rc1, "%",
		"poor", "", true);
	row(s, "RC, 1 QP, 1 % loss", 100 * run_of(s, false, 1, EVERYWHERE, 0.01) / g->rc1, "%",
		"unusable", "", true);
	row(s, "RC, 16 QPs, 0.1 % loss", 100 * run_of(s, false, 16, EVERYWHERE, 0.001) / g->rc16,
		"%", "poor", "", true);
	row(s, "RC, 16 QPs, 1 % loss", 100 * run_of(s, false, 16, EVERYWHERE, 0.01) / g->rc16, "%",
		"unusable", "", true);
}

static void mrc_loss_rows(const struct series *s, const struct lossless *g)
{
	const double little = 100 * run_of(s, true, 1, EVERYWHERE, 0.001) / g->mrc,
		     much = 100 * run_of(s, true, 1, EVERYWHERE, 0.01) / g->mrc,
		     one = 100 * run_of(s, true, 1, ONE_LINK, 0.01) / g->mrc;

	row(s, "MRC, 0.1 % loss at all NICs", little, "%", "little impact", "95 %", little >= 95);
	row(s, "MRC, 1 % loss at all NICs", much, "%", "a third", "more than a third", much > 33.4);
	row(s, "MRC, 1 % loss on one T0-T1 link", one, "%", "stops using it", "95 %", one >= 95);
}

/* ---- 64 KB: latency decides ---- */

/* A ring takes a quarter of a millisecond, in which at 0.1 % a packet or two are lost; all-to-all
 * 20 us, and one is lost in every tenth. */
enum { SMALL = 64 << 10, RING_ROUNDS = 40, APART_ROUNDS = 600, PACKET = 4096, BEST_RINGS = 400 };

/* Aims that are not met here: what there is at least. Of 64 KB unless it says otherwise. */
struct known {
	const char *paper; /* beside RC */
	double rc1, rc16;  /* times */
	double little;     /* 0.1 % of loss, % of that without: points behind the best */
	double much;       /* the same of 1 % */
	double shared;     /* 16 MB on 16 queue pairs with one window, % of one's */
};

static void short_row(const struct series *s, const char *what, double ours, const char *unit,
	const char *paper, double aim, double least, const char *why)
{
	char text[80];

	snprintf(text, sizeof(text), "%s: %s", s->size, what);
	fig_short(s->fig, text, ours, unit, paper, aim, least, why);
}

/* That it is the links: with the one plane that RC has it is no slower. */
static void small_beside_rc(struct series *s, const struct known *at, const struct lossless *g)
{
	static const char why[] = "links of a quarter of the rate take four times as long";
	double one_plane;

	short_row(s, "MRC beside RC's 1 QP", g->mrc / g->rc1, "times", at->paper, 1, at->rc1, why);
	short_row(s, "MRC beside RC's 16 QPs", g->mrc / g->rc16, "times", at->paper, 1, at->rc16,
		why);
	s->task.planes = 1;
	one_plane = run_of(s, true, 1, NOWHERE, 0) / g->rc1;
	s->task.planes = 0;
	row(s, "the same with one plane, as RC's 1 QP", one_plane, "times", "-", "0.98 times",
		one_plane >= 0.98);
}

/* A packet's way and that of the word of it, where no queue is; each link takes all of it before it
 * goes on. */
static double there_and_back(uint64_t payload)
{
	enum { LINKS = 4, AROUND = 146, WORD = 154 }; /* bytes beside the payload; of a SACK */

	return LINKS * (2.0 * MRC_DELAY_NS + (double)(payload + AROUND + WORD) * 8000 / MRC_MBPS);
}

/* What no transport can beat that waits for word before it repeats: % of that without loss, whose
 * rounds take ns each. */
static double best_of(const struct series *s, double ns, double loss)
{
	const struct task *t = &s->task;
	const unsigned ranks = t->racks * t->hosts;
	const uint64_t part = t->bytes / ranks / (t->ring ? SLICES : 1);
	const struct loss_cost_setting set = {.loss = loss,
		.rtt_ns = there_and_back(part < PACKET ? part : PACKET),
		.packets = (unsigned)((part + PACKET - 1) / PACKET),
		.seed = s->fig->seed};
	const double best =
		t->ring ? loss_cost_ring(&set, ranks, SLICES, steps_of(ranks), ns / steps_of(ranks),
				  BEST_RINGS)
			: loss_cost_apart(&set, t->at, ranks * (ranks - 1), t->rounds, 10);

	return 100 * ns / best;
}

/* ns of a round. */
static double round_ns(const struct series *s, double gbps)
{
	const unsigned ranks = s->task.racks * s->task.hosts;

	return (s->task.ring ? 2.0 : 1.0) * (ranks - 1) / ranks * (double)s->task.bytes * 8 / gbps;
}

/* That it is the tail: who waits for four round trips, and not for one, loses more; and so does who
 * asks what has become of it before it goes again. */
static void tail_rows(struct series *s, const struct lossless *g, double much)
{
	struct mrc_settings patient = mrc_settings_default(), asks = patient;
	double slow;

	patient.tail_rtts = patient.late_rtts;
	s->task.settings = &patient;
	slow = 100 * run_of(s, true, 1, EVERYWHERE, 0.01) / g->mrc;
	row(s, "MRC, 1 % loss at all NICs, tail_rtts of 4", slow, "%", "-", "below what 1 has",
		slow < much);
	asks.tail_again = 0;
	s->task.settings = &asks;
	slow = 100 * run_of(s, true, 1, EVERYWHERE, 0.01) / g->mrc;
	row(s, "MRC, 1 % loss at all NICs, tail_again of 0", slow, "%", "-", "below what 8 has",
		slow < much);
	s->task.settings = NULL;
}

static void small_loss_rows(struct series *s, const struct known *at, const struct lossless *g)
{
	static const char why[] = "nothing tells of a tail but time: the best is a row above";
	const double ns = round_ns(s, g->mrc), best = best_of(s, ns, 0.001),
		     best_much = best_of(s, ns, 0.01);
	double much, one;
	char aim[64];

	row(s, "the best that can be had, 0.1 % loss at all NICs", best, "%", "-", "", true);
	short_row(s, "MRC, 0.1 % loss at all NICs",
		100 * run_of(s, true, 1, EVERYWHERE, 0.001) / g->mrc, "%", "tails tell", 95,
		best - at->little, why);
	much = 100 * run_of(s, true, 1, EVERYWHERE, 0.01) / g->mrc;
	row(s, "the best that can be had, 1 % loss at all NICs", best_much, "%", "-", "", true);
	snprintf(aim, sizeof(aim), "more than a third, and the best less %g", at->much);
	row(s, "MRC, 1 % loss at all NICs", much, "%", "tails tell", aim,
		much > 33.4 && much >= best_much - at->much);
	one = 100 * run_of(s, true, 1, ONE_LINK, 0.01) / g->mrc;
	row(s, "MRC, 1 % loss on one T0-T1 link", one, "%", "stops using it", "95 %", one >= 95);
	tail_rows(s, g, much);
}

/* When transfers have arrived without loss. */
static bool note_arrivals(struct series *s)
{
	const struct task *t = &s->task;
	const unsigned ranks = t->racks * t->hosts;

	if (!t->ring)
		s->task.at = calloc((size_t)t->rounds * ranks * (ranks - 1), sizeof(*t->at));
	return t->ring || s->task.at != NULL;
}

static bool small_rows(struct series *s, const struct known *at)
{
	const char *const paper[3] = {at->paper, "", ""};
	struct lossless g;
	uint64_t *noted;

	s->size = "64 KB";
	s->task.bytes = SMALL;
	s->task.rounds = s->task.ring ? RING_ROUNDS : APART_ROUNDS;
	s->task.rounds /= s->fig->quick ? 2 : 1;
	if (!note_arrivals(s))
		return false;
	noted = s->task.at;
	g = lossless_rows(s, paper);
	s->task.at = NULL;
	small_beside_rc(s, at, &g);
	s->task.at = noted;
	small_loss_rows(s, at, &g);
	s->task.at = NULL;
	free(noted);
	if (!s->fig->quick)
		rc_loss_rows(s, &g);
	return true;
}

/* ---- 16 MB ---- */

/* 16 queue pairs of MRC, which one that sprays does not need: each with a window of its own, and
 * all with one. */
static void many_qps_rows(struct series *s, double least, const struct lossless *g)
{
	struct mrc_settings set = mrc_settings_default();

	row(s, "MRC, 16 QPs", 100 * run_of(s, true, 16, NOWHERE, 0) / g->mrc, "%", "-", "", true);
	set.nscc_shared = 1;
	s->task.settings = &set;
	short_row(s, "MRC, 16 QPs, nscc_shared", 100 * run_of(s, true, 16, NOWHERE, 0) / g->mrc,
		"%", "-", 95, least, "what has come and is not in a SACK yet, of 16, fills it");
	s->task.settings = NULL;
}

static struct lossless large_rows(
	struct series *s, const struct known *at, const char *const paper[3])
{
	struct lossless g;

	s->size = "16 MB";
	s->task.bytes = 16 << 20;
	s->task.rounds = 1;
	g = lossless_rows(s, paper);
	mrc_loss_rows(s, &g);
	if (!s->fig->quick) {
		many_qps_rows(s, at->shared, &g);
		rc_loss_rows(s, &g);
	}
	return g;
}

bool mrc_figure_16(struct mrc_figure *fig)
{
	static const char *const paper[] = {"best of all", "half of it", "between"};
	static const struct known at = {"little difference", 0.85, 0.85, 3, 8, 95};
	struct series s = {.fig = fig, .task = {.ring = true, .racks = 4, .hosts = 4}};
	struct lossless g;

	if (!small_rows(&s, &at))
		return false;
	g = large_rows(&s, &at, paper);
	row(&s, "MRC beside RC's 1 QP", g.mrc / g.rc1, "times", "twice", "1.9 times",
		g.mrc >= 1.9 * g.rc1);
	row(&s, "MRC beside RC's 16 QPs", g.mrc / g.rc16, "times", "better", "more than 1",
		g.mrc > g.rc16);
	return true;
}

bool mrc_figure_17(struct mrc_figure *fig)
{
	static const char *const paper[] = {"best of all", "better than with 16", ""};
	static const struct known at = {"better at all sizes", 0.7, 0.65, 3, 8, 80};
	struct series s = {.fig = fig, .task = {.ring = false, .racks = 2, .hosts = 4}};
	struct lossless g;

	if (!small_rows(&s, &at))
		return false;
	g = large_rows(&s, &at, paper);
	row(&s, "MRC beside RC's 1 QP", g.mrc / g.rc1, "times", "better at all sizes",
		"more than 1", g.mrc > g.rc1);
	row(&s, "MRC beside RC's 16 QPs", g.mrc / g.rc16, "times", "better at all sizes",
		"more than 1", g.mrc > g.rc16);
	return true;
}
