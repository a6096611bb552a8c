/* SPDX-License-Identifier: BSD-3-Clause */
/* Many jobs on 2048 GPUs: what EPIC's tables 44 and 45 and figures 16 and 20 to 24 are made of. */
#ifndef FLOWSIM_MANY_H
#define FLOWSIM_MANY_H

#include "lib/flowsim/paper.h"

enum { FS_MANY_SLOTS = 16, FS_SMALL_GPUS = 8 };

/* What is run. */
struct fs_many_ask {
	unsigned trace; /* 1 to FS_MULTIS */
	enum fs_setting setting;
	unsigned jobs, slots;    /* groups of a switch; 0: FS_MANY_SLOTS */
	uint64_t sram;           /* of a switch; 0: not scarce */
	double load;             /* as fs_trace_make */
	struct fs_config config; /* its policy is the setting's; its seed is the trace's, too */
};

/* What came of it: seconds of jobs from submission to end; of those with FS_SMALL_GPUS from start
 * to end, as the paper's cannot have waited. Ascending. */
struct fs_many {
	unsigned n, small;
	double *seconds, *small_seconds;
	double mean, small_mean, wait;
	double in_network; /* share of bytes */
	struct fs_totals totals;
};

/* 0, or what fs_run_jobs returns and calls; *m is the caller's, freed with fs_many_free. */
int fs_many_run(const struct fs_many_ask *ask, struct fs_many *m,
	void (*each)(void *arg, unsigned ended), void *arg, char err[FS_ERR_LEN]);
void fs_many_free(struct fs_many *m);

/* Of n values, ascending, the one that so many percent do not exceed; 0: of none. */
double fs_percentile(const double *sorted, unsigned n, double percent);

/* A distribution of the paper's. */
struct fs_figure {
	unsigned number, trace;
	bool tail;         /* from 85 % on */
	bool small;        /* of jobs with FS_SMALL_GPUS */
	bool scaleup, inc; /* which reduces, too */
	const char *title;
};
enum { FS_FIGURES = 6 };
extern const struct fs_figure fs_figures[FS_FIGURES];

/* Percents at which a figure is drawn; *n of them. */
const double *fs_figure_percents(const struct fs_figure *f, unsigned *n);
/* Its seconds there. */
double fs_figure_at(const struct fs_figure *f, const struct fs_many *m, double percent);
/* The paper's, from its text; NAN: it has none there. */
double fs_figure_paper(const struct fs_figure *f, enum fs_setting setting, double percent);

#endif
