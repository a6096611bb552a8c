/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/sim_measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static size_t most_memory(struct sim *sim)
{
	size_t most = 0;

	for (unsigned i = 0; i < sim_topo(sim)->n_switches; i++)
		if (sim_switch(sim, i)->arena_used > most)
			most = sim_switch(sim, i)->arena_used;
	return most;
}

static int run(const struct sim_job *job, const struct sim_coll_conf *group,
	struct sim_measured *out, char *err)
{
	struct sim_coll *coll;
	uint64_t ns = 0;
	int rc = sim_coll_create(group, &coll, err);

	if (rc)
		return rc;
	out->memory = most_memory(group->sim);
	rc = sim_coll_run(coll, job->op, job->bytes, 60000000000, &ns);
	rc = rc ? rc : sim_coll_check(coll);
	if (rc)
		snprintf(err, CCL_ERR_LEN, "%s: %.400s", strerror(-rc), sim_coll_error(coll));
	else
		out->ns = (double)ns;
	sim_coll_destroy(coll);
	return rc;
}

struct sim_measured sim_measure(const struct sim_job *job, char err[CCL_ERR_LEN])
{
	struct sim_topo topo;
	struct sim_conf conf = job->conf;
	struct sim_coll_conf group = job->group;
	struct sim_measured out = {.ns = NAN};

	if (sim_topo_make(job->topology, &topo, err))
		return out;
	conf.topo = &topo;
	group.root = topo.root;
	if (group.n_ranks == 0)
		group.n_ranks = topo.n_hosts;
	if (sim_create(&conf, &group.sim, err) == 0) {
		for (unsigned i = 0; i < job->n_other; i++)
			sim_set_link(group.sim, i, &job->other);
		run(job, &group, &out, err);
		sim_destroy(group.sim);
	}
	sim_topo_free(&topo);
	return out;
}
