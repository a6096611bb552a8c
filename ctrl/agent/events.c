/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/agent/events.h"

#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/rpc.h"
#include "lib/ctl/event.h"
#include "lib/journal/journal.h"

static const uint64_t STALL_NS = 5000000000; /* without progress, while something is unfinished */
enum { MAX_RANKS = 64 };                     /* that an event names */

/* The last EVENT_KEPT are there. Takes over the fields. */
static void note(struct events *ev, uint64_t now, enum ctl_event kind, json_t *fields)
{
	json_t *e = json_pack("{s:o,s:o,s:s}", "seq", ctl_u64(ev->next), "ns", ctl_u64(now), "kind",
		ctl_event_names[kind]);
	json_t **at = &ev->kept[ev->next % EVENT_KEPT];

	json_object_update(e, fields);
	json_decref(fields);
	json_decref(*at);
	*at = e;
	ev->next++;
}

static void look_at_ports(struct events *ev, struct sw *sw, uint64_t now)
{
	const unsigned n = sw_n_ports(sw);
	struct sw_port p;

	for (unsigned i = 0; i < n && i < SW_MAX_PORTS; i++) {
		if (sw_port_get(sw, i, &p))
			continue;
		if (ev->looked && p.link != ev->link[i])
			note(ev, now, p.link ? CTL_PORT_UP : CTL_PORT_DOWN,
				json_pack("{s:o}", "port", rpc_text(p.name)));
		ev->link[i] = p.link;
	}
}

static json_t *group_fields(const struct inc_group *g, const struct epochs *epochs, unsigned slot)
{
	json_t *out = json_pack("{s:i,s:s}", "group", (int)slot, "name", g->name);
	uint64_t epoch;
	const char *job = epoch_of(epochs, slot, &epoch);

	if (job)
		json_object_update_new(
			out, json_pack("{s:s,s:o}", "job", job, "epoch", ctl_u64(epoch)));
	return out;
}

/* Endpoints that a stalled group waits for, as bits. */
static uint64_t stalled_for(struct inc_group *g, uint64_t now)
{
	const uint64_t last = g->last_progress_ns;
	uint32_t psn;

	return g->state == INC_ACTIVE && now > last && now - last >= STALL_NS
		       ? inc_group_missing(g, &psn)
		       : 0;
}

static json_t *ranks_of(struct inc_group *g, uint64_t eps)
{
	json_t *out = json_array();

	for (unsigned r = 0; r < g->n_ranks && json_array_size(out) < MAX_RANKS; r++)
		if (eps >> (inc_rank_ep(g)[r] & 63) & 1)
			json_array_append_new(out, json_integer(r));
	return out;
}

static void look_at_group(struct events *ev, struct inc_group *g, const struct epochs *epochs,
	unsigned slot, uint64_t now)
{
	struct event_group *was = &ev->group[slot];
	json_t *fields;
	uint64_t stalled;
	uint8_t state;

	if (!g) {
		was->there = false;
		return;
	}
	state = __atomic_load_n(&g->state, __ATOMIC_ACQUIRE); /* a worker's; looked at once */
	if (!was->there || was->gen != g->gen)
		*was = (struct event_group){.gen = g->gen, .there = true};
	if (state == INC_FAILED &&
		__atomic_load_n(&g->fail_reason, __ATOMIC_ACQUIRE) == INC_FAIL_NONE)
		state = was->state; /* the worker is about to say why */
	if (state == INC_FAILED && was->state != INC_FAILED && ev->looked) {
		fields = group_fields(g, epochs, slot);
		json_object_set_new(fields, "reason", json_string(inc_fail_name(g->fail_reason)));
		if (g->fail_ep != 0xff)
			json_object_set_new(fields, "ep", json_integer(g->fail_ep));
		note(ev, now, CTL_GROUP_FAILED, fields);
	}
	was->state = state;
	stalled = stalled_for(g, now);
	if (stalled && !was->stalled && ev->looked) {
		fields = group_fields(g, epochs, slot);
		json_object_set_new(fields, "missing", ranks_of(g, stalled));
		note(ev, now, CTL_GROUP_STALLED, fields);
	}
	was->stalled = stalled != 0;
}

static bool ring_stalled(struct nr_ring *r, uint64_t now)
{
	const uint64_t last = r->last_progress_ns;
	uint32_t msg, o;

	return r->state == NR_ACTIVE && now > last && now - last >= STALL_NS &&
	       nr_missing(r, &msg, &o) != 0;
}

static json_t *ring_fields(struct nr_ring *r, unsigned i)
{
	json_t *out = json_pack("{s:i,s:s}", "ring", (int)i, "name", r->name), *reason;

	rpc_ring_failure(r, out);
	reason = json_object_get(out, "fail_reason");
	if (reason)
		json_object_set(out, "reason", reason);
	json_object_del(out, "fail_reason");
	return out;
}

static void look_at_ring(struct events *ev, struct nr_ring *r, unsigned i, uint64_t now)
{
	struct event_group *was = &ev->ring[i];
	uint8_t state;
	bool stalled;

	if (!r) {
		was->there = false;
		return;
	}
	state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE); /* as a group's */
	if (!was->there || was->gen != r->gen)
		*was = (struct event_group){.gen = r->gen, .there = true};
	if (state == NR_FAILED && was->state != NR_FAILED && ev->looked)
		note(ev, now, CTL_RING_FAILED, ring_fields(r, i));
	was->state = state;
	stalled = ring_stalled(r, now);
	if (stalled && !was->stalled && ev->looked)
		note(ev, now, CTL_RING_STALLED, ring_fields(r, i));
	was->stalled = stalled;
}

static void look_at_leases(struct events *ev, struct sw *sw, uint64_t now)
{
	struct sw_lease_info info;

	for (unsigned i = 0; i < SW_MAX_LEASES && !sw_lease_get(sw, i, &info); i++) {
		if (ev->looked && info.count.taken_back > ev->taken_back[i])
			note(ev, now, CTL_LEASE_LOST, json_pack("{s:s}", "lease", info.name));
		ev->taken_back[i] = info.count.taken_back;
	}
}

/* Once for each time that it gets full: what comes and goes at the limit is one event. */
static void look_at_memory(struct events *ev, struct sw *sw, uint64_t now)
{
	uint64_t size, used;
	bool low;

	sw_arena_usage(sw, &size, &used);
	low = ev->low ? used >= size / 10 * 8 : used > size / 10 * 9;
	if (low && !ev->low && ev->looked)
		note(ev, now, CTL_MEMORY_LOW,
			json_pack("{s:o,s:o}", "arena_bytes", ctl_u64(size), "arena_used_bytes",
				ctl_u64(used)));
	ev->low = low;
}

void events_tick(struct events *ev, struct sw *sw, const struct epochs *epochs, uint64_t now)
{
	look_at_ports(ev, sw, now);
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++)
		look_at_group(ev, sw_group_get(sw, slot), epochs, slot, now);
	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		look_at_ring(ev, sw_ring_get(sw, i), i, now);
	look_at_leases(ev, sw, now);
	look_at_memory(ev, sw, now);
	ev->looked = true;
}

static uint64_t oldest(const struct events *ev)
{
	return ev->next > EVENT_KEPT ? ev->next - EVENT_KEPT : 0;
}

static uint64_t missed(const struct events *ev, uint64_t from)
{
	return from < oldest(ev) ? oldest(ev) - from : 0;
}

json_t *events_list(const struct events *ev, uint64_t *from, uint64_t *lost)
{
	json_t *list = json_array();
	uint64_t at;

	*lost = missed(ev, *from);
	at = *from + *lost;
	for (; at < ev->next; at++)
		json_array_append(list, ev->kept[at % EVENT_KEPT]);
	*from = ev->next;
	return list;
}

char *events_line(const struct events *ev, uint64_t *from)
{
	const uint64_t lost = missed(ev, *from);
	json_t *params, *line;
	char *text;

	if (*from >= ev->next)
		return NULL;
	*from += lost;
	params = json_copy(ev->kept[*from % EVENT_KEPT]);
	if (lost)
		json_object_set_new(params, "dropped", ctl_u64(lost));
	line = json_pack("{s:s,s:s,s:o}", "jsonrpc", "2.0", "method", "event", "params", params);
	text = json_dumps(line, JSON_COMPACT);
	json_decref(line);
	++*from;
	return text;
}

static const char *text(const json_t *e, const char *field)
{
	return json_string_value(json_object_get(e, field));
}

/* Stalls, rings and leases the switch itself speaks of. Names are of letters that rpc_text and the
 * schemas let pass: no control characters. */
static void say(const char *name, const json_t *e, FILE *out)
{
	const char *job = text(e, "job");

	switch (ctl_event_find(text(e, "kind"))) {
	case CTL_PORT_DOWN:
		journal_to(out, JOURNAL_WARNING, "%s: port %s: its link is down", name,
			text(e, "port"));
		break;
	case CTL_PORT_UP:
		journal_to(
			out, JOURNAL_NOTICE, "%s: port %s: its link is up", name, text(e, "port"));
		break;
	case CTL_GROUP_FAILED:
		journal_to(out, JOURNAL_ERR, "%s: group %s%s%s%s has failed: %s", name,
			text(e, "name"), job ? " (job " : "", job ? job : "", job ? ")" : "",
			text(e, "reason"));
		break;
	default:
		break;
	}
}

void events_say(struct events *ev, const char *name, FILE *out)
{
	for (ev->said += missed(ev, ev->said); ev->said < ev->next; ev->said++)
		say(name, ev->kept[ev->said % EVENT_KEPT], out);
}

void events_free(struct events *ev)
{
	for (unsigned i = 0; i < EVENT_KEPT; i++)
		json_decref(ev->kept[i]);
}
