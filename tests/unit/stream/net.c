/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/stream/net.h"

#include "lib/place/place.h"

uint32_t net_random(struct net *n, uint32_t below)
{
	n->seed ^= n->seed << 13;
	n->seed ^= n->seed >> 7;
	n->seed ^= n->seed << 17;
	return (uint32_t)(n->seed >> 20) % below;
}

static uint32_t isn(void *arg)
{
	struct net *n = arg;

	return n->isn++ != 0 ? n->isn : (uint32_t)(net_random(n, 1 << 16) << 16);
}

struct net *net_new(uint64_t seed, void (*change)(struct stream_config *config, int side))
{
	struct net *n = calloc(1, sizeof(*n));

	n->seed = seed * 0x9e3779b97f4a7c15 + 1;
	n->delay = 50000;
	for (int i = 0; i < 2; i++) {
		struct stream_config c;

		stream_defaults(&c, 64);
		n->ip[i] = c.ip = wire_ip_from4(0x0a000001 + (uint32_t)i);
		memcpy(c.mac, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)(1 + i)}, 6);
		memcpy(n->mac[i], c.mac, 6);
		c.random = isn;
		c.random_arg = n;
		if (change != NULL)
			change(&c, i);
		assert_int_equal(stream_create(&c, &n->s[i]), 0);
	}
	return n;
}

static void free_frames(struct net_frame *f)
{
	while (f != NULL) {
		struct net_frame *next = f->next;

		free(f);
		f = next;
	}
}

void net_free(struct net *n)
{
	stream_destroy(n->s[0]);
	stream_destroy(n->s[1]);
	free_frames(n->queue);
	free_frames(n->unused);
	free(n);
}

/* NULL: as many as may be are under way. */
static struct net_frame *take_frame(struct net *n)
{
	struct net_frame *f = n->unused;

	if (f != NULL) {
		n->unused = f->next;
		return f;
	}
	if (n->frames == NET_FRAMES)
		return NULL;
	n->frames++;
	f = malloc(sizeof(*f));
	assert_non_null(f);
	return f;
}

void net_put(struct net *n, int to, const uint8_t *frame, size_t len, uint64_t at)
{
	struct net_frame *f = take_frame(n), **k = &n->queue;

	assert_true(len <= NET_FRAME);
	if (f == NULL) {
		n->lost++;
		return;
	}
	f->at = at;
	f->to = (uint8_t)to;
	f->len = (uint16_t)len;
	memcpy(f->bytes, frame, len);
	if (n->queue != NULL && n->last->at <= at)
		k = &n->last->next;
	while (*k != NULL && (*k)->at <= at)
		k = &(*k)->next;
	f->next = *k;
	*k = f;
	if (f->next == NULL)
		n->last = f;
}

void net_inject(struct net *n, int to, const uint8_t *frame, size_t len)
{
	net_put(n, to, frame, len, n->now);
}

/* When the link has sent it; NET_DROP: no room. 24: preamble, gap, frame check. */
static uint64_t through_link(struct net *n, int to, size_t len)
{
	const uint64_t begin = n->free_at[to] > n->now ? n->free_at[to] : n->now;

	if (n->rate == 0)
		return n->now;
	if ((begin - n->now) * n->rate / 8000000000 > n->buffer) {
		n->dropped++;
		return NET_DROP;
	}
	return n->free_at[to] = begin + (len + 24) * 8000000000 / n->rate;
}

static void carry(struct net *n, int to, uint8_t *frame, size_t len)
{
	uint64_t at, later = 0;

	n->sent++;
	if (n->look != NULL)
		n->look(n, frame, len, to);
	if (n->fate != NULL)
		later = n->fate(n, frame, len, to);
	at = through_link(n, to, len);
	if (later == NET_DROP || at == NET_DROP) {
		n->lost++;
		return;
	}
	at += n->delay + later;
	if (net_random(n, 1000000) < n->loss) {
		n->lost++;
		return;
	}
	if (net_random(n, 1000000) < n->overtake)
		at += net_random(n, 4) * n->delay;
	net_put(n, to, frame, len, at);
	if (net_random(n, 1000000) < n->repeat)
		net_put(n, to, frame, len, at + net_random(n, 1000000));
}

static bool turn(struct net *n, int side)
{
	struct stream_path *path = stream_path(n->s[side]);
	uint8_t frame[NET_FRAME];
	bool busy = false;
	unsigned out = 0;
	size_t len;

	while (n->queue != NULL && n->queue->at <= n->now && n->queue->to == side) {
		struct net_frame *f = n->queue;

		n->queue = f->next;
		stream_path_rx(path, f->bytes, f->len);
		f->next = n->unused;
		n->unused = f;
		busy = true;
	}
	stream_path_quiesce(path);
	if (n->shut != NULL)
		n->shut(n->arg, true);
	while (stream_turn(n->s[side], n->now) > 0)
		busy = true;
	if (n->shut != NULL)
		n->shut(n->arg, false);
	while ((n->tx_most == 0 || out++ < n->tx_most) &&
		(len = stream_path_tx(path, frame, sizeof(frame))) > 0) {
		carry(n, !side, frame, len);
		busy = true;
	}
	stream_path_quiesce(path);
	busy |= ring_count(&path->notes) > 0; /* of copies */
	return busy;
}

bool net_step(struct net *n, uint64_t until)
{
	uint64_t next = UINT64_MAX;
	bool busy = false;

	for (int i = 0; i < 2; i++)
		busy |= turn(n, i);
	if (busy)
		return true;
	if (n->queue != NULL)
		next = n->queue->at;
	for (int i = 0; i < 2; i++)
		if (stream_due(n->s[i]) < next)
			next = stream_due(n->s[i]);
	if (next == UINT64_MAX)
		return false;
	n->now = next > until ? until : next > n->now ? next : n->now;
	return true;
}

void net_segment(struct net *n, int to, const struct wire_ip *src, const struct wire_tcp *tcp,
	const char *payload)
{
	struct wire_flow flow = {.src = *src, .dst = n->ip[to], .ttl = 64};
	const size_t len = strlen(payload);
	uint8_t frame[NET_FRAME];
	int headers;

	memcpy(flow.dmac, n->mac[to], 6);
	memcpy(flow.smac, n->mac[!to], 6);
	headers = wire_tcp_build(frame, sizeof(frame), &flow, tcp, len);
	memcpy(frame + headers, payload, len);
	wire_tcp_finish(frame, (size_t)headers + len);
	net_inject(n, to, frame, (size_t)headers + len);
}

/* ---- programs ---- */

uint8_t net_byte(int from, size_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 7 + (i >> 16) + (size_t)from * 77);
}

void program_init(struct program *p, struct net *n, int side, size_t tx_len, size_t rx_len)
{
	*p = (struct program){.net = n, .side = side, .tx_len = tx_len, .rx_len = rx_len};
	p->piece = 20000;
	p->tx = malloc(tx_len + 1);
	p->rx = calloc(1, rx_len + 1);
	for (size_t i = 0; i < tx_len; i++)
		p->tx[i] = net_byte(side, i);
}

void program_free(struct program *p)
{
	free(p->tx);
	free(p->rx);
}

void programs_connect(struct program p[2])
{
	struct net *n = p[0].net;

	assert_int_equal(stream_listen(n->s[SERVER], 80, 4711), 0);
	assert_int_equal(stream_connect(n->s[CLIENT], n->now, n->mac[SERVER], &n->ip[SERVER], 80, 0,
				 1, &p[CLIENT].conn),
		0);
}

static void on_completion(struct program *p, const struct stream_completion *c)
{
	switch (c->event) {
	case STREAM_ACCEPTED:
	case STREAM_CONNECTED:
		assert_int_equal(c->cookie, p->side == SERVER ? 4711 : 1);
		p->conn = c->conn;
		p->open = true;
		break;
	case STREAM_SENT:
		p->sends--;
		if (c->result > 0) {
			assert_int_equal(c->cookie, p->acked);
			p->acked += (size_t)c->result;
		}
		break;
	case STREAM_RECEIVED:
		p->recvs--;
		if (c->result > 0) {
			assert_int_equal(c->cookie, p->received);
			/* What it is told is there, is there when it is told. */
			for (size_t i = 0; i < (size_t)c->result; i++)
				if (p->rx[p->received + i] != net_byte(!p->side, p->received + i))
					fail_msg("side %d: byte %zu is wrong", p->side,
						p->received + i);
			p->received += (size_t)c->result;
		}
		p->eof |= c->result == 0;
		break;
	case STREAM_ARRIVED:
		break;
	case STREAM_CLOSED:
		p->closed = true;
		p->result = c->result;
	}
}

static void act(struct program *p)
{
	struct stream *s = p->net->s[p->side];
	struct stream_completion c[16];
	unsigned n;

	while ((n = stream_poll(s, c, 16)) > 0)
		for (unsigned i = 0; i < n; i++)
			on_completion(p, &c[i]);
	if (!p->open || p->closed)
		return;
	while (p->sends < 4 && p->sent < p->tx_len) {
		size_t len = 1 + net_random(p->net, p->piece);

		if (len > p->tx_len - p->sent)
			len = p->tx_len - p->sent;
		if (stream_send(s, p->conn, p->tx + p->sent, len, p->sent) < 0)
			break;
		p->sent += len;
		p->sends++;
	}
	while (p->recvs < 4 && p->posted < p->rx_len && p->net->now >= p->recv_after) {
		size_t len = 1 + net_random(p->net, p->piece);

		if (len > p->rx_len - p->posted)
			len = p->rx_len - p->posted;
		if (stream_recv(s, p->conn, p->rx + p->posted, len, p->posted) < 0)
			break;
		p->posted += len;
		p->recvs++;
		p->recv_after = p->net->now + p->recv_pause;
	}
	if (!p->close_asked && p->sent == p->tx_len) {
		p->close_asked = true;
		assert_int_equal(stream_shutdown(s, p->conn), 0);
	}
	if (p->received == p->rx_len && p->recvs == 0 && !p->eof && !p->closed &&
		stream_recv(s, p->conn, p->rx + p->rx_len, 1, 0) == 0)
		p->recvs++;
}

bool programs_run(struct program p[2], uint64_t until)
{
	struct net *n = p[0].net;

	while (n->now < until && !(p[0].closed && p[1].closed)) {
		uint64_t next = until;

		act(&p[0]);
		act(&p[1]);
		for (int i = 0; i < 2; i++)
			if (p[i].open && p[i].recv_after > n->now && p[i].recv_after < next)
				next = p[i].recv_after;
		if (!net_step(n, next)) {
			if (next == until)
				break;
			n->now = next;
		}
	}
	act(&p[0]);
	act(&p[1]);
	return p[0].closed && p[1].closed;
}

void programs_check(const struct program p[2])
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p[i].result, 0);
		assert_int_equal(p[i].acked, p[i].tx_len);
		assert_int_equal(p[i].received, p[i].rx_len);
		assert_true(p[i].closed);
		for (size_t k = 0; k < p[i].rx_len; k++)
			if (p[i].rx[k] != net_byte(!i, k))
				fail_msg("side %d: byte %zu is wrong at the end", i, k);
	}
}

void net_check_empty(struct net *n)
{
	const uint64_t until = n->now + 100000000000;

	while (n->now < until && net_step(n, until))
		;
	for (int i = 0; i < 2; i++) {
		const struct stream_path *path = stream_path(n->s[i]);

		assert_int_equal(stream_conns(n->s[i]), 0);
		assert_int_equal(stream_half_open(n->s[i]), 0);
		assert_int_equal(place_flows(path->place), 0);
		assert_int_equal(path->free_slots, 256);
	}
}

/* ---- one long flow over one link ---- */

static const uint64_t patience = 500000000000;

void net_roomy(struct stream_config *c, uint16_t mtu)
{
	c->mtu = mtu;
	c->allowance = 1 << 16;
	c->ring = 4096;
	c->segments = 16384;
	c->place.peak = 2048;
	c->place.chunks = 4096;
}

struct net *flow_new(uint64_t seed, const struct net_path *path,
	void (*change)(struct stream_config *config, int side), struct program p[2], size_t bytes)
{
	struct net *n = net_new(seed, change);

	n->rate = path->rate;
	n->delay = path->rtt / 2;
	n->buffer = path->rate / 8 * path->rtt / 1000000000 + 100000;
	n->isn = (uint32_t)-30000;
	program_init(&p[0], n, CLIENT, bytes, 1);
	program_init(&p[1], n, SERVER, 1, bytes);
	p[0].piece = p[1].piece = 4000000;
	return n;
}

static size_t opened(const struct program p[2])
{
	return p[SERVER].open;
}

void flow_open(struct program p[2])
{
	programs_connect(p);
	flow_run(p, opened, 1, 10000);
}

void flow_run(
	struct program p[2], size_t (*of)(const struct program p[2]), size_t bytes, uint64_t step)
{
	const struct net *n = p[0].net;

	while (of(p) < bytes) {
		const uint64_t was = n->now;
		const bool closed = programs_run(p, n->now + step);

		if (of(p) < bytes && (closed || n->now == was || n->now > patience))
			fail_msg("stands at %lu ns, %zu of %zu", n->now, of(p), bytes);
	}
}

size_t flow_received(const struct program p[2])
{
	return p[SERVER].received;
}

void flow_free(struct program p[2])
{
	net_free(p[0].net);
	program_free(&p[0]);
	program_free(&p[1]);
}

void net_no_sack(struct net *n, uint8_t *frame, size_t len, int to)
{
	(void)n;
	(void)to;
	if ((frame[14 + 20 + 13] & TCP_SYN) == 0)
		return;
	for (size_t i = 14 + 40; i + 1 < len; i++)
		if (frame[i] == 4 && frame[i + 1] == 2) {
			frame[i] = frame[i + 1] = 1;
			break;
		}
	memset(frame + 14 + 20 + 16, 0, 2);
	wire_tcp_finish(frame, len);
}
