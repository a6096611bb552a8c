/* SPDX-License-Identifier: BSD-3-Clause */
/* Formulas of the papers beside what the papers say of them, and beside the simulator. */
#ifndef SIM_MODELS_H
#define SIM_MODELS_H

#include <jansson.h>
#include <stdint.h>

/* NetReduce's figure 7 and the sentences about it, by lib/sim/ring_cost.h. Prints, and fills
 * result. */
void sim_netreduce_model(json_t *result);

#endif
