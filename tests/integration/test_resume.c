/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups that fail while collectives run, on virtual time: the ranks go on by a ring of the hosts,
 * every result is right, and the same at all ranks though the program has written over its buffers.
 *   test_resume [SEED [TEST]] */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/ccl/resume.h"
#include "lib/ctl/client.h"
#include "lib/sim/coll_priv.h"
#include "lib/sim/control_priv.h"
#include "tests/integration/tasks.h"

static const uint64_t MS = 1000000, TIMEOUT = 5000000000, LIMIT = 600000000000;
static const struct fab_faults weather = {.loss = 0.005, .dup = 0.01, .reorder = 0.01};
static uint64_t seed = 20265;

enum { MAX = 32 };

static struct fabric *make(
	const struct fab_tree *tree, enum ccl_mode mode, enum ccl_kind kind, uint64_t salt)
{
	const bool all = kind == CCL_MIXED;
	const struct fab_opts opts = {.tree = *tree,
		.mode = mode,
		.kind = kind,
		.collectives = all ? CCL_ALL_COLLECTIVES : 1u << CCL_ALLREDUCE | 1u << CCL_BARRIER,
		.mtu = 256,
		.m = 4,
		.w = 4,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.start_psn = 0xffffe0,
		.seed = seed + salt,
		.faults = weather,
		.timeout_ns = TIMEOUT};
	struct fabric *fab = fab_create(&opts);

	for (unsigned r = 0; r < fab->n; r++)
		assert_int_equal(ccl_resume_enable(fab_comm(fab, r)), 0);
	return fab;
}

/* As an operator would: over the control connection. */
static void fail_group(struct fabric *fab, unsigned sw)
{
	json_t *params = json_pack("{s:s}", "group", fab_group(fab, sw)->name);
	struct ctl_client *client;
	struct ctl_error error;
	char path[16];

	snprintf(path, sizeof(path), "sim:%u", sw);
	assert_int_equal(
		ctl_connect_over(sim_control_io(fab->sim), path, 1000, &client, &error), 0);
	assert_int_equal(ctl_call(client, "group.fail", params, 1000, NULL, &error), 0);
	ctl_close(client);
	json_decref(params);
}

/* ---- what resume_meet.c does with sockets ---- */

static void decide(struct fabric *fab, struct ccl_verdict *v)
{
	static struct ccl_standing at[FAB_MAX_HOSTS];
	const struct ccl_standing *by[FAB_MAX_HOSTS];
	char err[CCL_ERR_LEN];

	for (unsigned r = 0; r < fab->n; r++) {
		ccl_fail(fab_comm(fab, r), -ECONNABORTED, "rank 0 calls"); /* who did not see it */
		assert_true(ccl_resume_may(fab_comm(fab, r)));
		ccl_resume_standing(fab_comm(fab, r), &at[r]);
		by[r] = &at[r];
	}
	if (ccl_resume_decide(by, fab->n, v, err))
		fail_msg("%s", err);
}

static void join_ring(struct fabric *fab, struct ccl_ring **ring)
{
	struct ccl_ring_address at[FAB_MAX_HOSTS];
	const unsigned n = fab->n;
	char err[CCL_ERR_LEN];

	for (unsigned r = 0; r < n; r++) {
		struct ccl_comm *c = fab_comm(fab, r);
		const struct ccl_ring_conf conf = {.context = c->context,
			.port = c->port,
			.gid_index = c->gid_index,
			.rank = r,
			.n_ranks = n,
			.mtu = c->mtu,
			.m = c->m,
			.w = c->w,
			.timeout_ns = c->timeout_ns,
			.start_psn = 77 + r};

		assert_int_equal(ccl_ring_open(&conf, &ring[r], err), 0);
		ccl_ring_address(ring[r], &at[r]);
	}
	for (unsigned r = 0; r < n; r++) {
		for (unsigned i = 0; i < n; i++)
			sim_coll_know(fab->coll, r, &at[i].ip);
		if (ccl_ring_connect(ring[r], &at[(r + n - 1) % n], &at[(r + 1) % n], 256, err))
			fail_msg("%s", err);
	}
}

static void go_over(struct fabric *fab, struct ccl_verdict *v)
{
	struct ccl_ring *ring[FAB_MAX_HOSTS];

	decide(fab, v);
	join_ring(fab, ring);
	for (unsigned r = 0; r < fab->n; r++)
		assert_int_equal(ccl_resume_over(fab_comm(fab, r), ring[r], v), 0);
}

/* ---- programs ---- */

/* Done with it: the buffers are the program's, which uses them for something else. */
static void spoil(struct task *t, unsigned r, uint8_t **result)
{
	result[r] = malloc(t->recv_len + 1);
	memcpy(result[r], t->recv[r], t->recv_len);
	memset(t->recv[r], 0xee, t->recv_len);
	if (!t->in_place)
		memset(t->send[r], 0xee, t->send_len);
}

static void check(struct fabric *fab, struct task *t, uint8_t **result)
{
	char why[200];

	for (unsigned r = 0; r < fab->n; r++) {
		memcpy(t->recv[r], result[r], t->recv_len);
		if (!t->in_place) /* task_right looks whether it was touched */
			memcpy(t->send[r], t->input[r], t->send_len);
		free(result[r]);
	}
	if (!task_right(t, why, sizeof(why)))
		fail_msg("%s; %s, seed %llu", why, fab->opts.tree.name,
			(unsigned long long)fab->opts.seed);
}

static void spoil_what_is_done(
	struct fabric *fab, struct task *t, uint8_t *(*result)[FAB_MAX_HOSTS], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned r = 0; r < fab->n; r++)
			if (!result[i][r] && t[i].req[r].seq < fab_comm(fab, r)->coll_issued &&
				fab_test(fab, r, t[i].req[r]) == 1)
				spoil(&t[i], r, result[i]);
}

/* Random collectives, of which ranks have issued different numbers; the group fails at a random
 * moment. How many were done at some rank only. */
static unsigned story(
	const struct fab_tree *tree, enum ccl_mode mode, enum ccl_kind kind, uint64_t salt)
{
	static uint8_t *result[MAX][FAB_MAX_HOSTS];
	static struct task t[MAX];
	struct fabric *fab = make(tree, mode, kind, salt);
	const unsigned before = 3 + (unsigned)(sim_random(&fab->rng) % 8), n = before + 4;
	struct ccl_verdict v;
	struct ccl_info info;

	memset(result, 0, sizeof(result));
	for (unsigned i = 0; i < n; i++) {
		task_make(&t[i], &fab->rng, fab->n,
			kind == CCL_MIXED           ? -1
			: sim_random(&fab->rng) % 5 ? CCL_ALLREDUCE
						    : CCL_BARRIER,
			3000);
		for (unsigned r = 0; r < fab->n; r++)
			t[i].req[r] = (struct ccl_req){UINT64_MAX};
	}
	for (unsigned i = 0; i < before; i++)
		for (unsigned r = 0; r < fab->n; r++)
			assert_int_equal(fab_start(fab, &t[i], r), 0);
	for (uint64_t steps = sim_random(&fab->rng) % 40 + 1; steps; steps--) {
		fab_run(fab, sim_random(&fab->rng) % 20000);
		spoil_what_is_done(fab, t, result, n);
	}
	fail_group(fab, (unsigned)(sim_random(&fab->rng) % fab->opts.tree.n_switches));
	fab_run(fab, sim_random(&fab->rng) % (2 * MS));
	spoil_what_is_done(fab, t, result, n);
	go_over(fab, &v);
	/* Ranks issue more before what was interrupted is done. */
	for (unsigned i = before; i < n; i++)
		for (unsigned r = 0; r < fab->n; r++)
			assert_int_equal(fab_start(fab, &t[i], r), 0);
	for (unsigned i = 0; i < n; i++) {
		fab_must(fab, fab_wait(fab, t[i].req, LIMIT));
		spoil_what_is_done(fab, t, result, n);
	}
	for (unsigned i = 0; i < n; i++) {
		check(fab, &t[i], result[i]);
		task_free(&t[i]);
	}
	ccl_query(fab_comm(fab, 0), &info);
	assert_true(info.resumed && info.fallback);
	assert_int_equal(info.resumed_at, v.first);
	assert_non_null(strstr(info.selection, "a ring of the hosts, without the switches, from"));
	fab_destroy(fab);
	return (unsigned)(v.known - v.first);
}

static void stories(enum ccl_mode mode, enum ccl_kind kind, unsigned n)
{
	static const struct fab_tree *const trees[] = {&fab_star4, &fab_tree_2x2};
	unsigned partly = 0;

	for (unsigned i = 0; i < n; i++)
		partly += story(trees[i % 2], mode, kind, i);
	/* The hard case is among them: done here, and not there. */
	assert_true(partly > 0);
}

static void mode1(void **state)
{
	(void)state;
	stories(CCL_MODE_1, CCL_MIXED, 30);
}

static void mode2(void **state)
{
	(void)state;
	stories(CCL_MODE_2, CCL_MIXED, 30);
}

static void mode2_single(void **state)
{
	(void)state;
	stories(CCL_MODE_2, CCL_SINGLE, 30);
}

static void mode3(void **state)
{
	(void)state;
	stories(CCL_MODE_3, CCL_MIXED, 30);
}

/* What is kept goes when nobody can need it any more. */
static void kept_is_bounded(void **state)
{
	struct fabric *fab = make(&fab_star4, CCL_MODE_3, CCL_MIXED, 0);
	static struct ccl_standing at;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		fab_exact(fab, i % 3 ? CCL_ALLREDUCE : CCL_REDUCE, 500, i % 4, false);
	for (unsigned r = 0; r < fab->n; r++) {
		ccl_resume_standing(fab_comm(fab, r), &at);
		assert_int_equal(at.done, 100);
		assert_true(at.n <= fab->opts.w);
	}
	fab_destroy(fab);
}

/* Where ranks stand, as rank 0 hears it; the last of them may be anything. */
static void decisions(void **state)
{
	static struct ccl_standing a, b;
	const struct ccl_standing *const all[] = {&a, &b};
	struct ccl_verdict v;
	char err[CCL_ERR_LEN];

	(void)state;
	a = (struct ccl_standing){
		.kept = 3, .done = 5, .issued = 7, .n = 4, .digest = {1, 2, 3, 4}};
	b = (struct ccl_standing){.kept = 3, .done = 4, .issued = 6, .n = 3, .digest = {1, 2, 3}};
	assert_int_equal(ccl_resume_decide(all, 2, &v, err), 0);
	assert_int_equal(v.first, 4);
	assert_int_equal(v.known, 5);
	assert_int_equal(v.source, 0);
	b.digest[0] = 9; /* nobody needs that one */
	assert_int_equal(ccl_resume_decide(all, 2, &v, err), 0);
	b.digest[2] = 9;
	assert_int_equal(ccl_resume_decide(all, 2, &v, err), -EPROTO);
	assert_string_equal(
		err, "the ranks disagree: collective 5 of rank 1 is not that of rank 0");
	b.digest[2] = 3;
	a.kept = 5, a.n = 2;
	assert_int_equal(ccl_resume_decide(all, 2, &v, err), -ENODATA);
	assert_string_equal(
		err, "rank 0 has nothing any more of collective 4, which another waits for");
	a.kept = 6, a.n = 1;
	assert_int_equal(ccl_resume_decide(all, 2, &v, err), -EPROTO);
	assert_string_equal(err, "rank 0: where it stands makes no sense");
}

/* Groups per root tell a sender nothing of the others. */
static void refused(void **state)
{
	struct fab_opts opts = {.tree = fab_star4,
		.mode = CCL_MODE_2,
		.kind = CCL_SINGLE,
		.collectives = CCL_ALL_COLLECTIVES,
		.mtu = 256,
		.m = 4,
		.w = 4,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.seed = seed,
		.timeout_ns = TIMEOUT};
	struct fabric *fab = fab_create(&opts);

	(void)state;
	assert_int_equal(ccl_resume_enable(fab_comm(fab, 0)), -EOPNOTSUPP);
	assert_false(ccl_resume_may(fab_comm(fab, 0)));
	fab_destroy(fab);
}

/* A program's own end, and a process that is gone, are not to be mended. */
static void not_mended(void **state)
{
	struct fabric *fab = make(&fab_star4, CCL_MODE_2, CCL_MIXED, 0);

	(void)state;
	ccl_abort(fab_comm(fab, 0), "enough");
	assert_false(ccl_resume_may(fab_comm(fab, 0)));
	ccl_resume_deny(fab_comm(fab, 1));
	ccl_fail(fab_comm(fab, 1), -ECONNABORTED, "rank 2 has gone away");
	assert_false(ccl_resume_may(fab_comm(fab, 1)));
	fab_destroy(fab);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mode1),
		cmocka_unit_test(mode2),
		cmocka_unit_test(mode2_single),
		cmocka_unit_test(mode3),
		cmocka_unit_test(kept_is_bounded),
		cmocka_unit_test(decisions),
		cmocka_unit_test(refused),
		cmocka_unit_test(not_mended),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
