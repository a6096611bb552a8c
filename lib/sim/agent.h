/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent of a simulated switch: the handlers of ctrl/agent, the books of dataplane (groups.c,
 * rings.c, leases.c), hosted by the simulator. It is made when it is first needed. */
#ifndef SIM_AGENT_H
#define SIM_AGENT_H

#include "ctrl/agent/agent.h"
#include "lib/sim/priv.h"

struct sim_agent;
struct nr_clt;

/* -ENOMEM. */
int sim_agent_open(struct sim *sim, unsigned sw);
/* Everything that is installed goes with it. */
void sim_agent_close(struct sim_agent *agent);

/* A request, without its newline: the answer, to be freed, or NULL. peer: of its connection. */
char *sim_agent_request(
	struct sim_agent *agent, struct agent_peer *peer, const char *line, size_t len);
void sim_agent_peer_gone(struct sim_agent *agent, struct agent_peer *peer);

/* Housekeeping that is due; when there will be more, or UINT64_MAX. */
uint64_t sim_agent_tick(struct sim_agent *agent);

/* ---- switch_ring.c: NetReduce ---- */

/* Registered connections; NULL: there are none. */
const struct nr_clt *sim_agent_clt(const struct sim_agent *agent);

#endif
