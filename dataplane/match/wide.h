/* SPDX-License-Identifier: BSD-3-Clause */
/* Sixteen addresses are looked up at once where the CPU has AVX-512. DPDK asks for that itself only
 * if EAL's limit of 256 bits is raised, which would be for drivers as well: so it is, while a table
 * chooses its function. */
#ifndef DATAPLANE_MATCH_WIDE_H
#define DATAPLANE_MATCH_WIDE_H

#include <rte_vect.h>

/* The limit to go back to; 0: EAL's options have set it, and it stays. */
static inline uint16_t wide_begin(void)
{
	const uint16_t width = rte_vect_get_max_simd_bitwidth();

	return rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512) < 0 ? 0 : width;
}

static inline void wide_end(uint16_t width)
{
	rte_vect_set_max_simd_bitwidth(width);
}

#endif
