/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of aggregation memory, under a budget: what a switch's SRAM is to EPIC. Control plane
 * only; the packet path sees offsets. First fit over a sorted list of ranges in use. */
#ifndef INC_ARENA_H
#define INC_ARENA_H

#include <stddef.h>
#include <stdint.h>

enum { INC_ARENA_ALIGN = 64, INC_ARENA_MAX_RANGES = 4096 };

struct inc_ranges {
	size_t size, used;
	unsigned n;
	struct {
		uint64_t off, len;
	} range[INC_ARENA_MAX_RANGES]; /* in use, ascending */
};

void inc_ranges_init(struct inc_ranges *r, size_t size);
/* -ENOSPC if no gap is large enough, -EMFILE after INC_ARENA_MAX_RANGES. len > 0. */
int inc_ranges_alloc(struct inc_ranges *r, size_t len, uint64_t *off);
/* -ENOENT if off is not a range's start. */
int inc_ranges_free(struct inc_ranges *r, uint64_t off);

#endif
