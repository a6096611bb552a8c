/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/reduce/reduce.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "lib/reduce/kernels.h"

struct dtype_info {
	const char *name; /* NULL: the number is not defined */
	size_t size;
};

static const struct dtype_info dtypes[REDUCE_BYTES + 1] = {
	[REDUCE_FP32] = {"fp32", 4},
	[REDUCE_FP16] = {"fp16", 2},
	[REDUCE_BF16] = {"bf16", 2},
	[REDUCE_INT32] = {"int32", 4},
	[REDUCE_FP64] = {"fp64", 8},
	[REDUCE_INT64] = {"int64", 8},
	[REDUCE_INT8] = {"int8", 1},
	[REDUCE_UINT8] = {"uint8", 1},
	[REDUCE_UINT32] = {"uint32", 4},
	[REDUCE_UINT64] = {"uint64", 8},
	[REDUCE_BYTES] = {"bytes", 1},
};

static const char *const op_names[REDUCE_NONE + 1] = {
	[REDUCE_SUM] = "sum",
	[REDUCE_MIN] = "min",
	[REDUCE_MAX] = "max",
	[REDUCE_PROD] = "prod",
	[REDUCE_NONE] = "none",
};

struct isa_info {
	const char *name;
	const struct reduce_kernels *kernels; /* NULL: not built for this architecture */
};

static const struct isa_info isas[REDUCE_N_ISA] = {
	[REDUCE_SCALAR] = {"scalar", &reduce_scalar},
#ifdef __x86_64__
	[REDUCE_AVX2] = {"avx2", &reduce_avx2},
	[REDUCE_AVX512] = {"avx512", &reduce_avx512},
#else
	[REDUCE_AVX2] = {"avx2", NULL},
	[REDUCE_AVX512] = {"avx512", NULL},
#endif
};

size_t reduce_size(enum reduce_dtype dtype)
{
	return (unsigned)dtype <= REDUCE_BYTES ? dtypes[dtype].size : 0;
}

const char *reduce_dtype_name(enum reduce_dtype dtype)
{
	return reduce_size(dtype) ? dtypes[dtype].name : "?";
}

const char *reduce_op_name(enum reduce_op op)
{
	return (unsigned)op <= REDUCE_NONE && op_names[op] ? op_names[op] : "?";
}

const char *reduce_isa_name(enum reduce_isa isa)
{
	return (unsigned)isa < REDUCE_N_ISA ? isas[isa].name : "?";
}

int reduce_dtype_parse(const char *name)
{
	for (int i = 0; i <= REDUCE_BYTES; i++)
		if (dtypes[i].name && strcmp(name, dtypes[i].name) == 0)
			return i;
	return -EINVAL;
}

int reduce_op_parse(const char *name)
{
	for (int i = 0; i <= REDUCE_NONE; i++)
		if (op_names[i] && strcmp(name, op_names[i]) == 0)
			return i;
	return -EINVAL;
}

/* All that the set was built with (meson.build). F16C is asked for in CPUID's own words because not
 * every compiler knows its name; that the OS saves the registers, AVX2 implies. */
static bool cpu_has(enum reduce_isa isa)
{
#ifdef __x86_64__
	unsigned eax, ebx, ecx, edx;

	if (isa == REDUCE_AVX2)
		return __builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) &&
		       (ecx & bit_F16C);
	if (isa == REDUCE_AVX512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
	return isa == REDUCE_SCALAR;
}

/* Found out once, before main(): callers ask for kernels per packet, and find what is the best
 * one's in a table. */
static bool usable[REDUCE_N_ISA] = {[REDUCE_SCALAR] = true};
static enum reduce_isa best = REDUCE_SCALAR;
static reduce_fn accumulate[REDUCE_N_OPS][REDUCE_N_DTYPES];
static reduce_fn widen[REDUCE_BYTES + 1], narrow[REDUCE_BYTES + 1];

__attribute__((constructor)) static void find_best(void)
{
	const char *limit = getenv("INCLINE_REDUCE_ISA");
	int top = REDUCE_N_ISA - 1;

#ifdef __x86_64__
	__builtin_cpu_init();
#endif
	for (int i = 0; i < REDUCE_N_ISA; i++) {
		usable[i] = isas[i].kernels && cpu_has((enum reduce_isa)i);
		if (limit && strcmp(limit, isas[i].name) == 0)
			top = i;
	}
	while (!usable[top])
		top--;
	best = (enum reduce_isa)top;
	for (int op = 0; op < REDUCE_N_OPS; op++)
		for (int t = 0; t < REDUCE_N_DTYPES; t++)
			accumulate[op][t] = reduce_accumulate_isa(
				(enum reduce_op)op, (enum reduce_dtype)t, best);
	for (int t = 0; t <= REDUCE_BYTES; t++) {
		widen[t] = reduce_widen_isa((enum reduce_dtype)t, best);
		narrow[t] = reduce_narrow_isa((enum reduce_dtype)t, best);
	}
}

enum reduce_isa reduce_isa_best(void)
{
	return best;
}

/* NULL: this CPU or build lacks it. */
static const struct reduce_kernels *kernels_of(enum reduce_isa isa)
{
	return (unsigned)isa < REDUCE_N_ISA && usable[isa] ? isas[isa].kernels : NULL;
}

static bool is_half(enum reduce_dtype dtype)
{
	return dtype == REDUCE_FP16 || dtype == REDUCE_BF16;
}

size_t reduce_acc_size(enum reduce_dtype dtype)
{
	return is_half(dtype) ? sizeof(float) : reduce_size(dtype);
}

static void copy(void *acc, const void *src, size_t bytes)
{
	memcpy(acc, src, bytes);
}

reduce_fn reduce_kernel_isa(enum reduce_op op, enum reduce_dtype dtype, enum reduce_isa isa)
{
	const struct reduce_kernels *k = kernels_of(isa);

	if ((unsigned)op >= REDUCE_N_OPS || (unsigned)dtype >= REDUCE_N_DTYPES || !k)
		return NULL;
	return k->fn[op][dtype];
}

reduce_fn reduce_accumulate_isa(enum reduce_op op, enum reduce_dtype dtype, enum reduce_isa isa)
{
	const struct reduce_kernels *k = kernels_of(isa);

	if (!is_half(dtype))
		return reduce_kernel_isa(op, dtype, isa);
	return (unsigned)op < REDUCE_N_OPS && k ? k->accumulate[op][dtype] : NULL;
}

reduce_fn reduce_widen_isa(enum reduce_dtype dtype, enum reduce_isa isa)
{
	const struct reduce_kernels *k = kernels_of(isa);

	if (!reduce_size(dtype) || !k)
		return NULL;
	return is_half(dtype) ? k->widen[dtype] : copy;
}

reduce_fn reduce_narrow_isa(enum reduce_dtype dtype, enum reduce_isa isa)
{
	const struct reduce_kernels *k = kernels_of(isa);

	return is_half(dtype) && k ? k->narrow[dtype] : NULL;
}

reduce_fn reduce_kernel(enum reduce_op op, enum reduce_dtype dtype)
{
	return reduce_kernel_isa(op, dtype, reduce_isa_best());
}

reduce_fn reduce_accumulate(enum reduce_op op, enum reduce_dtype dtype)
{
	return (unsigned)op < REDUCE_N_OPS && (unsigned)dtype < REDUCE_N_DTYPES
		       ? accumulate[op][dtype]
		       : NULL;
}

reduce_fn reduce_widen(enum reduce_dtype dtype)
{
	return (unsigned)dtype <= REDUCE_BYTES ? widen[dtype] : NULL;
}

reduce_fn reduce_narrow(enum reduce_dtype dtype)
{
	return (unsigned)dtype <= REDUCE_BYTES ? narrow[dtype] : NULL;
}
