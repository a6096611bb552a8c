/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair's state machine: every transition with every set of attributes that matters,
 * values, what each state does with posts, flushing, draining, forgetting. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/rnic/net.h"

enum { P = 0x100, ACK = 0x1f };

static const struct net_options base = {.psn = {P, 0x200}};

/* One letter per attribute. */
static const struct {
	char letter;
	int bit;
} letters[] = {{'c', IBV_QP_CUR_STATE}, {'n', IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{'a', IBV_QP_ACCESS_FLAGS}, {'k', IBV_QP_PKEY_INDEX}, {'p', IBV_QP_PORT},
	{'q', IBV_QP_QKEY}, {'v', IBV_QP_AV}, {'m', IBV_QP_PATH_MTU}, {'t', IBV_QP_TIMEOUT},
	{'r', IBV_QP_RETRY_CNT}, {'R', IBV_QP_RNR_RETRY}, {'e', IBV_QP_RQ_PSN},
	{'x', IBV_QP_MAX_QP_RD_ATOMIC}, {'A', IBV_QP_ALT_PATH}, {'i', IBV_QP_MIN_RNR_TIMER},
	{'s', IBV_QP_SQ_PSN}, {'X', IBV_QP_MAX_DEST_RD_ATOMIC}, {'M', IBV_QP_PATH_MIG_STATE},
	{'C', IBV_QP_CAP}, {'d', IBV_QP_DEST_QPN}, {'l', IBV_QP_RATE_LIMIT}};
enum { N_LETTERS = sizeof(letters) / sizeof(letters[0]) };

static const char *const state_names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

/* IBTA vol. 1, table 91 and the text around it, for RC: from, to, required, optional. */
static const struct {
	int from, to;
	const char *required, *optional;
} table[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, "kpa", ""},
	{IBV_QPS_INIT, IBV_QPS_INIT, "", "kpa"},
	{IBV_QPS_INIT, IBV_QPS_RTR, "vmdeXi", "Aak"},
	{IBV_QPS_RTR, IBV_QPS_RTS, "trRsx", "caiAM"},
	{IBV_QPS_RTS, IBV_QPS_RTS, "", "caiAM"},
	{IBV_QPS_RTS, IBV_QPS_SQD, "", "n"},
	{IBV_QPS_SQD, IBV_QPS_SQD, "", "pvtrRxXAakiM"},
	{IBV_QPS_SQD, IBV_QPS_RTS, "", "caiAM"},
	{IBV_QPS_RESET, IBV_QPS_RESET, "", ""},
	{IBV_QPS_INIT, IBV_QPS_RESET, "", ""},
	{IBV_QPS_RTR, IBV_QPS_RESET, "", ""},
	{IBV_QPS_RTS, IBV_QPS_RESET, "", ""},
	{IBV_QPS_SQD, IBV_QPS_RESET, "", ""},
	{IBV_QPS_ERR, IBV_QPS_RESET, "", ""},
	{IBV_QPS_RESET, IBV_QPS_ERR, "", ""},
	{IBV_QPS_INIT, IBV_QPS_ERR, "", ""},
	{IBV_QPS_RTR, IBV_QPS_ERR, "", ""},
	{IBV_QPS_RTS, IBV_QPS_ERR, "", ""},
	{IBV_QPS_SQD, IBV_QPS_ERR, "", ""},
	{IBV_QPS_ERR, IBV_QPS_ERR, "", ""},
};

static int mask_of(const char *text)
{
	int mask = 0;

	for (; *text != '\0'; text++) {
		for (unsigned i = 0; i < N_LETTERS; i++)
			mask |= letters[i].letter == *text ? letters[i].bit : 0;
	}
	return mask;
}

static enum ibv_qp_state state_of(const struct rnic_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	rnic_qp_query(qp, &attr, &init);
	return attr.qp_state;
}

static int modify(struct net *net, struct rnic_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = net_attr(net, 0, 0x11, &base);

	attr.qp_state = to;
	attr.cur_qp_state = state_of(qp);
	attr.path_mig_state = IBV_MIG_MIGRATED;
	return rnic_qp_modify(qp, &attr, mask | IBV_QP_STATE, net->now);
}

/* Brings a QP from anywhere to a state by the shortest way. */
static void bring(struct net *net, struct rnic_qp *qp, enum ibv_qp_state to)
{
	assert_int_equal(0, modify(net, qp, IBV_QPS_RESET, 0));
	if (to == IBV_QPS_ERR)
		assert_int_equal(0, modify(net, qp, IBV_QPS_ERR, 0));
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return;
	assert_int_equal(0, modify(net, qp, IBV_QPS_INIT, net_mask_init));
	if (to >= IBV_QPS_RTR)
		assert_int_equal(0, modify(net, qp, IBV_QPS_RTR, net_mask_rtr));
	if (to >= IBV_QPS_RTS)
		assert_int_equal(0, modify(net, qp, IBV_QPS_RTS, net_mask_rts));
	if (to == IBV_QPS_SQD)
		assert_int_equal(0, modify(net, qp, IBV_QPS_SQD, 0));
	assert_int_equal(to, state_of(qp));
}

static void open_one(struct net *net)
{
	struct wire_ip ip;
	uint8_t mac[6];

	memset(net, 0, sizeof(*net));
	net_open(net, &base);
	net->end[0].qp = net_make_qp(&net->end[0], &base);
	rnic_gid(net->end[1].rnic, 0, 1, &ip);
	rnic_mac(net->end[1].rnic, 0, mac);
	assert_int_equal(0, rnic_neigh_add(net->end[0].rnic, 0, &ip, mac));
}

static void try_mask(struct net *net, int from, int to, int mask, int want)
{
	struct rnic_qp *qp = net->end[0].qp;
	struct ibv_qp_attr before, after;
	struct ibv_qp_init_attr init;
	int got;

	bring(net, qp, (enum ibv_qp_state)from);
	rnic_qp_query(qp, &before, &init);
	got = modify(net, qp, (enum ibv_qp_state)to, mask);
	if (got != want)
		fail_msg("%s to %s, mask %#x: %d instead of %d", state_names[from], state_names[to],
			mask, got, want);
	rnic_qp_query(qp, &after, &init);
	if (want != 0)
		assert_memory_equal(&before, &after, sizeof(before));
	else
		assert_int_equal(to, after.qp_state);
}

static void try_transition(struct net *net, int from, int to, int required, int optional)
{
	int offered = optional & ~IBV_QP_ALT_PATH;

	try_mask(net, from, to, required, 0);
	try_mask(net, from, to, required | offered, 0);
	for (unsigned i = 0; i < N_LETTERS; i++) {
		int bit = letters[i].bit;

		if (bit & required)
			try_mask(net, from, to, required & ~bit, -EINVAL);
		else if (bit == IBV_QP_ALT_PATH && (bit & optional))
			try_mask(net, from, to, required | bit,
				-EOPNOTSUPP); /* allowed, not offered */
		else
			try_mask(net, from, to, required | bit, bit & optional ? 0 : -EINVAL);
	}
}

static void test_table(void **state)
{
	static const int from[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR};
	static struct net net;

	(void)state;
	open_one(&net);
	for (unsigned f = 0; f < sizeof(from) / sizeof(from[0]); f++) {
		for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
			bool found = false;

			for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
				if (table[i].from != from[f] || table[i].to != to)
					continue;
				try_transition(&net, from[f], to, mask_of(table[i].required),
					mask_of(table[i].optional));
				found = true;
			}
			if (found)
				continue;
			try_mask(&net, from[f], to, 0, -EINVAL);
			for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
				try_mask(&net, from[f], to, mask_of(table[i].required), -EINVAL);
		}
		try_mask(&net, from[f], IBV_QPS_ERR + 1, 0, -EINVAL);
	}
	net_close(&net);
}

/* What was set is what is told. */
static void test_query(void **state)
{
	struct ibv_qp_attr set, got;
	struct ibv_qp_init_attr init;
	static struct net net;

	(void)state;
	open_one(&net);
	bring(&net, net.end[0].qp, IBV_QPS_RTS);
	set = net_attr(&net, 0, 0x11, &base);
	rnic_qp_query(net.end[0].qp, &got, &init);
	set.qp_state = set.cur_qp_state = IBV_QPS_RTS;
	set.cap = init.cap;
	assert_int_equal(64, init.cap.max_send_wr);
	assert_int_equal(IBV_QPT_RC, init.qp_type);
	assert_int_equal(1, init.sq_sig_all);
	assert_memory_equal(&set, &got, sizeof(set));
	net_close(&net);
}

/* ---- values ---- */

static int try_value(
	struct net *net, int from, int to, int mask, void (*spoil)(struct ibv_qp_attr *attr))
{
	struct rnic_qp *qp = net->end[0].qp;
	struct ibv_qp_attr attr = net_attr(net, 0, 0x11, &base), before, after;
	struct ibv_qp_init_attr init;
	int err;

	bring(net, qp, (enum ibv_qp_state)from);
	attr.qp_state = (enum ibv_qp_state)to;
	spoil(&attr);
	rnic_qp_query(qp, &before, &init);
	err = rnic_qp_modify(qp, &attr, mask | IBV_QP_STATE, net->now);
	rnic_qp_query(qp, &after, &init);
	if (err < 0)
		assert_memory_equal(&before, &after, sizeof(before));
	return err;
}

#define SPOIL(name, statement)                     \
	static void name(struct ibv_qp_attr *attr) \
	{                                          \
		statement;                         \
	}
SPOIL(bad_port, attr->port_num = 2)
SPOIL(bad_pkey, attr->pkey_index = 1)
SPOIL(small_mtu, attr->path_mtu = 0)
SPOIL(large_mtu, attr->path_mtu = 6)
SPOIL(bad_qpn, attr->dest_qp_num = 0x1000000)
SPOIL(bad_rnr_timer, attr->min_rnr_timer = 32)
SPOIL(no_grh, attr->ah_attr.is_global = 0)
SPOIL(bad_sgid, attr->ah_attr.grh.sgid_index = 3)
SPOIL(other_family, attr->ah_attr.grh.sgid_index = 2)
SPOIL(multicast, attr->ah_attr.grh.dgid.raw[0] = 0xff)
SPOIL(no_dgid, memset(&attr->ah_attr.grh.dgid, 0, 16))
SPOIL(bad_timeout, attr->timeout = 32)
SPOIL(bad_retry, attr->retry_cnt = 8)
SPOIL(bad_rnr_retry, attr->rnr_retry = 8)
SPOIL(long_psn, attr->sq_psn = 0x5000100)
SPOIL(wrong_state, attr->cur_qp_state = IBV_QPS_RTS)
SPOIL(migrate, attr->path_mig_state = IBV_MIG_REARM)

static void test_values(void **state)
{
	static void (*const rtr[])(struct ibv_qp_attr *) = {small_mtu, large_mtu, bad_qpn,
		bad_rnr_timer, no_grh, bad_sgid, other_family, multicast, no_dgid};
	static void (*const rts[])(struct ibv_qp_attr *) = {bad_timeout, bad_retry, bad_rnr_retry};
	static struct net net;
	struct rnic_qp_stats stats;

	(void)state;
	open_one(&net);
	assert_int_equal(
		-EINVAL, try_value(&net, IBV_QPS_RESET, IBV_QPS_INIT, net_mask_init, bad_port));
	assert_int_equal(
		-EINVAL, try_value(&net, IBV_QPS_RESET, IBV_QPS_INIT, net_mask_init, bad_pkey));
	for (unsigned i = 0; i < sizeof(rtr) / sizeof(rtr[0]); i++)
		assert_int_equal(
			-EINVAL, try_value(&net, IBV_QPS_INIT, IBV_QPS_RTR, net_mask_rtr, rtr[i]));
	for (unsigned i = 0; i < sizeof(rts) / sizeof(rts[0]); i++)
		assert_int_equal(
			-EINVAL, try_value(&net, IBV_QPS_RTR, IBV_QPS_RTS, net_mask_rts, rts[i]));
	assert_int_equal(-EINVAL, try_value(&net, IBV_QPS_RTR, IBV_QPS_RTS,
					  net_mask_rts | IBV_QP_CUR_STATE, wrong_state));
	assert_int_equal(-EOPNOTSUPP, try_value(&net, IBV_QPS_RTR, IBV_QPS_RTS,
					      net_mask_rts | IBV_QP_PATH_MIG_STATE, migrate));
	/* Starting PSNs are taken modulo 2^24. */
	assert_int_equal(0, try_value(&net, IBV_QPS_RTR, IBV_QPS_RTS, net_mask_rts, long_psn));
	rnic_qp_stats(net.end[0].qp, &stats);
	assert_int_equal(0x100, stats.sq_next);
	net_close(&net);
}

/* ---- posting ---- */

static void test_posts(void **state)
{
	static const struct {
		enum ibv_qp_state state;
		int send, recv;
	} cases[] = {{IBV_QPS_RESET, -EINVAL, -EINVAL}, {IBV_QPS_INIT, -EINVAL, 0},
		{IBV_QPS_RTR, -EINVAL, 0}, {IBV_QPS_RTS, 0, 0}, {IBV_QPS_SQD, 0, 0},
		{IBV_QPS_ERR, 0, 0}};
	static struct net net;
	struct end *a = &net.end[0];

	(void)state;
	open_one(&net);
	net.mute[0] = true;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bring(&net, a->qp, cases[i].state);
		net.n_log = 0;
		assert_int_equal(cases[i].send, end_send(a, IBV_WR_SEND, 1, 0, 64, 0, 0));
		assert_int_equal(cases[i].recv, end_recv(a, 2, 0, 64));
		net_run(&net, net.now);
		assert_int_equal(cases[i].state == IBV_QPS_RTS, net.n_log);
		if (cases[i].state == IBV_QPS_ERR) {
			assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(a->scq).status);
			assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(a->rcq).status);
		}
		end_no_wc(a->scq);
		end_no_wc(a->rcq);
	}
	net_close(&net);
}

static void test_bad_posts(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];
	struct ibv_sge sge[5] = {{0}};
	struct ibv_send_wr send = {.sg_list = sge, .num_sge = 5, .opcode = IBV_WR_SEND};
	struct ibv_recv_wr recv = {.sg_list = sge, .num_sge = 5};
	static const enum ibv_wr_opcode other[] = {IBV_WR_TSO, IBV_WR_DRIVER1};
	static const enum ibv_wr_opcode sink[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	open_one(&net);
	bring(&net, a->qp, IBV_QPS_SQD);
	assert_int_equal(-EINVAL, rnic_post_send(a->qp, &send));
	assert_int_equal(-EINVAL, rnic_post_recv(a->qp, &recv));
	send.num_sge = recv.num_sge = -1;
	assert_int_equal(-EINVAL, rnic_post_send(a->qp, &send));
	assert_int_equal(-EINVAL, rnic_post_recv(a->qp, &recv));
	send.num_sge = 2;
	sge[0].length = RNIC_MAX_MSG;
	sge[1].length = 1;
	assert_int_equal(-EINVAL, rnic_post_send(a->qp, &send));
	sge[1].length = 0;
	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		send.opcode = other[i];
		assert_int_equal(-EOPNOTSUPP, rnic_post_send(a->qp, &send));
	}
	/* Nothing can be received into inline data; atomics have 8 bytes. */
	sge[0].length = 8;
	send.send_flags = IBV_SEND_INLINE;
	for (unsigned i = 0; i < sizeof(sink) / sizeof(sink[0]); i++) {
		send.opcode = sink[i];
		assert_int_equal(-EINVAL, rnic_post_send(a->qp, &send));
	}
	send.send_flags = 0;
	sge[0].length = 4;
	assert_int_equal(-EINVAL, rnic_post_send(a->qp, &send));
	sge[1].length = 5;
	assert_int_equal(-EINVAL, rnic_post_send(a->qp, &send));
	send.opcode = IBV_WR_SEND;
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(0, rnic_post_send(a->qp, &send));
		assert_int_equal(0, end_recv(a, i, 0, 64));
	}
	assert_int_equal(-ENOMEM, rnic_post_send(a->qp, &send));
	assert_int_equal(-ENOMEM, end_recv(a, 64, 0, 64));
	net_close(&net);
}

/* ---- ERR and RESET ---- */

static void test_flush_order(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){.sig_none = true});
	net.mute[0] = true;
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(0, end_send(a, IBV_WR_SEND, i, 0, 3000, 0, 0));
		assert_int_equal(0, end_recv(a, 100 + i, 0, 64));
	}
	net_run(&net, net.now);
	net.n_log = 0;
	assert_int_equal(0, modify(&net, a->qp, IBV_QPS_ERR, 0));
	for (unsigned i = 10; i < 12; i++) {
		assert_int_equal(0, end_send(a, IBV_WR_SEND, i, 0, 3000, 0, 0));
		assert_int_equal(0, end_recv(a, 100 + i, 0, 64));
	}
	assert_true(rnic_has_work(a->rnic));
	net_run(&net, FOREVER);
	assert_int_equal(0, net.n_log);
	/* Also the unsignaled ones, in the order of posting. */
	for (unsigned i = 0; i < 12; i++) {
		struct ibv_wc wc = end_wc(a->scq);

		assert_int_equal(i, wc.wr_id);
		assert_int_equal(IBV_WC_WR_FLUSH_ERR, wc.status);
		wc = end_wc(a->rcq);
		assert_int_equal(100 + i, wc.wr_id);
		assert_int_equal(IBV_WC_WR_FLUSH_ERR, wc.status);
	}
	end_no_wc(a->scq);
	end_no_wc(a->rcq);
	net_close(&net);
}

static void reset_forgets(bool in_midst)
{
	static struct net net;
	struct end *a = &net.end[0], *b = &net.end[1];
	struct net_options other = {.psn = {0x7000, 0x9000}, .mtu = IBV_MTU_256};
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct rnic_qp_stats stats;

	memset(&net, 0, sizeof(net));
	net_connect(&net, &base);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(0, end_recv(b, i, 0, 64));
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 1, 0, 64, 0, 0));
	net_run(&net, FOREVER); /* completions wait in both CQs */
	net.mute[0] = true;
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 2, 0, 64, 0, 0));
	assert_int_equal(
		0, end_send(a, IBV_WR_SEND, 3, 1 << 20, 64, 0, 0)); /* a local fault waits */
	net_run(&net, net.now);
	net_ack(&net, 0, P + 1, 0x20); /* an RNR wait runs */
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 4, 0, 64, 0, 0));
	assert_int_equal(0, rnic_qp_skip(b->qp, RNIC_RECV, P + 10, 1));
	if (in_midst) { /* and the QP is on the ready list */
		net_ack(&net, 0, P + 1, 0x1f);
		assert_int_equal(IBV_QPS_ERR, state_of(a->qp));
		assert_int_equal(0, end_recv(a, 5, 0, 64));
	}
	assert_int_equal(0, modify(&net, a->qp, IBV_QPS_RESET, 0));
	assert_int_equal(0, modify(&net, b->qp, IBV_QPS_RESET, 0));
	rnic_qp_query(a->qp, &attr, &init);
	assert_int_equal(
		0, attr.dest_qp_num + attr.path_mtu + attr.sq_psn + attr.rq_psn + attr.timeout);
	end_no_wc(a->scq);
	end_no_wc(b->rcq);
	net.mute[0] = false;
	net.n_log = 0;
	net_run(&net, FOREVER);
	assert_int_equal(0, net.n_log);
	/* Both serve a new connection. */
	net_to_rts(&net, 0, a->qp, rnic_qp_num(b->qp), &other);
	net_to_rts(&net, 1, b->qp, rnic_qp_num(a->qp), &other);
	assert_int_equal(0, end_recv(b, 7, 0, 64));
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 8, 0, 64, 0, 0));
	net_run(&net, FOREVER);
	net_expect(&net, 0, 0, ROCE_SEND_ONLY, 0x7000);
	net_expect_ack(&net, 1, 1, 0x7000, ACK, 1);
	assert_int_equal(8, end_wc(a->scq).wr_id);
	assert_int_equal(7, end_wc(b->rcq).wr_id);
	rnic_qp_query(a->qp, &attr, &init);
	assert_int_equal(0x7001, attr.sq_psn);
	rnic_qp_query(b->qp, &attr, &init);
	assert_int_equal(0x7001, attr.rq_psn);
	rnic_qp_stats(a->qp, &stats);
	assert_int_equal(0, stats.retransmits + stats.timeouts);
	net_close(&net);
}

static void test_reset_forgets(void **state)
{
	(void)state;
	reset_forgets(false);
	reset_forgets(true);
}

/* The program sees its last message and ends: the acknowledgement still leaves. */
static void test_last_ack(void **state)
{
	static struct net net;
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &base);
	assert_int_equal(0, end_recv(b, 1, 0, 64));
	net_packet(&net, 1, (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = P, .ackreq = true},
		"ab", 2);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(b->rcq).status);
	assert_int_equal(0, rnic_qp_destroy(b->qp));
	b->qp = NULL;
	net.n_log = 0;
	net_run(&net, net.now);
	net_expect_ack(&net, 0, 1, P, ACK, 1);
	assert_int_equal(1, net.n_log);
	(void)a;
	net_close(&net);
}

static void test_comm_established(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];

	(void)state;
	open_one(&net);
	bring(&net, a->qp, IBV_QPS_RTR);
	assert_int_equal(0, end_recv(a, 1, 0, 64));
	assert_int_equal(0, end_recv(a, 2, 0, 64));
	net_packet(&net, 0, (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = 0x200}, "ab", 2);
	net_packet(&net, 0, (struct wire_hdr){.opcode = ROCE_SEND_ONLY, .psn = 0x201}, "cd", 2);
	assert_int_equal(1, a->n_event);
	assert_int_equal(IBV_EVENT_COMM_EST, a->event[0]);
	assert_int_equal(1, end_wc(a->rcq).wr_id);
	assert_int_equal(2, end_wc(a->rcq).wr_id);
	net_close(&net);
}

/* ---- SQD ---- */

static void test_drain(void **state)
{
	static struct net net;
	struct end *a = &net.end[0];
	struct net_options options = base;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_qp_init_attr init;

	(void)state;
	memset(&net, 0, sizeof(net));
	options.window = 2;
	net_connect(&net, &options);
	net.mute[0] = true;
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 1, 0, 4096, 0, 0));
	assert_int_equal(0, end_send(a, IBV_WR_SEND, 2, 0, 64, 0, 0));
	net_run(&net, net.now);
	net.n_log = 0;
	assert_int_equal(0,
		rnic_qp_modify(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, net.now));
	rnic_qp_query(a->qp, &attr, &init);
	assert_true(attr.sq_draining);
	/* The path cannot change under a message. */
	attr = net_attr(&net, 0, 0, &base);
	assert_int_equal(-EINVAL, rnic_qp_modify(a->qp, &attr, IBV_QP_AV, net.now));
	/* What was begun goes on, what was not waits. */
	net_ack(&net, 0, P + 1, ACK);
	net_run(&net, net.now);
	net_expect(&net, 0, 0, ROCE_SEND_MIDDLE, P + 2);
	net_expect(&net, 1, 0, ROCE_SEND_LAST, P + 3);
	net_ack(&net, 0, P + 2, ACK);
	net_run(&net, net.now);
	assert_int_equal(2, net.n_log);
	assert_int_equal(0, a->n_event);
	net_ack(&net, 0, P + 3, 0x60); /* also again */
	net_run(&net, net.now);
	net_expect(&net, 2, 0, ROCE_SEND_LAST, P + 3);
	net_ack(&net, 0, P + 3, ACK);
	net_run(&net, net.now);
	assert_int_equal(3, net.n_log);
	assert_int_equal(1, a->n_event);
	assert_int_equal(IBV_EVENT_SQ_DRAINED, a->event[0]);
	rnic_qp_query(a->qp, &attr, &init);
	assert_false(attr.sq_draining);
	attr = net_attr(&net, 0, 0, &base);
	assert_int_equal(0, rnic_qp_modify(a->qp, &attr, IBV_QP_AV, net.now));
	assert_int_equal(0, modify(&net, a->qp, IBV_QPS_RTS, 0));
	net_run(&net, net.now);
	net_expect(&net, 3, 0, ROCE_SEND_ONLY, P + 4);
	assert_int_equal(1, end_wc(a->scq).wr_id);
	net_close(&net);
}

static void test_drain_idle(void **state)
{
	static struct net net;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	(void)state;
	open_one(&net);
	bring(&net, net.end[0].qp, IBV_QPS_RTS);
	assert_int_equal(0, rnic_qp_modify(net.end[0].qp, &attr,
				    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, net.now));
	assert_int_equal(1, net.end[0].n_event);
	assert_int_equal(IBV_EVENT_SQ_DRAINED, net.end[0].event[0]);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_posts),
		cmocka_unit_test(test_bad_posts),
		cmocka_unit_test(test_flush_order),
		cmocka_unit_test(test_reset_forgets),
		cmocka_unit_test(test_last_ack),
		cmocka_unit_test(test_comm_established),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_drain_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
