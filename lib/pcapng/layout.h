/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/pcapng only: numbers of pcapng's blocks and options. */
#ifndef PCAPNG_LAYOUT_H
#define PCAPNG_LAYOUT_H

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_SIMPLE = 3,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
	BLOCK_FRAME = 12, /* type, length, .., length again */
	/* Of what is between, without data and options. */
	SECTION_LEN = 16,
	INTERFACE_LEN = 8,
	SIMPLE_LEN = 4,
	PACKET_LEN = 20,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	LINK_ETHERNET = 1,
	OPT_END = 0,
	OPT_COMMENT = 1,
	OPT_USER_APPL = 4, /* of a section */
	OPT_IF_NAME = 2,
	OPT_IF_TSRESOL = 9,
	OPT_IF_FILTER = 11,
	OPT_EPB_FLAGS = 2,
	OPT_ISB_IFRECV = 4,
	OPT_ISB_IFDROP = 5,
};

#endif
