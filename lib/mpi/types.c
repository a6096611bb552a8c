/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's words for types and operations. */
#include "lib/mpi/im.h"

#define SIGNED(type) (sizeof(type) == 8 ? REDUCE_INT64 : sizeof(type) == 4 ? REDUCE_INT32 : -1)
#define UNSIGNED(type) (sizeof(type) == 8 ? REDUCE_UINT64 : sizeof(type) == 4 ? REDUCE_UINT32 : -1)

/* MPI_CHAR is for text: MPI has no arithmetic for it. */
#define TYPES(X)                                      \
	X(MPI_FLOAT, REDUCE_FP32)                     \
	X(MPI_DOUBLE, REDUCE_FP64)                    \
	X(MPI_INT, SIGNED(int))                       \
	X(MPI_LONG, SIGNED(long))                     \
	X(MPI_LONG_LONG, REDUCE_INT64)                \
	X(MPI_UNSIGNED, UNSIGNED(unsigned))           \
	X(MPI_UNSIGNED_LONG, UNSIGNED(unsigned long)) \
	X(MPI_UNSIGNED_LONG_LONG, REDUCE_UINT64)      \
	X(MPI_INT8_T, REDUCE_INT8)                    \
	X(MPI_INT32_T, REDUCE_INT32)                  \
	X(MPI_INT64_T, REDUCE_INT64)                  \
	X(MPI_UINT8_T, REDUCE_UINT8)                  \
	X(MPI_UINT32_T, REDUCE_UINT32)                \
	X(MPI_UINT64_T, REDUCE_UINT64)                \
	X(MPI_SIGNED_CHAR, REDUCE_INT8)               \
	X(MPI_UNSIGNED_CHAR, REDUCE_UINT8)            \
	X(MPI_AINT, SIGNED(MPI_Aint))                 \
	X(MPI_COUNT, SIGNED(MPI_Count))               \
	X(MPI_OFFSET, SIGNED(MPI_Offset))

int im_dtype(MPI_Datatype type)
{
#define X(name, dtype)      \
	if (type == (name)) \
		return (dtype);
	TYPES(X)
#undef X
	return -1;
}

int im_reduce_op(MPI_Op op)
{
	return op == MPI_SUM    ? (int)REDUCE_SUM
	       : op == MPI_MIN  ? (int)REDUCE_MIN
	       : op == MPI_MAX  ? (int)REDUCE_MAX
	       : op == MPI_PROD ? (int)REDUCE_PROD
				: -1;
}

bool im_contiguous(MPI_Datatype type)
{
	int integers, addresses, types, combiner, size;
	MPI_Aint lb, extent;

	if (im_dtype(type) >= 0 || type == MPI_BYTE || type == MPI_CHAR)
		return true;
	/* Of the program's own types even one without gaps may be in another order. */
	if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) ||
		combiner != MPI_COMBINER_NAMED || PMPI_Type_size(type, &size) ||
		PMPI_Type_get_extent(type, &lb, &extent))
		return false;
	return lb == 0 && extent == size;
}
