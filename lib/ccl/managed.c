/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/managed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/random.h"
#include "lib/ctl/address.h"
#include "lib/ctl/client.h"

enum {
	ASK_EVERY_MS = 20,
	ANSWER_MS = 2000,
	WATCH_EVERY_MS = 500,
	WATCH_ANSWER_MS = 200,
	REDIAL_EVERY_MS = 2000,
	ROUND_EVERY_MS = 100, /* if no manager of several leads, or the rank's place is taken */
	DIAL_MS = 500,        /* that a dial may be under way */
	LOOK_MS = 200,        /* from one look at it to the next, more does not count */
	MISSED = 3,           /* answers of one that may hang: the next is looked for */
};

struct ccl_managed {
	const struct ccl_group *group; /* the communicator's own */
	unsigned rank;
	uint64_t who; /* as it joined; nobody else knows it */
	struct ctl_client *client;
	bool connected;   /* else client, if any, is a dial that is under way */
	unsigned n, at;   /* addresses of managers; of the one that is asked */
	unsigned dialled; /* of them in a round in which nobody has answered yet */
	unsigned missed;
	int64_t watched_ms, looked_ms, dialled_ms; /* dialled: the last one, or a round's end */
	struct ccl_turn turn;
	bool turned;             /* it was said since it was last asked for */
	bool resumed, dismissed; /* dismissed: and the manager has no such run any more */
};

static int64_t now_ms(const struct ccl_managed *m)
{
	return m->group->io->now_ms(m->group->io->arg);
}

/* Of the manager whose turn it is. */
static const char *address(const struct ccl_managed *m, char item[CCL_ADDRESS_LEN])
{
	item[0] = '\0';
	ctl_address_item(m->group->manager, m->at, item, CCL_ADDRESS_LEN);
	return item;
}

static int fail(const struct ccl_managed *m, int rc, const struct ctl_error *e, char *err)
{
	char item[CCL_ADDRESS_LEN];
	const char *at = address(m, item);
	const bool named = !strncmp(e->msg, at, strlen(at));

	snprintf(err, CCL_ERR_LEN, "manager %s%s%s%s%s", named ? "" : at, named ? "" : ": ",
		e->path, e->path[0] ? ": " : "", e->msg);
	return rc;
}

static void hang_up(struct ccl_managed *m)
{
	ctl_close(m->client);
	m->client = NULL;
	m->connected = false;
	m->missed = 0;
}

/* ---- one of several ---- */

static void count(struct ccl_managed *m)
{
	char item[CCL_ADDRESS_LEN];

	while (ctl_address_item(m->group->manager, m->n, item, sizeof(item)) >= 0)
		m->n++;
}

/* Nobody is there who answers, or could be asked again: another may lead. */
static bool is_silent(int rc, const struct ctl_error *e)
{
	return rc && !e->code &&
	       (rc == -ENOENT || rc == -ECONNREFUSED || rc == -EAGAIN || rc == -ECONNRESET ||
		       rc == -ETIMEDOUT || rc == -EHOSTUNREACH || rc == -ENETUNREACH ||
		       rc == -EADDRNOTAVAIL);
}

/* To the one whose turn it is; if nobody listens there, and for so long. */
static int dial(struct ccl_managed *m, unsigned patience_ms, struct ctl_error *e)
{
	char item[CCL_ADDRESS_LEN];
	const int rc = ctl_connect_over(m->group->io, address(m, item), patience_ms, &m->client, e);

	m->connected = !rc;
	return rc;
}

static void next(struct ccl_managed *m)
{
	hang_up(m);
	m->at = (m->at + 1) % m->n;
}

/* ---- joining ---- */

static json_t *join_params(const struct ccl_group *g, unsigned rank, unsigned mtu,
	const struct ccl_ability *able, uint64_t who)
{
	const unsigned basic = 1u << CCL_ALLREDUCE | 1u << CCL_BARRIER;
	char ip[WIRE_IP_STRLEN];
	json_t *params;

	params = json_pack("{s:s,s:i,s:i,s:o,s:s,s:i,s:b,s:b}", "job", g->name, "ranks",
		(int)g->n_ranks, "rank", (int)rank, "who", ctl_u64(who), "ip",
		wire_ip_format(&g->rank_ip[rank], ip, sizeof(ip)), "mtu",
		(int)(g->mtu ? g->mtu : mtu), "reproducible", g->reproducible, "half", g->half);
	if (g->resume)
		json_object_set_new(params, "resume", json_true());
	json_object_update_new(params,
		json_pack("{s:s,s:b,s:s,s:b,s:{s:s,s:b,s:b,s:i}}", "kind", ccl_wish_name(g->kind),
			"sr", g->sr, "verb", g->write ? "write" : "send", "basic",
			!(g->collectives & ~basic), "device", "name", able->device, "skip",
			able->skip, "selective", able->selective, "mtu", (int)mtu));
	if (g->mode_given)
		json_object_set_new(params, "mode", json_string(g->mode));
	if (g->m_given)
		json_object_set_new(params, "M", json_integer((json_int_t)g->m));
	if (g->duty && g->duty < 1000)
		json_object_update_new(
			params, json_pack("{s:b,s:i}", "lease", 1, "duty", (int)g->duty));
	return params;
}

static json_t *rank_params(const struct ccl_managed *m)
{
	return json_pack("{s:s,s:o,s:i,s:o}", "job", m->group->name, "epoch",
		ctl_u64(m->group->epoch), "rank", (int)m->rank, "who", ctl_u64(m->who));
}

static int ask(
	struct ccl_managed *m, const char *method, unsigned ms, json_t **state, struct ctl_error *e)
{
	json_t *params = rank_params(m);
	int rc;

	*e = (struct ctl_error){.index = -1};
	rc = ctl_call(m->client, method, params, ms, state, e);

	json_decref(params);
	return rc;
}

static int no_sense(struct ctl_error *e)
{
	*e = (struct ctl_error){.msg = "its answer makes no sense"};
	return -EPROTO;
}

/* Asks until the job is placed, or is not to be. */
static int await_plan(struct ccl_managed *m, struct ccl_group *own, int64_t deadline,
	json_t **state, struct ctl_error *e)
{
	int rc = 0;

	for (;;) {
		const char *phase = json_string_value(json_object_get(*state, "phase"));

		if (!phase)
			return no_sense(e);
		if (strcmp(phase, "joining") && strcmp(phase, "installing"))
			return 0;
		if (now_ms(m) >= deadline) {
			*e = (struct ctl_error){.msg = "not all ranks have joined, or no switch "
						       "has answered, in time"};
			return -ETIMEDOUT;
		}
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

/* What a manager says of the job's turn, and of the lease by which it shares memory. */
static bool take_turn(struct ccl_managed *m, const json_t *state, const char **lease)
{
	const json_t *window = json_object_get(state, "window");
	json_int_t cycle, at, start, length;

	if (!window ||
		json_unpack((json_t *)window, "{s:s,s:I,s:I,s:I,s:I}", "lease", lease, "cycle_us",
			&cycle, "at_us", &at, "start_us", &start, "length_us", &length) ||
		cycle < 1 || cycle > 3600000000 || at < 0 || at >= cycle || start < 0 ||
		length < 0 || start > cycle || length > cycle - start)
		return false;
	m->turn = (struct ccl_turn){.cycle_ns = (uint64_t)cycle * 1000,
		.zero_ns = ((uint64_t)now_ms(m) * 1000000 + (uint64_t)(cycle - at) * 1000) %
			   ((uint64_t)cycle * 1000),
		.start_ns = (uint64_t)start * 1000,
		.length_ns = (uint64_t)length * 1000};
	m->turned = true;
	return true;
}

/* Memory by a lease: who is in the way at the beginning of a turn is waited for as long as a cycle.
 */
static void take_lease(struct ccl_managed *m, struct ccl_group *own, const json_t *state)
{
	const uint64_t most = own->timeout_ns / 1000000 / 4;
	const char *lease;
	uint64_t cycle_ms;

	if (!take_turn(m, state, &lease))
		return;
	cycle_ms = m->turn.cycle_ns / 1000000 + 1;
	snprintf(own->lease, sizeof(own->lease), "%s", lease);
	own->lease_wait_ms = (unsigned)(cycle_ms < most ? cycle_ms : most);
	own->turn = m->turn;
}

bool ccl_managed_turn(struct ccl_managed *m, struct ccl_turn *turn)
{
	const bool turned = m->turned;

	*turn = m->turn;
	m->turned = false;
	return turned;
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

/* The place is somebody else's: of a process that has ended the manager may hear later. Or of this
 * host, from its switch. */
static bool may_pass(int rc, const struct ctl_error *e)
{
	return rc == -EBUSY && e->code && (!strcmp(e->path, "rank") || !strcmp(e->path, "ip"));
}

static int ask_to_join(struct ccl_managed *m, const json_t *params, int64_t deadline,
	json_t **state, struct ctl_error *e)
{
	const struct ctl_io *io = m->group->io;

	for (;;) {
		const int rc = ctl_call(m->client, "job.join", params, ANSWER_MS, state, e);

		if (!may_pass(rc, e) || now_ms(m) >= deadline)
			return rc;
		io->sleep_ms(io->arg, ROUND_EVERY_MS);
	}
}

/* By the manager whose turn it is, until it is placed. */
static int try_join(struct ccl_managed *m, struct ccl_group *own, const json_t *params,
	int64_t deadline, json_t **state, struct ctl_error *e)
{
	const int64_t left = deadline - now_ms(m);
	int rc;

	*e = (struct ctl_error){.index = -1};
	rc = dial(m, m->n > 1 || left < 0 ? 0 : (unsigned)left, e);
	if (!rc)
		rc = ask_to_join(m, params, deadline, state, e);
	if (!rc && ctl_get_u64(json_object_get(*state, "epoch"), &own->epoch))
		rc = no_sense(e);
	return rc ? rc : await_plan(m, own, deadline, state, e);
}

/* Of several managers one leads; who waits for that does not listen. One that ends meanwhile is
 * followed by another, whom the rank joins anew: by its number that is the same joining. */
static int join_any(struct ccl_managed *m, struct ccl_group *own, const json_t *params,
	json_t **state, struct ctl_error *e)
{
	const int64_t deadline = now_ms(m) + (int64_t)(own->timeout_ns / 1000000);

	for (unsigned i = 1;; i++) {
		const int rc = try_join(m, own, params, deadline, state, e);

		if (m->n < 2 || !is_silent(rc, e) || now_ms(m) >= deadline)
			return rc;
		json_decref(*state);
		*state = NULL;
		next(m);
		if (i % m->n == 0)
			own->io->sleep_ms(own->io->arg, ROUND_EVERY_MS);
	}
}

int ccl_managed_join(struct ccl_group *own, unsigned rank, unsigned mtu,
	const struct ccl_ability *able, struct ccl_managed **out, char why[CCL_ERR_LEN],
	char err[CCL_ERR_LEN])
{
	struct ccl_managed *m = calloc(1, sizeof(*m));
	json_t *params, *state = NULL;
	struct ctl_error e;
	uint64_t who;
	int rc = ccl_random(&who, sizeof(who));

	if (!m || rc) {
		snprintf(err, CCL_ERR_LEN, "%s", rc ? "no random numbers" : "out of memory");
		free(m);
		return rc ? rc : -ENOMEM;
	}
	*m = (struct ccl_managed){.group = own, .rank = rank, .who = who};
	count(m);
	params = join_params(own, rank, mtu, able, who);
	rc = join_any(m, own, params, &state, &e);
	json_decref(params);
	rc = rc ? fail(m, rc, &e, err) : take_state(own, state, why, err);
	if (rc == 0 && own->mode_id != CCL_MODE_RING)
		take_lease(m, own, state);
	json_decref(state);
	if (rc) {
		ccl_managed_leave(m, false);
		return rc;
	}
	*out = m;
	return 0;
}

/* Who has led may have ended since: his successor knows of the job. */
int ccl_managed_ready(struct ccl_managed *m, char err[CCL_ERR_LEN])
{
	const int64_t deadline = now_ms(m) + (int64_t)(m->group->timeout_ns / 1000000);
	struct ctl_error e;
	int rc = ask(m, "job.ready", ANSWER_MS, NULL, &e);

	for (unsigned i = 1; m->n > 1 && is_silent(rc, &e) && now_ms(m) < deadline; i++) {
		next(m);
		rc = dial(m, 0, &e);
		if (!rc)
			rc = ask(m, "job.ready", ANSWER_MS, NULL, &e);
		if (i % m->n == 0)
			m->group->io->sleep_ms(m->group->io->arg, ROUND_EVERY_MS);
	}
	return rc ? fail(m, rc, &e, err) : 0;
}

/* ---- meanwhile ---- */

/* The dial of the one whose turn it is: begun, or looked at. A handshake goes on only when somebody
 * looks, and who computes looks seldom: what passes meanwhile is not the manager's silence. */
static int look(struct ccl_managed *m, int64_t now)
{
	char item[CCL_ADDRESS_LEN];
	struct ctl_error e;
	int rc = 0;

	if (!m->client) {
		m->dialled++;
		m->dialled_ms = now;
		rc = ctl_connect_begin(m->group->io, address(m, item), &m->client, &e);
	} else if (now - m->looked_ms > LOOK_MS) {
		m->dialled_ms += now - m->looked_ms - LOOK_MS;
	}
	m->looked_ms = now;
	if (!rc)
		rc = ctl_connected(m->client, &e);
	return rc == -EINPROGRESS && now - m->dialled_ms >= DIAL_MS ? -ETIMEDOUT : rc;
}

/* Whoever of them leads now: a round by all of them, and then a pause. No dial is waited for: the
 * next watch looks at it. */
static bool find(struct ccl_managed *m)
{
	const int64_t now = now_ms(m);

	if (m->dialled == 0 && now - m->dialled_ms < REDIAL_EVERY_MS)
		return false;
	while (m->client || m->dialled < m->n) {
		const int rc = look(m, now);

		m->connected = rc == 0;
		if (rc == 0 || rc == -EINPROGRESS)
			return m->connected;
		next(m);
	}
	m->dialled = 0;
	m->dialled_ms = now;
	return false;
}

/* A sign of the manager, or none: a proxy with nobody behind takes every connection, and answers
 * nothing, or not as a manager does. Only an answer ends a round. */
static void note(struct ccl_managed *m, int rc, const struct ctl_error *e)
{
	if (!rc || e->code)
		m->missed = m->dialled = 0;
	else
		m->missed = rc == -ETIMEDOUT ? m->missed + 1 : MISSED;
}

static bool is_connected(struct ccl_managed *m)
{
	if (m->connected && ctl_is_open(m->client))
		return true;
	if (m->connected && m->dialled > 0)
		next(m);
	else if (m->connected)
		hang_up(m);
	return find(m);
}

void ccl_managed_resumed(struct ccl_managed *m)
{
	if (m)
		m->resumed = true;
}

/* The ring of a job that has resumed is its hosts' own: ranks hear of each other without him. */
static int dismissed(struct ccl_managed *m)
{
	hang_up(m);
	m->dismissed = true;
	return 0;
}

int ccl_managed_watch(struct ccl_managed *m, char why[CCL_ERR_LEN])
{
	const bool ring = m->resumed || m->group->mode_id == CCL_MODE_RING;
	json_t *state = NULL;
	const char *phase, *line;
	struct ctl_error e;
	int rc;

	if (m->dismissed || (m->connected && now_ms(m) - m->watched_ms < WATCH_EVERY_MS))
		return 0;
	if (!is_connected(m))
		return 0;
	m->watched_ms = now_ms(m);
	rc = ask(m, "job.heartbeat", WATCH_ANSWER_MS, &state, &e);
	note(m, rc, &e);
	if (!rc)
		take_turn(m, state, &line);
	phase = json_string_value(json_object_get(state, "phase"));
	if (rc == -ESTALE) {
		snprintf(why, CCL_ERR_LEN, "the manager says: %s", e.msg);
	} else if (!rc && phase && (!strcmp(phase, "over") || (!strcmp(phase, "ring") && !ring))) {
		line = json_string_value(json_object_get(state, "line"));
		snprintf(why, CCL_ERR_LEN, "the manager says: %s", line ? line : phase);
		rc = -ESTALE;
	} else if (m->n > 1 && m->missed >= MISSED) {
		next(m);
	}
	json_decref(state);
	if (rc != -ESTALE)
		return 0;
	return m->resumed ? dismissed(m) : -ECONNABORTED;
}

void ccl_managed_leave(struct ccl_managed *m, bool done)
{
	struct ctl_error e;

	if (!m)
		return;
	if (m->connected && done)
		ask(m, "job.leave", ANSWER_MS, NULL, &e);
	hang_up(m);
	free(m);
}
