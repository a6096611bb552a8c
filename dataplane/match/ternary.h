/* SPDX-License-Identifier: BSD-3-Clause */
/* Matcher of tables with ternary and range keys: which row, of those that a packet matches, has the
 * highest priority, and of equals which was inserted first. An immutable object made of the rows of
 * any such table, over rte_acl; the packet path packs what it knows of a packet into bytes, and
 * where in these each key is, the layout says. */
#ifndef DATAPLANE_MATCH_TERNARY_H
#define DATAPLANE_MATCH_TERNARY_H

#include "dataplane/table.h"

enum { TERNARY_MAX_LEN = 64 };

struct ternary_at {
	uint8_t offset, size; /* bytes; numbers in network order */
};

/* A key of one byte is at offset 0, or none; the others are from 4 on, each in a word of 4 bytes,
 * IPv6 addresses in four. What no key is at is not looked at. Sizes are 1, 2 and 4, as wide as the
 * key's limit at least; of IP keys 4 or 16, which says what packets it is for: rows that name a
 * prefix of the other family are none of theirs. */
struct ternary_layout {
	uint8_t len;                          /* a multiple of 4 */
	struct ternary_at at[TABLE_MAX_KEYS]; /* in the order of the table's keys */
};

struct ternary;

/* *t is NULL if no row is for such packets. -E2BIG: rows cross one another too much (crossing.h);
 * -ENOMEM: they take more than max_bytes, or than there is; -EINVAL: the layout does not fit the
 * table. */
int ternary_create(const struct table_rows *rows, const struct ternary_layout *layout,
	size_t max_bytes, struct ternary **t);
void ternary_destroy(struct ternary *t);

/* For n packets: the row, counted from 1, or 0 if there is none. Any thread. t may be NULL. */
void ternary_lookup(
	const struct ternary *t, const uint8_t *const *keys, uint32_t *rows, unsigned n);

#endif
