/* SPDX-License-Identifier: BSD-3-Clause */
/* rnic_soak COUNT [SEED]: COUNT messages (a few more, to end evenly) of all opcodes and mostly
 * small sizes between two devices on virtual time, over a link that loses, doubles, delays and
 * corrupts frames: RC by both ways of acknowledging, UC and UD, both ways. Every byte that arrives
 * is compared, and every frame accounted for: sent and doubled = lost + taken + dropped by a
 * reason; corrupted = dropped by parser or ICRC. What a message is follows from its number and the
 * seed alone. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/rnic.h"
#include "tests/integration/soak_link.h"
#include "tests/rc_steps.h"

enum {
	N_RC = 4, /* the last two with selective acknowledgement */
	FIRST_SEL = 2,
	UC = N_RC,
	UD,
	N_PAIRS,
	MTU = 1024,
	MAX_LEN = 6000,
	PATTERN = 1 << 16, /* where messages come from; long enough for the longest behind it */
	DEPTH = 32,        /* messages outstanding per flow */
	BATCH = 8,         /* the last of so many is signaled: a flow ends with one */
	RDEPTH = 64,       /* receives posted */
	SLOT = 6144,       /* room for a message, and for what must not be written behind it */
	GRH = 40,
	QKEY = 0x5eed,
	CANARY = 0xa5,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC,
};

/* What a message is. */
struct message {
	enum ibv_wr_opcode opcode;
	uint32_t len, off; /* of the pattern */
	uint32_t cut;      /* where its list is cut in two */
	bool signaled, inlined, fenced;
};

struct soak;

/* One direction of one pair of QPs. */
struct flow {
	struct soak *soak;
	unsigned pair;
	int from;                 /* the end that posts */
	struct rnic_qp *qp[2];    /* the poster's, the other's */
	uint64_t posted, done;    /* messages */
	uint64_t cell;            /* what the atomics have made of their cell when all are done */
	uint64_t orig[DEPTH];     /* what an atomic has to give */
	uint64_t want[DEPTH * 2]; /* messages that use up receives, in order (RC) */
	uint64_t n_want, received, n_recv;
	uint8_t *target, *sink, *inbox; /* of WRITEs, there; of READs, here; of SENDs, there */
};

struct end {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *scq, *rcq;
	struct rnic_mr *mr;
	struct rnic_ah *ah;
	uint8_t *mem; /* the pattern, then the flows' slots, then the atomics' cells */
	size_t len;
	struct rnic_qp *qp[N_PAIRS];
};

struct soak {
	uint64_t seed, count, next;
	struct link *link;
	struct end end[2];
	struct flow flow[2][N_PAIRS];
	uint64_t delivered[N_PAIRS]; /* receive completions */
	uint64_t messages[N_PAIRS];
};

static void check(const struct flow *flow, uint64_t id, bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "seed %" PRIu64 ", pair %u from end %d, message %" PRIu64 ": %s\n",
		flow->soak->seed, flow->pair, flow->from, id, what);
	exit(1);
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool takes_recv(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static struct message describe(const struct flow *flow, uint64_t id)
{
	static const enum ibv_wr_opcode rc[] = {IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint64_t r =
		mix(flow->soak->seed ^ mix(id * 64 + flow->pair * 2 + (unsigned)flow->from + 1));
	struct message m = {.opcode = rc[r % 10], .off = (uint32_t)(r >> 8) % PATTERN};
	uint32_t size = (uint32_t)(r >> 24), most = (r >> 4 & 15) < 13 ? 200 : MAX_LEN;

	if (flow->pair == UC)
		m.opcode = r & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE_WITH_IMM;
	if (flow->pair == UD)
		m.opcode = IBV_WR_SEND_WITH_IMM;
	if (flow->pair == UD && most > MTU)
		most = MTU;
	m.len = is_atomic(m.opcode) ? 8 : size % (most + 1);
	m.cut = m.len > 0 ? (uint32_t)(r >> 40) % m.len : 0;
	m.signaled = (r >> 56 & 3) == 0 || id % BATCH == BATCH - 1;
	m.inlined = (r >> 58 & 3) == 0 && m.len <= 64 && m.opcode != IBV_WR_RDMA_READ &&
		    !is_atomic(m.opcode);
	m.fenced = (r >> 60 & 7) == 0;
	return m;
}

/* ---- making it ---- */

static uint8_t *slot(uint8_t *area, uint64_t i)
{
	return area + i * SLOT;
}

static uint64_t *cell(const struct end *end, unsigned pair)
{
	return (uint64_t *)(void *)(end->mem + end->len - 8 * (N_PAIRS - pair));
}

static void open_end(struct soak *soak, int i)
{
	const size_t slots = (size_t)N_PAIRS * (2 * DEPTH + RDEPTH) * SLOT;
	struct end *end = &soak->end[i];
	struct rnic_config config = {.port[0].mac = {2, 0, 0, 0, 0, (uint8_t)(1 + i)},
		.port[0].n_ip = 1,
		.port[0].mtu = LINK_FRAME - 14,
		.seed = soak->seed + (uint64_t)i,
		.port[0].ip = {{{[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(1 + i)}}}};
	uint64_t random = soak->seed;
	bool ok = rnic_create(&config, &end->rnic) == 0 &&
		  rnic_pd_alloc(end->rnic, &end->pd) == 0 &&
		  rnic_cq_create(end->rnic, 1 << 12, end, &end->scq) == 0 &&
		  rnic_cq_create(end->rnic, 1 << 12, end, &end->rcq) == 0;

	end->len = PATTERN + MAX_LEN + slots + 8 * N_PAIRS;
	end->len = (end->len + 7) / 8 * 8;
	end->mem = malloc(end->len);
	ok = ok && end->mem != NULL &&
	     rnic_mr_reg(end->pd, end->mem, end->len, (uintptr_t)end->mem, ACCESS, &end->mr) == 0;
	if (!ok)
		exit(2);
	memset(end->mem, CANARY, end->len);
	for (size_t j = 0; j < PATTERN + MAX_LEN; j++)
		end->mem[j] = (uint8_t)mix(++random);
	memset(cell(end, 0), 0, 8 * N_PAIRS);
}

static enum ibv_qp_type type_of(unsigned pair)
{
	return pair == UD ? IBV_QPT_UD : pair == UC ? IBV_QPT_UC : IBV_QPT_RC;
}

static void make_qp(struct end *end, unsigned pair)
{
	struct rnic_qp_init init = {.type = type_of(pair),
		.pd = end->pd,
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.cap = {DEPTH, RDEPTH, 2, 3, 64},
		.transport = pair >= FIRST_SEL && pair < N_RC ? &rnic_sr : NULL,
		.user = (void *)(uintptr_t)pair};

	if (rnic_qp_create(end->rnic, &init, &end->qp[pair]) != 0)
		exit(2);
}

static void to_rts(struct soak *soak, int i, unsigned pair)
{
	static const int masks[3][3] = {{IBV_QP_ACCESS_FLAGS, RC_TO_RTR, RC_TO_RTS},
		{IBV_QP_ACCESS_FLAGS, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
			IBV_QP_SQ_PSN},
		{IBV_QP_QKEY, 0, IBV_QP_SQ_PSN}};
	const int *mask = masks[pair == UD ? 2 : pair == UC ? 1 : 0];
	struct rnic_qp *qp = soak->end[i].qp[pair];
	struct wire_ip ip;
	struct ibv_qp_attr attr = {.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = rnic_qp_num(soak->end[!i].qp[pair]),
		.qp_access_flags = ACCESS,
		.qkey = QKEY,
		/* Their PSNs wrap early on. */
		.rq_psn = 0xfffff0 - (uint32_t)!i,
		.sq_psn = 0xfffff0 - (uint32_t)i,
		.max_rd_atomic = (uint8_t)(1 + pair * 5),
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = 5,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}};
	int err = 0;

	rnic_gid(soak->end[!i].rnic, 0, 1, &ip);
	memcpy(attr.ah_attr.grh.dgid.raw, ip.b, 16);
	for (unsigned to = IBV_QPS_INIT; to <= IBV_QPS_RTS && err == 0; to++) {
		attr.qp_state = (enum ibv_qp_state)to;
		err = rnic_qp_modify(qp, &attr,
			IBV_QP_STATE | mask[to - IBV_QPS_INIT] |
				(to == IBV_QPS_INIT ? IBV_QP_PKEY_INDEX | IBV_QP_PORT : 0),
			0);
	}
	if (err == 0 && pair == UD)
		err = rnic_ah_create(soak->end[i].pd, &attr.ah_attr, 0, &soak->end[i].ah);
	if (err != 0)
		exit(2);
}

static void make_flow(struct soak *soak, int from, unsigned pair)
{
	struct flow *flow = &soak->flow[from][pair];
	const size_t stride = (size_t)(2 * DEPTH + RDEPTH) * SLOT;
	uint8_t *here = soak->end[from].mem + PATTERN + MAX_LEN + pair * stride;
	uint8_t *there = soak->end[!from].mem + PATTERN + MAX_LEN + pair * stride;

	*flow = (struct flow){.soak = soak,
		.pair = pair,
		.from = from,
		.qp = {soak->end[from].qp[pair], soak->end[!from].qp[pair]},
		.sink = here,
		.target = there + DEPTH * SLOT,
		.inbox = there + 2 * DEPTH * SLOT};
}

static void open_soak(struct soak *soak)
{
	for (int i = 0; i < 2; i++)
		open_end(soak, i);
	for (int i = 0; i < 2; i++) {
		struct wire_ip ip;
		uint8_t mac[6];

		rnic_gid(soak->end[!i].rnic, 0, 1, &ip);
		rnic_mac(soak->end[!i].rnic, 0, mac);
		rnic_neigh_add(soak->end[i].rnic, 0, &ip, mac);
		for (unsigned pair = 0; pair < N_PAIRS; pair++)
			make_qp(&soak->end[i], pair);
	}
	for (unsigned pair = 0; pair < N_PAIRS; pair++) {
		for (int i = 0; i < 2; i++) {
			to_rts(soak, i, pair);
			make_flow(soak, i, pair);
		}
	}
	soak->link = link_open(soak->end[0].rnic, soak->end[1].rnic, soak->seed);
}

static void close_soak(struct soak *soak)
{
	link_close(soak->link);
	for (int i = 0; i < 2; i++) {
		struct end *end = &soak->end[i];

		for (unsigned pair = 0; pair < N_PAIRS; pair++)
			rnic_qp_destroy(end->qp[pair]);
		rnic_ah_destroy(end->ah);
		if (rnic_mr_dereg(end->mr) != 0 || rnic_cq_destroy(end->scq) != 0 ||
			rnic_cq_destroy(end->rcq) != 0 || rnic_pd_free(end->pd) != 0)
			exit(2);
		rnic_destroy(end->rnic);
		free(end->mem);
	}
}

/* ---- posting ---- */

static int cut_list(struct ibv_sge *sge, uint8_t *base, uint32_t len, uint32_t cut, uint32_t key)
{
	sge[0] = (struct ibv_sge){(uintptr_t)base, cut, key};
	sge[1] = (struct ibv_sge){(uintptr_t)base + cut, len - cut, key};
	return 2;
}

/* Remote addresses, operands, and what has to come of them. */
static void aim(struct flow *flow, uint64_t id, const struct message *m, struct ibv_send_wr *wr)
{
	struct end *there = &flow->soak->end[!flow->from];
	uint32_t rkey = rnic_mr_rkey(there->mr);

	if (is_atomic(m->opcode)) {
		bool swap = m->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
		bool equal = m->off & 1;

		wr->wr.atomic.remote_addr = (uintptr_t)cell(there, flow->pair);
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = swap ? flow->cell + !equal : m->off;
		wr->wr.atomic.swap = mix(id);
		flow->orig[id % DEPTH] = flow->cell;
		if (swap && equal)
			flow->cell = mix(id);
		else if (!swap)
			flow->cell += m->off;
		return;
	}
	if (flow->pair == UD) {
		wr->wr.ud.ah = (struct ibv_ah *)flow->soak->end[flow->from].ah;
		wr->wr.ud.remote_qpn = rnic_qp_num(flow->qp[1]);
		wr->wr.ud.remote_qkey = QKEY;
		return;
	}
	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = m->opcode == IBV_WR_RDMA_READ
					  ? (uintptr_t)there->mem + m->off
					  : (uintptr_t)slot(flow->target, id % DEPTH);
}

static void post(struct flow *flow)
{
	uint64_t id = flow->posted++;
	struct message m = describe(flow, id);
	struct end *here = &flow->soak->end[flow->from];
	bool sink = m.opcode == IBV_WR_RDMA_READ || is_atomic(m.opcode);
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = sge,
		.opcode = m.opcode,
		.imm_data = htobe32((uint32_t)id),
		.send_flags = (m.signaled ? IBV_SEND_SIGNALED : 0u) |
			      (m.inlined ? IBV_SEND_INLINE : 0u) |
			      (m.fenced ? IBV_SEND_FENCE : 0u)};

	wr.num_sge = cut_list(sge, sink ? slot(flow->sink, id % DEPTH) : here->mem + m.off, m.len,
		m.cut, rnic_mr_lkey(here->mr));
	aim(flow, id, &m, &wr);
	if (takes_recv(m.opcode))
		flow->want[flow->n_want++ % (DEPTH * 2)] = id;
	check(flow, id, rnic_post_send(flow->qp[0], &wr) == 0, "cannot be posted");
	flow->soak->messages[flow->pair]++;
}

/* Receives run out now and then: RNR NAKs, and losses without a connection. */
static void post_recvs(struct flow *flow)
{
	while (flow->n_recv - flow->received < RDEPTH / 4) {
		struct end *there = &flow->soak->end[!flow->from];
		uint64_t i = flow->n_recv++;
		struct ibv_sge sge[2];
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = sge};

		wr.num_sge = cut_list(sge, slot(flow->inbox, i % RDEPTH), MAX_LEN + GRH,
			GRH + (uint32_t)(mix(i) % MAX_LEN), rnic_mr_lkey(there->mr));
		check(flow, i, rnic_post_recv(flow->qp[1], &wr) == 0, "receive not posted");
	}
}

/* Without a connection nothing holds a flow back: it goes as fast as the first connected one. */
static bool may_post(const struct soak *soak, const struct flow *flow)
{
	if (flow->posted - flow->done == DEPTH)
		return false;
	if (flow->posted % BATCH != 0)
		return true;
	return soak->next < soak->count &&
	       (flow->pair < N_RC || flow->posted < soak->flow[flow->from][0].posted);
}

static void post_all(struct soak *soak)
{
	for (unsigned i = 0; i < 2 * N_PAIRS; i++) {
		struct flow *flow = &soak->flow[i % 2][i / 2];

		if (flow->posted - flow->done <= DEPTH / 2) {
			for (; may_post(soak, flow); soak->next++)
				post(flow);
		}
		if (mix(soak->link->now + i) % 8 == 0)
			post_recvs(flow);
	}
}

/* ---- what arrived ---- */

static void compare(
	const struct flow *flow, uint64_t id, const uint8_t *at, const struct message *m)
{
	const uint8_t *want = flow->soak->end[0].mem + m->off; /* the same on both ends */

	check(flow, id, memcmp(at, want, m->len) == 0, "its bytes are wrong");
}

/* The sender was told of it, and of those before it that it did not ask for. */
static void sent(struct flow *flow, uint64_t id)
{
	for (; flow->done <= id; flow->done++) {
		struct message m = describe(flow, flow->done);
		uint64_t i = flow->done % DEPTH;

		if (type_of(flow->pair) != IBV_QPT_RC)
			continue;
		if (m.opcode == IBV_WR_RDMA_READ)
			compare(flow, flow->done, slot(flow->sink, i), &m);
		if (m.opcode == IBV_WR_RDMA_WRITE)
			compare(flow, flow->done, slot(flow->target, i), &m);
		if (is_atomic(m.opcode))
			check(flow, flow->done, memcmp(slot(flow->sink, i), &flow->orig[i], 8) == 0,
				"the atomic gave something else");
	}
}

static void arrived(struct flow *flow, const struct ibv_wc *wc)
{
	uint64_t i = flow->received++;
	bool imm = wc->wc_flags & IBV_WC_WITH_IMM, rc = type_of(flow->pair) == IBV_QPT_RC;
	/* Without a connection some are missing: it says itself which one it is. */
	uint64_t id = rc ? flow->want[i % (DEPTH * 2)] : be32toh(wc->imm_data);
	struct message m = describe(flow, id);
	bool send = m.opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
	uint32_t grh = flow->pair == UD ? GRH : 0;

	check(flow, id, wc->wr_id == i && (!rc || i < flow->n_want), "not the receive's turn");
	check(flow, id, imm == (m.opcode != IBV_WR_SEND), "has an immediate, or none");
	check(flow, id, !imm || be32toh(wc->imm_data) == (uint32_t)id, "another immediate");
	check(flow, id, wc->byte_len == m.len + grh, "another length");
	compare(flow, id,
		send ? slot(flow->inbox, i % RDEPTH) + grh : slot(flow->target, id % DEPTH), &m);
	flow->soak->delivered[flow->pair]++;
}

static struct flow *flow_of(struct soak *soak, int from, const struct ibv_wc *wc, int at)
{
	const struct rnic_qp *qp = rnic_qp_find(soak->end[at].rnic, wc->qp_num);
	struct flow *flow = &soak->flow[from][(uintptr_t)rnic_qp_user(qp)];

	if (wc->status != IBV_WC_SUCCESS)
		link_balance(soak->link, stderr); /* its drops say more than a flushed request */
	check(flow, wc->wr_id, wc->status == IBV_WC_SUCCESS, "completed with an error");
	return flow;
}

static void poll_receives(struct soak *soak, int at)
{
	struct ibv_wc wc;

	while (rnic_cq_poll(soak->end[at].rcq, 1, &wc) == 1)
		arrived(flow_of(soak, !at, &wc, at), &wc);
}

static void poll_sends(struct soak *soak)
{
	struct ibv_wc wc;

	for (int at = 0; at < 2; at++) {
		while (rnic_cq_poll(soak->end[at].scq, 1, &wc) == 1)
			sent(flow_of(soak, at, &wc, at), wc.wr_id);
	}
}

/* ---- the run ---- */

static bool finished(const struct soak *soak)
{
	for (unsigned i = 0; i < 2 * N_RC; i++) {
		const struct flow *flow = &soak->flow[i % 2][i / 2];

		if (flow->done < flow->posted || flow->received < flow->n_want)
			return false;
	}
	return soak->next >= soak->count && link_idle(soak->link);
}

static void on_frame(void *arg, int to)
{
	poll_receives(arg, to);
}

static void run(struct soak *soak)
{
	while (!finished(soak)) {
		post_all(soak);
		link_step(soak->link, on_frame, soak);
		poll_sends(soak);
	}
}

/* What lies behind each slot's message was never written. */
static void check_canaries(const struct soak *soak)
{
	for (unsigned i = 0; i < 2 * N_PAIRS; i++) {
		const struct flow *flow = &soak->flow[i % 2][i / 2];

		for (uint64_t j = 0; j < RDEPTH; j++)
			check(flow, j, slot(flow->inbox, j)[MAX_LEN + GRH] == CANARY, "inbox");
		for (uint64_t j = 0; j < DEPTH; j++)
			check(flow, j,
				slot(flow->target, j)[MAX_LEN] == CANARY &&
					slot(flow->sink, j)[MAX_LEN] == CANARY,
				"written behind a slot");
		check(flow, 0, *cell(&soak->end[!flow->from], flow->pair) == flow->cell,
			"the atomics' cell");
	}
}

int main(int argc, char **argv)
{
	static struct soak soak;
	uint64_t rc = 0;

	soak.count = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	soak.seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	if (soak.count == 0 || argc > 3) {
		fprintf(stderr, "usage: %s COUNT [SEED]\n", argv[0]);
		return 2;
	}
	open_soak(&soak);
	run(&soak);
	check_canaries(&soak);
	for (unsigned pair = 0; pair < N_RC; pair++)
		rc += soak.messages[pair];
	printf("%" PRIu64 " messages, seed %" PRIu64 ": RC %" PRIu64 ", all done; UC %" PRIu64
	       ", %" PRIu64 " arrived; UD %" PRIu64 ", %" PRIu64 " arrived\n",
		soak.next, soak.seed, rc, soak.messages[UC], soak.delivered[UC], soak.messages[UD],
		soak.delivered[UD]);
	if (!link_balance(soak.link, stdout))
		return 1;
	close_soak(&soak);
	return 0;
}
