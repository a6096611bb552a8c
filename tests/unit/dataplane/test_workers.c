/* SPDX-License-Identifier: BSD-3-Clause */
/* Several workers, turned by hand in one thread: a group is of one of them, wherever its packets
 * arrive, and may go to another at any moment. */
#include <errno.h>
#include <string.h>

#include "collective.h"
#include "dataplane/runtime/handoff.h"
#include "dataplane/runtime/host_ops.h"

enum { HOSTS = 4 };

static uint8_t payload[CTRL_LEN];

static int start(const char *more)
{
	sw = h_start(HOSTS, more, NULL);
	err[0] = '\0';
	return 0;
}

static int start_two(void **state)
{
	(void)state;
	return start("{'workers':2}");
}

static void turn(unsigned worker)
{
	sw_turn(sw, worker, port_now_ns());
}

/* A barrier's packet of host i; the switch has not turned yet. */
static void send(unsigned slot, unsigned i)
{
	const uint32_t imm = c_control(payload, 0, spec.mtu, 0);
	uint8_t b[H_FRAME_MAX];

	h_inject(sw, i, b,
		c_host_frame(b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, payload, CTRL_LEN));
}

static unsigned results(void)
{
	unsigned n = 0;
	struct frame f;

	for (unsigned i = 0; i < HOSTS; i++)
		while (h_take(sw, i, &f))
			n++;
	return n;
}

/* Ports 0 and 2 are worker 0's, 1 and 3 worker 1's. */
static void packets_go_to_the_owner(void **state)
{
	unsigned slot;

	(void)state;
	c_spec(HOSTS, 256, false, false);
	slot = c_create();
	assert_int_equal(sw_group_worker(sw, slot), 0);
	for (unsigned i = 0; i < HOSTS; i++)
		send(slot, i);
	turn(0);
	assert_int_equal(sw->worker[0]->handed_over, 0);
	assert_int_equal(results(), 0);
	turn(1);
	assert_int_equal(sw->worker[1]->handed_over, 2);
	assert_int_equal(results(), 0); /* worker 0 has not seen them */
	turn(0);
	assert_int_equal(sw->worker[0]->taken_over, 2);
	assert_int_equal(results(), HOSTS);
}

/* The trace of a packet that is handed over goes on. */
static void a_trace_goes_along(void **state)
{
	struct sw_trace_rec rec[64];
	unsigned slot, n, verdicts = 0, first = 0;

	(void)state;
	c_spec(HOSTS, 256, false, false);
	slot = c_create();
	assert_int_equal(sw_trace_start(sw, 1, 1, err), 0);
	send(slot, 1);
	send(slot, 3);
	h_run(sw);
	n = sw_trace_read(sw, 0, rec, 64);
	assert_in_range(n, 4, 63);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(rec[i].packet, 1);
		first += strcmp(rec[i].text, "to worker 0") == 0;
		verdicts += strcmp(rec[i].node, "inc_engine") == 0;
	}
	assert_int_equal(first, 1);
	assert_true(verdicts > 0);
}

static void a_full_ring_is_counted(void **state)
{
	const unsigned more = 100;
	unsigned slot;

	(void)state;
	c_spec(HOSTS, 256, false, false);
	slot = c_create();
	for (unsigned i = 0; i < HANDOFF_RING - 1 + more; i++) {
		send(slot, 1);
		turn(1); /* and never 0 */
	}
	assert_int_equal(h_drop(sw, "handoff_full"), more);
	assert_int_equal(sw->worker[1]->handed_over, HANDOFF_RING - 1);
	h_run(sw);
	assert_int_equal(sw->worker[0]->taken_over, HANDOFF_RING - 1);
}

/* In the middle of an operation, with a packet on its way to the old owner. */
static void a_group_moves(void **state)
{
	struct sw_worker info;
	unsigned slot;

	(void)state;
	c_spec(HOSTS, 256, false, false);
	slot = c_create();
	send(slot, 0);
	h_run(sw);
	send(slot, 1);
	turn(1); /* handed over to worker 0 */
	assert_int_equal(sw_group_move(sw, slot, 1, err), 0);
	assert_int_equal(sw_group_worker(sw, slot), 1);
	send(slot, 2);
	send(slot, 3);
	h_run(sw);
	assert_int_equal(results(), HOSTS);
	assert_int_equal(sw->worker[1]->taken_over, 2); /* hosts 1's, which came back, and 2's */
	assert_int_equal(h_losses(sw), 0);
	assert_int_equal(sw_worker_get(sw, 0, &info), 0);
	assert_int_equal(info.groups, 0);
	assert_int_equal(sw_worker_get(sw, 1, &info), 0);
	assert_int_equal(info.groups, 1);
	assert_int_equal(sw_worker_get(sw, 2, &info), -ENOENT);
	assert_int_equal(sw_group_move(sw, slot, 2, err), -ENOENT);
	assert_string_equal(err, "worker: there are 2, from 0 on");
	assert_int_equal(sw_group_move(sw, slot + 1, 0, err), -ENOENT);
}

/* What was sent by reference is read until it has come back, whoever has sent it. */
static void memory_is_read_over_all_workers(void **state)
{
	unsigned slot;

	(void)state;
	c_spec(HOSTS, 256, false, false);
	slot = c_create();
	assert_false(sw_host_is_read(sw, slot));
	sw->worker[1]->lent[slot].given++;
	assert_true(sw_host_is_read(sw, slot));
	sw->worker[0]->lent[slot].returned++;
	assert_true(sw_host_is_read(sw, slot));
	sw->worker[0]->lent[slot].given++;
	sw->worker[1]->lent[slot].returned++;
	assert_false(sw_host_is_read(sw, slot));
}

static void groups_are_spread(void **state)
{
	unsigned n[2] = {0};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		c_spec(HOSTS, 256, i & 1, false);
		snprintf(spec.name, sizeof(spec.name), "g%u", i);
		n[sw_group_worker(sw, c_create())]++;
	}
	assert_int_equal(n[0], 2);
	assert_int_equal(n[1], 2);
}

static int start_addresses(void **state)
{
	(void)state;
	return start("{'workers':2,'addresses':['fd00::1','10.0.0.1','10.0.0.2']}");
}

/* One address is one worker's, so that a NIC can tell them apart. */
static void groups_go_by_address(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		c_spec(HOSTS, 256, false, false);
		snprintf(spec.name, sizeof(spec.name), "g%u", i);
		for (unsigned k = 0; k < HOSTS; k++)
			eps[k].local_ip = h_ip(i < 3 ? "10.0.0.2" : "10.0.0.1");
		assert_int_equal(sw_group_worker(sw, c_create()), i < 3 ? 1 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(packets_go_to_the_owner, start_two, c_stop),
		cmocka_unit_test_setup_teardown(a_trace_goes_along, start_two, c_stop),
		cmocka_unit_test_setup_teardown(a_full_ring_is_counted, start_two, c_stop),
		cmocka_unit_test_setup_teardown(a_group_moves, start_two, c_stop),
		cmocka_unit_test_setup_teardown(memory_is_read_over_all_workers, start_two, c_stop),
		cmocka_unit_test_setup_teardown(groups_are_spread, start_two, c_stop),
		cmocka_unit_test_setup_teardown(groups_go_by_address, start_addresses, c_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
