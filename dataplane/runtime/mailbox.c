/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/mailbox.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "lib/port/port.h"

enum { PATIENCE_NS = 1000000000, STEP_US = 20 };

void mailbox_take(struct mailbox *m, struct worker *w)
{
	struct mailbox_call *call;

	if (__builtin_expect(atomic_load_explicit(&m->call, memory_order_relaxed) == NULL, true))
		return;
	call = atomic_exchange_explicit(&m->call, NULL, memory_order_acquire);
	if (call == NULL) /* taken back */
		return;
	call->fn(w, call->arg);
	atomic_store_explicit(&call->done, true, memory_order_release);
}

int mailbox_call(struct mailbox *m, mailbox_fn fn, void *arg)
{
	struct mailbox_call call = {.fn = fn, .arg = arg};
	const uint64_t until = port_now_ns() + PATIENCE_NS;

	atomic_store_explicit(&m->call, &call, memory_order_release);
	while (!atomic_load_explicit(&call.done, memory_order_acquire)) {
		/* Once the worker has it, it is no matter of time any more. */
		if (port_now_ns() >= until && atomic_exchange(&m->call, NULL) == &call)
			return -ETIMEDOUT;
		usleep(STEP_US);
	}
	return 0;
}
