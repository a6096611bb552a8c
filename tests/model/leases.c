/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-model-leases: all that can happen to two tenants who want the same lease on two switches
 * (docs/inc-protocol.md, 13.3), with the recorder of the switches (dataplane/leases.c) and rank 0's
 * desk (lib/ccl/lease_desk.c) as they are. Control messages and answers may be lost, tenants may
 * die, workers may be late to pass a quiescent state. Runs are made again and again with other
 * choices until there are none left; a state met before is not continued. */
#include <stdarg.h>
#include <ucontext.h>

#include "dataplane/leases.h"
#include "dataplane/runtime/host_ops.h"
#include "dataplane/sw.h"
#include "lib/ccl/lease_desk.c" /* its steps, without its thread */
#include "tests/model/intern.h"

enum { TENANTS = 2, SWITCHES = 2, STACK = 1 << 16, MAX_STEPS = 200, BYTES = 4096, GROUP_SLOT = 1 };
static const uint64_t SECOND = 1000000000;

/* ---- choices ---- */

static struct {
	unsigned choice[MAX_STEPS], options[MAX_STEPS], n; /* of the run before, then of this one */
	unsigned at;
} path;

static unsigned choose(unsigned options)
{
	const unsigned at = path.at++;

	if (at == MAX_STEPS) {
		printf("VIOLATION: no end\n");
		exit(1);
	}
	if (at >= path.n) {
		path.n = at + 1;
		path.choice[at] = 0;
	}
	path.options[at] = options;
	return path.choice[at];
}

/* The next run's choices; false: there is none. */
static bool next_path(void)
{
	path.n = path.at;
	while (path.n > 0 && path.choice[path.n - 1] + 1 == path.options[path.n - 1])
		path.n--;
	if (path.n == 0)
		return false;
	path.choice[path.n - 1]++;
	return true;
}

/* ---- switches ---- */

struct later {
	void (*run)(struct sw *sw, void *what);
	void *what;
	struct later *next;
};

static struct sw *switches[SWITCHES];
static struct later *later[SWITCHES]; /* what waits for a quiescent state */
static uint64_t now;

uint64_t sw_now(const struct sw *sw)
{
	(void)sw;
	return now;
}

static unsigned index_of(const struct sw *sw)
{
	return sw == switches[0] ? 0 : 1;
}

void sw_defer(struct sw *sw, void (*run)(struct sw *sw, void *what), void *what)
{
	struct later *l = malloc(sizeof(*l));

	*l = (struct later){run, what, later[index_of(sw)]};
	later[index_of(sw)] = l;
}

/* The checker says when. */
void sw_reclaim(struct sw *sw)
{
	(void)sw;
}

static void quiesce(unsigned i)
{
	while (later[i]) {
		struct later *l = later[i];

		later[i] = l->next;
		l->run(switches[i], l->what);
		free(l);
	}
}

unsigned sw_host_place(const struct sw *sw, const struct wire_ip *own)
{
	(void)sw, (void)own;
	return 0;
}

bool sw_host_is_read(const struct sw *sw, unsigned slot)
{
	(void)sw, (void)slot;
	return false;
}

static const char *const names[TENANTS] = {"a", "b"};

static struct inc_group *group_of(unsigned sw, unsigned tenant)
{
	return switches[sw]->groups->group[GROUP_SLOT + tenant];
}

static void make_group(struct sw *sw, unsigned tenant)
{
	static struct inc_ep_spec ep[2];
	struct inc_group_spec spec = {.mode = INC_MODE_2,
		.kind = INC_MIXED,
		.mtu = 256,
		.m = 1,
		.w = 2,
		.slots = 4,
		.n_ranks = 2,
		.n_ep = 2,
		.ep = ep,
		.lease = "l",
		.lease_ms = 10000};
	char err[SW_ERR_LEN];
	struct inc_group *g;

	snprintf(spec.name, sizeof(spec.name), "%s", names[tenant]);
	for (unsigned i = 0; i < 2; i++)
		ep[i] = (struct inc_ep_spec){.remote_ip = wire_ip_from4(0x0a000001 + i),
			.local_ip = wire_ip_from4(0x0a000009),
			.remote_qpn = 0x11 + i,
			.host = true,
			.n_ranks = 1,
			.ranks = {(uint16_t)i}};
	g = calloc(1, inc_group_bytes(&spec));
	inc_group_init(g, &spec, GROUP_SLOT + tenant, 1, INC_NO_ARENA);
	if (sw_lease_join(sw, &spec, BYTES, &sw->slot[GROUP_SLOT + tenant].lease, err) != 0 ||
		inc_group_activate(g, err) != 0)
		abort();
	inc_table_set(sw->groups, GROUP_SLOT + tenant, g);
}

static void open_switches(void)
{
	now = 100 * SECOND;
	for (unsigned i = 0; i < SWITCHES; i++) {
		struct sw *sw = switches[i];

		if (sw == NULL) {
			sw = switches[i] = calloc(1, sizeof(*sw));
			sw->groups = calloc(1, sizeof(*sw->groups));
			sw->arena = calloc(1, sizeof(*sw->arena));
			inc_ranges_init(sw->arena, 1 << 20);
			sw->leases = sw_leases_create();
		}
		quiesce(i);
		for (unsigned t = 0; t < TENANTS; t++) {
			struct inc_group *g = group_of(i, t);

			if (g == NULL)
				continue;
			sw_lease_leave(sw, &sw->slot[GROUP_SLOT + t].lease, g);
			inc_table_set(sw->groups, GROUP_SLOT + t, NULL);
			free(g);
		}
		for (unsigned t = 0; t < TENANTS; t++)
			make_group(sw, t);
	}
}

/* ---- tenants: their desks' steps, each call a point where others may go on ---- */

struct ctl_client {
	unsigned at;
};

enum phase { CALLING, WORKING, DONE, DEAD };

static struct tenant {
	struct desk desk;
	ucontext_t context;
	char *stack;
	enum phase phase;
	unsigned at; /* switch that is called */
	bool acquires;
	enum { ANSWERED, REQUEST_LOST, ANSWER_LOST } fate;
	uint64_t history; /* hash of what has happened to it */
	bool refused, active;
	unsigned grants;
} tenants[TENANTS], *current;

static ucontext_t scheduler;
static bool crossed;               /* a bug: they ask in different orders */
#define SOUGHT "both were refused" /* and what that must come to */
static unsigned rounds, losses, deaths, left_losses, left_deaths, total_grants;

static void pause_tenant(enum phase phase)
{
	current->phase = phase;
	swapcontext(&current->context, &scheduler);
}

int ctl_connect(const char *path, unsigned ms, struct ctl_client **client, struct ctl_error *e)
{
	static struct ctl_client clients[SWITCHES] = {{0}, {1}};

	(void)ms;
	(void)e;
	*client = &clients[path[1] - '0'];
	return 0;
}

/* The tenants of the model are nobody's. */
int ccl_talk_hold(
	const struct ccl_group *group, struct ctl_client *client, unsigned ms, struct ctl_error *e)
{
	(void)group, (void)client, (void)ms, (void)e;
	return 0;
}

/* Nobody resyncs in the model. */
uint64_t ccl_clock_ns(void)
{
	return 0;
}

void ctl_close(struct ctl_client *client)
{
	(void)client;
}

int ctl_call(struct ctl_client *client, const char *method, const json_t *params, unsigned ms,
	json_t **result, struct ctl_error *e)
{
	const unsigned me = (unsigned)(current - tenants);
	char err[SW_ERR_LEN] = "";
	bool pending;
	int rc;

	(void)params;
	(void)ms;
	(void)result;
	current->at = client->at;
	current->acquires = strcmp(method, "lease.acquire") == 0;
	pause_tenant(CALLING);
	*e = (struct ctl_error){.index = -1};
	if (current->fate == REQUEST_LOST)
		return -ETIMEDOUT;
	if (current->acquires)
		rc = sw_lease_acquire(switches[client->at], "l", names[me], err);
	else
		rc = sw_lease_release(switches[client->at], "l", names[me], &pending, err);
	current->refused |= current->acquires && rc != 0;
	if (current->fate == ANSWER_LOST)
		return -ETIMEDOUT;
	e->code = rc ? -32000 : 0;
	return rc;
}

static void live(void)
{
	char why[CCL_DESK_WHY];

	for (unsigned i = 0; i < rounds; i++) {
		current->active = true;
		if (acquire_all(&current->desk, why) == 0) {
			current->grants++;
			total_grants++;
			pause_tenant(WORKING);
			release_some(&current->desk, SWITCHES);
		}
		current->active = false;
	}
	pause_tenant(DONE);
}

static void resume(struct tenant *t)
{
	current = t;
	swapcontext(&scheduler, &t->context);
}

static struct ccl_group *the_group(void)
{
	static struct ccl_switch sw[SWITCHES] = {
		{.name = "0", .socket = "/0"}, {.name = "1", .socket = "/1"}};
	static struct ccl_group group = {.n_switches = SWITCHES, .sw = sw};

	return &group;
}

static void open_tenants(void)
{
	static unsigned order[2][SWITCHES] = {{0, 1}, {1, 0}};
	static struct ctl_client *client[TENANTS][SWITCHES];

	for (unsigned i = 0; i < TENANTS; i++) {
		struct tenant *t = &tenants[i];
		char *stack = t->stack ? t->stack : malloc(STACK);

		memset(client[i], 0, sizeof(client[i]));
		*t = (struct tenant){.stack = stack,
			.desk = {.group = the_group(),
				.order = order[crossed ? i : 0],
				.client = client[i]}};
		getcontext(&t->context);
		t->context.uc_stack.ss_sp = stack;
		t->context.uc_stack.ss_size = STACK;
		makecontext(&t->context, live, 0);
		resume(t); /* to its first call */
	}
}

/* ---- what must hold ---- */

static void violation(const char *what)
{
	printf("VIOLATION: %s, after %u choices:", what, path.at);
	for (unsigned i = 0; i < path.at; i++)
		printf(" %u", path.choice[i]);
	putchar('\n');
	exit(!crossed || strcmp(what, SOUGHT) != 0);
}

static void check(void)
{
	for (unsigned i = 0; i < SWITCHES; i++) {
		unsigned bound = 0;

		for (unsigned t = 0; t < TENANTS; t++) {
			const struct inc_group *g = group_of(i, t);
			const bool has = g->pay_off != INC_NO_ARENA;

			bound += has;
			if (tenants[t].phase == WORKING && (!has || g->state != INC_ACTIVE))
				violation("a tenant is at work without its memory");
		}
		if (bound > 1)
			violation("two tenants have the same memory");
	}
}

static const char *holder_of(unsigned i)
{
	return switches[i]->leases->lease[0].holder;
}

/* ---- a run ---- */

enum kind { ANSWER, LOSE_REQUEST, LOSE_ANSWER, DIE, FINISH, QUIESCE, EXPIRE };
struct option {
	enum kind kind;
	unsigned who;
};

static unsigned options(struct option *o)
{
	unsigned n = 0;
	bool calling = false;

	for (unsigned i = 0; i < TENANTS; i++) {
		const enum phase phase = tenants[i].phase;

		if (phase == DONE || phase == DEAD)
			continue;
		calling |= phase == CALLING;
		o[n++] = (struct option){phase == CALLING ? ANSWER : FINISH, i};
		if (phase == CALLING && left_losses) {
			o[n++] = (struct option){LOSE_REQUEST, i};
			o[n++] = (struct option){LOSE_ANSWER, i};
		}
		if (left_deaths)
			o[n++] = (struct option){DIE, i};
	}
	for (unsigned i = 0; i < SWITCHES; i++)
		if (later[i])
			o[n++] = (struct option){QUIESCE, i};
	/* A lease's time is longer than that of all calls together. */
	for (unsigned i = 0; i < SWITCHES && !calling; i++)
		if (holder_of(i)[0] && !later[i])
			o[n++] = (struct option){EXPIRE, i};
	return n;
}

/* Long after; who is at work has got on. */
static void expire(unsigned i)
{
	now += 20 * SECOND;
	for (unsigned s = 0; s < SWITCHES; s++)
		for (unsigned t = 0; t < TENANTS; t++)
			if (tenants[t].phase == WORKING)
				group_of(s, t)->last_progress_ns = now;
	sw_leases_tick(switches[i], now);
}

static void go(struct tenant *t, int fate)
{
	const unsigned grants = t->grants;

	t->fate = fate;
	t->refused = false;
	resume(t);
	t->history = mc_hash(&(uint64_t[]){t->history, (uint64_t)fate, t->refused, t->at}, 32, 7);
	if (t->refused && left_losses == losses && left_deaths == deaths && grants == t->grants)
		for (unsigned i = 0; i < TENANTS; i++)
			if (&tenants[i] != t && !tenants[i].active && !later[0] && !later[1] &&
				!holder_of(0)[0] && !holder_of(1)[0] && !t->active)
				violation("refused although nobody else has it or wants it");
}

static void take(struct option o)
{
	struct tenant *t = &tenants[o.who];

	switch (o.kind) {
	case ANSWER:
		go(t, ANSWERED);
		break;
	case LOSE_REQUEST:
	case LOSE_ANSWER:
		left_losses--;
		go(t, o.kind == LOSE_REQUEST ? REQUEST_LOST : ANSWER_LOST);
		break;
	case DIE:
		left_deaths--;
		t->phase = DEAD;
		break;
	case FINISH:
		go(t, ANSWERED);
		break;
	case QUIESCE:
		quiesce(o.who);
		break;
	case EXPIRE:
		expire(o.who);
		break;
	}
}

/* Where everything is: a number that was there before need not be gone on from. */
static uint64_t state(void)
{
	uint64_t h = left_losses * 64 + left_deaths;

	for (unsigned t = 0; t < TENANTS; t++)
		h = mc_hash(&(uint64_t[]){h, tenants[t].phase, tenants[t].history}, 24, 1);
	for (unsigned i = 0; i < SWITCHES; i++) {
		const struct sw_lease *l = &switches[i]->leases->lease[0];
		unsigned waiting = 0;

		for (const struct later *w = later[i]; w; w = w->next)
			waiting++;
		h = mc_hash(
			&(uint64_t[]){h, waiting, (uint64_t)l->holder[0], l->bound, l->releasing,
				l->taken_back, group_of(i, 0)->state, group_of(i, 1)->state},
			64, 2);
	}
	return h;
}

enum { SEEN = 1 << 22 };
static uint64_t *seen;
static unsigned long n_seen, n_runs, n_steps;

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

static void run(void)
{
	struct option o[16];
	unsigned n, known = path.n;

	path.at = total_grants = 0;
	left_losses = losses;
	left_deaths = deaths;
	open_switches();
	open_tenants();
	while ((n = options(o)) > 0) {
		take(o[choose(n)]);
		n_steps++;
		check();
		if (path.at >= known && met(state()))
			return;
	}
	for (unsigned i = 0; i < SWITCHES; i++)
		if (holder_of(i)[0])
			violation("a lease is left");
	if (losses == 0 && deaths == 0 && total_grants == 0)
		violation(SOUGHT);
}

/* [crossed] COLLECTIVES LOSSES DEATHS ...; with a bug 0 if what it must come to has been found. */
int main(int argc, char **argv)
{
	seen = calloc(SEEN, sizeof(*seen));
	if (freopen("/dev/null", "w", stderr) == NULL) /* what switches say of leases taken back */
		return 2;
	crossed = argc > 1 && strcmp(argv[1], "crossed") == 0;
	for (int i = 1 + crossed; i + 2 < argc; i += 3) {
		memset(seen, 0, SEEN * sizeof(*seen));
		n_seen = n_runs = n_steps = 0;
		memset(&path, 0, sizeof(path));
		rounds = (unsigned)atoi(argv[i]);
		losses = (unsigned)atoi(argv[i + 1]);
		deaths = (unsigned)atoi(argv[i + 2]);
		do {
			run();
			n_runs++;
		} while (next_path());
		printf("%u collectives each, %u lost messages, %u dead: complete, ok: %lu states, "
		       "%lu runs, %lu steps\n",
			rounds, losses, deaths, n_seen, n_runs, n_steps);
		fflush(stdout);
	}
	return argc < 4 ? 2 : crossed /* not found */;
}
