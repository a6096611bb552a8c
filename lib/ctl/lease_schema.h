/* SPDX-License-Identifier: BSD-3-Clause */
/* The lease.* methods of incline-switch: rows for ctl_switch_schema. */
#ifndef CTL_LEASE_SCHEMA_H
#define CTL_LEASE_SCHEMA_H

#include "lib/ctl/schema.h"

extern const struct ctl_field ctl_lease_none[], ctl_lease_params[], ctl_lease_acquire_result[],
	ctl_lease_release_result[], ctl_lease_list_result[];

#define CTL_LEASE_METHODS                                                                         \
	{"lease.acquire", "lease acquire",                                                        \
		"Gives a tenant's groups the memory of a lease, if nobody else has it.", true,    \
		ctl_lease_params, ctl_lease_acquire_result, CTL_TCP_OWN},                         \
		{"lease.release", "lease release",                                                \
			"Takes it from them again, between operations.", true, ctl_lease_params,  \
			ctl_lease_release_result, CTL_TCP_OWN},                                   \
	{                                                                                         \
		"lease.list", "lease list", "Lists the leases: who holds them, counters.", false, \
			ctl_lease_none, ctl_lease_list_result                                     \
	}

#endif
