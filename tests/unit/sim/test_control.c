/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups made by CommLib's client and the agents' handlers over control connections on virtual
 * time, and what becomes of them when those fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/sim/coll.h"

enum { MS = 1000000, MAX_MESSAGES = 200 };

struct outcome {
	int created, closed;
	uint64_t hash, set_up_hash, messages, set_up_ns, close_ns;
	size_t left; /* bytes of aggregation memory when everything is over */
	unsigned installed;
	char err[CCL_ERR_LEN], close_err[CCL_ERR_LEN];
};

struct way {
	const char *topology;
	enum ccl_mode mode;
	enum ccl_kind kind;
	unsigned collectives;
};

/* Three levels; several groups per switch; connections of the switches; rings. */
static const struct way ways[] = {
	{"tree:2x2", CCL_MODE_2, CCL_MIXED, 1u << CCL_ALLREDUCE},
	{"star:3", CCL_MODE_3, CCL_SINGLE, 1u << CCL_ALLREDUCE | 1u << CCL_REDUCE},
	{"tree:2x2", CCL_MODE_1, CCL_MIXED, 1u << CCL_ALLREDUCE},
	{"tree:2x2", CCL_MODE_NETREDUCE, CCL_SINGLE, 1u << CCL_ALLREDUCE},
};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

static bool cut_off; /* agents are away before groups are deleted */

/* Until nothing happens any more: what the switches take away by themselves is gone. */
static void settle(struct sim *sim, struct outcome *out)
{
	assert_int_equal(sim_run(sim, NULL, NULL, UINT64_MAX - 1), -EDEADLK);
	for (unsigned i = 0; i < sim_topo(sim)->n_switches; i++) {
		out->left += sim_switch(sim, i)->arena_used;
		out->installed += sim_switch(sim, i)->n_groups + sim_switch(sim, i)->n_rings;
	}
}

static struct outcome run(
	const struct way *w, const struct sim_control_conf *control, uint64_t seed)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo,
		.link = {.mbps = 100000, .delay_ns = 1000},
		.seed = seed,
		.control = *control};
	struct sim_coll_conf group = {.mode = w->mode,
		.kind = w->kind,
		.collectives = w->collectives,
		.mtu = 256,
		.m = 2,
		.w = 4,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.start_psn = 0xffff00};
	const struct sim_control_conf away = {.n_down = 1, .down = {{0, UINT64_MAX}}};
	struct outcome out = {0};
	struct sim_coll *coll;
	uint64_t start, ns;

	assert_int_equal(sim_topo_make(w->topology, &topo, out.err), 0);
	assert_int_equal(sim_create(&conf, &group.sim, out.err), 0);
	group.n_ranks = topo.n_hosts;
	group.root = topo.root;
	start = sim_now(group.sim);
	out.created = sim_coll_create(&group, &coll, out.err);
	out.set_up_ns = sim_now(group.sim) - start;
	out.set_up_hash = sim_trace_hash(group.sim);
	if (out.created == 0) {
		assert_int_equal(sim_coll_run(coll, CCL_ALLREDUCE, 20000, 60000000000, &ns), 0);
		assert_int_equal(sim_coll_check(coll), 0);
		if (cut_off)
			sim_set_control(group.sim, &away);
		start = sim_now(group.sim);
		out.closed = sim_coll_close(coll, out.close_err);
		out.close_ns = sim_now(group.sim) - start;
	}
	out.messages = sim_control_messages(group.sim);
	out.hash = sim_trace_hash(group.sim);
	settle(group.sim, &out);
	sim_destroy(group.sim);
	sim_topo_free(&topo);
	return out;
}

static void assert_nothing_left(const struct outcome *out)
{
	assert_int_equal(out->left, 0);
	assert_int_equal(out->installed, 0);
}

static void test_groups_by_messages(void **state)
{
	const struct sim_control_conf slow = {.delay_ns = 3 * MS}, at_once = {0};

	(void)state;
	for (unsigned i = 0; i < N_WAYS; i++) {
		struct outcome a = run(&ways[i], &slow, 1), b = run(&ways[i], &at_once, 1);

		assert_int_equal(a.created | a.closed | b.created | b.closed, 0);
		assert_true(a.messages == b.messages && a.messages > 0);
		assert_nothing_left(&a);
		assert_nothing_left(&b);
		assert_int_equal(b.set_up_ns, 0);
		/* Each waits for the one before, and each conversation begins with a handshake. */
		assert_true(a.set_up_ns >= (a.messages - a.messages / 3) * slow.delay_ns);
	}
}

/* One switch, one group: hold, create, activate and, in the end, delete, over one connection. */
static void test_round_trips(void **state)
{
	static const struct way star = {"star:2", CCL_MODE_2, CCL_MIXED, 1u << CCL_ALLREDUCE};
	const struct sim_control_conf slow = {.delay_ns = 5 * MS};
	struct outcome out = run(&star, &slow, 1);

	(void)state;
	assert_int_equal(out.messages, 8);
	assert_int_equal(out.set_up_ns, 8 * slow.delay_ns);
	assert_true(out.set_up_hash != 0); /* of control messages alone, so far */
}

/* Any one message breaks its connection, is never heard of again, or comes when nobody waits for it
 * any more: what was asked for is asked for again, and done. */
static void one_fault(const struct way *w, unsigned kind)
{
	const struct sim_control_conf none = {.delay_ns = MS};
	const uint64_t n = run(w, &none, 1).messages;

	assert_in_range(n, 6, MAX_MESSAGES);
	for (uint64_t k = 1; k <= n; k++) {
		struct sim_control_conf c = {.delay_ns = MS, .timeout_ns = 900 * (uint64_t)MS};
		struct outcome out;

		c.break_nth = kind == 0 ? k : 0;
		c.silent_nth = kind == 1 ? k : 0;
		c.late_nth = kind >= 2 ? k : 0;
		c.late_ns = (kind == 2 ? 400 : 20000) * (uint64_t)MS;
		out = run(w, &c, 1);
		if (out.created || out.closed)
			print_error("%s, kind %u, message %llu: %s%s\n", w->topology, kind,
				(unsigned long long)k, out.err, out.close_err);
		assert_int_equal(out.created, 0);
		assert_int_equal(out.closed, 0);
		assert_nothing_left(&out);
	}
}

static void test_any_message_breaks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_WAYS; i++)
		one_fault(&ways[i], 0);
}

static void test_any_message_is_lost(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_WAYS; i++)
		one_fault(&ways[i], 1);
}

static void test_any_message_is_late(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_WAYS; i++) {
		one_fault(&ways[i], 2);
		one_fault(&ways[i], 3);
	}
}

/* Too much goes wrong: an error that names the switch, and what could not be deleted ends by
 * itself.
 */
static void test_hopeless(void **state)
{
	const struct sim_control_conf conf = {.delay_ns = MS,
		.jitter_ns = 2 * MS,
		.loss = 0.1,
		.brk = 0.15,
		.silent = 0.1,
		.timeout_ns = 600 * (uint64_t)MS};
	unsigned failed = 0, worked = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct outcome out = run(&ways[seed % N_WAYS], &conf, seed);

		failed += out.created != 0;
		worked += out.created == 0 && out.closed == 0;
		if (out.created)
			assert_non_null(strstr(out.err, "switch "));
		assert_nothing_left(&out);
	}
	assert_true(failed > 0 && worked > 0);
}

/* An agent that comes back is found again; one that does not is an error, after the timeout. */
static void test_agent_is_away(void **state)
{
	struct sim_control_conf c = {
		.delay_ns = MS, .n_down = 1, .timeout_ns = 2000 * (uint64_t)MS};
	struct outcome out;

	(void)state;
	for (unsigned i = 0; i < N_WAYS; i++)
		for (uint64_t at = 0; at < 40; at++) {
			c.down[0].from = at * MS;
			c.down[0].until = (at + 100) * MS;
			out = run(&ways[i], &c, 1);
			assert_int_equal(out.created, 0);
			assert_int_equal(out.closed, 0);
			assert_nothing_left(&out);
		}
	c.down[0].from = 0;
	c.down[0].until = UINT64_MAX;
	out = run(&ways[0], &c, 1);
	assert_int_equal(out.created, -ECONNREFUSED);
	assert_non_null(strstr(out.err, "nobody listens"));
	assert_in_range(out.set_up_ns / MS, 2000, 2100);
}

/* However many groups there are, a switch that does not answer costs its time once. */
static void test_agents_gone_at_the_end(void **state)
{
	const struct sim_control_conf none = {0};

	(void)state;
	cut_off = true;
	for (unsigned i = 0; i < N_WAYS; i++) {
		struct outcome out = run(&ways[i], &none, 1);

		assert_int_equal(out.created, 0);
		assert_int_equal(out.closed, -ECONNREFUSED);
		assert_non_null(strstr(out.close_err, "switch "));
		assert_nothing_left(&out); /* the switches end what nobody keeps */
		assert_in_range(out.close_ns / MS, 3000, 3 * 3100); /* three switches at most */
	}
	cut_off = false;
}

static void test_same_seed_same_trace(void **state)
{
	struct sim_control_conf conf = {.delay_ns = MS,
		.jitter_ns = 2 * MS,
		.loss = 0.1,
		.brk = 0.1,
		.timeout_ns = 5000 * (uint64_t)MS};

	(void)state;
	for (unsigned i = 0; i < N_WAYS; i++) {
		struct outcome a = run(&ways[i], &conf, 3);
		void *shift = malloc(54321); /* other addresses in the second run */
		struct outcome b = run(&ways[i], &conf, 3), c;

		free(shift);
		conf.delay_ns++;
		c = run(&ways[i], &conf, 3);
		assert_true(a.hash == b.hash && a.messages == b.messages);
		assert_true(a.set_up_ns == b.set_up_ns);
		assert_true(a.hash != c.hash); /* control messages are part of it */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_by_messages),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_any_message_breaks),
		cmocka_unit_test(test_any_message_is_lost),
		cmocka_unit_test(test_any_message_is_late),
		cmocka_unit_test(test_hopeless),
		cmocka_unit_test(test_agent_is_away),
		cmocka_unit_test(test_agents_gone_at_the_end),
		cmocka_unit_test(test_same_seed_same_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
