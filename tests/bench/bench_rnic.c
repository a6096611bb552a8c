/* SPDX-License-Identifier: BSD-3-Clause */
/* The software RNIC on one core: two of them in one process, frames handed over through 64 buffers,
 * as memif does; both ends' work is in the figure. Beside it, on the same memory and in turn, what
 * can not be left out: the payload's copy into a frame and its CRC, in one pass by the best kernels
 * of this CPU, and at the other end once more. The best of several repetitions counts for each. All
 * bytes are compared at the end. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/mrc/transport.h"
#include "lib/rnic/rnic.h"
#include "lib/wire/icrc.h"

enum {
	BURST = 32,
	SLOTS = 2 * BURST,
	SLOT = 4608,
	MEMORY = 1 << 20,
	DEPTH = 64,
	MAX_QP = 64,
	PING = 20000,
	TX_BURST = 8
};

struct end {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *cq;
	struct rnic_mr *mr;
	struct rnic_qp *qp[MAX_QP];
	uint8_t *memory;
};

struct load {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t size, mtu;
	unsigned qps;
	bool bandwidth; /* of payload, which has a limit; else messages count */
	bool mrc;       /* over 128 paths of UDP, with NSCC; else RC */
};

static const struct load loads[] = {
	{"WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 1, true},
	{"WRITE", IBV_WR_RDMA_WRITE, 65536, 1024, 1, true},
	{"WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 64, true},
	{"SEND", IBV_WR_SEND, 65536, 4096, 1, true},
	{"READ", IBV_WR_RDMA_READ, 65536, 4096, 1, true},
	{"WRITE", IBV_WR_RDMA_WRITE, 64, 1024, 1, false},
	{"WRITE", IBV_WR_RDMA_WRITE, 64, 1024, 64, false},
	{"SEND", IBV_WR_SEND, 64, 1024, 1, false},
	{"READ", IBV_WR_RDMA_READ, 64, 1024, 1, false},
	{"MRC-WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 1, true, true},
	{"MRC-WRITE", IBV_WR_RDMA_WRITE, 65536, 1024, 1, true, true},
	{"MRC-WRITE", IBV_WR_RDMA_WRITE, 65536, 4096, 64, true, true},
	{"MRC-WRITE", IBV_WR_RDMA_WRITE, 64, 1024, 1, false, true},
	{"FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1024, 1, false},
};

static uint8_t frames[SLOTS][SLOT] __attribute__((aligned(64)));

static void check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "bench-rnic: %s\n", what);
		exit(1);
	}
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Of this core's work: others that run on it do not count. */
static uint64_t work_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* ---- two ends ---- */

static void create(struct end *e, unsigned index)
{
	enum {
		ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_ATOMIC
	};
	struct rnic_config config = {.port[0].mac = {2, 0, 0, 0, 0, (uint8_t)(1 + index)},
		.port[0].n_ip = 1,
		.port[0].mtu = 4200,
		.seed = index + 1};

	config.port[0].ip[0] = wire_ip_from4(0x0a000001u + index);
	e->memory = aligned_alloc(4096, 2 * MEMORY);
	check(e->memory != NULL && rnic_create(&config, &e->rnic) == 0, "rnic_create");
	for (uint32_t i = 0; i < 2 * MEMORY; i++)
		e->memory[i] = (uint8_t)(i * 7 + i / 251 + index);
	check(rnic_mrc_open(e->rnic, &(struct rnic_mrc_config){0}) == 0, "rnic_mrc_open");
	check(rnic_pd_alloc(e->rnic, &e->pd) == 0, "rnic_pd_alloc");
	check(rnic_mr_reg(e->pd, e->memory, 2 * MEMORY, (uintptr_t)e->memory, ACCESS, &e->mr) == 0,
		"rnic_mr_reg");
	check(rnic_cq_create(e->rnic, 4 * DEPTH * MAX_QP, NULL, &e->cq) == 0, "rnic_cq_create");
}

static void create_qp(struct end *e, unsigned i, bool mrc)
{
	struct rnic_qp_init init = {.type = IBV_QPT_RC,
		.transport = mrc ? &rnic_mrc : NULL,
		.pd = e->pd,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC};

	check(rnic_qp_create(e->rnic, &init, &e->qp[i]) == 0 &&
			rnic_qp_modify(e->qp[i], &a,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS,
				0) == 0,
		"a queue pair");
}

static void connect_qp(struct end *e, struct end *peer, unsigned i, enum ibv_mtu mtu)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = rnic_qp_num(peer->qp[i]),
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 64}}};
	uint8_t mac[6];
	struct wire_ip ip;

	check(rnic_gid(peer->rnic, 0, 1, &ip) == 0, "rnic_gid");
	memcpy(a.ah_attr.grh.dgid.raw, &ip, 16);
	rnic_mac(peer->rnic, 0, mac);
	check(rnic_neigh_add(e->rnic, 0, &ip, mac) == 0, "rnic_neigh_add");
	check(rnic_qp_modify(e->qp[i], &a,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		      0) == 0,
		"RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16};
	check(rnic_qp_modify(e->qp[i], &a,
		      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
		      0) == 0,
		"RTS");
}

static void connect_all(struct end ends[2], const struct load *load)
{
	const enum ibv_mtu mtu = load->mtu == 4096 ? IBV_MTU_4096 : IBV_MTU_1024;

	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < load->qps; i++)
			create_qp(&ends[k], i, load->mrc);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < load->qps; i++)
			connect_qp(&ends[k], &ends[!k], i, mtu);
}

static void disconnect_all(struct end ends[2], const struct load *load)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < load->qps; i++)
			check(rnic_qp_destroy(ends[k].qp[i]) == 0, "rnic_qp_destroy");
}

/* What `from` has to send, at most a burst, arrives. Returns frames. */
static unsigned carry(struct end *from, struct end *to)
{
	struct rnic_rx_frame rx[BURST];
	struct rnic_frame tx[TX_BURST];
	unsigned n = 0, made;
	static unsigned slot;
	uint64_t now = clock_ns();

	do {
		const unsigned most = BURST - n < TX_BURST ? BURST - n : TX_BURST;

		made = rnic_tx_burst(from->rnic, RNIC_ALL_PORTS, tx, most, now);
		for (unsigned i = 0; i < made; i++, n++) {
			uint8_t *out = frames[slot++ % SLOTS];

			rx[n].data = out;
			rx[n].len = (uint32_t)rnic_frame_flatten(&tx[i], out, SLOT);
		}
	} while (made && n < BURST);
	rnic_rx_burst(to->rnic, 0, rx, n, now);
	check(rnic_count(to->rnic, RNIC_C_RX_ACCEPTED) +
				rnic_drop_count(to->rnic, RNIC_DROP_DUPLICATE) ==
			rnic_count(to->rnic, RNIC_C_RX_FRAMES),
		"a frame was dropped");
	return n;
}

/* ---- loads ---- */

static void post(struct end *e, struct end *peer, const struct load *load, unsigned qp, uint32_t at)
{
	struct ibv_sge sge = {(uintptr_t)e->memory + at, load->size, rnic_mr_lkey(e->mr)};
	struct ibv_send_wr wr = {.wr_id = qp,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = load->opcode,
		.send_flags = IBV_SEND_SIGNALED};

	if (load->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->memory + MEMORY;
		wr.wr.atomic.rkey = rnic_mr_rkey(peer->mr);
		wr.wr.atomic.compare_add = 1;
	} else if (load->opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + at;
		wr.wr.rdma.rkey = rnic_mr_rkey(peer->mr);
	}
	check(rnic_post_send(e->qp[qp], &wr) == 0, "rnic_post_send");
}

static void post_recv(struct end *e, const struct load *load, unsigned qp, uint32_t at)
{
	struct ibv_sge sge = {(uintptr_t)e->memory + at, load->size, rnic_mr_lkey(e->mr)};
	struct ibv_recv_wr wr = {.wr_id = qp, .sg_list = &sge, .num_sge = 1};

	check(rnic_post_recv(e->qp[qp], &wr) == 0, "rnic_post_recv");
}

static uint32_t place(const struct load *load, uint64_t i)
{
	return (uint32_t)(i * load->size % MEMORY);
}

/* Polls what has completed, and asks for as much again. Returns messages done. */
static unsigned turn(struct end ends[2], const struct load *load, uint64_t *posted, uint64_t want)
{
	struct ibv_wc wc[BURST];
	unsigned done = 0;
	int n = rnic_cq_poll(ends[0].cq, BURST, wc);

	for (int i = 0; i < n; i++) {
		check(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
		done++;
		if (*posted < want)
			post(&ends[0], &ends[1], load, (unsigned)wc[i].wr_id,
				place(load, (*posted)++));
	}
	n = load->opcode == IBV_WR_SEND ? rnic_cq_poll(ends[1].cq, BURST, wc) : 0;
	for (int i = 0; i < n; i++)
		post_recv(&ends[1], load, (unsigned)wc[i].wr_id, place(load, (uint64_t)i));
	return done;
}

/* Messages per second. */
static double run(struct end ends[2], const struct load *load, uint64_t messages)
{
	const unsigned depth = load->size > 4096 ? 4 : DEPTH;
	uint64_t posted = 0, done = 0, start;

	for (unsigned q = 0; q < load->qps && load->opcode == IBV_WR_SEND; q++)
		for (unsigned i = 0; i < DEPTH; i++)
			post_recv(&ends[1], load, q, place(load, i));
	start = work_ns();
	for (unsigned i = 0; i < depth; i++)
		for (unsigned q = 0; q < load->qps && posted < messages; q++)
			post(&ends[0], &ends[1], load, q, place(load, posted++));
	while (done < messages) {
		carry(&ends[0], &ends[1]);
		carry(&ends[1], &ends[0]);
		done += turn(ends, load, &posted, messages);
	}
	return (double)messages * 1e9 / (double)(work_ns() - start);
}

/* The same memory in the same order: a burst into frames, the burst out of them. Messages per
 * second. */
static double run_limit(struct end ends[2], const struct load *load, uint64_t messages)
{
	volatile uint32_t sink = 0;
	const uint64_t packets = messages * (load->size / load->mtu), start = work_ns();

	for (uint64_t first = 0; first < packets; first += BURST) {
		uint8_t *src = ends[0].memory, *dst = ends[1].memory;

		for (uint64_t i = first; i < first + BURST; i++)
			sink += icrc_copy(
				0, frames[i % SLOTS] + 64, src + i * load->mtu % MEMORY, load->mtu);
		for (uint64_t i = first; i < first + BURST; i++)
			sink += icrc_copy(
				0, dst + i * load->mtu % MEMORY, frames[i % SLOTS] + 64, load->mtu);
	}
	(void)sink;
	return (double)messages * 1e9 / (double)(work_ns() - start);
}

static void report(struct end ends[2], const struct load *load, unsigned reps, json_t *results)
{
	const uint64_t messages = load->bandwidth ? 4096 : 200000;
	double best = 0, limit = 0, gbps;

	for (unsigned r = 0; r < reps; r++) {
		double rate, most;

		connect_all(ends, load);
		rate = run(ends, load, messages);
		disconnect_all(ends, load);
		most = load->bandwidth ? run_limit(ends, load, messages) : 0;
		best = rate > best ? rate : best;
		limit = most > limit ? most : limit;
	}
	gbps = best * load->size * 8e-9;
	printf("%-9s %6u %5u %4u %9.2f %9.2f", load->name, load->size, load->mtu, load->qps, gbps,
		best * 1e-6);
	if (load->bandwidth)
		printf(" %9.2f %6.2f", limit * load->size * 8e-9, best / limit);
	printf("\n");
	json_array_append_new(results,
		json_pack("{s:s,s:i,s:i,s:i,s:f,s:f,s:o,s:o}", "operation", load->name, "bytes",
			(int)load->size, "mtu", (int)load->mtu, "qps", (int)load->qps, "gbps", gbps,
			"messages_per_s", best, "limit_gbps",
			load->bandwidth ? json_real(limit * load->size * 8e-9) : json_null(),
			"ratio", load->bandwidth ? json_real(best / limit) : json_null()));
}

static bool is_wanted(const struct load *load, const char *only)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%u/%u/%u", load->name, load->size, load->mtu, load->qps);
	return only == NULL || strcmp(name, only) == 0;
}

/* Nothing but right bytes counts: one WRITE of everything. */
static void verify(struct end ends[2])
{
	static const struct load all = {"WRITE", IBV_WR_RDMA_WRITE, MEMORY, 4096, 1, true};

	memset(ends[1].memory, 0, MEMORY);
	connect_all(ends, &all);
	run(ends, &all, 1);
	disconnect_all(ends, &all);
	check(memcmp(ends[0].memory, ends[1].memory, MEMORY) == 0, "the bytes are wrong");
}

/* ---- latency: the processor's part of it ---- */

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void ping(struct end ends[2], const struct load *load, unsigned from)
{
	struct ibv_wc wc[4];
	int n = 0;

	post(&ends[from], &ends[!from], load, 0, 0);
	while (n == 0) {
		carry(&ends[from], &ends[!from]);
		n = rnic_cq_poll(ends[!from].cq, 4, wc);
	}
	for (int i = 0; i < n; i++)
		if (wc[i].opcode & IBV_WC_RECV)
			post_recv(&ends[!from], load, 0, 0);
	carry(&ends[!from], &ends[from]);
	rnic_cq_poll(ends[from].cq, 4, wc);
}

static void latency(struct end ends[2], json_t *root)
{
	static const struct load load = {"SEND", IBV_WR_SEND, 8, 1024, 1, false};
	static uint32_t ns[PING];
	static const struct {
		const char *name;
		double at;
	} points[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}};
	json_t *out = json_object();

	connect_all(ends, &load);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < 8; i++)
			post_recv(&ends[k], &load, 0, 0);
	for (unsigned i = 0; i < PING; i++) {
		uint64_t start = clock_ns();

		ping(ends, &load, i & 1);
		ns[i] = (uint32_t)(clock_ns() - start);
	}
	disconnect_all(ends, &load);
	qsort(ns, PING, sizeof(ns[0]), by_size);
	printf("SEND of 8 bytes, post to completion, both ends and the ACK, ns:");
	for (unsigned i = 0; i < 3; i++) {
		uint32_t v = ns[(unsigned)(points[i].at * PING)];

		printf("  %s %u", points[i].name, v);
		json_object_set_new(out, points[i].name, json_integer(v));
	}
	printf("\n");
	json_object_set_new(root, "send_ns", out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", required_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'}, {"only", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'}, {0}};
	struct end ends[2] = {0};
	const char *file = NULL, *only = NULL;
	unsigned reps = 7;
	json_t *root, *results = json_array();
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			file = optarg;
		else if (opt == 'q')
			reps = 2;
		else if (opt == 'o')
			only = optarg;
		else {
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: bench-rnic [--quick] [--only OPERATION/BYTES/MTU/QPS] "
				"[--json FILE]\n");
			return opt == 'h' ? 0 : 2;
		}
	}
	for (unsigned k = 0; k < 2; k++)
		create(&ends[k], k);
	verify(ends);
	printf("# two RNICs on one core; limit: the payload's copy and CRC at both ends, alone, in "
	       "one pass by the %s kernels\n",
		icrc_kernel_name());
	printf("%-9s %6s %5s %4s %9s %9s %9s %6s\n", "operation", "bytes", "MTU", "QPs", "Gb/s",
		"Mmsg/s", "limit", "ratio");
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		if (is_wanted(&loads[i], only))
			report(ends, &loads[i], reps, results);
	root = json_pack(
		"{s:s,s:s,s:o}", "bench", "rnic", "icrc", icrc_kernel_name(), "results", results);
	latency(ends, root);
	if (file && json_dump_file(root, file, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "bench-rnic: cannot write %s\n", file);
		return 1;
	}
	json_decref(root);
	for (unsigned k = 0; k < 2; k++) {
		rnic_destroy(ends[k].rnic);
		free(ends[k].memory);
	}
	return 0;
}
