/* SPDX-License-Identifier: BSD-3-Clause */
/* The neigh.* methods of incline-switch: rows for ctl_switch_schema. */
#ifndef CTL_NEIGH_SCHEMA_H
#define CTL_NEIGH_SCHEMA_H

#include "lib/ctl/schema.h"

extern const struct ctl_field ctl_neigh_none[], ctl_neigh_list_result[];

enum { CTL_NEIGH_LIST_MAX = 1000 }; /* that are listed */

#define CTL_NEIGH_METHODS                                                                      \
	{                                                                                      \
		"neigh.list", "neighbours",                                                    \
			"Lists the neighbours that have been learnt; those of table neigh go " \
			"before.",                                                             \
			false, ctl_neigh_none, ctl_neigh_list_result                           \
	}

#endif
