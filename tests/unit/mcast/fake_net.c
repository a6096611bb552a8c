/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/mcast/fake_net.h"

#include <stdlib.h>
#include <string.h>

#include "lib/mcast/schedule.h"

enum event_type { EVENT_DATAGRAM, EVENT_MESSAGE, EVENT_SENT, EVENT_READ, EVENT_BEGIN };

struct net_event {
	uint64_t at, order;
	uint8_t type;
	unsigned to, from;
	uint32_t imm;
	uint8_t bytes[NET_CHUNK_MAX];
	uint64_t len;
	struct mcast_message message;
	struct mcast_request read;
};

uint32_t net_random(struct net *net)
{
	net->seed = net->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(net->seed >> 33);
}

unsigned net_weather(struct net *n, unsigned to, unsigned from, unsigned chunk)
{
	const uint32_t r = net_random(n) % 100;

	(void)to, (void)from, (void)chunk;
	return r < 20 ? 0 : r < 30 ? 2 : 1;
}

static uint8_t content(unsigned collective, unsigned block, uint64_t at)
{
	return (uint8_t)(collective * 89 + block * 31 + at * 7 + at / 256 * 13 + 1);
}

static unsigned n_blocks(const struct net *net)
{
	return net->all ? net->n : 1;
}

static bool is_root(const struct net *net, unsigned rank, unsigned block)
{
	return rank == (net->all ? block : net->root);
}

static struct net_event *add(struct net *net, uint64_t at, enum event_type type, unsigned to)
{
	struct net_event *e;

	if (net->n_events == net->room) {
		net->room = net->room ? 2 * net->room : 64;
		net->event = realloc(net->event, net->room * sizeof(*net->event));
		assert_non_null(net->event);
	}
	e = &net->event[net->n_events++];
	memset(e, 0, sizeof(*e));
	e->at = at;
	e->order = net->order++;
	e->type = (uint8_t)type;
	e->to = to;
	return e;
}

/* ---- what ranks post ---- */

static void multicast(struct net *net, unsigned from, const struct mcast_request *r)
{
	const uint64_t wire = r->len * 8 * 1000000000 / net->config.link_bps + 1;
	const uint64_t sent = net->now + wire * ++net->sending_now[from];
	unsigned roots = 0;

	net->multicasts++;
	assert_in_range(r->len, 1, net->config.chunk);
	for (unsigned i = 0; i < net->n; i++)
		roots += net->sending_now[i] > 0;
	if (roots > net->most_roots)
		net->most_roots = roots;
	add(net, sent, EVENT_SENT, from);
	for (unsigned to = 0; to < net->n; to++) {
		const unsigned chunk = (unsigned)(r->offset % net->bytes / net->config.chunk);
		unsigned copies = to == from ? 0 : 1;

		if (copies && net->copies != NULL)
			copies = net->copies(net, to, from, chunk);
		for (; copies > 0; copies--) {
			const unsigned late = net->jitter ? net_random(net) % net->jitter : 0;
			struct net_event *e = add(net, sent + NET_DELAY + late, EVENT_DATAGRAM, to);

			e->from = from;
			e->imm = r->imm;
			e->len = r->len;
			memcpy(e->bytes, net->rank[from].buf + r->offset, r->len);
		}
	}
}

static uint64_t in_order(struct net *net, unsigned from, unsigned to)
{
	uint64_t at = net->now + NET_DELAY + net_random(net) % NET_DELAY;

	if (at <= net->fifo[from][to])
		at = net->fifo[from][to] + 1;
	net->fifo[from][to] = at;
	return at;
}

static void post(struct net *net, unsigned rank, const struct mcast_request *r)
{
	struct net_event *e;

	switch (r->type) {
	case MCAST_POST_SEND:
		multicast(net, rank, r);
		break;
	case MCAST_POST_MESSAGE:
		assert_in_range(r->peer, 0, net->n - 1);
		assert_int_not_equal(r->peer, rank);
		if (r->message.type == MCAST_MSG_ASK && net->first_ask == 0)
			net->first_ask = net->now;
		e = add(net, in_order(net, rank, r->peer), EVENT_MESSAGE, r->peer);
		e->from = rank;
		e->message = r->message;
		break;
	default:
		assert_int_equal(r->peer, (rank + net->n - 1) % net->n);
		e = add(net, in_order(net, r->peer, rank), EVENT_READ, rank);
		e->from = r->peer;
		e->read = *r;
	}
}

/* ---- a rank ---- */

static void begin(struct net_rank *r, unsigned rank)
{
	struct net *net = r->net;
	const size_t cap = mcast_memory(&net->config, net->all, net->bytes);

	assert_true(cap > 0);
	memset(r->buf, 0xee, n_blocks(net) * net->bytes);
	for (unsigned b = 0; b < n_blocks(net); b++)
		for (uint64_t i = 0; is_root(net, rank, b) && i < net->bytes; i++)
			r->buf[b * net->bytes + i] = content(r->begun, b, i);
	r->begun++;
	assert_int_equal(
		0, net->all ? mcast_begin_allgather(&r->m, net->bytes, r->memory, cap, net->now)
			    : mcast_begin_broadcast(
				      &r->m, net->root, net->bytes, r->memory, cap, net->now));
}

static void check(const struct net_rank *r)
{
	const struct net *net = r->net;

	for (unsigned b = 0; b < n_blocks(net); b++)
		for (uint64_t i = 0; i < net->bytes; i++)
			if (r->buf[b * net->bytes + i] != content(r->done, b, i))
				fail_msg("collective %u, rank %u, block %u, byte %u", r->done,
					r->m.config.rank, b, (unsigned)i);
}

static void turn(struct net *net, unsigned rank)
{
	struct net_rank *r = &net->rank[rank];
	struct mcast_request req;

	for (;;) {
		while (!r->dead && mcast_next(&r->m, &req))
			post(net, rank, &req);
		if (r->dead || r->done == r->begun)
			return;
		if (r->m.phase == MCAST_FAILED && r->over_at == 0)
			r->over_at = net->now;
		if (r->m.phase != MCAST_DONE)
			return;
		check(r);
		r->done++;
		r->over_at = r->done == net->collectives ? net->now : 0;
		memset(r->buf, 0xdd, n_blocks(net) * net->bytes);
		if (r->begun == net->collectives)
			return;
		begin(r, rank);
	}
}

static void happen(struct net *net, const struct net_event *e)
{
	struct net_rank *r = &net->rank[e->to];
	uint64_t offset;

	if (e->type == EVENT_SENT && net->sending_now[e->to] > 0)
		net->sending_now[e->to]--;
	if (r->dead)
		return;
	switch (e->type) {
	case EVENT_DATAGRAM:
		if (mcast_datagram(&r->m, e->from, e->imm, e->len, net->now, &offset) == MCAST_TAKE)
			memcpy(r->buf + offset, e->bytes, e->len);
		if (net->heard_by != NULL)
			assert_int_not_equal(
				MCAST_TAKE, mcast_datagram(&net->heard_by->rank[e->to].m, e->from,
						    e->imm, e->len, net->heard_by->now, &offset));
		break;
	case EVENT_MESSAGE:
		mcast_message(&r->m, e->from, &e->message, net->now);
		break;
	case EVENT_SENT:
		mcast_sent(&r->m, 1, net->now);
		break;
	case EVENT_READ:
		if (net->rank[e->from].dead)
			break; /* the time is up some time */
		memcpy(r->buf + e->read.offset, net->rank[e->from].buf + e->read.offset,
			e->read.len);
		r->read_bytes += e->read.len;
		mcast_read_done(&r->m, e->read.block, e->read.first, e->read.n, net->now);
		break;
	default:
		begin(r, e->to);
	}
	turn(net, e->to);
}

/* ---- the net ---- */

void net_open(struct net *net, const struct mcast_config *config, bool all, unsigned root,
	uint64_t bytes, unsigned collectives)
{
	struct mcast_config c = *config;

	memset(net, 0, sizeof(*net));
	c.chunk = c.chunk ?: 64;
	c.psn_bits = c.psn_bits ?: 16;
	c.send_window = c.send_window ?: 4;
	c.read_window = c.read_window ?: 4;
	c.read_bytes = c.read_bytes ?: UINT32_MAX;
	c.link_bps = c.link_bps ?: UINT64_C(100000000000);
	c.alpha_ns = c.alpha_ns ?: 100000;
	c.give_up_ns = c.give_up_ns ?: 10000000;
	c.chains = c.chains ?: 1;
	net->config = c;
	net->n = c.n_ranks;
	net->all = all;
	net->root = root;
	net->bytes = bytes;
	net->collectives = collectives;
	net->seed = 1;
	net->now = 1000;
	assert_in_range(net->n, 2, NET_MAX);
	for (unsigned i = 0; i < net->n; i++) {
		struct net_rank *r = &net->rank[i];

		c.rank = i;
		r->net = net;
		assert_int_equal(0, mcast_init(&r->m, &c));
		r->buf = malloc(n_blocks(net) * bytes);
		r->memory = malloc(mcast_memory(&c, all, bytes));
		r->dies_at = UINT64_MAX;
		assert_true(r->buf != NULL && r->memory != NULL);
	}
}

static uint64_t next_event(const struct net *net, unsigned *which)
{
	uint64_t at = UINT64_MAX, order = 0;

	for (unsigned i = 0; i < net->n_events; i++) {
		const struct net_event *e = &net->event[i];

		if (e->at < at || (e->at == at && e->order < order)) {
			at = e->at;
			order = e->order;
			*which = i;
		}
	}
	return at;
}

static uint64_t next_tick(const struct net *net, unsigned *which)
{
	uint64_t at = UINT64_MAX;

	for (unsigned i = 0; i < net->n; i++) {
		const struct net_rank *r = &net->rank[i];
		const uint64_t own = r->dead ? UINT64_MAX : mcast_deadline(&r->m);
		const uint64_t dies = r->dead ? UINT64_MAX : r->dies_at;

		if (own < at || dies < at) {
			at = own < dies ? own : dies;
			*which = i;
		}
	}
	return at;
}

void net_start(struct net *net)
{
	for (unsigned i = 0; i < net->n; i++)
		add(net, net->now + net->rank[i].starts_at, EVENT_BEGIN, i);
}

static void tick(struct net *net, unsigned rank, uint64_t at)
{
	struct net_rank *r = &net->rank[rank];

	net->now = at > net->now ? at : net->now;
	r->dead |= net->now >= r->dies_at;
	if (!r->dead)
		mcast_tick(&r->m, net->now);
	turn(net, rank);
}

bool net_step(struct net *net)
{
	unsigned e = 0, r = 0;
	const uint64_t at = next_event(net, &e), due = next_tick(net, &r);
	struct net_event event;

	if (at == UINT64_MAX && due == UINT64_MAX)
		return false;
	if (due <= at) {
		tick(net, r, due);
		return true;
	}
	event = net->event[e];
	net->event[e] = net->event[--net->n_events];
	net->now = at;
	happen(net, &event);
	return true;
}

void net_run(struct net *net)
{
	net_start(net);
	while (net_step(net))
		;
}

void net_all_done(struct net *net)
{
	for (unsigned i = 0; i < net->n; i++) {
		if (net->rank[i].done != net->collectives)
			fail_msg("rank %u has done %u, phase %u, error %d", i, net->rank[i].done,
				net->rank[i].m.phase, net->rank[i].m.error);
		assert_int_equal(net->rank[i].m.count.bad_message, 0);
	}
}

void net_close(struct net *net)
{
	for (unsigned i = 0; i < net->n; i++) {
		free(net->rank[i].buf);
		free(net->rank[i].memory);
	}
	free(net->event);
}
