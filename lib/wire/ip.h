/* SPDX-License-Identifier: BSD-3-Clause */
/* Network layer: one address type for both families, IPv4/IPv6/UDP layouts, checksums. */
#ifndef WIRE_IP_H
#define WIRE_IP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An IPv6 address, or an IPv4 one mapped into ::ffff:0:0/96 (RFC 4291, 2.5.5.2): also the form in
 * which a RoCEv2 GID carries it. */
struct wire_ip {
	uint8_t b[16];
};

static inline bool wire_ip_is4(const struct wire_ip *ip)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	return memcmp(ip->b, mapped, sizeof(mapped)) == 0;
}

static inline bool wire_ip_eq(const struct wire_ip *a, const struct wire_ip *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

static inline bool wire_ip_is_zero(const struct wire_ip *ip)
{
	static const struct wire_ip zero;
	return wire_ip_eq(ip, &zero);
}

/* Host-order IPv4 address to mapped form and back (the latter only if wire_ip_is4). */
struct wire_ip wire_ip_from4(uint32_t host_order);
uint32_t wire_ip_to4(const struct wire_ip *ip);

/* Text form, "10.0.0.1" or "fd00::1". Parse: 0 or -EINVAL (nothing written). Format: cap of
 * WIRE_IP_STRLEN always suffices; returns buf. */
enum { WIRE_IP_STRLEN = 46 };
int wire_ip_parse(const char *text, struct wire_ip *ip);
const char *wire_ip_format(const struct wire_ip *ip, char *buf, size_t cap);

/* Link-local fe80::/64 address of a MAC (modified EUI-64, RFC 4291 appendix A). */
struct wire_ip wire_ip_link_local(const uint8_t mac[6]);

/* "02:00:00:00:00:01". Parse: 0 or -EINVAL. */
enum { WIRE_MAC_STRLEN = 18 };
int wire_mac_parse(const char *text, uint8_t mac[6]);
const char *wire_mac_format(const uint8_t mac[6], char *buf, size_t cap);

struct ip4_hdr {
	uint8_t ver_ihl;
	uint8_t tos;
	uint8_t len[2];
	uint8_t id[2];
	uint8_t frag[2];
	uint8_t ttl;
	uint8_t proto;
	uint8_t checksum[2];
	uint8_t src[4];
	uint8_t dst[4];
};
static_assert(sizeof(struct ip4_hdr) == 20, "IPv4 header without options is 20 bytes");

/* Not ip6_hdr: <netinet/ip6.h>, which DPDK includes, has that name. */
struct wire_ip6_hdr {
	uint8_t vtc_flow[4];
	uint8_t len[2];
	uint8_t next;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
};
static_assert(sizeof(struct wire_ip6_hdr) == 40, "IPv6 header is 40 bytes");

struct udp_hdr {
	uint8_t sport[2];
	uint8_t dport[2];
	uint8_t len[2];
	uint8_t checksum[2];
};
static_assert(sizeof(struct udp_hdr) == 8, "UDP header is 8 bytes");

enum { IP_PROTO_ICMP = 1, IP_PROTO_TCP = 6, IP_PROTO_UDP = 17, IP_PROTO_ICMP6 = 58 };
enum { IP_ECN_MASK = 3, IP_ECN_NOT_ECT = 0, IP_ECN_ECT1 = 1, IP_ECN_ECT0 = 2, IP_ECN_CE = 3 };
enum { IP4_DF = 0x4000 };

/* RFC 1071 one's complement sum of len bytes, folded to 16 bits, not inverted, in host order;
 * start is an earlier result (0 at first). The Internet checksum is the result inverted. */
uint16_t ip_sum(const void *data, size_t len, uint16_t start);

/* Checksum field (host order) for an ICMPv6, or UDP, payload with its pseudo-header (RFC 8200, 8.1;
 * RFC 768). l4 holds the checksum field as zero. proto is IP_PROTO_*. */
uint16_t ip_l4_checksum(const struct wire_ip *src, const struct wire_ip *dst, uint8_t proto,
	const void *l4, size_t len);

/* What routers and tunnels change in an IP header of either version, of at least 20 or 40 bytes: an
 * IPv4 checksum is mended (RFC 1624). */
void ip_put_tos(uint8_t *ip, uint8_t tos);
uint8_t ip_tos(const uint8_t *ip);
void ip_put_ttl(uint8_t *ip, uint8_t ttl);
uint8_t ip_ttl(const uint8_t *ip);

#endif
