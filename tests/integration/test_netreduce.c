/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce end to end on virtual time: rings of RC connections, switches that put the sums into
 * them, links that lose, duplicate, reorder and corrupt. Run with a seed as argument to repeat. */
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
static uint64_t seed = 20263;

static const struct rf_faults bad_weather = {
	.loss = 0.01, .dup = 0.01, .reorder = 0.01, .corrupt = 0.002};

static struct rf_opts options(unsigned n_hosts, unsigned n_leaves)
{
	return (struct rf_opts){
		.n_hosts = n_hosts,
		.n_leaves = n_leaves,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.start_psn = 0xfffff0,
		.first_msg = 0xfffffff8,
		.seed = seed,
		.timeout_ns = 20 * second,
		.netreduce = true,
	};
}

static int32_t value(unsigned rank, uint64_t i, unsigned round)
{
	return (int32_t)((i * 2654435761u) ^ (rank * 40503u) ^ (round * 97u));
}

static void must(struct ring_fabric *f, unsigned n, int rc)
{
	if (rc == 0)
		return;
	for (unsigned r = 0; r < n; r++)
		fprintf(stderr, "rank %u: %s\n", r, ccl_ring_error(rf_ring(f, r)));
	fail_msg("%s, seed %llu", strerror(-rc), (unsigned long long)seed);
}

static int32_t *filled(unsigned rank, uint64_t count, unsigned round)
{
	int32_t *p = malloc(count * 4 + 1);

	for (uint64_t i = 0; i < count; i++)
		p[i] = value(rank, i, round);
	return p;
}

/* Sum in even rounds, maximum in odd ones, which are in place. */
static void allreduce(struct ring_fabric *f, unsigned n, uint64_t count, unsigned round)
{
	const bool odd = round % 2;
	int32_t *in[RF_MAX_HOSTS], *out[RF_MAX_HOSTS];
	struct ccl_req req[RF_MAX_HOSTS];
	uint64_t wrong = 0;

	for (unsigned r = 0; r < n; r++) {
		in[r] = filled(r, count, round);
		out[r] = odd ? in[r] : filled(r, count, round + 1);
		assert_int_equal(ccl_ring_iallreduce(rf_ring(f, r), in[r], out[r], count,
					 REDUCE_INT32, odd ? REDUCE_MAX : REDUCE_SUM, &req[r]),
			0);
	}
	must(f, n, rf_wait(f, req, 3600 * second));
	for (uint64_t i = 0; i < count; i++) {
		int32_t want = value(0, i, round);

		for (unsigned r = 1; r < n; r++) {
			const int32_t v = value(r, i, round);

			want = odd ? (v > want ? v : want)
				   : (int32_t)((uint32_t)want + (uint32_t)v);
		}
		for (unsigned r = 0; r < n; r++)
			wrong += out[r][i] != want;
	}
	assert_true(wrong == 0);
	for (unsigned r = 0; r < n; r++) {
		free(in[r]);
		if (!odd)
			free(out[r]);
	}
}

static void barrier(struct ring_fabric *f, unsigned n)
{
	struct ccl_req req[RF_MAX_HOSTS];

	for (unsigned r = 0; r < n; r++)
		assert_int_equal(ccl_ring_ibarrier(rf_ring(f, r), &req[r]), 0);
	must(f, n, rf_wait(f, req, 3600 * second));
}

/* All sizes around packet and message boundaries; messages and PSNs wrap on the way. */
static void test_sizes(void **state)
{
	static const uint64_t counts[] = {
		0, 1, 59, 60, 61, 123, 124, 125, 187, 251, 252, 253, 504, 505, 5000};
	static const uint16_t shapes[][2] = {{4, 8}, {1, 1}, {1, 4}, {3, 2}};

	(void)state;
	for (unsigned leaves = 0; leaves <= 2; leaves += 2)
		for (unsigned s = 0; s < 4; s++) {
			struct rf_opts opts = options(4, leaves);
			struct ring_fabric *f;

			opts.m = shapes[s][0];
			opts.w = shapes[s][1];
			f = rf_create(&opts);
			for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
				allreduce(f, 4, counts[i], 2 * i);
				allreduce(f, 4, counts[i], 2 * i + 1);
				barrier(f, 4);
			}
			assert_int_equal(rf_switch(f, 0)->ring->count[NR_C_DUP], 0);
			rf_destroy(f);
		}
}

static void lossy(unsigned n, unsigned leaves, uint64_t packets, bool psn_known)
{
	struct rf_opts opts = options(n, leaves);
	struct ring_fabric *f;
	struct nr_ring *r;

	opts.faults = bad_weather;
	opts.psn_known = psn_known;
	f = rf_create(&opts);
	for (unsigned round = 0; round < 4; round++)
		allreduce(f, n, packets / 4 * 64 - round, round);
	r = rf_switch(f, 0)->ring;
	assert_true(r->count[NR_C_COMPLETED] >= packets);
	assert_true(r->count[NR_C_DUP_ANSWERED] > 0);
	for (unsigned i = 0; i < n; i++)
		assert_true(rnic_count(rf_rnic(f, i), RNIC_C_RETRANSMITS) > 0);
	assert_true(rf_switch(f, leaves)->drop[NR_ICRC_BAD] > 0);
	assert_int_equal(rf_switch(f, 0)->drop[NR_DROP_AHEAD], 0);
	rf_destroy(f);
}

static void test_lossy_star(void **state)
{
	(void)state;
	lossy(4, 0, 20000, false);
	lossy(2, 0, 2000, true);
}

static void test_lossy_racks(void **state)
{
	(void)state;
	lossy(4, 2, 10000, false);
	lossy(9, 4, 2000, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_lossy_star),
		cmocka_unit_test(test_lossy_racks),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
