/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/libmrc_api/pair.h"

#include <arpa/inet.h>

static void side_create(struct side *s, struct ibv_context *verbs)
{
	s->verbs = verbs;
	s->ctx = mrc_create_context(verbs, NULL);
	assert_non_null(s->ctx);
	s->pd = ibv_alloc_pd(verbs);
	s->buf = calloc(1, SIDE_BUF);
	s->mr = ibv_reg_mr(
		s->pd, s->buf, SIDE_BUF, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(mrc_create_comp_channel(s->ctx, &s->channel), 0);
	s->cq = mrc_create_cq(s->ctx, 4 * SIDE_DEPTH, s, s->channel, 0);
	assert_non_null(s->cq);
	s->qp = side_qp(s);
	assert_non_null(s->qp);
}

struct mrc_qp *side_qp(struct side *s)
{
	struct mrc_qp_init_attr init = {.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {.max_send_wr = SIDE_DEPTH,
			.max_recv_wr = SIDE_DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 64},
		.sq_sig_all = 1,
		.pd = s->pd};

	return mrc_create_qp(s->ctx, &init);
}

static void side_destroy(struct side *s)
{
	if (s->qp)
		assert_int_equal(mrc_destroy_qp(s->qp), 0);
	assert_int_equal(mrc_destroy_cq(s->cq), 0);
	assert_int_equal(mrc_destroy_comp_channel(s->channel), 0);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	assert_int_equal(ibv_dealloc_pd(s->pd), 0);
	assert_int_equal(mrc_destroy_context(s->ctx), 0);
	free(s->buf);
}

struct pair *pair_create(bool threads, unsigned planes)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->f = fabric_create();
	p->f->n_ports = planes;
	p->f->same_addresses = true;
	fabric_open(p->f, threads);
	side_create(&p->a, p->f->end[0].context);
	side_create(&p->b, p->f->end[1].context);
	return p;
}

void pair_destroy(struct pair *p)
{
	side_destroy(&p->a);
	side_destroy(&p->b);
	fabric_destroy(p->f);
	free(p);
}

int pair_setup(void **state)
{
	*state = pair_create(false, 1);
	return 0;
}

int pair_teardown(void **state)
{
	pair_destroy(*state);
	return 0;
}

int to_init(struct side *s, struct mrc_qp_attr *attr, int mask)
{
	struct ibv_qp_attr v = {
		.qp_state = IBV_QPS_INIT, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	return mrc_modify_qp(s->qp, &v,
		IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT, attr, mask);
}

int to_rtr(struct side *s, struct side *peer, int gid, struct mrc_qp_attr *attr, int mask)
{
	struct ibv_qp_attr v = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.rq_psn = SIDE_PSN,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.sgid_index = (uint8_t)gid, .hop_limit = 64}}};

	assert_int_equal(mrc_get_qpn(peer->qp, &v.dest_qp_num), 0);
	assert_int_equal(ibv_query_gid(peer->verbs, 1, gid, &v.ah_attr.grh.dgid), 0);
	return mrc_modify_qp(s->qp, &v,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, attr,
		mask);
}

int to_rts(struct side *s, struct mrc_qp_attr *attr, int mask)
{
	struct ibv_qp_attr v = {.qp_state = IBV_QPS_RTS, .sq_psn = SIDE_PSN};

	/* The public benchmark passes the last three. */
	return mrc_modify_qp(s->qp, &v,
		IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
		attr, mask);
}

int to_state(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_attr v = {.qp_state = state};

	return mrc_modify_qp(s->qp, &v, IBV_QP_STATE, NULL, 0);
}

void pair_connect(struct pair *p, int gid)
{
	assert_int_equal(to_init(&p->a, NULL, 0), 0);
	assert_int_equal(to_init(&p->b, NULL, 0), 0);
	assert_int_equal(to_rtr(&p->a, &p->b, gid, NULL, 0), 0);
	assert_int_equal(to_rtr(&p->b, &p->a, gid, NULL, 0), 0);
	assert_int_equal(to_rts(&p->a, NULL, 0), 0);
	assert_int_equal(to_rts(&p->b, NULL, 0), 0);
}

int write_to(
	struct side *from, struct side *to, uint64_t id, size_t offset, uint32_t len, uint32_t imm)
{
	struct ibv_sge sge = {(uintptr_t)from->buf + offset, len, from->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data = htonl(imm),
			.wr.rdma = {(uintptr_t)to->buf + offset, to->mr->rkey}};

	return mrc_post_send(from->qp, &wr, &bad);
}

int recv_one(struct side *s, uint64_t id)
{
	struct ibv_recv_wr *bad, wr = {.wr_id = id};

	return mrc_post_recv(s->qp, &wr, &bad);
}

void wait_one(struct pair *p, struct side *s, struct ibv_wc *wc)
{
	for (int i = 0; i < 10000000; i++) {
		int n = mrc_poll_cq(s->cq, 1, wc);

		assert_true(n >= 0);
		if (n)
			return;
		if (!p->f->real_time)
			fabric_step(p->f);
	}
	fail_msg("no completion");
}
