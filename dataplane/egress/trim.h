/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet trimming (MRC, UET): what has no room keeps its headers, so that its receiver knows at
 * once what it has lost. The frame is cut, its outermost IP header says the new length and a DSCP
 * that tells of it; UDP length and ICRC stay as they were, receivers believe neither. */
#ifndef DATAPLANE_EGRESS_TRIM_H
#define DATAPLANE_EGRESS_TRIM_H

#include <rte_mbuf.h>
#include <stdbool.h>

#include "lib/wire/outer.h"

/* May the first segment's bytes be changed? Not if other packets refer to them. */
bool egress_writable(const struct rte_mbuf *m);

/* Bytes that are left of a frame: keep from the Ethernet header on, VLAN tags not counted. 0: it is
 * no longer than that, cannot be written to, or would lose a part of its IP header. */
unsigned egress_trimmed_len(
	const struct rte_mbuf *m, const struct wire_outer *outer, unsigned keep);

/* Cuts to len, what egress_trimmed_len has said; segments that are beyond are freed. */
void egress_trim(struct rte_mbuf *m, struct wire_outer *outer, unsigned len, uint8_t dscp);

#endif
