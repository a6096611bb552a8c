/* SPDX-License-Identifier: BSD-3-Clause */
/* What a byte costs on lib/stream, and where: two stacks in one thread, frames handed over through
 *a burst of buffers as memif does, at MTU 9000. Time is the thread's own (CPU time), also that of
 *the stacks: who else wants the core changes nothing. Its parts are taken by the cycle counter: the
 * application (its calls, and its copies), the control path (stream_turn), the data path (path.h:
 * checksums and all that moves payload). Beside it, in turn, RC of two software RNICs at MTU 4096.
 *
 *	bench-stream [--quick]		one object of JSON
 *
 * "placed" has its buffers posted before the bytes come; "copied" receives into memory of its own
 * and copies from there to where the bytes are wanted, as a socket does; "deferred" posts when the
 * bytes have come, which then go through bounce memory. "shared" is memory that other processes may
 * have: the place of table 3's other endpoints. Then long flows beside a short one (figure 12), and
 *what it takes to place a packet: by the engine's flows and lists, and by the keys of the RNIC. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include "lib/rnic/placement.h"
#include "lib/stream/stream.h"
#include "tests/bench/ends.h"

enum {
	MTU = 9000,
	FRAME = 9216,
	PIECE = 65536,
	PIECES = 16, /* posted at a time, of each direction of a flow */
	MAX_LONG = 8,
	SHORT = MAX_LONG, /* the index of the short flow */
	MAX_FLOWS = MAX_LONG + 1,
	EXCHANGE = 65536,
	MAX_EXCHANGES = 100000,
	CLIENT = 0,
	SERVER = 1,
	FIRST_PORT = 10000,
	INTERRUPTED = 1000000, /* cycles: no burst takes so long, somebody else had the core */
};
enum part { APPLICATION, CONTROL, DATA, N_PARTS };
enum way { PLACED, COPIED, DEFERRED };

struct flow {
	uint32_t conn[2];
	uint8_t *out, *in, *copy; /* PIECES pieces each */
	unsigned next;            /* piece to be sent, and to be received */
	uint64_t received, posted;
};

struct side {
	struct stream *s;
	uint64_t spent[N_PARTS]; /* cycles */
};

static struct bench {
	struct side side[2];
	struct flow flow[MAX_FLOWS];
	unsigned n_long, opened;
	bool has_short, compare;
	enum way way;
	uint64_t now;
	uint64_t began; /* of the exchange that is under way */
	uint32_t took[MAX_EXCHANGES];
	unsigned exchanges;
	struct flow back; /* of the short flow, from the server */
} bench;

static uint8_t frames[BURST][FRAME] __attribute__((aligned(64)));

static uint32_t drawn(void *arg)
{
	static uint64_t rng = 88172645463325252;

	(void)arg;
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 16);
}

static uint8_t *memory(bool shared)
{
	uint8_t *p = mmap(NULL, PIECES * PIECE, PROT_READ | PROT_WRITE,
		(shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);

	check(p != MAP_FAILED, "memory");
	return p;
}

/* ---- two stacks ---- */

static void create(unsigned k)
{
	struct stream_config c;

	stream_defaults(&c, 2 * MAX_FLOWS);
	c.mac[0] = 2;
	c.mac[5] = (uint8_t)(k + 1);
	c.ip = wire_ip_from4(0x0a000001 + k);
	c.mtu = MTU;
	c.allowance = 262144;
	c.ack_delay = 0; /* both ends acknowledge at once */
	c.random = drawn;
	c.place.seed = drawn(NULL);
	check(stream_create(&c, &bench.side[k].s) == 0, "stream_create");
}

static void post_piece(unsigned k, struct flow *f, bool send, uint8_t *at)
{
	struct stream *s = bench.side[k].s;
	const uint64_t cookie = (uint64_t)(uintptr_t)f;
	const uint32_t conn = f->conn[k];

	check((send ? stream_send(s, conn, at, PIECE, cookie)
		    : stream_recv(s, conn, at, PIECE, cookie)) == 0,
		"posting");
	if (!send)
		f->posted += PIECE;
}

static uint8_t *piece(uint8_t *of, uint64_t i)
{
	return of + i % PIECES * PIECE;
}

static void ask(void)
{
	struct flow *f = &bench.flow[SHORT];

	bench.began = work_ns();
	post_piece(CLIENT, f, true, f->out);
}

static void answer_or_ask(unsigned k, struct flow *f)
{
	memcpy(f->copy, f->in, EXCHANGE); /* it does not post its own memory, as in the paper */
	post_piece(k, f, false, f->in);
	if (k == SERVER) {
		post_piece(SERVER, f, true, f->out);
		return;
	}
	if (bench.exchanges < MAX_EXCHANGES)
		bench.took[bench.exchanges++] = (uint32_t)(work_ns() - bench.began);
	ask();
}

static void received(unsigned k, struct flow *f, int64_t len)
{
	uint8_t *at = piece(f->in, f->received / PIECE);

	check(len == PIECE, "a receive was cut short");
	if (f == &bench.flow[SHORT] || f == &bench.back) {
		answer_or_ask(k, f);
		return;
	}
	if (bench.way == COPIED)
		memcpy(piece(f->copy, f->received / PIECE), at, PIECE);
	if (bench.compare)
		check(memcmp(bench.way == COPIED ? piece(f->copy, f->received / PIECE) : at,
			      piece(f->out, f->received / PIECE), PIECE) == 0,
			"bytes differ");
	f->received += PIECE;
	if (bench.way != DEFERRED)
		post_piece(k, f, false, at);
}

/* The connection of a flow is there at both ends, which know it by the client's port. */
static void opened(unsigned k, uint32_t conn)
{
	struct place_tuple t;
	unsigned i;

	check(stream_ends(bench.side[k].s, conn, &t) == 0, "stream_ends");
	i = (k == CLIENT ? t.local_port : t.remote_port) - FIRST_PORT;
	bench.flow[i].conn[k] = conn;
	if (i == SHORT)
		bench.back.conn[k] = conn;
	bench.opened++;
}

/* What a program does: it looks at its completions, and asks for the next. */
static void program(unsigned k)
{
	struct stream_completion c[BURST];
	const unsigned n = stream_poll(bench.side[k].s, c, BURST);

	for (unsigned i = 0; i < n; i++) {
		struct flow *f = (struct flow *)(uintptr_t)c[i].cookie;

		check(c[i].result >= 0, "a connection has ended");
		if (c[i].event == STREAM_ACCEPTED || c[i].event == STREAM_CONNECTED)
			opened(k, c[i].conn);
		else if (c[i].event == STREAM_RECEIVED)
			received(k, f, c[i].result);
		else if (c[i].event == STREAM_SENT && f != &bench.flow[SHORT] && f != &bench.back)
			post_piece(k, f, true, piece(f->out, f->next++));
	}
	if (k == SERVER && bench.way == DEFERRED && bench.opened == 2) {
		struct flow *f = &bench.flow[0];
		const uint64_t came = stream_path(bench.side[k].s)->count[STREAM_PATH_BOUNCED];

		while (came - f->posted >= PIECE)
			post_piece(k, f, false, piece(f->in, f->posted / PIECE));
	}
}

static void lap(uint64_t *since, uint64_t *into)
{
	const uint64_t now = __rdtsc();

	if (now - *since < INTERRUPTED)
		*into += now - *since;
	*since = now;
}

/* A burst of what `from` has to send arrives at the other end, whose control path and program then
 * have their turn. */
static void step(unsigned from)
{
	struct side *a = &bench.side[from], *z = &bench.side[!from];
	size_t len[BURST];
	unsigned n = 0;
	uint64_t since;

	bench.now = work_ns();
	since = __rdtsc();
	while (n < BURST && (len[n] = stream_path_tx(stream_path(a->s), frames[n], FRAME)) > 0)
		n++;
	stream_path_quiesce(stream_path(a->s));
	lap(&since, &a->spent[DATA]);
	for (unsigned i = 0; i < n; i++)
		check(stream_path_rx(stream_path(z->s), frames[i], len[i]), "a frame of nobody");
	stream_path_quiesce(stream_path(z->s));
	lap(&since, &z->spent[DATA]);
	while (stream_turn(z->s, bench.now) > 0)
		;
	lap(&since, &z->spent[CONTROL]);
	program(!from);
	lap(&since, &z->spent[APPLICATION]);
}

static void steps(void)
{
	step(CLIENT);
	step(SERVER);
}

static void make_flow(unsigned i, bool shared_in, bool shared_out)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 2};
	const struct wire_ip server = wire_ip_from4(0x0a000002);
	struct flow *f = &bench.flow[i];

	*f = (struct flow){
		.out = memory(shared_out), .in = memory(shared_in), .copy = memory(false)};
	for (unsigned p = 0; p < PIECES * PIECE; p++)
		f->out[p] = (uint8_t)(p * 7 + p / 251);
	bench.opened = 0;
	check(stream_connect(bench.side[CLIENT].s, bench.now, mac, &server, 80,
		      (uint16_t)(FIRST_PORT + i), (uintptr_t)f, &f->conn[CLIENT]) == 0,
		"stream_connect");
	while (bench.opened < 2)
		steps();
}

static void start_long(unsigned i)
{
	struct flow *f = &bench.flow[i];

	for (unsigned p = 0; p < PIECES && bench.way != DEFERRED; p++)
		post_piece(SERVER, f, false, piece(f->in, p));
	for (; f->next < PIECES; f->next++)
		post_piece(CLIENT, f, true, piece(f->out, f->next));
}

static void free_flow(struct flow *f)
{
	uint8_t *const all[] = {f->out, f->in, f->copy};

	for (unsigned i = 0; i < 3; i++)
		if (all[i] != NULL)
			munmap(all[i], PIECES * PIECE);
}

static void open_all(enum way way, unsigned n_long, bool has_short, bool shared_out, bool shared_in)
{
	memset(&bench, 0, sizeof(bench));
	bench.way = way;
	bench.n_long = n_long;
	bench.has_short = has_short;
	for (unsigned k = 0; k < 2; k++)
		create(k);
	check(stream_listen(bench.side[SERVER].s, 80, 0) == 0, "stream_listen");
	for (unsigned i = 0; i < n_long; i++)
		make_flow(i, shared_in, shared_out);
	for (unsigned i = 0; i < n_long; i++)
		start_long(i);
	if (!has_short)
		return;
	make_flow(SHORT, false, false);
	bench.back.out = memory(false);
	bench.back.in = memory(false);
	bench.back.copy = memory(false);
	post_piece(CLIENT, &bench.flow[SHORT], false, bench.flow[SHORT].in);
	post_piece(SERVER, &bench.back, false, bench.back.in);
	ask();
}

static void close_all(void)
{
	for (unsigned i = 0; i < MAX_FLOWS; i++)
		free_flow(&bench.flow[i]);
	free_flow(&bench.back);
	for (unsigned k = 0; k < 2; k++)
		stream_destroy(bench.side[k].s);
}

/* ---- rows ---- */

static uint64_t all_received(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < bench.n_long; i++)
		n += bench.flow[i].received;
	return n;
}

/* Cycles into CPU seconds per GB. */
static json_t *parts(const uint64_t spent[N_PARTS], double per_cycle)
{
	return json_pack("{s:f,s:f,s:f}", "application", (double)spent[APPLICATION] * per_cycle,
		"control", (double)spent[CONTROL] * per_cycle, "data",
		(double)spent[DATA] * per_cycle);
}

struct measured {
	double ns, bytes;
	uint64_t spent[2][N_PARTS];
};

static void measure(uint64_t ns, struct measured *m)
{
	uint64_t start, bytes, until;

	for (bench.compare = true, until = work_ns() + ns / 10; work_ns() < until;)
		steps();
	bench.compare = false;
	bench.exchanges = 0;
	for (unsigned k = 0; k < 2; k++)
		memset(bench.side[k].spent, 0, sizeof(bench.side[k].spent));
	bytes = all_received();
	start = work_ns();
	while (work_ns() < start + ns)
		steps();
	m->ns = (double)(work_ns() - start);
	m->bytes = (double)(all_received() - bytes);
	for (unsigned k = 0; k < 2; k++)
		memcpy(m->spent[k], bench.side[k].spent, sizeof(m->spent[k]));
}

static json_t *one_flow(const char *name, enum way way, bool out, bool in, uint64_t ns)
{
	struct measured m;
	uint64_t both[N_PARTS], cycles = 0;
	double per_cycle;
	json_t *row;

	open_all(way, 1, false, out, in);
	measure(ns, &m);
	close_all();
	for (unsigned p = 0; p < N_PARTS; p++) {
		both[p] = m.spent[CLIENT][p] + m.spent[SERVER][p];
		cycles += both[p];
	}
	per_cycle = m.ns / (double)cycles / m.bytes; /* ns per byte is s per GB */
	row = json_pack("{s:s,s:f,s:o,s:o}", "way", name, "gbps", m.bytes * 8 / m.ns, "both",
		parts(both, per_cycle), "receiver", parts(m.spent[SERVER], per_cycle));
	json_object_set_new(
		row, "max_gbps", json_real(8 / ((double)m.spent[SERVER][CONTROL] * per_cycle)));
	return row;
}

static int by_size(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Figure 12. Jain's index, as in test_stream_fair. */
static json_t *beside_short(unsigned n_long, uint64_t ns)
{
	struct measured m;
	uint64_t before[MAX_LONG];
	double sum = 0, squares = 0;
	json_t *row;

	open_all(PLACED, n_long, true, false, false);
	for (unsigned i = 0; i < n_long; i++)
		before[i] = bench.flow[i].received;
	measure(ns, &m);
	for (unsigned i = 0; i < n_long; i++) {
		const double x = (double)(bench.flow[i].received - before[i]);

		sum += x;
		squares += x * x;
	}
	check(bench.exchanges >= 20, "too few exchanges of the short flow");
	qsort(bench.took, bench.exchanges, sizeof(bench.took[0]), by_size);
	row = json_pack("{s:i,s:f,s:f,s:f,s:f}", "long", (int)n_long, "gbps", m.bytes * 8 / m.ns,
		"jain", squares > 0 ? sum * sum / (n_long * squares) : 1.0, "p50_us",
		bench.took[bench.exchanges / 2] / 1e3, "p99_us",
		bench.took[(uint64_t)bench.exchanges * 99 / 100] / 1e3);
	close_all();
	return row;
}

/* ---- RC of our RNIC ---- */

/* SENDs of a piece each into receives that were posted before. */
static json_t *rc(uint64_t ns)
{
	static const struct load load = {"SEND", IBV_WR_SEND, PIECE, 4096, 1, true};
	struct end ends[2] = {0};
	uint64_t spent[N_PARTS] = {0}, start, posted = 0, done = 0, taken = 0, since;
	struct ibv_wc wc[BURST];
	double took, per_cycle;

	for (unsigned k = 0; k < 2; k++)
		end_create(&ends[k], k);
	connect_all(ends, &load);
	for (; taken < DEPTH; taken++)
		post_recv(&ends[1], &load, 0, (uint32_t)(taken * PIECE % MEMORY));
	start = work_ns();
	while (work_ns() < start + ns) {
		int n;

		since = __rdtsc();
		for (; posted < done + PIECES; posted++)
			post(&ends[0], &ends[1], &load, 0, (uint32_t)(posted * PIECE % MEMORY));
		lap(&since, &spent[APPLICATION]);
		carry(&ends[0], &ends[1]);
		carry(&ends[1], &ends[0]);
		lap(&since, &spent[DATA]);
		n = rnic_cq_poll(ends[1].cq, BURST, wc);
		for (int i = 0; i < n; i++, taken++)
			post_recv(&ends[1], &load, 0, (uint32_t)(taken * PIECE % MEMORY));
		n = rnic_cq_poll(ends[0].cq, BURST, wc);
		for (int i = 0; i < n; i++, done++)
			check(wc[i].status == IBV_WC_SUCCESS, "a SEND has failed");
		lap(&since, &spent[APPLICATION]);
	}
	took = (double)(work_ns() - start);
	per_cycle = took / (double)(spent[APPLICATION] + spent[DATA]) / ((double)done * PIECE);
	disconnect_all(ends, &load);
	for (unsigned k = 0; k < 2; k++)
		end_destroy(&ends[k]);
	return json_pack("{s:s,s:f,s:{s:f,s:n,s:f}}", "way", "rc", "gbps",
		(double)done * PIECE * 8 / took, "both", "application",
		(double)spent[APPLICATION] * per_cycle, "control", "data",
		(double)spent[DATA] * per_cycle);
}

/* ---- placing alone ---- */

/* The engine: a flow is found, its list searched, bytes go there; the cursor follows each burst, as
 * the control path would. ns per packet. */
static double by_list(uint32_t len, uint64_t ns)
{
	const struct place_config config = {
		.max_flows = 1024, .max_mrs = 64, .chunks = 4096, .committed = 2, .peak = 64};
	struct place_flow_init init = {.tuple = {.local_port = 1, .proto = IP_PROTO_TCP},
		.rx = 1ull << 32,
		.limit = (1ull << 32) + PIECES * PIECE};
	void *block = aligned_alloc(64, place_size(&config));
	uint8_t *to = memory(false), *from = memory(false);
	uint64_t at = init.rx, posted = at, packets = 0, start;
	uint32_t mr, flow;
	struct place *p;

	check(block != NULL && place_init(&config, block, &p) == 0 &&
			place_mr_add(p, to, PIECES * PIECE, true, &mr) == 0,
		"an engine");
	for (unsigned i = 0; i < 1000; i++) {
		init.tuple.remote_port = (uint16_t)i;
		check(place_flow_add(p, &init, &flow) == 0, "a flow");
	}
	for (start = work_ns(); work_ns() < start + ns;) {
		for (; posted < at + PIECES * PIECE / 2; posted += PIECE)
			check(place_post(p, flow, PLACE_RX, mr, posted % (PIECES * PIECE), PIECE) ==
					0,
				"posting");
		for (unsigned i = 0; i < BURST; i++, at += len, packets++) {
			const struct place_segment seg = {
				from + at % (PIECES * PIECE / 2), len, (uint32_t)at, 0, 0};

			check(place_packet(p, place_find(p, &init.tuple), &seg).verdict ==
					PLACE_ACCEPT,
				"a packet is placed");
		}
		place_cursor(p, flow, at, at + PIECES * PIECE);
		place_retire(p, flow, PLACE_RX, at);
		place_quiesce(p);
	}
	start = work_ns() - start;
	free(block);
	munmap(to, PIECES * PIECE);
	munmap(from, PIECES * PIECE);
	return (double)start / (double)packets;
}

/* The RNIC: the packet or the receive has a key and an address. */
static double by_key(uint32_t len, bool remote, uint64_t ns)
{
	static const struct load load = {"WRITE", IBV_WR_RDMA_WRITE, PIECE, 4096, 1, true};
	struct end ends[2] = {0};
	uint8_t *from = memory(false);
	uint64_t packets = 0, start;

	for (unsigned k = 0; k < 2; k++)
		end_create(&ends[k], k);
	connect_all(ends, &load);
	for (start = work_ns(); work_ns() < start + ns;)
		for (unsigned i = 0; i < BURST; i++, packets++) {
			const uint64_t at = packets * len % (MEMORY / 2);
			const struct ibv_sge sge = {
				(uintptr_t)ends[1].memory, MEMORY, rnic_mr_lkey(ends[1].mr)};
			const struct placement to = {.kind = remote ? PLACE_REMOTE : PLACE_LIST,
				.sge = &sge,
				.n_sge = 1,
				.offset = at,
				.qp = ends[1].qp[0],
				.rkey = rnic_mr_rkey(ends[1].mr),
				.va = (uintptr_t)ends[1].memory + at};

			check(place_payload(ends[1].pd, &to, from + at, len) == 0,
				"a packet is placed");
		}
	start = work_ns() - start;
	disconnect_all(ends, &load);
	for (unsigned k = 0; k < 2; k++)
		end_destroy(&ends[k]);
	munmap(from, PIECES * PIECE);
	return (double)start / (double)packets;
}

static json_t *placing(uint64_t ns)
{
	static const uint32_t sizes[] = {64, 1024, 4096};
	json_t *out = json_array();

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		json_array_append_new(out,
			json_pack("{s:i,s:f,s:f,s:f}", "bytes", (int)sizes[i], "list_ns",
				by_list(sizes[i], ns), "receive_ns", by_key(sizes[i], false, ns),
				"write_ns", by_key(sizes[i], true, ns)));
	return out;
}

int main(int argc, char **argv)
{
	const bool quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
	const uint64_t ns = quick ? 300000000 : 2000000000;
	static const unsigned longs[] = {0, 1, 2, 4, 8};
	json_t *flows = json_array(), *rows = json_array(), *root;

	if (argc != 1 && !quick) {
		fprintf(stderr, "usage: bench-stream [--quick]\n");
		return 2;
	}
	json_array_append_new(rows, one_flow("placed", PLACED, false, false, ns));
	json_array_append_new(rows, one_flow("copied", COPIED, false, false, ns));
	json_array_append_new(rows, one_flow("deferred", DEFERRED, false, false, ns));
	json_array_append_new(rows, rc(ns));
	json_array_append_new(rows, one_flow("private to shared", PLACED, false, true, ns));
	json_array_append_new(rows, one_flow("shared to shared", PLACED, true, true, ns));
	for (unsigned i = 0; i < sizeof(longs) / sizeof(longs[0]); i++)
		json_array_append_new(flows, beside_short(longs[i], ns));
	root = json_pack("{s:o,s:o,s:o}", "rows", rows, "flows", flows, "placing", placing(ns / 4));
	json_dumpf(root, stdout, JSON_INDENT(1));
	printf("\n");
	json_decref(root);
	return 0;
}
