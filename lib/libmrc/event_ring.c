/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/libmrc/event_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EVENTS = 1 << 20 };

_Static_assert(offsetof(struct mrc_ctl_ev_event, state) == EVENT_STRIDE_100,
	"an event of 1.0.0 is one of 1.0.1 without its end");

int event_ring_init(struct event_ring *r, int size)
{
	*r = (struct event_ring){.size = (uint32_t)size};
	if (size < 1 || size > MAX_EVENTS)
		return -EINVAL;
	r->slot = malloc((size_t)size * sizeof(*r->slot));
	return r->slot ? 0 : -ENOMEM;
}

void event_ring_fini(struct event_ring *r)
{
	free(r->slot);
}

bool event_ring_put(struct event_ring *r, uint64_t profile_id, const struct mrc_ctl_ev *ev,
	enum mrc_ctl_ev_state state)
{
	struct mrc_ctl_ev_event *slot = &r->slot[r->tail % r->size];

	if (r->tail - r->head == r->size) {
		if (r->lost < UINT32_MAX)
			r->lost++;
		return false;
	}
	memset(slot, 0, sizeof(*slot));
	slot->profile_id = profile_id;
	slot->ev = *ev;
	slot->drop_count = r->lost;
	slot->state = state;
	r->lost = 0;
	r->tail++;
	return true;
}

int event_ring_take(struct event_ring *r, void *array, size_t stride, int n)
{
	int i;

	for (i = 0; i < n && r->head != r->tail; i++)
		memcpy((char *)array + (size_t)i * stride, &r->slot[r->head++ % r->size], stride);
	return i;
}

size_t event_stride(uint32_t api_version)
{
	return api_version >= MRC_API_VER(1, 0, 0) && api_version < MRC_API_VER(1, 0, 1)
		       ? EVENT_STRIDE_100
		       : EVENT_STRIDE;
}
