/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mgr/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

static bool before(const struct mgr_heap *h, unsigned a, unsigned b)
{
	return h->due[a] != h->due[b] ? h->due[a] < h->due[b] : a < b;
}

static void put(struct mgr_heap *h, unsigned at, unsigned id)
{
	h->id[at] = id;
	h->at[id] = at + 1;
}

static void rise(struct mgr_heap *h, unsigned at, unsigned id)
{
	while (at > 0 && before(h, id, h->id[(at - 1) / 2])) {
		put(h, at, h->id[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(h, at, id);
}

static void sink(struct mgr_heap *h, unsigned at, unsigned id)
{
	unsigned child;

	while ((child = 2 * at + 1) < h->n) {
		if (child + 1 < h->n && before(h, h->id[child + 1], h->id[child]))
			child++;
		if (!before(h, h->id[child], id))
			break;
		put(h, at, h->id[child]);
		at = child;
	}
	put(h, at, id);
}

static int grow(struct mgr_heap *h, unsigned id)
{
	unsigned room = h->room ? h->room : FIRST_ROOM;
	unsigned *ids, *at;
	uint64_t *due;

	if (id < h->room)
		return 0;
	while (room <= id)
		room *= 2;
	ids = realloc(h->id, room * sizeof(*ids));
	h->id = ids ? ids : h->id;
	at = realloc(h->at, room * sizeof(*at));
	h->at = at ? at : h->at;
	due = realloc(h->due, room * sizeof(*due));
	h->due = due ? due : h->due;
	if (ids == NULL || at == NULL || due == NULL)
		return -ENOMEM;
	memset(h->at + h->room, 0, (room - h->room) * sizeof(*at));
	h->room = room;
	return 0;
}

static void settle(struct mgr_heap *h, unsigned at, unsigned id)
{
	if (at > 0 && before(h, id, h->id[(at - 1) / 2]))
		rise(h, at, id);
	else
		sink(h, at, id);
}

int mgr_heap_set(struct mgr_heap *h, unsigned id, uint64_t due)
{
	int rc = grow(h, id);

	if (rc)
		return rc;
	h->due[id] = due;
	if (h->at[id] == 0)
		rise(h, h->n++, id);
	else
		settle(h, h->at[id] - 1, id);
	return 0;
}

void mgr_heap_remove(struct mgr_heap *h, unsigned id)
{
	unsigned at, last;

	if (id >= h->room || h->at[id] == 0)
		return;
	at = h->at[id] - 1;
	h->at[id] = 0;
	last = h->id[--h->n];
	if (last != id)
		settle(h, at, last);
}

bool mgr_heap_first(const struct mgr_heap *h, unsigned *id, uint64_t *due)
{
	if (h->n == 0)
		return false;
	*id = h->id[0];
	*due = h->due[h->id[0]];
	return true;
}

void mgr_heap_free(struct mgr_heap *h)
{
	free(h->id);
	free(h->at);
	free(h->due);
	*h = (struct mgr_heap){.n = 0};
}
