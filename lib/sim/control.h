/* SPDX-License-Identifier: BSD-3-Clause */
/* Control connections on virtual time: between CommLib's rank 0 and the agents of the switches.
 * They are streams, as TCP makes them: bytes arrive in order or the connection breaks; what is lost
 * is sent again later. A message is what one side sends at a time, a request or an answer. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

struct sim;

enum { SIM_CONTROL_MAX_DOWN = 8 };

struct sim_control_conf {
	uint64_t delay_ns;  /* one way */
	uint64_t jitter_ns; /* more, at most; of one connection's messages none overtakes another */
	/* Probabilities per message. loss: of each copy of a message; it is sent again after 200,
	 * 400, 800 ms .., a connection's handshake after 1, 2, 4 s. The sixth loss in a row is the
	 * last: the connection is silent then. One that breaks takes half of the message with it,
	 * and both sides notice. One that goes silent delivers nothing from this message on, and
	 * nobody notices. */
	double loss, brk, silent;
	uint64_t break_nth, silent_nth, late_nth; /* that message alone, counted from 1; 0: none */
	uint64_t late_ns;                         /* how much later the late_nth arrives */
	/* Nobody listens: connections break and none can be made. Of all agents. */
	unsigned n_down;
	struct {
		uint64_t from, until;
	} down[SIM_CONTROL_MAX_DOWN];
	uint64_t timeout_ns; /* of CommLib's steps; 0: 10 s */
};

/* From now on, for all connections. The counts of messages begin anew. */
void sim_set_control(struct sim *sim, const struct sim_control_conf *conf);
uint64_t sim_control_messages(const struct sim *sim);

#endif
