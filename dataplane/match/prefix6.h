/* SPDX-License-Identifier: BSD-3-Clause */
/* Matcher of IPv6 prefixes: the longest one that an address begins with. Made for one set of rows,
 * filled, and only read from then on.
 *
 * Rows of a fabric have few lengths: hosts /128, uSIDs /48 and /64, a default route. So all are in
 * one open hash table of prefixes, which is asked for one length after the other, and only for
 * those that rows with the same first 48 bits have. That takes a few dozen instructions, whichever
 * number of rows there is, and 48 to 96 bytes a row. Where there are too many lengths for that, it
 * is rte_fib6's trie, of 32 MB and more; its plain tree takes more than a thousand instructions for
 * a dozen of rows.
 *
 * DPDK 22.11's trie gives a row that ends with the last of all addresses (8000::/1, ff00::/8) to
 * addresses in front of it as well: with such a row it is the hash table, however many lengths. */
#ifndef DATAPLANE_MATCH_PREFIX6_H
#define DATAPLANE_MATCH_PREFIX6_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/ip.h"

enum {
	PREFIX6_BITS = 128,
	/* Most lengths of a hash table, if rows are FEW, and if they are more. */
	PREFIX6_FEW = 256,
	PREFIX6_FEW_LENGTHS = 32,
	PREFIX6_MANY_LENGTHS = 8,
};

/* Of all rows that will be added, by length; of more, if some are not. */
struct prefix6_sizes {
	uint32_t n[PREFIX6_BITS + 1];
	bool last; /* one of them ends with the last of all addresses */
};

void prefix6_count(struct prefix6_sizes *sizes, const struct wire_ip *ip, unsigned bits);

struct prefix6;

/* none: the value of addresses that no row is for. -ENOMEM: of DPDK's memory. */
int prefix6_create(const struct prefix6_sizes *sizes, uint16_t none, struct prefix6 **p);
void prefix6_destroy(struct prefix6 *p); /* or NULL */

/* Bits of ip behind the prefix are not looked at; the later one of two equal prefixes holds. value:
 * below 32768. -ENOMEM: no room is left, or these are more than sizes said of
 * that length; nothing has changed. While nobody else looks up. */
int prefix6_add(struct prefix6 *p, const struct wire_ip *ip, unsigned bits, uint16_t value);

/* n addresses. Any thread. */
void prefix6_lookup(const struct prefix6 *p, const struct wire_ip *ip, uint16_t *value, unsigned n);

/* Whether it is rte_fib6's trie; for tests and whoever wants to know where memory is. */
bool prefix6_is_trie(const struct prefix6 *p);
/* Slots that a look-up of one length goes through at most, of a hash table. */
unsigned prefix6_longest(const struct prefix6 *p);

#endif
