/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric of planes for agents, on virtual time: parts of it can be dead, or lose packets. What a
 * probe meets is read off its address, uSID by uSID, as switches do. */
#ifndef MAP_TEST_FABRIC_H
#define MAP_TEST_FABRIC_H

#include "lib/map/agent.h"
#include "lib/map/locate.h"
#include "lib/map/report.h"
#include "map_test.h"

enum { F_PLANES = 2, F_T0 = 3, F_T1 = 3, F_DOWN = 2, F_HOSTS = F_T0 * F_DOWN };

struct fabric {
	/* Of 1000 packets: those that a part loses. */
	unsigned host_link[F_PLANES][F_HOSTS], t0[F_PLANES][F_T0], uplink[F_PLANES][F_T0][F_T1],
		t1[F_PLANES][F_T1];
	uint64_t now_ns, rng;
	struct srv6_paths *paths[F_HOSTS];
	struct map_agent *agent[F_HOSTS];
	unsigned of; /* the host whose turn it is */
	uint64_t sent;
};

struct fabric *fabric_start(const struct map_config *config);
void fabric_stop(struct fabric *f);
/* Lets it run; an answer comes after 50 us. */
void fabric_run(struct fabric *f, uint64_t ns);
/* What all agents see now. */
unsigned fabric_seen(const struct fabric *f, struct map_seen seen[F_HOSTS * F_PLANES]);
unsigned fabric_locate(const struct fabric *f, struct map_fault *fault, unsigned cap);

#endif
