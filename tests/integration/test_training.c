/* SPDX-License-Identifier: BSD-3-Clause */
/* A convolutional network trained on a simulated fabric, with every way to add the gradients:
 * AllReduce, or weights in shards with AllGather and ReduceScatter. Sums are in fixed point, so the
 * weights have to be the same bits whatever adds them. Prints what docs/training.md has: time of a
 * step's collectives and bytes on a host's link, on virtual time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/trainer.h"
#include "tests/integration/fabric.h"

enum { RANKS = 4, BATCH = 128, STEPS = 12 };

static const uint64_t second = 1000000000;
static struct digit *digit;
static unsigned n_digits;

struct ways {
	const char *name;
	enum ccl_mode mode;
	enum ccl_kind kind;
	bool sharded;
	/* Of a step: microseconds in collectives, KB on host 0's link in both directions, on all
	 * links. Recorded: they may be 5 % off. */
	double us, host_kb, all_kb;
};

/* Two leaves of two ranks, 100 Gb/s. */
static const struct ways ways[] = {
	{"Mode-I", CCL_MODE_1, CCL_MIXED, false, 12.50, 86.9, 521.7},
	{"Mode-II", CCL_MODE_2, CCL_MIXED, false, 15.66, 86.9, 517.9},
	{"Mode-III", CCL_MODE_3, CCL_MIXED, false, 11.71, 86.9, 521.7},
	{"NetReduce", CCL_MODE_NETREDUCE, CCL_MIXED, false, 23.98, 88.6, 706.4},
	{"ring", CCL_MODE_RING, CCL_MIXED, false, 47.75, 131.5, 788.9},
	{"Mode-I", CCL_MODE_1, CCL_MIXED, true, 53.42, 90.3, 541.9},
	{"Mode-II", CCL_MODE_2, CCL_MIXED, true, 233.45, 91.4, 543.3},
	{"Mode-II", CCL_MODE_2, CCL_SINGLE, true, 36.84, 88.7, 532.1},
	{"Mode-III", CCL_MODE_3, CCL_MIXED, true, 23.23, 90.3, 542.1},
	{"Mode-III", CCL_MODE_3, CCL_SINGLE, true, 20.84, 88.7, 532.3},
	{"ring", CCL_MODE_RING, CCL_MIXED, true, 60.49, 131.5, 789.0},
};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

struct job {
	struct fabric *fab;
	struct trainer rank[RANKS];
	uint64_t ns;
};

static struct trainer_conf conf_of(unsigned rank, bool sharded)
{
	return (struct trainer_conf){.model = model_find("cnn"),
		.rank = rank,
		.n_ranks = RANKS,
		.sharded = sharded,
		.fixed = true,
		.batch = BATCH,
		.seed = 1,
		.rate = 0.1f,
		.momentum = 0.9f};
}

static void open_job(struct job *j, const struct ways *w, double loss)
{
	const struct fab_opts opts = {.tree = fab_tree_2x2,
		.mode = w->mode,
		.kind = w->kind,
		.collectives = CCL_ALL_COLLECTIVES,
		.mtu = 1024,
		.m = 4,
		.w = 64,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.start_psn = 0xffff00,
		.seed = 1,
		.timeout_ns = 60 * second,
		.link_gbps = 100,
		.faults = {.loss = loss}};

	*j = (struct job){.fab = fab_create(&opts)};
	for (unsigned r = 0; r < RANKS; r++) {
		const struct trainer_conf conf = conf_of(r, w->sharded);

		assert_int_equal(trainer_open(&j->rank[r], &conf, digit, n_digits), 0);
		trainer_begin(&j->rank[r]);
		trainer_epoch(&j->rank[r]);
	}
}

static void close_job(struct job *j)
{
	fab_destroy(j->fab);
	for (unsigned r = 0; r < RANKS; r++)
		trainer_close(&j->rank[r]);
}

static int issue(struct job *j, unsigned r, enum ccl_collective op, struct ccl_req *req)
{
	struct ccl_ring *ring = fab_ring(j->fab, r);
	struct ccl_comm *comm = fab_comm(j->fab, r);
	struct trainer *t = &j->rank[r];

	if (op == CCL_ALLREDUCE)
		return ring ? ccl_ring_iallreduce(ring, t->grad, t->grad, t->n_sum, REDUCE_INT32,
				      REDUCE_SUM, req)
			    : ccl_iallreduce(comm, t->grad, t->grad, t->n_sum, REDUCE_INT32,
				      REDUCE_SUM, req);
	if (op == CCL_REDUCE_SCATTER)
		return ring ? ccl_ring_ireduce_scatter(ring, t->grad, t->part, t->block,
				      REDUCE_INT32, REDUCE_SUM, req)
			    : ccl_ireduce_scatter(comm, t->grad, t->part, t->block, REDUCE_INT32,
				      REDUCE_SUM, req);
	return ring ? ccl_ring_iallgather(ring, t->own, t->param, t->block * sizeof(float), req)
		    : ccl_iallgather(comm, t->own, t->param, t->block, REDUCE_FP32, req);
}

static void collective(struct job *j, enum ccl_collective op)
{
	const uint64_t since = sim_now(j->fab->sim);
	struct ccl_req req[RANKS];

	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(issue(j, r, op, &req[r]), 0);
	fab_must(j->fab, fab_wait(j->fab, req, 60 * second));
	j->ns += sim_now(j->fab->sim) - since;
}

static void step(struct job *j, bool sharded, unsigned first)
{
	const unsigned n = trainer_batch(&j->rank[0], first);

	if (sharded)
		collective(j, CCL_ALLGATHER);
	for (unsigned r = 0; r < RANKS; r++)
		trainer_gradient(&j->rank[r], first, n);
	collective(j, sharded ? CCL_REDUCE_SCATTER : CCL_ALLREDUCE);
	for (unsigned r = 0; r < RANKS; r++) {
		struct trainer *t = &j->rank[r];

		trainer_step(t, sharded ? t->part : t->grad, n);
	}
}

static void run(struct job *j, bool sharded)
{
	for (unsigned s = 0; s < STEPS; s++)
		step(j, sharded, s * BATCH);
}

/* The same steps in one place: the weights' checksum. */
static uint32_t alone(double *loss)
{
	const struct trainer_conf conf = conf_of(0, false);
	uint32_t sum;
	struct trainer t;

	assert_int_equal(trainer_open(&t, &conf, digit, n_digits), 0);
	trainer_begin(&t);
	trainer_epoch(&t);
	for (unsigned first = 0; first < STEPS * BATCH; first += BATCH) {
		const unsigned n = trainer_batch(&t, first);

		trainer_gradient(&t, first, n);
		for (unsigned r = 1; r < RANKS; r++) {
			trainer_share(&t, r, first, n, t.part);
			trainer_add(&t, t.grad, t.part);
		}
		trainer_step(&t, t.grad, n);
	}
	sum = trainer_checksum(&t);
	*loss = trainer_loss(&t);
	trainer_close(&t);
	return sum;
}

static void same_weights(struct job *j, const struct ways *w)
{
	double loss;
	const uint32_t expected = alone(&loss);

	if (w->sharded)
		collective(j, CCL_ALLGATHER);
	for (unsigned r = 0; r < RANKS; r++) {
		if (trainer_checksum(&j->rank[r]) != expected)
			fail_msg("%s%s: rank %u has other weights", w->name,
				w->sharded ? ", in shards" : "", r);
		assert_true(trainer_loss(&j->rank[r]) == loss);
	}
	assert_true(loss < 2.3); /* ln 10: what knows nothing has */
}

static bool near(double measured, double recorded)
{
	return fabs(measured - recorded) <= 0.05 * recorded;
}

static uint64_t host_bytes(struct job *j)
{
	const unsigned up = sim_host_link(j->fab->sim, 0, 0);

	return sim_link(j->fab->sim, up)->count[SIM_L_BYTES] +
	       sim_link(j->fab->sim, up + 1)->count[SIM_L_BYTES];
}

static void ways_agree(void **state)
{
	bool off = false;

	(void)state;
	printf("%-10s %-7s %-7s %8s %8s %8s\n", "", "", "", "us", "host KB", "all KB");
	for (unsigned i = 0; i < N_WAYS; i++) {
		const struct ways *w = &ways[i];
		double us, host, all;
		struct job j;

		open_job(&j, w, 0);
		host = -(double)host_bytes(&j);
		all = -(double)fab_link_bytes(j.fab);
		run(&j, w->sharded);
		us = (double)j.ns / 1e3 / STEPS;
		host = (host + (double)host_bytes(&j)) / 1e3 / STEPS;
		all = (all + (double)fab_link_bytes(j.fab)) / 1e3 / STEPS;
		printf("%-10s %-7s %-7s %8.2f %8.1f %8.1f\n", w->name, w->sharded ? "shards" : "",
			w->kind == CCL_SINGLE ? "single" : "", us, host, all);
		off |= !near(us, w->us) || !near(host, w->host_kb) || !near(all, w->all_kb);
		same_weights(&j, w);
		close_job(&j);
	}
	assert_false(off);
}

/* What is lost and sent again changes no bit. */
static void losses_change_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_WAYS; i++) {
		struct job j;

		open_job(&j, &ways[i], 0.005);
		run(&j, ways[i].sharded);
		same_weights(&j, &ways[i]);
		close_job(&j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_agree),
		cmocka_unit_test(losses_change_nothing),
	};
	char err[256];
	const int n = digits_load(TEST_DATA "/digits.csv.gz", &digit, err, sizeof(err));
	int rc;

	if (n < 0) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	n_digits = (unsigned)n;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	free(digit);
	return rc;
}
