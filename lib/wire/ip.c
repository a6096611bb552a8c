/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"

struct wire_ip wire_ip_from4(uint32_t host_order)
{
	struct wire_ip ip = {{[10] = 0xff, [11] = 0xff}};

	put_be32(ip.b + 12, host_order);
	return ip;
}

uint32_t wire_ip_to4(const struct wire_ip *ip)
{
	return get_be32(ip->b + 12);
}

int wire_ip_parse(const char *text, struct wire_ip *ip)
{
	uint8_t b[16];

	if (inet_pton(AF_INET, text, b) == 1) {
		*ip = wire_ip_from4(get_be32(b));
		return 0;
	}
	if (inet_pton(AF_INET6, text, b) == 1) {
		memcpy(ip->b, b, sizeof(b));
		return 0;
	}
	return -EINVAL;
}

const char *wire_ip_format(const struct wire_ip *ip, char *buf, size_t cap)
{
	const char *done = wire_ip_is4(ip) ? inet_ntop(AF_INET, ip->b + 12, buf, (socklen_t)cap)
					   : inet_ntop(AF_INET6, ip->b, buf, (socklen_t)cap);

	if (!done && cap)
		buf[0] = '\0';
	return buf;
}

struct wire_ip wire_ip_link_local(const uint8_t mac[6])
{
	return (struct wire_ip){
		{0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int wire_mac_parse(const char *text, uint8_t mac[6])
{
	uint8_t out[6];

	for (int i = 0; i < 6; i++, text += 3) {
		/* Stops at the first character that is wrong, so never behind the terminator. */
		int high = hex_digit(text[0]);
		int low = high < 0 ? -1 : hex_digit(text[1]);

		if (low < 0 || text[2] != (i < 5 ? ':' : '\0'))
			return -EINVAL;
		out[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(mac, out, sizeof(out));
	return 0;
}

const char *wire_mac_format(const uint8_t mac[6], char *buf, size_t cap)
{
	snprintf(buf, cap, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		mac[5]);
	return buf;
}

/* Halves of eight bytes go into accumulators of their own, which never overflow: additions do not
 * wait for each other's carry. */
uint16_t ip_sum(const void *data, size_t len, uint16_t start)
{
	typedef uint64_t pair __attribute__((vector_size(16)));
	const pair half = {UINT32_MAX, UINT32_MAX};
	const uint8_t *p = data;
	pair low[2] = {{0}, {0}}, high[2] = {{0}, {0}};
	uint64_t sum;

	for (; len >= 32; p += 32, len -= 32) {
		pair v[2];

		memcpy(v, p, sizeof(v));
		low[0] += v[0] & half;
		high[0] += v[0] >> 32;
		low[1] += v[1] & half;
		high[1] += v[1] >> 32;
	}
	low[0] += high[0] + low[1] + high[1];
	/* Summed in the CPU's byte order: the result is only to be swapped (RFC 1071, 2 (B)). */
	sum = htobe16(start) + low[0][0] + low[0][1];
	for (; len >= 4; p += 4, len -= 4) {
		uint32_t v;

		memcpy(&v, p, sizeof(v));
		sum += v;
	}
	if (len) {
		uint32_t v = 0;

		memcpy(&v, p, len);
		sum += v;
	}
	return be16toh(sum_fold(sum));
}

uint16_t ip_l4_sum(const struct wire_ip *src, const struct wire_ip *dst, uint8_t proto,
	const void *l4, size_t len)
{
	/* Addresses, upper-layer length, zeros and next header. The IPv4 pseudo-header holds the
	 * same numbers in other places; the sum does not mind. */
	uint8_t tail[8] = {[7] = proto};
	size_t skip = wire_ip_is4(src) && wire_ip_is4(dst) ? 12 : 0;
	uint16_t sum;

	put_be32(tail, (uint32_t)len);
	sum = ip_sum(src->b + skip, 16 - skip, 0);
	sum = ip_sum(dst->b + skip, 16 - skip, sum);
	sum = ip_sum(tail, sizeof(tail), sum);
	return ip_sum(l4, len, sum);
}

uint16_t ip_l4_checksum(const struct wire_ip *src, const struct wire_ip *dst, uint8_t proto,
	const void *l4, size_t len)
{
	uint16_t checksum = (uint16_t)~ip_l4_sum(src, dst, proto, l4, len);

	/* UDP sends a computed 0 as ones, since 0 says "no checksum" (RFC 768). */
	return checksum == 0 && proto == IP_PROTO_UDP ? 0xffff : checksum;
}

void ip_put_tos(uint8_t *ip, uint8_t tos)
{
	if (ip[0] >> 4 == 4)
		ip4_put_word(ip, 0, (uint16_t)(ip[0] << 8 | tos));
	else
		put_be16(ip, (uint16_t)((get_be16(ip) & 0xf00f) | tos << 4));
}

uint8_t ip_tos(const uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ip[offsetof(struct ip4_hdr, tos)] : (uint8_t)(get_be16(ip) >> 4);
}

void ip_put_ttl(uint8_t *ip, uint8_t ttl)
{
	const size_t at = offsetof(struct ip4_hdr, ttl);

	if (ip[0] >> 4 == 4)
		ip4_put_word(ip, at, (uint16_t)(ttl << 8 | ip[at + 1]));
	else
		ip[offsetof(struct wire_ip6_hdr, hop_limit)] = ttl;
}

uint8_t ip_ttl(const uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ip[offsetof(struct ip4_hdr, ttl)]
			       : ip[offsetof(struct wire_ip6_hdr, hop_limit)];
}
