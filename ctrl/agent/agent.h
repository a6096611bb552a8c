/* SPDX-License-Identifier: BSD-3-Clause */
/* IncAgent: the control socket of a switch. JSON-RPC 2.0, one object per line, over a UNIX stream
 * socket and, where the configuration asks for it, TCP (docs/control-socket.md); the methods are
 * those of ctl_switch_schema. It runs in the control thread and is the only one that calls sw_*
 * once the switch runs. Packets never wait for it. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/ctl/who.h"

struct sw;
struct agent;
struct owner;

/* Listens at socket_path (mode 0660; a stale socket is replaced, one that somebody listens at is
 * not), serves requests and calls sw_tick every 100 ms until *stop is set; then closes all
 * connections and removes the socket. Ignores SIGPIPE for the process. config is the switch's
 * configuration, checked (lib/ctl/config.h), or NULL; its key "startup_file", which the main
 * program sets, is where config.save writes (absent: it refuses); "control_tcp" names an address to
 * listen at as well, with few rights unless "control_tcp_full" is true; "control_idle_ms" bounds
 * the silence of connections that hold no owner. 0, or -errno after a line on stderr that says what
 * failed. */
int agent_run(
	struct sw *sw, const char *socket_path, const json_t *config, volatile sig_atomic_t *stop);

struct agent_options {
	/* Times that a client may take before it is closed; 0: the default of 10 s. */
	unsigned line_ms;  /* for a line to be finished */
	unsigned stall_ms; /* for none of the answers to be taken */
	unsigned idle_ms;  /* between requests, unless it holds an owner; 0: "control_idle_ms" */
	/* Called once, when the sockets listen; may be NULL. tcp: "tcp:ADDRESS:PORT", or NULL. */
	void (*ready)(struct sw *sw, const char *socket_path, const char *tcp);
	/* Set by a signal: certificates are to be read anew and config.load to be called, and what
	 * becomes of it said on stderr. It is zero again before the files are read. May be NULL. */
	volatile sig_atomic_t *load;
};
/* A service manager (lib/ctl/notify.h) is told of loads, and while all workers turn that the switch
 * lives. */
int agent_run_with(struct sw *sw, const char *socket_path, const json_t *config,
	volatile sig_atomic_t *stop, const struct agent_options *limits);

/* What the table of lib/ctl/config.h cannot tell of a configuration's "control_tcp": whether it is
 * an address to listen at. -EINVAL with a reason in err. */
int agent_check_config(const json_t *config, char *err, size_t cap);

/* Inserts the entries of a configuration's "tables" object as one batch: all or none. What the
 * switch has entered itself (its addresses) may be among them. NULL: nothing to do. -errno with
 * "tables.route[3].key.dst: reason" in err. */
int agent_apply_tables(struct sw *sw, const json_t *tables, char *err, size_t cap);

/* The agent without its socket, for tests. startup_file may be NULL. -ENOMEM. */
int agent_create(struct sw *sw, const char *startup_file, struct agent **agent);
void agent_destroy(struct agent *agent);

/* Who asks: one per connection, zero at first. */
struct agent_peer {
	bool restricted; /* may do what the schema says of TCP (enum ctl_tcp), nothing else */
	struct ctl_who who;
	struct owner *owner;
	bool subscribed;     /* event.subscribe */
	uint64_t next_event; /* that it is to be told */
};

/* Who has come; full: strangers may do everything. */
void agent_peer_came(struct agent_peer *peer, const struct ctl_who *who, bool full);

/* Is told lines of the audit log (lib/ctl/audit.h); NULL: nobody. */
void agent_audit_to(struct agent *agent, void (*audit)(void *arg, const char *line), void *arg);

/* Handles one request of len bytes, without its newline. Returns the answer without newline, to be
 * freed by the caller; NULL if there is none to send (a notification, an empty line). peer may be
 * NULL: somebody who may do everything and owns nothing. */
char *agent_handle_line(struct agent *agent, struct agent_peer *peer, const char *line, size_t len);
/* The connection has ended: it holds its owner no more. */
void agent_peer_gone(struct agent *agent, struct agent_peer *peer);

/* config.load, asked by nobody's connection; what became of it as a line on out. */
void agent_load(struct agent *agent, FILE *out);

/* Events since the last call, for the operator's journal: lines, with their levels where out is the
 * journal's (lib/journal). */
void agent_say(struct agent *agent, FILE *out);
/* The next event for a subscriber, as a line like an answer; NULL: there is none. */
char *agent_next_event(struct agent *agent, struct agent_peer *peer);

/* Ends what nobody owns any more, looks for events; to be called as sw_tick. The other: when there
 * may be something to do, or UINT64_MAX. */
void agent_tick(struct agent *agent, uint64_t now);
uint64_t agent_due(const struct agent *agent);

#endif
