/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/manager/manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/keep.h"
#include "lib/ctl/audit.h"
#include "lib/ctl/manager_schema.h"

static const uint64_t MS = 1000000, ANSWER_MS = 3000, RETRY_MS = 500, LINGER_MS = 60000;

static const char *text_of(const json_t *config, const char *name)
{
	return ctl_text(&ctl_manager_config, config, name);
}

static uint64_t int_of(const json_t *config, const char *name)
{
	return (uint64_t)ctl_int(&ctl_manager_config, config, name);
}

/* The store, then the jobs that it knows. */
static int open_jobs(struct manager *m, const json_t *config, const struct store *store,
	uint64_t first_epoch, char err[MANAGER_ERR_LEN])
{
	struct mgr_jobs_config jobs = {.policy = m->policy,
		.max_runs = MANAGER_MAX_RUNS,
		.heartbeat_ns = m->heartbeat_ns,
		.join_ns = int_of(config, "join_ms") * MS,
		.answer_ns = ANSWER_MS * MS,
		.retry_ns = RETRY_MS * MS,
		.drain_ns = int_of(config, "drain_ms") * MS,
		.linger_ns = LINGER_MS * MS,
		.owner_bytes = int_of(config, "tenant_bytes"),
		.key = {m->io.key[0], m->io.key[1]},
		.kept = true};
	int rc = 0;

	if (store)
		m->store = *store;
	else
		rc = store_memory_open(&m->own_store);
	if (!store && !rc)
		m->store = m->own_store;
	if (!rc)
		rc = mg_keep_epoch(m, first_epoch, &jobs.first_epoch, err);
	if (rc)
		return rc;
	m->jobs = mgr_jobs_new(m->g, m->b, m->p, &jobs);
	if (!m->jobs)
		return -ENOMEM;
	mgr_jobs_hold(m->jobs, MG_SETTLE_NS, m->now);
	rc = mg_keep_load(m, err);
	if (!rc && mg_keep(m)) {
		snprintf(err, MANAGER_ERR_LEN, "store: cannot be written to");
		rc = m->failed;
	}
	return rc;
}

int manager_create(const json_t *config, const struct manager_io *io, const struct store *store,
	uint64_t first_epoch, uint64_t now, struct manager **out, char err[MANAGER_ERR_LEN])
{
	struct manager *m = calloc(1, sizeof(*m));
	int rc;

	snprintf(err, MANAGER_ERR_LEN, "out of memory");
	if (!m)
		return -ENOMEM;
	m->io = *io;
	m->now = m->started = m->ticked = now;
	m->heartbeat_ns = int_of(config, "heartbeat_ms") * MS;
	m->shape = (struct mgr_shape){.hop_ns = int_of(config, "hop_ns"),
		.loss_ppm = (unsigned)int_of(config, "loss_ppm")};
	m->tenant_jobs = (unsigned)int_of(config, "tenant_jobs");
	m->tenant_ranks = (unsigned)int_of(config, "tenant_ranks");
	m->cycle_ms = (unsigned)int_of(config, "cycle_ms");
	m->lldp_decides = !strcmp(text_of(config, "lldp"), "use");
	m->discover = rpc_bool(config, "discover", false);
	m->learnt_bps = int_of(config, "discover_mbps") * 1000000;
	m->policy = m->file_policy = mgr_policy_find(text_of(config, "policy"));
	LIST_INIT(&m->peers);
	LIST_INIT(&m->adopted);
	rc = mg_fabric_open(m, config, err);
	if (!rc)
		rc = open_jobs(m, config, store, first_epoch, err);
	if (rc) {
		manager_destroy(m);
		return rc;
	}
	*out = m;
	return 0;
}

void manager_destroy(struct manager *m)
{
	struct mg_adopted *a;

	if (!m)
		return;
	while ((a = LIST_FIRST(&m->adopted))) {
		LIST_REMOVE(a, link);
		free(a);
	}
	mgr_jobs_free(m->jobs);
	mg_fabric_close(m);
	free(m->page);
	if (m->own_store.arg)
		m->own_store.close(m->own_store.arg);
	free(m);
}

unsigned manager_n_switches(const struct manager *m)
{
	return m->n_sw;
}

const char *manager_control(const struct manager *m, unsigned i)
{
	return m->sw[i].control;
}

static int not_allowed(struct rpc_error *e, const char *why)
{
	rpc_fail(e, -EPERM, "", "%s", why);
	e->code = CTL_NOT_ALLOWED;
	return -EPERM;
}

/* Ranks need what CTL_TCP_ANY says, and nothing of others. */
static int may(
	void *arg, const struct ctl_method *method, const json_t *params, struct rpc_error *e)
{
	const struct manager *m = arg;
	const enum ctl_role role = m->peer ? m->peer->who.role : CTL_LOCAL;

	(void)params;
	if (role == CTL_STRANGER && method->tcp != CTL_TCP_ANY)
		return not_allowed(e, "not allowed over TCP: use the UNIX socket, or TLS");
	if (role == CTL_TENANT && method->tcp != CTL_TCP_ANY && strcmp(method->name, "job.list"))
		return not_allowed(e, "a tenant's certificate is not allowed to ask that");
	if (role == CTL_AGENT && strcmp(method->name, "ping") && strcmp(method->name, "version"))
		return not_allowed(e, "a switch's certificate is not allowed to ask that");
	return 0;
}

static void done(void *arg, const struct ctl_method *method, const json_t *params, int rc,
	const struct rpc_error *e)
{
	static const struct ctl_who anybody;
	struct manager *m = arg;
	char *line;

	if (!m->io.audit)
		return;
	line = ctl_audit_line(m->peer ? &m->peer->who : &anybody, method->name, params, rc, e);
	if (line)
		m->io.audit(m->io.arg, line);
	free(line);
}

char *manager_line(
	struct manager *m, struct manager_peer *peer, const char *line, size_t len, uint64_t now)
{
	static const struct rpc_service service = {&ctl_manager_schema, may, mg_call, done};
	char *out;

	mg_clock(m, now);
	m->peer = peer;
	out = rpc_handle_line(&service, m, line, len);
	m->peer = NULL;
	mg_act(m);
	if (!m->failed)
		return out;
	free(out); /* it may say what nobody will know */
	return NULL;
}

int manager_failed(const struct manager *m)
{
	return m->failed;
}

void manager_tick(struct manager *m, uint64_t now)
{
	mg_clock(m, now);
	m->ticked = m->now;
	mg_jobs_tick(m);
	mg_switches_tick(m);
	mg_act(m);
}
