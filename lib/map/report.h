/* SPDX-License-Identifier: BSD-3-Clause */
/* A map in JSON and as a picture: what an agent writes of itself, and what is made of several. */
#ifndef MAP_REPORT_H
#define MAP_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "lib/map/agent.h"
#include "lib/map/locate.h"

enum { MAP_ERR_LEN = 200 };

/* What an agent has seen: {"host", "address", "group", "uplinks", "sent", "skipped", "rate_hz",
 * "planes": [{"plane", "t0": PATH, "t1": [PATH...]}]}, a path is {"state", "answered", "lost",
 * "flaps"}. sent: probes, so that no two reports of an agent at work are alike; skipped: that it
 * was too late for; rate_hz: aimed at, of each link. NULL: no memory. */
json_t *map_agent_json(const struct map_agent *a, const struct srv6_paths *paths);

/* How fast an agent goes. rate_hz 0: it did not say. */
struct map_pace {
	uint32_t rate_hz;
	uint64_t sent, skipped;
};

/* The agents of a fabric. */
struct map {
	unsigned n_hosts, n_seen, n_uplinks, n_faults;
	char (*host)[SRV6_NAME_LEN]; /* by number */
	struct wire_ip *address;     /* of each; zeros: it did not say */
	uint16_t *group;
	struct map_pace *pace;
	struct map_seen *seen; /* by plane, T0, host */
	struct map_fault *fault;
};
/* Of a list of what map_agent_json gives; one of them that is bad, by its name (of as many names:
 * its file's; NULL: by its number), its field and the limit in err: -EINVAL. -ENOMEM. */
int map_join(
	const json_t *agents, const char *const *name, struct map **map, char err[MAP_ERR_LEN]);
void map_free(struct map *map);

/* {"hosts": [{"name", "t0", "rate_hz"?, "sent"?, "skipped"?}], "planes", "faults": [{"kind",
 * "plane", "state", "sure", "host"?, "t0"?, "t1"?}]}. */
json_t *map_json(const struct map *map);
/* Entropy values that a host shall not use to another: {HOST: {HOST: [EV...]}}, of every two hosts
 * that have any; the numbers of T0s and T1s are those of groups and uplinks. */
json_t *map_denylist(const struct map *map, unsigned plane_shift);
void map_print(const struct map *map, FILE *out);

#endif
