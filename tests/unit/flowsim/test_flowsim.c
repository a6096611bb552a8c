/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs on small fabrics, worked out by hand; what is conserved; that nothing is left behind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/flowsim/paper.h"
#include "tests/unit/flowsim/flowsim_test.h"

static const uint64_t S = 1000000000;
static const double LINE = 12.5; /* bytes per nanosecond at 100 Gb/s */

/* Two pods of two leaves with four hosts, two spines of a core each. */
static const struct fs_shape small = {2, 2, 4, 2, 1, 100000000000, 8, (uint64_t)1 << 40};

static struct fs_job job_of(unsigned gpus, unsigned tp, double tp_s, double dp_s)
{
	return (struct fs_job){.gpus = gpus,
		.tp = tp,
		.iterations = 1,
		.compute_ns = S,
		.tp_bytes = tp_s * LINE * 1e9,
		.dp_bytes = dp_s * LINE * 1e9};
}

static struct fs_result *run(const struct fs_shape *shape, struct fs_config config,
	const struct fs_job *job, unsigned n, struct fs_totals *totals)
{
	struct fs_result *result;
	char err[FS_ERR_LEN];

	assert_int_equal(fs_run_jobs(shape, &config, job, n, &result, totals, NULL, NULL, err), 0);
	return result;
}

/* Whole seconds; rounding is less than a microsecond. */
static void takes(const struct fs_result *r, double seconds)
{
	double got = (double)(r->end_ns - r->start_ns) / 1e9;

	if (got < seconds - 1e-6 || got > seconds + 1e-6)
		fail_msg("%.9f s, not %.9f", got, seconds);
}

/* A ring moves twice the buffer, a tree once. */
static void one_leaf(void **state)
{
	struct fs_job job = job_of(4, 4, 3, 0);
	struct fs_totals t;
	struct fs_result *r = run(&small, (struct fs_config){.policy = NULL}, &job, 1, &t);

	(void)state;
	takes(r, 1 + 6);
	assert_int_equal(r->groups, 1);
	assert_int_equal(r->in_network, 0);
	free(r);
	r = run(&small, (struct fs_config){.policy = &mgr_policy_spatial}, &job, 1, &t);
	takes(r, 1 + 3);
	assert_int_equal(r->in_network, 1);
	assert_int_equal(t.peak_groups, 1);
	assert_true(t.mean_groups == 1);
	free(r);
	/* Held for the collective alone: 3 of 4 seconds. */
	r = run(&small, (struct fs_config){.policy = &mgr_policy_temporal}, &job, 1, &t);
	takes(r, 1 + 3);
	assert_true(t.mean_groups > 0.7499 && t.mean_groups < 0.7501);
	free(r);
	r = run(&small, (struct fs_config){.exact = true}, &job, 1, &t);
	takes(r, 1 + 2 * 3.0 * 3 / 4);
	free(r);
	/* 16 Tb/s is 160 links. */
	r = run(&small, (struct fs_config){.scaleup = true}, &job, 1, &t);
	takes(r, 1 + 6.0 / 160);
	assert_int_equal(r->groups, 0);
	free(r);
	r = run(&small, (struct fs_config){.scaleup = true, .scaleup_inc = true}, &job, 1, &t);
	takes(r, 1 + 3.0 / 160);
	free(r);
}

/* Four groups of two over two uplinks: two rings on each, at half the rate. */
static void uplinks_are_shared(void **state)
{
	struct fs_job job = job_of(8, 4, 0, 1);
	struct fs_shape narrow = small;
	struct fs_totals t;
	struct fs_result *r = run(&small, (struct fs_config){.policy = NULL}, &job, 1, &t);

	(void)state;
	takes(r, 1 + 2 * 2);
	assert_int_equal(r->groups, 4);
	free(r);
	/* Two trees, edge-disjoint, and beside each a ring: when the tree is done the ring has all.
	 */
	r = run(&small, (struct fs_config){.policy = &mgr_policy_edt}, &job, 1, &t);
	takes(r, 1 + 2 + 1);
	assert_int_equal(r->in_network, 2);
	assert_int_equal(t.refused, 2);
	free(r);
	r = run(&small, (struct fs_config){.policy = &mgr_policy_spatial}, &job, 1, &t);
	takes(r, 1 + 2);
	free(r);
	/* One group per switch: the leaves are full after the first. */
	narrow.slots = 1;
	r = run(&narrow, (struct fs_config){.policy = &mgr_policy_temporal}, &job, 1, &t);
	assert_int_equal(r->in_network, 1);
	assert_int_equal(t.peak_groups, 1);
	takes(r, 1 + 4); /* the other spine has two rings */
	free(r);
}

/* 16 GPUs, four at a time: the fifth waits for the first, in order. */
static void queue(void **state)
{
	struct fs_job job[6];
	struct fs_totals t;
	struct fs_result *r;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		job[i] = job_of(4, 4, i == 0 ? 2 : 4, 0);
		job[i].submit_ns = i * S / 10;
	}
	job[5].gpus = 4;
	r = run(&small, (struct fs_config){.policy = NULL}, job, 6, &t);
	takes(&r[0], 5);
	assert_int_equal(r[4].start_ns, r[0].end_ns);
	assert_int_equal(r[5].start_ns, r[1].end_ns);
	assert_int_equal(r[5].submit_ns, 5 * S / 10);
	assert_int_equal(t.now_ns, r[5].end_ns);
	free(r);
}

static void refused(void **state)
{
	struct fs_job job[2] = {job_of(4, 4, 1, 0), job_of(4, 4, 1, 0)};
	struct fs_shape shape = small;
	struct fs_fabric *f;
	struct fs_sim *sim;
	struct fs_config config = {.policy = NULL};
	char err[FS_ERR_LEN];

	(void)state;
	shape.cores = 0;
	assert_int_equal(fs_fabric_new(&shape, &f, err), -EINVAL);
	assert_string_equal(err, "cores: wants 1 to 1000");
	shape = small;
	shape.pods = 1000;
	shape.hosts = 100;
	assert_int_equal(fs_fabric_new(&shape, &f, err), -EINVAL);
	assert_int_equal(fs_fabric_new(&small, &f, err), 0);
	job[1].gpus = 20;
	assert_int_equal(fs_sim_new(f, &config, job, 2, &sim, err), -EINVAL);
	assert_string_equal(
		err, "job 1: gpus: wants whole groups of tp, and no more than there are");
	job[1].gpus = 6;
	assert_int_equal(fs_sim_new(f, &config, job, 2, &sim, err), -EINVAL);
	job[1].gpus = 4;
	job[1].tp = 2;
	assert_int_equal(fs_sim_new(f, &config, job, 2, &sim, err), -EINVAL);
	job[1].tp = 4;
	job[0].submit_ns = 1;
	assert_int_equal(fs_sim_new(f, &config, job, 2, &sim, err), -EINVAL);
	job[0].submit_ns = 0;
	job[0].tp_bytes = -1;
	assert_int_equal(fs_sim_new(f, &config, job, 2, &sim, err), -EINVAL);
	fs_fabric_free(f);
}

static void empty(const struct fs_fabric *f)
{
	for (unsigned i = 0; i < mgr_graph_bound(f->g); i++)
		assert_int_equal(mgr_book_switch_holders(f->b, i), 0);
	for (unsigned i = 0; i < mgr_graph_link_bound(f->g); i++) {
		assert_int_equal(mgr_book_link_holders(f->b, i), 0);
		assert_int_equal(fs_water_load(f->water, 2 * i), 0);
		assert_int_equal(fs_water_load(f->water, 2 * i + 1), 0);
	}
}

/* After each event no link has more than it can and no switch more groups than it has; in the end
 * every buffer has been reduced and nothing is held. Half-way, too, if it is taken down there. */
static void nothing_is_left(void **state)
{
	uint64_t random = 71;

	(void)state;
	for (unsigned k = 0; k < 24; k++) {
		struct fs_shape shape = small;
		struct fs_config config = {.policy = fs_setting_policy(k % FS_SETTINGS),
			.hashed = k % 3 == 0,
			.scatter = k % 2 == 0,
			.seed = k};
		struct fs_job job[20];
		struct fs_fabric *f;
		struct fs_sim *sim;
		char err[FS_ERR_LEN];
		unsigned stop = k % 5 == 0 ? 40 : UINT32_MAX, steps = 0;

		shape.slots = 1 + test_random(&random) % 4;
		for (unsigned i = 0; i < 20; i++) {
			job[i] = job_of(2 * (1 + test_random(&random) % 8), 2,
				test_random(&random) % 4, test_random(&random) % 4);
			job[i].iterations = test_random(&random) % 4;
			job[i].submit_ns = i * S;
		}
		assert_int_equal(fs_fabric_new(&shape, &f, err), 0);
		assert_int_equal(fs_sim_new(f, &config, job, 20, &sim, err), 0);
		while (steps++ < stop && fs_sim_step(sim) == 1) {
			for (unsigned i = 0; i < 2 * mgr_graph_link_bound(f->g); i++)
				assert_true(fs_water_used(f->water, i) <= LINE * (1 + 1e-9));
			for (unsigned i = 0; i < mgr_graph_bound(f->g); i++)
				assert_true(mgr_book_switch_holders(f->b, i) <= shape.slots);
		}
		for (unsigned i = 0; stop == UINT32_MAX && i < 20; i++) {
			const struct fs_result *r = fs_sim_result(sim, i);
			unsigned blocks = job[i].gpus / 2,
				 tensor = job[i].tp_bytes > 0 ? blocks : 0;
			unsigned data = blocks > 1 && job[i].dp_bytes > 0 ? 2 : 0;

			assert_true(r->end_ns >= r->start_ns && r->start_ns >= r->submit_ns);
			assert_int_equal(r->groups, job[i].iterations * (tensor + data));
			assert_true(r->bytes ==
				    job[i].iterations *
					    (tensor * job[i].tp_bytes + data * job[i].dp_bytes));
			assert_true(r->in_network <= r->groups);
			assert_true(config.policy || r->in_network == 0);
		}
		assert_true(stop < UINT32_MAX || fs_sim_ended(sim) == 20);
		fs_sim_free(sim);
		empty(f);
		fs_fabric_free(f);
	}
}

static void same_every_time(void **state)
{
	struct fs_job job[30];
	struct fs_totals t[3];
	struct fs_result *r[3];
	struct fs_shape shape = fs_shape_128;

	(void)state;
	shape.slots = 2;
	assert_int_equal(fs_trace_make(1, 5, 30, 128, 2, job), 0);
	for (unsigned k = 0; k < 3; k++)
		r[k] = run(&shape,
			(struct fs_config){.policy = &mgr_policy_temporal,
				.hashed = true,
				.scatter = true,
				.seed = k / 2},
			job, 30, &t[k]);
	assert_memory_equal(r[0], r[1], 30 * sizeof(*r[0]));
	assert_memory_equal(&t[0], &t[1], sizeof(t[0]));
	assert_memory_not_equal(r[0], r[2], 30 * sizeof(*r[0]));
	for (unsigned k = 0; k < 3; k++)
		free(r[k]);
}

/* The sizes are in the paper's proportions. */
static void traces(void **state)
{
	enum { N = 20000 };
	static const unsigned gpus[] = {8, 16, 32, 64, 128}, percent[] = {30, 30, 25, 10, 5};
	struct fs_job *job = calloc(N, sizeof(*job));
	double busy = 0;

	(void)state;
	assert_int_equal(fs_trace_make(1, 9, N, 2048, 0.5, job), 0);
	for (unsigned k = 0; k < 5; k++) {
		unsigned n = 0;

		for (unsigned i = 0; i < N; i++)
			n += job[i].gpus == gpus[k];
		assert_in_range(n, N * percent[k] / 100 * 19 / 20, N * percent[k] / 100 * 21 / 20);
	}
	for (unsigned i = 0; i < N; i++)
		busy += (double)job[i].gpus * job[i].iterations *
			(double)fs_job_alone_ns(&job[i], LINE);
	busy /= 2048.0 * (double)job[N - 1].submit_ns;
	assert_true(busy > 0.48 && busy < 0.52);
	assert_int_equal(fs_trace_make(2, 9, N, 2048, 0.5, job), 0);
	assert_int_equal(fs_trace_make(3, 9, N, 2048, 0.5, job), -EINVAL);
	assert_int_equal(fs_trace_make(1, 9, N, 2048, 0, job), -EINVAL);
	free(job);
}

int run_flowsim_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_leaf),
		cmocka_unit_test(uplinks_are_shared), cmocka_unit_test(queue),
		cmocka_unit_test(refused), cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(same_every_time), cmocka_unit_test(traces)};

	return cmocka_run_group_tests_name("flowsim", tests, NULL, NULL);
}
