/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/wire only: the opcode table, for the parser and builder to read without a call. */
#ifndef WIRE_OPCODE_H
#define WIRE_OPCODE_H

#include <stdint.h>

#include "lib/wire/roce.h"

struct opcode_info {
	uint16_t flags; /* enum roce_op_flags, 0: not defined */
	const char *name;
};

extern const struct opcode_info opcode_table[256];

/* Bytes of the extended headers. Sums bits instead of branching: runs for every packet. */
static inline unsigned ext_len(unsigned flags)
{
	return (flags & ROCE_F_RETH) * (sizeof(struct roce_reth) / ROCE_F_RETH) +
	       (flags & ROCE_F_AETH) * 4 / ROCE_F_AETH + (flags & ROCE_F_IMM) * 4 / ROCE_F_IMM +
	       (flags & ROCE_F_IETH) * 4 / ROCE_F_IETH + (flags & ROCE_F_DETH) * 8 / ROCE_F_DETH +
	       (flags & ROCE_F_ATOMIC) * 28 / ROCE_F_ATOMIC +
	       (flags & ROCE_F_ATOMICACK) * 8 / ROCE_F_ATOMICACK;
}

#endif
