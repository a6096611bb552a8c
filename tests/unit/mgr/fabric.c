/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/mgr/fabric.h"

#include <errno.h>

#include "tests/unit/mgr/mgr_test.h"

enum { OUT = -2, ROOT = -1 };

struct fabric fabric_new(void)
{
	struct fabric f = {.g = mgr_graph_new(), .b = mgr_book_new(64, 1024)};

	f.p = mgr_place_new(f.g, f.b);
	assert_non_null(f.p);
	return f;
}

void fabric_free(struct fabric *f)
{
	mgr_place_free(f->p);
	mgr_book_free(f->b);
	mgr_graph_free(f->g);
}

unsigned fabric_switch(struct fabric *f, unsigned tier, uint64_t sram)
{
	char name[MGR_NAME_LEN];

	assert_true(f->n_sw < FABRIC_SWITCHES);
	snprintf(name, sizeof(name), "s%u", f->n_sw);
	f->sw[f->n_sw] = test_switch(f->g, name, tier, sram);
	return f->n_sw++;
}

void fabric_host(struct fabric *f, unsigned leaf, uint64_t bps)
{
	char name[MGR_NAME_LEN];

	assert_true(f->n_hosts < FABRIC_HOSTS);
	snprintf(name, sizeof(name), "h%u", f->n_hosts);
	f->host[f->n_hosts] = test_host(f->g, name);
	f->leaf[f->n_hosts] = leaf;
	test_cable(f->g, f->host[f->n_hosts++], f->sw[leaf], 0, bps);
}

void fabric_link(struct fabric *f, unsigned a, unsigned b, uint64_t bps)
{
	test_cable(f->g, f->sw[a], f->sw[b], 0, bps);
}

struct fabric fabric_clos(unsigned leaves, unsigned spines, unsigned hosts)
{
	struct fabric f = fabric_new();

	for (unsigned i = 0; i < leaves; i++)
		fabric_switch(&f, 1, 1 << 20);
	for (unsigned i = 0; i < spines; i++)
		fabric_switch(&f, 2, 1 << 20);
	for (unsigned i = 0; i < leaves; i++) {
		for (unsigned k = 0; k < hosts; k++)
			fabric_host(&f, i, 100ull * TEST_GBPS);
		for (unsigned k = 0; k < spines; k++)
			fabric_link(&f, i, leaves + k, 100ull * TEST_GBPS);
	}
	return f;
}

struct mgr_wish fabric_wish(const struct mgr_member *member, unsigned n)
{
	return (struct mgr_wish){.member = member,
		.n_members = n,
		.shape = {.mtu = 1024, .m = 4, .hop_ns = 2500},
		.modes = MGR_MODES,
		.duty = MGR_DUTY};
}

void fabric_members(const struct fabric *f, unsigned mask, struct mgr_member *m, unsigned *n)
{
	*n = 0;
	for (unsigned i = 0; i < f->n_hosts; i++) {
		if (mask >> i & 1)
			m[(*n)++] = (struct mgr_member){f->host[i], -1};
	}
}

enum mgr_why fabric_place(struct fabric *f, const struct mgr_policy *policy, unsigned mask,
	struct mgr_wish wish, struct mgr_plan *plan)
{
	struct mgr_member m[FABRIC_HOSTS];
	mgr_promise promise;
	enum mgr_why why;
	int rc;

	fabric_members(f, mask, m, &wish.n_members);
	wish.member = m;
	rc = mgr_place_group(f->p, policy, &wish, 0, plan, &promise, &why);
	assert_int_equal(rc, why == MGR_WHY_OK ? 0 : -ENOENT);
	return why;
}

unsigned fabric_depth(const int *parent, unsigned i)
{
	unsigned depth = 0;

	for (; parent[i] >= 0; i = (unsigned)parent[i])
		depth++;
	return depth;
}

struct walk {
	const struct fabric *f;
	bool leaf[FABRIC_SWITCHES]; /* has a member */
	bool linked[FABRIC_SWITCHES][FABRIC_SWITCHES];
	int parent[FABRIC_SWITCHES];
	unsigned root;
	void (*each)(void *arg, const int *parent, unsigned root);
	void *arg;
};

/* Whether all ways lead to the root. */
static bool tree(const struct walk *w)
{
	for (unsigned i = 0; i < w->f->n_sw; i++) {
		unsigned steps = 0;
		int at = w->parent[i] == OUT ? ROOT : (int)i;

		for (; at >= 0 && w->parent[at] != ROOT; at = w->parent[at]) {
			if (w->parent[at] == OUT || ++steps > w->f->n_sw)
				return false;
		}
	}
	return true;
}

static void choose(struct walk *w, unsigned i)
{
	if (i == w->f->n_sw) {
		if (tree(w))
			w->each(w->arg, w->parent, w->root);
		return;
	}
	if (i == w->root) {
		w->parent[i] = ROOT;
		choose(w, i + 1);
		return;
	}
	if (!w->leaf[i]) {
		w->parent[i] = OUT;
		choose(w, i + 1);
	}
	for (unsigned k = 0; k < w->f->n_sw; k++) {
		if (!w->linked[i][k])
			continue;
		w->parent[i] = (int)k;
		choose(w, i + 1);
	}
}

void fabric_trees(const struct fabric *f, const struct mgr_member *member, unsigned n,
	void (*each)(void *arg, const int *parent, unsigned root), void *arg)
{
	struct walk w = {.f = f, .each = each, .arg = arg};

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < f->n_hosts; k++) {
			if (f->host[k] == member[i].node)
				w.leaf[f->leaf[k]] = true;
		}
	}
	for (unsigned a = 0; a < f->n_sw; a++) {
		for (unsigned b = 0; b < f->n_sw; b++)
			w.linked[a][b] = test_link(f->g, f->sw[a], f->sw[b]) >= 0;
	}
	for (w.root = 0; w.root < f->n_sw; w.root++)
		choose(&w, 0);
}
