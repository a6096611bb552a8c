/* SPDX-License-Identifier: BSD-3-Clause */
/* Where trees go: each policy by example, and beside every tree that there is on all small Clos
 * fabrics and on irregular ones. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/mgr/fabric.h"
#include "tests/unit/mgr/mgr_test.h"

static const uint64_t GBPS = TEST_GBPS;

static struct mgr_wish wish_of(const struct mgr_member *member, unsigned n)
{
	return (struct mgr_wish){.member = member,
		.n_members = n,
		.shape = {.mtu = 1024, .m = 4, .hop_ns = 2500},
		.modes = MGR_MODES,
		.duty = MGR_DUTY};
}

static void members_of(const struct fabric *f, unsigned mask, struct mgr_member *m, unsigned *n)
{
	*n = 0;
	for (unsigned i = 0; i < f->n_hosts; i++) {
		if (mask >> i & 1)
			m[(*n)++] = (struct mgr_member){f->host[i], -1};
	}
}

/* Places a group of the hosts in the mask, which stays; why not. */
static enum mgr_why place(struct fabric *f, const struct mgr_policy *policy, unsigned mask,
	struct mgr_wish wish, struct mgr_plan *plan)
{
	struct mgr_member m[FABRIC_HOSTS];
	mgr_promise promise;
	enum mgr_why why;
	int rc;

	members_of(f, mask, m, &wish.n_members);
	wish.member = m;
	rc = mgr_place_group(f->p, policy, &wish, 0, plan, &promise, &why);
	assert_int_equal(rc, why == MGR_WHY_OK ? 0 : -ENOENT);
	return why;
}

static void one_leaf(void **state)
{
	struct fabric f = fabric_clos(2, 2, 2);
	struct mgr_plan plan;
	char line[MGR_LINE_LEN];
	struct mgr_wish wish = wish_of(NULL, 0);

	(void)state;
	wish.want_bps = 100 * GBPS;
	assert_int_equal(place(&f, &mgr_policy_spatial, 3, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.tree.height, 1);
	assert_int_equal(plan.tree.n_sw, 1);
	assert_int_equal(plan.tree.sw[0].node, f.sw[0]);
	assert_int_equal(plan.size.mode, MGR_MODE_II); /* least memory at this height */
	assert_int_equal(plan.bps, 100 * GBPS);
	assert_int_equal(mgr_book_used_bytes(f.b, f.sw[0]), mgr_plan_bytes(&plan, &wish.shape));
	mgr_plan_line(f.p, &wish, &plan, line, sizeof(line));
	assert_string_equal(line,
		"in the network: root s0, height 1, 1 switches, mode II, M 4, W 16, "
		"131072 bytes in all, 100.0 Gbit/s");
	mgr_plan_free(&plan);
	fabric_free(&f);
}

/* A hop loses a packet in a hundred: Mode-II would lose with each of the children. */
static void loss_chooses(void **state)
{
	struct fabric f = fabric_clos(1, 1, 6);
	struct mgr_wish wish = wish_of(NULL, 0);
	struct mgr_plan plan;

	(void)state;
	wish.want_bps = 10 * GBPS;
	wish.shape.loss_ppm = 10000;
	assert_int_equal(place(&f, &mgr_policy_spatial, 63, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.size.mode, MGR_MODE_III);
	mgr_plan_free(&plan);
	wish.modes = MGR_MODE_II;
	assert_int_equal(place(&f, &mgr_policy_spatial, 63, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.size.mode, MGR_MODE_II);
	mgr_plan_free(&plan);
	fabric_free(&f);
}

/* The leaf has memory for little: the spine, one higher, for more (a longer, wider path). */
static void low_or_wide(void **state)
{
	struct fabric f = fabric_new();
	unsigned leaf = fabric_switch(&f, 1, 1 << 14), big = fabric_switch(&f, 2, 1 << 22);
	struct mgr_node n = *mgr_graph_node(f.g, f.sw[leaf]);
	unsigned second = fabric_switch(&f, 1, 1 << 22);
	struct mgr_wish wish = wish_of(NULL, 0);
	struct mgr_plan plan;

	(void)state;
	/* Both hosts on both leaves: over the small one at height 1, or the other. */
	for (unsigned i = 0; i < 2; i++) {
		fabric_host(&f, leaf, 100 * GBPS);
		test_cable(f.g, f.host[i], f.sw[big], 1, 40 * GBPS);
	}
	fabric_link(&f, leaf, big, 100 * GBPS);
	fabric_link(&f, second, big, 100 * GBPS);
	wish.low = true;
	assert_int_equal(n.sram, 1 << 14);
	assert_int_equal(place(&f, &mgr_policy_spatial, 3, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.tree.sw[0].node, f.sw[big]); /* as low, and wider */
	assert_int_equal(plan.bps, 40 * GBPS);
	mgr_plan_free(&plan);
	fabric_free(&f);
}

static void edges_disjoint(void **state)
{
	struct fabric f = fabric_clos(2, 2, 3);
	struct mgr_wish wish = wish_of(NULL, 0);
	struct mgr_plan plan[3];

	(void)state;
	/* Hosts 0..2 and 3..5: two trees over two spines; the third has no spine left. */
	assert_int_equal(place(&f, &mgr_policy_edt, 011, wish, &plan[0]), MGR_WHY_OK);
	assert_int_equal(place(&f, &mgr_policy_edt, 022, wish, &plan[1]), MGR_WHY_OK);
	assert_int_not_equal(plan[0].tree.sw[0].node, plan[1].tree.sw[0].node);
	assert_int_equal(place(&f, &mgr_policy_edt, 044, wish, &plan[2]), MGR_WHY_LINKS);
	/* Spatial multiplexing shares links, but not with those. */
	assert_int_equal(place(&f, &mgr_policy_spatial, 044, wish, &plan[2]), MGR_WHY_LINKS);
	mgr_plan_free(&plan[0]);
	mgr_plan_free(&plan[1]);
	fabric_free(&f);
}

/* Links that any tree has are taken; and levels above the lowest are not looked at. */
static void edt_levels(void **state)
{
	struct fabric f = fabric_clos(2, 1, 2);
	unsigned top = fabric_switch(&f, 3, 1 << 20);
	struct mgr_wish wish = wish_of(NULL, 0);
	struct mgr_plan first, second, all[MGR_MAX_PLANS];
	struct mgr_member m[FABRIC_HOSTS];

	(void)state;
	fabric_link(&f, 0, top, 100 * GBPS);
	fabric_link(&f, 1, top, 100 * GBPS);
	assert_int_equal(place(&f, &mgr_policy_spatial, 5, wish, &first), MGR_WHY_OK);
	assert_int_equal(first.tree.sw[0].node, f.sw[2]);
	members_of(&f, 10, m, &wish.n_members);
	wish.member = m;
	assert_int_equal(mgr_policy_edt.candidates(f.p, &wish, all), 1);
	assert_int_equal(all[0].tree.sw[0].node, f.sw[top]);
	mgr_plan_free(&all[0]);
	assert_int_equal(mgr_book_release(f.b, mgr_book_next_on_switch(f.b, f.sw[2], 0)), 0);
	assert_int_equal(mgr_policy_edt.candidates(f.p, &wish, all), 1);
	assert_int_equal(all[0].tree.sw[0].node, f.sw[2]);
	mgr_plan_free(&all[0]);
	assert_int_equal(place(&f, &mgr_policy_edt, 10, wish, &second), MGR_WHY_OK);
	mgr_plan_free(&first);
	mgr_plan_free(&second);
	fabric_free(&f);
}

/* Rates that are promised add up to no more than the link has. */
static void promised_rates(void **state)
{
	struct fabric f = fabric_clos(2, 1, 3);
	struct mgr_wish wish = wish_of(NULL, 0);
	struct mgr_plan plan;

	(void)state;
	wish.promised = true;
	wish.want_bps = 60 * GBPS;
	assert_int_equal(place(&f, &mgr_policy_spatial, 011, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.bps, 60 * GBPS);
	mgr_plan_free(&plan);
	assert_int_equal(place(&f, &mgr_policy_spatial, 022, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.bps, 40 * GBPS);
	mgr_plan_free(&plan);
	assert_int_equal(place(&f, &mgr_policy_spatial, 044, wish, &plan), MGR_WHY_LINKS);
	fabric_free(&f);
}

/* Memory for one: side by side one group, in turns four with a quarter of the time each. */
static void sharing_in_time(void **state)
{
	struct mgr_wish wish = wish_of(NULL, 0);
	const struct mgr_policy *policy[] = {&mgr_policy_spatial, &mgr_policy_temporal};
	const unsigned fit[] = {1, 4};

	(void)state;
	wish.modes = MGR_MODE_II;
	wish.want_bps = wish.least_bps = 10 * GBPS;
	wish.duty = 250;
	for (unsigned k = 0; k < 2; k++) {
		struct fabric f = fabric_clos(1, 1, 8);
		struct mgr_node n = *mgr_graph_node(f.g, f.sw[0]);
		struct mgr_plan plan;
		unsigned placed = 0;
		enum mgr_why why = MGR_WHY_OK;

		n.sram = 16384; /* a window of 6.25 KB, twice, in slots of a power of two */
		mgr_graph_set_node(f.g, &n);
		for (unsigned i = 0; why == MGR_WHY_OK; i += 2) {
			why = place(&f, policy[k], 3u << i % 8, wish, &plan);
			placed += why == MGR_WHY_OK;
			if (why == MGR_WHY_OK)
				mgr_plan_free(&plan);
		}
		assert_int_equal(placed, fit[k]);
		assert_int_equal(why, MGR_WHY_MEMORY);
		assert_true(mgr_book_used_bytes(f.b, f.sw[0]) <= n.sram);
		fabric_free(&f);
	}
}

/* A switch that only forwards may be on the way, not at a branch. */
static void forwards_only(void **state)
{
	struct fabric f = fabric_clos(2, 1, 2);
	struct mgr_node n = *mgr_graph_node(f.g, f.sw[0]);
	struct mgr_wish wish = wish_of(NULL, 0);
	struct mgr_plan plan;

	(void)state;
	n.modes = 0;
	mgr_graph_set_node(f.g, &n);
	assert_int_equal(place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_OK);
	for (unsigned i = 0; i < plan.tree.n_sw; i++)
		assert_int_equal(plan.tree.sw[i].transit, plan.tree.sw[i].node == f.sw[0]);
	assert_int_equal(mgr_book_switch_holders(f.b, f.sw[0]), 0);
	mgr_plan_free(&plan);
	assert_int_equal(place(&f, &mgr_policy_spatial, 7, wish, &plan), MGR_WHY_MODE);
	fabric_free(&f);
}

static void reasons(void **state)
{
	struct fabric f = fabric_clos(2, 1, 2);
	struct mgr_wish wish = wish_of(NULL, 0);
	struct mgr_node n = *mgr_graph_node(f.g, f.host[3]);
	struct mgr_plan plan;
	enum mgr_why why;
	mgr_promise promise;

	(void)state;
	assert_int_equal(place(&f, &mgr_policy_spatial, 1, wish, &plan), MGR_WHY_RANKS);
	n.up = false;
	mgr_graph_set_node(f.g, &n);
	assert_int_equal(place(&f, &mgr_policy_spatial, 12, wish, &plan), MGR_WHY_HOST);
	wish.least_bps = 101 * GBPS;
	assert_int_equal(place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_WIDTH);
	wish.least_bps = 0;
	wish.modes = 0;
	assert_int_equal(place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_MODE);
	wish.modes = MGR_MODES;
	n = *mgr_graph_node(f.g, f.sw[2]);
	n.up = false;
	mgr_graph_set_node(f.g, &n);
	assert_int_equal(place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_TREE);
	n.up = true;
	n.groups = 0;
	mgr_graph_set_node(f.g, &n);
	assert_int_equal(place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_MEMORY);
	for (why = MGR_WHY_OK; why < MGR_WHYS; why++)
		assert_true(strlen(mgr_why_line(why)) > 10);
	wish.duty = 0;
	assert_int_equal(
		mgr_place_group(f.p, &mgr_policy_edt, &wish, 0, &plan, &promise, &why), -EINVAL);
	assert_ptr_equal(mgr_policy_find("edt"), &mgr_policy_edt);
	assert_ptr_equal(mgr_policy_find("temporal"), &mgr_policy_temporal);
	assert_null(mgr_policy_find("best"));
	fabric_free(&f);
}

/* Beside every tree. */

struct best {
	const struct fabric *f;
	const struct mgr_wish *wish;
	const struct mgr_member *member;
	unsigned n;
	uint64_t width[MGR_MAX_HEIGHT + 1]; /* of the widest tree that is no higher */
};

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t share(const struct fabric *f, unsigned a, unsigned b)
{
	struct mgr_link l;
	int link = test_link(f->g, a, b);

	assert_int_equal(mgr_graph_link(f->g, (unsigned)link, &l), 0);
	return l.up ? l.bps / (mgr_book_link_holders(f->b, (unsigned)link) + 1) : 0;
}

static void rate_tree(void *arg, const int *parent, unsigned root)
{
	struct best *best = arg;
	const struct fabric *f = best->f;
	unsigned height = 0, mode;
	uint64_t links = UINT64_MAX;

	(void)root;
	for (unsigned i = 0; i < best->n; i++) {
		unsigned host = 0;

		while (f->host[host] != best->member[i].node)
			host++;
		if (fabric_depth(parent, f->leaf[host]) + 1 > height)
			height = fabric_depth(parent, f->leaf[host]) + 1;
		links = lower(links, share(f, f->host[host], f->sw[f->leaf[host]]));
	}
	if (height > MGR_MAX_HEIGHT)
		return;
	for (unsigned i = 0; i < f->n_sw; i++) {
		if (parent[i] >= 0)
			links = lower(links, share(f, f->sw[i], f->sw[parent[i]]));
	}
	for (mode = MGR_MODE_II; mode <= MGR_MODE_III; mode <<= 1) {
		uint64_t width = links;

		for (unsigned i = 0; i < f->n_sw; i++) {
			if (parent[i] > -2)
				width = lower(width,
					mgr_size_rate(&best->wish->shape, mode, height,
						mgr_book_free_bytes(f->b, f->sw[i], MGR_DUTY), 2));
		}
		for (unsigned h = height; h <= MGR_MAX_HEIGHT; h++)
			best->width[h] = width > best->width[h] ? width : best->width[h];
	}
}

/* The frontier that the policy gives is the one of all trees. Returns its length. */
static unsigned same_frontier(struct fabric *f, unsigned mask)
{
	struct mgr_member m[FABRIC_HOSTS];
	struct mgr_wish wish = wish_of(m, 0);
	struct mgr_plan plan[MGR_MAX_PLANS], taken;
	struct best best = {.f = f, .wish = &wish, .member = m};
	enum mgr_why why;
	mgr_promise promise;
	unsigned at = 0;
	int n;

	members_of(f, mask, m, &wish.n_members);
	best.n = wish.n_members;
	wish.modes = MGR_MODE_II | MGR_MODE_III;
	mgr_finder_sync(f->g, f->b);
	fabric_trees(f, m, best.n, rate_tree, &best);
	/* Placing lists the roots; what it takes is the widest, and is given back. */
	if (mgr_place_group(f->p, &mgr_policy_spatial, &wish, 0, &taken, &promise, &why)) {
		assert_int_equal(best.width[MGR_MAX_HEIGHT], 0);
		return 0;
	}
	assert_int_equal(taken.bps, best.width[MGR_MAX_HEIGHT]);
	mgr_plan_free(&taken);
	mgr_book_release(f->b, promise);
	n = mgr_policy_spatial.candidates(f->p, &wish, plan);
	for (unsigned h = 1; h <= MGR_MAX_HEIGHT; h++) {
		if (best.width[h] == best.width[h - 1])
			continue;
		assert_true((int)at < n);
		assert_int_equal(plan[at].bps, best.width[h]);
		assert_int_equal(plan[at].tree.height, h);
		at++;
	}
	assert_int_equal(at, n);
	while (n > 0)
		mgr_plan_free(&plan[--n]);
	return at;
}

/* Speeds and memory of all kinds, some links down, some memory promised. */
static void disturb(struct fabric *f, uint64_t *random)
{
	for (unsigned i = 0; i < f->n_sw; i++) {
		struct mgr_node n = *mgr_graph_node(f->g, f->sw[i]);
		const struct mgr_edge *e;
		unsigned n_edges = mgr_graph_edges(f->g, f->sw[i], &e), peer[64];

		n.sram = 16384u << (test_random(random) % 2 ? 8 : test_random(random) % 8);
		mgr_graph_set_node(f->g, &n);
		assert_true(n_edges <= 64);
		for (unsigned k = 0; k < n_edges; k++)
			peer[k] = e[k].peer;
		for (unsigned k = 0; k < n_edges; k++) {
			bool host = mgr_graph_node(f->g, peer[k])->kind == MGR_HOST;
			uint64_t bps = host ? 400 : 10 + 5 * (test_random(random) % 40);

			test_port(f->g, f->sw[i], peer[k], 0, bps * GBPS,
				test_random(random) % 30 != 0);
		}
	}
}

static unsigned random_mask(const struct fabric *f, uint64_t *random)
{
	unsigned mask = 0;

	while (__builtin_popcount(mask) < 2)
		mask = test_random(random) & ((1u << f->n_hosts) - 1);
	return mask;
}

static void all_small_clos(void **state)
{
	uint64_t random = 36;
	unsigned n = 0, points = 0;

	(void)state;
	for (unsigned leaves = 1; leaves <= 3; leaves++) {
		for (unsigned spines = 1; spines <= 3; spines++) {
			for (unsigned k = 0; k < 40; k++) {
				struct fabric f = fabric_clos(leaves, spines, 2);

				disturb(&f, &random);
				points += same_frontier(&f, random_mask(&f, &random));
				n++;
				fabric_free(&f);
			}
		}
	}
	printf("spatial: %u Clos fabrics, %u points of the frontier: gap 0\n", n, points);
	assert_true(points > n / 2);
}

/* Two pods of two leaves under a spine, two cores; and fabrics without any order. */
static void three_tiers_and_none(void **state)
{
	uint64_t random = 37;
	unsigned points = 0, longest = 0, length;

	(void)state;
	for (unsigned k = 0; k < 120; k++) {
		struct fabric f = fabric_new();
		unsigned n_sw = k % 2 ? 8 : 5;

		for (unsigned i = 0; i < n_sw; i++)
			fabric_switch(&f, 0, 1);
		for (unsigned i = 0; i < n_sw; i++) {
			if (k % 2 == 0 || i < 4)
				fabric_host(&f, i, 100 * GBPS);
		}
		for (unsigned i = 0; k % 2 && i < 4; i++)
			fabric_link(&f, i, 4 + i / 2, GBPS);
		for (unsigned i = 0; k % 2 && i < 4; i++)
			fabric_link(&f, 4 + i / 2, 6 + i % 2, GBPS);
		for (unsigned i = 0; k % 2 == 0 && i < 10; i++) {
			unsigned a = i / 4, b = 1 + a + i % 4;

			if (b < n_sw && test_random(&random) % 3)
				fabric_link(&f, a, b, GBPS);
		}
		disturb(&f, &random);
		length = same_frontier(&f, random_mask(&f, &random));
		points += length;
		longest = length > longest ? length : longest;
		fabric_free(&f);
	}
	printf("spatial: 120 fabrics of three tiers or none, %u points, up to %u each: gap 0\n",
		points, longest);
	assert_true(points > 60 && longest > 1);
}

/* Sets of links that trees of a group are made of. */
enum { MAX_TREES = 4096, GROUPS = 4 };

struct masks {
	const struct fabric *f;
	uint64_t hosts; /* links of the members */
	unsigned n;
	uint64_t mask[MAX_TREES];
};

static void note_tree(void *arg, const int *parent, unsigned root)
{
	struct masks *t = arg;
	uint64_t mask = t->hosts;

	(void)root;
	for (unsigned i = 0; i < t->f->n_sw; i++) {
		if (parent[i] >= 0) {
			int link = test_link(t->f->g, t->f->sw[i], t->f->sw[parent[i]]);

			assert_in_range(link, 0, 63);
			mask |= (uint64_t)1 << link;
		}
		if (fabric_depth(parent, i) >= MGR_MAX_HEIGHT)
			return;
	}
	for (unsigned i = 0; i < t->n; i++) {
		if (t->mask[i] == mask)
			return;
	}
	assert_true(t->n < MAX_TREES);
	t->mask[t->n++] = mask;
}

/* Most groups that can be there at a time. */
static unsigned most(const struct masks *group, unsigned at, uint64_t used)
{
	unsigned best;

	if (at == GROUPS)
		return 0;
	best = most(group, at + 1, used);
	for (unsigned i = 0; i < group[at].n && best < GROUPS - at; i++) {
		unsigned n;

		if (group[at].mask[i] & used)
			continue;
		n = 1 + most(group, at + 1, used | group[at].mask[i]);
		best = n > best ? n : best;
	}
	return best;
}

static uint64_t used_links(const struct fabric *f)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < 64; i++) {
		if (mgr_book_link_holders(f->b, i))
			used |= (uint64_t)1 << i;
	}
	return used;
}

static bool fits(const struct masks *t, uint64_t used)
{
	for (unsigned i = 0; i < t->n; i++) {
		if (!(t->mask[i] & used))
			return true;
	}
	return false;
}

static void packing(void **state)
{
	struct masks *group = calloc(GROUPS, sizeof(*group));
	uint64_t random = 38;
	unsigned placed = 0, optimum = 0, n = 0;

	(void)state;
	for (unsigned k = 0; k < 150; k++) {
		struct fabric f = fabric_clos(2 + k % 2, 1 + k % 3, 4);
		unsigned mask[GROUPS] = {0};

		for (unsigned i = 0; i < f.n_hosts; i++)
			mask[test_random(&random) % GROUPS] |= 1u << i;
		for (unsigned i = 0; i < GROUPS; i++) {
			struct mgr_member m[FABRIC_HOSTS];
			struct mgr_plan plan;
			bool could;
			unsigned n_m;

			group[i].f = &f;
			group[i].n = 0;
			group[i].hosts = 0;
			members_of(&f, mask[i], m, &n_m);
			for (unsigned h = 0; h < f.n_hosts; h++) {
				if (mask[i] >> h & 1)
					group[i].hosts |= (uint64_t)1 << test_link(
								  f.g, f.host[h], f.sw[f.leaf[h]]);
			}
			if (n_m < 2)
				continue;
			fabric_trees(&f, m, n_m, note_tree, &group[i]);
			could = fits(&group[i], used_links(&f));
			if (place(&f, &mgr_policy_edt, mask[i], wish_of(NULL, 0), &plan) ==
				MGR_WHY_OK) {
				assert_true(could);
				placed++;
				mgr_plan_free(&plan);
			} else {
				assert_false(could); /* each by itself is exact */
			}
		}
		optimum += most(group, 0, 0);
		n++;
		fabric_free(&f);
	}
	printf("edt: %u fabrics of %u groups, %u trees placed one by one, %u at best: gap %.1f "
	       "%%\n",
		n, GROUPS, placed, optimum, 100.0 * (optimum - placed) / optimum);
	assert_true(placed * 100 >= optimum * 85);
	free(group);
}

int run_policy_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_leaf),
		cmocka_unit_test(loss_chooses), cmocka_unit_test(low_or_wide),
		cmocka_unit_test(edges_disjoint), cmocka_unit_test(edt_levels),
		cmocka_unit_test(promised_rates), cmocka_unit_test(sharing_in_time),
		cmocka_unit_test(forwards_only), cmocka_unit_test(reasons),
		cmocka_unit_test(all_small_clos), cmocka_unit_test(three_tiers_and_none),
		cmocka_unit_test(packing)};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
