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

	if (rec == NULL)
		return -ENOMEM;
	free(t->rec);
	t->rec = rec;
	t->cap = cap;
	t->port = port;
	t->remaining = n;
	t->packet = 0;
	atomic_store(&t->n, 0);
	return 0;
}

void trace_free(struct trace *t)
{
	free(t->rec);
	t->rec = NULL;
	t->cap = 0;
}

unsigned trace_read(struct trace *t, unsigned from, struct sw_trace_rec *rec, unsigned n)
{
	unsigned have = atomic_load_explicit(&t->n, memory_order_acquire), i = 0;

	while (i < n && from + i < have) {
		rec[i] = t->rec[from + i];
		i++;
	}
	return i;
}

uint32_t trace_number(struct trace *t, int port)
{
	if (t->remaining == 0 || (t->port >= 0 && t->port != port))
		return 0;
	if (--t->remaining == 0)
		atomic_store_explicit(&t->armed, false, memory_order_relaxed);
	return ++t->packet;
}

void trace_add(
	struct trace *t, uint64_t now, uint32_t packet, const char *node, const char *fmt, ...)
{
	unsigned n = atomic_load_explicit(&t->n, memory_order_relaxed);
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
	atomic_store_explicit(&t->n, n + 1, memory_order_release);
}
