/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device promises a transport that it does not know: here one that is made of counters.
 * Its packets are SENDs and ACKs of opcodes that no standard has. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/rnic/transport.h"
#include "tests/unit/rnic/net.h"

enum { OPCODES = ROCE_SEL, OWED = 20, ALARM = 777 };

struct state {
	uint64_t came, marked, fired; /* packets, of them CNPs; timer */
	uint64_t fired_at;
	unsigned owes, resets, fails;
	int set; /* attributes, since RESET */
	enum ibv_qp_state from, to;
};

static struct net net;

static struct state *of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

static int check(const struct rnic *rnic, const struct rnic_qp_init *init)
{
	(void)rnic;
	return init->cap.max_recv_wr == 1 ? -EPERM : 0;
}

static int check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	return (mask & IBV_QP_PATH_MTU) && attr->path_mtu == IBV_MTU_256 ? -ERANGE : 0;
}

static void set_attr(struct rnic_qp *qp, int mask)
{
	of(qp)->set |= mask;
}

static void query(const struct rnic_qp *qp, struct ibv_qp_attr *attr)
{
	attr->sq_psn = (uint32_t)of(qp)->came;
}

static void stats(const struct rnic_qp *qp, struct rnic_qp_stats *s)
{
	s->epsn = (uint32_t)of(qp)->came;
}

static void enter(struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now)
{
	(void)now;
	of(qp)->from = from;
	of(qp)->to = to;
}

static void fails(struct rnic_qp *qp)
{
	of(qp)->fails++;
}

static void reset(struct rnic_qp *qp)
{
	const unsigned resets = of(qp)->resets;

	*of(qp) = (struct state){.resets = resets + 1};
}

static unsigned rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	(void)port, (void)frame;
	of(qp)->came++;
	of(qp)->marked += pkt->opcode == ROCE_CNP;
	if ((pkt->opcode & ROCE_OP_MASK) != ROCE_SEND_ONLY)
		return 0;
	of(qp)->owes += OWED;
	qp_has_control(qp);
	transport_schedule(qp, now + ALARM);
	return 0;
}

static bool make(struct rnic_qp *qp, struct rnic_frame *frame, uint8_t opcode)
{
	struct wire_hdr hdr = {.opcode = OPCODES | opcode, .dqpn = qp->attr.dest_qp_num};

	frame->n_iov = 0;
	frame_build(qp->rnic, &qp->path, frame, &hdr, 0);
	return true;
}

static enum tx_control tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)ports, (void)now;
	if (of(qp)->owes == 0)
		return CONTROL_NONE;
	make(qp, frame, ROCE_ACK);
	return --of(qp)->owes > 0 ? CONTROL_MORE : CONTROL_LAST;
}

static bool tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)ports, (void)now;
	if (qp_state(qp) != IBV_QPS_RTS || ring_tail(&qp->sq) == ring_head(&qp->sq))
		return false;
	make(qp, frame, ROCE_SEND_ONLY);
	qp_complete_send(qp, IBV_WC_SUCCESS);
	return true;
}

static void timer(struct rnic_qp *qp, uint64_t now)
{
	of(qp)->fired++;
	of(qp)->fired_at = now;
}

static const struct transport_counter counters[] = {
	{"came", offsetof(struct state, came)},
	{"fired", offsetof(struct state, fired)},
	{NULL, 0},
};

static const struct transport_ops made = {
	.name = "made",
	.type = IBV_QPT_UC,
	.connected = true,
	.opcodes = OPCODES,
	.state_size = sizeof(struct state),
	.send_ops = 1 << IBV_WR_SEND,
	.transitions = uc_transitions,
	.counters = counters,
	.check = check,
	.check_attr = check_attr,
	.set_attr = set_attr,
	.query = query,
	.stats = stats,
	.enter = enter,
	.fail = fails,
	.reset = reset,
	.rx = rx,
	.tx_control = tx_control,
	.tx = tx,
	.timer = timer,
};

/* ---- with a codec of its own: four bytes behind the BTH that nobody else knows ---- */

enum { OWN_OPCODE = 0xc6 };

static unsigned own_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	(void)port, (void)now;
	of(qp)->came++;
	assert_int_equal(OWN_OPCODE, pkt->opcode);
	assert_int_equal(0x123456, pkt->psn);
	assert_true(pkt->ackreq);
	assert_int_equal(4 + 5 + 3, pkt->pay_len);
	assert_memory_equal("ownhbytes\0\0\0", frame + pkt->pay_off, pkt->pay_len);
	return 0;
}

static bool own_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	struct wire_hdr hdr = {.opcode = ROCE_SEND_MIDDLE,
		.ackreq = true,
		.dqpn = qp->attr.dest_qp_num,
		.psn = 0x123456};
	const size_t l3 = wire_l3_off(0);
	int n;

	(void)ports, (void)now;
	if (ring_tail(&qp->sq) == ring_head(&qp->sq))
		return false;
	n = wire_build_headers(frame->head, sizeof(frame->head), &qp->path.flow, &hdr, 4 + 5);
	assert_true(n > 12);
	frame->head[n - 12] = OWN_OPCODE;
	memcpy(frame->head + n, "ownh", 4);
	frame->iov[0].base = (const uint8_t *)"bytes";
	frame->iov[0].len = 5;
	frame->n_iov = 1;
	frame_finish_own(frame, &qp->path, l3, (size_t)n + 4, 5);
	qp_complete_send(qp, IBV_WC_SUCCESS);
	return true;
}

static void test_own_codec(void **state)
{
	struct transport_ops own = made;
	const struct net_options of_own = {.type = IBV_QPT_UC, .transport = &own};
	struct end *a = &net.end[0], *b = &net.end[1];
	struct rnic_frame frame;
	uint8_t bytes[256];
	int n;

	(void)state;
	own.opcodes = OWN_OPCODE & ~ROCE_OP_MASK;
	own.own_codec = true;
	own.rx = own_rx;
	own.tx = own_tx;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &of_own);
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 1, 0, 8, 0, 0));
	net_run(&net, net.now + MS);
	assert_int_equal(1, of(b->qp)->came);
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 1, 0, 8, 0, 0));
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	n = rnic_frame_flatten(&frame, bytes, sizeof(bytes));
	assert_true(n > 0);
	for (int i = n - 4 - 12 - 4; i < n; i++) { /* own header, payload, pad, ICRC */
		bytes[i] ^= 1;
		assert_int_equal(WIRE_ICRC_BAD, rnic_rx(b->rnic, 0, bytes, (size_t)n, net.now));
		bytes[i] ^= 1;
	}
	bytes[n - 4 - 12 - 12] ^= 0x60; /* to opcodes that nobody has */
	assert_int_equal(WIRE_BTH_OPCODE, rnic_rx(b->rnic, 0, bytes, (size_t)n, net.now));
	bytes[n - 4 - 12 - 12] ^= 0x60;
	assert_int_equal(0, rnic_rx(b->rnic, 0, bytes, (size_t)n, net.now));
	assert_int_equal(2, of(b->qp)->came);
	net_close(&net);
	/* Where no such transport is, they are unknown. */
	memset(&net, 0, sizeof(net));
	net_open(&net, &of_own);
	assert_int_equal(WIRE_BTH_OPCODE, rnic_rx(b->rnic, 0, bytes, (size_t)n, net.now));
	net_close(&net);
}

static const struct net_options options = {.type = IBV_QPT_UC, .transport = &made};

static void test_create(void **state)
{
	struct end *a = &net.end[0];
	struct rnic_qp *qp;
	struct rnic_qp_init init = {.type = IBV_QPT_RC, .transport = &made};

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &options);
	init.pd = a->pd;
	init.send_cq = a->scq;
	init.recv_cq = a->rcq;
	assert_int_equal(-EINVAL, rnic_qp_create(a->rnic, &init, &qp)); /* of another type */
	init.type = IBV_QPT_UC;
	init.cap.max_recv_wr = 1;
	assert_int_equal(-EPERM, rnic_qp_create(a->rnic, &init, &qp));
	init.cap.max_recv_wr = 2;
	assert_int_equal(0, rnic_qp_create(a->rnic, &init, &qp));
	assert_int_equal(0, (uintptr_t)of(qp) % 64);
	assert_int_equal(1, of(qp)->resets);
	assert_string_equal("made", rnic_qp_transport(qp));
	assert_int_equal(-EOPNOTSUPP, rnic_qp_refuse(qp));
	assert_int_equal(0, rnic_qp_destroy(qp));
	net_close(&net);
}

static void test_states(void **state)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct rnic_qp *qp;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	qp = net.end[0].qp;
	assert_int_equal(IBV_QPS_RTR, of(qp)->from);
	assert_int_equal(IBV_QPS_RTS, of(qp)->to);
	assert_true(of(qp)->set & IBV_QP_SQ_PSN && of(qp)->set & IBV_QP_DEST_QPN);
	of(qp)->came = 5;
	rnic_qp_query(qp, &attr, &init);
	assert_int_equal(5, attr.sq_psn);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, IBV_QP_STATE, net.now));
	assert_int_equal(1, of(qp)->fails);
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, IBV_QP_STATE, net.now));
	assert_int_equal(2, of(qp)->resets);
	attr = net_attr(&net, 0, 1, &options);
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, net_mask_init, net.now));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_256;
	assert_int_equal(-ERANGE, rnic_qp_modify(qp, &attr,
					  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
					  net.now));
	assert_int_equal(IBV_QPS_INIT, qp_state(qp));
	net_close(&net);
}

static void test_requests(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	uint64_t value;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	assert_int_equal(-EOPNOTSUPP, end_send(a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 1, 0, 8, 0, 0));
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	assert_int_equal(1, of(b->qp)->came);
	assert_int_equal(OWED, of(a->qp)->came);
	assert_string_equal("came", rnic_qp_counter(a->qp, 0, &value));
	assert_int_equal(OWED, value);
	assert_string_equal("fired", rnic_qp_counter(b->qp, 1, &value));
	assert_int_equal(1, value);
	assert_null(rnic_qp_counter(a->qp, 2, &value));
	net_packet(&net, 1, (struct wire_hdr){.opcode = ROCE_CNP, .becn = true},
		(uint8_t[ROCE_CNP_LEN]){0}, ROCE_CNP_LEN);
	assert_int_equal(1, of(b->qp)->marked);
	net_packet(&net, 1, (struct wire_hdr){.opcode = ROCE_UC | ROCE_SEND_ONLY}, "", 0);
	assert_int_equal(2, of(b->qp)->came); /* not that one */
	net_close(&net);
}

/* One deadline, in place of the one before, earlier or later; none when it has come. */
static void test_deadline(void **state)
{
	struct rnic *rnic;
	struct rnic_qp *qp;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	qp = net.end[0].qp;
	rnic = net.end[0].rnic;
	transport_schedule(qp, net.now + 500);
	transport_schedule(qp, net.now + 300);
	assert_true(rnic_deadline(rnic) <= net.now + 300);
	transport_schedule(qp, net.now + 700);
	rnic_timer(rnic, net.now + 699);
	assert_int_equal(0, of(qp)->fired);
	rnic_timer(rnic, net.now + 701);
	assert_int_equal(1, of(qp)->fired);
	assert_int_equal(net.now + 701, of(qp)->fired_at);
	rnic_timer(rnic, net.now + SEC);
	assert_int_equal(1, of(qp)->fired);
	transport_schedule(qp, net.now + 2 * SEC);
	transport_schedule(qp, UINT64_MAX);
	rnic_timer(rnic, net.now + 3 * SEC);
	assert_int_equal(1, of(qp)->fired);
	net_close(&net);
}

/* Two that have much to say take turns. */
static void test_fair(void **state)
{
	struct rnic *rnic;
	struct rnic_qp *qp[2];
	struct rnic_frame frame;
	unsigned n = 0;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	rnic = net.end[0].rnic;
	qp[0] = net.end[0].qp;
	qp[1] = net_make_qp(&net.end[0], &options);
	net_to_rts(&net, 0, qp[1], rnic_qp_num(net.end[1].qp), &options);
	for (int i = 0; i < 2; i++) {
		of(qp[i])->owes = QUANTUM + 4;
		qp_has_control(qp[i]);
	}
	for (; rnic_tx(rnic, RNIC_ALL_PORTS, &frame, net.now); n++)
		assert_int_equal(
			rnic_qp_num(qp[n < 2 * QUANTUM ? n / QUANTUM : (n - 2 * QUANTUM) / 4]),
			frame.qpn);
	assert_int_equal(2 * QUANTUM + 8, n);
	assert_false(rnic_has_work(rnic));
	/* What is owed leaves though the QP goes: not all of so much, but no frame is torn. */
	of(qp[1])->owes = 3;
	qp_has_control(qp[1]);
	assert_int_equal(0, rnic_qp_destroy(qp[1]));
	for (n = 0; rnic_tx(rnic, RNIC_ALL_PORTS, &frame, net.now); n++)
		assert_int_equal(0, frame.qpn);
	assert_int_equal(3, n);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_own_codec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
