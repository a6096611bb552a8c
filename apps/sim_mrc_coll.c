/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of writes over MRC, and over RC with PFC and ECMP on one queue pair and on 16:
 * figures 16 and 17 of the MRC paper. As there RC has one plane and MRC four with a quarter of the
 * rate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/sim_mrc.h"

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
	enum where where;      /* it is lossy */
	double loss;
};

struct coll {
	struct fig_run run;
	const struct task *task;
	struct sim_conn_conf conn[MAX_RANKS * MAX_RANKS];
	unsigned n_ranks, n;
	uint64_t part; /* bytes of a transfer */
	uint64_t arrived, all;
};

/* The ring goes from rack to rack, so that every step crosses the T1s. */
static unsigned host_of(const struct coll *c, unsigned rank)
{
	rank %= c->n_ranks;
	return rank % c->task->racks * c->task->hosts + rank / c->task->racks;
}

/* In the ring what has come goes on, slice by slice, until it has been all the way round twice. */
static void arrived(void *arg, unsigned conn, unsigned nth)
{
	struct coll *c = arg;

	c->arrived++;
	if (c->task->ring && nth / SLICES + 1 < 2 * (c->n_ranks - 1))
		sim_conn_post(c->run.conns, (conn + 1) % c->n_ranks, c->part);
}

static bool is_done(void *arg)
{
	const struct coll *c = arg;

	return c->arrived == c->all;
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
	c->all = t->ring ? SLICES * 2 * (uint64_t)(c->n_ranks - 1) * c->n_ranks : c->n;
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

/* Gb/s of a rank: 2 (n - 1) / n of its data in all-reduce, (n - 1) / n in all-to-all. What is not
 * done in LIMIT_MS, or ends with an error, counts with what has arrived by then. NAN: no fabric. */
static double run_task(struct mrc_figure *fig, const struct task *t)
{
	struct coll *c = calloc(1, sizeof(*c));
	const struct fig_fabric f = {.planes = t->planes,
		.t0 = t->racks,
		.hosts = t->hosts,
		.t1 = t->hosts,
		.mbps = ONE_PLANE_MBPS / t->planes,
		.queues = t->mrc ? FIG_TRIM : FIG_PFC_DCQCN,
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
		for (unsigned i = 0; i < c->n * (t->ring ? SLICES : 1); i++)
			sim_conn_post(c->run.conns, i % c->n, c->part);
		sim_run(c->run.sim, is_done, c, from + LIMIT_MS * (uint64_t)MRC_MS);
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

static struct lossless lossless_rows(const struct series *s)
{
	const struct lossless g = {run_of(s, true, 1, NOWHERE, 0), run_of(s, false, 1, NOWHERE, 0),
		run_of(s, false, 16, NOWHERE, 0)};

	row(s, "MRC, 1 QP", g.mrc, "Gb/s", "best of all", "", true);
	row(s, "RC, 1 QP", g.rc1, "Gb/s", "half of it in the ring", "", true);
	row(s, "RC, 16 QPs", g.rc16, "Gb/s", "between", "", true);
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

/* Small data, where latency decides, and large. */
static struct lossless all_rows(struct series *s)
{
	struct lossless g;

	if (!s->fig->quick) {
		s->size = "64 KB";
		s->task.bytes = 64 << 10;
		lossless_rows(s);
		/* What a packet of MRC's takes on four links of a quarter of the rate is behind
		 * that. */
		s->task.planes = 1;
		row(s, "MRC, 1 QP, with the one plane of RC", run_of(s, true, 1, NOWHERE, 0),
			"Gb/s", "-", "", true);
		s->task.planes = 0;
	}
	s->size = "16 MB";
	s->task.bytes = 16 << 20;
	g = lossless_rows(s);
	mrc_loss_rows(s, &g);
	if (!s->fig->quick)
		rc_loss_rows(s, &g);
	return g;
}

bool mrc_figure_16(struct mrc_figure *fig)
{
	struct series s = {.fig = fig, .task = {.ring = true, .racks = 4, .hosts = 4}};
	const struct lossless g = all_rows(&s);

	row(&s, "MRC beside RC's 1 QP", g.mrc / g.rc1, "times", "twice", "1.9 times",
		g.mrc >= 1.9 * g.rc1);
	row(&s, "MRC beside RC's 16 QPs", g.mrc / g.rc16, "times", "better", "more than 1",
		g.mrc > g.rc16);
	return true;
}

bool mrc_figure_17(struct mrc_figure *fig)
{
	struct series s = {.fig = fig, .task = {.ring = false, .racks = 2, .hosts = 4}};
	const struct lossless g = all_rows(&s);

	row(&s, "MRC beside RC's 1 QP", g.mrc / g.rc1, "times", "better at all sizes",
		"more than 1", g.mrc > g.rc1);
	row(&s, "MRC beside RC's 16 QPs", g.mrc / g.rc16, "times", "better at all sizes",
		"more than 1", g.mrc > g.rc16);
	return true;
}
