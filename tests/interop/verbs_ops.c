/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation of libibverbs between two hosts, either of which may be the one that asks, or
 *both at once; all bytes, immediates, keys and completions are checked on both sides.
 *
 *	verbs_ops -l PORT | -c HOST:PORT [options] OPERATION...
 *
 * Both sides are given the same options and operations. OPERATION is one of
 *	send:N sendimm:N sendinv:N write:N writeimm:N read:N cas fadd
 * or, as the last, one that has to fail as it should:
 *	badwrite:N badread:N badcas (a wrong key)  farwrite:N (beyond the region)
 *	oddfadd (not aligned)  longsend:N (the receive is too short)  norecv:N (none is posted)
 * Options:
 *	-t rc|uc|ud  transport (rc)      -g N   index of the GID (1)
 *	-m MTU       path MTU (1024)     -p N   PSN of the listener, the connector's is 256 behind
 *	-a listener|connector|both       who asks (connector)
 *	-n N         rounds (1)          -1     one operation at a time
 *	-d MS        receives are posted that late: RNR NAKs
 * Exit status 0 when all was as it should be. */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { OPS_MAX = 32, AREA = 1 << 16, GRH = 40, QKEY = 0x11111111, WAIT_S = 60 };
enum { OUT, IN, SHARED, RECV, N_REGIONS };
enum { LISTENER = 1, CONNECTOR = 2 };

struct verb {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool uses_recv;
	enum ibv_wc_status status; /* what becomes of it */
};

static const struct verb verbs[] = {
	{"send", IBV_WR_SEND, true, IBV_WC_SUCCESS},
	{"sendimm", IBV_WR_SEND_WITH_IMM, true, IBV_WC_SUCCESS},
	{"sendinv", IBV_WR_SEND_WITH_INV, true, IBV_WC_SUCCESS},
	{"write", IBV_WR_RDMA_WRITE, false, IBV_WC_SUCCESS},
	{"writeimm", IBV_WR_RDMA_WRITE_WITH_IMM, true, IBV_WC_SUCCESS},
	{"read", IBV_WR_RDMA_READ, false, IBV_WC_SUCCESS},
	{"cas", IBV_WR_ATOMIC_CMP_AND_SWP, false, IBV_WC_SUCCESS},
	{"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD, false, IBV_WC_SUCCESS},
	{"badwrite", IBV_WR_RDMA_WRITE, false, IBV_WC_REM_ACCESS_ERR},
	{"badread", IBV_WR_RDMA_READ, false, IBV_WC_REM_ACCESS_ERR},
	{"badcas", IBV_WR_ATOMIC_CMP_AND_SWP, false, IBV_WC_REM_ACCESS_ERR},
	{"farwrite", IBV_WR_RDMA_WRITE, false, IBV_WC_REM_ACCESS_ERR},
	{"oddfadd", IBV_WR_ATOMIC_FETCH_AND_ADD, false, IBV_WC_REM_INV_REQ_ERR},
	{"longsend", IBV_WR_SEND, true, IBV_WC_REM_INV_REQ_ERR},
	{"norecv", IBV_WR_SEND, false, IBV_WC_RNR_RETRY_EXC_ERR},
};

struct op {
	const struct verb *verb;
	uint32_t len;
};

/* What the other side has to know; exchanged once, and windows' keys before every round. */
struct peer {
	uint32_t qpn, psn, rkey, soft_roce, window[OPS_MAX];
	uint64_t addr;
	union ibv_gid gid;
};

static struct {
	enum ibv_qp_type type;
	int gid, mtu, side, active, rounds, late_ms;
	bool one;
	uint32_t psn;
	const char *at;
	struct op op[OPS_MAX];
	unsigned n_ops;
} conf = {
	.type = IBV_QPT_RC, .gid = 1, .mtu = 1024, .active = CONNECTOR, .rounds = 1, .psn = 0x100};

static struct {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mw *mw[OPS_MAX];
	uint8_t *memory;
	struct peer here, there;
	int control, round;
	bool soft_roce; /* our own device is Linux's; docs/interop.md has its quirks */
	/* completions of a round */
	unsigned sent, received, n_recv;
	unsigned recv_op[OPS_MAX]; /* which operation the n-th receive is for */
	unsigned long long bytes, done;
} s;

static void __attribute__((format(printf, 1, 2), noreturn)) fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr,
		"verbs_ops, %s, round %d: ", conf.side == LISTENER ? "listener" : "connector",
		s.round);
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

static void check(bool ok, const char *what)
{
	if (!ok)
		fail("%s: %s", what, strerror(errno));
}

/* ---- contents ---- */

static uint8_t *area(unsigned region, unsigned i)
{
	return s.memory + (region * OPS_MAX + i) * (size_t)AREA;
}

static uint64_t remote(unsigned region, unsigned i)
{
	return s.there.addr + (region * OPS_MAX + i) * (uint64_t)AREA;
}

/* What side has in that region for operation i of this round; RECV and IN are the other's OUT. */
static uint8_t content(int side, unsigned region, unsigned i, uint32_t at)
{
	uint32_t x = (uint32_t)side * 0x9e3779b1u + region * 0x85ebca6bu + i * 0xc2b2ae35u +
		     (uint32_t)s.round * 0x27d4eb2fu + at * 0x165667b1u;

	return (uint8_t)((x ^ x >> 15) >> 3);
}

static void fill(unsigned region)
{
	for (unsigned i = 0; i < conf.n_ops; i++)
		for (uint32_t k = 0; k < AREA; k++)
			area(region, i)[k] = content(conf.side, region, i, k);
}

static uint64_t number(int side, unsigned i)
{
	uint64_t v = 0;

	for (uint32_t k = 0; k < sizeof(v); k++)
		((uint8_t *)&v)[k] = content(side, SHARED, i, k);
	return v;
}

/* n bytes of an area against what side had in that region, and nothing behind them. */
static void expect(
	unsigned region, unsigned i, uint32_t skip, uint32_t n, int side, unsigned theirs)
{
	const uint8_t *p = area(region, i) + skip;

	for (uint32_t k = 0; k < n; k++)
		if (p[k] != content(side, theirs, i, k))
			fail("operation %u, %s:%u: byte %u is 0x%02x, not 0x%02x", i,
				conf.op[i].verb->name, conf.op[i].len, k, p[k],
				content(side, theirs, i, k));
	s.bytes += n;
	for (uint32_t k = skip + n; k < AREA && region != OUT; k++)
		if (area(region, i)[k] != 0)
			fail("operation %u, %s:%u: byte %u behind it was written", i,
				conf.op[i].verb->name, conf.op[i].len, k - skip - n);
}

static bool asks(int side)
{
	return conf.active & side;
}

static int other(void)
{
	return LISTENER + CONNECTOR - conf.side;
}

/* ---- the way to the other side, over TCP ---- */

static int dial(const char *at)
{
	char host[256];
	const char *colon = strrchr(at, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET}, *a;
	int fd, one = 1, server;

	snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - at) : 0, at);
	hints.ai_flags = colon ? 0 : AI_PASSIVE;
	if (getaddrinfo(colon ? host : NULL, colon ? colon + 1 : at, &hints, &a) != 0)
		fail("%s: no such address", at);
	fd = socket(a->ai_family, SOCK_STREAM, 0);
	check(fd >= 0, "socket");
	if (colon) {
		for (int i = 0; connect(fd, a->ai_addr, a->ai_addrlen) != 0; i++) {
			check(i < WAIT_S * 10, at);
			usleep(100000);
			close(fd);
			fd = socket(a->ai_family, SOCK_STREAM, 0);
		}
		freeaddrinfo(a);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1) == 0, at);
	freeaddrinfo(a);
	server = fd;
	fd = accept(server, NULL, NULL);
	check(fd >= 0, "accept");
	close(server);
	return fd;
}

/* Both have come here; what each says of itself has arrived. */
static void meet(void)
{
	struct timeval limit = {.tv_sec = WAIT_S};

	setsockopt(s.control, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	check(write(s.control, &s.here, sizeof(s.here)) == (ssize_t)sizeof(s.here), "peer");
	errno = ECONNRESET;
	check(recv(s.control, &s.there, sizeof(s.there), MSG_WAITALL) == (ssize_t)sizeof(s.there),
		"the other side");
}

/* ---- objects ---- */

static enum ibv_mtu mtu_code(int mtu)
{
	for (enum ibv_mtu m = IBV_MTU_256; m <= IBV_MTU_4096; m++)
		if (128 << m == mtu)
			return m;
	fail("-m: MTU is 256, 512, 1024, 2048 or 4096");
}

static void create(struct ibv_context *c)
{
	enum {
		ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND
	};
	struct ibv_qp_init_attr init = {.qp_type = conf.type,
		.cap = {.max_send_wr = 2 * OPS_MAX,
			.max_recv_wr = OPS_MAX,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	s.memory = aligned_alloc(4096, (size_t)N_REGIONS * OPS_MAX * AREA);
	s.pd = ibv_alloc_pd(c);
	check(s.memory && s.pd, "ibv_alloc_pd");
	s.mr = ibv_reg_mr(s.pd, s.memory, (size_t)N_REGIONS * OPS_MAX * AREA, ACCESS);
	check(s.mr, "ibv_reg_mr");
	s.cq = ibv_create_cq(c, 4 * OPS_MAX, NULL, NULL, 0);
	check(s.cq, "ibv_create_cq");
	init.send_cq = init.recv_cq = s.cq;
	s.qp = ibv_create_qp(s.pd, &init);
	check(s.qp, "ibv_create_qp");
	for (unsigned i = 0; i < conf.n_ops; i++)
		if (conf.op[i].verb->opcode == IBV_WR_SEND_WITH_INV) {
			s.mw[i] = ibv_alloc_mw(s.pd, IBV_MW_TYPE_2);
			check(s.mw[i], "ibv_alloc_mw");
		}
	s.here = (struct peer){.qpn = s.qp->qp_num,
		.psn = (conf.psn + (conf.side == CONNECTOR ? 256 : 0)) & 0xffffff,
		.rkey = s.mr->rkey,
		.soft_roce = s.soft_roce,
		.addr = (uintptr_t)s.memory};
	check(ibv_query_gid(c, 1, conf.gid, &s.here.gid) == 0, "ibv_query_gid");
}

static void bring_up(void)
{
	bool ud = conf.type == IBV_QPT_UD, rc = conf.type == IBV_QPT_RC;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_ah_attr way = {.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = s.there.gid, .sgid_index = (uint8_t)conf.gid, .hop_limit = 64}};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	check(ibv_modify_qp(s.qp, &a, mask | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0,
		"INIT");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.dest_qp_num = s.there.qpn,
		.rq_psn = s.there.psn,
		.path_mtu = mtu_code(conf.mtu),
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = way};
	mask = IBV_QP_STATE;
	if (!ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (rc)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	check(ibv_modify_qp(s.qp, &a, mask) == 0, "RTR");
	if (ud)
		check((s.ah = ibv_create_ah(s.pd, &way)) != NULL, "ibv_create_ah");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.sq_psn = s.here.psn,
		.timeout = 16,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4};
	if (strcmp(conf.op[conf.n_ops - 1].verb->name, "norecv") == 0)
		a.rnr_retry = 2;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (rc)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	check(ibv_modify_qp(s.qp, &a, mask) == 0, "RTS");
}

/* ---- completions ---- */

static void take_receive(const struct ibv_wc *wc)
{
	unsigned n = s.received++, i;
	uint32_t grh = conf.type == IBV_QPT_UD ? GRH : 0;
	const struct op *op;
	bool imm;

	if (n >= s.n_recv)
		fail("one receive too many");
	i = s.recv_op[n];
	op = &conf.op[i];
	if (op->verb->status != IBV_WC_SUCCESS) {
		if (wc->status != (s.soft_roce ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR))
			fail("receive of %s: %s", op->verb->name, ibv_wc_status_str(wc->status));
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		fail("receive of %s:%u: %s", op->verb->name, op->len,
			ibv_wc_status_str(wc->status));
	if (wc->wr_id != n || wc->byte_len != op->len + grh)
		fail("receive of %s:%u: id %lu, %u bytes", op->verb->name, op->len,
			(unsigned long)wc->wr_id, wc->byte_len);
	imm = op->verb->opcode == IBV_WR_SEND_WITH_IMM ||
	      op->verb->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	if (imm != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
		(imm && ntohl(wc->imm_data) != ((uint32_t)s.round << 8 | i)))
		fail("%s: immediate 0x%x", op->verb->name, ntohl(wc->imm_data));
	if (op->verb->opcode == IBV_WR_SEND_WITH_INV &&
		(!(wc->wc_flags & (s.soft_roce ? IBV_WC_IP_CSUM_OK : IBV_WC_WITH_INV)) ||
			wc->invalidated_rkey != s.here.window[i]))
		fail("sendinv: flags %x, key 0x%x, not 0x%x", wc->wc_flags, wc->invalidated_rkey,
			s.here.window[i]);
	if (conf.type == IBV_QPT_UD && wc->src_qp != s.there.qpn)
		fail("from QP 0x%x", wc->src_qp);
	if (op->verb->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
		expect(RECV, i, grh, op->len, other(), OUT);
}

/* Soft-RoCE refuses what is longer than its receive with another NAK. */
static enum ibv_wc_status outcome(const struct op *op)
{
	return s.there.soft_roce && strcmp(op->verb->name, "longsend") == 0 ? IBV_WC_REM_OP_ERR
									    : op->verb->status;
}

enum { WINDOW_ID = 1000, SEND_ID = 2000 };

/* Ends when so many requests of ours and receives have completed. */
static void await(unsigned sent, unsigned received)
{
	struct timespec start, now;
	struct ibv_wc wc;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (s.sent < sent || s.received < received) {
		n = ibv_poll_cq(s.cq, 1, &wc);
		check(n >= 0, "ibv_poll_cq");
		if (n == 0) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			if (now.tv_sec - start.tv_sec > WAIT_S)
				fail("%u of %u requests and %u of %u receives are done after %d s",
					s.sent, sent, s.received, received, WAIT_S);
			usleep(200); /* the processor belongs to the kernel's RoCE */
			continue;
		}
		if (wc.wr_id < OPS_MAX) {
			take_receive(&wc);
			continue;
		}
		if (wc.wr_id < SEND_ID) { /* a window */
			if (wc.status != IBV_WC_SUCCESS)
				fail("binding a window: %s", ibv_wc_status_str(wc.status));
		} else if (wc.status != outcome(&conf.op[wc.wr_id - SEND_ID])) {
			fail("%s:%u: %s", conf.op[wc.wr_id - SEND_ID].verb->name,
				conf.op[wc.wr_id - SEND_ID].len, ibv_wc_status_str(wc.status));
		}
		s.sent++;
	}
}

/* ---- a round ---- */

static void post_receives(void)
{
	for (unsigned n = 0; n < s.n_recv; n++) {
		const struct op *op = &conf.op[s.recv_op[n]];
		struct ibv_sge sge = {(uintptr_t)area(RECV, s.recv_op[n]),
			op->verb->status ? op->len / 2 : AREA, s.mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

		check(ibv_post_recv(s.qp, &wr, &bad) == 0, "ibv_post_recv");
	}
}

/* A window for every operation that is to invalidate one. Its key goes with the next meeting. */
static void bind_windows(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < conf.n_ops && asks(other()); i++) {
		struct ibv_send_wr wr = {.wr_id = WINDOW_ID + i,
					   .opcode = IBV_WR_BIND_MW,
					   .send_flags = IBV_SEND_SIGNALED},
				   *bad;

		if (s.mw[i] == NULL)
			continue;
		wr.bind_mw.mw = s.mw[i];
		wr.bind_mw.rkey = ibv_inc_rkey(s.mw[i]->rkey);
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = s.mr,
			.addr = (uintptr_t)area(IN, i),
			.length = AREA,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
		check(ibv_post_send(s.qp, &wr, &bad) == 0, "ibv_post_send of a window");
		s.mw[i]->rkey = s.here.window[i] = wr.bind_mw.rkey;
		n++;
	}
	await(n, 0);
	s.sent = 0;
}

static void address(const struct op *op, unsigned i, struct ibv_send_wr *wr)
{
	bool wrong_key = strncmp(op->verb->name, "bad", 3) == 0;
	uint32_t rkey = s.there.rkey ^ (wrong_key ? 0x5500 : 0);

	switch (op->verb->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP: /* in every second round it is not equal */
		wr->wr.atomic.compare_add = number(other(), i) + (uint64_t)(s.round & 1);
		wr->wr.atomic.swap = number(conf.side, i);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.compare_add = number(conf.side, i);
		break;
	default:
		wr->wr.rdma.remote_addr =
			op->verb->opcode == IBV_WR_RDMA_READ ? remote(SHARED, i) : remote(IN, i);
		if (strcmp(op->verb->name, "farwrite") == 0)
			wr->wr.rdma.remote_addr = remote(N_REGIONS, 0) - op->len + 1;
		wr->wr.rdma.rkey = rkey;
		return;
	}
	wr->wr.atomic.remote_addr =
		remote(SHARED, i) + (strcmp(op->verb->name, "oddfadd") == 0 ? 4 : 0);
	wr->wr.atomic.rkey = rkey;
}

static void post(unsigned i)
{
	const struct op *op = &conf.op[i];
	struct ibv_sge sge = {(uintptr_t)area(OUT, i), op->len, s.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = SEND_ID + i,
				   .sg_list = &sge,
				   .num_sge = op->len ? 1 : 0,
				   .opcode = op->verb->opcode,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (wr.opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = s.there.window[i];
	else
		wr.imm_data = htonl((uint32_t)s.round << 8 | i);
	if (conf.type == IBV_QPT_UD) {
		wr.wr.ud.ah = s.ah;
		wr.wr.ud.remote_qpn = s.there.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		address(op, i, &wr);
	}
	check(ibv_post_send(s.qp, &wr, &bad) == 0, "ibv_post_send");
	s.done++;
}

/* What an atomic has fetched, or left behind. */
static void expect_number(unsigned region, unsigned i, uint64_t want)
{
	uint64_t got;

	memcpy(&got, area(region, i), sizeof(got));
	if (got != want)
		fail("operation %u, %s: 0x%016llx, not 0x%016llx", i, conf.op[i].verb->name,
			(unsigned long long)got, (unsigned long long)want);
}

/* The effects of the operation on our side: as the one who asked, and as the one asked. */
static void verify(unsigned i)
{
	const struct op *op = &conf.op[i];
	uint64_t mine = number(conf.side, i), theirs = number(other(), i);
	bool atomic = op->verb->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		      op->verb->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	bool write = op->verb->opcode == IBV_WR_RDMA_WRITE ||
		     op->verb->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (op->verb->status != IBV_WC_SUCCESS) { /* it must have done nothing */
		if (asks(other()) && write)
			expect(IN, i, 0, 0, other(), OUT);
		if (asks(other()) && atomic)
			expect_number(SHARED, i, mine);
		return;
	}
	if (asks(conf.side) && op->verb->opcode == IBV_WR_RDMA_READ)
		expect(OUT, i, 0, op->len, other(), SHARED);
	if (asks(conf.side) && atomic)
		expect_number(OUT, i, theirs);
	if (asks(other()) && write)
		expect(IN, i, 0, op->len, other(), OUT);
	if (asks(other()) && op->verb->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		expect_number(SHARED, i, mine + theirs);
	if (asks(other()) && op->verb->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		expect_number(SHARED, i, s.round & 1 ? mine : theirs);
}

static void one_round(void)
{
	fill(OUT);
	fill(SHARED);
	memset(area(IN, 0), 0, (size_t)OPS_MAX * AREA);
	memset(area(RECV, 0), 0, (size_t)OPS_MAX * AREA);
	s.sent = s.received = s.n_recv = 0;
	for (unsigned i = 0; i < conf.n_ops && asks(other()); i++)
		if (conf.op[i].verb->uses_recv)
			s.recv_op[s.n_recv++] = i;
	bind_windows();
	if (!conf.late_ms)
		post_receives();
	meet();
	if (conf.late_ms) {
		usleep((useconds_t)conf.late_ms * 1000);
		post_receives();
	}
	for (unsigned i = 0; i < conf.n_ops && asks(conf.side); i++) {
		post(i);
		if (conf.one)
			await(i + 1, 0);
	}
	await(asks(conf.side) ? conf.n_ops : 0, s.n_recv);
	meet();
	for (unsigned i = 0; i < conf.n_ops; i++)
		verify(i);
	meet();
}

/* ---- the command line ---- */

static void parse_op(const char *word)
{
	struct op *op = &conf.op[conf.n_ops];
	const char *colon = strchr(word, ':');
	size_t n = colon ? (size_t)(colon - word) : strlen(word);

	if (conf.n_ops == OPS_MAX)
		fail("more than %d operations", OPS_MAX);
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strncmp(verbs[i].name, word, n) == 0 && verbs[i].name[n] == 0)
			op->verb = &verbs[i];
	op->len = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 8;
	if (op->verb == NULL || op->len > AREA - GRH)
		fail("%s: no such operation, or more than %d bytes", word, AREA - GRH);
	if (conf.n_ops > 0 && op[-1].verb->status != IBV_WC_SUCCESS)
		fail("%s: only the last operation may be one that fails", op[-1].verb->name);
	conf.n_ops++;
}

static void parse(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "l:c:t:g:m:p:a:n:d:1")) != -1)
		switch (o) {
		case 'l':
		case 'c':
			conf.side = o == 'l' ? LISTENER : CONNECTOR, conf.at = optarg;
			break;
		case 't':
			conf.type = optarg[1] == 'd'   ? IBV_QPT_UD
				    : optarg[0] == 'u' ? IBV_QPT_UC
						       : IBV_QPT_RC;
			break;
		case 'g':
			conf.gid = atoi(optarg);
			break;
		case 'm':
			conf.mtu = atoi(optarg);
			break;
		case 'p':
			conf.psn = (uint32_t)strtoul(optarg, NULL, 0) & 0xffffff;
			break;
		case 'a':
			conf.active = *optarg == 'l'   ? LISTENER
				      : *optarg == 'c' ? CONNECTOR
						       : LISTENER | CONNECTOR;
			break;
		case 'n':
			conf.rounds = atoi(optarg);
			break;
		case 'd':
			conf.late_ms = atoi(optarg);
			break;
		case '1':
			conf.one = true;
			break;
		default:
			exit(2);
		}
	for (; optind < argc; optind++)
		parse_op(argv[optind]);
	if (conf.at == NULL || conf.n_ops == 0)
		fail("usage: verbs_ops -l PORT | -c HOST:PORT [options] OPERATION...");
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	struct ibv_context *c;

	parse(argc, argv);
	list = ibv_get_device_list(NULL);
	c = list && *list ? ibv_open_device(*list) : NULL;
	check(c, "ibv_open_device");
	s.soft_roce = strncmp(ibv_get_device_name(*list), "rxe", 3) == 0;
	create(c);
	s.control = dial(conf.at);
	meet();
	bring_up();
	meet();
	for (s.round = 0; s.round < conf.rounds; s.round++)
		one_round();
	printf("verbs_ops: %llu requests of ours, %llu bytes of both checked\n", s.done, s.bytes);
	ibv_close_device(c);
	ibv_free_device_list(list);
	return 0;
}
