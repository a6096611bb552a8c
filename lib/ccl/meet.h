/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CCL_MEET_H
#define CCL_MEET_H

#include <stdbool.h>
#include <stdint.h>

/* Two buffers share a byte. One that is NULL, or empty, shares none. */
static inline bool ccl_meet(const void *a, uint64_t a_len, const void *b, uint64_t b_len)
{
	const uint8_t *x = a, *y = b;

	return a && b && a_len && b_len && x < y + b_len && y < x + a_len;
}

#endif
