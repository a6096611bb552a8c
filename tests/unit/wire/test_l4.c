/* SPDX-License-Identifier: BSD-3-Clause */
/* What filters see behind options, extension headers and in fragments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"
#include "lib/wire/ip_fragment.h"
#include "lib/wire/l4.h"

enum { FRAGMENT = IP_PROTO_FRAGMENT, SPORT = 1111, DPORT = 2222, L3 = ETH_HDR_LEN };

/* An IPv4 packet with so many words of options, its fragment field, and len bytes behind. */
static struct wire_l4 of4(unsigned options, uint16_t frag, uint8_t proto, unsigned len)
{
	const unsigned header = 20 + 4 * options;
	uint8_t f[128] = {0};
	struct wire_pkt pkt;

	put_be16(f + 12, ETH_TYPE_IP4);
	f[L3] = (uint8_t)(0x45 + options);
	put_be16(f + L3 + 2, (uint16_t)(header + len));
	put_be16(f + L3 + 6, frag);
	f[L3 + 8] = 9;
	f[L3 + 9] = proto;
	memset(f + L3 + 20, 1, 4 * options); /* no operation */
	put_be16(f + L3 + 10, (uint16_t)~ip_sum(f + L3, header, 0));
	put_be16(f + L3 + header, SPORT);
	put_be16(f + L3 + header + 2, DPORT);
	assert_int_equal(wire_parse_l3(f, L3 + header + len, &pkt), WIRE_OK);
	return wire_l4(f, &pkt);
}

static void has(struct wire_l4 l4, uint8_t proto)
{
	assert_int_equal(l4.proto, proto);
	assert_true(l4.has_ports);
	assert_int_equal(l4.sport, SPORT);
	assert_int_equal(l4.dport, DPORT);
}

static void has_not(struct wire_l4 l4, uint8_t proto)
{
	assert_int_equal(l4.proto, proto);
	assert_false(l4.has_ports);
	assert_int_equal(l4.sport, 0);
	assert_int_equal(l4.dport, 0);
}

static void ip4(void **state)
{
	(void)state;
	has(of4(0, 0, IP_PROTO_UDP, 8), IP_PROTO_UDP);
	has(of4(0, 0, IP_PROTO_TCP, 4), IP_PROTO_TCP);
	has(of4(2, 0, IP_PROTO_TCP, 20), IP_PROTO_TCP);
	has(of4(0, 0x2000, IP_PROTO_UDP, 8), IP_PROTO_UDP); /* the first fragment */
	has_not(of4(0, 1, IP_PROTO_UDP, 8), IP_PROTO_UDP);
	has_not(of4(2, 0x2001, IP_PROTO_TCP, 8), IP_PROTO_TCP);
	has_not(of4(0, 0, IP_PROTO_UDP, 3), IP_PROTO_UDP);
	has_not(of4(0, 0, IP_PROTO_ICMP, 8), IP_PROTO_ICMP);
	has_not(of4(10, 0, IP_PROTO_UDP, 0), IP_PROTO_UDP);
}

/* An IPv6 packet whose next header is `next`; len bytes follow. */
static struct wire_l4 of6(uint8_t next, const uint8_t *behind, unsigned len)
{
	uint8_t f[256] = {0};
	struct wire_pkt pkt;

	put_be16(f + 12, ETH_TYPE_IP6);
	f[L3] = 0x60;
	put_be16(f + L3 + 4, (uint16_t)len);
	f[L3 + 6] = next;
	f[L3 + 8] = f[L3 + 24] = 0xfd;
	memcpy(f + L3 + 40, behind, len);
	assert_int_equal(wire_parse_l3(f, L3 + 40 + len, &pkt), WIRE_OK);
	return wire_l4(f, &pkt);
}

#define PORTS SPORT >> 8, SPORT & 255, DPORT >> 8, DPORT & 255

static void ip6(void **state)
{
	const uint8_t plain[] = {PORTS, 0, 8, 0, 0};
	const uint8_t options[] = {IP_PROTO_DST_OPTIONS, 0, 0, 0, 0, 0, 0, 0, IP_PROTO_TCP, 0, 0, 0,
		0, 0, 0, 0, PORTS};
	const uint8_t first[] = {IP_PROTO_UDP, 0, 0, 1, 0, 0, 0, 5, PORTS};
	const uint8_t later[] = {IP_PROTO_UDP, 0, 0, 9, 0, 0, 0, 5, PORTS};
	const uint8_t lies[] = {IP_PROTO_UDP, 9, 0, 0, 0, 0, 0, 0, PORTS};

	(void)state;
	has(of6(IP_PROTO_UDP, plain, sizeof(plain)), IP_PROTO_UDP);
	has(of6(IP_PROTO_HOP_OPTIONS, options, sizeof(options)), IP_PROTO_TCP);
	has(of6(FRAGMENT, first, sizeof(first)), IP_PROTO_UDP);
	has_not(of6(FRAGMENT, later, sizeof(later)), IP_PROTO_UDP);
	has_not(of6(FRAGMENT, later, 7), FRAGMENT);
	has_not(of6(FRAGMENT, first, 10), IP_PROTO_UDP);
	has_not(of6(IP_PROTO_DST_OPTIONS, lies, sizeof(lies)), IP_PROTO_DST_OPTIONS);
	has_not(of6(IP_PROTO_HOP_OPTIONS, options, 4), IP_PROTO_HOP_OPTIONS);
	has_not(of6(IP_PROTO_HOP_OPTIONS, options, 12), IP_PROTO_DST_OPTIONS);
	has_not(of6(59, plain, sizeof(plain)), 59);
}

/* A fragment header is an extension header: a first fragment's, and a whole datagram's, has others
 * behind it (RFC 8200, 4.5), and these hide nothing either. */
static void ip6_in_fragments(void **state)
{
	const uint8_t first[] = {IP_PROTO_DST_OPTIONS, 0, 0, 1, 0, 0, 0, 5, IP_PROTO_UDP, 0, 0, 0,
		0, 0, 0, 0, PORTS};
	const uint8_t twice[] = {FRAGMENT, 0, 0, 0, 0, 0, 0, 5, IP_PROTO_HOP_OPTIONS, 0, 0, 0, 0, 0,
		0, 6, IP_PROTO_DST_OPTIONS, 0, 0, 0, 0, 0, 0, 0, IP_PROTO_TCP, 0, 0, 0, 0, 0, 0, 0,
		PORTS};
	const uint8_t routed[] = {
		IP_PROTO_ROUTING, 0, 0, 1, 0, 0, 0, 5, IP_PROTO_UDP, 0, 9, 1, 0, 0, 0, 0, PORTS};
	uint8_t b[sizeof(twice)];

	(void)state;
	has(of6(FRAGMENT, first, sizeof(first)), IP_PROTO_UDP);
	has(of6(FRAGMENT, twice, sizeof(twice)), IP_PROTO_TCP);
	has_not(of6(FRAGMENT, routed, sizeof(routed)), IP_PROTO_ROUTING);
	for (unsigned len = 8; len < 16; len++) /* the options are cut off */
		has_not(of6(FRAGMENT, first, len), IP_PROTO_DST_OPTIONS);
	for (unsigned len = 16; len < sizeof(first); len++)
		has_not(of6(FRAGMENT, first, len), IP_PROTO_UDP);
	memcpy(b, first, sizeof(first));
	b[9] = 1; /* longer than the packet */
	has_not(of6(FRAGMENT, b, sizeof(first)), IP_PROTO_DST_OPTIONS);

	/* What a later one is of does not stand in it if there were such headers. */
	memcpy(b, first, sizeof(first));
	b[3] = 9;
	has_not(of6(FRAGMENT, b, sizeof(first)), FRAGMENT);
	memcpy(b, twice, sizeof(twice));
	b[11] = 8; /* the inner one */
	has_not(of6(FRAGMENT, b, sizeof(twice)), FRAGMENT);
	b[8] = IP_PROTO_TCP;
	has_not(of6(FRAGMENT, b, sizeof(twice)), IP_PROTO_TCP);
	has_not(of6(FRAGMENT, twice, 12), FRAGMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ip4), cmocka_unit_test(ip6), cmocka_unit_test(ip6_in_fragments)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
