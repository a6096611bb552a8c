/* SPDX-License-Identifier: BSD-3-Clause */
/* Reaction point of DCQCN (Zhu et al., SIGCOMM 2015, section 3.2): the rate of one flow, cut when
 * a CNP comes and given back in steps of time and of bytes. No clock: what the timers would have
 * done is made up for when the rate is next asked for. A flow that never got a CNP has no rate:
 * one comparison per packet is all it costs. */
#ifndef RNIC_DCQCN_H
#define RNIC_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

struct rnic_congestion;

/* Rates in bit/s, times in ns. */
struct dcqcn_params {
	uint64_t line, min, additive, hyper;
	uint64_t alpha_ns, timer_ns, cut_ns;
	uint64_t bytes;
	uint32_t alpha_shift, recovery_steps;
};

struct dcqcn {
	bool limited;                        /* the fields of the rate mean something */
	bool known;                          /* a CNP came once: alpha means something */
	uint32_t alpha;                      /* of DCQCN_ONE */
	uint64_t rate;                       /* now (R_C) */
	uint64_t target;                     /* to go back to (R_T) */
	uint64_t alpha_at, timer_at, cut_at; /* last: step of alpha, step of the timer, cut */
	uint32_t timer_steps, byte_steps;    /* since the cut */
	uint64_t bytes;                      /* since the last step of the byte counter */
	uint64_t next;                       /* the next packet leaves not before */
};

enum { DCQCN_ONE = 1 << 16 };

/* Fills in the defaults. -EINVAL: a field out of range, see struct rnic_congestion. */
int dcqcn_params_init(struct dcqcn_params *params, const struct rnic_congestion *config);

/* A CNP came. True if the rate was cut (not again within cut_ns). */
bool dcqcn_cnp(struct dcqcn *flow, const struct dcqcn_params *params, uint64_t now);
/* For a limited flow: the time before which it must not send, 0 if it may now. */
uint64_t dcqcn_hold(struct dcqcn *flow, const struct dcqcn_params *params, uint64_t now);
/* A limited flow sent a frame of so many bytes. */
void dcqcn_sent(
	struct dcqcn *flow, const struct dcqcn_params *params, uint32_t bytes, uint64_t now);

#endif
