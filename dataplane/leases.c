/* SPDX-License-Identifier: BSD-3-Clause */
/* Leases (leases.h). A tenant's groups get their parts of the range together, and let go together:
 * at the end of an invocation, when their operations are forgotten and what comes late is answered
 * as a duplicate; or by force, when they fail. Either way no worker can be at work in the range
 * when somebody else gets it. */
#include "dataplane/leases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/runtime/host_ops.h"
#include "dataplane/sw.h"
#include "lib/journal/journal.h"

enum { ALIGN = INC_ARENA_ALIGN };

struct sw_leases *sw_leases_create(void)
{
	return calloc(1, sizeof(struct sw_leases));
}

void sw_leases_destroy(struct sw_leases *leases)
{
	free(leases);
}

static struct sw_lease *find(struct sw *sw, const char *name)
{
	for (unsigned i = 0; name[0] && i < SW_MAX_LEASES; i++)
		if (!strcmp(sw->leases->lease[i].name, name))
			return &sw->leases->lease[i];
	return NULL;
}

static unsigned entry_of(const struct sw *sw, const struct sw_lease *l)
{
	return (unsigned)(l - sw->leases->lease);
}

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* The next group of a tenant (NULL: of any) at or behind a slot; NULL: there is none. */
static struct inc_group *next_group(
	struct sw *sw, const struct sw_lease *l, const char *tenant, unsigned *slot)
{
	for (; *slot < INC_GROUP_SLOTS; ++*slot) {
		const struct sw_lease_member *m = &sw->slot[*slot].lease;

		if (m->lease == entry_of(sw, l) + 1 && (!tenant || !strcmp(m->tenant, tenant)))
			return sw->groups->group[*slot];
	}
	return NULL;
}

#define EACH_GROUP(sw, l, tenant, slot, g) \
	for (unsigned slot = 1; (g = next_group(sw, l, tenant, &slot)) != NULL; slot++)

static size_t tenant_bytes(struct sw *sw, const struct sw_lease *l, const char *tenant)
{
	struct inc_group *g;
	size_t sum = 0;

	EACH_GROUP(sw, l, tenant, slot, g)
	sum += aligned(sw->slot[slot].lease.bytes);
	return sum;
}

/* ---- joining ---- */

static struct sw_lease *make(struct sw *sw, const char *name)
{
	for (unsigned i = 0; i < SW_MAX_LEASES; i++) {
		struct sw_lease *l = &sw->leases->lease[i];

		if (l->name[0])
			continue;
		*l = (struct sw_lease){.off = INC_NO_ARENA, .held_off = INC_NO_ARENA};
		l->id = ++sw->leases->next_id;
		memcpy(l->name, name, sizeof(l->name));
		return l;
	}
	return NULL;
}

static void drop_range(struct sw *sw, uint64_t off)
{
	if (off != INC_NO_ARENA)
		inc_ranges_free(sw->arena, off);
}

/* A larger range. While somebody holds the old one, that stays until it is let go. */
static int enlarge(struct sw *sw, struct sw_lease *l, size_t bytes, char err[SW_ERR_LEN])
{
	uint64_t off;
	int rc;

	if (!l->bound)
		drop_range(sw, l->off);
	rc = inc_ranges_alloc(sw->arena, bytes, &off);
	if (rc == 0) {
		if (l->bound && l->off != l->held_off)
			drop_range(sw, l->off); /* enlarged twice */
		l->off = off;
		l->bytes = bytes;
		return 0;
	}
	/* What it had was free a moment ago. */
	if (!l->bound && l->off != INC_NO_ARENA)
		inc_ranges_alloc(sw->arena, l->bytes, &l->off);
	return sw_fail(err, rc,
		"lease: aggregation memory: \"%s\" needs %zu bytes for this tenant, %zu of %zu are "
		"free: raise \"arena_kb\" or lower mtu, M, W or slots",
		l->name, bytes, sw->arena->size - sw->arena->used, sw->arena->size);
}

static void forget(struct sw *sw, struct sw_lease *l)
{
	if (l->members > 0)
		return;
	drop_range(sw, l->off);
	*l = (struct sw_lease){.off = INC_NO_ARENA};
}

int sw_lease_join(struct sw *sw, const struct inc_group_spec *spec, size_t bytes,
	struct sw_lease_member *member, char err[SW_ERR_LEN])
{
	struct sw_lease *l = find(sw, spec->lease);
	const char *tenant = spec->tenant[0] ? spec->tenant : spec->name;
	size_t need;
	int rc = 0;

	if (l == NULL)
		l = make(sw, spec->lease);
	if (l == NULL)
		return sw_fail(err, -EMFILE, "lease: \"%s\" would be one more than %d", spec->lease,
			SW_MAX_LEASES);
	if (!strcmp(l->holder, tenant))
		return sw_fail(err, -EBUSY, "lease: \"%s\" is held by this tenant", l->name);
	need = tenant_bytes(sw, l, tenant) + aligned(bytes);
	if (need > l->bytes)
		rc = enlarge(sw, l, need, err);
	if (rc < 0) {
		forget(sw, l);
		return rc;
	}
	l->members++;
	*member = (struct sw_lease_member){.lease = (uint8_t)(entry_of(sw, l) + 1),
		.limit_ns = (spec->lease_ms ? spec->lease_ms : SW_LEASE_MS) * 1000000ull,
		.bytes = bytes};
	memcpy(member->tenant, tenant, sizeof(member->tenant));
	return 0;
}

/* ---- letting go ---- */

static void freed(struct sw *sw, struct sw_lease *l)
{
	if (l->bound > 0 || !l->holder[0])
		return;
	if (l->held_off != l->off)
		drop_range(sw, l->held_off);
	l->held_off = INC_NO_ARENA;
	l->count.released += !l->taken_back;
	l->holder[0] = '\0';
	l->releasing = l->taken_back = false;
}

static void unbind(struct sw_lease *l, struct inc_group *g)
{
	l->bound -= g->pay_off != INC_NO_ARENA;
	g->pay_off = INC_NO_ARENA;
}

void sw_lease_leave(struct sw *sw, const struct sw_lease_member *member, struct inc_group *g)
{
	struct sw_lease *l;

	if (member->lease == 0)
		return;
	l = &sw->leases->lease[member->lease - 1];
	if (g->pay_off != INC_NO_ARENA) {
		unbind(l, g);
		freed(sw, l);
	}
	l->members--;
	forget(sw, l);
}

struct letting_go {
	unsigned entry;
	uint64_t id;
};

/* A port may still send from the holder's memory. */
static bool is_read(struct sw *sw, const struct sw_lease *l)
{
	struct inc_group *g;

	EACH_GROUP(sw, l, l->holder, slot, g)
	if (sw_host_is_read(sw, slot))
		return true;
	return false;
}

/* No worker works with groups that were stopped before; if a port still sends what they have made,
 * the next tick tries again. A group that drains still does its work: it lets go when it is
 * removed. */
static void let_go(struct sw *sw, void *what)
{
	struct letting_go *w = what;
	struct sw_lease *l = &sw->leases->lease[w->entry];
	struct inc_group *g;

	if (l->id == w->id && l->holder[0] && !is_read(sw, l)) {
		EACH_GROUP(sw, l, l->holder, slot, g)
		{
			if (g->state == INC_FAILED) {
				unbind(l, g);
			} else if (g->state == INC_INSTALLED) {
				unbind(l, g);
				inc_group_rebind(g, INC_NO_ARENA);
				inc_group_set_state(g, INC_INSTALLED, INC_ACTIVE);
			}
		}
		freed(sw, l);
	}
	free(w);
}

static int start_letting_go(struct sw *sw, struct sw_lease *l)
{
	struct letting_go *w = malloc(sizeof(*w));

	if (w == NULL)
		return -ENOMEM; /* the next tick tries again */
	*w = (struct letting_go){entry_of(sw, l), l->id};
	sw_defer(sw, let_go, w);
	return 0;
}

/* Its holder has said that all ranks are done; the switch may still wait for acknowledgements. */
static int try_release(struct sw *sw, struct sw_lease *l)
{
	struct inc_group *g;
	uint64_t eps;
	uint32_t psn;

	EACH_GROUP(sw, l, l->holder, slot, g)
	if (g->state == INC_ACTIVE && inc_group_busy(g, &psn, &eps))
		return -EBUSY;
	EACH_GROUP(sw, l, l->holder, slot, g)
	if (sw->slot[slot].lease.bytes > 0)
		inc_group_set_state(g, INC_ACTIVE, INC_INSTALLED);
	return start_letting_go(sw, l);
}

/* ---- asking ---- */

static struct sw_lease *resolve(
	struct sw *sw, const char *name, const char *tenant, int *rc, char err[SW_ERR_LEN])
{
	struct sw_lease *l = find(sw, name);
	unsigned slot = 1;

	*rc = 0;
	if (l == NULL) {
		*rc = sw_fail(err, -ENOENT, "lease: no group names a lease \"%s\"", name);
		return NULL;
	}
	if (next_group(sw, l, tenant, &slot) != NULL)
		return l;
	*rc = sw_fail(err, -ENOENT, "tenant: \"%s\" has no group in lease \"%s\"", tenant, name);
	return NULL;
}

/* What has failed or drains will not be active again: nobody is to wait for it. */
static int check_over(
	struct sw *sw, const struct sw_lease *l, const char *tenant, char err[SW_ERR_LEN])
{
	struct inc_group *g;

	EACH_GROUP(sw, l, tenant, slot, g)
	if (g->state != INC_ACTIVE && g->state != INC_INSTALLED)
		return sw_fail(err, -ESTALE, "group %s is %s", g->name, inc_state_name(g->state));
	return 0;
}

/* What is installed may become active. */
static int check_active(
	struct sw *sw, const struct sw_lease *l, const char *tenant, char err[SW_ERR_LEN])
{
	struct inc_group *g;

	EACH_GROUP(sw, l, tenant, slot, g)
	if (g->state != INC_ACTIVE)
		return sw_fail(err, -EBUSY, "group %s is %s", g->name, inc_state_name(g->state));
	return 0;
}

/* The groups work on, so that the range becomes theirs in one store each. */
static void bind_groups(struct sw *sw, struct sw_lease *l, const char *tenant)
{
	struct inc_group *g;
	uint64_t off = l->off;

	EACH_GROUP(sw, l, tenant, slot, g)
	{
		if (sw->slot[slot].lease.bytes == 0)
			continue;
		__atomic_store_n(&g->pay_off, off, __ATOMIC_RELEASE);
		off += aligned(sw->slot[slot].lease.bytes);
		l->bound++;
	}
}

static int held(const struct sw_lease *l, uint64_t now, char err[SW_ERR_LEN])
{
	return sw_fail(err, -EBUSY, "lease \"%s\" is held by \"%s\" for %llu ms%s", l->name,
		l->holder, (unsigned long long)((now - l->since_ns) / 1000000),
		l->releasing ? ", which is letting go" : "");
}

int sw_lease_acquire(struct sw *sw, const char *name, const char *tenant, char err[SW_ERR_LEN])
{
	const uint64_t now = sw_now(sw);
	struct sw_lease *l;
	int rc;

	sw_reclaim(sw);
	l = resolve(sw, name, tenant, &rc, err);
	if (l == NULL)
		return rc;
	if (l->releasing && strcmp(l->holder, tenant) != 0)
		try_release(sw, l);
	rc = check_over(sw, l, tenant, err);
	if (rc == 0 && l->holder[0] && strcmp(l->holder, tenant) != 0)
		rc = held(l, now, err);
	if (rc == 0)
		rc = check_active(sw, l, tenant, err);
	if (rc < 0) {
		l->count.refused++;
		return rc;
	}
	if (!l->holder[0]) {
		snprintf(l->holder, sizeof(l->holder), "%s", tenant);
		l->held_off = l->off;
		bind_groups(sw, l, tenant);
	}
	l->releasing = false;
	l->since_ns = now;
	l->count.acquired++;
	return 0;
}

int sw_lease_release(
	struct sw *sw, const char *name, const char *tenant, bool *pending, char err[SW_ERR_LEN])
{
	struct sw_lease *l;
	int rc;

	sw_reclaim(sw);
	l = resolve(sw, name, tenant, &rc, err);
	*pending = false;
	if (l == NULL)
		return rc;
	if (strcmp(l->holder, tenant) != 0)
		return 0; /* has let go already */
	l->releasing = true;
	try_release(sw, l);
	*pending = l->holder[0] != '\0';
	return 0;
}

/* ---- time ---- */

/* When its holder last got on with anything, and how long it may go without. */
static uint64_t last_sign(struct sw *sw, const struct sw_lease *l, uint64_t *limit)
{
	uint64_t last = l->since_ns;
	struct inc_group *g;

	*limit = 0;
	EACH_GROUP(sw, l, l->holder, slot, g)
	{
		const uint64_t ns = sw->slot[slot].lease.limit_ns;

		last = g->last_progress_ns > last ? g->last_progress_ns : last;
		*limit = ns > *limit ? ns : *limit;
	}
	return last;
}

/* The range is needed by others. What the holder has begun cannot be finished without it, and its
 * ranks shall hear that. */
static void take_back(struct sw *sw, struct sw_lease *l)
{
	struct inc_group *g;

	if (!l->taken_back)
		journal(JOURNAL_ERR, "%s: lease %s: taken back from %s, which does not use it",
			sw->config.name, l->name, l->holder);
	EACH_GROUP(sw, l, l->holder, slot, g)
	{
		inc_group_set_state(g, INC_INSTALLED, INC_ACTIVE);
		inc_group_fail(g, INC_FAIL_LEASE_EXPIRED, 0xff);
	}
	l->count.taken_back += !l->taken_back;
	l->taken_back = true;
	start_letting_go(sw, l);
}

void sw_leases_tick(struct sw *sw, uint64_t now)
{
	for (unsigned i = 0; i < SW_MAX_LEASES; i++) {
		struct sw_lease *l = &sw->leases->lease[i];
		uint64_t limit, last;

		if (!l->name[0] || !l->holder[0])
			continue;
		if (l->releasing)
			try_release(sw, l);
		if (!l->holder[0])
			continue;
		last = last_sign(sw, l, &limit);
		if (now > last && now - last >= limit)
			take_back(sw, l);
	}
}

/* ---- looking ---- */

int sw_lease_get(struct sw *sw, unsigned i, struct sw_lease_info *info)
{
	const struct sw_lease *l = &sw->leases->lease[i < SW_MAX_LEASES ? i : 0];

	if (i >= SW_MAX_LEASES)
		return -ENOENT;
	*info = (struct sw_lease_info){.bytes = l->bytes,
		.offset = l->off,
		.members = l->members,
		.releasing = l->releasing,
		.count = l->count};
	memcpy(info->name, l->name, sizeof(info->name));
	memcpy(info->holder, l->holder, sizeof(info->holder));
	if (l->holder[0])
		info->held_ns = sw_now(sw) - l->since_ns;
	return 0;
}
