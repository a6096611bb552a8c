/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP segments: what is built is read back, over IPv4 and IPv6, with every set of options; what is
 * cut short or lies about a length is refused, at every length. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/wire/bytes.h"
#include "lib/wire/tcp.h"

static const struct wire_flow flow4 = {.dmac = {2, 0, 0, 0, 0, 2},
	.smac = {2, 0, 0, 0, 0, 1},
	.src.b = {[10] = 0xff, 0xff, 10, 0, 0, 1},
	.dst.b = {[10] = 0xff, 0xff, 10, 0, 0, 2},
	.ttl = 64};
static const struct wire_flow flow6 = {
	.src.b = {0xfd, [15] = 1}, .dst.b = {0xfd, [15] = 2}, .ttl = 64};

static const struct wire_tcp plain = {.sport = 4660,
	.dport = 80,
	.seq = 0x01020304,
	.ack = 0x05060708,
	.window = 0x1234,
	.flags = TCP_ACK | TCP_PSH,
	.wscale = TCP_NO_WSCALE};

static size_t make(uint8_t *frame, const struct wire_flow *flow, const struct wire_tcp *tcp,
	const char *payload)
{
	const size_t len = strlen(payload);
	const int headers = wire_tcp_build(frame, 256, flow, tcp, len);

	assert_true(headers > 0);
	memcpy(frame + headers, payload, len);
	wire_tcp_finish(frame, (size_t)headers + len);
	return (size_t)headers + len;
}

static enum wire_tcp_drop take(
	const uint8_t *frame, size_t len, struct wire_pkt *pkt, struct wire_tcp *tcp)
{
	if (wire_parse(frame, len, pkt) != WIRE_OK)
		return WIRE_TCP_OTHER;
	return wire_tcp_parse(frame, pkt, tcp);
}

static void test_round_trip(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * 32; i++) {
		const struct wire_flow *flow = i & 1 ? &flow6 : &flow4;
		struct wire_tcp tcp = plain, got;
		struct wire_pkt pkt;
		uint8_t frame[256];
		size_t len;

		if (i & 2)
			tcp.mss = 1460;
		if (i & 4)
			tcp.wscale = 7;
		tcp.sack_ok = (i & 8) != 0;
		tcp.n_sack = i & 2 ? 0 : (uint8_t)(i / 16);
		for (unsigned k = 0; k < tcp.n_sack; k++) {
			tcp.sack[k].from = 1000 * k;
			tcp.sack[k].to = 1000 * k + 500;
		}
		len = make(frame, flow, &tcp, "payload");
		assert_int_equal(take(frame, len, &pkt, &got), WIRE_TCP_OK);
		assert_memory_equal(&got, &tcp, sizeof(tcp));
		assert_true(wire_ip_eq(&pkt.src, &flow->src) && wire_ip_eq(&pkt.dst, &flow->dst));
		assert_int_equal(pkt.pay_len, 7);
		assert_memory_equal(frame + pkt.pay_off, "payload", 7);
		assert_true(wire_tcp_checksum_ok(frame, &pkt));
		for (size_t at = pkt.l4_off; at < len; at++) {
			frame[at] ^= 0x10;
			assert_false(wire_tcp_checksum_ok(frame, &pkt));
			frame[at] ^= 0x10;
		}
	}
}

/* A segment that Linux sent: a SYN with MSS 1460, SACK, timestamps, scale 7; bytes written down
 * field by field, the checksum by hand. */
static void test_known(void **state)
{
	uint8_t f[14 + 20 + 40] = {0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 60, 0, 1,
		0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0x13, 0x89, 0, 0, 0, 9,
		0, 0, 0, 0, 0xa0, 2, 0xfa, 0xf0, 0, 0, 0, 0, 2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4,
		0, 0, 0, 0, 1, 3, 3, 7};
	struct wire_tcp tcp;
	struct wire_pkt pkt;

	(void)state;
	put_be16(f + 24, (uint16_t)~ip_sum(f + 14, 20, 0));
	assert_int_equal(take(f, sizeof(f), &pkt, &tcp), WIRE_TCP_OK);
	assert_int_equal(tcp.sport, 40000);
	assert_int_equal(tcp.dport, 5001);
	assert_int_equal(tcp.seq, 9);
	assert_int_equal(tcp.flags, TCP_SYN);
	assert_int_equal(tcp.mss, 1460);
	assert_true(tcp.sack_ok);
	assert_int_equal(tcp.wscale, 7);
	assert_int_equal(tcp.window, 64240);
	assert_int_equal(pkt.pay_len, 0);
}

/* Every cut, every data offset, every length of every option. */
static void test_lies(void **state)
{
	struct wire_tcp tcp = plain;
	struct wire_pkt pkt;
	uint8_t frame[256], was[256];
	unsigned refused = 0;
	size_t len;

	(void)state;
	tcp.mss = 1460;
	tcp.wscale = 3;
	tcp.n_sack = 2;
	len = make(frame, &flow4, &tcp, "");
	for (size_t cut = 0; cut < len; cut++)
		assert_int_not_equal(take(frame, cut, &pkt, &tcp), WIRE_TCP_OK);
	memcpy(was, frame, len);
	for (unsigned at = 34 + 12; at < len; at++)
		for (unsigned v = 0; v < 256; v++) {
			const enum wire_tcp_drop drop =
				(frame[at] = (uint8_t)v, take(frame, len, &pkt, &tcp));

			refused += drop != WIRE_TCP_OK;
			if (drop == WIRE_TCP_OK) {
				assert_true(pkt.pay_off >= pkt.l4_off + TCP_HDR_LEN);
				assert_int_equal(pkt.pay_off + pkt.pay_len, pkt.end);
				assert_true(tcp.n_sack <= TCP_MAX_SACK);
				assert_true(tcp.wscale <= TCP_NO_WSCALE);
			}
			frame[at] = was[at];
		}
	assert_true(refused > 500);
	put_be16(frame + 14 + 6, 1); /* a fragment */
	put_be16(frame + 24, 0);
	put_be16(frame + 24, (uint16_t)~ip_sum(frame + 14, 20, 0));
	assert_int_equal(take(frame, len, &pkt, &tcp), WIRE_TCP_OTHER);
	assert_int_equal(
		wire_tcp_build(frame, WIRE_TCP_MAX_HEADERS - 1, &flow4, &plain, 0), -ENOSPC);
	tcp = plain;
	tcp.n_sack = 4;
	tcp.mss = 1460;
	tcp.wscale = TCP_NO_WSCALE;
	assert_int_equal(wire_tcp_build(frame, sizeof(frame), &flow4, &tcp, 0), 14 + 20 + 60);
	tcp.sack_ok = true;
	assert_int_equal(wire_tcp_build(frame, sizeof(frame), &flow4, &tcp, 0), -EINVAL);
	for (unsigned i = 0; i < WIRE_TCP_N_DROPS; i++)
		assert_non_null(wire_tcp_drop_name(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
