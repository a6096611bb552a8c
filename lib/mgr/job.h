/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of jobs' groups (EPIC 3.3.1 and 3.4): ranks join, a tree is placed and installed, ranks
 * connect, switches are activated; ranks leave, or something fails, and all of it is taken away
 * again. Messages and the time are arguments; what is to be done is asked for, one action at a
 * time, and said again until the switch has answered.
 *
 * Each time a job is set up it is a run, and has an epoch: a number that no other run has, larger
 * than all before. Switches are told it with everything, and refuse what is older; what is said
 * here of an epoch that is over changes nothing (-ESTALE). A job fails as a run: survivors join
 * again and get another epoch, on the fabric as it is then (EPIC 3.4: "by reinitializing groups").
 * No rank is special.
 *
 * Failures, and what is done:
 *
 *	a rank silent for 3 heartbeats, or a rank that joins anew	run over
 *	the group failed on a switch; a switch started anew; a link of
 *	the tree went down; a switch refuses or does not answer		out of the network
 *
 * "Run over": all its switches fail the group at once, ranks are told why. "Out of the network" is
 * that too if the group was active, unless the job asked to go on by the ring of its hosts; before
 * that the ranks get the ring. After drain_ns every switch removes its group; what it held is free
 * when it has answered, switch by switch: one that never answers keeps only its own. A switch that
 * lost its connection and comes back as it was (same boot number) is no event.
 *
 * One owner, no clock, no I/O. Heap within max_runs and MGR_MAX_MEMBERS. */
#ifndef MGR_JOB_H
#define MGR_JOB_H

#include "lib/mgr/policy.h"

/* Heartbeats: missed in a row by who is dead; and so many more after a restart. */
enum { MGR_MISSED = 3, MGR_GRACE = 2 };

/* From a restart on: who was there before and has not been heard of by then is dead. */
static inline uint64_t mgr_return_ns(uint64_t heartbeat_ns)
{
	return (MGR_MISSED + MGR_GRACE) * heartbeat_ns;
}

struct mgr_jobs_config {
	const struct mgr_policy *policy;
	unsigned max_runs;
	uint64_t first_epoch;  /* larger than any that a switch may know */
	uint64_t heartbeat_ns; /* of ranks; after MGR_MISSED without a sign one is dead */
	uint64_t join_ns;      /* for all ranks to join */
	uint64_t answer_ns;    /* for a switch to install or activate */
	uint64_t retry_ns;     /* until a switch is told again */
	uint64_t drain_ns;     /* from failing a group to removing it */
	uint64_t linger_ns;    /* that a run which is over can be explained */
	uint64_t owner_bytes;  /* of all jobs of an owner, on a switch; 0: no limit */
	uint64_t key[2];       /* of the table of names: random, and told to nobody */
	bool kept;             /* mgr_jobs_changed is asked before anything is done */
};

enum mgr_phase {
	MGR_JOINING,
	MGR_INSTALLING,
	MGR_CONNECTING, /* ranks have the plan; not all are ready */
	MGR_STARTING,
	MGR_ACTIVE,
	MGR_RING, /* by the hosts */
	MGR_OVER,
};

enum mgr_end {
	MGR_END_NONE,
	MGR_END_LEFT,
	MGR_END_RANK_SILENT,
	MGR_END_RANK_AGAIN, /* a rank joined anew */
	MGR_END_JOIN_TIME,
	MGR_END_GROUP_FAILED,
	MGR_END_GROUP_GONE,  /* a switch does not have it */
	MGR_END_SWITCH_LOST, /* started anew, or removed from the fabric */
	MGR_END_SWITCH_SILENT,
	MGR_END_REFUSED,
	MGR_END_LINK_DOWN,
	MGR_ENDS
};

/* The same in each rank's join. */
struct mgr_job {
	char name[MGR_NAME_LEN];
	char owner[MGR_NAME_LEN]; /* whose it is, "": nobody's; its memory may be limited */
	unsigned n_ranks;
	struct mgr_shape shape;
	uint64_t want_bps, least_bps;
	unsigned duty;
	bool promised, low;
	bool ring; /* goes on by the hosts if the network fails in the middle: who does so stays */
};

/* A rank that joins. */
struct mgr_rank {
	unsigned rank;
	uint64_t who; /* another number for another process, and secret: nobody guesses it */
	struct mgr_member at;
	unsigned modes; /* that its device can do */
	bool yields;    /* does not take the place of who is there: mgr_jobs_join */
};

enum mgr_action_kind {
	/* To a switch. */
	MGR_INSTALL,
	MGR_ACTIVATE,
	MGR_FAIL,
	MGR_REMOVE,
	/* To all ranks of the run that have not left. */
	MGR_TELL_PLAN, /* connect, then say ready */
	MGR_TELL_START,
	MGR_TELL_RING,
	MGR_TELL_OVER,
};

struct mgr_action {
	enum mgr_action_kind kind;
	uint64_t epoch;
	unsigned node; /* the switch */
};

struct mgr_jobs;

/* All three outlive it. -> NULL without memory. */
struct mgr_jobs *mgr_jobs_new(struct mgr_graph *g, struct mgr_book *b, struct mgr_place *p,
	const struct mgr_jobs_config *config);
/* Releases what the book holds for it. */
void mgr_jobs_free(struct mgr_jobs *js);

/* For runs that are placed from now on; others keep what they have. */
void mgr_jobs_set_policy(struct mgr_jobs *js, const struct mgr_policy *policy);

/* Joins the run that is being joined, or begins one; *epoch is the run's. The same again changes
 * nothing. Another process in the place of one that joined before: takes it while the run is being
 * joined, else that run is over; if it yields, only when that one has left, or has gone
 * (mgr_jobs_gone), else -EBUSY. (A run of fewer ranks, which has no such place: only when all
 * have.) -EINVAL: ranks, name or shape, or not what the others said; -ENOSPC: max_runs; -ENOMEM. */
int mgr_jobs_join(struct mgr_jobs *js, const struct mgr_job *job, const struct mgr_rank *rank,
	uint64_t now, uint64_t *epoch);

/* Is this rank of the run another process's? Comparing takes the same time whatever differs. */
bool mgr_jobs_is_other(const struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t who);

/* From ranks. -ESTALE: the run is over or gone; -EINVAL: no such rank. Who leaves a run that is
 * still being joined frees his place; the run is over when the last one has left. */
int mgr_jobs_ready(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now);
int mgr_jobs_heartbeat(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now);
int mgr_jobs_leave(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now);
/* A rank has gone without a word. Of a run that is still being joined its place is free at once, so
 * that nobody is placed with who is dead, and the run is over with the last one; else (-EALREADY)
 * the rank has its heartbeats to come back, but its place is free for another process. */
int mgr_jobs_gone(struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t now);

/* Whose ranks have all joined is placed only when ns have passed, or as soon as it is 0: the graph
 * does not yet say what there is, and who is placed too early gets the hosts' ring for good.
 * mgr_jobs_explain tells them how long it may take. */
void mgr_jobs_hold(struct mgr_jobs *js, uint64_t ns, uint64_t now);

/* A switch has done as told, or (rc, negative) has not. -ESTALE: nobody waits for that any more. */
int mgr_jobs_answer(struct mgr_jobs *js, uint64_t epoch, unsigned node, enum mgr_action_kind what,
	int rc, uint64_t now);

/* Events. All return how many runs they end or move out of the network. */
unsigned mgr_jobs_group_failed(struct mgr_jobs *js, uint64_t epoch, unsigned node, uint64_t now);
unsigned mgr_jobs_switch_lost(struct mgr_jobs *js, unsigned node, uint64_t now);
unsigned mgr_jobs_link_down(struct mgr_jobs *js, unsigned link, uint64_t now);

/* The next thing to do, false: nothing now. Ask again after every call above, and at the deadline
 * (UINT64_MAX: never). */
bool mgr_jobs_next(struct mgr_jobs *js, uint64_t now, struct mgr_action *out);
uint64_t mgr_jobs_deadline(const struct mgr_jobs *js);

/* ---- over a restart of who has this ---- */

/* How far switches are wanted to be with a group. */
enum mgr_step {
	MGR_STEP_NONE,
	MGR_STEP_INSTALLED,
	MGR_STEP_ACTIVE,
	MGR_STEP_FAILED,
	MGR_STEP_GONE
};

/* All of a run that has to be known to go on with it. */
struct mgr_run_kept {
	uint64_t epoch;
	struct mgr_job job;
	const struct mgr_plan *plan; /* NULL: none */
	enum mgr_phase phase;        /* not MGR_JOINING: ranks join again */
	enum mgr_step want;
	enum mgr_why why;
	enum mgr_end end;
	unsigned culprit;
	/* Of a rank: the number of its process; is it ready, has it left. */
	uint64_t (*who)(const void *ranks, unsigned rank);
	bool (*ready)(const void *ranks, unsigned rank);
	bool (*left)(const void *ranks, unsigned rank);
	const void *ranks;
};

/* With config.kept: the next run that has changed since it was last asked for, to be written down
 * before the next action is carried out and the next answer given; false: none. gone: nothing has
 * to be known of it any more. first: it is here for the first time, else plan, job and who are as
 * before. Valid until the next call. */
bool mgr_jobs_changed(struct mgr_jobs *js, struct mgr_run_kept *out, bool *first, bool *gone);

/* Goes on with such a run, by ascending epochs, before anybody joins. The plan becomes
 * its own. Its ranks have mgr_return_ns to be heard of; switches are told again what they may
 * not have heard. -EINVAL: it contradicts itself; -ENOMEM; nothing has changed then. */
int mgr_jobs_restore(struct mgr_jobs *js, const struct mgr_run_kept *kept, uint64_t now);

/* A switch has no group of a run that is active there: as mgr_jobs_group_failed, and it has nothing
 * to fail or remove. */
unsigned mgr_jobs_missing(struct mgr_jobs *js, uint64_t epoch, unsigned node, uint64_t now);
/* The newest epoch below this one of a run that is active on the switch; 0: no more. One call after
 * the other, each with what the one before returned, they look at each run once. */
uint64_t mgr_jobs_expected(const struct mgr_jobs *js, unsigned node, uint64_t before);

/* What else is known of how a run fares, in a few words that explain says: why it failed (of: 0),
 * or of how many ranks one must be what it waits for (UINT_MAX: not known), and since when that is
 * known. What tells more of them apart than another of the last ten seconds does not count. It is
 * forgotten with the run, and not kept. */
void mgr_jobs_note(
	struct mgr_jobs *js, uint64_t epoch, unsigned of, uint64_t now, const char *text);

/* The next run's epoch. */
uint64_t mgr_jobs_next_epoch(const struct mgr_jobs *js);

/* ---- to look at ---- */

/* The run with this epoch; false: gone. Until the next call. */
struct mgr_run_view {
	const struct mgr_job *job;
	const struct mgr_plan *plan; /* NULL: none */
	enum mgr_phase phase;
	enum mgr_why why;
	enum mgr_end end;
	unsigned culprit; /* rank, switch or link */
};
bool mgr_jobs_view(const struct mgr_jobs *js, uint64_t epoch, struct mgr_run_view *out);

/* Epoch of a job's last run, 0: none is known. */
uint64_t mgr_jobs_find(const struct mgr_jobs *js, const char *name);
unsigned mgr_jobs_count(const struct mgr_jobs *js);
/* Runs of an owner that are not over; *ranks: of all of them. */
unsigned mgr_jobs_of(const struct mgr_jobs *js, const char *owner, unsigned *ranks);
/* The newest epoch below this one, 0: there is none. */
uint64_t mgr_jobs_before(const struct mgr_jobs *js, uint64_t epoch);

/* In a line: its phase; its tree, mode, switches and memory, or why not and what would have to
 * change; why it is over, or since when, and why, it goes on by the hosts' ring. -ENOENT: no such
 * job. */
int mgr_jobs_explain(
	const struct mgr_jobs *js, const char *name, uint64_t now, char *line, unsigned len);

#endif
