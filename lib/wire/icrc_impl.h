/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/wire and its tests: multiplication of polynomials modulo P over GF(2), bit 31 being
 * x^0. icrc.c picks one by CPUID; both give the same. */
#ifndef WIRE_ICRC_IMPL_H
#define WIRE_ICRC_IMPL_H

#include <stdint.h>

enum { ICRC_POLY = 0xedb88320 }; /* 0x04c11db7 reflected */

uint32_t icrc_mul_scalar(uint32_t a, uint32_t b);
uint32_t icrc_mul_clmul(uint32_t a, uint32_t b); /* only if the CPU has PCLMULQDQ */

#endif
