/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_peer PORT.json listen|connect OWN-IP PEER-IP PEER-MAC BYTES LOSS SEED LATE: a stack of
 * lib/stream on one port, both paths in one loop, one connection at TCP port 5001. Sends BYTES,
 * receives to the end of the peer's stream; frames are lost and change places both ways, and are
 * there twice at the receiver, each LOSS of a million; the first buffer is posted LATE milliseconds
 * after the connection. Says "ready", then one line of JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/port/config.h"
#include "lib/stream/stream.h"

enum { BURST = 32, PIECE = 65536, PATTERN = 65521, PIECES = 8 };

static uint64_t rng;
static uint32_t loss;
static uint8_t pattern[2 * PATTERN + PIECE];

struct peer {
	struct stream *stream;
	struct port port;
	struct rte_mempool *pool;
	uint32_t conn;
	bool open, closed, end;
	int64_t result;
	uint64_t bytes, posted, acked, received, wrong, late;
	unsigned sends, recvs;
	uint8_t in[PIECES][PIECE];
	unsigned in_next;
};

static uint8_t byte_at(uint64_t i)
{
	const uint32_t k = (uint32_t)(i % PATTERN);

	return (uint8_t)(k * 167 + (k >> 8));
}

static bool lost(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng >> 20) % 1000000 < loss;
}

static uint32_t unpredictable(void *arg)
{
	uint32_t v = 0;

	(void)arg;
	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		abort();
	return v;
}

/* A frame and the one that comes after the next. */
static void swap_some(struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i + 2 < n; i++)
		if (lost()) {
			struct rte_mbuf *t = m[i];

			m[i] = m[i + 2];
			m[i + 2] = t;
		}
}

static unsigned data_path(struct peer *p)
{
	struct stream_path *path = stream_path(p->stream);
	struct rte_mbuf *m[BURST];
	unsigned n = port_rx_burst(&p->port, m, BURST), busy = n, out = 0;

	swap_some(m, n);
	for (unsigned i = 0; i < n; i++) {
		/* Lost, or there twice. */
		for (unsigned k = lost() ? 0 : 1 + lost(); k > 0 && m[i]->nb_segs == 1; k--)
			stream_path_rx(path, rte_pktmbuf_mtod(m[i], uint8_t *), m[i]->data_len);
		rte_pktmbuf_free(m[i]);
	}
	stream_path_quiesce(path);
	while (out < BURST && (m[out] = rte_pktmbuf_alloc(p->pool)) != NULL) {
		uint8_t *at = rte_pktmbuf_mtod(m[out], uint8_t *);
		const size_t len = stream_path_tx(path, at, rte_pktmbuf_tailroom(m[out]));

		m[out]->data_len = (uint16_t)len;
		m[out]->pkt_len = (uint32_t)len;
		if (len == 0 || lost())
			rte_pktmbuf_free(m[out]);
		else
			out++;
		if (len == 0)
			break;
		busy++;
	}
	swap_some(m, out);
	n = port_tx_burst(&p->port, m, out);
	for (; n < out; n++)
		rte_pktmbuf_free(m[n]);
	stream_path_quiesce(path);
	return busy;
}

static void on_completion(struct peer *p, const struct stream_completion *c, uint64_t now)
{
	switch (c->event) {
	case STREAM_ACCEPTED:
	case STREAM_CONNECTED:
		p->conn = c->conn;
		p->open = true;
		p->late += now;
		break;
	case STREAM_SENT:
		p->sends--;
		if (c->result > 0)
			p->acked += (uint64_t)c->result;
		break;
	case STREAM_RECEIVED:
		p->recvs--;
		for (int64_t i = 0; i < c->result; i++)
			p->wrong += p->in[c->cookie][i] != byte_at(p->received + (uint64_t)i);
		if (c->result > 0)
			p->received += (uint64_t)c->result;
		p->end |= c->result < PIECE;
		break;
	case STREAM_ARRIVED:
		break;
	case STREAM_CLOSED:
		p->closed = true;
		p->result = c->result;
	}
}

static void program(struct peer *p, uint64_t now)
{
	struct stream_completion c[16];
	const unsigned n = stream_poll(p->stream, c, 16);

	for (unsigned i = 0; i < n; i++)
		on_completion(p, &c[i], now);
	if (!p->open || p->closed)
		return;
	while (p->sends < 8 && p->posted < p->bytes) {
		const size_t len = p->bytes - p->posted < PIECE ? p->bytes - p->posted : PIECE;

		if (stream_send(p->stream, p->conn, pattern + p->posted % PATTERN, len, 0) < 0)
			break;
		p->posted += len;
		p->sends++;
	}
	while (p->recvs < PIECES && !p->end && now >= p->late &&
		stream_recv(p->stream, p->conn, p->in[p->in_next], PIECE, p->in_next) == 0) {
		p->in_next = (p->in_next + 1) % PIECES;
		p->recvs++;
	}
	if (p->posted == p->bytes)
		stream_shutdown(p->stream, p->conn);
}

static int run(struct peer *p, uint64_t limit)
{
	struct port_backoff backoff = {.idle = PORT_IDLE_SLEEP};
	uint64_t now = port_now_ns();
	const uint64_t until = now + limit;

	while (!p->closed && now < until) {
		const unsigned busy = data_path(p) + stream_turn(p->stream, now);

		program(p, now);
		port_backoff(&backoff, busy, now, stream_due(p->stream));
		now = port_now_ns();
	}
	/* The last acknowledgement leaves. */
	for (unsigned i = 0; i < 100; i++) {
		stream_turn(p->stream, now);
		data_path(p);
	}
	return p->closed ? 0 : -1;
}

static void report(const struct peer *p, double seconds)
{
	const struct stream_path *path = stream_path(p->stream);

	printf("{\"closed\": %d, \"result\": %" PRId64 ", \"acked\": %" PRIu64
	       ", \"received\": %" PRIu64 ", \"wrong\": %" PRIu64
	       ", \"seconds\": %.3f, \"retransmitted\": %" PRIu64 ", \"timeouts\": %" PRIu64
	       ", \"placed\": %" PRIu64 ", \"bounced\": %" PRIu64 "}\n",
		p->closed, p->result, p->acked, p->received, p->wrong, seconds,
		stream_count(p->stream, STREAM_COUNT_RETRANSMITTED),
		stream_count(p->stream, STREAM_COUNT_TIMEOUTS), place_counters(path->place)->bytes,
		path->count[STREAM_PATH_BOUNCED]);
}

int main(int argc, char **argv)
{
	static struct peer p;
	const struct port_eal eal = {.program = "stream_peer", .memory_mb = 128};
	struct port_config config;
	struct stream_config sc;
	struct wire_ip peer;
	uint8_t mac[6];
	char err[PORT_ERR_LEN] = "usage: stream_peer PORT.json listen|connect OWN-IP PEER-IP "
				 "PEER-MAC BYTES LOSS SEED LATE";
	uint64_t begin;
	json_t *json = argc == 10 ? json_load_file(argv[1], 0, NULL) : NULL;

	stream_defaults(&sc, 64);
	if (json == NULL || port_config_parse(json, &config, err) < 0 ||
		wire_ip_parse(argv[3], &sc.ip) < 0 || wire_ip_parse(argv[4], &peer) < 0 ||
		wire_mac_parse(argv[5], mac) < 0 || port_eal_init(&eal, err) < 0 ||
		(p.pool = port_pool_create("stream", 8191, config.mtu, SOCKET_ID_ANY, err)) ==
			NULL ||
		port_open(&config, p.pool, 5000, &p.port, err) < 0) {
		fprintf(stderr, "stream_peer: %s\n", err);
		return 1;
	}
	p.bytes = strtoull(argv[6], NULL, 10);
	loss = (uint32_t)strtoul(argv[7], NULL, 10);
	rng = strtoull(argv[8], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
	p.late = strtoull(argv[9], NULL, 10) * 1000000;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = byte_at(i);
	memcpy(sc.mac, p.port.mac, 6);
	sc.mtu = config.mtu;
	sc.random = unpredictable;
	sc.place.seed = unpredictable(NULL);
	if (stream_create(&sc, &p.stream) < 0)
		return 1;
	if (strcmp(argv[2], "listen") == 0)
		stream_listen(p.stream, 5001, 0);
	else if (stream_connect(p.stream, port_now_ns(), mac, &peer, 5001, 0, 0, &p.conn) < 0)
		return 1;
	printf("ready\n");
	fflush(stdout);
	begin = port_now_ns();
	if (run(&p, 120000000000) < 0)
		fprintf(stderr, "stream_peer: the connection has not ended\n");
	report(&p, (double)(port_now_ns() - begin) / 1e9);
	port_close(&p.port);
	port_eal_fini();
	stream_destroy(p.stream);
	json_decref(json);
	return 0;
}
