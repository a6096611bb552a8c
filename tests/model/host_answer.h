/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers that wait until the NIC sends them (--coalesce): one at a time, as in lib/rnic, which
 * what comes meanwhile makes newer or turns into another. Positions are indices of mc_program. */
#ifndef MODEL_HOST_ANSWER_H
#define MODEL_HOST_ANSWER_H

#include "tests/model/model.h"

enum mc_answer { MC_ANSWER_NONE, MC_ANSWER_ACK, MC_ANSWER_NAK, MC_ANSWER_RNR };

/* Packet i was taken in order, and epsn has moved. */
void mc_answer_taken(struct mc_host_state *h, unsigned i, bool ackreq);
void mc_answer_duplicate(struct mc_host_state *h);
/* Packet i is behind a gap. */
void mc_answer_gap(struct mc_host_state *h, unsigned i);
/* There is no receive for what was expected. */
void mc_answer_hold(struct mc_host_state *h);
/* The answer has left. */
void mc_answered(struct mc_host_state *h);

#endif
