/* SPDX-License-Identifier: BSD-3-Clause */
/* 24-bit packet sequence numbers (IBTA vol. 1, 9.7.2). All comparisons are modular: they are right
 * as long as the two numbers lie less than 2^23 apart. */
#ifndef WIRE_PSN_H
#define WIRE_PSN_H

#include <stdbool.h>
#include <stdint.h>

enum { PSN_BITS = 24, PSN_MASK = 0xffffff };

static inline uint32_t psn_add(uint32_t a, int32_t n)
{
	return (a + (uint32_t)n) & PSN_MASK;
}

/* a - b, sign-extended from 24 bits: negative when a is older than b. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline bool psn_lt(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) < 0;
}

static inline bool psn_le(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) <= 0;
}

static inline uint32_t psn_max(uint32_t a, uint32_t b)
{
	return psn_lt(a, b) ? b : a;
}

static inline uint32_t psn_min(uint32_t a, uint32_t b)
{
	return psn_lt(a, b) ? a : b;
}

/* first <= p <= last, all modular. */
static inline bool psn_in(uint32_t p, uint32_t first, uint32_t last)
{
	return psn_le(first, p) && psn_le(p, last);
}

#endif
