/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/loss_cost.h"

#include <stdlib.h>

#include "lib/wire/random.h"

/* What losses add to a transfer: its packets are repeated at the same time, each as often as it is
 * lost. */
static double delay(const struct loss_cost_setting *s, uint64_t *rng)
{
	unsigned most = 0;

	for (unsigned i = 0; i < s->packets; i++) {
		unsigned times = 0;

		while ((double)(wire_random(rng) >> 11) * 0x1p-53 < s->loss)
			times++;
		most = times > most ? times : most;
	}
	return most * s->rtt_ns;
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

/* done[rank]: of the last `slices` transfers on the connection that begins there, by number modulo
 * slices. Its transfers are numbered as they are posted: its own slices, then what has come on the
 * connection before, in that one's order. So transfer q was posted when q - slices was done there.
 */
static double ring_round(const struct loss_cost_setting *s, unsigned ranks, unsigned slices,
	unsigned steps, double hop_ns, double *done, uint64_t *rng)
{
	double *before = done + (size_t)ranks * slices, end = 0;

	for (unsigned q = 0; q < slices * steps; q++) {
		const unsigned at = q % slices;

		for (unsigned r = 0; r < ranks; r++)
			before[r] = q < slices ? 0 : done[r * slices + at];
		for (unsigned r = 0; r < ranks; r++) {
			const double posted = before[(r + ranks - 1) % ranks],
				     prior = q ? done[r * slices + (q - 1) % slices] : 0;
			const double t = later(prior, posted + hop_ns + delay(s, rng));

			done[r * slices + at] = t;
			end = later(end, t);
		}
	}
	return end;
}

double loss_cost_ring(const struct loss_cost_setting *s, unsigned ranks, unsigned slices,
	unsigned steps, double hop_ns, unsigned rounds)
{
	double *done = calloc((size_t)ranks * (slices + 1), sizeof(*done)), sum = 0;
	uint64_t rng = s->seed;

	if (!done)
		return -1;
	for (unsigned i = 0; i < rounds; i++)
		sum += ring_round(s, ranks, slices, steps, hop_ns, done, &rng);
	free(done);
	return sum / rounds;
}

double loss_cost_apart(const struct loss_cost_setting *s, const uint64_t *at, unsigned n,
	unsigned rounds, unsigned times)
{
	uint64_t rng = s->seed;
	double sum = 0;

	for (unsigned k = 0; k < rounds * times; k++) {
		double end = 0;

		for (unsigned i = 0; i < n; i++)
			end = later(end, (double)at[k % rounds * n + i] + delay(s, &rng));
		sum += end;
	}
	return sum / rounds / times;
}
