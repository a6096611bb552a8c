/* SPDX-License-Identifier: BSD-3-Clause */
/* Two groups on one worker: what one member of the one sets off does not keep the results of the
 * other, nor fill the ports that both leave by. In packets; a turn is one point of virtual time. */
#include <string.h>

#include "collective.h"
#include "lib/wire/psn.h"

enum {
	HOSTS = 4,
	MTU = 256,
	WINDOW = 2048, /* more than a port's ring and queue hold */
	NAKS = 16,
	TURNS = 8,
	OTHER_QPN = 0x100,
};

static uint64_t now;
static uint8_t payload[MTU];

static int start(void **state)
{
	(void)state;
	sw = h_start(HOSTS, "{'workers':1}", NULL);
	err[0] = '\0';
	now = port_now_ns();
	return 0;
}

static void make_spec(const char *name, enum inc_mode mode, unsigned window)
{
	c_spec(HOSTS, MTU, false, false);
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	spec.mode = mode;
	spec.kind = INC_MIXED;
	spec.m = 1;
	spec.w = window;
	spec.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR;
}

static void send(
	unsigned slot, unsigned i, uint8_t opcode, uint32_t psn, uint32_t imm, unsigned len)
{
	uint8_t b[H_FRAME_MAX];

	h_inject(sw, i, b, c_host_frame(b, slot, i, opcode, psn, imm, payload, len));
}

static void control(unsigned slot, unsigned packets)
{
	const uint32_t imm = c_control(payload, packets * MTU, MTU, 0);

	payload[20] = (uint8_t)spec.m;
	for (unsigned i = 0; i < HOSTS; i++)
		send(slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, CTRL_LEN);
}

static void data(unsigned slot, unsigned k)
{
	memset(payload, (int)k, sizeof(payload));
	for (unsigned i = 0; i < HOSTS; i++)
		send(slot, i, ROCE_SEND_ONLY, psn_add(START_PSN, (int32_t)k), 0, MTU);
}

/* Of one who has got nothing. */
static void nak(unsigned slot, unsigned i)
{
	uint8_t b[H_FRAME_MAX];

	h_inject(sw, i, b, c_nak_frame(b, slot, i, START_PSN));
}

/* Takes all that has left: how many are results of the other group. */
static unsigned results_of_other(void)
{
	unsigned n = 0;
	struct frame f;

	for (unsigned i = 0; i < HOSTS; i++)
		while (h_take(sw, i, &f)) {
			struct wire_pkt pkt;

			assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
			n += pkt.dqpn >= OTHER_QPN && pkt.opcode != ROCE_ACK;
		}
	return n;
}

/* A Mode-III group with a pipe full of packets, of which nobody acknowledges any. */
static unsigned full(void)
{
	unsigned slot;

	make_spec("storm", INC_MODE_3, WINDOW);
	slot = c_create();
	control(slot, WINDOW - 1);
	sw_turn(sw, 0, now);
	results_of_other();
	for (unsigned k = 1; k < WINDOW; k++) {
		data(slot, k);
		sw_turn(sw, 0, now);
		results_of_other();
	}
	assert_int_equal(h_drop(sw, "inc_done"), WINDOW);
	assert_int_equal(sw_group_get(sw, slot)->count[INC_C_RESENT], 0);
	return slot;
}

static unsigned other(void)
{
	unsigned slot;

	make_spec("other", INC_MODE_2, 2 * TURNS);
	for (unsigned i = 0; i < HOSTS; i++)
		eps[i].remote_qpn += OTHER_QPN;
	slot = c_create();
	control(slot, TURNS);
	sw_turn(sw, 0, now);
	results_of_other();
	return slot;
}

static void a_storm_keeps_nobody(void **state)
{
	const unsigned storm = full(), calm = other();
	uint64_t resent;

	(void)state;
	now += 100000;
	for (unsigned k = 1; k <= TURNS; k++) {
		resent = sw_group_get(sw, storm)->count[INC_C_RESENT];
		now += 25000; /* NAKs count: half a round trip after those before */
		for (unsigned i = 0; i < NAKS; i++)
			for (unsigned host = 0; host < HOSTS; host++)
				nak(storm, host);
		data(calm, k);
		sw_turn(sw, 0, now);
		assert_int_equal(results_of_other(), HOSTS);
		assert_int_equal(h_drop(sw, "tx_full"), 0);
		assert_true(sw_group_get(sw, storm)->count[INC_C_RESENT] > resent);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_storm_keeps_nobody, start, c_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
