/* SPDX-License-Identifier: BSD-3-Clause */
/* Where trees go: each policy by example. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/mgr/fabric.h"
#include "tests/unit/mgr/mgr_test.h"

static const uint64_t GBPS = TEST_GBPS;

static void one_leaf(void **state)
{
	struct fabric f = fabric_clos(2, 2, 2);
	struct mgr_plan plan;
	char line[MGR_LINE_LEN];
	struct mgr_wish wish = fabric_wish(NULL, 0);

	(void)state;
	wish.want_bps = 100 * GBPS;
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 3, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.tree.height, 1);
	assert_int_equal(plan.tree.n_sw, 1);
	assert_int_equal(plan.tree.sw[0].node, f.sw[0]);
	assert_int_equal(plan.size.mode, MGR_MODE_II); /* least memory at this height */
	assert_int_equal(plan.bps, 100 * GBPS);
	assert_int_equal(mgr_book_used_bytes(f.b, f.sw[0]), mgr_plan_bytes(&plan, &wish.shape));
	mgr_plan_line(f.p, &wish, &plan, line, sizeof(line));
	assert_string_equal(line,
		"in the network: height 1, 1 switches, root first: s0; mode II, M 4, W 16, "
		"131072 bytes in all, 100.0 Gbit/s");
	mgr_plan_free(&plan);
	fabric_free(&f);
}

/* A hop loses a packet in a hundred: Mode-II would lose with each of the children. */
static void loss_chooses(void **state)
{
	struct fabric f = fabric_clos(1, 1, 6);
	struct mgr_wish wish = fabric_wish(NULL, 0);
	struct mgr_plan plan;

	(void)state;
	wish.want_bps = 10 * GBPS;
	wish.shape.loss_ppm = 10000;
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 63, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.size.mode, MGR_MODE_III);
	mgr_plan_free(&plan);
	wish.modes = MGR_MODE_II;
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 63, wish, &plan), MGR_WHY_OK);
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
	struct mgr_wish wish = fabric_wish(NULL, 0);
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
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 3, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.tree.sw[0].node, f.sw[big]); /* as low, and wider */
	assert_int_equal(plan.bps, 40 * GBPS);
	mgr_plan_free(&plan);
	fabric_free(&f);
}

/* What another has of a switch's memory, in a block. */
static void has_block(struct fabric *f, unsigned sw, unsigned block, uint64_t bytes)
{
	const struct mgr_demand_sw at = {f->sw[sw], bytes};
	const struct mgr_demand d = {.sw = &at, .n_sw = 1, .duty = 100};
	const struct mgr_window w = {.block = block};
	mgr_promise p;

	assert_int_equal(mgr_book_restore(f->b, &d, &p), 0);
	assert_int_equal(mgr_book_restore_window(f->b, p, &w, false), 0);
}

/* Two leaves have memory in a block each, and not the same: the job that could have either goes
 * where it can have one, by a slower way. Without turns it shares what is there. */
static void no_common_block(void **state)
{
	struct fabric f = fabric_new();
	const unsigned a = fabric_switch(&f, 1, 1 << 18), b = fabric_switch(&f, 1, 1 << 18),
		       slow = fabric_switch(&f, 1, 1 << 18);
	struct mgr_wish wish = fabric_wish(NULL, 0);
	struct mgr_plan plan;

	(void)state;
	wish.duty = 500;
	fabric_host(&f, a, 100 * GBPS);
	fabric_host(&f, b, 100 * GBPS);
	fabric_link(&f, a, b, 100 * GBPS);
	for (unsigned i = 0; i < 2; i++) {
		has_block(&f, i ? b : a, 1 + i, 3 << 16);
		has_block(&f, i ? b : a, 2 - i, 1 << 16);
	}
	wish.turns = true;
	wish.least_bps = 2 * GBPS;
	assert_int_equal(fabric_place(&f, &mgr_policy_temporal, 3, wish, &plan), MGR_WHY_MEMORY);
	wish.least_bps = 0;
	for (unsigned i = 0; i < 2; i++)
		test_cable(f.g, f.host[i], f.sw[slow], 1, GBPS);
	assert_int_equal(fabric_place(&f, &mgr_policy_temporal, 3, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.tree.sw[0].node, f.sw[slow]);
	assert_int_equal(plan.window.block, 1);
	assert_int_equal(plan.window.length, 500);
	mgr_plan_free(&plan);
	wish.turns = false;
	assert_int_equal(fabric_place(&f, &mgr_policy_temporal, 3, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.tree.n_sw, 2);
	assert_int_equal(plan.window.block, 0);
	mgr_plan_free(&plan);
	fabric_free(&f);
}

static void edges_disjoint(void **state)
{
	struct fabric f = fabric_clos(2, 2, 3);
	struct mgr_wish wish = fabric_wish(NULL, 0);
	struct mgr_plan plan[3];

	(void)state;
	/* Hosts 0..2 and 3..5: two trees over two spines; the third has no spine left. */
	assert_int_equal(fabric_place(&f, &mgr_policy_edt, 011, wish, &plan[0]), MGR_WHY_OK);
	assert_int_equal(fabric_place(&f, &mgr_policy_edt, 022, wish, &plan[1]), MGR_WHY_OK);
	assert_int_not_equal(plan[0].tree.sw[0].node, plan[1].tree.sw[0].node);
	assert_int_equal(fabric_place(&f, &mgr_policy_edt, 044, wish, &plan[2]), MGR_WHY_POLICY);
	/* Spatial multiplexing shares links, but not with those. */
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 044, wish, &plan[2]), MGR_WHY_LINKS);
	mgr_plan_free(&plan[0]);
	mgr_plan_free(&plan[1]);
	fabric_free(&f);
}

/* Links that any tree has are taken; and levels above the lowest are not looked at. */
static void edt_levels(void **state)
{
	struct fabric f = fabric_clos(2, 1, 2);
	unsigned top = fabric_switch(&f, 3, 1 << 20);
	struct mgr_wish wish = fabric_wish(NULL, 0);
	struct mgr_plan first, second, all[MGR_MAX_PLANS];
	struct mgr_member m[FABRIC_HOSTS];

	(void)state;
	fabric_link(&f, 0, top, 100 * GBPS);
	fabric_link(&f, 1, top, 100 * GBPS);
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 5, wish, &first), MGR_WHY_OK);
	assert_int_equal(first.tree.sw[0].node, f.sw[2]);
	fabric_members(&f, 10, m, &wish.n_members);
	wish.member = m;
	assert_int_equal(mgr_policy_edt.candidates(f.p, &wish, all), 1);
	assert_int_equal(all[0].tree.sw[0].node, f.sw[top]);
	mgr_plan_free(&all[0]);
	assert_int_equal(mgr_book_release(f.b, mgr_book_next_on_switch(f.b, f.sw[2], 0)), 0);
	assert_int_equal(mgr_policy_edt.candidates(f.p, &wish, all), 1);
	assert_int_equal(all[0].tree.sw[0].node, f.sw[2]);
	mgr_plan_free(&all[0]);
	assert_int_equal(fabric_place(&f, &mgr_policy_edt, 10, wish, &second), MGR_WHY_OK);
	mgr_plan_free(&first);
	mgr_plan_free(&second);
	fabric_free(&f);
}

/* Rates that are promised add up to no more than the link has. */
static void promised_rates(void **state)
{
	struct fabric f = fabric_clos(2, 1, 3);
	struct mgr_wish wish = fabric_wish(NULL, 0);
	struct mgr_plan plan;

	(void)state;
	wish.promised = true;
	wish.want_bps = 60 * GBPS;
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 011, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.bps, 60 * GBPS);
	mgr_plan_free(&plan);
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 022, wish, &plan), MGR_WHY_OK);
	assert_int_equal(plan.bps, 40 * GBPS);
	mgr_plan_free(&plan);
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 044, wish, &plan), MGR_WHY_LINKS);
	fabric_free(&f);
}

/* Memory for one: side by side one group, in turns four with a quarter of the time each. */
static void sharing_in_time(void **state)
{
	struct mgr_wish wish = fabric_wish(NULL, 0);
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
			why = fabric_place(&f, policy[k], 3u << i % 8, wish, &plan);
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

/* The hosts' links are shared by all; the spines need not be. */
static void spread_over_spines(void **state)
{
	struct fabric f = fabric_clos(2, 3, 1);
	struct mgr_wish wish = fabric_wish(NULL, 0);
	unsigned used = 0;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct mgr_plan plan;

		assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 3, wish, &plan), MGR_WHY_OK);
		assert_int_equal(plan.bps, 100 * GBPS / (i + 1));
		used |= 1u << plan.tree.sw[0].node;
		assert_int_equal(mgr_book_switch_holders(f.b, plan.tree.sw[0].node), 1 + i / 3);
		mgr_plan_free(&plan);
	}
	assert_int_equal(__builtin_popcount(used), 3);
	fabric_free(&f);
}

/* A switch that only forwards may be on the way, not at a branch. */
static void forwards_only(void **state)
{
	struct fabric f = fabric_clos(2, 1, 2);
	struct mgr_node n = *mgr_graph_node(f.g, f.sw[0]);
	struct mgr_wish wish = fabric_wish(NULL, 0);
	struct mgr_plan plan;

	(void)state;
	n.modes = 0;
	mgr_graph_set_node(f.g, &n);
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_OK);
	for (unsigned i = 0; i < plan.tree.n_sw; i++)
		assert_int_equal(plan.tree.sw[i].transit, plan.tree.sw[i].node == f.sw[0]);
	assert_int_equal(mgr_book_switch_holders(f.b, f.sw[0]), 0);
	mgr_plan_free(&plan);
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 7, wish, &plan), MGR_WHY_MODE);
	fabric_free(&f);
}

static void reasons(void **state)
{
	struct fabric f = fabric_clos(2, 1, 2);
	struct mgr_wish wish = fabric_wish(NULL, 0);
	struct mgr_node n = *mgr_graph_node(f.g, f.host[3]);
	struct mgr_plan plan;
	enum mgr_why why;
	mgr_promise promise;

	(void)state;
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 1, wish, &plan), MGR_WHY_RANKS);
	n.up = false;
	mgr_graph_set_node(f.g, &n);
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 12, wish, &plan), MGR_WHY_HOST);
	wish.least_bps = 101 * GBPS;
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_WIDTH);
	wish.least_bps = 0;
	wish.modes = 0;
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_DEVICE);
	wish.modes = MGR_MODES;
	n = *mgr_graph_node(f.g, f.sw[2]);
	n.up = false;
	mgr_graph_set_node(f.g, &n);
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_TREE);
	n.up = true;
	n.groups = 0;
	mgr_graph_set_node(f.g, &n);
	assert_int_equal(fabric_place(&f, &mgr_policy_spatial, 5, wish, &plan), MGR_WHY_MEMORY);
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

int run_policy_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_leaf),
		cmocka_unit_test(loss_chooses), cmocka_unit_test(low_or_wide),
		cmocka_unit_test(no_common_block), cmocka_unit_test(edges_disjoint),
		cmocka_unit_test(edt_levels), cmocka_unit_test(promised_rates),
		cmocka_unit_test(sharing_in_time), cmocka_unit_test(spread_over_spines),
		cmocka_unit_test(forwards_only), cmocka_unit_test(reasons)};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
