/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables and figures of incline-flowsim. All print to out, fill the JSON result, and return 0,
 * -EINVAL for what there is not, or another negative errno, having said why. */
#ifndef APPS_FLOWSIM_TABLES_H
#define APPS_FLOWSIM_TABLES_H

#include <jansson.h>
#include <stdio.h>

#include "lib/flowsim/paper.h"

struct flowsim_options {
	const char *json;
	FILE *out;
	struct fs_config config;
	unsigned slots; /* 0: the table's own */
	uint64_t sram;  /* 0: plenty */
	unsigned jobs, gpus, model;
	enum fs_setting setting;
	double load;
	bool quiet;
};

int flowsim_table(unsigned number, const struct flowsim_options *o, json_t *result);
int flowsim_figure(unsigned number, const struct flowsim_options *o, json_t *result);
int flowsim_job(const struct flowsim_options *o, json_t *result);

/* A row of what tools/plot draws; NAN: the paper has no figure there. */
void flowsim_row(json_t *rows, const char *solution, const char *at, double ours, double paper);
json_t *flowsim_begin(json_t *result, unsigned table, const char *title);

#endif
