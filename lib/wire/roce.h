/* SPDX-License-Identifier: BSD-3-Clause */
/* RoCEv2 transport headers: layouts, opcodes, syndromes (IBTA vol. 1, 5.2, 9.2-9.5; annex A17).
 * Everything on the wire is big-endian unless said otherwise. These are the only declarations of
 * the layouts in the tree; wire/frame.h parses and builds them. */
#ifndef WIRE_ROCE_H
#define WIRE_ROCE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum { ROCE_UDP_PORT = 4791, ROCE_ICRC_LEN = 4, ROCE_PKEY_DEFAULT = 0xffff };

/* Base transport header.
 *
 *   0        8 9 10  12      16               32
 *   | opcode |S|M|Pad| TVer  |     P_Key      |
 *   |F|B| reserved   |     destination QPN    |
 *   |A|   reserved   |     PSN                |
 */
struct roce_bth {
	uint8_t opcode;
	uint8_t flags; /* ROCE_BTH_SE, _MIG, pad count, TVer */
	uint8_t pkey[2];
	uint8_t fecn; /* FECN, BECN, reserved: not covered by the ICRC */
	uint8_t dqpn[3];
	uint8_t ackreq; /* AckReq in bit 7 */
	uint8_t psn[3];
};
static_assert(sizeof(struct roce_bth) == 12, "BTH is 12 bytes");

enum {
	ROCE_BTH_SE = 0x80,
	ROCE_BTH_MIG = 0x40,
	ROCE_BTH_PAD_SHIFT = 4,
	ROCE_BTH_TVER_MASK = 0x0f,
	ROCE_BTH_FECN = 0x80,
	ROCE_BTH_BECN = 0x40,
	ROCE_BTH_ACKREQ = 0x80,
};

struct roce_reth {
	uint8_t va[8];
	uint8_t rkey[4];
	uint8_t dmalen[4];
};
static_assert(sizeof(struct roce_reth) == 16, "RETH is 16 bytes");

struct roce_aeth {
	uint8_t syndrome;
	uint8_t msn[3];
};
static_assert(sizeof(struct roce_aeth) == 4, "AETH is 4 bytes");

struct roce_atomiceth {
	uint8_t va[8];
	uint8_t rkey[4];
	uint8_t swap_add[8];
	uint8_t compare[8];
};
static_assert(sizeof(struct roce_atomiceth) == 28, "AtomicETH is 28 bytes");

struct roce_atomicacketh {
	uint8_t orig[8];
};

struct roce_immdt {
	uint8_t imm[4];
};

struct roce_ieth {
	uint8_t rkey[4];
};

struct roce_deth {
	uint8_t qkey[4];
	uint8_t reserved;
	uint8_t sqpn[3];
};
static_assert(sizeof(struct roce_deth) == 8, "DETH is 8 bytes");

/* Of ROCE_SEL: where in its message a packet's payload begins, in bytes, and how many messages
 * before this one have used up a receive request since the connection began. With it, and the RETH
 * that each packet of a WRITE has, any packet has its place by itself. */
struct roce_poseth {
	uint8_t offset[4];
	uint8_t recv[4];
};
static_assert(sizeof(struct roce_poseth) == 8, "PosETH is 8 bytes");

/* Bytes 16 of zeros follow the BTH of a CNP (annex A17.9.3). */
enum { ROCE_CNP_LEN = 16 };

/* Opcode = transport (bits 7..5) and operation (bits 4..0). */
enum roce_transport {
	ROCE_RC = 0x00,
	ROCE_UC = 0x20,
	ROCE_RD = 0x40,
	ROCE_UD = 0x60,
	ROCE_CNP_T = 0x80,
	/* RC with selective acknowledgement: among the opcodes left to manufacturers (0xc0..0xff),
	 * spoken only between queue pairs that were both made for it. MRC's are 0xc0..0xdf. */
	ROCE_SEL = 0xe0
};

enum roce_op {
	ROCE_SEND_FIRST = 0x00,
	ROCE_SEND_MIDDLE = 0x01,
	ROCE_SEND_LAST = 0x02,
	ROCE_SEND_LAST_IMM = 0x03,
	ROCE_SEND_ONLY = 0x04,
	ROCE_SEND_ONLY_IMM = 0x05,
	ROCE_WRITE_FIRST = 0x06,
	ROCE_WRITE_MIDDLE = 0x07,
	ROCE_WRITE_LAST = 0x08,
	ROCE_WRITE_LAST_IMM = 0x09,
	ROCE_WRITE_ONLY = 0x0a,
	ROCE_WRITE_ONLY_IMM = 0x0b,
	ROCE_READ_REQUEST = 0x0c,
	ROCE_READ_RESP_FIRST = 0x0d,
	ROCE_READ_RESP_MIDDLE = 0x0e,
	ROCE_READ_RESP_LAST = 0x0f,
	ROCE_READ_RESP_ONLY = 0x10,
	ROCE_ACK = 0x11,
	ROCE_ATOMIC_ACK = 0x12,
	ROCE_CMP_SWAP = 0x13,
	ROCE_FETCH_ADD = 0x14,
	ROCE_SEND_LAST_INV = 0x16,
	ROCE_SEND_ONLY_INV = 0x17,
	ROCE_OP_MASK = 0x1f,
	ROCE_CNP = 0x81, /* a whole opcode, not an operation */
};

/* What an opcode is made of. */
enum roce_op_flags {
	ROCE_F_VALID = 1 << 0,
	ROCE_F_RETH = 1 << 1,
	ROCE_F_AETH = 1 << 2,
	ROCE_F_IMM = 1 << 3,
	ROCE_F_IETH = 1 << 4,
	ROCE_F_DETH = 1 << 5,
	ROCE_F_ATOMIC = 1 << 6,
	ROCE_F_ATOMICACK = 1 << 7,
	ROCE_F_PAYLOAD = 1 << 8, /* may carry payload */
	ROCE_F_FIRST = 1 << 9,   /* begins a message (ONLY has FIRST and LAST) */
	ROCE_F_LAST = 1 << 10,   /* ends a message */
	ROCE_F_SEND = 1 << 11,
	ROCE_F_WRITE = 1 << 12,
	ROCE_F_REQUEST = 1 << 13, /* goes to a responder, consumes PSNs */
	ROCE_F_POS = 1 << 14,
};

/* Flags of a whole opcode byte, 0 for one that is not defined here. */
uint16_t roce_opcode_flags(uint8_t opcode);

/* "RC SEND ONLY with Immediate"; "0x7f" style names never returned: unknown gives "unknown". */
const char *roce_opcode_name(uint8_t opcode);

/* Bytes of the extended headers between BTH and payload. */
unsigned roce_ext_len(uint16_t flags);

/* AETH syndrome: bits 7..5 the class, 4..0 credits, timer or NAK code (IBTA 9.7.5.1.2). */
enum roce_syndrome {
	ROCE_AETH_ACK = 0x00,
	ROCE_AETH_RNR = 0x20,
	ROCE_AETH_NAK = 0x60,
	ROCE_AETH_CLASS = 0xe0,
	ROCE_AETH_VALUE = 0x1f,
	ROCE_AETH_NO_CREDITS = 0x1f, /* credit value "no end-to-end flow control" */
};

enum roce_nak { /* value field of ROCE_AETH_NAK */
	ROCE_NAK_SEQUENCE = 0,
	ROCE_NAK_INVALID_REQUEST = 1,
	ROCE_NAK_REMOTE_ACCESS = 2,
	ROCE_NAK_REMOTE_OPERATION = 3,
	ROCE_NAK_INVALID_RD = 4,
};

/* The payload of a ROCE_SEL ACKNOWLEDGE that is a sequence NAK: bit i, from the lowest of the first
 * byte on, says that the PSN i + 1 behind the one missing has arrived. */
enum { ROCE_SACK_LEN = 64, ROCE_SACK_BITS = ROCE_SACK_LEN * 8 };
static inline bool roce_sack_bit(const uint8_t *map, unsigned i)
{
	return map[i / 8] >> i % 8 & 1;
}

/* RNR timer code 0..31 in nanoseconds (IBTA table 45; code 0 is 655.36 ms). */
uint64_t roce_rnr_ns(unsigned code);

/* Local ACK timeout exponent 0..31 in nanoseconds: 4.096 us << code; 0 means no timeout. */
uint64_t roce_timeout_ns(unsigned code);

/* enum ibv_mtu code 1..5 and bytes 256..4096; 0 for anything else. */
unsigned roce_mtu_bytes(unsigned code);
unsigned roce_mtu_code(unsigned bytes);

#endif
