/* SPDX-License-Identifier: BSD-3-Clause */
/* Codec "mrc-1.0-ocp-r1": the layouts of MRC 1.0's headers, and nobody else's business. Reserved
 * fields are sent as 0 and not looked at. The BTH is IBTA's with three bits of its own; RETH, ImmDt
 * and AETH are IBTA's. */
#include <assert.h>
#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/mrc.h"
#include "lib/wire/psn.h"
#include "lib/wire/roce.h"

enum {
	OP_WRITE_FIRST = 0xc6, /* .. 0xcb, in the order of IBTA's RC */
	OP_WRITE_ONLY_IMM = 0xcb,
	OP_ACK = 0xd1,
	OP_ENDPOINT_REQUEST = 0xd8,
	OP_ENDPOINT_RESPONSE = 0xd9,
	OP_SACK = 0xdc,
	OP_NACK = 0xdd,
	OP_PROBE = 0xde,
};

/* In BTH byte 8, beside IBTA's AckReq. */
enum { BTH_RTX = 0x20, BTH_TS = 0x10 };

struct meth {
	uint8_t rqmsn[2];
	uint8_t msn[2];
};
static_assert(sizeof(struct meth) == 4, "METH is 4 bytes");

/* The time stamp of TSETH, and the end of PETH and ERTH: 16 bits of time, tsr in bit 15 of what
 * follows, ftype in its bits 3 to 0. */
struct tseth {
	uint8_t ts[2];
	uint8_t format[2];
};
static_assert(sizeof(struct tseth) == 4, "TSETH is 4 bytes");
enum { TS_VENDOR = 0x8000, TS_FTYPE = 1 };

/* SETH with CC_STATE of type 0.
 *
 *   word: type 4, nxt 5, m 2, reserved 3, pr 1, r 1 */
struct seth {
	uint8_t word[2];
	uint8_t offset[2]; /* of the PSN that triggered it from cack, or the probe's id */
	uint8_t entropy[4];
	uint8_t spdcid[2];
	uint8_t dpdcid[2];
	uint8_t reserved;
	uint8_t cack[3];
	uint8_t cc; /* type 4, flags 4 */
	uint8_t mpr;
	uint8_t sack_offset[2];
	uint8_t bitmap[8];
	uint8_t ts[2];
	uint8_t ooo[2];
	uint8_t penalty; /* restore in bit 7 */
	uint8_t rcvd[3];
};
static_assert(sizeof(struct seth) == 36, "SETH is 28 bytes, CC_STATE 8");
enum { SETH_TYPE = 0xff80, SETH_M_SHIFT = 5, SETH_M = 3, SETH_PR = 2, CC_RESTORE = 0x80 };
enum { CC_TYPE_SHIFT = 4, CC_TYPE_STATE = 0, CC_TYPE_NACK = 2, OOO_MAX = 0x7fff };

struct neth {
	uint8_t word[2];
	uint8_t reason;
	uint8_t vendor_info;
	uint8_t entropy[4];
	uint8_t spdcid[2];
	uint8_t dpdcid[2];
	uint8_t reserved;
	uint8_t psn[3];
	uint8_t cc;
	uint8_t reserved2;
	uint8_t ts[2];
};
static_assert(sizeof(struct neth) == 20, "NETH is 20 bytes");

struct peth {
	uint8_t word[3];
	uint8_t vendor_info;
	uint8_t id[2];
	uint8_t reserved[2];
	uint8_t spdcid[2];
	uint8_t dpdcid[2];
	struct tseth time;
};
static_assert(sizeof(struct peth) == 16, "PETH is 16 bytes");

struct erth {
	uint8_t word[2]; /* op in bits 1, 0 */
	uint8_t reserved;
	uint8_t vendor_info;
	uint8_t port_mask[4];
	uint8_t reserved2[4];
	struct tseth time;
};
static_assert(sizeof(struct erth) == 16, "ERTH is 16 bytes");
enum { ERTH_OP = 3 };

struct eeth {
	uint8_t word[2]; /* op in bits 3, 2; elsewhere in another reading, so nobody relies on it */
	uint8_t reserved[26];
	uint8_t ts[2];
	uint8_t reserved2[6];
};
static_assert(sizeof(struct eeth) == 36, "EETH is 36 bytes");
enum { EETH_OP_SHIFT = 2 };

static_assert(sizeof(struct roce_bth) + sizeof(struct meth) + sizeof(struct tseth) +
			      sizeof(struct roce_reth) + sizeof(struct roce_immdt) <=
		      MRC_MAX_HEADERS,
	"the headers of data fit");
static_assert(sizeof(struct roce_bth) + sizeof(struct seth) <= MRC_MAX_HEADERS, "a SACK fits");

/* ---- decoding ---- */

/* Place and immediate of opcodes OP_WRITE_FIRST .. OP_WRITE_ONLY_IMM. */
static const struct {
	uint8_t place;
	bool imm;
} writes[] = {{MRC_FIRST, false}, {MRC_MIDDLE, false}, {MRC_LAST, false}, {MRC_LAST, true},
	{MRC_ONLY, false}, {MRC_ONLY, true}};

static bool is_data(uint8_t opcode)
{
	return opcode >= OP_WRITE_FIRST && opcode <= OP_WRITE_ONLY_IMM;
}

static enum mrc_drop get_payload(
	const struct roce_bth *bth, size_t off, size_t len, struct mrc_pkt *pkt)
{
	unsigned pad = bth->flags >> ROCE_BTH_PAD_SHIFT & 3;

	if (len < off + ROCE_ICRC_LEN)
		return MRC_DROP_SHORT;
	len -= off + ROCE_ICRC_LEN;
	if (len % 4 != 0 || pad > len)
		return MRC_DROP_PAD;
	if (len > UINT16_MAX)
		return MRC_DROP_LONG;
	pkt->pay_off = (uint16_t)off;
	pkt->data.pay_len = (uint16_t)(len - pad);
	return MRC_OK;
}

/* Headers of data as far as len reaches: the depth, and the bytes up to there in *off. */
static enum mrc_depth get_data(
	const struct roce_bth *bth, size_t len, struct mrc_data *d, size_t *off)
{
	const uint8_t *p = (const uint8_t *)bth;
	const struct roce_reth *reth;
	const struct tseth *time;
	const struct meth *meth;

	*off = sizeof(*bth);
	meth = (const void *)(p + *off);
	d->has_ts = bth->ackreq & BTH_TS;
	*off += sizeof(*meth) + (d->has_ts ? sizeof(*time) : 0);
	if (len < *off) {
		d->has_ts = false;
		return MRC_DEPTH_BTH;
	}
	d->rqmsn = get_be16(meth->rqmsn);
	d->msn = get_be16(meth->msn);
	if (d->has_ts) {
		time = (const void *)(meth + 1);
		d->ts = get_be16(time->ts);
		d->ts_vendor = get_be16(time->format) & TS_VENDOR;
	}
	reth = (const void *)(p + *off);
	*off += sizeof(*reth);
	if (len < *off)
		return MRC_DEPTH_TS;
	d->va = get_be64(reth->va);
	d->rkey = get_be32(reth->rkey);
	d->dmalen = get_be32(reth->dmalen);
	if (!d->has_imm)
		return MRC_DEPTH_ALL;
	*off += sizeof(struct roce_immdt);
	if (len < *off)
		return MRC_DEPTH_RETH;
	d->imm = get_be32((const uint8_t *)(reth + 1));
	return MRC_DEPTH_ALL;
}

static enum mrc_drop decode_data(
	const struct roce_bth *bth, size_t len, bool trimmed, struct mrc_pkt *pkt)
{
	struct mrc_data *d = &pkt->data;
	size_t off;

	pkt->kind = MRC_KIND_DATA;
	d->place = writes[bth->opcode - OP_WRITE_FIRST].place;
	d->has_imm = writes[bth->opcode - OP_WRITE_FIRST].imm;
	d->se = bth->flags & ROCE_BTH_SE;
	d->ackreq = bth->ackreq & ROCE_BTH_ACKREQ;
	d->rtx = bth->ackreq & BTH_RTX;
	d->dqpn = get_be24(bth->dqpn);
	d->psn = get_be24(bth->psn);
	if (d->dqpn == MRC_ENDPOINT_QPN)
		return MRC_DROP_QPN;
	pkt->depth = get_data(bth, len, d, &off);
	if (trimmed)
		return MRC_OK;
	return pkt->depth == MRC_DEPTH_ALL ? get_payload(bth, off, len, pkt) : MRC_DROP_SHORT;
}

static enum mrc_drop decode_sack(const struct roce_bth *bth, struct mrc_pkt *pkt)
{
	const struct seth *h = (const void *)(bth + 1);
	uint16_t word = get_be16(h->word), offset = get_be16(h->offset);
	struct mrc_sack *s = &pkt->sack;

	if (word & SETH_TYPE || h->cc >> CC_TYPE_SHIFT != CC_TYPE_STATE)
		return MRC_DROP_FORMAT;
	*s = (struct mrc_sack){
		.dqpn = get_be24(bth->dqpn),
		.mark = word >> SETH_M_SHIFT & SETH_M,
		.rtx = bth->ackreq & BTH_RTX,
		.probe = word & SETH_PR,
		.cack_psn = get_be24(h->cack),
		.entropy = get_be32(h->entropy),
		.mpr = h->mpr,
		.bitmap = get_be64(h->bitmap),
		.spdcid = get_be16(h->spdcid),
		.dpdcid = get_be16(h->dpdcid),
		.ts = get_be16(h->ts),
		.ooo_count = get_be16(h->ooo) & OOO_MAX,
		.restore_cwnd = h->penalty & CC_RESTORE,
		.cwnd_penalty = h->penalty & ~CC_RESTORE & 0xff,
		.rcvd_units = get_be24(h->rcvd),
	};
	s->base_psn = psn_add(s->cack_psn, (int16_t)get_be16(h->sack_offset));
	if (s->probe)
		s->probe_id = offset;
	else
		s->trigger_psn = psn_add(s->cack_psn, (int16_t)offset);
	return MRC_OK;
}

static enum mrc_drop decode_nack(const struct roce_bth *bth, struct mrc_pkt *pkt)
{
	const struct neth *h = (const void *)(bth + 1);

	if (get_be16(h->word) & SETH_TYPE || h->cc >> CC_TYPE_SHIFT != CC_TYPE_NACK)
		return MRC_DROP_FORMAT;
	pkt->nack = (struct mrc_nack){
		.dqpn = get_be24(bth->dqpn),
		.psn = get_be24(h->psn),
		.reason = h->reason,
		.vendor_info = h->vendor_info,
		.entropy = get_be32(h->entropy),
		.spdcid = get_be16(h->spdcid),
		.dpdcid = get_be16(h->dpdcid),
		.ts = get_be16(h->ts),
	};
	return MRC_OK;
}

static enum mrc_drop decode_probe(const struct roce_bth *bth, struct mrc_pkt *pkt)
{
	const struct peth *h = (const void *)(bth + 1);

	pkt->probe = (struct mrc_probe){
		.dqpn = get_be24(bth->dqpn),
		.id = get_be16(h->id),
		.vendor_info = h->vendor_info,
		.spdcid = get_be16(h->spdcid),
		.dpdcid = get_be16(h->dpdcid),
		.ts = get_be16(h->time.ts),
		.ts_vendor = get_be16(h->time.format) & TS_VENDOR,
	};
	return MRC_OK;
}

static enum mrc_drop decode_request(const struct roce_bth *bth, struct mrc_pkt *pkt)
{
	const struct erth *h = (const void *)(bth + 1);

	pkt->endpoint = (struct mrc_endpoint){
		.id = get_be16(bth->psn + 1),
		.op = get_be16(h->word) & ERTH_OP,
		.vendor_info = h->vendor_info,
		.port_mask = get_be32(h->port_mask),
		.ts = get_be16(h->time.ts),
		.ts_vendor = get_be16(h->time.format) & TS_VENDOR,
	};
	return pkt->endpoint.op > MRC_EV_PROBE ? MRC_DROP_FORMAT : MRC_OK;
}

static enum mrc_drop decode_response(const struct roce_bth *bth, struct mrc_pkt *pkt)
{
	const struct eeth *h = (const void *)(bth + 1);

	pkt->endpoint = (struct mrc_endpoint){
		.id = get_be16(bth->psn + 1),
		.op = get_be16(h->word) >> EETH_OP_SHIFT & ERTH_OP,
		.ts = get_be16(h->ts),
	};
	return MRC_OK;
}

static enum mrc_drop decode_ack(const struct roce_bth *bth, struct mrc_pkt *pkt)
{
	const struct roce_aeth *h = (const void *)(bth + 1);

	pkt->ack = (struct mrc_ack){
		.dqpn = get_be24(bth->dqpn),
		.psn = get_be24(bth->psn),
		.syndrome = h->syndrome,
		.msn = get_be24(h->msn),
	};
	return MRC_OK;
}

static const struct control {
	uint8_t opcode, kind, ext_len;
	enum mrc_drop (*decode)(const struct roce_bth *bth, struct mrc_pkt *pkt);
} controls[] = {
	{OP_ACK, MRC_KIND_ACK, sizeof(struct roce_aeth), decode_ack},
	{OP_ENDPOINT_REQUEST, MRC_KIND_ENDPOINT_REQUEST, sizeof(struct erth), decode_request},
	{OP_ENDPOINT_RESPONSE, MRC_KIND_ENDPOINT_RESPONSE, sizeof(struct eeth), decode_response},
	{OP_SACK, MRC_KIND_SACK, sizeof(struct seth), decode_sack},
	{OP_NACK, MRC_KIND_NACK, sizeof(struct neth), decode_nack},
	{OP_PROBE, MRC_KIND_PROBE, sizeof(struct peth), decode_probe},
};
enum { N_CONTROLS = sizeof(controls) / sizeof(*controls) };

static enum mrc_drop decode_control(
	const struct roce_bth *bth, size_t len, bool trimmed, struct mrc_pkt *pkt)
{
	size_t i = 0, whole;
	bool endpoint;

	while (i < N_CONTROLS && controls[i].opcode != bth->opcode)
		i++;
	if (i == N_CONTROLS)
		return MRC_DROP_OPCODE;
	if (trimmed)
		return MRC_DROP_TRIMMED;
	whole = sizeof(*bth) + controls[i].ext_len + ROCE_ICRC_LEN;
	if (len != whole)
		return len < whole ? MRC_DROP_SHORT : MRC_DROP_LONG;
	if (bth->flags >> ROCE_BTH_PAD_SHIFT & 3)
		return MRC_DROP_PAD;
	pkt->kind = controls[i].kind;
	pkt->depth = MRC_DEPTH_ALL;
	endpoint =
		pkt->kind == MRC_KIND_ENDPOINT_REQUEST || pkt->kind == MRC_KIND_ENDPOINT_RESPONSE;
	if (endpoint != (get_be24(bth->dqpn) == MRC_ENDPOINT_QPN))
		return MRC_DROP_QPN;
	return controls[i].decode(bth, pkt);
}

static enum mrc_drop decode(const uint8_t *bytes, size_t len, bool trimmed, struct mrc_pkt *pkt)
{
	const struct roce_bth *bth = (const void *)bytes;

	if (len < sizeof(*bth))
		return MRC_DROP_SHORT;
	if (bth->flags & ROCE_BTH_TVER_MASK)
		return MRC_DROP_VERSION;
	if (get_be16(bth->pkey) != ROCE_PKEY_DEFAULT)
		return MRC_DROP_PKEY;
	*pkt = (struct mrc_pkt){0};
	return is_data(bth->opcode) ? decode_data(bth, len, trimmed, pkt)
				    : decode_control(bth, len, trimmed, pkt);
}

/* ---- encoding ---- */

static bool fits24(uint32_t a, uint32_t b)
{
	return a <= PSN_MASK && b <= PSN_MASK;
}

static struct roce_bth make_bth(uint8_t opcode, uint32_t dqpn, uint32_t psn)
{
	struct roce_bth bth = {.opcode = opcode};

	put_be16(bth.pkey, ROCE_PKEY_DEFAULT);
	put_be24(bth.dqpn, dqpn);
	put_be24(bth.psn, psn);
	return bth;
}

static struct tseth make_time(uint16_t ts, bool vendor)
{
	struct tseth time;

	put_be16(time.ts, ts);
	put_be16(time.format, (uint16_t)((vendor ? TS_VENDOR : 0) | TS_FTYPE));
	return time;
}

static int encode_data(const struct mrc_data *d, uint8_t *out)
{
	static const uint8_t opcodes[] = {
		[MRC_FIRST] = 0, [MRC_MIDDLE] = 1, [MRC_LAST] = 2, [MRC_ONLY] = 4};
	struct roce_bth *bth = (void *)out;
	struct roce_reth *reth;
	struct tseth *time;
	struct meth *meth;
	uint8_t *p;

	if (!fits24(d->dqpn, d->psn) || d->place > MRC_ONLY ||
		(d->has_imm && !(d->place & MRC_LAST)) || d->dqpn == MRC_ENDPOINT_QPN)
		return -EINVAL;
	*bth = make_bth(
		(uint8_t)(OP_WRITE_FIRST + opcodes[d->place] + d->has_imm), d->dqpn, d->psn);
	bth->flags = (uint8_t)((d->se ? ROCE_BTH_SE : 0) | (-(unsigned)d->pay_len & 3)
								   << ROCE_BTH_PAD_SHIFT);
	bth->ackreq = (uint8_t)((d->ackreq ? ROCE_BTH_ACKREQ : 0) | (d->rtx ? BTH_RTX : 0) |
				(d->has_ts ? BTH_TS : 0));
	meth = (void *)(bth + 1);
	put_be16(meth->rqmsn, d->rqmsn);
	put_be16(meth->msn, d->msn);
	p = (void *)(meth + 1);
	if (d->has_ts) {
		time = (void *)p;
		*time = make_time(d->ts, d->ts_vendor);
		p += sizeof(*time);
	}
	reth = (void *)p;
	put_be64(reth->va, d->va);
	put_be32(reth->rkey, d->rkey);
	put_be32(reth->dmalen, d->dmalen);
	p += sizeof(*reth);
	if (d->has_imm) {
		put_be32(p, d->imm);
		p += sizeof(struct roce_immdt);
	}
	return (int)(p - out);
}

static int encode_sack(const struct mrc_sack *s, uint8_t *out)
{
	int32_t base = psn_diff(s->base_psn, s->cack_psn);
	int32_t trigger = psn_diff(s->trigger_psn, s->cack_psn);
	struct roce_bth *bth = (void *)out;
	struct seth *h = (void *)(bth + 1);

	if (!fits24(s->dqpn, s->cack_psn) || s->mark > MRC_ALWAYS_SKIP || base != (int16_t)base ||
		s->ooo_count > OOO_MAX || s->cwnd_penalty >= CC_RESTORE ||
		s->rcvd_units > PSN_MASK || (!s->probe && trigger != (int16_t)trigger))
		return -EINVAL;
	*bth = make_bth(OP_SACK, s->dqpn, s->cack_psn);
	bth->ackreq = s->rtx ? BTH_RTX : 0;
	*h = (struct seth){.mpr = s->mpr,
		.cc = CC_TYPE_STATE << CC_TYPE_SHIFT,
		.penalty = (uint8_t)((s->restore_cwnd ? CC_RESTORE : 0) | s->cwnd_penalty)};
	put_be16(h->word, (uint16_t)(s->mark << SETH_M_SHIFT | (s->probe ? SETH_PR : 0)));
	put_be16(h->offset, s->probe ? s->probe_id : (uint16_t)trigger);
	put_be32(h->entropy, s->entropy);
	put_be16(h->spdcid, s->spdcid);
	put_be16(h->dpdcid, s->dpdcid);
	put_be24(h->cack, s->cack_psn);
	put_be16(h->sack_offset, (uint16_t)base);
	put_be64(h->bitmap, s->bitmap);
	put_be16(h->ts, s->ts);
	put_be16(h->ooo, s->ooo_count);
	put_be24(h->rcvd, s->rcvd_units);
	return sizeof(*bth) + sizeof(*h);
}

static int encode_nack(const struct mrc_nack *n, uint8_t *out)
{
	struct roce_bth *bth = (void *)out;
	struct neth *h = (void *)(bth + 1);

	if (!fits24(n->dqpn, n->psn))
		return -EINVAL;
	*bth = make_bth(OP_NACK, n->dqpn, n->psn);
	*h = (struct neth){.reason = n->reason,
		.vendor_info = n->vendor_info,
		.cc = CC_TYPE_NACK << CC_TYPE_SHIFT};
	put_be32(h->entropy, n->entropy);
	put_be16(h->spdcid, n->spdcid);
	put_be16(h->dpdcid, n->dpdcid);
	put_be24(h->psn, n->psn);
	put_be16(h->ts, n->ts);
	return sizeof(*bth) + sizeof(*h);
}

static int encode_probe(const struct mrc_probe *r, uint8_t *out)
{
	struct roce_bth *bth = (void *)out;
	struct peth *h = (void *)(bth + 1);

	if (!fits24(r->dqpn, 0))
		return -EINVAL;
	*bth = make_bth(OP_PROBE, r->dqpn, 0);
	*h = (struct peth){.vendor_info = r->vendor_info, .time = make_time(r->ts, r->ts_vendor)};
	put_be16(h->id, r->id);
	put_be16(h->spdcid, r->spdcid);
	put_be16(h->dpdcid, r->dpdcid);
	return sizeof(*bth) + sizeof(*h);
}

static int encode_request(const struct mrc_endpoint *e, uint8_t *out)
{
	struct roce_bth *bth = (void *)out;
	struct erth *h = (void *)(bth + 1);

	if (e->op > MRC_EV_PROBE)
		return -EINVAL;
	*bth = make_bth(OP_ENDPOINT_REQUEST, MRC_ENDPOINT_QPN, e->id);
	*h = (struct erth){.vendor_info = e->vendor_info, .time = make_time(e->ts, e->ts_vendor)};
	put_be16(h->word, e->op);
	put_be32(h->port_mask, e->port_mask);
	return sizeof(*bth) + sizeof(*h);
}

static int encode_response(const struct mrc_endpoint *e, uint8_t *out)
{
	struct roce_bth *bth = (void *)out;
	struct eeth *h = (void *)(bth + 1);

	if (e->op > MRC_EV_PROBE)
		return -EINVAL;
	*bth = make_bth(OP_ENDPOINT_RESPONSE, MRC_ENDPOINT_QPN, e->id);
	*h = (struct eeth){0};
	put_be16(h->word, (uint16_t)(e->op << EETH_OP_SHIFT));
	put_be16(h->ts, e->ts);
	return sizeof(*bth) + sizeof(*h);
}

static int encode_ack(const struct mrc_ack *a, uint8_t *out)
{
	struct roce_bth *bth = (void *)out;
	struct roce_aeth *h = (void *)(bth + 1);

	if (!fits24(a->dqpn, a->psn) || !fits24(a->msn, 0))
		return -EINVAL;
	*bth = make_bth(OP_ACK, a->dqpn, a->psn);
	h->syndrome = a->syndrome;
	put_be24(h->msn, a->msn);
	return sizeof(*bth) + sizeof(*h);
}

static int encode(const struct mrc_pkt *pkt, uint8_t *out, size_t room)
{
	if (room < MRC_MAX_HEADERS)
		return -ENOSPC;
	switch ((enum mrc_kind)pkt->kind) {
	case MRC_KIND_DATA:
		return encode_data(&pkt->data, out);
	case MRC_KIND_ACK:
		return encode_ack(&pkt->ack, out);
	case MRC_KIND_ENDPOINT_REQUEST:
		return encode_request(&pkt->endpoint, out);
	case MRC_KIND_ENDPOINT_RESPONSE:
		return encode_response(&pkt->endpoint, out);
	case MRC_KIND_SACK:
		return encode_sack(&pkt->sack, out);
	case MRC_KIND_NACK:
		return encode_nack(&pkt->nack, out);
	case MRC_KIND_PROBE:
		return encode_probe(&pkt->probe, out);
	}
	return -EINVAL;
}

const struct mrc_codec mrc_codec_ocp_r1 = {
	.name = "mrc-1.0-ocp-r1",
	.protocol_version = 1 << 0,
	.decode = decode,
	.encode = encode,
};
