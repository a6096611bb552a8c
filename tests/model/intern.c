/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/intern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_SLOTS = 1024, HEADER = 8 };
static const size_t BYTES_MAX = (size_t)4 << 30, IDS_MAX = (size_t)1 << 28;

void *mc_reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("incline-model: mmap");
		exit(2);
	}
	/* States are looked up all over it. Where there are no such pages it stays as it is. */
	madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 p = (unsigned __int128)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

uint64_t mc_hash(const void *data, size_t len, uint64_t seed)
{
	const uint8_t *p = data;
	uint64_t h = seed ^ 0x9e3779b97f4a7c15ULL, w;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&w, p, 8);
		h = mix(h ^ w, 0xd6e8feb86659fd93ULL);
	}
	w = 0;
	memcpy(&w, p, len);
	h = mix(h ^ w ^ (uint64_t)len << 56, 0xa0761d6478bd642fULL);
	return mix(h ^ h >> 29, 0xe7037ed1a0b428dbULL);
}

void intern_init(struct intern *t)
{
	*t = (struct intern){.mask = FIRST_SLOTS - 1};
	t->bytes = mc_reserve(BYTES_MAX);
	t->off = mc_reserve(IDS_MAX * sizeof(*t->off));
	t->slot = calloc(FIRST_SLOTS, sizeof(*t->slot));
}

const void *intern_get(const struct intern *t, uint32_t id, uint32_t *len)
{
	const uint8_t *p = t->bytes + t->off[id];

	memcpy(len, p, sizeof(*len));
	return p + HEADER;
}

static void intern_grow(struct intern *t)
{
	uint32_t mask = t->mask * 2 + 1;
	uint32_t *slot = calloc((size_t)mask + 1, sizeof(*slot));

	for (uint32_t id = 0; id < t->n; id++) {
		uint32_t len, at;
		const void *data = intern_get(t, id, &len);

		for (at = (uint32_t)mc_hash(data, len, 0) & mask; slot[at]; at = (at + 1) & mask)
			continue;
		slot[at] = id + 1;
	}
	free(t->slot);
	t->slot = slot;
	t->mask = mask;
}

uint32_t intern_add(struct intern *t, const void *data, uint32_t len)
{
	uint32_t at = (uint32_t)mc_hash(data, len, 0) & t->mask;

	for (; t->slot[at]; at = (at + 1) & t->mask) {
		uint32_t have;
		const void *p = intern_get(t, t->slot[at] - 1, &have);

		if (have == len && memcmp(p, data, len) == 0)
			return t->slot[at] - 1;
	}
	if (t->n == IDS_MAX || t->used + len + 2 * HEADER > BYTES_MAX) {
		fprintf(stderr, "incline-model: a table of components is full\n");
		exit(2);
	}
	t->slot[at] = t->n + 1;
	t->off[t->n] = t->used;
	memcpy(t->bytes + t->used, &len, sizeof(len));
	memcpy(t->bytes + t->used + HEADER, data, len);
	t->used += (HEADER + (uint64_t)len + 7) & ~7ULL;
	if (++t->n > t->mask / 4 * 3)
		intern_grow(t);
	return t->n - 1;
}

void memo_init(struct memo *m)
{
	*m = (struct memo){.mask = FIRST_SLOTS - 1};
	m->entry = calloc(FIRST_SLOTS, sizeof(*m->entry));
}

static struct memo_entry *memo_at(const struct memo *m, uint64_t key)
{
	uint32_t at = (uint32_t)mix(key ^ 0x9e3779b97f4a7c15ULL, 0xd6e8feb86659fd93ULL) & m->mask;

	while (m->entry[at].used && m->entry[at].key != key)
		at = (at + 1) & m->mask;
	return &m->entry[at];
}

const uint32_t *memo_find(const struct memo *m, uint64_t key)
{
	const struct memo_entry *e = memo_at(m, key);

	return e->used ? &e->value : NULL;
}

void memo_put(struct memo *m, uint64_t key, uint32_t value)
{
	*memo_at(m, key) = (struct memo_entry){key, value, 1};
	if (++m->n > m->mask / 4 * 3) {
		struct memo bigger = {.n = m->n, .mask = m->mask * 2 + 1};

		bigger.entry = calloc((size_t)bigger.mask + 1, sizeof(*bigger.entry));
		for (uint32_t i = 0; i <= m->mask; i++)
			if (m->entry[i].used)
				*memo_at(&bigger, m->entry[i].key) = m->entry[i];
		free(m->entry);
		*m = bigger;
	}
}
