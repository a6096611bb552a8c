/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/netreduce/frames.h"

enum { STALL_TIMER_CODE = 14 /* 1.28 ms */, MAX_TTL = 65 };

static_assert((int)NR_HEAD_LEN <= (int)ICRC_MAX_HEADERS, "headers and INA header together");

/* ---- reading ---- */

bool nr_icrc_ok(struct nr_ctx *c)
{
	const struct wire_pkt *p = c->pkt;
	const size_t body = (size_t)p->pay_len + p->pad;
	const uint8_t *payload = c->frame + p->pay_off;

	c->head_crc = icrc_headers(c->frame + p->l3_off, (size_t)(p->pay_off - p->l3_off));
	return icrc_append(c->head_crc, payload, body) == icrc_load(payload + body);
}

void nr_skip_ina(struct nr_ctx *c)
{
	c->head_crc = icrc_append(c->head_crc, c->data, INA_LEN);
	c->data += INA_LEN;
	c->len = (uint16_t)(c->len - INA_LEN);
}

/* At a message's end: a switch that forgets the ring, or begins anew, in the middle of a message
 * lets the rest of it pass as it is. */
static void mark_sum(const struct wire_pkt *p, struct nr_buf *buf)
{
	buf->head[p->pay_off - sizeof(struct roce_immdt)] |= INA_IMM_SUM >> 24;
	buf->head_crc = icrc_headers(buf->head + p->l3_off, (size_t)(buf->head_len - p->l3_off));
}

/* A UDP checksum would be of other data: RoCE does without. */
void nr_store_head(const struct nr_ctx *c, struct nr_buf *buf)
{
	const struct wire_pkt *p = c->pkt;

	buf->head_len = (uint16_t)(c->data - c->frame);
	buf->l3_off = (uint8_t)p->l3_off;
	buf->ip_ver = p->ip_ver;
	buf->ttl = p->ttl;
	buf->tos = p->tos;
	buf->head_crc = c->head_crc;
	memcpy(buf->head, c->frame, buf->head_len);
	memset(buf->head + p->l4_off + offsetof(struct udp_hdr, checksum), 0, 2);
	if (c->r->flags & NR_F_MARK_SUMS && p->flags & ROCE_F_IMM)
		mark_sum(p, buf);
}

/* ---- writing ---- */

static uint32_t join(const struct nr_ring *r, uint32_t head, uint32_t crc, size_t len)
{
	if (len == r->mtu)
		return icrc_combine_shift(head, crc, r->shift_full);
	if (len == (size_t)r->mtu - INA_LEN)
		return icrc_combine_shift(head, crc, r->shift_first);
	return icrc_combine(head, crc, len);
}

static void add_trailer(
	const struct nr_ring *r, struct nr_emit *e, uint32_t head_crc, uint32_t pay_crc)
{
	static const uint8_t zeros[4];
	const unsigned pad = wire_pad(e->pay_len);
	uint32_t crc = head_crc;

	memcpy(e->tail, zeros, sizeof(zeros));
	if (e->pay_len)
		crc = join(r, crc, icrc_append(pay_crc, zeros, pad), (size_t)e->pay_len + pad);
	icrc_store(e->tail + pad, crc);
	e->tail_len = (uint8_t)(pad + ROCE_ICRC_LEN);
}

static void set_ce(uint8_t *l3, uint8_t ip_ver)
{
	struct ip4_hdr *ip4 = (struct ip4_hdr *)l3;
	uint16_t sum;

	if (ip_ver != 4) {
		l3[1] |= IP_ECN_CE << 4;
		return;
	}
	ip4->tos |= IP_ECN_CE;
	memset(ip4->checksum, 0, 2);
	sum = (uint16_t)~ip_sum(ip4, sizeof(*ip4), 0);
	ip4->checksum[0] = (uint8_t)(sum >> 8);
	ip4->checksum[1] = (uint8_t)sum;
}

static void emit(const struct nr_ctx *c, const struct nr_emit *e)
{
	c->r->count[NR_C_TX]++;
	c->sink->emit(c->sink->arg, c->r, e);
}

void nr_emit_host(const struct nr_ctx *c, const struct nr_agg *a, const struct nr_buf *buf,
	unsigned i, const uint8_t *data)
{
	uint8_t marked[NR_HEAD_LEN];
	struct nr_emit e = {
		.dst = nr_in_at(c->r, i)->key.dst,
		.l3_off = buf->l3_off,
		.ip_ver = buf->ip_ver,
		.ttl = buf->ttl,
		.head = buf->head,
		.head_len = buf->head_len,
		.payload = data,
		.pay_len = a->len,
	};

	/* A sender that does not speak ECN is not marked. */
	if (a->ce && (buf->tos & IP_ECN_MASK) != IP_ECN_CE &&
		(buf->tos & IP_ECN_MASK) != IP_ECN_NOT_ECT) {
		memcpy(marked, buf->head, buf->head_len);
		set_ce(marked + buf->l3_off, buf->ip_ver);
		e.head = marked;
	}
	add_trailer(c->r, &e, buf->head_crc, a->pay_crc);
	emit(c, &e);
}

static struct nr_emit own_packet(const struct wire_flow *flow, const struct wire_hdr *hdr,
	uint8_t *head, size_t cap, size_t pay_len)
{
	return (struct nr_emit){
		.dst = flow->dst,
		.l3_off = ETH_HDR_LEN,
		.ip_ver = wire_ip_is4(&flow->dst) ? 4 : 6,
		.ttl = MAX_TTL,
		.head = head,
		.head_len = (uint16_t)wire_build_headers(head, cap, flow, hdr, pay_len),
	};
}

void nr_emit_switch(const struct nr_ctx *c, const struct nr_agg *a, unsigned i, const uint8_t *data)
{
	const struct nr_ring *r = c->r;
	const uint32_t o = (uint32_t)(a - nr_agg_at(c->r, 0)) % r->m;
	const bool up = i == NR_PARENT_EP;
	const struct nr_msg *m = nr_msg_at(c->r, a->msg);
	const struct nr_in *in = nr_in_at(c->r, up ? 0 : i);
	const struct wire_hdr hdr = {
		.opcode = ROCE_SEND_ONLY,
		.mig = true,
		.dqpn = up ? r->parent_qpn : in->remote_qpn,
		.psn = (a->msg * r->m + o) & PSN_MASK,
	};
	const struct ina_hdr ina = {
		.ring = r->id,
		.rank = in->min_rank, /* the leaf's lowest rank, both ways */
		.msg = a->msg,
		.packets = r->m,
		.dtype = m->dtype,
		.op = m->op,
	};
	struct wire_flow flow = up ? r->parent_flow : in->flow;
	uint8_t head[NR_HEAD_LEN];
	struct nr_emit e;

	flow.tos |= a->ce ? IP_ECN_CE : 0;
	e = own_packet(&flow, &hdr, head, sizeof(head), (size_t)INA_LEN + a->len);
	ina_encode(&ina, head + e.head_len);
	e.head_len += INA_LEN;
	e.payload = data;
	e.pay_len = a->len;
	add_trailer(
		r, &e, icrc_headers(head + e.l3_off, (size_t)(e.head_len - e.l3_off)), a->pay_crc);
	emit(c, &e);
}

static void emit_ack(
	const struct nr_ctx *c, const struct wire_flow *flow, const struct wire_hdr *hdr)
{
	uint8_t head[NR_HEAD_LEN];
	struct nr_emit e = own_packet(flow, hdr, head, sizeof(head), 0);

	add_trailer(c->r, &e, icrc_headers(head + e.l3_off, (size_t)(e.head_len - e.l3_off)), 0);
	emit(c, &e);
}

void nr_emit_answer(const struct nr_ctx *c, const struct nr_in *in, uint8_t syndrome, uint32_t psn)
{
	const struct wire_hdr hdr = {
		.opcode = ROCE_ACK,
		.mig = c->pkt->mig,
		.syndrome = syndrome,
		.dqpn = in->reply_qpn,
		.psn = psn,
		.msn = in->ack_msn,
	};

	emit_ack(c, &in->flow, &hdr);
}

void nr_emit_rnr(const struct nr_ctx *c, const struct nr_in *in)
{
	nr_emit_answer(c, in, ROCE_AETH_RNR | STALL_TIMER_CODE, c->pkt->psn);
}

void nr_emit_failure(const struct nr_ctx *c, unsigned i)
{
	const bool up = i == NR_PARENT_EP;
	const struct wire_hdr hdr = {
		.opcode = ROCE_ACK,
		.mig = true,
		.syndrome = ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION,
		.dqpn = up ? c->r->parent_qpn : nr_in_at(c->r, i)->remote_qpn,
	};

	emit_ack(c, up ? &c->r->parent_flow : &nr_in_at(c->r, i)->flow, &hdr);
}

size_t nr_frame(const struct nr_emit *e, uint8_t *out)
{
	memcpy(out, e->head, e->head_len);
	if (e->pay_len)
		memcpy(out + e->head_len, e->payload, e->pay_len);
	memcpy(out + e->head_len + e->pay_len, e->tail, e->tail_len);
	return (size_t)e->head_len + e->pay_len + e->tail_len;
}
