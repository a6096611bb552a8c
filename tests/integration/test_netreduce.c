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

/* ---- hostile input ---- */

/* Copies of what is on the wire, changed: by strangers, by members who lie, by accident. Only what
 * has a right ICRC and comes from the right address could do harm. */
static void storm(void *arg, struct ring_fabric *f, const uint8_t *frame, size_t len)
{
	const unsigned n_sw = *(const unsigned *)arg;
	uint8_t copy[RF_FRAME], payload[RF_FRAME];
	uint64_t dice = rf_random(f) % 160; /* what is forwarded comes by here again */
	struct wire_pkt pkt;
	struct wire_flow flow;
	struct wire_hdr hdr;
	struct ina_hdr ina;
	size_t n = len;

	if (dice > 7 || wire_parse(frame, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE)
		return;
	if (!pkt.src.b[14] && pkt.src.b[15] & 0x80)
		return; /* a stranger's, made below: do not make a member's of it */
	memcpy(copy, frame, len);
	memcpy(payload, frame + pkt.pay_off, pkt.pay_len);
	wire_unbuild(frame, &pkt, &flow, &hdr);
	switch (dice) {
	case 0: /* truncated */
		n = 1 + rf_random(f) % len;
		break;
	case 1: /* lying IP length */
		copy[pkt.l3_off + 3] ^= (uint8_t)(1 + rf_random(f) % 255);
		break;
	case 2: /* bad payload or ICRC */
		copy[pkt.pay_off + rf_random(f) % (len - pkt.pay_off)] ^= 0x10;
		break;
	case 3: /* a connection that is not registered */
		hdr.dqpn ^= 1u << rf_random(f) % 24;
		break;
	case 4: /* a stranger's address */
		flow.src.b[15] ^= 0x80;
		break;
	case 5: /* far away in PSN */
		hdr.psn = psn_add(hdr.psn, (1 << 20) + (int32_t)(rf_random(f) % (1 << 21)));
		break;
	case 6: /* a header that lies about ring, rank, length, type */
		if (!(pkt.flags & ROCE_F_FIRST) || pkt.pay_len < INA_LEN ||
			!ina_decode(payload, &ina))
			return;
		payload[4 + rf_random(f) % 4] ^= 1;
		payload[12] ^= (uint8_t)(rf_random(f) % 2);
		break;
	default: /* a message number far beyond the window */
		if (!(pkt.flags & ROCE_F_FIRST) || pkt.pay_len < INA_LEN ||
			!ina_decode(payload, &ina))
			return;
		payload[9 + 2 * (rf_random(f) % 2)] ^= 0x80; /* or far behind it */
	}
	if (dice > 2)
		n = (size_t)wire_build_frame(copy, sizeof(copy), &flow, &hdr, payload, pkt.pay_len);
	/* Members lie to their own switch; what passes by another one is the receiver's business.
	 */
	if (dice > 5 && flow.src.b[14]) /* between switches */
		rf_inject(f, flow.dst.b[15] - 1u, copy, n);
	else if (dice > 5 && flow.src.b[15] < 14) /* not a stranger, who came by here before */
		rf_inject(f, rf_leaf_of(f, flow.src.b[15] - 10u), copy, n);
	for (unsigned sw = 0; sw < n_sw && dice <= 5; sw++)
		rf_inject(f, sw, copy, n);
}

static void test_hostile_input(void **state)
{
	static const enum nr_drop seen[] = {NR_DROP_HEADER, NR_DROP_RANGE, NR_ICRC_BAD};
	struct rf_opts opts = options(4, 2);
	unsigned n_sw = 3;
	struct ring_fabric *f;

	(void)state;
	opts.faults.loss = 0.002;
	opts.first_msg = 0;
	opts.psn_known = true; /* else a stranger could say where a connection begins */
	f = rf_create(&opts);
	rf_set_tap(f, storm, &n_sw);
	for (unsigned round = 0; round < 4; round++)
		allreduce(f, 4, 20000, round);
	for (unsigned i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		if (rf_switch(f, 1)->drop[seen[i]] == 0)
			fail_msg("never dropped for %s", nr_drop_name(seen[i]));
	rf_destroy(f);
}

/* ---- failures ---- */

/* A rank comes three seconds late: the others are told to wait, their NICs do not give up. */
static void late_rank(unsigned leaves)
{
	struct rf_opts opts = options(4, leaves);
	struct ccl_req req[RF_MAX_HOSTS] = {{0}};
	static int32_t data[4][5000];
	struct ring_fabric *f;
	uint64_t told = 0;
	uint32_t msg, o;

	opts.psn_known = true;
	f = rf_create(&opts);
	for (unsigned r = 0; r < 3; r++)
		ccl_ring_iallreduce(
			rf_ring(f, r), data[r], data[r], 5000, REDUCE_INT32, REDUCE_SUM, &req[r]);
	rf_run(f, 3 * second);
	for (unsigned r = 0; r < 3; r++)
		assert_string_equal(ccl_ring_error(rf_ring(f, r)), "");
	assert_true(nr_missing(rf_switch(f, 0)->ring, &msg, &o) != 0);
	assert_int_equal(msg, opts.first_msg);
	ccl_ring_iallreduce(
		rf_ring(f, 3), data[3], data[3], 5000, REDUCE_INT32, REDUCE_SUM, &req[3]);
	must(f, 4, rf_wait(f, req, second));
	for (unsigned i = 0; i <= leaves; i++)
		told += rf_switch(f, i)->ring->count[NR_C_STALL_RNR];
	assert_true(told > 0);
	rf_destroy(f);
}

static void test_late_rank(void **state)
{
	(void)state;
	late_rank(0);
	late_rank(2);
}

/* A switch dies: every rank fails within its bound and names a neighbour. */
static void test_dead_switch(void **state)
{
	struct rf_opts opts = options(4, 2);
	static int32_t data[4][100000];
	struct ccl_req req[RF_MAX_HOSTS];
	struct ring_fabric *f;
	uint64_t died;

	(void)state;
	opts.timeout_ns = 2 * second;
	f = rf_create(&opts);
	for (unsigned r = 0; r < 4; r++)
		assert_int_equal(ccl_ring_iallreduce(rf_ring(f, r), data[r], data[r], 100000,
					 REDUCE_INT32, REDUCE_SUM, &req[r]),
			0);
	assert_int_equal(rf_wait(f, req, 100000), -ETIME);
	rf_switch(f, 0)->dead = true;
	died = rf_now(f);
	assert_true(rf_wait(f, req, 10 * second) < 0);
	rf_run(f, 3 * second);
	assert_true(rf_now(f) - died <= 6 * second);
	for (unsigned r = 0; r < 4; r++) {
		assert_non_null(strstr(ccl_ring_error(rf_ring(f, r)), "10.77.0.1"));
		assert_true(ccl_ring_test(rf_ring(f, r), req[r]) < 0);
	}
	rf_destroy(f);
}

/* Ranks that want different things do not get a wrong result. */
static void test_disagreement(void **state)
{
	struct rf_opts opts = options(3, 0);
	static int32_t data[3][1000];
	struct ccl_req req[RF_MAX_HOSTS];
	struct ring_fabric *f;

	(void)state;
	opts.timeout_ns = 2 * second;
	f = rf_create(&opts);
	for (unsigned r = 0; r < 3; r++)
		ccl_ring_iallreduce(rf_ring(f, r), data[r], data[r], 1000, REDUCE_INT32,
			r == 1 ? REDUCE_MAX : REDUCE_SUM, &req[r]);
	assert_true(rf_wait(f, req, 10 * second) < 0);
	assert_true(rf_switch(f, 0)->drop[NR_DROP_MISMATCH] > 0);
	rf_destroy(f);
}

/* Without a message of another kind coming in between, links carry each vector once up and once
 * down; the ring of hosts carries it nearly twice each way. */
static void test_traffic(void **state)
{
	uint64_t bytes[2];

	(void)state;
	for (unsigned netreduce = 0; netreduce < 2; netreduce++) {
		struct rf_opts opts = options(8, 0);
		struct ring_fabric *f;

		opts.netreduce = netreduce;
		opts.mtu = 1024;
		f = rf_create(&opts);
		allreduce(f, 8, 100000, 0);
		bytes[netreduce] = rf_link_bytes(f);
		rf_destroy(f);
	}
	printf("8 hosts, 400 KB: %llu bytes over all links with NetReduce, %llu as a host ring\n",
		(unsigned long long)bytes[1], (unsigned long long)bytes[0]);
	assert_true(bytes[1] * 10 < bytes[0] * 6);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_lossy_star),
		cmocka_unit_test(test_lossy_racks),
		cmocka_unit_test(test_hostile_input),
		cmocka_unit_test(test_late_rank),
		cmocka_unit_test(test_dead_switch),
		cmocka_unit_test(test_disagreement),
		cmocka_unit_test(test_traffic),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
