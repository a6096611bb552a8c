/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole simulations: the same seed gives the same packets, and results are right. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/sim/coll.h"
#include "lib/sim/rdma.h"

static const struct sim_link_conf clean = {.mbps = 100000, .delay_ns = 1000};
static const struct sim_link_conf faulty = {.mbps = 100000,
	.delay_ns = 1000,
	.loss = 0.005,
	.dup = 0.005,
	.reorder = 0.005,
	.corrupt = 0.002};

static uint16_t more_flags;

struct outcome {
	uint64_t hash, hops, ns;
};

static struct outcome run(const char *topology, enum ccl_mode mode, enum ccl_collective op,
	uint64_t bytes, struct sim_link_conf link, uint64_t seed)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo, .link = link, .seed = seed};
	struct sim_coll_conf group = {.mode = mode,
		.collectives = 1u << op,
		.mtu = 256,
		.m = 4,
		.w = 16,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR | more_flags,
		.start_psn = 0xffff00};
	struct sim_coll *coll;
	struct outcome out;
	char err[CCL_ERR_LEN];

	assert_int_equal(sim_topo_make(topology, &topo, err), 0);
	assert_int_equal(sim_create(&conf, &group.sim, err), 0);
	group.n_ranks = topo.n_hosts;
	assert_int_equal(sim_coll_create(&group, &coll, err), 0);
	assert_int_equal(sim_coll_run(coll, op, bytes, 60000000000, &out.ns), 0);
	assert_int_equal(sim_coll_check(coll), 0);
	out.hash = sim_trace_hash(group.sim);
	out.hops = sim_hops(group.sim);
	sim_coll_destroy(coll);
	sim_destroy(group.sim);
	sim_topo_free(&topo);
	return out;
}

static void test_same_seed_same_trace(void **state)
{
	static const enum ccl_mode modes[] = {
		CCL_MODE_1, CCL_MODE_2, CCL_MODE_3, CCL_MODE_NETREDUCE, CCL_MODE_RING};

	(void)state;
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct outcome a = run("tree:2x2", modes[i], CCL_ALLREDUCE, 100000, faulty, 5);
		void *shift = malloc(12345); /* other addresses in the second run */
		struct outcome b = run("tree:2x2", modes[i], CCL_ALLREDUCE, 100000, faulty, 5);
		struct outcome c = run("tree:2x2", modes[i], CCL_ALLREDUCE, 100000, faulty, 6);

		free(shift);
		assert_true(a.hash == b.hash);
		assert_true(a.hops == b.hops && a.ns == b.ns);
		assert_true(a.hash != c.hash);
	}
}

static void test_collectives(void **state)
{
	(void)state;
	for (int op = 0; op < CCL_N_COLLECTIVES; op++) {
		run("star:4", CCL_MODE_2, (enum ccl_collective)op, 40000, clean, 1);
		run("tree:2x2x2", CCL_MODE_1, (enum ccl_collective)op, 24000, faulty, 2);
		run("tree:2x2x2", CCL_MODE_3, (enum ccl_collective)op, 24000, faulty, 2);
		run("clos2:3x2x2", CCL_MODE_2, (enum ccl_collective)op, 24000, faulty, 2);
		run("star:4", CCL_MODE_RING, (enum ccl_collective)op, 40000, clean, 3);
	}
	run("fattree:4", CCL_MODE_2, CCL_ALLREDUCE, 50000, clean, 4);
	run("fattree:4", CCL_MODE_NETREDUCE, CCL_ALLREDUCE, 50000, faulty, 4);
	run("tree:2x2x2", CCL_MODE_NETREDUCE, CCL_BARRIER, 0, faulty, 4);
}

/* Selective acknowledgement on every edge, hosts' and switches'. */
static void test_selective(void **state)
{
	static const struct sim_link_conf bad = {.mbps = 100000,
		.delay_ns = 1000,
		.loss = 0.05,
		.dup = 0.02,
		.reorder = 0.02,
		.corrupt = 0.02};

	(void)state;
	more_flags = INC_F_SR;
	for (int op = 0; op < CCL_N_COLLECTIVES; op++) {
		run("star:4", CCL_MODE_3, (enum ccl_collective)op, 40000, clean, 1);
		run("tree:2x2x2", CCL_MODE_3, (enum ccl_collective)op, 24000, bad, 2);
	}
	more_flags = 0;
}

/* Mode-II with selective hosts: AllReduce and Barrier, on any tree. */
static void test_selective_mode2(void **state)
{
	static const struct sim_link_conf bad = {.mbps = 100000,
		.delay_ns = 1000,
		.loss = 0.05,
		.dup = 0.02,
		.reorder = 0.02,
		.corrupt = 0.02};

	(void)state;
	more_flags = INC_F_SR;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		run("star:4", CCL_MODE_2, CCL_ALLREDUCE, 40000, bad, seed);
		run("tree:2x2x2", CCL_MODE_2, CCL_ALLREDUCE, 24000, bad, seed);
	}
	run("tree:2x2x2", CCL_MODE_2, CCL_BARRIER, 0, bad, 1);
	more_flags = 0;
}

/* Data by RDMA WRITE. */
static void test_write(void **state)
{
	(void)state;
	more_flags = INC_F_WRITE;
	for (int op = 0; op < CCL_N_COLLECTIVES; op++) {
		run("star:4", CCL_MODE_2, (enum ccl_collective)op, 40000, faulty, 1);
		run("tree:2x2x2", CCL_MODE_3, (enum ccl_collective)op, 24000, faulty, 2);
	}
	more_flags = 0;
}

/* Nanoseconds of an AllReduce of 8 ranks, EPIC's table 31: one host's link loses, both ways. */
static double lossy(enum ccl_mode mode, uint16_t flags, uint64_t bytes, double loss)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo, .link = clean, .seed = 1};
	struct sim_coll_conf group = {.mode = mode,
		.n_ranks = 8,
		.collectives = 1u << CCL_ALLREDUCE,
		.mtu = 1024,
		.m = 4,
		.w = 64,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR | flags,
		.start_psn = 1000};
	struct sim_coll *coll;
	uint64_t ns;
	char err[CCL_ERR_LEN];

	conf.link.priority = true;
	assert_int_equal(sim_topo_make("star:8", &topo, err), 0);
	assert_int_equal(sim_create(&conf, &group.sim, err), 0);
	sim_link(group.sim, 0)->conf.loss = sim_link(group.sim, 1)->conf.loss = loss;
	assert_int_equal(sim_coll_create(&group, &coll, err), 0);
	assert_int_equal(sim_coll_run(coll, CCL_ALLREDUCE, bytes, 600000000000, &ns), 0);
	assert_int_equal(sim_coll_check(coll), 0);
	sim_coll_destroy(coll);
	sim_destroy(group.sim);
	sim_topo_free(&topo);
	return (double)ns;
}

/* A lost packet costs what it takes to send it again: 15 % of them leave 85 % of the throughput.
 * Mode-II, whose hosts go back and wait, collapses, unless they are selective. */
static void test_table_31(void **state)
{
	(void)state;
	assert_true(lossy(CCL_MODE_3, INC_F_SR, 8 << 20, 0) >
		    0.8 * lossy(CCL_MODE_3, INC_F_SR, 8 << 20, 0.15));
	assert_true(lossy(CCL_MODE_2, INC_F_SR, 4 << 20, 0) >
		    0.85 * lossy(CCL_MODE_2, INC_F_SR, 4 << 20, 0.05));
	assert_true(lossy(CCL_MODE_2, 0, 1 << 20, 0) < 0.5 * lossy(CCL_MODE_2, 0, 1 << 20, 0.15));
}

/* 4 KB cross two links of 1 us and back the same way: never faster than that. */
static void test_time(void **state)
{
	struct outcome o = run("star:8", CCL_MODE_2, CCL_ALLREDUCE, 4096, clean, 1);

	(void)state;
	assert_in_range(o.ns, 4000, 6000);
}

static void test_incast(void **state)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo, .seed = 3, .link = clean};
	struct sim_flow flow[8];
	struct sim *sim;
	char err[SIM_ERR_LEN];
	unsigned n;

	(void)state;
	conf.link.queue_bytes = 200000;
	conf.link.ecn_bytes = 50000;
	conf.congestion.ect = true;
	assert_int_equal(sim_topo_make("clos2:2x4x2", &topo, err), 0);
	assert_int_equal(sim_create(&conf, &sim, err), 0);
	n = sim_incast(sim, 7, 300000, flow);
	assert_int_equal(n, 7);
	assert_int_equal(sim_rdma_run(sim, flow, n, IBV_MTU_1024, 10000000000), 0);
	for (unsigned i = 0; i < n; i++)
		assert_true(flow[i].done_ns > 24000); /* 300 KB at 100 Gb/s */
	assert_true(sim_link(sim, 1)->count[SIM_L_MARKED] > 0);
	n = sim_permutation(sim, 100000, 9, flow);
	assert_int_equal(n, 8);
	assert_int_equal(sim_rdma_run(sim, flow, n, IBV_MTU_1024, 10000000000), 0);
	sim_destroy(sim);
	sim_topo_free(&topo);
}

struct pinged {
	unsigned n, fails; /* calls; the first so many return an error */
	uint64_t at;       /* of the last */
};

static int ping(void *arg, uint64_t now)
{
	struct pinged *p = arg;

	p->n++;
	p->at = now;
	return p->n <= p->fails ? -EIO : 0;
}

/* A frozen host runs when it thaws; an app's error ends a run, but takes nobody's turn. */
static void test_hosts_run(void **state)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo, .seed = 3, .link = clean};
	struct pinged pinged[2] = {{.fails = 1}};
	struct sim *sim;
	uint64_t start;
	char err[SIM_ERR_LEN];

	(void)state;
	assert_int_equal(sim_topo_make("star:2", &topo, err), 0);
	assert_int_equal(sim_create(&conf, &sim, err), 0);
	start = sim_now(sim);
	for (unsigned h = 0; h < 2; h++) {
		sim_add_app(sim, h, ping, &pinged[h]);
		sim_kick(sim, h);
	}
	assert_int_equal(sim_run(sim, NULL, NULL, start + 1000), -EIO);
	assert_int_equal(pinged[0].n, 1);
	assert_int_equal(pinged[1].n, 1);
	sim_freeze(sim, 1, start + 500);
	assert_int_equal(sim_run(sim, NULL, NULL, start + 1000), -EDEADLK);
	assert_int_equal(pinged[0].n, 1);
	assert_int_equal(pinged[1].n, 2);
	assert_int_equal(pinged[1].at, start + 500);
	sim_destroy(sim);
	sim_topo_free(&topo);
}

struct kicker {
	struct sim *sim;
	unsigned n, kicks; /* calls; as many of them kick every host */
};

static int kick_all(void *arg, uint64_t now)
{
	struct kicker *k = arg;

	(void)now;
	if (k->n++ < k->kicks) {
		for (unsigned h = 0; h < 3; h++)
			sim_kick(k->sim, h);
	}
	return 0;
}

/* Hosts that kick each other and themselves while they run, at one point in time, have their turns
 * one behind the other, each once per kick that found it at rest. */
static void test_kicks(void **state)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo, .seed = 3, .link = clean};
	struct kicker kicker[3];
	struct sim *sim;
	uint64_t start;
	char err[SIM_ERR_LEN];

	(void)state;
	assert_int_equal(sim_topo_make("star:3", &topo, err), 0);
	assert_int_equal(sim_create(&conf, &sim, err), 0);
	start = sim_now(sim);
	for (unsigned h = 0; h < 3; h++) {
		kicker[h] = (struct kicker){.sim = sim, .kicks = 10};
		sim_add_app(sim, h, kick_all, &kicker[h]);
		sim_kick(sim, h);
	}
	assert_int_equal(sim_run(sim, NULL, NULL, start + 1000), -EDEADLK);
	for (unsigned h = 0; h < 3; h++)
		assert_in_range(kicker[h].n, 11, 13);
	sim_destroy(sim);
	sim_topo_free(&topo);
}

struct tapped {
	struct sim *sim;
	unsigned n, link;
};

/* The first one of them goes to a switch once more. */
static void tap(void *arg, unsigned link, const uint8_t *frame, unsigned len)
{
	struct tapped *t = arg;

	if (t->n++ == 0)
		sim_inject(t->sim, t->link = link, frame, len);
}

static void test_tap(void **state)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo, .seed = 3, .link = clean};
	struct sim_flow flow[2];
	struct tapped t = {0};
	char err[SIM_ERR_LEN];

	(void)state;
	assert_int_equal(sim_topo_make("star:2", &topo, err), 0);
	assert_int_equal(sim_create(&conf, &t.sim, err), 0);
	sim_set_tap(t.sim, tap, &t);
	assert_int_equal(sim_incast(t.sim, 1, 1000, flow), 1);
	assert_int_equal(sim_rdma_run(t.sim, flow, 1, IBV_MTU_1024, 10000000), 0);
	assert_int_equal(t.n, sim_hops(t.sim));
	assert_int_equal(t.link, 2); /* host 1's uplink: it sends first */
	assert_int_equal(sim_link(t.sim, t.link)->count[SIM_L_FRAMES], 1);
	assert_int_equal(sim_switch(t.sim, 0)->rx, 2 * (1 + 1)); /* and twice an answer */
	sim_destroy(t.sim);
	sim_topo_free(&topo);
}

static void test_topologies(void **state)
{
	static const struct {
		const char *what;
		unsigned hosts, switches, edges;
	} good[] = {{"star:5", 5, 1, 0}, {"tree:2x3", 6, 3, 2}, {"clos2:4x2x3", 8, 7, 12},
		{"fattree:4", 16, 20, 32}, {"planes:4x2x3x5", 6, 28, 40}};
	static const char *const bad[] = {"", "star", "star:0", "star:1x", "tree:2x", "fattree:3",
		"star:99999999", "clos2:1x1", "none.json", "planes:0x1x1x1", "planes:9x1x1x1",
		"planes:2x1x1"};
	struct sim_topo t;
	char err[SIM_ERR_LEN];

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(sim_topo_make(good[i].what, &t, err), 0);
		assert_int_equal(t.n_hosts, good[i].hosts);
		assert_int_equal(t.n_switches, good[i].switches);
		assert_int_equal(t.n_edges, good[i].edges);
		sim_topo_free(&t);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(sim_topo_make(bad[i], &t, err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_seed_same_trace),
		cmocka_unit_test(test_collectives),
		cmocka_unit_test(test_selective),
		cmocka_unit_test(test_selective_mode2),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_table_31),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_incast),
		cmocka_unit_test(test_hosts_run),
		cmocka_unit_test(test_kicks),
		cmocka_unit_test(test_tap),
		cmocka_unit_test(test_topologies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
