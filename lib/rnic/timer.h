/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers of the device, and of whoever else has many of which few are due: a binary heap whose keys
 * may be early. Retransmission timers move forward with nearly every packet and hardly ever fire.
 * So setting one later only writes `at`; the heap finds out when the old key comes up. The owner
 * gives the memory, has the time, and asks for what is due. */
#ifndef RNIC_TIMER_H
#define RNIC_TIMER_H

#include <stdint.h>

struct timer {
	uint64_t at;   /* UINT64_MAX: not running */
	uint32_t pos;  /* in the heap + 1; 0: not in it */
	unsigned kind; /* the owner's */
};

struct timer_slot {
	uint64_t key; /* <= timer->at */
	struct timer *timer;
};

struct timers {
	struct timer_slot *slot; /* the owner's: one for each timer */
	uint32_t n;
	uint64_t moves; /* entries written */
};

/* timer->at is earlier than its key, or it is not in the heap. */
void timer_rise(struct timers *timers, struct timer *timer);

/* at: UINT64_MAX stops it. */
static inline void timer_set(struct timers *timers, struct timer *timer, uint64_t at)
{
	timer->at = at;
	if (at != UINT64_MAX && (timer->pos == 0 || at < timers->slot[timer->pos - 1].key))
		timer_rise(timers, timer);
}

static inline void timer_stop(struct timer *timer)
{
	timer->at = UINT64_MAX;
}

void timer_remove(struct timers *timers, struct timer *timer); /* before its memory goes */
/* The next timer that is due, stopped; NULL if none. */
struct timer *timer_expired(struct timers *timers, uint64_t now);

#endif
