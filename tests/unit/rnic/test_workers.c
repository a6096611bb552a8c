/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive workers, one step after another: whose a frame is, what becomes of it there, who may have
 * which CQ, and what the owner does for a worker. With threads: test_workers_threads.c. */
#include <errno.h>

#include "tests/unit/rnic/workers.h"

enum { LEN = 1 << 16 };

static struct host host;
static uint8_t bytes[FRAME], payload[CHUNK];

static struct wire_ip group_ip(unsigned i)
{
	return wire_ip_from4(0xef810200u + i);
}

static void open_host(void)
{
	host_open(&host, 2, LEN);
	for (unsigned i = 0; i < CHUNK; i++)
		payload[i] = (uint8_t)(i * 7 + 1);
}

static bool taken_by(unsigned worker, struct rnic_rx_frame frame)
{
	return rnic_worker_rx(host.rnic, worker, 0, &frame, 1, 0);
}

static unsigned steer(struct rnic_rx_frame frame)
{
	return rnic_steer(host.rnic, 0, frame.data, frame.len);
}

static struct ibv_wc only_wc(struct rnic_cq *cq)
{
	struct ibv_wc wc[2];

	assert_int_equal(1, rnic_cq_poll(cq, 2, wc));
	return wc[0];
}

static void no_wc(struct rnic_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(0, rnic_cq_poll(cq, 1, &wc));
}

static struct rnic_rx_frame to_qp(const struct member *m, uint32_t number)
{
	return ud_frame(&host, bytes, NULL, rnic_qp_num(m->qp), number, payload, 100);
}

static struct rnic_rx_frame to_group(unsigned i, uint32_t number)
{
	const struct wire_ip group = group_ip(i);

	return ud_frame(&host, bytes, &group, 0, number, payload, 100);
}

static void attach(struct member *m, unsigned i)
{
	const struct wire_ip group = group_ip(i);

	assert_int_equal(0, rnic_qp_attach_mcast(m->qp, &group));
}

/* The frame in bytes, with a VLAN's tag. */
static struct rnic_rx_frame tagged(struct rnic_rx_frame f, uint8_t vid)
{
	const uint8_t tag[4] = {0x81, 0, 0, vid};

	memmove(bytes + 16, bytes + 12, f.len - 12);
	memcpy(bytes + 12, tag, sizeof(tag));
	f.len += sizeof(tag);
	return f;
}

/* ---- whose a frame is ---- */

static void test_steer(void **state)
{
	struct member one, two, more, owners;
	struct rnic_rx_frame f;
	struct wire_ip group = group_ip(1);

	(void)state;
	open_host();
	member_ud(&owners, &host, 0, NULL);
	assert_int_equal(0, steer(to_qp(&owners, 0)));
	member_ud(&one, &host, 1, NULL);
	member_ud(&two, &host, 2, NULL);
	member_ud(&more, &host, 1, one.cq);
	assert_int_equal(1, steer(to_qp(&one, 0)));
	assert_int_equal(2, steer(to_qp(&two, 0)));
	assert_int_equal(1, steer(to_qp(&more, 0)));
	assert_int_equal(0, steer(to_qp(&owners, 0)));
	f = ud_frame(&host, bytes, NULL, rnic_qp_num(two.qp) + 77, 0, payload, 100);
	assert_int_equal(0, steer(f));
	/* Groups: of one worker, of two, also of the owner. */
	assert_int_equal(0, steer(to_group(1, 0)));
	attach(&one, 1);
	assert_int_equal(1, steer(to_group(1, 0)));
	attach(&more, 1);
	assert_int_equal(1, steer(to_group(1, 0)));
	attach(&two, 1);
	assert_int_equal(0, steer(to_group(1, 0)));
	attach(&two, 2);
	assert_int_equal(2, steer(to_group(2, 0)));
	attach(&owners, 2);
	assert_int_equal(0, steer(to_group(2, 0)));
	assert_int_equal(0, rnic_qp_detach_mcast(two.qp, &group));
	assert_int_equal(1, steer(to_group(1, 0)));
	/* Of a VLAN, or to another host: not the device's, perhaps its network interface's. */
	assert_int_equal(1, steer(tagged(to_qp(&one, 0), 0)));
	assert_int_equal(0, steer(tagged(to_qp(&one, 0), 5)));
	assert_int_equal(0, steer(tagged(to_group(1, 0), 5)));
	f = to_qp(&one, 0);
	bytes[5] ^= 0x10;
	assert_int_equal(0, steer(f));
	/* What is no packet. */
	f = to_qp(&one, 0);
	for (uint32_t len = 0; len < f.len; len++)
		assert_int_equal(0, rnic_steer(host.rnic, 0, f.data, len));
	assert_int_equal(0, rnic_count(host.rnic, RNIC_C_RX_FRAMES));
	host_close(&host);
}

/* ---- what becomes of it ---- */

static void test_datagrams(void **state)
{
	struct member one, two;
	struct rnic_rx_frame f;
	struct ibv_wc wc;

	(void)state;
	open_host();
	member_ud(&one, &host, 1, NULL);
	member_ud(&two, &host, 2, NULL);
	attach(&two, 1);
	assert_int_equal(0, member_recv(&one, 11, 0, SLOT));
	assert_int_equal(0, member_recv(&two, 22, SLOT, SLOT));
	assert_true(taken_by(1, to_qp(&one, 5)));
	wc = only_wc(one.cq);
	assert_int_equal(IBV_WC_SUCCESS, wc.status);
	assert_int_equal(11, wc.wr_id);
	assert_int_equal(GRH + 100, wc.byte_len);
	assert_int_equal(5, be32toh(wc.imm_data));
	assert_int_equal(rnic_qp_num(one.qp), wc.qp_num);
	assert_memory_equal(payload, host.buf + GRH, 100);
	assert_true(taken_by(2, to_group(1, 6)));
	assert_int_equal(22, only_wc(two.cq).wr_id);
	assert_memory_equal(payload, host.buf + SLOT + GRH, 100);
	/* No receive; a bit flipped; and of others. */
	assert_true(taken_by(1, to_qp(&one, 7)));
	assert_int_equal(1, rnic_drop_count(host.rnic, RNIC_DROP_RNR));
	f = to_qp(&one, 7);
	bytes[80] ^= 1;
	assert_true(taken_by(1, f));
	assert_int_equal(1, rnic_drop_count(host.rnic, WIRE_ICRC_BAD));
	assert_int_equal(0, member_recv(&one, 12, 0, SLOT));
	assert_int_equal(0, member_recv(&two, 23, SLOT, SLOT));
	assert_true(taken_by(2, to_qp(&one, 8)));
	assert_true(taken_by(1, to_qp(&two, 8)));
	assert_int_equal(2, rnic_drop_count(host.rnic, RNIC_DROP_NO_QP));
	assert_true(taken_by(1, to_group(1, 9)));
	assert_int_equal(1, rnic_drop_count(host.rnic, RNIC_DROP_NOT_MINE));
	no_wc(one.cq);
	no_wc(two.cq);
	assert_int_equal(2, rnic_count(host.rnic, RNIC_C_RX_ACCEPTED));
	assert_int_equal(7, rnic_count(host.rnic, RNIC_C_RX_FRAMES));
	host_check_counters(&host);
	host_close(&host);
}

static void test_writes(void **state)
{
	const struct wire_ip group = group_ip(1);
	struct member m;

	(void)state;
	open_host();
	member_uc(&m, &host, 2, &group);
	assert_int_equal(0, member_window(&m, SLOT, 4 * CHUNK));
	assert_int_equal(0, member_recv(&m, 1, 0, 0));
	assert_int_equal(0, member_recv(&m, 2, 0, 0));
	assert_int_equal(2, steer(uc_frame(&host, bytes, &group, 3, payload)));
	assert_true(taken_by(2, uc_frame(&host, bytes, &group, 3, payload)));
	assert_int_equal(3, be32toh(only_wc(m.cq).imm_data));
	assert_memory_equal(payload, host.buf + SLOT + 3 * CHUNK, CHUNK);
	/* The window goes, and with it what is under way. */
	memset(host.buf, 0, LEN);
	assert_int_equal(0, rnic_qp_mcast_window(m.qp, NULL));
	assert_true(taken_by(2, uc_frame(&host, bytes, &group, 3, payload)));
	assert_int_equal(1, rnic_drop_count(host.rnic, RNIC_DROP_ACCESS));
	assert_int_equal(0, host.buf[SLOT + 3 * CHUNK]);
	host_check_counters(&host);
	host_close(&host);
}

/* Nobody has to steer: the owner takes anything, for all members of a group at once. */
static void test_owner_takes(void **state)
{
	struct member one, two, owners;
	struct rnic_rx_frame f;

	(void)state;
	open_host();
	member_ud(&one, &host, 1, NULL);
	member_ud(&two, &host, 2, NULL);
	member_ud(&owners, &host, 0, NULL);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(0, member_recv(&one, i, 0, SLOT));
		assert_int_equal(0, member_recv(&two, i, SLOT, SLOT));
		assert_int_equal(0, member_recv(&owners, i, 2 * SLOT, SLOT));
	}
	attach(&one, 1);
	attach(&two, 1);
	attach(&owners, 1);
	f = to_group(1, 0);
	assert_int_equal(0, rnic_rx(host.rnic, 0, f.data, f.len, 0));
	f = to_qp(&two, 1);
	rnic_rx_burst(host.rnic, 0, &f, 1, 0);
	assert_int_equal(0, only_wc(one.cq).wr_id);
	assert_int_equal(0, only_wc(owners.cq).wr_id);
	assert_int_equal(2, rnic_cq_poll(two.cq, 2, (struct ibv_wc[2]){0}));
	/* A worker brings nothing to members of others. */
	assert_true(taken_by(1, to_group(1, 2)));
	assert_int_equal(1, only_wc(one.cq).wr_id);
	no_wc(two.cq);
	no_wc(owners.cq);
	host_check_counters(&host);
	host_close(&host);
}

static unsigned asked, stood_back;

/* In the middle of what the owner does. */
static void ask_worker(void *arg, struct rnic_cq *cq)
{
	(void)arg, (void)cq;
	asked++;
	stood_back += !taken_by(2, (struct rnic_rx_frame){.data = bytes, .len = 120});
}

static void open_asking_host(void)
{
	struct rnic_config config;

	open_host();
	host_close(&host);
	config = host_config(&host, 2);
	config.events.cq_event = config.events.cq_error = ask_worker;
	assert_int_equal(0, rnic_create(&config, &host.rnic));
	assert_int_equal(0, rnic_pd_alloc(host.rnic, &host.pd));
	assert_int_equal(0, rnic_cq_create(host.rnic, 64, NULL, &host.scq));
	host.buf = calloc(1, LEN);
	assert_int_equal(0, rnic_mr_reg(host.pd, host.buf, LEN, (uintptr_t)host.buf,
				    IBV_ACCESS_LOCAL_WRITE, &host.mr));
	asked = stood_back = 0;
}

/* While the owner holds them, workers take nothing. */
static void test_stand_back(void **state)
{
	struct member one;
	struct rnic_rx_frame f;

	(void)state;
	open_asking_host();
	member_ud(&one, &host, 1, NULL);
	assert_int_equal(0, member_recv(&one, 1, 0, SLOT));
	rnic_cq_arm(one.cq, false);
	f = to_qp(&one, 0);
	assert_int_equal(0, rnic_rx(host.rnic, 0, f.data, f.len, 0));
	assert_int_equal(1, stood_back);
	assert_int_equal(1, rnic_count(host.rnic, RNIC_C_RX_FRAMES));
	assert_true(taken_by(2, f));
	assert_int_equal(2, rnic_count(host.rnic, RNIC_C_RX_FRAMES));
	host_close(&host);
}

/* In the group, the owner's; its CQ has room for one. */
static void narrow_member(struct member *m, unsigned group)
{
	assert_int_equal(0, rnic_cq_create(host.rnic, 1, NULL, &m->cq));
	member_ud(m, &host, 0, m->cq);
	attach(m, group);
	assert_int_equal(0, member_recv(m, 1, 0, SLOT));
	assert_int_equal(0, member_recv(m, 2, 0, SLOT));
}

/* A group without a worker's queue pair does not stop workers; what is to stop them stops them to
 * the end of the burst. */
static void test_other_groups(void **state)
{
	static uint8_t first[FRAME];
	const struct wire_ip pinned = group_ip(1), owners = group_ip(2);
	struct member one, narrow, other;
	struct rnic_rx_frame f[2];

	(void)state;
	open_asking_host();
	member_ud(&one, &host, 1, NULL);
	attach(&one, 1);
	narrow_member(&narrow, 2);
	f[0] = ud_frame(&host, first, &owners, 0, 0, payload, 100);
	f[1] = to_group(2, 1);
	rnic_rx_burst(host.rnic, 0, f, 2, 0);
	assert_int_equal(1, asked);
	assert_int_equal(0, stood_back);
	narrow_member(&other, 2);
	f[0] = ud_frame(&host, first, &pinned, 0, 0, payload, 100);
	rnic_rx_burst(host.rnic, 0, &f[1], 1, 0);
	rnic_rx_burst(host.rnic, 0, f, 2, 0);
	assert_int_equal(2, asked);
	assert_int_equal(1, stood_back);
	assert_true(taken_by(1, f[0]));
	host_close(&host);
}

/* ---- what is refused ---- */

static int try_make(struct member *m, const struct transport_ops *ops, enum ibv_qp_type type,
	unsigned worker, struct rnic_srq *srq)
{
	struct rnic_qp_init init = member_init(m, ops, type, worker);
	int err;

	init.srq = srq;
	err = rnic_qp_create(host.rnic, &init, &m->qp);
	return err;
}

static void test_refusals(void **state)
{
	struct rnic_config config = host_config(&host, RNIC_MAX_WORKERS + 1);
	struct ibv_srq_attr attr = {.max_wr = 4, .max_sge = 1};
	struct member m = {.host = &host}, one, owners;
	struct rnic_cq *scq;
	struct rnic_srq *srq;

	(void)state;
	assert_int_equal(-EINVAL, rnic_create(&config, &host.rnic));
	open_host();
	assert_int_equal(0, rnic_cq_create(host.rnic, 16, NULL, &m.cq));
	assert_int_equal(0, rnic_srq_create(host.pd, &attr, NULL, &srq));
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_UD, 3, NULL));
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_RC, 1, NULL));
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_UC, 1, NULL));
	assert_int_equal(-EINVAL, try_make(&m, &rnic_sr, IBV_QPT_RC, 1, NULL));
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_UD, 1, srq));
	scq = host.scq;
	host.scq = m.cq; /* one CQ for both */
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_UD, 1, NULL));
	host.scq = scq;
	/* A CQ is one worker's or the owner's. */
	member_ud(&one, &host, 1, NULL);
	member_ud(&owners, &host, 0, NULL);
	m.cq = one.cq;
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_UD, 2, NULL));
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_UD, 0, NULL));
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_RC, 0, NULL));
	m.cq = owners.cq;
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_UD, 1, NULL));
	host.scq = one.cq;
	assert_int_equal(-EINVAL, try_make(&m, NULL, IBV_QPT_UD, 0, NULL));
	host.scq = scq;
	/* Until the last one has gone. */
	assert_int_equal(0, rnic_qp_destroy(one.qp));
	m.cq = one.cq;
	assert_int_equal(0, try_make(&m, NULL, IBV_QPT_UD, 2, NULL));
	host_close(&host);
}

/* ---- what the owner does ---- */

static void owner_turn(void)
{
	struct rnic_frame frame;

	assert_true(rnic_has_work(host.rnic));
	while (rnic_tx(host.rnic, RNIC_ALL_PORTS, &frame, 0))
		;
	assert_false(rnic_has_work(host.rnic));
}

static enum ibv_qp_state state_of(const struct member *m)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	rnic_qp_query(m->qp, &attr, &init);
	return attr.qp_state;
}

/* Memory that is not registered: nothing more is taken, the rest is flushed at the owner's turn. */
static void test_bad_receive(void **state)
{
	struct ibv_sge sge = {0, SLOT, 0x12345678};
	struct rnic_frame frame;
	struct ibv_wc wc[3];
	struct member m;

	(void)state;
	open_host();
	member_ud(&m, &host, 1, NULL);
	while (rnic_tx(host.rnic, RNIC_ALL_PORTS, &frame, 0))
		;
	assert_int_equal(
		0, rnic_post_recv(
			   m.qp, &(struct ibv_recv_wr){.wr_id = 1, .sg_list = &sge, .num_sge = 1}));
	assert_int_equal(0, member_recv(&m, 2, 0, SLOT));
	assert_true(taken_by(1, to_qp(&m, 0)));
	assert_int_equal(1, rnic_drop_count(host.rnic, RNIC_DROP_ACCESS));
	assert_true(taken_by(1, to_qp(&m, 0)));
	assert_int_equal(1, rnic_drop_count(host.rnic, RNIC_DROP_QP_STATE));
	assert_int_equal(IBV_QPS_RTR, state_of(&m));
	assert_int_equal(1, rnic_cq_poll(m.cq, 3, wc));
	assert_int_equal(IBV_WC_LOC_PROT_ERR, wc[0].status);
	owner_turn();
	assert_int_equal(IBV_QPS_ERR, state_of(&m));
	assert_int_equal(1, rnic_cq_poll(m.cq, 3, wc));
	assert_int_equal(IBV_WC_WR_FLUSH_ERR, wc[0].status);
	assert_int_equal(2, wc[0].wr_id);
	assert_int_equal(0, atomic_load(&host.fatal));
	host_check_counters(&host);
	host_close(&host);
}

static void test_overrun(void **state)
{
	struct rnic_frame frame;
	struct member m, other;

	(void)state;
	open_host();
	m.host = &host;
	assert_int_equal(0, rnic_cq_create(host.rnic, 2, NULL, &m.cq));
	member_ud(&m, &host, 1, m.cq);
	member_ud(&other, &host, 1, NULL);
	while (rnic_tx(host.rnic, RNIC_ALL_PORTS, &frame, 0))
		;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(0, member_recv(&m, i, 0, SLOT));
		assert_true(taken_by(1, to_qp(&m, i)));
	}
	assert_int_equal(1, atomic_load(&host.cq_errors));
	assert_int_equal(0, atomic_load(&host.fatal));
	owner_turn();
	assert_int_equal(1, atomic_load(&host.fatal));
	assert_int_equal(IBV_QPS_ERR, state_of(&m));
	assert_int_equal(IBV_QPS_RTR, state_of(&other));
	assert_int_equal(2, rnic_cq_poll(m.cq, 3, (struct ibv_wc[3]){0}));
	assert_int_equal(-EOVERFLOW, rnic_cq_poll(m.cq, 3, (struct ibv_wc[3]){0}));
	host_check_counters(&host);
	host_close(&host);
}

/* The device's own datagram to a group comes back to its members, whoever's they are. */
static void test_own_datagram(void **state)
{
	const struct wire_ip group = group_ip(1);
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	struct member one, sender;
	struct rnic_frame frame;
	struct rnic_ah *ah;
	struct ibv_sge sge;

	(void)state;
	open_host();
	member_ud(&one, &host, 1, NULL);
	member_ud(&sender, &host, 0, NULL);
	attach(&one, 1);
	assert_int_equal(0, member_recv(&one, 3, SLOT, SLOT));
	assert_int_equal(0, rnic_qp_modify(sender.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN, 0));
	memcpy(attr.grh.dgid.raw, group.b, 16);
	assert_int_equal(0, rnic_ah_create(host.pd, &attr, 0, &ah));
	memcpy(host.buf, payload, 100);
	sge = (struct ibv_sge){(uintptr_t)host.buf, 100, rnic_mr_lkey(host.mr)};
	assert_int_equal(0,
		rnic_post_send(sender.qp, &(struct ibv_send_wr){.sg_list = &sge,
						  .num_sge = 1,
						  .opcode = IBV_WR_SEND,
						  .wr.ud = {(struct ibv_ah *)ah, 0xffffff, QKEY}}));
	while (rnic_tx(host.rnic, RNIC_ALL_PORTS, &frame, 0))
		;
	assert_int_equal(3, only_wc(one.cq).wr_id);
	assert_memory_equal(payload, host.buf + SLOT + GRH, 100);
	host_close(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steer),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_owner_takes),
		cmocka_unit_test(test_stand_back),
		cmocka_unit_test(test_other_groups),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bad_receive),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_own_datagram),
	};

	return cmocka_run_group_tests_name("rnic receive workers", tests, NULL, NULL);
}
