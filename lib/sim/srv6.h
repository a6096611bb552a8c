/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths through the planes of a Clos (topo.h, planes:), as uSIDs: block fcbb:bb00::/32; a switch or
 * a port of a host has the uSID plane:4, role:2, index:10 (docs/mrc.md, 8.4). The role is T0, T1 or
 * a host's link, whose index counts the hosts of a T0. The EV of a path: plane << 8 | number of the
 * T1 in it. */
#ifndef SIM_SRV6_H
#define SIM_SRV6_H

#include "lib/mrc/transport.h"
#include "lib/sim/sim.h"

/* Different paths from one host to another: T1s of all planes, or planes if they share their T0s.
 */
unsigned sim_srv6_n_paths(const struct sim *sim, unsigned from, unsigned to);

/* n of them, drawn at random, the same number in each plane; all paths if n is 0. -EINVAL: not a
 * multiple of the planes, more than there are, or no topology of planes. active: of them, as in
 * rnic_mrc_paths. */
int sim_srv6_paths(const struct sim *sim, unsigned from, unsigned to, unsigned n, unsigned active,
	uint64_t seed, struct rnic_mrc_paths *paths);

#endif
