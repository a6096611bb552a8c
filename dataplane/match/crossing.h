/* SPDX-License-Identifier: BSD-3-Clause */
/* How much rows with ternary and range keys cross one another. What a matcher of tries costs to
 * build goes with that and not with their number: rte_acl takes hundredths of a second for a
 * thousand rows that are apart, many seconds for some hundreds that cross in three keys, and cannot
 * be stopped. */
#ifndef DATAPLANE_MATCH_CROSSING_H
#define DATAPLANE_MATCH_CROSSING_H

#include "dataplane/table.h"

/* What a row asks of a key, as an interval. A mask with holes is taken for the interval around it.
 */
struct crossing_span {
	uint8_t low[16], high[16]; /* as numbers in network order */
};

/* Cuts the space of packets key after key into cells, in each of which the same rows are left, and
 * counts rows and cells looked at. span: of row i and key k at [i * n_keys + k]. 1: that stays
 * within so many steps, each of some nanoseconds; 0: it does not; -ENOMEM. */
int crossing_within(
	const struct crossing_span *span, unsigned n_rows, unsigned n_keys, uint64_t steps);

#endif
