/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace of single packets through all nodes, of all workers. The control thread arms it; workers,
 * when it is armed, number packets as they are received, and every node that handles a numbered
 * packet adds a record. Records are never overwritten: when the store is full, tracing ends.
 * Workers never wait; while nothing is armed, it costs a node one test per burst. */
#ifndef DATAPLANE_TRACE_H
#define DATAPLANE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/switch.h"

struct trace {
	struct sw_trace_rec *rec;
	uint32_t cap;
	atomic_uint n;      /* records begun, by any worker; may be more than fit */
	atomic_bool armed;  /* set by control, cleared by the worker that numbers the last packet */
	int port;           /* DPDK port id, or -1 */
	uint32_t wanted;    /* packets to number */
	atomic_uint packet; /* last number given; may be more */
	atomic_bool *done;  /* by record: it is whole */
};

/* Room for n packets. No worker may be using the old records: not armed, and quiesced. */
int trace_prepare(struct trace *t, int port, unsigned n);
void trace_free(struct trace *t);
unsigned trace_read(struct trace *t, unsigned from, struct sw_trace_rec *rec, unsigned n);

/* worker: number for a packet received on port, 0: not traced. */
uint32_t trace_number(struct trace *t, int port);
void trace_add(struct trace *t, uint64_t now, uint32_t packet, const char *node, const char *fmt,
	...) __attribute__((format(printf, 5, 6)));

#endif
