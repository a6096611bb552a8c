/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric of two leaves and three spines whose switches are real agents on switches without
 * packets, a real manager, and jobs of two ranks that do what CommLib does; on virtual time. */
#ifndef TESTS_MANAGER_WORLD_H
#define TESTS_MANAGER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctrl/agent/agent.h"
#include "ctrl/manager/manager.h"
#include "ctrl/manager/store.h"
#include "tests/unit/ctl/fake_switch.h"

enum { LEAVES = 2, SPINES = 3, SWITCHES = LEAVES + SPINES, JOBS = 3, RANKS = 2 };

struct world_switch {
	struct sw *sw; /* NULL: dead */
	struct agent *agent;
	struct agent_peer manager;  /* its connection */
	bool connected, cut_off;    /* cut_off: the control network loses everything */
	struct agent_peer lost[64]; /* connections of whose end it has not heard */
	unsigned n_lost;
};

struct world_rank {
	struct manager_peer peer;
	bool alive, connected;
	uint64_t asked;
	uint64_t who, epoch;
	char phase[16], line[512];
	bool ready;
	json_t *window;                 /* that it was last told; NULL: none */
	uint64_t told;                  /* when */
	struct agent_peer at[SWITCHES]; /* rank 0: its connections to switches */
};

struct world_job {
	struct world_rank rank[RANKS];
	bool again;          /* ranks that hear that it is over join anew */
	bool resume;         /* if the network fails in the middle they go on by their ring */
	int duty;            /* 0: its memory is its own */
	int mbps;            /* more is of no use to it; 0: as much as there is */
	uint64_t installed;  /* epoch of which all switches have a group that is active */
	uint64_t installing; /* of which rank 0 has begun to make them */
	json_t *plan;        /* that it follows, whatever happens meanwhile; NULL: none */
	unsigned steps;      /* that it has done: a group made each, then one activated each */
	char tree[128];
	bool holds;        /* the lease of its window's block */
	unsigned acquired; /* times */
};

struct world {
	uint64_t now;
	json_t *config;
	struct manager *m;                /* NULL: dead */
	struct world_switch sw[SWITCHES]; /* leaves first */
	struct world_job job[JOBS];
	uint64_t random;
	uint64_t step_ms, watch_ms; /* time's; between questions of ranks that work, 0: each step */
	bool slowly;                /* rank 0 gets to one switch of its tree in a step */
	unsigned late;              /* epochs of a former manager */
	struct store *store;        /* NULL: nothing outlives the manager */
	/* The manager dies at this line to a switch, or with its store, and is started anew. */
	unsigned lines, die_at_line; /* 0: at none */
	bool dying;
	char said[512]; /* the last line of its log */
	/* What switch i says to it in place of this answer, both to be freed; NULL: as it is. */
	char *(*says)(unsigned i, char *answer);
};

void world_open(struct world *w);
void world_open_with(struct world *w, struct store *store);
void world_close(struct world *w);

void world_start_manager(struct world *w);
void world_kill_manager(struct world *w);
void world_start_switch(struct world *w, unsigned i);
void world_kill_switch(struct world *w, unsigned i);
/* Between a leaf and a spine. */
void world_cut(struct world *w, unsigned leaf, unsigned spine, bool cut);

/* Of a switch from the control network: who hangs up meanwhile is not heard. */
void world_cut_off(struct world *w, unsigned i, bool cut);

void world_start_rank(struct world *w, unsigned j, unsigned r);
void world_start_job(struct world *w, unsigned j);
void world_kill_rank(struct world *w, unsigned j, unsigned r);
/* All ranks leave; rank 0 takes its groups away, as CommLib does. */
void world_end_job(struct world *w, unsigned j);

/* All ranks leave, and leave everything lying. */
void world_leave_job(struct world *w, unsigned j);

/* The answer of a switch over a connection of somebody's: its result (new reference), or NULL.
 * Takes over params. */
json_t *world_ask_switch(
	struct world *w, unsigned i, struct agent_peer *peer, const char *method, json_t *params);
/* Rank 0 of a job goes on with its plan until that is done, or a switch refuses. world_install.c.
 */
void world_install(struct world *w, unsigned j);
void world_drop_plan(struct world_job *job);
/* Of a job that shares memory rank 0 takes the lease, all or nothing, or lets go of it, with each
 * of its questions. */
void world_use_lease(struct world *w, unsigned j);

/* ---- what switches have: world_look.c ---- */

/* Groups, leases, memory, as a text; the caller's to free. */
char *world_inventory(struct world *w, unsigned i);
/* An operator's own group, that no job has anything to do with. */
void world_install_static(struct world *w, unsigned i);
/* A group of a job's epoch. */
bool world_has(struct world *w, unsigned i, const char *job, uint64_t epoch);
/* It has heard that the epoch is over. */
bool world_is_over(const struct world *w, unsigned i, const char *job, uint64_t epoch);

/* Lets time pass, in steps. */
void world_pass(struct world *w, uint64_t ms);
bool world_active(const struct world *w, unsigned j);
/* The spine of a job's tree, as an index into sw. */
unsigned world_spine(const struct world *w, unsigned j);
/* No switch that lives has any group, and nothing is promised. */
void world_expect_clean(struct world *w);
void world_expect_nothing_promised(struct world *w);
/* The result of a method that needs no peer (new reference). */
json_t *world_ask(struct world *w, const char *method, json_t *params);
/* What the manager has, its store too, as a text that is the same if that is; the caller's to free.
 */
char *world_everything(struct world *w);

#endif
