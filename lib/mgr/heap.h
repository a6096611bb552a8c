/* SPDX-License-Identifier: BSD-3-Clause */
/* What is due first: a binary heap of small numbers, each at most once, by the time that each is
 * due at; of those due at the same time the lowest. Heap memory grows with the largest number. */
#ifndef MGR_HEAP_H
#define MGR_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct mgr_heap {
	unsigned n, room;
	unsigned *id;  /* heap order */
	unsigned *at;  /* by number: its place, plus one; 0: not in it */
	uint64_t *due; /* by number */
};

/* Adds, or moves. -ENOMEM: nothing changed; not if the number had been added before. */
int mgr_heap_set(struct mgr_heap *h, unsigned id, uint64_t due);

/* Does nothing if it is not in it. */
void mgr_heap_remove(struct mgr_heap *h, unsigned id);

/* The first; false: none. */
bool mgr_heap_first(const struct mgr_heap *h, unsigned *id, uint64_t *due);

/* All memory; it is empty then. */
void mgr_heap_free(struct mgr_heap *h);

#endif
