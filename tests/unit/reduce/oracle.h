/* SPDX-License-Identifier: BSD-3-Clause */
/* What docs/arithmetic.md promises, worked out without lib/reduce: floats are taken apart and put
 * together by integer arithmetic and computed in quadruple precision; integers in 128 bits. */
#ifndef REDUCE_ORACLE_H
#define REDUCE_ORACLE_H

#include <stdbool.h>

#include "lib/reduce/reduce.h"

/* Elements are bit patterns, zero-extended. */
uint64_t oracle(enum reduce_op op, enum reduce_dtype dtype, uint64_t a, uint64_t b);

/* The same with acc in accumulator form. */
uint64_t oracle_accumulate(enum reduce_op op, enum reduce_dtype dtype, uint64_t acc, uint64_t b);
uint64_t oracle_widen(enum reduce_dtype dtype, uint64_t a);
uint64_t oracle_narrow(enum reduce_dtype dtype, uint64_t acc);

bool oracle_supports(enum reduce_op op, enum reduce_dtype dtype);
bool oracle_is_nan(enum reduce_dtype dtype, uint64_t a); /* false for integers */

/* Awkward values of a type; returns how many, at most ORACLE_SPECIALS. */
enum { ORACLE_SPECIALS = 48 };
size_t oracle_specials(enum reduce_dtype dtype, uint64_t *to);

#endif
