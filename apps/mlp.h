/* SPDX-License-Identifier: BSD-3-Clause */
/* A small neural network: 64 pixels - 128 ReLU - 10 classes, softmax cross-entropy, SGD with
 * momentum. Plain single-precision C in a fixed order, so that the same inputs give the same bits.
 * Pure functions of their arguments. */
#ifndef APPS_MLP_H
#define APPS_MLP_H

#include <stddef.h>
#include <stdint.h>

enum {
	MLP_IN = 64,
	MLP_HIDDEN = 128,
	MLP_OUT = 10,
	MLP_W1 = 0, /* [hidden][in] */
	MLP_B1 = MLP_W1 + MLP_HIDDEN * MLP_IN,
	MLP_W2 = MLP_B1 + MLP_HIDDEN, /* [out][hidden] */
	MLP_B2 = MLP_W2 + MLP_OUT * MLP_HIDDEN,
	MLP_PARAMS = MLP_B2 + MLP_OUT,
	MLP_LOSS = MLP_PARAMS, /* the loss travels behind the gradient */
	MLP_GRAD = MLP_PARAMS + 1,
};

struct mlp_sample {
	float pixel[MLP_IN]; /* 0 .. 1 */
	unsigned label;
};

struct mlp {
	float param[MLP_PARAMS];
	float velocity[MLP_PARAMS];
};

/* Weights uniform in +-sqrt(6 / fan in), biases 0. */
void mlp_init(struct mlp *net, uint64_t seed);

/* Adds the gradient of one sample's loss to grad[0 .. MLP_PARAMS-1] and the loss to grad[MLP_LOSS].
 */
void mlp_backward(const struct mlp *net, const struct mlp_sample *sample, float grad[MLP_GRAD]);

/* One step along a gradient summed over `samples`. */
void mlp_step(
	struct mlp *net, const float grad[MLP_GRAD], unsigned samples, float rate, float momentum);

unsigned mlp_classify(const struct mlp *net, const struct mlp_sample *sample);

/* A generator for initial weights and shuffles (splitmix64). */
uint64_t mlp_random(uint64_t *state);

/* Reads a gzipped (or plain) CSV of MLP_IN pixel values 0..16 and a label 0..9 per line. Returns
 * the number of samples, *samples to be freed; or -errno with a sentence in err. */
int mlp_load(const char *path, struct mlp_sample **samples, char *err, size_t cap);

#endif
