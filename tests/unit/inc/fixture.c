/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/inc/fixture.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/bytes.h"

static void emit(void *arg, struct inc_group *g, const struct inc_emit *e)
{
	struct fx *fx = arg;

	for (unsigned ep = 0; ep < g->n_ep; ep++) {
		struct fx_out *o = &fx->out[fx->n_out];
		uint8_t tail[WIRE_MAX_TRAILER];
		unsigned tail_len;
		int head;

		if (!(e->out_mask >> ep & 1))
			continue;
		assert(fx->n_out < FX_MAX_OUT);
		fx->n_out++;
		o->ep = ep;
		head = inc_translate_header(g, ep, e, 1, o->frame, tail, &tail_len);
		assert(head > 0);
		if (e->pay_len)
			memcpy(o->frame + head, e->payload, e->pay_len);
		memcpy(o->frame + head + e->pay_len, tail, tail_len);
		o->len = (size_t)head + e->pay_len + tail_len;
		/* Whatever leaves must be a valid packet with a right ICRC. */
		assert(wire_parse(o->frame, o->len, &o->pkt) == WIRE_OK);
		assert(o->pkt.kind == WIRE_ROCE && wire_icrc_ok(o->frame, &o->pkt));
	}
}

static struct wire_ip address(const struct fx_opts *opts, unsigned host)
{
	struct wire_ip ip;
	int rc = wire_ip_parse(opts->ip6 ? "fd00::" : "10.0.0.0", &ip);

	assert(rc == 0);
	(void)rc;
	ip.b[15] = (uint8_t)host;
	return ip;
}

void fx_spec(const struct fx_opts *opts, struct inc_group_spec *spec, struct inc_ep_spec *ep)
{
	unsigned n = opts->n_hosts + (opts->parent ? 1 : 0);

	memset(ep, 0, n * sizeof(*ep));
	*spec = (struct inc_group_spec){
		.name = "test",
		.mode = opts->mode ? opts->mode : INC_MODE_2,
		.kind = opts->kind,
		.prim = opts->prim,
		.root = opts->root,
		.mtu = opts->mtu,
		.m = opts->m,
		.w = opts->w,
		.slots = opts->slots,
		.flags = opts->flags,
		.start_psn = opts->start_psn,
		.n_ranks = (uint16_t)n,
		.n_ep = (uint8_t)n,
		.ep = ep,
	};
	for (unsigned i = 0; i < n; i++) {
		ep[i].remote_ip = address(opts, 10 + i);
		ep[i].local_ip = address(opts, 1);
		ep[i].remote_qpn = FX_HOST_QPN + i;
		ep[i].port = (uint16_t)i;
		ep[i].parent = i == opts->n_hosts;
		ep[i].host = !ep[i].parent;
		ep[i].dmac[5] = (uint8_t)(10 + i);
		ep[i].smac[5] = 1;
		ep[i].n_ranks = 1;
		ep[i].ranks[0] = (uint16_t)i;
	}
}

void fx_open(struct fx *fx, const struct fx_opts *opts)
{
	struct inc_group_spec spec;
	struct inc_ep_spec *ep = calloc(opts->n_hosts + 1, sizeof(*ep));
	char err[INC_ERR_LEN];
	int rc;

	memset(fx, 0, sizeof(*fx));
	fx_spec(opts, &spec, ep);
	rc = inc_group_check(&spec, err);
	assert(rc == 0);
	fx->g = calloc(1, inc_group_bytes(&spec));
	fx->arena.size = inc_group_payload_bytes(&spec);
	fx->arena.base = malloc(fx->arena.size);
	memset(fx->arena.base, 0xee, fx->arena.size);
	fx->out = calloc(FX_MAX_OUT, sizeof(*fx->out));
	inc_group_init(fx->g, &spec, FX_SLOT, FX_GEN, 0);
	rc = inc_group_activate(fx->g, err);
	assert(rc == 0);
	(void)rc;
	inc_table_set(&fx->table, FX_SLOT, fx->g);
	fx->now = 1000000000;
	free(ep);
}

void fx_close(struct fx *fx)
{
	free(fx->g);
	free(fx->arena.base);
	free(fx->out);
}

enum inc_drop fx_frame(struct fx *fx, const uint8_t *frame, size_t len)
{
	const struct inc_sink sink = {fx, emit};
	struct inc_look look;
	struct wire_pkt pkt;
	uint32_t crc = 0;
	enum inc_drop drop;

	fx->n_out = 0;
	assert(wire_parse(frame, len, &pkt) == WIRE_OK);
	drop = inc_lookup(&fx->table, &pkt, 0, &look);
	if (drop != INC_OK)
		return drop;
	if (!inc_check_icrc(&look, frame, &pkt, &crc))
		abort();
	return inc_packet(
		look.group, &fx->arena, &look, &pkt, frame + pkt.pay_off, crc, fx->now, &sink);
}

void fx_tick(struct fx *fx)
{
	const struct inc_sink sink = {fx, emit};
	uint64_t next;

	fx->n_out = 0;
	next = inc_tick(fx->g, &fx->arena, fx->now, &sink);
	assert(next == fx->g->timer_ns);
	(void)next;
}

int fx_build(struct fx *fx, unsigned ep, const struct wire_hdr *hdr, const void *payload,
	size_t len, uint8_t *frame)
{
	const struct inc_ep *e = inc_ep_at(fx->g, ep);
	struct wire_flow flow = e->flow;
	struct wire_hdr h = *hdr;

	flow.src = e->flow.dst;
	flow.dst = e->flow.src;
	h.dqpn = e->local_qpn;
	return wire_build_frame(frame, FX_FRAME, &flow, &h, payload, len);
}

enum inc_drop fx_packet(
	struct fx *fx, unsigned ep, const struct wire_hdr *hdr, const void *payload, size_t len)
{
	uint8_t frame[FX_FRAME];
	int n = fx_build(fx, ep, hdr, payload, len, frame);

	assert(n > 0);
	return fx_frame(fx, frame, (size_t)n);
}

static void put_le(uint8_t *p, uint64_t v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

void fx_ctrl_payload(const struct fx *fx, uint64_t bytes, uint8_t payload[INC_CTRL_LEN])
{
	memset(payload, 0, INC_CTRL_LEN);
	memcpy(payload, "INC1", 4);
	put_le(payload + 4, (bytes + fx->g->mtu - 1) / fx->g->mtu, 4);
	put_le(payload + 8, bytes, 8);
	put_le(payload + 20, fx->g->m, 4);
}

uint32_t fx_imm(uint8_t seq, enum reduce_op op, enum reduce_dtype dtype)
{
	return 1u << 29 | (uint32_t)op << 23 | (uint32_t)dtype << 19 | seq;
}

enum inc_drop fx_control(struct fx *fx, unsigned ep, uint32_t psn, uint8_t seq, uint64_t bytes)
{
	return fx_control_of(fx, ep, psn, seq, bytes, INC_AR, 0);
}

enum inc_drop fx_control_of(struct fx *fx, unsigned ep, uint32_t psn, uint8_t seq, uint64_t bytes,
	enum inc_prim prim, unsigned root)
{
	enum reduce_op op = prim == INC_BC ? REDUCE_NONE : REDUCE_SUM;
	uint8_t payload[INC_CTRL_LEN];
	const struct wire_hdr hdr = {
		.opcode = ROCE_SEND_ONLY_IMM | inc_transport(fx->g),
		.ackreq = true,
		.psn = psn,
		.imm = fx_imm(seq, op, REDUCE_INT32) | (uint32_t)prim << 26 | root << 8,
	};

	fx_ctrl_payload(fx, bytes, payload);
	return fx_packet(fx, ep, &hdr, payload, sizeof(payload));
}

enum inc_drop fx_data(
	struct fx *fx, unsigned ep, uint32_t psn, uint8_t opcode, int32_t value, unsigned words)
{
	int32_t payload[1024];
	const struct wire_hdr hdr = {.opcode = opcode | inc_transport(fx->g), .psn = psn};

	for (unsigned i = 0; i < words; i++)
		payload[i] = value + (int32_t)i;
	return fx_packet(fx, ep, &hdr, payload, words * sizeof(payload[0]));
}

enum inc_drop fx_ack(struct fx *fx, unsigned ep, uint32_t psn, uint8_t syndrome)
{
	const struct wire_hdr hdr = {.opcode = ROCE_ACK | inc_transport(fx->g),
		.psn = psn,
		.syndrome = syndrome,
		.msn = 5};

	return fx_packet(fx, ep, &hdr, NULL, 0);
}

enum inc_drop fx_map(struct fx *fx, unsigned ep, uint32_t psn, uint64_t map)
{
	const struct wire_hdr hdr = {.opcode = ROCE_SEL | ROCE_ACK,
		.psn = psn,
		.syndrome = ROCE_AETH_NAK | ROCE_NAK_SEQUENCE,
		.msn = 5};
	uint8_t bytes[8];

	put_le(bytes, map, sizeof(bytes));
	return fx_packet(fx, ep, &hdr, bytes, map ? sizeof(bytes) : 0);
}

int32_t fx_word(const struct fx_out *out, unsigned k)
{
	int32_t v;

	memcpy(&v, out->frame + out->pkt.pay_off + k * sizeof(v), sizeof(v));
	return v;
}
