/* SPDX-License-Identifier: BSD-3-Clause */
/* One case of the soak, and how it is made smaller. Plain data: copied, changed, run again. */
#ifndef APPS_SIM_SOAK_CASE_H
#define APPS_SIM_SOAK_CASE_H

#include <stdio.h>

#include "lib/sim/coll.h"

enum { SOAK_MAX_JOBS = 3, SOAK_MAX_WORK = 6, SOAK_MAX_FAULTS = 6, SOAK_ALL_LINKS = 0xffff };

enum soak_fault_kind {
	SOAK_LOSS,
	SOAK_BURST,
	SOAK_NTH,
	SOAK_DUP,
	SOAK_REORDER,
	SOAK_CORRUPT,
	SOAK_DOWN,
	SOAK_QUEUE,
	SOAK_N_FAULTS
};

struct soak_fault {
	enum soak_fault_kind kind;
	unsigned link; /* modulo the number of links, or SOAK_ALL_LINKS */
	double p;
	uint64_t from, len; /* ns; SOAK_NTH: from is the frame; SOAK_QUEUE: bytes */
};

struct soak_job {
	enum ccl_mode mode;
	enum ccl_kind kind;
	uint16_t mtu, m, w, flags;
	uint32_t start_psn;
	unsigned first_host, n_ranks, n_work;
	uint64_t skew_ns;
	struct sim_work work[SOAK_MAX_WORK];
};

struct soak_case {
	uint64_t seed;
	char topology[32];
	uint64_t mbps, delay_ns;
	struct sim_control_conf control;
	unsigned n_jobs, n_faults;
	struct soak_job job[SOAK_MAX_JOBS];
	struct soak_fault fault[SOAK_MAX_FAULTS];
};

/* The case of a seed; mode: of all its jobs, 0: drawn. */
void soak_case_make(struct soak_case *c, uint64_t seed, unsigned mode);
void soak_case_print(const struct soak_case *c, FILE *out);

/* The i-th way to make it smaller: false if there is no i-th; *changed: it did something. */
bool soak_case_shrink(struct soak_case *c, unsigned i, bool *changed);

struct soak_outcome {
	int rc; /* 0, or negative errno */
	uint64_t hash, hops, virtual_ns;
	unsigned refused; /* communicators that could not be made: control connections failed */
	char text[CCL_ERR_LEN];
};

/* Builds it all, runs it, checks it. */
void soak_case_run(const struct soak_case *c, const char *pcap, struct soak_outcome *out);

#endif
