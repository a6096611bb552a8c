/* SPDX-License-Identifier: BSD-3-Clause */
/* A link of iWARP over TCP, and a peer that speaks TCP by hand: it asks or is asked, says MPA's
 * frames with any fields, segments near what is expected, any bytes in any pieces, ends its stream
 * in any way; while the program accepts, rejects, closes, posts, and takes its queue pair away.
 * Whatever comes: every connection that began is told to be over once, the stream has none left,
 * and nothing around the registered memory is written. */
#include "lib/rnic/transport.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/iwarp/pair.h"

enum { RAW_PORT = 9, STEP = 8, MAX_STEPS = 60, ARENA = 1 << 16 };

static const struct mpa_offer depths = {.ird = 4, .ord = 4};

struct world {
	struct pair p;
	uint32_t raw;  /* the peer's connection, if raw_open */
	uint32_t conn; /* the link's, that was told of last */
	bool raw_open, accepts;
	uint64_t closed;
	size_t used; /* of arena */
};

/* What the peer has sent lies there until the run is over; what it hears, nobody looks at. */
static uint8_t arena[ARENA], heard[ARENA];

/* ---- the peer ---- */

static struct stream *raw_stream(const struct world *w)
{
	return w->p.net->s[0];
}

static void raw_begin(struct world *w, uint32_t conn)
{
	w->raw = conn;
	w->raw_open = true;
	stream_recv(raw_stream(w), conn, heard, sizeof(heard), 2);
}

static void raw_note(struct world *w, const struct stream_completion *done)
{
	if (done->event == STREAM_ACCEPTED && w->raw_open)
		stream_abort(raw_stream(w), done->conn);
	else if (done->event == STREAM_ACCEPTED)
		raw_begin(w, done->conn);
	else if (!w->raw_open || done->conn != w->raw)
		return;
	else if (done->event == STREAM_CLOSED)
		w->raw_open = false;
	else if (done->event == STREAM_RECEIVED && done->result == (int64_t)sizeof(heard))
		stream_recv(raw_stream(w), w->raw, heard, sizeof(heard), 2);
}

static void raw_poll(struct world *w)
{
	struct stream_completion done[8];
	unsigned n;

	while ((n = stream_poll(raw_stream(w), done, 8)) > 0)
		for (unsigned i = 0; i < n; i++)
			raw_note(w, &done[i]);
}

static void raw_connect(struct world *w)
{
	const struct net *net = w->p.net;
	uint32_t conn;

	if (!w->raw_open && stream_connect(raw_stream(w), net->now, net->mac[1], &net->ip[1],
				    PAIR_PORT, 0, 1, &conn) == 0)
		raw_begin(w, conn);
}

static void raw_send(struct world *w, const uint8_t *bytes, size_t len)
{
	uint8_t *at = arena + w->used;

	if (!w->raw_open || len == 0 || len > sizeof(arena) - w->used)
		return;
	memcpy(at, bytes, len);
	if (stream_send(raw_stream(w), w->raw, at, len, 3) == 0)
		w->used += len;
}

static void raw_start(struct world *w, const uint8_t *b)
{
	const struct mpa_start start = {.reply = b[1] & 1,
		.crc = !(b[1] & 2),
		.markers = b[2] == 1,
		.reject = (b[1] & 1) && b[2] == 2,
		.revision = b[1] & 4 ? 1 : 2,
		.enhanced = !(b[1] & 4) && b[3] != 3,
		.peer_to_peer = b[4] & 1,
		.rtr = b[4] & 2 ? MPA_RTR_READ : MPA_RTR_WRITE,
		.ird = (uint16_t)(b[5] == 0xff ? MPA_MAX_DEPTH : b[5] & 7),
		.ord = (uint16_t)(b[6] == 0xff ? MPA_MAX_DEPTH : b[6] & 7),
		.private_len = 3,
		.private_data = (const uint8_t *)"hey"};
	uint8_t out[MPA_MAX_START];
	const int len = mpa_start_build(out, sizeof(out), &start);

	fuzz_check(len > 0, "a frame of MPA");
	if (b[7] == 0xff)
		out[b[2] % (unsigned)len] ^= (uint8_t)(1 << b[3] % 8);
	raw_send(w, out, (size_t)len);
}

/* Fields from the state, changed by bytes; the frame is cut in two. */
static void raw_segment(struct world *w, const uint8_t *b)
{
	const struct end *e = &w->p.end[1];
	const struct rdmap_read read = {
		.sink_stag = b[2],
		.len = b[3] * 64u,
		.source_stag = rnic_mr_rkey(e->mr) + (b[4] == 1),
		.source_to = (uintptr_t)e->buf + b[5] * 128u,
	};
	struct ddp_segment s = {.opcode = b[1] & 15, .last = !(b[1] & 0x10)};
	uint8_t out[512] = {0};
	struct rnic_qp_stats stats = {0};
	size_t at = MPA_LEN_LEN, len = b[6], all;

	if (e->qp != NULL)
		rnic_qp_stats(e->qp, &stats);
	s.tagged = s.opcode == RDMAP_WRITE || s.opcode == RDMAP_READ_RESPONSE;
	s.stag = rnic_mr_rkey(e->mr) + (b[4] == 1);
	s.to = (uintptr_t)e->buf + b[5] * 300u;
	if (s.opcode == RDMAP_READ_RESPONSE && e->qp != NULL) {
		s.stag = (rnic_qp_num(e->qp) << 8) + b[4] % 4;
		s.to = b[5] % 4 * 32u;
	}
	s.qn = s.opcode == RDMAP_READ_REQUEST ? 1 : s.opcode == RDMAP_TERMINATE ? 2 : 0;
	s.msn = s.qn == 0 ? stats.epsn : 1 + b[2] % 4u;
	s.mo = b[3] % 4 * 16u;
	at += ddp_build(out + at, &s);
	memset(out + at, 0xcc, len);
	if (s.opcode == RDMAP_READ_REQUEST) {
		rdmap_read_build(out + at, &read);
		len = RDMAP_READ_LEN;
	} else if (s.opcode >= RDMAP_IMM) {
		len = RDMAP_IMM_LEN;
	}
	all = mpa_fpdu_seal(out, at - MPA_LEN_LEN + len);
	if (b[7] == 0xff)
		out[b[2] % all] ^= 4;
	raw_send(w, out, b[7] % all);
	raw_send(w, out + b[7] % all, all - b[7] % all);
}

static void raw_end(struct world *w, const uint8_t *b)
{
	if (!w->raw_open)
		return;
	if (b[1] % 4 == 0)
		stream_abort(raw_stream(w), w->raw);
	else if (b[1] % 4 == 1)
		stream_close(raw_stream(w), w->raw);
	else
		stream_shutdown(raw_stream(w), w->raw);
}

/* ---- the program ---- */

static void accept_it(struct world *w)
{
	struct pair *p = &w->p;

	if (p->end[1].qp != NULL)
		iwarp_accept(p->link[1], p->net->now, w->conn, p->end[1].qp, &depths, 8);
}

static void hear(struct world *w)
{
	struct pair *p = &w->p;

	while (p->n_event[1] > 0) {
		const struct iwarp_event event = pair_event(p, 1, p->event[1][0].type);

		w->conn = event.conn;
		if (event.type == IWARP_REQUEST && w->accepts)
			accept_it(w);
		w->closed += event.type == IWARP_CLOSED;
	}
	fuzz_check(w->closed <= iwarp_link_count(p->link[1], IWARP_LINK_CONNECTS), "over once");
}

static void ask(struct world *w)
{
	struct pair *p = &w->p;

	if (p->end[1].qp != NULL)
		iwarp_connect(p->link[1], p->net->now, p->net->mac[0], &p->net->ip[0], RAW_PORT,
			p->end[1].qp, &depths, 7, &w->conn);
}

static void answer(struct world *w, const uint8_t *b)
{
	struct pair *p = &w->p;

	if (b[1] % 4 == 0)
		iwarp_close(p->link[1], w->conn);
	else if (b[1] % 4 == 1)
		iwarp_reject(p->link[1], p->net->now, w->conn, "no", 2);
	else
		accept_it(w);
}

static void post(struct world *w, const uint8_t *b)
{
	static const enum ibv_wr_opcode kinds[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM};
	struct pair *p = &w->p;

	if (p->end[1].qp == NULL)
		return;
	if (b[1] & 0x80)
		end_recv(&p->end[1], 1, b[2] * 100u, b[3] * 4u);
	else
		end_post(&p->end[1], kinds[b[1] % 4], 1, b[2] * 100u, b[3] * 100u, &p->end[0],
			b[4] * 100u, b[5] & 1 ? IBV_SEND_FENCE : 0);
}

static void take_qp(struct world *w, const uint8_t *b)
{
	const struct ibv_qp_attr attr = {.qp_state = b[1] & 1 ? IBV_QPS_ERR : IBV_QPS_RESET};
	struct end *e = &w->p.end[1];

	if (e->qp == NULL) {
		end_qp(e, END_ALL);
	} else if (b[1] % 4 < 2) {
		rnic_qp_modify(e->qp, &attr, IBV_QP_STATE, w->p.net->now);
	} else {
		fuzz_check(rnic_qp_destroy(e->qp) == 0, "it goes");
		e->qp = NULL;
	}
}

/* ---- runs ---- */

static void run(struct world *w, uint64_t time)
{
	struct end *e = &w->p.end[1];
	struct ibv_wc wc[16];

	raw_poll(w);
	pair_run(&w->p, time);
	raw_poll(w);
	hear(w);
	while (rnic_cq_poll(e->scq, 16, wc) + rnic_cq_poll(e->rcq, 16, wc) > 0)
		;
	e->n_event = 0;
}

static void step(struct world *w, const uint8_t *b)
{
	switch (b[0] % 16) {
	case 0:
		raw_connect(w);
		break;
	case 1:
		ask(w);
		break;
	case 2:
	case 3:
		raw_start(w, b);
		break;
	case 4: /* any bytes */
		raw_send(w, b + 1, STEP - 1);
		break;
	case 5:
		raw_end(w, b);
		break;
	case 6:
		answer(w, b);
		break;
	case 7:
		take_qp(w, b);
		break;
	case 8:
		run(w, b[1] * (PAIR_SECOND / 50));
		break;
	case 9:
	case 10:
		post(w, b);
		break;
	default:
		raw_segment(w, b);
	}
	run(w, PAIR_SECOND / 1000);
}

static void finish(struct world *w)
{
	struct pair *p = &w->p;

	if (p->end[1].qp != NULL)
		fuzz_check(rnic_qp_destroy(p->end[1].qp) == 0, "it goes");
	p->end[1].qp = NULL;
	for (unsigned i = 0; i < 3; i++) {
		if (w->raw_open)
			stream_abort(raw_stream(w), w->raw);
		run(w, 10 * PAIR_SECOND);
	}
	fuzz_check(w->closed == iwarp_link_count(p->link[1], IWARP_LINK_CONNECTS),
		"all that began is told to be over");
	fuzz_check(stream_conns(p->net->s[1]) == 0, "no connection is left");
	end_untouched(&p->end[1], 0, END_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {0};

	if (size == 0)
		return 0;
	pair_open(&w.p, &(struct pair_options){.raw = true,
				.small = true,
				.ring = data[0] & 1 ? 4096 : 16384,
				.mtu = data[0] & 2 ? 576 : 1500});
	w.accepts = data[0] & 4;
	fuzz_check(stream_listen(raw_stream(&w), RAW_PORT, 1) == 0, "a port");
	end_qp(&w.p.end[1], END_ALL);
	if (data[0] & 8)
		ask(&w);
	else
		raw_connect(&w);
	run(&w, PAIR_SECOND / 1000);
	for (size_t i = 0; i < MAX_STEPS && 1 + (i + 1) * STEP <= size; i++)
		step(&w, data + 1 + i * STEP);
	finish(&w);
	pair_close(&w.p);
	return 0;
}

/* MPA's frame as each side expects it, then steps of each kind in different orders. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	enum { STEPS = 24 };

	if (i >= 16 || cap < 1 + STEPS * STEP)
		return 0;
	out[0] = (uint8_t)(i | 4);
	for (unsigned k = 0; k < STEPS; k++) {
		uint8_t *b = out + 1 + k * STEP;

		for (unsigned n = 0; n < STEP; n++)
			b[n] = (uint8_t)(k * 37 + n * 11 + i * 101);
		b[0] = (uint8_t)(k < 20 ? 9 + (k * 3 + i) % 7 : k + i);
		b[4] = 2;
		b[7] &= 63;
	}
	/* A request, or the reply to ours. */
	memcpy(out + 1, (uint8_t[STEP]){2, i & 8 ? 1 : 0, 0, 0, 1, 4, 4, 0}, STEP);
	/* The peer's first frame: an empty WRITE. */
	memcpy(out + 1 + STEP, (uint8_t[STEP]){11, RDMAP_WRITE, 0, 0, 0, 0, 0, 0}, STEP);
	return 1 + STEPS * STEP;
}
