/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/map/deny.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NEAR_HOPS = 2, FAR_HOPS = 4 };

const struct map_deny_config map_deny_defaults = {.hold_ns = UINT64_C(60000000000), .keep = 1};

/* ---- paths ---- */

static int refuse(char err[MAP_ERR_LEN], const char *what)
{
	snprintf(err, MAP_ERR_LEN, "%s", what);
	return -EINVAL;
}

static int add_path(struct map_deny *d, const struct srv6_paths *paths,
	const struct srv6_template *t, uint32_t ev)
{
	struct map_deny_ev *e = &d->ev[d->n];
	const uint32_t below = (1u << paths->plane_shift) - 1;

	*e = (struct map_deny_ev){.ev = ev,
		.plane = (uint8_t)(ev >> paths->plane_shift),
		.uplink = t->n_hops == NEAR_HOPS ? MAP_NOBODY : (uint16_t)(ev & below)};
	if (srv6_template_expand(t, ev, &e->address) < 0)
		return -EINVAL;
	d->n++;
	return 0;
}

int map_deny_init(struct map_deny *d, const struct map_deny_config *config,
	const struct srv6_paths *paths, const struct wire_ip *to, char err[MAP_ERR_LEN])
{
	struct srv6_template t;
	uint32_t ev;

	*d = (struct map_deny){.config = *config, .from = paths->address, .to = *to};
	if (config->hold_ns == 0)
		return refuse(err, "hold: must be more than 0");
	if (srv6_paths_find(paths, to, &t) < 0)
		return refuse(err, "rows: none leads to the host");
	if (t.n_hops != NEAR_HOPS && t.n_hops != FAR_HOPS)
		return refuse(err, "rows: a path that a map has is of 2 or 4 hops");
	/* Bits of the plane are not in the template: these are the numbers that agents have. */
	d->from_group = srv6_usid(&t.address, 0);
	d->to_group = srv6_usid(&t.address, t.n_hops - 2u);
	for (unsigned i = 0; srv6_paths_ev(paths, &t, i, &ev) == 0; i++) {
		if (i == MAP_DENY_EVS)
			return refuse(err, "rows: more than 256 paths lead to the host");
		if (add_path(d, paths, &t, ev) < 0)
			return refuse(err, "rows: a path cannot be made");
	}
	if (config->keep == 0 || config->keep > d->n)
		return refuse(err, "keep: must be 1 up to the number of paths");
	return 0;
}

/* ---- what a map says of a path's parts ---- */

/* Who sees which part: agents of one T0, of one of them, of both. */
struct eyes {
	uint16_t host, from, to; /* MAP_NOBODY: not asked for */
	bool over_t1;
};

static struct eyes eyes_of(const struct map_path *p, enum map_part part)
{
	const struct eyes from = {MAP_NOBODY, p->from_group, p->from_group, false},
			  to = {MAP_NOBODY, p->to_group, p->to_group, false};

	switch (part) {
	case MAP_PART_FROM_LINK:
		return (struct eyes){p->from, from.from, from.to, false};
	case MAP_PART_TO_LINK:
		return (struct eyes){p->to, to.from, to.to, false};
	case MAP_PART_FROM_T0:
		return from;
	case MAP_PART_TO_T0:
		return to;
	case MAP_PART_FROM_UPLINK:
		return (struct eyes){MAP_NOBODY, from.from, from.to, true};
	case MAP_PART_TO_UPLINK:
		return (struct eyes){MAP_NOBODY, to.from, to.to, true};
	default:
		return (struct eyes){MAP_NOBODY, p->from_group, p->to_group, true};
	}
}

/* Whether one of those who could tell sees it good. Over a T0 that is not good nothing is seen. */
static bool seen_good(const struct map *m, const struct map_path *p, enum map_part part)
{
	const struct eyes e = eyes_of(p, part);
	const bool is_link = part == MAP_PART_FROM_LINK || part == MAP_PART_TO_LINK;

	for (unsigned i = 0; i < m->n_seen; i++) {
		const struct map_seen *s = &m->seen[i];

		if (s->plane != p->plane || (s->group != e.from && s->group != e.to) ||
			(is_link && s->host != e.host) || s->t0 != MAP_GOOD)
			continue;
		if (!e.over_t1 || (p->uplink < m->n_uplinks && s->t1[p->uplink] == MAP_GOOD))
			return true;
	}
	return false;
}

static enum map_part part_of(const struct map_fault *f, const struct map_path *p)
{
	switch (f->kind) {
	case MAP_HOST_LINK:
		return f->host == p->from ? MAP_PART_FROM_LINK : MAP_PART_TO_LINK;
	case MAP_T0:
		return f->group == p->from_group ? MAP_PART_FROM_T0 : MAP_PART_TO_T0;
	case MAP_UPLINK:
		return f->group == p->from_group ? MAP_PART_FROM_UPLINK : MAP_PART_TO_UPLINK;
	default:
		return MAP_PART_T1;
	}
}

static uint16_t host_at(const struct map *m, const struct wire_ip *address)
{
	for (unsigned i = 0; i < m->n_hosts; i++)
		if (wire_ip_eq(&m->address[i], address))
			return (uint16_t)i;
	return MAP_NOBODY;
}

static void judge(
	struct map_deny_ev *e, const struct map *m, const struct map_path *p, uint64_t now)
{
	uint8_t faults = 0;
	bool dead = false;

	for (unsigned i = 0; i < m->n_faults; i++) {
		if (!map_meets(&m->fault[i], p))
			continue;
		faults |= (uint8_t)(1u << part_of(&m->fault[i], p));
		dead |= m->fault[i].state == MAP_DEAD;
	}
	if (faults) {
		e->confirmed_ns = now;
		e->dead = dead;
	}
	e->bad |= faults;
	for (unsigned part = 0; part < MAP_N_PARTS; part++)
		if (e->bad & ~faults & 1u << part && seen_good(m, p, part))
			e->bad &= (uint8_t) ~(1u << part);
}

/* ---- denials ---- */

static void change(struct map_deny *d, struct map_deny_ev *e, bool denied)
{
	e->denied = denied;
	e->changed = true;
	if (denied) {
		d->n_denied++;
		d->denials++;
	} else {
		d->n_denied--;
		d->returns++;
	}
}

/* As many of those that are dead, or all that are bad, as leave enough. */
static unsigned deny(struct map_deny *d, bool dead)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->n && d->n_denied + d->config.keep < d->n; i++) {
		struct map_deny_ev *e = &d->ev[i];

		if (e->denied || !e->bad || (dead && !e->dead))
			continue;
		change(d, e, true);
		n++;
	}
	return n;
}

unsigned map_deny_turn(struct map_deny *d, const struct map *m, uint64_t now_ns)
{
	struct map_path p = {.from_group = d->from_group, .to_group = d->to_group};
	unsigned n = 0;

	p.from = m ? host_at(m, &d->from) : MAP_NOBODY;
	p.to = m ? host_at(m, &d->to) : MAP_NOBODY;
	for (unsigned i = 0; i < d->n; i++) {
		struct map_deny_ev *e = &d->ev[i];

		e->changed = false;
		p.plane = e->plane;
		p.uplink = e->uplink;
		if (m != NULL)
			judge(e, m, &p, now_ns);
		if (e->bad && now_ns - e->confirmed_ns >= d->config.hold_ns)
			e->bad = 0;
		if (e->denied && !e->bad) {
			change(d, e, false);
			n++;
		}
	}
	return m == NULL ? n : n + deny(d, true) + deny(d, false);
}
