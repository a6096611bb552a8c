/* SPDX-License-Identifier: BSD-3-Clause */
/* What a switch does now, of two reads of its counters: what "inclinectl top" shows. No I/O and no
 * clock. */
#ifndef APPS_INCLINECTL_RATES_H
#define APPS_INCLINECTL_RATES_H

#include "lib/ctl/schema.h"

enum { RATES_MAX_GROUPS = 64, RATES_MAX_WAITED_FOR = 16 };

/* Of an object. */
extern const struct ctl_field rates_result[];

/* A read is an object:
 *   "ns"       u64, when it was read; any clock that never goes back
 *   "time"     string, the same for people
 *   "status"   result of status
 *   "ports"    list of port.list
 *   "workers"  list of worker.list; absent if whoever asks may not know
 *   "groups"   list of group.list
 *   "waiting"  by a group's name, "waiting" of its group.show, if it waits
 *   "drops"    list of drops.get
 * New reference to an object as rates_result says, NULL if after is not later than before. What
 * cannot be told is absent: the rates of what was not there before, of a counter that began anew,
 * and all of them if the switch was started again in between. A counter that passed 2^64 goes on.
 */
json_t *rates_between(const json_t *before, const json_t *after);

/* How much a counter grew; -ERANGE: it began anew. */
int rates_grown(uint64_t before, uint64_t after, uint64_t *by);

/* To two digits, as it is printed. */
json_t *rates_number(double n);

#endif
