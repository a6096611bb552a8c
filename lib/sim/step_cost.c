/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/step_cost.h"

double step_cost_activations(const struct step_cost_setting *s)
{
	return (double)(s->batch / s->dp) * s->seq * s->hidden * s->dtype;
}

struct step_cost step_cost_of(const struct step_cost_setting *s)
{
	const double gpus = (double)s->tp * s->dp * s->pp, tp = s->tp;
	const double micro_batches = s->batch / s->dp; /* of one sequence each */
	const double reduces = 4.0 * s->layers / s->pp;
	struct step_cost c = {.data_bytes = s->params / tp / s->pp * s->dtype};

	c.compute = 6 * s->params * s->batch * s->seq / gpus / s->flops;
	c.tensor = reduces * step_cost_activations(s) * 2 * (tp - 1) / tp / s->tensor_rate;
	c.bubble = (c.compute + c.tensor) * (s->pp - 1) / micro_batches;
	return c;
}

double step_cost_seconds(const struct step_cost *c, double data_seconds)
{
	return c->compute + c->tensor + c->bubble + data_seconds;
}
