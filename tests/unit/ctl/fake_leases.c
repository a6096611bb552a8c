/* SPDX-License-Identifier: BSD-3-Clause */
/* Leases of a switch without packets. One with memory (sw->arena) has those that its groups name,
 * as the real one does: a range is as large as any member needed since there are some, and the last
 * one takes it along. Another has one, of nothing, and nobody waits. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/ctl/fake_switch.h"

static struct fake_lease *find(struct sw *sw, const char *name)
{
	for (unsigned i = 0; i < FAKE_LEASES; i++)
		if (sw->lease[i].members && !strcmp(sw->lease[i].name, name))
			return &sw->lease[i];
	return NULL;
}

static struct fake_lease *find_free(struct sw *sw)
{
	for (unsigned i = 0; i < FAKE_LEASES; i++)
		if (!sw->lease[i].members)
			return &sw->lease[i];
	return NULL;
}

/* What it says of a group's slot, else NULL. */
static struct fake_member *member_of(struct sw *sw, unsigned slot)
{
	for (unsigned i = 0; i < FAKE_MEMBERS; i++)
		if (sw->member[i].slot == slot && sw->member[i].lease)
			return &sw->member[i];
	return NULL;
}

uint64_t fake_leases_bytes(const struct sw *sw)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < FAKE_LEASES; i++)
		sum += sw->lease[i].members ? sw->lease[i].bytes : 0;
	return sum;
}

bool fake_lease_has(struct sw *sw, unsigned slot)
{
	return member_of(sw, slot) != NULL;
}

static void join(struct sw *sw, struct fake_lease *l, unsigned slot,
	const struct inc_group_spec *spec, uint64_t bytes)
{
	struct fake_member *m = sw->member;

	while (m->lease)
		m++;
	if (!l->members)
		*l = (struct fake_lease){.bytes = 0};
	memcpy(l->name, spec->lease, sizeof(l->name));
	l->bytes = l->bytes > bytes ? l->bytes : bytes;
	l->members++;
	*m = (struct fake_member){slot, l, ""};
	memcpy(m->tenant, spec->tenant[0] ? spec->tenant : spec->name, sizeof(m->tenant));
}

int fake_arena_take(struct sw *sw, unsigned slot, const struct inc_group_spec *spec, uint64_t bytes)
{
	struct fake_lease *l = spec->lease[0] ? find(sw, spec->lease) : NULL;
	const uint64_t there = l && l->bytes > bytes ? bytes : l ? l->bytes : 0;
	uint64_t size, used;

	sw_arena_usage(sw, &size, &used);
	if (used + bytes - there > size)
		return -ENOSPC;
	if (spec->lease[0])
		join(sw, l ?: find_free(sw), slot, spec, bytes);
	return 0;
}

void fake_lease_leave(struct sw *sw, unsigned slot)
{
	struct fake_member *m = member_of(sw, slot);

	if (!m)
		return;
	if (!strcmp(m->lease->holder, m->tenant))
		m->lease->holder[0] = '\0';
	m->lease->members--;
	m->lease = NULL;
}

int sw_lease_acquire(struct sw *sw, const char *lease, const char *tenant, char err[SW_ERR_LEN])
{
	struct fake_lease *l = find(sw, lease);
	char *holder = l ? l->holder : sw->holder;

	if (!l && (sw->arena || strcmp(lease, "pool") != 0)) {
		snprintf(err, SW_ERR_LEN, "lease: no group names a lease \"%s\"", lease);
		return -ENOENT;
	}
	if (holder[0] && strcmp(holder, tenant) != 0) {
		snprintf(err, SW_ERR_LEN, "lease \"%s\" is held by \"%s\"", lease, holder);
		return -EBUSY;
	}
	snprintf(holder, INC_NAME_LEN, "%s", tenant);
	return 0;
}

int sw_lease_release(
	struct sw *sw, const char *lease, const char *tenant, bool *pending, char err[SW_ERR_LEN])
{
	struct fake_lease *l = find(sw, lease);
	char *holder = l ? l->holder : sw->holder;

	(void)err;
	if (!strcmp(holder, tenant))
		holder[0] = '\0';
	*pending = holder[0] != '\0';
	return 0;
}

int sw_lease_get(struct sw *sw, unsigned i, struct sw_lease_info *info)
{
	const struct fake_lease *l = &sw->lease[i];

	if (i >= (sw->arena ? FAKE_LEASES : 1))
		return -ENOENT;
	if (!sw->arena) {
		*info = (struct sw_lease_info){.name = "pool",
			.bytes = 4096,
			.members = 2,
			.count = {1, 2, 3, 4 + sw->taken_back}};
		memcpy(info->holder, sw->holder, sizeof(info->holder));
		return 0;
	}
	*info = (struct sw_lease_info){.bytes = l->bytes, .members = l->members};
	if (l->members) {
		memcpy(info->name, l->name, sizeof(info->name));
		memcpy(info->holder, l->holder, sizeof(info->holder));
	}
	return 0;
}

const char *sw_group_lease(struct sw *sw, unsigned slot, const char **tenant)
{
	const struct fake_member *m = member_of(sw, slot);

	*tenant = m ? m->tenant : sw->group_tenant;
	return m ? m->lease->name : slot == 1 && !sw->arena ? sw->group_lease : "";
}
