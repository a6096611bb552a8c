/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/iwarp.h"

#include <errno.h>
#include <isa-l/crc.h>

#include "lib/wire/bytes.h"

static const struct {
	uint8_t layer, type, code;
	const char *name, *text;
} faults[IWARP_N_FAULTS] = {
#define X(sym, layer, type, code, name, text) [IWARP_FAULT_##sym] = {layer, type, code, name, text},
	IWARP_FAULTS(X)
#undef X
};

const char *iwarp_fault_name(enum iwarp_fault fault)
{
	return faults[fault].name;
}

const char *iwarp_fault_text(enum iwarp_fault fault)
{
	return faults[fault].text;
}

/* ---- MPA ---- */

enum { KEY_LEN = 16, FLAGS_AT = 16, REVISION_AT = 17, PRIVATE_AT = 18 };
enum { FLAG_MARKERS = 0x80, FLAG_CRC = 0x40, FLAG_REJECT = 0x20, FLAG_ENHANCED = 0x10 };
/* Bits above IRD, and above ORD. */
enum { IRD_PEER_TO_PEER = 0x8000, IRD_SEND = 0x4000, ORD_WRITE = 0x8000, ORD_READ = 0x4000 };

static const char *key(bool reply)
{
	return reply ? "MPA ID Rep Frame" : "MPA ID Req Frame";
}

static void put_enhanced(uint8_t *out, const struct mpa_start *s)
{
	put_be16(out, (uint16_t)(s->ird | (s->peer_to_peer ? IRD_PEER_TO_PEER : 0) |
				 (s->rtr & MPA_RTR_SEND ? IRD_SEND : 0)));
	put_be16(out + 2, (uint16_t)(s->ord | (s->rtr & MPA_RTR_WRITE ? ORD_WRITE : 0) |
				     (s->rtr & MPA_RTR_READ ? ORD_READ : 0)));
}

int mpa_start_build(uint8_t *out, size_t cap, const struct mpa_start *s)
{
	const size_t more = s->enhanced ? MPA_ENHANCED_LEN : 0, private = more + s->private_len;

	if (private > MPA_MAX_PRIVATE || s->revision < 1 || (s->enhanced && s->revision < 2) ||
		(s->reject && !s->reply) || s->ird > MPA_MAX_DEPTH || s->ord > MPA_MAX_DEPTH)
		return -EINVAL;
	if (cap < MPA_START_LEN + private)
		return -ENOSPC;
	memcpy(out, key(s->reply), KEY_LEN);
	out[FLAGS_AT] =
		(uint8_t)((s->markers ? FLAG_MARKERS : 0) | (s->crc ? FLAG_CRC : 0) |
			  (s->reject ? FLAG_REJECT : 0) | (s->enhanced ? FLAG_ENHANCED : 0));
	out[REVISION_AT] = s->revision;
	put_be16(out + PRIVATE_AT, (uint16_t) private);
	if (s->enhanced)
		put_enhanced(out + MPA_START_LEN, s);
	if (s->private_len > 0)
		memcpy(out + MPA_START_LEN + more, s->private_data, s->private_len);
	return (int)(MPA_START_LEN + private);
}

static void get_enhanced(const uint8_t *in, struct mpa_start *s)
{
	const uint16_t ird = get_be16(in), ord = get_be16(in + 2);

	s->peer_to_peer = ird & IRD_PEER_TO_PEER;
	s->rtr = (uint8_t)((ird & IRD_SEND ? MPA_RTR_SEND : 0) |
			   (ord & ORD_WRITE ? MPA_RTR_WRITE : 0) |
			   (ord & ORD_READ ? MPA_RTR_READ : 0));
	s->ird = ird & MPA_MAX_DEPTH;
	s->ord = ord & MPA_MAX_DEPTH;
}

int mpa_start_parse(const uint8_t *bytes, size_t len, bool reply, struct mpa_start *s)
{
	size_t private;

	if (len > 0 && memcmp(bytes, key(reply), len < KEY_LEN ? len : KEY_LEN) != 0)
		return -EPROTO;
	if (len < MPA_START_LEN)
		return MPA_START_LEN;
	private = get_be16(bytes + PRIVATE_AT);
	*s = (struct mpa_start){.reply = reply,
		.markers = bytes[FLAGS_AT] & FLAG_MARKERS,
		.crc = bytes[FLAGS_AT] & FLAG_CRC,
		.reject = bytes[FLAGS_AT] & FLAG_REJECT,
		.revision = bytes[REVISION_AT],
		/* In revision 1 the bit is reserved: not to be looked at. */
		.enhanced = bytes[REVISION_AT] >= 2 && bytes[FLAGS_AT] & FLAG_ENHANCED};
	if (private > MPA_MAX_PRIVATE || s->revision < 1 || (s->reject && !reply) ||
		(s->enhanced && private < MPA_ENHANCED_LEN))
		return -EPROTO;
	if (len < MPA_START_LEN + private)
		return (int)(MPA_START_LEN + private);
	s->private_data = bytes + MPA_START_LEN;
	s->private_len = (uint16_t) private;
	if (s->enhanced) {
		get_enhanced(s->private_data, s);
		s->private_data += MPA_ENHANCED_LEN;
		s->private_len -= MPA_ENHANCED_LEN;
	}
	return 0;
}

static size_t padded(size_t ulpdu)
{
	return (MPA_LEN_LEN + ulpdu + 3) & ~(size_t)3;
}

size_t mpa_fpdu_len(size_t ulpdu)
{
	return padded(ulpdu) + MPA_CRC_LEN;
}

size_t mpa_mulpdu(size_t fpdu)
{
	size_t room = fpdu & ~(size_t)3;

	if (room <= MPA_LEN_LEN + MPA_CRC_LEN)
		return 0;
	room -= MPA_LEN_LEN + MPA_CRC_LEN;
	return room > MPA_MAX_ULPDU ? MPA_MAX_ULPDU : room;
}

size_t mpa_fpdu_peek(const uint8_t *bytes, size_t len)
{
	return len < MPA_LEN_LEN ? 0 : mpa_fpdu_len(get_be16(bytes));
}

/* As RFC 3720 has it; the least significant byte goes first. */
static uint32_t crc32c(const uint8_t *bytes, size_t len)
{
	/* ISA-L reads only, whatever the type of its argument says. */
	return ~crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)len, UINT32_MAX);
}

size_t mpa_fpdu_seal(uint8_t *fpdu, size_t ulpdu)
{
	const size_t len = padded(ulpdu);
	uint32_t crc;

	put_be16(fpdu, (uint16_t)ulpdu);
	memset(fpdu + MPA_LEN_LEN + ulpdu, 0, len - MPA_LEN_LEN - ulpdu);
	crc = htole32(crc32c(fpdu, len));
	memcpy(fpdu + len, &crc, sizeof(crc));
	return len + MPA_CRC_LEN;
}

bool mpa_fpdu_open(const uint8_t *fpdu, const uint8_t **ulpdu, size_t *len)
{
	const size_t covered = padded(get_be16(fpdu));
	uint32_t crc;

	*ulpdu = fpdu + MPA_LEN_LEN;
	*len = get_be16(fpdu);
	memcpy(&crc, fpdu + covered, sizeof(crc));
	return le32toh(crc) == crc32c(fpdu, covered);
}

/* ---- DDP and RDMAP ---- */

enum { DDP_TAGGED = 0x80, DDP_LAST = 0x40, DDP_VERSION_MASK = 3, DDP_VERSION = 1 };
enum { RDMAP_VERSION_SHIFT = 6, RDMAP_VERSION_1 = 1, RDMAP_OPCODE_MASK = 15 };

static const struct {
	bool known, tagged;
	uint8_t qn;
} opcodes[RDMAP_OPCODE_MASK + 1] = {
	[RDMAP_WRITE] = {true, true, 0},
	[RDMAP_READ_REQUEST] = {true, false, DDP_QN_READ},
	[RDMAP_READ_RESPONSE] = {true, true, 0},
	[RDMAP_SEND] = {true, false, DDP_QN_SEND},
	[RDMAP_SEND_INV] = {true, false, DDP_QN_SEND},
	[RDMAP_SEND_SE] = {true, false, DDP_QN_SEND},
	[RDMAP_SEND_SE_INV] = {true, false, DDP_QN_SEND},
	[RDMAP_TERMINATE] = {true, false, DDP_QN_TERMINATE},
	[RDMAP_IMM] = {true, false, DDP_QN_SEND},
	[RDMAP_IMM_SE] = {true, false, DDP_QN_SEND},
};

static bool invalidates(uint8_t opcode)
{
	return opcode == RDMAP_SEND_INV || opcode == RDMAP_SEND_SE_INV;
}

static void parse_untagged(const uint8_t *p, struct ddp_segment *s)
{
	/* Reserved but for the SENDs that invalidate. */
	s->stag = invalidates(s->opcode) ? get_be32(p + 2) : 0;
	s->qn = get_be32(p + 6);
	s->msn = get_be32(p + 10);
	s->mo = get_be32(p + 14);
}

static enum iwarp_fault check_opcode(const struct ddp_segment *s, uint8_t version)
{
	if (!s->tagged && s->qn >= DDP_N_QUEUES)
		return IWARP_FAULT_QN;
	if (version != RDMAP_VERSION_1)
		return IWARP_FAULT_VERSION;
	if (!opcodes[s->opcode].known || opcodes[s->opcode].tagged != s->tagged ||
		(!s->tagged && opcodes[s->opcode].qn != s->qn))
		return IWARP_FAULT_OPCODE;
	return IWARP_OK;
}

enum iwarp_fault ddp_parse(const uint8_t *p, size_t len, struct ddp_segment *s)
{
	size_t need;

	*s = (struct ddp_segment){0};
	if (len < 2)
		return IWARP_FAULT_SHORT;
	s->tagged = p[0] & DDP_TAGGED;
	s->last = p[0] & DDP_LAST;
	s->opcode = p[1] & RDMAP_OPCODE_MASK;
	if ((p[0] & DDP_VERSION_MASK) != DDP_VERSION)
		return s->tagged ? IWARP_FAULT_TAGGED_VERSION : IWARP_FAULT_UNTAGGED_VERSION;
	need = s->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	if (len < need)
		return IWARP_FAULT_SHORT;
	s->header_len = (uint16_t)need;
	if (s->tagged) {
		s->stag = get_be32(p + 2);
		s->to = get_be64(p + 6);
	} else {
		parse_untagged(p, s);
	}
	return check_opcode(s, p[1] >> RDMAP_VERSION_SHIFT);
}

size_t ddp_build(uint8_t *out, const struct ddp_segment *s)
{
	out[0] = (uint8_t)((s->tagged ? DDP_TAGGED : 0) | (s->last ? DDP_LAST : 0) | DDP_VERSION);
	out[1] = (uint8_t)(RDMAP_VERSION_1 << RDMAP_VERSION_SHIFT | s->opcode);
	put_be32(out + 2, s->tagged || invalidates(s->opcode) ? s->stag : 0);
	if (s->tagged) {
		put_be64(out + 6, s->to);
		return DDP_TAGGED_LEN;
	}
	put_be32(out + 6, s->qn);
	put_be32(out + 10, s->msn);
	put_be32(out + 14, s->mo);
	return DDP_UNTAGGED_LEN;
}

void rdmap_read_parse(const uint8_t *p, struct rdmap_read *r)
{
	r->sink_stag = get_be32(p);
	r->sink_to = get_be64(p + 4);
	r->len = get_be32(p + 12);
	r->source_stag = get_be32(p + 16);
	r->source_to = get_be64(p + 20);
}

void rdmap_read_build(uint8_t *out, const struct rdmap_read *r)
{
	put_be32(out, r->sink_stag);
	put_be64(out + 4, r->sink_to);
	put_be32(out + 12, r->len);
	put_be32(out + 16, r->source_stag);
	put_be64(out + 20, r->source_to);
}

uint32_t rdmap_imm_parse(const uint8_t bytes[RDMAP_IMM_LEN])
{
	return (uint32_t)get_be64(bytes);
}

void rdmap_imm_build(uint8_t out[RDMAP_IMM_LEN], uint32_t imm)
{
	put_be64(out, imm);
}

enum {
	TERM_SEGMENT_LEN = 0x80,
	TERM_DDP = 0x40,
	TERM_HEADERS = TERM_SEGMENT_LEN | TERM_DDP,
	TERM_RDMAP = 0x20,
	TERM_CONTROL_LEN = 4,
	TERM_LEN_LEN = 2,
};

size_t rdmap_terminate_build(
	uint8_t *out, enum iwarp_fault fault, const uint8_t *ulpdu, size_t ulpdu_len)
{
	struct ddp_segment s = {0};
	size_t len = TERM_CONTROL_LEN;

	out[0] = (uint8_t)(faults[fault].layer << 4 | faults[fault].type);
	out[1] = faults[fault].code;
	out[2] = out[3] = 0;
	if (ulpdu != NULL)
		ddp_parse(ulpdu, ulpdu_len, &s);
	if (s.header_len == 0)
		return len;
	out[2] |= TERM_HEADERS;
	put_be16(out + len, (uint16_t)ulpdu_len);
	memcpy(out + len + TERM_LEN_LEN, ulpdu, s.header_len);
	len += (size_t)TERM_LEN_LEN + s.header_len;
	if (!s.tagged && s.opcode == RDMAP_READ_REQUEST &&
		ulpdu_len >= DDP_UNTAGGED_LEN + RDMAP_READ_LEN) {
		out[2] |= TERM_RDMAP;
		memcpy(out + len, ulpdu + DDP_UNTAGGED_LEN, RDMAP_READ_LEN);
		len += RDMAP_READ_LEN;
	}
	return len;
}

int rdmap_terminate_parse(const uint8_t *bytes, size_t len, struct rdmap_terminate *t)
{
	if (len < TERM_CONTROL_LEN)
		return -EPROTO;
	*t = (struct rdmap_terminate){
		.layer = bytes[0] >> 4, .type = bytes[0] & 15, .code = bytes[1]};
	for (unsigned i = 1; i < IWARP_N_FAULTS; i++)
		if (faults[i].layer == t->layer && faults[i].type == t->type &&
			faults[i].code == t->code)
			t->fault = (enum iwarp_fault)i;
	if ((bytes[2] & TERM_HEADERS) == TERM_HEADERS && len > TERM_CONTROL_LEN + TERM_LEN_LEN)
		ddp_parse(bytes + TERM_CONTROL_LEN + TERM_LEN_LEN,
			len - TERM_CONTROL_LEN - TERM_LEN_LEN, &t->segment);
	return 0;
}
