/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/l2/neigh_cache.h"

#include <string.h>

#include "lib/wire/bytes.h"

static const uint64_t SECOND = UINT64_C(1000000000);

const char *neigh_state_name(enum neigh_state state)
{
	static const char *const names[] = {
#define X(sym, name, text) [NEIGH_##sym] = name,
		NEIGH_STATES(X)
#undef X
	};

	return names[state];
}

void neigh_cache_init(
	struct neigh_cache *c, unsigned max_per_port, const struct neigh_ops *ops, void *arg)
{
	memset(c, 0, sizeof(*c));
	c->max_per_port = max_per_port;
	c->ops = ops;
	c->arg = arg;
	for (unsigned i = 0; i < NEIGH_MAX_PORTS; i++)
		c->port[i].tokens = NEIGH_BURST;
	for (unsigned i = 0; i < NEIGH_MAX; i++)
		c->entry[i].chain = i + 1 < NEIGH_MAX ? i + 2 : 0;
	c->free = 1;
}

/* ---- the table ---- */

static unsigned *bucket_of(struct neigh_cache *c, const struct wire_ip *ip)
{
	const uint64_t h = (get_be64(ip->b) ^ get_be64(ip->b + 8)) * UINT64_C(0x9e3779b97f4a7c15);

	return &c->bucket[h >> 32 & (NEIGH_MAX - 1)];
}

struct neigh_entry *neigh_cache_find(struct neigh_cache *c, const struct wire_ip *ip)
{
	for (unsigned at = *bucket_of(c, ip); at != 0; at = c->entry[at - 1].chain)
		if (wire_ip_eq(&c->entry[at - 1].ip, ip))
			return &c->entry[at - 1];
	return NULL;
}

static bool has_never_answered(const struct neigh_entry *e)
{
	return e->state == NEIGH_INCOMPLETE || e->state == NEIGH_FAILED;
}

static void set_state(
	struct neigh_cache *c, struct neigh_entry *e, enum neigh_state state, uint64_t now)
{
	const bool was_known = neigh_is_known(e);

	c->port[e->port].n_asked -= has_never_answered(e);
	e->state = (uint8_t)state;
	e->since = now;
	e->asked = 0;
	e->claimed = false;
	c->port[e->port].n_asked += has_never_answered(e);
	c->changed |= was_known != neigh_is_known(e);
}

static void settle(struct neigh_cache *c, struct neigh_entry *e, enum neigh_fate fate)
{
	for (unsigned i = 0; i < e->n_waiting; i++)
		c->ops->settle(c->arg, e, e->waiting[i], fate);
	c->n_waiting -= e->n_waiting;
	e->n_waiting = 0;
}

static void remove_entry(struct neigh_cache *c, struct neigh_entry *e)
{
	unsigned *at = bucket_of(c, &e->ip);
	const unsigned number = (unsigned)(e - c->entry) + 1;

	settle(c, e, NEIGH_UNREACHABLE);
	set_state(c, e, NEIGH_FREE, 0);
	while (*at != number)
		at = &c->entry[*at - 1].chain;
	*at = e->chain;
	e->chain = c->free;
	c->free = number;
	c->port[e->port].n--;
	c->n--;
}

static struct neigh_entry *add(struct neigh_cache *c, uint16_t port, uint16_t vlan,
	const struct wire_ip *ip, enum neigh_state state, uint64_t now)
{
	unsigned *at = bucket_of(c, ip), number = c->free;
	struct neigh_entry *e;

	if (number == 0 || c->port[port].n >= c->max_per_port ||
		(state == NEIGH_INCOMPLETE && c->port[port].n_asked >= NEIGH_MAX_ASKED)) {
		c->count.refused++;
		return NULL;
	}
	e = &c->entry[number - 1];
	c->free = e->chain;
	*e = (struct neigh_entry){.ip = *ip, .port = port, .vlan = vlan, .chain = *at};
	*at = number;
	c->port[port].n++;
	c->n++;
	set_state(c, e, state, now);
	return e;
}

void neigh_cache_clear(struct neigh_cache *c)
{
	for (unsigned i = 0; i < NEIGH_MAX; i++)
		if (c->entry[i].state != NEIGH_FREE)
			remove_entry(c, &c->entry[i]);
}

/* ---- asking ---- */

static bool may_ask(struct neigh_cache *c, uint16_t port, uint64_t now)
{
	const uint64_t gone = now - c->port[port].tokens_at;
	const uint64_t more = gone > SECOND ? NEIGH_BURST : gone * NEIGH_RATE / SECOND;

	if (more > 0) {
		const uint64_t tokens = c->port[port].tokens + more;

		c->port[port].tokens = (unsigned)(tokens < NEIGH_BURST ? tokens : NEIGH_BURST);
		c->port[port].tokens_at = now;
	}
	if (c->port[port].tokens == 0)
		return false;
	c->port[port].tokens--;
	return true;
}

/* In PROBE the old MAC address is asked first, then everybody. */
static bool asks_old(const struct neigh_entry *e)
{
	return e->state == NEIGH_PROBE && e->asked < NEIGH_REQUESTS;
}

/* What cannot be asked now is asked for at the next tick. */
static void ask(struct neigh_cache *c, struct neigh_entry *e, uint64_t now)
{
	if (!may_ask(c, e->port, now)) {
		c->count.requests_held++;
		e->next = now;
		return;
	}
	c->ops->ask(c->arg, e, asks_old(e));
	c->count.requests++;
	e->next = now + (e->claimed && asks_old(e) ? NEIGH_CHECK : NEIGH_RETRANS);
	if (e->asked < 2 * NEIGH_REQUESTS)
		e->asked++;
}

static void probe(struct neigh_cache *c, struct neigh_entry *e, bool claimed, uint64_t now)
{
	set_state(c, e, NEIGH_PROBE, now);
	e->claimed = claimed;
	ask(c, e, now);
}

static void wait_for(struct neigh_cache *c, struct neigh_entry *e, void *packet)
{
	if (c->n_waiting == NEIGH_ALL_WAITING && e->n_waiting == 0) {
		c->count.crowded++;
		c->ops->settle(c->arg, e, packet, NEIGH_CROWDED);
		return;
	}
	if (e->n_waiting == NEIGH_MAX_WAITING || c->n_waiting == NEIGH_ALL_WAITING) {
		c->count.crowded++;
		c->ops->settle(c->arg, e, e->waiting[0], NEIGH_CROWDED);
		memmove(e->waiting, e->waiting + 1, --e->n_waiting * sizeof(e->waiting[0]));
		c->n_waiting--;
	}
	e->waiting[e->n_waiting++] = packet;
	c->n_waiting++;
}

void neigh_cache_want(struct neigh_cache *c, uint16_t port, uint16_t vlan, const struct wire_ip *ip,
	void *packet, uint64_t now)
{
	struct neigh_entry *e = neigh_cache_find(c, ip);

	if (e != NULL && (e->port != port || e->vlan != vlan)) {
		remove_entry(c, e); /* its route has changed */
		e = NULL;
	}
	if (e == NULL) {
		const struct neigh_entry none = {.ip = *ip, .port = port, .vlan = vlan};

		e = add(c, port, vlan, ip, NEIGH_INCOMPLETE, now);
		if (e == NULL) {
			if (packet != NULL)
				c->ops->settle(c->arg, &none, packet, NEIGH_CROWDED);
			return;
		}
		ask(c, e, now);
	}
	if (packet == NULL)
		return;
	if (e->state == NEIGH_INCOMPLETE) {
		wait_for(c, e, packet);
	} else {
		c->ops->settle(c->arg, e, packet,
			e->state == NEIGH_FAILED ? NEIGH_UNREACHABLE : NEIGH_SEND);
	}
}

/* ---- hearing ---- */

static void take_mac(struct neigh_cache *c, struct neigh_entry *e, const uint8_t mac[6],
	enum neigh_state state, uint64_t now)
{
	if (!neigh_is_known(e)) {
		c->count.learnt++;
	} else if (memcmp(e->mac, mac, sizeof(e->mac)) != 0) {
		c->count.moved++;
		c->changed = true;
	}
	memcpy(e->mac, mac, sizeof(e->mac));
	set_state(c, e, state, now);
	e->heard = now;
	e->next = now + (state == NEIGH_REACHABLE ? NEIGH_REACHABLE_TIME : NEIGH_STALE_TIME);
	settle(c, e, NEIGH_SEND);
}

/* Another MAC address for one that is known. */
static void claim(struct neigh_cache *c, struct neigh_entry *e, enum neigh_word word,
	const uint8_t mac[6], uint64_t now)
{
	c->count.claims++;
	if (e->state == NEIGH_PROBE) {
		/* The old one has been asked in vain, then everybody. */
		if (word == NEIGH_ANSWERS && e->asked > NEIGH_REQUESTS)
			take_mac(c, e, mac, NEIGH_REACHABLE, now);
		return;
	}
	if (now < e->check_at)
		return;
	e->check_at = now + NEIGH_CHECK_EVERY;
	probe(c, e, true, now);
}

void neigh_cache_heard(struct neigh_cache *c, enum neigh_word word, uint16_t port, uint16_t vlan,
	const struct wire_ip *ip, const uint8_t mac[6], uint64_t now)
{
	struct neigh_entry *e = neigh_cache_find(c, ip);

	if (e == NULL && word == NEIGH_ASKS) {
		e = add(c, port, vlan, ip, NEIGH_FAILED, now);
		if (e != NULL)
			take_mac(c, e, mac, NEIGH_STALE, now);
		return;
	}
	if (e == NULL || e->port != port || e->vlan != vlan)
		return;
	if (!neigh_is_known(e)) {
		const bool asked = e->state == NEIGH_INCOMPLETE && word == NEIGH_ANSWERS;

		take_mac(c, e, mac, asked ? NEIGH_REACHABLE : NEIGH_STALE, now);
	} else if (memcmp(e->mac, mac, sizeof(e->mac)) != 0) {
		claim(c, e, word, mac, now);
	} else if (word == NEIGH_ANSWERS && e->state == NEIGH_PROBE) {
		take_mac(c, e, mac, NEIGH_REACHABLE, now);
	} else {
		e->heard = now;
	}
}

/* ---- time ---- */

static void ask_again(struct neigh_cache *c, struct neigh_entry *e, uint64_t now)
{
	const unsigned most = e->state == NEIGH_PROBE ? 2 * NEIGH_REQUESTS : NEIGH_REQUESTS;

	if (e->asked < most || (e->state == NEIGH_PROBE && c->ops->needed(c->arg, e))) {
		ask(c, e, now);
		return;
	}
	c->count.unanswered++;
	set_state(c, e, NEIGH_FAILED, now);
	e->next = now + NEIGH_FAILED_TIME;
	settle(c, e, NEIGH_UNREACHABLE);
}

/* Unused it is forgotten in the end; used it is asked for. */
static void look_at_stale(struct neigh_cache *c, struct neigh_entry *e, uint64_t now)
{
	if (c->ops->used(c->arg, e) || c->ops->needed(c->arg, e)) {
		probe(c, e, false, now);
	} else if (now >= e->next) {
		c->count.forgotten++;
		remove_entry(c, e);
	}
}

static void look_at(struct neigh_cache *c, struct neigh_entry *e, uint64_t now)
{
	if (e->state == NEIGH_STALE) {
		look_at_stale(c, e, now);
		return;
	}
	if (now < e->next)
		return;
	switch (e->state) {
	case NEIGH_INCOMPLETE:
	case NEIGH_PROBE:
		ask_again(c, e, now);
		break;
	case NEIGH_REACHABLE:
		c->ops->used(c->arg, e); /* until now is of no account */
		set_state(c, e, NEIGH_STALE, now);
		e->next = now + NEIGH_STALE_TIME;
		break;
	case NEIGH_FAILED:
		c->count.forgotten++;
		remove_entry(c, e);
		break;
	default:
		break;
	}
}

void neigh_cache_tick(struct neigh_cache *c, uint64_t now)
{
	for (unsigned i = 0; c->n > 0 && i < NEIGH_MAX; i++)
		if (c->entry[i].state != NEIGH_FREE)
			look_at(c, &c->entry[i], now);
}
