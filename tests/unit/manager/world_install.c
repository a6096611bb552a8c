/* SPDX-License-Identifier: BSD-3-Clause */
/* What rank 0 of a job does at switches. */
#include <stdio.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static int index_of(const char *name)
{
	return name[0] == 'l' ? name[4] - '0' : LEAVES + name[5] - '0';
}

static json_t *endpoints_of(const json_t *sw)
{
	json_t *list = json_array(), *child;
	size_t i;

	json_array_foreach(json_object_get(sw, "children"), i, child)
	{
		const json_t *rank = json_object_get(child, "rank");

		json_array_append_new(
			list, json_pack("{s:s,s:i,s:O,s:s,s:b,s:[i]}", "ip", "10.0.0.7", "qpn",
				      100 + (int)i, "port", json_object_get(child, "port"), "mac",
				      "02:00:00:00:00:01", "host", rank != NULL, "ranks",
				      rank ? (int)json_integer_value(rank)
					   : index_of(json_string_value(
						     json_object_get(child, "switch")))));
	}
	if (json_object_get(sw, "parent"))
		json_array_append_new(
			list, json_pack("{s:s,s:i,s:O,s:s,s:b}", "ip", "10.0.0.8", "qpn", 78,
				      "port", json_object_get(sw, "parent_port"), "mac",
				      "02:00:00:00:00:02", "parent", 1));
	return list;
}

/* By whose name it shares its memory; NULL: that is its own. */
static const char *lease_of(const struct world_job *job)
{
	return json_string_value(json_object_get(job->rank[0].window, "lease"));
}

/* As lib/ccl's rank 0: all switches of the tree, or none. */
bool world_install(struct world *w, unsigned j, const json_t *plan)
{
	struct world_job *job = &w->job[j];
	const json_t *sw;
	char name[16], owner[32];
	size_t i;

	snprintf(name, sizeof(name), "job%u", j);
	snprintf(owner, sizeof(owner), "job-%u-0123456789ab", j);
	job->tree[0] = '\0';
	job->holds = false;
	json_array_foreach(json_object_get(plan, "switches"), i, sw)
	{
		const char *at = json_string_value(json_object_get(sw, "name"));
		const int s = index_of(at);
		json_t *params, *created;

		snprintf(job->tree + strlen(job->tree), sizeof(job->tree) - strlen(job->tree),
			"%s ", at);
		json_decref(world_ask_switch(w, (unsigned)s, &job->rank[0].at[s], "owner.hold",
			json_pack("{s:s}", "owner", owner)));
		params = json_pack("{s:s,s:s,s:s,s:i,s:O,s:O,s:i,s:o,s:s,s:o}", "name", name,
			"mode", json_string_value(json_object_get(plan, "mode")), "kind", "mixed",
			"mtu", 1024, "M", json_object_get(plan, "M"), "W",
			json_object_get(plan, "W"), "ranks", RANKS, "endpoints", endpoints_of(sw),
			"job", name, "epoch", ctl_u64(job->rank[0].epoch));
		if (lease_of(job))
			json_object_set_new(params, "lease", json_string(lease_of(job)));
		created = world_ask_switch(
			w, (unsigned)s, &job->rank[0].at[s], "group.create", params);
		if (!created)
			return false;
		json_decref(created);
	}
	return true;
}

/* On all switches of its tree. */
static bool each_lease(struct world *w, unsigned j, const char *method)
{
	struct world_job *job = &w->job[j];
	bool all = true;
	char name[16];

	snprintf(name, sizeof(name), "job%u", j);
	for (unsigned i = 0; i < SWITCHES; i++) {
		char at[16];
		json_t *done;

		snprintf(at, sizeof(at), i < LEAVES ? "leaf%u" : "spine%u",
			i < LEAVES ? i : i - LEAVES);
		if (!strstr(job->tree, at))
			continue;
		done = world_ask_switch(w, i, &job->rank[0].at[i], method,
			json_pack("{s:s,s:s}", "lease", lease_of(job), "tenant", name));
		all = all && done;
		json_decref(done);
	}
	return all;
}

void world_use_lease(struct world *w, unsigned j)
{
	struct world_job *job = &w->job[j];

	if (!lease_of(job) || strcmp(job->rank[0].phase, "active") != 0)
		return;
	if (job->holds || !each_lease(w, j, "lease.acquire")) {
		each_lease(w, j, "lease.release");
		job->holds = false;
		return;
	}
	job->holds = true;
	job->acquired++;
}
