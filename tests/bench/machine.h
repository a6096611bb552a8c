/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a bench ran: in a line on stdout, and as JSON. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <jansson.h>

/* Processor, CPUs, load, commit (INCLINE_COMMIT, as tools/bench sets it); a new reference. busy:
 * what a busy machine does to the figures. */
json_t *bench_machine(const char *busy);

#endif
