/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of addresses of bridges, on virtual time: learning, moves, ageing, limits, what is
 * pinned, and what the packet path is told of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dataplane/l2/mac_table.h"

enum { LIMIT = 4, NOWHERE = 0xffff };

static const uint64_t SECOND = UINT64_C(1000000000), AGE = UINT64_C(300000000000);
static const uint8_t own[2][6] = {{2, 0, 0, 0, 1, 0}, {2, 0, 0, 0, 1, 1}};

/* What the packet path has been told. */
static struct told {
	uint64_t key;
	uint16_t port;
	bool used, pinned, heard;
} told[MAC_ENTRIES];
static struct mac_table *t;
static uint64_t now;
static bool full;

static int put(void *arg, unsigned i, const struct mac_entry *e)
{
	assert_ptr_equal(arg, &now);
	assert_ptr_equal(e, &t->entry[i]);
	if (full)
		return -ENOSPC;
	told[i] = (struct told){e->key, e->port, true, e->pinned, told[i].heard};
	return 0;
}

static void forget(void *arg, uint64_t key)
{
	unsigned n = 0;

	(void)arg;
	for (unsigned i = 0; i < MAC_ENTRIES; i++)
		if (told[i].used && told[i].key == key) {
			told[i].used = false;
			n++;
		}
	assert_int_equal(n, 1);
}

static bool heard(void *arg, unsigned i)
{
	const bool was = told[i].heard;

	(void)arg;
	told[i].heard = false;
	return was;
}

static const struct mac_ops ops = {put, forget, heard};

static int start(void **state)
{
	(void)state;
	t = malloc(sizeof(*t));
	assert_non_null(t);
	memset(told, 0, sizeof(told));
	full = false;
	now = 1000 * SECOND;
	mac_table_init(t, LIMIT, AGE, own, 2, &ops, &now);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	free(t);
	return 0;
}

static uint64_t host(unsigned i, uint16_t vlan)
{
	const uint8_t mac[6] = {2, 0, 0, 0, (uint8_t)(i >> 8 | 0x80), (uint8_t)i};

	return mac_key(mac, vlan);
}

/* Where the packet path finds it. */
static unsigned port_of(uint64_t key)
{
	for (unsigned i = 0; i < MAC_ENTRIES; i++)
		if (told[i].used && told[i].key == key)
			return told[i].port;
	return NOWHERE;
}

static struct told *told_of(uint64_t key)
{
	return &told[mac_table_find(t, key) - t->entry];
}

static void tick(uint64_t later)
{
	now += later;
	mac_table_tick(t, now);
}

static void keys(void **state)
{
	const uint8_t mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
	uint8_t back[6];

	(void)state;
	mac_of_key(mac_key(mac, 4094), back);
	assert_memory_equal(mac, back, 6);
	assert_int_equal(mac_vlan_of_key(mac_key(mac, 4094)), 4094);
	assert_int_equal(mac_vlan_of_key(mac_key(mac, 0)), 0);
}

static void learns_and_moves(void **state)
{
	(void)state;
	mac_table_heard(t, host(1, 0), 3, now);
	assert_int_equal(port_of(host(1, 0)), 3);
	mac_table_heard(t, host(1, 0), 3, now);
	assert_int_equal(t->count.learnt, 1);
	mac_table_heard(t, host(1, 0), 5, now);
	assert_int_equal(port_of(host(1, 0)), 5);
	assert_int_equal(t->count.moved, 1);
	assert_int_equal(t->count.learnt, 1);
	assert_int_equal(t->n_of[3], 0);
	assert_int_equal(t->n_of[5], 1);
}

static void vlans_are_apart(void **state)
{
	(void)state;
	mac_table_heard(t, host(1, 0), 1, now);
	mac_table_heard(t, host(1, 7), 2, now);
	assert_int_equal(port_of(host(1, 0)), 1);
	assert_int_equal(port_of(host(1, 7)), 2);
	assert_int_equal(port_of(host(1, 8)), NOWHERE);
	assert_int_equal(t->count.moved, 0);
}

/* Of no host: groups, nobody, the switch. */
static void never_learnt(void **state)
{
	static const uint8_t macs[][6] = {{1, 0, 0x5e, 0, 0, 1},
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x33, 0x33, 0, 0, 0, 1}, {0},
		{2, 0, 0, 0, 1, 0}, {2, 0, 0, 0, 1, 1}};

	(void)state;
	for (unsigned i = 0; i < sizeof(macs) / sizeof(macs[0]); i++) {
		mac_table_heard(t, mac_key(macs[i], 0), 1, now);
		mac_table_heard(t, mac_key(macs[i], 9), 1, now);
	}
	assert_int_equal(t->n_learnt, 0);
	assert_int_equal(t->count.learnt, 0);
}

static void ages(void **state)
{
	(void)state;
	mac_table_heard(t, host(1, 0), 1, now);
	mac_table_heard(t, host(2, 0), 1, now);
	for (unsigned i = 0; i < 299; i++)
		tick(SECOND);
	assert_int_equal(t->n_learnt, 2);
	told_of(host(2, 0))->heard = true; /* a worker has */
	tick(SECOND);
	assert_int_equal(port_of(host(1, 0)), NOWHERE);
	assert_int_equal(port_of(host(2, 0)), 1);
	assert_int_equal(t->count.aged, 1);
	assert_int_equal(t->n_of[1], 1);
	for (unsigned i = 0; i < 299; i++)
		tick(SECOND);
	assert_int_equal(port_of(host(2, 0)), 1);
	tick(SECOND);
	assert_int_equal(t->n_learnt, 0);
	/* Its place is another's. */
	mac_table_heard(t, host(3, 0), 2, now);
	assert_int_equal(port_of(host(3, 0)), 2);
}

static void ports_are_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * LIMIT; i++)
		mac_table_heard(t, host(i, 0), 1, now);
	assert_int_equal(t->n_learnt, LIMIT);
	assert_int_equal(t->count.refused, LIMIT);
	mac_table_heard(t, host(20, 0), 2, now); /* another port is not hurt */
	assert_int_equal(port_of(host(20, 0)), 2);
	/* Nobody moves to a port that is full. */
	mac_table_heard(t, host(20, 0), 1, now);
	assert_int_equal(port_of(host(20, 0)), 2);
	assert_int_equal(t->count.refused, LIMIT + 1);
	assert_int_equal(t->count.moved, 0);
}

static void table_is_bounded(void **state)
{
	(void)state;
	t->max_per_port = MAC_MAX;
	for (unsigned i = 0; i < MAC_MAX + 10; i++)
		mac_table_heard(t, host(i, 0), (uint16_t)(i % 2), now);
	assert_int_equal(t->n_learnt, MAC_MAX);
	assert_int_equal(t->count.refused, 10);
}

static void no_room_at_the_workers(void **state)
{
	const struct mac_pin pin = {host(2, 0), 3};

	(void)state;
	full = true;
	mac_table_heard(t, host(1, 0), 1, now);
	assert_int_equal(t->n_learnt, 0);
	assert_int_equal(t->count.refused, 1);
	mac_table_pin(t, &pin, 1);
	tick(0);
	assert_int_equal(port_of(host(2, 0)), NOWHERE);
	full = false;
	tick(SECOND / 10); /* what is pinned is told until it is taken */
	assert_int_equal(port_of(host(2, 0)), 3);
}

static void pinned(void **state)
{
	struct mac_pin pins[] = {{host(1, 0), 3}, {host(2, 5), 4}};

	(void)state;
	mac_table_heard(t, host(1, 0), 1, now);
	mac_table_pin(t, pins, 2);
	assert_int_equal(port_of(host(1, 0)), 3);
	assert_int_equal(port_of(host(2, 5)), 4);
	assert_int_equal(t->n_of[1], 0);
	assert_int_equal(t->n_learnt, 0);
	/* Whoever lies does not move it, and silence does not end it. */
	mac_table_heard(t, host(1, 0), 1, now);
	assert_int_equal(port_of(host(1, 0)), 3);
	for (unsigned i = 0; i < 400; i++)
		tick(SECOND);
	mac_table_flush(t, 3);
	assert_int_equal(port_of(host(1, 0)), 3);
	pins[0].port = 6;
	mac_table_pin(t, pins, 1);
	assert_int_equal(port_of(host(1, 0)), 6);
	assert_int_equal(port_of(host(2, 5)), NOWHERE);
	mac_table_pin(t, NULL, 0);
	assert_int_equal(port_of(host(1, 0)), NOWHERE);
	mac_table_heard(t, host(1, 0), 1, now);
	assert_int_equal(port_of(host(1, 0)), 1);
	assert_int_equal(t->count.moved, 0);
}

/* As many others in one go. */
static void all_pins_change(void **state)
{
	static struct mac_pin pins[MAC_MAX_STATIC];

	(void)state;
	t->max_per_port = MAC_MAX;
	for (unsigned i = 0; i < MAC_MAX; i++)
		mac_table_heard(t, host(i, 1), 1, now);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < MAC_MAX_STATIC; i++)
			pins[i] = (struct mac_pin){host(round * MAC_MAX_STATIC + i, 2), 2};
		mac_table_pin(t, pins, MAC_MAX_STATIC);
		assert_int_equal(t->n_pinned, MAC_MAX_STATIC);
	}
	assert_int_equal(port_of(host(0, 2)), NOWHERE);
	assert_int_equal(port_of(host(MAC_MAX_STATIC, 2)), 2);
}

static void link_down(void **state)
{
	(void)state;
	mac_table_heard(t, host(1, 0), 1, now);
	mac_table_heard(t, host(2, 0), 2, now);
	mac_table_flush(t, 1);
	assert_int_equal(port_of(host(1, 0)), NOWHERE);
	assert_int_equal(port_of(host(2, 0)), 2);
	assert_int_equal(t->count.flushed, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {T(keys), T(learns_and_moves), T(vlans_are_apart),
		T(never_learnt), T(ages), T(ports_are_bounded), T(table_is_bounded),
		T(no_room_at_the_workers), T(pinned), T(all_pins_change), T(link_down)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
