/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole Ethernet frames: one parser to a fixed struct of metadata, and builders for everything that
 * the switch and the software RNIC emit. Nothing here allocates, keeps state or reads a clock.
 * A frame has no FCS; bytes after the IP packet (Ethernet minimum-size padding) are ignored. */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/ip.h"
#include "lib/wire/roce.h"

/* Why a frame is refused: X(symbol, name, meaning). The switch and the RNIC make counters,
 * drop edges and documentation of it. */
#define WIRE_DROPS(X)                                                                             \
	X(PARSE_SHORT, "parse_short",                                                             \
		"a header or a length field disagrees with the frame's length")                   \
	X(PARSE_IPSUM, "parse_ipsum", "IPv4 header checksum is wrong")                            \
	X(PARSE_IPVER, "parse_ipver", "IP version, header length or address form not understood") \
	X(PARSE_FRAG, "parse_frag", "IP fragment addressed to UDP port 4791")                     \
	X(PARSE_UDPSUM, "parse_udpsum", "UDP checksum present and wrong")                         \
	X(BTH_VERSION, "bth_version", "BTH transport version is not 0")                           \
	X(BTH_PKEY, "bth_pkey", "partition key is not 0xffff")                                    \
	X(BTH_OPCODE, "bth_opcode", "opcode is not defined")                                      \
	X(BTH_PAD, "bth_pad",                                                                     \
		"pad count is larger than the payload or does not align it to 4 bytes")           \
	X(ICRC_BAD, "icrc_bad", "invariant CRC is wrong")

enum wire_drop {
	WIRE_OK = 0,
#define X(sym, name, text) WIRE_##sym,
	WIRE_DROPS(X)
#undef X
		WIRE_N_DROPS
};

/* "parse_short" etc., and the meaning. drop must be > WIRE_OK and < WIRE_N_DROPS. */
const char *wire_drop_name(enum wire_drop drop);
const char *wire_drop_text(enum wire_drop drop);

enum {
	ETH_HDR_LEN = 14,
	VLAN_HDR_LEN = 4,
	ETH_MIN_LEN = 60,
	ETH_TYPE_IP4 = 0x0800,
	ETH_TYPE_ARP = 0x0806,
	ETH_TYPE_VLAN = 0x8100,
	WIRE_VLAN_ID = 0xfff, /* of a TCI */
	ETH_TYPE_IP6 = 0x86dd,
	/* Most bytes before a payload: Ethernet, VLAN, IPv6, UDP, BTH, AtomicETH. */
	WIRE_MAX_HEADERS = 14 + 4 + 40 + 8 + 12 + 28,
	/* Most bytes after it: pad and ICRC. */
	WIRE_MAX_TRAILER = 3 + 4,
};

enum wire_kind {
	WIRE_L2,        /* nothing below applies beyond Ethernet */
	WIRE_ARP,       /* l3_off is the ARP header; arp_op, src/dst (IPv4) and arp_sha are set */
	WIRE_IP,        /* IP, but none of the kinds below */
	WIRE_ICMP_ECHO, /* ICMP or ICMPv6 echo request */
	WIRE_ND_NS,     /* ICMPv6 neighbour solicitation; nd_target, nd_lladdr (if has_lladdr) */
	WIRE_ND_NA,     /* ICMPv6 neighbour advertisement; nd_target, nd_lladdr (if has_lladdr) */
	WIRE_ROCE,      /* UDP port 4791 with a well-formed BTH; the BTH fields are set */
	WIRE_UDP,       /* of wire_parse_l3 only: a whole UDP packet, not looked into */
};

/* Metadata of one frame. Offsets count from the first byte of the frame. */
struct wire_pkt {
	uint8_t kind;   /* enum wire_kind */
	uint8_t ip_ver; /* 4, 6 or 0 */
	uint8_t tos;    /* DSCP << 2 | ECN */
	uint8_t ttl;
	uint16_t vlan;   /* TCI, 0 when untagged (or tagged with 0: see l3_off) */
	uint16_t l3_off; /* IP or ARP header */
	uint16_t l4_off; /* UDP, ICMP ... header */
	uint16_t end;    /* end of the IP packet, <= length of the frame */
	uint8_t ip_proto;
	uint8_t opcode;
	uint16_t flags;        /* enum roce_op_flags of the opcode */
	uint16_t sport, dport; /* UDP, and TCP */
	uint16_t arp_op;
	uint8_t has_lladdr;
	/* From here to src: of RoCE alone. */
	uint32_t dqpn, psn;
	bool ackreq, se, mig, fecn, becn;
	uint8_t pad;
	uint16_t pay_off; /* first payload byte */
	uint16_t pay_len; /* bytes, without pad and ICRC */
	uint8_t syndrome; /* AETH */
	uint32_t msn;
	uint32_t imm;                  /* ImmDt as a number (host order) */
	uint32_t rkey;                 /* RETH, AtomicETH or IETH */
	uint32_t dmalen;               /* RETH */
	uint64_t va;                   /* RETH, AtomicETH */
	uint32_t pos_offset, pos_recv; /* PosETH */
	uint64_t swap_add, compare, atomic_orig;
	uint32_t qkey, sqpn; /* DETH */
	struct wire_ip src, dst;
	union {
		struct wire_ip nd_target;
		uint8_t arp_sha[6];
	};
	uint8_t nd_lladdr[6];
};

/* Parses len bytes at frame. Returns WIRE_OK with every field that applies to the kind set (others
 * zero), or the reason for refusal with the fields as far as parsing came, others zero; kind is
 * WIRE_ROCE only with WIRE_OK. Checks every length, the IPv4 header checksum, for UDP 4791 also
 * the UDP checksum (0 or right, also over IPv6: RoCEv2 hosts send 0), TVer, P_Key, opcode and pad;
 * not the ICRC. For UDP 4791 the UDP and IP lengths must agree. IPv4 options and fragments, IPv6
 * extension headers: kind WIRE_IP, never WIRE_ROCE; but PARSE_FRAG for the first fragment of a
 * datagram to port 4791. NS and NA that fail RFC 4861's validation are WIRE_IP; an ICMP echo's
 * checksum is not looked at. Packets whose opcode lacks ROCE_F_PAYLOAD may yet have pay_len > 0:
 * that is the transport's to judge. A CNP has at least its 16 bytes. An IPv6 header with an
 * IPv4-mapped address is refused (PARSE_IPVER). Bytes beyond 65535 are not looked at. */
enum wire_drop wire_parse(const uint8_t *frame, size_t len, struct wire_pkt *pkt);

/* The same in two steps. The first does all but look into a UDP packet: that is WIRE_UDP then, with
 * its ports if they are there, and all that a router needs to know of it. The fields of RoCE alone
 * are as they were before. The second goes on with such a one, sets or clears these, and makes it
 * WIRE_IP or WIRE_ROCE. */
enum wire_drop wire_parse_l3(const uint8_t *frame, size_t len, struct wire_pkt *pkt);
enum wire_drop wire_parse_udp(const uint8_t *frame, struct wire_pkt *pkt);

/* The same as wire_parse for the IP packet at l3_off of a frame, which is inside of something else:
 * whatever comes before it is not looked at. */
enum wire_drop wire_parse_ip(const uint8_t *frame, size_t len, size_t l3_off, struct wire_pkt *pkt);

/* A frame that wire_parse has just refused with BTH_OPCODE, for a protocol that has opcodes of its
 * own: makes it WIRE_ROCE with the fields of the BTH set, flags 0; whatever is between BTH and ICRC
 * is its payload, other headers and pad bytes too. WIRE_OK, or BTH_PAD: not a multiple of 4 bytes.
 */
enum wire_drop wire_parse_bth(const uint8_t *frame, struct wire_pkt *pkt);

/* A UDP packet that is WIRE_IP after wire_parse, for a protocol that has RoCE's framing at another
 * port than 4791: what wire_parse checks of a packet to that one, and its results. */
enum wire_drop wire_parse_roce(const uint8_t *frame, struct wire_pkt *pkt);

/* ICRC of a parsed WIRE_ROCE frame, computed and as carried. */
uint32_t wire_icrc(const uint8_t *frame, const struct wire_pkt *pkt);
bool wire_icrc_ok(const uint8_t *frame, const struct wire_pkt *pkt);

/* Addressing of a RoCEv2 flow: all that is constant from packet to packet. */
struct wire_flow {
	uint8_t dmac[6], smac[6];
	uint16_t vlan;           /* TCI, 0: untagged */
	struct wire_ip src, dst; /* both IPv4-mapped or both IPv6 */
	uint8_t tos;
	uint8_t ttl;
	uint16_t sport;
};

/* Transport header of one packet. Fields of headers which the opcode does not have are ignored.
 * Starts the same way as what wire_parse gives, so that a parsed packet can be rebuilt. */
struct wire_hdr {
	uint8_t opcode;
	bool ackreq, se, mig, fecn, becn;
	uint8_t syndrome;
	uint16_t ip_id;
	uint32_t dqpn, psn, msn;
	uint32_t imm, rkey, dmalen, qkey, sqpn, pos_offset, pos_recv;
	uint64_t va, swap_add, compare, atomic_orig;
};

/* Writes Ethernet .. extended headers in front of a payload of pay_len bytes (pad and lengths are
 * computed from it; for a CNP pay_len is 16 and the caller's payload is zeros). Returns the number
 * of bytes written (<= WIRE_MAX_HEADERS), -EINVAL for an unknown opcode, mixed address families,
 * pay_len > 65535 - 128 or a CNP with less than 16, -ENOSPC if cap is too small. UDP checksum 0,
 * DF, IPv6 flow label 0. */
int wire_build_headers(uint8_t *out, size_t cap, const struct wire_flow *flow,
	const struct wire_hdr *hdr, size_t pay_len);

/* Pad count for a payload. */
static inline unsigned wire_pad(size_t pay_len)
{
	return (unsigned)(-pay_len & 3);
}

/* Bytes of the IP header .. extended headers of a built or parsed frame, for icrc_headers(): the
 * headers are hdr_len bytes from the Ethernet header on. vlan says whether a tag is present. */
static inline size_t wire_l3_off(uint16_t vlan)
{
	return ETH_HDR_LEN + (vlan ? VLAN_HDR_LEN : 0);
}

/* Writes pad (zeros) and ICRC behind the payload: trailer has room for WIRE_MAX_TRAILER. hdr is
 * what wire_build_headers wrote, hdr_len its length; pay_crc = icrc_append(0, payload, pay_len),
 * without the pad, which the function adds. Returns pad + 4. */
unsigned wire_build_trailer(uint8_t *trailer, const uint8_t *hdr, size_t hdr_len, uint16_t vlan,
	uint32_t pay_crc, size_t pay_len);

/* The whole packet into one buffer: headers, payload (copied), pad, ICRC. Returns the frame's
 * length or the errors of wire_build_headers. */
int wire_build_frame(uint8_t *out, size_t cap, const struct wire_flow *flow,
	const struct wire_hdr *hdr, const void *payload, size_t pay_len);

/* The flow and headers of a parsed WIRE_ROCE frame, such that wire_build_frame() with them and the
 * payload gives back the same bytes. Not for packets with what the builder never writes: a UDP
 * checksum, a flow label, IPv4 without DF, reserved bits, pad that is not zeros or more than
 * needed, a VLAN tag with TCI 0. */
void wire_unbuild(const uint8_t *frame, const struct wire_pkt *pkt, struct wire_flow *flow,
	struct wire_hdr *hdr);

/* Address resolution. Each returns the frame's length (>= ETH_MIN_LEN, padded with zeros) or
 * -ENOSPC. ARP (RFC 826): op 1 request (dmac broadcast, tha ignored), 2 reply. */
enum { ARP_REQUEST = 1, ARP_REPLY = 2 };
int wire_build_arp(uint8_t *out, size_t cap, unsigned op, const uint8_t smac[6],
	const struct wire_ip *sip, const uint8_t tmac[6], const struct wire_ip *tip, uint16_t vlan);

/* Neighbour solicitation to the solicited-node multicast address of target, and solicited
 * advertisement (RFC 4861, 4.3, 4.4), with link-layer address options. */
int wire_build_ns(uint8_t *out, size_t cap, const uint8_t smac[6], const struct wire_ip *src,
	const struct wire_ip *target, uint16_t vlan);
int wire_build_na(uint8_t *out, size_t cap, const uint8_t smac[6], const uint8_t dmac[6],
	const struct wire_ip *src, const struct wire_ip *dst, uint16_t vlan);

/* The same asking a neighbour whose MAC address is thought to be known (RFC 4861, 7.3.3). */
int wire_build_ns_to(uint8_t *out, size_t cap, const uint8_t smac[6], const uint8_t dmac[6],
	const struct wire_ip *src, const struct wire_ip *target, uint16_t vlan);

/* Whether a WIRE_ND_NA says that it answers a solicitation. */
bool wire_na_is_solicited(const uint8_t *frame, const struct wire_pkt *pkt);

/* Turns a parsed WIRE_ICMP_ECHO request into its reply in place: swaps MACs and addresses, sets the
 * type, TTL 64, mends checksums. The frame's length is unchanged. */
void wire_icmp_echo_reply(uint8_t *frame, const struct wire_pkt *pkt);

/* Forwarding: rewrites MACs (and decrements TTL / hop limit with the checksum updated, RFC 1624) of
 * a parsed IP frame in place. Returns 0, or -ETIME when the TTL has run out (nothing written). */
int wire_forward(
	uint8_t *frame, const struct wire_pkt *pkt, const uint8_t dmac[6], const uint8_t smac[6]);

#endif
