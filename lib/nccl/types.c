/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's words for types and operations. */
#include "lib/nccl/im.h"
#include "lib/reduce/reduce.h"

static const enum reduce_dtype types[] = {
	[NCCL_INT8] = REDUCE_INT8,
	[NCCL_UINT8] = REDUCE_UINT8,
	[NCCL_INT32] = REDUCE_INT32,
	[NCCL_UINT32] = REDUCE_UINT32,
	[NCCL_INT64] = REDUCE_INT64,
	[NCCL_UINT64] = REDUCE_UINT64,
	[NCCL_FLOAT16] = REDUCE_FP16,
	[NCCL_FLOAT32] = REDUCE_FP32,
	[NCCL_FLOAT64] = REDUCE_FP64,
	[NCCL_BFLOAT16] = REDUCE_BF16,
};
static const enum reduce_op ops[] = {
	[NCCL_SUM] = REDUCE_SUM,
	[NCCL_PROD] = REDUCE_PROD,
	[NCCL_MAX] = REDUCE_MAX,
	[NCCL_MIN] = REDUCE_MIN,
};
enum { N_TYPES = sizeof(types) / sizeof(types[0]), N_OPS = sizeof(ops) / sizeof(ops[0]) };

int np_dtype(int type)
{
	return type >= 0 && type < N_TYPES ? (int)types[type] : -1;
}

int np_op(int op)
{
	return op >= 0 && op < N_OPS ? (int)ops[op] : -1;
}

size_t np_size(int type)
{
	return np_dtype(type) < 0 ? 0 : reduce_size((enum reduce_dtype)np_dtype(type));
}

nccl_rc np_supports(int type, int op, int *yes)
{
	const int t = np_dtype(type), o = np_op(op);

	*yes = t >= 0 && o >= 0 && reduce_kernel((enum reduce_op)o, (enum reduce_dtype)t);
	return NCCL_OK;
}
