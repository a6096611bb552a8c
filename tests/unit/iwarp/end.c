/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/iwarp/end.h"

static void on_event(void *arg, struct rnic_qp *qp, enum ibv_event_type type)
{
	struct end *e = arg;

	(void)qp;
	assert_true(e->n_event < 8);
	e->event[e->n_event++] = type;
}

void end_open(struct end *e, unsigned index)
{
	struct rnic_config config = {.n_ports = 1, .max_qp = 64, .max_mr = 64, .seed = index + 7};

	memset(e, 0, sizeof(*e));
	memcpy(config.port[0].mac, (uint8_t[]){2, 0, 0, 0, 1, (uint8_t)index}, 6);
	config.port[0].ip[0] = wire_ip_from4(0x0a000101 + index);
	config.port[0].n_ip = 1;
	config.port[0].mtu = 1500;
	config.events.arg = e;
	config.events.qp_event = on_event;
	assert_int_equal(rnic_create(&config, &e->rnic), 0);
	assert_int_equal(rnic_pd_alloc(e->rnic, &e->pd), 0);
	assert_int_equal(rnic_pd_alloc(e->rnic, &e->other), 0);
	assert_int_equal(rnic_cq_create(e->rnic, 512, NULL, &e->scq), 0);
	assert_int_equal(rnic_cq_create(e->rnic, 512, NULL, &e->rcq), 0);
	e->memory = malloc(END_BYTES + 2 * END_GUARD);
	assert_non_null(e->memory);
	memset(e->memory, END_FILL, END_BYTES + 2 * END_GUARD);
	e->buf = e->memory + END_GUARD;
	assert_int_equal(
		rnic_mr_reg(e->pd, e->buf, END_BYTES, (uintptr_t)e->buf, END_ALL, &e->mr), 0);
}

void end_close(struct end *e)
{
	rnic_destroy(e->rnic);
	free(e->memory);
}

struct rnic_qp *end_qp(struct end *e, int access)
{
	struct rnic_qp_init init = {.type = IBV_QPT_RC,
		.pd = e->pd,
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4},
		.sq_sig_all = true,
		.srq = e->srq,
		.transport = &iwarp_transport};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)access};
	struct rnic_qp *qp;

	assert_int_equal(rnic_qp_create(e->rnic, &init, &qp), 0);
	assert_int_equal(
		rnic_qp_modify(qp, &attr,
			IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, 0),
		0);
	e->qp = qp;
	return qp;
}

static void ready(void *arg)
{
	((struct end *)arg)->readies++;
}

static void gone(void *arg)
{
	((struct end *)arg)->gones++;
}

void end_attach(struct end *e, const struct iwarp_attach *attach)
{
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct iwarp_attach a = *attach;

	a.ready = ready;
	a.gone = gone;
	a.arg = e;
	assert_int_equal(iwarp_attach(e->qp, &a), 0);
	assert_int_equal(rnic_qp_modify(e->qp, &attr, IBV_QP_STATE, 0), 0);
}

int end_post(struct end *e, enum ibv_wr_opcode opcode, uint64_t id, size_t addr, uint32_t len,
	const struct end *peer, size_t raddr, unsigned flags)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->buf + addr, .length = len, .lkey = rnic_mr_lkey(e->mr)};
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = flags,
		.imm_data = htobe32((uint32_t)id)};

	if (peer != NULL) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + raddr;
		wr.wr.rdma.rkey = rnic_mr_rkey(peer->mr);
	}
	return rnic_post_send(e->qp, &wr);
}

int end_recv(struct end *e, uint64_t id, size_t addr, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->buf + addr, .length = len, .lkey = rnic_mr_lkey(e->mr)};

	return rnic_post_recv(
		e->qp, &(struct ibv_recv_wr){.wr_id = id, .sg_list = &sge, .num_sge = 1});
}

struct ibv_wc end_wc(struct rnic_cq *cq)
{
	struct ibv_wc wc[2];

	assert_int_equal(rnic_cq_poll(cq, 1, wc), 1);
	return wc[0];
}

void end_no_wc(struct rnic_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(rnic_cq_poll(cq, 1, &wc), 0);
}

uint64_t end_count(const struct end *e, const char *counter)
{
	const char *name;
	uint64_t value;

	for (unsigned i = 0; (name = rnic_qp_counter(e->qp, i, &value)) != NULL; i++)
		if (strcmp(name, counter) == 0)
			return value;
	fail_msg("no counter %s", counter);
	return 0;
}

static uint8_t byte_of(size_t i, unsigned seed)
{
	return (uint8_t)(i * 131 + (i >> 8) * 7 + seed * 77 + 1);
}

void end_fill(struct end *e, size_t addr, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		e->buf[addr + i] = byte_of(i, seed);
}

void end_check(const struct end *e, size_t addr, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (e->buf[addr + i] != byte_of(i, seed))
			fail_msg("byte %zu of message %u", i, seed);
}

void end_untouched(const struct end *e, size_t from, size_t to)
{
	for (size_t i = 0; i < END_BYTES + 2 * END_GUARD; i++)
		if ((i < END_GUARD + from || i >= END_GUARD + to) && e->memory[i] != END_FILL)
			fail_msg("byte %zd was written", (ssize_t)i - END_GUARD);
}

void end_rnic_tx(struct end *e, uint64_t now)
{
	struct rnic_frame frame;

	while (rnic_tx(e->rnic, RNIC_ALL_PORTS, &frame, now))
		fail_msg("a frame of its own");
}
