/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent behind its sockets (lib/ctl/server.h). */
#include "ctrl/agent/agent.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctrl/agent/rpc.h"
#include "lib/ctl/config.h"
#include "lib/ctl/listen.h"
#include "lib/ctl/server.h"

struct served {
	struct agent *agent;
	bool tcp_full; /* TCP may do everything */
};

static uint64_t now(void *arg)
{
	const struct served *s = arg;

	return sw_now(s->agent->sw);
}

static void come(void *arg, void *peer, bool tcp)
{
	const struct served *s = arg;
	struct agent_peer *p = peer;

	p->restricted = tcp && !s->tcp_full;
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

static void tick(void *arg, uint64_t at)
{
	const struct served *s = arg;

	sw_tick(s->agent->sw, at);
	agent_tick(s->agent, at);
}

static void neighbours(int fd, short what, void *arg)
{
	struct sw *sw = arg;

	(void)fd, (void)what;
	sw_neigh_turn(sw, sw_now(sw));
}

static int serve(struct agent *agent, const int *fd, unsigned n, volatile sig_atomic_t *stop,
	const json_t *config, const struct agent_options *o)
{
	static const struct ctl_server_ops ops = {
		sizeof(struct agent_peer), now, come, gone, holds, line, unasked, tick};
	const struct ctl_server_limits limits = {o->line_ms, o->stall_ms,
		o->idle_ms ? o->idle_ms
			   : (unsigned)ctl_int(&ctl_switch_config, config, "control_idle_ms")};
	struct served s = {agent, ctl_bool(&ctl_switch_config, config, "control_tcp_full")};
	struct event_base *base = event_base_new();
	struct event *neigh;
	int rc;

	if (!base) {
		for (unsigned i = 0; i < n; i++)
			close(fd[i]);
		return -ENOMEM;
	}
	neigh = sw_neigh_fd(agent->sw) < 0 ? NULL
					   : event_new(base, sw_neigh_fd(agent->sw),
						     EV_READ | EV_PERSIST, neighbours, agent->sw);
	if (neigh)
		event_add(neigh, NULL);
	rc = ctl_serve(&ops, &s, base, fd, n, stop, &limits);
	if (neigh)
		event_free(neigh);
	event_base_free(base);
	return rc;
}

int agent_run_with(struct sw *sw, const char *socket_path, const json_t *config,
	volatile sig_atomic_t *stop, const struct agent_options *limits)
{
	const char *tcp = rpc_string(config, "control_tcp");
	char name[CTL_ADDRESS_STRLEN] = "";
	struct stat ours = {0};
	struct agent *agent;
	int fd[CTL_MAX_LISTENERS];
	int rc = agent_create(sw, rpc_string(config, "startup_file"), &agent);

	if (rc)
		return rc;
	signal(SIGPIPE, SIG_IGN);
	int n = ctl_listen(socket_path, tcp, fd, name);
	if (n < 0) {
		agent_destroy(agent);
		return n;
	}
	(void)!lstat(socket_path, &ours);
	if (limits->ready)
		limits->ready(sw, socket_path, tcp ? name : NULL);
	rc = serve(agent, fd, (unsigned)n, stop, config, limits);
	if (rc)
		fprintf(stderr, "error: control socket %s: %s\n", socket_path, strerror(-rc));
	ctl_unlisten(socket_path, &ours);
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
	return ctl_listen_check("control_tcp", rpc_string(config, "control_tcp"), err, cap);
}
