/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast a collective of writes could be over a fabric that loses packets at random, whatever the
 * transport: the mean, by chance, of one that knows of a loss as early as its sender can, when the
 * word of the packet would have come, and then repeats what is lost, and only that, at once, which
 * may be lost again.
 *
 * A transport that sends twice what nobody has said is lost can be faster. */
#ifndef SIM_LOSS_COST_H
#define SIM_LOSS_COST_H

#include <stdint.h>

struct loss_cost_setting {
	double loss;      /* of every packet: 0 or more, below 1 */
	double rtt_ns;    /* from a packet's departure to the word of it */
	unsigned packets; /* of a transfer */
	uint64_t seed;
};

/* A ring of `ranks`, each of which sends `slices` off that go `steps` hops, of hop_ns each where
 * nothing is lost, on connections that hand over in order. The mean of `rounds`, ns; -1: no memory.
 */
double loss_cost_ring(const struct loss_cost_setting *s, unsigned ranks, unsigned slices,
	unsigned steps, double hop_ns, unsigned rounds);

/* n transfers that do not wait for each other; at[round * n + i]: when the i-th has arrived where
 * nothing is lost, ns from the start of its round. The mean over all rounds, each `times` times. */
double loss_cost_apart(const struct loss_cost_setting *s, const uint64_t *at, unsigned n,
	unsigned rounds, unsigned times);

#endif
