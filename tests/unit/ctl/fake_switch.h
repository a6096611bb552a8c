/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch without packets behind dataplane/switch.h: two ports, three tables, real group blocks.
 * What it was told can be looked at, and what it answers can be set. */
#ifndef FAKE_SWITCH_H
#define FAKE_SWITCH_H

#include <jansson.h>

#include "dataplane/switch.h"

enum { FAKE_LEASES = 8, FAKE_MEMBERS = 32 };

struct fake_lease {
	char name[INC_NAME_LEN], holder[INC_NAME_LEN];
	uint64_t bytes;
	unsigned members; /* 0: it is not there */
};

struct fake_member {
	unsigned slot;
	struct fake_lease *lease; /* NULL: nobody */
	char tenant[INC_NAME_LEN];
};

struct sw {
	struct table_registry *tables;
	struct inc_group *group[INC_GROUP_SLOTS];
	unsigned worker[INC_GROUP_SLOTS]; /* that owns it */
	json_t *config;
	unsigned ticks, publishes;
	uint64_t now;      /* its clock, 0: the machine's */
	uint64_t turns[2]; /* of its workers */
	unsigned refuse;   /* publishes are refused from this one on, 0: never */
	uint64_t drops[3];
	bool unplugged;             /* no port has a link, else the first has one */
	unsigned n_ports;           /* 0: two; else so many, all with a link */
	uint32_t mbps;              /* of the first port, 0: it does not say */
	uint64_t cut;               /* but these, a bit each */
	char chassis[SW_LLDP_TEXT]; /* that it says by LLDP, "": that is off; and who is heard */
	struct sw_lldp_info heard[SW_MAX_PORTS];
	uint64_t arena;           /* bytes of memory, 0: 64 KiB, of which one is taken */
	uint64_t taken_back;      /* more often than shown at first */
	int trace_port, impaired; /* impaired: a port, or -1 */
	unsigned trace_count;
	uint32_t capture[SW_MAX_CAPTURES]; /* ids; 0: free */
	uint32_t last_capture;
	struct sw_capture_spec capture_spec; /* of the last one, without its filter */
	unsigned capture_packets;            /* that are there to be read, and those that were */
	unsigned capture_given;
	bool capture_sticks; /* no capture can be ended */
	char holder[INC_NAME_LEN], group_lease[INC_NAME_LEN], group_tenant[INC_NAME_LEN];
	/* With memory: who shares which range. */
	struct fake_lease lease[FAKE_LEASES];
	struct fake_member member[FAKE_MEMBERS];
};

struct sw *fake_switch_create(void);
void fake_switch_destroy(struct sw *sw);

/* Memory for a group that is being made, a lease's or its own. -ENOSPC. fake_leases.c. */
int fake_arena_take(
	struct sw *sw, unsigned slot, const struct inc_group_spec *spec, uint64_t bytes);
bool fake_lease_has(struct sw *sw, unsigned slot);
void fake_lease_leave(struct sw *sw, unsigned slot);
uint64_t fake_leases_bytes(const struct sw *sw);

/* Marks a slot of a group as filled by these endpoints. */
void fake_switch_arrived(struct sw *sw, unsigned slot, uint32_t psn, uint64_t eps);

#endif
