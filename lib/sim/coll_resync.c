/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixed groups of hosts that leave no PSNs out (lib/ccl/resync.h): a ring of the hosts beside the
 * group, and rank 0's desk, whose questions reach the switches' agents after a while. */
#include <errno.h>
#include <stdlib.h>

#include "lib/ccl/resync.h"
#include "lib/sim/agent.h"
#include "lib/sim/coll_priv.h"

/* There and back; before the same is asked again. */
static const uint64_t ASK_NS = 200000, AGAIN_NS = 1000000;

struct desk {
	struct sim_coll *coll;
	uint32_t psn;
	uint64_t due; /* UINT64_MAX: nothing is asked */
};

static void wake_at(struct desk *d, uint64_t ns)
{
	struct sim *sim = d->coll->conf.sim;

	d->due = sim_now(sim) + ns;
	sim_wake(sim, sim_coll_host(d->coll, 0), d->due);
}

static void ask(void *arg, uint32_t psn)
{
	struct desk *d = arg;

	d->psn = psn;
	wake_at(d, ASK_NS);
}

static char *request(const struct sim_coll *c, unsigned sw, uint32_t psn)
{
	json_t *json = json_pack("{s:s, s:i, s:s, s:{s:s, s:i}}", "jsonrpc", "2.0", "id", 1,
		"method", "group.resync", "params", "group", c->group->name, "psn", (int)psn);
	char *line = json_dumps(json, JSON_COMPACT), *text;

	if (!line)
		abort();
	text = sim_agent_request(c->conf.sim->sw[sw].agent, NULL, line, strlen(line));
	free(line);
	json_decref(json);
	return text;
}

/* One switch: 1 if it is ready, 0 if not yet. */
static int ask_one(const struct desk *d, const struct ccl_switch *sw, char why[CCL_DESK_WHY])
{
	char *text = request(d->coll, (unsigned)atoi(sw->socket + strlen("sim:")), d->psn);
	json_t *answer = json_loads(text, 0, NULL);
	const json_t *result = json_object_get(answer, "result");
	int rc = json_is_true(json_object_get(result, "done"));

	snprintf(why, CCL_DESK_WHY, "%.180s", text);
	if (!result && !strstr(text, "EBUSY"))
		rc = -EPROTO;
	json_decref(answer);
	free(text);
	return rc;
}

static int answer(void *arg, int *rc, char why[CCL_DESK_WHY])
{
	struct desk *d = arg;
	const struct ccl_group *g = d->coll->group;

	if (sim_now(d->coll->conf.sim) < d->due) {
		sim_wake(d->coll->conf.sim, sim_coll_host(d->coll, 0), d->due);
		return 0;
	}
	*rc = 1;
	for (unsigned k = 0; *rc > 0 && k < g->n_switches; k++)
		*rc = ask_one(d, &g->sw[k], why);
	if (*rc == 0) {
		wake_at(d, AGAIN_NS);
		return 0;
	}
	d->due = UINT64_MAX;
	*rc = *rc < 0 ? *rc : 0;
	return 1;
}

static int attach(struct sim_coll *c, unsigned r, struct ccl_ring *ring)
{
	struct ccl_desk desk = {.ask = ask, .answer = answer, .fd = -1, .close = free};
	struct desk *d = NULL;
	int rc;

	if (r == 0) {
		d = malloc(sizeof(*d));
		if (!d)
			return -ENOMEM;
		*d = (struct desk){.coll = c, .due = UINT64_MAX};
		desk.arg = d;
	}
	rc = ccl_resync_attach(c->rank[r].comm, ring, r ? NULL : &desk);
	if (rc)
		free(d);
	return rc;
}

int sim_coll_attach_resync(struct sim_coll *c, char *err)
{
	const unsigned n = c->conf.n_ranks;
	int rc = sim_coll_open_ring(c, err);

	for (unsigned r = 0; r < n && rc == 0; r++) {
		rc = attach(c, r, c->rank[r].ring);
		if (rc == 0)
			c->rank[r].ring = NULL; /* the communicator's now */
	}
	return rc;
}
