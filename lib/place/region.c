/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory. A handle is a region's index and, above it, a generation. An index is used
 * again when no segment names it any more and a grace period has passed: so segments need no
 * generation. */
#include <errno.h>

#include "lib/place/place_priv.h"

enum { INDEX_BITS = 14, INDEX_MASK = (1 << INDEX_BITS) - 1 };

struct region *region_of(struct place *p, uint32_t mr)
{
	const uint32_t i = mr & INDEX_MASK;
	struct region *r = &p->region[i];

	if (i == NONE || i > p->config.max_mrs || !r->taken || r->handle != mr >> INDEX_BITS ||
		atomic_load_explicit(&r->base, memory_order_relaxed) == NULL)
		return NULL;
	return r;
}

int place_mr_add(struct place *p, void *addr, uint64_t len, bool writable, uint32_t *mr)
{
	struct region *r;
	uint32_t i;

	if (addr == NULL || len == 0 || len > 1ull << 32 || (uintptr_t)addr > UINTPTR_MAX - len)
		return -EINVAL;
	i = pile_take(p, &p->regions);
	if (i == NONE)
		return -ENOSPC;
	r = &p->region[i];
	r->len = len;
	r->writable = writable;
	r->taken = true;
	SHARED_STORE(&r->base, addr);
	*mr = r->handle << INDEX_BITS | i;
	return 0;
}

/* Its index rests when neither the program nor a segment has it. */
static void rest(struct place *p, struct region *r)
{
	r->taken = false;
	r->handle = (r->handle + 1) & (UINT32_MAX >> INDEX_BITS);
	pile_put(p, &p->regions, (uint32_t)(r - p->region));
}

int place_mr_remove(struct place *p, uint32_t mr)
{
	struct region *r = region_of(p, mr);

	if (r == NULL)
		return -EINVAL;
	SHARED_STORE(&r->base, NULL);
	if (r->refs == 0)
		rest(p, r);
	return 0;
}

void region_unref(struct place *p, uint32_t index)
{
	struct region *r = &p->region[index];

	if (--r->refs == 0 && atomic_load_explicit(&r->base, memory_order_relaxed) == NULL)
		rest(p, r);
}
