/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers have notes for the control thread, which may be asleep: it is woken once, until it has
 * heard that. */
#ifndef DATAPLANE_WAKE_H
#define DATAPLANE_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/eventfd.h>

struct wake {
	int fd; /* readable: there are notes; -1: nobody makes any */
	atomic_bool called;
};

/* By a worker, after its note. */
static inline void wake_call(struct wake *w)
{
	if (!atomic_exchange(&w->called, true))
		(void)!eventfd_write(w->fd, 1);
}

/* By the control thread, before it reads notes. */
static inline void wake_heard(struct wake *w)
{
	eventfd_t calls;

	(void)!eventfd_read(w->fd, &calls);
	atomic_store(&w->called, false);
}

#endif
