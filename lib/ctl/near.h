/* SPDX-License-Identifier: BSD-3-Clause */
/* How alike two words are, to say what somebody may have meant. */
#ifndef CTL_NEAR_H
#define CTL_NEAR_H

#include "lib/ctl/schema.h"

enum { CTL_NEAR_LONGEST = 31 };

/* Letters to be changed, left out, put in, or swapped with their neighbour, to make one of the
 * other; CTL_NEAR_LONGEST if one is longer than that. */
unsigned ctl_distance(const char *a, const char *b);

/* The word of the two that is nearer, if it is near enough to be meant: at most two letters off,
 * and fewer than half of its own. best: NULL, or what this gave for another candidate. */
const char *ctl_nearer(const char *word, const char *best, const char *candidate);

#endif
