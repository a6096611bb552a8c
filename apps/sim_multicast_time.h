/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 10 of "multicast-based Broadcast and Allgather": barrier, multicast, the wait until the
 * cutoff, recovery and handshake of the rank that is ready last, and the time of all of it as the
 * simulator has it. */
#ifndef APPS_SIM_MULTICAST_TIME_H
#define APPS_SIM_MULTICAST_TIME_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* As sim_multicast. */
int sim_multicast_time(bool quick, uint64_t seed, json_t *rows);

#endif
