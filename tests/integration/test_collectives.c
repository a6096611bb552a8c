/* SPDX-License-Identifier: BSD-3-Clause */
/* The six collectives end to end on virtual time: random sequences in one communicator, over trees
 * and links that lose, duplicate and reorder, every result checked. Each scenario prints its seed.
 *   test_collectives [SEED [TEST [COLLECTIVES [MAXBYTES]]]] repeats one, or runs a longer one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/integration/fabric.h"
#include "tests/unit/ccl/task.h"

enum { BATCH = 6 };

static const uint64_t second = 1000000000;
static const struct fab_faults one_percent = {.loss = 0.01, .dup = 0.01, .reorder = 0.01};
static uint64_t seed = 20263;
static unsigned n_collectives;
static size_t max_bytes = 20000;
static uint16_t verb; /* or INC_F_WRITE */

struct world {
	struct fabric *fab;
	unsigned n_ranks;
	struct ccl_comm *comm[FAB_MAX_HOSTS];
	uint64_t rng;
	unsigned done;
};

static struct world make(const struct fab_tree *tree, unsigned mode, unsigned kind,
	unsigned collectives, const struct fab_faults *faults)
{
	struct fab_opts opts = {.tree = tree,
		.mode = (uint8_t)mode,
		.kind = (uint8_t)kind,
		.collectives = collectives,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR | verb,
		.start_psn = 0xffff00,
		.seed = seed,
		.timeout_ns = 60 * second};
	struct world w = {.n_ranks = tree->n_hosts, .rng = seed};

	if (faults)
		opts.faults = *faults;
	w.fab = fab_create(&opts);
	for (unsigned r = 0; r < w.n_ranks; r++)
		w.comm[r] = fab_comm(w.fab, r);
	return w;
}

static void give_up(struct world *w, const struct task *t, int rc)
{
	for (unsigned r = 0; r < w->n_ranks; r++)
		fprintf(stderr, "rank %u: %s\n", r, ccl_error(w->comm[r]));
	fail_msg("%s after %u collectives, at %s of %zu bytes: seed %llu", strerror(-rc), w->done,
		ccl_collective_name(t->kind), t->size, (unsigned long long)seed);
}

/* Issues n collectives at once, the ranks at different times, and waits for all of them. */
static void batch(struct world *w, unsigned n, int kind)
{
	static struct task t[BATCH];
	char why[200];
	int rc;

	for (unsigned i = 0; i < n; i++) {
		task_make(&t[i], &w->rng, w->n_ranks, kind, max_bytes);
		assert_int_equal(task_register(&t[i], w->comm, true), 0);
	}
	for (unsigned r = 0; r < w->n_ranks; r++) {
		for (unsigned i = 0; i < n; i++)
			if ((rc = task_start(&t[i], w->comm, r)))
				give_up(w, &t[i], rc);
		if (task_random(&w->rng, 4) == 0)
			fab_run(w->fab, task_random(&w->rng, 3000000));
	}
	for (unsigned i = 0; i < n; i++)
		if ((rc = fab_wait(w->fab, t[i].req, 600 * second)))
			give_up(w, &t[i], rc);
	for (unsigned i = 0; i < n; i++) {
		if (!task_right(&t[i], why, sizeof(why)))
			fail_msg("%s; %u before it; seed %llu", why, w->done,
				(unsigned long long)seed);
		w->done++;
		task_register(&t[i], w->comm, false);
		task_free(&t[i]);
	}
}

struct verbs_seen {
	unsigned sends, writes;
};

static void see_verb(void *arg, struct fabric *fab, const uint8_t *frame, size_t len)
{
	struct verbs_seen *seen = arg;
	struct wire_pkt pkt;

	(void)fab;
	if (wire_parse(frame, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE)
		return;
	seen->writes += (pkt.flags & ROCE_F_WRITE) != 0;
	seen->sends += (pkt.flags & ROCE_F_SEND) && pkt.opcode != ROCE_SEND_ONLY_IMM;
}

static void sequence(const struct fab_tree *tree, unsigned mode, unsigned kind, unsigned n)
{
	struct world w = make(tree, mode, kind, CCL_ALL_COLLECTIVES, NULL);
	struct verbs_seen seen = {0};

	n = n_collectives ? n_collectives : n;
	printf("seed %llu: %s, %u collectives\n", (unsigned long long)seed, tree->name, n);
	/* One by one, nothing lost: then nothing is sent twice either. */
	for (int k = 0; k < CCL_N_COLLECTIVES; k++)
		batch(&w, 1, k);
	fab_set_faults(w.fab, &one_percent);
	fab_set_tap(w.fab, see_verb, &seen);
	while (w.done < n)
		batch(&w, 1 + task_random(&w.rng, BATCH), -1);
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
		struct fab_tree tree = {"star", .n_hosts = sizes[i], .n_switches = 1};

		for (unsigned mode = INC_MODE_1; mode <= INC_MODE_3; mode++)
			sequence(&tree, mode, INC_MIXED, CCL_N_COLLECTIVES + 2);
		tree.name = "four leaves";
		tree.n_switches = 5;
		for (unsigned r = 0; r < sizes[i]; r++)
			tree.leaf_of[r] = (uint8_t)(1 + r % 4);
		for (unsigned mode = INC_MODE_1; mode <= INC_MODE_3; mode++)
			sequence(&tree, mode, INC_MIXED, CCL_N_COLLECTIVES + 2);
	}
}

static void mode2_single_star(void **state)
{
	(void)state;
	sequence(&fab_star4, INC_MODE_2, INC_SINGLE, 100);
}

static void mode2_single_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, INC_MODE_2, INC_SINGLE, 100);
}

static void mode2_single_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, INC_MODE_2, INC_SINGLE, 40);
}

static void mode2_mixed_star(void **state)
{
	(void)state;
	sequence(&fab_star4, INC_MODE_2, INC_MIXED, 100);
}

static void mode1_star(void **state)
{
	(void)state;
	sequence(&fab_star4, INC_MODE_1, INC_MIXED, 100);
}

static void mode1_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, INC_MODE_1, INC_MIXED, 100);
}

static void mode1_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, INC_MODE_1, INC_MIXED, 40);
}

static void mode1_single_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, INC_MODE_1, INC_SINGLE, 60);
}

static void mode2_mixed_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, INC_MODE_2, INC_MIXED, 100);
}

static void mode2_mixed_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, INC_MODE_2, INC_MIXED, 40);
}

static void mode3_single_star(void **state)
{
	(void)state;
	sequence(&fab_star4, INC_MODE_3, INC_SINGLE, 100);
}

static void mode3_single_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, INC_MODE_3, INC_SINGLE, 100);
}

static void mode3_single_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, INC_MODE_3, INC_SINGLE, 40);
}

static void mode3_mixed_star(void **state)
{
	(void)state;
	sequence(&fab_star4, INC_MODE_3, INC_MIXED, 100);
}

static void mode3_mixed_tree(void **state)
{
	(void)state;
	sequence(&fab_tree_2x2, INC_MODE_3, INC_MIXED, 100);
}

static void mode3_mixed_deep(void **state)
{
	(void)state;
	sequence(&fab_deep, INC_MODE_3, INC_MIXED, 40);
}

/* The same by RDMA WRITE: no data go by SEND. */
static void write_verb(unsigned mode)
{
	verb = INC_F_WRITE;
	sequence(&fab_star4, mode, INC_SINGLE, 60);
	sequence(&fab_star4, mode, INC_MIXED, 60);
	sequence(&fab_tree_2x2, mode, INC_SINGLE, 60);
	sequence(&fab_tree_2x2, mode, INC_MIXED, 60);
	sequence(&fab_deep, mode, INC_MIXED, 20);
	verb = 0;
}

static void mode2_write(void **state)
{
	(void)state;
	write_verb(INC_MODE_2);
}

static void mode3_write(void **state)
{
	(void)state;
	write_verb(INC_MODE_3);
}

/* A rank that comes seconds late to each kind of operation: the others wait, nobody gives up. */
static void late_rank(unsigned mode, unsigned kind)
{
	for (int k = 0; k < CCL_N_COLLECTIVES; k++) {
		struct world w = make(&fab_star4, mode, kind, CCL_ALL_COLLECTIVES, NULL);
		struct task t;
		char why[200];
		int rc;

		task_make(&t, &w.rng, w.n_ranks, k, max_bytes);
		for (unsigned i = 0; i < w.n_ranks; i++) {
			const unsigned r = (t.root + i) % w.n_ranks; /* the root is early */

			assert_int_equal(task_start(&t, w.comm, r), 0);
			fab_run(w.fab, i + 2 == w.n_ranks ? 3 * second : 0);
		}
		rc = fab_wait(w.fab, t.req, 60 * second);
		if (rc)
			give_up(&w, &t, rc);
		assert_true(task_right(&t, why, sizeof(why)));
		task_free(&t);
		fab_destroy(w.fab);
	}
}

static void mode1_late_rank(void **state)
{
	(void)state;
	late_rank(INC_MODE_1, INC_MIXED);
	late_rank(INC_MODE_1, INC_SINGLE);
}

static void mode2_late_rank(void **state)
{
	(void)state;
	late_rank(INC_MODE_2, INC_MIXED);
	late_rank(INC_MODE_2, INC_SINGLE);
}

static void write_late_rank(void **state)
{
	(void)state;
	verb = INC_F_WRITE;
	late_rank(INC_MODE_2, INC_MIXED);
	late_rank(INC_MODE_2, INC_SINGLE);
	late_rank(INC_MODE_3, INC_MIXED);
	late_rank(INC_MODE_3, INC_SINGLE);
	verb = 0;
}

/* A rank whose program computes for seconds in mid-operation while its NIC, in the same process,
 * answers nobody: whether it sends or receives, the others wait. */
static void frozen_rank(unsigned mode, unsigned kind, const struct fab_tree *tree)
{
	for (int k = 0; k < CCL_N_COLLECTIVES; k++) {
		for (unsigned r = 0; r < 2; r++) {
			struct world w = make(tree, mode, kind, CCL_ALL_COLLECTIVES, NULL);
			struct task t;
			char why[200];
			int rc;

			task_make(&t, &w.rng, w.n_ranks, k, max_bytes);
			for (unsigned i = 0; i < w.n_ranks; i++)
				assert_int_equal(task_start(&t, w.comm, i), 0);
			fab_run(w.fab, 10000);
			fab_freeze(w.fab, (t.root + r) % w.n_ranks, 3 * second);
			rc = fab_wait(w.fab, t.req, 60 * second);
			if (rc)
				give_up(&w, &t, rc);
			assert_true(task_right(&t, why, sizeof(why)));
			task_free(&t);
			fab_destroy(w.fab);
		}
	}
}

static void mode2_frozen_rank(void **state)
{
	const size_t before = max_bytes;

	(void)state;
	max_bytes = 100000;
	frozen_rank(INC_MODE_2, INC_MIXED, &fab_star4);
	frozen_rank(INC_MODE_2, INC_SINGLE, &fab_star4);
	frozen_rank(INC_MODE_2, INC_MIXED, &fab_tree_2x2);
	frozen_rank(INC_MODE_2, INC_SINGLE, &fab_tree_2x2);
	max_bytes = before;
}

static void mode3_late_rank(void **state)
{
	(void)state;
	late_rank(INC_MODE_3, INC_MIXED);
	late_rank(INC_MODE_3, INC_SINGLE);
}

static void mode3_frozen_rank(void **state)
{
	const size_t before = max_bytes;

	(void)state;
	max_bytes = 100000;
	frozen_rank(INC_MODE_3, INC_MIXED, &fab_star4);
	frozen_rank(INC_MODE_3, INC_SINGLE, &fab_tree_2x2);
	max_bytes = before;
}

/* A rank that asks for something else in a mixed group: all of them learn it, whatever it is. */
static void disagreement(unsigned mode)
{
	static int32_t in[4][1000], out[4][1000];

	for (unsigned what = 0; what < 4; what++) {
		struct world w = make(&fab_star4, mode, INC_MIXED, 0, NULL);
		struct ccl_req req[FAB_MAX_HOSTS];

		for (unsigned r = 0; r < 4; r++) {
			const bool other = r == 1;

			if (what == 3 && other)
				ccl_iallreduce(w.comm[r], in[r], out[r], 1000, REDUCE_INT32,
					REDUCE_SUM, &req[r]);
			else
				ccl_ireduce(w.comm[r], in[r], out[r],
					what == 0 && other ? 999 : 1000, REDUCE_INT32, REDUCE_SUM,
					what == 1 && other ? 0 : 2, &req[r]);
			if (what == 2 && other)
				ccl_abort(w.comm[r], "the test wants it");
		}
		assert_true(fab_wait(w.fab, req, 100 * second) < 0);
		for (unsigned i = 0; i < 8; i++) /* whoever only waits must be asked */
			fab_run(w.fab, 10 * second);
		for (unsigned r = 0; r < 4; r++)
			/* In Mode-I a sender is done when the switch has its data. */
			if (!ccl_error(w.comm[r])[0] &&
				!(mode == INC_MODE_1 && ccl_test(w.comm[r], req[r]) == 1))
				fail_msg("case %u: rank %u has not heard of it", what, r);
		fab_destroy(w.fab);
	}
}

static void mode2_disagreement(void **state)
{
	(void)state;
	disagreement(INC_MODE_2);
}

static void mode1_disagreement(void **state)
{
	(void)state;
	disagreement(INC_MODE_1);
}

/* ---- ReduceScatter against AllGather (EPIC, figure 14) ---- */

struct pair {
	uint8_t *in, *out, *block, *all;
};

/* Virtual time of one or both, over links of limited rate. */
static uint64_t both(struct world *w, struct pair *p, size_t block, bool rs, bool ag)
{
	struct ccl_req req[2][FAB_MAX_HOSTS];
	const uint64_t start = fab_now(w->fab);

	for (unsigned r = 0; r < w->n_ranks; r++) {
		if (rs)
			assert_int_equal(ccl_ireduce_scatter(w->comm[r], p[r].in, p[r].out,
						 block / 4, REDUCE_FP32, REDUCE_SUM, &req[0][r]),
				0);
		if (ag)
			assert_int_equal(ccl_iallgather(w->comm[r], p[r].block, p[r].all, block / 4,
						 REDUCE_FP32, &req[1][r]),
				0);
	}
	if (rs)
		assert_int_equal(fab_wait(w->fab, req[0], 10 * second), 0);
	if (ag)
		assert_int_equal(fab_wait(w->fab, req[1], 10 * second), 0);
	return fab_now(w->fab) - start;
}

/* One fills the links upward, the other downward: together they take hardly longer than the longer
 * one alone. Each is (n - 1) / n of the vector one way and 1 / n the other way. */
static void mode2_overlap(void **state)
{
	enum { BLOCK = 400000 };
	struct fab_opts opts = {.tree = &fab_star4,
		.mode = INC_MODE_2,
		.collectives = CCL_ALL_COLLECTIVES,
		.mtu = 1024,
		.m = 4,
		.w = 16,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.seed = seed,
		.timeout_ns = 60 * second,
		.link_gbps = 10};
	struct world w = {.fab = fab_create(&opts), .n_ranks = 4};
	uint64_t rs, ag, together;
	struct pair p[4];

	(void)state;
	for (unsigned r = 0; r < 4; r++) {
		p[r] = (struct pair){
			calloc(4, BLOCK), calloc(1, BLOCK), calloc(1, BLOCK), calloc(4, BLOCK)};
		w.comm[r] = fab_comm(w.fab, r);
	}
	rs = both(&w, p, BLOCK, true, false);
	ag = both(&w, p, BLOCK, false, true);
	together = both(&w, p, BLOCK, true, true);
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
	fab_destroy(w.fab);
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
