/* SPDX-License-Identifier: BSD-3-Clause */
/* AllReduce end to end on virtual time, over links that lose, duplicate, reorder and corrupt. Each
 * scenario prints its seed; run with a seed as argument to repeat one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/integration/tasks.h"

static const uint64_t second = 1000000000;
static uint64_t seed = 20261;

static int32_t contribution(unsigned rank, uint64_t i, unsigned round)
{
	return (int32_t)((i * 2654435761u) ^ (rank * 40503u) ^ (round * 97u));
}

static struct fab_opts options(struct fab_tree tree)
{
	return (struct fab_opts){
		.tree = tree,
		.collectives = 1 << CCL_ALLREDUCE | 1 << CCL_BARRIER,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.start_psn = 0xfffff0,
		.seed = seed,
		.timeout_ns = 20 * second,
	};
}

static const struct fab_faults one_percent = {.loss = 0.01, .dup = 0.01, .reorder = 0.01};

/* All sizes around element, packet and message boundaries. */
static void test_sizes(void **state)
{
	static const uint64_t counts[] = {0, 1, 63, 64, 65, 127, 128, 255, 256, 257, 1024, 5000};
	struct fab_opts opts = options(fab_leaves(4, 0));
	struct fabric *fab = fab_create(&opts);

	(void)state;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		fab_exact(fab, CCL_ALLREDUCE, counts[i], 0, i % 2);
	assert_int_equal(fab_group(fab, 0)->count[INC_C_DUP], 0);
	fab_destroy(fab);
}

/* 100 000 packets per rank, every link losing, duplicating and reordering one packet in a hundred;
 * the PSN wraps at the start and the ring goes round many times. */
static void lossy(struct fab_tree tree, uint64_t packets)
{
	struct fab_opts opts = options(tree);
	struct fabric *fab;
	struct inc_group *g;

	opts.faults = one_percent;
	fab = fab_create(&opts);
	printf("seed %llu: %s, %u hosts, %llu packets per rank\n", (unsigned long long)seed,
		tree.name, fab->n, (unsigned long long)packets);
	for (unsigned round = 0; round < 4; round++)
		fab_exact(fab, CCL_ALLREDUCE, packets / 4 * 64 - round, 0, round % 2);
	g = fab_group(fab, 0);
	assert_true(g->count[INC_C_COMPLETED] >= packets);
	assert_true(g->count[INC_C_DUP_ANSWERED] > 0 && g->count[INC_C_LATE_FLUSHED] > 0);
	for (unsigned r = 0; r < fab->n; r++)
		assert_true(rnic_count(fab_rnic(fab, r), RNIC_C_RETRANSMITS) > 0);
	fab_destroy(fab);
}

static void test_lossy_star(void **state)
{
	(void)state;
	lossy(fab_star4, 100000);
}

static void test_lossy_tree(void **state)
{
	(void)state;
	lossy(fab_tree_2x2, 20000);
}

static void test_lossy_wide(void **state)
{
	(void)state;
	lossy(fab_leaves(16, 4), 2000);
}

static void test_lossy_deep(void **state)
{
	(void)state;
	lossy(fab_deep, 4000);
}

/* Small operations one after another, several on the wire at a time. */
static void test_pipelined_small_operations(void **state)
{
	struct fab_opts opts = options(fab_leaves(4, 2));
	struct fabric *fab;
	struct ccl_req req[FAB_MAX_HOSTS], last[FAB_MAX_HOSTS];
	static int32_t in[4][400], out[4][400];

	(void)state;
	opts.faults = one_percent;
	fab = fab_create(&opts);
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned op = 0; op < 40; op++)
			for (unsigned r = 0; r < 4; r++) {
				in[r][op] = contribution(r, op, round);
				assert_int_equal(
					ccl_iallreduce(fab_comm(fab, r), &in[r][op], &out[r][op], 1,
						REDUCE_INT32, REDUCE_SUM, &req[r]),
					0);
				assert_int_equal(ccl_ibarrier(fab_comm(fab, r), &last[r]), 0);
				if (op % 20 == 19 && r == 3)
					fab_must(fab, fab_wait(fab, last, 60 * second));
			}
		for (unsigned op = 0; op < 40; op++)
			for (unsigned r = 0; r < 4; r++)
				assert_int_equal(out[r][op],
					(int32_t)((uint32_t)in[0][op] + (uint32_t)in[1][op] +
						  (uint32_t)in[2][op] + (uint32_t)in[3][op]));
	}
	fab_destroy(fab);
}

/* ---- hostile input ---- */

static void storm(void *arg, unsigned link, const uint8_t *frame, unsigned len)
{
	struct fabric *fab = arg;
	uint8_t copy[FAB_FRAME];
	struct wire_pkt pkt;
	struct wire_flow flow;
	struct wire_hdr hdr;
	uint64_t dice = sim_random(&fab->rng) % 24;
	size_t n = len;

	if (dice > 9 || wire_parse(frame, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE)
		return;
	memcpy(copy, frame, len);
	wire_unbuild(frame, &pkt, &flow, &hdr);
	switch (dice) {
	case 0: /* truncated */
		n = 1 + sim_random(&fab->rng) % len;
		break;
	case 1: /* lying lengths: IP total length, UDP length */
		copy[pkt.l3_off + 3] ^= (uint8_t)(1 + sim_random(&fab->rng) % 255);
		break;
	case 2:
		copy[pkt.l4_off + 5] ^= (uint8_t)(1 + sim_random(&fab->rng) % 255);
		break;
	case 3: /* bad payload or ICRC */
		copy[pkt.pay_off + sim_random(&fab->rng) % (len - pkt.pay_off)] ^= 0x10;
		break;
	case 4: /* QPN of nobody, of another generation, of no endpoint */
		hdr.dqpn ^= 1u << sim_random(&fab->rng) % 24;
		n = (size_t)wire_build_frame(
			copy, sizeof(copy), &flow, &hdr, frame + pkt.pay_off, pkt.pay_len);
		break;
	case 5: /* a stranger's address */
		flow.src.b[15] ^= 0x80;
		n = (size_t)wire_build_frame(
			copy, sizeof(copy), &flow, &hdr, frame + pkt.pay_off, pkt.pay_len);
		break;
	case 6: /* stale: half a PSN space behind, with a right ICRC */
		hdr.psn = psn_add(hdr.psn, -(1 << 20));
		n = (size_t)wire_build_frame(
			copy, sizeof(copy), &flow, &hdr, frame + pkt.pay_off, pkt.pay_len);
		break;
	case 7: /* opcode that no collective uses; an RNIC's QP rightly fails on it */
		if (fab->opts.mode == CCL_MODE_1 || sim_link(fab->sim, link)->to < fab->n)
			return;
		hdr.opcode = ROCE_READ_REQUEST;
		n = (size_t)wire_build_frame(copy, sizeof(copy), &flow, &hdr, NULL, 0);
		break;
	case 8: /* what another port would bring */
		for (unsigned i = 0; i < sim_n_links(fab->sim); i++)
			if (i != link && sim_link(fab->sim, i)->to == sim_link(fab->sim, link)->to)
				sim_inject(fab->sim, i, frame, len);
		return;
	default: /* noise */
		for (size_t i = ETH_HDR_LEN; i < len; i++)
			copy[i] = (uint8_t)sim_random(&fab->rng);
	}
	sim_inject(fab->sim, link, copy, (unsigned)n); /* elsewhere it would be forwarded */
	if (dice != 7)
		fab_inject_host(fab, (unsigned)(sim_random(&fab->rng) % 4), copy, n);
}

/* Results stay exact and every kind of bad packet is dropped under its own reason. In Mode-I
 * most packets are the RNIC's of the switch, which counts its own. */
static void hostile_input(enum ccl_mode mode)
{
	static const enum inc_drop inc_seen[] = {INC_DROP_NO_GROUP, INC_DROP_GENERATION,
		INC_DROP_NO_ENDPOINT, INC_DROP_SOURCE, INC_DROP_OPCODE, INC_DROP_PORT};
	enum { N_INC_SEEN = sizeof(inc_seen) / sizeof(inc_seen[0]) };
	static const enum wire_drop wire_seen[] = {
		WIRE_PARSE_SHORT, WIRE_PARSE_IPSUM, WIRE_ICRC_BAD};
	const bool rnic = mode == CCL_MODE_1;
	struct fab_opts opts = options(fab_leaves(4, 2));
	struct fabric *fab;

	opts.mode = mode;
	opts.flags |= INC_F_STRICT_PORT;
	opts.faults = (struct fab_faults){.corrupt = 0.01, .loss = 0.001};
	fab = fab_create(&opts);
	sim_set_tap(fab->sim, storm, fab);
	for (unsigned round = 0; round < 5; round++)
		fab_exact(fab, CCL_ALLREDUCE, 30000, 0, round % 2);
	for (unsigned sw = 0; sw < opts.tree.n_switches; sw++) {
		const struct sim_switch *s = sim_switch(fab->sim, sw);

		for (unsigned i = rnic ? N_INC_SEEN - 1 : 0; i < N_INC_SEEN; i++)
			if (s->inc_drop[inc_seen[i]] == 0)
				fail_msg("switch %u never dropped for %s", sw,
					inc_drop_name(inc_seen[i]));
		for (unsigned i = 0; i < sizeof(wire_seen) / sizeof(wire_seen[0]) - rnic; i++)
			if (s->wire_drop[wire_seen[i]] == 0)
				fail_msg("switch %u never dropped for %s", sw,
					wire_drop_name(wire_seen[i]));
	}
	for (unsigned r = 0; r < 4; r++)
		assert_true(rnic_drop_count(fab_rnic(fab, r), WIRE_ICRC_BAD) > 0);
	fab_destroy(fab);
}

static void test_hostile_input(void **state)
{
	(void)state;
	for (unsigned mode = CCL_MODE_1; mode <= CCL_MODE_3; mode++)
		hostile_input((enum ccl_mode)mode);
}

/* ---- failures ---- */

/* A rank that never calls: the others are held by RNR NAKs, their NICs do not give up, CommLib
 * does. */
static void test_missing_rank(void **state)
{
	struct fab_opts opts = options(fab_leaves(4, 2));
	struct ccl_req req[FAB_MAX_HOSTS] = {{0}};
	static int32_t in[4][1000], out[4][1000];
	struct fabric *fab;
	uint32_t psn;
	char ranks[16];

	(void)state;
	opts.timeout_ns = 5 * second;
	fab = fab_create(&opts);
	for (unsigned r = 0; r < 3; r++)
		ccl_iallreduce(
			fab_comm(fab, r), in[r], out[r], 1000, REDUCE_INT32, REDUCE_SUM, &req[r]);
	/* Rank 3 comes three seconds late: nothing is lost. */
	fab_run(fab, 3 * second);
	assert_string_equal(fab_error(fab, 0), "");
	inc_group_ranks_of(fab_group(fab, 0), inc_group_missing(fab_group(fab, 0), &psn), ranks,
		sizeof(ranks));
	assert_string_equal(ranks, "2,3");
	ccl_iallreduce(fab_comm(fab, 3), in[3], out[3], 1000, REDUCE_INT32, REDUCE_SUM, &req[3]);
	fab_must(fab, fab_wait(fab, req, second));
	fab_destroy(fab);
}

/* A rank that asks for something else: all of them learn it. */
static void test_disagreement(void **state)
{
	struct fab_opts opts = options(fab_leaves(3, 0));
	struct ccl_req req[FAB_MAX_HOSTS] = {{0}};
	static int32_t in[3][1000], out[3][1000];
	struct fabric *fab;

	(void)state;
	fab = fab_create(&opts);
	for (unsigned r = 0; r < 3; r++)
		ccl_iallreduce(fab_comm(fab, r), in[r], out[r], r == 1 ? 999 : 1000, REDUCE_INT32,
			REDUCE_SUM, &req[r]);
	assert_true(fab_wait(fab, req, 10 * second) < 0);
	assert_int_equal(fab_group(fab, 0)->state, INC_FAILED);
	assert_int_equal(fab_group(fab, 0)->fail_reason, INC_FAIL_CTRL_MISMATCH);
	fab_run(fab, 2 * second);
	for (unsigned r = 0; r < 3; r++)
		assert_true(fab_error(fab, r)[0] != '\0');
	fab_destroy(fab);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_lossy_star),
		cmocka_unit_test(test_lossy_tree),
		cmocka_unit_test(test_lossy_wide),
		cmocka_unit_test(test_lossy_deep),
		cmocka_unit_test(test_pipelined_small_operations),
		cmocka_unit_test(test_hostile_input),
		cmocka_unit_test(test_missing_rank),
		cmocka_unit_test(test_disagreement),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
