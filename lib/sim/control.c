/* SPDX-License-Identifier: BSD-3-Clause */
/* Control connections (control.h). CommLib's client waits: while it does, the simulation runs on.
 */
#include "lib/sim/control.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/sim/agent.h"
#include "lib/sim/control_priv.h"

/* TCP's first retransmission of data, and of a SYN; given up after so many. */
static const uint64_t RTO_NS = 200000000, SYN_RTO_NS = 1000000000, MS = 1000000;
enum { GIVE_UP = 6, SYN_GIVE_UP = 6 };

/* A side that hears nothing of the other for so long gives the connection up (ctl_tcp_options). */
static const uint64_t UNHEARD_NS = 60000000000;

/* A whole message, or what is left of it. */
struct message {
	struct message *next;
	uint64_t at;
	bool to_agent, brk; /* brk: then the connection breaks */
	bool fin;           /* the client has closed */
	size_t len;
	char data[];
};

struct conn {
	unsigned sw, number;
	uint64_t opened;
	bool closed; /* by the client */
	bool broken, silent;
	bool gone;        /* the agent knows that it has ended */
	uint64_t unheard; /* when both give up, 0: they hear each other */
	struct agent_peer peer;
	uint64_t last[2]; /* arrival of the last message: to the client, to the agent */
	struct message *first, **end;
	char *in, *line; /* received and not yet taken: by the client, by the agent */
	size_t in_len, line_len;
};

struct sim_control {
	struct sim_control_conf conf;
	struct sim *sim;
	uint64_t rng, messages, wake;
	unsigned n;
	struct conn **conn;
	struct ctl_io io;
};

/* ---- messages ---- */

/* At any time of these. */
static bool was_down(const struct sim_control *k, uint64_t from, uint64_t until)
{
	for (unsigned i = 0; i < k->conf.n_down; i++)
		if (until >= k->conf.down[i].from && from < k->conf.down[i].until)
			return true;
	return false;
}

static void wake(struct sim_control *k, uint64_t at)
{
	if (at == UINT64_MAX || (k->wake > k->sim->now && k->wake <= at))
		return;
	k->wake = at;
	sim_control_event(k->sim, at);
}

static void *grown(void *p, size_t bytes)
{
	p = realloc(p, bytes);
	if (!p)
		abort();
	return p;
}

/* How much later than it might: what is lost goes again after a while, and after a longer one. */
static uint64_t lateness(struct sim_control *k, uint64_t rto, unsigned tries, bool *lost)
{
	uint64_t late = k->conf.jitter_ns ? sim_random(&k->rng) % (k->conf.jitter_ns + 1) : 0;

	*lost = false;
	for (unsigned i = 0; sim_chance(&k->rng, k->conf.loss); i++, rto *= 2) {
		*lost = i + 1 == tries;
		if (*lost)
			break;
		late += rto;
	}
	return late;
}

static void queue(struct conn *c, struct message *m)
{
	m->next = NULL;
	*c->end = m;
	c->end = &m->next;
}

static void fall_silent(struct sim_control *k, struct conn *c)
{
	if (c->silent)
		return;
	c->silent = true;
	c->unheard = k->sim->now + UNHEARD_NS;
	wake(k, c->unheard);
}

static void put(struct sim_control *k, struct conn *c, struct message *m, uint64_t at)
{
	m->at = at > c->last[m->to_agent] ? at : c->last[m->to_agent];
	c->last[m->to_agent] = m->at;
	queue(c, m);
	wake(k, m->at);
}

static void send_message(
	struct sim_control *k, struct conn *c, bool to_agent, const char *data, size_t len)
{
	const uint64_t n = ++k->messages;
	struct message *m;
	uint64_t at;
	bool lost, brk;

	brk = sim_chance(&k->rng, k->conf.brk) || n == k->conf.break_nth;
	if (sim_chance(&k->rng, k->conf.silent) || n == k->conf.silent_nth)
		fall_silent(k, c);
	at = k->sim->now + k->conf.delay_ns + lateness(k, RTO_NS, GIVE_UP, &lost);
	at += n == k->conf.late_nth ? k->conf.late_ns : 0;
	if (lost)
		fall_silent(k, c);
	if (c->silent || c->broken)
		return;
	len = brk ? len / 2 : len;
	m = grown(NULL, sizeof(*m) + len);
	*m = (struct message){.to_agent = to_agent, .brk = brk, .len = len};
	memcpy(m->data, data, len);
	put(k, c, m, at);
}

/* ---- the agent's side ---- */

static void serve(struct sim_control *k, struct conn *c)
{
	struct sim_agent *agent = k->sim->sw[c->sw].agent;
	char *end;

	while (c->line_len && (end = memchr(c->line, '\n', c->line_len))) {
		const size_t used = (size_t)(end - c->line) + 1;
		char *answer = sim_agent_request(agent, &c->peer, c->line, used - 1);

		memmove(c->line, c->line + used, c->line_len - used);
		c->line_len -= used;
		if (answer) {
			const size_t len = strlen(answer);

			answer[len] = '\n'; /* in place of the terminator */
			send_message(k, c, false, answer, len + 1);
		}
		free(answer);
	}
}

/* The agent hears of the end of a connection, once. */
static void part(struct sim_control *k, struct conn *c)
{
	if (!c->gone)
		sim_agent_peer_gone(k->sim->sw[c->sw].agent, &c->peer);
	c->gone = true;
}

static void break_conn(struct sim_control *k, struct conn *c)
{
	c->broken = true;
	part(k, c);
}

static void arrive(struct sim_control *k, struct conn *c, const struct message *m)
{
	sim_hash_bytes(k->sim, c->number << 1 | m->to_agent, m->data, m->len);
	if (c->broken)
		return;
	if (was_down(k, c->opened, k->sim->now)) {
		break_conn(k, c);
		return;
	}
	if (m->fin)
		part(k, c);
	if (m->to_agent) {
		c->line = grown(c->line, c->line_len + m->len + 1);
		memcpy(c->line + c->line_len, m->data, m->len);
		c->line_len += m->len;
	} else if (!c->closed) {
		c->in = grown(c->in, c->in_len + m->len + 1);
		memcpy(c->in + c->in_len, m->data, m->len);
		c->in_len += m->len;
	}
	if (m->brk)
		break_conn(k, c);
	if (m->to_agent && !c->broken)
		serve(k, c);
}

/* What has arrived on one connection; when the next does. */
static uint64_t deliver(struct sim_control *k, struct conn *c)
{
	uint64_t next = UINT64_MAX;

	for (struct message **at = &c->first, *m; (m = *at);) {
		if (m->at > k->sim->now) {
			next = m->at < next ? m->at : next;
			at = &m->next;
			continue;
		}
		*at = m->next;
		if (!m->next)
			c->end = at;
		arrive(k, c, m);
		free(m);
	}
	return next;
}

void sim_control_turn(struct sim *sim)
{
	struct sim_control *k = sim->control;
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < k->n; i++) {
		const uint64_t at = deliver(k, k->conn[i]), given_up = k->conn[i]->unheard;

		if (given_up && given_up <= sim->now)
			break_conn(k, k->conn[i]);
		else if (given_up && given_up < next)
			next = given_up;
		next = at < next ? at : next;
	}
	for (unsigned i = 0; i < sim->topo->n_switches; i++) {
		const uint64_t at =
			sim->sw[i].agent ? sim_agent_tick(sim->sw[i].agent) : UINT64_MAX;

		next = at < next ? at : next;
	}
	if (k->wake <= sim->now)
		k->wake = 0;
	wake(k, next);
}

/* ---- the client's side ---- */

/* The simulation goes on, at most until then; 0 as soon as done. */
static int wait_for(struct sim_control *k, bool (*done)(void *arg), void *arg, uint64_t until)
{
	const int rc = sim_run(k->sim, done, arg, until);

	if (rc == -EDEADLK && k->sim->now < until)
		k->sim->now = until;
	return rc == -EDEADLK || rc == -ETIME ? -ETIMEDOUT : rc;
}

static int64_t now_ms(void *arg)
{
	const struct sim_control *k = arg;

	return (int64_t)(k->sim->now / MS);
}

static void sleep_ms(void *arg, unsigned ms)
{
	struct sim_control *k = arg;

	wait_for(k, NULL, NULL, k->sim->now + ms * MS);
}

static int add_conn(struct sim_control *k, unsigned sw)
{
	struct conn *c = grown(NULL, sizeof(*c));

	*c = (struct conn){.sw = sw, .number = k->n, .opened = k->sim->now, .end = &c->first};
	k->conn = grown(k->conn, (k->n + 1) * sizeof(struct conn *));
	k->conn[k->n] = c;
	return (int)k->n++;
}

/* "sim:3" is the agent of switch 3. A SYN that is lost goes again, as long as there is time. */
static int open_conn(void *arg, const char *path, int64_t deadline)
{
	struct sim_control *k = arg;
	const uint64_t least = k->sim->now + 500 * MS;
	const uint64_t until = (uint64_t)deadline * MS > least ? (uint64_t)deadline * MS : least;
	const unsigned sw = (unsigned)strtoul(path + 4, NULL, 10);
	uint64_t there;
	bool lost;
	int rc;

	if (strncmp(path, "sim:", 4) != 0 || sw >= k->sim->topo->n_switches)
		return -EINVAL;
	rc = k->sim->sw[sw].agent ? 0 : sim_agent_open(k->sim, sw);
	if (rc)
		return rc;
	there = k->sim->now + 2 * k->conf.delay_ns + lateness(k, SYN_RTO_NS, SYN_GIVE_UP, &lost);
	if (lost || there > until) {
		wait_for(k, NULL, NULL, until);
		return -ETIMEDOUT;
	}
	if (there > k->sim->now)
		rc = wait_for(k, NULL, NULL, there);
	if (rc && rc != -ETIMEDOUT)
		return -ECANCELED;
	return was_down(k, k->sim->now, k->sim->now) ? -ECONNREFUSED : add_conn(k, sw);
}

/* What is under way to the agent still gets there. */
static void close_conn(void *arg, int conn)
{
	struct sim_control *k = arg;
	struct conn *c = k->conn[conn];
	struct message *fin;

	c->closed = true;
	c->in_len = 0;
	if (c->silent || c->broken)
		return;
	fin = grown(NULL, sizeof(*fin));
	*fin = (struct message){.to_agent = true, .fin = true};
	put(k, c, fin, k->sim->now + k->conf.delay_ns);
}

static bool is_open(void *arg, int conn)
{
	const struct sim_control *k = arg;
	const struct conn *c = k->conn[conn];

	return !c->broken && !was_down(k, c->opened, k->sim->now);
}

static ssize_t send_some(void *arg, int conn, const char *buf, size_t len, int64_t deadline)
{
	struct sim_control *k = arg;
	struct conn *c = k->conn[conn];

	(void)deadline;
	if (was_down(k, c->opened, k->sim->now))
		break_conn(k, c);
	if (c->broken)
		return -ECONNRESET;
	send_message(k, c, true, buf, len);
	return (ssize_t)len;
}

static bool has_something(void *arg)
{
	const struct conn *c = arg;

	return c->in_len || c->broken;
}

static ssize_t receive_some(void *arg, int conn, char *buf, size_t cap, int64_t deadline)
{
	struct sim_control *k = arg;
	struct conn *c = k->conn[conn];
	const uint64_t until = (uint64_t)deadline * MS;
	int rc = 0;

	if (!has_something(c))
		rc = wait_for(k, has_something, c, until > k->sim->now ? until : k->sim->now);
	if (!c->in_len && rc)
		return rc == -ETIMEDOUT ? rc : -ECANCELED; /* a rank has failed meanwhile */
	if (!c->in_len)
		return -ECONNRESET;
	cap = cap < c->in_len ? cap : c->in_len;
	memcpy(buf, c->in, cap);
	memmove(c->in, c->in + cap, c->in_len - cap);
	c->in_len -= cap;
	return (ssize_t)cap;
}

/* ---- life ---- */

int sim_control_open(struct sim *sim)
{
	struct sim_control *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->sim = sim;
	k->rng = sim->conf.seed * 0x2545f4914f6cdd1d;
	k->io = (struct ctl_io){.arg = k,
		.now_ms = now_ms,
		.sleep_ms = sleep_ms,
		.open = open_conn,
		.close = close_conn,
		.is_open = is_open,
		.send = send_some,
		.receive = receive_some};
	sim->control = k;
	return 0;
}

void sim_control_close(struct sim *sim)
{
	struct sim_control *k = sim->control;

	for (unsigned i = 0; k && i < k->n; i++) {
		struct conn *c = k->conn[i];

		for (struct message *m; (m = c->first); free(m))
			c->first = m->next;
		free(c->in);
		free(c->line);
		free(c);
	}
	if (k)
		free(k->conn);
	free(k);
	sim->control = NULL;
}

const struct ctl_io *sim_control_io(struct sim *sim)
{
	return &sim->control->io;
}

uint64_t sim_control_timeout(const struct sim *sim)
{
	return sim->control->conf.timeout_ns;
}

void sim_set_control(struct sim *sim, const struct sim_control_conf *conf)
{
	sim->control->conf = *conf;
	sim->control->messages = 0;
}

uint64_t sim_control_messages(const struct sim *sim)
{
	return sim->control->messages;
}
