/* SPDX-License-Identifier: BSD-3-Clause */
/* What all parts of the manager stand on: its clock, the operator's ear, who asks, and where
 * something is that others have put into struct manager. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctrl/manager/priv.h"

void mg_clock(struct manager *m, uint64_t now)
{
	const uint64_t since = now - m->slept - m->ticked;

	if (since > m->heartbeat_ns)
		m->slept += since - m->heartbeat_ns;
	m->now = now - m->slept;
}

void mg_say(struct manager *m, enum journal_level level, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (char *c = line; *c; c++) /* names are what others say: a line stays one */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	m->io.say(m->io.arg, level, line);
}

const char *mg_tenant(const struct manager *m)
{
	return m->peer && m->peer->who.role == CTL_TENANT ? m->peer->who.name : NULL;
}

const char *mg_phase_name(enum mgr_phase phase)
{
	static const char *const names[] = {
		"joining", "installing", "connecting", "starting", "active", "ring", "over"};

	return names[phase];
}

/* ---- the fabric ---- */

struct mg_switch *mg_switch_of(struct manager *m, unsigned node)
{
	return node < m->n_sw ? &m->sw[node] : NULL;
}

const struct mg_host *mg_host_by_ip(const struct manager *m, const char *ip)
{
	const json_t *at = json_object_get(m->by_ip, ip);

	return at ? &m->host[json_integer_value(at)] : NULL;
}

int mg_host_added(struct manager *m, unsigned i)
{
	return json_object_set_new(m->by_ip, m->host[i].ip, json_integer(i)) ? -ENOMEM : 0;
}

void mg_host_gone(struct manager *m, unsigned i)
{
	json_object_del(m->by_ip, m->host[i].ip);
	m->host[i] = m->host[--m->n_hosts];
	if (i < m->n_hosts)
		json_object_set_new(m->by_ip, m->host[i].ip, json_integer(i));
}

bool mg_is_switch_ip(const struct manager *m, const char *ip)
{
	return json_object_get(m->sw_ips, ip) != NULL;
}

int mg_link_at(struct manager *m, unsigned node, const char *port, struct mgr_link *l)
{
	const int link = mgr_graph_link_at(m->g, node, port);

	return link < 0 ? link : mgr_graph_link(m->g, (unsigned)link, l) ? -ENOENT : link;
}

int mg_cable_who(const struct manager *m, const json_t *heard)
{
	const char *chassis = rpc_string(heard, "chassis"), *system = rpc_string(heard, "system");
	const json_t *at = chassis ? json_object_get(m->chassis, chassis) : NULL;
	int node;

	if (json_is_integer(at))
		return (int)m->sw[json_integer_value(at)].node;
	node = system ? mgr_graph_find(m->g, system) : -ENOENT;
	return node >= 0 && mgr_graph_node(m->g, (unsigned)node)->kind == MGR_HOST ? node : -ENOENT;
}
