/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of libincline_mpi.so, which is preloaded into MPI programs: some of their collectives run
 * in the network, all other calls go on to the MPI library by their PMPI names (docs/mpi.md).
 *
 * Whether a call runs in the network is decided from what MPI guarantees to be the same at all
 * ranks of its communicator, and from what they have agreed on when the communicator was joined;
 * never from what a single rank sees (alignment, contiguity of a Bcast's type, memory).
 *
 * Threads: one lock (im.lock) guards all state. Collectives that were issued without waiting are
 * driven by every wait of this library and by a thread of its own, which never calls MPI: results
 * are unpacked and requests completed by the program's threads, when they look. So the program's
 * thread level stays as it is.
 *
 * A communicator that has failed is mended ("resume"), or found to be lost, by a thread for that
 * alone, which waits for the other ranks without the lock: until it is done (meeting) nobody else
 * touches its CommLib. One that may be mended is watched all the time, whatever the program does:
 * others may need this rank for it. */
#ifndef MPI_IM_H
#define MPI_IM_H

#include <incline/ccl.h>
#include <mpi.h>
#include <pthread.h>

#include "lib/ccl/subgroup.h"

/* Why a call was left to the MPI library. */
#define IM_REASONS(X)                                                           \
	X(COMM, "the communicator is not in the network")                       \
	X(EARLY, "non-blocking, before the communicator's first blocking call") \
	X(OFFER, "the group does not offer this collective")                    \
	X(TYPE, "type")                                                         \
	X(OP, "operation")                                                      \
	X(EMPTY, "no data")                                                     \
	X(SIZE, "more than 2 GB")                                               \
	X(ARGUMENT, "an argument that MPI has to judge")
enum im_reason {
	IM_NETWORK, /* it was not */
#define X(id, text) IM_##id,
	IM_REASONS(X)
#undef X
		IM_N_REASONS
};

struct im_count {
	unsigned long calls[IM_N_REASONS];
	unsigned long long bytes; /* of the vectors that this rank gave or got in the network */
};

enum im_where { IM_NOT_YET, IM_IN, IM_OUT };

struct im_op;

struct im_region {
	char *base;
	size_t len;
	unsigned long used;
};

/* What is known of an MPI communicator: an attribute of it. */
struct im_comm {
	struct im_comm *next; /* in the order in which this rank has first seen them */
	MPI_Comm comm;
	int rank, size;
	enum im_where where;
	char why[CCL_ERR_LEN]; /* how it is joined, or why not */
	char name[32];         /* of its group */
	bool resumes;          /* by its group file */
	struct ccl_group *group;
	struct ccl_comm *ccl;
	unsigned offered;           /* bit per enum ccl_collective */
	struct im_op *first, **end; /* unfinished, in the order of the calls */
	bool meeting;               /* it has failed; a thread has it, nobody else */
	bool mended, lost;          /* what has come of that */
	int code;                   /* MPI's, of its failure */
	uint64_t looked;            /* when CommLib was last told to look at the other processes */
	struct im_region region[CCL_MAX_REGIONS];
	struct im_count count[CCL_N_COLLECTIVES];
};

/* A collective in the network. */
struct im_op {
	struct im_op *next;
	struct im_comm *on;
	enum ccl_collective kind;
	const void *send;
	void *recv;
	uint64_t count;
	enum reduce_dtype dtype;
	enum reduce_op op;
	unsigned root;
	struct ccl_req req;
	bool issued, done;
	int refused; /* an errno: this rank cannot issue it; the others do */
	int rc;      /* of CommLib */

	/* What is left to do for its result, by a thread of the program. */
	void *packed;        /* freed then; NULL: none */
	MPI_Datatype unpack; /* MPI_DATATYPE_NULL: nothing to unpack, else our own duplicate */
	int unpack_count;
	void *unpack_to;
	void *move_to; /* NULL: nothing to move */
	const void *move_from;
	size_t move_len;

	/* Without waiting: on a list of all of them. */
	struct im_op *next_async;
	MPI_Request request;
	int code; /* MPI's */
};

struct im {
	pthread_mutex_t lock;
	bool on;  /* between MPI_Init and MPI_Finalize */
	int show; /* 0: nothing, 1: a line at the end, 2: communicators, too */
	int keyval;
	MPI_Comm self; /* ours: a look for messages on it lets MPI go on */
	int world_rank, world_size;
	struct im_comm *comms;
	struct im_count total[CCL_N_COLLECTIVES]; /* of communicators that are gone */
	struct im_op *async;
	unsigned n_async;
};
extern struct im im;

/* ---- types.c ---- */

/* The element type; -1: we have none. */
int im_dtype(MPI_Datatype type);
int im_reduce_op(MPI_Op op);
/* Elements of the type lie one behind the other without gaps, in order, from the buffer's address.
 */
bool im_contiguous(MPI_Datatype type);

/* ---- comm.c ---- */

/* NULL: of no use to us (between groups, MPI_COMM_NULL, no memory). */
struct im_comm *im_comm(MPI_Comm comm);
/* Collective: waits for all, then leaves; comm is as MPI's from then on. */
void im_leave(struct im_comm *c);
void im_forget(struct im_comm *c);
/* Of a failure: calls the communicator's error handler, returns MPI's code. */
int im_error(struct im_comm *c, int rc);

/* ---- join.c, group.c ---- */

/* Collective over the communicator: agrees on a group, makes it. c->where is then IM_IN or IM_OUT,
 * at all ranks the same. */
void im_join(struct im_comm *c);

struct im_member {
	int ok;
	struct ccl_part part;
	char node[128];
	char why[160];
};
/* The group of a communicator as text, on the heap, by its rank 0. NULL: not, and why. */
char *im_group(const struct im_member *member, int n, char why[CCL_ERR_LEN]);
/* What is to be known of it: name, resumes. */
void im_read_group(struct im_comm *c, const char *text);

/* ---- op.c ---- */

/* Waits. MPI's code, after the error handler. */
int im_run(struct im_op *op);
/* Does not wait: op is on the heap, and *request gets a handle for it. */
int im_start(struct im_op *op, MPI_Request *request);
/* One turn of everything that is unfinished; waits for at most wait_ns for op, if not NULL. With
 * im.lock, which it lets go of while op's communicator is meeting. */
void im_advance(struct im_op *op, uint64_t wait_ns);
/* With im.lock: false if it is not meeting; else lets go of the lock for wait_ns. */
bool im_meets(const struct im_comm *c, uint64_t wait_ns);
/* What is left of a collective that is done: results in place. MPI's code, after the handler. */
int im_finish(struct im_op *op);
/* The thread that drives what is unfinished and watches what may be mended; where it cannot be
 * started the program's waits have to do. */
void im_start_thread(void);
void im_stop_thread(void);
/* MPI goes on. Without im.lock. */
void im_poke(void);

/* ---- request.c ---- */

/* All of a communicator's: waits until they are done, completes their requests. */
void im_settle(struct im_comm *c);

/* ---- memory.c ---- */

void im_use_memory(struct im_comm *c, const void *buf, size_t len);

/* ---- show.c ---- */

void im_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void im_show_joined(const struct im_comm *c);
void im_show_counts(const struct im_comm *c);
void im_add_counts(const struct im_comm *c);
/* Collective over all. */
void im_summary(void);

#endif
