/* SPDX-License-Identifier: BSD-3-Clause */
/* What is done to a frame in place, and the names of drop reasons. */
#include "lib/wire/frame.h"

#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"
#include "lib/wire/icrc.h"

static const char *const drop_names[WIRE_N_DROPS] = {
#define X(sym, name, text) [WIRE_##sym] = name,
	WIRE_DROPS(X)
#undef X
};

static const char *const drop_texts[WIRE_N_DROPS] = {
#define X(sym, name, text) [WIRE_##sym] = text,
	WIRE_DROPS(X)
#undef X
};

const char *wire_drop_name(enum wire_drop drop)
{
	return drop > WIRE_OK && drop < WIRE_N_DROPS ? drop_names[drop] : "?";
}

const char *wire_drop_text(enum wire_drop drop)
{
	return drop > WIRE_OK && drop < WIRE_N_DROPS ? drop_texts[drop] : "?";
}

uint32_t wire_icrc(const uint8_t *frame, const struct wire_pkt *pkt)
{
	return icrc_packet(frame + pkt->l3_off, (size_t)(pkt->end - pkt->l3_off) - ROCE_ICRC_LEN);
}

bool wire_icrc_ok(const uint8_t *frame, const struct wire_pkt *pkt)
{
	return wire_icrc(frame, pkt) == icrc_load(frame + pkt->end - ROCE_ICRC_LEN);
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t len)
{
	uint8_t t[16];

	memcpy(t, a, len);
	memcpy(a, b, len);
	memcpy(b, t, len);
}

static void ip4_set_ttl(uint8_t *ip, uint8_t ttl)
{
	const size_t at = offsetof(struct ip4_hdr, ttl);

	ip4_put_word(ip, at, (uint16_t)(ttl << 8 | ip[at + 1]));
}

void wire_icmp_echo_reply(uint8_t *frame, const struct wire_pkt *pkt)
{
	enum { ECHO_REPLY4 = 0, ECHO_REPLY6 = 129, REPLY_TTL = 64 };
	uint8_t *l3 = frame + pkt->l3_off;
	uint8_t *icmp = frame + pkt->l4_off;
	uint16_t old = get_be16(icmp);

	swap_bytes(frame, frame + 6, 6);
	if (pkt->ip_ver == 4) {
		swap_bytes(
			l3 + offsetof(struct ip4_hdr, src), l3 + offsetof(struct ip4_hdr, dst), 4);
		ip4_set_ttl(l3, REPLY_TTL);
		icmp[0] = ECHO_REPLY4;
	} else {
		swap_bytes(l3 + offsetof(struct wire_ip6_hdr, src),
			l3 + offsetof(struct wire_ip6_hdr, dst), 16);
		l3[offsetof(struct wire_ip6_hdr, hop_limit)] = REPLY_TTL;
		icmp[0] = ECHO_REPLY6;
	}
	/* Swapped addresses leave the pseudo-header's sum as it was. */
	put_be16(icmp + 2, checksum_update(get_be16(icmp + 2), old, get_be16(icmp)));
}

int wire_forward(
	uint8_t *frame, const struct wire_pkt *pkt, const uint8_t dmac[6], const uint8_t smac[6])
{
	uint8_t *l3 = frame + pkt->l3_off;

	if (pkt->ttl <= 1)
		return -ETIME;
	memcpy(frame, dmac, 6);
	memcpy(frame + 6, smac, 6);
	if (pkt->ip_ver == 4)
		ip4_set_ttl(l3, pkt->ttl - 1);
	else
		l3[offsetof(struct wire_ip6_hdr, hop_limit)] = pkt->ttl - 1;
	return 0;
}
