/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/ring.h"

#include <errno.h>
#include <stdlib.h>

int ring_alloc(struct ring *ring, uint32_t depth, uint32_t stride)
{
	void *mem = calloc(depth, stride);

	if (mem == NULL)
		return -ENOMEM;
	ring_init(ring, mem, depth, stride);
	return 0;
}

void ring_free(struct ring *ring)
{
	free(ring->mem);
	ring->mem = NULL;
}
