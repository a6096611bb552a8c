/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread and running workers: what it takes away it frees when none of them can see it
 * any more, and what is theirs they do at its word. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "dataplane/runtime/host_ops.h"
#include "dataplane/sw.h"

enum { QUIESCE_NS = 1000000000, QUIESCE_STEP_US = 20 };

static bool quiesced(struct sw *sw, uint64_t token)
{
	return !sw->running || rte_rcu_qsbr_check(sw->rcu, token, false) == 1;
}

static bool is_read(const struct sw *sw, const struct sw_deferred *d)
{
	return d->slot != 0 && sw_host_is_read(sw, d->slot);
}

void sw_reclaim(struct sw *sw)
{
	bool waits = false;

	for (struct sw_deferred **at = &sw->deferred, *d = *at; d != NULL; d = *at) {
		bool done = quiesced(sw, d->token);

		if (!done || is_read(sw, d)) {
			waits |= done;
			at = &d->next;
			continue;
		}
		*at = d->next;
		sw->draining_bytes -= d->bytes;
		d->free(sw, d->what);
		free(d);
	}
	/* Ports free what they have sent when they next send; these shall not wait for that. */
	for (unsigned i = 0; waits && i < sw->n_workers; i++)
		atomic_store_explicit(&sw->worker[i]->reap, true, memory_order_relaxed);
}

static bool wait_quiesced(struct sw *sw, uint64_t token)
{
	uint64_t until = port_now_ns() + QUIESCE_NS;

	while (!quiesced(sw, token) && port_now_ns() < until)
		usleep(QUIESCE_STEP_US);
	return quiesced(sw, token);
}

int sw_quiesce(struct sw *sw)
{
	return wait_quiesced(sw, rte_rcu_qsbr_start(sw->rcu)) ? 0 : -ETIMEDOUT;
}

void sw_defer_unread(struct sw *sw, unsigned slot, size_t bytes,
	void (*free_fn)(struct sw *sw, void *what), void *what)
{
	uint64_t token = rte_rcu_qsbr_start(sw->rcu);
	struct sw_deferred *d = malloc(sizeof(*d));

	wait_quiesced(sw, token);
	if (d == NULL) { /* leaks what a worker that hangs, or a port, may still use */
		if (quiesced(sw, token) && (slot == 0 || !sw_host_is_read(sw, slot)))
			free_fn(sw, what);
		return;
	}
	*d = (struct sw_deferred){sw->deferred, token, slot, bytes, free_fn, what};
	sw->deferred = d;
	sw->draining_bytes += bytes;
	sw_reclaim(sw);
}

void sw_defer(struct sw *sw, void (*free_fn)(struct sw *sw, void *what), void *what)
{
	sw_defer_unread(sw, 0, 0, free_fn, what);
}

int sw_worker_call(struct sw *sw, unsigned i, void (*fn)(struct worker *w, void *arg), void *arg)
{
	if (sw->running)
		return mailbox_call(&sw->worker[i]->mailbox, fn, arg);
	fn(sw->worker[i], arg);
	return 0;
}
