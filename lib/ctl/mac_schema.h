/* SPDX-License-Identifier: BSD-3-Clause */
/* The mac.* methods of incline-switch: rows for ctl_switch_schema. */
#ifndef CTL_MAC_SCHEMA_H
#define CTL_MAC_SCHEMA_H

#include "lib/ctl/schema.h"

extern const struct ctl_field ctl_mac_none[], ctl_mac_list_result[];

enum { CTL_MAC_LIST_MAX = 1000 }; /* that are listed */

#define CTL_MAC_METHODS                                                                           \
	{                                                                                         \
		"mac.list", "macs",                                                               \
			"Lists the addresses that bridges know: learnt, and those of table mac.", \
			false, ctl_mac_none, ctl_mac_list_result                                  \
	}

#endif
