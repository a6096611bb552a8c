/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/ring_cost.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

int ring_cost_check(const struct ring_cost_setting *s, char err[RING_COST_ERR_LEN])
{
	const char *bad = NULL;

	if (s->n == 0 || (s->n & (s->n - 1)))
		bad = "n: must be a power of two";
	else if (s->p < 2 || s->p % s->n || s->p == s->n)
		bad = "p: must be a multiple of n, of two machines or more";
	else if (!(s->alpha >= 0) || !isfinite(s->alpha))
		bad = "alpha: must not be negative";
	else if (!(s->b_intra > 0) || !isfinite(s->b_intra))
		bad = "b_intra: must be above 0";
	else if (!(s->b_inter > 0) || !isfinite(s->b_inter))
		bad = "b_inter: must be above 0";
	if (!bad)
		return 0;
	snprintf(err, RING_COST_ERR_LEN, "%s", bad);
	return -EINVAL;
}

static struct ring_cost sum(struct ring_cost a, struct ring_cost b, struct ring_cost c)
{
	return (struct ring_cost){
		a.hops + b.hops + c.hops, a.s_per_byte + b.s_per_byte + c.s_per_byte};
}

struct ring_cost ring_cost_flat(const struct ring_cost_setting *s)
{
	const double p = s->p;

	return (struct ring_cost){2 * (p - 1), 2 * (p - 1) / p / s->b_inter};
}

/* Rabenseifner's reduction to the master, a ring of the masters, van de Geijn's broadcast. */
struct ring_cost ring_cost_tencent(const struct ring_cost_setting *s)
{
	const double n = s->n, nodes = (double)s->p / n, steps = log2(n);
	const struct ring_cost reduce = {2 * steps, 2 * (n - 1) / n / s->b_intra},
			       ring = {2 * (nodes - 1), 2 * (nodes - 1) / nodes / s->b_inter},
			       broadcast = {steps + n - 1, 2 * (n - 1) / n / s->b_intra};

	return sum(reduce, ring, broadcast);
}

/* ReduceScatter and AllGather in the machine are alike; between them the n rings send M/n each, at
 * the same time and over the same link. */
struct ring_cost ring_cost_parallel(const struct ring_cost_setting *s)
{
	const double n = s->n;
	const struct ring_cost inside = {n - 1, (n - 1) / n / s->b_intra},
			       rings = {1, 1 / s->b_inter};

	return sum(inside, rings, inside);
}

struct ring_cost ring_cost_minus(struct ring_cost a, struct ring_cost b)
{
	return (struct ring_cost){a.hops - b.hops, a.s_per_byte - b.s_per_byte};
}

double ring_cost_seconds(struct ring_cost c, const struct ring_cost_setting *s, double bytes)
{
	return c.hops * s->alpha + c.s_per_byte * bytes;
}

double ring_cost_crossing(struct ring_cost a, struct ring_cost b, const struct ring_cost_setting *s)
{
	const struct ring_cost d = ring_cost_minus(a, b);
	const double bytes = -d.hops * s->alpha / d.s_per_byte;

	return isfinite(bytes) && bytes > 0 ? bytes : NAN;
}

double ring_cost_enough(unsigned p)
{
	return 2.0 * p / (p - 2.0);
}

double ring_cost_needed(unsigned n, unsigned p)
{
	return (n - 1.0) / n * ring_cost_enough(p);
}

double ring_cost_hierarchy(unsigned n, unsigned p)
{
	return 2.0 * p / n;
}
