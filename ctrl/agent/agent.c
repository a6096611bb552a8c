/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent behind its sockets (lib/ctl/server.h). */
#include "ctrl/agent/agent.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctrl/agent/liveness.h"
#include "ctrl/agent/metrics.h"
#include "ctrl/agent/rpc.h"
#include "lib/ctl/audit.h"
#include "lib/ctl/config.h"
#include "lib/ctl/http.h"
#include "lib/ctl/listen.h"
#include "lib/ctl/metrics.h"
#include "lib/ctl/notify.h"
#include "lib/ctl/server.h"
#include "lib/ctl/tls.h"
#include "lib/journal/journal.h"

struct served {
	struct agent *agent;
	bool tcp_full; /* TCP may do everything */
	int audit;     /* descriptor, -1: none */
	bool audit_failed;
	volatile sig_atomic_t *load;
	const char *certificates; /* their directory, NULL: none */
	SSL_CTX *tls;
	struct watchdog watchdog;
};

static const char PROGRAM[] = "incline-switch";

static uint64_t now(void *arg)
{
	const struct served *s = arg;

	return sw_now(s->agent->sw);
}

static void come(void *arg, void *peer, const struct ctl_who *who)
{
	const struct served *s = arg;

	agent_peer_came(peer, who, s->tcp_full);
}

static void audit(void *arg, const char *text)
{
	struct served *s = arg;
	const int rc = ctl_audit_write(s->audit, text);

	if (rc && !s->audit_failed)
		journal(JOURNAL_ERR, "error: audit: %s: changes go unrecorded", strerror(-rc));
	s->audit_failed = rc != 0;
}

static void gone(void *arg, void *peer)
{
	const struct served *s = arg;

	agent_peer_gone(s->agent, peer);
}

static enum ctl_hold holds(void *arg, const void *peer)
{
	const struct agent_peer *p = peer;

	(void)arg;
	return p->owner ? CTL_HOLD_PLACE : p->subscribed ? CTL_HOLD_LISTENS : CTL_HOLD_NOTHING;
}

static char *line(void *arg, void *peer, const char *text, size_t len)
{
	const struct served *s = arg;

	return agent_handle_line(s->agent, peer, text, len);
}

static char *unasked(void *arg, void *peer)
{
	const struct served *s = arg;

	return agent_next_event(s->agent, peer);
}

static void load(struct served *s)
{
	char err[CTL_TLS_ERR_LEN];

	*s->load = 0;
	ctl_notify(PROGRAM, "RELOADING=1");
	if (s->tls && ctl_tls_renew(s->certificates, CTL_TLS_SERVES, &s->tls, err))
		journal(JOURNAL_ERR, "error: control_tls: %s: certificates stay as they were", err);
	agent_load(s->agent, stderr);
	ctl_notify(PROGRAM, "READY=1");
}

static void tick(void *arg, uint64_t at)
{
	struct served *s = arg;

	sw_tick(s->agent->sw, at);
	agent_tick(s->agent, at);
	agent_say(s->agent, stderr);
	if (s->load && *s->load)
		load(s);
	watchdog_turn(&s->watchdog, s->agent->sw, at, PROGRAM, stderr);
}

static void notes(int fd, short what, void *arg)
{
	struct sw *sw = arg;

	(void)fd, (void)what;
	sw_notes_turn(sw, sw_now(sw));
}

/* Certificates and the audit log. 0, or -errno after a line on stderr. */
static int open_security(struct served *s, const json_t *config)
{
	const char *tls = rpc_string(config, "control_tls"), *log = rpc_string(config, "audit");
	char err[CTL_TLS_ERR_LEN] = "";
	int rc = tls ? ctl_tls_open(tls, CTL_TLS_SERVES, &s->tls, err) : 0;

	s->certificates = tls;

	if (!rc && log) {
		s->audit = ctl_audit_open("audit", log, err, sizeof(err));
		rc = s->audit < 0 ? s->audit : 0;
	}
	if (!rc && log)
		agent_audit_to(s->agent, audit, s);
	if (rc)
		journal(JOURNAL_ERR, "error: %s%s", tls && !s->tls ? "control_tls: " : "", err);
	return rc;
}

static char *page(void *arg, size_t *len)
{
	return agent_metrics(arg, len);
}

/* The counters' socket beside those for control; NULL: the configuration has none. *fd: -1 if it
 * has been taken. */
static int open_metrics(struct agent *agent, struct event_base *base, int *fd,
	struct ctl_http_page *of, const struct agent_options *o, struct ctl_http **http)
{
	const int at = *fd;

	*http = NULL;
	*fd = -1;
	*of = (struct ctl_http_page){METRICS_CONTENT_TYPE, page, agent};
	return at < 0 ? 0 : ctl_http_open(base, at, of, o->line_ms, http);
}

/* metrics: a descriptor to serve counters at, or -1. */
static int serve(struct agent *agent, const int *fd, unsigned n, int metrics,
	volatile sig_atomic_t *stop, const json_t *config, const struct agent_options *o)
{
	static const struct ctl_server_ops ops = {
		sizeof(struct agent_peer), now, come, gone, holds, line, unasked, tick};
	struct ctl_server_limits limits = {o->line_ms, o->stall_ms,
		o->idle_ms ? o->idle_ms
			   : (unsigned)ctl_int(&ctl_switch_config, config, "control_idle_ms")};
	struct served s = {agent, ctl_bool(&ctl_switch_config, config, "control_tcp_full"),
		.audit = -1, .load = o->load,
		.watchdog = {.every_ns = ctl_watchdog_ns(), .stuck = -1}};
	struct event_base *base = event_base_new();
	struct event *called;
	struct ctl_http_page counters;
	struct ctl_http *http = NULL;
	int rc = base ? open_security(&s, config) : -ENOMEM;

	if (!rc)
		rc = open_metrics(agent, base, &metrics, &counters, o, &http);
	if (metrics >= 0)
		close(metrics);

	if (rc) {
		for (unsigned i = 0; i < n; i++)
			close(fd[i]);
	} else {
		called = sw_notes_fd(agent->sw) < 0
				 ? NULL
				 : event_new(base, sw_notes_fd(agent->sw), EV_READ | EV_PERSIST,
					   notes, agent->sw);
		if (called)
			event_add(called, NULL);
		limits.tls = s.tls ? &s.tls : NULL;
		rc = ctl_serve(&ops, &s, base, fd, n, stop, &limits);
		if (called)
			event_free(called);
	}
	ctl_http_close(http);
	agent_audit_to(agent, NULL, NULL);
	if (s.audit >= 0)
		close(s.audit);
	SSL_CTX_free(s.tls);
	if (base)
		event_base_free(base);
	return rc;
}

/* Where counters are served: a descriptor, -1 if nowhere, or another negative errno. */
static int listen_metrics(const json_t *config, struct ctl_place *place)
{
	const char *where = rpc_string(config, "metrics");
	int fd;

	if (!where)
		return -1;
	fd = ctl_listen_pages(where, place);
	return fd == -1 ? -EIO : fd;
}

int agent_run_with(struct sw *sw, const char *socket_path, const json_t *config,
	volatile sig_atomic_t *stop, const struct agent_options *limits)
{
	const char *tcp = rpc_string(config, "control_tcp");
	char name[CTL_ADDRESS_STRLEN] = "";
	struct ctl_place place, metrics_place = {.held = false};
	struct agent *agent;
	int fd[CTL_MAX_LISTENERS];
	int rc = agent_create(sw, rpc_string(config, "startup_file"), &agent);

	if (rc)
		return rc;
	signal(SIGPIPE, SIG_IGN);
	int n = ctl_listen(socket_path, tcp, fd, name, &place);
	if (n < 0) {
		agent_destroy(agent);
		return n;
	}
	const int metrics = listen_metrics(config, &metrics_place);
	if (metrics < -1) {
		while (n > 0)
			close(fd[--n]);
		ctl_unlisten(socket_path, &place);
		agent_destroy(agent);
		return metrics;
	}
	if (limits->ready)
		limits->ready(sw, socket_path, tcp ? name : NULL);
	rc = serve(agent, fd, (unsigned)n, metrics, stop, config, limits);
	ctl_unlisten_one(rpc_string(config, "metrics"), &metrics_place);
	if (rc)
		journal(JOURNAL_ERR, "error: control socket %s: %s", socket_path, strerror(-rc));
	ctl_unlisten(socket_path, &place);
	agent_destroy(agent);
	return rc;
}

int agent_run(
	struct sw *sw, const char *socket_path, const json_t *config, volatile sig_atomic_t *stop)
{
	static const struct agent_options defaults;

	return agent_run_with(sw, socket_path, config, stop, &defaults);
}

int agent_check_config(const json_t *config, char *err, size_t cap)
{
	const char *tls = rpc_string(config, "control_tls");
	char why[CTL_TLS_ERR_LEN];
	SSL_CTX *ctx;
	int rc = ctl_listen_check("control_tcp", rpc_string(config, "control_tcp"), err, cap);

	if (!rc)
		rc = ctl_listen_check_one("metrics", rpc_string(config, "metrics"), err, cap);
	if (rc || !tls)
		return rc;
	if (ctl_tls_open(tls, CTL_TLS_SERVES, &ctx, why)) {
		snprintf(err, cap, "control_tls: %s", why);
		return -EINVAL;
	}
	SSL_CTX_free(ctx);
	return 0;
}
