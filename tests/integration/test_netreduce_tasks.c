/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce on virtual time: random sequences of what it offers (AllReduce of any type and
 * operation, Barrier) over links that lose, duplicate and reorder, and links that are pulled.
 *   test_netreduce_tasks [SEED [TEST [COLLECTIVES [MAXBYTES]]]] repeats one, or runs a longer one.
 */
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
#include "tests/unit/ccl/task.h"

enum { BATCH = 6, HOSTS = 4, BYTES = 400000 };

static const uint64_t second = 1000000000, timeout = 5000000000;
static uint64_t seed = 20265;
static unsigned n_collectives;
static size_t max_bytes = 20000;

static struct ring_fabric *make(unsigned leaves)
{
	const struct rf_opts opts = {
		.n_hosts = HOSTS,
		.n_leaves = leaves,
		.mtu = 256,
		.m = 4,
		.w = 8,
		.start_psn = 0xffff00,
		.first_msg = 0xfffffff0,
		.seed = seed,
		.timeout_ns = timeout,
		.netreduce = true,
		.psn_known = true, /* as CommLib installs it */
	};

	return rf_create(&opts);
}

/* AllReduce, now and then a Barrier. */
static void draw(struct task *t, uint64_t *rng)
{
	const bool barrier = task_random(rng, 6) == 0;

	task_make(t, rng, HOSTS, barrier ? CCL_BARRIER : CCL_ALLREDUCE, max_bytes);
}

static int start(struct ring_fabric *f, struct task *t, unsigned r)
{
	struct ccl_ring *ring = rf_ring(f, r);

	if (t->kind == CCL_BARRIER)
		return ccl_ring_ibarrier(ring, &t->req[r]);
	return ccl_ring_iallreduce(
		ring, t->send[r], t->recv[r], t->count, t->dtype, t->op, &t->req[r]);
}

static void register_all(struct ring_fabric *f, const struct task *t, bool on)
{
	for (unsigned r = 0; t->registered && t->send_len && r < HOSTS; r++)
		assert_int_equal(on ? ccl_ring_register(rf_ring(f, r), t->send[r], t->send_len)
				    : ccl_ring_deregister(rf_ring(f, r), t->send[r]),
			0);
}

static void give_up(struct ring_fabric *f, const struct task *t, unsigned done, int rc)
{
	for (unsigned r = 0; r < HOSTS; r++)
		fprintf(stderr, "rank %u: %s\n", r, ccl_ring_error(rf_ring(f, r)));
	fail_msg("%s after %u collectives, at %s of %zu bytes: seed %llu", strerror(-rc), done,
		ccl_collective_name(t->kind), t->size, (unsigned long long)seed);
}

/* ---- sequences ---- */

/* n collectives at once, the ranks at different times. */
static void batch(struct ring_fabric *f, uint64_t *rng, unsigned n, unsigned done)
{
	static struct task t[BATCH];
	char why[200];
	int rc;

	for (unsigned i = 0; i < n; i++) {
		draw(&t[i], rng);
		register_all(f, &t[i], true);
	}
	for (unsigned r = 0; r < HOSTS; r++) {
		for (unsigned i = 0; i < n; i++)
			if ((rc = start(f, &t[i], r)))
				give_up(f, &t[i], done, rc);
		if (task_random(rng, 4) == 0)
			rf_run(f, task_random(rng, 3000000));
	}
	for (unsigned i = 0; i < n; i++) {
		if ((rc = rf_wait(f, t[i].req, 600 * second)))
			give_up(f, &t[i], done + i, rc);
		if (!task_right(&t[i], why, sizeof(why)))
			fail_msg("%s; %u before it; seed %llu", why, done + i,
				(unsigned long long)seed);
	}
	for (unsigned i = 0; i < n; i++) {
		register_all(f, &t[i], false);
		task_free(&t[i]);
	}
}

static void sequence(unsigned leaves)
{
	const struct rf_faults one_percent = {.loss = 0.01, .dup = 0.01, .reorder = 0.01};
	const unsigned n = n_collectives ? n_collectives : 1000;
	struct ring_fabric *f = make(leaves);
	uint64_t rng = seed;

	printf("seed %llu: %u leaves, %u collectives\n", (unsigned long long)seed, leaves, n);
	rf_set_faults(f, &one_percent);
	for (unsigned done = 0; done < n;) {
		const unsigned more = 1 + task_random(&rng, BATCH);

		batch(f, &rng, more, done);
		done += more;
	}
	assert_true(rf_switch(f, leaves)->ring->count[NR_C_DUP] > 0);
	rf_destroy(f);
}

static void star(void **state)
{
	(void)state;
	sequence(0);
}

static void racks(void **state)
{
	(void)state;
	sequence(2);
}

/* ---- links ---- */

static void set_link(struct ring_fabric *f, bool uplink, bool up)
{
	if (uplink)
		rf_set_uplink(f, 2, up);
	else
		rf_set_host_link(f, 1, up);
}

/* Within the bound every rank knows why, or has its result. */
static void all_failed(struct ring_fabric *f, const struct task *t)
{
	rf_run(f, timeout * 11 / 10);
	for (unsigned r = 0; r < HOSTS; r++)
		if (ccl_ring_test(rf_ring(f, r), t->req[r]) != 1 &&
			strstr(ccl_ring_error(rf_ring(f, r)), "10.77.0.") == NULL)
			fail_msg("rank %u: \"%s\"", r, ccl_ring_error(rf_ring(f, r)));
}

static bool all_done(struct ring_fabric *f, const struct task *t)
{
	unsigned done = 0;

	for (unsigned r = 0; r < HOSTS; r++)
		done += ccl_ring_test(rf_ring(f, r), t->req[r]) == 1;
	return done == HOSTS;
}

static void link_down(unsigned leaves, bool uplink, uint64_t down, bool may_fail)
{
	struct ring_fabric *f = make(leaves);
	uint64_t rng = seed;
	struct task t;
	char why[200];
	int rc;

	do {
		task_make(&t, &rng, HOSTS, CCL_ALLREDUCE, BYTES);
		if (t.size < BYTES / 2)
			task_free(&t);
	} while (t.size < BYTES / 2);
	for (unsigned r = 0; r < HOSTS; r++)
		assert_int_equal(start(f, &t, r), 0);
	rf_run(f, 15000);
	assert_false(all_done(f, &t));
	set_link(f, uplink, false);
	rf_run(f, down);
	assert_false(all_done(f, &t));
	set_link(f, uplink, true);
	rc = rf_wait(f, t.req, 10 * timeout);
	if (rc != 0 && may_fail)
		all_failed(f, &t);
	else if (rc != 0)
		give_up(f, &t, 0, rc);
	else if (!task_right(&t, why, sizeof(why)))
		fail_msg("%s", why);
	rf_destroy(f); /* before the buffers: the device may still write to them */
	task_free(&t);
}

/* A third of a second is nothing; after two seconds a queue pair may have given up. */
static void links(void **state)
{
	static const uint64_t ms = 1000000;

	(void)state;
	link_down(0, false, 300 * ms, false);
	link_down(2, false, 300 * ms, false);
	link_down(2, true, 300 * ms, false);
	link_down(0, false, 2000 * ms, true);
	link_down(2, false, 2000 * ms, true);
	link_down(2, true, 2000 * ms, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(star),
		cmocka_unit_test(racks),
		cmocka_unit_test(links),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	if (argc > 3)
		n_collectives = (unsigned)strtoul(argv[3], NULL, 0);
	if (argc > 4)
		max_bytes = strtoul(argv[4], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
