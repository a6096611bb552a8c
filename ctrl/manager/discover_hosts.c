/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of hosts that were learnt: those of a switch's neighbours at the port where the host
 * is. Whose an address is stays so until no switch tells of it at the host any more, and no tree
 * goes there: then it is who has it now. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/discover.h"
#include "lib/wire/ip.h"

static const uint64_t LONG_DEAD_NS = 60000000000;

void __attribute__((format(printf, 3, 4)))
mg_refuse(struct mg_switch *s, const char *port, const char *fmt, ...)
{
	char line[MGR_LINE_LEN];
	va_list ap;

	if (json_object_get(s->refused, port))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	json_object_set_new(s->refused, port, json_string(line));
}

unsigned mg_taught(const json_t *taught, const char *port)
{
	return (unsigned)json_integer_value(json_object_get(taught, port));
}

bool mg_teach(json_t **taught, const char *port)
{
	const unsigned n = mg_taught(*taught, port);

	if (!*taught)
		*taught = json_object();
	return !json_object_set_new(*taught, port, json_integer(n + 1));
}

bool mg_is_deaf(const struct manager *m, const struct mg_switch *s)
{
	return !s->at_ports && !(s->dead && m->now - s->dead > LONG_DEAD_NS);
}

static void forget_address(struct manager *m, unsigned i)
{
	char key[MANAGER_IP_LEN + 8];

	snprintf(key, sizeof(key), "host/%s", m->host[i].ip);
	mg_keep_learnt(m, key, NULL);
	mg_host_gone(m, i);
}

void mg_addresses_forget(struct manager *m, unsigned node)
{
	const struct mgr_edge *edge;

	if (mgr_graph_edges(m->g, node, &edge) > 0)
		return;
	json_object_del(m->host_chassis, mgr_graph_node(m->g, node)->name);
	for (unsigned i = 0; i < m->n_hosts;) {
		if (m->host[i].node == node && m->host[i].learnt)
			forget_address(m, i);
		else
			i++;
	}
}

static bool add_address(struct manager *m, unsigned node, const char *ip)
{
	struct mg_host *more;

	if (m->n_hosts == m->host_room) {
		if (m->host_room >= MG_MAX_HOSTS)
			return false;
		more = realloc(m->host, 2 * (m->host_room + 1) * sizeof(*more));
		if (!more)
			return false;
		m->host = more;
		m->host_room = 2 * (m->host_room + 1);
	}
	m->host[m->n_hosts] = (struct mg_host){.node = node, .learnt = true};
	memcpy(m->host[m->n_hosts].name, mgr_graph_node(m->g, node)->name, MGR_NAME_LEN);
	snprintf(m->host[m->n_hosts].ip, MANAGER_IP_LEN, "%s", ip);
	return !mg_host_added(m, m->n_hosts++);
}

/* A switch of the host's tells of that address there, or cannot be asked; or a job has a tree to
 * the host. */
static bool is_there(struct manager *m, const struct mg_host *h)
{
	const struct mgr_edge *edge;
	const unsigned n = mgr_graph_edges(m->g, h->node, &edge);
	struct mgr_link l;

	for (unsigned i = 0; i < n; i++) {
		const struct mg_switch *s = mg_switch_of(m, edge[i].peer);

		if (!s || mgr_graph_link(m->g, edge[i].link, &l))
			continue;
		const unsigned end = l.node[1] == s->node;

		if (mg_is_deaf(m, s) || mgr_book_link_holders(m->b, edge[i].link) > 0 ||
			json_object_get(
				json_object_get(s->ips, mgr_graph_port(m->g, l.port[end])->name),
				h->ip))
			return true;
	}
	return false;
}

static void take_address(
	struct manager *m, struct mg_switch *s, const char *port, const char *ip, unsigned node)
{
	const struct mg_host *h = mg_host_by_ip(m, ip);
	char key[MANAGER_IP_LEN + 8];

	if (h && h->node == node)
		return;
	if (h && (!h->learnt || is_there(m, h))) {
		mg_refuse(s, port,
			"has a neighbour %s, which is %s's address%s: not learnt as %s's", ip,
			h->name, h->learnt ? "" : " by the file", mgr_graph_node(m->g, node)->name);
		return;
	}
	if (mg_taught(s->numbered, port) >= MG_MAX_AT_PORT) {
		mg_refuse(s, port,
			"has a neighbour %s, and has taught %d addresses before: no more are "
			"learnt until the manager starts anew",
			ip, MG_MAX_AT_PORT);
		return;
	}
	if (s->n_names >= MG_MAX_NAMES) {
		mg_refuse(s, port,
			"has a neighbour %s: %s has taught %d names and addresses, no more are "
			"learnt until the manager starts anew",
			ip, s->name, MG_MAX_NAMES);
		return;
	}
	if (h)
		forget_address(m, (unsigned)(h - m->host));
	if (!mg_teach(&s->numbered, port) || !add_address(m, node, ip)) {
		mg_refuse(s, port, "has a neighbour %s: no room for another address", ip);
		return;
	}
	s->n_names++;
	snprintf(key, sizeof(key), "host/%s", ip);
	mg_keep_learnt(m, key, json_pack("{s:s}", "name", mgr_graph_node(m->g, node)->name));
}

void mg_addresses_take(struct manager *m, struct mg_switch *s, const char *port, unsigned node)
{
	const char *ip;
	json_t *ignored;

	json_object_foreach(json_object_get(s->ips, port), ip, ignored)
		take_address(m, s, port, ip, node);
}

json_t *mg_addresses_read(const struct manager *m, const json_t *list)
{
	json_t *all = json_object(), *at;
	char ip[MANAGER_IP_LEN];
	struct wire_ip parsed;
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		const char *text = rpc_string(row, "ip"), *port = rpc_string(row, "port");

		if (!text || !port || wire_ip_parse(text, &parsed) ||
			mg_is_switch_ip(m, wire_ip_format(&parsed, ip, sizeof(ip))))
			continue;
		at = json_object_get(all, port);
		if (!at && !json_object_set_new(all, port, json_object()))
			at = json_object_get(all, port);
		json_object_set_new(at, ip, json_true());
	}
	return all;
}

bool mg_addresses_restore(struct manager *m, const char *ip, const json_t *row)
{
	const int node = mgr_graph_find(m->g, rpc_string(row, "name"));

	return node >= 0 && mgr_graph_node(m->g, (unsigned)node)->kind == MGR_HOST &&
	       !mg_host_by_ip(m, ip) && !mg_is_switch_ip(m, ip) && strlen(ip) < MANAGER_IP_LEN &&
	       add_address(m, (unsigned)node, ip);
}
