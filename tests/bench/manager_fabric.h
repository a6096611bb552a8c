/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated fabric of bench-manager: in each pod leaves to all spines; spine s of all pods to
 * its own cores. */
#ifndef BENCH_MANAGER_FABRIC_H
#define BENCH_MANAGER_FABRIC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what)                                                                              \
	do {                                                                                     \
		if (!(what)) {                                                                   \
			fprintf(stderr, "bench-manager: line %d: does not hold: %s\n", __LINE__, \
				#what);                                                          \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)

/* What a switch of it has. */
struct agent_sim {
	char hello[8192];
	unsigned *group; /* epochs' jobs that it has, by number */
	unsigned n, room;
};

extern struct fabric {
	unsigned pods, leaves, n_sw, n_hosts;
	json_t *config;
	struct agent_sim *sw;
} fab;

/* Ends the program if the configuration is not one that a manager takes. */
void fabric_build(bool quick);
void fabric_host_ip(unsigned i, char ip[40]);
void fabric_free(void);

#endif
