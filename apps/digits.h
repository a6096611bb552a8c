/* SPDX-License-Identifier: BSD-3-Clause */
/* Hand-written digits to train on (tests/data). */
#ifndef APPS_DIGITS_H
#define APPS_DIGITS_H

#include <stddef.h>

enum { DIGITS_MIN = 2 /* one to train with, one to test */ };
enum { DIGIT_SIDE = 8, DIGIT_PIXELS = DIGIT_SIDE * DIGIT_SIDE, DIGIT_CLASSES = 10 };

struct digit {
	float pixel[DIGIT_PIXELS]; /* 0 .. 1, row by row */
	unsigned label;
};

/* Reads a gzipped (or plain) CSV of DIGIT_PIXELS values 0..16 and a label 0..9 per line. Returns
 * the number of digits, DIGITS_MIN or more, *digits to be freed; or -errno with a sentence in err.
 */
int digits_load(const char *path, struct digit **digits, char *err, size_t cap);

#endif
