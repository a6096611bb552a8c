/* SPDX-License-Identifier: BSD-3-Clause */
/* Aggregation memory that a port still reads. A ring port keeps the buffers that it is given until
 * somebody takes them, as the descriptors of a paused NIC do. */
#include <errno.h>
#include <string.h>

#include "collective.h"

enum { MTU = 1024, ALL = 4096 /* slots that fill the arena */ };

static uint64_t used(void)
{
	uint64_t size, taken;

	sw_arena_usage(sw, &size, &taken);
	return taken;
}

static void named(const char *name, unsigned slots)
{
	c_spec(2, MTU, false, false);
	strcpy(spec.name, name);
	spec.slots = slots;
}

static void send(unsigned slot, unsigned host, unsigned psn, uint8_t opcode, uint32_t imm,
	const void *data, unsigned len)
{
	uint8_t b[H_FRAME_MAX];

	h_inject(sw, host, b, c_host_frame(b, slot, host, opcode, psn, imm, data, len));
	h_run(sw);
}

/* An operation, acknowledged by both, whose results the ports have and nobody has taken. */
static void operation(unsigned slot)
{
	static const uint8_t data[MTU] = {1};
	uint8_t pay[CTRL_LEN];
	uint32_t imm = c_control(pay, MTU, MTU, 0), psn = psn_add(START_PSN, 1);

	for (unsigned host = 0; host < 2; host++)
		send(slot, host, START_PSN, ROCE_SEND_ONLY_IMM, imm, pay, CTRL_LEN);
	for (unsigned host = 0; host < 2; host++)
		send(slot, host, psn, ROCE_SEND_ONLY, 0, data, MTU);
	for (unsigned host = 0; host < 2; host++)
		send(slot, host, psn, ROCE_ACK, 0, NULL, 0);
}

static void take_all(unsigned port)
{
	struct frame f;

	while (h_take(sw, port, &f))
		;
}

/* Nobody else gets it, however the group ends. */
static void deleted(void **state)
{
	unsigned a, b;

	(void)state;
	named("a", ALL);
	a = c_create();
	operation(a);
	assert_int_equal(sw_group_delete(sw, a, true, err), 0);
	sw_tick(sw, port_now_ns());
	assert_true(used() > 0);
	assert_int_equal(h_value(sw, "arena_draining_bytes"), used());
	named("b", ALL);
	assert_int_equal(sw_group_create(sw, &spec, true, &b, err), -ENOSPC);
	assert_non_null(strstr(err, "wait for ports that may still read them"));
	take_all(0);
	sw_tick(sw, port_now_ns());
	assert_int_equal(sw_group_create(sw, &spec, true, &b, err), -ENOSPC);
	take_all(1);
	sw_tick(sw, port_now_ns());
	assert_int_equal(h_value(sw, "arena_draining_bytes"), 0);
	assert_int_equal(used(), 0);
	b = c_create();
	assert_int_equal(b, a);
}

/* Its slot counts for the old one until then. */
static void slot_rests(void **state)
{
	unsigned a, b;

	(void)state;
	named("a", 0);
	a = c_create();
	operation(a);
	assert_int_equal(sw_group_delete(sw, a, true, err), 0);
	named("b", 0);
	b = c_create();
	assert_int_not_equal(b, a);
	take_all(0);
	take_all(1);
	sw_tick(sw, port_now_ns());
	named("c", 0);
	assert_int_equal(c_create(), a);
}

static void moved(void **state)
{
	unsigned a;

	(void)state;
	named("a", 0);
	a = c_create();
	operation(a);
	assert_int_equal(sw_group_rebind(sw, a, false, err), 0);
	assert_true(used() > 0);
	assert_true(sw_group_get(sw, a)->pay_off != INC_NO_ARENA);
	assert_int_equal(sw_group_get(sw, a)->state, INC_INSTALLED);
	assert_int_equal(sw_group_activate(sw, a, NULL, 0, err), -EBUSY);
	assert_non_null(strstr(err, "group a is given or losing memory"));
	assert_int_equal(sw_group_rebind(sw, a, true, err), -EBUSY);
	take_all(0);
	take_all(1);
	sw_tick(sw, port_now_ns());
	assert_int_equal(used(), 0);
	assert_int_equal(sw_group_get(sw, a)->state, INC_ACTIVE);
}

static unsigned tenant(const char *name)
{
	named(name, 0);
	strcpy(spec.lease, "pool");
	strcpy(spec.tenant, name);
	return c_create();
}

/* The next tenant has the same memory. */
static void leased(void **state)
{
	unsigned a, b;
	bool pending;

	(void)state;
	a = tenant("a");
	b = tenant("b");
	assert_int_equal(sw_lease_acquire(sw, "pool", "a", err), 0);
	operation(a);
	assert_int_equal(sw_lease_release(sw, "pool", "a", &pending, err), 0);
	assert_true(pending);
	assert_int_equal(sw_lease_acquire(sw, "pool", "b", err), -EBUSY);
	take_all(0);
	assert_int_equal(sw_lease_acquire(sw, "pool", "b", err), -EBUSY);
	assert_non_null(strstr(err, "which is letting go"));
	take_all(1);
	assert_int_equal(sw_lease_acquire(sw, "pool", "b", err), 0);
	assert_true(sw_group_get(sw, b)->pay_off != INC_NO_ARENA);
}

/* The switch ends in time although a port holds on to what it has. */
static void at_the_end(void **state)
{
	unsigned a;

	(void)state;
	named("a", ALL);
	a = c_create();
	operation(a);
	assert_int_equal(sw_group_delete(sw, a, true, err), 0);
	assert_non_null(sw->deferred);
}

/* Queue pairs that begin anew (docs/inc-protocol.md, 3.7): between operations, at the PSN that is
 * next, in the memory that the group has. */
static void begins_anew(void **state)
{
	const uint32_t next = psn_add(START_PSN, 2);
	uint8_t pay[CTRL_LEN];
	struct inc_group *g;
	unsigned slot;
	uint64_t off;
	bool done;

	(void)state;
	named("a", 8);
	slot = c_create();
	g = sw_group_get(sw, slot);
	off = g->pay_off;
	assert_int_equal(sw_group_resync(sw, slot, START_PSN, &done, err), 0);
	assert_true(done); /* as it was made */
	operation(slot);
	assert_int_equal(sw_group_resync(sw, slot, START_PSN, &done, err), -EINVAL);
	assert_string_equal(err, "psn: the next operation's is 0");
	assert_false(inc_group_is_anew(g));
	assert_int_equal(sw_group_resync(sw, slot, next, &done, err), 0);
	h_run(sw);
	assert_int_equal(sw_group_resync(sw, slot, next, &done, err), 0);
	assert_true(done);
	assert_true(inc_group_is_anew(g));
	assert_int_equal(g->state, INC_ACTIVE);
	assert_true(g->pay_off == off && used() == g->pay_bytes);
	/* Once more does no harm; then somebody begins, and waits. */
	assert_int_equal(sw_group_resync(sw, slot, next, &done, err), 0);
	assert_true(done);
	send(slot, 0, next, ROCE_SEND_ONLY_IMM, c_control(pay, MTU, MTU, 1), pay, CTRL_LEN);
	assert_int_equal(sw_group_resync(sw, slot, psn_add(next, 2), &done, err), -EBUSY);
	assert_false(done);
	assert_non_null(strstr(err, "waits for ranks 1"));
	assert_int_equal(sw_group_resync(sw, 77, 0, &done, err), -ENOENT);
	assert_int_equal(sw_group_fail(sw, slot, err), 0);
	assert_int_equal(sw_group_resync(sw, slot, psn_add(next, 2), &done, err), -ECANCELED);
	assert_string_equal(err, "the group is failed");
	assert_int_equal(sw_group_delete(sw, slot, true, err), 0);
	take_all(0);
	take_all(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, c_start, c_stop)
		T(deleted),
		T(slot_rests),
		T(moved),
		T(begins_anew),
		T(leased),
		T(at_the_end),
#undef T
	};
	int failed_tests = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed_tests;
}
