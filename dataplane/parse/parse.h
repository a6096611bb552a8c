/* SPDX-License-Identifier: BSD-3-Clause */
/* What the node `parse` makes of packets, for whoever describes the pipeline. */
#ifndef DATAPLANE_PARSE_H
#define DATAPLANE_PARSE_H

#include <stdbool.h>

/* A state in which the parser ends with a packet. */
struct parse_state {
	const char *name, *help;
	/* The node that it goes to: addressed to one of the switch's own addresses; else. "end": it
	 * is lost, or has served. ours NULL: it is looked into, and gets another state. */
	const char *ours, *others;
};

/* State i; false behind the last one. Any thread. */
bool parse_state(unsigned i, struct parse_state *state);

#endif
