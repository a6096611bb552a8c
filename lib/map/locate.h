/* SPDX-License-Identifier: BSD-3-Clause */
/* What is broken, from what all agents see (MRC paper, section 3): probes to a T0 that come back
 * where those over it to a T1 do not point to the link between these two; the same T1 from every T0
 * points to the T1; a T0 from every host of its own, to the T0. Pure functions of flat arrays. */
#ifndef MAP_LOCATE_H
#define MAP_LOCATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/map/link.h"

enum { MAP_MAX_UPLINKS = 64, MAP_NOBODY = UINT16_MAX };

/* What one agent sees of one plane. */
struct map_seen {
	uint16_t host;  /* any number of the agent's own */
	uint16_t group; /* of hosts of one T0 */
	uint8_t plane;
	uint8_t t0;                  /* enum map_state: its way to the T0 and back */
	uint8_t t1[MAP_MAX_UPLINKS]; /* over the T0 to each T1 and back */
};

enum map_kind { MAP_HOST_LINK, MAP_T0, MAP_UPLINK, MAP_T1, MAP_N_KINDS };
const char *map_kind_name(enum map_kind kind); /* "host-link", "t0", "uplink", "t1" */

struct map_fault {
	uint8_t kind, plane;
	uint8_t state;        /* MAP_LOSSY or MAP_DEAD */
	bool sure;            /* false: what is behind it may be at fault as well: a switch
				 that only this link was seen of */
	uint16_t host, group; /* MAP_NOBODY where it does not apply */
	uint16_t uplink;      /* number of the T1 */
};

/* Sorts what was seen by plane, T0 and host; writes up to cap faults, plane by plane; returns how
 * many there are: asked with cap 0 first, fault may be NULL. A fault explains all that
 * lies behind it: uplinks of a T0 that no host reaches are not named. n_uplinks: at most
 * MAP_MAX_UPLINKS. Two links that are all that a switch was seen by are that switch. */
unsigned map_locate(struct map_seen *seen, unsigned n, unsigned n_uplinks, struct map_fault *fault,
	unsigned cap);

/* Whether a path meets one of the faults: from a host to another in this plane, over this uplink
 * (MAP_NOBODY: the hosts have one T0). For denylists of entropy values. */
struct map_path {
	uint8_t plane;
	uint16_t from, from_group, to, to_group, uplink;
};
bool map_denied(const struct map_fault *fault, unsigned n, const struct map_path *path);
/* Whether it meets this one. */
bool map_meets(const struct map_fault *fault, const struct map_path *path);

#endif
