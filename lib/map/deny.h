/* SPDX-License-Identifier: BSD-3-Clause */
/* Which paths to a host a controller has MRC leave out, by one map after the other (MRC paper, 2.4
 * and 4: denylists).
 *
 * A path is denied once a fault of the map lies on one of its parts, and comes back when agents see
 * each of these parts good again; of a part that has flapped they take long to say so (link.h).
 * What nobody sees any more is neither bad nor good: a denial that no map has confirmed for hold_ns
 * ends, and without a map nothing new is denied. Whatever a map says, some paths are left: MRC
 * finds out by itself, and a map that is wrong does not end a connection.
 *
 * No I/O and no clock: times are nanoseconds, passed in, not decreasing. One owner. */
#ifndef MAP_DENY_H
#define MAP_DENY_H

#include "lib/map/report.h"

enum { MAP_DENY_EVS = 256 };

struct map_deny_config {
	uint64_t hold_ns; /* more than 0 */
	unsigned keep;    /* paths that are left in any case, at least 1 */
};
extern const struct map_deny_config map_deny_defaults;

/* Parts of a path that can be bad one without the other, a bit each. */
enum map_part {
	MAP_PART_FROM_LINK, /* the host's link to its T0 */
	MAP_PART_FROM_T0,
	MAP_PART_FROM_UPLINK, /* from that T0 to the T1 */
	MAP_PART_T1,
	MAP_PART_TO_UPLINK,
	MAP_PART_TO_T0,
	MAP_PART_TO_LINK,
	MAP_N_PARTS
};

struct map_deny_ev {
	uint32_t ev;
	struct wire_ip address; /* of the path, by the file of paths */
	uint8_t plane, bad;     /* number; parts, a bit each */
	uint16_t uplink;        /* MAP_NOBODY: it leads over one T0 */
	bool dead;              /* a part that is bad lets nothing through */
	bool denied, changed;   /* changed: by the last turn */
	uint64_t confirmed_ns;  /* when a map last said that a part of it is bad */
};

struct map_deny {
	struct map_deny_config config;
	struct wire_ip from, to; /* addresses of the hosts */
	uint16_t from_group, to_group;
	unsigned n, n_denied;
	uint64_t denials, returns; /* so far */
	struct map_deny_ev ev[MAP_DENY_EVS];
};

/* All paths of the file to a host, none of them denied. -EINVAL with a text: the file has no path
 * to it, more than MAP_DENY_EVS, or one that is not T0 (T1, T0) and host; a number of config is out
 * of its bounds. */
int map_deny_init(struct map_deny *d, const struct map_deny_config *config,
	const struct srv6_paths *paths, const struct wire_ip *to, char err[MAP_ERR_LEN]);

/* Takes a map, NULL if there is none now. Returns how many paths have changed. */
unsigned map_deny_turn(struct map_deny *d, const struct map *map, uint64_t now_ns);

#endif
