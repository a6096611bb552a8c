/* SPDX-License-Identifier: BSD-3-Clause */
/* What a folded Clos of full bisection takes, by arithmetic: section 2 of the MRC paper. */
#ifndef SIM_CLOS_H
#define SIM_CLOS_H

#include <stdint.h>

enum { SIM_CLOS_MAX_RADIX = 4096, SIM_CLOS_MAX_PLANES = 64, SIM_CLOS_MAX_TIERS = 5 };

/* radix: ports of a switch at the speed of the whole NIC, even. planes: into so many ports each of
 * these, and each NIC's, is split; every plane is a Clos of its own with switches of radix x planes
 * ports, and has a port of every NIC. */
struct sim_clos {
	unsigned radix, planes, tiers;
	uint64_t hosts;
	uint64_t switches; /* of all planes */
	uint64_t links;    /* of all planes, the NICs' too */
	/* Ends of links at the speed of the whole NIC: what optics and power go by. */
	double ends_per_host;
	double switches_per_host;
	uint64_t near;          /* hosts below one T0 */
	unsigned path_switches; /* of the longest path */
	double up_link_share;   /* of a T0's way up that is one link */
	double nic_link_share;  /* of a NIC that is one link */
};

/* -EINVAL: a radix that is odd, zero or above the limit, planes or tiers likewise. -ERANGE: more
 * than 2^48 hosts. Nothing is written then. */
int sim_clos_size(unsigned radix, unsigned planes, unsigned tiers, struct sim_clos *out);

/* Tiers that so many hosts need; 0: more than SIM_CLOS_MAX_TIERS, or no such radix. */
unsigned sim_clos_tiers(unsigned radix, unsigned planes, uint64_t hosts);

#endif
