/* SPDX-License-Identifier: BSD-3-Clause */
/* Which bytes each message of a collective is. Chunks travel round the ring: at step s a rank sends
 * the chunk that it took at step s - 1; a chunk is cut into messages, so that the steps overlap. */
#include "lib/ccl/ring_priv.h"

struct chunk {
	uint64_t offset, len; /* bytes of the vector */
};

/* Chunk c of n that the vector is cut into, in whole elements; blocks of reduce_scatter and
 * allgather are all the same size. */
static struct chunk chunk_at(const struct ccl_ring *r, const struct ring_coll *c, unsigned i)
{
	const uint64_t size = reduce_size(c->dtype);
	uint64_t count = c->bytes / size, q = count / r->n_ranks, rest = count % r->n_ranks;

	if (c->kind != RING_ALLREDUCE)
		return (struct chunk){i * c->bytes, c->bytes};
	return (struct chunk){
		(i * q + (i < rest ? i : rest)) * size, (q + (i < rest ? 1 : 0)) * size};
}

static uint64_t messages(const struct ccl_ring *r, uint64_t bytes)
{
	return (bytes + r->cap - 1) / r->cap;
}

/* Ranks between the start of a chain and this one. */
static unsigned place(const struct ccl_ring *r, unsigned start)
{
	return (r->rank + r->n_ranks - start) % r->n_ranks;
}

static unsigned chain_start(const struct ccl_ring *r, const struct ring_coll *c)
{
	return c->kind == RING_BROADCAST ? c->root : (c->root + 1) % r->n_ranks;
}

static bool is_chain(const struct ring_coll *c)
{
	return c->kind == RING_BROADCAST || c->kind == RING_REDUCE;
}

void ring_plan(const struct ccl_ring *r, struct ring_coll *c)
{
	const unsigned steps = c->kind == RING_ALLREDUCE ? 2 * (r->n_ranks - 1) : r->n_ranks - 1;

	c->n_tx = c->n_rx = 0;
	if (r->conf.netreduce) {
		c->per = c->kind == RING_BARRIER ? 1 : messages(r, c->bytes);
		c->n_tx = c->n_rx = c->per;
	} else if (is_chain(c)) {
		c->per = messages(r, c->bytes);
		c->n_rx = place(r, chain_start(r, c)) > 0 ? c->per : 0;
		c->n_tx = place(r, chain_start(r, c)) < r->n_ranks - 1 ? c->per : 0;
	} else {
		c->per = c->kind == RING_BARRIER ? 1 : messages(r, chunk_at(r, c, 0).len);
		c->n_tx = c->n_rx = steps * c->per;
	}
}

uint64_t ring_tx_needs(const struct ccl_ring *r, const struct ring_coll *c, uint64_t k)
{
	if (r->conf.netreduce)
		return 0;
	if (is_chain(c))
		return c->n_rx ? k + 1 : 0;
	return k < c->per ? 0 : k - c->per + 1;
}

/* Message j of a chunk at offset. */
static struct chunk cut(const struct ccl_ring *r, struct chunk chunk, uint64_t j)
{
	const uint64_t at = j * r->cap < chunk.len ? j * r->cap : chunk.len;
	const uint64_t left = chunk.len - at;

	return (struct chunk){chunk.offset + at, left < r->cap ? left : r->cap};
}

static struct chunk whole(const struct ring_coll *c)
{
	return (struct chunk){0, c->bytes};
}

static unsigned back(const struct ccl_ring *r, unsigned steps)
{
	return (r->rank + 2 * r->n_ranks - steps) % r->n_ranks;
}

struct ring_part ring_tx_part(const struct ccl_ring *r, const struct ring_coll *c, uint64_t k)
{
	const unsigned step = c->per ? (unsigned)(k / c->per) : 0, last = r->n_ranks - 1;
	const uint8_t *base = c->work;
	struct chunk m;

	if (c->kind == RING_BARRIER)
		return (struct ring_part){0};
	if (r->conf.netreduce || is_chain(c)) {
		m = cut(r, whole(c), k);
		base = r->conf.netreduce || !c->n_rx ? c->send : c->work;
		return (struct ring_part){.from = base + m.offset, .len = (uint32_t)m.len};
	}
	if (c->kind == RING_REDUCE_SCATTER)
		m = chunk_at(r, c, back(r, step + 1));
	else
		m = chunk_at(
			r, c, step < last ? back(r, step) : back(r, step - last + r->n_ranks - 1));
	m = cut(r, m, k % c->per);
	if (step == 0 && c->kind != RING_ALLGATHER)
		base = c->send;
	return (struct ring_part){.from = base + m.offset, .len = (uint32_t)m.len};
}

struct ring_part ring_rx_part(const struct ccl_ring *r, const struct ring_coll *c, uint64_t k)
{
	const unsigned step = c->per ? (unsigned)(k / c->per) : 0, last = r->n_ranks - 1;
	struct ring_part part = {0};
	struct chunk m;

	if (c->kind == RING_BARRIER)
		return part;
	if (r->conf.netreduce || is_chain(c)) {
		m = cut(r, whole(c), k);
		part.to = c->work + m.offset;
	} else if (c->kind == RING_REDUCE_SCATTER) {
		m = cut(r, chunk_at(r, c, back(r, step + 2)), k % c->per);
		part.to = step == last - 1 ? c->recv + k % c->per * r->cap : c->work + m.offset;
	} else {
		/* Second half of an AllReduce: chunk (rank - step) is complete where it comes from.
		 */
		m = chunk_at(r, c, step < last ? back(r, step + 1) : back(r, step - last));
		m = cut(r, m, k % c->per);
		part.to = c->work + m.offset;
	}
	part.len = (uint32_t)m.len;
	if (c->add && (c->kind != RING_ALLREDUCE || step < last))
		part.from = c->send + m.offset;
	return part;
}
