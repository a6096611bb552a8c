/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/agent/owners.h"

#include <stdlib.h>
#include <string.h>

#include "lib/journal/journal.h"

/* How long a failed group or ring stays, so that every rank that still sends is told (FATAL NAK).
 */
static const uint64_t FAREWELL_NS = 2000000000;

struct owner *owner_hold(struct owners *o, const char *token, const char *tenant)
{
	struct owner *w;

	if (o->held == OWNER_MAX_HELD)
		return NULL;
	LIST_FOREACH(w, &o->list, link)
	if (strcmp(w->token, token) == 0 && strcmp(w->tenant, tenant) == 0)
		break;
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return NULL;
		snprintf(w->token, sizeof(w->token), "%s", token);
		snprintf(w->tenant, sizeof(w->tenant), "%s", tenant);
		LIST_INSERT_HEAD(&o->list, w, link);
		o->n++;
	}
	o->held++;
	w->connections++;
	return w;
}

static bool has_group(const struct owners *o, struct sw *sw, unsigned slot, const struct owner *w)
{
	return o->group[slot] == w && sw_group_get(sw, slot);
}

static bool has_ring(const struct owners *o, struct sw *sw, unsigned i, const struct owner *w)
{
	return o->ring[i] == w && sw_ring_get(sw, i);
}

unsigned owner_groups(const struct owners *o, struct sw *sw, const struct owner *w)
{
	unsigned n = 0;

	for (unsigned slot = 0; slot < INC_GROUP_SLOTS; slot++)
		n += has_group(o, sw, slot, w);
	return n;
}

unsigned owner_rings(const struct owners *o, struct sw *sw, const struct owner *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		n += has_ring(o, sw, i, w);
	return n;
}

static void forget(struct owners *o, struct owner *w)
{
	for (unsigned slot = 0; slot < INC_GROUP_SLOTS; slot++)
		if (o->group[slot] == w)
			o->group[slot] = NULL;
	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		if (o->ring[i] == w)
			o->ring[i] = NULL;
	LIST_REMOVE(w, link);
	o->n--;
	free(w);
}

static void forget_if_empty(struct owners *o, struct sw *sw, struct owner *w)
{
	if (w->connections == 0 && owner_groups(o, sw, w) + owner_rings(o, sw, w) == 0)
		forget(o, w);
}

void owner_let_go(struct owners *o, struct sw *sw, struct owner *w)
{
	o->held--;
	w->connections--;
	w->alone_ns = sw_now(sw);
	forget_if_empty(o, sw, w);
}

const char *owner_state(const struct owner *w)
{
	return w->ending_ns ? "ending" : w->connections ? "held" : "alone";
}

/* ---- ending ---- */

/* All ranks of a group that makes progress are alive: its maker is only cut off from this socket.
 */
static uint64_t quiet_since(const struct owners *o, struct sw *sw, const struct owner *w)
{
	uint64_t since = w->alone_ns;

	for (unsigned slot = 0; slot < INC_GROUP_SLOTS; slot++)
		if (has_group(o, sw, slot, w) && sw_group_get(sw, slot)->last_progress_ns > since)
			since = sw_group_get(sw, slot)->last_progress_ns;
	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		if (has_ring(o, sw, i, w) && sw_ring_get(sw, i)->last_progress_ns > since)
			since = sw_ring_get(sw, i)->last_progress_ns;
	return since;
}

static uint64_t due(const struct owners *o, struct sw *sw, const struct owner *w)
{
	if (w->ending_ns)
		return w->ending_ns;
	return w->connections ? UINT64_MAX : quiet_since(o, sw, w) + w->wait_ns;
}

static void say(const struct owners *o, struct sw *sw, const struct owner *w, const char *what,
	const char *name, uint64_t now)
{
	(void)o;
	journal(JOURNAL_WARNING, "%s: %s %s: nobody has held it for %llu ms: it ends", sw_name(sw),
		what, name, (unsigned long long)((now - w->alone_ns) / 1000000));
}

/* Some work, so that there is somebody to be told? */
static bool end_rings(struct owners *o, struct sw *sw, struct owner *w, uint64_t now)
{
	char err[SW_ERR_LEN];
	bool told = false;

	for (unsigned i = 0; i < NR_MAX_RINGS; i++) {
		if (!has_ring(o, sw, i, w))
			continue;
		say(o, sw, w, "ring", sw_ring_get(sw, i)->name, now);
		o->orphans++;
		told |= sw_ring_get(sw, i)->state == NR_ACTIVE && sw_ring_fail(sw, i, err) == 0;
	}
	return told;
}

static void delete_all(struct owners *o, struct sw *sw, struct owner *w)
{
	char err[SW_ERR_LEN];

	for (unsigned slot = 0; slot < INC_GROUP_SLOTS; slot++)
		if (has_group(o, sw, slot, w))
			sw_group_delete(sw, slot, true, err);
	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		if (has_ring(o, sw, i, w))
			sw_ring_delete(sw, i, err);
}

/* Hosts that send to a group or ring that works are told; whoever waits for others would not hear
 * it otherwise. */
static void end(struct owners *o, struct sw *sw, struct owner *w, uint64_t now)
{
	char err[SW_ERR_LEN];
	bool told = false;

	for (unsigned slot = 0; slot < INC_GROUP_SLOTS; slot++) {
		if (!has_group(o, sw, slot, w))
			continue;
		say(o, sw, w, "group", sw_group_get(sw, slot)->name, now);
		o->orphans++;
		told |= sw_group_get(sw, slot)->state == INC_ACTIVE &&
			sw_group_fail(sw, slot, err) == 0;
	}
	told |= end_rings(o, sw, w, now);
	if (told)
		w->ending_ns = now + FAREWELL_NS;
	else
		delete_all(o, sw, w);
}

void owners_tick(struct owners *o, struct sw *sw, uint64_t now)
{
	for (struct owner *w = LIST_FIRST(&o->list), *next; w; w = next) {
		next = LIST_NEXT(w, link);
		if (due(o, sw, w) <= now) {
			if (w->ending_ns) {
				delete_all(o, sw, w);
				w->ending_ns = 0;
			} else {
				end(o, sw, w, now);
			}
		}
		forget_if_empty(o, sw, w);
	}
}

uint64_t owners_due(const struct owners *o, struct sw *sw)
{
	uint64_t first = UINT64_MAX;
	struct owner *w;

	LIST_FOREACH(w, &o->list, link)
	if (due(o, sw, w) < first)
		first = due(o, sw, w);
	return first;
}

void owners_free(struct owners *o)
{
	while (!LIST_EMPTY(&o->list))
		forget(o, LIST_FIRST(&o->list));
}
