/* SPDX-License-Identifier: BSD-3-Clause */
/* A stack's tables, the program's calls, completions. */
#include "lib/stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stream/conn.h"

void stream_defaults(struct stream_config *config, unsigned conns)
{
	const uint64_t ms = 1000000;

	*config = (struct stream_config){
		.mtu = 1500,
		.max_conns = (uint16_t)conns,
		.max_half_open = (uint16_t)(conns < 8 ? (conns < 4 ? conns : 4) : conns / 2),
		.max_ops = conns < 4 ? 64 : conns * 16,
		.ring = 1024,
		.bounce_slots = 256,
		.allowance = 65536,
		.wscale = 10,
		.segments = 4096 + conns * 8,
		.cc = STREAM_CUBIC,
		.loss_tolerance = 20000,
		.delay_target = 25000,
		.tlp_min = ms,
		.ack_delay = 5 * ms,
		.rto_min = 200 * ms,
		.rto_max = 60000 * ms,
		.give_up = 60000 * ms,
		.time_wait = 60000 * ms,
	};
	if (config->max_ops > PLACE_MAX_MRS / 2)
		config->max_ops = PLACE_MAX_MRS / 2;
	config->place = (struct place_config){
		.max_flows = conns * 2 < PLACE_MAX_FLOWS ? conns * 2 : PLACE_MAX_FLOWS,
		.max_mrs = config->max_ops * 2,
		.chunks = conns * 8 + 512,
		.committed = 2,
		.peak = 512,
	};
}

static bool possible(const struct stream_config *c)
{
	return c->mtu >= 576 && c->mtu <= 9216 && c->max_conns > 0 && c->max_half_open > 0 &&
	       c->max_half_open <= c->max_conns && c->max_ops > 0 &&
	       c->max_ops <= c->place.max_mrs && c->ring >= 16 && (c->ring & (c->ring - 1)) == 0 &&
	       c->wscale <= TCP_MAX_WSCALE && c->cc < STREAM_N_CCS && c->segments >= c->max_conns &&
	       c->segments <= 1u << 24 && c->tlp_min <= STREAM_MAX_WAIT &&
	       c->ack_delay <= STREAM_MAX_WAIT && c->rto_min > 0 && c->rto_max >= c->rto_min &&
	       c->rto_max <= STREAM_MAX_WAIT && c->give_up <= STREAM_MAX_WAIT &&
	       c->time_wait <= STREAM_MAX_WAIT &&
	       (c->wscale == 0 || c->allowance == 0 || c->allowance >= 1u << c->wscale) &&
	       c->random != NULL && place_size(&c->place) > 0;
}

static void *memory(const struct stream_config *c, size_t bytes)
{
	void *p;

	if (c->alloc != NULL)
		return c->alloc(c->alloc_arg, bytes);
	p = aligned_alloc(64, bytes);
	if (p != NULL)
		memset(p, 0, bytes);
	return p;
}

static void give_back(const struct stream_config *c, void *p)
{
	if (c->alloc == NULL)
		free(p);
}

static void *part(struct stream *s, size_t n, size_t size, bool *ok)
{
	const size_t bytes = (n * size + 63) / 64 * 64;
	void *p = memory(&s->config, bytes);

	*ok &= p != NULL;
	s->bytes += bytes;
	return p;
}

static uint32_t power(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static bool allocate(struct stream *s)
{
	const struct stream_config *c = &s->config;
	bool ok = true;
	void *block = part(s, 1, place_size(&c->place), &ok);

	s->bucket_mask = power(c->max_conns) - 1;
	/* Each op, and of a connection: opened, arrived, closed. */
	s->done_mask = power(c->max_ops + 8u * c->max_conns) - 1;
	s->conn = part(s, c->max_conns, sizeof(*s->conn), &ok);
	s->timer = part(s, c->max_conns, sizeof(*s->timer), &ok);
	s->bucket = part(s, s->bucket_mask + 1, sizeof(*s->bucket), &ok);
	s->op = part(s, c->max_ops + c->max_conns, sizeof(*s->op), &ok);
	s->seg = part(s, c->segments, sizeof(*s->seg), &ok);
	s->held = part(s, c->bounce_slots + 1u, sizeof(*s->held), &ok);
	s->done = part(s, s->done_mask + 1, sizeof(*s->done), &ok);
	s->path.slots = part(s, c->bounce_slots + 1u, sizeof(uint32_t), &ok);
	s->path.slot_bytes = c->mtu;
	s->path.bounce = part(s, c->bounce_slots + 1u, c->mtu, &ok);
	s->path.notes.mem = part(s, c->ring, sizeof(struct stream_note), &ok);
	s->path.requests.mem = part(s, c->ring, sizeof(struct stream_request), &ok);
	if (ok)
		ok = place_init(&c->place, block, &s->place) == 0;
	else
		give_back(c, block);
	s->path.place = s->place;
	return ok;
}

int stream_create(const struct stream_config *config, struct stream **stream)
{
	struct stream *s;

	if (!possible(config))
		return -EINVAL;
	s = memory(config, (sizeof(*s) + 63) / 64 * 64);
	if (s == NULL)
		return -ENOMEM;
	s->bytes = sizeof(*s);
	s->config = *config;
	s->path.ip = config->ip;
	s->due = s->pace_due = UINT64_MAX;
	if (!allocate(s)) {
		stream_destroy(s);
		return -ENOMEM;
	}
	TAILQ_INIT(&s->unused);
	TAILQ_INIT(&s->work);
	TAILQ_INIT(&s->half);
	TAILQ_INIT(&s->waiting);
	TAILQ_INIT(&s->arrivals);
	TAILQ_INIT(&s->paced);
	TAILQ_INIT(&s->free_ops);
	TAILQ_INIT(&s->settling);
	TAILQ_INIT(&s->to_free);
	TAILQ_INIT(&s->segs.unused);
	for (s->segs.n = 0; s->segs.n < config->segments; s->segs.n++)
		TAILQ_INSERT_TAIL(&s->segs.unused, &s->seg[s->segs.n], order);
	for (unsigned i = 0; i < config->max_conns; i++) {
		s->timer[i] = UINT64_MAX;
		TAILQ_INSERT_TAIL(&s->unused, &s->conn[i], age);
	}
	for (unsigned i = 0; i < config->max_ops + config->max_conns; i++)
		TAILQ_INSERT_TAIL(&s->free_ops, &s->op[i], link);
	for (unsigned i = 0; i < config->bounce_slots; i++)
		s->path.slots[s->path.free_slots++] = i;
	ring_init(&s->path.notes, s->path.notes.mem, config->ring, sizeof(struct stream_note));
	ring_init(&s->path.requests, s->path.requests.mem, config->ring,
		sizeof(struct stream_request));
	*stream = s;
	return 0;
}

void stream_destroy(struct stream *s)
{
	if (s->config.alloc != NULL)
		return;
	free(s->place);
	free(s->conn);
	free(s->timer);
	free(s->bucket);
	free(s->op);
	free(s->seg);
	free(s->held);
	free(s->done);
	free(s->path.slots);
	free(s->path.bounce);
	free(s->path.notes.mem);
	free(s->path.requests.mem);
	free(s);
}

struct stream_path *stream_path(struct stream *s)
{
	return &s->path;
}

size_t stream_bytes(const struct stream *s)
{
	return s->bytes;
}

/* ---- the program's calls ---- */

static struct conn *conn_of(const struct stream *s, uint32_t handle)
{
	struct conn *c = &s->conn[handle & 0xffff];

	if ((handle & 0xffff) >= s->config.max_conns || c->handle != handle || c->reported ||
		c->state == FREE)
		return NULL;
	return c;
}

int stream_listen(struct stream *s, uint16_t port, uint64_t cookie)
{
	struct listener *unused = NULL;

	for (unsigned i = 0; i < MAX_LISTENERS; i++) {
		if (s->listener[i].port == port)
			return port == 0 ? -EINVAL : -EADDRINUSE;
		if (s->listener[i].port == 0 && unused == NULL)
			unused = &s->listener[i];
	}
	if (unused == NULL)
		return -ENOSPC;
	*unused = (struct listener){port, cookie};
	return 0;
}

int stream_unlisten(struct stream *s, uint16_t port)
{
	for (unsigned i = 0; i < MAX_LISTENERS; i++)
		if (port != 0 && s->listener[i].port == port) {
			s->listener[i].port = 0;
			return 0;
		}
	return -ENOENT;
}

int stream_connect(struct stream *s, uint64_t now, const uint8_t mac[6], const struct wire_ip *ip,
	uint16_t remote_port, uint16_t port, uint64_t cookie, uint32_t *conn)
{
	struct place_tuple t = {.local = s->config.ip,
		.remote = *ip,
		.local_port = port,
		.remote_port = remote_port,
		.proto = IP_PROTO_TCP};
	struct conn *c;

	s->now = now;
	/* RFC 6056: from a random place on. */
	for (unsigned i = 0; port == 0 && i < 16384; i++) {
		if (s->next_port == 0)
			s->next_port = s->config.random(s->config.random_arg);
		t.local_port = (uint16_t)(49152 + s->next_port++ % 16384);
		if (conn_find(s, &t) == NULL)
			break;
	}
	if (conn_find(s, &t) != NULL)
		return -EADDRINUSE;
	c = conn_new(s, &t, mac);
	if (c == NULL)
		return -ENOSPC;
	c->cookie = cookie;
	c->state = SYN_SENT;
	conn_start(s, c, conn_isn(s), 0);
	conn_work(s, c);
	*conn = c->handle;
	return 0;
}

int stream_set_cookie(struct stream *s, uint32_t conn, uint64_t cookie)
{
	struct conn *c = conn_of(s, conn);

	if (c == NULL)
		return -EBADF;
	c->cookie = cookie;
	return 0;
}

int stream_ends(const struct stream *s, uint32_t conn, struct place_tuple *tuple)
{
	const struct conn *c = conn_of(s, conn);

	if (c == NULL)
		return -EBADF;
	*tuple = c->tuple;
	return 0;
}

int stream_info(const struct stream *s, uint32_t conn, struct stream_info *info)
{
	const struct conn *c = conn_of(s, conn);

	if (c == NULL)
		return -EBADF;
	*info = (struct stream_info){.cc = s->config.cc,
		.cwnd = c->cc.cwnd,
		.ssthresh = c->cc.ssthresh,
		.flight = conn_pipe(c),
		.srtt = c->srtt,
		.min_rtt = rack_min_rtt(&c->rec.rack),
		.rto = c->rto,
		.pace = c->cc.pace};
	return 0;
}

static int add_op(struct stream *s, uint32_t conn, uint8_t *buf, size_t len, uint64_t cookie,
	enum stream_event event)
{
	struct conn *c = conn_of(s, conn);
	struct op *op = TAILQ_FIRST(&s->free_ops);

	if (c == NULL)
		return -EBADF;
	if (buf == NULL || len == 0 || len > UINT32_MAX)
		return -EINVAL;
	if (event == STREAM_SENT ? c->fin : c->app_closed)
		return -EPIPE;
	if (op == NULL || s->user_ops == s->config.max_ops)
		return -ENOBUFS;
	s->user_ops++;
	TAILQ_REMOVE(&s->free_ops, op, link);
	*op = (struct op){.buf = buf, .len = len, .cookie = cookie, .event = event, .conn = conn};
	if (event == STREAM_SENT)
		TAILQ_INSERT_TAIL(&c->tx, op, link);
	else
		TAILQ_INSERT_TAIL(&c->rx, op, link);
	conn_post(s, c);
	conn_work(s, c);
	return 0;
}

int stream_send(struct stream *s, uint32_t conn, const void *buf, size_t len, uint64_t cookie)
{
	return add_op(s, conn, (uint8_t *)(uintptr_t)buf, len, cookie, STREAM_SENT);
}

int stream_recv(struct stream *s, uint32_t conn, void *buf, size_t len, uint64_t cookie)
{
	return add_op(s, conn, buf, len, cookie, STREAM_RECEIVED);
}

int stream_recall(struct stream *s, uint32_t conn, struct stream_recalled *out)
{
	struct conn *c = conn_of(s, conn);

	if (c == NULL)
		return -EBADF;
	if (c->flow == 0)
		return -EAGAIN;
	conn_recall(s, c, out);
	return 0;
}

int stream_shutdown(struct stream *s, uint32_t conn)
{
	struct conn *c = conn_of(s, conn);

	if (c == NULL)
		return -EBADF;
	if (c->fin)
		return 0;
	c->fin = true;
	if (c->state == ESTABLISHED)
		c->state = FIN_WAIT;
	else if (c->state == CLOSE_WAIT)
		c->state = LAST_ACK;
	conn_work(s, c);
	return 0;
}

static void reset(struct stream *s, struct conn *c)
{
	if (c->state > SYN_RECEIVED)
		send_rst(s, &c->tuple, c->mac, (uint32_t)c->nxt, (uint32_t)c->rcv,
			TCP_RST | TCP_ACK);
	conn_end(s, c, -ECONNABORTED, false);
}

int stream_close(struct stream *s, uint32_t conn)
{
	struct conn *c = conn_of(s, conn);
	const int err = stream_shutdown(s, conn);

	if (err < 0)
		return err;
	c->app_closed = true;
	if (c->state == SYN_SENT)
		conn_end(s, c, -ECONNABORTED, false);
	else if (c->n_held > 0) /* nobody will fetch them (RFC 2525, 2.17) */
		reset(s, c);
	else
		conn_linger(s, c);
	return 0;
}

int stream_abort(struct stream *s, uint32_t conn)
{
	struct conn *c = conn_of(s, conn);

	if (c == NULL)
		return -EBADF;
	reset(s, c);
	return 0;
}

/* It says how much there is by now; what comes then is worth another one. */
static void polled_arrival(struct stream *s, struct stream_completion *done)
{
	struct conn *c = &s->conn[done->conn & 0xffff];

	if (c->handle != done->conn)
		return;
	c->arrival_told = false;
	done->result = (int64_t)(c->known - c->origin);
	if (c->state != FREE)
		conn_work(s, c);
}

unsigned stream_poll(struct stream *s, struct stream_completion *out, unsigned n)
{
	unsigned i = 0;

	for (; i < n && s->done_tail != s->done_head; i++) {
		out[i] = s->done[s->done_tail++ & s->done_mask];
		if (out[i].event == STREAM_ARRIVED)
			polled_arrival(s, &out[i]);
		s->user_ops -= out[i].event == STREAM_SENT || out[i].event == STREAM_RECEIVED;
		if (out[i].event == STREAM_CLOSED)
			conn_heard_of(s, out[i].conn);
	}
	return i;
}

bool stream_arm(struct stream *s)
{
	s->armed = s->done_tail == s->done_head;
	return s->armed;
}

/* ---- turns ---- */

static void free_slots(struct stream *s)
{
	struct held *h;

	while ((h = TAILQ_FIRST(&s->to_free)) != NULL) {
		struct stream_request *r = ring_claim(&s->path.requests);

		if (r == NULL)
			return;
		*r = (struct stream_request){.kind = REQUEST_FREE, .slot = (uint32_t)(h - s->held)};
		ring_publish(&s->path.requests);
		TAILQ_REMOVE(&s->to_free, h, link);
	}
}

static void run_timers(struct stream *s)
{
	if (s->now < s->due)
		return;
	s->due = UINT64_MAX;
	for (unsigned i = 0; i < s->config.max_conns; i++) {
		if (s->timer[i] > s->now) {
			s->due = min_u64(s->due, s->timer[i]);
			continue;
		}
		s->timer[i] = UINT64_MAX;
		if (s->conn[i].state != FREE)
			conn_timers(s, &s->conn[i]);
	}
}

static void flush_work(struct stream *s)
{
	unsigned n = s->n_conns;
	struct conn *c;

	while (n-- > 0 && (c = TAILQ_FIRST(&s->work)) != NULL) {
		TAILQ_REMOVE(&s->work, c, work);
		c->on_work = false;
		if (!conn_flush(s, c)) {
			conn_work(s, c);
			return;
		}
		conn_check_end(s, c);
	}
}

unsigned stream_turn(struct stream *s, uint64_t now)
{
	const struct stream_note *note;
	unsigned n = 0;

	s->now = now;
	while (n < s->config.ring && (note = ring_peek(&s->path.notes)) != NULL) {
		if (note->kind == NOTE_COPIED)
			conn_copied(s, note);
		else
			segment_in(s, note);
		ring_release_one(&s->path.notes);
		n++;
	}
	run_timers(s);
	conn_paced(s);
	free_slots(s);
	flush_work(s);
	conn_settled(s);
	return n;
}

uint64_t stream_due(const struct stream *s)
{
	/* Or the data path has to make room, or to be quiet once. */
	return TAILQ_EMPTY(&s->work) && TAILQ_EMPTY(&s->settling) && TAILQ_EMPTY(&s->arrivals) &&
			       TAILQ_EMPTY(&s->to_free)
		       ? min_u64(s->due, s->pace_due)
		       : s->now;
}

uint64_t stream_count(const struct stream *s, enum stream_counter counter)
{
	return counter < STREAM_N_COUNTERS ? s->count[counter] : 0;
}

const char *stream_counter_name(enum stream_counter counter)
{
	static const char *const names[STREAM_N_COUNTERS] = {
#define X(sym, name, text) [STREAM_COUNT_##sym] = name,
		STREAM_COUNTERS(X)
#undef X
	};

	return counter < STREAM_N_COUNTERS ? names[counter] : "unknown";
}

unsigned stream_conns(const struct stream *s)
{
	return s->n_conns;
}

unsigned stream_half_open(const struct stream *s)
{
	return s->n_half;
}
