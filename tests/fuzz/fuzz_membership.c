/* SPDX-License-Identifier: BSD-3-Clause */
/* IGMP and MLD from the IP header on, with checksums mended, so that what is behind them is
 * reached: whatever is accepted names multicast groups only, and as many as it says at most. */
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"
#include "lib/wire/membership.h"
#include "lib/wire/multicast.h"
#include "tests/fuzz/fuzz.h"

static void read_all(const uint8_t *l3, size_t len)
{
	struct wire_membership m;
	struct wire_ip group;
	unsigned n = 0, most;
	bool joins;

	if (wire_membership_parse(l3, len, &m) != 0)
		return;
	most = m.left;
	fuzz_check(m.kind == MEMBERSHIP_REPORT || most == 0, "a query has no records");
	while (wire_membership_next(&m, &group, &joins)) {
		fuzz_check(wire_is_multicast(&group), "a group");
		fuzz_check(wire_ip_is4(&group) == m.ip4, "of the packet's family");
		n++;
	}
	fuzz_check(n <= most, "not more than there are");
}

static void mend4(uint8_t *p, size_t len)
{
	const size_t header = (p[0] & 15) * 4u, total = get_be16(p + 2);

	if (header < 20 || header + 8 > total || total > len)
		return;
	put_be16(p + 10, 0);
	put_be16(p + 10, (uint16_t)~ip_sum(p, header, 0));
	put_be16(p + header + 2, 0);
	put_be16(p + header + 2, (uint16_t)~ip_sum(p + header, total - header, 0));
}

static void mend6(uint8_t *p, size_t len)
{
	const size_t payload = get_be16(p + 4), options = (p[41] + 1u) * 8;
	struct wire_ip src, dst;

	if (payload > len - 40 || options + 8 > payload)
		return;
	memcpy(src.b, p + 8, 16);
	memcpy(dst.b, p + 24, 16);
	put_be16(p + 40 + options + 2, 0);
	put_be16(p + 40 + options + 2, (uint16_t)ip_l4_checksum(&src, &dst, IP_PROTO_ICMP6,
					       p + 40 + options, payload - options));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	read_all(data, size);
	memcpy(copy, data, size);
	if (size >= 28 && copy[0] >> 4 == 4)
		mend4(copy, size);
	if (size >= 56 && copy[0] >> 4 == 6)
		mend6(copy, size);
	read_all(copy, size);
	free(copy);
	return 0;
}

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	static const uint8_t mac[6] = {2};
	const struct wire_ip src4 = wire_ip_from4(0x0a000001), g4 = wire_ip_from4(0xef010203);
	const struct wire_ip src6 = {{0xfe, 0x80, [15] = 1}}, g6 = {{0xff, 0x0e, [15] = 5}};
	uint8_t frame[256];
	int len;

	if (i >= 8)
		return 0;
	if (i & 1)
		len = wire_build_membership_report(
			frame, sizeof(frame), mac, i & 2 ? &src6 : &src4, i & 2 ? &g6 : &g4, i & 4);
	else
		len = wire_build_membership_query(frame, sizeof(frame), mac, i & 2 ? &src6 : &src4,
			i & 2 ? &g6 : &g4, i & 4 ? 1000 : 100000);
	if (len < 0 || (size_t)len > cap)
		return 0;
	memcpy(out, frame + ETH_HDR_LEN, (size_t)len - ETH_HDR_LEN);
	return (size_t)len - ETH_HDR_LEN;
}
