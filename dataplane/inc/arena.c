/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/inc/arena.h"

#include <errno.h>
#include <string.h>

void inc_ranges_init(struct inc_ranges *r, size_t size)
{
	memset(r, 0, sizeof(*r));
	r->size = size;
}

int inc_ranges_alloc(struct inc_ranges *r, size_t len, uint64_t *off)
{
	uint64_t start = 0;
	unsigned i;

	if (len > SIZE_MAX - INC_ARENA_ALIGN)
		return -ENOSPC;
	len = (len + INC_ARENA_ALIGN - 1) & ~(size_t)(INC_ARENA_ALIGN - 1);
	if (r->n == INC_ARENA_MAX_RANGES)
		return -EMFILE;
	for (i = 0; i < r->n && r->range[i].off - start < len; i++)
		start = r->range[i].off + r->range[i].len;
	if (i == r->n && r->size - start < len)
		return -ENOSPC;
	memmove(&r->range[i + 1], &r->range[i], (r->n - i) * sizeof(r->range[0]));
	r->range[i].off = start;
	r->range[i].len = len;
	r->n++;
	r->used += len;
	*off = start;
	return 0;
}

int inc_ranges_free(struct inc_ranges *r, uint64_t off)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (r->range[i].off != off)
			continue;
		r->used -= r->range[i].len;
		r->n--;
		memmove(&r->range[i], &r->range[i + 1], (r->n - i) * sizeof(r->range[0]));
		return 0;
	}
	return -ENOENT;
}
