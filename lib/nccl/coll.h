/* SPDX-License-Identifier: BSD-3-Clause */
/* One of NCCL's collective communicators: CommLib's, with its requests and memory. */
#ifndef NCCL_COLL_H
#define NCCL_COLL_H

#include "lib/nccl/im.h"

/* As many as CommLib takes; NCCL has NCCL_MAX_REQUESTS under way at most. */
enum { NP_COLL_REQUESTS = CCL_MAX_QUEUED };

/* A collective: one of CommLib's, or, of a window that cuts blocks, one for each rank whose block
 * the window has bytes of. */
struct np_request {
	struct np_coll *on;
	struct np_request *next; /* that has steps to be issued, in the order of the calls */
	bool used;
	enum ccl_collective kind;
	bool in_steps;
	const char *send;
	char *recv;
	const void *mem[2]; /* that these lie in, as NCCL says */
	uint64_t count;     /* elements, not in steps */
	enum reduce_dtype dtype;
	enum reduce_op op;
	size_t element;
	uint64_t block, from, until; /* bytes, in steps */
	unsigned step;               /* the next one's rank */
	unsigned n_issued, n_done;
	bool issued;           /* all of it */
	struct ccl_req *issue; /* room for one per rank */
	uint64_t bytes;
};

struct np_memory {
	struct np_memory *next;
	char *base;
	size_t len;
	unsigned refs;
	bool registered; /* else copies are sent */
};

struct np_coll {
	pthread_mutex_t lock;
	struct ccl_group *group;
	struct ccl_comm *ccl;
	unsigned rank, n_ranks;
	struct np_request request[NP_COLL_REQUESTS];
	struct np_request *first, **end; /* not wholly issued */
	struct np_memory *memory;
	nccl_rc failed; /* and it has been said why */
};

/* ---- coll_run.c; all with the lock ---- */

/* Nothing of what is unfinished is waited for, and the other ranks hear at once. */
void np_abort(struct np_coll *c, const char *why);
bool np_is_busy(const struct np_coll *c);
/* Is there an unfinished collective that this memory is for, and that CommLib does not yet have all
 * of? Or, if it does not know the memory, any unfinished one? */
bool np_wants(struct np_coll *c, const struct np_memory *m);

nccl_rc np_allreduce(void *coll, void *send, void *recv, int count, int type, int op,
	void *send_mem, void *recv_mem, void **request);
nccl_rc np_allgather(void *coll, void *send, int n_pieces, struct nccl_piece *recv, size_t block,
	size_t from, size_t len, void *send_mem, void **request);
nccl_rc np_reduce_scatter(void *coll, int n_pieces, struct nccl_piece *send, void *recv,
	size_t block, size_t from, size_t len, int type, int op, void *recv_mem, void **request);
nccl_rc np_coll_flush(void *coll, void *data, int len, void *mem, void **request);
nccl_rc np_coll_test(void *request, int *done, int *len);

/* ---- coll_mem.c ---- */

nccl_rc np_coll_reg(void *coll, void *data, size_t len, int memory, void **mem);
nccl_rc np_coll_dereg(void *coll, void *mem);
void np_coll_forget(struct np_coll *c);

#endif
