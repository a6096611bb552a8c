/* SPDX-License-Identifier: BSD-3-Clause */
/* With "discover": links and hosts that the file does not have, learnt from whom switches hear by
 * LLDP. The file goes before: a port that has a link there is nothing to learn about.
 *
 * A link between switches is one that both ends hear, each the other's port. Hosts tell the manager
 * nothing, so their links are what the switch hears; their names are their systems', their
 * addresses those of the switch's neighbours at that port. What was learnt stays when nobody is
 * heard any more (a host's RNIC comes and goes with its program), and is written down. It goes when
 * another is heard there, neither end hears it, and no tree is over it: until then cabling.c has
 * told what is wrong. Nodes stay, as jobs may name them: a switch gives a bounded number. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/keep.h"
#include "lib/wire/ip.h"

enum { MAX_NAMES = 512 }; /* of hosts, and addresses, that are learnt from one switch */
static const uint64_t LONG_DEAD_NS = 60000000000;

bool mg_is_learnt(const struct manager *m, unsigned link)
{
	return link >= m->file_ports;
}

static const struct mgr_node *node_at(const struct manager *m, unsigned node)
{
	return mgr_graph_node(m->g, node);
}

static bool is_host(const struct manager *m, unsigned node)
{
	return node_at(m, node)->kind == MGR_HOST;
}

static bool fits(const char *name)
{
	return name && name[0] && strlen(name) < MGR_NAME_LEN;
}

/* ---- who is heard ---- */

/* Port `port` of s has heard this port of a node, by the last hello of a connection that stands. */
static bool hears(struct manager *m, const struct mg_switch *s, const char *port, unsigned node,
	const char *its_port)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(s->at_ports, port), i, row)
	{
		const char *name = rpc_string(row, "port");

		if (name && !strcmp(name, its_port) && mg_cable_who(m, row) == (int)node)
			return true;
	}
	return false;
}

/* Whom it hears is not known: it has not said hello yet, or its connection is lost. That ends when
 * nobody has listened there for long: what was at a dead switch may be elsewhere. */
static bool is_deaf(const struct manager *m, const struct mg_switch *s)
{
	return !s->at_ports && !(s->dead && m->now - s->dead > LONG_DEAD_NS);
}

/* Or may be. */
static bool is_heard(struct manager *m, const struct mgr_link *l)
{
	for (unsigned end = 0; end < 2; end++) {
		const struct mg_switch *s = mg_switch_of(m, l->node[end]);

		if (s && is_deaf(m, s))
			return true;
		if (s && hears(m, s, mgr_graph_port(m->g, l->port[end])->name, l->node[!end],
				 mgr_graph_port(m->g, l->port[!end])->name))
			return true;
	}
	return false;
}

/* ---- what is known of it ---- */

/* "a" is a switch; which end the graph has first depends on what was there before. */
static void keep(struct manager *m, const struct mgr_link *l, bool there)
{
	const unsigned end = is_host(m, l->node[0]);
	const char *a = node_at(m, l->node[end])->name, *b = node_at(m, l->node[!end])->name;
	const char *ap = mgr_graph_port(m->g, l->port[end])->name,
		   *bp = mgr_graph_port(m->g, l->port[!end])->name;
	char key[2 * MGR_NAME_LEN + 8];

	snprintf(key, sizeof(key), "link/%s/%s", a, ap);
	mg_keep_learnt(m, key,
		there ? json_pack("{s:s,s:s,s:s,s:s,s:b}", "a", a, "a_port", ap, "b", b, "b_port",
				bp, "host", is_host(m, l->node[!end]))
		      : NULL);
}

static int add_port(struct manager *m, unsigned node, const char *name)
{
	struct mgr_port port = {.bps = m->learnt_bps, .up = is_host(m, node)};
	const int rc = mgr_graph_link_bound(m->g) < MG_MAX_PORTS ? 0 : -ENOSPC;

	snprintf(port.name, sizeof(port.name), "%s", name);
	return rc ? rc : mgr_graph_set_port(m->g, node, &port);
}

/* From switch a to b, whose ports are free. */
static bool add_link(struct manager *m, unsigned a, const char *ap, unsigned b, const char *bp)
{
	char an[MGR_NAME_LEN], bn[MGR_NAME_LEN];

	memcpy(an, node_at(m, a)->name, sizeof(an));
	memcpy(bn, node_at(m, b)->name, sizeof(bn));
	return add_port(m, a, ap) >= 0 && add_port(m, b, bp) >= 0 &&
	       mgr_graph_claim(m->g, a, ap, bn, bp) >= 0 &&
	       mgr_graph_claim(m->g, b, bp, an, ap) >= 0;
}

/* Addresses go with the last of a host's links. */
static void forget_addresses(struct manager *m, unsigned node)
{
	const struct mgr_edge *edge;
	char key[MANAGER_IP_LEN + 8];

	if (mgr_graph_edges(m->g, node, &edge) > 0)
		return;
	for (unsigned i = 0; i < m->n_hosts;) {
		if (m->host[i].node != node || !m->host[i].learnt) {
			i++;
			continue;
		}
		snprintf(key, sizeof(key), "host/%s", m->host[i].ip);
		mg_keep_learnt(m, key, NULL);
		m->host[i] = m->host[--m->n_hosts];
	}
}

static void unlearn(struct manager *m, const struct mgr_link *l)
{
	keep(m, l, false);
	for (unsigned end = 0; end < 2; end++)
		mgr_graph_claim(
			m->g, l->node[end], mgr_graph_port(m->g, l->port[end])->name, NULL, NULL);
	mg_say(m, "%s:%s is not cabled to %s:%s any more", node_at(m, l->node[0])->name,
		mgr_graph_port(m->g, l->port[0])->name, node_at(m, l->node[1])->name,
		mgr_graph_port(m->g, l->port[1])->name);
	for (unsigned end = 0; end < 2; end++)
		if (is_host(m, l->node[end]))
			forget_addresses(m, l->node[end]);
}

/* Nothing is at that port, or what was learnt there and has to go. */
static bool make_free(struct manager *m, unsigned node, const char *port)
{
	struct mgr_link l;
	const int link = mg_link_at(m, node, port, &l);

	if (link < 0)
		return true;
	if (!mg_is_learnt(m, (unsigned)link) || is_heard(m, &l) ||
		mgr_book_link_holders(m->b, (unsigned)link) > 0)
		return false;
	unlearn(m, &l);
	return true;
}

static void learn(struct manager *m, const struct mg_switch *s, const char *port, unsigned node,
	const char *its_port)
{
	struct mgr_link l;

	if (!make_free(m, s->node, port) || !make_free(m, node, its_port))
		return;
	if (!add_link(m, s->node, port, node, its_port) || mg_link_at(m, s->node, port, &l) < 0) {
		mg_say(m, "%s:%s: no room for another link", s->name, port);
		return;
	}
	mg_say(m, "%s:%s is cabled to %s:%s, by LLDP", s->name, port, node_at(m, node)->name,
		its_port);
	keep(m, &l, true);
}

/* ---- hosts ---- */

static bool is_switch_ip(const struct manager *m, const char *ip)
{
	for (unsigned i = 0; i < m->n_sw; i++)
		if (!strcmp(m->sw[i].ip, ip))
			return true;
	return false;
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
	memcpy(m->host[m->n_hosts].name, node_at(m, node)->name, MGR_NAME_LEN);
	snprintf(m->host[m->n_hosts].ip, MANAGER_IP_LEN, "%s", ip);
	m->n_hosts++;
	return true;
}

/* Addresses at a port; of them, those that nobody has become the node's (-1: they are counted
 * only). */
static unsigned addresses(struct manager *m, struct mg_switch *s, const char *port,
	const json_t *neighbours, int node)
{
	char ip[MANAGER_IP_LEN], key[MANAGER_IP_LEN + 8];
	const json_t *row;
	struct wire_ip parsed;
	unsigned n = 0;
	size_t i;

	json_array_foreach(neighbours, i, row)
	{
		const char *text = rpc_string(row, "ip"), *at = rpc_string(row, "port");

		if (!text || !at || strcmp(at, port) != 0 || wire_ip_parse(text, &parsed) ||
			is_switch_ip(m, wire_ip_format(&parsed, ip, sizeof(ip))))
			continue;
		n++;
		if (node < 0 || mg_host_by_ip(m, ip) || s->n_names >= MAX_NAMES ||
			!add_address(m, (unsigned)node, ip))
			continue;
		s->n_names++;
		snprintf(key, sizeof(key), "host/%s", ip);
		mg_keep_learnt(
			m, key, json_pack("{s:s}", "name", node_at(m, (unsigned)node)->name));
	}
	return n;
}

static int add_host(struct manager *m, struct mg_switch *s, const char *name)
{
	struct mgr_node node = {.kind = MGR_HOST, .up = true};

	if (s->n_names >= MAX_NAMES || mgr_graph_bound(m->g) >= MG_MAX_NODES)
		return -ENOSPC;
	s->n_names++;
	snprintf(node.name, sizeof(node.name), "%s", name);
	return mgr_graph_set_node(m->g, &node) < 0 ? -ENOSPC : mgr_graph_find(m->g, name);
}

/* The host of that name, which is new if there is none and the switch knows an address there. A
 * switch's name says nothing: who has not told us his chassis yet is no host either. */
static int host_named(struct manager *m, struct mg_switch *s, const char *port, const char *name,
	const json_t *neighbours)
{
	const int node = mgr_graph_find(m->g, name);

	if (node >= 0)
		return is_host(m, (unsigned)node) ? node : -ENOENT;
	return addresses(m, s, port, neighbours, -1) > 0 ? add_host(m, s, name) : -ENOENT;
}

/* ---- a port ---- */

/* The only one that is heard at a port; NULL: none, or several. Two programs of a host, with a name
 * each for its port, are one. */
static const json_t *only(struct manager *m, const json_t *list)
{
	const json_t *row, *found = NULL;
	size_t i;

	json_array_foreach(list, i, row)
	{
		const char *system = rpc_string(row, "system"), *before;

		if (!fits(rpc_string(row, "port")) || (mg_cable_who(m, row) < 0 && !fits(system)))
			continue;
		before = found ? rpc_string(found, "system") : NULL;
		if (found && mg_cable_who(m, found) >= 0 &&
			mg_cable_who(m, row) == mg_cable_who(m, found))
			continue;
		if (found && !(before && system && !strcmp(before, system)))
			return NULL;
		if (!found)
			found = row;
	}
	return found;
}

static void look_at(struct manager *m, struct mg_switch *s, const char *port, const json_t *list,
	const json_t *neighbours)
{
	const json_t *row = only(m, list);
	const char *its_port = rpc_string(row, "port");
	const struct mg_switch *far;
	struct mgr_link l;
	int node, link;

	if (!row)
		return;
	node = mg_cable_who(m, row);
	if (node < 0)
		node = host_named(m, s, port, rpc_string(row, "system"), neighbours);
	if (node < 0 || node == (int)s->node)
		return;
	link = mg_link_at(m, s->node, port, &l);
	far = mg_switch_of(m, (unsigned)node);
	if (link < 0 || (mg_is_learnt(m, (unsigned)link) && !is_heard(m, &l))) {
		if (!far || hears(m, far, its_port, s->node, port))
			learn(m, s, port, (unsigned)node, its_port);
		link = mg_link_at(m, s->node, port, &l);
	}
	if (!far && link >= 0 && (l.node[0] == (unsigned)node || l.node[1] == (unsigned)node))
		addresses(m, s, port, neighbours, node);
}

void mg_discover_hello(struct manager *m, struct mg_switch *s, const json_t *hello)
{
	const json_t *row;
	size_t i;

	mg_discover_deaf(s);
	if (!m->discover || !(s->at_ports = json_object()))
		return;
	json_array_foreach(json_object_get(hello, "ports"), i, row)
	{
		const char *port = rpc_string(row, "name");
		json_t *list = json_object_get(row, "lldp");

		if (fits(port) && json_is_array(list))
			json_object_set(s->at_ports, port, list);
	}
	json_array_foreach(json_object_get(hello, "ports"), i, row)
	{
		const char *port = rpc_string(row, "name");

		if (fits(port))
			look_at(m, s, port, json_object_get(s->at_ports, port),
				json_object_get(hello, "neighbours"));
	}
}

void mg_discover_deaf(struct mg_switch *s)
{
	json_decref(s->at_ports);
	s->at_ports = NULL;
}

/* ---- over a restart ---- */

/* False: the file has something else there now. */
static bool restore_link(struct manager *m, const json_t *row)
{
	const char *a = rpc_string(row, "a"), *b = rpc_string(row, "b"),
		   *ap = rpc_string(row, "a_port"), *bp = rpc_string(row, "b_port");
	struct mgr_node host = {.kind = MGR_HOST, .up = true};
	int at = mgr_graph_find(m->g, a), to = mgr_graph_find(m->g, b);
	struct mgr_link l;

	if (to < 0 && rpc_bool(row, "host", false) && mgr_graph_bound(m->g) < MG_MAX_NODES) {
		snprintf(host.name, sizeof(host.name), "%s", b);
		if (mgr_graph_set_node(m->g, &host) >= 0)
			to = mgr_graph_find(m->g, b);
	}
	if (at < 0 || to < 0 || is_host(m, (unsigned)at) ||
		is_host(m, (unsigned)to) != rpc_bool(row, "host", false) ||
		mg_link_at(m, (unsigned)at, ap, &l) >= 0 ||
		mg_link_at(m, (unsigned)to, bp, &l) >= 0)
		return false;
	return add_link(m, (unsigned)at, ap, (unsigned)to, bp);
}

static bool restore_host(struct manager *m, const char *ip, const json_t *row)
{
	const int node = mgr_graph_find(m->g, rpc_string(row, "name"));

	return node >= 0 && is_host(m, (unsigned)node) && !mg_host_by_ip(m, ip) &&
	       !is_switch_ip(m, ip) && strlen(ip) < MANAGER_IP_LEN &&
	       add_address(m, (unsigned)node, ip);
}

void mg_discover_restore(struct manager *m, json_t *links, json_t *hosts)
{
	char key[2 * MGR_NAME_LEN + 64];
	const char *name;
	json_t *row;

	json_object_foreach(links, name, row)
	{
		snprintf(key, sizeof(key), "link/%s", name);
		if (!m->discover || !restore_link(m, row))
			mg_keep_learnt(m, key, NULL);
	}
	json_object_foreach(hosts, name, row)
	{
		snprintf(key, sizeof(key), "host/%s", name);
		if (!m->discover || !restore_host(m, name, row))
			mg_keep_learnt(m, key, NULL);
	}
}
