/* SPDX-License-Identifier: BSD-3-Clause */
/* IncManager (EPIC 3.2 to 3.4, 6): ranks ask it for their group's tree; it knows the fabric from a
 * file and from the switches' agents, places trees with lib/mgr, and ends what has failed, on every
 * switch. It asks the switches' control sockets; ranks and operators ask it, both by JSON-RPC.
 *
 * Rank 0 of a job installs the tree that it was given (lib/ccl), with the run's epoch; the manager
 * clears the way before and takes everything away afterwards, whoever has died: one request,
 * epoch.end, that a switch may hear any number of times.
 *
 * No I/O and no clock here: lines and times (nanoseconds, monotonic) are arguments. One owner. */
#ifndef MANAGER_MANAGER_H
#define MANAGER_MANAGER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/ctl/who.h"
#include "lib/journal/journal.h"

struct manager;
struct store;

/* Of a connection to the manager, zero at first. */
struct manager_peer {
	LIST_ENTRY(manager_peer) link;
	struct ctl_who who;
	bool joined; /* it is the sign of life of this rank: */
	char job[32];
	uint64_t epoch, process; /* process: as it joined, job.join's "who" */
	unsigned rank;
};

/* What the manager has done for it. */
struct manager_io {
	void *arg;
	/* A line, without newline, to switch i. */
	void (*send)(void *arg, unsigned i, const char *line);
	/* The connection to switch i is to be closed, and made anew: it does not answer. */
	void (*drop)(void *arg, unsigned i);
	/* For the operator: a sentence. */
	void (*say)(void *arg, enum journal_level level, const char *line);
	/* A line of the audit log (lib/ctl/audit.h); NULL: there is none. */
	void (*audit)(void *arg, const char *line);
	/* Who this is, of several managers of a fabric; stays the caller's. NULL: nobody asks. */
	const char *name;
	/* Random, and told to nobody: who knows it can choose names of jobs that are slow to find.
	 */
	uint64_t key[2];
};

enum { MANAGER_ERR_LEN = 256 };

/* config: checked by ctl_manager_config; read now. store (copied, not closed): what a predecessor
 * has written there goes on, and what is promised is written there before anybody is told. NULL:
 * nothing outlives this manager. first_epoch: larger than any before, on any switch, that the store
 * does not know of. -EINVAL, -EBADMSG (the store), -ENOMEM with a reason in err. */
int manager_create(const json_t *config, const struct manager_io *io, const struct store *store,
	uint64_t first_epoch, uint64_t now, struct manager **m, char err[MANAGER_ERR_LEN]);
void manager_destroy(struct manager *m);

/* Switches, by the order of the configuration; where the control socket of one is. */
unsigned manager_n_switches(const struct manager *m);
const char *manager_control(const struct manager *m, unsigned i);

/* A connection to switch i is there. It is not any more, or could not be made; dead: nobody listens
 * there, so its program has ended (else it may only be cut off). A line has come. */
void manager_up(struct manager *m, unsigned i, uint64_t now);
void manager_down(struct manager *m, unsigned i, bool dead, uint64_t now);
void manager_heard(struct manager *m, unsigned i, const char *line, size_t len, uint64_t now);
/* Switch i has said what it is, on the connection that is there. */
bool manager_knows(const struct manager *m, unsigned i);

/* A request from a rank or an operator; the answer, as rpc_handle_line. */
char *manager_line(
	struct manager *m, struct manager_peer *peer, const char *line, size_t len, uint64_t now);
void manager_gone(struct manager *m, struct manager_peer *peer);

/* 0, or -errno: the store cannot be written to. Then nothing is told to anybody any more, and it is
 * to be ended: what runs goes on without it. */
int manager_failed(const struct manager *m);

/* What time does; to be called about every 100 ms. */
void manager_tick(struct manager *m, uint64_t now);

/* Its counters as OpenMetrics (lib/ctl/metrics.h): to be freed, *len bytes; NULL: no memory. At
 * most a second old. */
char *manager_metrics(struct manager *m, size_t *len);

#endif
