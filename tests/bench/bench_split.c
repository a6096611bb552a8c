/* SPDX-License-Identifier: BSD-3-Clause */
/* What control path and data path on two cores bring: two RNICs in one process, through verbs, over
 * a cable of 256 buffers, by turns
 *
 *	together	one thread runs both ends, as callers of verbs do
 *	apart		it runs both ends' control paths, a second thread both data paths (split.h)
 *
 * By the clock, not by the work: the machine must have two idle cores. The best of several
 * repetitions counts; bytes are compared at the end. */
#include <getopt.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verbs/split.h"
#include "tests/rc_steps.h"

enum { SLOTS = 256, SLOT = 4400, DEPTH = 32, MEMORY = DEPTH * 65536, PING = 5000 };

struct wire {
	uint8_t data[SLOTS][SLOT];
	uint32_t len[SLOTS];
	unsigned head, read, tail;
};

struct end {
	struct wire *in, *out;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
};

struct bench {
	struct wire wire[2];
	struct end end[2];
	bool apart;
	pthread_t thread;
	atomic_bool stop;
};

static struct bench *bench; /* the one that runs */
static cpu_set_t cpus;      /* that this process may have */

static void check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "bench-split: %s\n", what);
		exit(1);
	}
}

/* ---- the cable ---- */

static unsigned wire_rx(void *port, struct rnic_rx_frame *frames, unsigned n)
{
	struct wire *w = ((struct end *)port)->in;
	unsigned got = 0;

	for (; got < n && w->read != w->tail; got++, w->read++)
		frames[got] = (struct rnic_rx_frame){
			.data = w->data[w->read % SLOTS], .len = w->len[w->read % SLOTS]};
	return got;
}

static void wire_rx_free(void *port, const struct rnic_rx_frame *frames, unsigned n)
{
	(void)frames;
	((struct end *)port)->in->head += n;
}

static unsigned wire_room(void *port)
{
	const struct wire *w = ((struct end *)port)->out;

	return SLOTS - (w->tail - w->head);
}

static void wire_tx(void *port, const struct rnic_frame *frame)
{
	struct wire *w = ((struct end *)port)->out;

	w->len[w->tail % SLOTS] =
		(uint32_t)rnic_frame_flatten(frame, w->data[w->tail % SLOTS], SLOT);
	w->tail++;
}

static unsigned wire_flush(void *port)
{
	(void)port;
	return 0;
}

static uint64_t wire_now(void *port)
{
	(void)port;
	return port_now_ns();
}

static void wire_wait(void *port, uint64_t until)
{
	(void)port;
	(void)until;
	for (unsigned k = 0; k < 2; k++)
		incline_verbs_progress(bench->end[k].context);
}

static void wire_idle(void *port)
{
	(void)port;
}

static const struct verbs_port_ops wire_ops = {.rx_burst = wire_rx,
	.rx_free = wire_rx_free,
	.tx_room = wire_room,
	.tx = wire_tx,
	.tx_flush = wire_flush,
	.now = wire_now,
	.wait = wire_wait,
	.idle = wire_idle};

/* ---- two ends ---- */

static void open_end(struct end *e, unsigned k)
{
	enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	struct verbs_open_attr attr = {.idle = PORT_IDLE_SPIN, .split = bench->apart};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 1, 1, 0}};

	e->in = &bench->wire[k];
	e->out = &bench->wire[!k];
	attr.rnic.port[0].mac[0] = 2;
	attr.rnic.port[0].mac[5] = (uint8_t)(k + 1);
	attr.rnic.port[0].ip[0] = wire_ip_from4(0x0a000001 + k);
	attr.rnic.port[0].n_ip = 1;
	attr.rnic.port[0].mtu = 4200;
	attr.rnic.seed = k + 1;
	e->context = incline_verbs_open_port(&wire_ops, e, &attr);
	e->memory = aligned_alloc(4096, MEMORY);
	check(e->context && e->memory, "a device");
	for (unsigned i = 0; i < MEMORY; i++)
		e->memory[i] = (uint8_t)(i * 7 + i / 251 + k);
	e->pd = ibv_alloc_pd(e->context);
	e->mr = ibv_reg_mr(e->pd, e->memory, MEMORY, ACCESS);
	e->cq = ibv_create_cq(e->context, 4 * DEPTH, NULL, NULL, 0);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	check(e->mr && e->qp, "a queue pair");
}

static void connect_end(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	check(ibv_modify_qp(e->qp, &a, RC_TO_INIT) == 0, "INIT");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qp->qp_num,
		.min_rnr_timer = 12,
		.max_dest_rd_atomic = 16,
		.ah_attr = {
			.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 64}}};
	check(ibv_query_gid(peer->context, 1, 1, &a.ah_attr.grh.dgid) == 0, "a GID");
	check(ibv_modify_qp(e->qp, &a, RC_TO_RTR) == 0, "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16};
	check(ibv_modify_qp(e->qp, &a, RC_TO_RTS) == 0, "RTS");
}

/* The n-th CPU that this process may have. */
static cpu_set_t nth_cpu(unsigned n)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &cpus) && n-- == 0)
			CPU_SET(cpu, &one);
	}
	return one;
}

static void *data_paths(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&bench->stop, memory_order_relaxed)) {
		for (unsigned k = 0; k < 2; k++)
			iv_split_turn(iv_dev(bench->end[k].context)->split);
	}
	return NULL;
}

/* From now on only posting, polling and turns: a control call would run the data path, too. */
static void start(void)
{
	const cpu_set_t second = nth_cpu(1);
	pthread_attr_t attr;

	if (!bench->apart)
		return;
	pthread_attr_init(&attr);
	if (CPU_COUNT(&second) == 1)
		pthread_attr_setaffinity_np(&attr, sizeof(second), &second);
	for (unsigned k = 0; k < 2; k++)
		iv_dev(bench->end[k].context)->threaded = true;
	check(pthread_create(&bench->thread, &attr, data_paths, NULL) == 0, "a thread");
	pthread_attr_destroy(&attr);
}

static void stop(void)
{
	if (!bench->apart)
		return;
	atomic_store(&bench->stop, true);
	pthread_join(bench->thread, NULL);
	for (unsigned k = 0; k < 2; k++)
		iv_dev(bench->end[k].context)->threaded = false;
}

static void close_all(void)
{
	for (unsigned k = 0; k < 2; k++) {
		ibv_close_device(bench->end[k].context);
		free(bench->end[k].memory);
	}
	free(bench);
}

static void open_all(bool apart)
{
	bench = calloc(1, sizeof(*bench));
	check(bench != NULL, "memory");
	bench->apart = apart;
	for (unsigned k = 0; k < 2; k++)
		open_end(&bench->end[k], k);
	for (unsigned k = 0; k < 2; k++)
		connect_end(&bench->end[k], &bench->end[!k]);
	start();
}

/* Completions of this end; polling runs the device where it is in one piece. */
static int turn(struct end *e)
{
	struct ibv_wc wc[DEPTH];
	int n;

	if (bench->apart)
		iv_turn(iv_dev(e->context));
	n = ibv_poll_cq(e->cq, DEPTH, wc);
	for (int i = 0; i < n; i++)
		check(wc[i].status == IBV_WC_SUCCESS, "a completion with an error");
	return n;
}

/* ---- loads ---- */

static void post(enum ibv_wr_opcode opcode, unsigned i, uint32_t size)
{
	struct end *a = &bench->end[0], *b = &bench->end[1];
	const size_t at = (size_t)(i % DEPTH) * 65536;
	struct ibv_sge sge = {(uintptr_t)a->memory + at, size, a->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = opcode,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {(uintptr_t)b->memory + at, b->mr->rkey}},
			   *bad;

	check(ibv_post_send(a->qp, &wr, &bad) == 0, "ibv_post_send");
}

/* Seconds for n messages. */
static double run(enum ibv_wr_opcode opcode, unsigned n, uint32_t size)
{
	const uint64_t began = port_now_ns();
	unsigned posted = 0, done = 0;

	while (done < n) {
		for (; posted < n && posted - done < DEPTH; posted++)
			post(opcode, posted, size);
		done += (unsigned)turn(&bench->end[0]);
		turn(&bench->end[1]);
	}
	return (double)(port_now_ns() - began) / 1e9;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of a SEND of 8 bytes, from posting until both ends have their completions. */
static void latency(uint64_t ns[PING])
{
	struct end *b = &bench->end[1];
	struct ibv_sge sge = {(uintptr_t)b->memory, 8, b->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned i = 0; i < PING; i++) {
		int sent = 0, received = 0;

		check(ibv_post_recv(b->qp, &wr, &bad) == 0, "ibv_post_recv");
		ns[i] = port_now_ns();
		post(IBV_WR_SEND, 0, 8);
		while (!sent || !received) {
			sent += turn(&bench->end[0]);
			received += turn(b);
		}
		ns[i] = port_now_ns() - ns[i];
	}
	qsort(ns, PING, sizeof(ns[0]), by_value);
}

/* ---- how far the two CPUs are apart ---- */

static _Alignas(64) atomic_uint ping;
static _Alignas(64) atomic_uint pong;

static void *echo(void *arg)
{
	(void)arg;
	for (unsigned i = 1; i <= PING; i++) {
		while (atomic_load(&ping) != i)
			__builtin_ia32_pause();
		atomic_store(&pong, i);
	}
	return NULL;
}

/* Nanoseconds for a word to the other CPU and one back: what every handing over costs. */
static uint64_t hop(void)
{
	static uint64_t ns[PING];
	const cpu_set_t second = nth_cpu(1);
	pthread_attr_t attr;
	pthread_t thread;

	if (CPU_COUNT(&second) != 1)
		return 0;
	atomic_store(&ping, 0);
	atomic_store(&pong, 0);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(second), &second);
	check(pthread_create(&thread, &attr, echo, NULL) == 0, "a thread");
	pthread_attr_destroy(&attr);
	for (unsigned i = 1; i <= PING; i++) {
		ns[i - 1] = port_now_ns();
		atomic_store(&ping, i);
		while (atomic_load(&pong) != i)
			__builtin_ia32_pause();
		ns[i - 1] = port_now_ns() - ns[i - 1];
	}
	pthread_join(thread, NULL);
	qsort(ns, PING, sizeof(ns[0]), by_value);
	return ns[PING / 2];
}

/* ---- the table ---- */

struct figures {
	double write_gbps, read_gbps, mmsg, p50, p99;
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a > 0 && a < b ? a : b;
}

static void measure(bool apart, unsigned n, struct figures *best)
{
	static uint64_t ns[PING];
	const double bits = n * 65536.0 * 8 / 1e9;

	open_all(apart);
	best->write_gbps = larger(best->write_gbps, bits / run(IBV_WR_RDMA_WRITE, n, 65536));
	check(memcmp(bench->end[0].memory, bench->end[1].memory, MEMORY) == 0, "bytes differ");
	best->read_gbps = larger(best->read_gbps, bits / run(IBV_WR_RDMA_READ, n, 65536));
	best->mmsg = larger(best->mmsg, 20 * n / run(IBV_WR_RDMA_WRITE, 20 * n, 64) / 1e6);
	latency(ns);
	best->p50 = smaller(best->p50, (double)ns[PING / 2]);
	best->p99 = smaller(best->p99, (double)ns[PING * 99 / 100]);
	stop();
	close_all();
}

static json_t *row(const char *name, const struct figures *f)
{
	printf("%-9s %15.2f %14.2f %15.2f %13.0f %13.0f\n", name, f->write_gbps, f->read_gbps,
		f->mmsg, f->p50, f->p99);
	return json_pack("{s:f,s:f,s:f,s:f,s:f}", "write_gbps", f->write_gbps, "read_gbps",
		f->read_gbps, "mmsg_per_s", f->mmsg, "p50_ns", f->p50, "p99_ns", f->p99);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", required_argument, NULL, 'j'}, {"quick", no_argument, NULL, 'q'}, {0}};
	struct figures together = {0}, apart = {0};
	const char *file = NULL;
	cpu_set_t first;
	uint64_t hop_ns[2];
	unsigned reps = 7;
	json_t *root;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		check(opt != '?', "usage: bench-split [--quick] [--json FILE]");
		if (opt == 'j')
			file = optarg;
		else
			reps = 2;
	}
	check(sched_getaffinity(0, sizeof(cpus), &cpus) == 0, "sched_getaffinity");
	first = nth_cpu(0);
	sched_setaffinity(0, sizeof(first), &first);
	hop_ns[0] = hop();
	for (unsigned i = 0; i < reps; i++) {
		measure(false, 4000, &together);
		measure(true, 4000, &apart);
	}
	hop_ns[1] = hop();
	printf("# two RNICs in a process through verbs, by the clock: control and data path; "
	       "a cache line to the other CPU and back: %u ns before, %u ns after\n",
		(unsigned)hop_ns[0], (unsigned)hop_ns[1]);
	printf("%-9s %15s %14s %15s %13s %13s\n", "", "WRITE 64K Gb/s", "READ 64K Gb/s",
		"WRITE 64 Mmsg/s", "SEND 8 p50 ns", "p99 ns");
	root = json_pack("{s:o,s:[ii]}", "together", row("together", &together), "hop_ns",
		(int)hop_ns[0], (int)hop_ns[1]);
	json_object_set_new(root, "apart", row("apart", &apart));
	check(!file || json_dump_file(root, file, JSON_INDENT(1)) == 0, "cannot write the file");
	json_decref(root);
	return 0;
}
