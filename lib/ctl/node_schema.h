/* SPDX-License-Identifier: BSD-3-Clause */
/* What a manager asks of a switch beside groups: rows for ctl_switch_schema. */
#ifndef CTL_NODE_SCHEMA_H
#define CTL_NODE_SCHEMA_H

#include "lib/ctl/schema.h"

enum { CTL_MAX_JOB = 31 };

extern const struct ctl_field ctl_node_none[], ctl_hello_result[], ctl_lldp_result[],
	ctl_event_list_params[], ctl_event_list_result[], ctl_event_subscribe_result[],
	ctl_epoch_end_params[], ctl_epoch_end_result[], ctl_epoch_list_result[];

/* Of an event, also as a notification's parameters. */
extern const struct ctl_field ctl_event_fields[];

#define CTL_NODE_METHODS                                                                           \
	{"node.hello", "node",                                                                     \
		"Tells what a manager has to know of the switch: which start of the program this " \
		"is, what it offers, its ports and neighbours, its memory.",                       \
		false, ctl_node_none, ctl_hello_result, CTL_TCP_ANY},                              \
		{"lldp.list", "lldp",                                                              \
			"Lists who is at the other end of ports, as LLDP tells it (\"lldp\" of "   \
			"the start-up file).",                                                     \
			false, ctl_node_none, ctl_lldp_result},                                    \
		{"event.list", "events",                                                           \
			"Lists what has happened, as far as it is kept; events -f goes on with "   \
			"what happens.",                                                           \
			false, ctl_event_list_params, ctl_event_list_result},                      \
		{"event.subscribe", NULL,                                                          \
			"Has the switch tell this connection of every event from now on, by a "    \
			"notification \"event\".",                                                 \
			false, ctl_node_none, ctl_event_subscribe_result},                         \
		{"epoch.end", "epoch end",                                                         \
			"Ends an epoch of a job and all before it: their groups fail or are "      \
			"removed, and none can be made any more.",                                 \
			true, ctl_epoch_end_params, ctl_epoch_end_result},                         \
	{                                                                                          \
		"epoch.list", "epoch list", "Lists jobs by epoch: what the switch has of them.",   \
			false, ctl_node_none, ctl_epoch_list_result                                \
	}

#endif
