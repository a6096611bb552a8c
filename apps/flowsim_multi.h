/* SPDX-License-Identifier: BSD-3-Clause */
/* Many jobs on 2048 GPUs: EPIC's tables 44 and 45, figures 16 and 20 to 24. */
#ifndef APPS_FLOWSIM_MULTI_H
#define APPS_FLOWSIM_MULTI_H

#include "apps/flowsim_tables.h"

int flowsim_means(const struct flowsim_options *o, json_t *result);
int flowsim_small_jobs(const struct flowsim_options *o, json_t *result);

/* Says each pair of settings whose order is not the paper's; returns how many. */
unsigned flowsim_orders(
	FILE *out, const char *at, const double ours[FS_SETTINGS], const double paper[FS_SETTINGS]);

#endif
