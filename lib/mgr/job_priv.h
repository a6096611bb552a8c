/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of lib/mgr/job*.c. */
#ifndef MGR_JOB_PRIV_H
#define MGR_JOB_PRIV_H

#include "lib/mgr/heap.h"
#include "lib/mgr/job.h"

struct mgr_run_rank {
	struct mgr_rank info;
	uint64_t seen;
	bool joined, ready, left;
	bool gone; /* its connection is, and it was not heard of since */
};

struct mgr_run_sw {
	unsigned node;
	enum mgr_step at;
	bool asked;       /* it may have the group */
	uint64_t tell_at; /* again */
};

struct mgr_run {
	struct mgr_run *next, *before;          /* by descending epoch */
	struct mgr_run *next_epoch, *next_name; /* of the same hash */
	unsigned slot;
	uint64_t epoch;
	struct mgr_job job;
	struct mgr_run_rank *rank;
	unsigned n_joined;
	enum mgr_phase phase;
	enum mgr_step want; /* of its switches */
	struct mgr_plan plan;
	struct mgr_run_sw *sw; /* that take part */
	unsigned n_sw;
	bool placed; /* plan and sw are there */
	mgr_promise promise;
	enum mgr_why why;
	enum mgr_end end;
	unsigned culprit;
	char note[MGR_LINE_LEN / 2]; /* of how it fares, "": none */
	unsigned note_of;
	uint64_t note_at;
	uint64_t since; /* when it went on by the hosts' ring; UINT64_MAX: nobody knows */
	bool tell;      /* ranks, of the phase */
	uint64_t phase_by, remove_at, forget_at;
	/* For mgr_jobs_changed. */
	struct mgr_run *next_changed;
	bool listed, known, gone; /* among the changed; given out once; it is in no other list */
	unsigned n_ready, n_left;
	struct mgr_run_mark {
		enum mgr_phase phase;
		enum mgr_step want;
		enum mgr_end end;
		unsigned culprit, n_ready, n_left;
	} given; /* as it was then */
};

struct mgr_jobs {
	struct mgr_graph *g;
	struct mgr_book *b;
	struct mgr_place *p;
	struct mgr_jobs_config config;
	struct mgr_run *run; /* by descending epoch */
	unsigned n_runs;
	struct mgr_run **by_epoch, **by_name; /* hashed; a name's runs by descending epoch */
	struct mgr_run **slot;
	unsigned n_slots, *free_slot, n_free;
	struct mgr_heap *due; /* by slot: no later than the run's deadline, 0 after a change */
	uint64_t epoch;
	uint64_t hold_until, hold_ns;    /* nobody is placed before; how long that was to take */
	struct mgr_run *changed, *freed; /* freed: given out as gone, of the last call */
};

/* job.c, for job_keep.c */
struct mgr_run *mgr_run_find(const struct mgr_jobs *js, uint64_t epoch);
struct mgr_run_sw *mgr_run_switch(struct mgr_run *r, unsigned node);
int mgr_run_new(
	struct mgr_jobs *js, const struct mgr_job *job, uint64_t epoch, struct mgr_run **out);
void mgr_run_take_out(struct mgr_jobs *js, struct mgr_run *r);
/* It may have something to do, or to wait for, earlier than before; it may have changed. */
void mgr_run_touch(struct mgr_jobs *js, struct mgr_run *r);

/* job_run.c, for job_keep.c: the switches of its plan that take part. */
int mgr_run_list_switches(struct mgr_run *r);

/* job_keep.c: it may have changed; it has been taken out, and is freed, now or when that has been
 * told. The last: all that waits for this. */
void mgr_run_note(struct mgr_jobs *js, struct mgr_run *r);
void mgr_run_gone(struct mgr_jobs *js, struct mgr_run *r);
void mgr_run_free_gone(struct mgr_jobs *js);

/* All ranks are there: places the group, or gives them the ring. */
void mgr_run_place(struct mgr_jobs *js, struct mgr_run *r, uint64_t now);

/* Ends a run, or takes it out of the network. */
void mgr_run_fail(
	struct mgr_jobs *js, struct mgr_run *r, enum mgr_end end, unsigned culprit, uint64_t now);

/* All who have joined; also if nobody has. */
bool mgr_run_all_left(const struct mgr_run *r);
/* All have joined, and are held. */
bool mgr_run_is_held(const struct mgr_jobs *js, const struct mgr_run *r);
/* Goes on if all switches, or all ranks, are where the phase wants them. */
void mgr_run_advance(struct mgr_jobs *js, struct mgr_run *r, uint64_t now);

/* A switch is where a message says; or has nothing of the group any more. */
void mgr_run_step(struct mgr_jobs *js, struct mgr_run *r, struct mgr_run_sw *s, enum mgr_step at);

/* What time does to it; then the next action, if any. */
void mgr_run_time(struct mgr_jobs *js, struct mgr_run *r, uint64_t now);
bool mgr_run_action(struct mgr_jobs *js, struct mgr_run *r, uint64_t now, struct mgr_action *out);
uint64_t mgr_run_deadline(const struct mgr_jobs *js, const struct mgr_run *r);

/* Nothing is left to be done, and nobody asks any more. */
bool mgr_run_forgotten(const struct mgr_run *r, uint64_t now);
void mgr_run_free(struct mgr_jobs *js, struct mgr_run *r);

#endif
