/* SPDX-License-Identifier: BSD-3-Clause */
/* How many packets each row of a table has matched, in an object that is made anew whenever the
 * table changes: each worker counts in lines of its own, and rows that stay go on where they were.
 */
#ifndef DATAPLANE_ROW_HITS_H
#define DATAPLANE_ROW_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_hits {
	unsigned n, n_workers, stride;
	uint64_t *count;     /* of each worker, by row */
	uint64_t *inherited; /* by row, of objects before this one; control's */
};

/* n rows of zeros. False: no memory; row_hits_free in either case. */
bool row_hits_alloc(struct row_hits *h, unsigned n, unsigned n_workers);
void row_hits_free(struct row_hits *h);

/* A worker's counters, by row. */
static inline uint64_t *row_hits_of(const struct row_hits *h, unsigned worker)
{
	return h->count + (size_t)worker * h->stride;
}

/* Of a row, here and in objects before. */
uint64_t row_hits_get(const struct row_hits *h, unsigned row);

/* Rows of `to` that `from` had as well go on counting where it stopped; same says whether row i of
 * `to` is row k of `from`. No worker may see `from` any more. Linear if their order is about the
 * same. */
void row_hits_inherit(struct row_hits *to, const struct row_hits *from,
	bool (*same)(const void *arg, unsigned i, unsigned k), const void *arg);

#endif
