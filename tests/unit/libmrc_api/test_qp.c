/* SPDX-License-Identifier: BSD-3-Clause */
/* States and attributes of queue pairs, posting. */
#include "tests/unit/libmrc_api/pair.h"

#include <errno.h>

static enum ibv_qp_state state_of(struct side *s)
{
	struct ibv_qp_attr v;

	assert_int_equal(mrc_query_qp(s->qp, &v, IBV_QP_STATE, NULL, 0, NULL), 0);
	return v.qp_state;
}

/* With what the transition needs. */
static int go(struct pair *p, enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_INIT:
		return to_init(&p->a, NULL, 0);
	case IBV_QPS_RTR:
		return to_rtr(&p->a, &p->b, 1, NULL, 0);
	case IBV_QPS_RTS:
		return to_rts(&p->a, NULL, 0);
	default:
		return to_state(&p->a, to);
	}
}

static void bring(struct pair *p, enum ibv_qp_state to)
{
	assert_int_equal(to_state(&p->a, IBV_QPS_RESET), 0);
	if (to == IBV_QPS_ERR)
		assert_int_equal(go(p, to), 0);
	for (enum ibv_qp_state s = IBV_QPS_INIT; to <= IBV_QPS_RTS && s <= to; s++)
		assert_int_equal(go(p, s), 0);
	assert_int_equal(state_of(&p->a), to);
}

static void every_transition(void **state)
{
	static const enum ibv_qp_state all[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR};
	/* [from][to] */
	static const bool legal[5][5] = {{true, true, false, false, true},
		{true, true, true, false, true}, {true, false, false, true, true},
		{true, false, false, false, true}, {true, false, false, false, true}};
	struct pair *p = *state;

	for (unsigned from = 0; from < 5; from++) {
		for (unsigned to = 0; to < 5; to++) {
			bring(p, all[from]);
			assert_int_equal(go(p, all[to]), legal[from][to] ? 0 : EINVAL);
			assert_int_equal(state_of(&p->a), legal[from][to] ? all[to] : all[from]);
		}
	}
	/* SQD and SQE are not of MRC. */
	bring(p, IBV_QPS_RTS);
	assert_int_equal(to_state(&p->a, IBV_QPS_SQD), EINVAL);
	assert_int_equal(to_state(&p->a, IBV_QPS_SQE), EINVAL);
}

static void verbs_attributes(void **state)
{
	static const int refused[] = {IBV_QP_MIN_RNR_TIMER, IBV_QP_MAX_QP_RD_ATOMIC,
		IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_ALT_PATH, IBV_QP_PATH_MIG_STATE, IBV_QP_QKEY};
	struct pair *p = *state;
	struct ibv_qp_attr v = {.qp_state = IBV_QPS_INIT, .cur_qp_state = IBV_QPS_INIT};
	int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;

	for (unsigned i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		assert_int_equal(mrc_modify_qp(p->a.qp, &v, mask | refused[i], NULL, 0), EINVAL);
	assert_int_equal(mrc_modify_qp(p->a.qp, &v, mask | IBV_QP_CUR_STATE, NULL, 0), EINVAL);
	v.cur_qp_state = IBV_QPS_RESET;
	assert_int_equal(mrc_modify_qp(p->a.qp, &v, mask | IBV_QP_CUR_STATE, NULL, 0), 0);
	/* What a transition needs. */
	v.qp_state = IBV_QPS_RTR;
	assert_int_equal(mrc_modify_qp(p->a.qp, &v, IBV_QP_STATE, NULL, 0), EINVAL);
	assert_int_equal(go(p, IBV_QPS_RTR), 0);
	assert_int_equal(to_state(&p->a, IBV_QPS_RTS), EINVAL);
	assert_int_equal(mrc_modify_qp(p->a.qp, NULL, IBV_QP_STATE, NULL, 0), EINVAL);
	assert_int_equal(mrc_modify_qp(NULL, &v, IBV_QP_STATE, NULL, 0), EINVAL);
}

static const int every_attr = MRC_QP_MAX_WIMM | MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR |
			      MRC_QP_MPR_DEST | MRC_QP_TIMEOUT | MRC_QP_EV_PROFILE_ID |
			      MRC_QP_CC_PROFILE_ID | MRC_QP_HINT | MRC_QP_RETRY_CNT | MRC_QP_CAP |
			      MRC_QP_VENDOR_CFG;

static void limits(void **state)
{
	static const struct {
		int mask;
		struct mrc_qp_attr a;
		int want;
	} cases[] = {
		{MRC_QP_MPR, {.mpr = {0, 9}}, EINVAL},
		{MRC_QP_MPR, {.mpr = {1, 0}}, 0},
		{MRC_QP_MPR, {.mpr = {255, 0}}, 0},
		{MRC_QP_MPR_DEST, {.mpr = {9, 0}}, EINVAL},
		{MRC_QP_MPR_DEST, {.mpr = {0, 255}}, 0},
		{MRC_QP_MAX_WIMM, {.wimm = {0, 9}}, EINVAL},
		{MRC_QP_MAX_WIMM, {.wimm = {1024, 0}}, 0},
		{MRC_QP_MAX_WIMM, {.wimm = {1025, 0}}, EINVAL},
		{MRC_QP_MAX_WIMM_DEST, {.wimm = {9, 0}}, EINVAL},
		{MRC_QP_MAX_WIMM_DEST, {.wimm = {0, 1}}, 0},
		{MRC_QP_MAX_WIMM_DEST, {.wimm = {0, 1025}}, EINVAL},
		{MRC_QP_TIMEOUT, {.timeout = 24}, 0},
		{MRC_QP_TIMEOUT, {.timeout = 25}, EINVAL},
		{MRC_QP_RETRY_CNT, {.retry = {7, 25}}, 0},
		{MRC_QP_RETRY_CNT, {.retry = {8, 0}}, EINVAL},
		{MRC_QP_RETRY_CNT, {.retry = {0, 26}}, EINVAL},
		{MRC_QP_CAP, {.cap = 7}, 0},
		{MRC_QP_CAP, {.cap = 8}, EINVAL},
		{MRC_QP_EV_PROFILE_ID, {.profile = {0, 9}}, 0},
		{MRC_QP_EV_PROFILE_ID, {.profile = {9, 0}}, EINVAL}, /* does not exist */
		{MRC_QP_CC_PROFILE_ID, {.profile = {0, 9}}, EINVAL},
		{1 << 10, {.timeout = 1}, EINVAL},
	};
	struct pair *p = *state;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mrc_qp_attr a = cases[i].a;

		assert_int_equal(to_state(&p->a, IBV_QPS_RESET), 0);
		assert_int_equal(to_init(&p->a, &a, cases[i].mask), cases[i].want);
		assert_int_equal(state_of(&p->a), cases[i].want ? IBV_QPS_RESET : IBV_QPS_INIT);
		if (!cases[i].want) {
			/* The transport takes them as well. */
			assert_int_equal(to_rtr(&p->a, &p->b, 1, NULL, 0), 0);
			assert_int_equal(to_rts(&p->a, NULL, 0), 0);
		}
	}
}

static void defaults_and_reset(void **state)
{
	struct pair *p = *state;
	struct mrc_qp_attr a,
		set = {.mpr = {3, 4}, .wimm = {5, 6}, .timeout = 9, .retry = {1, 2}, .cap = 2};
	struct mrc_qp_init_attr init;

	set.vendor_cfg[127] = 0xaa;
	for (int round = 0; round < 2; round++) {
		memset(&a, 0xee, sizeof(a));
		assert_int_equal(mrc_query_qp(p->a.qp, NULL, 0, &a, every_attr, &init), 0);
		assert_int_equal(a.mpr.mpr, 8);
		assert_int_equal(a.mpr.mpr_dest, 8);
		assert_int_equal(a.wimm.max_wimm, 32);
		assert_int_equal(a.wimm.max_wimm_dest, 32);
		assert_int_equal(a.timeout, 12);
		assert_int_equal(a.retry.linear_cnt, 7);
		assert_int_equal(a.retry.exp_cnt, 7);
		assert_int_equal(a.profile.ev_profile_id, 0);
		assert_int_equal(a.cap, 0);
		assert_null(a.qp_hint);
		assert_ptr_equal(init.send_cq, p->a.cq);
		assert_ptr_equal(init.pd, p->a.pd);
		assert_true(init.cap.max_send_wr >= SIDE_DEPTH);
		assert_int_equal(to_init(&p->a, &set, every_attr), 0);
		assert_int_equal(mrc_query_qp(p->a.qp, NULL, 0, &a, every_attr, NULL), 0);
		assert_memory_equal(&a.mpr, &set.mpr, sizeof(a.mpr));
		assert_memory_equal(&a.wimm, &set.wimm, sizeof(a.wimm));
		assert_int_equal(a.timeout, 9);
		assert_int_equal(a.cap, 2);
		assert_int_equal(a.vendor_cfg[127], 0xaa);
		assert_int_equal(to_state(&p->a, IBV_QPS_RESET), 0);
	}
	assert_int_equal(mrc_query_qp(p->a.qp, NULL, 0, &a, 1 << 11, NULL), EINVAL);
}

/* Until when attributes may be said: those settled at RTR later only as they are. */
static void roles(void **state)
{
	struct pair *p = *state;
	struct mrc_qp_attr a = {.mpr = {2, 3}, .wimm = {4, 5}, .timeout = 10, .retry = {1, 1}};
	int both = MRC_QP_MPR | MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM | MRC_QP_MAX_WIMM_DEST;

	assert_int_equal(mrc_modify_qp(p->a.qp, NULL, 0, &a, MRC_QP_MPR), EINVAL); /* RESET */
	assert_int_equal(to_init(&p->a, NULL, 0), 0);
	assert_int_equal(mrc_modify_qp(p->a.qp, NULL, 0, &a, MRC_QP_TIMEOUT), 0);
	/* Both roles at RTR and again at RTS, as a public example has it. */
	assert_int_equal(to_rtr(&p->a, &p->b, 1, &a, both), 0);
	a.mpr.mpr_dest = 9;
	assert_int_equal(to_rts(&p->a, &a, both), EINVAL);
	assert_int_equal(state_of(&p->a), IBV_QPS_RTR);
	a.mpr.mpr_dest = 3;
	a.mpr.mpr = 7;
	assert_int_equal(to_rts(&p->a, &a, both), 0);
	for (int bit = MRC_QP_MAX_WIMM; bit <= MRC_QP_CAP; bit <<= 1) {
		int later = MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT | MRC_QP_HINT;

		assert_int_equal(
			mrc_modify_qp(p->a.qp, NULL, 0, &a, bit), bit & later ? 0 : EINVAL);
	}
	assert_int_equal(mrc_modify_qp(p->a.qp, NULL, 0, &a, MRC_QP_VENDOR_CFG), 0);
	{
		struct ibv_qp_attr v = {.qp_state = IBV_QPS_ERR};

		assert_int_equal(
			mrc_modify_qp(p->a.qp, &v, IBV_QP_STATE, &a, MRC_QP_TIMEOUT), EINVAL);
	}
}

/* What is required by the letter is so only when asked for. */
static void strict(void **state)
{
	struct pair *p = *state;
	struct mrc_qp_attr a = {.mpr = {1, 1}, .wimm = {1, 1}, .timeout = 10, .retry = {1, 1}};
	int init = MRC_QP_HINT | MRC_QP_EV_PROFILE_ID | MRC_QP_CC_PROFILE_ID;
	int rtr = MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR_DEST | MRC_QP_CAP;
	int rts = MRC_QP_MAX_WIMM | MRC_QP_MPR | MRC_QP_RETRY_CNT | MRC_QP_TIMEOUT;

	setenv("INCLINE_MRC_STRICT", "1", 1);
	assert_int_equal(to_init(&p->a, &a, init & ~MRC_QP_HINT), EINVAL);
	assert_int_equal(to_init(&p->a, &a, init), 0);
	assert_int_equal(to_rtr(&p->a, &p->b, 1, &a, rtr & ~MRC_QP_CAP), EINVAL);
	assert_int_equal(to_rtr(&p->a, &p->b, 1, &a, rtr), 0);
	assert_int_equal(to_rts(&p->a, &a, rts & ~MRC_QP_TIMEOUT), EINVAL);
	assert_int_equal(to_rts(&p->a, &a, rts), 0);
	unsetenv("INCLINE_MRC_STRICT");
}

static void creation(void **state)
{
	struct pair *p = *state;
	struct mrc_qp_init_attr good = {.send_cq = p->a.cq,
		.recv_cq = p->a.cq,
		.pd = p->a.pd,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct mrc_qp_init_attr init = good;
	struct mrc_qp *qp;
	uint32_t qpn = 0;

	init.send_cq = p->b.cq;
	assert_null(mrc_create_qp(p->a.ctx, &init));
	assert_int_equal(errno, EINVAL);
	init = good;
	init.pd = p->b.pd;
	assert_null(mrc_create_qp(p->a.ctx, &init));
	init = good;
	init.protocol_version = (enum mrc_protocol_version)2;
	assert_null(mrc_create_qp(p->a.ctx, &init));
	assert_int_equal(errno, EINVAL);
	init = good;
	init.send_ops_flags = IBV_QP_EX_WITH_SEND;
	assert_null(mrc_create_qp(p->a.ctx, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init = good;
	init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	init.protocol_version = MRC_PROTOCOL_VERSION_1;
	qp = mrc_create_qp(p->a.ctx, &init);
	assert_non_null(qp);
	assert_int_equal(mrc_get_qpn(qp, &qpn), 0);
	assert_true(qpn > 2);
	assert_int_equal(mrc_get_qpn(qp, NULL), -1);
	assert_int_equal(mrc_destroy_qp(qp), 0);
}

static void posting(void **state)
{
	static const enum ibv_wr_opcode no[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_LOCAL_INV, IBV_WR_BIND_MW};
	struct pair *p = *state;
	struct ibv_send_wr *bad = NULL, wr[2] = {{.opcode = IBV_WR_RDMA_WRITE, .next = &wr[1]}};
	struct ibv_wc wc;

	assert_int_equal(recv_one(&p->a, 1), EINVAL); /* RESET */
	assert_int_equal(write_to(&p->a, &p->b, 1, 0, 8, 0), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(to_init(&p->a, NULL, 0), 0);
	assert_int_equal(recv_one(&p->a, 1), 0);
	assert_int_equal(write_to(&p->a, &p->b, 1, 0, 8, 0), EINVAL);
	assert_int_equal(to_rtr(&p->a, &p->b, 1, NULL, 0), 0);
	assert_int_equal(to_rts(&p->a, NULL, 0), 0);
	for (unsigned i = 0; i < sizeof(no) / sizeof(*no); i++) {
		/* The one before it is posted, the list is as it was. */
		wr[1].opcode = no[i];
		assert_int_equal(mrc_post_send(p->a.qp, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[1]);
		assert_ptr_equal(wr[0].next, &wr[1]);
	}
	assert_int_equal(to_state(&p->a, IBV_QPS_ERR), 0);
	/* In ERROR it is taken, and flushed. */
	assert_int_equal(write_to(&p->a, &p->b, 99, 0, 8, 0), 0);
	for (unsigned i = 0; i < sizeof(no) / sizeof(*no) + 2; i++) {
		wait_one(p, &p->a, &wc);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(recv_one(&p->a, 2), 0);
	wait_one(p, &p->a, &wc);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(every_transition),
		PAIR_TEST(verbs_attributes),
		PAIR_TEST(limits),
		PAIR_TEST(defaults_and_reset),
		PAIR_TEST(roles),
		PAIR_TEST(strict),
		PAIR_TEST(creation),
		PAIR_TEST(posting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
