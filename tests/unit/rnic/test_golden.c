/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of Linux Soft-RoCE (tests/data/pcaps/README.md) as the other side. The client's requests
 * given to a responder here must draw the answers that Soft-RoCE gave; the client's work requests
 * posted here must make the client's packets: byte for byte, but for IP ID and MigReq. QPs here
 * have the numbers they had there, so that the UDP source port is the same, too. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/rnic/net.h"

enum { CLIENT, SERVER, MAX_FRAMES = 128, BUF = 1 << 18 };

enum {
	ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC
};

struct capture {
	unsigned n;
	struct wire_pkt pkt[MAX_FRAMES];
	uint32_t len[MAX_FRAMES];
	uint8_t bytes[MAX_FRAMES][NET_FRAME];
};

static void load(struct capture *c, const char *name)
{
	char path[512];
	uint32_t head[6], record[4];
	FILE *file;

	snprintf(path, sizeof(path), "%s/pcaps/%s.pcap", TEST_DATA, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(6, fread(head, 4, 6, file));
	assert_int_equal(0xa1b2c3d4, head[0]);
	assert_int_equal(1, head[5]); /* Ethernet */
	for (c->n = 0; fread(record, 4, 4, file) == 4; c->n++) {
		assert_true(c->n < MAX_FRAMES && record[2] <= NET_FRAME);
		c->len[c->n] = record[2];
		assert_int_equal(record[2], fread(c->bytes[c->n], 1, record[2], file));
		assert_int_equal(WIRE_OK, wire_parse(c->bytes[c->n], record[2], &c->pkt[c->n]));
		assert_int_equal(WIRE_ROCE, c->pkt[c->n].kind);
	}
	fclose(file);
	assert_true(c->n > 0);
}

static int sender_of(const struct capture *c, unsigned i)
{
	return c->bytes[i][11] == 0x0a ? CLIENT : SERVER;
}

static bool supported(const struct wire_pkt *pkt)
{
	return (pkt->opcode & ~ROCE_OP_MASK) <= ROCE_UD;
}

static enum ibv_qp_type type_of(const struct capture *c)
{
	unsigned type = c->pkt[0].opcode & ~ROCE_OP_MASK;

	return type == ROCE_UC ? IBV_QPT_UC : type == ROCE_UD ? IBV_QPT_UD : IBV_QPT_RC;
}

/* ---- one device in the place of the client or the server ---- */

struct host {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *cq;
	struct rnic_qp *qp[80], *used;
	unsigned n_qp;
	struct rnic_ah *ah;          /* UD: to the server */
	struct rnic_mr *mr, *remote; /* of buf: at its address, at the captured one */
	uint8_t buf[BUF];
};

static int masks_of(enum ibv_qp_type type, int i)
{
	static const int uc[3] = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, IBV_QP_SQ_PSN};
	static const int ud[3] = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN};
	const int rc[3] = {net_mask_init, net_mask_rtr, net_mask_rts};

	return IBV_QP_STATE | (type == IBV_QPT_UC ? uc : type == IBV_QPT_UD ? ud : rc)[i];
}

static void host_open(struct host *h, const struct capture *c, int who, enum ibv_mtu mtu)
{
	struct rnic_config config = {.port[0].mac = {2, 0, 0, 0, 0, who == CLIENT ? 0x0a : 0x0b},
		.port[0].n_ip = 2,
		.port[0].mtu = NET_MTU,
		.max_qp = 60,
		.qpn_limit = 64};
	struct rnic_qp_init init = {
		.type = type_of(c), .cap = {64, 64, 1, 1, 0}, .sq_sig_all = true};
	uint32_t own = 0, peer = 0;
	unsigned request = 0;
	struct ibv_qp_attr attr = {.path_mtu = mtu,
		.qp_access_flags = ALL_ACCESS,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.port_num = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr.is_global = 1};
	const struct wire_pkt *pkt;

	memset(h, 0, sizeof(*h));
	while (!(c->pkt[request].flags & ROCE_F_REQUEST) || sender_of(c, request) != CLIENT)
		request++;
	pkt = &c->pkt[request];
	for (unsigned i = 0; i < c->n; i++)
		*(sender_of(c, i) == who ? &peer : &own) = c->pkt[i].dqpn;
	/* Where nothing was answered: both ends had the same number, a datagram says its sender's.
	 */
	if (own == 0)
		own = pkt->sqpn != 0 ? pkt->sqpn : peer;
	assert_int_equal(
		0, wire_ip_parse(who == CLIENT ? "10.77.0.1" : "10.77.0.2", &config.port[0].ip[0]));
	assert_int_equal(
		0, wire_ip_parse(who == CLIENT ? "fd77::1" : "fd77::2", &config.port[0].ip[1]));
	assert_int_equal(0, rnic_create(&config, &h->rnic));
	assert_int_equal(0, rnic_pd_alloc(h->rnic, &h->pd));
	assert_int_equal(0, rnic_cq_create(h->rnic, 256, NULL, &h->cq));
	init.pd = h->pd;
	init.send_cq = init.recv_cq = h->cq;
	assert_int_equal(0,
		rnic_mr_reg(h->pd, h->buf, BUF, (uintptr_t)h->buf, IBV_ACCESS_LOCAL_WRITE, &h->mr));
	do {
		assert_true(h->n_qp < 60);
		assert_int_equal(0, rnic_qp_create(h->rnic, &init, &h->qp[h->n_qp]));
		h->used = h->qp[h->n_qp++];
	} while (rnic_qp_num(h->used) != own);

	attr.dest_qp_num = peer;
	attr.rq_psn = attr.sq_psn = pkt->psn;
	attr.ah_attr.grh.sgid_index = pkt->ip_ver == 4 ? 1 : 2;
	attr.ah_attr.grh.traffic_class = pkt->tos;
	memcpy(attr.ah_attr.grh.dgid.raw, (who == CLIENT ? &pkt->dst : &pkt->src)->b, 16);
	assert_int_equal(0, rnic_neigh_add(h->rnic, 0, who == CLIENT ? &pkt->dst : &pkt->src,
				    c->bytes[request] + (who == CLIENT ? 0 : 6)));
	if (init.type == IBV_QPT_UD) {
		attr.ah_attr.port_num = 1;
		attr.qkey = pkt->qkey;
		assert_int_equal(0, rnic_ah_create(h->pd, &attr.ah_attr, 0, &h->ah));
	}
	for (int i = 0; i < 3; i++) {
		attr.qp_state = (enum ibv_qp_state)(IBV_QPS_INIT + i);
		assert_int_equal(0, rnic_qp_modify(h->used, &attr, masks_of(init.type, i), 0));
	}
}

static void host_close(struct host *h)
{
	for (unsigned i = 0; i < h->n_qp; i++)
		assert_int_equal(0, rnic_qp_destroy(h->qp[i]));
	if (h->ah != NULL)
		assert_int_equal(0, rnic_ah_destroy(h->ah));
	assert_int_equal(0, rnic_mr_dereg(h->mr));
	if (h->remote != NULL)
		assert_int_equal(0, rnic_mr_dereg(h->remote));
	assert_int_equal(0, rnic_cq_destroy(h->cq));
	assert_int_equal(0, rnic_pd_free(h->pd));
	rnic_destroy(h->rnic);
}

/* This frame must be the capture's i-th, when that has the IP ID and MigReq of this one. */
static void check_frame(const struct rnic_frame *frame, const struct capture *c, unsigned i)
{
	uint8_t want[NET_FRAME], got[NET_FRAME];
	const struct wire_pkt *pkt = &c->pkt[i];
	struct wire_flow flow;
	struct wire_hdr hdr, mine;
	struct wire_pkt parsed;
	int len = rnic_frame_flatten(frame, got, sizeof(got));

	assert_true(len > 0);
	assert_int_equal(WIRE_OK, wire_parse(got, (size_t)len, &parsed));
	wire_unbuild(got, &parsed, &flow, &mine);
	wire_unbuild(c->bytes[i], pkt, &flow, &hdr);
	hdr.ip_id = mine.ip_id;
	hdr.mig = true; /* Soft-RoCE leaves it 0; IBTA vol. 1, 17.2.8.1: 1 where paths do not
			   migrate */
	assert_int_equal(len, wire_build_frame(want, sizeof(want), &flow, &hdr,
				      c->bytes[i] + pkt->pay_off, pkt->pay_len));
	for (int j = 0; j < len; j++) {
		if (want[j] != got[j])
			fail_msg("frame %u (%s): byte %d is %#x, not %#x", i + 1,
				roce_opcode_name(pkt->opcode), j, got[j], want[j]);
	}
}

static void expect_none(struct host *h)
{
	struct rnic_frame frame;

	assert_false(rnic_tx(h->rnic, RNIC_ALL_PORTS, &frame, 0));
}

/* ---- as the server ---- */

static void post_recv(struct host *h)
{
	struct ibv_sge sge = {(uintptr_t)h->buf, 4200, rnic_mr_lkey(h->mr)};

	assert_int_equal(
		0, rnic_post_recv(h->used, &(struct ibv_recv_wr){.sg_list = &sge, .num_sge = 1}));
}

static void give_request(struct host *h, const struct capture *c, unsigned i, uint32_t rkey)
{
	uint8_t bytes[NET_FRAME];
	struct wire_flow flow;
	struct wire_hdr hdr;
	int len;

	wire_unbuild(c->bytes[i], &c->pkt[i], &flow, &hdr);
	hdr.rkey = hdr.rkey == rkey ? rnic_mr_rkey(h->remote) : hdr.rkey;
	len = wire_build_frame(bytes, sizeof(bytes), &flow, &hdr, c->bytes[i] + c->pkt[i].pay_off,
		c->pkt[i].pay_len);
	rnic_rx(h->rnic, 0, bytes, (size_t)len, 0);
}

/* What the READ or atomic found there, so that it is found here. */
static void set_memory(struct host *h, const struct capture *c, unsigned i, uint64_t base)
{
	const struct wire_pkt *asks = &c->pkt[i];
	uint8_t *to = h->buf + (asks->va - base);

	for (unsigned j = i + 1; j < c->n; j++) {
		const struct wire_pkt *pkt = &c->pkt[j];

		if (sender_of(c, j) == CLIENT || pkt->psn < asks->psn ||
			(pkt->flags & ROCE_F_REQUEST) || pkt->opcode == ROCE_ACK)
			continue;
		assert_in_range(to - h->buf, 0, BUF - 4096);
		if (pkt->opcode == ROCE_ATOMIC_ACK)
			memcpy(to, &pkt->atomic_orig, 8);
		memcpy(to, c->bytes[j] + pkt->pay_off, pkt->pay_len);
		to += pkt->pay_len;
		if (pkt->flags & ROCE_F_LAST || pkt->opcode == ROCE_ATOMIC_ACK)
			break;
	}
}

/* lost: index of a client's frame that was not delivered, or
 * -1. no_recv: the last of the client's frames only finds a receive. */
static void as_server(const char *name, enum ibv_mtu mtu, int lost, bool no_recv)
{
	static struct capture c;
	static struct host h;
	struct rnic_frame frame;
	uint64_t va = 0;
	uint32_t rkey = 0;
	unsigned last = 0, answers = 0, answer = 0;

	print_message("  %s\n", name);
	load(&c, name);
	host_open(&h, &c, SERVER, mtu);
	for (unsigned i = 0; i < c.n && supported(&c.pkt[i]); i++) {
		last = sender_of(&c, i) == CLIENT ? i : last;
		if (!(c.pkt[i].flags & (ROCE_F_RETH | ROCE_F_ATOMIC)))
			continue;
		if (rkey == 0 || c.pkt[i].va < va)
			va = c.pkt[i].va & ~UINT64_C(0xffff);
		rkey = rkey == 0 ? c.pkt[i].rkey : rkey;
	}
	assert_int_equal(0, rnic_mr_reg(h.pd, h.buf, BUF, va, ALL_ACCESS, &h.remote));
	/* Each answer right behind its request: Soft-RoCE's may come one frame later in the file.
	 */
	for (unsigned i = 0; i < c.n && supported(&c.pkt[i]); i++) {
		if (sender_of(&c, i) == SERVER || (int)i == lost)
			continue;
		if (!no_recv || i == last)
			post_recv(&h);
		if (!(c.pkt[i].flags & (ROCE_F_SEND | ROCE_F_WRITE)))
			set_memory(&h, &c, i, va);
		give_request(&h, &c, i, rkey);
		while (rnic_tx(h.rnic, RNIC_ALL_PORTS, &frame, 0)) {
			do {
				assert_true(++answer < c.n);
			} while (sender_of(&c, answer) == CLIENT);
			check_frame(&frame, &c, answer);
			answers++;
		}
	}
	while (++answer < c.n && supported(&c.pkt[answer]))
		assert_int_equal(CLIENT, sender_of(&c, answer));
	expect_none(&h);
	assert_true(answers > 0);
	host_close(&h);
}

static void test_server(void **state)
{
	(void)state;
	as_server("rc-ipv4", IBV_MTU_1024, -1, false);
	as_server("rc-ipv6", IBV_MTU_1024, -1, false);
	as_server("rc-pad", IBV_MTU_1024, -1, false);
	as_server("rc-mtu4096", IBV_MTU_4096, -1, false);
	as_server("rc-psn-wrap", IBV_MTU_1024, -1, false);
	as_server("rc-window", IBV_MTU_1024, -1, false);
	as_server("rc-ect0", IBV_MTU_1024, -1, false);
	as_server("rc-lost-write", IBV_MTU_1024, 1, false);
	as_server("rc-lost-last", IBV_MTU_1024, 1, false);
	as_server("rc-lost-ack", IBV_MTU_1024, -1, false);
	as_server("rc-rnr", IBV_MTU_1024, -1, true);
	as_server("rc-bad-rkey", IBV_MTU_1024, -1, false);
}

/* ---- as the client ---- */

/* Posts the work request that the capture's message from frame i on was made of. */
static void post_message(struct host *h, const struct capture *c, unsigned i)
{
	struct ibv_send_wr wr = {.num_sge = 1};
	struct ibv_sge sge = {(uintptr_t)h->buf, 0, 0};
	const struct wire_pkt *pkt = &c->pkt[i];

	wr.sg_list = &sge;
	wr.opcode = pkt->flags & ROCE_F_SEND    ? IBV_WR_SEND
		    : pkt->flags & ROCE_F_WRITE ? IBV_WR_RDMA_WRITE
						: IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = pkt->va;
	wr.wr.rdma.rkey = pkt->rkey;
	if (h->ah != NULL) {
		wr.wr.ud.ah = (struct ibv_ah *)h->ah;
		wr.wr.ud.remote_qpn = pkt->dqpn;
		wr.wr.ud.remote_qkey = pkt->qkey;
	}
	if (pkt->opcode == ROCE_READ_REQUEST)
		sge.length = pkt->dmalen;
	if (pkt->flags & ROCE_F_ATOMIC) {
		bool add = pkt->opcode == ROCE_FETCH_ADD;

		wr.opcode = add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.remote_addr = pkt->va;
		wr.wr.atomic.rkey = pkt->rkey;
		wr.wr.atomic.compare_add = add ? pkt->swap_add : pkt->compare;
		wr.wr.atomic.swap = pkt->swap_add;
		sge.length = 8;
	}
	for (;; pkt = &c->pkt[++i]) {
		if (sender_of(c, i) == SERVER)
			continue;
		memcpy(h->buf + sge.length, c->bytes[i] + pkt->pay_off, pkt->pay_len);
		sge.length += pkt->pay_len;
		if (pkt->flags & ROCE_F_LAST)
			break;
	}
	if (pkt->flags & ROCE_F_IMM) {
		wr.opcode = wr.opcode == IBV_WR_SEND ? IBV_WR_SEND_WITH_IMM
						     : IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htobe32(pkt->imm);
	}
	sge.lkey = rnic_mr_lkey(h->mr);
	assert_int_equal(0, rnic_post_send(h->used, &wr));
}

/* What the response brought is where it belongs. */
static void check_memory(const struct host *h, const struct capture *c, unsigned i, size_t *at)
{
	const struct wire_pkt *pkt = &c->pkt[i];

	if (pkt->opcode == ROCE_ATOMIC_ACK)
		assert_memory_equal(h->buf, &pkt->atomic_orig, 8);
	if (pkt->pay_len == 0)
		return;
	assert_memory_equal(h->buf + *at, c->bytes[i] + pkt->pay_off, pkt->pay_len);
	*at = pkt->flags & ROCE_F_LAST ? 0 : *at + pkt->pay_len;
}

static void as_client(const char *name, enum ibv_mtu mtu, unsigned lost)
{
	static struct capture c;
	static struct host h;
	struct rnic_frame frame;
	unsigned posted = 0, completed = 0;
	struct ibv_wc wc;
	size_t at = 0;

	print_message("  %s\n", name);
	load(&c, name);
	host_open(&h, &c, CLIENT, mtu);
	for (unsigned i = 0; i < c.n && supported(&c.pkt[i]); i++) {
		if (sender_of(&c, i) == SERVER) {
			if (lost == 0 || i < lost || i > lost + 2) {
				rnic_rx(h.rnic, 0, c.bytes[i], c.len[i], 0);
				check_memory(&h, &c, i, &at);
			} else if (i > lost) {
				/* Behind the lost one: of no use. */
				rnic_rx(h.rnic, 0, c.bytes[i], c.len[i], 0);
			}
			continue;
		}
		if (lost == 0 || i < lost) {
			if (c.pkt[i].flags & ROCE_F_FIRST) {
				post_message(&h, &c, i);
				posted++;
			}
		}
		assert_true(rnic_tx(h.rnic, RNIC_ALL_PORTS, &frame, 0));
		check_frame(&frame, &c, i);
	}
	expect_none(&h);
	while (rnic_cq_poll(h.cq, 1, &wc) == 1) {
		assert_int_equal(IBV_WC_SUCCESS, wc.status);
		completed++;
	}
	assert_int_equal(posted, completed);
	assert_true(posted > (lost == 0));
	host_close(&h);
}

static void test_client(void **state)
{
	(void)state;
	as_client("rc-ipv4", IBV_MTU_1024, 0);
	as_client("rc-ipv6", IBV_MTU_1024, 0);
	as_client("rc-pad", IBV_MTU_1024, 0);
	as_client("rc-mtu4096", IBV_MTU_4096, 0);
	as_client("rc-psn-wrap", IBV_MTU_1024, 0);
	as_client("rc-window", IBV_MTU_1024, 0);
	as_client("rc-ect0", IBV_MTU_1024, 0);
	as_client("uc-ipv4", IBV_MTU_1024, 0);
	as_client("ud-ipv4", IBV_MTU_1024, 0);
	as_client("ud-ipv6", IBV_MTU_1024, 0);
	as_client("rc-lost-read-response", IBV_MTU_1024, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
