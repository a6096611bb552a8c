/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of an invocation (lease.h): ask, tell, run, meet, give back. */
#include "lib/ccl/lease.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two tries: doubled from the first to the last. */
static const uint64_t FIRST_PAUSE_NS = 1000000, LAST_PAUSE_NS = 16000000;

enum step {
	IDLE,
	SHUT,       /* rank 0 waits for its turn */
	ASKED,      /* rank 0 waits for the desk */
	WAITING,    /* rank 0 waits for who has the lease, and asks again later */
	TELLING,    /* the decision goes round */
	IN_NETWORK, /* the groups are at work */
	ON_RING,    /* the ring is */
	MEETING,    /* this rank is done, perhaps not all are */
};

/* What rank 0 tells: the collective's number, the way, and why. */
struct word {
	uint8_t number[8]; /* little-endian */
	uint8_t granted;
	char why[CCL_DESK_WHY];
};

struct ccl_lease {
	struct ccl_meeting meeting;
	enum step step;
	uint64_t next; /* the collective at hand */
	struct word word;
	/* Rank 0's patience. Times are of ccl_progress; a collective's begin at its first look. */
	uint64_t wait_ns, now, since_ns, until_ns, again_ns, pause_ns;
	bool timed;
	uint64_t waits, waited_ns, longest_ns; /* collectives that had to wait */
	uint64_t granted, refused;
	bool last_refused;
	/* Rank 0's turns. What collectives took, by the bit length of their bytes: 0, not known. */
	struct ccl_turn turn;
	uint64_t got_ns, took_ns[65];
	uint64_t turns, turn_ns, turns_missed; /* collectives that waited for one; and in vain */
	char why[CCL_DESK_WHY];                /* of the last refusal */
};

int ccl_lease_attach(
	struct ccl_comm *c, struct ccl_ring *ring, const struct ccl_desk *desk, uint64_t wait_ns)
{
	c->lease = calloc(1, sizeof(*c->lease));
	if (!c->lease)
		return -ENOMEM;
	ccl_meeting_attach(c, &c->lease->meeting, ring, desk);
	c->lease->next = c->lease_open = c->coll_issued;
	c->lease->wait_ns = wait_ns;
	return 0;
}

void ccl_lease_close(struct ccl_comm *c)
{
	if (!c->lease)
		return;
	ccl_meeting_close(c);
	free(c->lease);
	c->lease = NULL;
}

bool ccl_lease_in_network(const struct ccl_comm *c)
{
	return c->lease->step == IN_NETWORK;
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

	l->step = TELLING;
	return ccl_meeting_tell(c, &l->word, sizeof(l->word));
}

void ccl_lease_set_turn(struct ccl_comm *c, const struct ccl_turn *turn)
{
	c->lease->turn = *turn;
	if (!turn->length_ns || turn->cycle_ns > c->timeout_ns / 4)
		c->lease->turn = (struct ccl_turn){0};
}

/* Nanoseconds until the job's turn, 0: it is. */
static uint64_t until_turn(const struct ccl_turn *t, uint64_t now, uint64_t took)
{
	const uint64_t at = (now + t->cycle_ns - t->zero_ns) % t->cycle_ns,
		       end = t->start_ns + t->length_ns, first = t->length_ns / 4;
	/* What may not end in its turn has to begin at the beginning of one: not so near that
	 * nobody looks just then. */
	const uint64_t last =
		t->start_ns + (took < t->length_ns - first ? t->length_ns - took : first);

	if (at < t->start_ns)
		return t->start_ns - at;
	return at <= last && at < end ? 0 : t->cycle_ns - at + t->start_ns;
}

static uint64_t *took(struct ccl_lease *l, const struct ccl_coll *coll)
{
	return &l->took_ns[coll->bytes ? 64 - __builtin_clzll(coll->bytes) : 0];
}

static void ask(struct ccl_comm *c)
{
	ccl_meeting_ask(c, CCL_LEASE_ACQUIRE, true);
	c->lease->step = ASKED;
}

static int begin(struct ccl_comm *c)
{
	struct ccl_lease *l = c->lease;

	memset(&l->word, 0, sizeof(l->word));
	if (c->rank != 0)
		return tell(c);
	l->pause_ns = FIRST_PAUSE_NS;
	l->timed = false;
	if (l->turn.cycle_ns)
		l->step = SHUT;
	else
		ask(c);
	return 0;
}

/* A collective may have been issued long after the last look at the clock. */
static void look(struct ccl_lease *l, uint64_t now)
{
	l->now = now;
	if (l->timed || (l->step != ASKED && l->step != SHUT))
		return;
	l->timed = true;
	l->since_ns = now;
	l->until_ns = now + l->wait_ns;
}

static uint64_t until_own(struct ccl_lease *l, const struct ccl_coll *coll, uint64_t now)
{
	return l->turn.cycle_ns ? until_turn(&l->turn, now, *took(l, coll)) : 0;
}

/* A turn that nobody has hit in two cycles is not waited for: the others' patience is bounded. */
static uint64_t until_given_up(const struct ccl_comm *c, uint64_t now)
{
	const struct ccl_lease *l = c->lease;
	const uint64_t two = 2 * l->turn.cycle_ns, most = c->timeout_ns / 4,
		       end = l->since_ns + (two < most ? two : most);

	return !l->timed ? UINT64_MAX : end > now ? end - now : 0;
}

/* False: it is still not its turn. */
static bool take_turn(struct ccl_comm *c, const struct ccl_coll *coll)
{
	struct ccl_lease *l = c->lease;
	const bool shut = until_own(l, coll, l->now) > 0;

	if (!l->timed || (shut && until_given_up(c, l->now) > 0))
		return false;
	l->turns_missed += shut;
	if (l->now > l->since_ns) {
		l->turns++;
		l->turn_ns += l->now - l->since_ns;
	}
	l->timed = false;
	ask(c);
	look(l, l->now);
	return true;
}

uint64_t ccl_lease_due(const struct ccl_comm *c, uint64_t now)
{
	struct ccl_lease *l = c->lease;
	uint64_t turn, end;

	if (l->step == WAITING)
		return l->again_ns > now ? l->again_ns - now : 0;
	if (l->step != SHUT || !l->turn.cycle_ns)
		return UINT64_MAX;
	turn = until_own(l, ccl_coll_at((struct ccl_comm *)c, l->next), now);
	end = until_given_up(c, now);
	return turn < end ? turn : end;
}

/* The desk says no. Whether to ask once more: the last time when the time is over. */
static bool wait_on(struct ccl_lease *l, int rc)
{
	if (rc != -EBUSY || l->wait_ns == 0 || l->now >= l->until_ns)
		return false;
	l->again_ns = l->now + l->pause_ns < l->until_ns ? l->now + l->pause_ns : l->until_ns;
	l->pause_ns = l->pause_ns < LAST_PAUSE_NS / 2 ? 2 * l->pause_ns : LAST_PAUSE_NS;
	l->step = WAITING;
	return true;
}

/* It is decided: what was waited. */
static void count_wait(struct ccl_lease *l, bool granted)
{
	const uint64_t ns = l->now - l->since_ns;
	size_t len = strlen(l->word.why);

	if (l->pause_ns == FIRST_PAUSE_NS) /* it was not refused before */
		return;
	l->waits++;
	l->waited_ns += ns;
	l->longest_ns = ns > l->longest_ns ? ns : l->longest_ns;
	if (!granted)
		snprintf(l->word.why + len, sizeof(l->word.why) - len, ", waited for %llu ms",
			(unsigned long long)(ns / 1000000));
}

static int decide(struct ccl_comm *c, bool granted)
{
	struct ccl_lease *l = c->lease;

	for (unsigned i = 0; i < sizeof(l->word.number); i++)
		l->word.number[i] = (uint8_t)(l->next >> 8 * i);
	l->word.granted = granted;
	l->got_ns = l->now;
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
	rc = ccl_ring_issue(l->meeting.ring, c->rank, coll);
	return rc ? ccl_meeting_fail(c, rc) : 0;
}

/* Nobody else has the memory before all ranks have finished. */
static int meet(struct ccl_comm *c)
{
	c->lease->step = MEETING;
	return ccl_meeting_gather(c);
}

static void end(struct ccl_comm *c, bool release)
{
	struct ccl_lease *l = c->lease;

	if (release && c->rank == 0) {
		*took(l, ccl_coll_at(c, l->next)) = l->now - l->got_ns;
		ccl_meeting_ask(c, CCL_LEASE_RELEASE, false);
	}
	l->step = IDLE;
	ccl_part_done(c, l->next++);
}

/* One step, if it can be made: 1; 0 if something is to be waited for. */
static int step(struct ccl_comm *c)
{
	struct ccl_lease *l = c->lease;
	const struct ccl_coll *coll = ccl_coll_at(c, l->next);
	int rc = 0;

	switch (l->step) {
	case IDLE:
		if (l->next == c->coll_issued)
			return 0;
		begin(c);
		return 1;
	case SHUT:
		return take_turn(c, coll);
	case ASKED:
		if (!l->timed || !ccl_meeting_answered(c, &rc, l->word.why))
			return 0;
		if (wait_on(l, rc))
			return 1;
		count_wait(l, rc == 0);
		decide(c, rc == 0);
		return 1;
	case WAITING:
		if (l->now < l->again_ns)
			return 0;
		ask(c);
		return 1;
	case TELLING:
		if (!ccl_meeting_over(c))
			return 0;
		run(c);
		return 1;
	case IN_NETWORK:
		if (coll->parts_left > 1)
			return 0;
		meet(c);
		return 1;
	case ON_RING:
		if (ccl_ring_test(l->meeting.ring, coll->handed_req) != 1)
			return 0;
		end(c, false);
		return 1;
	default:
		if (!ccl_meeting_over(c))
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
	const int moved = ccl_meeting_progress(c, now);
	int n;

	if (moved < 0)
		return moved;
	look(c->lease, now);
	n = go(c);
	return n < 0 ? n : n + moved;
}

static void append(struct ccl_info *info, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void append(struct ccl_info *info, const char *fmt, ...)
{
	const size_t len = strlen(info->selection);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(info->selection + len, sizeof(info->selection) - len, fmt, ap);
	va_end(ap);
}

void ccl_lease_describe(const struct ccl_comm *c, struct ccl_info *info)
{
	const struct ccl_lease *l = c->lease;

	info->lease_granted = l->granted;
	info->lease_refused = l->refused;
	info->fallback = l->last_refused;
	append(info,
		"; memory by lease: %llu collectives in the network, %llu by a ring of the hosts",
		(unsigned long long)l->granted, (unsigned long long)l->refused);
	if (l->waits)
		append(info, ", %llu waited %llu ms, the longest %llu ms",
			(unsigned long long)l->waits, (unsigned long long)(l->waited_ns / 1000000),
			(unsigned long long)(l->longest_ns / 1000000));
	if (l->turns)
		append(info, ", %llu waited %llu ms for their turn", (unsigned long long)l->turns,
			(unsigned long long)(l->turn_ns / 1000000));
	if (l->turns_missed)
		append(info, ", %llu of them in vain", (unsigned long long)l->turns_missed);
	if (l->step == WAITING)
		append(info, ", now waits for %llu ms more, for %s",
			(unsigned long long)((l->until_ns - l->now) / 1000000), l->word.why);
	else if (l->refused)
		append(info, ", the last because %s", l->why);
}
