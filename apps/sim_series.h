/* SPDX-License-Identifier: BSD-3-Clause */
/* What went over links, and was acknowledged to flows, from one point in time to the next. */
#ifndef APPS_SIM_SERIES_H
#define APPS_SIM_SERIES_H

#include <jansson.h>

#include "lib/sim/rdma.h"

struct series;

/* Samples every so many nanoseconds of virtual time from now on. NULL: no memory. */
struct series *series_start(struct sim *sim, uint64_t every_ns);
/* The flows of what runs next, n of them; they must stay until series_flows is called again, with
 * NULL if there are none any more. */
void series_flows(struct series *s, const struct sim_flow *flow, unsigned n);
/* {"every_ns", "at_ns": [..], "links": {name: [bytes, ..]}, "flows": [{"from", "to", "bytes":
 * [..]}]} with a value per sample; links over which nothing went are left out. Frees. */
json_t *series_finish(struct series *s);

#endif
