/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/wire only: the opcode table, for the parser and builder to read without a call. */
#ifndef WIRE_OPCODE_H
#define WIRE_OPCODE_H

#include <stdint.h>

#include "lib/wire/roce.h"

struct opcode_info {
	uint16_t flags;  /* enum roce_op_flags, 0: not defined */
	uint8_t ext_len; /* bytes of the extended headers */
	const char *name;
};

extern const struct opcode_info opcode_table[256];

#endif
