/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control thread has a worker do between two turns of its loop, to what that worker alone
 * writes. One call at a time; short ones, for the worker's ports wait meanwhile: long work is cut
 * into several. */
#ifndef DATAPLANE_MAILBOX_H
#define DATAPLANE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

struct worker;

typedef void (*mailbox_fn)(struct worker *w, void *arg);

struct mailbox_call {
	mailbox_fn fn;
	void *arg;
	atomic_bool done;
};
struct mailbox {
	_Atomic(struct mailbox_call *) call; /* NULL: none waits */
};

/* The worker, at the end of a turn: the call that waits, if one does. */
void mailbox_take(struct mailbox *m, struct worker *w);

/* Control: has fn(w, arg) called by the worker that takes from m, and waits for its end.
 * -ETIMEDOUT: the worker has not begun with it within a second, and never will. One that has begun
 * is waited for: fn is to come to an end. */
int mailbox_call(struct mailbox *m, mailbox_fn fn, void *arg);

#endif
