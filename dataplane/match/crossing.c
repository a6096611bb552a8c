/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/match/crossing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A span as places among all ends of the key's: first <= place < end. */
struct place {
	uint32_t first, end;
};

/* Of a key: the rows that are left there, and where they begin and end. */
struct level {
	uint32_t *row, *cut;
};

struct walk {
	unsigned n_keys;
	const struct place *place; /* as spans */
	struct level *level;
	uint64_t left; /* steps */
};

static int by_number(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((struct crossing_span *)NULL)->low));
}

static int by_cut(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static unsigned unique(uint32_t *cut, unsigned n)
{
	unsigned kept = 0;

	qsort(cut, n, sizeof(*cut), by_cut);
	for (unsigned i = 0; i < n; i++)
		if (i == 0 || cut[i] != cut[kept - 1])
			cut[kept++] = cut[i];
	return kept;
}

static bool cells(struct walk *w, unsigned key, unsigned n);

/* Those of n rows that are at this place in the key go on to the next one. */
static bool cell(struct walk *w, unsigned key, unsigned n, uint32_t at)
{
	const uint32_t *row = w->level[key].row;
	uint32_t *next = w->level[key + 1].row;
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct place *p = &w->place[(size_t)row[i] * w->n_keys + key];

		if (p->first <= at && at < p->end)
			next[kept++] = row[i];
	}
	return cells(w, key + 1, kept);
}

/* False: too many steps. */
static bool cells(struct walk *w, unsigned key, unsigned n)
{
	const uint32_t *row = w->level[key].row;
	uint32_t *cut = w->level[key].cut;
	unsigned n_cuts = 0;
	uint64_t steps;

	if (key == w->n_keys || n <= 1)
		return true;
	for (unsigned i = 0; i < n; i++) {
		const struct place *p = &w->place[(size_t)row[i] * w->n_keys + key];

		cut[n_cuts++] = p->first;
		cut[n_cuts++] = p->end;
	}
	n_cuts = unique(cut, n_cuts);
	steps = (uint64_t)n_cuts * n;
	if (steps > w->left)
		return false;
	w->left -= steps;
	for (unsigned i = 0; i + 1 < n_cuts; i++)
		if (!cell(w, key, n, cut[i]))
			return false;
	return true;
}

/* ---- places ---- */

static uint32_t rank_of(const uint8_t (*ends)[16], unsigned n, const uint8_t number[16])
{
	unsigned low = 0, high = n;

	while (low < high) {
		const unsigned mid = (low + high) / 2;

		if (memcmp(ends[mid], number, sizeof(ends[mid])) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Beginnings have even places and what is behind an end odd ones: neither is the other's. */
static void make_places(const struct crossing_span *span, unsigned n_rows, unsigned n_keys,
	unsigned key, uint8_t (*ends)[16], struct place *place)
{
	for (unsigned i = 0; i < n_rows; i++) {
		memcpy(ends[2 * i], span[(size_t)i * n_keys + key].low, sizeof(ends[0]));
		memcpy(ends[2 * i + 1], span[(size_t)i * n_keys + key].high, sizeof(ends[0]));
	}
	qsort(ends, 2 * n_rows, sizeof(ends[0]), by_number);
	for (unsigned i = 0; i < n_rows; i++) {
		const struct crossing_span *s = &span[(size_t)i * n_keys + key];
		const uint8_t(*sorted)[16] = (const uint8_t(*)[16])ends;

		place[(size_t)i * n_keys + key] =
			(struct place){2 * rank_of(sorted, 2 * n_rows, s->low),
				2 * rank_of(sorted, 2 * n_rows, s->high) + 1};
	}
}

static struct level *make_levels(unsigned n_rows, unsigned n_levels)
{
	const size_t each = 3 * (size_t)n_rows;
	struct level *level = malloc(n_levels * (sizeof(*level) + each * sizeof(uint32_t)));
	uint32_t *room = level == NULL ? NULL : (uint32_t *)(level + n_levels);

	for (unsigned i = 0; level != NULL && i < n_levels; i++, room += each)
		level[i] = (struct level){room, room + n_rows};
	return level;
}

int crossing_within(
	const struct crossing_span *span, unsigned n_rows, unsigned n_keys, uint64_t steps)
{
	struct place *place = calloc((size_t)n_rows * n_keys + 1, sizeof(*place));
	uint8_t(*ends)[16] = calloc(2 * (size_t)n_rows + 1, sizeof(*ends));
	struct level *level = make_levels(n_rows, n_keys + 1);
	struct walk w = {.n_keys = n_keys, .place = place, .level = level, .left = steps};
	int rc = -ENOMEM;

	if (place != NULL && ends != NULL && level != NULL) {
		for (unsigned k = 0; k < n_keys; k++)
			make_places(span, n_rows, n_keys, k, ends, place);
		for (unsigned i = 0; i < n_rows; i++)
			level[0].row[i] = i;
		rc = cells(&w, 0, n_rows);
	}
	free(place);
	free(ends);
	free(level);
	return rc;
}
