/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP stack with a program: bytes choose what segments come, near the numbers that are right or
 * anywhere, what the program does and how time goes by. After each step: nothing outside of the
 * program's buffers was written, every slot is somewhere, counts stay in their bounds; at the end,
 * after all connections are reset, nothing is left. */
#include <errno.h>
#include <string.h>

#include "lib/stream/stream.h"
#include "tests/fuzz/fuzz.h"

enum { BUFFERS = 6, BUFFER = 300, GUARD = 32, STRIDE = BUFFER + GUARD, MAX_STEPS = 300 };

struct world {
	struct stream *s;
	const uint8_t *data;
	size_t left;
	uint64_t now;
	uint32_t conn[4], n_conns, rng;
	struct wire_tcp seen; /* what the stack sent last, from our side */
	bool busy[BUFFERS];
	uint8_t memory[BUFFERS * STRIDE];
};

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};

static uint32_t take(struct world *w, unsigned bytes)
{
	uint32_t v = 0;

	while (bytes-- > 0 && w->left > 0) {
		v = v << 8 | *w->data++;
		w->left--;
	}
	return v;
}

static uint32_t number(void *arg)
{
	return *(uint32_t *)arg = *(uint32_t *)arg * 1664525 + 1013904223;
}

static void hear(struct world *w, const uint8_t *frame, size_t len)
{
	struct wire_tcp tcp;
	struct wire_pkt pkt;

	fuzz_check(wire_parse(frame, len, &pkt) == WIRE_OK, "what it sends is whole");
	fuzz_check(wire_tcp_parse(frame, &pkt, &tcp) == WIRE_TCP_OK, "and a segment");
	fuzz_check(wire_tcp_checksum_ok(frame, &pkt), "with a checksum");
	w->seen = tcp;
}

static void poll_it(struct world *w)
{
	struct stream_completion c[8];
	unsigned n;

	while ((n = stream_poll(w->s, c, 8)) > 0)
		for (unsigned i = 0; i < n; i++) {
			/* One that the program has no room for must not outlive it. */
			if (c[i].event == STREAM_ACCEPTED && w->n_conns == 4)
				stream_abort(w->s, c[i].conn);
			else if (c[i].event == STREAM_ACCEPTED)
				w->conn[w->n_conns++] = c[i].conn;
			if (c[i].event == STREAM_SENT || c[i].event == STREAM_RECEIVED) {
				fuzz_check(w->busy[c[i].cookie], "a completion is told once");
				fuzz_check(c[i].result <= BUFFER, "no more than fits");
				w->busy[c[i].cookie] = false;
			}
		}
}

static void turn(struct world *w)
{
	struct stream_path *path = stream_path(w->s);
	uint8_t frame[2000];
	size_t len;

	for (unsigned round = 0; round < 3; round++) {
		stream_path_quiesce(path);
		while (stream_turn(w->s, w->now) > 0)
			;
		while ((len = stream_path_tx(path, frame, sizeof(frame))) > 0)
			hear(w, frame, len);
		stream_path_quiesce(path);
		poll_it(w);
	}
}

static void segment(struct world *w)
{
	struct wire_flow flow = {.src = wire_ip_from4(0x0a000001 + take(w, 1) % 3),
		.dst = wire_ip_from4(0x0a000009),
		.ttl = 64};
	const uint32_t how = take(w, 1), len = take(w, 1) * (how & 3);
	struct wire_tcp tcp = {
		.sport = (uint16_t)(1000 + how / 64), .dport = 80, .wscale = TCP_NO_WSCALE};
	uint8_t frame[2000];
	int headers;

	tcp.flags = (uint8_t)take(w, 1);
	tcp.window = (uint16_t)take(w, 2);
	/* Right, or near it. */
	tcp.seq = w->seen.ack + (how & 4 ? take(w, 2) - 0x8000 : 0);
	tcp.ack = w->seen.seq + (how & 8 ? take(w, 2) - 0x8000 : how & 16 ? 1 : 0);
	if (tcp.flags & TCP_SYN)
		tcp.mss = (uint16_t)take(w, 2);
	else if (how & 32)
		tcp.n_sack = 1 + how % 4;
	tcp.sack_ok = (tcp.flags & TCP_SYN) != 0;
	for (unsigned i = 0; i < tcp.n_sack; i++) {
		tcp.sack[i].from = w->seen.seq + take(w, 2) - 0x8000;
		tcp.sack[i].to = tcp.sack[i].from + take(w, 1);
	}
	headers = wire_tcp_build(frame, sizeof(frame), &flow, &tcp, len);
	fuzz_check(headers > 0, "headers fit");
	memset(frame + headers, 0x55, len);
	wire_tcp_finish(frame, (size_t)headers + len);
	stream_path_rx(stream_path(w->s), frame, (size_t)headers + len);
}

static void program(struct world *w)
{
	const uint32_t what = take(w, 1), i = take(w, 1) % BUFFERS;
	const uint32_t conn = w->conn[what / 8 % 4];
	uint8_t *buf = w->memory + i * STRIDE;
	const size_t len = 1 + take(w, 2) % BUFFER;
	const struct wire_ip ip = wire_ip_from4(0x0a000001);
	int err = -1;

	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		if (!w->busy[i])
			err = stream_recv(w->s, conn, buf, len, i);
		break;
	case 3:
	case 4:
		if (!w->busy[i])
			err = stream_send(w->s, conn, buf, len, i);
		break;
	case 5:
		stream_shutdown(w->s, conn);
		return;
	case 6:
		(what & 128 ? stream_close : stream_abort)(w->s, conn);
		return;
	default:
		if (w->n_conns < 4 && stream_connect(w->s, w->now, mac, &ip, 1000, 80, 0,
					      &w->conn[w->n_conns]) == 0)
			w->n_conns++;
		return;
	}
	if (err == 0)
		w->busy[i] = true;
}

static void check(const struct world *w)
{
	for (unsigned i = 0; i < BUFFERS; i++)
		for (unsigned k = 0; k < GUARD; k++)
			fuzz_check(w->memory[i * STRIDE + BUFFER + k] == 0xee, "nothing outside");
	fuzz_check(stream_conns(w->s) <= 6 && stream_half_open(w->s) <= 2, "bounded");
	fuzz_check(stream_path(w->s)->free_slots <= 8, "no slot twice");
}

static void finish(struct world *w)
{
	for (unsigned i = 0; i < w->n_conns; i++)
		stream_abort(w->s, w->conn[i]);
	stream_unlisten(w->s, 80);
	for (unsigned i = 0; i < 400; i++) {
		w->now += 2000000000;
		turn(w);
	}
	fuzz_check(stream_conns(w->s) == 0, "no connection is left");
	fuzz_check(stream_path(w->s)->free_slots == 8, "all slots are back");
	for (unsigned i = 0; i < BUFFERS; i++)
		fuzz_check(!w->busy[i], "every operation has ended");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct stream_config c;

	memset(&w, 0, sizeof(w));
	memset(w.memory, 0xee, sizeof(w.memory));
	w.data = data;
	w.left = size;
	stream_defaults(&c, 6);
	c.ip = wire_ip_from4(0x0a000009);
	c.max_half_open = 2;
	c.bounce_slots = 8;
	c.ring = 64;
	c.allowance = 2000;
	c.wscale = 3;
	c.place = (struct place_config){
		.max_flows = 8, .max_mrs = c.max_ops, .chunks = 40, .committed = 2, .peak = 8};
	c.random = number;
	c.random_arg = &w.rng;
	fuzz_check(stream_create(&c, &w.s) == 0, "it begins");
	stream_listen(w.s, 80, 0);
	for (unsigned step = 0; step < MAX_STEPS && w.left > 0; step++) {
		const unsigned op = take(&w, 1);

		if (op < 150)
			segment(&w);
		else if (op < 230)
			program(&w);
		else
			w.now += (uint64_t)take(&w, 1) * 20000000;
		if (op % 3 != 0)
			turn(&w);
		check(&w);
	}
	turn(&w);
	finish(&w);
	stream_destroy(w.s);
	return 0;
}

/* A handshake, buffers to receive, something to send, data; then random steps. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	static const uint8_t start[] = {1, 0, 0, 0, TCP_SYN, 0xff, 0xff, 5, 0xb4, /* SYN */
		1, 0, 16, 0, TCP_ACK, 0xff, 0xff,                                 /* ACK */
		160, 0, 0, 0, 200, 160, 0, 1, 0, 200, 160, 3, 2, 1, 0,            /* program */
		1, 0, 3, 40, TCP_ACK, 0xff, 0xff, 1, 0, 7, 30, TCP_ACK, 0xff, 0xff, 0x80, 20};
	static const uint8_t data[] = {1, 0, 3, 90, TCP_ACK, 0xff, 0xff};
	uint64_t s = i + 1;
	size_t n = sizeof(start);

	if (i >= 32)
		return 0;
	memcpy(out, start, n);
	while (n < 900 && n + 64 < cap) {
		s = s * 6364136223846793005 + 1442695040888963407;
		out[n++] = (uint8_t)(s >> 56);
		if (s >> 50 & 1 && i % 4 != 0) {
			memcpy(out + n, data, sizeof(data));
			n += sizeof(data);
		}
		/* Buffers again. */
		if ((s >> 40 & 15) == 0) {
			memcpy(out + n, start + 16, 10);
			n += 10;
		}
	}
	return n;
}
