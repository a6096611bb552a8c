/* SPDX-License-Identifier: BSD-3-Clause */
/* What is done with the switches, and what their agents say: answers to ask.c's, and events. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/keep.h"
#include "lib/ctl/event.h"

/* Nobody listens at a switch's socket for so long: its program has ended. */
static const uint64_t DEAD_NS = 1000000000;

/* ---- what jobs want ---- */

/* Before rank 0 makes its groups there: what is older goes. A switch that answers is well. */
static void tell_switch(struct manager *m, const struct mgr_action *a)
{
	struct mg_switch *s = mg_switch_of(m, a->node);
	struct mgr_run_view v;
	char id[48];

	if (!s || !s->known || !mgr_jobs_view(m->jobs, a->epoch, &v))
		return; /* it is told again later */
	snprintf(id, sizeof(id), "%llu:%d", (unsigned long long)a->epoch, (int)a->kind);
	switch (a->kind) {
	case MGR_INSTALL:
		mg_clear_way(m, s, id, v.job, a->epoch);
		break;
	case MGR_ACTIVATE: /* rank 0 has done that */
		mgr_jobs_answer(m->jobs, a->epoch, a->node, a->kind, 0, m->now);
		break;
	default:
		mg_end_epoch(m, s, id, v.job->name, a->epoch, a->kind == MGR_REMOVE);
		break;
	}
}

/* Jobs are placed when every switch was heard once, or is dead, or had its time for it: a job that
 * comes right after this manager would find no tree. Ranks wait no longer than their timeout. */
static void settle(struct manager *m)
{
	for (unsigned i = 0; i < m->n_sw && m->now - m->started < MG_SETTLE_NS; i++)
		if (!m->sw[i].met && !m->sw[i].was_dead)
			return;
	m->settled = true;
	mgr_jobs_hold(m->jobs, 0, m->now);
}

void mg_act(struct manager *m)
{
	char line[MGR_LINE_LEN + 64];
	struct mgr_run_view v;
	struct mgr_action a;

	if (!m->settled)
		settle(m);
	if (mg_keep(m))
		return;
	while (mgr_jobs_next(m->jobs, m->now, &a)) {
		if (mg_keep(m))
			return;
		if (a.kind < MGR_TELL_PLAN) {
			tell_switch(m, &a);
			continue;
		}
		/* Ranks ask: job.heartbeat. */
		if (mgr_jobs_view(m->jobs, a.epoch, &v) &&
			mgr_jobs_find(m->jobs, v.job->name) == a.epoch &&
			!mgr_jobs_explain(m->jobs, v.job->name, m->now, line, sizeof(line)))
			mg_say(m, JOURNAL_NOTICE, "job %s", line);
	}
}

/* ---- answers ---- */

static void take_answer(struct manager *m, struct mg_switch *s, const char *id, const json_t *line)
{
	const char *name =
		rpc_string(json_object_get(json_object_get(line, "error"), "data"), "errno");
	char *end;
	const uint64_t epoch = strtoull(id, &end, 10);
	const unsigned long kind = *end == ':' ? strtoul(end + 1, NULL, 10) : MGR_TELL_OVER;
	int rc = 0;

	if (json_object_get(line, "error"))
		rc = name && !strcmp(name, "ENOENT") ? -ENOENT : -EREMOTEIO;
	if (kind <= MGR_REMOVE)
		mgr_jobs_answer(m->jobs, epoch, s->node, (enum mgr_action_kind)kind, rc, m->now);
}

/* A job of whom the switch has groups: a run's, a job's that was there before this manager, or what
 * is left of one that nobody knows. */
static void take_epoch(struct manager *m, struct mg_switch *s, const char *job, uint64_t epoch)
{
	struct mg_adopted *a = mg_adopted_find(m, job, epoch);
	struct mgr_run_view v;

	if (a)
		a->there = true;
	if (mgr_jobs_view(m->jobs, epoch, &v) || a)
		return;
	/* What this manager's store cannot know: its ranks have some time to say that they are
	 * there. */
	if (epoch < m->born && mg_learns_for(m))
		return;
	/* Or it is a successor's, if we were stopped for long. */
	if (mg_keep_ours(m))
		return;
	mg_say(m, JOURNAL_WARNING,
		"%s has groups of job %s, epoch %llu, which is nobody's: they go", s->name, job,
		(unsigned long long)epoch);
	mg_end_epoch(m, s, "end", job, epoch, true);
}

static void take_epochs(struct manager *m, struct mg_switch *s, const json_t *result)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(result, "jobs"), i, row)
	{
		const char *job = rpc_string(row, "job");
		uint64_t epoch;

		if (job && !ctl_get_u64(json_object_get(row, "epoch"), &epoch) &&
			rpc_int(row, "groups", 0) > 0)
			take_epoch(m, s, job, epoch);
	}
}

static bool has_epoch(const json_t *result, uint64_t epoch)
{
	const json_t *row;
	uint64_t is;
	size_t i;

	json_array_foreach(json_object_get(result, "jobs"), i,
		row) if (!ctl_get_u64(json_object_get(row, "epoch"), &is) && is == epoch &&
			 rpc_int(row, "groups", 0) > 0) return true;
	return false;
}

/* Once after each connecting: what the switch should have and has not ends. The switch is the fact,
 * the promise is not. */
static void compare(struct manager *m, struct mg_switch *s, const json_t *result)
{
	if (s->compared || !json_is_array(json_object_get(result, "jobs")))
		return;
	s->compared = true;
	for (uint64_t epoch = mgr_jobs_expected(m->jobs, s->node, UINT64_MAX); epoch;
		epoch = mgr_jobs_expected(m->jobs, s->node, epoch))
		if (!has_epoch(result, epoch) && mgr_jobs_missing(m->jobs, epoch, s->node, m->now))
			mg_say(m, JOURNAL_WARNING, "%s has no group of epoch %llu any more",
				s->name, (unsigned long long)epoch);
}

static void take_hello(struct manager *m, struct mg_switch *s, const json_t *result)
{
	if (mg_fabric_hello(m, s, result)) {
		mg_say(m, JOURNAL_ERR, "%s says nonsense of itself", s->name);
		return;
	}
	if (!s->known)
		mg_say(m, JOURNAL_NOTICE, "%s is there", s->name);
	s->known = true;
}

/* ---- events ---- */

/* Why, and where if the switch says so. */
static void failure(const json_t *event, char *text, size_t cap)
{
	const char *reason = rpc_string(event, "reason");
	const int ep = (int)rpc_int(event, "ep", -1);

	if (ep >= 0)
		snprintf(text, cap, "%s, at its endpoint %d", reason ?: "?", ep);
	else
		snprintf(text, cap, "%s", reason ?: "?");
}

static void group_failed(struct manager *m, struct mg_switch *s, const json_t *event)
{
	const char *job = rpc_string(event, "job");
	char why[MGR_LINE_LEN], text[96];
	struct mg_adopted *a;
	uint64_t epoch;

	if (!job || ctl_get_u64(json_object_get(event, "epoch"), &epoch))
		return;
	if (mgr_jobs_group_failed(m->jobs, epoch, s->node, m->now)) {
		failure(event, text, sizeof(text));
		mg_say(m, JOURNAL_ERR, "%s: a group of job %s failed: %s", s->name, job, text);
		mgr_jobs_note(m->jobs, epoch, 0, m->now, text);
		return;
	}
	a = mg_adopted_find(m, job, epoch);
	snprintf(why, sizeof(why), "its group failed on %s", s->name);
	if (!a)
		return;
	a->there = true;
	mg_adopted_end(m, a, why);
}

/* A group that waits is normal; one that waits for long should be seen, with whom it waits for. */
static void group_stalled(struct manager *m, const struct mg_switch *s, const json_t *event)
{
	enum { NAMED = 8 };
	const json_t *missing = json_object_get(event, "missing");
	const size_t n = json_array_size(missing);
	char ranks[64] = "", text[160];
	uint64_t epoch;
	int len = 0;

	for (size_t i = 0; i < n && i < NAMED; i++)
		len += snprintf(ranks + len, sizeof(ranks) - (size_t)len, "%s%d", i ? "," : "",
			(int)(json_integer_value(json_array_get(missing, i)) & 0xffff));
	snprintf(text, sizeof(text), "%s made no progress%s%s%s%s", s->name,
		n ? ", waiting for rank" : "",
		n > 1 ? "s "
		: n   ? " "
		      : "",
		ranks, n > NAMED ? " and more" : "");
	mg_say(m, JOURNAL_WARNING, "job %s: %s", rpc_string(event, "job"), text);
	if (!ctl_get_u64(json_object_get(event, "epoch"), &epoch))
		mgr_jobs_note(m->jobs, epoch, n ? (unsigned)n : UINT_MAX, m->now, text);
}

static void take_event(struct manager *m, struct mg_switch *s, const json_t *event)
{
	const enum ctl_event kind = ctl_event_find(rpc_string(event, "kind"));
	const char *port = rpc_string(event, "port"), *job = rpc_string(event, "job");

	if (json_object_get(event, "dropped"))
		mg_say(m, JOURNAL_WARNING, "%s: events were missed",
			s->name); /* the next hello has what counts */
	if (port && (kind == CTL_PORT_UP || kind == CTL_PORT_DOWN))
		mg_fabric_port(m, s, port, kind == CTL_PORT_UP);
	else if (kind == CTL_GROUP_FAILED)
		group_failed(m, s, event);
	else if (kind == CTL_GROUP_STALLED && job)
		group_stalled(m, s, event);
	else if (kind == CTL_LEASE_LOST)
		mg_say(m, JOURNAL_WARNING, "%s: lease %s was taken back from a holder in silence",
			s->name, rpc_string(event, "lease") ?: "?");
	else if (kind == CTL_MEMORY_LOW)
		mg_say(m, JOURNAL_WARNING, "%s: its aggregation memory gets scarce", s->name);
}

/* ---- connections ---- */

void manager_up(struct manager *m, unsigned i, uint64_t now)
{
	struct mg_switch *s = &m->sw[i];

	mg_clock(m, now);
	s->connected = true;
	s->known = s->compared = false;
	s->dead = 0;
	s->heard = s->asked = m->now;
	mg_ask(m, s, "event", "event.subscribe", NULL);
	mg_ask(m, s, "hello", "node.hello", NULL);
	mg_ask(m, s, "epochs", "epoch.list", NULL);
}

static void lose(struct manager *m, struct mg_switch *s, bool dead)
{
	if (s->known)
		mg_say(m, JOURNAL_WARNING, "%s: the connection is lost", s->name);
	s->connected = s->known = false;
	mg_discover_deaf(s);
	if (s->is.up)
		mg_fabric_state(m, s, false);
	if (!dead)
		s->dead = 0;
	else if (!s->dead)
		s->dead = m->now;
	mg_act(m);
}

void manager_down(struct manager *m, unsigned i, bool dead, uint64_t now)
{
	mg_clock(m, now);
	lose(m, &m->sw[i], dead);
}

void manager_heard(struct manager *m, unsigned i, const char *text, size_t len, uint64_t now)
{
	struct mg_switch *s = &m->sw[i];
	json_error_t ignored;
	json_t *line = ctl_load(text, len, &ignored);
	const char *id = rpc_string(line, "id"), *method = rpc_string(line, "method");
	const json_t *result = json_object_get(line, "result");

	mg_clock(m, now);
	s->heard = m->now;
	if (method && !strcmp(method, "event"))
		take_event(m, s, json_object_get(line, "params"));
	else if (id && result && !strcmp(id, "hello"))
		take_hello(m, s, result);
	else if (id && result && !strcmp(id, "epochs")) {
		take_epochs(m, s, result);
		compare(m, s, result);
	} else if (id)
		take_answer(m, s, id, line);
	json_decref(line);
	mg_act(m);
}

bool manager_knows(const struct manager *m, unsigned i)
{
	return m->sw[i].known;
}

void mg_switches_tick(struct manager *m)
{
	for (unsigned i = 0; i < m->n_sw; i++) {
		struct mg_switch *s = &m->sw[i];

		if (s->dead && m->now - s->dead >= DEAD_NS) {
			if (mgr_jobs_switch_lost(m->jobs, s->node, m->now))
				mg_say(m, JOURNAL_ERR, "%s is dead", s->name);
			s->was_dead = true;
			s->dead = m->now; /* again, for who is placed there by mistake */
		}
		if (!s->connected)
			continue;
		if (m->now - s->heard >= MGR_MISSED * m->heartbeat_ns) {
			m->io.drop(m->io.arg, i);
			lose(m, s, false);
		} else if (m->now - s->asked >= m->heartbeat_ns) {
			s->asked = m->now;
			mg_ask(m, s, "hello", "node.hello", NULL);
			mg_ask(m, s, "epochs", "epoch.list", NULL);
		}
	}
}
