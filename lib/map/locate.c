/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/map/locate.h"

#include <stddef.h>

const char *map_kind_name(enum map_kind kind)
{
	static const char *const names[MAP_N_KINDS] = {"host-link", "t0", "uplink", "t1"};

	return names[kind];
}

struct out {
	struct map_fault *fault;
	unsigned n, cap;
};

static void add(struct out *o, struct map_fault f)
{
	if (o->n < o->cap)
		o->fault[o->n] = f;
	o->n++;
}

static bool bad(uint8_t state)
{
	return state == MAP_LOSSY || state == MAP_DEAD;
}

/* Of several views of one thing: how many there are, how many of them are bad, and how bad the best
 * of these is. Those that are not known yet do not count. */
struct view {
	unsigned n, n_bad;
	uint8_t mildest;
};

static void look(struct view *v, uint8_t state)
{
	if (state == MAP_UNKNOWN)
		return;
	if (bad(state) && (v->n_bad == 0 || state < v->mildest))
		v->mildest = state;
	v->n++;
	v->n_bad += bad(state);
}

static bool all_bad(const struct view *v)
{
	return v->n > 0 && v->n_bad == v->n;
}

/* More than half: one link seen by several at once is one thing, and what one of them has lost
 * since is not its fault. */
static bool mostly_bad(const struct view *v)
{
	return 2 * v->n_bad > v->n;
}

static struct view of_t0(const struct map_seen *seen, unsigned n, uint8_t plane, uint16_t group)
{
	struct view v = {0};

	for (unsigned i = 0; i < n; i++)
		if (seen[i].plane == plane && seen[i].group == group)
			look(&v, seen[i].t0);
	return v;
}

/* The way from a T0 to a T1, by those who reach the T0 well. */
static struct view of_uplink(
	const struct map_seen *seen, unsigned n, uint8_t plane, uint16_t group, unsigned uplink)
{
	struct view v = {0};

	for (unsigned i = 0; i < n; i++)
		if (seen[i].plane == plane && seen[i].group == group && seen[i].t0 == MAP_GOOD)
			look(&v, seen[i].t1[uplink]);
	return v;
}

/* Is this the first of its plane, or of its group in it? */
static bool first(const struct map_seen *seen, unsigned i, bool group)
{
	for (unsigned k = 0; k < i; k++)
		if (seen[k].plane == seen[i].plane && (!group || seen[k].group == seen[i].group))
			return false;
	return true;
}

/* Links of hosts to one T0, or the T0 itself. Of one host alone nobody knows which. */
static void locate_t0(const struct map_seen *seen, unsigned n, unsigned at, struct out *o)
{
	const struct view v = of_t0(seen, n, seen[at].plane, seen[at].group);
	struct map_fault f = {.plane = seen[at].plane,
		.group = seen[at].group,
		.uplink = MAP_NOBODY,
		.host = MAP_NOBODY};

	if (v.n > 1 && all_bad(&v)) {
		f.kind = MAP_T0;
		f.state = v.mildest;
		f.sure = true;
		add(o, f);
		return;
	}
	for (unsigned i = at; i < n; i++) {
		if (seen[i].plane != f.plane || seen[i].group != f.group || !bad(seen[i].t0))
			continue;
		f.kind = MAP_HOST_LINK;
		f.host = seen[i].host;
		f.state = seen[i].t0;
		f.sure = v.n > 1;
		add(o, f);
	}
}

/* One T1, or its links. */
static void locate_t1(
	const struct map_seen *seen, unsigned n, uint8_t plane, unsigned uplink, struct out *o)
{
	struct map_fault f = {.plane = plane, .uplink = (uint16_t)uplink, .host = MAP_NOBODY};
	struct view t1 = {0};

	for (unsigned i = 0; i < n; i++) {
		struct view v;

		if (seen[i].plane != plane || !first(seen, i, true))
			continue;
		v = of_uplink(seen, n, plane, seen[i].group, uplink);
		if (v.n > 0)
			look(&t1, mostly_bad(&v) ? v.mildest : MAP_GOOD);
	}
	if (t1.n > 1 && all_bad(&t1)) {
		f.kind = MAP_T1;
		f.group = MAP_NOBODY;
		f.state = t1.mildest;
		f.sure = true;
		add(o, f);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		struct view v;

		if (seen[i].plane != plane || !first(seen, i, true))
			continue;
		v = of_uplink(seen, n, plane, seen[i].group, uplink);
		if (!mostly_bad(&v))
			continue;
		f.kind = MAP_UPLINK;
		f.group = seen[i].group;
		f.state = v.mildest;
		f.sure = t1.n > 1;
		add(o, f);
	}
}

unsigned map_locate(const struct map_seen *seen, unsigned n, unsigned n_uplinks,
	struct map_fault *fault, unsigned cap)
{
	struct out o = {.fault = fault, .cap = cap};

	for (unsigned i = 0; i < n; i++) {
		if (!first(seen, i, false))
			continue;
		for (unsigned k = i; k < n; k++)
			if (seen[k].plane == seen[i].plane && first(seen, k, true))
				locate_t0(seen, n, k, &o);
		for (unsigned k = 0; k < n_uplinks; k++)
			locate_t1(seen, n, seen[i].plane, k, &o);
	}
	return o.n;
}

static bool meets(const struct map_fault *f, const struct map_path *p)
{
	switch (f->kind) {
	case MAP_HOST_LINK:
		return (f->host == p->from && f->group == p->from_group) ||
		       (f->host == p->to && f->group == p->to_group);
	case MAP_T0:
		return f->group == p->from_group || f->group == p->to_group;
	case MAP_UPLINK:
		return f->uplink == p->uplink &&
		       (f->group == p->from_group || f->group == p->to_group);
	default:
		return f->uplink == p->uplink;
	}
}

bool map_denied(const struct map_fault *fault, unsigned n, const struct map_path *path)
{
	for (unsigned i = 0; i < n; i++)
		if (fault[i].plane == path->plane && meets(&fault[i], path))
			return true;
	return false;
}
