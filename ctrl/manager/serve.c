/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/manager/serve.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "ctrl/manager/dial.h"
#include "ctrl/manager/manager.h"
#include "ctrl/manager/page.h"
#include "ctrl/manager/store.h"
#include "lib/ctl/audit.h"
#include "lib/ctl/listen.h"
#include "lib/ctl/manager_schema.h"
#include "lib/ctl/notify.h"
#include "lib/ctl/rpc.h"
#include "lib/ctl/server.h"
#include "lib/ctl/tls.h"
#include "lib/journal/journal.h"
#include "lib/mgr/job.h"

/* Beside connections: the store, certificates, who is turned away, who reads the counters. */
enum { OTHER_FILES = 64 + CTL_HTTP_CLIENTS };

const struct manager_times manager_times = {
	.lease_s = 5, .etcd_ms = 1000, .campaign_ms = 500, .hung_ms = 1000, .idle_ms = 60000};

struct served {
	struct manager *m;
	char name[96]; /* HOST:PID */
	struct event_base *base;
	struct manager_dial *dial;
	struct store store;           /* arg NULL: in memory */
	SSL_CTX *serves, *asks;       /* NULL: no TLS */
	const char *certificates;     /* their directory */
	volatile sig_atomic_t *renew; /* NULL: never */
	int audit;                    /* descriptor, -1: none */
	volatile sig_atomic_t *stop;  /* NULL: of a look only */
	const struct manager_times *times;
	bool audit_failed;
	bool deposed;                      /* the store is not ours any more */
	uint64_t watchdog_ns, watchdog_at; /* how often, 0: nobody waits; when next */
};

static uint64_t clock_ns(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t now(void *arg)
{
	(void)arg;
	return clock_ns(CLOCK_MONOTONIC);
}

/* The service manager hears that we live. */
static void feed_watchdog(struct served *s, uint64_t at)
{
	if (!s->watchdog_ns || at < s->watchdog_at)
		return;
	ctl_notify("incline-manager", "WATCHDOG=1");
	s->watchdog_at = at + s->watchdog_ns;
}

/* Who does not own the store any more decides nothing, and ends with the next tick. */
static bool leads(struct served *s)
{
	if (!s->deposed && s->store.alive && s->store.alive(s->store.arg)) {
		journal(JOURNAL_WARNING, "incline-manager: store: another may lead now");
		s->deposed = true;
	}
	return !s->deposed;
}

/* ---- switches ---- */

static const char *control(void *arg, unsigned i)
{
	struct served *s = arg;

	return manager_control(s->m, i);
}

static void up(void *arg, unsigned i)
{
	struct served *s = arg;

	manager_up(s->m, i, now(NULL));
}

static void down(void *arg, unsigned i, bool dead)
{
	struct served *s = arg;

	manager_down(s->m, i, dead, now(NULL));
}

static bool heard(void *arg, unsigned i, const char *text, size_t len)
{
	struct served *s = arg;

	if (leads(s))
		manager_heard(s->m, i, text, len, now(NULL));
	return manager_knows(s->m, i);
}

static void send_line(void *arg, unsigned i, const char *line)
{
	struct served *s = arg;

	if (leads(s)) /* else we were stopped since it was decided */
		manager_dial_send(s->dial, i, line);
}

static void drop(void *arg, unsigned i)
{
	struct served *s = arg;

	manager_dial_drop(s->dial, i);
}

static void say(void *arg, enum journal_level level, const char *line)
{
	(void)arg;
	journal(level, "incline-manager: %s", line);
}

static void audit(void *arg, const char *text)
{
	struct served *s = arg;
	const int rc = ctl_audit_write(s->audit, text);

	if (rc && !s->audit_failed)
		journal(JOURNAL_ERR, "incline-manager: audit: %s: changes go unrecorded",
			strerror(-rc));
	s->audit_failed = rc != 0;
}

static void say_nothing(void *arg, enum journal_level level, const char *line)
{
	(void)arg, (void)level, (void)line;
}

/* ---- ranks and operators ---- */

static void come(void *arg, void *peer, const struct ctl_who *who)
{
	struct manager_peer *p = peer;

	(void)arg;
	p->who = *who;
}

static void gone(void *arg, void *peer)
{
	struct served *s = arg;

	manager_gone(s->m, peer);
}

static enum ctl_hold holds(void *arg, const void *peer)
{
	const struct manager_peer *p = peer;

	(void)arg;
	return p->joined ? CTL_HOLD_PLACE : CTL_HOLD_NOTHING;
}

static char *line(void *arg, void *peer, const char *text, size_t len)
{
	struct served *s = arg;

	char *out = leads(s) ? manager_line(s->m, peer, text, len, now(NULL)) : NULL;

	if (!out || leads(s))
		return out;
	free(out);
	return NULL;
}

static char *unasked(void *arg, void *peer)
{
	(void)arg, (void)peer;
	return NULL;
}

/* For connections to come, and those of whom is not to be trusted any more; both or none. */
static void renew(struct served *s)
{
	char why[CTL_TLS_ERR_LEN];
	SSL_CTX *serves = NULL;

	*s->renew = 0;
	if (!s->serves)
		return;
	if (ctl_tls_open(s->certificates, CTL_TLS_SERVES, &serves, why) ||
		ctl_tls_renew(s->certificates, CTL_TLS_ASKS, &s->asks, why)) {
		SSL_CTX_free(serves);
		journal(JOURNAL_ERR, "incline-manager: tls: %s: certificates stay as they were",
			why);
		return;
	}
	SSL_CTX_free(s->serves);
	s->serves = serves;
	manager_dial_renewed(s->dial);
	journal(JOURNAL_NOTICE, "incline-manager: certificates are read anew");
}

static void tick(void *arg, uint64_t at)
{
	struct served *s = arg;

	manager_dial_tick(s->dial, at);
	if (s->renew && *s->renew)
		renew(s);
	if (leads(s))
		manager_tick(s->m, at);
	feed_watchdog(s, at);
	if (s->deposed || manager_failed(s->m))
		event_base_loopbreak(s->base);
}

/* ---- life ---- */

static int open_dial(struct served *s, char err[MANAGER_ERR_LEN])
{
	const struct manager_dial_io io = {s, control, up, down, heard, say};

	return manager_dial_open(s->base, &s->asks, manager_n_switches(s->m), &io, &s->dial, err);
}

/* Larger than any that a manager of this machine has given before: milliseconds, and a thousand for
 * each. Below 2^53 until the year 2248. */
static uint64_t first_epoch(void)
{
	return clock_ns(CLOCK_REALTIME) / 1000000 * 1024;
}

/* Members of an etcd; NULL: another kind of store. */
static const char *etcd_of(const json_t *config)
{
	const char *store = ctl_text(&ctl_manager_config, config, "store");

	return strncmp(store, "etcd:", 5) ? NULL : store + 5;
}

static int serve(struct served *s, const json_t *config, volatile sig_atomic_t *stop,
	void (*ready)(const char *socket_path, const char *tcp))
{
	static const struct ctl_server_ops ops = {
		sizeof(struct manager_peer), now, come, gone, holds, line, unasked, tick};
	/* A rank's connection is its sign of life: see the bound in docs/manager.md. */
	const struct ctl_server_limits limits = {.line_ms = s->times->line_ms,
		.stall_ms = s->times->stall_ms,
		.idle_ms = s->times->idle_ms,
		.gone_ms =
			MGR_MISSED * (unsigned)ctl_int(&ctl_manager_config, config, "heartbeat_ms"),
		.clients = (unsigned)ctl_int(&ctl_manager_config, config, "clients"),
		.tls = s->serves ? &s->serves : NULL};
	const char *path = ctl_text(&ctl_manager_config, config, "listen");
	const char *tcp = rpc_string(config, "listen_tcp");
	char name[CTL_ADDRESS_STRLEN] = "";
	struct manager_page page;
	struct ctl_place place;
	int fd[CTL_MAX_LISTENERS], n, rc;

	if (etcd_of(config))
		manager_push_aside(path, s->times->hung_ms);
	n = ctl_listen(path, tcp, fd, name, &place);
	if (n < 0)
		return n;
	rc = manager_page_open(&page, s->base, s->m, rpc_string(config, "metrics"));
	if (!rc) {
		ready(path, tcp ? name : NULL);
		rc = ctl_serve(&ops, s, s->base, fd, (unsigned)n, stop, &limits);
	} else {
		while (n > 0)
			close(fd[--n]);
	}
	manager_page_close(&page);
	if (!rc)
		rc = s->deposed ? -ESTALE : manager_failed(s->m);
	ctl_unlisten(path, &place);
	return rc;
}

/* Who waits has started well: it may take months. */
static void say_waiting(const char *why)
{
	char state[MANAGER_ERR_LEN + 64];

	journal(JOURNAL_WARNING, "incline-manager: waiting: %s", why);
	snprintf(state, sizeof(state), "READY=1\nSTATUS=waiting: %s", why);
	ctl_notify("incline-manager", state);
}

/* Until we lead, saying once who does: then the lease of who led has run out, and what it has
 * written goes on. */
static int await_etcd(struct served *s, const json_t *config, volatile sig_atomic_t *stop,
	char err[MANAGER_ERR_LEN])
{
	char before[MANAGER_ERR_LEN] = "";
	const struct store_etcd_conf conf = {s->name, s->times->lease_s, s->times->etcd_ms, NULL,
		rpc_string(config, "store_tls")};
	const unsigned ms = s->times->campaign_ms;
	const struct timespec pause = {ms / 1000, ms % 1000 * 1000000l};
	int rc;

	while ((rc = store_etcd_open(etcd_of(config), &conf, &s->store, err)) == -EBUSY ||
		rc == -EIO || rc == -ESTALE) { /* -ESTALE: it led, and was overtaken at once */
		if (*stop)
			return -ECANCELED;
		if (strcmp(before, err))
			say_waiting(err);
		feed_watchdog(s, now(NULL));
		memcpy(before, err, sizeof(before));
		nanosleep(&pause, NULL);
	}
	if (!rc && before[0]) {
		journal(JOURNAL_NOTICE, "incline-manager: leading now");
		ctl_notify("incline-manager", "STATUS=leading");
	}
	return rc;
}

static int open_store(struct served *s, const json_t *config, char err[MANAGER_ERR_LEN])
{
	const char *path = ctl_text(&ctl_manager_config, config, "store");

	_Static_assert((int)MANAGER_ERR_LEN == (int)STORE_ERR_LEN, "one buffer for both");
	if (etcd_of(config))
		return s->stop ? await_etcd(s, config, s->stop, err) : 0;
	return strcmp(path, "memory") ? store_sqlite_open(path, &s->store, err) : 0;
}

/* A store that is there is read, and left as it is; a manager that runs may have it. */
static int look_into_store(struct served *s, const json_t *config, char err[MANAGER_ERR_LEN])
{
	const char *path = ctl_text(&ctl_manager_config, config, "store");
	const bool there = etcd_of(config) || (strcmp(path, "memory") && !access(path, F_OK));
	int rc = there ? open_store(s, config, err) : 0;

	store_read_only(&s->store);
	return rc == -EBUSY ? 0 : rc;
}

/* Certificates and the audit log (which a look does not make). */
static int open_security(
	struct served *s, const json_t *config, bool look, char err[MANAGER_ERR_LEN])
{
	const char *tls = rpc_string(config, "tls"), *log = rpc_string(config, "audit");
	char why[CTL_TLS_ERR_LEN];
	int rc = 0;

	s->certificates = tls;
	if (tls && ((rc = ctl_tls_open(tls, CTL_TLS_SERVES, &s->serves, why)) ||
			   (rc = ctl_tls_open(tls, CTL_TLS_ASKS, &s->asks, why))))
		snprintf(err, MANAGER_ERR_LEN, "tls: %.240s", why);
	if (rc || !log || (look && access(log, F_OK)))
		return rc;
	s->audit = ctl_audit_open("audit", log, err, MANAGER_ERR_LEN);
	return s->audit < 0 ? s->audit : 0;
}

static int prepare(struct served *s, const json_t *config, bool look, char err[MANAGER_ERR_LEN])
{
	struct manager_io io = {s, send_line, drop, look ? say_nothing : say, .name = s->name};
	char host[64] = "";
	int rc;

	gethostname(host, sizeof(host) - 1);
	snprintf(s->name, sizeof(s->name), "%s:%d", host, (int)getpid());
	snprintf(err, MANAGER_ERR_LEN, "no random numbers");
	if (getrandom(io.key, sizeof(io.key), 0) != sizeof(io.key))
		return -EIO;
	snprintf(err, MANAGER_ERR_LEN, "out of memory");
	rc = ctl_listen_check("listen_tcp", rpc_string(config, "listen_tcp"), err, MANAGER_ERR_LEN);
	if (!rc)
		rc = ctl_listen_check_one(
			"metrics", rpc_string(config, "metrics"), err, MANAGER_ERR_LEN);
	if (!rc)
		rc = store_etcd_check(etcd_of(config), rpc_string(config, "store_tls"), err);
	if (!rc)
		rc = open_security(s, config, look, err);
	if (s->audit >= 0)
		io.audit = audit;
	if (!rc)
		rc = look ? look_into_store(s, config, err) : open_store(s, config, err);
	if (!rc)
		rc = manager_create(config, &io, s->store.arg ? &s->store : NULL, first_epoch(),
			now(NULL), &s->m, err);
	if (!rc)
		rc = open_dial(s, err);
	if (!rc)
		rc = ctl_descriptors("clients",
			manager_n_switches(s->m) + OTHER_FILES +
				(unsigned)ctl_int(&ctl_manager_config, config, "clients"),
			look, err, MANAGER_ERR_LEN);
	return rc;
}

static void clear(struct served *s)
{
	manager_dial_close(s->dial);
	manager_destroy(s->m);
	SSL_CTX_free(s->serves);
	SSL_CTX_free(s->asks);
	if (s->audit >= 0)
		close(s->audit);
	if (s->store.arg)
		s->store.close(s->store.arg);
}

int manager_check(const json_t *config, char err[MANAGER_ERR_LEN])
{
	struct served s = {.audit = -1};
	const int rc = prepare(&s, config, true, err);

	clear(&s);
	return rc;
}

int manager_run(const json_t *config, volatile sig_atomic_t *stop, volatile sig_atomic_t *again,
	void (*ready)(const char *socket_path, const char *tcp), const struct manager_times *times)
{
	struct served s = {.base = event_base_new(),
		.audit = -1,
		.stop = stop,
		.renew = again,
		.times = times,
		.watchdog_ns = ctl_watchdog_ns()};
	char err[MANAGER_ERR_LEN] = "out of memory";
	int rc;

	signal(SIGPIPE, SIG_IGN); /* TLS to an etcd may raise it, too */
	rc = s.base ? prepare(&s, config, false, err) : -ENOMEM;
	if (rc == -ECANCELED)
		rc = 0; /* stopped while another led */
	else if (rc)
		journal(JOURNAL_ERR, "incline-manager: %s", err);
	else
		rc = serve(&s, config, stop, ready);
	clear(&s);
	if (s.base)
		event_base_free(s.base);
	return rc;
}
