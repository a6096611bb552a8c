/* SPDX-License-Identifier: BSD-3-Clause */
/* Control sockets that answer the group methods as incline-switch would, each in a thread. Requests
 * are checked against the published schema. */
#ifndef FAKE_SWITCH_H
#define FAKE_SWITCH_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct fake_switch {
	char path[108];
	unsigned number; /* QPNs are 0x1000 * (number + 1) + 0x40 * endpoint, and
			    0x10000 more in each further group */

	/* What the test wants. */
	const char *fail_method; /* answers this method with an error ... */
	int fail_errno;          /* ... of this errno (positive) */
	unsigned fail_times;     /* 0: always */
	const char *lacks;       /* a kind or primitive that it does not offer */
	const char *state;       /* in group.show */
	int missing_rank;        /* in group.show; -1: none */
	unsigned not_ready;      /* answers of group.resync before the group is ready */

	/* What happened; to be read after fake_switch_stop. */
	unsigned creates, activates, deletes, forced, shows;
	unsigned acquires, releases; /* that succeeded */
	unsigned resyncs;            /* likewise; the last one's PSN */
	uint32_t psn;
	unsigned acquired_at; /* the last, in the order of all switches */
	json_t *created;      /* parameters of the last group.create */
	json_t *activated;    /* likewise */
	char breach[256];     /* first request that did not fit the schema */

	int listener;
	pthread_t thread;
	volatile bool stop;
};

void fake_switch_start(struct fake_switch *sw);
void fake_switch_stop(struct fake_switch *sw); /* created and activated stay the caller's */

#endif
