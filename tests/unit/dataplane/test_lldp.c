/* SPDX-License-Identifier: BSD-3-Clause */
/* LLDP: who is at the other end of a port. The table alone, and the switch with it; a flood,
 * nonsense, a bridge, a switch that does not speak it. */
#include <errno.h>
#include <rte_ethdev.h>
#include <string.h>

#include "dataplane/l2/lldp_note.h"
#include "hangs.h"
#include "harness.h"
#include "lib/lldp/table.h"

enum { N = 3 };
static const uint64_t S = UINT64_C(1000000000);

/* Neighbour i, at his port j. */
static struct wire_lldp who(unsigned i, unsigned j, uint16_t ttl)
{
	return (struct wire_lldp){
		.chassis = {LLDP_CHASSIS_MAC, 6, {2, 0, 0, 9, (uint8_t)(i >> 8), (uint8_t)i}},
		.port = {LLDP_PORT_INTERFACE, 2, {'p', (uint8_t)('0' + j)}},
		.name_len = 2,
		.name = {'n', (uint8_t)('0' + i % 10)},
		.ttl = ttl};
}

/* ---- the table ---- */

static struct lldp_table *t;

static int empty(void **state)
{
	(void)state;
	t = lldp_table_new(2);
	return t ? 0 : -1;
}

static int gone(void **state)
{
	(void)state;
	free(t);
	return 0;
}

static void hear(unsigned port, struct wire_lldp says, uint64_t now)
{
	lldp_heard(t, port, &says, now);
}

/* Four times in the first seconds of a link, then every half minute; again when it comes back. */
static void rhythm(void **state)
{
	(void)state;
	for (uint64_t at = 100 * S; at < 500 * S; at += 300 * S) {
		for (unsigned i = 0; i < LLDP_FAST; i++) {
			assert_true(lldp_turn(t, 0, true, at + i * S));
			assert_false(lldp_turn(t, 0, true, at + i * S));
			assert_false(lldp_turn(t, 0, true, at + i * S + S - 1));
		}
		for (unsigned i = 1; i < 4; i++) {
			const uint64_t due = at + (LLDP_FAST - 1) * S + i * LLDP_EVERY_NS;

			assert_false(lldp_turn(t, 0, true, due - 1));
			assert_true(lldp_turn(t, 0, true, due));
		}
		assert_false(lldp_turn(t, 0, false, at + 200 * S));
	}
	assert_true(lldp_turn(t, 1, true, 0));
}

/* Whoever is new is told soon who we are; what he says then changes nothing of that, nor do any
 * number of others. */
static void newcomers(void **state)
{
	unsigned sent = 0;

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		lldp_turn(t, 0, true, i * S);
	hear(0, who(1, 1, 120), 10 * S);
	for (uint64_t at = 10 * S; at <= 60 * S; at += S / 10)
		sent += lldp_turn(t, 0, true, at);
	assert_int_equal(sent, LLDP_FAST + 1);
	hear(0, who(1, 1, 120), 60 * S);
	assert_false(lldp_turn(t, 0, true, 61 * S));
	/* A hundred a second, each of whom goes at once. */
	sent = 0;
	for (uint64_t at = 61 * S; at < 71 * S; at += S / 100) {
		hear(0, who(2 + (unsigned)(at / (S / 100)), 1, 120), at);
		hear(0, who(2 + (unsigned)(at / (S / 100)), 1, 0), at);
		sent += lldp_turn(t, 0, true, at);
	}
	assert_true(sent <= 10);
	assert_int_equal(lldp_neighbours(t), 1);
}

static void forgotten(void **state)
{
	(void)state;
	lldp_turn(t, 0, true, 0);
	lldp_turn(t, 1, true, 0);
	hear(0, who(1, 1, 20), 0);
	hear(0, who(1, 2, 10), 0);
	hear(1, who(1, 1, 10), 0);
	assert_int_equal(lldp_neighbours(t), 3);
	/* Time, from when he has spoken last, and as he said then. */
	hear(0, who(1, 2, 30), 5 * S);
	lldp_turn(t, 0, true, 20 * S - 1);
	assert_int_equal(lldp_neighbours(t), 3);
	lldp_turn(t, 0, true, 20 * S);
	assert_int_equal(lldp_neighbours(t), 2);
	assert_int_equal(t->count.expired, 1);
	/* He says so himself; who was never there may say it, too. */
	hear(0, who(1, 1, 0), 21 * S);
	assert_int_equal(lldp_neighbours(t), 2);
	hear(0, who(1, 2, 0), 21 * S);
	assert_int_equal(lldp_neighbours(t), 1);
	/* The link. */
	lldp_turn(t, 1, false, 1);
	assert_int_equal(lldp_neighbours(t), 0);
	assert_int_equal(t->count.expired, 1);
}

/* A word of 18 hours is kept as long as the next one. */
static void not_for_ever(void **state)
{
	(void)state;
	lldp_turn(t, 0, true, 0);
	hear(0, who(1, 1, UINT16_MAX), S);
	hear(0, who(2, 1, LLDP_KEPT_S), S);
	lldp_turn(t, 0, true, (1 + LLDP_KEPT_S) * S - 1);
	assert_int_equal(lldp_neighbours(t), 2);
	lldp_turn(t, 0, true, (1 + LLDP_KEPT_S) * S);
	assert_int_equal(lldp_neighbours(t), 0);
}

/* When the next turn is wanted: nobody has to ask in between. */
static void due(void **state)
{
	(void)state;
	assert_true(lldp_due(t, 0) == UINT64_MAX); /* no link */
	lldp_turn(t, 0, true, S);
	assert_true(lldp_due(t, 0) == 2 * S);
	hear(0, who(1, 1, 20), S);
	for (unsigned i = 2; i < 5; i++)
		assert_true(lldp_turn(t, 0, true, lldp_due(t, 0)));
	assert_true(lldp_due(t, 0) == 21 * S); /* he is forgotten */
	assert_false(lldp_turn(t, 0, true, 21 * S));
	assert_int_equal(lldp_neighbours(t), 0);
	assert_true(lldp_due(t, 0) == 4 * S + LLDP_EVERY_NS);
	lldp_turn(t, 0, false, 22 * S);
	assert_true(lldp_due(t, 0) == UINT64_MAX);
}

static void full(void **state)
{
	(void)state;
	lldp_turn(t, 0, true, 0);
	for (unsigned i = 0; i < LLDP_PER_PORT + 3; i++)
		hear(0, who(i, 1, 10), i);
	assert_int_equal(lldp_neighbours(t), LLDP_PER_PORT);
	assert_int_equal(t->count.refused, 3);
	hear(0, who(0, 1, 60), S); /* who is there stays */
	assert_int_equal(t->count.refused, 3);
	lldp_turn(t, 0, true, 11 * S);
	assert_int_equal(lldp_neighbours(t), 1);
	hear(0, who(99, 1, 10), 11 * S);
	assert_int_equal(lldp_neighbours(t), 2);
}

/* ---- the switch ---- */

static struct sw *sw;
static uint64_t now, still; /* still: the workers' time while they hear */

static void tick(uint64_t at)
{
	now = at;
	sw_tick(sw, now);
	h_run(sw);
}

static unsigned forget_frames(void)
{
	struct frame f;
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		while (h_take(sw, i, &f))
			n++;
	return n;
}

static void begin(const char *more, const char *port_more)
{
	sw = h_start(N, more, port_more);
	tick(port_now_ns());
	still = port_now_ns();
}

static int start(void **state)
{
	(void)state;
	begin("{'lldp':true,'name':'leaf0'}", NULL);
	return 0;
}

static void end(void)
{
	forget_frames();
	h_stop_whole(sw);
}

static int stop(void **state)
{
	(void)state;
	end();
	return 0;
}

/* A neighbour, by a port. */
static void say(unsigned port, struct wire_lldp says)
{
	uint8_t b[LLDP_MAX_LEN];
	const int len = wire_build_lldp(b, sizeof(b), says.chassis.b, &says);

	assert_true(len > 0);
	h_inject(sw, port, b, (unsigned)len);
	for (unsigned i = 0; i < sw->n_workers; i++)
		sw_turn(sw, i, still);
}

/* Who we are, by each port, as another one reads it. */
static void speaks(void **state)
{
	struct wire_lldp says;
	struct frame f;
	char text[SW_LLDP_TEXT], own[SW_LLDP_TEXT];

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		assert_true(h_take(sw, i, &f));
		assert_true(wire_is_lldp(f.b, f.len));
		assert_memory_equal(f.b + 6, h_port_mac(sw, i), 6);
		assert_int_equal(wire_lldp_parse(f.b, f.len, &says), WIRE_LLDP_OK);
		assert_memory_equal(says.chassis.b, h_port_mac(sw, 0), 6);
		assert_string_equal(wire_lldp_chassis_text(&says.chassis, text, sizeof(text)),
			sw_lldp_chassis(sw, own));
		assert_string_equal(wire_lldp_port_text(&says.port, text, sizeof(text)),
			sw->ports[i].config.name);
		assert_string_equal(wire_lldp_name_text(&says, text, sizeof(text)), "leaf0");
		assert_int_equal(says.ttl, LLDP_TTL_S);
		assert_false(h_take(sw, i, &f));
	}
	for (unsigned i = 0; i < 10; i++)
		tick(now + S);
	assert_int_equal(forget_frames(), N * (LLDP_FAST - 1));
	tick(now + LLDP_EVERY_NS);
	assert_int_equal(forget_frames(), N);
	assert_int_equal(h_value(sw, "lldp_sent"), N * (LLDP_FAST + 1));
	h_check_balance(sw);
}

static void hears(void **state)
{
	struct sw_lldp_info info;
	unsigned at = 0;

	(void)state;
	forget_frames();
	say(1, who(7, 3, 120));
	assert_int_equal(h_drop(sw, "lldp"), 1);
	assert_int_equal(forget_frames(), 0); /* nobody else hears it */
	tick(now + S);
	assert_int_equal(sw_lldp_get(sw, 1, &at, &info), 0);
	assert_string_equal(info.chassis, "02:00:00:09:00:07");
	assert_string_equal(info.port, "p3");
	assert_string_equal(info.system, "n7");
	assert_int_equal(info.age_ns, 0);
	assert_int_equal(sw_lldp_get(sw, 1, &at, &info), -ENOENT);
	at = 0;
	assert_int_equal(sw_lldp_get(sw, 0, &at, &info), -ENOENT);
	tick(now + 119 * S);
	at = 0;
	assert_int_equal(sw_lldp_get(sw, 1, &at, &info), 0);
	assert_int_equal(info.age_ns, 119 * S);
	tick(now + S);
	at = 0;
	assert_int_equal(sw_lldp_get(sw, 1, &at, &info), -ENOENT);
	assert_int_equal(h_value(sw, "lldp_expired"), 1);
}

/* A port has its part of what waits and of the table, and others are none the worse for it. */
static void flood(void **state)
{
	struct sw_lldp_info info;
	unsigned at = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		say(1, who(i, 1, 120));
	assert_int_equal(h_drop(sw, "lldp"), LLDP_NOTES_OF_PORT);
	assert_int_equal(h_drop(sw, "lldp_full"), 1000 - LLDP_NOTES_OF_PORT);
	say(2, who(5, 5, 120));
	tick(now + S);
	assert_int_equal(h_value(sw, "lldp_neighbours"), LLDP_PER_PORT + 1);
	assert_int_equal(h_value(sw, "lldp_refused"), LLDP_NOTES_OF_PORT - LLDP_PER_PORT);
	assert_int_equal(sw_lldp_get(sw, 2, &at, &info), 0);
	assert_string_equal(info.port, "p5");
}

/* Without a link nobody is there, and nothing is said; with it again, soon. */
static void link_down(void **state)
{
	(void)state;
	say(0, who(1, 1, 120));
	say(1, who(2, 2, 120));
	tick(now + 10 * S);
	assert_int_equal(h_value(sw, "lldp_neighbours"), 2);
	forget_frames();
	rte_eth_dev_set_link_down(sw->ports[1].id);
	tick(now + LLDP_EVERY_NS);
	assert_int_equal(h_value(sw, "lldp_neighbours"), 1);
	assert_int_equal(forget_frames(), N - 1);
	rte_eth_dev_set_link_up(sw->ports[1].id);
	tick(now + S / 10);
	assert_int_equal(forget_frames(), 1);
}

static void nonsense(void **state)
{
	static const struct {
		unsigned at;
		uint8_t is;
		const char *reason;
	} cases[] = {{14, 0x04, "lldp_order"}, {16, 9, "lldp_id"}, {15, 6, "lldp_id"},
		{29, 1, "lldp_ttl"}, {6, 3, "l2_source"}, {32, 0x0b, "lldp_tlv"},
		{5, 3, "l2_unknown"}, {12, 0x89, "l2_unknown"}};
	const struct wire_lldp says = who(1, 1, 120);
	uint8_t b[LLDP_MAX_LEN];

	(void)state;
	forget_frames();
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		const int len = wire_build_lldp(b, sizeof(b), says.chassis.b, &says);

		b[cases[i].at] = cases[i].is;
		h_expect_drop(sw, 0, b, (unsigned)len, cases[i].reason);
	}
	tick(now + S);
	assert_int_equal(h_value(sw, "lldp_neighbours"), 0);
}

/* A bridge has no part in it: such frames go to none of its ports, and their contents to control if
 * the switch speaks LLDP. */
static void bridged(void **state)
{
	(void)state;
	end();
	begin("{'lldp':true}", "{'bridge':[0]}");
	forget_frames();
	say(0, who(1, 1, 120));
	assert_int_equal(forget_frames(), 0);
	assert_int_equal(h_drop(sw, "lldp"), 1);
	tick(now + S);
	assert_int_equal(h_value(sw, "lldp_neighbours"), 1);
	end();
	begin(NULL, "{'bridge':[0]}");
	say(0, who(1, 1, 120));
	assert_int_equal(h_drop(sw, "bridge_reserved"), 1);
	assert_int_equal(forget_frames(), 0);
}

static void off(void **state)
{
	struct sw_lldp_info info;
	char text[SW_LLDP_TEXT];
	unsigned at = 0;

	(void)state;
	end();
	begin(NULL, NULL);
	assert_int_equal(forget_frames(), 0);
	say(0, who(1, 1, 120));
	assert_int_equal(h_drop(sw, "l2_unknown"), 1);
	tick(now + S);
	assert_int_equal(sw_lldp_get(sw, 0, &at, &info), -ENOENT);
	assert_string_equal(sw_lldp_chassis(sw, text), "");
}

/* ---- a worker that hangs ---- */

/* Workers are called once each for all of their ports, and nobody any more after one that hangs:
 * each of those calls may take a second. What was not sent is not counted, and comes with the next.
 */
static void one_call(void **state)
{
	const unsigned workers = sw->n_workers < N ? sw->n_workers : N;
	uint64_t sent;

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		tick(now + S);
	forget_frames();
	sent = h_value(sw, "lldp_sent");
	calls = 0;
	tick(now + LLDP_EVERY_NS);
	assert_int_equal(calls, workers);
	assert_int_equal(forget_frames(), N);
	assert_int_equal(h_value(sw, "lldp_sent"), sent + N);
	calls = 0;
	hangs = true;
	tick(now + LLDP_EVERY_NS);
	hangs = false;
	assert_int_equal(calls, 1);
	assert_int_equal(forget_frames(), 0);
	assert_int_equal(h_value(sw, "lldp_sent"), sent + N);
	tick(now + LLDP_EVERY_NS);
	assert_int_equal(forget_frames(), N);
	assert_int_equal(h_value(sw, "lldp_sent"), sent + 2 * N);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, empty, gone)
		T(rhythm),
		T(newcomers),
		T(forgotten),
		T(not_for_ever),
		T(due),
		T(full),
#undef T
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
		T(speaks),
		T(hears),
		T(flood),
		T(link_down),
		T(nonsense),
		T(bridged),
		T(off),
		T(one_call),
#undef T
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
