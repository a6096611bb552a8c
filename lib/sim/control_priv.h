/* SPDX-License-Identifier: BSD-3-Clause */
/* Control connections inside the simulator. */
#ifndef SIM_CONTROL_PRIV_H
#define SIM_CONTROL_PRIV_H

#include "lib/ctl/client_io.h"
#include "lib/sim/control.h"

int sim_control_open(struct sim *sim);
void sim_control_close(struct sim *sim);

/* For ccl_group.io; sockets are "sim:" and the switch's number. Not for use inside an app: it waits
 * by running the simulation. */
const struct ctl_io *sim_control_io(struct sim *sim);
uint64_t sim_control_timeout(const struct sim *sim); /* 0: CommLib's own */

/* sim.c: sim_control_turn is to be called at that time. */
void sim_control_event(struct sim *sim, uint64_t at);
/* All that is due: messages, and the agents' housekeeping. */
void sim_control_turn(struct sim *sim);

#endif
