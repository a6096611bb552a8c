/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A packet crosses five nodes; one that completes a slot adds a record per copy. */
enum { RECORDS_PER_PACKET = 8, RECORDS_SPARE = 1024 };

int trace_prepare(struct trace *t, int port, unsigned n)
{
	uint32_t cap = n * RECORDS_PER_PACKET + RECORDS_SPARE;
	struct sw_trace_rec *rec = calloc(cap, sizeof(*rec));
	atomic_bool *done = calloc(cap, sizeof(*done));

	if (rec == NULL || done == NULL) {
		free(rec);
		free(done);
		return -ENOMEM;
	}
	trace_free(t);
	t->rec = rec;
	t->done = done;
	t->cap = cap;
	t->port = port;
	t->wanted = n;
	atomic_store(&t->packet, 0);
	atomic_store(&t->n, 0);
	return 0;
}

void trace_free(struct trace *t)
{
	free(t->rec);
	free(t->done);
	t->rec = NULL;
	t->done = NULL;
	t->cap = 0;
}

/* Up to the first that is not whole: it soon will be. */
unsigned trace_read(struct trace *t, unsigned from, struct sw_trace_rec *rec, unsigned n)
{
	unsigned i = 0;

	while (i < n && from + i < t->cap &&
		atomic_load_explicit(&t->done[from + i], memory_order_acquire)) {
		rec[i] = t->rec[from + i];
		i++;
	}
	return i;
}

uint32_t trace_number(struct trace *t, int port)
{
	uint32_t number;

	if (t->port >= 0 && t->port != port)
		return 0;
	number = 1 + atomic_fetch_add_explicit(&t->packet, 1, memory_order_relaxed);
	if (number >= t->wanted)
		atomic_store_explicit(&t->armed, false, memory_order_relaxed);
	return number <= t->wanted ? number : 0;
}

void trace_add(
	struct trace *t, uint64_t now, uint32_t packet, const char *node, const char *fmt, ...)
{
	unsigned n = atomic_fetch_add_explicit(&t->n, 1, memory_order_relaxed);
	struct sw_trace_rec *rec = &t->rec[n];
	va_list ap;

	if (n >= t->cap)
		return;
	rec->ns = now;
	rec->packet = packet;
	snprintf(rec->node, sizeof(rec->node), "%s", node);
	va_start(ap, fmt);
	vsnprintf(rec->text, sizeof(rec->text), fmt, ap);
	va_end(ap);
	atomic_store_explicit(&t->done[n], true, memory_order_release);
}
