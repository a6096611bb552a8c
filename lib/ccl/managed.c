/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/managed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/random.h"
#include "lib/ctl/client.h"

enum {
	ASK_EVERY_MS = 20,
	ANSWER_MS = 2000,
	WATCH_EVERY_MS = 500,
	WATCH_ANSWER_MS = 200,
	REDIAL_EVERY_MS = 2000,
};

struct ccl_managed {
	const struct ccl_group *group; /* the communicator's own */
	unsigned rank;
	struct ctl_client *client;
	int64_t watched_ms, dialled_ms;
};

static int64_t now_ms(const struct ccl_managed *m)
{
	return m->group->io->now_ms(m->group->io->arg);
}

static int fail(const struct ccl_managed *m, int rc, const struct ctl_error *e, char *err)
{
	snprintf(err, CCL_ERR_LEN, "manager %s: %s%s%s",
		strncmp(e->msg, m->group->manager, strlen(m->group->manager)) ? m->group->manager
									      : "",
		e->path, e->path[0] ? ": " : "", e->msg);
	return rc;
}

/* ---- joining ---- */

static json_t *join_params(const struct ccl_group *g, unsigned rank, unsigned mtu, uint64_t who)
{
	char ip[WIRE_IP_STRLEN];
	json_t *params;

	params = json_pack("{s:s,s:i,s:i,s:o,s:s,s:i,s:b,s:b}", "job", g->name, "ranks",
		(int)g->n_ranks, "rank", (int)rank, "who", ctl_u64(who), "ip",
		wire_ip_format(&g->rank_ip[rank], ip, sizeof(ip)), "mtu",
		(int)(g->mtu ? g->mtu : mtu), "reproducible", g->reproducible, "half", g->half);
	if (g->mode_given)
		json_object_set_new(params, "mode", json_string(g->mode));
	if (g->m_given)
		json_object_set_new(params, "M", json_integer((json_int_t)g->m));
	return params;
}

static json_t *rank_params(const struct ccl_managed *m)
{
	return json_pack("{s:s,s:o,s:i}", "job", m->group->name, "epoch", ctl_u64(m->group->epoch),
		"rank", (int)m->rank);
}

static int ask(
	struct ccl_managed *m, const char *method, unsigned ms, json_t **state, struct ctl_error *e)
{
	json_t *params = rank_params(m);
	const int rc = ctl_call(m->client, method, params, ms, state, e);

	json_decref(params);
	return rc;
}

static int no_sense(struct ctl_error *e)
{
	*e = (struct ctl_error){.msg = "its answer makes no sense"};
	return -EPROTO;
}

/* Asks until the job is placed, or is not to be. */
static int await_plan(
	struct ccl_managed *m, struct ccl_group *own, json_t **state, struct ctl_error *e)
{
	const int64_t deadline = now_ms(m) + (int64_t)(own->timeout_ns / 1000000);
	int rc = 0;

	for (;;) {
		const char *phase = json_string_value(json_object_get(*state, "phase"));

		if (!phase)
			return no_sense(e);
		if (strcmp(phase, "joining") && strcmp(phase, "installing"))
			return 0;
		if (now_ms(m) >= deadline)
			return -ETIMEDOUT;
		own->io->sleep_ms(own->io->arg, ASK_EVERY_MS);
		json_decref(*state);
		*state = NULL;
		rc = ask(m, "job.heartbeat", ANSWER_MS, state, e);
		if (rc)
			return rc;
	}
}

static int take_plan(struct ccl_group *own, const json_t *plan, char *err)
{
	const char *mode;
	json_t *switches;
	int m, w;

	if (json_unpack((json_t *)plan, "{s:s,s:i,s:i,s:o}", "mode", &mode, "M", &m, "W", &w,
		    "switches", &switches) ||
		m < 1 || m > 1024 || w < 1) {
		snprintf(err, CCL_ERR_LEN, "manager: its plan makes no sense");
		return -EPROTO;
	}
	return ccl_group_take_plan(
		own, mode, (unsigned)m, w > 1024 ? 1024u : (unsigned)w, switches, err);
}

/* The network, or the ring. */
static int take_state(struct ccl_group *own, const json_t *state, char *why, char *err)
{
	const char *phase = json_string_value(json_object_get(state, "phase"));
	const char *line = json_string_value(json_object_get(state, "line"));
	const json_t *plan = json_object_get(state, "plan");

	snprintf(why, CCL_ERR_LEN, "%s", line ? line : "");
	if (plan)
		return take_plan(own, plan, err);
	if (!strcmp(phase, "ring") && own->fallback) {
		ccl_group_take_ring(own);
		return 0;
	}
	snprintf(err, CCL_ERR_LEN, "manager: %s%s", line ? line : phase,
		!strcmp(phase, "ring") ? "; and \"fallback\" is false" : "");
	return !strcmp(phase, "ring") ? -ENOSPC : -ECONNABORTED;
}

int ccl_managed_join(struct ccl_group *own, unsigned rank, unsigned mtu, struct ccl_managed **out,
	char why[CCL_ERR_LEN], char err[CCL_ERR_LEN])
{
	const unsigned patience = (unsigned)(own->timeout_ns / 1000000);
	struct ccl_managed *m = calloc(1, sizeof(*m));
	struct ctl_error e = {
		.msg = "not all ranks have joined, or no switch has answered, in time"};
	json_t *params, *state = NULL;
	uint64_t who;
	int rc = ccl_random(&who, sizeof(who));

	if (!m || rc) {
		snprintf(err, CCL_ERR_LEN, "%s", rc ? "no random numbers" : "out of memory");
		free(m);
		return rc ? rc : -ENOMEM;
	}
	*m = (struct ccl_managed){.group = own, .rank = rank};
	rc = ctl_connect_over(own->io, own->manager, patience, &m->client, &e);
	if (!rc) {
		params = join_params(own, rank, mtu, who);
		rc = ctl_call(m->client, "job.join", params, ANSWER_MS, &state, &e);
		json_decref(params);
	}
	if (!rc && ctl_get_u64(json_object_get(state, "epoch"), &own->epoch))
		rc = no_sense(&e);
	if (!rc)
		rc = await_plan(m, own, &state, &e);
	rc = rc ? fail(m, rc, &e, err) : take_state(own, state, why, err);
	json_decref(state);
	if (rc) {
		ccl_managed_leave(m, false);
		return rc;
	}
	*out = m;
	return 0;
}

int ccl_managed_ready(struct ccl_managed *m, char err[CCL_ERR_LEN])
{
	struct ctl_error e;
	const int rc = ask(m, "job.ready", ANSWER_MS, NULL, &e);

	return rc ? fail(m, rc, &e, err) : 0;
}

/* ---- meanwhile ---- */

static void hang_up(struct ccl_managed *m)
{
	ctl_close(m->client);
	m->client = NULL;
}

int ccl_managed_watch(struct ccl_managed *m, char why[CCL_ERR_LEN])
{
	const bool ring = m->group->mode_id == CCL_MODE_RING;
	json_t *state = NULL;
	const char *phase, *line;
	struct ctl_error e;
	int rc;

	if (now_ms(m) - m->watched_ms < WATCH_EVERY_MS)
		return 0;
	m->watched_ms = now_ms(m);
	if (m->client && !ctl_is_open(m->client))
		hang_up(m);
	if (!m->client && now_ms(m) - m->dialled_ms >= REDIAL_EVERY_MS) {
		m->dialled_ms = now_ms(m);
		if (ctl_connect_over(m->group->io, m->group->manager, 0, &m->client, &e))
			m->client = NULL;
	}
	if (!m->client)
		return 0;
	rc = ask(m, "job.heartbeat", WATCH_ANSWER_MS, &state, &e);
	phase = json_string_value(json_object_get(state, "phase"));
	if (rc == -ESTALE) {
		snprintf(why, CCL_ERR_LEN, "the manager says: %s", e.msg);
	} else if (!rc && phase && (!strcmp(phase, "over") || (!strcmp(phase, "ring") && !ring))) {
		line = json_string_value(json_object_get(state, "line"));
		snprintf(why, CCL_ERR_LEN, "the manager says: %s", line ? line : phase);
		rc = -ESTALE;
	}
	json_decref(state);
	return rc == -ESTALE ? -ECONNABORTED : 0;
}

void ccl_managed_leave(struct ccl_managed *m, bool done)
{
	struct ctl_error e;

	if (!m)
		return;
	if (m->client && done)
		ask(m, "job.leave", ANSWER_MS, NULL, &e);
	hang_up(m);
	free(m);
}
