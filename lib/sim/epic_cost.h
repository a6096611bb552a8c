/* SPDX-License-Identifier: BSD-3-Clause */
/* Time, memory and loss of EPIC's modes by arithmetic: its section 5.2 and appendix F as they are
 * printed, and beside them what our switches and hosts do by the same reasoning. */
#ifndef SIM_EPIC_COST_H
#define SIM_EPIC_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum epic_mode { EPIC_MODE_1, EPIC_MODE_2, EPIC_MODE_3 };

struct epic_cost {
	unsigned h; /* levels of nodes, the ranks' included: a star has 2 */
	unsigned d; /* links of a switch */
	unsigned u, m,
		w; /* bytes of a packet's payload, packets of a message, messages of a window */
	unsigned extra; /* bytes that a packet takes on the wire beside its payload */
	double b, l;    /* bytes per second of a link, seconds of propagation */
};

/* ---- F.1: an AllReduce of so many bytes, in seconds ---- */

/* Equations 1 (Mode-I) and 2. No headers, and no control message. */
double epic_cost_printed(const struct epic_cost *c, enum epic_mode mode, double bytes);

/* The way is 2H - 2 links, and what is stored before it goes on are 2H - 3 switches, not 2H - 1
 * hops; headers and the packet that starts the operation take time; a rank has finished when its
 * own requests are acknowledged, too: in Mode-II that comes after the result, once to the first
 * switch and back. Acknowledgements that share links with data are left out. */
double epic_cost_seconds(const struct epic_cost *c, enum epic_mode mode, double bytes);

/* ---- F.3: aggregation memory of a switch, in bytes ---- */

double epic_cost_memory_printed(const struct epic_cost *c, enum epic_mode mode, bool reproducible);
/* For a window of m * w packets, as dataplane/inc takes it: rings of twice the window, a power of
 * two. fp16 and bf16 are not allowed for. */
size_t epic_cost_memory(const struct epic_cost *c, enum epic_mode mode, bool reproducible);
/* Packets in flight that fill the way that acknowledges: all of it in Mode-II, one link in the
 * others. */
unsigned epic_cost_window(const struct epic_cost *c, enum epic_mode mode);

/* ---- F.4: share of the lossless throughput that is left ---- */

/* Every link passes a packet with probability r; F(r) = r. */
double epic_cost_loss(const struct epic_cost *c, enum epic_mode mode, double r);

#endif
