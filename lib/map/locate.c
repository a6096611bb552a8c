/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/map/locate.h"

#include <stdlib.h>

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

/* Rows of one plane, or of one T0 in it; they stand together (map_locate). */
struct rows {
	const struct map_seen *row;
	unsigned n;
};

/* Those that begin at `at` and are of the same T0. */
static struct rows group_at(struct rows plane, unsigned at)
{
	const uint16_t group = plane.row[at].group;
	unsigned end = at + 1;

	while (end < plane.n && plane.row[end].group == group)
		end++;
	return (struct rows){plane.row + at, end - at};
}

static struct rows plane_at(struct rows all, unsigned at)
{
	const uint8_t plane = all.row[at].plane;
	unsigned end = at + 1;

	while (end < all.n && all.row[end].plane == plane)
		end++;
	return (struct rows){all.row + at, end - at};
}

static struct view of_t0(struct rows group)
{
	struct view v = {0};

	for (unsigned i = 0; i < group.n; i++)
		look(&v, group.row[i].t0);
	return v;
}

/* The way from a T0 to a T1, by those who reach the T0 well. */
static struct view of_uplink(struct rows group, unsigned uplink)
{
	struct view v = {0};

	for (unsigned i = 0; i < group.n; i++)
		if (group.row[i].t0 == MAP_GOOD)
			look(&v, group.row[i].t1[uplink]);
	return v;
}

/* Links of hosts to one T0, or the T0 itself. Of one host alone nobody knows which. */
static void locate_t0(struct rows group, struct out *o)
{
	const struct view v = of_t0(group);
	struct map_fault f = {.plane = group.row[0].plane,
		.group = group.row[0].group,
		.uplink = MAP_NOBODY,
		.host = MAP_NOBODY};

	if (v.n > 1 && all_bad(&v)) {
		f.kind = MAP_T0;
		f.state = v.mildest;
		f.sure = true;
		add(o, f);
		return;
	}
	for (unsigned i = 0; i < group.n; i++) {
		if (!bad(group.row[i].t0))
			continue;
		f.kind = MAP_HOST_LINK;
		f.host = group.row[i].host;
		f.state = group.row[i].t0;
		f.sure = v.n > 1;
		add(o, f);
	}
}

/* One T1, or its links. */
static void locate_t1(struct rows plane, unsigned uplink, struct out *o)
{
	struct map_fault f = {
		.plane = plane.row[0].plane, .uplink = (uint16_t)uplink, .host = MAP_NOBODY};
	struct view t1 = {0};
	struct rows group;

	for (unsigned i = 0; i < plane.n; i += group.n) {
		struct view v;

		group = group_at(plane, i);
		v = of_uplink(group, uplink);
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
	for (unsigned i = 0; i < plane.n; i += group.n) {
		struct view v;

		group = group_at(plane, i);
		v = of_uplink(group, uplink);
		if (!mostly_bad(&v))
			continue;
		f.kind = MAP_UPLINK;
		f.group = group.row[0].group;
		f.state = v.mildest;
		f.sure = t1.n > 1;
		add(o, f);
	}
}

static int compare(const void *a, const void *b)
{
	const struct map_seen *x = a, *y = b;

	if (x->plane != y->plane)
		return x->plane < y->plane ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->host < y->host ? -1 : x->host > y->host;
}

unsigned map_locate(struct map_seen *seen, unsigned n, unsigned n_uplinks, struct map_fault *fault,
	unsigned cap)
{
	const struct rows all = {seen, n};
	struct out o = {.fault = fault, .cap = cap};
	struct rows plane, group;

	qsort(seen, n, sizeof(*seen), compare);
	for (unsigned at = 0; at < n; at += plane.n) {
		plane = plane_at(all, at);
		for (unsigned i = 0; i < plane.n; i += group.n) {
			group = group_at(plane, i);
			locate_t0(group, &o);
		}
		for (unsigned k = 0; k < n_uplinks; k++)
			locate_t1(plane, k, &o);
	}
	return o.n;
}

bool map_meets(const struct map_fault *f, const struct map_path *p)
{
	if (f->plane != p->plane)
		return false;
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
		if (map_meets(&fault[i], path))
			return true;
	return false;
}
