/* SPDX-License-Identifier: BSD-3-Clause */
/* A link between two RNIC cores on virtual time, which loses, doubles, delays and corrupts frames
 * and accounts for each. Without an allocation per frame: soaks run millions of them. */
#ifndef SOAK_LINK_H
#define SOAK_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/rnic/rnic.h"

enum { LINK_FRAME = 1200, LINK_SLOTS = 1 << 14 };

struct link_frame {
	uint64_t at, order;
	int to;
	bool corrupt;
	uint32_t len;
	uint8_t bytes[LINK_FRAME];
};

struct link_count {
	uint64_t sent, doubled, lost, corrupt, taken, dropped;
	uint64_t corrupt_dropped; /* of the corrupted ones, by the parser or the ICRC */
};

struct link {
	struct rnic *rnic[2];
	uint64_t now, random, order;
	unsigned loss, twice, late, corrupt; /* per 1000 frames; those of link_open are 5 each, late
						20 */
	struct link_count count[2];          /* by the end that sends */
	struct link_frame *frames;
	uint32_t *free, n_free;
	uint32_t *heap, n_heap; /* by (at, order) */
};

struct link *link_open(struct rnic *a, struct rnic *b, uint64_t seed);
void link_close(struct link *link);
/* Sends what the devices have, then goes on to the next arrival or timer and does what is due.
 * on_frame is called after each frame that an end has got. */
void link_step(struct link *link, void (*on_frame)(void *arg, int to), void *arg);
/* No frame is on the way. */
bool link_idle(const struct link *link);
/* Prints what became of the frames; false if that does not add up. */
bool link_balance(const struct link *link, FILE *out);

#endif
