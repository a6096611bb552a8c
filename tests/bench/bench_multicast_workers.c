/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive workers of a device that are saturated, as in section VI-C of multicast AllGather: a leaf
 * whose chunks are all there, each worker with a thread and a multicast tree for itself. For
 * multicast.py: bench-multicast-workers ud|uc WORKERS CHUNK-BYTES ROUNDS. A round is a whole
 * buffer, in new windows. Prints as JSON how long the shortest round took, and what the average one
 * took of the workers' CPUs. */
#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/rnic/uc_mcast.h"
#include "lib/wire/frame.h"
#include "lib/wire/multicast.h"

enum {
	BUFFER = 8 << 20,
	MAX_CHUNKS = 1 << 14, /* shorter chunks: a shorter buffer */
	HEADROOM = 128,
	BURST = 32,
	QKEY = 0x11111111,
	KEY = 0x5eed,
	SENDER = 77,
	NUMBERS = (1 << 24) - 1,
};
static const uint32_t ROOT = 0x0a4d0002, SELF = 0x0a4d0001, GROUP = 0xef810200;

struct lane {
	unsigned worker; /* from 1 */
	pthread_t thread;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct rnic_rx_frame *frames;
	unsigned n;
	uint64_t *bits, again;
	uint64_t began, ended; /* of the round, by the clock */
	uint64_t cpu_ns;       /* of all */
};

static bool uc;
static unsigned n_lanes, n_chunks, chunk_len, n_rounds;
static struct rnic *rnic;
static struct rnic_pd *pd;
static struct rnic_cq *send_cq;
static struct rnic_mr *mr;
static uint8_t *buffer;
static struct lane lanes[RNIC_MAX_WORKERS];
static pthread_barrier_t begin, end;

static void check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "bench-multicast-workers: %s\n", what);
		exit(1);
	}
}

static uint64_t now_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- the leaf ---- */

static void no_cq_event(void *arg, struct rnic_cq *cq)
{
	(void)arg, (void)cq;
}

static void no_qp_event(void *arg, struct rnic_qp *qp, enum ibv_event_type type)
{
	(void)arg, (void)qp, (void)type;
}

static void open_device(void)
{
	const struct rnic_config config = {.n_workers = n_lanes,
		.seed = 7,
		.port = {{.mac = {2, 0, 0, 0, 0, 1},
			.ip = {wire_ip_from4(SELF)},
			.n_ip = 1,
			.mtu = 4200}},
		.events = {
			.cq_event = no_cq_event, .cq_error = no_cq_event, .qp_event = no_qp_event}};

	check(rnic_create(&config, &rnic) == 0 && rnic_pd_alloc(rnic, &pd) == 0 &&
			rnic_cq_create(rnic, 64, NULL, &send_cq) == 0,
		"no device");
	check(posix_memalign((void **)&buffer, 4096, BUFFER) == 0, "no memory");
	memset(buffer, 0, BUFFER);
	check(rnic_mr_reg(pd, buffer, BUFFER, (uintptr_t)buffer,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr) == 0,
		"no region");
}

static void open_qp(struct lane *l, const struct wire_ip *group)
{
	struct rnic_qp_init init = {.type = uc ? IBV_QPT_UC : IBV_QPT_UD,
		.transport = uc ? &rnic_uc_mcast : NULL,
		.pd = pd,
		.send_cq = send_cq,
		.recv_cq = l->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.worker = l->worker};
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = 0xffffff,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}};

	memcpy(attr.ah_attr.grh.dgid.raw, group->b, 16);
	check(rnic_qp_create(rnic, &init, &l->qp) == 0 &&
			rnic_qp_modify(l->qp, &attr,
				to_init | (uc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY), 0) == 0,
		"no queue pair");
	attr.qp_state = IBV_QPS_RTR;
	check(rnic_qp_modify(l->qp, &attr,
		      uc ? IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN
			 : IBV_QP_STATE,
		      0) == 0 &&
			rnic_qp_attach_mcast(l->qp, group) == 0,
		"no group");
}

/* The root's chunk of that number, as it comes. */
static void make_frame(struct rnic_rx_frame *f, const struct wire_ip *group, uint32_t number)
{
	struct wire_flow flow = {.ttl = 64, .sport = 0xd00d, .smac = {2, 0, 0, 0, 0, 2}};
	struct wire_hdr hdr = {.opcode = ROCE_UD | ROCE_SEND_ONLY_IMM,
		.mig = true,
		.dqpn = 0xffffff,
		.sqpn = SENDER,
		.qkey = QKEY,
		.imm = number};
	const size_t cap = chunk_len + HEADROOM;
	uint8_t *bytes = malloc(cap), payload[4096];
	int n;

	check(bytes != NULL, "no memory");
	if (uc) {
		hdr.opcode = ROCE_UC | ROCE_WRITE_ONLY_IMM;
		hdr.va = (uint64_t)number * chunk_len;
		hdr.rkey = KEY;
		hdr.dmalen = chunk_len;
	}
	flow.src = wire_ip_from4(ROOT);
	flow.dst = *group;
	wire_multicast_mac(group, flow.dmac);
	for (unsigned i = 0; i < chunk_len; i++)
		payload[i] = (uint8_t)(number * 31 + i * 7 + 1);
	n = wire_build_frame(bytes, cap, &flow, &hdr, payload, chunk_len);
	check(n > 0, "no frame");
	*f = (struct rnic_rx_frame){.data = bytes, .len = (uint32_t)n};
}

static void open_lane(struct lane *l, unsigned index)
{
	const struct wire_ip group = wire_ip_from4(GROUP + index);

	l->worker = index + 1;
	check(rnic_cq_create(rnic, 64, NULL, &l->cq) == 0, "no completion queue");
	open_qp(l, &group);
	l->frames = calloc(n_chunks, sizeof(*l->frames));
	l->bits = calloc(n_chunks / 64 + 1, sizeof(*l->bits));
	check(l->frames && l->bits, "no memory");
	for (uint32_t i = index; i < n_chunks; i += n_lanes)
		make_frame(&l->frames[l->n++], &group, i);
}

static void open_window(struct lane *l)
{
	const struct rnic_mcast_writer root = {
		.ip = wire_ip_from4(ROOT), .qpn = SENDER, .len = (uint64_t)n_chunks * chunk_len};
	const struct rnic_mcast_window window = {.key = KEY,
		.lkey = rnic_mr_lkey(mr),
		.addr = (uintptr_t)buffer,
		.len = root.len,
		.chunk = chunk_len,
		.number_mask = NUMBERS,
		.writer = &root,
		.n_writers = 1,
		.marks = {.bit = l->bits, .n = n_chunks, .expect = l->n, .again = &l->again}};
	const struct ibv_recv_wr told = {.wr_id = 1};

	memset(l->bits, 0, (n_chunks / 64 + 1) * sizeof(*l->bits));
	check(rnic_qp_mcast_window(l->qp, &window) == 0 && rnic_post_recv(l->qp, &told) == 0,
		"no window");
}

/* ---- rounds ---- */

static void *work(void *arg)
{
	struct lane *l = arg;

	for (unsigned round = 0; round < n_rounds; round++) {
		uint64_t cpu;

		pthread_barrier_wait(&begin);
		l->began = now_of(CLOCK_MONOTONIC);
		cpu = now_of(CLOCK_THREAD_CPUTIME_ID);
		for (unsigned i = 0, n; i < l->n; i += n) {
			n = l->n - i < BURST ? l->n - i : BURST;
			while (!rnic_worker_rx(rnic, l->worker, 0, &l->frames[i], n, 0))
				;
		}
		l->cpu_ns += now_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
		l->ended = now_of(CLOCK_MONOTONIC);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

/* From who began first to who was ready last. */
static uint64_t round_ns(void)
{
	uint64_t began = UINT64_MAX, ended = 0;

	for (unsigned i = 0; i < n_lanes; i++) {
		began = lanes[i].began < began ? lanes[i].began : began;
		ended = lanes[i].ended > ended ? lanes[i].ended : ended;
	}
	return ended - began;
}

/* Each worker has told that all is there, once; the bytes are. */
static void check_round(void)
{
	struct ibv_wc wc[2];

	for (unsigned i = 0; i < n_lanes; i++)
		check(rnic_cq_poll(lanes[i].cq, 2, wc) == 1 && wc[0].status == IBV_WC_SUCCESS,
			"not all has come");
	for (uint32_t i = 0; i < n_chunks; i += 97)
		for (unsigned k = 0; k < chunk_len; k += 61)
			check(buffer[(size_t)i * chunk_len + k] == (uint8_t)(i * 31 + k * 7 + 1),
				"a byte is wrong");
}

int main(int argc, char **argv)
{
	uint64_t best = UINT64_MAX, cpu = 0;
	const char *usage = "ud|uc WORKERS CHUNK-BYTES ROUNDS";

	check(argc == 5, usage);
	uc = strcmp(argv[1], "uc") == 0;
	n_lanes = (unsigned)atoi(argv[2]);
	chunk_len = (unsigned)atoi(argv[3]);
	n_rounds = (unsigned)atoi(argv[4]);
	check(n_lanes >= 1 && n_lanes <= RNIC_MAX_WORKERS && chunk_len >= 4 && chunk_len <= 4096,
		usage);
	n_chunks = BUFFER / chunk_len < MAX_CHUNKS ? BUFFER / chunk_len : MAX_CHUNKS;
	open_device();
	pthread_barrier_init(&begin, NULL, n_lanes + 1);
	pthread_barrier_init(&end, NULL, n_lanes + 1);
	for (unsigned i = 0; i < n_lanes; i++)
		open_lane(&lanes[i], i);
	for (unsigned i = 0; i < n_lanes; i++)
		check(pthread_create(&lanes[i].thread, NULL, work, &lanes[i]) == 0, "no thread");
	for (unsigned round = 0; round < n_rounds; round++) {
		for (unsigned i = 0; i < n_lanes; i++)
			open_window(&lanes[i]);
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
		best = round_ns() < best ? round_ns() : best;
		check_round();
	}
	for (unsigned i = 0; i < n_lanes; i++) {
		pthread_join(lanes[i].thread, NULL);
		cpu += lanes[i].cpu_ns;
	}
	printf("{\"chunks\": %u, \"round_ns\": %llu, \"cpu_ns\": %llu}\n", n_chunks,
		(unsigned long long)best, (unsigned long long)(cpu / n_rounds));
	rnic_destroy(rnic);
	return 0;
}
