/* SPDX-License-Identifier: BSD-3-Clause */
/* Small neural networks that tell digits: layers one after another, softmax cross-entropy, SGD with
 * momentum. Plain single-precision C in a fixed order, so that the same inputs give the same bits.
 * Pure functions of their arguments. */
#ifndef APPS_MODEL_H
#define APPS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/digits.h"

enum { MODEL_MAX_LAYERS = 4, MODEL_MAX_UNITS = 512 };

/* All to all: weights [to][from]; or a convolution of 3 x 3 pixels, with zeros around the picture:
 * weights [to][from][3][3]. Then a bias for each of `to`. */
struct layer {
	bool conv;
	unsigned from, to;     /* units; of a convolution channels */
	unsigned side, stride; /* of a convolution: pixels a side that go in, and from one to the
				  next that comes out */
	bool relu;
};

struct model {
	const char *name, *text;
	unsigned n_layers;
	struct layer layer[MODEL_MAX_LAYERS];
};

/* "mlp", "cnn"; NULL: no such. */
const struct model *model_find(const char *name);

/* All layers' parameters, one layer after the other. */
unsigned model_params(const struct model *model);

/* Weights uniform in +-sqrt(6 / fan in), biases 0. */
void model_init(const struct model *model, float *param, uint64_t seed);

/* Adds the gradient of one digit's loss to grad[0 .. model_params() - 1] and the loss behind it. */
void model_backward(
	const struct model *model, const float *param, const struct digit *digit, float *grad);

unsigned model_classify(const struct model *model, const float *param, const struct digit *digit);

/* A generator for initial weights and shuffles (splitmix64). */
uint64_t model_random(uint64_t *state);

#endif
