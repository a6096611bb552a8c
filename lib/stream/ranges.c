/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/ranges.h"

#include <string.h>

bool ranges_add(struct ranges *set, uint64_t from, uint64_t to)
{
	unsigned a = 0, b;

	while (a < set->n && set->r[a].to < from)
		a++;
	for (b = a; b < set->n && set->r[b].from <= to; b++) {
		if (set->r[b].from < from)
			from = set->r[b].from;
		if (set->r[b].to > to)
			to = set->r[b].to;
	}
	/* Those of [a, b) become one. */
	if (a == b && set->n == RANGES_MAX)
		return false;
	memmove(&set->r[a + 1], &set->r[b], (set->n - b) * sizeof(set->r[0]));
	set->r[a] = (struct range){from, to};
	set->n = (uint8_t)(set->n + 1 + a - b);
	return true;
}

void ranges_trim(struct ranges *set, uint64_t to)
{
	unsigned k = 0;

	while (k < set->n && set->r[k].to <= to)
		k++;
	memmove(&set->r[0], &set->r[k], (set->n - k) * sizeof(set->r[0]));
	set->n = (uint8_t)(set->n - k);
	if (set->n > 0 && set->r[0].from < to)
		set->r[0].from = to;
}

bool ranges_hold(const struct ranges *set, uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->r[i].from <= from && to <= set->r[i].to)
			return true;
	return false;
}

uint64_t ranges_bytes(const struct ranges *set)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < set->n; i++)
		n += set->r[i].to - set->r[i].from;
	return n;
}

bool ranges_hole(const struct ranges *set, uint64_t from, uint64_t to, struct range *hole)
{
	for (unsigned i = 0; i < set->n && from < to; i++) {
		if (set->r[i].to <= from)
			continue;
		if (set->r[i].from > from) {
			*hole = (struct range){from, set->r[i].from < to ? set->r[i].from : to};
			return true;
		}
		from = set->r[i].to;
	}
	*hole = (struct range){from, to};
	return from < to;
}
