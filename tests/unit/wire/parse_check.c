/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/wire/parse_check.h"

size_t pay_len_of(uint8_t opcode)
{
	if (opcode == ROCE_CNP)
		return ROCE_CNP_LEN;
	return roce_opcode_flags(opcode) & ROCE_F_PAYLOAD ? 37 : 0;
}

/* What has to hold for any frame at all. */
static void check_consistent(const struct wire_pkt *pkt, enum wire_drop rc, size_t len)
{
	size_t headers;

	assert_true(rc == WIRE_OK || (rc > WIRE_OK && rc < WIRE_N_DROPS));
	if (rc != WIRE_OK) {
		assert_int_not_equal(pkt->kind, WIRE_ROCE);
		return;
	}
	assert_true(pkt->end <= len);
	if (pkt->kind == WIRE_L2 || pkt->kind == WIRE_ARP)
		return;
	assert_true(pkt->ip_ver == 4 || pkt->ip_ver == 6);
	assert_int_equal(wire_ip_is4(&pkt->src), pkt->ip_ver == 4);
	assert_int_equal(wire_ip_is4(&pkt->dst), pkt->ip_ver == 4);
	assert_true(pkt->l3_off == ETH_HDR_LEN || pkt->l3_off == ETH_HDR_LEN + VLAN_HDR_LEN);
	assert_true(pkt->l3_off < pkt->l4_off && pkt->l4_off <= pkt->end);
	if (pkt->kind != WIRE_ROCE)
		return;
	headers = sizeof(struct udp_hdr) + sizeof(struct roce_bth) + roce_ext_len(pkt->flags);
	assert_int_equal(pkt->dport, ROCE_UDP_PORT);
	assert_int_equal(pkt->flags, roce_opcode_flags(pkt->opcode));
	assert_true(pkt->flags & ROCE_F_VALID);
	assert_int_equal(pkt->pay_off, pkt->l4_off + headers);
	assert_int_equal(pkt->pay_off + pkt->pay_len + pkt->pad + ROCE_ICRC_LEN, pkt->end);
	assert_int_equal((pkt->pay_len + pkt->pad) % 4, 0);
	assert_true(pkt->pad < 4 && pkt->dqpn <= 0xffffff && pkt->psn <= 0xffffff);
}

enum wire_drop parse_checked(const uint8_t *frame, size_t len, struct wire_pkt *pkt)
{
	enum wire_drop rc = parse_exact(frame, len, pkt);

	check_consistent(pkt, rc, len);
	return rc;
}

void expect(const uint8_t *frame, size_t len, enum wire_drop expected)
{
	struct wire_pkt pkt;
	enum wire_drop rc = parse_checked(frame, len, &pkt);

	if (rc != expected)
		print_error("got %s, expected %s\n", rc ? wire_drop_name(rc) : "ok",
			expected ? wire_drop_name(expected) : "ok");
	assert_int_equal(rc, expected);
}

void expect_kind(const uint8_t *frame, size_t len, enum wire_kind kind)
{
	struct wire_pkt pkt;

	assert_int_equal(parse_checked(frame, len, &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, kind);
}

void fix_lengths(uint8_t *frame, int family, size_t l3, size_t len)
{
	size_t l4 = l3 + (family == 4 ? 20 : 40);

	if (family == 4) {
		put_be16(frame + l3 + 2, (uint16_t)(len - l3));
		test_fix_ip4(frame + l3);
	} else {
		put_be16(frame + l3 + 4, (uint16_t)(len - l4));
	}
	put_be16(frame + l4 + 4, (uint16_t)(len - l4));
}
