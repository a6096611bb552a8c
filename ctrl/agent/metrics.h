/* SPDX-License-Identifier: BSD-3-Clause */
/* What a monitoring system reads of a switch: every counter and value that the control methods
 * show, under names that follow from theirs. */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include <stddef.h>

struct agent;

/* A page as of metrics_end. */
char *agent_metrics(struct agent *a, size_t *len);

#endif
