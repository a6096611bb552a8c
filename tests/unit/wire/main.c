/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "lib/wire/bytes.h"
#include "tests/unit/wire/wire_test.h"

const char *pcap_dir;

struct wire_flow test_flow(int family, uint16_t vlan)
{
	struct wire_flow flow = {
		.dmac = {0x02, 0, 0, 0, 0, 0x0b},
		.smac = {0x02, 0, 0, 0, 0, 0x0a},
		.vlan = vlan,
		.tos = 0x68 | IP_ECN_ECT0,
		.ttl = 64,
		.sport = 0xc123,
	};

	assert_int_equal(wire_ip_parse(family == 4 ? "10.77.0.1" : "fd77::1", &flow.src), 0);
	assert_int_equal(wire_ip_parse(family == 4 ? "10.77.0.2" : "fd77::2", &flow.dst), 0);
	return flow;
}

struct wire_hdr test_hdr(uint8_t opcode)
{
	return (struct wire_hdr){
		.opcode = opcode,
		.ackreq = true,
		.mig = true,
		.syndrome = 0x1f,
		.ip_id = 0x4321,
		.dqpn = 0x123456,
		.psn = 0xfedcba,
		.msn = 0x00abcd,
		.imm = 0xdeadbeef,
		.rkey = 0x11223344,
		.dmalen = 0x00010203,
		.pos_offset = 0x41424344,
		.pos_recv = 0x51525354,
		.qkey = 0x80010000,
		.sqpn = 0x000017,
		.va = 0x0102030405060708,
		.swap_add = 0x1112131415161718,
		.compare = 0x2122232425262728,
		.atomic_orig = 0x3132333435363738,
	};
}

size_t test_frame(
	uint8_t *out, size_t cap, int family, uint16_t vlan, uint8_t opcode, size_t pay_len)
{
	struct wire_flow flow = test_flow(family, vlan);
	struct wire_hdr hdr = test_hdr(opcode);
	uint8_t payload[4096];
	int len;

	assert_in_range(pay_len, 0, sizeof(payload));
	for (size_t i = 0; i < pay_len; i++)
		payload[i] = (uint8_t)i;
	len = wire_build_frame(out, cap, &flow, &hdr, payload, pay_len);
	assert_true(len > 0);
	return (size_t)len;
}

void test_fix_ip4(uint8_t *l3)
{
	put_be16(l3 + 10, 0);
	put_be16(l3 + 10, (uint16_t)~ip_sum(l3, (l3[0] & 15) * 4u, 0));
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s PCAP-FOLDER\n", argv[0]);
		return 2;
	}
	pcap_dir = argv[1];
	return run_roce_tests() + run_ip_tests() + run_icrc_tests() + run_icrc_kernel_tests() +
		       run_parse_tests() + run_parse_other_tests() + run_build_tests() +
		       run_neigh_tests() + run_inplace_tests() + run_pcap_tests() + run_cm_tests() +
		       run_mrc_tests() + run_outer_tests() !=
	       0;
}
