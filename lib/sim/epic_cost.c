/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/epic_cost.h"

#include <math.h>

/* What a switch has to have before it goes on, in packets. */
static double grain(const struct epic_cost *c, enum epic_mode mode)
{
	return mode == EPIC_MODE_1 ? c->m : 1;
}

double epic_cost_printed(const struct epic_cost *c, enum epic_mode mode, double bytes)
{
	return (2.0 * c->h - 2) * c->l + (2.0 * c->h - 1) * grain(c, mode) * c->u / c->b +
	       bytes / c->b;
}

double epic_cost_seconds(const struct epic_cost *c, enum epic_mode mode, double bytes)
{
	const double links = 2.0 * c->h - 2, packet = (c->u + c->extra) / c->b;
	const double packets = ceil(bytes / c->u);
	/* The last one goes on when its message is complete, be that shorter than others. */
	const double unit = fmin(grain(c, mode), packets) * packet;
	const double control = c->extra / c->b;
	const double data = bytes / c->b + packets * c->extra / c->b;

	return (links + (mode == EPIC_MODE_2 ? 2 : 0)) * c->l + control + data + (links - 1) * unit;
}

double epic_cost_memory_printed(const struct epic_cost *c, enum epic_mode mode, bool reproducible)
{
	const double bl = c->b * c->l;

	if (mode == EPIC_MODE_1)
		return (c->d + 1) * 2 * bl;
	if (mode == EPIC_MODE_2)
		return 4.0 * (c->h - 1) * bl * (reproducible ? c->d + 1 : 1);
	return reproducible ? (c->d + 1) * 2 * bl : 4 * bl;
}

size_t epic_cost_memory(const struct epic_cost *c, enum epic_mode mode, bool reproducible)
{
	const size_t copies = reproducible ? c->d : 1;
	size_t slots = 4;

	if (mode == EPIC_MODE_1)
		return ((c->w + 2u) * c->d + 2u * c->w) * (size_t)c->m * c->u;
	while (slots < 2u * c->m * c->w)
		slots *= 2;
	return slots * c->u * (copies + (mode == EPIC_MODE_3 ? 1 : 0));
}

unsigned epic_cost_window(const struct epic_cost *c, enum epic_mode mode)
{
	const double links = mode == EPIC_MODE_2 ? 2.0 * c->h - 2 : 1;

	return (unsigned)ceil(2 * links * c->l * c->b / (c->u + c->extra));
}

double epic_cost_loss(const struct epic_cost *c, enum epic_mode mode, double r)
{
	const double links = 2.0 * (c->h - 1);

	return pow(r, mode == EPIC_MODE_2 ? links * (c->d - 1) : links);
}
