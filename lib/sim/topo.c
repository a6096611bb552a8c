/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/topo.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MTU = 4200, PLANES_MTU = 4096 + 160, MAX_LEVELS = 8 };

static int refuse(char *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(char *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, SIM_ERR_LEN, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int allocate(
	struct sim_topo *t, uint64_t hosts, uint64_t switches, uint64_t edges, char *err)
{
	if (hosts == 0 || switches == 0 || hosts + switches > SIM_MAX_NODES ||
		edges > SIM_MAX_NODES * 16)
		return refuse(err, "topology: %llu hosts and %llu switches, 1..%d together",
			(unsigned long long)hosts, (unsigned long long)switches, SIM_MAX_NODES);
	t->mtu = MTU;
	t->host = calloc(hosts, sizeof(*t->host));
	t->host_switch = calloc(hosts * sim_topo_planes(t), sizeof(*t->host_switch));
	t->sw = calloc(switches, sizeof(*t->sw));
	t->edge = calloc(edges + 1, sizeof(*t->edge));
	return t->host && t->host_switch && t->sw && t->edge ? 0 : -ENOMEM;
}

static unsigned add_switch(struct sim_topo *t)
{
	struct sim_topo_node *n = &t->sw[t->n_switches];

	snprintf(n->name, sizeof(n->name), "s%u", t->n_switches);
	n->ip = wire_ip_from4(0x0aff0001 + t->n_switches);
	return t->n_switches++;
}

static void add_hosts(struct sim_topo *t, unsigned sw, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct sim_topo_node *n = &t->host[t->n_hosts];

		snprintf(n->name, sizeof(n->name), "h%u", t->n_hosts);
		n->ip = wire_ip_from4(0x0a40000a + t->n_hosts);
		t->host_switch[t->n_hosts++] = sw;
	}
}

static void add_edge(struct sim_topo *t, unsigned upper, unsigned lower)
{
	t->edge[t->n_edges][0] = upper;
	t->edge[t->n_edges++][1] = lower;
}

static void grow_tree(struct sim_topo *t, unsigned at, const unsigned *fan, unsigned n)
{
	if (n == 1) {
		add_hosts(t, at, fan[0]);
		return;
	}
	for (unsigned i = 0; i < fan[0]; i++) {
		unsigned below = add_switch(t);

		add_edge(t, at, below);
		grow_tree(t, below, fan + 1, n - 1);
	}
}

static int make_tree(const unsigned *fan, unsigned n, struct sim_topo *t, char *err)
{
	uint64_t level = 1, switches = 1;

	for (unsigned i = 0; i < n; i++) {
		level *= fan[i];
		if (level > SIM_MAX_NODES)
			return refuse(err, "tree: more than %d nodes", SIM_MAX_NODES);
		switches += i + 1 < n ? level : 0;
	}
	int rc = allocate(t, level, switches, switches, err);

	if (rc == 0)
		grow_tree(t, add_switch(t), fan, n);
	return rc;
}

static int make_clos2(
	unsigned leaves, unsigned hosts, unsigned spines, struct sim_topo *t, char *err)
{
	int rc = allocate(t, (uint64_t)leaves * hosts, (uint64_t)leaves + spines,
		(uint64_t)leaves * spines, err);

	if (rc)
		return rc;
	for (unsigned s = 0; s < spines; s++)
		add_switch(t);
	for (unsigned l = 0; l < leaves; l++) {
		unsigned leaf = add_switch(t);

		add_hosts(t, leaf, hosts);
		for (unsigned s = 0; s < spines; s++)
			add_edge(t, s, leaf);
	}
	return 0;
}

/* fd00::<kind>:<number + 1>; kind 1: a host, 2: a switch. */
static struct wire_ip ip6(unsigned kind, unsigned number)
{
	struct wire_ip ip = {.b = {0xfd}};

	ip.b[13] = (uint8_t)kind;
	ip.b[14] = (uint8_t)((number + 1) >> 8);
	ip.b[15] = (uint8_t)(number + 1);
	return ip;
}

/* All planes have the same hosts. */
static int make_planes(unsigned planes, unsigned leaves, unsigned hosts, unsigned spines,
	struct sim_topo *t, char *err)
{
	int rc;

	if (planes == 0 || planes > SIM_MAX_PLANES)
		return refuse(err, "planes: %u, must be 1..%d", planes, SIM_MAX_PLANES);
	t->n_planes = planes;
	rc = allocate(t, (uint64_t)leaves * hosts, ((uint64_t)leaves + spines) * planes,
		(uint64_t)leaves * spines * planes, err);
	if (rc)
		return rc;
	t->mtu = PLANES_MTU;
	add_hosts(t, 0, leaves * hosts);
	for (unsigned p = 0; p < planes; p++) {
		const unsigned first = t->n_switches;

		for (unsigned i = 0; i < spines + leaves; i++)
			add_switch(t);
		for (unsigned l = 0; l < leaves; l++)
			for (unsigned s = 0; s < spines; s++)
				add_edge(t, first + s, first + spines + l);
		for (unsigned h = 0; h < t->n_hosts; h++)
			t->host_switch[h * planes + p] = first + spines + h / hosts;
	}
	for (unsigned h = 0; h < t->n_hosts; h++)
		t->host[h].ip = ip6(1, h);
	for (unsigned s = 0; s < t->n_switches; s++)
		t->sw[s].ip = ip6(2, s);
	return 0;
}

/* Core switches first, then per pod k/2 aggregation and k/2 leaf switches. */
static int make_fat_tree(unsigned k, struct sim_topo *t, char *err)
{
	const unsigned half = k / 2, core = half * half;
	int rc;

	if (k < 2 || k > 64 || k % 2)
		return refuse(err, "fattree: %u ports, must be even, 2..64", k);
	rc = allocate(t, (uint64_t)k * core, core + (uint64_t)k * k, 2 * (uint64_t)k * core, err);
	if (rc)
		return rc;
	for (unsigned i = 0; i < core + k * k; i++)
		add_switch(t);
	for (unsigned pod = 0; pod < k; pod++) {
		const unsigned aggregation = core + pod * k, leaf = aggregation + half;

		for (unsigned a = 0; a < half; a++)
			for (unsigned i = 0; i < half; i++) {
				add_edge(t, a * half + i, aggregation + a);
				add_edge(t, aggregation + a, leaf + i);
			}
		for (unsigned l = 0; l < half; l++)
			add_hosts(t, leaf + l, half);
	}
	return 0;
}

/* ---- the lab's file ---- */

static int read_node(const json_t *row, struct sim_topo_node *node, char *err)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *ip = json_string_value(json_object_get(row, "ip"));

	if (!name || strlen(name) >= sizeof(node->name))
		return refuse(err, "name: missing, or %d letters and more", SIM_NAME_LEN);
	if (!ip || wire_ip_parse(ip, &node->ip) != 0)
		return refuse(err, "%s: ip: missing or no address", name);
	strcpy(node->name, name);
	return 0;
}

static int find_switch(const struct sim_topo *t, const char *name)
{
	for (unsigned i = 0; name && i < t->n_switches; i++)
		if (strcmp(t->sw[i].name, name) == 0)
			return (int)i;
	return -1;
}

static int read_rows(const json_t *switches, const json_t *hosts, struct sim_topo *t, char *err)
{
	size_t i;
	json_t *row;
	unsigned roots = 0;

	json_array_foreach(switches, i, row)
	{
		if (read_node(row, &t->sw[i], err))
			return -EINVAL;
		t->n_switches++;
	}
	json_array_foreach(switches, i, row)
	{
		const char *parent = json_string_value(json_object_get(row, "parent"));
		int at = find_switch(t, parent);

		if (!parent) {
			t->root = (unsigned)i;
			roots++;
		} else if (at < 0 || at == (int)i) {
			return refuse(
				err, "%s: parent: %s is no other switch", t->sw[i].name, parent);
		} else {
			add_edge(t, (unsigned)at, (unsigned)i);
		}
	}
	if (roots != 1)
		return refuse(err, "switches: %u have no parent, must be one", roots);
	json_array_foreach(hosts, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "switch"));
		int at = find_switch(t, name);

		if (read_node(row, &t->host[i], err))
			return -EINVAL;
		if (at < 0)
			return refuse(err, "%s: switch: %s is none", t->host[i].name,
				name ? name : "(missing)");
		t->host_switch[i] = (unsigned)at;
		t->n_hosts++;
	}
	return 0;
}

static int read_file(const char *path, struct sim_topo *t, char *err)
{
	json_error_t bad;
	json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &bad), *mtu;
	const json_t *switches = json_object_get(doc, "switches"),
		     *hosts = json_object_get(doc, "hosts");
	int rc;

	if (!doc && bad.line < 0) /* it could not be opened */
		return refuse(err, "%.200s", bad.text);
	if (!doc)
		return refuse(err, "%.100s: line %d: %.100s", path, bad.line, bad.text);
	rc = allocate(t, json_array_size(hosts), json_array_size(switches),
		json_array_size(switches), err);
	if (rc == 0)
		rc = read_rows(switches, hosts, t, err);
	mtu = json_object_get(doc, "mtu");
	if (rc == 0 && mtu) {
		t->mtu = (unsigned)json_integer_value(mtu);
		if (t->mtu < 576 || t->mtu > 9600)
			rc = refuse(err, "mtu: must be 576..9600");
	}
	json_decref(doc);
	return rc;
}

int sim_topo_make(const char *what, struct sim_topo *t, char err[SIM_ERR_LEN])
{
	unsigned a, b, c, d, fan[MAX_LEVELS], n = 0;
	int used = 0, rc = -EINVAL;
	const size_t len = strlen(what);

	memset(t, 0, sizeof(*t));
	snprintf(t->name, sizeof(t->name), "%s", what);
	snprintf(err, SIM_ERR_LEN, "topology: %.100s: not understood", what);
	if (len > 5 && strcmp(what + len - 5, ".json") == 0) {
		rc = read_file(what, t, err);
	} else if (sscanf(what, "star:%u%n", &fan[0], &used) == 1 && what[used] == 0) {
		rc = make_tree(fan, 1, t, err);
	} else if (sscanf(what, "clos2:%ux%ux%u%n", &a, &b, &c, &used) == 3 && what[used] == 0) {
		rc = make_clos2(a, b, c, t, err);
	} else if (sscanf(what, "planes:%ux%ux%ux%u%n", &a, &b, &c, &d, &used) == 4 &&
		   what[used] == 0) {
		rc = make_planes(a, b, c, d, t, err);
	} else if (sscanf(what, "fattree:%u%n", &a, &used) == 1 && what[used] == 0) {
		rc = make_fat_tree(a, t, err);
	} else if (strncmp(what, "tree:", 5) == 0) {
		for (what += 5; n < MAX_LEVELS && sscanf(what, "%u%n", &fan[n], &used) == 1;) {
			n++;
			what += used;
			if (*what != 'x')
				break;
			what++;
		}
		if (n && *what == 0 && what[-1] != 'x')
			rc = make_tree(fan, n, t, err);
	}
	if (rc)
		sim_topo_free(t);
	return rc;
}

void sim_topo_free(struct sim_topo *t)
{
	free(t->host);
	free(t->host_switch);
	free(t->sw);
	free(t->edge);
	memset(t, 0, sizeof(*t));
}
