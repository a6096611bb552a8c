/* SPDX-License-Identifier: BSD-3-Clause */
/* What a fuzz target is: one function, and perhaps one more. The same file is linked with libFuzzer
 * (option fuzz) or with fuzz_main.c (any other build), see README.md. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Handles one input and returns 0; stops the program if something is wrong. Keeps no state: the
 * same input always does the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional: writes the i-th built-in input to out and returns its length, 0 when there are no more.
 * For what no file at hand contains. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap) __attribute__((weak));

/* Stops the program where the target found a contract broken. */
static inline void fuzz_check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* What fuzz_seed returns of a JSON text that is written with ' for ". */
static inline size_t fuzz_seed_json(const char *text, uint8_t *out, size_t cap)
{
	size_t len = 0;

	for (; text && text[len] && len < cap; len++)
		out[len] = text[len] == '\'' ? '"' : (uint8_t)text[len];
	fuzz_check(!text || !text[len], "seed fits");
	return len;
}

/* jansson hashes with a number of its own choice; with this one, the same input goes the same way.
 */
void json_object_seed(size_t seed) __attribute__((weak));

static void __attribute__((constructor)) fuzz_hash_alike(void)
{
	if (json_object_seed)
		json_object_seed(1);
}

#endif
