/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/flowsim/fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { BITS = 8, MAX_HOSTS = 8192, MAX_SWITCHES = 4096, MAX_PORTS = 1000 };
static const double NS_PER_S = 1e9;
static const uint64_t GBPS = 1000000000, MUCH = (uint64_t)1 << 40;

/* Slots and memory are the experiment's. */
const struct fs_shape fs_shape_128 = {4, 4, 8, 4, 4, 100 * GBPS, 8, MUCH};
const struct fs_shape fs_shape_2048 = {8, 16, 16, 16, 8, 100 * GBPS, 8, MUCH};
const struct fs_shape fs_shape_2048_half = {8, 16, 16, 16, 4, 100 * GBPS, 8, MUCH};

static int check(const struct fs_shape *s, char err[FS_ERR_LEN])
{
	const struct {
		const char *name;
		uint64_t value, most;
	} part[] = {{"pods", s->pods, MAX_PORTS}, {"leaves", s->leaves, MAX_PORTS},
		{"hosts", s->hosts, MAX_PORTS}, {"spines", s->spines, MAX_PORTS},
		{"cores", s->cores, MAX_PORTS}, {"bps", s->bps, 100000 * GBPS}};

	for (unsigned i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		if (part[i].value == 0 || part[i].value > part[i].most) {
			snprintf(err, FS_ERR_LEN, "%s: wants 1 to %llu", part[i].name,
				(unsigned long long)part[i].most);
			return -EINVAL;
		}
	}
	if ((uint64_t)s->pods * s->leaves * s->hosts > MAX_HOSTS ||
		(uint64_t)s->pods * (s->leaves + s->spines) + s->spines * s->cores > MAX_SWITCHES) {
		snprintf(err, FS_ERR_LEN, "more than %u hosts or %u switches", MAX_HOSTS,
			MAX_SWITCHES);
		return -EINVAL;
	}
	return 0;
}

static int add_node(struct fs_fabric *f, enum mgr_kind kind, unsigned tier, unsigned number)
{
	static const char *const name[] = {"host", "leaf", "spine", "core"};
	struct mgr_node n = {.kind = kind, .up = true, .tier = tier};
	int rc;

	snprintf(n.name, sizeof(n.name), "%s%u", name[tier], number);
	if (kind == MGR_SWITCH) {
		n.modes = MGR_MODES;
		n.sram = f->shape.sram;
		n.groups = f->shape.slots;
		f->n_switches++;
	}
	rc = mgr_graph_set_node(f->g, &n);
	return rc < 0 ? rc : mgr_graph_find(f->g, n.name);
}

static int add_port(struct fs_fabric *f, unsigned node, unsigned peer)
{
	struct mgr_port p = {.bps = f->shape.bps, .up = true};
	char back[MGR_NAME_LEN];
	int rc;

	snprintf(p.name, sizeof(p.name), "to%u", peer);
	snprintf(back, sizeof(back), "to%u", node);
	rc = mgr_graph_set_port(f->g, node, &p);
	if (rc < 0)
		return rc;
	return mgr_graph_claim(f->g, node, p.name, mgr_graph_node(f->g, peer)->name, back);
}

static int cable(struct fs_fabric *f, unsigned a, unsigned b)
{
	int rc = add_port(f, a, b);

	return rc < 0 ? rc : add_port(f, b, a);
}

/* Nodes by tier, each by number: leaves of a pod one after the other, likewise spines. */
struct nodes {
	unsigned n[4], *node[4];
};

static int add_nodes(struct fs_fabric *f, struct nodes *t)
{
	for (unsigned tier = 0; tier < 4; tier++) {
		for (unsigned i = 0; i < t->n[tier]; i++) {
			int node = add_node(f, tier ? MGR_SWITCH : MGR_HOST, tier, i);

			if (node < 0)
				return node;
			t->node[tier][i] = (unsigned)node;
		}
	}
	return 0;
}

static int cable_all(struct fs_fabric *f, const struct nodes *t)
{
	const struct fs_shape *s = &f->shape;
	int rc = 0;

	for (unsigned i = 0; rc >= 0 && i < t->n[0]; i++)
		rc = cable(f, t->node[0][i], t->node[1][i / s->hosts]);
	for (unsigned i = 0; rc >= 0 && i < t->n[1] * s->spines; i++)
		rc = cable(f, t->node[1][i / s->spines],
			t->node[2][i / s->spines / s->leaves * s->spines + i % s->spines]);
	for (unsigned i = 0; rc >= 0 && i < t->n[2] * s->cores; i++)
		rc = cable(f, t->node[2][i / s->cores],
			t->node[3][i / s->cores % s->spines * s->cores + i % s->cores]);
	return rc < 0 ? rc : 0;
}

static int link_between(struct fs_fabric *f, unsigned below, unsigned above)
{
	const struct mgr_edge *e;
	unsigned n = mgr_graph_edges(f->g, below, &e);

	for (unsigned i = 0; i < n; i++) {
		if (e[i].peer == above) {
			f->below[e[i].link] = below;
			return (int)e[i].link;
		}
	}
	return -EINVAL;
}

static int name_links(struct fs_fabric *f, const struct nodes *t)
{
	const struct fs_shape *s = &f->shape;
	int link = 0;

	for (unsigned i = 0; link >= 0 && i < t->n[0]; i++) {
		link = link_between(f, t->node[0][i], t->node[1][i / s->hosts]);
		f->host_link[i] = (unsigned)link;
	}
	for (unsigned i = 0; link >= 0 && i < t->n[1] * s->spines; i++) {
		link = link_between(f, t->node[1][i / s->spines],
			t->node[2][i / s->spines / s->leaves * s->spines + i % s->spines]);
		f->leaf_link[i] = (unsigned)link;
	}
	for (unsigned i = 0; link >= 0 && i < t->n[2] * s->cores; i++) {
		link = link_between(f, t->node[2][i / s->cores],
			t->node[3][i / s->cores % s->spines * s->cores + i % s->cores]);
		f->spine_link[i] = (unsigned)link;
	}
	return link < 0 ? link : 0;
}

static int fill_water(struct fs_fabric *f)
{
	unsigned n = mgr_graph_link_bound(f->g);

	f->water = fs_water_new(2 * n);
	if (f->water == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		struct mgr_link l;
		double rate;

		if (mgr_graph_link(f->g, i, &l))
			continue;
		rate = (double)l.bps / BITS / NS_PER_S;
		fs_water_capacity(f->water, fs_directed(i, false), rate);
		fs_water_capacity(f->water, fs_directed(i, true), rate);
	}
	return 0;
}

static int build(struct fs_fabric *f, struct nodes *t)
{
	const struct fs_shape *s = &f->shape;
	int rc = add_nodes(f, t);

	if (rc == 0)
		rc = cable_all(f, t);
	if (rc)
		return rc;
	f->host_link = calloc(t->n[0], sizeof(unsigned));
	f->leaf_link = calloc((size_t)t->n[1] * s->spines, sizeof(unsigned));
	f->spine_link = calloc((size_t)t->n[2] * s->cores, sizeof(unsigned));
	f->below = calloc(mgr_graph_link_bound(f->g) + 1, sizeof(unsigned));
	if (!f->host_link || !f->leaf_link || !f->spine_link || !f->below)
		return -ENOMEM;
	rc = name_links(f, t);
	if (rc == 0)
		rc = fill_water(f);
	if (rc)
		return rc;
	f->b = mgr_book_new(mgr_graph_bound(f->g), mgr_graph_link_bound(f->g));
	f->p = f->b ? mgr_place_new(f->g, f->b) : NULL;
	return f->p ? 0 : -ENOMEM;
}

int fs_fabric_new(const struct fs_shape *s, struct fs_fabric **out, char err[FS_ERR_LEN])
{
	int rc = check(s, err);
	struct fs_fabric *f = rc ? NULL : calloc(1, sizeof(*f));
	struct nodes t = {.n = {0}};

	if (rc)
		return rc;
	snprintf(err, FS_ERR_LEN, "out of memory");
	if (f == NULL)
		return -ENOMEM;
	f->shape = *s;
	f->n_hosts = t.n[0] = s->pods * s->leaves * s->hosts;
	t.n[1] = s->pods * s->leaves;
	t.n[2] = s->pods * s->spines;
	t.n[3] = s->spines * s->cores;
	rc = (f->g = mgr_graph_new()) ? 0 : -ENOMEM;
	for (unsigned i = 0; i < 4; i++) {
		t.node[i] = calloc(t.n[i], sizeof(unsigned));
		rc = t.node[i] ? rc : -ENOMEM;
	}
	f->host = t.node[0];
	if (rc == 0)
		rc = build(f, &t);
	for (unsigned i = 1; i < 4; i++)
		free(t.node[i]);
	if (rc)
		fs_fabric_free(f);
	else
		*out = f;
	return rc;
}

void fs_fabric_free(struct fs_fabric *f)
{
	if (f == NULL)
		return;
	mgr_place_free(f->p);
	mgr_book_free(f->b);
	mgr_graph_free(f->g);
	fs_water_free(f->water);
	free(f->host);
	free(f->host_link);
	free(f->leaf_link);
	free(f->spine_link);
	free(f->below);
	free(f);
}

/* Through a spine, and through a core if that is above. */
static unsigned way_over(const struct fs_fabric *f, unsigned from, unsigned to, unsigned spine,
	unsigned core, unsigned way[FS_MAX_WAY])
{
	const struct fs_shape *s = &f->shape;
	unsigned a = from / s->hosts, b = to / s->hosts, n = 0;
	unsigned pod_a = a / s->leaves, pod_b = b / s->leaves;

	way[n++] = fs_directed(f->host_link[from], false);
	if (a != b)
		way[n++] = fs_directed(f->leaf_link[a * s->spines + spine], false);
	if (pod_a != pod_b) {
		way[n++] = fs_directed(
			f->spine_link[(pod_a * s->spines + spine) * s->cores + core], false);
		way[n++] = fs_directed(
			f->spine_link[(pod_b * s->spines + spine) * s->cores + core], true);
	}
	if (a != b)
		way[n++] = fs_directed(f->leaf_link[b * s->spines + spine], true);
	way[n++] = fs_directed(f->host_link[to], true);
	return n;
}

/* The fullest link counts first, then all of them. */
static uint64_t crowd(const struct fs_fabric *f, const unsigned *way, unsigned n)
{
	uint64_t most = 0, sum = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned load = fs_water_load(f->water, way[i]);

		most = load > most ? load : most;
		sum += load;
	}
	return most << 32 | sum;
}

unsigned fs_way(const struct fs_fabric *f, unsigned from, unsigned to, uint64_t hash,
	unsigned way[FS_MAX_WAY])
{
	const struct fs_shape *s = &f->shape;
	unsigned a = from / s->hosts, b = to / s->hosts;
	unsigned spines = a != b ? s->spines : 1;
	unsigned cores = a / s->leaves != b / s->leaves ? s->cores : 1, best = 0;
	uint64_t least = UINT64_MAX;

	if (hash)
		return way_over(
			f, from, to, (unsigned)(hash >> 32) % spines, (unsigned)hash % cores, way);
	for (unsigned i = 0; spines * cores > 1 && i < spines * cores; i++) {
		unsigned n = way_over(f, from, to, i / cores, i % cores, way);
		/* Without both hosts' links, which all ways have. */
		uint64_t crowded = crowd(f, way + 1, n - 2);

		if (crowded < least) {
			least = crowded;
			best = i;
		}
	}
	return way_over(f, from, to, best / cores, best % cores, way);
}
