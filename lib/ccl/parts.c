/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in parts, which the members of a communicator take: ReduceScatter is a Reduce to
 * every rank, AllGather a Broadcast from every rank. */
#include "lib/ccl/comm.h"

bool ccl_busy(const struct ccl_comm *c)
{
	return c->coll_done != c->coll_issued;
}

void ccl_retire(struct ccl_comm *c)
{
	while (c->coll_done != c->coll_issued && ccl_coll_at(c, c->coll_done)->parts_left == 0)
		c->coll_done++;
}

void ccl_part_done(struct ccl_comm *c, uint64_t coll)
{
	ccl_coll_at(c, coll)->parts_left--;
	ccl_retire(c);
}

static struct ccl_part part_of(const struct ccl_comm *c, const struct ccl_coll *coll, unsigned i)
{
	struct ccl_part p = {.root = coll->root, .send = coll->send, .recv = coll->recv};

	switch (coll->kind) {
	case CCL_REDUCE:
		p.prim = CCL_PRIM_RED;
		break;
	case CCL_BROADCAST:
		p.prim = CCL_PRIM_BC;
		break;
	case CCL_REDUCE_SCATTER:
		p.prim = CCL_PRIM_RED;
		p.root = (uint16_t)i;
		p.send += i * coll->bytes;
		break;
	case CCL_ALLGATHER:
		p.prim = CCL_PRIM_BC;
		p.root = (uint16_t)i;
		p.recv += i * coll->bytes;
		break;
	default:
		p.prim = CCL_PRIM_AR;
		break;
	}
	/* Who is not concerned has no buffer to be touched. */
	if (p.prim == CCL_PRIM_RED && p.root != c->rank)
		p.recv = NULL;
	if (p.prim == CCL_PRIM_BC && p.root != c->rank)
		p.send = NULL;
	return p;
}

static bool serves(const struct ccl_memb *mb, const struct ccl_part *p)
{
	return mb->mixed ||
	       (p->prim == mb->prim && (p->prim == CCL_PRIM_AR || p->root == mb->root));
}

bool ccl_next_part(struct ccl_memb *mb, struct ccl_part *part)
{
	struct ccl_comm *c = mb->comm;
	const uint64_t end = c->lease ? c->lease_open : c->coll_issued;

	if (mb->coll < c->coll_done) { /* they had nothing for this member */
		mb->coll = c->coll_done;
		mb->part = 0;
	}
	for (; mb->coll < end; mb->coll++, mb->part = 0) {
		const struct ccl_coll *coll = ccl_coll_at(c, mb->coll);

		for (; mb->part < coll->n_parts; mb->part++) {
			*part = part_of(c, coll, mb->part);
			if (serves(mb, part))
				return true;
		}
	}
	return false;
}
