/* SPDX-License-Identifier: BSD-3-Clause */
/* What multicast Broadcast and AllGather save, from the simulated switches' port counters beside
 * the figures of "multicast-based Broadcast and Allgather". */
#ifndef APPS_SIM_MULTICAST_H
#define APPS_SIM_MULTICAST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* "traffic" (figures 2, 12): bytes at all ports of all switches, against what hosts do between
 * themselves; "throughput" (figure 11): what a rank receives, median and range of several runs
 * whose ranks come at other times; "fsdp" (appendix B): AllGather by multicast and ReduceScatter in
 * the switches at the same time, against two rings, 4 to 64 ranks; "time" (figure 10): where that
 * of a collective goes. quick: the small ones only. Prints, and adds "rows" to result. 0, or
 * -errno: -EINVAL no such table. */
int sim_multicast(const char *what, bool quick, uint64_t seed, json_t *result);

#endif
