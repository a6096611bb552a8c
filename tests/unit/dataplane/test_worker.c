/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker in its own thread, while the control thread changes tables and groups under it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { CHANGES = 200, PATIENCE = 20000 };

static struct sw *sw;

static void launch(void **state)
{
	char err[SW_ERR_LEN] = "";

	(void)state;
	sw = h_start(3, "{'idle':'sleep'}", NULL);
	if (sw_start(sw, err) != 0)
		fail_msg("%s", err);
}

static bool wait_for(unsigned port, struct frame *f)
{
	for (unsigned i = 0; i < PATIENCE; i++) {
		if (h_take(sw, port, f))
			return true;
		usleep(100);
	}
	return false;
}

/* A route is moved to and fro: every packet sent after the change goes the new way. */
static void routes_change(void **state)
{
	struct wire_ip a = h_host4(0), dst = h_ip("20.0.0.1");
	struct table_entry e = {0};
	struct table_error te;
	struct frame f;
	uint8_t b[128];
	unsigned len;

	launch(state);
	e.key[0].ip = h_ip("20.0.0.0");
	e.key[0].prefix = 8;
	len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);
	for (unsigned i = 0; i < CHANGES; i++) {
		e.param[0].ip = h_host4(1 + i % 2);
		assert_int_equal(
			h_write(sw, i ? TABLE_MODIFY : TABLE_INSERT, FWD_ROUTE4, &e, &te), 0);
		assert_null(sw->deferred); /* the old one is gone */
		h_inject(sw, 0, b, len);
		assert_true(wait_for(1 + i % 2, &f));
		assert_false(h_take(sw, 2 - i % 2, &f));
	}
	assert_true(h_value(sw, "turns") > 0);
	h_stop(sw);
}

/* Groups come and go while packets for them arrive. */
static void groups_change(void **state)
{
	struct inc_ep_spec eps[2];
	struct inc_group_spec spec;
	char err[SW_ERR_LEN];
	struct wire_flow flow;
	uint8_t b[256];
	unsigned slot, len;

	launch(state);
	for (unsigned i = 0; i < CHANGES; i++) {
		memset(eps, 0, sizeof(eps));
		spec = (struct inc_group_spec){.name = "g",
			.mode = INC_MODE_2,
			.mtu = 1024,
			.m = 2,
			.w = 2,
			.n_ranks = 2,
			.n_ep = 2,
			.ep = eps};
		for (unsigned k = 0; k < 2; k++) {
			eps[k] = (struct inc_ep_spec){.remote_ip = h_host4(k),
				.remote_qpn = 5 + k,
				.port = sw->ports[k].id,
				.host = true,
				.n_ranks = 1,
				.ranks = {(uint16_t)k}};
		}
		if (sw_group_create(sw, &spec, true, &slot, err) != 0)
			fail_msg("%s", err);
		flow = (struct wire_flow){
			.src = h_host4(0), .dst = h_ip("10.0.0.1"), .ttl = 9, .sport = 0xc000};
		const struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY,
			.mig = true,
			.dqpn = inc_ep_at(sw_group_get(sw, slot), 0)->local_qpn};
		len = (unsigned)wire_build_frame(b, sizeof(b), &flow, &hdr, "abcd", 4);
		for (unsigned k = 0; k < 8; k++)
			h_inject(sw, 0, b, len);
		assert_int_equal(sw_group_delete(sw, slot, true, err), 0);
		assert_null(sw->deferred);
	}
	h_stop(sw); /* also checks that nothing is left: ASan, and the arena below */
}

static void trace_while_running(void **state)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	struct sw_trace_rec rec[16];
	char err[SW_ERR_LEN];
	struct frame f;
	uint8_t b[128];
	unsigned n = 0;

	launch(state);
	for (unsigned round = 0; round < 20; round++) {
		assert_int_equal(sw_trace_start(sw, 0, 1, err), 0);
		h_inject(sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, "x", 1));
		assert_true(wait_for(1, &f));
		n = sw_trace_read(sw, 0, rec, 16);
		assert_int_equal(n, 5);
		assert_string_equal(rec[4].node, "port_tx");
	}
	h_stop(sw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_change),
		cmocka_unit_test(groups_change),
		cmocka_unit_test(trace_while_running),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
