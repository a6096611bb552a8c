/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/model.h"

#include <math.h>
#include <string.h>

#include "lib/wire/random.h"

enum { TAPS = 9 }; /* of a convolution's window */

static const struct model models[] = {
	{"mlp", "MLP 64-128-10", 2,
		{{.from = DIGIT_PIXELS, .to = 128, .relu = true},
			{.from = 128, .to = DIGIT_CLASSES}}},
	{"cnn", "CNN 8 and 16 channels of 3x3, then 256-32-10", 4,
		{{.conv = true, .from = 1, .to = 8, .side = DIGIT_SIDE, .stride = 1, .relu = true},
			{.conv = true, .from = 8, .to = 16, .side = 8, .stride = 2, .relu = true},
			{.from = 256, .to = 32, .relu = true}, {.from = 32, .to = DIGIT_CLASSES}}},
};

const struct model *model_find(const char *name)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (strcmp(models[i].name, name) == 0)
			return &models[i];
	return NULL;
}

/* ---- sizes ---- */

static unsigned side_out(const struct layer *l)
{
	return (l->side - 1) / l->stride + 1;
}

static unsigned units_in(const struct layer *l)
{
	return l->from * (l->conv ? l->side * l->side : 1);
}

static unsigned units_out(const struct layer *l)
{
	return l->to * (l->conv ? side_out(l) * side_out(l) : 1);
}

static unsigned fan_in(const struct layer *l)
{
	return l->from * (l->conv ? TAPS : 1);
}

static unsigned n_weights(const struct layer *l)
{
	return l->to * fan_in(l);
}

/* Where the parameters of layer i begin. */
static unsigned params_before(const struct model *m, unsigned i)
{
	unsigned n = 0;

	for (unsigned k = 0; k < i; k++)
		n += n_weights(&m->layer[k]) + m->layer[k].to;
	return n;
}

unsigned model_params(const struct model *m)
{
	return params_before(m, m->n_layers);
}

/* ---- weights ---- */

uint64_t model_random(uint64_t *state)
{
	return wire_random(state);
}

void model_init(const struct model *m, float *param, uint64_t seed)
{
	memset(param, 0, model_params(m) * sizeof(*param));
	for (unsigned i = 0; i < m->n_layers; i++) {
		const struct layer *l = &m->layer[i];
		const float bound = sqrtf(6.0f / (float)fan_in(l));
		float *w = param + params_before(m, i);

		for (unsigned k = 0; k < n_weights(l); k++)
			w[k] = bound * ((float)(model_random(&seed) >> 40) / 8388608.0f - 1.0f);
	}
}

/* ---- all to all ---- */

static void dense(const struct layer *l, const float *w, const float *in, float *out)
{
	const float *bias = w + n_weights(l);

	for (unsigned o = 0; o < l->to; o++) {
		float sum = 0;

		for (unsigned i = 0; i < l->from; i++)
			sum += w[o * l->from + i] * in[i];
		out[o] = bias[o] + sum;
	}
}

/* By d_out, the slope of the loss by what comes out, adds that by the parameters and by what goes
 * in. */
static void dense_back(const struct layer *l, const float *w, const float *in, const float *d_out,
	float *grad, float *d_in)
{
	float *bias = grad + n_weights(l);

	for (unsigned o = 0; o < l->to; o++) {
		if (d_out[o] == 0)
			continue;
		bias[o] += d_out[o];
		for (unsigned i = 0; i < l->from; i++) {
			grad[o * l->from + i] += d_out[o] * in[i];
			d_in[i] += d_out[o] * w[o * l->from + i];
		}
	}
}

/* ---- convolution ---- */

struct tap {
	unsigned weight, pixel; /* of a channel */
};

/* What of the window around a pixel that comes out is in the picture. */
static unsigned window(const struct layer *l, unsigned y, unsigned x, struct tap tap[TAPS])
{
	unsigned n = 0;

	for (unsigned k = 0; k < TAPS; k++) {
		const unsigned row = y * l->stride + k / 3, column = x * l->stride + k % 3;

		if (row >= 1 && row <= l->side && column >= 1 && column <= l->side)
			tap[n++] = (struct tap){k, (row - 1) * l->side + column - 1};
	}
	return n;
}

static void conv(const struct layer *l, const float *w, const float *in, float *out)
{
	const unsigned pixels = l->side * l->side, side = side_out(l);
	const float *bias = w + n_weights(l);
	struct tap tap[TAPS];

	for (unsigned at = 0; at < side * side; at++) {
		const unsigned n = window(l, at / side, at % side, tap);

		for (unsigned o = 0; o < l->to; o++) {
			float sum = bias[o];

			for (unsigned c = 0; c < l->from; c++)
				for (unsigned k = 0; k < n; k++)
					sum += w[(o * l->from + c) * TAPS + tap[k].weight] *
					       in[c * pixels + tap[k].pixel];
			out[o * side * side + at] = sum;
		}
	}
}

static void conv_back(const struct layer *l, const float *w, const float *in, const float *d_out,
	float *grad, float *d_in)
{
	const unsigned pixels = l->side * l->side, side = side_out(l);
	float *bias = grad + n_weights(l);
	struct tap tap[TAPS];

	for (unsigned at = 0; at < side * side; at++) {
		const unsigned n = window(l, at / side, at % side, tap);

		for (unsigned o = 0; o < l->to; o++) {
			const float d = d_out[o * side * side + at];

			bias[o] += d;
			for (unsigned c = 0; d != 0 && c < l->from; c++)
				for (unsigned k = 0; k < n; k++) {
					const unsigned wk =
						(o * l->from + c) * TAPS + tap[k].weight;
					const unsigned ik = c * pixels + tap[k].pixel;

					grad[wk] += d * in[ik];
					d_in[ik] += d * w[wk];
				}
		}
	}
}

/* ---- the whole ---- */

/* unit[0] is what goes in, unit[i + 1] what comes out of layer i. */
static void forward(const struct model *m, const float *param,
	float unit[MODEL_MAX_LAYERS + 1][MODEL_MAX_UNITS])
{
	for (unsigned i = 0; i < m->n_layers; i++) {
		const struct layer *l = &m->layer[i];
		const float *w = param + params_before(m, i);

		(l->conv ? conv : dense)(l, w, unit[i], unit[i + 1]);
		for (unsigned k = 0; l->relu && k < units_out(l); k++)
			unit[i + 1][k] = unit[i + 1][k] > 0 ? unit[i + 1][k] : 0;
	}
}

/* out becomes probabilities; returns the loss. */
static float softmax_loss(float out[DIGIT_CLASSES], unsigned label)
{
	float max = out[0], sum = 0;

	for (unsigned o = 1; o < DIGIT_CLASSES; o++)
		max = out[o] > max ? out[o] : max;
	for (unsigned o = 0; o < DIGIT_CLASSES; o++) {
		out[o] = expf(out[o] - max);
		sum += out[o];
	}
	for (unsigned o = 0; o < DIGIT_CLASSES; o++)
		out[o] /= sum;
	return -logf(out[label] > 1e-30f ? out[label] : 1e-30f);
}

void model_backward(
	const struct model *m, const float *param, const struct digit *digit, float *grad)
{
	float unit[MODEL_MAX_LAYERS + 1][MODEL_MAX_UNITS], d[2][MODEL_MAX_UNITS];
	float *d_out = d[0], *d_in = d[1], *swap;

	memcpy(unit[0], digit->pixel, sizeof(digit->pixel));
	forward(m, param, unit);
	memcpy(d_out, unit[m->n_layers], DIGIT_CLASSES * sizeof(*d_out));
	grad[model_params(m)] += softmax_loss(d_out, digit->label);
	d_out[digit->label] -= 1.0f;
	for (unsigned i = m->n_layers; i-- > 0;) {
		const struct layer *l = &m->layer[i];
		const unsigned at = params_before(m, i);

		for (unsigned k = 0; l->relu && k < units_out(l); k++)
			d_out[k] = unit[i + 1][k] > 0 ? d_out[k] : 0;
		memset(d_in, 0, units_in(l) * sizeof(*d_in));
		(l->conv ? conv_back : dense_back)(l, param + at, unit[i], d_out, grad + at, d_in);
		swap = d_out;
		d_out = d_in;
		d_in = swap;
	}
}

unsigned model_classify(const struct model *m, const float *param, const struct digit *digit)
{
	float unit[MODEL_MAX_LAYERS + 1][MODEL_MAX_UNITS];
	const float *out = unit[m->n_layers];
	unsigned best = 0;

	memcpy(unit[0], digit->pixel, sizeof(digit->pixel));
	forward(m, param, unit);
	for (unsigned o = 1; o < DIGIT_CLASSES; o++)
		best = out[o] > out[best] ? o : best;
	return best;
}
