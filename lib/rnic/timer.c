/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/timer.h"

#include <stdbool.h>
#include <stddef.h>

static void put(struct timers *timers, uint32_t pos, struct timer_slot slot)
{
	timers->moves++;
	timers->slot[pos] = slot;
	slot.timer->pos = pos + 1;
}

static void sift_up(struct timers *timers, uint32_t pos, struct timer_slot slot)
{
	while (pos > 0) {
		uint32_t parent = (pos - 1) / 2;

		if (timers->slot[parent].key <= slot.key)
			break;
		put(timers, pos, timers->slot[parent]);
		pos = parent;
	}
	put(timers, pos, slot);
}

static void sift_down(struct timers *timers, uint32_t pos, struct timer_slot slot)
{
	for (;;) {
		uint32_t child = 2 * pos + 1;

		if (child >= timers->n)
			break;
		if (child + 1 < timers->n && timers->slot[child + 1].key < timers->slot[child].key)
			child++;
		if (slot.key <= timers->slot[child].key)
			break;
		put(timers, pos, timers->slot[child]);
		pos = child;
	}
	put(timers, pos, slot);
}

void timer_rise(struct timers *timers, struct timer *timer)
{
	sift_up(timers, timer->pos == 0 ? timers->n++ : timer->pos - 1,
		(struct timer_slot){timer->at, timer});
}

void timer_remove(struct timers *timers, struct timer *timer)
{
	uint32_t pos;
	struct timer_slot last;

	timer->at = UINT64_MAX;
	if (timer->pos == 0)
		return;
	pos = timer->pos - 1;
	timer->pos = 0;
	last = timers->slot[--timers->n];
	if (pos == timers->n)
		return;
	/* The last one may belong above or below the hole. */
	if (pos > 0 && last.key < timers->slot[(pos - 1) / 2].key)
		sift_up(timers, pos, last);
	else
		sift_down(timers, pos, last);
}

struct timer *timer_expired(struct timers *timers, uint64_t now)
{
	while (timers->n > 0 && timers->slot[0].key <= now) {
		struct timer *timer = timers->slot[0].timer;

		if (timer->at != UINT64_MAX && timer->at > now) {
			sift_down(timers, 0, (struct timer_slot){timer->at, timer});
		} else {
			bool due = timer->at <= now;

			timer_remove(timers, timer);
			if (due)
				return timer;
		}
	}
	return NULL;
}
