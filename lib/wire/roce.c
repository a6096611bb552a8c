/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/roce.h"

#include <stddef.h>

#include "lib/wire/opcode.h"

/* Short names for the table below. */
enum {
	V = ROCE_F_VALID,
	FIRST = ROCE_F_FIRST,
	LAST = ROCE_F_LAST,
	ONLY = ROCE_F_FIRST | ROCE_F_LAST,
	SEND = ROCE_F_VALID | ROCE_F_SEND | ROCE_F_REQUEST | ROCE_F_PAYLOAD,
	WRITE = ROCE_F_VALID | ROCE_F_WRITE | ROCE_F_REQUEST | ROCE_F_PAYLOAD,
	READ_RESP = ROCE_F_VALID | ROCE_F_PAYLOAD,
	SEL_SEND = SEND | ROCE_F_POS,
	SEL_WRITE = WRITE | ROCE_F_RETH | ROCE_F_POS,
	ATOMIC = ROCE_F_VALID | ROCE_F_REQUEST | ROCE_F_ATOMIC | ONLY,
};

/* Bytes of the extended headers, as a constant expression. */
#define EXT_LEN(flags)                                                        \
	(((flags)&ROCE_F_RETH ? sizeof(struct roce_reth) : 0) +               \
		((flags)&ROCE_F_POS ? sizeof(struct roce_poseth) : 0) +       \
		((flags)&ROCE_F_AETH ? sizeof(struct roce_aeth) : 0) +        \
		((flags)&ROCE_F_IMM ? sizeof(struct roce_immdt) : 0) +        \
		((flags)&ROCE_F_IETH ? sizeof(struct roce_ieth) : 0) +        \
		((flags)&ROCE_F_DETH ? sizeof(struct roce_deth) : 0) +        \
		((flags)&ROCE_F_ATOMIC ? sizeof(struct roce_atomiceth) : 0) + \
		((flags)&ROCE_F_ATOMICACK ? sizeof(struct roce_atomicacketh) : 0))

#define OPCODE(flags, name)                   \
	{                                     \
		(flags), EXT_LEN(flags), name \
	}

/* IBTA table 38 for the transports that RoCEv2 carries here; RD and XRC are not defined. Then RC's
 * again, for ROCE_SEL. */
const struct opcode_info opcode_table[256] = {
	[ROCE_RC | ROCE_SEND_FIRST] = OPCODE(SEND | FIRST, "RC SEND FIRST"),
	[ROCE_RC | ROCE_SEND_MIDDLE] = OPCODE(SEND, "RC SEND MIDDLE"),
	[ROCE_RC | ROCE_SEND_LAST] = OPCODE(SEND | LAST, "RC SEND LAST"),
	[ROCE_RC | ROCE_SEND_LAST_IMM] =
		OPCODE(SEND | LAST | ROCE_F_IMM, "RC SEND LAST with Immediate"),
	[ROCE_RC | ROCE_SEND_ONLY] = OPCODE(SEND | ONLY, "RC SEND ONLY"),
	[ROCE_RC | ROCE_SEND_ONLY_IMM] =
		OPCODE(SEND | ONLY | ROCE_F_IMM, "RC SEND ONLY with Immediate"),
	[ROCE_RC | ROCE_WRITE_FIRST] = OPCODE(WRITE | FIRST | ROCE_F_RETH, "RC WRITE FIRST"),
	[ROCE_RC | ROCE_WRITE_MIDDLE] = OPCODE(WRITE, "RC WRITE MIDDLE"),
	[ROCE_RC | ROCE_WRITE_LAST] = OPCODE(WRITE | LAST, "RC WRITE LAST"),
	[ROCE_RC | ROCE_WRITE_LAST_IMM] =
		OPCODE(WRITE | LAST | ROCE_F_IMM, "RC WRITE LAST with Immediate"),
	[ROCE_RC | ROCE_WRITE_ONLY] = OPCODE(WRITE | ONLY | ROCE_F_RETH, "RC WRITE ONLY"),
	[ROCE_RC | ROCE_WRITE_ONLY_IMM] =
		OPCODE(WRITE | ONLY | ROCE_F_RETH | ROCE_F_IMM, "RC WRITE ONLY with Immediate"),
	[ROCE_RC | ROCE_READ_REQUEST] =
		OPCODE(V | ROCE_F_REQUEST | ONLY | ROCE_F_RETH, "RC READ REQUEST"),
	[ROCE_RC | ROCE_READ_RESP_FIRST] =
		OPCODE(READ_RESP | FIRST | ROCE_F_AETH, "RC READ RESPONSE FIRST"),
	[ROCE_RC | ROCE_READ_RESP_MIDDLE] = OPCODE(READ_RESP, "RC READ RESPONSE MIDDLE"),
	[ROCE_RC | ROCE_READ_RESP_LAST] =
		OPCODE(READ_RESP | LAST | ROCE_F_AETH, "RC READ RESPONSE LAST"),
	[ROCE_RC | ROCE_READ_RESP_ONLY] =
		OPCODE(READ_RESP | ONLY | ROCE_F_AETH, "RC READ RESPONSE ONLY"),
	[ROCE_RC | ROCE_ACK] = OPCODE(V | ROCE_F_AETH, "RC ACKNOWLEDGE"),
	[ROCE_RC | ROCE_ATOMIC_ACK] =
		OPCODE(V | ROCE_F_AETH | ROCE_F_ATOMICACK, "RC ATOMIC ACKNOWLEDGE"),
	[ROCE_RC | ROCE_CMP_SWAP] = OPCODE(ATOMIC, "RC COMPARE SWAP"),
	[ROCE_RC | ROCE_FETCH_ADD] = OPCODE(ATOMIC, "RC FETCH ADD"),
	[ROCE_RC | ROCE_SEND_LAST_INV] =
		OPCODE(SEND | LAST | ROCE_F_IETH, "RC SEND LAST with Invalidate"),
	[ROCE_RC | ROCE_SEND_ONLY_INV] =
		OPCODE(SEND | ONLY | ROCE_F_IETH, "RC SEND ONLY with Invalidate"),

	[ROCE_UC | ROCE_SEND_FIRST] = OPCODE(SEND | FIRST, "UC SEND FIRST"),
	[ROCE_UC | ROCE_SEND_MIDDLE] = OPCODE(SEND, "UC SEND MIDDLE"),
	[ROCE_UC | ROCE_SEND_LAST] = OPCODE(SEND | LAST, "UC SEND LAST"),
	[ROCE_UC | ROCE_SEND_LAST_IMM] =
		OPCODE(SEND | LAST | ROCE_F_IMM, "UC SEND LAST with Immediate"),
	[ROCE_UC | ROCE_SEND_ONLY] = OPCODE(SEND | ONLY, "UC SEND ONLY"),
	[ROCE_UC | ROCE_SEND_ONLY_IMM] =
		OPCODE(SEND | ONLY | ROCE_F_IMM, "UC SEND ONLY with Immediate"),
	[ROCE_UC | ROCE_WRITE_FIRST] = OPCODE(WRITE | FIRST | ROCE_F_RETH, "UC WRITE FIRST"),
	[ROCE_UC | ROCE_WRITE_MIDDLE] = OPCODE(WRITE, "UC WRITE MIDDLE"),
	[ROCE_UC | ROCE_WRITE_LAST] = OPCODE(WRITE | LAST, "UC WRITE LAST"),
	[ROCE_UC | ROCE_WRITE_LAST_IMM] =
		OPCODE(WRITE | LAST | ROCE_F_IMM, "UC WRITE LAST with Immediate"),
	[ROCE_UC | ROCE_WRITE_ONLY] = OPCODE(WRITE | ONLY | ROCE_F_RETH, "UC WRITE ONLY"),
	[ROCE_UC | ROCE_WRITE_ONLY_IMM] =
		OPCODE(WRITE | ONLY | ROCE_F_RETH | ROCE_F_IMM, "UC WRITE ONLY with Immediate"),

	[ROCE_UD | ROCE_SEND_ONLY] = OPCODE(SEND | ONLY | ROCE_F_DETH, "UD SEND ONLY"),
	[ROCE_UD | ROCE_SEND_ONLY_IMM] =
		OPCODE(SEND | ONLY | ROCE_F_DETH | ROCE_F_IMM, "UD SEND ONLY with Immediate"),

	[ROCE_SEL | ROCE_SEND_FIRST] = OPCODE(SEL_SEND | FIRST, "SEL SEND FIRST"),
	[ROCE_SEL | ROCE_SEND_MIDDLE] = OPCODE(SEL_SEND, "SEL SEND MIDDLE"),
	[ROCE_SEL | ROCE_SEND_LAST] = OPCODE(SEL_SEND | LAST, "SEL SEND LAST"),
	[ROCE_SEL | ROCE_SEND_LAST_IMM] =
		OPCODE(SEL_SEND | LAST | ROCE_F_IMM, "SEL SEND LAST with Immediate"),
	[ROCE_SEL | ROCE_SEND_ONLY] = OPCODE(SEL_SEND | ONLY, "SEL SEND ONLY"),
	[ROCE_SEL | ROCE_SEND_ONLY_IMM] =
		OPCODE(SEL_SEND | ONLY | ROCE_F_IMM, "SEL SEND ONLY with Immediate"),
	[ROCE_SEL | ROCE_WRITE_FIRST] = OPCODE(SEL_WRITE | FIRST, "SEL WRITE FIRST"),
	[ROCE_SEL | ROCE_WRITE_MIDDLE] = OPCODE(SEL_WRITE, "SEL WRITE MIDDLE"),
	[ROCE_SEL | ROCE_WRITE_LAST] = OPCODE(SEL_WRITE | LAST, "SEL WRITE LAST"),
	[ROCE_SEL | ROCE_WRITE_LAST_IMM] =
		OPCODE(SEL_WRITE | LAST | ROCE_F_IMM, "SEL WRITE LAST with Immediate"),
	[ROCE_SEL | ROCE_WRITE_ONLY] = OPCODE(SEL_WRITE | ONLY, "SEL WRITE ONLY"),
	[ROCE_SEL | ROCE_WRITE_ONLY_IMM] =
		OPCODE(SEL_WRITE | ONLY | ROCE_F_IMM, "SEL WRITE ONLY with Immediate"),
	[ROCE_SEL | ROCE_READ_REQUEST] =
		OPCODE(V | ROCE_F_REQUEST | ONLY | ROCE_F_RETH, "SEL READ REQUEST"),
	[ROCE_SEL | ROCE_READ_RESP_FIRST] =
		OPCODE(READ_RESP | FIRST | ROCE_F_AETH, "SEL READ RESPONSE FIRST"),
	[ROCE_SEL | ROCE_READ_RESP_MIDDLE] = OPCODE(READ_RESP, "SEL READ RESPONSE MIDDLE"),
	[ROCE_SEL | ROCE_READ_RESP_LAST] =
		OPCODE(READ_RESP | LAST | ROCE_F_AETH, "SEL READ RESPONSE LAST"),
	[ROCE_SEL | ROCE_READ_RESP_ONLY] =
		OPCODE(READ_RESP | ONLY | ROCE_F_AETH, "SEL READ RESPONSE ONLY"),
	[ROCE_SEL | ROCE_ACK] = OPCODE(V | ROCE_F_AETH | ROCE_F_PAYLOAD, "SEL ACKNOWLEDGE"),
	[ROCE_SEL | ROCE_ATOMIC_ACK] =
		OPCODE(V | ROCE_F_AETH | ROCE_F_ATOMICACK, "SEL ATOMIC ACKNOWLEDGE"),
	[ROCE_SEL | ROCE_CMP_SWAP] = OPCODE(ATOMIC, "SEL COMPARE SWAP"),
	[ROCE_SEL | ROCE_FETCH_ADD] = OPCODE(ATOMIC, "SEL FETCH ADD"),
	[ROCE_SEL | ROCE_SEND_LAST_INV] =
		OPCODE(SEL_SEND | LAST | ROCE_F_IETH, "SEL SEND LAST with Invalidate"),
	[ROCE_SEL | ROCE_SEND_ONLY_INV] =
		OPCODE(SEL_SEND | ONLY | ROCE_F_IETH, "SEL SEND ONLY with Invalidate"),

	/* The 16 reserved bytes of a CNP are its payload here. */
	[ROCE_CNP] = OPCODE(V | ROCE_F_PAYLOAD, "CNP"),
};

uint16_t roce_opcode_flags(uint8_t opcode)
{
	return opcode_table[opcode].flags;
}

const char *roce_opcode_name(uint8_t opcode)
{
	const char *name = opcode_table[opcode].name;

	return name ? name : "unknown";
}

unsigned roce_ext_len(uint16_t flags)
{
	return EXT_LEN(flags);
}

uint64_t roce_rnr_ns(unsigned code)
{
	/* IBTA table 45 in units of 10 us. */
	static const uint32_t table[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152};

	return (uint64_t)table[code & ROCE_AETH_VALUE] * 10000;
}

uint64_t roce_timeout_ns(unsigned code)
{
	code &= 31;
	return code ? UINT64_C(4096) << code : 0;
}

unsigned roce_mtu_bytes(unsigned code)
{
	return code >= 1 && code <= 5 ? 128u << code : 0;
}

unsigned roce_mtu_code(unsigned bytes)
{
	for (unsigned code = 1; code <= 5; code++)
		if (roce_mtu_bytes(code) == bytes)
			return code;
	return 0;
}
