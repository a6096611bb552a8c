/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/msg.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { CTRL_VERSION = 1, CTRL_MAGIC = 0x31434e49 };

/* Little-endian throughout, unlike the headers around it. */
struct ctrl_layout {
	uint32_t magic;
	uint32_t n;
	uint64_t bytes;
	uint32_t flags;
	uint32_t m;
	uint64_t tag;
};
_Static_assert(sizeof(struct ctrl_layout) == CCL_CTRL_LEN, "control payload is 32 bytes");

uint32_t ccl_ctrl_imm(const struct ccl_ctrl *c)
{
	return (uint32_t)CTRL_VERSION << 29 | (c->prim & 7u) << 26 | (c->op & 7u) << 23 |
	       (c->dtype & 15u) << 19 | (c->root & 0x7ffu) << 8 | c->op_seq;
}

void ccl_ctrl_encode(const struct ccl_ctrl *c, uint8_t out[CCL_CTRL_LEN])
{
	const struct ctrl_layout l = {
		.magic = htole32(CTRL_MAGIC),
		.n = htole32(c->n),
		.bytes = htole64(c->bytes),
		.flags = htole32(c->flags),
		.m = htole32(c->m),
		.tag = htole64(c->tag),
	};

	memcpy(out, &l, sizeof(l));
}

int ccl_ctrl_decode(uint32_t imm, const uint8_t in[CCL_CTRL_LEN], struct ccl_ctrl *c)
{
	struct ctrl_layout l;

	memcpy(&l, in, sizeof(l));
	if (imm >> 29 != CTRL_VERSION || le32toh(l.magic) != CTRL_MAGIC)
		return -EINVAL;
	*c = (struct ccl_ctrl){
		.prim = imm >> 26 & 7,
		.op = imm >> 23 & 7,
		.dtype = imm >> 19 & 15,
		.root = imm >> 8 & 0x7ff,
		.op_seq = imm & 0xff,
		.n = le32toh(l.n),
		.bytes = le64toh(l.bytes),
		.flags = le32toh(l.flags),
		.m = le32toh(l.m),
		.tag = le64toh(l.tag),
	};
	return 0;
}

const char *ccl_ctrl_differ(const struct ccl_ctrl *a, const struct ccl_ctrl *b)
{
	const struct {
		const char *name;
		bool differs;
	} field[] = {
		{"primitive", a->prim != b->prim},
		{"op", a->op != b->op},
		{"dtype", a->dtype != b->dtype},
		{"root", a->root != b->root},
		{"operation number", a->op_seq != b->op_seq},
		{"size in bytes", a->bytes != b->bytes},
		{"number of packets", a->n != b->n},
		{"packets per message", a->m != b->m},
		{"flags", a->flags != b->flags},
		{"tag", a->tag != b->tag},
	};

	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++)
		if (field[i].differs)
			return field[i].name;
	return NULL;
}

void ccl_plan_init(struct ccl_plan *p, uint64_t bytes, uint32_t mtu, uint32_t m)
{
	const uint32_t n = (uint32_t)((bytes + mtu - 1) / mtu);

	*p = (struct ccl_plan){
		.bytes = bytes, .mtu = mtu, .m = m, .n = n, .n_msgs = 1 + (n + m - 1) / m};
}

uint64_t ccl_plan_offset(const struct ccl_plan *p, uint32_t msg)
{
	return (uint64_t)(msg - 1) * p->m * p->mtu;
}

uint32_t ccl_plan_len(const struct ccl_plan *p, uint32_t msg)
{
	if (msg == 0)
		return CCL_CTRL_LEN;
	if (msg < p->n_msgs - 1)
		return p->m * p->mtu;
	return (uint32_t)(p->bytes - ccl_plan_offset(p, msg));
}

uint32_t ccl_plan_psn(const struct ccl_plan *p, uint32_t msg)
{
	return msg == 0 ? 0 : 1 + (msg - 1) * p->m;
}

uint64_t ccl_plan_part(uint64_t left, uint32_t mtu, uint32_t m, uint32_t max_packets)
{
	const uint64_t most = (uint64_t)(max_packets / m) * m * mtu;

	return left < most ? left : most;
}
