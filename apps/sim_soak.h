/* SPDX-License-Identifier: BSD-3-Clause */
/* Soak under faults: everything about a run comes from one seed. A seed stands for a fabric, one to
 * three communicators that work on it at the same time, each with a sequence of collectives that
 * its ranks issue at different times, and what goes wrong on which links. Results are checked; the
 * protocol has to finish whatever happens. */
#ifndef APPS_SIM_SOAK_H
#define APPS_SIM_SOAK_H

#include <jansson.h>
#include <stdint.h>

struct soak_options {
	uint64_t first, count; /* seeds */
	const char *pcap;      /* of the smallest case of the last seed that failed, or NULL */
	unsigned mode;         /* only jobs of this enum ccl_mode; 0: any */
	int verbose;           /* prints every case */
};

/* Each seed runs in a process of its own, so that a crash or an endless loop is a failure as any
 * other. Prints each failure with its seed and the smallest case, found by leaving out what is not
 * needed for it. Fills result with totals. Returns the number of failures, or -errno. */
int soak_run(const struct soak_options *options, json_t *result);

#endif
