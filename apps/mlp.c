/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/mlp.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lib/wire/random.h"

uint64_t mlp_random(uint64_t *state)
{
	return wire_random(state);
}

static void fill(float *w, unsigned n, unsigned fan_in, uint64_t *rng)
{
	const float bound = sqrtf(6.0f / (float)fan_in);

	for (unsigned i = 0; i < n; i++)
		w[i] = bound * ((float)(mlp_random(rng) >> 40) / 8388608.0f - 1.0f);
}

void mlp_init(struct mlp *net, uint64_t seed)
{
	memset(net, 0, sizeof(*net));
	fill(net->param + MLP_W1, MLP_HIDDEN * MLP_IN, MLP_IN, &seed);
	fill(net->param + MLP_W2, MLP_OUT * MLP_HIDDEN, MLP_HIDDEN, &seed);
}

static float dot(const float *a, const float *b, unsigned n)
{
	float sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void forward(const struct mlp *net, const float *x, float *hidden, float *out)
{
	const float *p = net->param;

	for (unsigned h = 0; h < MLP_HIDDEN; h++) {
		const float z = p[MLP_B1 + h] + dot(p + MLP_W1 + h * MLP_IN, x, MLP_IN);

		hidden[h] = z > 0 ? z : 0;
	}
	for (unsigned o = 0; o < MLP_OUT; o++)
		out[o] = p[MLP_B2 + o] + dot(p + MLP_W2 + o * MLP_HIDDEN, hidden, MLP_HIDDEN);
}

/* out becomes probabilities; returns the loss. */
static float softmax_loss(float *out, unsigned label)
{
	float max = out[0], sum = 0;

	for (unsigned o = 1; o < MLP_OUT; o++)
		max = out[o] > max ? out[o] : max;
	for (unsigned o = 0; o < MLP_OUT; o++) {
		out[o] = expf(out[o] - max);
		sum += out[o];
	}
	for (unsigned o = 0; o < MLP_OUT; o++)
		out[o] /= sum;
	return -logf(out[label] > 1e-30f ? out[label] : 1e-30f);
}

void mlp_backward(const struct mlp *net, const struct mlp_sample *s, float grad[MLP_GRAD])
{
	float hidden[MLP_HIDDEN], out[MLP_OUT], back[MLP_HIDDEN] = {0};
	const float *w2 = net->param + MLP_W2;

	forward(net, s->pixel, hidden, out);
	grad[MLP_LOSS] += softmax_loss(out, s->label);
	out[s->label] -= 1.0f;
	for (unsigned o = 0; o < MLP_OUT; o++) {
		float *g = grad + MLP_W2 + o * MLP_HIDDEN;

		grad[MLP_B2 + o] += out[o];
		for (unsigned h = 0; h < MLP_HIDDEN; h++) {
			g[h] += out[o] * hidden[h];
			back[h] += out[o] * w2[o * MLP_HIDDEN + h];
		}
	}
	for (unsigned h = 0; h < MLP_HIDDEN; h++) {
		float *g = grad + MLP_W1 + h * MLP_IN;

		if (hidden[h] <= 0)
			continue;
		grad[MLP_B1 + h] += back[h];
		for (unsigned i = 0; i < MLP_IN; i++)
			g[i] += back[h] * s->pixel[i];
	}
}

void mlp_step(
	struct mlp *net, const float grad[MLP_GRAD], unsigned samples, float rate, float momentum)
{
	const float scale = 1.0f / (float)samples;

	for (unsigned i = 0; i < MLP_PARAMS; i++) {
		net->velocity[i] = momentum * net->velocity[i] + grad[i] * scale;
		net->param[i] -= rate * net->velocity[i];
	}
}

unsigned mlp_classify(const struct mlp *net, const struct mlp_sample *s)
{
	float hidden[MLP_HIDDEN], out[MLP_OUT];
	unsigned best = 0;

	forward(net, s->pixel, hidden, out);
	for (unsigned o = 1; o < MLP_OUT; o++)
		best = out[o] > out[best] ? o : best;
	return best;
}

/* ---- data ---- */

static bool parse_line(const char *line, struct mlp_sample *s)
{
	for (unsigned i = 0; i <= MLP_IN; i++) {
		char *end;
		const long v = strtol(line, &end, 10);

		if (end == line || v < 0 || v > (i < MLP_IN ? 16 : MLP_OUT - 1) ||
			(i < MLP_IN ? *end != ',' : *end && !strchr("\r\n", *end)))
			return false;
		if (i < MLP_IN)
			s->pixel[i] = (float)v / 16.0f;
		else
			s->label = (unsigned)v;
		line = end + 1;
	}
	return true;
}

int mlp_load(const char *path, struct mlp_sample **samples, char *err, size_t cap)
{
	gzFile f = gzopen(path, "r");
	struct mlp_sample *list = NULL, *more;
	char line[1024];
	int n = 0, status;

	if (!f) {
		snprintf(err, cap, "%s: %s", path, strerror(errno));
		return -ENOENT;
	}
	while (gzgets(f, line, sizeof(line))) {
		more = n % 256 ? list : realloc(list, (size_t)(n + 256) * sizeof(*list));
		list = more ? more : list;
		if (!more || !parse_line(line, &list[n])) {
			snprintf(err, cap, "%s:%d: not %d pixels 0..16 and a label 0..%d", path,
				n + 1, MLP_IN, MLP_OUT - 1);
			break;
		}
		n++;
	}
	gzerror(f, &status);
	if (!gzeof(f) || status < 0 || n == 0) {
		if (gzeof(f) || status < 0)
			snprintf(err, cap, "%s: %s", path, n ? "damaged" : "empty or damaged");
		gzclose(f);
		free(list);
		return -EINVAL;
	}
	gzclose(f);
	*samples = list;
	return n;
}
