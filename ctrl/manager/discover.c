/* SPDX-License-Identifier: BSD-3-Clause */
/* With "discover": links and hosts that the file does not have, learnt from whom switches hear by
 * LLDP. The file goes before: a port that has a link there is nothing to learn about.
 *
 * A link between switches is one that both ends hear, each the other's port. Hosts tell the manager
 * nothing, so their links are what the switch hears; their names are their systems', their
 * addresses those of the switch's neighbours at that port. What was learnt stays when nobody is
 * heard any more (a host's RNIC comes and goes with its program), and is written down. It goes when
 * another is heard there, neither end hears it, and no tree is over it: until then cabling.c tells
 * what is wrong, as it does of all that is heard and not learnt. Nodes and ports stay, as jobs may
 * name them: a switch gives a bounded number of nodes, each of its ports of ports.
 *
 * A host with several links says the same chassis at all of them. Who says its name by another
 * chassis is another one, who has to wait until the first is heard nowhere. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/discover.h"

enum { MAX_MBPS = 10000000 }; /* that a file may have */

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

const char *mg_discover_refused(const struct mg_switch *s, const char *port)
{
	return json_string_value(json_object_get(s->refused, port));
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

/* Or may be. */
static bool is_heard(struct manager *m, const struct mgr_link *l)
{
	for (unsigned end = 0; end < 2; end++) {
		const struct mg_switch *s = mg_switch_of(m, l->node[end]);

		if (s && mg_is_deaf(m, s))
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
	const uint64_t bps = mgr_graph_port(m->g, l->port[end])->bps;
	json_t *row = NULL, *chassis = json_object_get(m->host_chassis, b);
	char key[2 * MGR_NAME_LEN + 8];

	if (there)
		row = json_pack("{s:s,s:s,s:s,s:s,s:b}", "a", a, "a_port", ap, "b", b, "b_port", bp,
			"host", is_host(m, l->node[!end]));
	if (row && chassis)
		json_object_set(row, "chassis", chassis);
	if (row && bps != m->learnt_bps)
		json_object_set_new(row, "mbps", json_integer((json_int_t)(bps / 1000000)));
	snprintf(key, sizeof(key), "link/%s/%s", a, ap);
	mg_keep_learnt(m, key, row);
}

static uint64_t said_bps(const struct mg_switch *s, const char *port)
{
	const json_int_t mbps = s ? json_integer_value(json_object_get(s->mbps, port)) : 0;

	return mbps > 0 && mbps <= MAX_MBPS ? (uint64_t)mbps * 1000000 : 0;
}

/* What the ports of switches at its ends say, the slower one's; none does: as configured. */
static uint64_t bps_of(const struct manager *m, const struct mg_switch *s, const char *port,
	const struct mg_switch *far, const char *its_port)
{
	const uint64_t here = said_bps(s, port), there = said_bps(far, its_port);
	const uint64_t least = here && (!there || here < there) ? here : there;

	return least ? least : m->learnt_bps;
}

static int add_port(struct manager *m, unsigned node, const char *name, uint64_t bps)
{
	struct mgr_port port = {.bps = bps, .up = is_host(m, node)};
	const int rc = mgr_graph_link_bound(m->g) < MG_MAX_PORTS ? 0 : -ENOSPC;

	snprintf(port.name, sizeof(port.name), "%s", name);
	return rc ? rc : mgr_graph_set_port(m->g, node, &port);
}

/* From switch a to b, whose ports are free. */
static bool add_link(
	struct manager *m, unsigned a, const char *ap, unsigned b, const char *bp, uint64_t bps)
{
	char an[MGR_NAME_LEN], bn[MGR_NAME_LEN];

	memcpy(an, node_at(m, a)->name, sizeof(an));
	memcpy(bn, node_at(m, b)->name, sizeof(bn));
	return add_port(m, a, ap, bps) >= 0 && add_port(m, b, bp, bps) >= 0 &&
	       mgr_graph_claim(m->g, a, ap, bn, bp) >= 0 &&
	       mgr_graph_claim(m->g, b, bp, an, ap) >= 0;
}

static void unlearn(struct manager *m, const struct mgr_link *l)
{
	keep(m, l, false);
	for (unsigned end = 0; end < 2; end++)
		mgr_graph_claim(
			m->g, l->node[end], mgr_graph_port(m->g, l->port[end])->name, NULL, NULL);
	mg_say(m, JOURNAL_WARNING, "%s:%s is not cabled to %s:%s any more",
		node_at(m, l->node[0])->name, mgr_graph_port(m->g, l->port[0])->name,
		node_at(m, l->node[1])->name, mgr_graph_port(m->g, l->port[1])->name);
	for (unsigned end = 0; end < 2; end++)
		if (is_host(m, l->node[end]))
			mg_addresses_forget(m, l->node[end]);
}

/* The file's, or it is heard, or a tree is over it. */
static bool is_held(struct manager *m, unsigned link, const struct mgr_link *l)
{
	return !mg_is_learnt(m, link) || is_heard(m, l) || mgr_book_link_holders(m->b, link) > 0;
}

/* Nothing is at that port, or what was learnt there and has to go. */
static bool make_free(struct manager *m, unsigned node, const char *port)
{
	struct mgr_link l;
	const int link = mg_link_at(m, node, port, &l);

	if (link < 0)
		return true;
	if (is_held(m, (unsigned)link, &l))
		return false;
	unlearn(m, &l);
	return true;
}

/* Likewise all that was learnt of a host: another one has its name. */
static bool make_all_free(struct manager *m, unsigned host)
{
	const struct mgr_edge *edge;
	unsigned n = mgr_graph_edges(m->g, host, &edge);
	struct mgr_link l;

	for (unsigned i = 0; i < n; i++)
		if (mgr_graph_link(m->g, edge[i].link, &l) || is_held(m, edge[i].link, &l))
			return false;
	while (mgr_graph_edges(m->g, host, &edge) > 0 && !mgr_graph_link(m->g, edge[0].link, &l))
		unlearn(m, &l);
	return true;
}

static bool is_same_host(struct manager *m, unsigned host, const char *chassis)
{
	const char *is =
		json_string_value(json_object_get(m->host_chassis, node_at(m, host)->name));

	return !is || (chassis && !strcmp(is, chassis));
}

static bool may_name(struct mg_switch *s, const char *port, const char *host, bool count)
{
	if (mg_taught(s->named, port) >= MG_MAX_AT_PORT) {
		mg_refuse(s, port,
			"hears %s by LLDP, and has heard %d names of hosts and their ports before: "
			"no more are learnt until the manager starts anew",
			host, MG_MAX_AT_PORT);
		return false;
	}
	return !count || mg_teach(&s->named, port);
}

/* At a link that it has: another one if it was started anew with other ports. */
static void note_chassis(struct manager *m, unsigned link, const struct mgr_link *l, unsigned host,
	const char *chassis)
{
	if (!chassis || !mg_is_learnt(m, link) || is_same_host(m, host, chassis))
		return;
	json_object_set_new(m->host_chassis, node_at(m, host)->name, json_string(chassis));
	keep(m, l, true);
}

/* What hears is a port that is free, or has what may go. named: the host's name was counted just
 * now, and that of its port goes with it. */
static void learn(struct manager *m, struct mg_switch *s, const char *port, unsigned node,
	const char *its_port, const char *chassis, bool named)
{
	const char *name = node_at(m, node)->name;
	struct mgr_link l;
	bool is_new;

	if (is_host(m, node) && !is_same_host(m, node, chassis) && !make_all_free(m, node)) {
		mg_refuse(s, port,
			"hears %s:%s by LLDP with chassis %s, where %s has %s: not learnt", name,
			its_port, chassis ? chassis : "none", name,
			json_string_value(json_object_get(m->host_chassis, name)));
		return;
	}
	is_new = !named && is_host(m, node) && !mgr_graph_has_port(m->g, node, its_port);
	if ((is_new && !may_name(s, port, name, false)) || !make_free(m, s->node, port))
		return;
	if (!make_free(m, node, its_port)) {
		mg_refuse(s, port, "hears %s:%s by LLDP, which is at another port: not learnt",
			name, its_port);
		return;
	}
	if (is_new && !may_name(s, port, name, true))
		return;
	if (!add_link(m, s->node, port, node, its_port,
		    bps_of(m, s, port, mg_switch_of(m, node), its_port)) ||
		mg_link_at(m, s->node, port, &l) < 0) {
		mg_refuse(s, port, "hears %s:%s by LLDP: no room for another link", name, its_port);
		return;
	}
	mg_say(m, JOURNAL_NOTICE, "%s:%s is cabled to %s:%s, by LLDP", s->name, port,
		node_at(m, node)->name, its_port);
	if (is_host(m, node) && chassis)
		json_object_set_new(m->host_chassis, node_at(m, node)->name, json_string(chassis));
	keep(m, &l, true);
}

/* ---- hosts ---- */

static int add_host(struct manager *m, struct mg_switch *s, const char *name)
{
	struct mgr_node node = {.kind = MGR_HOST, .up = true};

	if (s->n_names >= MG_MAX_NAMES || mgr_graph_bound(m->g) >= MG_MAX_NODES)
		return -ENOSPC;
	s->n_names++;
	snprintf(node.name, sizeof(node.name), "%s", name);
	return mgr_graph_set_node(m->g, &node) < 0 ? -ENOSPC : mgr_graph_find(m->g, name);
}

/* A new host of that name, if the switch knows an address there. A switch's name says nothing: who
 * has not told us his chassis yet is no host either. Counts whether it is linked or not. */
static int new_host(struct manager *m, struct mg_switch *s, const char *port, const char *name)
{
	int node;

	if (mgr_graph_find(m->g, name) >= 0 || !json_object_size(json_object_get(s->ips, port)) ||
		!may_name(s, port, name, false))
		return -ENOENT;
	node = add_host(m, s, name);
	if (node < 0)
		mg_refuse(s, port,
			"hears %s by LLDP: no more than %d names and addresses are learnt "
			"from a switch until the manager starts anew",
			name, MG_MAX_NAMES);
	else
		may_name(s, port, name, true);
	return node;
}

/* ---- a port ---- */

/* It may be learnt: has names that are there, and not too long. */
static bool is_somebody(struct manager *m, struct mg_switch *s, const char *port, const json_t *row)
{
	const char *its_port = rpc_string(row, "port"), *system = rpc_string(row, "system");

	if (mg_cable_who(m, row) < 0 && (!system || !system[0]))
		return false; /* a NIC has a word of its own to say */
	if (mg_cable_who(m, row) < 0 && !fits(system)) {
		mg_refuse(s, port,
			"hears by LLDP a system named %.40s...: names have %d bytes at most: not "
			"learnt",
			system, MGR_NAME_LEN - 1);
		return false;
	}
	if (its_port && its_port[0] && !fits(its_port))
		mg_refuse(s, port,
			"hears by LLDP a port named %.40s... of %s: names have %d bytes at most: "
			"not learnt",
			its_port, system ? system : "a switch", MGR_NAME_LEN - 1);
	return fits(its_port);
}

/* The only one that is heard at a port; NULL: none, or several. Two programs of a host, with a name
 * each for its port, are one. */
static const json_t *only(
	struct manager *m, struct mg_switch *s, const char *port, const json_t *list)
{
	const json_t *row, *found = NULL;
	size_t i;

	json_array_foreach(list, i, row)
	{
		const char *system = rpc_string(row, "system"), *before;

		if (!is_somebody(m, s, port, row))
			continue;
		before = found ? rpc_string(found, "system") : NULL;
		if (found && mg_cable_who(m, found) >= 0 &&
			mg_cable_who(m, row) == mg_cable_who(m, found))
			continue;
		if (found && !(before && system && !strcmp(before, system))) {
			mg_refuse(s, port, "hears both %s and %s by LLDP: neither is learnt",
				before ? before : "a switch", system ? system : "a switch");
			return NULL;
		}
		if (!found)
			found = row;
	}
	return found;
}

static void look_at(struct manager *m, struct mg_switch *s, const char *port, const json_t *list)
{
	const json_t *row = only(m, s, port, list);
	const char *its_port = rpc_string(row, "port"), *chassis = rpc_string(row, "chassis");
	const struct mg_switch *far;
	struct mgr_link l;
	int node, link = mg_link_at(m, s->node, port, &l);
	bool may_learn, named = false;

	/* What is there already goes on whoever speaks besides. */
	if (link >= 0)
		json_object_del(s->refused, port);
	if (!row)
		return;
	may_learn = link < 0 || (mg_is_learnt(m, (unsigned)link) && !is_heard(m, &l));
	node = mg_cable_who(m, row);
	if (node < 0 && may_learn) {
		node = new_host(m, s, port, rpc_string(row, "system"));
		named = node >= 0;
	}
	if (node < 0 || node == (int)s->node)
		return;
	far = mg_switch_of(m, (unsigned)node);
	if (may_learn) {
		if (!far || hears(m, far, its_port, s->node, port))
			learn(m, s, port, (unsigned)node, its_port, chassis, named);
		link = mg_link_at(m, s->node, port, &l);
	}
	if (far || link < 0 || (l.node[0] != (unsigned)node && l.node[1] != (unsigned)node))
		return;
	note_chassis(m, (unsigned)link, &l, (unsigned)node, chassis);
	mg_addresses_take(m, s, port, (unsigned)node);
}

void mg_discover_hello(struct manager *m, struct mg_switch *s, const json_t *hello)
{
	const json_t *row;
	size_t i;

	mg_discover_deaf(s);
	if (!m->discover || !(s->at_ports = json_object()))
		return;
	s->refused = json_object();
	s->mbps = json_object();
	s->ips = mg_addresses_read(m, json_object_get(hello, "neighbours"));
	json_array_foreach(json_object_get(hello, "ports"), i, row)
	{
		const char *port = rpc_string(row, "name");
		json_t *list = json_object_get(row, "lldp");

		if (fits(port) && json_object_get(row, "mbps"))
			json_object_set(s->mbps, port, json_object_get(row, "mbps"));
		if (fits(port) && json_is_array(list))
			json_object_set(s->at_ports, port, list);
	}
	json_array_foreach(json_object_get(hello, "ports"), i, row)
	{
		const char *port = rpc_string(row, "name");

		if (fits(port))
			look_at(m, s, port, json_object_get(s->at_ports, port));
	}
}

void mg_discover_deaf(struct mg_switch *s)
{
	json_decref(s->at_ports);
	json_decref(s->ips);
	json_decref(s->refused);
	json_decref(s->mbps);
	s->at_ports = s->ips = s->refused = s->mbps = NULL;
}

/* ---- over a restart ---- */

/* False: the file has something else there now. */
static bool restore_link(struct manager *m, const json_t *row)
{
	const char *a = rpc_string(row, "a"), *b = rpc_string(row, "b"),
		   *ap = rpc_string(row, "a_port"), *bp = rpc_string(row, "b_port");
	struct mgr_node host = {.kind = MGR_HOST, .up = true};
	const json_int_t mbps = rpc_int(row, "mbps", 0);
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
		mg_link_at(m, (unsigned)to, bp, &l) >= 0 ||
		!add_link(m, (unsigned)at, ap, (unsigned)to, bp,
			mbps > 0 && mbps <= MAX_MBPS ? (uint64_t)mbps * 1000000 : m->learnt_bps))
		return false;
	if (rpc_string(row, "chassis"))
		json_object_set(m->host_chassis, b, json_object_get(row, "chassis"));
	return true;
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
		if (!m->discover || !mg_addresses_restore(m, name, row))
			mg_keep_learnt(m, key, NULL);
	}
}
