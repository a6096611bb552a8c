/* SPDX-License-Identifier: BSD-3-Clause */
/* INA header of NetReduce: the first 16 payload bytes of the first packet of every message, and of
 * every packet between switches (docs/inc-protocol.md, section 6). Little-endian.
 *
 *	offset	size	field
 *	0	4	InetTag 0x4E524443
 *	4	2	ring
 *	6	2	rank, or the leaf's index on a connection between switches
 *	8	4	number of the message
 *	12	2	packets of a message, constant per ring
 *	14	1	dtype, enum reduce_dtype: 0 is fp32
 *	15	1	operation, enum reduce_op: 0 is the sum
 *
 * The last two are the upper half of the 32-bit MsgLen that NetReduce describes: a host that knows
 * nothing of them writes zeros, and asks for the sum of fp32. */
#ifndef WIRE_NETREDUCE_H
#define WIRE_NETREDUCE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { INA_LEN = 16, INA_TAG = 0x4E524443 };

/* Of the immediate data of a sum, in a ring whose sums are marked (13.1). */
static const uint32_t INA_IMM_SUM = 0x80000000;

struct ina_hdr {
	uint16_t ring, rank;
	uint32_t msg;
	uint16_t packets;
	uint8_t dtype, op;
};

static inline void ina_encode(const struct ina_hdr *h, uint8_t out[INA_LEN])
{
	const uint32_t tag = INA_TAG;

	for (unsigned i = 0; i < 4; i++) {
		out[i] = (uint8_t)(tag >> 8 * i);
		out[8 + i] = (uint8_t)(h->msg >> 8 * i);
	}
	for (unsigned i = 0; i < 2; i++) {
		out[4 + i] = (uint8_t)(h->ring >> 8 * i);
		out[6 + i] = (uint8_t)(h->rank >> 8 * i);
		out[12 + i] = (uint8_t)(h->packets >> 8 * i);
	}
	out[14] = h->dtype;
	out[15] = h->op;
}

/* False: the tag is another, *h is unchanged. */
static inline bool ina_decode(const uint8_t in[INA_LEN], struct ina_hdr *h)
{
	uint32_t word[4];

	for (unsigned i = 0; i < 4; i++)
		word[i] = in[4 * i] | (uint32_t)in[4 * i + 1] << 8 | (uint32_t)in[4 * i + 2] << 16 |
			  (uint32_t)in[4 * i + 3] << 24;
	if (word[0] != INA_TAG)
		return false;
	*h = (struct ina_hdr){
		.ring = (uint16_t)word[1],
		.rank = (uint16_t)(word[1] >> 16),
		.msg = word[2],
		.packets = (uint16_t)word[3],
		.dtype = (uint8_t)(word[3] >> 16),
		.op = (uint8_t)(word[3] >> 24),
	};
	return true;
}

#endif
