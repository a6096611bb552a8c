/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers that the same seed gives again: splitmix64 (Steele, Lea, Flood 2014). Not for
 * secrets. */
#ifndef WIRE_RANDOM_H
#define WIRE_RANDOM_H

#include <stdint.h>

/* The next one; state: any seed at first. */
static inline uint64_t wire_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

#endif
