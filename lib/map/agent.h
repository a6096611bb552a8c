/* SPDX-License-Identifier: BSD-3-Clause */
/* One node's part of the map (MRC paper, section 3, "Clustermapper"): probes to its T0 in every
 * plane and back to itself, and over that T0 to every T1 and back. Switches forward them like any
 * packet, nobody answers them. What comes back, and when not, is noted by path (link.h). While the
 * way to the T0 is bad, those over it say nothing of T1s: what they lose is not noted.
 *
 * Takes packets and the time, gives packets: no clock, no port. One thread. */
#ifndef MAP_AGENT_H
#define MAP_AGENT_H

#include "lib/map/link.h"
#include "lib/srv6/paths.h"
#include "lib/wire/map_probe.h"

enum { MAP_RING = 1024, MAP_FRAME_LEN = 14 + 40 + MAP_PROBE_LEN, MAP_NO_UPLINK = UINT16_MAX };

struct map_config {
	uint32_t id;         /* of the agent, in its probes: what has another is not its own */
	uint32_t rate_hz;    /* probes per second and link */
	uint32_t share;      /* agents of this T0, which share that of its uplinks: 1 and more */
	uint64_t timeout_ns; /* after which a probe is lost */
	struct map_link_config link;
};
extern const struct map_config map_defaults;

struct map_target {
	uint8_t plane;   /* index in the paths' planes */
	uint16_t uplink; /* MAP_NO_UPLINK: to the T0 alone */
	struct wire_ip dst;
	struct map_link link;
	uint64_t interval_ns, next_ns;
	uint64_t skipped;          /* probes that were not sent, since no call came in their time */
	uint32_t next_seq, oldest; /* those between them are under way */
	struct {
		uint64_t sent_ns : 63, answered : 1;
	} ring[MAP_RING]; /* by sequence number */
};

struct map_agent {
	struct map_config config;
	uint16_t group; /* its T0's uSID without the plane: the same of all hosts of the T0 */
	unsigned n_planes, n_uplinks; /* uplinks: 0 if no row of its file leads over a T1 */
	uint64_t late, foreign;       /* answers after their time, or a second time; not ours */
	unsigned n;
	struct map_target target[]; /* plane by plane: T0, then its uplinks */
};

/* 0 and *a, to be freed with free(). -EINVAL with a text: no row of the file leads to the node
 * itself, its T0 has more than MAP_MAX_UPLINKS uplinks, a number of config is out of its bounds (a
 * path has at most MAP_RING probes under way). -ENOMEM. */
int map_agent_create(const struct srv6_paths *paths, const struct map_config *config,
	uint64_t now_ns, struct map_agent **a, char err[SRV6_ERR_LEN]);

/* To send a probe of a target; one that cannot be sent will be lost. */
typedef void (*map_send_fn)(
	void *arg, const struct map_target *t, const uint8_t payload[MAP_PROBE_LEN]);
/* Sends what is due, and takes for lost what is. Returns the time of the next such call; earlier
 * ones do no harm. A call that comes late sends one probe per path, not those that it has missed:
 * these are skipped, and the next ones are due when they always were. */
uint64_t map_agent_turn(struct map_agent *a, uint64_t now_ns, map_send_fn send, void *arg);

/* A packet of this plane (index), from its IPv6 header on, len bytes: whether it was a probe of
 * ours that was under way. Nothing else has any effect but on a counter. */
bool map_agent_receive(
	struct map_agent *a, uint64_t now_ns, unsigned plane, const uint8_t *ip6, size_t len);

/* A probe's frame: MAP_FRAME_LEN bytes. Traffic class 0: what data has. */
void map_frame(const uint8_t dmac[6], const uint8_t smac[6], const struct wire_ip *src,
	const struct wire_ip *dst, const uint8_t payload[MAP_PROBE_LEN],
	uint8_t out[MAP_FRAME_LEN]);

static inline const struct map_target *map_agent_target(
	const struct map_agent *a, unsigned plane, uint16_t uplink)
{
	return &a->target[plane * (1 + a->n_uplinks) + (uplink == MAP_NO_UPLINK ? 0 : 1 + uplink)];
}

#endif
