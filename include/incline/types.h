/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types and operations of collectives. What each pair gives, to the bit, is
 * docs/arithmetic.md; products of 8-bit integers are not offered. */
#ifndef INCLINE_TYPES_H
#define INCLINE_TYPES_H

/* Numbers are those of the control message's immediate (docs/inc-protocol.md, 2.1). */
enum reduce_op { REDUCE_SUM = 0, REDUCE_MIN = 1, REDUCE_MAX = 2, REDUCE_PROD = 3, REDUCE_NONE = 7 };

enum reduce_dtype {
	REDUCE_FP32 = 0,
	REDUCE_FP16 = 1,
	REDUCE_BF16 = 2,
	REDUCE_INT32 = 3,
	REDUCE_FP64 = 4,
	REDUCE_INT64 = 5,
	REDUCE_INT8 = 6,
	REDUCE_UINT8 = 7,
	REDUCE_UINT32 = 8,
	REDUCE_UINT64 = 9,
	REDUCE_BYTES = 15,
};

#endif
