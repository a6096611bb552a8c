/* SPDX-License-Identifier: BSD-3-Clause */
/* The group.* methods of incline-switch: rows for ctl_switch_schema. */
#ifndef CTL_GROUP_SCHEMA_H
#define CTL_GROUP_SCHEMA_H

#include "lib/ctl/schema.h"

extern const struct ctl_field ctl_group_none[], ctl_group_create_params[],
	ctl_group_create_result[], ctl_group_activate_params[], ctl_group_state_result[],
	ctl_group_rebind_params[], ctl_group_rebind_result[], ctl_group_resync_params[],
	ctl_group_resync_result[], ctl_group_move_params[], ctl_group_move_result[],
	ctl_group_delete_params[], ctl_group_params[], ctl_group_list_result[],
	ctl_group_show_params[], ctl_group_show_result[];

#define CTL_GROUP_METHODS                                                                         \
	{"group.create", NULL, "Installs an INC group.", true, ctl_group_create_params,           \
		ctl_group_create_result, CTL_TCP_OWN},                                            \
		{"group.activate", NULL, "Starts an installed group.", true,                      \
			ctl_group_activate_params, ctl_group_state_result, CTL_TCP_OWN},          \
		{"group.rebind", "group rebind",                                                  \
			"Gives a group aggregation memory or takes it away, between operations.", \
			true, ctl_group_rebind_params, ctl_group_rebind_result, CTL_TCP_OWN},     \
		{"group.resync", "group resync",                                                  \
			"Makes a group ready for queue pairs that begin anew, between "           \
			"operations.",                                                            \
			true, ctl_group_resync_params, ctl_group_resync_result, CTL_TCP_OWN},     \
		{"group.move", "group move", "Gives a group to another worker, while it works.",  \
			true, ctl_group_move_params, ctl_group_move_result},                      \
		{"group.delete", "group delete", "Removes a group, by default after draining.",   \
			true, ctl_group_delete_params, ctl_group_state_result, CTL_TCP_OWN},      \
		{"group.fail", "group fail", "Marks a group as failed: its members are told.",    \
			true, ctl_group_params, ctl_group_state_result, CTL_TCP_OWN},             \
		{"group.list", "group list", "Lists the groups.", false, ctl_group_none,          \
			ctl_group_list_result},                                                   \
	{                                                                                         \
		"group.show", "group show",                                                       \
			"Shows a group: endpoints, counters, who is waited for.", false,          \
			ctl_group_show_params, ctl_group_show_result, CTL_TCP_OWN                 \
	}

#endif
