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

#include "lib/sim/agent.h"
#include "tests/integration/tasks.h"

static const uint64_t second = 1000000000;
static uint64_t seed = 20263;

static const struct fab_faults bad_weather = {
	.loss = 0.01, .dup = 0.01, .reorder = 0.01, .corrupt = 0.002};

static struct fab_opts options(unsigned n_hosts, unsigned n_leaves)
{
	return (struct fab_opts){
		.tree = fab_leaves(n_hosts, n_leaves),
		.mode = CCL_MODE_NETREDUCE,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.flags = INC_F_STALL_RNR,
		.start_psn = 0xfffff0,
		.first_msg = 0xfffffff8,
		.seed = seed,
		.timeout_ns = 20 * second,
	};
}

/* As if the switches had not been told where the connections' PSNs begin. */
static void forget_psns(struct fabric *f)
{
	for (unsigned sw = 0; sw < f->opts.tree.n_switches; sw++) {
		struct nr_ring *ring = sim_switch_ring(f->sim, sw);

		for (unsigned i = 0; i < ring->n_in; i++) {
			struct nr_in *in = nr_in_at(ring, i);

			if (!in->host)
				continue;
			in->known = in->acked_known = false;
			in->psn0 = in->top_psn0 = in->acked = 0;
		}
	}
}

/* All sizes around packet and message boundaries; messages and PSNs wrap on the way. */
static void test_sizes(void **state)
{
	static const uint64_t counts[] = {
		0, 1, 59, 60, 61, 123, 124, 125, 187, 251, 252, 253, 504, 505, 5000};
	static const uint16_t shapes[][2] = {{4, 8}, {2, 1}, {1, 4}, {3, 2}};

	(void)state;
	for (unsigned leaves = 0; leaves <= 2; leaves += 2)
		for (unsigned s = 0; s < 4; s++) {
			struct fab_opts opts = options(4, leaves);
			struct fabric *f;

			opts.m = shapes[s][0];
			opts.w = shapes[s][1];
			f = fab_create(&opts);
			forget_psns(f);
			for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
				fab_exact(f, CCL_ALLREDUCE, counts[i], 0, false);
				fab_exact(f, CCL_ALLREDUCE, counts[i], 0, true);
				fab_exact(f, CCL_BARRIER, 0, 0, false);
			}
			assert_int_equal(sim_switch_ring(f->sim, 0)->count[NR_C_DUP], 0);
			fab_destroy(f);
		}
}

static void lossy(unsigned n, unsigned leaves, uint64_t packets, bool psn_known)
{
	struct fab_opts opts = options(n, leaves);
	struct fabric *f;
	struct nr_ring *r;

	opts.faults = bad_weather;
	f = fab_create(&opts);
	if (!psn_known)
		forget_psns(f);
	for (unsigned round = 0; round < 4; round++)
		fab_exact(f, CCL_ALLREDUCE, packets / 4 * 64 - round, 0, round % 2);
	r = sim_switch_ring(f->sim, 0);
	assert_true(r->count[NR_C_COMPLETED] >= packets);
	assert_true(r->count[NR_C_DUP_ANSWERED] > 0);
	for (unsigned i = 0; i < n; i++)
		assert_true(rnic_count(fab_rnic(f, i), RNIC_C_RETRANSMITS) > 0);
	assert_true(sim_switch(f->sim, leaves)->wire_drop[WIRE_ICRC_BAD] > 0);
	assert_int_equal(sim_switch(f->sim, 0)->nr_drop[NR_DROP_AHEAD], 0);
	fab_destroy(f);
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
static void storm(void *arg, unsigned link, const uint8_t *frame, unsigned len)
{
	struct fabric *f = arg;
	uint8_t copy[FAB_FRAME], payload[FAB_FRAME];
	uint64_t dice = sim_random(&f->rng) % 160; /* what is forwarded comes by here again */
	struct wire_pkt pkt;
	struct wire_flow flow;
	struct wire_hdr hdr;
	struct ina_hdr ina;
	size_t n = len;

	if (dice > 8 || wire_parse(frame, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE)
		return;
	if (!pkt.src.b[14] && pkt.src.b[15] & 0x80)
		return; /* a stranger's, made below: do not make a member's of it */
	memcpy(copy, frame, len);
	memcpy(payload, frame + pkt.pay_off, pkt.pay_len);
	wire_unbuild(frame, &pkt, &flow, &hdr);
	switch (dice) {
	case 0: /* truncated */
		n = 1 + sim_random(&f->rng) % len;
		break;
	case 1: /* lying IP length */
		copy[pkt.l3_off + 3] ^= (uint8_t)(1 + sim_random(&f->rng) % 255);
		break;
	case 2: /* bad payload or ICRC */
		copy[pkt.pay_off + sim_random(&f->rng) % (len - pkt.pay_off)] ^= 0x10;
		break;
	case 3: /* a connection that is not registered */
		hdr.dqpn ^= 1u << sim_random(&f->rng) % 24;
		break;
	case 4: /* a stranger's address */
		flow.src.b[15] ^= 0x80;
		break;
	case 5: /* far away in PSN */
		hdr.psn = psn_add(hdr.psn, (1 << 20) + (int32_t)(sim_random(&f->rng) % (1 << 21)));
		break;
	case 6: /* a header that lies about ring, rank, length, type */
		if (!(pkt.flags & ROCE_F_FIRST) || pkt.pay_len < INA_LEN ||
			!ina_decode(payload, &ina))
			return;
		payload[4 + sim_random(&f->rng) % 4] ^= 1;
		payload[12] ^= (uint8_t)(sim_random(&f->rng) % 2);
		break;
	case 7: /* what another port would bring */
		for (unsigned i = 0; i < sim_n_links(f->sim); i++)
			if (i != link && sim_link(f->sim, i)->to == sim_link(f->sim, link)->to)
				sim_inject(f->sim, i, frame, len);
		return;
	default: /* a message number far beyond the window */
		if (!(pkt.flags & ROCE_F_FIRST) || pkt.pay_len < INA_LEN ||
			!ina_decode(payload, &ina))
			return;
		payload[9 + 2 * (sim_random(&f->rng) % 2)] ^= 0x80; /* or far behind it */
	}
	if (dice > 2)
		n = (size_t)wire_build_frame(copy, sizeof(copy), &flow, &hdr, payload, pkt.pay_len);
	/* Members lie to their own switch; what passes by another one is the receiver's business.
	 */
	if (dice <= 5 || flow.src.b[14] /* a switch */ || link == 2 * (flow.src.b[15] - 10u))
		sim_inject(f->sim, link, copy, (unsigned)n);
}

static void test_hostile_input(void **state)
{
	static const enum nr_drop seen[] = {NR_DROP_HEADER, NR_DROP_RANGE, NR_DROP_PORT};
	struct fab_opts opts = options(4, 2);
	struct fabric *f;

	(void)state;
	opts.flags |= INC_F_STRICT_PORT;
	opts.faults.loss = 0.002;
	opts.first_msg = 0;
	f = fab_create(&opts);
	sim_set_tap(f->sim, storm, f);
	for (unsigned round = 0; round < 4; round++)
		fab_exact(f, CCL_ALLREDUCE, 20000, 0, round % 2);
	for (unsigned i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		if (sim_switch(f->sim, 1)->nr_drop[seen[i]] == 0)
			fail_msg("never dropped for %s", nr_drop_name(seen[i]));
	assert_true(sim_switch(f->sim, 1)->wire_drop[WIRE_ICRC_BAD] > 0);
	fab_destroy(f);
}

/* ---- failures ---- */

/* A rank comes three seconds late: the others are told to wait, their NICs do not give up. */
static void late_rank(unsigned leaves)
{
	struct fab_opts opts = options(4, leaves);
	struct ccl_req req[FAB_MAX_HOSTS] = {{0}};
	static int32_t data[4][5000];
	struct fabric *f;
	uint64_t told = 0;
	uint32_t msg, o;

	f = fab_create(&opts);
	for (unsigned r = 0; r < 3; r++)
		ccl_ring_iallreduce(
			fab_ring(f, r), data[r], data[r], 5000, REDUCE_INT32, REDUCE_SUM, &req[r]);
	fab_run(f, 3 * second);
	for (unsigned r = 0; r < 3; r++)
		assert_string_equal(fab_error(f, r), "");
	assert_true(nr_missing(sim_switch_ring(f->sim, 0), &msg, &o) != 0);
	assert_int_equal(msg, opts.first_msg);
	ccl_ring_iallreduce(
		fab_ring(f, 3), data[3], data[3], 5000, REDUCE_INT32, REDUCE_SUM, &req[3]);
	fab_must(f, fab_wait(f, req, second));
	for (unsigned i = 0; i <= leaves; i++)
		told += sim_switch_ring(f->sim, i)->count[NR_C_STALL_RNR];
	assert_true(told > 0);
	fab_destroy(f);
}

static void test_late_rank(void **state)
{
	(void)state;
	late_rank(0);
	late_rank(2);
}

/* All ranks hear of a failure from their own switches, long before their time is over. */
static void all_are_told(struct fabric *f, unsigned n)
{
	fab_run(f, second);
	for (unsigned r = 0; r < n; r++)
		if (!strstr(fab_error(f, r), "the switch has failed the ring"))
			fail_msg("rank %u says \"%s\"", r, fab_error(f, r));
}

/* The ranks of a mask want the maximum, the others the sum; the switch `at` sees it and says what,
 * all others hear of it from there. Nobody gets a result. */
static void disagree(unsigned leaves, unsigned mask, unsigned at, const char *what)
{
	struct fab_opts opts = options(4, leaves);
	static int32_t data[4][1000];
	struct ccl_req req[FAB_MAX_HOSTS] = {{0}};
	char text[256];
	struct fabric *f;

	opts.first_msg = 0;
	f = fab_create(&opts);
	for (unsigned r = 0; r < 4; r++)
		ccl_ring_iallreduce(fab_ring(f, r), data[r], data[r], 1000, REDUCE_INT32,
			mask >> r & 1 ? REDUCE_MAX : REDUCE_SUM, &req[r]);
	all_are_told(f, 4);
	for (unsigned i = 0; i <= leaves; i++) {
		struct nr_ring *r = sim_switch_ring(f->sim, i);

		assert_int_equal(r->state, NR_FAILED);
		nr_fail_text(r, text, sizeof(text));
		if (i != at)
			assert_int_equal(r->fail.reason, NR_FAIL_SWITCH);
		else if (!strstr(text, what))
			fail_msg("switch %u says \"%s\", not %s", i, text, what);
	}
	for (unsigned r = 0; r < 4; r++)
		assert_true(fab_test(f, r, req[r]) < 0);
	fab_destroy(f);
}

static void test_disagreement(void **state)
{
	(void)state;
	disagree(0, 1 << 1, 0, "operation max of rank 1, sum of rank 0");
	disagree(2, 1 << 3, 2, "operation max of rank 3, sum of rank 2");
	disagree(2, 1 << 2 | 1 << 3, 0, "operation max of the switch of ranks 2,3, sum of");
}

/* One vector is shorter: its message's last packet is. */
static void test_other_count(void **state)
{
	struct fab_opts opts = options(3, 0);
	static int32_t data[3][1000];
	struct ccl_req req[FAB_MAX_HOSTS] = {{0}};
	struct fabric *f;

	(void)state;
	f = fab_create(&opts);
	for (unsigned r = 0; r < 3; r++)
		ccl_ring_iallreduce(fab_ring(f, r), data[r], data[r], r == 1 ? 999 : 1000,
			REDUCE_INT32, REDUCE_SUM, &req[r]);
	all_are_told(f, 3);
	assert_int_equal(sim_switch_ring(f->sim, 0)->fail.reason, NR_FAIL_LENGTH);
	fab_destroy(f);
}

/* Somebody fails a leaf's part while all is well. */
static void test_failed_by_hand(void **state)
{
	struct fab_opts opts = options(4, 2);
	static int32_t data[4][20000];
	struct ccl_req req[FAB_MAX_HOSTS] = {{0}};
	struct fabric *f;

	(void)state;
	f = fab_create(&opts);
	for (unsigned r = 0; r < 4; r++)
		ccl_ring_iallreduce(
			fab_ring(f, r), data[r], data[r], 20000, REDUCE_INT32, REDUCE_SUM, &req[r]);
	fab_run(f, 20000);
	for (unsigned r = 0; r < 4; r++)
		assert_int_equal(fab_test(f, r, req[r]), 0);
	assert_true(nr_set_failed(sim_switch_ring(f->sim, 1)));
	all_are_told(f, 4);
	fab_destroy(f);
}

static void is_exact(const int32_t *data, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(data[i], 4 * i + 6);
}

/* A switch forgets a ring at some time of an operation: what goes through it then is what each rank
 * has sent. No rank takes that for a sum. True: some rank has seen it. */
static bool forgotten(unsigned leaves, unsigned sw, unsigned n, uint64_t at)
{
	static const char request[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ring.delete\",\"params\":{\"ring\":0}}";
	struct fab_opts opts = options(4, leaves);
	static int32_t data[4][20000];
	struct ccl_req req[4] = {{0}};
	struct fabric *f;
	bool seen = false;
	char *answer;

	opts.timeout_ns = second;
	opts.link_gbps = 10;
	f = fab_create(&opts);
	for (unsigned r = 0; r < 4; r++) {
		for (unsigned i = 0; i < n; i++)
			data[r][i] = (int32_t)(i + r);
		ccl_ring_iallreduce(
			fab_ring(f, r), data[r], data[r], n, REDUCE_INT32, REDUCE_SUM, &req[r]);
	}
	fab_run(f, at);
	answer = sim_agent_request(f->sim->sw[sw].agent, NULL, request, strlen(request));
	assert_non_null(strstr(answer, "result"));
	free(answer);
	for (unsigned i = 0; i < 30; i++) /* ranks look at the time only when something happens */
		fab_run(f, second / 10);
	for (unsigned r = 0; r < 4; r++) {
		assert_int_not_equal(fab_test(f, r, req[r]), 0);
		if (fab_test(f, r, req[r]) > 0)
			is_exact(data[r], n);
		seen |= strstr(fab_error(f, r), "and not as a sum") != NULL;
	}
	fab_destroy(f);
	return seen;
}

/* In the middle of many messages, and at every time of a single one. */
static void test_forgotten(void **state)
{
	unsigned many = 0, one = 0;

	(void)state;
	for (unsigned i = 0; i < 24; i++)
		many += forgotten(i % 2 ? 2 : 0, i % 4 == 3, 20000, 10000 + 700 * i);
	for (unsigned i = 0; i < 80; i++)
		one += forgotten(0, 0, 252, 2000 + 25 * i);
	printf("rings forgotten by a switch: seen as such in %u of 24, %u of 80\n", many, one);
	assert_true(many > 12 && one > 4);
}

/* Without a message of another kind coming in between, links carry each vector once up and once
 * down; the ring of hosts carries it nearly twice each way. */
static void test_traffic(void **state)
{
	uint64_t bytes[2];

	(void)state;
	for (unsigned netreduce = 0; netreduce < 2; netreduce++) {
		struct fab_opts opts = options(8, 0);
		struct fabric *f;

		opts.mode = netreduce ? CCL_MODE_NETREDUCE : CCL_MODE_RING;
		opts.mtu = 1024;
		f = fab_create(&opts);
		fab_exact(f, CCL_ALLREDUCE, 100000, 0, false);
		bytes[netreduce] = fab_link_bytes(f);
		fab_destroy(f);
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
		cmocka_unit_test(test_disagreement),
		cmocka_unit_test(test_other_count),
		cmocka_unit_test(test_failed_by_hand),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_traffic),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
