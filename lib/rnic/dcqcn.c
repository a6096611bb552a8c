/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/dcqcn.h"

#include <errno.h>

#include "lib/rnic/rnic.h"

enum {
	MBIT = 1000000,
	US = 1000,
	/* A flow that was silent for so many steps of a timer knows nothing of its path any more.
	 */
	MAX_STEPS = 4096,
	/* What a flow may send at once after it was held up by its host: that time's worth. */
	CREDIT_NS = 100 * US,
	MAX_MBPS = 1000000,
	MAX_US = 1000000,
	MAX_STEPS_RECOVERY = 1000,
};

static const uint64_t NS_PER_S = 1000000000;

static uint64_t or_default(uint32_t value, uint32_t otherwise)
{
	return value != 0 ? value : otherwise;
}

int dcqcn_params_init(struct dcqcn_params *params, const struct rnic_congestion *c)
{
	uint64_t line = or_default(c->line_mbps, 25000), min = or_default(c->min_mbps, 10);

	if (line > MAX_MBPS || min > line || c->ai_mbps > MAX_MBPS || c->hai_mbps > MAX_MBPS)
		return -EINVAL;
	if (c->alpha_us > MAX_US || c->timer_us > MAX_US || c->cut_us > MAX_US ||
		c->alpha_shift > 16 || c->recovery_steps > MAX_STEPS_RECOVERY)
		return -EINVAL;
	*params = (struct dcqcn_params){
		.line = line * MBIT,
		.min = min * MBIT,
		.additive = or_default(c->ai_mbps, 40) * MBIT,
		.hyper = or_default(c->hai_mbps, 400) * MBIT,
		.alpha_ns = or_default(c->alpha_us, 55) * US,
		.timer_ns = or_default(c->timer_us, 55) * US,
		.cut_ns = or_default(c->cut_us, 4) * US,
		.bytes = or_default(c->byte_count, 10 << 20),
		.alpha_shift = (uint32_t)or_default(c->alpha_shift, 8),
		.recovery_steps = (uint32_t)or_default(c->recovery_steps, 5),
	};
	return 0;
}

/* One step up: fast recovery, then additive, then hyper increase (figure 7 of the paper). */
static void increase(struct dcqcn *flow, const struct dcqcn_params *params)
{
	uint32_t more = flow->timer_steps, less = flow->byte_steps;

	if (more < less) {
		more = flow->byte_steps;
		less = flow->timer_steps;
	}
	if (more >= params->recovery_steps)
		flow->target += less > params->recovery_steps ? params->hyper : params->additive;
	if (flow->target > params->line)
		flow->target = params->line;
	flow->rate = (flow->rate + flow->target) / 2;
	/* Halving the distance never gets there. */
	if (flow->target - flow->rate <= flow->target / 256)
		flow->rate = flow->target;
	flow->limited = flow->rate < params->line;
}

static void decay_alpha(struct dcqcn *flow, const struct dcqcn_params *params, uint64_t now)
{
	uint64_t steps = (now - flow->alpha_at) / params->alpha_ns;

	flow->alpha_at += steps * params->alpha_ns;
	if (steps > MAX_STEPS)
		flow->alpha = 0;
	for (; steps > 0 && flow->alpha > 0; steps--)
		flow->alpha -= (flow->alpha >> params->alpha_shift) + 1;
}

static void recover(struct dcqcn *flow, const struct dcqcn_params *params, uint64_t now)
{
	uint64_t steps = (now - flow->timer_at) / params->timer_ns;

	flow->timer_at += steps * params->timer_ns;
	if (steps > MAX_STEPS)
		flow->limited = false;
	for (; steps > 0 && flow->limited; steps--) {
		flow->timer_steps++;
		increase(flow, params);
	}
}

bool dcqcn_cnp(struct dcqcn *flow, const struct dcqcn_params *params, uint64_t now)
{
	if (flow->known && now - flow->cut_at < params->cut_ns)
		return false;
	if (flow->known)
		decay_alpha(flow, params, now);
	else
		flow->alpha = DCQCN_ONE;
	if (flow->limited)
		recover(flow, params, now);
	if (!flow->limited) {
		flow->rate = params->line;
		flow->next = now;
	}
	flow->known = flow->limited = true;
	flow->target = flow->rate;
	flow->rate -= (flow->rate * flow->alpha / DCQCN_ONE) / 2;
	if (flow->rate < params->min)
		flow->rate = params->min;
	flow->limited = flow->rate < params->line;
	flow->alpha -= flow->alpha >> params->alpha_shift;
	flow->alpha += DCQCN_ONE >> params->alpha_shift;
	if (flow->alpha > DCQCN_ONE)
		flow->alpha = DCQCN_ONE;
	flow->alpha_at = flow->timer_at = flow->cut_at = now;
	flow->timer_steps = flow->byte_steps = 0;
	flow->bytes = 0;
	return true;
}

uint64_t dcqcn_hold(struct dcqcn *flow, const struct dcqcn_params *params, uint64_t now)
{
	recover(flow, params, now);
	return flow->limited && flow->next > now ? flow->next : 0;
}

void dcqcn_sent(struct dcqcn *flow, const struct dcqcn_params *params, uint32_t bytes, uint64_t now)
{
	if (flow->next + CREDIT_NS < now)
		flow->next = now - CREDIT_NS;
	flow->next += bytes * 8 * NS_PER_S / flow->rate;
	flow->bytes += bytes;
	while (flow->bytes >= params->bytes && flow->limited) {
		flow->bytes -= params->bytes;
		flow->byte_steps++;
		increase(flow, params);
	}
}
