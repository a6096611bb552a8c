/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of lib/flowsim/flowsim.c and group.c. */
#ifndef FLOWSIM_PRIV_H
#define FLOWSIM_PRIV_H

#include "lib/flowsim/flowsim.h"
#include "lib/mgr/heap.h"

struct fs_group {
	unsigned n, *host; /* indices of the fabric */
	double bytes;
	bool placed;
	struct mgr_plan plan;
	mgr_promise promise;
};

/* A collective on its way, by the water's flow. */
struct fs_flow {
	unsigned job, group;
	double left, rate;
	uint64_t since;
};

enum fs_phase { FS_COMPUTE, FS_TENSOR, FS_DATA };

struct fs_run {
	struct fs_group *group; /* tensor parallel, then data parallel */
	unsigned n_tensor, n_groups, *block;
	enum fs_phase phase;
	unsigned iteration, pending;
};

struct fs_sim {
	struct fs_fabric *f;
	struct fs_config config;
	const struct fs_job *job;
	unsigned n_jobs, submitted, started, ended;
	struct fs_run *run; /* by job */
	struct fs_result *result;
	bool *busy; /* by block of tp hosts */
	unsigned n_blocks, n_free;
	uint64_t random, now;
	struct mgr_heap flows, jobs; /* when they are done */
	struct fs_flow *flow;
	unsigned flow_room;
	unsigned *way; /* scratch, for the largest group */
	unsigned way_room;
	struct fs_totals totals;
	uint64_t groups, bytes, since; /* held now on all switches */
	double group_ns, byte_ns;
};

/* Tensor groups within blocks, data groups across them. -ENOMEM. */
int fs_run_new(struct fs_sim *s, unsigned job);
void fs_run_end(struct fs_sim *s, unsigned job);

/* Places the groups of a job that keep what they get. */
void fs_run_place(struct fs_sim *s, unsigned job);

/* A collective starts, or is over. */
int fs_group_start(struct fs_sim *s, unsigned job, unsigned group);
void fs_group_over(struct fs_sim *s, unsigned job, unsigned group);

#endif
