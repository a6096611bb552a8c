/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/stream: a set of positions as a few intervals, sorted, apart from each other. What has
 * come behind a hole. */
#ifndef STREAM_RANGES_H
#define STREAM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { RANGES_MAX = 32 };

struct range {
	uint64_t from, to;
};

struct ranges {
	uint8_t n;
	struct range r[RANGES_MAX];
};

/* false, and nothing changed: that would be one interval too many. from < to. */
bool ranges_add(struct ranges *set, uint64_t from, uint64_t to);
/* Takes out everything before a position. */
void ranges_trim(struct ranges *set, uint64_t to);
bool ranges_hold(const struct ranges *set, uint64_t from, uint64_t to);
uint64_t ranges_bytes(const struct ranges *set);
/* The part of [from, to) before the first interval in it, or from the end of the one that from lies
 * in: false if there is none. */
bool ranges_hole(const struct ranges *set, uint64_t from, uint64_t to, struct range *hole);

#endif
