/* SPDX-License-Identifier: BSD-3-Clause */
/* From a request to its handler. */
#include "ctrl/agent/rpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/ctl/audit.h"
#include "lib/journal/journal.h"

static const struct {
	const char *method;
	rpc_handler handler;
} handlers[] = {
	{"ping", rpc_ping},
	{"version", rpc_version},
	{"status", rpc_status},
	{"schema.get", rpc_schema_get},
	{"port.list", rpc_port_list},
	{"worker.list", rpc_worker_list},
	{"queue.list", rpc_queue_list},
	{"mcast.members", rpc_mcast_members},
	{"neigh.list", rpc_neigh_list},
	{"mac.list", rpc_mac_list},
	{"port.impair", rpc_port_impair},
	{"pipeline.get", rpc_pipeline_get},
	{"table.list", rpc_table_list},
	{"table.read", rpc_table_read},
	{"table.write", rpc_table_write},
	{"node.hello", rpc_node_hello},
	{"lldp.list", rpc_lldp_list},
	{"event.list", rpc_event_list},
	{"event.subscribe", rpc_event_subscribe},
	{"epoch.end", rpc_epoch_end},
	{"epoch.list", rpc_epoch_list},
	{"owner.hold", rpc_owner_hold},
	{"group.create", rpc_group_create},
	{"group.activate", rpc_group_activate},
	{"group.rebind", rpc_group_rebind},
	{"group.resync", rpc_group_resync},
	{"group.move", rpc_group_move},
	{"group.delete", rpc_group_delete},
	{"group.fail", rpc_group_fail},
	{"group.list", rpc_group_list},
	{"group.show", rpc_group_show},
	{"lease.acquire", rpc_lease_acquire},
	{"lease.release", rpc_lease_release},
	{"lease.list", rpc_lease_list},
	{"ring.create", rpc_ring_create},
	{"ring.activate", rpc_ring_activate},
	{"ring.fail", rpc_ring_fail},
	{"ring.delete", rpc_ring_delete},
	{"ring.list", rpc_ring_list},
	{"ring.show", rpc_ring_show},
	{"capture.start", rpc_capture_start},
	{"capture.read", rpc_capture_read},
	{"capture.stop", rpc_capture_stop},
	{"capture.list", rpc_capture_list},
	{"stats.get", rpc_stats_get},
	{"drops.get", rpc_drops_get},
	{"trace.start", rpc_trace_start},
	{"trace.read", rpc_trace_read},
	{"config.get", rpc_config_get},
	{"config.save", rpc_config_save},
	{"config.load", rpc_config_load},
};

static int call(
	void *arg, const char *method, const json_t *params, json_t **result, struct rpc_error *e)
{
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (!strcmp(handlers[i].method, method))
			return handlers[i].handler(arg, params, result, e);
	return -ENOSYS;
}

static int may(void *arg, const struct ctl_method *m, const json_t *params, struct rpc_error *e)
{
	return rpc_may(arg, m, params, e);
}

static void done(void *arg, const struct ctl_method *m, const json_t *params, int rc,
	const struct rpc_error *e)
{
	static const struct ctl_who anybody;
	struct agent *a = arg;
	char *line;

	if (!a->audit)
		return;
	line = ctl_audit_line(a->peer ? &a->peer->who : &anybody, m->name, params, rc, e);
	if (line)
		a->audit(a->audit_arg, line);
	free(line);
}

void agent_audit_to(struct agent *agent, void (*audit)(void *arg, const char *line), void *arg)
{
	agent->audit = audit;
	agent->audit_arg = arg;
}

void agent_peer_came(struct agent_peer *peer, const struct ctl_who *who, bool full)
{
	peer->who = *who;
	peer->restricted = who->role == CTL_TENANT || who->role == CTL_AGENT ||
			   (who->role == CTL_STRANGER && !full);
}

char *agent_handle_line(struct agent *agent, struct agent_peer *peer, const char *line, size_t len)
{
	static const struct rpc_service service = {&ctl_switch_schema, may, call, done};
	char *out;

	agent->peer = peer;
	out = rpc_handle_line(&service, agent, line, len);
	agent->peer = NULL;
	return out;
}

/* ---- the agent ---- */

int agent_create(struct sw *sw, const char *startup_file, struct agent **agent)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->sw = sw;
	a->started_ns = sw_now(sw);
	while (getrandom(&a->boot, sizeof(a->boot), 0) != sizeof(a->boot))
		;
	events_tick(&a->events, sw, &a->epochs, a->started_ns);
	/* Absolute, and the file itself if it is a link: config.save replaces it. */
	if (startup_file && !realpath(startup_file, a->startup_file))
		snprintf(a->startup_file, sizeof(a->startup_file), "%s", startup_file);
	*agent = a;
	return 0;
}

/* What has become of config.load, in a line that may be long. */
static void say_loaded(const json_t *result, FILE *out)
{
	const char *file, *name;
	int added, changed, removed, kept;
	json_t *restart, *item;
	size_t i;

	if (json_unpack((json_t *)result, "{s:s,s:i,s:i,s:i,s:i,s:o}", "file", &file, "added",
		    &added, "changed", &changed, "removed", &removed, "kept", &kept, "restart",
		    &restart))
		return;
	fprintf(out, "incline-switch: %s: tables loaded: %d added, %d changed, %d removed, %d kept",
		file, added, changed, removed, kept);
	json_array_foreach(restart, i, item)
	{
		name = json_string_value(item);
		fprintf(out, "%s%s", i ? ", " : "; take a restart: ", name);
	}
	fputc('\n', out);
}

void agent_load(struct agent *a, FILE *out)
{
	static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"config.load\"}";
	char *answer = agent_handle_line(a, NULL, request, sizeof(request) - 1);
	json_t *json = answer ? json_loads(answer, 0, NULL) : NULL;
	const json_t *result = json_object_get(json, "result");
	const char *why =
		json_string_value(json_object_get(json_object_get(json, "error"), "message"));

	if (result)
		say_loaded(result, out);
	else
		journal_to(out, JOURNAL_ERR,
			"incline-switch: %s: not loaded, nothing has changed: %s", a->startup_file,
			why ? why : "out of memory");
	json_decref(json);
	free(answer);
}

void agent_tick(struct agent *agent, uint64_t now)
{
	owners_tick(&agent->owners, agent->sw, now);
	captures_tick(agent);
	events_tick(&agent->events, agent->sw, &agent->epochs, now);
}

void agent_say(struct agent *agent, FILE *out)
{
	events_say(&agent->events, sw_name(agent->sw), out);
}

char *agent_next_event(struct agent *agent, struct agent_peer *peer)
{
	return peer->subscribed ? events_line(&agent->events, &peer->next_event) : NULL;
}

uint64_t agent_due(const struct agent *agent)
{
	return owners_due(&agent->owners, agent->sw);
}

void agent_peer_gone(struct agent *agent, struct agent_peer *peer)
{
	if (peer->owner)
		owner_let_go(&agent->owners, agent->sw, peer->owner);
	peer->owner = NULL;
	captures_let_go(agent, peer);
}

void agent_destroy(struct agent *agent)
{
	if (agent) {
		captures_end(agent);
		owners_free(&agent->owners);
		events_free(&agent->events);
	}
	free(agent);
}
