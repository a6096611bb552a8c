/* SPDX-License-Identifier: BSD-3-Clause */
/* Golden test: what real hosts sent. tests/data/pcaps/expected.csv holds every packet as Wireshark
 * reads it (see make-expected there). */
#include <stdio.h>

#include "lib/wire/bytes.h"
#include "lib/wire/icrc.h"
#include "tests/unit/wire/pcap_file.h"
#include "tests/unit/wire/wire_test.h"

struct capture {
	const char *name;
	size_t n;
};

static const struct capture captures[] = {
	{"cm-rping", 29},
	{"rc-bad-rkey", 4},
	{"rc-ce", 8},
	{"rc-cnp", 8},
	{"rc-ect0", 8},
	{"rc-ipv4", 34},
	{"rc-ipv6", 34},
	{"rc-lost-ack", 6},
	{"rc-lost-last", 6},
	{"rc-lost-read-response", 9},
	{"rc-lost-write", 12},
	{"rc-mtu4096", 11},
	{"rc-pad", 20},
	{"rc-psn-wrap", 14},
	{"rc-rnr", 66},
	{"rc-window", 60},
	{"testpmd-tap", 20},
	{"uc-ipv4", 10},
	{"ud-ipv4", 3},
	{"ud-ipv6", 2},
};

enum { N_CAPTURES = sizeof(captures) / sizeof(*captures), N_PACKETS = 364 };

/* Columns of expected.csv. */
enum column {
	COL_FILE,
	COL_FRAME_LEN,
	COL_OPCODE,
	COL_PSN,
	COL_DQPN,
	COL_SE,
	COL_MIG,
	COL_PAD,
	COL_ACKREQ,
	COL_SYNDROME,
	COL_MSN,
	COL_VA,
	COL_RKEY,
	COL_DMALEN,
	COL_IMM,
	COL_QKEY,
	COL_SQPN,
	COL_SWAP_ADD,
	COL_COMPARE,
	COL_ATOMIC_ORIG,
	COL_TOS4,
	COL_TOS6,
	COL_TTL4,
	COL_TTL6,
	COL_IP_ID,
	COL_SPORT,
	COL_UDP_LEN,
	COL_ICRC,
	COL_SRC4,
	COL_SRC6,
	COL_DST4,
	COL_DST6,
	N_COLUMNS
};

static void open_capture(const struct capture *capture, struct pcap_file *file)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s.pcap", pcap_dir, capture->name);
	if (pcap_file_read(path, file) < 0)
		fail_msg("cannot read %s", path);
	assert_int_equal(file->n, capture->n);
}

static size_t split(char *line, char *cells[N_COLUMNS])
{
	size_t n = 0;

	line[strcspn(line, "\r\n")] = '\0';
	while (line && n < N_COLUMNS)
		cells[n++] = strsep(&line, ",");
	return line ? N_COLUMNS + 1 : n;
}

/* A header that Wireshark shows has to be there with its value, one that it does not must not. */
static void check_field(
	char *const cells[], enum column column, bool present, uint64_t value, int base)
{
	assert_int_equal(cells[column][0] != '\0', present);
	if (present)
		assert_int_equal(strtoull(cells[column], NULL, base), value);
}

static void check_ip(char *const cells[], const uint8_t *frame, const struct wire_pkt *pkt)
{
	bool is4 = pkt->ip_ver == 4;
	struct wire_flow flow;
	struct wire_hdr hdr;
	char buf[WIRE_IP_STRLEN];

	assert_string_equal(
		cells[is4 ? COL_SRC4 : COL_SRC6], wire_ip_format(&pkt->src, buf, sizeof(buf)));
	assert_string_equal(
		cells[is4 ? COL_DST4 : COL_DST6], wire_ip_format(&pkt->dst, buf, sizeof(buf)));
	check_field(cells, COL_TOS4, is4, pkt->tos, 0);
	check_field(cells, COL_TOS6, !is4, pkt->tos, 0);
	check_field(cells, COL_TTL4, is4, pkt->ttl, 0);
	check_field(cells, COL_TTL6, !is4, pkt->ttl, 0);
	wire_unbuild(frame, pkt, &flow, &hdr);
	check_field(cells, COL_IP_ID, is4, hdr.ip_id, 0);
}

static void check_transport(char *const cells[], const uint8_t *frame, const struct wire_pkt *pkt)
{
	unsigned flags = pkt->flags;
	bool aeth = flags & ROCE_F_AETH, reth = flags & ROCE_F_RETH;
	bool deth = flags & ROCE_F_DETH, atomic = flags & ROCE_F_ATOMIC;

	check_field(cells, COL_SPORT, true, pkt->sport, 0);
	check_field(cells, COL_UDP_LEN, true, (uint64_t)(pkt->end - pkt->l4_off), 0);
	check_field(cells, COL_OPCODE, true, pkt->opcode, 0);
	check_field(cells, COL_PSN, true, pkt->psn, 0);
	check_field(cells, COL_DQPN, true, pkt->dqpn, 0);
	check_field(cells, COL_SE, true, pkt->se, 0);
	check_field(cells, COL_MIG, true, pkt->mig, 0);
	check_field(cells, COL_PAD, true, pkt->pad, 0);
	check_field(cells, COL_ACKREQ, true, pkt->ackreq, 0);
	check_field(cells, COL_SYNDROME, aeth, pkt->syndrome, 0);
	check_field(cells, COL_MSN, aeth, pkt->msn, 0);
	check_field(cells, COL_VA, reth || atomic, pkt->va, 0);
	check_field(cells, COL_RKEY, reth || atomic, pkt->rkey, 0);
	check_field(cells, COL_DMALEN, reth, pkt->dmalen, 0);
	check_field(cells, COL_IMM, flags & ROCE_F_IMM, pkt->imm, 16);
	check_field(cells, COL_QKEY, deth, pkt->qkey, 0);
	check_field(cells, COL_SQPN, deth, pkt->sqpn, 0);
	check_field(cells, COL_SWAP_ADD, atomic, pkt->swap_add, 0);
	check_field(cells, COL_COMPARE, atomic, pkt->compare, 0);
	check_field(cells, COL_ATOMIC_ORIG, flags & ROCE_F_ATOMICACK, pkt->atomic_orig, 0);
	/* Wireshark does not dissect a CNP, nor payloads of a few bytes, up to the ICRC. */
	check_field(cells, COL_ICRC, cells[COL_ICRC][0] != '\0',
		get_be32(frame + pkt->end - ROCE_ICRC_LEN), 0);
}

static void packets_parse_as_wireshark_reads_them(void **state)
{
	char path[1024], line[4096];
	char *cells[N_COLUMNS];
	FILE *csv;
	size_t total = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/expected.csv", pcap_dir);
	csv = fopen(path, "r");
	assert_non_null(csv);
	assert_non_null(fgets(line, sizeof(line), csv)); /* headings */
	assert_int_equal(split(line, cells), N_COLUMNS);
	for (size_t i = 0; i < N_CAPTURES; i++) {
		struct pcap_file file;

		open_capture(&captures[i], &file);
		for (size_t j = 0; j < file.n; j++, total++) {
			const struct pcap_packet *packet = &file.packets[j];
			struct wire_pkt pkt;

			assert_non_null(fgets(line, sizeof(line), csv));
			assert_int_equal(split(line, cells), N_COLUMNS);
			assert_memory_equal(
				cells[COL_FILE], captures[i].name, strlen(captures[i].name));
			check_field(cells, COL_FRAME_LEN, true, packet->len, 0);
			assert_int_equal(wire_parse(packet->data, packet->len, &pkt), WIRE_OK);
			assert_int_equal(pkt.kind, WIRE_ROCE);
			check_ip(cells, packet->data, &pkt);
			check_transport(cells, packet->data, &pkt);
		}
		pcap_file_free(&file);
	}
	assert_null(fgets(line, sizeof(line), csv));
	assert_int_equal(total, N_PACKETS);
	fclose(csv);
}

static void every_icrc_recomputes(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_CAPTURES; i++) {
		struct pcap_file file;

		open_capture(&captures[i], &file);
		for (size_t j = 0; j < file.n; j++) {
			uint8_t *frame = file.packets[j].data;
			struct wire_pkt pkt;

			assert_int_equal(wire_parse(frame, file.packets[j].len, &pkt), WIRE_OK);
			assert_true(wire_icrc_ok(frame, &pkt));
			/* What a router may change leaves it valid, the payload does not. */
			frame[pkt.l3_off + 1] ^= 0x03;
			frame[pkt.l4_off + 8 + 4] ^= ROCE_BTH_FECN;
			assert_true(wire_icrc_ok(frame, &pkt));
			frame[pkt.end - ROCE_ICRC_LEN - 1] ^= 0x01;
			assert_false(wire_icrc_ok(frame, &pkt));
		}
		pcap_file_free(&file);
	}
}

static void every_packet_rebuilds(void **state)
{
	size_t total = 0;

	(void)state;
	for (size_t i = 0; i < N_CAPTURES; i++) {
		struct pcap_file file;

		open_capture(&captures[i], &file);
		for (size_t j = 0; j < file.n; j++, total++) {
			const uint8_t *frame = file.packets[j].data;
			size_t len = file.packets[j].len;
			uint8_t *again = malloc(len);
			struct wire_flow flow;
			struct wire_hdr hdr;
			struct wire_pkt pkt;

			assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
			wire_unbuild(frame, &pkt, &flow, &hdr);
			assert_int_equal(wire_build_frame(again, len, &flow, &hdr,
						 frame + pkt.pay_off, pkt.pay_len),
				len);
			assert_memory_equal(again, frame, len);
			free(again);
		}
		pcap_file_free(&file);
	}
	assert_int_equal(total, N_PACKETS);
}

/* The programs that were captured wrote known bytes: their position proves pay_off. */
static size_t count_known_payloads(const struct pcap_file *file)
{
	size_t n = 0;

	for (size_t j = 0; j < file->n; j++) {
		const uint8_t *frame = file->packets[j].data;
		struct wire_pkt pkt;
		bool response;

		assert_int_equal(wire_parse(frame, file->packets[j].len, &pkt), WIRE_OK);
		if (!(pkt.flags & ROCE_F_PAYLOAD) || !(pkt.flags & ROCE_F_FIRST))
			continue;
		response = !(pkt.flags & ROCE_F_REQUEST);
		for (unsigned k = 0; k < pkt.pay_len; k++)
			assert_int_equal(frame[pkt.pay_off + k],
				(uint8_t)(response ? 5 * k + 1 : 7 * k + 3));
		n += pkt.pay_len > 0;
	}
	return n;
}

static void payloads_are_found(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < N_CAPTURES; i++) {
		struct pcap_file file;

		if (strcmp(captures[i].name, "rc-ipv4") != 0 &&
			strcmp(captures[i].name, "rc-ipv6") != 0 &&
			strcmp(captures[i].name, "rc-pad") != 0 &&
			strcmp(captures[i].name, "uc-ipv4") != 0 &&
			strcmp(captures[i].name, "rc-mtu4096") != 0)
			continue;
		open_capture(&captures[i], &file);
		n += count_known_payloads(&file);
		pcap_file_free(&file);
	}
	assert_true(n >= 30);
}

int run_pcap_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_parse_as_wireshark_reads_them),
		cmocka_unit_test(every_icrc_recomputes),
		cmocka_unit_test(every_packet_rebuilds),
		cmocka_unit_test(payloads_are_found),
	};

	return cmocka_run_group_tests_name("pcaps", tests, NULL, NULL);
}
