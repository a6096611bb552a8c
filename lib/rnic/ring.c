/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/ring.h"

#include <errno.h>
#include <stdlib.h>

int ring_init(struct ring *ring, uint32_t depth, uint32_t stride)
{
	ring->mem = calloc(depth, stride);
	if (ring->mem == NULL)
		return -ENOMEM;
	ring->stride = stride;
	ring->mask = depth - 1;
	atomic_init(&ring->head, 0);
	atomic_init(&ring->tail, 0);
	return 0;
}

void ring_free(struct ring *ring)
{
	free(ring->mem);
	ring->mem = NULL;
}
