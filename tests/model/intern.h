/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of the model checker. What a state is made of (a switch's block, a host, a link's queue, a
 * frame) takes few different values, so each value is kept once and a state is a row of numbers.
 * Comparison is of all bytes: two values never share a number. Memory is reserved address space
 * that fills as it is used; when it ends the program says so and exits. */
#ifndef MODEL_INTERN_H
#define MODEL_INTERN_H

#include <stddef.h>
#include <stdint.h>

/* Address space that costs nothing until touched. */
void *mc_reserve(size_t bytes);
uint64_t mc_hash(const void *data, size_t len, uint64_t seed);

struct intern {
	uint8_t *bytes; /* u32 length, 4 unused, then the value: aligned to 8, so structures are
			   read in place */
	uint64_t used;
	uint64_t *off;
	uint32_t *slot; /* id + 1 */
	uint32_t n, mask;
};

void intern_init(struct intern *t);
uint32_t intern_add(struct intern *t, const void *data, uint32_t len);
const void *intern_get(const struct intern *t, uint32_t id, uint32_t *len);

/* From two 32-bit numbers to one. */
struct memo {
	struct memo_entry {
		uint64_t key;
		uint32_t value, used;
	} * entry;
	uint32_t n, mask;
};

void memo_init(struct memo *m);
/* NULL if there is none. */
const uint32_t *memo_find(const struct memo *m, uint64_t key);
void memo_put(struct memo *m, uint64_t key, uint32_t value);

#endif
