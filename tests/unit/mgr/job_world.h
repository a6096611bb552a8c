/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs on a small Clos fabric whose switches are tables of groups, on virtual time, with messages
 * that get lost. */
#ifndef TEST_MGR_JOB_WORLD_H
#define TEST_MGR_JOB_WORLD_H

#include "lib/mgr/job.h"
#include "tests/unit/mgr/fabric.h"
#include "tests/unit/mgr/mgr_test.h"

static const uint64_t MS = 1000000;

enum { MAX_GROUPS = 64, MAX_TOLD = 4096 };

struct world {
	struct fabric f;
	struct mgr_jobs *js;
	uint64_t now, random;
	unsigned lose; /* of messages with switches, per thousand */
	bool deaf[FABRIC_SWITCHES];
	int refuse; /* index of a switch that has no room */
	struct {
		uint64_t epoch;
		enum mgr_action_kind is; /* MGR_INSTALL, MGR_ACTIVATE or MGR_FAIL */
	} group[FABRIC_SWITCHES][MAX_GROUPS];
	unsigned n_groups[FABRIC_SWITCHES];
	struct mgr_action told[MAX_TOLD]; /* ranks */
	uint64_t told_at[MAX_TOLD];
	unsigned n_told;
};

extern const struct mgr_jobs_config world_config;

void world_open(struct world *w);
void world_close(struct world *w);
int world_find_group(const struct world *w, unsigned s, uint64_t epoch);
unsigned world_index_of(const struct world *w, unsigned node);
/* Until nothing is to be done at this time. */
void world_settle(struct world *w);
bool world_told(const struct world *w, uint64_t epoch, enum mgr_action_kind kind);
/* From deadline to deadline. */
void world_until(struct world *w, uint64_t end);
struct mgr_job world_job_of(const char *name, unsigned n);
/* Hosts first, first + step ... join as one process each. */
uint64_t world_join_all(
	struct world *w, const struct mgr_job *job, unsigned first, unsigned step, uint64_t who);
enum mgr_phase world_phase(const struct world *w, uint64_t epoch);
uint64_t world_start(
	struct world *w, const struct mgr_job *job, unsigned first, unsigned step, uint64_t who);
/* As before anything was there. */
void world_nothing_left(const struct world *w);
unsigned world_root_of(const struct world *w, uint64_t epoch);
void world_beat(struct world *w, uint64_t epoch, unsigned n, uint64_t end);

#endif
