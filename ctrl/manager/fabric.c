/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric: from the file, and from what switches say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/priv.h"
#include "lib/ctl/config.h"
#include "lib/ctl/manager_schema.h"
#include "lib/wire/ip.h"

static int refuse(char *err, const char *list, size_t i, const char *field, const char *why)
{
	snprintf(err, MANAGER_ERR_LEN, "%s[%zu].%s: %s", list, i, field, why);
	return -EINVAL;
}

static const char *why_not(int rc)
{
	return rc == -EEXIST   ? "the name is used for a node of the other kind"
	       : rc == -ENOMEM ? "out of memory"
	       : rc == -ENOSPC ? "too many"
			       : "makes no sense";
}

/* ---- the file ---- */

static int check_ip(const char *text, char *ip, char *err, const char *list, size_t i)
{
	struct wire_ip parsed;

	if (wire_ip_parse(text, &parsed))
		return refuse(err, list, i, "ip", "is not an IP address");
	wire_ip_format(&parsed, ip, MANAGER_IP_LEN);
	return 0;
}

static int add_switch(struct manager *m, const json_t *row, size_t i, char *err)
{
	struct mg_switch *s = &m->sw[i];
	int rc = check_ip(rpc_string(row, "ip"), s->ip, err, "switches", i);

	if (rc)
		return rc;
	snprintf(s->name, sizeof(s->name), "%s", rpc_string(row, "name"));
	snprintf(s->control, sizeof(s->control), "%s", rpc_string(row, "control"));
	s->is = (struct mgr_node){.kind = MGR_SWITCH, .tier = (unsigned)rpc_int(row, "tier", 0)};
	memcpy(s->is.name, s->name, sizeof(s->is.name));
	if (mgr_graph_find(m->g, s->name) >= 0)
		return refuse(err, "switches", i, "name", "is used twice");
	rc = mgr_graph_set_node(m->g, &s->is);
	if (rc < 0)
		return refuse(err, "switches", i, "name", why_not(rc));
	s->node = (unsigned)mgr_graph_find(m->g, s->name); /* = i: the graph's first */
	m->n_sw++;
	return json_object_set_new(m->sw_ips, s->ip, json_true()) ? -ENOMEM : 0;
}

static int add_host(struct manager *m, const json_t *row, size_t i, char *err)
{
	struct mg_host *h = &m->host[i];
	struct mgr_node node = {.kind = MGR_HOST, .up = true};
	int rc = check_ip(rpc_string(row, "ip"), h->ip, err, "hosts", i);

	if (rc)
		return rc;
	snprintf(h->name, sizeof(h->name), "%s", rpc_string(row, "name"));
	memcpy(node.name, h->name, sizeof(node.name));
	if (mgr_graph_find(m->g, h->name) >= 0)
		return refuse(err, "hosts", i, "name", "is used twice");
	if (mg_host_by_ip(m, h->ip))
		return refuse(err, "hosts", i, "ip", "is used twice");
	rc = mgr_graph_set_node(m->g, &node);
	if (rc < 0)
		return refuse(err, "hosts", i, "name", why_not(rc));
	h->node = (unsigned)mgr_graph_find(m->g, h->name);
	return mg_host_added(m, m->n_hosts++);
}

static int add_port(struct manager *m, const char *node, const char *name, int64_t mbps)
{
	struct mgr_port port = {.bps = (uint64_t)mbps * 1000000};
	const int at = mgr_graph_find(m->g, node);

	if (at < 0)
		return at;
	/* Hosts' ports are theirs to say, and nobody asks hosts; switches tell of their own. */
	port.up = mgr_graph_node(m->g, (unsigned)at)->kind == MGR_HOST;
	snprintf(port.name, sizeof(port.name), "%s", name);
	return mgr_graph_set_port(m->g, (unsigned)at, &port);
}

/* A port has one cable. */
static int check_port(
	const json_t *row, size_t i, const char *node, const char *port, json_t *used, char *err)
{
	const char *field = !strcmp(node, "a") ? "a_port" : "b_port", *name = rpc_string(row, node);
	char key[2 * MGR_NAME_LEN], why[MANAGER_ERR_LEN - 64];
	const json_t *before;

	snprintf(key, sizeof(key), "%s %s", name, port);
	before = json_object_get(used, key);
	if (!before)
		return json_object_set_new(used, key, json_integer((json_int_t)i)) ? -ENOMEM : 0;
	snprintf(why, sizeof(why), "%s of %s has a link already: links[%lld]", port, name,
		(long long)json_integer_value(before));
	return refuse(err, "links", i, field, why);
}

static int add_link(struct manager *m, const json_t *row, size_t i, json_t *used, char *err)
{
	const char *a = rpc_string(row, "a"), *b = rpc_string(row, "b");
	const char *ap = rpc_string(row, "a_port"), *bp = rpc_string(row, "b_port") ?: "nic";
	const int64_t mbps = rpc_int(row, "mbps", 100000);
	int rc = check_port(row, i, "a", ap, used, err);

	if (!rc)
		rc = check_port(row, i, "b", bp, used, err);
	if (rc)
		return rc;
	if (add_port(m, a, ap, mbps) < 0)
		return refuse(err, "links", i, "a", "is neither a switch nor a host");
	if (add_port(m, b, bp, mbps) < 0)
		return refuse(err, "links", i, "b", "is neither a switch nor a host");
	rc = mgr_graph_claim(m->g, (unsigned)mgr_graph_find(m->g, a), ap, b, bp);
	if (rc >= 0)
		rc = mgr_graph_claim(m->g, (unsigned)mgr_graph_find(m->g, b), bp, a, ap);
	return rc < 0 ? refuse(err, "links", i, "a", why_not(rc)) : 0;
}

int mg_fabric_open(struct manager *m, const json_t *config, char err[MANAGER_ERR_LEN])
{
	const json_t *sw = json_object_get(config, "switches"),
		     *hosts = json_object_get(config, "hosts"),
		     *links = json_object_get(config, "links"), *row;
	json_t *used = json_object();
	int rc = 0;
	size_t i;

	for (unsigned k = 0; k < 2 && !m->discover; k++)
		if (!(k ? links : hosts)) {
			snprintf(err, MANAGER_ERR_LEN,
				"%s: is missing: without \"discover\" the "
				"file is all there is",
				k ? "links" : "hosts");
			return json_decref(used), -EINVAL;
		}
	snprintf(err, MANAGER_ERR_LEN, "out of memory");
	m->g = mgr_graph_new();
	m->chassis = json_object();
	m->host_chassis = json_object();
	m->by_ip = json_object();
	m->sw_ips = json_object();
	m->sw = calloc(json_array_size(sw), sizeof(*m->sw));
	m->host_room = (unsigned)json_array_size(hosts);
	m->host = calloc(m->host_room + 1, sizeof(*m->host));
	if (!m->g || !m->chassis || !m->host_chassis || !m->by_ip || !m->sw_ips || !m->sw ||
		!m->host || !used)
		rc = -ENOMEM;
	json_array_foreach(sw, i, row) if (!rc) rc = add_switch(m, row, i, err);
	json_array_foreach(hosts, i, row) if (!rc) rc = add_host(m, row, i, err);
	json_array_foreach(links, i, row) if (!rc) rc = add_link(m, row, i, used, err);
	json_decref(used);
	if (rc)
		return rc;
	m->file_ports = mgr_graph_link_bound(m->g);
	m->b = m->discover ? mgr_book_new(MG_MAX_NODES, MG_MAX_PORTS)
			   : mgr_book_new(mgr_graph_bound(m->g), m->file_ports);
	m->p = m->b ? mgr_place_new(m->g, m->b) : NULL;
	return m->p ? 0 : -ENOMEM;
}

void mg_fabric_close(struct manager *m)
{
	mg_cabling_close(m);
	mgr_place_free(m->p);
	mgr_book_free(m->b);
	mgr_graph_free(m->g);
	json_decref(m->host_chassis);
	json_decref(m->by_ip);
	json_decref(m->sw_ips);
	for (unsigned i = 0; m->sw && i < m->n_sw; i++)
		json_decref(m->sw[i].workers);
	free(m->sw);
	free(m->host);
}

/* ---- what switches say ---- */

static unsigned modes_of(const json_t *list)
{
	unsigned modes = 0;
	const json_t *name;
	size_t i;

	json_array_foreach(list, i, name)
	{
		const char *text = json_string_value(name);

		for (unsigned mode = MGR_MODE_I; text && mode <= MGR_MODE_III; mode <<= 1)
			if (!strcmp(text, mgr_mode_name(mode)))
				modes |= mode;
	}
	return modes;
}

/* What others than our jobs have taken of a switch's memory is not there. */
static uint64_t arena_left(struct manager *m, const struct mg_switch *s, const json_t *hello)
{
	const uint64_t ours = mgr_book_used_bytes(m->b, s->node);
	uint64_t bytes = 0, used = 0;

	ctl_get_u64(json_object_get(hello, "arena_bytes"), &bytes);
	ctl_get_u64(json_object_get(hello, "arena_used_bytes"), &used);
	used = used > ours ? used - ours : 0;
	return used < bytes ? bytes - used : 0;
}

static json_t *workers_of(const json_t *list)
{
	json_t *out = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		if (i < CTL_MAX_WORKERS)
			json_array_append_new(out, json_integer(rpc_int(row, "socket", -1)));
	}
	return out;
}

static void ports_of(struct manager *m, struct mg_switch *s, const json_t *list)
{
	const json_t *port;
	size_t i;

	json_array_foreach(list, i, port)
	{
		const char *name = rpc_string(port, "name"), *link = rpc_string(port, "link");

		if (name && link)
			mg_fabric_port(m, s, name, !strcmp(link, "up"));
	}
}

int mg_fabric_hello(struct manager *m, struct mg_switch *s, const json_t *hello)
{
	const char *boot = rpc_string(hello, "boot");
	const json_int_t groups = rpc_int(hello, "max_groups", 0);
	uint64_t number;
	char *end;

	number = boot ? strtoull(boot, &end, 16) : 0;
	if (!boot || !boot[0] || *end || groups < 0 || groups > UINT16_MAX)
		return -EPROTO;
	if (s->is.boot && s->is.boot != number) {
		mg_say(m, JOURNAL_WARNING, "%s has started anew", s->name);
		mgr_jobs_switch_lost(m->jobs, s->node, m->now);
	}
	s->is.boot = number;
	s->is.modes = modes_of(json_object_get(hello, "modes"));
	s->is.groups = (unsigned)groups;
	s->is.sram = arena_left(m, s, hello);
	s->is.up = true;
	mgr_graph_set_node(m->g, &s->is);
	json_decref(s->workers);
	s->workers = workers_of(json_object_get(hello, "workers"));
	mg_cabling_hello(m, s, hello);
	ports_of(m, s, json_object_get(hello, "ports"));
	return 0;
}

void mg_fabric_state(struct manager *m, struct mg_switch *s, bool up)
{
	s->is.up = up;
	mgr_graph_set_node(m->g, &s->is);
}

/* Index of the link at a port of a switch, and its other end. */
void mg_fabric_port(struct manager *m, struct mg_switch *s, const char *port, bool up)
{
	struct mgr_port is = {.up = up};
	struct mgr_link l;
	const int link = mg_link_at(m, s->node, port, &l);

	if (link < 0)
		return; /* nothing of ours */
	const unsigned end = l.node[1] == s->node;
	const struct mgr_port *was = mgr_graph_port(m->g, l.port[end]);
	bool fell;

	/* Towards a host it may be a program's RNIC, which comes and goes with it, and comes before
	 * its rank joins: whether a rank is there, its own connection tells. */
	if (mgr_graph_node(m->g, l.node[!end])->kind == MGR_HOST)
		is.up = true;
	is.up = is.up && !mg_cable_is_wrong(s, port);
	snprintf(is.name, sizeof(is.name), "%s", port);
	is.bps = was->bps;
	/* What was there before this connection may run over a port that we never knew to be up. */
	fell = !is.up && (was->up || !s->known);
	mgr_graph_set_port(m->g, s->node, &is);
	if (fell)
		mgr_jobs_link_down(m->jobs, (unsigned)link, m->now);
}

/* ---- a tree as a group file has it ---- */

static const char *port_name(const struct manager *m, unsigned link, unsigned node)
{
	struct mgr_link l;

	if (mgr_graph_link(m->g, link, &l))
		return "?";
	return mgr_graph_port(m->g, l.port[l.node[1] == node])->name;
}

/* The switch that takes part at or above i, over the link *by below it; -1: none. */
static int above(const struct mgr_tree *t, int i, unsigned *by)
{
	while (i >= 0 && t->sw[i].transit) {
		*by = t->sw[i].link;
		i = t->sw[i].parent;
	}
	return i;
}

static void add_child(const struct manager *m, const struct mgr_tree *t, json_t *rows, int parent,
	unsigned by, json_t *child)
{
	json_object_set_new(child, "port", json_string(port_name(m, by, t->sw[parent].node)));
	json_array_append_new(
		json_object_get(json_array_get(rows, (size_t)parent), "children"), child);
}

json_t *mg_tree_json(const struct manager *m, const struct mgr_tree *t)
{
	json_t *rows = json_array(), *out = json_array();

	for (unsigned i = 0; i < t->n_sw; i++) {
		const struct mg_switch *s = mg_switch_of((struct manager *)m, t->sw[i].node);

		json_array_append_new(rows, json_pack("{s:s,s:s,s:s,s:[]}", "name", s->name,
						    "socket", s->control, "ip", s->ip, "children"));
	}
	for (unsigned i = 1; i < t->n_sw; i++) {
		unsigned by = t->sw[i].link;
		const int p = above(t, t->sw[i].parent, &by);
		json_t *row = json_array_get(rows, i);

		if (t->sw[i].transit || p < 0)
			continue;
		json_object_set(
			row, "parent", json_object_get(json_array_get(rows, (size_t)p), "name"));
		json_object_set_new(row, "parent_port",
			json_string(port_name(m, t->sw[i].link, t->sw[i].node)));
		add_child(m, t, rows, p, by,
			json_pack("{s:O}", "switch", json_object_get(row, "name")));
	}
	for (unsigned r = 0; r < t->n_members; r++) {
		unsigned by = t->member[r].link;
		const int p = above(t, (int)t->member[r].sw, &by);

		if (p >= 0)
			add_child(m, t, rows, p, by, json_pack("{s:i}", "rank", (int)r));
	}
	for (unsigned i = 0; i < t->n_sw; i++)
		if (!t->sw[i].transit)
			json_array_append(out, json_array_get(rows, i));
	json_decref(rows);
	return out;
}
