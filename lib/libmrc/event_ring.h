/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of EVs that wait for a controller (mrc_ctl.h). A ring that never overruns: what does not
 * fit is counted, and the next event that is delivered says how many were lost before it. One
 * caller at a time. */
#ifndef LIBMRC_EVENT_RING_H
#define LIBMRC_EVENT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/libmrc/mrc_ctl.h"

/* Elements of a program's array, by the version that it is written for. */
enum { EVENT_STRIDE_100 = 48, EVENT_STRIDE = sizeof(struct mrc_ctl_ev_event) };

struct event_ring {
	struct mrc_ctl_ev_event *slot;
	uint32_t size, head, tail; /* the counters run free */
	uint32_t lost;             /* since the last one that went in */
};

/* size: 1 to 2^20 events. -EINVAL, -ENOMEM. */
int event_ring_init(struct event_ring *r, int size);
void event_ring_fini(struct event_ring *r);

/* False: it was lost. */
bool event_ring_put(struct event_ring *r, uint64_t profile_id, const struct mrc_ctl_ev *ev,
	enum mrc_ctl_ev_state state);
/* Up to n events into an array of elements of stride bytes; returns their number. */
int event_ring_take(struct event_ring *r, void *array, size_t stride, int n);

/* The stride for what a program has said to mrc_create_context; 0: it has said nothing. */
size_t event_stride(uint32_t api_version);

#endif
