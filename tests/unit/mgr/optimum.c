/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies that place group after group, beside the most groups that fit at all: an integer program
 * (GLPK) that knows all of them before.
 *	optimum FABRICS [LEAVES SPINES HOSTS GROUPS]
 *
 * Group g is placed (x = 1) if from its first leaf a unit flows to each of its other leaves over
 * arcs that it has. With edge-disjoint trees an edge, a host's too, is one group's; with memory
 * side by side a switch has so many groups; where time is shared what a switch's groups need,
 * weighted by duty, fits into its memory (lib/mgr/book.h), and a group needs no less than over the
 * lowest tree that there can be. Trees of the program may be higher than the policies' four levels:
 * it is a bound from above, and gaps are no less than they are. */
#include <errno.h>
#include <glpk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mgr/policy.h"

enum { MOST_SW = 24, MOST_HOSTS = 64, MOST_GROUPS = 16, SLOTS = 3, ALWAYS = 1 };

/* What is scarce. */
enum scarce { EDGES, GROUPS, TIME };

/* Of a link, so that all groups fit there. */
static const uint64_t LINE_BPS = 100000000000, SHARE_BPS = LINE_BPS / MOST_GROUPS;
static const struct mgr_shape shape = {.mtu = 1024, .hop_ns = 2500};

struct size {
	unsigned leaves, spines, hosts, groups;
};

struct fabric {
	struct size size;
	struct mgr_graph *g;
	struct mgr_book *b;
	struct mgr_place *p;
	unsigned sw[MOST_SW], host[MOST_HOSTS];
	struct {
		unsigned n, host[MOST_HOSTS], duty; /* the last of MGR_DUTY */
		bool leaf[MOST_SW];
	} group[MOST_GROUPS];
};

#define CHECK(what)                                                              \
	do {                                                                     \
		if (!(what)) {                                                   \
			printf("line %d: does not hold: %s\n", __LINE__, #what); \
			exit(1);                                                 \
		}                                                                \
	} while (0)

static uint32_t number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Of a switch, for the rate SHARE_BPS over so many levels of switches. */
static uint64_t bytes_of(unsigned height)
{
	struct mgr_size z;

	CHECK(mgr_size_for(&shape, MGR_MODE_II, height, SHARE_BPS, &z) == 0);
	return mgr_size_bytes(&shape, &z, 2);
}

/* Where time is shared: for ALWAYS groups that never rest, and any number of groups. */
static uint64_t sram_of(enum scarce what)
{
	return what == TIME ? ALWAYS * bytes_of(2) : (uint64_t)1 << 40;
}

static unsigned add_node(
	struct fabric *f, enum mgr_kind kind, unsigned i, unsigned tier, enum scarce what)
{
	struct mgr_node n = {.kind = kind, .up = true, .tier = tier};

	snprintf(n.name, sizeof(n.name), "%c%u", kind == MGR_HOST ? 'h' : 's', i);
	if (kind == MGR_SWITCH) {
		n.modes = MGR_MODES;
		n.sram = sram_of(what);
		n.groups = what == TIME ? MOST_GROUPS : SLOTS;
	}
	CHECK(mgr_graph_set_node(f->g, &n) >= 0);
	return (unsigned)mgr_graph_find(f->g, n.name);
}

static void cable(struct fabric *f, unsigned a, unsigned b)
{
	unsigned end[] = {a, b};

	for (unsigned i = 0; i < 2; i++) {
		struct mgr_port p = {.bps = LINE_BPS, .up = true};
		char peer[MGR_NAME_LEN];

		snprintf(p.name, sizeof(p.name), "to%u", end[1 - i]);
		snprintf(peer, sizeof(peer), "to%u", end[i]);
		CHECK(mgr_graph_set_port(f->g, end[i], &p) >= 0);
		CHECK(mgr_graph_claim(f->g, end[i], p.name, mgr_graph_node(f->g, end[1 - i])->name,
			      peer) >= 0);
	}
}

static struct fabric fabric_of(struct size s, enum scarce what, uint64_t *random)
{
	bool taken[MOST_HOSTS] = {false};
	struct fabric f = {.size = s, .g = mgr_graph_new(), .b = mgr_book_new(256, 2048)};

	f.p = mgr_place_new(f.g, f.b);
	CHECK(f.p != NULL);
	for (unsigned i = 0; i < s.leaves + s.spines; i++)
		f.sw[i] = add_node(&f, MGR_SWITCH, i, 1 + (i >= s.leaves), what);
	for (unsigned i = 0; i < s.leaves * s.hosts; i++) {
		f.host[i] = add_node(&f, MGR_HOST, i, 0, what);
		cable(&f, f.host[i], f.sw[i / s.hosts]);
	}
	for (unsigned i = 0; i < s.leaves * s.spines; i++)
		cable(&f, f.sw[i / s.spines], f.sw[s.leaves + i % s.spines]);
	for (unsigned g = 0; g < s.groups; g++) {
		unsigned n = 2 + number(random) % 5;

		f.group[g].duty = what == TIME ? 100 * (1 + number(random) % 10) : MGR_DUTY;
		for (unsigned k = 0; k < n; k++) {
			unsigned h = number(random) % (s.leaves * s.hosts);
			if (taken[h]) /* a job has its hosts to itself */
				continue;
			taken[h] = true;
			f.group[g].host[f.group[g].n++] = h;
			f.group[g].leaf[h / s.hosts] = true;
		}
	}
	return f;
}

static void fabric_free(struct fabric *f)
{
	mgr_place_free(f->p);
	mgr_book_free(f->b);
	mgr_graph_free(f->g);
}

/* One after the other; what is placed stays. */
static unsigned greedy(struct fabric *f, const struct mgr_policy *policy, enum scarce what)
{
	unsigned placed = 0;

	for (unsigned g = 0; g < f->size.groups; g++) {
		struct mgr_member m[MOST_HOSTS];
		struct mgr_wish w = {.member = m,
			.n_members = f->group[g].n,
			.shape = shape,
			.modes = what == TIME ? MGR_MODE_II : MGR_MODES,
			.want_bps = what == TIME ? SHARE_BPS : 0,
			.least_bps = what == TIME ? SHARE_BPS : 0,
			.duty = f->group[g].duty};
		struct mgr_plan plan;
		mgr_promise promise;
		enum mgr_why why;

		for (unsigned i = 0; i < w.n_members; i++)
			m[i] = (struct mgr_member){f->host[f->group[g].host[i]], -1};
		if (mgr_place_group(f->p, policy, &w, UINT64_MAX, &plan, &promise, &why))
			continue;
		placed++;
		mgr_plan_free(&plan);
	}
	return placed;
}

/* Rows of the program, made as they are needed: at most row[] entries. */
struct program {
	glp_prob *lp;
	int column[4096];
	double factor[4096];
	int n;
};

static int new_column(struct program *p, double worth)
{
	int at = glp_add_cols(p->lp, 1);

	glp_set_col_kind(p->lp, at, GLP_BV);
	glp_set_obj_coef(p->lp, at, worth);
	return at;
}

static void term(struct program *p, int column, double factor)
{
	CHECK(p->n + 1 < 4096);
	p->column[++p->n] = column;
	p->factor[p->n] = factor;
}

static void row(struct program *p, int type, double bound)
{
	int at = glp_add_rows(p->lp, 1);

	glp_set_row_bnds(p->lp, at, type, bound, bound);
	glp_set_mat_row(p->lp, at, p->n, p->column, p->factor);
	p->n = 0;
}

/* Columns: a group is placed; it has an edge; it has a switch. */
struct columns {
	int x[MOST_GROUPS], y[MOST_GROUPS][MOST_SW][MOST_SW], z[MOST_GROUPS][MOST_SW];
};

/* A unit from the group's first leaf to another one, if it is placed. */
static void flow(struct program *p, const struct fabric *f, const struct columns *c, unsigned g,
	unsigned from, unsigned to)
{
	const struct size *s = &f->size;
	unsigned n = s->leaves + s->spines;
	int arc[MOST_SW][MOST_SW];

	for (unsigned a = 0; a < s->leaves; a++) {
		for (unsigned b = s->leaves; b < n; b++) {
			arc[a][b] = new_column(p, 0);
			arc[b][a] = new_column(p, 0);
			glp_set_col_kind(p->lp, arc[a][b], GLP_CV);
			glp_set_col_bnds(p->lp, arc[a][b], GLP_DB, 0, 1);
			glp_set_col_kind(p->lp, arc[b][a], GLP_CV);
			glp_set_col_bnds(p->lp, arc[b][a], GLP_DB, 0, 1);
			term(p, arc[a][b], 1);
			term(p, arc[b][a], 1);
			term(p, c->y[g][a][b], -1);
			row(p, GLP_UP, 0);
		}
	}
	for (unsigned v = 0; v < n; v++) {
		bool leaf = v < s->leaves;

		for (unsigned o = leaf ? s->leaves : 0; o < (leaf ? n : s->leaves); o++) {
			term(p, arc[v][o], 1);
			term(p, arc[o][v], -1);
		}
		if (v == from || v == to)
			term(p, c->x[g], v == from ? -1 : 1);
		row(p, GLP_FX, 0);
		for (unsigned o = leaf ? s->leaves : 0; o < (leaf ? n : s->leaves); o++)
			term(p, arc[o][v], 1);
		term(p, c->z[g][v], -1);
		row(p, GLP_UP, 0);
	}
}

static void add_groups(struct program *p, const struct fabric *f, struct columns *c)
{
	const struct size *s = &f->size;

	for (unsigned g = 0; g < s->groups; g++) {
		unsigned first = 0;

		c->x[g] = new_column(p, 1);
		for (unsigned a = 0; a < s->leaves + s->spines; a++)
			c->z[g][a] = new_column(p, 0);
		for (unsigned a = 0; a < s->leaves; a++) {
			for (unsigned b = s->leaves; b < s->leaves + s->spines; b++)
				c->y[g][a][b] = new_column(p, 0);
		}
		if (f->group[g].n < 2) { /* no group: its hosts were taken */
			term(p, c->x[g], 1);
			row(p, GLP_FX, 0);
			continue;
		}
		while (!f->group[g].leaf[first])
			first++;
		for (unsigned a = 0; a < s->leaves; a++) {
			if (!f->group[g].leaf[a])
				continue;
			term(p, c->x[g], 1);
			term(p, c->z[g][a], -1);
			row(p, GLP_UP, 0);
			if (a != first)
				flow(p, f, c, g, first, a);
		}
	}
}

static void disjoint(struct program *p, const struct fabric *f, const struct columns *c)
{
	const struct size *s = &f->size;

	for (unsigned h = 0; h < s->leaves * s->hosts; h++) {
		for (unsigned g = 0; g < s->groups; g++) {
			for (unsigned i = 0; i < f->group[g].n; i++) {
				if (f->group[g].host[i] == h)
					term(p, c->x[g], 1);
			}
		}
		if (p->n > 0)
			row(p, GLP_UP, 1);
	}
	for (unsigned a = 0; a < s->leaves; a++) {
		for (unsigned b = s->leaves; b < s->leaves + s->spines; b++) {
			for (unsigned g = 0; g < s->groups; g++)
				term(p, c->y[g][a][b], 1);
			row(p, GLP_UP, 1);
		}
	}
}

static uint64_t least_bytes(const struct fabric *f, unsigned g)
{
	unsigned leaves = 0;

	for (unsigned a = 0; a < f->size.leaves; a++)
		leaves += f->group[g].leaf[a];
	return bytes_of(leaves > 1 ? 2 : 1);
}

/* Who never rests has memory of his own; the rest a pool as large as the largest of them, and as
 * all of them by duty. In units of what one of them needs. */
static void shared(struct program *p, const struct fabric *f, const struct columns *c, unsigned v)
{
	double unit = (double)bytes_of(2);

	for (unsigned g = 0; g < f->size.groups; g++)
		term(p, c->z[g][v], (double)least_bytes(f, g) / unit * f->group[g].duty / MGR_DUTY);
	row(p, GLP_UP, ALWAYS);
	for (unsigned g = 0; g < f->size.groups; g++) {
		for (unsigned o = 0; o < f->size.groups; o++) {
			if (o == g || f->group[o].duty == MGR_DUTY)
				term(p, c->z[o][v], (double)least_bytes(f, o) / unit);
		}
		row(p, GLP_UP, ALWAYS);
	}
}

static void side_by_side(
	struct program *p, const struct fabric *f, const struct columns *c, unsigned v)
{
	for (unsigned g = 0; g < f->size.groups; g++)
		term(p, c->z[g][v], 1);
	row(p, GLP_UP, SLOTS);
}

static unsigned optimum(const struct fabric *f, enum scarce what)
{
	static struct columns c;
	struct program *p = calloc(1, sizeof(*p));
	glp_iocp how;
	unsigned best;

	CHECK(p != NULL);
	p->lp = glp_create_prob();
	glp_set_obj_dir(p->lp, GLP_MAX);
	add_groups(p, f, &c);
	if (what == EDGES)
		disjoint(p, f, &c);
	for (unsigned v = 0; v < f->size.leaves + f->size.spines; v++)
		(what == TIME ? shared : side_by_side)(p, f, &c, v);
	glp_init_iocp(&how);
	how.presolve = GLP_ON;
	how.msg_lev = GLP_MSG_OFF;
	how.gmi_cuts = how.clq_cuts = how.cov_cuts = GLP_ON;
	CHECK(glp_intopt(p->lp, &how) == 0 && glp_mip_status(p->lp) == GLP_OPT);
	best = (unsigned)(glp_mip_obj_val(p->lp) + 0.5);
	glp_delete_prob(p->lp);
	free(p);
	return best;
}

int main(int argc, char **argv)
{
	static const struct {
		const struct mgr_policy *policy;
		enum scarce what;
		unsigned least; /* percent of the optimum, all fabrics together */
	} way[] = {{&mgr_policy_edt, EDGES, 70}, {&mgr_policy_spatial, GROUPS, 70},
		{&mgr_policy_temporal, TIME, 70}};
	unsigned fabrics = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
	struct size s = {4, 3, 4, 8};
	uint64_t random = 95;

	if (argc > 5)
		s = (struct size){(unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]),
			(unsigned)atoi(argv[4]), (unsigned)atoi(argv[5])};
	CHECK(s.leaves + s.spines <= MOST_SW && s.leaves * s.hosts <= MOST_HOSTS &&
		s.groups <= MOST_GROUPS);
	setvbuf(stdout, NULL, _IOLBF, 0);
	glp_term_out(GLP_OFF);
	for (unsigned k = 0; k < sizeof(way) / sizeof(way[0]); k++) {
		unsigned placed = 0, best = 0, exact = 0;

		for (unsigned i = 0; i < fabrics; i++) {
			struct fabric f = fabric_of(s, way[k].what, &random);
			unsigned got = greedy(&f, way[k].policy, way[k].what),
				 most = optimum(&f, way[k].what);

			CHECK(got <= most);
			placed += got;
			best += most;
			exact += got == most;
			fabric_free(&f);
		}
		printf("%s: %u fabrics of %u leaves, %u spines, %u groups: %u placed, %u at best, "
		       "gap "
		       "%.1f %%, none in %u\n",
			way[k].policy->name, fabrics, s.leaves, s.spines, s.groups, placed, best,
			best ? 100.0 * (best - placed) / best : 0, exact);
		CHECK(best > 0 && placed * 100 >= best * way[k].least);
	}
	return 0;
}
