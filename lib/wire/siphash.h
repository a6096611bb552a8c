/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4 (Aumasson, Bernstein 2012): who does not know the key can neither make inputs that
 * fall together nor tell what an input gives. Pure. */
#ifndef WIRE_SIPHASH_H
#define WIRE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t siphash_rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static inline void siphash_rounds(uint64_t v[4], unsigned n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = siphash_rotate(v[1], 13) ^ v[0];
		v[3] = siphash_rotate(v[3], 16) ^ v[2];
		v[0] = siphash_rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = siphash_rotate(v[1], 17) ^ v[2];
		v[3] = siphash_rotate(v[3], 21) ^ v[0];
		v[2] = siphash_rotate(v[2], 32);
	}
}

static inline void siphash_take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	siphash_rounds(v, 2);
	v[0] ^= word;
}

static inline uint64_t wire_siphash(const uint64_t key[2], const void *data, size_t len)
{
	const uint8_t *byte = data;
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++) {
		word |= (uint64_t)byte[i] << 8 * (i % 8);
		if (i % 8 == 7) {
			siphash_take(v, word);
			word = 0;
		}
	}
	siphash_take(v, word | (uint64_t)len << 56);
	v[2] ^= 0xff;
	siphash_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
