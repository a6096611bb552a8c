/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives that a program calls. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "lib/mpi/im.h"

/* How a call is described while it is decided on. */
struct call {
	enum ccl_collective kind;
	MPI_Comm comm;
	bool waits;
	struct im_op op;
	/* Of those that do not reduce: what is moved, the same number of bytes at all ranks. */
	uint64_t bytes;
};

/* The communicator, if this call runs in the network; counts it. All that is looked at is the same
 * at all ranks. */
static struct im_comm *decide(struct call *call, enum im_reason reason)
{
	struct im_comm *c = im.on ? im_comm(call->comm) : NULL;
	const uint64_t n = call->kind == CCL_ALLGATHER && c ? (uint64_t)c->size : 1;

	if (!c)
		return NULL;
	if (c->where == IM_NOT_YET && call->waits)
		im_join(c);
	if (c->where != IM_IN)
		reason = c->where == IM_NOT_YET ? IM_EARLY : IM_COMM;
	else if (!reason && !(c->offered >> call->kind & 1))
		reason = IM_OFFER;
	else if (!reason && call->kind != CCL_BARRIER && !call->bytes)
		reason = IM_EMPTY;
	else if (!reason && call->bytes > INT_MAX / n)
		reason = IM_SIZE; /* what is packed is counted in int */
	c->count[call->kind].calls[reason]++;
	if (!reason)
		c->count[call->kind].bytes += call->bytes;
	return reason ? NULL : c;
}

static int run(struct call *call, struct im_comm *c, MPI_Request *request)
{
	struct im_op *op = &call->op;
	const uint64_t bytes = call->bytes, all = bytes * (uint64_t)c->size;

	op->on = c;
	op->kind = call->kind;
	pthread_mutex_lock(&im.lock);
	if (op->send && op->send != op->packed)
		im_use_memory(c, op->send, op->kind == CCL_REDUCE_SCATTER ? all : bytes);
	if (op->recv && op->recv != op->packed)
		im_use_memory(c, op->recv, op->kind == CCL_ALLGATHER ? all : bytes);
	pthread_mutex_unlock(&im.lock);
	if (request) {
		struct im_op *own = malloc(sizeof(*own));

		if (own) {
			*own = *op;
			return im_start(own, request);
		}
		op->refused = -ENOMEM;
	}
	return im_run(op);
}

/* ---- that reduce ---- */

static struct call reducing(
	enum ccl_collective kind, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	const int dtype = im_dtype(type), with = im_reduce_op(op);
	struct call call = {.kind = kind, .comm = comm, .op.unpack = MPI_DATATYPE_NULL};

	if (dtype >= 0 && with >= 0 && count > 0) {
		int size = 0;

		PMPI_Type_size(type, &size);
		call.op.count = (uint64_t)count;
		call.op.dtype = (enum reduce_dtype)dtype;
		call.op.op = (enum reduce_op)with;
		call.bytes = (uint64_t)count * (unsigned)size;
	}
	return call;
}

static enum im_reason may_reduce(int count, MPI_Datatype type, MPI_Op op)
{
	const int dtype = im_dtype(type), with = im_reduce_op(op);

	if (count < 0)
		return IM_ARGUMENT;
	if (dtype < 0)
		return IM_TYPE;
	/* docs/arithmetic.md: a product of bytes says nothing of them. */
	return with < 0 || (with == REDUCE_PROD && (dtype == REDUCE_INT8 || dtype == REDUCE_UINT8))
		       ? IM_OP
		       : IM_NETWORK;
}

static struct im_comm *allreduce(struct call *call, const void *sendbuf, void *recvbuf, int count,
	MPI_Datatype type, MPI_Op op, MPI_Comm comm, bool waits)
{
	*call = reducing(CCL_ALLREDUCE, count, type, op, comm);
	call->waits = waits;
	call->op.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
	call->op.recv = recvbuf;
	return decide(call, may_reduce(count, type, op));
}

int MPI_Allreduce(
	const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct call call;
	struct im_comm *c = allreduce(&call, sendbuf, recvbuf, count, type, op, comm, true);

	return c ? run(&call, c, NULL) : PMPI_Allreduce(sendbuf, recvbuf, count, type, op, comm);
}

int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
	MPI_Comm comm, MPI_Request *request)
{
	struct call call;
	struct im_comm *c = allreduce(&call, sendbuf, recvbuf, count, type, op, comm, false);

	return c ? run(&call, c, request)
		 : PMPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request);
}

/* A root that MPI would refuse is for MPI to refuse. */
static bool is_rank(MPI_Comm comm, int root)
{
	int size = 0;

	return comm != MPI_COMM_NULL && !PMPI_Comm_size(comm, &size) && root >= 0 && root < size;
}

static struct im_comm *reduce(struct call *call, const void *sendbuf, void *recvbuf, int count,
	MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, bool waits)
{
	*call = reducing(CCL_REDUCE, count, type, op, comm);
	call->waits = waits;
	call->op.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
	call->op.root = (unsigned)root;
	call->op.recv = recvbuf;
	return decide(
		call, !im.on || is_rank(comm, root) ? may_reduce(count, type, op) : IM_ARGUMENT);
}

/* The receive buffer means nothing at other ranks, not even to be looked at. */
static int run_reduce(struct call *call, struct im_comm *c, MPI_Request *request)
{
	if ((unsigned)c->rank != call->op.root)
		call->op.recv = NULL;
	return run(call, c, request);
}

int MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
	int root, MPI_Comm comm)
{
	struct call call;
	struct im_comm *c = reduce(&call, sendbuf, recvbuf, count, type, op, root, comm, true);

	return c ? run_reduce(&call, c, NULL)
		 : PMPI_Reduce(sendbuf, recvbuf, count, type, op, root, comm);
}

int MPI_Ireduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
	int root, MPI_Comm comm, MPI_Request *request)
{
	struct call call;
	struct im_comm *c = reduce(&call, sendbuf, recvbuf, count, type, op, root, comm, false);

	return c ? run_reduce(&call, c, request)
		 : PMPI_Ireduce(sendbuf, recvbuf, count, type, op, root, comm, request);
}

static struct im_comm *reduce_scatter(struct call *call, const void *sendbuf, void *recvbuf,
	int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, bool waits)
{
	struct im_comm *c;

	*call = reducing(CCL_REDUCE_SCATTER, count, type, op, comm);
	call->waits = waits;
	call->op.send = sendbuf;
	call->op.recv = recvbuf;
	c = decide(call, may_reduce(count, type, op));
	/* In place, MPI has the result at the beginning of the vector, CommLib in the own block. */
	if (c && sendbuf == MPI_IN_PLACE) {
		call->op.send = recvbuf;
		call->op.recv = (char *)recvbuf + (uint64_t)c->rank * call->bytes;
		call->op.move_to = c->rank ? recvbuf : NULL;
		call->op.move_from = call->op.recv;
		call->op.move_len = call->bytes;
	}
	return c;
}

int MPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype type,
	MPI_Op op, MPI_Comm comm)
{
	struct call call;
	struct im_comm *c =
		reduce_scatter(&call, sendbuf, recvbuf, recvcount, type, op, comm, true);

	return c ? run(&call, c, NULL)
		 : PMPI_Reduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, comm);
}

int MPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype type,
	MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	struct call call;
	struct im_comm *c =
		reduce_scatter(&call, sendbuf, recvbuf, recvcount, type, op, comm, false);

	return c ? run(&call, c, request)
		 : PMPI_Ireduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, comm, request);
}

/* ---- that move ----
 *
 * MPI lets ranks describe the same data by different types, so the type decides nothing: what has
 * gaps is packed here, and travels as bytes like all else. */

static enum im_reason may_move(struct call *call, int count, MPI_Datatype type)
{
	MPI_Count size = 0;

	call->op.dtype = REDUCE_BYTES;
	call->op.op = REDUCE_NONE;
	call->op.unpack = MPI_DATATYPE_NULL;
	if (count < 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) || size < 0)
		return IM_ARGUMENT;
	call->bytes = (uint64_t)count * (uint64_t)size;
	call->op.count = call->bytes;
	return IM_NETWORK;
}

static int pack(
	const void *from, int count, MPI_Datatype type, void *to, uint64_t bytes, MPI_Comm comm)
{
	int at = 0;

	return PMPI_Pack(from, count, type, to, (int)bytes, &at, comm);
}

/* The result is to be unpacked; MPI allows a program to free its type before. */
static int unpack_later(struct im_op *op, void *to, int count, MPI_Datatype type)
{
	const int rc = PMPI_Type_dup(type, &op->unpack);

	op->unpack_to = to;
	op->unpack_count = count;
	if (rc)
		op->unpack = MPI_DATATYPE_NULL;
	return rc;
}

static int prepare_bcast(
	struct call *call, const struct im_comm *c, void *buf, int count, MPI_Datatype type)
{
	struct im_op *op = &call->op;

	op->send = op->recv = buf;
	if (im_contiguous(type))
		return MPI_SUCCESS;
	op->send = op->recv = op->packed = malloc(call->bytes);
	if (!op->packed)
		return MPI_ERR_NO_MEM;
	return (unsigned)c->rank == op->root
		       ? pack(buf, count, type, op->packed, call->bytes, call->comm)
		       : unpack_later(op, buf, count, type);
}

static int run_bcast(struct call *call, struct im_comm *c, void *buf, int count, MPI_Datatype type,
	MPI_Request *request)
{
	if (prepare_bcast(call, c, buf, count, type))
		call->op.refused = -ENOMEM;
	return run(call, c, request);
}

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct call call = {.kind = CCL_BROADCAST, .comm = comm, .waits = true};
	const enum im_reason reason =
		im.on && !is_rank(comm, root) ? IM_ARGUMENT : may_move(&call, count, type);
	struct im_comm *c = decide(&call, reason);

	call.op.root = (unsigned)root;
	return c ? run_bcast(&call, c, buf, count, type, NULL)
		 : PMPI_Bcast(buf, count, type, root, comm);
}

int MPI_Ibcast(
	void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
	struct call call = {.kind = CCL_BROADCAST, .comm = comm};
	const enum im_reason reason =
		im.on && !is_rank(comm, root) ? IM_ARGUMENT : may_move(&call, count, type);
	struct im_comm *c = decide(&call, reason);

	call.op.root = (unsigned)root;
	return c ? run_bcast(&call, c, buf, count, type, request)
		 : PMPI_Ibcast(buf, count, type, root, comm, request);
}

struct gather {
	const void *sendbuf;
	int sendcount;
	MPI_Datatype sendtype;
	void *recvbuf;
	int recvcount;
	MPI_Datatype recvtype;
};

/* Own block and all blocks: each in its place, or in packed. */
static int prepare_gather(struct call *call, const struct im_comm *c, const struct gather *g)
{
	const bool in_place = g->sendbuf == MPI_IN_PLACE, gaps = !im_contiguous(g->recvtype);
	const uint64_t own = call->bytes * (uint64_t)c->rank;
	struct im_op *op = &call->op;
	MPI_Aint lb, extent;
	char *block;

	if (!gaps && (in_place || im_contiguous(g->sendtype))) {
		op->recv = g->recvbuf;
		op->send = in_place ? (char *)g->recvbuf + own : g->sendbuf;
		return MPI_SUCCESS;
	}
	if (!gaps) { /* packed into its place */
		op->recv = g->recvbuf;
		op->send = block = (char *)g->recvbuf + own;
		return pack(g->sendbuf, g->sendcount, g->sendtype, block, call->bytes, call->comm);
	}
	op->packed = malloc(call->bytes * (uint64_t)c->size);
	if (!op->packed)
		return MPI_ERR_NO_MEM;
	op->recv = op->packed;
	op->send = block = (char *)op->packed + own;
	PMPI_Type_get_extent(g->recvtype, &lb, &extent);
	if (unpack_later(op, g->recvbuf, g->recvcount * c->size, g->recvtype))
		return MPI_ERR_NO_MEM;
	if (in_place)
		return pack((char *)g->recvbuf + (MPI_Aint)c->rank * g->recvcount * extent,
			g->recvcount, g->recvtype, block, call->bytes, call->comm);
	return pack(g->sendbuf, g->sendcount, g->sendtype, block, call->bytes, call->comm);
}

static int run_gather(
	struct call *call, struct im_comm *c, const struct gather *g, MPI_Request *request)
{
	if (prepare_gather(call, c, g))
		call->op.refused = -ENOMEM;
	return run(call, c, request);
}

int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
	int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	struct call call = {.kind = CCL_ALLGATHER, .comm = comm, .waits = true};
	const struct gather g = {sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype};
	struct im_comm *c = decide(&call, may_move(&call, recvcount, recvtype));

	return c ? run_gather(&call, c, &g, NULL)
		 : PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int MPI_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
	int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	struct call call = {.kind = CCL_ALLGATHER, .comm = comm};
	const struct gather g = {sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype};
	struct im_comm *c = decide(&call, may_move(&call, recvcount, recvtype));

	return c ? run_gather(&call, c, &g, request)
		 : PMPI_Iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm,
			   request);
}

/* ---- Barrier ---- */

int MPI_Barrier(MPI_Comm comm)
{
	struct call call = {
		.kind = CCL_BARRIER, .comm = comm, .waits = true, .op.unpack = MPI_DATATYPE_NULL};
	struct im_comm *c = decide(&call, IM_NETWORK);

	return c ? run(&call, c, NULL) : PMPI_Barrier(comm);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct call call = {.kind = CCL_BARRIER, .comm = comm, .op.unpack = MPI_DATATYPE_NULL};
	struct im_comm *c = decide(&call, IM_NETWORK);

	return c ? run(&call, c, request) : PMPI_Ibarrier(comm, request);
}
