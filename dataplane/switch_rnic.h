/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch's own RNIC, which Mode-I groups connect to (docs/inc-protocol.md, section 5). It is
 * worker 0's: that feeds it frames and sends what it wants sent, and other workers hand its packets
 * over. What the control plane has to do to it, the same worker does between two turns (mailbox.h):
 * one queue pair or a few dozen receives at a time, so that a large group does not stop it. Without
 * Mode-I groups the worker only looks at one counter per turn. */
#ifndef DATAPLANE_SWITCH_RNIC_H
#define DATAPLANE_SWITCH_RNIC_H

#include <stdatomic.h>

#include "dataplane/inc/mode1.h"
#include "dataplane/switch.h"

struct worker;
struct sw;

/* Whose it is. */
enum { RNIC_WORKER = 0 };

struct sw_rnic {
	struct mode1_device *dev; /* the worker's, as everything but active */
	struct mode1 *of_slot[INC_GROUP_SLOTS];
	atomic_uint active; /* groups */
	uint64_t parts;     /* in which groups were connected */
};

/* After the arena and the ports. err as everywhere in switch.h. */
int sw_rnic_create(struct sw *sw, char *err);
void sw_rnic_destroy(struct sw *sw);

/* For a group of mode INC_MODE_1 in this slot; as mode1_create, mode1_connect and so on. Groups of
 * other modes are passed over by all but the first two. */
int sw_rnic_make(struct sw *sw, struct inc_group *g, char *err);
int sw_rnic_connect(struct sw *sw, struct inc_group *g, char *err);
void sw_rnic_stop(struct sw *sw, const struct inc_group *g);
void sw_rnic_remove(struct sw *sw, const struct inc_group *g);

/* Reads counters, as sw_values. */
void sw_rnic_values(struct sw *sw, sw_value_fn fn, void *arg);

/* node_rnic.c, for the loop of the worker: timers, and all that the device has to send. Returns
 * when it is to be called again at the latest. */
uint64_t rnic_turn(struct worker *w);

#endif
