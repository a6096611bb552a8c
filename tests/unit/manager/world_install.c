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

/* Named as in its plan, the root first. */
static void name_tree(struct world_job *job, const json_t *switches)
{
	const json_t *sw;
	size_t i;

	job->tree[0] = '\0';
	json_array_foreach(switches, i, sw)
		snprintf(job->tree + strlen(job->tree), sizeof(job->tree) - strlen(job->tree),
			"%s ", json_string_value(json_object_get(sw, "name")));
}

static bool create(struct world *w, unsigned j, const json_t *plan, const json_t *sw)
{
	struct world_job *job = &w->job[j];
	const int s = index_of(json_string_value(json_object_get(sw, "name")));
	char name[16], owner[32];
	json_t *params, *created;

	snprintf(name, sizeof(name), "job%u", j);
	snprintf(owner, sizeof(owner), "job-%u-0123456789ab", j);
	json_decref(world_ask_switch(w, (unsigned)s, &job->rank[0].at[s], "owner.hold",
		json_pack("{s:s}", "owner", owner)));
	params = json_pack("{s:s,s:s,s:s,s:i,s:O,s:O,s:i,s:o,s:s,s:o,s:b}", "name", name, "mode",
		json_string_value(json_object_get(plan, "mode")), "kind", "mixed", "mtu", 1024, "M",
		json_object_get(plan, "M"), "W", json_object_get(plan, "W"), "ranks", RANKS,
		"endpoints", endpoints_of(sw), "job", name, "epoch", ctl_u64(job->rank[0].epoch),
		"activate", 0);
	if (lease_of(job))
		json_object_set_new(params, "lease", json_string(lease_of(job)));
	created = world_ask_switch(w, (unsigned)s, &job->rank[0].at[s], "group.create", params);
	json_decref(created);
	return created != NULL;
}

static bool activate(struct world *w, unsigned j, const json_t *sw)
{
	struct world_job *job = &w->job[j];
	const int s = index_of(json_string_value(json_object_get(sw, "name")));
	char name[16];
	json_t *done;

	snprintf(name, sizeof(name), "job%u", j);
	done = world_ask_switch(w, (unsigned)s, &job->rank[0].at[s], "group.activate",
		json_pack("{s:s}", "group", name));
	if (done && world_is_over(w, (unsigned)s, name, job->rank[0].epoch))
		fail_msg("switch %d let %s work in an epoch that is over", s, name);
	json_decref(done);
	return done != NULL;
}

void world_drop_plan(struct world_job *job)
{
	json_decref(job->plan);
	job->plan = NULL;
}

/* As lib/ccl's rank 0: groups on all switches of the tree, then all of them are activated. */
void world_install(struct world *w, unsigned j)
{
	struct world_job *job = &w->job[j];
	const json_t *switches = json_object_get(job->plan, "switches");
	const unsigned n = (unsigned)json_array_size(switches);

	if (job->installing != job->rank[0].epoch) {
		job->installing = job->rank[0].epoch;
		job->steps = 0;
		job->holds = false;
		name_tree(job, switches);
	}
	do {
		const json_t *sw = json_array_get(switches, job->steps % n);

		if (!(job->steps < n ? create(w, j, job->plan, sw) : activate(w, j, sw))) {
			world_drop_plan(job);
			return;
		}
	} while (++job->steps < 2 * n && !w->slowly);
	if (job->steps < 2 * n)
		return;
	job->installed = job->installing;
	world_drop_plan(job);
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
