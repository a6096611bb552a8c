/* SPDX-License-Identifier: BSD-3-Clause */
/* Formulas of the papers beside what the papers say of them, and beside the simulator. */
#ifndef SIM_MODELS_H
#define SIM_MODELS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* EPIC's appendix F beside what is measured: time, memory, loss. Prints, and fills result. Not 0 if
 * a figure is farther from what lib/sim/epic_cost.h predicts than the bound that is printed. quick:
 * one loss only. */
int sim_epic_model(bool quick, json_t *result);

/* NetReduce's figure 7 and the sentences about it, by lib/sim/ring_cost.h. Prints, and fills
 * result. */
void sim_netreduce_model(json_t *result);

/* AllReduce among machines of several ranks, by the ways of NetReduce's figure 6, measured. Not 0
 * if one of them fails. quick: up to 256 KB. */
int sim_nodes_table(bool quick, uint64_t seed, json_t *result);

/* EPIC's tables 33 and 34 by lib/sim/step_cost.h and a measured AllReduce. Prints, and fills
 * result. -EIO if one fails. */
void sim_training_settings(json_t *result);
int sim_training_table(uint64_t seed, json_t *result);

#endif
