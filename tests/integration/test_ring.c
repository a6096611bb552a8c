/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of the host ring on virtual time, over links that lose, duplicate, reorder and
 * corrupt. Run with a seed as argument to repeat a run. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/integration/ring_fabric.h"

static const uint64_t second = 1000000000;
static uint64_t seed = 20262;

static const struct rf_faults bad_weather = {
	.loss = 0.01, .dup = 0.01, .reorder = 0.01, .corrupt = 0.002};

static struct rf_opts options(unsigned n_hosts)
{
	return (struct rf_opts){
		.n_hosts = n_hosts,
		.mtu = 256,
		.m = 4,
		.w = 4,
		.start_psn = 0xfffff0,
		.seed = seed,
		.timeout_ns = 20 * second,
	};
}

static int32_t value(unsigned rank, uint64_t i, unsigned round)
{
	return (int32_t)((i * 2654435761u) ^ (rank * 40503u) ^ (round * 97u));
}

static int32_t sum(unsigned n, uint64_t i, unsigned round)
{
	uint32_t s = 0;

	for (unsigned r = 0; r < n; r++)
		s += (uint32_t)value(r, i, round);
	return (int32_t)s;
}

static void must(struct ring_fabric *f, unsigned n, int rc)
{
	if (rc == 0)
		return;
	for (unsigned r = 0; r < n; r++)
		fprintf(stderr, "rank %u: %s\n", r, ccl_ring_error(rf_ring(f, r)));
	fail_msg("%s, seed %llu", strerror(-rc), (unsigned long long)seed);
}

struct buffers {
	int32_t *in[RF_MAX_HOSTS], *out[RF_MAX_HOSTS];
};

static void make_buffers(struct buffers *b, unsigned n, uint64_t in, uint64_t out, unsigned round)
{
	for (unsigned r = 0; r < n; r++) {
		b->in[r] = malloc(in * 4 + 1);
		b->out[r] = malloc(out * 4 + 1);
		for (uint64_t i = 0; i < in; i++)
			b->in[r][i] = value(r, i, round);
		memset(b->out[r], 0x5a, out * 4);
	}
}

static void free_buffers(struct buffers *b, unsigned n)
{
	for (unsigned r = 0; r < n; r++) {
		free(b->in[r]);
		free(b->out[r]);
	}
}

static void allreduce(struct ring_fabric *f, unsigned n, uint64_t count, unsigned round)
{
	const bool in_place = round % 2;
	struct ccl_req req[RF_MAX_HOSTS];
	struct buffers b;

	make_buffers(&b, n, count, count, round);
	for (unsigned r = 0; r < n; r++)
		assert_int_equal(
			ccl_ring_iallreduce(rf_ring(f, r), b.in[r], in_place ? b.in[r] : b.out[r],
				count, REDUCE_INT32, REDUCE_SUM, &req[r]),
			0);
	must(f, n, rf_wait(f, req, 3600 * second));
	for (unsigned r = 0; r < n; r++)
		for (uint64_t i = 0; i < count; i++)
			assert_int_equal((in_place ? b.in : b.out)[r][i], sum(n, i, round));
	free_buffers(&b, n);
}

static void reduce(struct ring_fabric *f, unsigned n, uint64_t count, unsigned root, unsigned round)
{
	struct ccl_req req[RF_MAX_HOSTS];
	struct buffers b;

	make_buffers(&b, n, count, count, round);
	for (unsigned r = 0; r < n; r++)
		assert_int_equal(
			ccl_ring_ireduce(rf_ring(f, r), b.in[r], r == root ? b.out[r] : NULL, count,
				REDUCE_INT32, REDUCE_SUM, root, &req[r]),
			0);
	must(f, n, rf_wait(f, req, 3600 * second));
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(b.out[root][i], sum(n, i, round));
	for (unsigned r = 0; r < n; r++)
		for (uint64_t i = 0; i < count; i++)
			assert_int_equal(b.in[r][i], value(r, i, round));
	free_buffers(&b, n);
}

static void broadcast(
	struct ring_fabric *f, unsigned n, uint64_t count, unsigned root, unsigned round)
{
	struct ccl_req req[RF_MAX_HOSTS];
	struct buffers b;

	make_buffers(&b, n, count, count, round);
	for (unsigned r = 0; r < n; r++)
		assert_int_equal(ccl_ring_ibroadcast(rf_ring(f, r), r == root ? b.in[r] : b.out[r],
					 count * 4, root, &req[r]),
			0);
	must(f, n, rf_wait(f, req, 3600 * second));
	for (unsigned r = 0; r < n; r++)
		for (uint64_t i = 0; i < count && r != root; i++)
			assert_int_equal(b.out[r][i], value(root, i, round));
	free_buffers(&b, n);
}

static void reduce_scatter(struct ring_fabric *f, unsigned n, uint64_t count, unsigned round)
{
	struct ccl_req req[RF_MAX_HOSTS];
	struct buffers b;

	make_buffers(&b, n, count * n, count, round);
	for (unsigned r = 0; r < n; r++)
		assert_int_equal(ccl_ring_ireduce_scatter(rf_ring(f, r), b.in[r], b.out[r], count,
					 REDUCE_INT32, REDUCE_SUM, &req[r]),
			0);
	must(f, n, rf_wait(f, req, 3600 * second));
	for (unsigned r = 0; r < n; r++)
		for (uint64_t i = 0; i < count; i++)
			assert_int_equal(b.out[r][i], sum(n, r * count + i, round));
	free_buffers(&b, n);
}

static void allgather(struct ring_fabric *f, unsigned n, uint64_t count, unsigned round)
{
	struct ccl_req req[RF_MAX_HOSTS];
	struct buffers b;

	make_buffers(&b, n, count, count * n, round);
	for (unsigned r = 0; r < n; r++)
		assert_int_equal(
			ccl_ring_iallgather(rf_ring(f, r), b.in[r], b.out[r], count * 4, &req[r]),
			0);
	must(f, n, rf_wait(f, req, 3600 * second));
	for (unsigned r = 0; r < n; r++)
		for (unsigned from = 0; from < n; from++)
			for (uint64_t i = 0; i < count; i++)
				assert_int_equal(b.out[r][from * count + i], value(from, i, round));
	free_buffers(&b, n);
}

static void barrier(struct ring_fabric *f, unsigned n)
{
	struct ccl_req req[RF_MAX_HOSTS];

	for (unsigned r = 0; r < n; r++)
		assert_int_equal(ccl_ring_ibarrier(rf_ring(f, r), &req[r]), 0);
	must(f, n, rf_wait(f, req, 3600 * second));
}

static const uint64_t counts[] = {0, 1, 2, 5, 255, 256, 257, 1023, 1024, 1025, 5000};

static void test_sizes(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 5; n++) {
		struct rf_opts opts = options(n);
		struct ring_fabric *f = rf_create(&opts);

		for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			allreduce(f, n, counts[i], 2 * i);
			allreduce(f, n, counts[i], 2 * i + 1);
			reduce(f, n, counts[i], i % n, i);
			broadcast(f, n, counts[i], (i + 1) % n, i);
			barrier(f, n);
			reduce_scatter(f, n, counts[i], i);
			allgather(f, n, counts[i], i);
		}
		rf_destroy(f);
	}
}

/* Any collective after any other, on links in bad weather. */
static void lossy(unsigned n, uint16_t m, uint16_t w, unsigned rounds)
{
	struct rf_opts opts = options(n);
	struct ring_fabric *f;

	opts.faults = bad_weather;
	opts.m = m;
	opts.w = w;
	f = rf_create(&opts);
	for (unsigned i = 0; i < rounds; i++) {
		const uint64_t count = rf_random(f) % 4000;
		const unsigned root = (unsigned)(rf_random(f) % n);

		switch (rf_random(f) % 6) {
		case 0:
			reduce(f, n, count, root, i);
			break;
		case 1:
			broadcast(f, n, count, root, i);
			break;
		case 2:
			barrier(f, n);
			break;
		case 3:
			reduce_scatter(f, n, count, i);
			break;
		case 4:
			allgather(f, n, count, i);
			break;
		default:
			allreduce(f, n, count, i);
		}
	}
	for (unsigned r = 0; r < n; r++)
		assert_true(rnic_count(rf_rnic(f, r), RNIC_C_RETRANSMITS) > 0);
	rf_destroy(f);
}

static void test_lossy(void **state)
{
	(void)state;
	lossy(4, 4, 4, 60);
	lossy(3, 1, 1, 20);
	lossy(7, 2, 5, 20);
}

/* Many issued at once: they finish in order and each is right. */
static void test_queued(void **state)
{
	enum { N = 3, OPS = 20 };
	struct rf_opts opts = options(N);
	static int32_t data[N][OPS][300];
	struct ccl_req req[RF_MAX_HOSTS] = {{0}};
	struct ring_fabric *f;

	(void)state;
	opts.faults = bad_weather;
	f = rf_create(&opts);
	for (unsigned op = 0; op < OPS; op++)
		for (unsigned r = 0; r < N; r++) {
			for (unsigned i = 0; i < 300; i++)
				data[r][op][i] = value(r, i, op);
			assert_int_equal(
				ccl_ring_iallreduce(rf_ring(f, r), data[r][op], data[r][op], 300,
					REDUCE_INT32, REDUCE_SUM, &req[r]),
				0);
		}
	must(f, N, rf_wait(f, req, 60 * second));
	for (unsigned op = 0; op < OPS; op++)
		for (unsigned r = 0; r < N; r++)
			for (unsigned i = 0; i < 300; i++)
				assert_int_equal(data[r][op][i], sum(N, i, op));
	rf_destroy(f);
}

/* A rank that calls late holds its neighbour's slots full, but nothing is written over. */
static void test_late_rank(void **state)
{
	enum { N = 3, COUNT = 20000 };
	struct rf_opts opts = options(N);
	struct ccl_req req[RF_MAX_HOSTS];
	struct ring_fabric *f = rf_create(&opts);
	struct buffers b;

	(void)state;
	make_buffers(&b, N, COUNT, COUNT, 5);
	for (unsigned late = 0; late < 2; late++) {
		for (unsigned r = 0; r < N; r++)
			if ((r == 1) == late)
				assert_int_equal(
					ccl_ring_ibroadcast(rf_ring(f, r),
						r == 0 ? b.in[0] : b.out[r], COUNT * 4, 0, &req[r]),
					0);
		if (!late)
			rf_run(f, second);
	}
	must(f, N, rf_wait(f, req, 60 * second));
	for (unsigned r = 1; r < N; r++)
		for (unsigned i = 0; i < COUNT; i++)
			assert_int_equal(b.out[r][i], value(0, i, 5));
	free_buffers(&b, N);
	rf_destroy(f);
}

/* Sent from registered memory, and refused arguments. */
static void test_arguments(void **state)
{
	static int32_t a[4000], b[4000];
	struct rf_opts opts = options(2);
	struct ring_fabric *f = rf_create(&opts);
	struct ccl_ring *r = rf_ring(f, 0);
	struct ccl_ring_info info;
	struct ccl_req req;

	(void)state;
	assert_int_equal(ccl_ring_register(r, a, sizeof(a)), 0);
	assert_int_equal(ccl_ring_register(r, a + 1, 8), -EEXIST);
	assert_int_equal(ccl_ring_deregister(r, b), -ENOENT);
	assert_int_equal(
		ccl_ring_iallreduce(r, a, a + 1, 10, REDUCE_INT32, REDUCE_SUM, &req), -EINVAL);
	assert_int_equal(
		ccl_ring_iallreduce(r, a, b, 10, REDUCE_INT32, REDUCE_NONE, &req), -EOPNOTSUPP);
	assert_int_equal(ccl_ring_ibroadcast(r, a, 10, 2, &req), -EINVAL);
	assert_int_equal(ccl_ring_ireduce(r, a, b, 10, REDUCE_INT32, REDUCE_SUM, 2, &req), -EINVAL);
	assert_int_equal(ccl_ring_test(r, (struct ccl_req){0}), -EINVAL);
	allreduce(f, 2, 4000, 1);
	ccl_ring_query(r, &info);
	assert_true(info.staged_sends > 0);
	assert_int_equal(ccl_ring_deregister(r, a), 0);
	rf_destroy(f);
}

/* The switch dies: every rank fails within its bound and names a neighbour. */
static void test_dead_switch(void **state)
{
	struct rf_opts opts = options(3);
	static int32_t data[3][100000];
	struct ccl_req req[RF_MAX_HOSTS];
	struct ring_fabric *f;
	uint64_t died;

	(void)state;
	opts.timeout_ns = 2 * second;
	f = rf_create(&opts);
	for (unsigned r = 0; r < 3; r++)
		assert_int_equal(ccl_ring_iallreduce(rf_ring(f, r), data[r], data[r], 100000,
					 REDUCE_INT32, REDUCE_SUM, &req[r]),
			0);
	assert_int_equal(rf_wait(f, req, 100000), -ETIME);
	rf_switch(f, 0)->dead = true;
	died = rf_now(f);
	assert_true(rf_wait(f, req, 10 * second) < 0);
	rf_run(f, 2 * second);
	assert_true(rf_now(f) - died <= 5 * second);
	for (unsigned r = 0; r < 3; r++) {
		assert_non_null(strstr(ccl_ring_error(rf_ring(f, r)), "10.77.0.1"));
		assert_true(ccl_ring_test(rf_ring(f, r), req[r]) < 0);
	}
	rf_destroy(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_lossy),
		cmocka_unit_test(test_queued),
		cmocka_unit_test(test_late_rank),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_dead_switch),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
