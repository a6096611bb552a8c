/* SPDX-License-Identifier: BSD-3-Clause */
/* The mcast.* methods of incline-switch: rows for ctl_switch_schema. */
#ifndef CTL_MCAST_SCHEMA_H
#define CTL_MCAST_SCHEMA_H

#include "lib/ctl/schema.h"

extern const struct ctl_field ctl_mcast_none[], ctl_mcast_members_result[];

enum { CTL_MCAST_MEMBERS_MAX = 1000 }; /* that are listed */

#define CTL_MCAST_METHODS                                                                      \
	{                                                                                      \
		"mcast.members", "mcast members",                                              \
			"Lists the members of multicast groups that have been learnt.", false, \
			ctl_mcast_none, ctl_mcast_members_result                               \
	}

#endif
