/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of an invocation (lease.h): ask, tell, run, meet, give back. */
#include "lib/ccl/lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum step {
	IDLE,
	ASKED,      /* rank 0 waits for the desk */
	TELLING,    /* the decision goes round */
	IN_NETWORK, /* the groups are at work */
	ON_RING,    /* the ring is */
	MEETING,    /* this rank is done, perhaps not all are */
};

/* What rank 0 tells: the collective's number, the way, and why. */
struct word {
	uint8_t number[8]; /* little-endian */
	uint8_t granted;
	char why[CCL_LEASE_WHY];
};

struct ccl_lease {
	struct ccl_lease_desk desk; /* rank 0 */
	enum step step;
	uint64_t next; /* the collective at hand */
	struct word word;
	struct ccl_req req; /* of the ring */
	uint64_t granted, refused;
	bool last_refused;
	char why[CCL_LEASE_WHY]; /* of the last refusal */
};

int ccl_lease_attach(struct ccl_comm *c, struct ccl_ring *ring, const struct ccl_lease_desk *desk)
{
	c->lease = calloc(1, sizeof(*c->lease));
	if (!c->lease)
		return -ENOMEM;
	c->lease_ring = ring;
	c->lease->next = c->lease_open = c->coll_issued;
	c->lease->desk.fd = -1;
	if (desk)
		c->lease->desk = *desk;
	return 0;
}

void ccl_lease_close(struct ccl_comm *c)
{
	struct ccl_lease *l = c->lease;

	if (!l)
		return;
	if (l->desk.close)
		l->desk.close(l->desk.arg);
	ccl_ring_close(c->lease_ring);
	free(l);
	c->lease = NULL;
	c->lease_ring = NULL;
}

int ccl_lease_fd(const struct ccl_comm *c)
{
	return c->lease && c->lease->step == ASKED ? c->lease->desk.fd : -1;
}

bool ccl_lease_in_network(const struct ccl_comm *c)
{
	return c->lease->step == IN_NETWORK;
}

static int ring_failed(struct ccl_comm *c, int rc)
{
	const char *why = ccl_ring_error(c->lease_ring);

	return ccl_fail(c, rc, "%s", why[0] ? why : strerror(-rc));
}

/* ---- the decision ---- */

static uint64_t number_of(const struct word *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < sizeof(w->number); i++)
		n |= (uint64_t)w->number[i] << 8 * i;
	return n;
}

static int tell(struct ccl_comm *c)
{
	struct ccl_lease *l = c->lease;
	const int rc = ccl_ring_ibroadcast(c->lease_ring, &l->word, sizeof(l->word), 0, &l->req);

	l->step = TELLING;
	return rc ? ring_failed(c, rc) : 0;
}

static int begin(struct ccl_comm *c)
{
	struct ccl_lease *l = c->lease;

	memset(&l->word, 0, sizeof(l->word));
	if (c->rank != 0)
		return tell(c);
	l->desk.ask(l->desk.arg, true);
	l->step = ASKED;
	return 0;
}

static int decide(struct ccl_comm *c, bool granted)
{
	struct ccl_lease *l = c->lease;

	for (unsigned i = 0; i < sizeof(l->word.number); i++)
		l->word.number[i] = (uint8_t)(l->next >> 8 * i);
	l->word.granted = granted;
	return tell(c);
}

/* ---- the two ways ---- */

static int run(struct ccl_comm *c)
{
	struct ccl_lease *l = c->lease;
	struct ccl_coll *coll = ccl_coll_at(c, l->next);
	int rc;

	if (number_of(&l->word) != l->next || l->word.granted > 1)
		return ccl_fail(c, -EPROTO,
			"rank 0 has decided about collective %llu, here it is %llu",
			(unsigned long long)number_of(&l->word), (unsigned long long)l->next);
	l->last_refused = !l->word.granted;
	if (l->word.granted) {
		l->granted++;
		l->step = IN_NETWORK;
		c->lease_open = l->next + 1;
		c->fresh = true; /* the wait for the switches begins now */
		for (unsigned i = 0; i < c->n_memb; i++)
			if (ccl_pump(&c->memb[i]))
				return c->failed;
		return 0;
	}
	l->refused++;
	l->word.why[sizeof(l->word.why) - 1] = '\0';
	memcpy(l->why, l->word.why, sizeof(l->why));
	l->step = ON_RING;
	coll->parts_left = 1;
	rc = ccl_ring_issue(c->lease_ring, c->rank, coll);
	return rc ? ring_failed(c, rc) : 0;
}

/* Nobody else has the memory before all ranks have finished. */
static int meet(struct ccl_comm *c)
{
	struct ccl_lease *l = c->lease;
	const int rc = ccl_ring_ibarrier(c->lease_ring, &l->req);

	l->step = MEETING;
	return rc ? ring_failed(c, rc) : 0;
}

static void end(struct ccl_comm *c, bool release)
{
	struct ccl_lease *l = c->lease;

	if (release && c->rank == 0)
		l->desk.ask(l->desk.arg, false);
	l->step = IDLE;
	ccl_part_done(c, l->next++);
}

/* One step, if it can be made: 1; 0 if something is to be waited for. */
static int step(struct ccl_comm *c)
{
	struct ccl_lease *l = c->lease;
	const struct ccl_coll *coll = ccl_coll_at(c, l->next);
	bool granted = false;

	switch (l->step) {
	case IDLE:
		if (l->next == c->coll_issued)
			return 0;
		begin(c);
		return 1;
	case ASKED:
		if (!l->desk.answer(l->desk.arg, &granted, l->word.why))
			return 0;
		decide(c, granted);
		return 1;
	case TELLING:
		if (ccl_ring_test(c->lease_ring, l->req) != 1)
			return 0;
		run(c);
		return 1;
	case IN_NETWORK:
		if (coll->parts_left > 1)
			return 0;
		meet(c);
		return 1;
	case ON_RING:
		if (ccl_ring_test(c->lease_ring, coll->handed_req) != 1)
			return 0;
		end(c, false);
		return 1;
	default:
		if (ccl_ring_test(c->lease_ring, l->req) != 1)
			return 0;
		end(c, true);
		return 1;
	}
}

/* How many steps, or the communicator's error. */
static int go(struct ccl_comm *c)
{
	int n = 0;

	while (!c->failed && step(c))
		n++;
	return c->failed ? c->failed : n;
}

int ccl_lease_go(struct ccl_comm *c)
{
	const int n = go(c);

	return n < 0 ? n : 0;
}

int ccl_lease_progress(struct ccl_comm *c, uint64_t now)
{
	const int moved = ccl_ring_progress(c->lease_ring, now);
	int n;

	if (moved < 0)
		return ring_failed(c, moved);
	n = go(c);
	return n < 0 ? n : n + moved;
}

void ccl_lease_describe(const struct ccl_comm *c, struct ccl_info *info)
{
	const struct ccl_lease *l = c->lease;
	const size_t len = strlen(info->selection);

	info->lease_granted = l->granted;
	info->lease_refused = l->refused;
	info->fallback = l->last_refused;
	snprintf(info->selection + len, sizeof(info->selection) - len,
		"; memory by lease: %llu collectives in the network, %llu by a ring of the "
		"hosts%s%s",
		(unsigned long long)l->granted, (unsigned long long)l->refused,
		l->refused ? ", the last because " : "", l->why);
}
