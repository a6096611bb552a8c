/* SPDX-License-Identifier: BSD-3-Clause */
/* What an AllReduce among nodes of several GPUs costs, by arithmetic: the models of NetReduce
 * (section 3.4 and appendix A, equations 1 to 6) of a flat ring, of Tencent's hierarchy and of
 * Parallel NetReduce. Each is linear in the latency per hop and in the size, so two of them cross
 * at one size at most. */
#ifndef SIM_RING_COST_H
#define SIM_RING_COST_H

#include <stddef.h>

struct ring_cost_setting {
	unsigned n;              /* GPUs per machine, a power of two */
	unsigned p;              /* GPUs of the job, a multiple of n */
	double alpha;            /* seconds per hop of a ring */
	double b_intra, b_inter; /* bytes per second inside a machine, and of its network link */
};

/* hops * alpha + s_per_byte * size */
struct ring_cost {
	double hops, s_per_byte;
};

enum { RING_COST_ERR_LEN = 128 };

/* -EINVAL with "field: reason". What follows wants a setting that was checked. */
int ring_cost_check(const struct ring_cost_setting *s, char err[RING_COST_ERR_LEN]);

struct ring_cost ring_cost_flat(const struct ring_cost_setting *s); /* equation 1 */
/* Equation 2, as its last line has it: its first line divides the reduction inside the machine by n
 * once more, which does not add up to that. */
struct ring_cost ring_cost_tencent(const struct ring_cost_setting *s);
struct ring_cost ring_cost_parallel(const struct ring_cost_setting *s); /* equation 3 */

/* a - b: equations 4 (Tencent's) and 5 (the flat ring) with b Parallel NetReduce. */
struct ring_cost ring_cost_minus(struct ring_cost a, struct ring_cost b);
double ring_cost_seconds(struct ring_cost c, const struct ring_cost_setting *s, double bytes);

/* Size in bytes at which a and b take the same time; NAN: none above 0, one is always faster. */
double ring_cost_crossing(
	struct ring_cost a, struct ring_cost b, const struct ring_cost_setting *s);

/* Ratio of B_intra to B_inter from which on Parallel NetReduce is faster than the flat ring at
 * every size: equation 6, and what equation 5 really wants, which is less. p > 2. */
double ring_cost_enough(unsigned p);
double ring_cost_needed(unsigned n, unsigned p);
/* Ratio from which on Tencent's hierarchy is faster than the flat ring at every size. n > 1. */
double ring_cost_hierarchy(unsigned n, unsigned p);

#endif
