/* SPDX-License-Identifier: BSD-3-Clause */
/* The six collectives end to end on virtual time: random sequences in one communicator, over trees
 * and links that lose, duplicate and reorder, every result checked. Each scenario prints its seed.
 *   test_collectives [SEED [TEST [COLLECTIVES [MAXBYTES]]]] repeats one, or runs a longer one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/integration/tasks.h"

static const uint64_t second = 1000000000;
static const struct fab_faults one_percent = {.loss = 0.01, .dup = 0.01, .reorder = 0.01};
static uint64_t seed = 20263;
static unsigned n_collectives;
static size_t max_bytes = 20000;
static uint16_t verb; /* or INC_F_WRITE */
static bool by_ipv6;

static struct fabric *make(const struct fab_tree *tree, unsigned mode, unsigned kind)
{
	const struct fab_opts opts = {.tree = *tree,
		.mode = (enum ccl_mode)mode,
		.kind = (enum ccl_kind)kind,
		.ipv6 = by_ipv6,
		.collectives = CCL_ALL_COLLECTIVES,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR | verb,
		.start_psn = 0xffff00,
		.seed = seed,
		.timeout_ns = 60 * second};

	return fab_create(&opts);
}

struct verbs_seen {
	unsigned sends, writes;
};

static void see_verb(void *arg, unsigned link, const uint8_t *frame, unsigned len)
{
	struct verbs_seen *seen = arg;
	struct wire_pkt pkt;

	(void)link;
	if (wire_parse(frame, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE)
		return;
	seen->writes += (pkt.flags & ROCE_F_WRITE) != 0;
	seen->sends += (pkt.flags & ROCE_F_SEND) && pkt.opcode != ROCE_SEND_ONLY_IMM;
}

static void sequence(const struct fab_tree *tree, unsigned mode, unsigned kind, unsigned n)
{
	struct tasks w = {make(tree, mode, kind), seed, max_bytes, 0};
	struct verbs_seen seen = {0};

	sim_set_tap(w.fab->sim, see_verb, &seen);
	fab_sequence(&w, &one_percent, n_collectives ? n_collectives : n);
	assert_true(seen.sends + seen.writes > 0);
	assert_int_equal(verb ? seen.sends : seen.writes, 0);
	fab_destroy(w.fab);
}

/* From two ranks to thirty-two, on one switch and over four leaves. */
static void group_sizes(void **state)
{
	static const unsigned sizes[] = {2, 3, 5, 16, 32};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fab_tree tree = fab_leaves(sizes[i], 0);

		for (unsigned mode = CCL_MODE_1; mode <= CCL_MODE_3; mode++)
			sequence(&tree, mode, CCL_MIXED, CCL_N_COLLECTIVES + 2);
		tree.name = "four leaves";
		tree.n_switches = 5;
		for (unsigned r = 0; r < sizes[i]; r++)
			tree.leaf_of[r] = (uint8_t)(1 + r % 4);
		for (unsigned mode = CCL_MODE_1; mode <= CCL_MODE_3; mode++)
			sequence(&tree, mode, CCL_MIXED, CCL_N_COLLECTIVES + 2);
	}
}

static void mode2_single_star(void **state)
{
	(void)state;
	sequence(&fab_star4, CCL_MODE_2, CCL_SINGLE, 100);
}

static void mode2_single_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, CCL_MODE_2, CCL_SINGLE, 100);
}

static void mode2_single_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, CCL_MODE_2, CCL_SINGLE, 40);
}

static void mode2_mixed_star(void **state)
{
	(void)state;
	sequence(&fab_star4, CCL_MODE_2, CCL_MIXED, 100);
}

static void mode1_star(void **state)
{
	(void)state;
	sequence(&fab_star4, CCL_MODE_1, CCL_MIXED, 100);
}

static void mode1_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, CCL_MODE_1, CCL_MIXED, 100);
}

static void mode1_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, CCL_MODE_1, CCL_MIXED, 40);
}

static void mode1_single_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, CCL_MODE_1, CCL_SINGLE, 60);
}

static void mode2_mixed_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, CCL_MODE_2, CCL_MIXED, 100);
}

static void mode2_mixed_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, CCL_MODE_2, CCL_MIXED, 40);
}

static void mode3_single_star(void **state)
{
	(void)state;
	sequence(&fab_star4, CCL_MODE_3, CCL_SINGLE, 100);
}

static void mode3_single_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, CCL_MODE_3, CCL_SINGLE, 100);
}

static void mode3_single_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, CCL_MODE_3, CCL_SINGLE, 40);
}

static void mode3_mixed_star(void **state)
{
	(void)state;
	sequence(&fab_star4, CCL_MODE_3, CCL_MIXED, 100);
}

static void mode3_mixed_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, CCL_MODE_3, CCL_MIXED, 100);
}

static void mode3_mixed_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, CCL_MODE_3, CCL_MIXED, 40);
}

static void ipv6(void **state)
{
	(void)state;
	by_ipv6 = true;
	for (unsigned mode = CCL_MODE_1; mode <= CCL_MODE_3; mode++)
		sequence(&fab_tree_2x2, mode, CCL_MIXED, 40);
	by_ipv6 = false;
}

/* The same by RDMA WRITE: no data go by SEND. */
static void write_verb(unsigned mode)
{
	verb = INC_F_WRITE;
	sequence(&fab_star4, mode, CCL_SINGLE, 60);
	sequence(&fab_star4, mode, CCL_MIXED, 60);
	sequence(&fab_tree_2x2, mode, CCL_SINGLE, 60);
	sequence(&fab_tree_2x2, mode, CCL_MIXED, 60);
	sequence(&fab_deep, mode, CCL_MIXED, 20);
	verb = 0;
}

static void mode2_write(void **state)
{
	(void)state;
	write_verb(CCL_MODE_2);
}

static void mode3_write(void **state)
{
	(void)state;
	write_verb(CCL_MODE_3);
}

/* A rank that comes seconds late to each kind of operation: the others wait, nobody gives up. */
static void late_rank(unsigned mode, unsigned kind)
{
	for (int k = 0; k < CCL_N_COLLECTIVES; k++) {
		struct fabric *fab = make(&fab_star4, mode, kind);
		uint64_t rng = seed;
		struct task t;

		task_make(&t, &rng, fab->n, k, max_bytes);
		for (unsigned i = 0; i < fab->n; i++) {
			/* the root is early */
			assert_int_equal(fab_start(fab, &t, (t.root + i) % fab->n), 0);
			fab_run(fab, i + 2 == fab->n ? 3 * second : 0);
		}
		fab_finish(fab, &t);
		fab_destroy(fab);
	}
}

static void mode1_late_rank(void **state)
{
	(void)state;
	late_rank(CCL_MODE_1, CCL_MIXED);
	late_rank(CCL_MODE_1, CCL_SINGLE);
}

static void mode2_late_rank(void **state)
{
	(void)state;
	late_rank(CCL_MODE_2, CCL_MIXED);
	late_rank(CCL_MODE_2, CCL_SINGLE);
}

static void write_late_rank(void **state)
{
	(void)state;
	verb = INC_F_WRITE;
	late_rank(CCL_MODE_2, CCL_MIXED);
	late_rank(CCL_MODE_2, CCL_SINGLE);
	late_rank(CCL_MODE_3, CCL_MIXED);
	late_rank(CCL_MODE_3, CCL_SINGLE);
	verb = 0;
}

/* A rank whose program computes for seconds in mid-operation while its NIC, in the same process,
 * answers nobody: whether it sends or receives, the others wait. */
static void frozen_rank(unsigned mode, unsigned kind, const struct fab_tree *tree)
{
	for (int k = 0; k < 2 * CCL_N_COLLECTIVES; k++) {
		struct fabric *fab = make(tree, mode, kind);
		uint64_t rng = seed;
		struct task t;

		task_make(&t, &rng, fab->n, k / 2, 100000);
		fab_start_all(fab, &t);
		fab_run(fab, 10000);
		sim_freeze(fab->sim, (t.root + (unsigned)k % 2) % fab->n,
			sim_now(fab->sim) + 3 * second);
		fab_finish(fab, &t);
		fab_destroy(fab);
	}
}

static void mode2_frozen_rank(void **state)
{
	(void)state;
	frozen_rank(CCL_MODE_2, CCL_MIXED, &fab_star4);
	frozen_rank(CCL_MODE_2, CCL_SINGLE, &fab_star4);
	frozen_rank(CCL_MODE_2, CCL_MIXED, &fab_tree_2x2);
	frozen_rank(CCL_MODE_2, CCL_SINGLE, &fab_tree_2x2);
}

static void mode3_late_rank(void **state)
{
	(void)state;
	late_rank(CCL_MODE_3, CCL_MIXED);
	late_rank(CCL_MODE_3, CCL_SINGLE);
}

static void mode3_frozen_rank(void **state)
{
	(void)state;
	frozen_rank(CCL_MODE_3, CCL_MIXED, &fab_star4);
	frozen_rank(CCL_MODE_3, CCL_SINGLE, &fab_tree_2x2);
}

/* A rank that asks for something else in a mixed group: all of them learn it, whatever it is. */
static void disagreement(unsigned mode)
{
	static int32_t in[4][1000], out[4][1000];

	for (unsigned what = 0; what < 4; what++) {
		struct fabric *fab = make(&fab_star4, mode, CCL_MIXED);
		struct ccl_req req[FAB_MAX_HOSTS];

		for (unsigned r = 0; r < 4; r++) {
			struct ccl_comm *comm = fab_comm(fab, r);
			const bool other = r == 1;

			if (what == 3 && other)
				ccl_iallreduce(comm, in[r], out[r], 1000, REDUCE_INT32, REDUCE_SUM,
					&req[r]);
			else
				ccl_ireduce(comm, in[r], out[r], what == 0 && other ? 999 : 1000,
					REDUCE_INT32, REDUCE_SUM, what == 1 && other ? 0 : 2,
					&req[r]);
			if (what == 2 && other)
				ccl_abort(comm, "the test wants it");
		}
		assert_true(fab_wait(fab, req, 100 * second) < 0);
		for (unsigned i = 0; i < 8; i++) /* whoever only waits must be asked */
			fab_run(fab, 10 * second);
		for (unsigned r = 0; r < 4; r++)
			/* In Mode-I a sender is done when the switch has its data. */
			if (!fab_error(fab, r)[0] &&
				!(mode == CCL_MODE_1 && fab_test(fab, r, req[r]) == 1))
				fail_msg("case %u: rank %u has not heard of it", what, r);
		fab_destroy(fab);
	}
}

static void mode2_disagreement(void **state)
{
	(void)state;
	disagreement(CCL_MODE_2);
}

static void mode1_disagreement(void **state)
{
	(void)state;
	disagreement(CCL_MODE_1);
}

/* ---- ReduceScatter against AllGather (EPIC, figure 14) ---- */

struct pair {
	uint8_t *in, *out, *block, *all;
};

/* Virtual time of one or both, over links of limited rate. */
static uint64_t both(struct fabric *fab, struct pair *p, size_t block, bool rs, bool ag)
{
	struct ccl_req req[2][FAB_MAX_HOSTS];
	const uint64_t start = sim_now(fab->sim);

	for (unsigned r = 0; r < fab->n; r++) {
		if (rs)
			assert_int_equal(ccl_ireduce_scatter(fab_comm(fab, r), p[r].in, p[r].out,
						 block / 4, REDUCE_FP32, REDUCE_SUM, &req[0][r]),
				0);
		if (ag)
			assert_int_equal(ccl_iallgather(fab_comm(fab, r), p[r].block, p[r].all,
						 block / 4, REDUCE_FP32, &req[1][r]),
				0);
	}
	if (rs)
		assert_int_equal(fab_wait(fab, req[0], 10 * second), 0);
	if (ag)
		assert_int_equal(fab_wait(fab, req[1], 10 * second), 0);
	return sim_now(fab->sim) - start;
}

/* One fills the links upward, the other downward: together they take hardly longer than the longer
 * one alone. Each is (n - 1) / n of the vector one way and 1 / n the other way. */
static void mode2_overlap(void **state)
{
	enum { BLOCK = 400000 };
	struct fab_opts opts = {.tree = fab_star4,
		.mode = CCL_MODE_2,
		.collectives = CCL_ALL_COLLECTIVES,
		.mtu = 1024,
		.m = 4,
		.w = 16,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.seed = seed,
		.timeout_ns = 60 * second,
		.link_gbps = 10};
	struct fabric *fab = fab_create(&opts);
	uint64_t rs, ag, together;
	struct pair p[4];

	(void)state;
	for (unsigned r = 0; r < 4; r++) {
		p[r] = (struct pair){
			calloc(4, BLOCK), calloc(1, BLOCK), calloc(1, BLOCK), calloc(4, BLOCK)};
	}
	rs = both(fab, p, BLOCK, true, false);
	ag = both(fab, p, BLOCK, false, true);
	together = both(fab, p, BLOCK, true, true);
	printf("%u bytes per rank at 10 Gb/s: ReduceScatter %.0f us, AllGather %.0f us, at the "
	       "same "
	       "time %.0f us\n",
		4 * BLOCK, (double)rs / 1000, (double)ag / 1000, (double)together / 1000);
	assert_true(together < (rs + ag) * 3 / 4); /* 2/3 of the sum at best with four ranks */
	for (unsigned r = 0; r < 4; r++) {
		free(p[r].in);
		free(p[r].out);
		free(p[r].block);
		free(p[r].all);
	}
	fab_destroy(fab);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(group_sizes),
		cmocka_unit_test(mode2_single_star),
		cmocka_unit_test(mode2_single_tree),
		cmocka_unit_test(mode2_single_deep),
		cmocka_unit_test(mode2_mixed_star),
		cmocka_unit_test(mode2_mixed_tree),
		cmocka_unit_test(mode2_mixed_deep),
		cmocka_unit_test(mode2_late_rank),
		cmocka_unit_test(mode1_star),
		cmocka_unit_test(mode1_tree),
		cmocka_unit_test(mode1_deep),
		cmocka_unit_test(mode1_single_tree),
		cmocka_unit_test(mode1_late_rank),
		cmocka_unit_test(mode1_disagreement),
		cmocka_unit_test(mode2_frozen_rank),
		cmocka_unit_test(mode2_disagreement),
		cmocka_unit_test(mode2_overlap),
		cmocka_unit_test(mode3_single_star),
		cmocka_unit_test(mode3_single_tree),
		cmocka_unit_test(mode3_single_deep),
		cmocka_unit_test(mode3_mixed_star),
		cmocka_unit_test(mode3_mixed_tree),
		cmocka_unit_test(mode3_mixed_deep),
		cmocka_unit_test(mode3_late_rank),
		cmocka_unit_test(mode3_frozen_rank),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(mode2_write),
		cmocka_unit_test(mode3_write),
		cmocka_unit_test(write_late_rank),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	if (argc > 3)
		n_collectives = (unsigned)strtoul(argv[3], NULL, 0);
	if (argc > 4)
		max_bytes = strtoul(argv[4], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
