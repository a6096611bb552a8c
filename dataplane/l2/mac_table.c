/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/l2/mac_table.h"

static const uint64_t GROUP = UINT64_C(1) << 40, ADDRESS = (UINT64_C(1) << 48) - 1;

void mac_table_init(struct mac_table *t, unsigned max_per_port, uint64_t age,
	const uint8_t (*own)[6], unsigned n_own, const struct mac_ops *ops, void *arg)
{
	memset(t, 0, sizeof(*t));
	t->max_per_port = max_per_port;
	t->age = age;
	t->ops = ops;
	t->arg = arg;
	for (; t->n_own < n_own; t->n_own++)
		t->own[t->n_own] = mac_key(own[t->n_own], 0);
	for (unsigned i = 0; i < MAC_ENTRIES; i++)
		t->entry[i].chain = i + 1 < MAC_ENTRIES ? i + 2 : 0;
	t->free = 1;
}

bool mac_is_host(const struct mac_table *t, uint64_t key)
{
	const uint64_t mac = key & ADDRESS;

	for (unsigned i = 0; i < t->n_own; i++)
		if (t->own[i] == mac)
			return false;
	return mac != 0 && !(mac & GROUP);
}

/* ---- entries ---- */

static unsigned bucket_of(uint64_t key)
{
	return (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % MAC_BUCKETS;
}

static struct mac_entry *find(struct mac_table *t, uint64_t key)
{
	for (unsigned at = t->bucket[bucket_of(key)]; at != 0; at = t->entry[at - 1].chain)
		if (t->entry[at - 1].key == key)
			return &t->entry[at - 1];
	return NULL;
}

const struct mac_entry *mac_table_find(const struct mac_table *t, uint64_t key)
{
	return find((struct mac_table *)(uintptr_t)t, key);
}

/* The caller counts it. There is room for what is learnt and for what is pinned. */
static struct mac_entry *add(struct mac_table *t, uint64_t key, uint16_t port)
{
	unsigned *at = &t->bucket[bucket_of(key)], number = t->free;
	struct mac_entry *e = &t->entry[number - 1];

	t->free = e->chain;
	*e = (struct mac_entry){.key = key, .port = port, .used = true, .chain = *at};
	*at = number;
	return e;
}

static void remove_entry(struct mac_table *t, struct mac_entry *e)
{
	unsigned *at = &t->bucket[bucket_of(e->key)];
	const unsigned number = (unsigned)(e - t->entry) + 1;

	if (e->told)
		t->ops->remove(t->arg, e->key);
	if (e->pinned) {
		t->n_pinned--;
	} else {
		t->n_learnt--;
		t->n_of[e->port]--;
	}
	while (*at != number)
		at = &t->entry[*at - 1].chain;
	*at = e->chain;
	*e = (struct mac_entry){.chain = t->free};
	t->free = number;
}

static bool tell(struct mac_table *t, struct mac_entry *e)
{
	const bool taken = t->ops->put(t->arg, (unsigned)(e - t->entry), e) == 0;

	e->told |= taken;
	return taken;
}

/* ---- learning ---- */

static bool has_room(struct mac_table *t, uint16_t port)
{
	if (t->n_of[port] < t->max_per_port)
		return true;
	t->count.refused++;
	return false;
}

static void learn(struct mac_table *t, uint64_t key, uint16_t port, uint64_t now)
{
	struct mac_entry *e;

	if (!has_room(t, port))
		return;
	if (t->n_learnt == MAC_MAX) {
		t->count.refused++;
		return;
	}
	e = add(t, key, port);
	e->heard = now;
	t->n_learnt++;
	t->n_of[port]++;
	if (tell(t, e)) {
		t->count.learnt++;
	} else {
		t->count.refused++;
		remove_entry(t, e);
	}
}

static void move(struct mac_table *t, struct mac_entry *e, uint16_t port, uint64_t now)
{
	const uint16_t from = e->port;

	if (!has_room(t, port))
		return;
	e->port = port;
	if (!tell(t, e)) {
		e->port = from;
		t->count.refused++;
		return;
	}
	t->n_of[from]--;
	t->n_of[port]++;
	e->heard = now;
	t->count.moved++;
}

void mac_table_heard(struct mac_table *t, uint64_t key, uint16_t port, uint64_t now)
{
	struct mac_entry *e;

	if (!mac_is_host(t, key))
		return;
	e = find(t, key);
	if (e == NULL)
		learn(t, key, port, now);
	else if (!e->pinned && e->port != port)
		move(t, e, port, now);
	else
		e->heard = now;
}

/* ---- what is pinned ---- */

static void pin(struct mac_table *t, const struct mac_pin *p)
{
	struct mac_entry *e = find(t, p->key);

	if (e != NULL && e->pinned && e->port == p->port)
		return;
	if (e == NULL) {
		e = add(t, p->key, p->port);
		t->n_pinned++;
	} else if (!e->pinned) {
		t->n_learnt--;
		t->n_of[e->port]--;
		t->n_pinned++;
	}
	e->port = p->port;
	e->pinned = true;
	if (!tell(t, e))
		t->untold = true;
}

void mac_table_pin(struct mac_table *t, const struct mac_pin *pins, unsigned n)
{
	for (unsigned i = 0; i < MAC_ENTRIES; i++)
		t->entry[i].wanted = false;
	for (unsigned i = 0; i < n; i++) {
		struct mac_entry *e = find(t, pins[i].key);

		if (e != NULL)
			e->wanted = true;
	}
	/* Those that go make room for those that come. */
	for (unsigned i = 0; i < MAC_ENTRIES; i++)
		if (t->entry[i].pinned && !t->entry[i].wanted)
			remove_entry(t, &t->entry[i]);
	for (unsigned i = 0; i < n; i++)
		pin(t, &pins[i]);
}

/* ---- time ---- */

void mac_table_flush(struct mac_table *t, uint16_t port)
{
	for (unsigned i = 0; i < MAC_ENTRIES; i++) {
		struct mac_entry *e = &t->entry[i];

		if (!e->used || e->pinned || e->port != port)
			continue;
		remove_entry(t, e);
		t->count.flushed++;
	}
}

static void tell_again(struct mac_table *t)
{
	t->untold = false;
	for (unsigned i = 0; i < MAC_ENTRIES; i++)
		if (t->entry[i].pinned && !tell(t, &t->entry[i]))
			t->untold = true;
}

void mac_table_tick(struct mac_table *t, uint64_t now)
{
	if (t->untold)
		tell_again(t);
	if (now < t->scan_at)
		return;
	t->scan_at = now + MAC_SCAN;
	for (unsigned i = 0; i < MAC_ENTRIES; i++) {
		struct mac_entry *e = &t->entry[i];

		if (!e->used)
			continue;
		if (t->ops->heard(t->arg, i))
			e->heard = now;
		if (e->pinned || now - e->heard < t->age)
			continue;
		remove_entry(t, e);
		t->count.aged++;
	}
}
