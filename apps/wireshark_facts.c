/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the dissector for Wireshark: what it has to know of the formats, as Lua tables, and behind
 * them the file that is named, which uses them. No layout is known here: lib/wire and lib/ccl are
 * asked (wireshark_probe.h), words are incline-dissect's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dissect.h"
#include "apps/wireshark_probe.h"
#include "lib/ccl/msg.h"
#include "lib/reduce/reduce.h"
#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"
#include "lib/wire/mrc.h"
#include "lib/wire/netreduce.h"
#include "lib/wire/psn.h"

/* A frame of which all bytes before the BTH are as they have to be. */
static uint8_t frame[512];
enum { BTH = 14 + 20 + 8, PAYLOAD = 4, SOME_QP = 0x155 };

#define M(type, name_, title_, field, show_, ...)                                     \
	{                                                                             \
		.name = name_, .title = title_, .off = offsetof(type, field),         \
		.size = sizeof(((type *)0)->field), .show = SHOW_##show_, __VA_ARGS__ \
	}

/* ---- RoCE ---- */

#define P(...) M(struct wire_pkt, __VA_ARGS__)
static const struct member bth_members[] = {P("qp", "Destination queue pair", dqpn, HEX),
	P("se", "Solicited event", se, FLAG), P("ackreq", "Acknowledge request", ackreq, FLAG),
	P("mig", "Migration state", mig, FLAG), P("fecn", "FECN", fecn, FLAG),
	P("becn", "BECN", becn, FLAG), P("pad", "Pad count", pad, DEC), {0}};
static const struct member roce_members[] = {P("psn", "PSN", psn, DEC),
	P("va", "Virtual address", va, HEX), P("rkey", "Remote key", rkey, HEX),
	P("dmalen", "DMA length", dmalen, DEC),
	P("offset", "Offset in the message", pos_offset, DEC),
	P("receives", "Receive requests before", pos_recv, DEC),
	P("imm", "Immediate data", imm, HEX), P("swap_add", "Swap or add data", swap_add, HEX),
	P("compare", "Compare data", compare, HEX),
	P("original", "Original data", atomic_orig, HEX),
	P("syndrome", "Syndrome", syndrome, TEXT, .words = "syndrome"), P("msn", "MSN", msn, DEC),
	{0}};

static const char *read_roce(const uint8_t *bytes, size_t whole, void *host)
{
	const enum wire_drop drop = wire_parse(bytes - BTH, BTH + whole, host);

	return drop == WIRE_OK ? NULL : wire_drop_name(drop);
}

static struct layout roce_layout(uint8_t opcode, const struct member *members)
{
	static const uint8_t zeros[ROCE_CNP_LEN];
	const struct wire_flow flow = {.src = wire_ip_from4(1), .dst = wire_ip_from4(2), .ttl = 64};
	const struct wire_hdr hdr = {.opcode = opcode, .dqpn = SOME_QP};
	const size_t payload = opcode == ROCE_CNP ? ROCE_CNP_LEN : PAYLOAD;
	const int n = wire_build_frame(frame, sizeof(frame), &flow, &hdr, zeros, payload);

	if (n < 0)
		abort();
	return (struct layout){.bytes = frame + BTH,
		.len = (size_t)n - BTH - payload - ROCE_ICRC_LEN,
		.whole = (size_t)n - BTH,
		.from = 1,
		.flag = NO_FLAG,
		.members = members,
		.read = read_roce};
}

/* What Wireshark reads itself, but for what the payload is, and what it does not know. */
static void print_roce(void)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const uint16_t flags = roce_opcode_flags((uint8_t)opcode);
		struct layout l;
		struct place imm;

		if (!flags)
			continue;
		l = roce_layout((uint8_t)opcode, roce_members);
		printf("facts.roce[%u] = {op=\"%s\", pay=%zu, ", opcode,
			roce_opcode_name((uint8_t)opcode), l.len);
		if (probe_place(&l, "imm", &imm))
			printf("imm=%zu, ", imm.at);
		if (flags & ROCE_F_FIRST && flags & ROCE_F_REQUEST)
			printf("ina=true, ");
		if ((opcode & MRC_OPCODES_MASK) == ROCE_SEL)
			probe_print(&l, NULL);
		printf("}\n");
	}
}

/* ---- MRC ---- */

#define K(...) M(struct mrc_pkt, __VA_ARGS__)
static const struct member data_members[] = {K("psn", "PSN", data.psn, DEC),
	K("rtx", "Retransmission", data.rtx, FLAG), K("msn", "MSN", data.msn, DEC),
	K("rqmsn", "Receive queue MSN", data.rqmsn, DEC), K("ts", "Time stamp", data.ts, DEC),
	K("ts_vendor", "Time in the sender's own unit", data.ts_vendor, FLAG),
	K("va", "Virtual address", data.va, HEX), K("rkey", "Remote key", data.rkey, HEX),
	K("dmalen", "DMA length", data.dmalen, DEC), K("imm", "Immediate data", data.imm, HEX),
	{0}};
static const struct member ack_members[] = {K("psn", "PSN", ack.psn, DEC),
	K("mrc_syndrome", "Syndrome", ack.syndrome, HEX), K("msn", "MSN", ack.msn, DEC), {0}};
static const struct member sack_members[] = {K("psn", "Cumulative PSN", sack.cack_psn, DEC),
	K("mark", "Path mark", sack.mark, TEXT, .words = "mark"),
	K("rtx", "Retransmission", sack.rtx, FLAG), K("probe", "Probe", sack.probe_id, DEC),
	K("trigger", "PSN that triggered it", sack.trigger_psn, RELATIVE),
	K("base", "PSN of the bitmap", sack.base_psn, RELATIVE),
	K("bitmap", "Bitmap", sack.bitmap, HEX),
	K("ev", "EV of what triggered it", sack.entropy, HEX), K("mpr", "MPR", sack.mpr, DEC),
	K("spdcid", "SPDCID", sack.spdcid, HEX), K("dpdcid", "DPDCID", sack.dpdcid, HEX),
	K("ts", "Time stamp", sack.ts, DEC), K("ooo", "Packets out of order", sack.ooo_count, DEC),
	K("restore_cwnd", "Restore the window", sack.restore_cwnd, FLAG),
	K("cwnd_penalty", "Window penalty", sack.cwnd_penalty, DEC),
	K("received", "Bytes received", sack.rcvd_units, DEC, .scale = MRC_RCVD_UNIT), {0}};
static const struct member nack_members[] = {K("psn", "PSN", nack.psn, DEC),
	K("reason", "Reason", nack.reason, TEXT, .words = "reason"),
	K("vendor_info", "Vendor information", nack.vendor_info, HEX),
	K("ev", "EV of what triggered it", nack.entropy, HEX),
	K("spdcid", "SPDCID", nack.spdcid, HEX), K("dpdcid", "DPDCID", nack.dpdcid, HEX),
	K("ts", "Time stamp", nack.ts, DEC), {0}};
static const struct member probe_members[] = {K("id", "Identifier", probe.id, DEC),
	K("vendor_info", "Vendor information", probe.vendor_info, HEX),
	K("spdcid", "SPDCID", probe.spdcid, HEX), K("dpdcid", "DPDCID", probe.dpdcid, HEX),
	K("ts", "Time stamp", probe.ts, DEC),
	K("ts_vendor", "Time in the sender's own unit", probe.ts_vendor, FLAG), {0}};
static const struct member request_members[] = {K("id", "Identifier", endpoint.id, DEC),
	K("asks", "Asks for", endpoint.op, TEXT, .words = "asks"),
	K("vendor_info", "Vendor information", endpoint.vendor_info, HEX),
	K("ports", "Ports", endpoint.port_mask, HEX), K("ts", "Time stamp", endpoint.ts, DEC),
	K("ts_vendor", "Time in the sender's own unit", endpoint.ts_vendor, FLAG), {0}};
static const struct member response_members[] = {
	K("id", "Identifier", endpoint.id, DEC), K("ts", "Time stamp", endpoint.ts, DEC), {0}};

static const char *read_mrc(const uint8_t *bytes, size_t whole, void *host)
{
	const enum mrc_drop drop = mrc_codec_ocp_r1.decode(bytes, whole, false, host);

	return drop == MRC_OK ? NULL : mrc_drop_name(drop);
}

/* How much must have been left of data that was trimmed, for a field that ends there: the codec
 * says how deep it has come. */
static size_t need(const struct layout *l, size_t end)
{
	uint8_t depth = MRC_DEPTH_BTH;

	for (size_t len = sizeof(struct roce_bth); len <= l->len; len++) {
		struct mrc_pkt m;

		if (mrc_codec_ocp_r1.decode(l->bytes, len, true, &m) != MRC_OK)
			abort();
		if ((m.depth != depth || len == sizeof(struct roce_bth)) && len >= end)
			return len;
		depth = m.depth;
	}
	return l->len;
}

static void print_mrc(struct mrc_pkt m, const struct member *members, size_t flag)
{
	const bool data = m.kind == MRC_KIND_DATA;
	uint8_t *bytes = frame + BTH;
	struct layout l = {
		.bytes = bytes, .from = 1, .flag = flag, .members = members, .read = read_mrc};
	const int n = mrc_codec_ocp_r1.encode(&m, bytes, sizeof(frame) - BTH);

	if (n < 0)
		abort();
	memset(bytes + n, 0, PAYLOAD + ROCE_ICRC_LEN);
	l.len = (size_t)n;
	l.whole = l.len + (data ? PAYLOAD : 0) + ROCE_ICRC_LEN;
	printf("facts.mrc[%u]%s = {op=\"%s\", %s", bytes[0],
		flag != NO_FLAG && ((uint8_t *)&m)[flag] ? ".other" : "", dissect_mrc_op(&m),
		data ? "data=true, "
		: m.kind == MRC_KIND_ENDPOINT_REQUEST || m.kind == MRC_KIND_ENDPOINT_RESPONSE
			? "endpoint=true, "
			: "");
	probe_print(&l, data ? need : NULL);
	printf("}\n");
}

static void print_data(uint8_t place, bool imm)
{
	struct mrc_pkt m = {.kind = MRC_KIND_DATA,
		.data = {.place = place, .has_imm = imm, .dqpn = SOME_QP, .pay_len = PAYLOAD}};

	print_mrc(m, data_members, offsetof(struct mrc_pkt, data.has_ts));
	m.data.has_ts = true;
	print_mrc(m, data_members, offsetof(struct mrc_pkt, data.has_ts));
}

static void print_all_mrc(void)
{
	struct mrc_pkt m = {.kind = MRC_KIND_SACK, .sack.dqpn = SOME_QP};

	for (uint8_t place = 0; place <= MRC_ONLY; place++) {
		print_data(place, false);
		if (place & MRC_LAST)
			print_data(place, true);
	}
	print_mrc(m, sack_members, offsetof(struct mrc_pkt, sack.probe));
	m.sack.probe = true;
	print_mrc(m, sack_members, offsetof(struct mrc_pkt, sack.probe));
	m = (struct mrc_pkt){.kind = MRC_KIND_ACK, .ack.dqpn = SOME_QP};
	print_mrc(m, ack_members, NO_FLAG);
	m = (struct mrc_pkt){.kind = MRC_KIND_NACK, .nack.dqpn = SOME_QP};
	print_mrc(m, nack_members, NO_FLAG);
	m = (struct mrc_pkt){.kind = MRC_KIND_PROBE, .probe.dqpn = SOME_QP};
	print_mrc(m, probe_members, NO_FLAG);
	m = (struct mrc_pkt){.kind = MRC_KIND_ENDPOINT_REQUEST};
	print_mrc(m, request_members, NO_FLAG);
	m = (struct mrc_pkt){.kind = MRC_KIND_ENDPOINT_RESPONSE};
	print_mrc(m, response_members, NO_FLAG);
}

/* ---- what payloads are ---- */

struct control {
	struct ccl_ctrl c;
	bool write, last;
};

#define C(...) M(struct control, __VA_ARGS__)
static const struct member control_members[] = {
	C("inc.primitive", "Primitive", c.prim, TEXT, .words = "primitive"),
	C("inc.op", "Operation", c.op, TEXT, .words = "op"),
	C("inc.dtype", "Type", c.dtype, TEXT, .words = "dtype"),
	C("inc.op_seq", "Number", c.op_seq, DEC), C("inc.root", "Root", c.root, DEC),
	C("inc.packets", "Packets", c.n, DEC), C("inc.bytes", "Bytes", c.bytes, DEC),
	C("inc.write", "By RDMA WRITE", write, FLAG),
	C("inc.last", "The last operation", last, FLAG),
	C("inc.m", "Packets of a message", c.m, DEC), C("inc.tag", "Tag", c.tag, HEX), {0}};

/* The immediate, and the payload behind it. */
static const char *read_control(const uint8_t *bytes, size_t whole, void *host)
{
	struct control *control = host;

	(void)whole;
	if (ccl_ctrl_decode(get_be32(bytes), bytes + sizeof(struct roce_immdt), &control->c))
		return "inc";
	control->write = control->c.flags & CCL_F_WRITE;
	control->last = control->c.flags & CCL_F_LAST;
	return NULL;
}

#define N(...) M(struct ina_hdr, __VA_ARGS__)
static const struct member ina_members[] = {N("netreduce.ring", "Ring", ring, DEC),
	N("netreduce.rank", "Rank", rank, DEC), N("netreduce.message", "Message", msg, DEC),
	N("netreduce.packets", "Packets of a message", packets, DEC),
	N("netreduce.dtype", "Type", dtype, TEXT, .words = "dtype"),
	N("netreduce.op", "Operation", op, TEXT, .words = "op"), {0}};

static const char *read_ina(const uint8_t *bytes, size_t whole, void *host)
{
	(void)whole;
	return ina_decode(bytes, host) ? NULL : "netreduce";
}

static void print_payloads(void)
{
	uint8_t bytes[sizeof(struct roce_immdt) + CCL_CTRL_LEN];
	const struct ccl_ctrl c = {0};
	const struct ina_hdr h = {0};
	struct layout l = {.bytes = bytes,
		.len = sizeof(bytes),
		.whole = sizeof(bytes),
		.flag = NO_FLAG,
		.members = control_members,
		.read = read_control};

	put_be32(bytes, ccl_ctrl_imm(&c));
	ccl_ctrl_encode(&c, bytes + sizeof(struct roce_immdt));
	printf("facts.control = {pay=%u, ", CCL_CTRL_LEN);
	probe_print(&l, NULL);
	printf("}\n");
	ina_encode(&h, bytes);
	l.len = l.whole = INA_LEN;
	l.members = ina_members;
	l.read = read_ina;
	printf("facts.ina = {");
	probe_print(&l, NULL);
	printf("}\n");
}

/* ---- words ---- */

static const char *word_syndrome(unsigned v)
{
	static char text[DISSECT_NAME];

	return dissect_syndrome((uint8_t)v, text);
}

static const char *word_op(unsigned v)
{
	return reduce_op_name(v);
}

static const char *word_dtype(unsigned v)
{
	return reduce_dtype_name(v);
}

static void print_words(const char *name, const char *(*word)(unsigned v), unsigned n)
{
	printf("facts.words.%s = {", name);
	for (unsigned v = 0; v < n; v++)
		printf("[%u]=\"%s\", ", v, word(v));
	printf("}\n");
}

static void print_facts(void)
{
	struct layout l = roce_layout(ROCE_RC | ROCE_SEND_ONLY, bth_members);

	printf("-- SPDX-License-Identifier: BSD-3-Clause\n"
	       "-- A dissector for Wireshark, of Incline " INCLINE_VERSION ". Generated: what is "
	       "known of the formats first, then what is done with it.\n"
	       "local facts = {roce={}, mrc={}, words={}, trimmed={}}\n");
	printf("facts.version = \"%s\"\nfacts.port = %u\nfacts.icrc = %u\nfacts.psns = %u\n",
		INCLINE_VERSION, ROCE_UDP_PORT, ROCE_ICRC_LEN, PSN_MASK + 1);
	printf("facts.endpoint_qp = %u\nfacts.ev_flow, facts.ev_port = %u, %u\n", MRC_ENDPOINT_QPN,
		mrc_ev(1, 0, MRC_EV_FLOW_HIGH), mrc_ev(0, 1, MRC_EV_FLOW_HIGH));
	printf("facts.mrc_first, facts.mrc_last = %u, %u\n", MRC_OPCODES,
		MRC_OPCODES | (~MRC_OPCODES_MASK & 0xff));
	for (unsigned dscp = 0; dscp < 64; dscp++)
		if (dissect_is_trimmed((uint8_t)(dscp << 2)))
			printf("facts.trimmed[%u] = true\n", dscp);
	print_words("syndrome", word_syndrome, 256);
	print_words("primitive", dissect_primitive, 8);
	print_words("op", word_op, 256);
	print_words("dtype", word_dtype, 256);
	print_words("mark", dissect_mark, 4);
	print_words("reason", dissect_nack, 256);
	print_words("asks", dissect_endpoint_op, 2);
	printf("facts.bth = {");
	probe_print(&l, NULL);
	printf("}\n");
	print_payloads();
	print_all_mrc();
	print_roce();
}

int main(int argc, char **argv)
{
	FILE *in = argc == 2 ? fopen(argv[1], "re") : NULL;
	int c;

	if (!in) {
		fputs("usage: wireshark_facts FILE\n", stderr);
		return 2;
	}
	print_facts();
	while ((c = fgetc(in)) != EOF)
		putchar(c);
	fclose(in);
	return fflush(stdout) || ferror(stdout);
}
