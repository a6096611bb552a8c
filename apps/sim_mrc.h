/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of the MRC paper on the simulator, scaled down, each with ours beside what the paper says
 * and an aim that it must reach. */
#ifndef APPS_SIM_MRC_H
#define APPS_SIM_MRC_H

#include <jansson.h>

#include "lib/sim/conn.h"
#include "lib/sim/srv6.h"

/* What a figure is given, and what it hands back. */
struct mrc_figure {
	uint64_t seed;
	bool quick;   /* shorter, for tests */
	json_t *rows; /* of {"what", "ours", "unit", "paper", "aim", "met"}; with "why": fig_short
		       */
	unsigned missed, is_short;
	char err[SIM_ERR_LEN];
};

/* Links of a fabric of planes, as all figures have them unless they say otherwise. */
enum {
	MRC_MBPS = 25000, /* of a plane */
	MRC_DELAY_NS = 2000,
	MRC_RTT_NS = 22000, /* four links there and back, and a full packet's time on each */
	MRC_MESSAGE = 32768,
	MRC_PLANE_BDP = MRC_MBPS / 8 * (MRC_RTT_NS / 1000),
	MRC_MS = 1000000
};

/* A fabric with traffic on it. */
struct fig_run {
	struct mrc_figure *fig;
	struct sim_topo topo;
	struct sim *sim;
	struct sim_conns *conns;
	unsigned n;
};

/* What becomes of frames that find a long queue. */
enum fig_queues {
	FIG_TRIM,      /* MRC's: marked, trimmed, priority for control */
	FIG_DROP,      /* likewise, and dropped instead of trimmed */
	FIG_PFC,       /* RC's: nothing is dropped, senders pause */
	FIG_PFC_DCQCN, /* likewise, and marked, on the last hop too */
};

struct fig_fabric {
	unsigned planes, t0, hosts, t1; /* hosts per T0 */
	uint64_t mbps;                  /* of a link; 0: MRC_MBPS */
	uint64_t up_mbps;               /* of one between T0 and T1; 0: as mbps */
	enum fig_queues queues;
	const struct rnic_congestion *congestion; /* RC's; NULL: the RNIC's defaults */
	const struct mrc_settings *settings;      /* MRC's; NULL: the defaults */
	/* As of sim_conns_conf. */
	void (*arrived)(void *arg, unsigned conn, unsigned nth);
	void *arg;
};

/* false: fig->err says why. */
bool fig_open(struct fig_run *r, struct mrc_figure *fig, const struct fig_fabric *fabric,
	const struct sim_conn_conf *conn, unsigned n);
void fig_close(struct fig_run *r);

/* So much virtual time passes; false: a write failed. */
bool fig_run_for(struct fig_run *r, uint64_t ns);
/* The same, and what connection i had acknowledged in it: Gb/s. */
double fig_gbps(struct fig_run *r, unsigned i, uint64_t ns);
/* The same in steps of step_ns: the average, *least: the worst step. NAN: a write failed. */
double fig_gbps_least(struct fig_run *r, unsigned i, uint64_t ns, uint64_t step_ns, double *least);
/* All connections' in the same time, each into gbps[i]. False: a write failed. */
bool fig_gbps_all(struct fig_run *r, uint64_t ns, double *gbps);
/* Sum of a counter of MRC's over all connections (sim_conn_count). */
uint64_t fig_count(const struct fig_run *r, const char *name);
/* Sum of a counter over all links. */
uint64_t fig_links(const struct fig_run *r, enum sim_link_counter c);

/* The link from a T0 up to a T1 of a plane; the next lower number is the one down. */
unsigned fig_up_link(const struct fig_run *r, unsigned plane, unsigned t0, unsigned t1);
void fig_link_set(struct fig_run *r, unsigned link, bool up, double loss);
/* A switch stops forwarding, its links stay up, or it is back. */
void fig_switch_stop(struct fig_run *r, unsigned plane, bool is_t1, unsigned index, bool stop);

/* A line of the figure. met: whether the aim, a text, was reached. */
void fig_row(struct mrc_figure *fig, const char *what, double ours, const char *unit,
	const char *paper, const char *aim, bool met);
/* The same of an aim that is known not to be met here: by how much and why is printed beside it. It
 * is missed below `least`, as far as it is known not to be met. */
void fig_short(struct mrc_figure *fig, const char *what, double ours, const char *unit,
	const char *paper, double aim, double least, const char *why);

/* A figure: false if it could not be had. */
bool mrc_figure_4(struct mrc_figure *fig);
bool mrc_figure_5(struct mrc_figure *fig);
bool mrc_figure_6(struct mrc_figure *fig);
bool mrc_figure_8(struct mrc_figure *fig);
bool mrc_figure_9a(struct mrc_figure *fig);
bool mrc_figure_9b(struct mrc_figure *fig);
bool mrc_figure_9c(struct mrc_figure *fig);
bool mrc_figure_9d(struct mrc_figure *fig);
bool mrc_figure_10(struct mrc_figure *fig);
bool mrc_figure_11(struct mrc_figure *fig);
bool mrc_figure_12(struct mrc_figure *fig);
bool mrc_figure_14(struct mrc_figure *fig);
bool mrc_figure_15(struct mrc_figure *fig);
bool mrc_figure_16(struct mrc_figure *fig);
bool mrc_figure_17(struct mrc_figure *fig);
bool mrc_figure_18(struct mrc_figure *fig);
bool mrc_figure_19(struct mrc_figure *fig);
bool mrc_figure_20(struct mrc_figure *fig);
bool mrc_figure_21(struct mrc_figure *fig);
bool mrc_figure_22(struct mrc_figure *fig);
/* Not figures: section 5.2.1's table, section 2's numbers. */
bool mrc_table_521(struct mrc_figure *fig);
bool mrc_section_2(struct mrc_figure *fig);

/* incline-sim mrc-figure NAME, or "all": 0; 1 if an aim was missed, a figure could not be had or
 * the file not be written; 2 if there is no such figure. json: file or NULL. */
int mrc_figure(const char *name, uint64_t seed, bool quick, const char *json);

#endif
