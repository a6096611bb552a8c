/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/template.h"

#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/checksum.h"
#include "lib/wire/psn.h"

enum {
	LINE = 64,
	/* Headers of an IPv4 packet from the ID on. */
	IP4_FROM_ID = sizeof(struct ip4_hdr) - offsetof(struct ip4_hdr, id) +
		      sizeof(struct udp_hdr) + sizeof(struct roce_bth),
};

int wire_template_init(struct wire_template *t, const struct wire_flow *flow,
	const struct wire_hdr *hdr, size_t pay_len)
{
	struct wire_hdr h = *hdr;
	uint8_t head[WIRE_MAX_HEADERS] = {0};
	size_t l3 = wire_l3_off(flow->vlan), bth;
	int len;

	if (pay_len % 4 != 0 || pay_len > UINT16_MAX ||
		roce_ext_len(roce_opcode_flags(hdr->opcode)) != 0)
		return -EINVAL;
	h.ackreq = h.mig = h.se = false;
	h.psn = 0;
	h.ip_id = 0;
	len = wire_build_headers(head, sizeof(head), flow, &h, pay_len);
	if (len < 0)
		return -EINVAL;
	*t = (struct wire_template){
		.len = (uint8_t)len,
		.l3 = (uint8_t)l3,
		.ip_ver = head[l3] >> 4,
		.pay_len = (uint16_t)pay_len,
	};
	bth = (size_t)len - sizeof(struct roce_bth);
	t->bth = (uint8_t)bth;
	head[bth] = 0; /* flags are zero, too: pad, SE, MigReq and TVer */
	if (t->ip_ver == 4) {
		put_be16(head + l3 + offsetof(struct ip4_hdr, checksum), 0);
		t->ip_sum = ip_sum(head + l3, sizeof(struct ip4_hdr), 0);
	}
	memcpy(t->head, head, (size_t)len);
	t->crc = icrc_combine(icrc_headers(head + l3, (size_t)len - l3), 0, pay_len);
	t->opcode = icrc_shift_for(sizeof(struct roce_bth) + pay_len);
	t->psn = icrc_shift_for(4 + pay_len);
	t->id = icrc_shift_for(IP4_FROM_ID + pay_len);
	return 0;
}

/* A big-endian field as the first bytes of a little-endian word: bit 0 of byte 0 is the highest
 * power. */
static inline uint32_t share(uint32_t word, struct icrc_shift shift)
{
	return icrc_combine_shift(word, 0, shift);
}

struct wire_common wire_template_common(
	const struct wire_template *t, const struct wire_hdr *hdr, uint32_t pay_crc)
{
	const uint8_t flags = (hdr->se ? ROCE_BTH_SE : 0) | (hdr->mig ? ROCE_BTH_MIG : 0);
	const uint32_t word = htobe32(
		(hdr->ackreq ? (uint32_t)ROCE_BTH_ACKREQ << 24 : 0) | (hdr->psn & PSN_MASK));

	return (struct wire_common){
		.crc = pay_crc ^ share(hdr->opcode | (uint32_t)flags << 8, t->opcode) ^
		       share(word, t->psn),
		.id_crc = share(htobe16(hdr->ip_id), t->id),
		.word = word,
		.ip_id = hdr->ip_id,
		.opcode = hdr->opcode,
		.flags = flags,
	};
}

uint32_t wire_template_copy(
	const struct wire_template *t, const struct wire_common *common, uint8_t *out)
{
	uint8_t *bth = out + t->bth;

	/* The second line is often not needed, and fetched to be written to. */
	memcpy(out, t->head, LINE);
	if (t->len > LINE)
		memcpy(out + LINE, t->head + LINE, sizeof(t->head) - LINE);
	bth[0] = common->opcode;
	bth[1] = common->flags;
	memcpy(bth + offsetof(struct roce_bth, ackreq), &common->word, sizeof(common->word));
	if (t->ip_ver != 4)
		return t->crc ^ common->crc;
	put_be16(out + t->l3 + offsetof(struct ip4_hdr, id), common->ip_id);
	put_be16(out + t->l3 + offsetof(struct ip4_hdr, checksum),
		(uint16_t)~sum_fold((uint64_t)t->ip_sum + common->ip_id));
	return t->crc ^ common->crc ^ common->id_crc;
}

uint32_t wire_template_write(
	const struct wire_template *t, const struct wire_hdr *hdr, uint32_t pay_crc, uint8_t *out)
{
	const struct wire_common common = wire_template_common(t, hdr, pay_crc);

	return wire_template_copy(t, &common, out);
}
