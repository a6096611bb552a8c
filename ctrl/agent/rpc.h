/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the agent: what a method's handler gets and gives. Parameters have passed ctl_check
 * against the schema when a handler sees them, so types and simple ranges are right. */
#ifndef AGENT_RPC_H
#define AGENT_RPC_H

#include <jansson.h>
#include <limits.h>

#include "ctrl/agent/agent.h"
#include "ctrl/agent/events.h"
#include "ctrl/agent/owners.h"
#include "dataplane/switch.h"
#include "lib/ctl/rpc.h"

struct agent_capture {
	uint32_t id;                   /* 0: none */
	const struct agent_peer *peer; /* who reads it; NULL: nobody any more */
};

struct agent {
	struct sw *sw;
	char startup_file[PATH_MAX]; /* "": none */
	uint64_t started_ns;
	uint64_t boot; /* another number after each start */
	struct owners owners;
	struct epochs epochs;
	struct events events;
	struct agent_capture captures[SW_MAX_CAPTURES];
	struct agent_peer *peer; /* whose request is being handled; NULL: anybody's */
	void (*audit)(void *arg, const char *line);
	void *audit_arg;
};

/* 0 and *result a new reference; else nothing has changed and *e is filled in by rpc_fail. */
typedef int (*rpc_handler)(
	struct agent *a, const json_t *params, json_t **result, struct rpc_error *e);

/* rpc_node.c: may a group be made for the job and epoch that the parameters name; it was. */
int rpc_epoch_check(struct agent *a, const json_t *params, struct rpc_error *e);
/* Of a group that is there: -ESTALE if its epoch is over. */
int rpc_epoch_check_group(struct agent *a, unsigned slot, struct rpc_error *e);
void rpc_epoch_note(struct agent *a, const json_t *params, unsigned slot);

/* rpc_owner.c: the first says whether the peer may call this, as far as the parameters say (they
 * have been checked); the others note whose a new group or ring is. */
int rpc_may(struct agent *a, const struct ctl_method *m, const json_t *params, struct rpc_error *e);
void rpc_own_group(struct agent *a, unsigned slot);
void rpc_own_ring(struct agent *a, unsigned ring);

/* rpc_capture.c: the peer has gone, and takes its captures with it; at every tick. */
void captures_let_go(struct agent *a, const struct agent_peer *peer);
void captures_tick(struct agent *a);
void captures_end(struct agent *a); /* all */
int rpc_capture_start(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_capture_read(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_capture_stop(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_capture_list(struct agent *, const json_t *, json_t **, struct rpc_error *);

int rpc_node_hello(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_lldp_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_event_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_event_subscribe(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_epoch_end(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_epoch_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_owner_hold(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_pipeline_get(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_table_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_table_read(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_table_write(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_create(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_activate(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_rebind(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_resync(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_move(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_delete(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_fail(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_group_show(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_lease_acquire(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_lease_release(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_lease_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_ring_create(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_ring_activate(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_ring_delete(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_ring_fail(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_ring_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_ring_show(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_ping(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_version(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_status(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_schema_get(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_port_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_port_impair(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_worker_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_neigh_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_mac_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_mcast_members(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_queue_list(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_stats_get(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_drops_get(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_trace_start(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_trace_read(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_config_get(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_config_save(struct agent *, const json_t *, json_t **, struct rpc_error *);
int rpc_config_load(struct agent *, const json_t *, json_t **, struct rpc_error *);

/* What a failed ring failed of, "fail_reason" and "failure" of ring.list; else nothing. */
void rpc_ring_failure(struct nr_ring *r, json_t *out);
/* Counters of a group by name; shared by group.show and stats.get. */
json_t *rpc_group_counters(const struct inc_group *g);

#endif
