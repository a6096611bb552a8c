/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of events that a switch notes and tells (event.list, event.subscribe). */
#ifndef CTL_EVENT_H
#define CTL_EVENT_H

enum ctl_event {
	CTL_PORT_UP,
	CTL_PORT_DOWN,
	CTL_GROUP_FAILED,
	CTL_GROUP_STALLED,
	CTL_RING_FAILED,
	CTL_RING_STALLED,
	CTL_LEASE_LOST,
	CTL_MEMORY_LOW,
	CTL_EVENTS
};

/* As `kind` has them; NULL behind the last. */
extern const char *const ctl_event_names[CTL_EVENTS + 1];
/* CTL_EVENTS: no such kind, or NULL. */
enum ctl_event ctl_event_find(const char *name);

#endif
