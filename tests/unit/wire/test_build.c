/* SPDX-License-Identifier: BSD-3-Clause */
/* Builders, and that the parser reads back what they write. */
#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/icrc.h"
#include "tests/unit/wire/wire_test.h"

enum { CAP = 8192 };

static const int families[] = {4, 6};
static const uint16_t vlans[] = {0, 0x6064};

/* An RC SEND ONLY with Immediate of "abcde", byte for byte. */
static void layout_ipv4(void **state)
{
	static const uint8_t expected[] = {0x02, 0, 0, 0, 0, 0x0b, 0x02, 0, 0, 0, 0, 0x0a, 0x81,
		0x00, 0x60, 0x64, 0x08, 0x00, 0x45, 0x6a, 0x00, 0x38, 0x43, 0x21, 0x40, 0x00, 0x40,
		0x11, 0, 0,                                     /* IPv4 */
		10, 77, 0, 1, 10, 77, 0, 2,                     /* addresses */
		0xc1, 0x23, 0x12, 0xb7, 0x00, 0x24, 0x00, 0x00, /* UDP */
		0x05, 0x70, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x80, 0xfe, 0xdc, 0xba, /* BTH */
		0xde, 0xad, 0xbe, 0xef, 'a', 'b', 'c', 'd', 'e', 0, 0, 0};
	struct wire_flow flow = test_flow(4, 0x6064);
	struct wire_hdr hdr = test_hdr(ROCE_SEND_ONLY_IMM);
	uint8_t out[128];
	uint8_t want[sizeof(expected)];
	int len = wire_build_frame(out, sizeof(out), &flow, &hdr, "abcde", 5);

	(void)state;
	memcpy(want, expected, sizeof(want));
	test_fix_ip4(want + 18);
	assert_int_equal(len, sizeof(expected) + ROCE_ICRC_LEN);
	assert_memory_equal(out, want, sizeof(want));
}

static void layout_ipv6(void **state)
{
	static const uint8_t expected[] = {0x02, 0, 0, 0, 0, 0x0b, 0x02, 0, 0, 0, 0, 0x0a, 0x86,
		0xdd,                                                 /* Ethernet */
		0x66, 0xa0, 0x00, 0x00, 0x00, 0x20, 0x11, 0x40,       /* IPv6 */
		0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, /* source */
		0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, /* destination */
		0xc1, 0x23, 0x12, 0xb7, 0x00, 0x20, 0x00, 0x00,       /* UDP */
		0x64, 0xc0, 0xff, 0xff, 0xc0, 0x12, 0x34, 0x56, 0x80, 0xfe, 0xdc, 0xba, /* BTH */
		0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x17};                        /* DETH */
	struct wire_flow flow = test_flow(6, 0);
	struct wire_hdr hdr = test_hdr(ROCE_UD | ROCE_SEND_ONLY);
	uint8_t out[128];

	(void)state;
	hdr.se = hdr.fecn = hdr.becn = true;
	assert_int_equal(wire_build_frame(out, sizeof(out), &flow, &hdr, NULL, 0),
		sizeof(expected) + ROCE_ICRC_LEN);
	assert_memory_equal(out, expected, sizeof(expected));
}

static void check_ext(const struct wire_pkt *pkt, const struct wire_hdr *hdr)
{
	bool reth = pkt->flags & ROCE_F_RETH, atomic = pkt->flags & ROCE_F_ATOMIC;
	bool ieth = pkt->flags & ROCE_F_IETH, deth = pkt->flags & ROCE_F_DETH;
	bool aeth = pkt->flags & ROCE_F_AETH;

	assert_int_equal(pkt->va, reth || atomic ? hdr->va : 0);
	assert_int_equal(pkt->rkey, reth || atomic || ieth ? hdr->rkey : 0);
	assert_int_equal(pkt->dmalen, reth ? hdr->dmalen : 0);
	assert_int_equal(pkt->swap_add, atomic ? hdr->swap_add : 0);
	assert_int_equal(pkt->compare, atomic ? hdr->compare : 0);
	assert_int_equal(pkt->syndrome, aeth ? hdr->syndrome : 0);
	assert_int_equal(pkt->msn, aeth ? hdr->msn : 0);
	assert_int_equal(pkt->atomic_orig, pkt->flags & ROCE_F_ATOMICACK ? hdr->atomic_orig : 0);
	assert_int_equal(pkt->imm, pkt->flags & ROCE_F_IMM ? hdr->imm : 0);
	assert_int_equal(pkt->pos_offset, pkt->flags & ROCE_F_POS ? hdr->pos_offset : 0);
	assert_int_equal(pkt->pos_recv, pkt->flags & ROCE_F_POS ? hdr->pos_recv : 0);
	assert_int_equal(pkt->qkey, deth ? hdr->qkey : 0);
	assert_int_equal(pkt->sqpn, deth ? hdr->sqpn : 0);
}

static void check_parsed(const uint8_t *frame, size_t len, const struct wire_flow *flow,
	const struct wire_hdr *hdr, const uint8_t *payload, size_t pay_len)
{
	struct wire_pkt pkt;

	assert_int_equal(parse_exact(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ROCE);
	assert_true(wire_icrc_ok(frame, &pkt));
	assert_int_equal(pkt.end, len);
	assert_int_equal(pkt.ip_ver, wire_ip_is4(&flow->src) ? 4 : 6);
	assert_int_equal(pkt.vlan, flow->vlan);
	assert_int_equal(pkt.l3_off, wire_l3_off(flow->vlan));
	assert_int_equal(pkt.tos, flow->tos);
	assert_int_equal(pkt.ttl, flow->ttl);
	assert_int_equal(pkt.ip_proto, IP_PROTO_UDP);
	assert_int_equal(pkt.sport, flow->sport);
	assert_int_equal(pkt.dport, ROCE_UDP_PORT);
	assert_true(wire_ip_eq(&pkt.src, &flow->src));
	assert_true(wire_ip_eq(&pkt.dst, &flow->dst));
	assert_int_equal(pkt.opcode, hdr->opcode);
	assert_int_equal(pkt.dqpn, hdr->dqpn);
	assert_int_equal(pkt.psn, hdr->psn);
	assert_int_equal(pkt.ackreq, hdr->ackreq);
	assert_int_equal(pkt.se, hdr->se);
	assert_int_equal(pkt.mig, hdr->mig);
	assert_int_equal(pkt.fecn, hdr->fecn);
	assert_int_equal(pkt.becn, hdr->becn);
	assert_int_equal(pkt.pad, wire_pad(pay_len));
	assert_int_equal(pkt.pay_len, pay_len);
	assert_memory_equal(frame + pkt.pay_off, payload, pay_len);
	check_ext(&pkt, hdr);
}

static void check_rebuilt(const uint8_t *frame, size_t len)
{
	struct wire_pkt pkt;
	struct wire_flow flow;
	struct wire_hdr hdr;
	uint8_t again[CAP];

	assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
	wire_unbuild(frame, &pkt, &flow, &hdr);
	assert_int_equal(
		wire_build_frame(again, CAP, &flow, &hdr, frame + pkt.pay_off, pkt.pay_len), len);
	assert_memory_equal(again, frame, len);
}

static void every_opcode_round_trips(void **state)
{
	uint8_t payload[4096], frame[CAP];
	uint64_t seed = 8;

	(void)state;
	test_fill(&seed, payload, sizeof(payload));
	for (unsigned i = 0; i < 256 * 4; i++) {
		struct wire_flow flow = test_flow(families[i & 1], vlans[i >> 1 & 1]);
		struct wire_hdr hdr = test_hdr((uint8_t)(i >> 2));
		static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 16, 255, 1024, 4096};

		if (!roce_opcode_flags(hdr.opcode))
			continue;
		hdr.ackreq = i & 4;
		hdr.se = i & 8;
		hdr.mig = i & 16;
		hdr.fecn = i & 32;
		hdr.becn = i & 64;
		for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
			int len = wire_build_frame(frame, CAP, &flow, &hdr, payload, sizes[s]);

			if (hdr.opcode == ROCE_CNP && sizes[s] < ROCE_CNP_LEN) {
				assert_int_equal(len, -EINVAL);
				continue;
			}
			assert_true(len > 0);
			check_parsed(frame, (size_t)len, &flow, &hdr, payload, sizes[s]);
			check_rebuilt(frame, (size_t)len);
		}
	}
}

static void high_bits_do_not_leak(void **state)
{
	static const uint8_t opcodes[] = {ROCE_ACK, ROCE_UD | ROCE_SEND_ONLY};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct wire_flow flow = test_flow(4, 0);
		struct wire_hdr hdr = test_hdr(opcodes[i]);
		uint8_t a[CAP], b[CAP];
		int len = wire_build_frame(a, CAP, &flow, &hdr, NULL, 0);

		hdr.psn |= 0xff000000;
		hdr.dqpn |= 0xff000000;
		hdr.msn |= 0xff000000;
		hdr.sqpn |= 0xff000000;
		assert_int_equal(wire_build_frame(b, CAP, &flow, &hdr, NULL, 0), len);
		assert_memory_equal(a, b, (size_t)len);
	}
}

static void pieces_make_the_same_frame(void **state)
{
	uint8_t payload[4096], whole[CAP];
	uint64_t seed = 9;

	(void)state;
	test_fill(&seed, payload, sizeof(payload));
	for (int i = 0; i < 400; i++) {
		struct wire_flow flow = test_flow(families[i & 1], vlans[i >> 1 & 1]);
		struct wire_hdr hdr = test_hdr(ROCE_WRITE_ONLY_IMM);
		size_t pay_len = i < 20 ? (size_t)i / 4 : test_random(&seed) % 4097;
		int len = wire_build_frame(whole, CAP, &flow, &hdr, payload, pay_len);
		uint8_t headers[WIRE_MAX_HEADERS], trailer[WIRE_MAX_TRAILER];
		int hdr_len = wire_build_headers(headers, sizeof(headers), &flow, &hdr, pay_len);
		unsigned tail = wire_build_trailer(trailer, headers, (size_t)hdr_len, flow.vlan,
			icrc_append(0, payload, pay_len), pay_len);

		assert_int_equal(tail, wire_pad(pay_len) + 4);
		assert_int_equal(len, (size_t)hdr_len + pay_len + tail);
		assert_memory_equal(headers, whole, (size_t)hdr_len);
		assert_memory_equal(whole + hdr_len, payload, pay_len);
		assert_memory_equal(trailer, whole + hdr_len + pay_len, tail);
	}
}

static void errors_are_told(void **state)
{
	struct wire_flow flow = test_flow(4, 0), six = test_flow(6, 0);
	struct wire_hdr hdr = test_hdr(ROCE_SEND_ONLY);
	size_t cap = 70000;
	uint8_t *out = malloc(cap), *payload = calloc(1, 65535);
	int len;

	(void)state;
	hdr.opcode = 0x15;
	assert_int_equal(wire_build_headers(out, cap, &flow, &hdr, 0), -EINVAL);
	assert_int_equal(wire_build_frame(out, cap, &flow, &hdr, payload, 0), -EINVAL);
	hdr.opcode = ROCE_SEND_ONLY;
	flow.dst = six.dst;
	assert_int_equal(wire_build_headers(out, cap, &flow, &hdr, 0), -EINVAL);
	flow.src = six.src;
	assert_true(wire_build_headers(out, cap, &flow, &hdr, 0) > 0);
	flow.dst = test_flow(4, 0).dst;
	assert_int_equal(wire_build_headers(out, cap, &flow, &hdr, 0), -EINVAL);
	flow = test_flow(4, 0);
	assert_int_equal(wire_build_headers(out, cap, &flow, &hdr, 65535 - 127), -EINVAL);
	assert_int_equal(wire_build_headers(out, cap, &flow, &hdr, SIZE_MAX), -EINVAL);
	len = wire_build_frame(out, cap, &flow, &hdr, payload, 65535 - 128);
	assert_true(len > 65535 - 128);
	check_parsed(out, (size_t)len, &flow, &hdr, payload, 65535 - 128);
	free(out);
	free(payload);
}

static void longest_packet_fits_both_families(void **state)
{
	size_t cap = 70000;
	uint8_t *out = malloc(cap), *payload = calloc(1, 65535);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct wire_flow flow = test_flow(families[i & 1], vlans[i >> 1]);
		struct wire_hdr hdr = test_hdr(ROCE_CMP_SWAP); /* the longest headers */
		int len = wire_build_frame(out, cap, &flow, &hdr, payload, 65535 - 128);

		assert_in_range(len, 65535 - 128, 65535);
		check_parsed(out, (size_t)len, &flow, &hdr, payload, 65535 - 128);
	}
	free(out);
	free(payload);
}

static void capacity_is_respected(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct wire_flow flow = test_flow(families[i & 1], vlans[i >> 1]);
		struct wire_hdr hdr = test_hdr(ROCE_CMP_SWAP);
		uint8_t full[256];
		int hdr_len = wire_build_headers(full, sizeof(full), &flow, &hdr, 5);
		int len = wire_build_frame(full, sizeof(full), &flow, &hdr, "hello", 5);

		assert_true(hdr_len <= WIRE_MAX_HEADERS);
		assert_true(len - hdr_len - 5 <= WIRE_MAX_TRAILER);
		for (int cap = 0; cap <= len; cap++) {
			uint8_t *out = malloc(cap ? (size_t)cap : 1); /* ASan watches its end */

			assert_int_equal(wire_build_headers(out, (size_t)cap, &flow, &hdr, 5),
				cap < hdr_len ? -ENOSPC : hdr_len);
			assert_int_equal(
				wire_build_frame(out, (size_t)cap, &flow, &hdr, "hello", 5),
				cap < len ? -ENOSPC : len);
			if (cap == len)
				assert_memory_equal(out, full, (size_t)len);
			free(out);
		}
	}
}

int run_build_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_ipv4),
		cmocka_unit_test(layout_ipv6),
		cmocka_unit_test(every_opcode_round_trips),
		cmocka_unit_test(high_bits_do_not_leak),
		cmocka_unit_test(pieces_make_the_same_frame),
		cmocka_unit_test(errors_are_told),
		cmocka_unit_test(longest_packet_fits_both_families),
		cmocka_unit_test(capacity_is_respected),
	};

	return cmocka_run_group_tests_name("build", tests, NULL, NULL);
}
