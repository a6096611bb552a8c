/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a capture of what Wireshark does not know, for wireshark.py: wireshark_frames FILE. Every
 * kind of packet with fields of every value, over IPv4 and IPv6, trimmed at every length; then
 * packets that are cut off, and that have bits turned. The same in every run. */
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/msg.h"
#include "lib/pcapng/pcapng.h"
#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"
#include "lib/wire/mrc.h"
#include "lib/wire/netreduce.h"
#include "lib/wire/psn.h"
#include "lib/wire/random.h"

enum { ROOM = 512, ETH = 14, L3_4 = 28, ROUNDS = 2, TURNED = 24, DSCP_TRIMMED = 12 };
/* Below it are ports that Wireshark takes for what other protocols say. */
enum { SPORT_MIN = 0xc000 };
static FILE *out;
static uint64_t now = 1700000000000000000, seed = 19;

static uint64_t any(void)
{
	return wire_random(&seed);
}

/* A packet from the BTH on, of len bytes, of which `cap` were captured. */
static void put(const uint8_t *bth, size_t len, size_t cut, bool v6, uint8_t dscp)
{
	uint8_t frame[ROOM] = {2, [11] = 1};
	struct mrc_flow flow = {.src = wire_ip_from4(0x0a000001),
		.dst = wire_ip_from4(0x0a000002),
		.tos = (uint8_t)(dscp << 2),
		.ttl = 64,
		.udp_port = ROCE_UDP_PORT,
		.ev = ((uint32_t)any() | SPORT_MIN) & (v6 ? UINT32_MAX : UINT16_MAX)};
	int l3;

	if (v6) {
		wire_ip_parse("fd00::1", &flow.src);
		wire_ip_parse("fd00::2", &flow.dst);
	}
	put_be16(frame + 12, v6 ? 0x86dd : 0x0800);
	l3 = mrc_build_l3(frame + ETH, sizeof(frame) - ETH, &flow, len);
	if (l3 < 0 || ETH + (size_t)l3 + len > sizeof(frame))
		abort();
	memcpy(frame + ETH + l3, bth, len);
	len += ETH + (size_t)l3;
	pcapng_packet(out, &(struct pcapng_packet){.ns = now += 1000,
				   .len = (uint32_t)len,
				   .cap = (uint32_t)(len - cut),
				   .data = frame});
}

/* As it is, cut off on the way (and so too short), cut off by the capture, and with bits turned. */
static void put_all(uint8_t *bth, size_t len)
{
	put(bth, len, 0, false, 0);
	put(bth, len, 0, true, 0);
	for (size_t n = 0; n < len; n++) {
		put(bth, n, 0, true, 0);
		put(bth, len, len - n, false, 0);
	}
	for (unsigned i = 0; i < TURNED; i++) {
		uint8_t other[ROOM];

		memcpy(other, bth, len);
		for (uint64_t n = any() % 3 + 1; n; n--)
			other[any() % len] ^= (uint8_t)(1 << any() % 8);
		put(other, len, 0, i & 1, (uint8_t)(any() % 64));
	}
}

static void put_mrc(const struct mrc_pkt *m)
{
	uint8_t bytes[ROOM] = {0};
	int n = mrc_codec_ocp_r1.encode(m, bytes, sizeof(bytes));

	if (n < 0)
		abort();
	if (m->kind == MRC_KIND_DATA)
		n += m->data.pay_len + (int)wire_pad(m->data.pay_len);
	put_all(bytes, (size_t)n + ROCE_ICRC_LEN);
	for (size_t len = 0; len <= (size_t)n; len++)
		put(bytes, len, 0, len & 1, DSCP_TRIMMED);
}

static void data(void)
{
	for (unsigned i = 0; i < 16; i++) {
		const uint8_t place = i & 3;

		put_mrc(&(struct mrc_pkt){.kind = MRC_KIND_DATA,
			.data = {.place = place,
				.has_imm = place & MRC_LAST && i & 4,
				.has_ts = i & 8,
				.ts_vendor = any() & 1,
				.ts = (uint16_t)any(),
				.se = any() & 1,
				.ackreq = any() & 1,
				.rtx = any() & 1,
				.dqpn = (uint32_t)any() & PSN_MASK,
				.psn = (uint32_t)any() & PSN_MASK,
				.msn = (uint16_t)any(),
				.rqmsn = (uint16_t)any(),
				.rkey = (uint32_t)any(),
				.dmalen = (uint32_t)any(),
				.imm = (uint32_t)any(),
				.va = any(),
				.pay_len = (uint16_t)(any() % 20)}});
	}
}

static void sack(bool probe)
{
	const uint32_t cack = (uint32_t)any() & PSN_MASK;

	put_mrc(&(struct mrc_pkt){.kind = MRC_KIND_SACK,
		.sack = {.dqpn = (uint32_t)any() & PSN_MASK,
			.mark = (uint8_t)(any() % 3),
			.rtx = any() & 1,
			.probe = probe,
			.probe_id = (uint16_t)any(),
			.cack_psn = cack,
			.trigger_psn = psn_add(cack, (int16_t)any()),
			.base_psn = psn_add(cack, (int16_t)any()),
			.entropy = (uint32_t)any(),
			.mpr = (uint8_t)any(),
			.bitmap = any(),
			.spdcid = (uint16_t)any(),
			.dpdcid = (uint16_t)any(),
			.ts = (uint16_t)any(),
			.ooo_count = (uint16_t)any() & 0x7fff,
			.restore_cwnd = any() & 1,
			.cwnd_penalty = (uint8_t)any() & 0x7f,
			.rcvd_units = (uint32_t)any() & PSN_MASK}});
}

static void other_mrc(void)
{
	put_mrc(&(struct mrc_pkt){.kind = MRC_KIND_ACK,
		.ack = {(uint32_t)any() & PSN_MASK, (uint32_t)any() & PSN_MASK, (uint8_t)any(),
			(uint32_t)any() & PSN_MASK}});
	put_mrc(&(struct mrc_pkt){.kind = MRC_KIND_NACK,
		.nack = {.dqpn = (uint32_t)any() & PSN_MASK,
			.psn = (uint32_t)any() & PSN_MASK,
			.reason = (uint8_t)(any() % 16),
			.vendor_info = (uint8_t)any(),
			.entropy = (uint32_t)any(),
			.ts = (uint16_t)any()}});
	put_mrc(&(struct mrc_pkt){.kind = MRC_KIND_PROBE,
		.probe = {.dqpn = (uint32_t)any() & PSN_MASK,
			.id = (uint16_t)any(),
			.ts = (uint16_t)any(),
			.ts_vendor = any() & 1}});
	for (uint8_t kind = MRC_KIND_ENDPOINT_REQUEST; kind <= MRC_KIND_ENDPOINT_RESPONSE; kind++)
		put_mrc(&(struct mrc_pkt){.kind = kind,
			.endpoint = {.id = (uint16_t)any(),
				.op = any() & 1,
				.port_mask = (uint32_t)any(),
				.ts = (uint16_t)any()}});
}

/* A packet of RoCE by lib/wire, without what is below its BTH. */
static void put_roce(uint8_t opcode, uint32_t imm, const void *payload, size_t len)
{
	const struct wire_flow flow = {.src = wire_ip_from4(1), .dst = wire_ip_from4(2), .ttl = 64};
	const struct wire_hdr hdr = {.opcode = opcode,
		.ackreq = any() & 1,
		.se = any() & 1,
		.syndrome = (uint8_t)any(),
		.dqpn = (uint32_t)any() & PSN_MASK,
		.psn = (uint32_t)any() & PSN_MASK,
		.msn = (uint32_t)any() & PSN_MASK,
		.imm = imm,
		.rkey = (uint32_t)any(),
		.dmalen = (uint32_t)any(),
		.pos_offset = (uint32_t)any(),
		.pos_recv = (uint32_t)any(),
		.va = any(),
		.swap_add = any(),
		.compare = any(),
		.atomic_orig = any()};
	uint8_t frame[ROOM];
	const int n = wire_build_frame(frame, sizeof(frame), &flow, &hdr, payload, len);

	if (n < 0)
		abort();
	put_all(frame + ETH + L3_4, (size_t)n - ETH - L3_4);
}

static void selective(void)
{
	static const uint8_t zeros[32];

	for (unsigned opcode = ROCE_SEL; opcode < 256; opcode++)
		if (roce_opcode_flags((uint8_t)opcode))
			put_roce((uint8_t)opcode, (uint32_t)any(), zeros, any() % 20);
}

static void collectives(void)
{
	static const uint8_t opcodes[] = {ROCE_RC | ROCE_SEND_ONLY_IMM,
		ROCE_RC | ROCE_WRITE_ONLY_IMM, ROCE_UC | ROCE_SEND_ONLY_IMM,
		ROCE_UD | ROCE_SEND_ONLY_IMM, ROCE_SEL | ROCE_SEND_ONLY_IMM,
		ROCE_SEL | ROCE_WRITE_ONLY_IMM};

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		const struct ccl_ctrl c = {.prim = (uint8_t)(any() % 4),
			.op = any() & 7,
			.dtype = any() & 15,
			.op_seq = (uint8_t)any(),
			.root = any() & 0x7ff,
			.n = (uint32_t)any(),
			.bytes = any(),
			.flags = any() & 3,
			.m = (uint32_t)any(),
			.tag = any()};
		const struct ina_hdr h = {(uint16_t)any(), (uint16_t)any(), (uint32_t)any(),
			(uint16_t)any(), (uint8_t)(any() % 16), (uint8_t)(any() % 8)};
		uint8_t bytes[64] = {0};

		ccl_ctrl_encode(&c, bytes);
		put_roce(opcodes[i], ccl_ctrl_imm(&c), bytes, CCL_CTRL_LEN);
		ina_encode(&h, bytes);
		put_roce(opcodes[i], (uint32_t)any(), bytes, 16 + any() % 20);
	}
}

int main(int argc, char **argv)
{
	out = argc == 2 ? fopen(argv[1], "we") : NULL;
	if (!out)
		return 2;
	pcapng_section(out, NULL);
	pcapng_interface(out, "p0", 0, NULL);
	for (unsigned round = 0; round < ROUNDS; round++) {
		sack(round & 1);
		other_mrc();
	}
	data();
	selective();
	collectives();
	return fclose(out) ? 1 : 0;
}
