/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks do: operations laid out over PSNs, who sends and who receives each of them, and
 * payloads that show who contributed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

static uint8_t data_opcode(const struct mc_psn *q, bool write)
{
	static const uint8_t sends[2][2] = {{ROCE_SEND_MIDDLE, ROCE_SEND_LAST},
		{ROCE_SEND_FIRST, ROCE_SEND_ONLY}},
			     writes[2][2] = {{ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST_IMM},
				     {ROCE_WRITE_FIRST, ROCE_WRITE_ONLY_IMM}};

	return (write ? writes : sends)[q->first][q->last];
}

static void lay_out_psn(struct mc_program *p, const struct mc_config *c, unsigned op, unsigned k)
{
	const struct mc_op *o = &c->op[op];
	bool ctrl = k == 0, own_route = !ctrl || c->kind == INC_SINGLE;
	unsigned all = (1u << c->n_ranks) - 1, root = 1u << o->root;
	unsigned in_msg = ctrl ? 0 : (k - 1) % c->m;
	struct mc_psn *q = &p->psn[p->n];

	q->op = (uint8_t)op;
	q->ctrl = ctrl;
	q->first = in_msg == 0;
	q->last = ctrl || in_msg == c->m - 1u || k == o->n;
	q->prim = own_route ? o->prim : INC_AR;
	q->root = own_route ? o->root : 0;
	q->senders = (uint8_t)(q->prim == INC_AR ? all : q->prim == INC_BC ? root : all & ~root);
	q->receivers = (uint8_t)(q->prim == INC_AR ? all : q->prim == INC_BC ? all & ~root : root);
	q->len = ctrl ? INC_CTRL_LEN : k == o->n ? MC_SHORT : MC_MTU;
	q->opcode = ctrl ? ROCE_SEND_ONLY_IMM : data_opcode(q, c->flags & INC_F_WRITE);
	q->opcode |= c->flags & INC_F_SR ? ROCE_SEL : 0;
	q->msg = (uint8_t)p->n_msg;
	if (q->last)
		p->msg_last[p->n_msg++] = (uint8_t)p->n;
	p->n++;
}

/* Packet k of an operation in a ring: messages have M packets, so zeros follow what is carried; a
 * barrier is one message of nothing else. */
static void lay_out_ring(struct mc_program *p, const struct mc_config *c, unsigned op, unsigned k)
{
	const unsigned n = c->op[op].n;
	struct mc_psn *q = &p->psn[p->n];

	*q = (struct mc_psn){.op = (uint8_t)op,
		.prim = INC_AR,
		.first = k % c->m == 0,
		.last = k % c->m == c->m - 1u,
		.blank = k >= n,
		.senders = (uint8_t)((1u << c->n_ranks) - 1),
		.receivers = (uint8_t)((1u << c->n_ranks) - 1),
		.len = MC_MTU,
		.msg = (uint8_t)p->n_msg};
	if (q->last && k + 1 >= n)
		q->len = q->blank && q->first ? INA_LEN : MC_SHORT + (q->first ? INA_LEN : 0);
	q->opcode = data_opcode(q, true);
	if (q->last)
		p->msg_last[p->n_msg++] = (uint8_t)p->n;
	p->n++;
}

static void make_ring(struct mc_program *p, const struct mc_config *c)
{
	for (unsigned op = 0; op < c->n_ops; op++) {
		unsigned n = c->op[op].n;

		p->ctrl[op] = (uint8_t)p->n; /* there is none: where it begins */
		for (unsigned k = 0; k < (n ? (n + c->m - 1u) / c->m : 1u) * c->m; k++)
			lay_out_ring(p, c, op, k);
	}
	p->ctrl[c->n_ops] = (uint8_t)p->n;
}

void mc_program_make(struct mc_program *p, const struct mc_config *c)
{
	memset(p, 0, sizeof(*p));
	if (c->mode == MC_NETREDUCE) {
		make_ring(p, c);
		return;
	}
	for (unsigned op = 0; op < c->n_ops; op++) {
		p->ctrl[op] = (uint8_t)p->n;
		for (unsigned k = 0; k <= c->op[op].n; k++)
			lay_out_psn(p, c, op, k);
	}
	p->ctrl[c->n_ops] = (uint8_t)p->n;
}

static void put_le32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void control_payload(const struct mc_config *c, unsigned op, bool differs, uint8_t *out)
{
	unsigned n = c->op[op].n;

	memset(out, 0, INC_CTRL_LEN);
	put_le32(out, 0x31434e49);
	put_le32(out + 4, n);
	put_le32(out + 8, n ? (n - 1) * MC_MTU + MC_SHORT : 0);
	put_le32(out + 16, c->flags & INC_F_WRITE ? 1 : 0);
	put_le32(out + 20, c->m);
	out[24] = differs;
}

/* Four bits for each rank: 32-bit sums whose digits are counts. Words 0, 1, 2 repeat: who is in it,
 * and the PSN's two digits. */
static unsigned data_payload(unsigned ranks, unsigned i, unsigned len, uint8_t *out)
{
	uint32_t word[3] = {0};

	for (unsigned r = 0; ranks >> r; r++) {
		if (!(ranks >> r & 1))
			continue;
		word[0] += 1u << 4 * r;
		word[1] += (i & 15) << 4 * r;
		word[2] += (i >> 4) << 4 * r;
	}
	for (unsigned at = 0; at < len; at += 4)
		put_le32(out + at, word[at / 4 % 3]);
	return len;
}

/* Rank r's header in front of a message's first packet, then the shares of some. */
static unsigned ring_payload(const struct mc_config *c, const struct mc_psn *q, unsigned r,
	unsigned ranks, unsigned i, uint8_t *out)
{
	const bool differs = c->mismatch_rank == r && c->mismatch_op == q->op;
	const struct ina_hdr ina = {.ring = 1,
		.rank = (uint16_t)r,
		.msg = (uint32_t)MC_FIRST_MSG + q->msg,
		.packets = c->m,
		.dtype = REDUCE_INT32,
		.op = differs ? REDUCE_MAX : REDUCE_SUM};
	const unsigned at = q->first ? INA_LEN : 0;

	if (q->first)
		ina_encode(&ina, out);
	memset(out + at, 0, q->len - at);
	if (!q->blank)
		data_payload(ranks, i, q->len - at, out + at);
	return q->len;
}

enum { OF_AGAIN = 8 << 4 }; /* PSNs of the second group, in payloads */

unsigned mc_payload_sent(const struct mc_config *c, const struct mc_program *p, unsigned r,
	bool again, unsigned i, uint8_t *out)
{
	const struct mc_psn *q = &p->psn[i];

	if (c->mode == MC_NETREDUCE)
		return ring_payload(c, q, r, 1u << r, i, out);
	if (!q->ctrl)
		return data_payload(1u << r, i + again * OF_AGAIN, q->len, out);
	control_payload(c, q->op, c->mismatch_rank == r && c->mismatch_op == q->op, out);
	return INC_CTRL_LEN;
}

unsigned mc_payload_due(const struct mc_config *c, const struct mc_program *p, unsigned r,
	bool again, unsigned i, uint8_t *out)
{
	const struct mc_psn *q = &p->psn[i];

	if (c->mode == MC_NETREDUCE)
		return ring_payload(c, q, (r + c->n_ranks - 1u) % c->n_ranks, q->senders, i, out);

	if (!q->ctrl)
		return data_payload(q->senders, i + again * OF_AGAIN, q->len, out);
	control_payload(c, q->op, false, out);
	return INC_CTRL_LEN;
}

bool mc_has_imm(const struct mc_config *c, const struct mc_psn *q)
{
	return c->mode == MC_NETREDUCE ? q->last : q->ctrl || (c->flags & INC_F_WRITE && q->last);
}

/* Messages of data only: one behind the other, in the whole life of a group. */
uint64_t mc_write_va(const struct mc_config *c, const struct mc_program *p, unsigned i)
{
	const unsigned controls = c->mode == MC_NETREDUCE ? 0 : p->psn[i].op + 1u;

	return MC_WRITE_VA +
	       (p->psn[i].msg - controls) * (uint64_t)(c->m * MC_MTU) % mc_write_room(c);
}

uint32_t mc_write_room(const struct mc_config *c)
{
	return (uint32_t)c->w * c->m * MC_MTU;
}

uint32_t mc_write_rkey(unsigned r)
{
	return 0x1000 + r;
}

uint32_t mc_write_len(const struct mc_config *c, const struct mc_program *p, unsigned i)
{
	uint32_t len = 0;

	if (c->mode == MC_NETREDUCE)
		return c->m * MC_MTU;
	while (!p->psn[i].first)
		i--;
	do
		len += p->psn[i].len;
	while (!p->psn[i++].last);
	return len;
}

uint32_t mc_imm(const struct mc_config *c, const struct mc_program *p, unsigned i)
{
	const struct mc_op *o = &c->op[p->psn[i].op];
	const bool sums = o->prim != INC_BC && o->n > 0; /* else a Broadcast, or a Barrier */
	const uint32_t op = sums ? REDUCE_SUM : REDUCE_NONE;
	const uint32_t dtype = sums ? REDUCE_INT32 : REDUCE_BYTES;

	if (c->mode == MC_NETREDUCE)
		return p->psn[i].msg;
	if (!p->psn[i].ctrl)
		return (i - p->ctrl[p->psn[i].op] - 1u) / c->m;
	return 1u << 29 | (uint32_t)o->prim << 26 | op << 23 | dtype << 19 |
	       (uint32_t)o->root << 8 | p->psn[i].op;
}
