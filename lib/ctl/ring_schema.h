/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring.* methods of incline-switch: rows for ctl_switch_schema. */
#ifndef CTL_RING_SCHEMA_H
#define CTL_RING_SCHEMA_H

#include "lib/ctl/schema.h"

extern const struct ctl_field ctl_ring_create_params[], ctl_ring_create_result[],
	ctl_ring_activate_params[], ctl_ring_state_result[], ctl_ring_params[],
	ctl_ring_list_result[], ctl_ring_show_result[];

#define CTL_RING_METHODS                                                                         \
	{"ring.create", NULL, "Installs a NetReduce ring.", true, ctl_ring_create_params,        \
		ctl_ring_create_result, CTL_TCP_OWN},                                            \
		{"ring.activate", NULL, "Starts an installed ring.", true,                       \
			ctl_ring_activate_params, ctl_ring_state_result, CTL_TCP_OWN},           \
		{"ring.fail", "ring fail",                                                       \
			"Fails a ring: nothing is summed any more, its ranks are told.", true,   \
			ctl_ring_params, ctl_ring_state_result, CTL_TCP_OWN},                    \
		{"ring.delete", "ring delete", "Removes a ring: its connections are forwarded.", \
			true, ctl_ring_params, ctl_ring_state_result, CTL_TCP_OWN},              \
		{"ring.list", "ring list", "Lists the NetReduce rings.", false, ctl_ring_none,   \
			ctl_ring_list_result},                                                   \
	{                                                                                        \
		"ring.show", "ring show",                                                        \
			"Shows a ring: connections, counters, who is waited for.", false,        \
			ctl_ring_params, ctl_ring_show_result, CTL_TCP_OWN                       \
	}

extern const struct ctl_field ctl_ring_none[];

#endif
