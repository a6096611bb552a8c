/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport that uses all ports of a device, one packet on each in turn. */
#include <string.h>

#include "lib/rnic/transport.h"
#include "tests/unit/rnic/net.h"

static struct net net;

enum { OPCODES = ROCE_SEL };

struct spray {
	unsigned to_send, acks; /* packets */
	unsigned next;          /* port */
	unsigned came[RNIC_MAX_PORTS];
	unsigned downs, ups;
};

static struct spray *spray_of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

static unsigned spray_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	(void)frame, (void)now;
	spray_of(qp)->came[port]++;
	if (pkt->opcode == (OPCODES | ROCE_SEND_ONLY)) {
		spray_of(qp)->acks++;
		qp_has_control(qp);
	}
	return 0;
}

static bool spray_frame(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint8_t opcode)
{
	struct wire_hdr hdr = {.opcode = OPCODES | opcode, .dqpn = qp->attr.dest_qp_num};
	const unsigned port = spray_of(qp)->next;
	struct rnic_path path;

	if (!(ports >> port & 1)) {
		transport_no_room(qp);
		return false;
	}
	path = path_by_port(&qp->path, qp->rnic, port);
	path.flow.src = qp->rnic->port[port].gid[1];
	path.flow.dst.b[14] = (uint8_t)port; /* 10.77.port.x, and MACs of net.c */
	path.flow.dmac[4] = (uint8_t)port;
	frame->n_iov = 0;
	frame_build(qp->rnic, &path, frame, &hdr, 0);
	spray_of(qp)->next = (port + 1) % qp->rnic->n_ports;
	return true;
}

static enum tx_control spray_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)now;
	if (spray_of(qp)->acks == 0 || !spray_frame(qp, ports, frame, ROCE_ACK))
		return CONTROL_NONE;
	return --spray_of(qp)->acks > 0 ? CONTROL_MORE : CONTROL_LAST;
}

static bool spray_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)now;
	if (spray_of(qp)->to_send == 0 || !spray_frame(qp, ports, frame, ROCE_SEND_ONLY))
		return false;
	spray_of(qp)->to_send--;
	return true;
}

static void spray_port(struct rnic_qp *qp, unsigned port, bool up, uint64_t now)
{
	(void)now;
	assert_int_equal(up, qp->rnic->up >> port & 1);
	spray_of(qp)->ups += up;
	spray_of(qp)->downs += !up;
	if (!up && spray_of(qp)->next == port)
		spray_of(qp)->next = (port + 1) % qp->rnic->n_ports;
}

/* The peer is where net.c puts it, but for the first port, which is asked for. */
static int spray_resolve(struct rnic_qp *qp, struct rnic_path *path, uint64_t now)
{
	return rnic_next_hop(qp->rnic, 0, &path->flow.dst, path->flow.dmac, now);
}

static void spray_timer(struct rnic_qp *qp, uint64_t now)
{
	(void)qp, (void)now;
}

static void spray_enter(
	struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now)
{
	(void)qp, (void)from, (void)to, (void)now;
}

static void spray_nothing(struct rnic_qp *qp)
{
	(void)qp;
}

static const struct transport_ops spray = {
	.name = "spray",
	.type = IBV_QPT_UC,
	.connected = true,
	.several_ports = true,
	.opcodes = OPCODES,
	.state_size = sizeof(struct spray),
	.transitions = uc_transitions,
	.enter = spray_enter,
	.fail = spray_nothing,
	.reset = spray_nothing,
	.resolve = spray_resolve,
	.rx = spray_rx,
	.tx_control = spray_control,
	.tx = spray_tx,
	.timer = spray_timer,
	.port = spray_port,
};

static void send_packets(struct rnic_qp *qp, unsigned n)
{
	spray_of(qp)->to_send += n;
	qp_ready(qp);
}

static void test_several(void **state)
{
	const struct net_options options = {.n_ports = 4, .type = IBV_QPT_UC, .transport = &spray};
	struct rnic_frame frame;
	struct spray *a, *b;
	struct rnic *rnic;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	rnic = net.end[0].rnic;
	a = spray_of(net.end[0].qp);
	b = spray_of(net.end[1].qp);
	send_packets(net.end[0].qp, 40);
	net_run(&net, FOREVER);
	for (unsigned p = 0; p < 4; p++) {
		assert_int_equal(10, b->came[p]);
		assert_int_equal(10, a->came[p]); /* ACKs */
	}
	/* It insists on a port that has no room: nothing else is asked of it, and all comes later.
	 */
	send_packets(net.end[0].qp, 8);
	assert_int_equal(0, a->next);
	for (unsigned p = 0; p < 3; p++)
		assert_true(rnic_tx(rnic, 0x7, &frame, net.now));
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t steps = rnic->sched_steps;

		assert_false(rnic_tx(rnic, 0x7, &frame, net.now));
		assert_true(rnic_has_work(rnic));
		assert_int_equal(i == 0, rnic->sched_steps - steps);
	}
	assert_true(rnic_tx(rnic, 0x8, &frame, net.now));
	assert_int_equal(3, frame.port);
	assert_false(rnic_tx(rnic, 0x8, &frame, net.now));
	/* The port that it waits for goes down: it is told, and takes another. */
	net_port_set(&net, 0, 0, false);
	assert_int_equal(1, a->downs);
	assert_false(rnic_tx(rnic, 0x9, &frame, net.now)); /* now it wants port 1 */
	net_port_set(&net, 0, 0, true);
	assert_int_equal(1, a->ups);
	while (rnic_tx(rnic, RNIC_ALL_PORTS, &frame, net.now))
		;
	assert_int_equal(0, a->to_send);
	assert_false(rnic_has_work(rnic));
	assert_int_equal(0, rnic_port_count(rnic, 0, RNIC_PORT_C_TX_LOST));
	net_close(&net);
}

/* Control packets insist, too. */
static void test_several_control(void **state)
{
	const struct net_options options = {.n_ports = 2, .type = IBV_QPT_UC, .transport = &spray};
	struct rnic_frame frame;
	struct rnic *rnic;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	rnic = net.end[1].rnic;
	send_packets(net.end[0].qp, 4);
	net.full[1] = 3;
	net_run(&net, net.now + MS);
	assert_int_equal(4, spray_of(net.end[1].qp)->acks);
	assert_false(rnic_tx(rnic, 2, &frame, net.now));
	assert_true(rnic_tx(rnic, 1, &frame, net.now));
	assert_false(rnic_tx(rnic, 1, &frame, net.now));
	assert_true(rnic_tx(rnic, 2, &frame, net.now));
	/* With nothing up, nothing is asked. */
	for (unsigned p = 0; p < 2; p++)
		net_port_set(&net, 1, p, false);
	assert_false(rnic_tx(rnic, 3, &frame, net.now));
	net_port_set(&net, 1, 1, true);
	spray_of(net.end[1].qp)->next = 1;
	assert_true(rnic_tx(rnic, 3, &frame, net.now));
	/* What is due when the queue pair goes leaves all the same. */
	net_port_set(&net, 1, 0, true);
	assert_int_equal(1, spray_of(net.end[1].qp)->acks);
	assert_int_equal(0, rnic_qp_destroy(net.end[1].qp));
	net.end[1].qp = NULL;
	assert_true(rnic_tx(rnic, 3, &frame, net.now));
	assert_int_equal(0, frame.port);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_several_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
