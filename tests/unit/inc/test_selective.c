/* SPDX-License-Identifier: BSD-3-Clause */
/* The SR flag packet by packet (docs/inc-protocol.md, 4.10), over the wrap of PSNs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/wire/bytes.h"
#include "tests/unit/inc/fixture.h"

enum { START = 0xfffffc, NO_CREDITS = 0x1f, NAK = 0x60, RNR = 0x20, WORDS = 64 };
enum { SEL_ACK = ROCE_SEL | ROCE_ACK, SEL_DATA = ROCE_SEL | ROCE_SEND_ONLY };
enum { SEL_FIRST = ROCE_SEL | ROCE_SEND_FIRST, SEL_LAST = ROCE_SEL | ROCE_SEND_LAST };

static struct fx fx;

static uint32_t at(unsigned k)
{
	return psn_add(START, (int32_t)k);
}

static struct fx_opts options(void)
{
	return (struct fx_opts){.n_hosts = 2,
		.mode = INC_MODE_3,
		.kind = INC_SINGLE,
		.prim = INC_AR,
		.mtu = 256,
		.m = 1,
		.w = 16,
		.flags = INC_F_SR,
		.start_psn = START};
}

static enum inc_drop data(unsigned ep, unsigned k)
{
	return fx_data(&fx, ep, at(k), ROCE_SEND_ONLY, (int32_t)(1000 * ep + k), WORDS);
}

static void data_both(unsigned k)
{
	data(0, k);
	data(1, k);
}

static void ack(unsigned ep, unsigned k)
{
	fx_ack(&fx, ep, at(k), NO_CREDITS);
}

static void begin(unsigned n)
{
	struct fx_opts opts = options();

	fx_open(&fx, &opts);
	fx_control(&fx, 0, at(0), 0, n * 256);
	fx_control(&fx, 1, at(0), 0, n * 256);
	assert_int_equal(fx.n_out, 3);
	assert_int_equal(fx.out[1].pkt.opcode, ROCE_SEL | ROCE_SEND_ONLY_IMM);
	ack(0, 0);
	ack(1, 0);
}

static void assert_out(unsigned i, unsigned ep, uint8_t opcode, unsigned k)
{
	assert_true(i < fx.n_out);
	assert_int_equal(fx.out[i].ep, ep);
	assert_int_equal(fx.out[i].pkt.opcode, opcode);
	assert_int_equal(fx.out[i].pkt.psn, at(k));
}

/* A NAK for k with this map. */
static void assert_map(unsigned i, unsigned ep, unsigned k, uint64_t map)
{
	const struct wire_pkt *pkt = &fx.out[i].pkt;

	assert_out(i, ep, SEL_ACK, k);
	assert_int_equal(pkt->syndrome, NAK);
	assert_int_equal(pkt->pay_len, map ? 8 : 0);
	for (unsigned b = 0; b < 8u * pkt->pay_len; b++)
		assert_int_equal(roce_sack_bit(fx.out[i].frame + pkt->pay_off, b), map >> b & 1);
}

/* What comes behind a missing packet is told at once, then to whoever asks, and with every
 * acknowledgement as long as something is missing. */
static void test_told(void **state)
{
	const struct wire_hdr asks = {.opcode = SEL_DATA, .psn = psn_add(START, 5), .ackreq = true};
	uint8_t payload[256] = {0};

	(void)state;
	begin(20);
	data(0, 1);
	assert_out(0, 0, SEL_ACK, 1);
	assert_int_equal(fx.out[0].pkt.syndrome, NO_CREDITS);
	data(0, 3); /* 2 is missing */
	assert_int_equal(fx.n_out, 1);
	assert_map(0, 0, 2, 1);
	data(0, 6);
	assert_int_equal(fx.n_out, 0);
	fx_packet(&fx, 0, &asks, payload, sizeof(payload));
	assert_int_equal(fx.n_out, 1);
	assert_map(0, 0, 2, 1 | 1 << 2 | 1 << 3);
	fx_packet(&fx, 0, &asks, payload, sizeof(payload)); /* a duplicate asks as well */
	assert_map(0, 0, 2, 1 | 1 << 2 | 1 << 3);
	data(0, 2); /* acknowledges 2 and 3: 4 is the next that is missing */
	assert_int_equal(fx.n_out, 1);
	assert_map(0, 0, 4, 3);
	data(0, 1);
	assert_map(0, 0, 4, 3);
	data(0, 4);
	assert_out(0, 0, SEL_ACK, 6);
	assert_int_equal(fx.out[0].pkt.syndrome, NO_CREDITS);
	fx_close(&fx);
}

/* Only what is missing is sent again, and each of it once until something sent later has come. */
static void test_sent_again(void **state)
{
	(void)state;
	begin(20);
	for (unsigned k = 1; k <= 8; k++)
		data_both(k);
	ack(1, 8);
	fx_map(&fx, 0, at(1), 1 | 1 << 1 | 1 << 3); /* 1 and 4; 6 to 8 are on their way */
	assert_int_equal(fx.n_out, 2);
	assert_out(0, 0, SEL_DATA, 1);
	assert_true(fx.out[0].pkt.ackreq);
	assert_int_equal(fx_word(&fx.out[0], 0), 1 + 1001);
	assert_out(1, 0, SEL_DATA, 4);
	fx_map(&fx, 0, at(1), 1 | 1 << 1 | 1 << 3 | 1 << 5); /* 6 is lost, too */
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 0, SEL_DATA, 6);
	fx_map(&fx, 0, at(1), 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5); /* 4 came: so 1 did not */
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 0, SEL_DATA, 1);
	fx_map(&fx, 0, at(6), 1 | 1 << 1); /* the second 1 was sent after 6 */
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 0, SEL_DATA, 6);
	ack(0, 8);
	assert_int_equal(fx.g->psn_start[INC_BCAST], at(9));
	fx.now += 1000000000;
	fx_tick(&fx);
	assert_int_equal(fx.n_out, 0);
	fx_close(&fx);
}

/* Nothing comes behind the last packet: a probe, after one and a half round trips. */
static void test_last_one_lost(void **state)
{
	(void)state;
	begin(20);
	data_both(1);
	fx.now += 20000;
	ack(0, 1);
	ack(1, 1);
	for (unsigned k = 2; k <= 4; k++)
		data_both(k);
	ack(1, 4);
	fx_map(&fx, 0, at(2), 1); /* of 4 nothing is known */
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 0, SEL_DATA, 2);
	ack(0, 3);
	assert_int_equal(fx.n_out, 0);
	fx.now += 29000;
	fx_tick(&fx);
	assert_int_equal(fx.n_out, 0);
	fx.now += 5000;
	fx_tick(&fx);
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 0, SEL_DATA, 4);
	ack(0, 4);
	fx.now += 1000000000;
	fx_tick(&fx);
	assert_int_equal(fx.n_out, 0);
	fx_close(&fx);
}

/* The oldest one is known to have come, but what acknowledges it was lost: it goes all the same. */
static void test_last_ack_lost(void **state)
{
	(void)state;
	begin(20);
	data_both(1);
	data_both(2);
	ack(1, 2);
	fx_map(&fx, 0, at(1), 1);
	ack(0, 1);
	fx.now += 100000000;
	fx_tick(&fx);
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 0, SEL_DATA, 2);
	fx_close(&fx);
}

/* A NAK makes room in the pipes: what was held back until then is acknowledged, without the map
 * that came with the NAK, which says what another host has. */
static void test_maps_are_not_passed_on(void **state)
{
	struct fx_opts opts = options();
	unsigned acks = 0;

	(void)state;
	opts.w = 1;
	opts.slots = 4;
	fx_open(&fx, &opts);
	fx_control(&fx, 0, at(0), 0, 20 * 256);
	fx_control(&fx, 1, at(0), 0, 20 * 256);
	for (unsigned k = 1; k < 4; k++)
		data_both(k);
	ack(1, 3);
	assert_int_equal(fx.n_out, 0);
	fx_map(&fx, 0, at(2), 1); /* has 0, 1 and 3 */
	for (unsigned i = 0; i < fx.n_out; i++) {
		const struct wire_pkt *pkt = &fx.out[i].pkt;

		if (pkt->opcode != SEL_ACK)
			continue;
		assert_int_equal(pkt->syndrome, NO_CREDITS);
		assert_int_equal(pkt->pay_len, 0);
		acks++;
	}
	assert_int_equal(acks, 2);
	assert_out(0, 0, SEL_DATA, 2);
	fx_close(&fx);
}

/* A peer that keeps nothing gets all of it, once; so does one that was not ready. */
static void test_go_back(void **state)
{
	(void)state;
	begin(20);
	for (unsigned k = 1; k <= 4; k++)
		data_both(k);
	ack(1, 4);
	fx_map(&fx, 0, at(2), 0);
	assert_int_equal(fx.n_out, 3);
	for (unsigned k = 2; k <= 4; k++)
		assert_out(k - 2, 0, SEL_DATA, k);
	fx_map(&fx, 0, at(2), 0);
	assert_int_equal(fx.n_out, 0);
	fx_ack(&fx, 0, at(3), RNR | 1);
	assert_int_equal(fx.n_out, 0);
	fx.now += roce_rnr_ns(1);
	fx_tick(&fx);
	assert_int_equal(fx.n_out, 2);
	assert_out(0, 0, SEL_DATA, 3);
	assert_out(1, 0, SEL_DATA, 4);
	fx_close(&fx);
}

static uint32_t pos(const struct fx_out *out, unsigned field)
{
	return get_be32(out->frame + out->pkt.pay_off - 8 + 4 * field);
}

/* Each packet says where it belongs: offset in its message, messages before it. */
static void test_places(void **state)
{
	struct fx_opts opts = options();

	(void)state;
	opts.m = 2;
	fx_open(&fx, &opts);
	for (unsigned op = 0; op < 2; op++) { /* a control, 2 + 1 packets of data */
		const unsigned base = 4 * op;

		fx_control(&fx, 0, at(base), (uint8_t)op, 3 * 256);
		fx_control(&fx, 1, at(base), (uint8_t)op, 3 * 256);
		assert_int_equal(fx.out[1].pkt.pos_recv, 3 * op);
		for (unsigned k = 1; k <= 3; k++) {
			const uint8_t opcode = k == 1   ? ROCE_SEND_FIRST
					       : k == 2 ? ROCE_SEND_LAST
							: ROCE_SEND_ONLY;

			fx_data(&fx, 0, at(base + k), opcode, 0, WORDS);
			fx_data(&fx, 1, at(base + k), opcode, 0, WORDS);
			assert_true(fx.n_out >= 2);
			assert_int_equal(pos(&fx.out[fx.n_out - 1], 0), k == 2 ? 256 : 0);
			assert_int_equal(pos(&fx.out[fx.n_out - 1], 1), 3 * op + 1 + k / 3);
		}
		ack(0, base + 3);
		ack(1, base + 3);
	}
	fx_close(&fx);
}

/* Ordinary packets are not taken, nor are these by an ordinary group. */
static void test_strangers(void **state)
{
	struct fx_opts opts = options();
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY, .psn = START};

	(void)state;
	begin(20);
	assert_int_equal(fx_packet(&fx, 0, &hdr, NULL, 0), INC_DROP_OPCODE);
	hdr.opcode = ROCE_ACK;
	assert_int_equal(fx_packet(&fx, 0, &hdr, NULL, 0), INC_DROP_OPCODE);
	hdr.opcode = ROCE_SEL | ROCE_READ_REQUEST;
	assert_int_equal(fx_packet(&fx, 0, &hdr, NULL, 0), INC_DROP_OPCODE);
	fx_close(&fx);
	opts.flags = 0;
	fx_open(&fx, &opts);
	hdr.opcode = SEL_DATA;
	assert_int_equal(fx_packet(&fx, 0, &hdr, NULL, 0), INC_DROP_OPCODE);
	hdr.opcode = SEL_ACK;
	assert_int_equal(fx_packet(&fx, 0, &hdr, NULL, 0), INC_DROP_OPCODE);
	fx_close(&fx);
}

/* ---- Mode-II (4.11) ---- */

static void begin_mode2(unsigned n)
{
	struct fx_opts opts = options();

	opts.mode = INC_MODE_2;
	opts.flags |= INC_F_STALL_RNR | INC_F_LATE_FLUSH;
	fx_open(&fx, &opts);
	fx.now = 1000000;
	fx_control(&fx, 0, at(0), 0, n * 256);
	fx_control(&fx, 1, at(0), 0, n * 256);
	assert_int_equal(fx.n_out, 2);
	assert_int_equal(fx.out[1].pkt.opcode, ROCE_SEL | ROCE_SEND_ONLY_IMM);
}

/* What a rank has behind a missing result is told to the rank itself, bit for bit. */
static void test_mode2_reflects_maps(void **state)
{
	const uint64_t map = 1 | 1 << 2;

	(void)state;
	begin_mode2(8);
	for (unsigned k = 1; k < 6; k++)
		data_both(k);
	fx_map(&fx, 1, at(1), map);
	assert_int_equal(fx.n_out, 1);
	assert_map(0, 1, 1, map);
	fx_map(&fx, 1, at(1), 0);
	assert_map(0, 1, 1, 0);
	ack(1, 1);
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 1, SEL_ACK, 1);
	assert_int_equal(fx.out[0].pkt.pay_len, 0);
	fx_close(&fx);
}

/* A result that was lost: from the slot, to the one that asks, and it is to say what it has. */
static void test_mode2_answers_the_asker(void **state)
{
	(void)state;
	begin_mode2(8);
	for (unsigned k = 1; k < 4; k++)
		data_both(k);
	data(1, 2);
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 1, SEL_DATA, 2);
	assert_true(fx.out[0].pkt.ackreq);
	assert_int_equal(fx_word(&fx.out[0], 0), 1000 + 2 * 2);
	fx_close(&fx);
}

/* A contribution that was lost: results behind it are kept by their receivers, and are not sent
 * again when it comes; who sends again meanwhile is not held, until nothing goes on for long. */
static void test_mode2_waits(void **state)
{
	(void)state;
	begin_mode2(8);
	ack(0, 0);
	data(0, 1); /* endpoint 1's is lost */
	data_both(2);
	data_both(3);
	assert_int_equal(fx.n_out, 2);
	assert_int_equal(data(0, 1), INC_DROP_DUP_WAIT);
	assert_int_equal(fx.n_out, 0);
	data(1, 1);
	assert_int_equal(fx.n_out, 2);
	assert_out(0, 0, SEL_DATA, 1);
	assert_out(1, 1, SEL_DATA, 1);
	ack(0, 3);
	data(0, 4);
	fx.now += 5000000;
	data(0, 4);
	assert_int_equal(fx.n_out, 1);
	assert_out(0, 0, SEL_ACK, 4);
	assert_int_equal(fx.out[0].pkt.syndrome & 0x60, RNR);
	fx_close(&fx);
}

static void assert_refused(struct fx_opts opts, const char *why)
{
	struct inc_ep_spec ep[3];
	struct inc_group_spec spec;
	char err[INC_ERR_LEN];

	fx_spec(&opts, &spec, ep);
	assert_int_equal(inc_group_check(&spec, err), -EOPNOTSUPP);
	assert_non_null(strstr(err, why));
}

static void test_refused(void **state)
{
	struct fx_opts opts = options();

	(void)state;
	opts.mode = INC_MODE_1;
	assert_refused(opts, "flags.sr: mode I");
	opts.mode = INC_MODE_2;
	opts.prim = INC_RED;
	assert_refused(opts, "flags.sr: mode II");
	opts.prim = INC_BC;
	assert_refused(opts, "flags.sr: mode II");
	opts.prim = INC_AR;
	opts.kind = INC_MIXED;
	assert_refused(opts, "flags.sr: a mixed group");
	opts.kind = INC_SINGLE;
	opts.mode = INC_MODE_3;
	opts.kind = INC_MIXED;
	assert_refused(opts, "flags.sr: a mixed group");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_sent_again),
		cmocka_unit_test(test_last_one_lost),
		cmocka_unit_test(test_last_ack_lost),
		cmocka_unit_test(test_maps_are_not_passed_on),
		cmocka_unit_test(test_go_back),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_mode2_reflects_maps),
		cmocka_unit_test(test_mode2_answers_the_asker),
		cmocka_unit_test(test_mode2_waits),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
