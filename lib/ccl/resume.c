/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/resume.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/ring.h"

enum { N_SPARE = 4, BASIC = 1 << CCL_ALLREDUCE | 1 << CCL_BARRIER };

struct buffer {
	uint8_t *at;
	size_t cap;
};

/* A collective that some rank may have to repeat. */
struct kept {
	struct ccl_coll coll;
	struct buffer copy;
	uint64_t last_msg; /* of those that are done here */
};

struct ccl_resume {
	unsigned n;     /* slots: those that others may need, and those in flight */
	uint64_t first; /* oldest collective kept */
	struct kept *kept;
	struct buffer spare[N_SPARE];
	bool denied;
	/* on the ring */
	bool over;
	uint64_t at, next,
		done; /* where it began; to be repeated; not for the program below this */
	struct ccl_verdict verdict;
	bool waits; /* for req, of one that is done here */
	struct ccl_req req;
	struct buffer scratch;
	uint64_t operations, messages; /* before */
	char why[CCL_RESUME_WHY];
};

static struct kept *kept_at(const struct ccl_resume *r, uint64_t number)
{
	return &r->kept[number % r->n];
}

/* ---- memory ---- */

static int grow(struct buffer *b, size_t bytes)
{
	uint8_t *at = bytes > b->cap ? realloc(b->at, bytes) : b->at;

	if (bytes > b->cap && !at)
		return -ENOMEM;
	b->at = at;
	b->cap = bytes > b->cap ? bytes : b->cap;
	return 0;
}

/* The smallest spare one that is large enough, or else the largest. */
static int take_buffer(struct ccl_resume *r, struct buffer *b, size_t bytes)
{
	struct buffer *best = &r->spare[0];

	*b = (struct buffer){0};
	if (bytes == 0)
		return 0;
	for (unsigned i = 1; i < N_SPARE; i++) {
		struct buffer *s = &r->spare[i];

		if (s->cap >= bytes ? best->cap < bytes || s->cap < best->cap : s->cap > best->cap)
			best = s;
	}
	*b = *best;
	*best = (struct buffer){0};
	if (grow(b, bytes) == 0)
		return 0;
	free(b->at);
	*b = (struct buffer){0};
	return -ENOMEM;
}

static void give_buffer(struct ccl_resume *r, struct buffer *b)
{
	struct buffer *least = &r->spare[0];

	for (unsigned i = 1; i < N_SPARE; i++)
		if (r->spare[i].cap < least->cap)
			least = &r->spare[i];
	if (b->cap > least->cap) {
		const struct buffer old = *least;

		*least = *b;
		*b = old;
	}
	free(b->at);
	*b = (struct buffer){0};
}

int ccl_resume_enable(struct ccl_comm *c)
{
	struct ccl_resume *r;

	if (c->n_memb != 1 || (c->kind != CCL_MIXED && c->collectives & ~(unsigned)BASIC))
		return -EOPNOTSUPP;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->n = c->w + CCL_MAX_QUEUED;
	r->kept = calloc(r->n, sizeof(*r->kept));
	if (!r->kept) {
		free(r);
		return -ENOMEM;
	}
	c->resume = r;
	return 0;
}

void ccl_resume_close(struct ccl_comm *c)
{
	struct ccl_resume *r = c->resume;

	if (!r)
		return;
	for (unsigned i = 0; i < r->n; i++)
		free(r->kept[i].copy.at);
	for (unsigned i = 0; i < N_SPARE; i++)
		free(r->spare[i].at);
	free(r->scratch.at);
	free(r->kept);
	free(r);
	c->resume = NULL;
}

/* ---- what is kept ---- */

/* Bytes of what this rank has to have for others, when it is done. */
static size_t kept_bytes(const struct ccl_comm *c, const struct ccl_coll *coll)
{
	const bool root = coll->root == c->rank;

	if (coll->kind == CCL_BARRIER || (coll->kind == CCL_BROADCAST && !root))
		return 0;
	return coll->bytes * (coll->kind == CCL_REDUCE_SCATTER ? c->n_ranks : 1);
}

/* Its result goes where its contribution is. */
static bool overwrites(const struct ccl_comm *c, const struct ccl_coll *coll)
{
	const size_t shift = coll->kind == CCL_REDUCE_SCATTER ? c->rank * coll->bytes : 0;
	const bool sums = coll->kind == CCL_ALLREDUCE || coll->kind == CCL_REDUCE ||
			  coll->kind == CCL_REDUCE_SCATTER;

	return sums && coll->bytes && coll->recv == coll->send + shift;
}

int ccl_resume_keep(struct ccl_comm *c, const struct ccl_coll *coll)
{
	struct ccl_resume *r = c->resume;
	struct kept *k = kept_at(r, c->coll_issued);
	const size_t bytes = kept_bytes(c, coll);

	if (r->over)
		return 0;
	if (c->coll_issued - r->first == r->n) /* the window says that this cannot be */
		return -ENOBUFS;
	if (take_buffer(r, &k->copy, bytes))
		return -ENOMEM;
	k->coll = *coll;
	k->last_msg = UINT64_MAX;
	if (overwrites(c, coll))
		memcpy(k->copy.at, coll->send, bytes);
	return 0;
}

static void done_here(struct ccl_comm *c, struct kept *k)
{
	const struct ccl_coll *coll = &k->coll;
	const size_t bytes = kept_bytes(c, coll);

	if (coll->kind == CCL_ALLREDUCE && bytes)
		memcpy(k->copy.at, coll->recv, bytes);
	else if (bytes && !overwrites(c, coll))
		memcpy(k->copy.at, coll->send, bytes);
}

void ccl_resume_finished(struct ccl_memb *mb, const struct ccl_op *op)
{
	struct ccl_comm *c = mb->comm;
	struct ccl_resume *r = c->resume;
	const uint64_t last = op->first_msg + op->plan.n_msgs - 1;
	/* A message that all ranks have sent, for it came back. */
	const uint64_t sent = op->part.prim == CCL_PRIM_AR ? last : op->first_msg;

	if (op->last && ccl_coll_at(c, op->coll)->parts_left == 1) {
		kept_at(r, op->coll)->last_msg = last;
		done_here(c, kept_at(r, op->coll));
	}
	while (r->first < c->coll_done && kept_at(r, r->first)->last_msg + c->w <= sent)
		give_buffer(r, &kept_at(r, r->first++)->copy);
}

/* ---- after a failure ---- */

void ccl_resume_deny(struct ccl_comm *c)
{
	if (c->resume)
		c->resume->denied = true;
}

bool ccl_resume_may(const struct ccl_comm *c)
{
	return c->resume && !c->resume->denied && !c->resume->over && c->failed != -ECANCELED;
}

/* FNV-1a of what the ranks have to agree on. */
static uint32_t digest_of(const struct ccl_coll *coll)
{
	const uint64_t words[] = {coll->kind, coll->op, coll->dtype, coll->root, coll->bytes};
	uint32_t h = 2166136261u;

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (unsigned b = 0; b < 64; b += 8)
			h = (h ^ (uint8_t)(words[i] >> b)) * 16777619u;
	return h;
}

void ccl_resume_standing(const struct ccl_comm *c, struct ccl_standing *s)
{
	const struct ccl_resume *r = c->resume;

	s->leaving = false;
	s->kept = r->first;
	s->done = c->coll_done;
	s->issued = c->coll_issued;
	s->n = (unsigned)(s->issued - s->kept);
	for (unsigned i = 0; i < s->n; i++)
		s->digest[i] = digest_of(&kept_at(r, r->first + i)->coll);
}

/* All that have begun it have begun the same. */
static int compare(
	const struct ccl_standing *const *all, unsigned n, uint64_t number, char err[CCL_ERR_LEN])
{
	unsigned one = n;

	for (unsigned i = 0; i < n; i++) {
		const struct ccl_standing *s = all[i];

		if (number >= s->issued)
			continue;
		if (one == n)
			one = i;
		else if (s->digest[number - s->kept] != all[one]->digest[number - all[one]->kept]) {
			snprintf(err, CCL_ERR_LEN,
				"the ranks disagree: collective %llu of rank %u is not that of "
				"rank %u",
				(unsigned long long)number, i, one);
			return -EPROTO;
		}
	}
	return 0;
}

int ccl_resume_decide(const struct ccl_standing *const *all, unsigned n, struct ccl_verdict *v,
	char err[CCL_ERR_LEN])
{
	uint64_t end = 0;
	int rc = 0;

	*v = (struct ccl_verdict){.first = UINT64_MAX};
	for (unsigned i = 0; i < n; i++) {
		const struct ccl_standing *s = all[i];

		if (s->kept > s->done || s->done > s->issued || s->issued - s->kept != s->n) {
			snprintf(err, CCL_ERR_LEN, "rank %u: where it stands makes no sense", i);
			return -EPROTO;
		}
		v->first = s->done < v->first ? s->done : v->first;
		end = s->issued > end ? s->issued : end;
		if (s->done > v->known) {
			v->known = s->done;
			v->source = i;
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (all[i]->kept > v->first) {
			snprintf(err, CCL_ERR_LEN,
				"rank %u has nothing any more of collective %llu, which another "
				"waits for",
				i, (unsigned long long)v->first);
			return -ENODATA;
		}
	for (uint64_t number = v->first; number < end && !rc; number++)
		rc = compare(all, n, number, err);
	return rc;
}

/* ---- on the ring ---- */

static int move_regions(struct ccl_comm *c, struct ccl_ring *ring)
{
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		struct ccl_region *region = &c->region[i];
		const int rc = region->mr ? ccl_ring_register(ring, region->base, region->len) : 0;

		if (rc)
			return rc;
	}
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		if (c->region[i].mr)
			ibv_dereg_mr(c->region[i].mr);
		c->region[i].mr = NULL;
	}
	return 0;
}

static void remember(struct ccl_comm *c)
{
	struct ccl_resume *r = c->resume;

	for (unsigned i = 0; i < c->n_memb; i++) {
		r->operations += c->memb[i].op_done;
		r->messages += ccl_memb_finished(&c->memb[i]);
	}
	snprintf(r->why, sizeof(r->why), "%.255s", c->err);
}

bool ccl_resume_can(const struct ccl_comm *c, const struct ccl_verdict *v)
{
	return v->first >= c->resume->first && v->first <= c->coll_done &&
	       v->known >= c->coll_done && v->source < c->n_ranks;
}

int ccl_resume_over(struct ccl_comm *c, struct ccl_ring *ring, const struct ccl_verdict *v)
{
	struct ccl_resume *r = c->resume;
	int rc;

	if (!ccl_resume_can(c, v))
		return -EPROTO;
	remember(c);
	ccl_leave(c); /* from here on nothing writes to the program's buffers */
	rc = move_regions(c, ring);
	if (rc)
		return rc;
	r->verdict = *v;
	r->over = true;
	r->at = r->next = v->first;
	r->done = c->coll_done;
	c->ring = ring;
	c->kind = CCL_RING;
	c->fallback = true;
	c->no_half = false;
	c->failed = 0;
	c->diagnosed = false;
	c->err[0] = '\0';
	for (uint64_t i = c->coll_done; i != c->coll_issued; i++) {
		struct ccl_coll *coll = ccl_coll_at(c, i);

		if (overwrites(c, coll))
			coll->send = kept_at(r, i)->copy.at;
		coll->by = CCL_BY_RING;
		coll->n_parts = 0;
		coll->parts_left = 1;
	}
	return 0;
}

bool ccl_resume_is_over(const struct ccl_comm *c)
{
	return c->resume->over;
}

bool ccl_resume_pending(const struct ccl_comm *c)
{
	return c->resume && c->resume->over &&
	       (c->resume->waits || c->resume->next != c->coll_issued);
}

bool ccl_resume_holds(const struct ccl_comm *c, uint64_t number)
{
	return c->resume && c->resume->over && number >= c->resume->next;
}

void ccl_resume_handed(struct ccl_comm *c)
{
	if (c->resume && c->resume->over)
		c->resume->next = c->coll_issued;
}

/* As all ranks do it: an AllReduce that one of them has finished is its result, told. */
static int issue(struct ccl_comm *c, struct ccl_coll coll, uint8_t *result, struct ccl_req *req)
{
	const struct ccl_verdict *v = &c->resume->verdict;
	int rc;

	if (coll.kind == CCL_ALLREDUCE && c->resume->next < v->known)
		return ccl_ring_ibroadcast(c->ring, result, coll.bytes, v->source, req);
	rc = ccl_ring_issue(c->ring, c->rank, &coll);
	*req = coll.handed_req;
	return rc;
}

/* One that is done here: with what was kept, its result is for nobody. */
static int help(struct ccl_comm *c)
{
	struct ccl_resume *r = c->resume;
	struct kept *k = kept_at(r, r->next);
	struct ccl_coll coll = k->coll;
	int rc = grow(&r->scratch, coll.bytes * (coll.kind == CCL_ALLGATHER ? c->n_ranks : 1) + 1);

	if (rc)
		return rc;
	coll.send = k->copy.at;
	if (coll.recv)
		coll.recv = r->scratch.at;
	rc = issue(c, coll, k->copy.at, &r->req);
	r->waits = rc == 0;
	return rc;
}

/* One step: 1; 0: the ring is not that far; or its error. */
static int step(struct ccl_comm *c)
{
	struct ccl_resume *r = c->resume;
	struct ccl_coll *coll;
	int rc;

	if (r->waits) {
		rc = ccl_ring_test(c->ring, r->req);
		if (rc != 1)
			return rc;
		r->waits = false;
		give_buffer(r, &kept_at(r, r->next++)->copy);
		return 1;
	}
	if (r->next < r->done) {
		rc = help(c);
		return rc ? rc : 1;
	}
	coll = ccl_coll_at(c, r->next);
	rc = issue(c, *coll, coll->recv, &coll->handed_req);
	if (rc == 0)
		r->next++;
	return rc ? rc : 1;
}

int ccl_resume_go_on(struct ccl_comm *c)
{
	int rc = 1;

	while (ccl_resume_pending(c) && rc > 0)
		rc = step(c);
	return rc < 0 && rc != -EAGAIN ? rc : 0;
}

void ccl_resume_describe(const struct ccl_comm *c, struct ccl_info *info)
{
	const struct ccl_resume *r = c->resume;

	info->resumed = r->over;
	if (!r->over)
		return;
	info->resumed_at = c->first + r->at;
	info->operations += r->operations;
	info->messages += r->messages;
	snprintf(info->selection, sizeof(info->selection),
		"a ring of the hosts, without the switches, from collective %llu on: %.400s",
		(unsigned long long)r->at, r->why);
}
