/* SPDX-License-Identifier: BSD-3-Clause */
/* EPIC's flow simulations (tables 6 and 36 to 45): its settings, its figures, and ours. */
#ifndef FLOWSIM_PAPER_H
#define FLOWSIM_PAPER_H

#include "lib/flowsim/flowsim.h"

enum fs_setting { FS_RING, FS_EDT, FS_SPATIAL, FS_TEMPORAL, FS_SETTINGS };

const char *fs_setting_name(enum fs_setting setting);
const struct mgr_policy *fs_setting_policy(enum fs_setting setting); /* NULL: rings */

enum { FS_UNITS = 4, FS_SINGLES = 8, FS_ITERATIONS = 3, FS_SINGLE_GPUS = 128 };

/* One job on 128 GPUs, seconds of three iterations by setting and groups per switch. Table 6 is
 * cut out of 36 and 40. */
struct fs_single {
	unsigned table, model;
	bool scaleup;
	double paper[FS_SETTINGS][FS_UNITS];
};
extern const unsigned fs_units[FS_UNITS];
extern const struct fs_single fs_singles[FS_SINGLES];

/* The paper's cell as it would print this: as many digits. */
double fs_as_printed(double seconds, double paper);

/* All of a trace on a fabric. *out: one per job, the caller's, freed with free. 0, or what
 * fs_sim_new and fs_sim_step return; err says why. each, if any, is called now and then, with the
 * number of jobs that have ended. */
int fs_run_jobs(const struct fs_shape *shape, const struct fs_config *config,
	const struct fs_job *job, unsigned n, struct fs_result **out, struct fs_totals *totals,
	void (*each)(void *arg, unsigned ended), void *arg, char err[FS_ERR_LEN]);

/* Seconds of one cell. */
int fs_run_single(const struct fs_single *t, enum fs_setting setting, unsigned slots,
	const struct fs_config *options, double *seconds, struct fs_totals *totals,
	char err[FS_ERR_LEN]);

/* Many jobs on 2048 GPUs: tables 44 and 45, mean seconds by setting. */
enum { FS_MULTIS = 3 };
extern const double fs_paper_mean[FS_MULTIS][FS_SETTINGS];
extern const double fs_paper_small[2][FS_SETTINGS]; /* jobs of 8 GPUs, trace 2; with scale-up */
/* Trace 3 is trace 2 on half the cores. */
const struct fs_shape *fs_multi_shape(unsigned trace);
unsigned fs_multi_trace(unsigned trace);

#endif
