/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/row_hits.h"

#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

bool row_hits_alloc(struct row_hits *h, unsigned n, unsigned n_workers)
{
	const unsigned stride = RTE_ALIGN_CEIL(n + 1, RTE_CACHE_LINE_SIZE / sizeof(*h->count));
	const size_t bytes = (size_t)n_workers * stride * sizeof(*h->count);

	*h = (struct row_hits){
		.n = n,
		.n_workers = n_workers,
		.stride = stride,
		.count = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes),
		.inherited = calloc(n + 1, sizeof(*h->inherited)),
	};
	if (h->count == NULL || h->inherited == NULL)
		return false;
	memset(h->count, 0, bytes);
	return true;
}

void row_hits_free(struct row_hits *h)
{
	free(h->count);
	free(h->inherited);
}

uint64_t row_hits_get(const struct row_hits *h, unsigned row)
{
	uint64_t n = h->inherited[row];

	for (unsigned w = 0; w < h->n_workers; w++)
		n += row_hits_of(h, w)[row];
	return n;
}

void row_hits_inherit(struct row_hits *to, const struct row_hits *from,
	bool (*same)(const void *arg, unsigned i, unsigned k), const void *arg)
{
	const unsigned n = from->n;
	unsigned at = 0;

	for (unsigned i = 0; i < to->n && n > 0; i++)
		for (unsigned k = 0; k < n; k++) {
			const unsigned row = at;

			at = at + 1 == n ? 0 : at + 1;
			if (!same(arg, i, row))
				continue;
			to->inherited[i] += row_hits_get(from, row);
			break;
		}
}
