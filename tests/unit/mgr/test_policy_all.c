/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies beside every tree that there is, on all small Clos fabrics and on irregular ones. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/mgr/fabric.h"
#include "tests/unit/mgr/mgr_test.h"

static const uint64_t GBPS = TEST_GBPS;

struct best {
	const struct fabric *f;
	const struct mgr_wish *wish;
	const struct mgr_member *member;
	unsigned n, duty;
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
						mgr_book_free_bytes(f->b, f->sw[i], best->duty),
						2));
		}
		for (unsigned h = height; h <= MGR_MAX_HEIGHT; h++)
			best->width[h] = width > best->width[h] ? width : best->width[h];
	}
}

/* The frontier that the policy gives is the one of all trees. Returns its length. */
static unsigned same_frontier(
	struct fabric *f, const struct mgr_policy *policy, unsigned duty, unsigned mask)
{
	struct mgr_member m[FABRIC_HOSTS];
	struct mgr_wish wish = fabric_wish(NULL, 0);
	struct mgr_plan plan[MGR_MAX_PLANS], taken;
	struct best best = {.f = f, .wish = &wish, .member = m, .duty = duty};
	enum mgr_why why;
	mgr_promise promise;
	unsigned at = 0;
	int n;

	fabric_members(f, mask, m, &wish.n_members);
	wish.member = m;
	wish.duty = duty;
	best.n = wish.n_members;
	wish.modes = MGR_MODE_II | MGR_MODE_III;
	mgr_finder_sync(f->g, f->b);
	fabric_trees(f, m, best.n, rate_tree, &best);
	/* Placing lists the roots; what it takes is the widest, and is given back. */
	if (mgr_place_group(f->p, policy, &wish, 0, &taken, &promise, &why)) {
		assert_int_equal(best.width[MGR_MAX_HEIGHT], 0);
		return 0;
	}
	assert_int_equal(taken.bps, best.width[MGR_MAX_HEIGHT]);
	mgr_plan_free(&taken);
	mgr_book_release(f->b, promise);
	n = policy->candidates(f->p, &wish, plan);
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
				points += same_frontier(&f, &mgr_policy_spatial, MGR_DUTY,
					random_mask(&f, &random));
				n++;
				fabric_free(&f);
			}
		}
	}
	printf("spatial: %u Clos fabrics, %u points of the frontier: gap 0\n", n, points);
	assert_true(points > n / 2);
}

/* Beside groups that share memory with what is to come, by other duties. */
static void shared_memory(void **state)
{
	uint64_t random = 40;
	unsigned n = 0, points = 0, others = 0;

	(void)state;
	for (unsigned k = 0; k < 300; k++) {
		struct fabric f = fabric_clos(1 + k % 3, 1 + k / 3 % 3, 2);
		unsigned duty = 50 + test_random(&random) % 900;

		disturb(&f, &random);
		for (unsigned i = 0; i < 3; i++) {
			struct mgr_wish wish = fabric_wish(NULL, 0);
			struct mgr_plan plan;

			wish.want_bps = 5 * GBPS;
			wish.duty = 50 + test_random(&random) % 900;
			if (fabric_place(&f, &mgr_policy_temporal, random_mask(&f, &random), wish,
				    &plan) != MGR_WHY_OK)
				continue;
			mgr_plan_free(&plan);
			others++;
		}
		points += same_frontier(&f, &mgr_policy_temporal, duty, random_mask(&f, &random));
		n++;
		fabric_free(&f);
	}
	printf("temporal: %u Clos fabrics beside %u groups, %u points of the frontier: gap 0\n", n,
		others, points);
	assert_true(points > n / 2 && others > n);
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
		length = same_frontier(&f, &mgr_policy_spatial, MGR_DUTY, random_mask(&f, &random));
		points += length;
		longest = length > longest ? length : longest;
		fabric_free(&f);
	}
	printf("spatial: 120 fabrics of three tiers or none, %u points, up to %u each: gap 0\n",
		points, longest);
	assert_true(points > 60 && longest > 1);
}

/* What is sifted out has no tree. */
static void sieve(void **state)
{
	uint64_t random = 39;
	unsigned left_out = 0, let_pass = 0;

	(void)state;
	for (unsigned k = 0; k < 200; k++) {
		struct fabric f = fabric_clos(3, 3, 2);
		struct mgr_member m[FABRIC_HOSTS];
		struct mgr_bar bar = {.max_tier = MGR_NO_TIER,
			.max_height = 1 + k % 4,
			.mode = MGR_MODE_II,
			.bps = (k % 7) * 20 * GBPS,
			.inner_bps = (k % 3) * 50 * GBPS,
			.duty = MGR_DUTY};
		struct mgr_finder *finder = mgr_place_finder(f.p);
		unsigned n;

		disturb(&f, &random);
		mgr_finder_sync(f.g, f.b);
		fabric_members(&f, random_mask(&f, &random), m, &n);
		bool any = mgr_tree_sift(finder, m, n, &bar);

		for (unsigned i = 0; i < f.n_sw; i++) {
			bool pass = any && mgr_tree_may_root(finder, f.sw[i]);
			struct mgr_tree t;

			if (mgr_tree_grow(finder, m, n, f.sw[i], &bar, &t) == 0) {
				assert_true(pass);
				mgr_tree_free(&t);
			}
			left_out += !pass;
			let_pass += pass;
			any = mgr_tree_sift(finder, m, n, &bar); /* growing uses its marks */
		}
		fabric_free(&f);
	}
	assert_true(left_out > 500 && let_pass > 200);
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
			fabric_members(&f, mask[i], m, &n_m);
			for (unsigned h = 0; h < f.n_hosts; h++) {
				if (mask[i] >> h & 1)
					group[i].hosts |= (uint64_t)1 << test_link(
								  f.g, f.host[h], f.sw[f.leaf[h]]);
			}
			if (n_m < 2)
				continue;
			fabric_trees(&f, m, n_m, note_tree, &group[i]);
			could = fits(&group[i], used_links(&f));
			if (fabric_place(&f, &mgr_policy_edt, mask[i], fabric_wish(NULL, 0),
				    &plan) == MGR_WHY_OK) {
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

int run_policy_all_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_small_clos),
		cmocka_unit_test(shared_memory), cmocka_unit_test(three_tiers_and_none),
		cmocka_unit_test(sieve), cmocka_unit_test(packing)};

	return cmocka_run_group_tests_name("policy, all trees", tests, NULL, NULL);
}
