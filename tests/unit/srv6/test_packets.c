/* SPDX-License-Identifier: BSD-3-Clause */
/* What segment endpoints and heads of tunnels do to packets, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/srv6/encap.h"
#include "lib/srv6/endpoint.h"
#include "lib/wire/bytes.h"

enum { CAP = 1024, IP6 = sizeof(struct wire_ip6_hdr) };

struct bytes {
	size_t n;
	uint8_t b[CAP];
};

/* Hexadecimal digits; others are skipped. */
static void add_hex(struct bytes *to, const char *hex)
{
	unsigned half = 0, value = 0;

	for (; *hex; hex++) {
		const char c = *hex;

		if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
			continue;
		value = value << 4 | (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
		if (half++ & 1)
			to->b[to->n++] = (uint8_t)value;
	}
}

static struct bytes hex(const char *text)
{
	struct bytes made = {0};

	add_hex(&made, text);
	return made;
}

/* The payload length becomes what it is. */
static struct bytes packet(const char *text)
{
	struct bytes p = hex(text);

	put_be16(p.b + 4, (uint16_t)(p.n - IP6));
	return p;
}

static struct wire_ip ip(const char *text)
{
	struct wire_ip made;

	assert_int_equal(wire_ip_parse(text, &made), 0);
	return made;
}

static void is_bytes(const uint8_t *got, size_t n, const struct bytes *want)
{
	assert_int_equal(n, want->n);
	assert_memory_equal(got, want->b, n);
}

/* In memory of just that size, where a sanitizer sees each step beside it. */
static enum srv6_drop endpoint(const struct srv6_sid *sid, struct bytes *p, struct srv6_done *done)
{
	uint8_t *copy = malloc(p->n ? p->n : 1);
	enum srv6_drop drop;

	memcpy(copy, p->b, p->n);
	drop = srv6_endpoint(sid, copy, p->n, done);
	if (drop != SRV6_OK) {
		assert_memory_equal(copy, p->b, p->n);
	} else {
		p->n -= done->front;
		memcpy(p->b, copy + done->front, p->n);
	}
	free(copy);
	return drop;
}

static void refused(const struct srv6_sid *sid, const struct bytes *p, enum srv6_drop why)
{
	struct bytes copy = *p;
	struct srv6_done done;

	assert_int_equal(endpoint(sid, &copy, &done), why);
}

static void becomes(const struct srv6_sid *sid, struct bytes p, enum srv6_verdict verdict,
	const struct bytes *want)
{
	struct srv6_done done;

	assert_int_equal(endpoint(sid, &p, &done), SRV6_OK);
	assert_int_equal(done.verdict, verdict);
	is_bytes(p.b, p.n, want);
}

static const struct srv6_sid un = {SRV6_UN, 48, false, false}, un64 = {SRV6_UN, 64, false, false},
			     un_psp = {SRV6_UN, 48, true, false}, ua = {SRV6_UA, 48, false, false},
			     ua64 = {SRV6_UA, 64, false, false},
			     end_sid = {SRV6_END, 128, false, false},
			     end_psp = {SRV6_END, 128, true, false},
			     dt46 = {SRV6_DT46, 48, false, false},
			     dt46_dscp = {SRV6_DT46, 48, false, true};

/* MRC's Write Only with Immediate: EV 0x12345678, DSCP 4, ECT(0), ICRC 45480c0f. */
#define WRITE_AT                                             \
	"1234003c1140 20010db8000000010000000000000001"      \
	"20010db8000000020000000000000001"                   \
	"567812b7003c0000 cb30ffff0000010190000100 00010007" \
	"12340001 00007f00000010001122334400000005 cafef00d" \
	"68656c6c6f000000 45480c0f"
#define GOLDEN(class) "6" class "0" WRITE_AT /* hop limit 0x40 is in it */
#define NIC "20010db8000000010000000000000001"

/* MRC's worked example: source T0, T1, destination T0, host. The second hop marks congestion. */
static void golden_hop_by_hop(void **state)
{
	static const struct {
		const char *hop_limit, *dst;
	} hops[] = {{"40", "fcbbbb00 5012 542a 5155 587f 0000 0000"},
		{"3f", "fcbbbb00 542a 5155 587f 0000 0000 0000"},
		{"3e", "fcbbbb00 5155 587f 0000 0000 0000 0000"},
		{"3d", "fcbbbb00 587f 0000 0000 0000 0000 0000"}};
	struct bytes p, want;
	struct srv6_done done;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		want = hex(i < 2 ? "612 01234 0064 29" : "613 01234 0064 29");
		add_hex(&want, hops[i].hop_limit);
		add_hex(&want, NIC);
		add_hex(&want, hops[i].dst);
		add_hex(&want, GOLDEN("12"));
		if (i == 0)
			p = want;
		if (i == 2)
			ip_put_tos(p.b, 0x13);
		is_bytes(p.b, p.n, &want);
		if (i == 3)
			break;
		assert_int_equal(endpoint(&un, &p, &done), SRV6_OK);
		assert_int_equal(done.verdict, SRV6_LOOKUP);
	}
	/* The host's end: the mark comes inside, and nothing else changes. */
	want = hex(GOLDEN("13"));
	assert_int_equal(endpoint(&dt46, &p, &done), SRV6_OK);
	assert_int_equal(done.verdict, SRV6_UNPACKED);
	assert_int_equal(done.proto, IP_PROTO_IP6);
	is_bytes(p.b, p.n, &want);
}

/* What a T0 makes of a host that knows no SRv6, and an SRH behind six uSIDs and more. */
static void golden_encap(void **state)
{
	struct srv6_encap one = {.src = ip("2001:db8:0:1::1"),
		.n = 1,
		.segment = {ip("fcbb:bb00:542a:5155:587f::")}};
	struct srv6_encap three = {.src = ip("2001:db8::7"),
		.n = 3,
		.segment = {ip("fcbb:bb00:1:2:3:4:5:6"), ip("fcbb:bb00:7::"), ip("fd00::9")}};
	struct bytes in = hex(GOLDEN("12")), want;
	uint8_t out[SRV6_ENCAP_MAX];

	(void)state;
	in.b[7] = 0x41;
	want = hex("612 01234 0064 29 40" NIC "fcbbbb00 542a5155 587f0000 00000000");
	assert_int_equal(srv6_encap_len(&one), 40);
	assert_int_equal(srv6_encap(&one, in.b, in.n, out), SRV6_OK);
	is_bytes(out, 40, &want);
	want = hex(GOLDEN("12"));
	is_bytes(in.b, in.n, &want);

	want = hex("612 01234 0000 2b 40 20010db8000000000000000000000007"
		   "fcbbbb00 0001 0002 0003 0004 0005 0006"
		   "29 04 04 02 01 00 0000"
		   "fd000000 00000000 00000000 00000009"
		   "fcbbbb00 0007 0000 00000000 00000000");
	put_be16(want.b + 4, (uint16_t)(40 + in.n));
	assert_int_equal(srv6_encap_len(&three), 80);
	assert_int_equal(srv6_encap(&three, in.b, in.n, out), SRV6_OK);
	is_bytes(out, 80, &want);
	assert_int_equal(in.b[7], 0x3f);
}

/* 10.0.0.1 > 10.0.0.2, UDP 7 > 9, TTL 2, DSCP 1, ECT(0); the checksum is 0x65c9 with TTL 2. */
#define V4 "4506001c 00004000 0211 64c9 0a000001 0a000002 00070009 0008 0000"

static void encap_ipv4(void **state)
{
	struct srv6_encap e = {.src = ip("fd00::1"), .n = 1, .segment = {ip("fd00::2")}};
	struct bytes p = hex(V4), q = hex(V4), all = {0};
	uint8_t out[SRV6_ENCAP_MAX], other[SRV6_ENCAP_MAX];
	struct srv6_done done;
	uint32_t label;

	(void)state;
	assert_int_equal(ip_sum(p.b, 20, 0), 0xffff);
	assert_int_equal(srv6_encap(&e, p.b, p.n, out), SRV6_OK);
	assert_int_equal(p.b[8], 1);
	assert_int_equal(ip_sum(p.b, 20, 0), 0xffff);
	assert_int_equal(get_be32(out) >> 20, 0x606);
	assert_int_equal(out[6], 4);
	label = get_be32(out) & 0xfffff;
	q.b[21]++; /* another flow */
	assert_int_equal(srv6_encap(&e, q.b, q.n, other), SRV6_OK);
	assert_int_not_equal(get_be32(other) & 0xfffff, label);
	assert_int_equal(srv6_encap(&e, q.b, q.n, other), SRV6_HOP_LIMIT);

	/* And out again, marked on the way and with a DSCP that a switch has set. */
	memcpy(all.b, out, 40);
	memcpy(all.b + 40, p.b, p.n);
	all.n = 40 + p.n;
	ip_put_tos(all.b, 12 << 2 | IP_ECN_CE);
	q = all;
	assert_int_equal(endpoint(&dt46, &all, &done), SRV6_SEGMENTS); /* fd00::2 has more bits */
	all.b[39] = q.b[39] = 0;
	assert_int_equal(endpoint(&dt46, &all, &done), SRV6_OK);
	assert_int_equal(done.proto, 4);
	assert_int_equal(all.b[1], 0x07);
	assert_int_equal(ip_sum(all.b, 20, 0), 0xffff);
	assert_int_equal(endpoint(&dt46_dscp, &q, &done), SRV6_OK);
	assert_int_equal(q.b[1], 12 << 2 | IP_ECN_CE);
	assert_int_equal(ip_sum(q.b, 20, 0), 0xffff);
}

#define HEAD(next, hops, dst) "6000000000 00" next hops NIC dst
#define SRH(left)        \
	"3b 04 04 " left \
	" 01 00 0000 fd000000000000000000000000000001 fd000000000000000000000000000002"
#define HERE "fcbbbb00 0001 0000 0000000000000000"
#define FD1 "fd000000000000000000000000000001"
#define FD2 "fd000000000000000000000000000002"

static void next_usid(void **state)
{
	struct bytes want = packet(HEAD("3b", "3f", "fcbbbb00 0002 0003 00040005 00060000"));

	(void)state;
	becomes(&un, packet(HEAD("3b", "40", "fcbbbb00 0001 0002 00030004 00050006")), SRV6_LOOKUP,
		&want);
	becomes(&ua, packet(HEAD("3b", "40", "fcbbbb00 0001 0002 00030004 00050006")),
		SRV6_ADJACENT, &want);
	/* A locator and a function: both go. */
	want = packet(HEAD("3b", "01", "fcbbbb00 0003 0004 00050006 00000000"));
	becomes(&un64, packet(HEAD("3b", "02", "fcbbbb00 0001 0002 00030004 00050006")),
		SRV6_LOOKUP, &want);
	becomes(&ua64, packet(HEAD("3b", "02", "fcbbbb00 0001 0002 00030004 00050006")),
		SRV6_ADJACENT, &want);
	/* Zeros may be between: what counts is whether anything follows. */
	want = packet(HEAD("3b", "3f", "fcbbbb00 0000 0000 00000000 00060000"));
	becomes(&un, packet(HEAD("3b", "40", "fcbbbb00 0001 0000 00000000 00000006")), SRV6_LOOKUP,
		&want);
	want = packet(HEAD("3b", "01", "fcbbbb00 0001 0002 00030004 00050006"));
	refused(&un, &want, SRV6_HOP_LIMIT);
	want.b[7] = 0;
	refused(&un, &want, SRV6_HOP_LIMIT);
	want.n = IP6 - 1;
	refused(&un, &want, SRV6_BAD_SRH);
}

/* RFC 8986, 4.1 and 4.16.1; RFC 9800, 4.1.1 with a list. */
static void end_with_srh(void **state)
{
	struct bytes want = packet(HEAD("2b", "3f", FD2) SRH("01"));

	(void)state;
	becomes(&end_sid, packet(HEAD("2b", "40", HERE) SRH("02")), SRV6_LOOKUP, &want);
	becomes(&end_psp, packet(HEAD("2b", "40", HERE) SRH("02")), SRV6_LOOKUP, &want);
	becomes(&un, packet(HEAD("2b", "40", HERE) SRH("02")), SRV6_LOOKUP, &want);
	becomes(&ua, packet(HEAD("2b", "40", HERE) SRH("02")), SRV6_ADJACENT, &want);
	want = packet(HEAD("2b", "3f", FD1) SRH("00"));
	becomes(&end_sid, packet(HEAD("2b", "40", HERE) SRH("01")), SRV6_LOOKUP, &want);
	/* The uSIDs of the destination come first. */
	want = packet(HEAD("2b", "3f", "fcbbbb00 0002 0000 0000000000000000") SRH("02"));
	becomes(&un, packet(HEAD("2b", "40", "fcbbbb00 0001 0002 0000000000000000") SRH("02")),
		SRV6_LOOKUP, &want);
	/* Popped by the last but one. */
	want = packet(HEAD("3b", "3f", FD1));
	becomes(&end_psp, packet(HEAD("2b", "40", HERE) SRH("01")), SRV6_LOOKUP, &want);
	becomes(&un_psp, packet(HEAD("2b", "40", HERE) SRH("01")), SRV6_LOOKUP, &want);
	want = packet(HEAD("00", "3f", FD1) "3b00010400000000");
	becomes(&end_psp, packet(HEAD("00", "40", HERE) "2b00010400000000" SRH("01")), SRV6_LOOKUP,
		&want);
	/* TLVs behind the segments are passed over, whatever they say, and popped with them. */
	want = packet(HEAD("3b", "3f", FD1));
	becomes(&end_psp,
		packet(HEAD("2b", "40", HERE) "3b 03 04 01 00 00 0000" FD1 "05ff0000000000ff"),
		SRV6_LOOKUP, &want);
	want = packet(HEAD("2b", "01", HERE) SRH("01"));
	refused(&end_sid, &want, SRV6_HOP_LIMIT);
}

static void lying_srh(void **state)
{
	static const char *const bad[] = {
		HEAD("2b", "40", HERE) SRH("03"),                    /* left above last + 1 */
		HEAD("2b", "40", HERE) SRH("ff"),                    /* */
		HEAD("2b", "40", HERE) "3b 02 04 01 01 00 0000" FD1, /* last has no room */
		HEAD("2b", "40", HERE) "3b 00 04 01 00 00 0000",     /* none has */
		HEAD("2b", "40",
			HERE) "3b 01 04 01 00 00 0000 0000000000000000", /* half a segment */
		HEAD("2b", "40", HERE) "3b 04 04 01 01 00 0000" FD1,   /* longer than the packet */
		HEAD("2b", "40", HERE) "3b ff 04 01 01 00 0000" FD1,   /* */
		HEAD("2b", "40", HERE) "3b 02 04 01",                  /* no whole header */
		HEAD("2b", "40", HERE),                                /* nor any */
		HEAD("00", "40", HERE) "2b 06 000000000000" SRH("01"), /* options too long */
	};
	struct bytes p;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p = packet(bad[i]);
		refused(&end_sid, &p, SRV6_BAD_SRH);
		refused(&un, &p, SRV6_BAD_SRH);
		refused(&dt46, &p, SRV6_BAD_SRH);
	}
	p = packet(HEAD("2b", "40", HERE) SRH("01"));
	p.b[5]++; /* the packet says that it is longer than it is */
	refused(&end_sid, &p, SRV6_BAD_SRH);
	p = packet(HEAD("2b", "40", HERE) SRH("01"));
	p.b[0] = 0x50;
	refused(&end_sid, &p, SRV6_BAD_SRH);
	p = packet(HEAD("2b", "40", HERE) "3b 02 02 01 00000000" FD1); /* RFC 6275's */
	refused(&end_sid, &p, SRV6_ROUTING);
	p = packet(
		HEAD("2b", "40", HERE) "3b 02 04 01 00 00 0000 ff020000000000000000000000000001");
	refused(&end_sid, &p, SRV6_SEGMENT);
	p = packet(
		HEAD("2b", "40", HERE) "3b 02 04 01 00 00 0000 00000000000000000000ffff0a000001");
	refused(&end_sid, &p, SRV6_SEGMENT);
}

static void arrived(void **state)
{
	struct bytes p = packet(HEAD("3a", "01", HERE) "8000000000000000"), q = p;
	struct srv6_done done;

	(void)state;
	becomes(&un, p, SRV6_ARRIVED, &q);
	assert_int_equal(endpoint(&dt46, &p, &done), SRV6_OK);
	assert_int_equal(done.verdict, SRV6_ARRIVED);
	assert_int_equal(done.proto, IP_PROTO_ICMP6);
	assert_int_equal(done.upper, 40);
	/* Routing headers that have been used up are no obstacle, known or not. */
	p = packet(HEAD("2b", "40", HERE) "2b 00 63 00 00000000" SRH("00"));
	assert_int_equal(endpoint(&end_sid, &p, &done), SRV6_OK);
	assert_int_equal(done.verdict, SRV6_ARRIVED);
	assert_int_equal(done.proto, 59);
	assert_int_equal(done.upper, 40 + 8 + 40);
}

static void unpacking(void **state)
{
	struct bytes p, want = hex(GOLDEN("10"));
	struct srv6_done done;

	(void)state;
	p = packet(HEAD("2b", "40", HERE) "29 04 04 00 01 00 0000" FD1 FD2 GOLDEN("10"));
	becomes(&dt46, p, SRV6_UNPACKED, &want);
	p.b[43] = 1;
	refused(&dt46, &p, SRV6_SEGMENTS);
	p = packet(HEAD("29", "40", "fcbbbb00 0001 0002 0000000000000000") GOLDEN("10"));
	refused(&dt46, &p, SRV6_SEGMENTS);
	/* Bytes behind the inner packet stay behind it; one too few do not make a packet. */
	p = packet(HEAD("29", "40", HERE) GOLDEN("10") "00");
	assert_int_equal(endpoint(&dt46, &p, &done), SRV6_OK);
	assert_int_equal(p.n, want.n + 1);
	p = packet(HEAD("29", "40", HERE) GOLDEN("10"));
	p.b[5]--;
	refused(&dt46, &p, SRV6_INNER);
	p = packet(HEAD("04", "40", HERE) GOLDEN("10"));
	refused(&dt46, &p, SRV6_INNER);
	p = packet(HEAD("29", "40", HERE) V4);
	refused(&dt46, &p, SRV6_INNER);
	p = packet(HEAD("04", "40", HERE) "450600");
	refused(&dt46, &p, SRV6_INNER);
	/* A neighbour's word, from anywhere. */
	p = packet(HEAD("29", "40", HERE) HEAD("3a", "ff", FD1) "8700000000000000" FD1);
	p.b[45] = (uint8_t)(p.n - 80);
	refused(&dt46, &p, SRV6_INNER_ND);
	p.b[80] = 128;
	assert_int_equal(endpoint(&dt46, &p, &done), SRV6_OK);
}

/* RFC 6040, figure 4. */
static void ecn(void **state)
{
	static const struct {
		int inner, outer, out;
	} t[] = {{0, 0, 0}, {0, 2, 0}, {0, 1, 0}, {0, 3, -1}, {2, 0, 2}, {2, 2, 2}, {2, 1, 1},
		{2, 3, 3}, {1, 0, 1}, {1, 2, 1}, {1, 1, 1}, {1, 3, 3}, {3, 0, 3}, {3, 2, 3},
		{3, 1, 3}, {3, 3, 3}};
	struct bytes p;

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(srv6_ecn((unsigned)t[i].inner, (unsigned)t[i].outer), t[i].out);
	p = packet("6030000000 0029 40" NIC HERE GOLDEN("10"));
	refused(&dt46, &p, SRV6_ECN);
}

static void not_packed(void **state)
{
	struct srv6_encap e = {.src = ip("fd00::1"), .n = 2};
	uint8_t *big = calloc(1, 65536), out[SRV6_ENCAP_MAX];
	struct bytes p = hex(GOLDEN("10"));

	(void)state;
	assert_int_equal(srv6_encap(&e, p.b, 39, out), SRV6_INNER);
	p.b[0] = 0x50;
	assert_int_equal(srv6_encap(&e, p.b, p.n, out), SRV6_INNER);
	p = hex(V4);
	p.b[0] = 0x4f;
	assert_int_equal(srv6_encap(&e, p.b, p.n, out), SRV6_INNER);
	memcpy(big, hex(GOLDEN("10")).b, 40);
	assert_int_equal(srv6_encap(&e, big, 65535 - 24 + 1, out), SRV6_TOO_LONG);
	assert_int_equal(srv6_encap(&e, big, 65535 - 24, out), SRV6_OK);
	big[7] = 1;
	assert_int_equal(srv6_encap(&e, big, 100, out), SRV6_HOP_LIMIT);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_hop_by_hop),
		cmocka_unit_test(golden_encap),
		cmocka_unit_test(encap_ipv4),
		cmocka_unit_test(next_usid),
		cmocka_unit_test(end_with_srh),
		cmocka_unit_test(lying_srh),
		cmocka_unit_test(arrived),
		cmocka_unit_test(unpacking),
		cmocka_unit_test(ecn),
		cmocka_unit_test(not_packed),
	};

	return cmocka_run_group_tests_name("srv6-packets", tests, NULL, NULL);
}
