/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of ranks for a Broadcast, rooted at 0; of another root, ranks count from it. Pure. */
#ifndef CCL_TREE_PLAN_H
#define CCL_TREE_PLAN_H

#include <stdbool.h>

enum { CCL_TREE_MAX_RADIX = 16, CCL_TREE_MAX_CHILDREN = 4 * 15 + 1 };

struct ccl_tree_shape {
	bool binary; /* children of v: 2v + 1 and 2v + 2; else k-nomial */
	unsigned radix;
};

/* v > 0 */
static inline unsigned ccl_tree_parent(const struct ccl_tree_shape *s, unsigned v)
{
	unsigned unit = 1;

	if (s->binary)
		return (v - 1) / 2;
	while (v / unit % s->radix == 0)
		unit *= s->radix;
	return v - v / unit % s->radix * unit;
}

/* Those of v among n < 2^16, the one with the most below it first. How many. */
static inline unsigned ccl_tree_children(const struct ccl_tree_shape *s, unsigned n, unsigned v,
	unsigned child[CCL_TREE_MAX_CHILDREN])
{
	unsigned unit = 1, count = 0;

	if (s->binary) {
		for (unsigned i = 1; i <= 2; i++)
			if (2 * v + i < n)
				child[count++] = 2 * v + i;
		return count;
	}
	while (unit < n && v / unit % s->radix == 0)
		unit *= s->radix;
	for (unit /= s->radix; unit > 0; unit /= s->radix)
		for (unsigned i = 1; i < s->radix; i++)
			if (v + i * unit < n)
				child[count++] = v + i * unit;
	return count;
}

#endif
