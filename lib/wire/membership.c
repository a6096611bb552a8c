/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/membership.h"

#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"
#include "lib/wire/frame.h"
#include "lib/wire/multicast.h"

enum {
	PROTO_IGMP = 2,
	PROTO_ICMP6 = 58,
	IGMP_QUERY = 0x11,
	IGMP1_REPORT = 0x12,
	IGMP2_REPORT = 0x16,
	IGMP2_LEAVE = 0x17,
	IGMP3_REPORT = 0x22,
	MLD_QUERY = 130,
	MLD1_REPORT = 131,
	MLD1_DONE = 132,
	MLD2_REPORT = 143,
	IP4_HEADER = 20,
	IP6_HEADER = 40,
	HOP_BY_HOP = 8,
	ROUTER_ALERT4 = 0x94,
	ROUTER_ALERT6 = 5,
	QUERY3_TAIL = 4, /* flags, QQIC, number of sources */
	TENTHS_MS = 100,
};

/* Record types (RFC 3376 4.2.12, RFC 3810 5.2.12). */
enum { IS_IN = 1, IS_EX, TO_IN, TO_EX, ALLOW, BLOCK };

/* IGMP's 8 bits (4.1.1) and MLD 2's 16 (5.1.3): a number, or a mantissa and an exponent. */
static uint32_t decode(uint32_t code, unsigned mantissa_bits)
{
	const uint32_t top = 1u << (mantissa_bits + 3), mask = (1u << mantissa_bits) - 1;

	if (code < top)
		return code;
	return ((code & mask) | (mask + 1)) << ((code >> mantissa_bits & 7) + 3);
}

static uint32_t encode(uint32_t value, unsigned mantissa_bits)
{
	const uint32_t top = 1u << (mantissa_bits + 3), mask = (1u << mantissa_bits) - 1;
	uint32_t exp = 0;

	if (value < top)
		return value;
	while (exp < 7 && value >> (exp + 3) > 2 * mask + 1)
		exp++;
	value >>= exp + 3;
	if (value > 2 * mask + 1)
		value = 2 * mask + 1;
	return top | exp << mantissa_bits | (value & mask);
}

static size_t ip_len(const struct wire_membership *m)
{
	return m->ip4 ? 4 : 16;
}

static struct wire_ip read_ip(const struct wire_membership *m, const uint8_t *p)
{
	struct wire_ip ip;

	if (m->ip4)
		return wire_ip_from4(get_be32(p));
	memcpy(ip.b, p, sizeof(ip.b));
	return ip;
}

/* A multicast address of the message's own family: the IPv4 address that an MLD message carries as
 * ::ffff:a.b.c.d is a group of nobody who speaks MLD. */
static bool is_group(const struct wire_membership *m, const struct wire_ip *ip)
{
	return wire_is_multicast(ip) && wire_ip_is4(ip) == m->ip4;
}

/* Type, auxiliary words, sources (number, addresses), group: its length, 0 if it does not fit. */
static size_t record_len(const struct wire_membership *m, const uint8_t *p, size_t left)
{
	size_t len = 4 + ip_len(m);

	if (left < len)
		return 0;
	len += get_be16(p + 2) * ip_len(m) + p[1] * (size_t)4;
	return left < len ? 0 : len;
}

static int check_records(struct wire_membership *m, const uint8_t *p, size_t len)
{
	m->at = p;
	for (unsigned i = 0; i < m->left; i++) {
		const size_t one = record_len(m, p, len);
		struct wire_ip group;

		if (one == 0)
			return -EINVAL;
		group = read_ip(m, p + 4);
		if (!is_group(m, &group))
			return -EINVAL;
		p += one;
		len -= one;
	}
	return 0;
}

static int one_group(struct wire_membership *m, const uint8_t *p, bool joins)
{
	m->one = true;
	m->left = 1;
	m->joins = joins;
	m->group = read_ip(m, p);
	return is_group(m, &m->group) ? 0 : -EINVAL;
}

static int query(struct wire_membership *m, const uint8_t *msg, size_t len, size_t fixed)
{
	const struct wire_ip none4 = wire_ip_from4(0);

	m->kind = MEMBERSHIP_QUERY;
	m->group = read_ip(m, msg + fixed - ip_len(m));
	if (m->ip4 && wire_ip_eq(&m->group, &none4))
		m->group = (struct wire_ip){0};
	if (!wire_ip_is_zero(&m->group) && !is_group(m, &m->group))
		return -EINVAL;
	if (len > fixed &&
		(len < fixed + QUERY3_TAIL ||
			len < fixed + QUERY3_TAIL + get_be16(msg + fixed + 2) * ip_len(m)))
		return -EINVAL;
	if (m->ip4)
		m->max_response_ms = TENTHS_MS * (len > fixed ? decode(msg[1], 4) : msg[1]);
	else
		m->max_response_ms =
			len > fixed ? decode(get_be16(msg + 4), 12) : get_be16(msg + 4);
	return 0;
}

static int igmp(struct wire_membership *m, const uint8_t *msg, size_t len, bool alert)
{
	enum { FIXED = 8 };

	if (len < FIXED || ip_sum(msg, len, 0) != 0xffff)
		return -EINVAL;
	switch (msg[0]) {
	case IGMP_QUERY:
		return query(m, msg, len, FIXED);
	case IGMP1_REPORT:
	case IGMP2_REPORT:
		return one_group(m, msg + 4, true);
	case IGMP2_LEAVE:
		return one_group(m, msg + 4, false);
	case IGMP3_REPORT:
		m->left = get_be16(msg + 6);
		return alert ? check_records(m, msg + FIXED, len - FIXED) : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int mld(struct wire_membership *m, const uint8_t *msg, size_t len)
{
	enum { FIXED = 24, FIXED2 = 8 };

	if (len < FIXED2 || (msg[0] != MLD2_REPORT && len < FIXED))
		return -EINVAL;
	switch (msg[0]) {
	case MLD_QUERY:
		return query(m, msg, len, FIXED);
	case MLD1_REPORT:
	case MLD1_DONE:
		return one_group(m, msg + 8, msg[0] == MLD1_REPORT);
	case MLD2_REPORT:
		m->left = get_be16(msg + 6);
		return check_records(m, msg + FIXED2, len - FIXED2);
	default:
		return -EINVAL;
	}
}

static int parse4(const uint8_t *ip, size_t len, struct wire_membership *m)
{
	size_t header, total;

	if (len < IP4_HEADER)
		return -EINVAL;
	header = (ip[0] & 15) * 4u;
	total = get_be16(ip + 2);
	if (header < IP4_HEADER || header > total || total > len || ip[9] != PROTO_IGMP)
		return -EINVAL;
	if (ip[8] != 1 || (get_be16(ip + 6) & 0x3fff) != 0 || ip_sum(ip, header, 0) != 0xffff)
		return -EINVAL;
	m->ip4 = true;
	m->src = read_ip(m, ip + 12);
	return igmp(m, ip + header, total - header,
		header >= IP4_HEADER + 4 && ip[IP4_HEADER] == ROUTER_ALERT4);
}

/* The router alert, perhaps behind padding. */
static bool has_alert6(const uint8_t *p, size_t len)
{
	for (size_t i = 2; i < len;) {
		if (p[i] == 0) {
			i++;
			continue;
		}
		if (i + 2 > len || i + 2 + p[i + 1] > len)
			return false;
		if (p[i] == ROUTER_ALERT6)
			return p[i + 1] == 2;
		i += 2u + p[i + 1];
	}
	return false;
}

static int parse6(const uint8_t *ip, size_t len, struct wire_membership *m)
{
	struct wire_ip dst;
	size_t payload, options;

	if (len < IP6_HEADER + HOP_BY_HOP)
		return -EINVAL;
	payload = get_be16(ip + 4);
	options = (ip[IP6_HEADER + 1] + 1u) * 8;
	if (payload > len - IP6_HEADER || options > payload || ip[6] != 0 || ip[7] != 1 ||
		ip[IP6_HEADER] != PROTO_ICMP6 || !has_alert6(ip + IP6_HEADER, options))
		return -EINVAL;
	m->src = read_ip(m, ip + 8);
	dst = read_ip(m, ip + 24);
	if (m->src.b[0] != 0xfe || (m->src.b[1] & 0xc0) != 0x80)
		return -EINVAL;
	ip += IP6_HEADER + options;
	if (ip_l4_sum(&m->src, &dst, PROTO_ICMP6, ip, payload - options) != 0xffff)
		return -EINVAL;
	return mld(m, ip, payload - options);
}

int wire_membership_parse(const uint8_t *l3, size_t len, struct wire_membership *m)
{
	*m = (struct wire_membership){.kind = MEMBERSHIP_REPORT};
	if (len == 0)
		return -EINVAL;
	if (l3[0] >> 4 == 4)
		return parse4(l3, len, m);
	return l3[0] >> 4 == 6 ? parse6(l3, len, m) : -EINVAL;
}

bool wire_membership_next(struct wire_membership *m, struct wire_ip *group, bool *joins)
{
	while (m->kind == MEMBERSHIP_REPORT && m->left > 0) {
		const uint8_t *p = m->at;
		unsigned sources;

		m->left--;
		*joins = m->joins;
		*group = m->group;
		if (m->one)
			return true;
		sources = get_be16(p + 2);
		*group = read_ip(m, p + 4);
		*joins = p[0] == IS_EX || p[0] == TO_EX || sources > 0;
		m->at += 4 + ip_len(m) + sources * ip_len(m) + p[1] * (size_t)4;
		if (p[0] >= IS_IN && p[0] <= TO_EX)
			return true;
		if (p[0] == ALLOW && sources > 0)
			return true;
	}
	return false;
}

/* ---- building ---- */

static int put_ip4(uint8_t *out, const uint8_t smac[6], const struct wire_ip *src,
	const struct wire_ip *dst, size_t len)
{
	uint8_t *ip = out + ETH_HDR_LEN;

	wire_multicast_mac(dst, out);
	memcpy(out + 6, smac, 6);
	put_be16(out + 12, ETH_TYPE_IP4);
	memset(ip, 0, IP4_HEADER + 4);
	ip[0] = 0x46;
	ip[1] = 0xc0;
	put_be16(ip + 2, (uint16_t)(IP4_HEADER + 4 + len));
	put_be16(ip + 6, 0x4000);
	ip[8] = 1;
	ip[9] = PROTO_IGMP;
	memcpy(ip + 12, src->b + 12, 4);
	memcpy(ip + 16, dst->b + 12, 4);
	ip[IP4_HEADER] = ROUTER_ALERT4;
	ip[IP4_HEADER + 1] = 4;
	put_be16(ip + 10, (uint16_t)~ip_sum(ip, IP4_HEADER + 4, 0));
	ip += IP4_HEADER + 4;
	put_be16(ip + 2, 0);
	put_be16(ip + 2, (uint16_t)~ip_sum(ip, len, 0));
	return (int)(ETH_HDR_LEN + IP4_HEADER + 4 + len);
}

static int put_ip6(uint8_t *out, const uint8_t smac[6], const struct wire_ip *src,
	const struct wire_ip *dst, size_t len)
{
	static const uint8_t options[HOP_BY_HOP] = {PROTO_ICMP6, 0, ROUTER_ALERT6, 2, 0, 0, 1, 0};
	uint8_t *ip = out + ETH_HDR_LEN;

	wire_multicast_mac(dst, out);
	memcpy(out + 6, smac, 6);
	put_be16(out + 12, ETH_TYPE_IP6);
	put_be32(ip, 0x60000000);
	put_be16(ip + 4, (uint16_t)(HOP_BY_HOP + len));
	ip[6] = 0;
	ip[7] = 1;
	memcpy(ip + 8, src->b, 16);
	memcpy(ip + 24, dst->b, 16);
	memcpy(ip + IP6_HEADER, options, sizeof(options));
	ip += IP6_HEADER + HOP_BY_HOP;
	put_be16(ip + 2, 0);
	put_be16(ip + 2, (uint16_t)~ip_l4_sum(src, dst, PROTO_ICMP6, ip, len));
	return (int)(ETH_HDR_LEN + IP6_HEADER + HOP_BY_HOP + len);
}

static int put(uint8_t *out, const uint8_t smac[6], const struct wire_ip *src,
	const struct wire_ip *dst, size_t len)
{
	return wire_ip_is4(src) ? put_ip4(out, smac, src, dst, len)
				: put_ip6(out, smac, src, dst, len);
}

/* Where the message of an IP version begins. */
static uint8_t *message(uint8_t *out, bool ip4)
{
	return out + ETH_HDR_LEN + (ip4 ? IP4_HEADER + 4 : IP6_HEADER + HOP_BY_HOP);
}

int wire_build_membership_report(uint8_t *out, size_t cap, const uint8_t smac[6],
	const struct wire_ip *src, const struct wire_ip *group, bool joins)
{
	const bool ip4 = wire_ip_is4(group);
	const struct wire_ip all4 = wire_ip_from4(0xe0000016);
	const struct wire_ip all6 = {{0xff, 2, [15] = 0x16}};
	const size_t len = 8 + 4 + (ip4 ? 4 : 16);
	uint8_t *msg = message(out, ip4);

	if (ip4 != wire_ip_is4(src) || !wire_is_multicast(group))
		return -EINVAL;
	if (cap < WIRE_MEMBERSHIP_LEN)
		return -ENOSPC;
	memset(msg, 0, len);
	msg[0] = ip4 ? IGMP3_REPORT : MLD2_REPORT;
	put_be16(msg + 6, 1);
	msg[8] = joins ? TO_EX : TO_IN;
	memcpy(msg + 12, ip4 ? group->b + 12 : group->b, ip4 ? 4 : 16);
	return put(out, smac, src, ip4 ? &all4 : &all6, len);
}

int wire_build_membership_query(uint8_t *out, size_t cap, const uint8_t smac[6],
	const struct wire_ip *src, const struct wire_ip *group, uint32_t max_response_ms)
{
	const bool ip4 = wire_ip_is4(src), general = wire_ip_is_zero(group);
	const struct wire_ip all4 = wire_ip_from4(0xe0000001);
	const struct wire_ip all6 = {{0xff, 2, [15] = 1}};
	const size_t fixed = ip4 ? 8 : 24, len = fixed + QUERY3_TAIL;
	uint8_t *msg = message(out, ip4);

	if (!general && (ip4 != wire_ip_is4(group) || !wire_is_multicast(group)))
		return -EINVAL;
	if (cap < WIRE_MEMBERSHIP_LEN)
		return -ENOSPC;
	memset(msg, 0, len);
	msg[0] = ip4 ? IGMP_QUERY : MLD_QUERY;
	if (ip4)
		msg[1] = (uint8_t)encode(max_response_ms / TENTHS_MS, 4);
	else
		put_be16(msg + 4, (uint16_t)encode(max_response_ms, 12));
	if (!general)
		memcpy(msg + fixed - (ip4 ? 4 : 16), ip4 ? group->b + 12 : group->b, ip4 ? 4 : 16);
	msg[fixed] = 2;       /* robustness */
	msg[fixed + 1] = 125; /* s between general queries */
	return put(out, smac, src, general ? (ip4 ? &all4 : &all6) : group, len);
}
