/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-I, what a group may ask for and has, and whom it waits for. Its packets are not the
 * engine's: see mode1.h. */
#include "dataplane/inc/mode1.h"

#include <errno.h>

#include "dataplane/inc/modules.h"

/* It has messages instead of slots, and ordinary queue pairs. */
static int check(struct inc_group_spec *s, char *err)
{
	if (s->m == 0 || s->w == 0 || s->w > MODE1_MAX_W)
		return inc_refuse(err, EINVAL, "m, w: %u, %u, must be 1.. and 1..%u", s->m, s->w,
			MODE1_MAX_W);
	if ((uint32_t)s->m * s->mtu > RNIC_MAX_MSG / 2)
		return inc_refuse(err, EINVAL,
			"m: %u packets of %u bytes, a message has %u at most", s->m, s->mtu,
			RNIC_MAX_MSG / 2);
	if (s->slots > 1)
		return inc_refuse(err, EOPNOTSUPP, "slots: %u, mode I has none", s->slots);
	if (s->unbound)
		return inc_refuse(err, EOPNOTSUPP, "bound: mode I always has its memory");
	if (s->rto_us)
		return inc_refuse(err, EINVAL, "rto_us: only mode III has timers");
	if (s->flags & INC_F_SR)
		return inc_refuse(err, EOPNOTSUPP, "flags.sr: mode I has ordinary queue pairs");
	if (s->flags & INC_F_WRITE)
		return inc_refuse(err, EOPNOTSUPP, "verb: write, mode I has SENDs only");
	if (s->lease[0])
		return inc_refuse(err, EOPNOTSUPP,
			"lease: a group of mode I keeps its memory: receives are posted into it");
	s->slots = 1;
	return 0;
}

/* Receive buffers of W + 2 messages per endpoint, and W for results in each direction. */
static size_t pay_bytes(const struct inc_group_spec *spec, enum inc_pipe pipe)
{
	if (pipe != INC_AGG)
		return 0;
	return ((spec->w + 2u) * spec->n_ep + 2u * spec->w) * (size_t)spec->m * spec->mtu;
}

/* psn: the number of the message. */
static uint64_t missing(struct inc_group *g, uint32_t *psn)
{
	uint64_t waiting = g->in_front, here = 0;
	const struct inc_route *route;
	const struct inc_desc *d;

	if (waiting == 0)
		return 0;
	*psn = inc_ep_at(g, (unsigned)__builtin_ctzll(waiting))->ack_next;
	for (uint64_t eps = waiting; eps != 0; eps &= eps - 1)
		*psn = psn_min(*psn, inc_ep_at(g, (unsigned)__builtin_ctzll(eps))->ack_next);
	d = inc_desc_find(g, *psn);
	if (d == NULL)
		return 0;
	for (uint64_t eps = waiting; eps != 0; eps &= eps - 1)
		if (inc_ep_at(g, (unsigned)__builtin_ctzll(eps))->ack_next == *psn)
			here |= eps & -eps;
	route = inc_route_at(g, d, *psn);
	/* If all have come, those that it goes to do not take it. */
	return route->in & ~here ? route->in & ~here : route->outs;
}

const struct inc_mode_ops inc_mode1 = {
	.pipes = 1,
	.check = check,
	.pay_bytes = pay_bytes,
	.missing = missing,
	.behind = inc_unacknowledged,
};
