/* SPDX-License-Identifier: BSD-3-Clause */
/* What the probes of one path say of it, and when a path that was bad is believed again. The paper
 * leaves links in service and "only brings them back when enough probes succeed over time" (MRC,
 * section 3): a path that goes up and down needs more good probes each time. Pure functions. */
#ifndef MAP_LINK_H
#define MAP_LINK_H

#include <stdbool.h>
#include <stdint.h>

enum map_state {
	MAP_UNKNOWN, /* too few probes so far */
	MAP_GOOD,
	MAP_LOSSY, /* some come back; also a dead one that has begun to answer */
	MAP_DEAD,
	MAP_N_STATES
};
const char *map_state_name(enum map_state state);
/* -EINVAL: no such name. */
int map_state_parse(const char *name);

enum { MAP_WINDOW = 64 };

struct map_link_config {
	unsigned dead_run; /* losses in a row: dead. As many good ones at the start: good */
	unsigned lossy;    /* losses among the last MAP_WINDOW probes: lossy */
	unsigned good_run; /* good probes in a row until it is good again */
	unsigned good_max; /* doubled up to this, each time that it goes bad before it was */
	uint64_t calm_ns;  /* good for so long */
};

struct map_link {
	uint8_t state;    /* enum map_state */
	uint64_t history; /* of the last probes, latest first: 1, lost */
	uint32_t run_good, run_lost, need, need_before;
	uint64_t since_ns;              /* of this state */
	uint64_t answered, lost, flaps; /* flaps: times that it was good no more */
};

/* 0, or -EINVAL: a number is 0, lossy or dead_run more than MAP_WINDOW, good_run less than it (what
 * was lost must be forgotten by then), good_max less than good_run. */
int map_link_check(const struct map_link_config *c);
void map_link_init(struct map_link *l, const struct map_link_config *c, uint64_t now_ns);
/* A probe has come back, or not in time. Whether the state has changed. */
bool map_link_note(
	struct map_link *l, const struct map_link_config *c, bool answered, uint64_t now_ns);
/* What it has lost was another's fault: if it has been good until after this time, it is unknown,
 * and has not flapped. */
void map_link_excuse(struct map_link *l, uint64_t since_ns, uint64_t now_ns);

#endif
