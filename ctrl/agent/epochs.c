/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/agent/epochs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int find(const struct epochs *e, const char *name)
{
	for (int i = 0; i < EPOCH_MAX_JOBS; i++)
		if (!strcmp(e->job[i].name, name))
			return i;
	return -ENOENT;
}

static bool is_of(const struct epochs *e, struct sw *sw, unsigned slot, unsigned i)
{
	return e->group[slot].job == i + 1 && sw_group_get(sw, slot);
}

unsigned epoch_groups(const struct epochs *e, struct sw *sw, unsigned i, unsigned *failed)
{
	unsigned n = 0;

	*failed = 0;
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++) {
		if (!is_of(e, sw, slot, i))
			continue;
		n++;
		*failed += sw_group_get(sw, slot)->state == INC_FAILED;
	}
	return n;
}

/* A free place, else that of the job that has been named longest ago and has nothing here. */
static int place(const struct epochs *e, struct sw *sw)
{
	int oldest = -ENOSPC;
	unsigned failed;

	for (int i = 0; i < EPOCH_MAX_JOBS; i++) {
		if (!e->job[i].name[0])
			return i;
		if ((oldest < 0 || e->job[i].used < e->job[oldest].used) &&
			!epoch_groups(e, sw, (unsigned)i, &failed))
			oldest = i;
	}
	return oldest;
}

int epoch_check(
	const struct epochs *e, struct sw *sw, const char *job, uint64_t epoch, uint64_t *newest)
{
	const int i = find(e, job);

	if (i < 0)
		return place(e, sw) < 0 ? -ENOSPC : 0;
	*newest = e->job[i].newest;
	return epoch < *newest || (epoch == *newest && e->job[i].ended) ? -ESTALE : 0;
}

static int know(struct epochs *e, struct sw *sw, const char *job, uint64_t epoch)
{
	int i = find(e, job);

	if (i < 0) {
		i = place(e, sw);
		if (i < 0)
			return i;
		for (unsigned slot = 0; slot < INC_GROUP_SLOTS; slot++)
			if (e->group[slot].job == i + 1)
				e->group[slot].job = 0;
		e->job[i] = (struct epoch_job){.newest = epoch};
		snprintf(e->job[i].name, sizeof(e->job[i].name), "%s", job);
	}
	if (epoch > e->job[i].newest) {
		e->job[i].newest = epoch;
		e->job[i].ended = false;
	}
	e->job[i].used = ++e->uses;
	return i;
}

void epoch_note(struct epochs *e, struct sw *sw, unsigned slot, const char *job, uint64_t epoch)
{
	int i = -1;

	/* The slot's former group is no longer of its job: or there may be no place. */
	e->group[slot].job = 0;
	if (job)
		i = know(e, sw, job, epoch);
	if (i >= 0)
		e->group[slot] = (struct epoch_of){(uint16_t)(i + 1), epoch};
}

int epoch_end(struct epochs *e, struct sw *sw, const char *job, uint64_t epoch, bool take_away)
{
	const int i = know(e, sw, job, epoch);
	char err[SW_ERR_LEN];
	int n = 0;

	if (i < 0)
		return i;
	e->job[i].ended |= e->job[i].newest == epoch;
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++) {
		if (!is_of(e, sw, slot, (unsigned)i) || e->group[slot].epoch > epoch)
			continue;
		if (take_away)
			n += sw_group_delete(sw, slot, true, err) == 0;
		else if (sw_group_get(sw, slot)->state != INC_FAILED)
			n += sw_group_fail(sw, slot, err) == 0;
	}
	return n;
}

const char *epoch_tenant(const struct epochs *e, const char *job)
{
	const int i = find(e, job);

	return i >= 0 && e->job[i].tenant[0] ? e->job[i].tenant : NULL;
}

void epoch_set_tenant(struct epochs *e, const char *job, const char *tenant)
{
	const int i = find(e, job);

	if (i >= 0)
		snprintf(e->job[i].tenant, sizeof(e->job[i].tenant), "%s", tenant);
}

const char *epoch_of(const struct epochs *e, unsigned slot, uint64_t *epoch)
{
	const struct epoch_of *of = &e->group[slot];

	*epoch = of->epoch;
	return of->job ? e->job[of->job - 1].name : NULL;
}
