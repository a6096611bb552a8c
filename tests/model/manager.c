/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager's failure propagation, explored: lib/mgr/job*.c as it is, one job of two ranks on two
 * leaves and a spine, each switch an agent that does as told and answers, over connections in
 * order. In all orders of what may happen a group fails, messages get lost, a rank dies, a switch
 * is started anew, the manager's time runs ahead, rank 0 gets round late to start the group of one
 * switch (LATE):
 *	incline-model-manager [mute|unfenced] FAILS LOSSES EARLY DEATHS RESTARTS ...
 * mute: a manager whose word to fail or remove never arrives at one leaf; unfenced: an agent that
 * starts groups of an epoch that is over. 0 if what that must come to has been found.
 *
 * Choices are replayed from the start: a run takes the first way that was not taken yet, and ends
 * where somebody has been before. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/mgr/job_priv.h"
#include "tests/model/intern.h"
#include "tests/unit/mgr/fabric.h"

enum {
	SWITCHES = 3,
	LATE = 1,
	RANKS = 2,
	QUEUE = 8,
	DEPTH = 512,
	SEEN = 1 << 22,
	RETRY_MS = 200,
	DRAIN_MS = 500
};
static const uint64_t MS = 1000000;

enum group { NONE, INSTALLED, ACTIVE, FAILED };

enum budget { FREE, FAILS, LOSSES, EARLY, DEATHS, RESTARTS, BUDGETS, GIVEN = BUDGETS - 1 };

/* To the manager: an answer, or (event) its group has failed. */
struct word {
	enum mgr_action_kind kind;
	int rc;
	bool event;
};

struct agent {
	enum group group;
	bool had, was_failed;
	bool told, ended; /* to fail or to go: was asked to; has done so */
	struct word ask[QUEUE], say[QUEUE];
	unsigned n_ask, n_say;
};

static struct world {
	struct fabric f;
	struct mgr_jobs *js;
	uint64_t now, epoch;
	struct agent sw[SWITCHES];
	bool dead[RANKS], ready[RANKS], plan, harmed;
	bool over; /* ranks were told that it is, or that they go by the ring */
	unsigned left[BUDGETS];
} w;

static unsigned given[BUDGETS];
static bool mute, unfenced; /* bugs, and what they must come to */
#define CIRCLES "something has happened, and it goes in circles"
#define WORKS_AGAIN "a group works whose switch was told that it is over"

/* ---- choices ---- */

enum event { OBEY, HEAR, LOSE_ASK, LOSE_SAY, FAIL, RESTART, READY, DIE, START, TIME };
static const char *const event_names[] = {[OBEY] = "obey",
	[HEAR] = "hear",
	[LOSE_ASK] = "lose-request",
	[LOSE_SAY] = "lose-answer",
	[FAIL] = "fail",
	[RESTART] = "restart",
	[READY] = "ready",
	[DIE] = "die",
	[START] = "start",
	[TIME] = "time"};
struct option {
	enum event what;
	unsigned of;
};

static struct {
	unsigned at, n;
	unsigned choice[DEPTH], of[DEPTH];
	struct option what[DEPTH]; /* for people */
	uint64_t state[DEPTH];     /* that it led to */
} path;

static void violation(const char *what)
{
	printf("VIOLATION: %s, after %u choices:", what, path.at);
	for (unsigned i = 0; i < path.at; i++)
		printf(" %s %u", event_names[path.what[i].what], path.what[i].of);
	putchar('\n');
	exit(!(mute && !strcmp(what, CIRCLES)) && !(unfenced && !strcmp(what, WORKS_AGAIN)));
}

static unsigned choose(unsigned n)
{
	if (path.at == DEPTH)
		violation("(too deep)");
	if (path.at == path.n) {
		path.choice[path.n] = 0;
		path.of[path.n++] = n;
	}
	return path.choice[path.at++];
}

static bool next_path(void)
{
	while (path.n > 0 && path.choice[path.n - 1] + 1 == path.of[path.n - 1])
		path.n--;
	if (path.n == 0)
		return false;
	path.choice[path.n - 1]++;
	return true;
}

/* ---- the manager and what it tells ---- */

static unsigned index_of(unsigned node)
{
	for (unsigned i = 0; i < SWITCHES; i++)
		if (w.f.sw[i] == node)
			return i;
	violation("a switch that is none");
	return 0;
}

static void ask(const struct mgr_action *a)
{
	const unsigned i = index_of(a->node);
	struct agent *s = &w.sw[i];

	for (unsigned k = 0; a->kind == MGR_ACTIVATE && k < SWITCHES; k++)
		if (!w.sw[k].had)
			violation("a group starts to work that is not installed everywhere");
	if (a->kind >= MGR_FAIL && !w.harmed)
		violation("a group is failed to which nothing has happened");
	s->told = s->told || a->kind >= MGR_FAIL;
	if (mute && i == 0 && a->kind >= MGR_FAIL)
		return;
	if (s->n_ask == QUEUE)
		violation("(too many requests)");
	s->ask[s->n_ask++] = (struct word){.kind = a->kind};
}

/* Who hears that it is over must not find a switch that was not even told. */
static void tell(enum mgr_action_kind kind)
{
	w.plan = w.plan || kind == MGR_TELL_PLAN;
	if (kind != MGR_TELL_OVER && kind != MGR_TELL_RING)
		return;
	if (!w.harmed)
		violation("ranks are told of an end that there is not");
	for (unsigned i = 0; i < SWITCHES; i++)
		if (w.sw[i].group != NONE && w.sw[i].group != FAILED && !w.sw[i].told)
			violation("ranks are told before a switch is");
	w.over = true;
}

static void decide(void)
{
	struct mgr_action a;

	while (mgr_jobs_next(w.js, w.now, &a)) {
		if (a.kind >= MGR_TELL_PLAN)
			tell(a.kind);
		else
			ask(&a);
	}
}

/* ---- what may happen ---- */

static void say(struct agent *s, struct word what)
{
	if (s->n_say == QUEUE)
		violation("(too many answers)");
	s->say[s->n_say++] = what;
}

static struct word pop(struct word *queue, unsigned *n)
{
	const struct word first = queue[0];

	memmove(queue, queue + 1, --*n * sizeof(*queue));
	return first;
}

/* As an agent does it: again and again with one result; a group that has failed stays so. One that
 * rank 0 has not started yet does not fail: it cannot be started any more (epoch.end). */
static void obey(struct agent *s)
{
	const bool late = s == &w.sw[LATE];
	struct word a = pop(s->ask, &s->n_ask);

	if (a.kind == MGR_INSTALL) {
		if (s->group == NONE && !s->ended) /* else its epoch is over, and is refused */
			s->group = INSTALLED;
		else if (s->group == NONE)
			a.rc = -ESTALE;
		s->had = s->had || s->group != NONE;
	} else if (s->group == NONE) {
		a.rc = -ENOENT;
		s->ended = s->ended || a.kind >= MGR_FAIL;
	} else if (a.kind == MGR_ACTIVATE) {
		if (s->group == INSTALLED && !late)
			s->group = ACTIVE;
	} else if (a.kind == MGR_FAIL) {
		if (s->group != INSTALLED || !late)
			s->group = FAILED;
		s->was_failed = s->ended = true;
	} else {
		s->was_failed = s->ended = true;
		s->group = NONE;
	}
	say(s, a);
}

static void hear(unsigned i)
{
	const struct word a = pop(w.sw[i].say, &w.sw[i].n_say);

	if (a.event)
		mgr_jobs_group_failed(w.js, w.epoch, w.f.sw[i], w.now);
	else
		mgr_jobs_answer(w.js, w.epoch, w.f.sw[i], a.kind, a.rc, w.now);
}

static void break_group(struct agent *s)
{
	s->group = FAILED;
	s->was_failed = w.harmed = true;
	say(s, (struct word){.event = true});
}

static bool may_start(void)
{
	const struct agent *s = &w.sw[LATE];

	for (unsigned i = 0; i < SWITCHES; i++)
		if (!w.sw[i].had)
			return false;
	return s->group == INSTALLED && !w.dead[0] && (!s->ended || unfenced);
}

static void restart(unsigned i)
{
	w.harmed = w.sw[i].was_failed = true;
	w.sw[i].group = NONE;
	w.sw[i].n_ask = w.sw[i].n_say = 0;
	mgr_jobs_switch_lost(w.js, w.f.sw[i], w.now);
}

static void pass_time(void)
{
	w.now = mgr_jobs_deadline(w.js);
	for (unsigned i = 0; i < RANKS; i++)
		if (!w.dead[i])
			mgr_jobs_heartbeat(w.js, w.epoch, i, w.now);
}

static bool in_flight(void)
{
	for (unsigned i = 0; i < SWITCHES; i++)
		if (w.sw[i].n_ask || w.sw[i].n_say)
			return true;
	return false;
}

static bool may_be_lost(const struct agent *s, bool answer)
{
	return w.left[LOSSES] && (answer ? s->n_say && !s->say[0].event : s->n_ask > 0);
}

static unsigned options(struct option *o)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SWITCHES; i++) {
		const struct agent *s = &w.sw[i];

		if (s->n_ask)
			o[n++] = (struct option){OBEY, i};
		if (s->n_say)
			o[n++] = (struct option){HEAR, i};
		if (may_be_lost(s, false))
			o[n++] = (struct option){LOSE_ASK, i};
		if (may_be_lost(s, true))
			o[n++] = (struct option){LOSE_SAY, i};
		if (w.left[FAILS] && (s->group == INSTALLED || s->group == ACTIVE))
			o[n++] = (struct option){FAIL, i};
		if (w.left[RESTARTS] && s->group != NONE)
			o[n++] = (struct option){RESTART, i};
	}
	for (unsigned i = 0; i < RANKS; i++) {
		if (w.plan && !w.over && !w.ready[i] && !w.dead[i])
			o[n++] = (struct option){READY, i};
		if (w.left[DEATHS] && !w.dead[i])
			o[n++] = (struct option){DIE, i};
	}
	if (may_start())
		o[n++] = (struct option){START, LATE};
	if (mgr_jobs_deadline(w.js) != UINT64_MAX && (w.left[EARLY] || n == 0)) {
		o[n] = (struct option){TIME, n > 0}; /* ahead of all that might happen */
		n++;
	}
	return n;
}

static void take(struct option o)
{
	static const enum budget cost[] = {[LOSE_ASK] = LOSSES,
		[LOSE_SAY] = LOSSES,
		[FAIL] = FAILS,
		[RESTART] = RESTARTS,
		[DIE] = DEATHS,
		[TIME] = EARLY};
	struct agent *s = &w.sw[o.what < READY ? o.of : 0];

	w.left[cost[o.what]] -= o.what == TIME ? o.of : cost[o.what] != FREE;
	if (o.what == OBEY)
		obey(s);
	else if (o.what == HEAR)
		hear(o.of);
	else if (o.what == LOSE_ASK)
		pop(s->ask, &s->n_ask);
	else if (o.what == LOSE_SAY)
		pop(s->say, &s->n_say);
	else if (o.what == FAIL)
		break_group(s);
	else if (o.what == RESTART)
		restart(o.of);
	else if (o.what == DIE)
		w.dead[o.of] = w.harmed = true;
	else if (o.what == READY)
		w.ready[o.of] = !mgr_jobs_ready(w.js, w.epoch, o.of, w.now);
	else if (o.what == START)
		w.sw[LATE].group = ACTIVE;
	else
		pass_time();
	decide();
	for (unsigned i = 0; i < SWITCHES; i++)
		if (w.sw[i].ended && w.sw[i].group == ACTIVE)
			violation(WORKS_AGAIN);
}

/* ---- states ---- */

static uint64_t until(uint64_t at)
{
	return at == UINT64_MAX ? at : at > w.now ? at - w.now : 0;
}

static uint64_t of_run(uint64_t h)
{
	const struct mgr_run *r = w.js->run;

	if (r == NULL)
		return h;
	h = mc_hash(
		&(uint64_t[]){h, r->phase, r->want, r->end, r->culprit, r->tell, until(r->phase_by),
			until(r->remove_at), until(r->forget_at), r->n_ready, r->n_left},
		88, 3);
	for (unsigned i = 0; i < r->n_sw; i++)
		h = mc_hash(&(uint64_t[]){h, r->sw[i].at, r->sw[i].asked, until(r->sw[i].tell_at)},
			32, 4);
	for (unsigned i = 0; i < RANKS; i++)
		h = mc_hash(&(uint64_t[]){h, w.now - r->rank[i].seen, r->rank[i].ready}, 24, 5);
	return h;
}

static uint64_t state(void)
{
	uint64_t h = of_run(w.harmed);

	for (unsigned i = 0; i < SWITCHES; i++) {
		const struct agent *s = &w.sw[i];

		h = mc_hash(&(uint64_t[]){h, s->group, s->had, s->was_failed, s->told, s->ended,
				    s->n_ask, s->n_say, mgr_book_used_bytes(w.f.b, w.f.sw[i]),
				    mgr_book_switch_holders(w.f.b, w.f.sw[i])},
			80, 6);
		for (unsigned k = 0; k < s->n_ask; k++)
			h = mc_hash(&(uint64_t[]){h, s->ask[k].kind}, 16, 7);
		for (unsigned k = 0; k < s->n_say; k++)
			h = mc_hash(&(uint64_t[]){h, s->say[k].kind, (uint64_t)s->say[k].rc,
					    s->say[k].event},
				32, 8);
	}
	for (unsigned i = 0; i < RANKS; i++)
		h = mc_hash(&(uint64_t[]){h, w.dead[i], w.ready[i], w.plan, w.over}, 40, 9);
	for (unsigned i = 0; i < BUDGETS; i++)
		h = mc_hash(&(uint64_t[]){h, w.left[i]}, 16, 10);
	return h ? h : 1;
}

static uint64_t *seen;
static unsigned long n_seen, n_steps, n_ends, n_active;

static bool met(uint64_t h)
{
	for (uint64_t at = h % SEEN;; at = (at + 1) % SEEN) {
		if (seen[at] == h)
			return true;
		if (seen[at] == 0) {
			seen[at] = h;
			if (++n_seen == SEEN / 2)
				violation("(too many states)");
			return false;
		}
	}
}

/* The job works, and time is all that passes. */
static bool works(void)
{
	return !w.harmed && !in_flight() && w.js->run && w.js->run->phase == MGR_ACTIVE;
}

/* By the ring, with nothing left to be done: likewise. */
static bool settled(void)
{
	return w.harmed && !in_flight() && w.js->run && w.js->run->phase == MGR_RING &&
	       mgr_run_deadline(w.js, w.js->run) > w.now + MS * DRAIN_MS;
}

/* On this way it has been before: nothing will come of it. */
static void check_circle(uint64_t h)
{
	for (unsigned i = 0; i + 1 < path.at; i++)
		if (path.state[i] == h)
			violation(CIRCLES);
}

static void check_end(void)
{
	n_ends++;
	if (!w.harmed)
		violation("it has ended although nothing has happened");
	if (!w.over && (!w.dead[0] || !w.dead[1]))
		violation("a rank was not told");
	for (unsigned i = 0; i < SWITCHES; i++) {
		if (w.sw[i].group != NONE)
			violation("a group is left");
		if (w.sw[i].had && !w.sw[i].was_failed)
			violation("a switch has not failed its group");
		if (mgr_book_used_bytes(w.f.b, w.f.sw[i]) ||
			mgr_book_switch_holders(w.f.b, w.f.sw[i]))
			violation("memory is promised to nobody");
	}
}

/* ---- runs ---- */

static void open_world(void)
{
	static const struct mgr_jobs_config config = {.policy = &mgr_policy_spatial,
		.max_runs = 4,
		.first_epoch = 100,
		.heartbeat_ns = 1000 * 1000000ull,
		.join_ns = 10000 * 1000000ull,
		.answer_ns = 2000 * 1000000ull,
		.retry_ns = RETRY_MS * 1000000ull,
		.drain_ns = DRAIN_MS * 1000000ull,
		.linger_ns = 1000 * 1000000ull};
	struct mgr_job job = {.name = "job",
		.n_ranks = RANKS,
		.shape = {.mtu = 1024, .m = 4, .hop_ns = 2500},
		.duty = MGR_DUTY};

	memset(&w, 0, sizeof(w));
	w.f = fabric_clos(2, 1, 1);
	w.now = MS;
	w.js = mgr_jobs_new(w.f.g, w.f.b, w.f.p, &config);
	memcpy(w.left, given, sizeof(given));
	for (unsigned i = 0; i < RANKS; i++) {
		struct mgr_rank rank = {
			.rank = i, .who = 7 + i, .at = {w.f.host[i], -1}, .modes = MGR_MODES};

		if (mgr_jobs_join(w.js, &job, &rank, w.now, &w.epoch))
			violation("nobody can join");
	}
	decide();
}

static void close_world(void)
{
	mgr_jobs_free(w.js);
	fabric_free(&w.f);
}

static void run(void)
{
	struct option o[32];
	const unsigned known = path.n;
	unsigned n;

	path.at = 0;
	open_world();
	while ((n = options(o)) > 0) {
		const struct option next = o[choose(n)];

		path.what[path.at - 1] = next;
		take(next);
		n_steps++;
		const uint64_t h = path.state[path.at - 1] = state();

		if (path.at < known)
			continue;
		if (works())
			n_active++;
		else if (settled())
			check_end();
		else if (w.harmed)
			check_circle(h);
		if (met(h))
			break;
	}
	if (n == 0)
		check_end();
	close_world();
}

int main(int argc, char **argv)
{
	mute = argc > 1 && strcmp(argv[1], "mute") == 0;
	unfenced = argc > 1 && strcmp(argv[1], "unfenced") == 0;
	const int bug = mute || unfenced;
	if (argc < 1 + bug + GIVEN || (argc - 1 - bug) % GIVEN != 0) {
		fprintf(stderr, "usage: incline-model-manager [mute|unfenced] FAILS LOSSES EARLY "
				"DEATHS RESTARTS ...\n");
		return 2;
	}
	seen = calloc(SEEN, sizeof(*seen));
	if (seen == NULL) {
		fprintf(stderr, "incline-model-manager: no memory for the states\n");
		return 2;
	}
	for (int i = 1 + bug; i < argc; i += GIVEN) {
		memset(seen, 0, SEEN * sizeof(*seen));
		memset(&path, 0, sizeof(path));
		n_seen = n_steps = n_ends = n_active = 0;
		for (unsigned k = 0; k < GIVEN; k++)
			given[1 + k] = (unsigned)atoi(argv[i + (int)k]);
		do
			run();
		while (next_path());
		if (n_active == 0)
			violation("the job has never worked");
		printf("%u failures, %u lost, %u early, %u dead, %u restarts: complete, ok: %lu "
		       "states, "
		       "%lu steps, %lu ends\n",
			given[FAILS], given[LOSSES], given[EARLY], given[DEATHS], given[RESTARTS],
			n_seen, n_steps, n_ends);
		fflush(stdout);
	}
	return bug; /* not found */
}
