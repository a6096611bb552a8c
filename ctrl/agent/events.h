/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to a switch without being asked for: links, groups, rings, leases and memory are
 * looked at with each tick, and what has changed is written down, the last EVENT_KEPT of it.
 * Subscribers read from there at their own pace: one that is too slow is told how many it has
 * missed. */
#ifndef AGENT_EVENTS_H
#define AGENT_EVENTS_H

#include <jansson.h>
#include <stdio.h>

#include "ctrl/agent/epochs.h"

enum { EVENT_KEPT = 256 };

struct events {
	json_t *kept[EVENT_KEPT];
	uint64_t next;
	bool looked; /* once: what follows is as it was then */
	bool link[SW_MAX_PORTS];
	struct event_group {
		uint8_t gen, state;
		bool there, stalled;
	} group[INC_GROUP_SLOTS], ring[NR_MAX_RINGS];
	uint64_t taken_back[SW_MAX_LEASES];
	bool low;      /* of memory, since it was last not */
	uint64_t said; /* events_say's next */
};

/* Looks around. */
void events_tick(struct events *ev, struct sw *sw, const struct epochs *epochs, uint64_t now);
/* From *from on, at most EVENT_KEPT (new references in a new list); *from is then the next, *lost
 * how many of those from *from on are not kept any more. */
json_t *events_list(const struct events *ev, uint64_t *from, uint64_t *lost);
/* The next for a subscriber, as a line without newline to be freed; NULL: none. */
char *events_line(const struct events *ev, uint64_t *from);
/* What has happened since the last call goes to the operator's journal, a line each after the
 * switch's name: links, and groups that fail. Of rings, leases and stalls the switch itself says
 * more than an event has. */
void events_say(struct events *ev, const char *name, FILE *out);
void events_free(struct events *ev);

#endif
