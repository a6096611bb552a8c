/* SPDX-License-Identifier: BSD-3-Clause */
/* Max-min fair rates of flows over links (water-filling): all rates rise together, those over a
 * link that is full stay where they are. A flow is fluid and may go over many links at once, over
 * one of them several times: a ring of hosts is one, as is a tree, for all its parts keep one pace.
 *
 * Only what hangs together with a change, by common links, is worked out again. Deterministic: the
 * same calls in the same order give the same rates to the last bit. Heap; one owner, no clock. */
#ifndef FLOWSIM_WATERFILL_H
#define FLOWSIM_WATERFILL_H

#include <stdbool.h>

enum { FS_MAX_FLOWS = 1 << 20, FS_MAX_FLOW_LINKS = 1 << 20 };

struct fs_water;

/* Links of no capacity; set it before flows go over them. NULL without memory. */
struct fs_water *fs_water_new(unsigned n_links);
void fs_water_free(struct fs_water *w);

/* In any unit, which is then the rates'. -ERANGE: no such link, or it is not above 0. */
int fs_water_capacity(struct fs_water *w, unsigned link, double capacity);

/* Returns the flow, an index that may be used again when it is gone. A link that is named n times
 * carries it n times. -EINVAL: no links; -ERANGE: no such link, or one without a capacity; -ENOSPC;
 * -ENOMEM. Its rate is 0 until fs_water_settle. */
int fs_water_add(struct fs_water *w, const unsigned *link, unsigned n);
/* -ENOENT: no such flow. */
int fs_water_remove(struct fs_water *w, int flow);

/* Works out what has changed; *changed lists the flows whose rates may be others now, until the
 * next call. Returns how many, or -ENOMEM: nothing was worked out. */
int fs_water_settle(struct fs_water *w, const int **changed);

double fs_water_rate(const struct fs_water *w, int flow);

/* Flows over a link, each as often as it goes over it; their rates together. */
unsigned fs_water_load(const struct fs_water *w, unsigned link);
double fs_water_used(const struct fs_water *w, unsigned link);

#endif
