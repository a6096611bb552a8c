/* SPDX-License-Identifier: BSD-3-Clause */
/* What the figures of the MRC paper share: fabrics, measuring, printing. */
#include "apps/sim_mrc.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *title;
	bool (*run)(struct mrc_figure *fig);
} figures[] = {
	{"4", "start-up with failed T0-T1 links and no denylist", mrc_figure_4},
	{"5", "T0-T1 links flap all the time under a job", mrc_figure_5},
	{"6", "figures 6 and 7: a transceiver of four NIC-T0 links flaps", mrc_figure_6},
	{"8", "a T1 stops forwarding, and is rebooted", mrc_figure_8},
	{"9a", "NIC-T0 links taken down one by one and restored", mrc_figure_9a},
	{"9b", "four of eight NIC-T0 links at once", mrc_figure_9b},
	{"9c", "T0-T1 links fail one after the other", mrc_figure_9c},
	{"9d", "T0-T1 links flap together", mrc_figure_9d},
	{"10", "a T0 stops forwarding", mrc_figure_10},
	{"11", "a T1 stops forwarding and comes back", mrc_figure_11},
	{"12", "figures 12 and 13: a path drops 20 %", mrc_figure_12},
	{"14", "two flows meet on a path", mrc_figure_14},
	{"15", "send and receive with a neighbour on many hosts", mrc_figure_15},
	{"16", "ring all-reduce with loss, beside RC", mrc_figure_16},
	{"17", "all-to-all with loss, beside RC", mrc_figure_17},
	{"18", "incast 7:1 and a victim, beside RC with PFC and DCQCN", mrc_figure_18},
	{"19", "T0-T1 links fail between two racks", mrc_figure_19},
	{"20", "permutation between racks, beside RC", mrc_figure_20},
	{"21", "incast 7:1 and a victim, beside RC with PFC", mrc_figure_21},
	{"22", "DCQCN's queue in an incast 15:1", mrc_figure_22},
	{"5.2.1", "latency and bandwidth below a T0 and across T1s", mrc_table_521},
	{"2", "what two tiers of planes take, beside three tiers", mrc_section_2},
};

/* ---- fabrics ---- */

/* A pause is asked for at 8 us of the link's rate; after that comes what is on the wire there and
 * back, and what is half out at both ends. */
static void set_pfc(const struct fig_fabric *f, struct sim_link_conf *link)
{
	const uint64_t us = link->mbps / 8, full = 4352;

	link->pfc_xoff = 8 * us;
	link->pfc_xon = 6 * us;
	link->pfc_room = link->pfc_xoff + us * 2 * MRC_DELAY_NS / 1000 + 4 * full;
	if (f->queues == FIG_PFC_DCQCN) {
		link->ecn_bytes = link->pfc_xoff * 2 / 5;
		link->ecn_max_bytes = link->pfc_xoff * 4;
	}
}

static struct sim_link_conf link_of(const struct fig_fabric *f, uint64_t mbps)
{
	struct sim_link_conf link = {
		.mbps = mbps ? mbps : MRC_MBPS, .delay_ns = MRC_DELAY_NS, .priority = true};
	const uint64_t bdp = link.mbps / 8 * (MRC_RTT_NS / 1000);

	if (f->queues == FIG_PFC || f->queues == FIG_PFC_DCQCN) {
		set_pfc(f, &link);
		return link;
	}
	link.queue_bytes = bdp;
	link.trim = f->queues == FIG_TRIM;
	link.trim_to = SIM_TRIMMED_MRC;
	link.trim_dscp = 12;
	link.ecn_bytes = bdp / 5;
	link.ecn_max_bytes = bdp * 4 / 5;
	return link;
}

/* The last hop does not mark, has half as much queue again, and says that it was the last. A host's
 * own link marks as little: nothing queues there but what the NIC has let go. */
static void set_last_hops(struct sim *sim, const struct fig_fabric *f)
{
	struct sim_link_conf link = link_of(f, f->mbps);

	if (link.pfc_xoff)
		return;
	link.ecn_bytes = link.ecn_max_bytes = 0;
	link.queue_bytes = link.queue_bytes * 3 / 2;
	link.trim_dscp = 16;
	for (unsigned h = 0; h < f->t0 * f->hosts; h++)
		for (unsigned p = 0; p < f->planes; p++) {
			sim_set_link(sim, sim_host_link(sim, h, p), &link);
			sim_set_link(sim, sim_host_link(sim, h, p) + 1, &link);
		}
}

static void set_ups(struct fig_run *r, const struct fig_fabric *f)
{
	const struct sim_link_conf link = link_of(f, f->up_mbps);

	for (unsigned e = 0; f->up_mbps && e < r->topo.n_edges; e++) {
		sim_set_link(r->sim, sim_edge_link(r->sim, e), &link);
		sim_set_link(r->sim, sim_edge_link(r->sim, e) + 1, &link);
	}
}

bool fig_open(struct fig_run *r, struct mrc_figure *fig, const struct fig_fabric *f,
	const struct sim_conn_conf *conn, unsigned n)
{
	struct sim_conf conf = {.topo = &r->topo,
		.link = link_of(f, f->mbps),
		.seed = fig->seed,
		.max_qp = 1024,
		.mrc = f->settings,
		.mrc_base_rtt_ns = MRC_RTT_NS};
	struct sim_conns_conf traffic = {.conn = conn,
		.n = n,
		.mtu = IBV_MTU_4096,
		.message = MRC_MESSAGE,
		.seed = conf.seed,
		.arrived = f->arrived,
		.arg = f->arg};
	char what[64];
	int rc;

	*r = (struct fig_run){.fig = fig, .n = n};
	if (f->congestion)
		conf.congestion = *f->congestion;
	conf.congestion.ect = f->queues == FIG_PFC_DCQCN;
	snprintf(what, sizeof(what), "planes:%ux%ux%ux%u", f->planes, f->t0, f->hosts, f->t1);
	rc = sim_topo_make(what, &r->topo, fig->err);
	if (rc == 0)
		rc = sim_create(&conf, &r->sim, fig->err);
	if (rc) {
		sim_topo_free(&r->topo);
		return false;
	}
	set_last_hops(r->sim, f);
	set_ups(r, f);
	traffic.sim = r->sim;
	rc = sim_conns_open(&traffic, &r->conns);
	if (rc == 0) {
		sim_conns_start(r->conns);
		return true;
	}
	snprintf(fig->err, sizeof(fig->err), "connections: %s", strerror(-rc));
	fig_close(r);
	return false;
}

void fig_close(struct fig_run *r)
{
	if (r->conns)
		sim_conns_close(r->conns);
	sim_destroy(r->sim);
	sim_topo_free(&r->topo);
}

/* ---- time and measures ---- */

bool fig_run_for(struct fig_run *r, uint64_t ns)
{
	const int rc = sim_run(r->sim, NULL, NULL, sim_now(r->sim) + ns);

	if (rc == -ETIME)
		return true;
	snprintf(r->fig->err, sizeof(r->fig->err), "the run ended early: %s", strerror(-rc));
	return false;
}

double fig_gbps(struct fig_run *r, unsigned i, uint64_t ns)
{
	double least;

	return fig_gbps_least(r, i, ns, ns, &least);
}

double fig_gbps_least(struct fig_run *r, unsigned i, uint64_t ns, uint64_t step_ns, double *least)
{
	const uint64_t before = sim_conn_acked(r->conns, i);

	*least = INFINITY;
	for (uint64_t t = 0; t < ns; t += step_ns) {
		const uint64_t from = sim_conn_acked(r->conns, i);
		double gbps;

		if (!fig_run_for(r, step_ns))
			return NAN;
		gbps = (double)(sim_conn_acked(r->conns, i) - from) * 8 / (double)step_ns;
		*least = gbps < *least ? gbps : *least;
	}
	return (double)(sim_conn_acked(r->conns, i) - before) * 8 / (double)ns;
}

bool fig_gbps_all(struct fig_run *r, uint64_t ns, double *gbps)
{
	for (unsigned i = 0; i < r->n; i++)
		gbps[i] = (double)sim_conn_acked(r->conns, i);
	if (!fig_run_for(r, ns))
		return false;
	for (unsigned i = 0; i < r->n; i++)
		gbps[i] = ((double)sim_conn_acked(r->conns, i) - gbps[i]) * 8 / (double)ns;
	return true;
}

uint64_t fig_count(const struct fig_run *r, const char *name)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->n; i++)
		sum += sim_conn_count(r->conns, i, name);
	return sum;
}

uint64_t fig_links(const struct fig_run *r, enum sim_link_counter c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < sim_n_links(r->sim); i++)
		sum += sim_link(r->sim, i)->count[c];
	return sum;
}

/* ---- faults ---- */

unsigned fig_up_link(const struct fig_run *r, unsigned plane, unsigned t0, unsigned t1)
{
	const unsigned n_t1 = r->topo.host_switch[0],
		       n_t0 = r->topo.n_switches / r->topo.n_planes - n_t1;

	return sim_edge_link(r->sim, (plane * n_t0 + t0) * n_t1 + t1) + 1;
}

void fig_link_set(struct fig_run *r, unsigned link, bool up, double loss)
{
	struct sim_link_conf *conf = &sim_link(r->sim, link)->conf;

	conf->n_down = up ? 0 : 1;
	conf->down[0].from = 0;
	conf->down[0].until = UINT64_MAX;
	conf->loss = loss;
}

void fig_switch_stop(struct fig_run *r, unsigned plane, bool is_t1, unsigned index, bool stop)
{
	const unsigned n_t1 = r->topo.host_switch[0],
		       first = plane * (r->topo.n_switches / r->topo.n_planes);

	sim_switch(r->sim, first + (is_t1 ? index : n_t1 + index))->stopped = stop;
}

/* ---- printing ---- */

/* met: the aim was reached; bad: that makes the figure fail. note: behind it all. */
static void print_row(struct mrc_figure *fig, json_t *row, double ours, bool bad, const char *note)
{
	const char *aim = json_string_value(json_object_get(row, "aim"));

	printf("  %-52s %9.2f %-6s paper: %s%s%s%s%s\n",
		json_string_value(json_object_get(row, "what")), ours,
		json_string_value(json_object_get(row, "unit")),
		json_string_value(json_object_get(row, "paper")), *aim ? "; aim: " : "", aim, note,
		bad ? "  MISSED" : "");
	json_array_append_new(fig->rows, row);
	fig->missed += bad;
}

static json_t *make_row(const char *what, double ours, const char *unit, const char *paper,
	const char *aim, bool met)
{
	return json_pack("{s:s, s:f, s:s, s:s, s:s, s:b}", "what", what, "ours",
		isfinite(ours) ? ours : -1.0, "unit", unit, "paper", paper, "aim", aim, "met", met);
}

void fig_row(struct mrc_figure *fig, const char *what, double ours, const char *unit,
	const char *paper, const char *aim, bool met)
{
	met = met && isfinite(ours);
	print_row(fig, make_row(what, ours, unit, paper, aim, met), ours, !met, "");
}

void fig_short(struct mrc_figure *fig, const char *what, double ours, const char *unit,
	const char *paper, double aim, double least, const char *why)
{
	const bool met = isfinite(ours) && ours >= aim;
	char text[32], note[160] = "";
	json_t *row;

	snprintf(text, sizeof(text), "%g %s", aim, unit);
	row = make_row(what, ours, unit, paper, text, met);
	if (!met) {
		snprintf(note, sizeof(note), "; short by %.2f: %s", aim - ours, why);
		json_object_set_new(row, "why", json_string(why));
		fig->is_short++;
	}
	print_row(fig, row, ours, !(isfinite(ours) && ours >= least), note);
}

/* How many aims were missed; that a figure cannot be had counts as one. */
static unsigned run_one(unsigned i, uint64_t seed, bool quick, json_t *out, unsigned *is_short)
{
	struct mrc_figure fig = {.seed = seed, .quick = quick, .rows = json_array()};
	bool ok;

	printf("figure %s: %s\n", figures[i].name, figures[i].title);
	ok = figures[i].run(&fig);
	if (!ok)
		printf("  failed: %s\n", fig.err);
	json_array_append_new(out,
		json_pack("{s:s, s:s, s:o, s:i, s:b}", "figure", figures[i].name, "title",
			figures[i].title, "rows", fig.rows, "missed", (int)fig.missed, "ran", ok));
	*is_short += fig.is_short;
	return fig.missed + !ok;
}

int mrc_figure(const char *name, uint64_t seed, bool quick, const char *json)
{
	json_t *out = json_array();
	unsigned n = 0, missed = 0, is_short = 0;
	int rc = 0;

	for (unsigned i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (strcmp(name, "all") == 0 || strcmp(name, figures[i].name) == 0) {
			n++;
			missed += run_one(i, seed, quick, out, &is_short);
		}
	if (json && json_dump_file(out, json, JSON_INDENT(1))) {
		fprintf(stderr, "%s: cannot be written\n", json);
		rc = 1;
	}
	json_decref(out);
	if (n == 0) {
		fprintf(stderr, "no figure %s\n", name);
		return 2;
	}
	printf("%u figures, %u aims missed, %u known not to be met\n", n, missed, is_short);
	return missed ? 1 : rc;
}
