/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch's own RNIC, which Mode-I groups connect to (docs/inc-protocol.md, section 5). The
 * worker feeds it frames and sends what it wants sent; the control plane makes and removes
 * connections. Both own the device in turn, by its lock: the worker for a burst of packets, the
 * control plane for a queue pair or a few dozen receives at a time, and the worker has a turn after
 * each: a large group does not stop it. Without Mode-I groups the
 * worker only looks at one counter per turn. */
#ifndef DATAPLANE_SWITCH_RNIC_H
#define DATAPLANE_SWITCH_RNIC_H

#include <pthread.h>
#include <stdatomic.h>

#include "dataplane/inc/mode1.h"

struct worker;
struct sw;

struct sw_rnic {
	pthread_mutex_t lock; /* of everything but active */
	struct mode1_device *dev;
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

/* Reads counters: fn(arg, name, text, count) as sw_values. */
void sw_rnic_values(struct sw *sw,
	void (*fn)(void *arg, const char *name, const char *text, uint64_t value), void *arg);

/* node_rnic.c, for the loop of the worker: timers, and all that the device has to send. Returns
 * when it is to be called again at the latest. */
uint64_t rnic_turn(struct worker *w);

#endif
