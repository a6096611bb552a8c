/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/event.h"

#include <string.h>

const char *const ctl_event_names[CTL_EVENTS + 1] = {
	[CTL_PORT_UP] = "port_up",
	[CTL_PORT_DOWN] = "port_down",
	[CTL_GROUP_FAILED] = "group_failed",
	[CTL_GROUP_STALLED] = "group_stalled",
	[CTL_RING_FAILED] = "ring_failed",
	[CTL_RING_STALLED] = "ring_stalled",
	[CTL_LEASE_LOST] = "lease_lost",
	[CTL_MEMORY_LOW] = "memory_low",
};

enum ctl_event ctl_event_find(const char *name)
{
	for (int i = 0; name && i < CTL_EVENTS; i++)
		if (!strcmp(ctl_event_names[i], name))
			return i;
	return CTL_EVENTS;
}
