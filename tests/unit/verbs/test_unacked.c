/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams with address handles and groups, unreliable connections, shared receive queues, through
 * ibv_*. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verbs/fabric.h"

enum { BUF = 1 << 15, GRH = 40, QKEY = 0x11111111 };

struct pair {
	struct fabric *f;
	struct endpoint a, b;
	struct ibv_qp *rc[2];
};

/* Datagram QPs in the place of the endpoints' own, on both sides in RTS. */
static void use_ud(struct endpoint *ep, struct ibv_qp **own)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_UD,
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.pd = ep->pd,
		.cap = {8, 8, 2, 2, 64},
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	*own = ep->qp;
	ep->qp = ibv_create_qp_ex(ep->context, &init);
	assert_non_null(ep->qp);
	assert_int_equal(ibv_modify_qp(ep->qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->f = fabric_create();
	fabric_open(p->f, false);
	endpoint_create(&p->a, p->f->end[0].context, BUF, false);
	endpoint_create(&p->b, p->f->end[1].context, BUF, false);
	for (unsigned i = 0; i < BUF; i++)
		p->a.buf[i] = (uint8_t)(i * 7 + i / 251);
	*state = p;
	return 0;
}

static int setup_ud(void **state)
{
	struct pair *p;

	setup(state);
	p = *state;
	use_ud(&p->a, &p->rc[0]);
	use_ud(&p->b, &p->rc[1]);
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;
	struct endpoint *ep[2] = {&p->a, &p->b};

	for (int i = 0; i < 2; i++) {
		if (p->rc[i]) {
			assert_int_equal(ibv_destroy_qp(ep[i]->qp), 0);
			ep[i]->qp = p->rc[i];
		}
		endpoint_destroy(ep[i]);
	}
	fabric_destroy(p->f);
	free(p);
	return 0;
}

static struct ibv_ah *ah_to(struct endpoint *from, const union ibv_gid *gid, int sgid_index)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = *gid, .sgid_index = (uint8_t)sgid_index, .hop_limit = 1}};

	return ibv_create_ah(from->pd, &attr);
}

static struct ibv_ah *ah_to_end(struct endpoint *from, struct endpoint *to, int gid_index)
{
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(to->context, 1, gid_index, &gid), 0);
	return ah_to(from, &gid, gid_index);
}

static int send_to(struct endpoint *ep, struct ibv_ah *ah, uint32_t qpn, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)ep->buf, len, ep->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 5,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = {ah, qpn, QKEY}};
	struct ibv_send_wr *bad;

	return ibv_post_send(ep->qp, &wr, &bad);
}

/* A datagram there, an answer to whom the completion and the GRH name. */
static void datagram_and_answer(void **state)
{
	struct pair *p = *state;
	struct ibv_wc wc;

	for (int gid = 0; gid < 3; gid++) {
		struct ibv_ah *ah = ah_to_end(&p->a, &p->b, gid), *back;

		assert_non_null(ah);
		memset(p->b.buf, 0, BUF);
		assert_int_equal(post_recv(&p->b, 1, 0, 2000), 0);
		assert_int_equal(post_recv(&p->a, 2, 4096, 2000), 0);
		assert_int_equal(send_to(&p->a, ah, p->b.qp->qp_num, 1000), 0);
		wait_wc(&p->b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, GRH + 1000);
		assert_int_equal(wc.src_qp, p->a.qp->qp_num);
		assert_memory_equal(p->b.buf + GRH, p->a.buf, 1000);
		wait_wc(&p->a, &wc);
		assert_int_equal(wc.opcode, IBV_WC_SEND);
		wc.wc_flags = IBV_WC_GRH;
		back = ibv_create_ah_from_wc(p->b.pd, &wc, (void *)p->b.buf, 1);
		assert_non_null(back);
		assert_int_equal(send_to(&p->b, back, p->a.qp->qp_num, 10), 0);
		do {
			wait_wc(&p->a, &wc);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		} while (wc.opcode != IBV_WC_RECV);
		assert_int_equal(wc.wr_id, 2);
		wait_wc(&p->b, &wc);
		assert_int_equal(ibv_destroy_ah(back), 0);
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
}

static void builder_of_datagrams(void **state)
{
	struct pair *p = *state;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p->a.qp);
	struct ibv_ah *ah = ah_to_end(&p->a, &p->b, 1);
	char text[] = "inline";
	struct ibv_wc wc;

	assert_int_equal(post_recv(&p->b, 1, 0, 2000), 0);
	ibv_wr_start(ex);
	ex->wr_id = 9;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, htonl(42));
	ibv_wr_set_ud_addr(ex, ah, p->b.qp->qp_num, QKEY);
	ibv_wr_set_inline_data(ex, text, sizeof(text));
	assert_int_equal(ibv_wr_complete(ex), 0);
	wait_wc(&p->b, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(ntohl(wc.imm_data), 42);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_string_equal((char *)p->b.buf + GRH, text);
	wait_wc(&p->a, &wc);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void groups(void **state)
{
	static const union ibv_gid group[2] = {
		{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3}},
		{{0xff, 0x0e, [15] = 7}}};
	struct pair *p = *state;
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		struct ibv_ah *ah = ah_to(&p->a, &group[i], i + 1);

		assert_non_null(ah);
		assert_int_equal(ibv_attach_mcast(p->b.qp, &group[i], 0), 0);
		assert_int_equal(post_recv(&p->b, 1, 0, 2000), 0);
		assert_int_equal(send_to(&p->a, ah, 0xffffff, 100), 0);
		wait_wc(&p->b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_memory_equal(p->b.buf + GRH, p->a.buf, 100);
		wait_wc(&p->a, &wc);
		assert_int_equal(ibv_detach_mcast(p->b.qp, &group[i], 0), 0);
		assert_int_equal(ibv_detach_mcast(p->b.qp, &group[i], 0), EINVAL);
		assert_int_equal(ibv_destroy_ah(ah), 0);
	}
}

static void bad_handles(void **state)
{
	struct pair *p = *state;
	union ibv_gid nobody = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 99}};
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 2};
	struct ibv_grh grh = {0};
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};

	errno = 0;
	assert_null(ibv_create_ah(p->a.pd, &attr));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ah_to(&p->a, &nobody, 1));
	assert_int_equal(errno, EHOSTUNREACH);
	/* Neither an IPv6 header nor an IPv4 one. */
	assert_int_equal(ibv_init_ah_from_wc(p->a.context, 1, &wc, &grh, &attr), -1);
	assert_int_equal(send_to(&p->a, NULL, 1, 10), EINVAL);
}

/* ---- shared receive queues ---- */

static void shared_queue(void **state)
{
	struct pair *p = *state;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 10, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(p->b.pd, &init);
	struct ibv_qp_init_attr qp_init = {.qp_type = IBV_QPT_RC,
		.send_cq = p->b.cq,
		.recv_cq = p->b.cq,
		.srq = srq,
		.cap = {4, 0, 1, 0, 0}};
	struct ibv_qp *own = p->b.qp;
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct ibv_sge sge = {(uintptr_t)p->b.buf, 2000, p->b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_async_event event;
	struct ibv_qp_init_attr queried;
	struct ibv_qp_attr qp_attr;
	struct ibv_wc wc;

	assert_non_null(srq);
	assert_int_equal(init.attr.max_wr, 16);
	p->b.qp = ibv_create_qp(p->b.pd, &qp_init);
	assert_non_null(p->b.qp);
	assert_int_equal(ibv_query_qp(p->b.qp, &qp_attr, 0, &queried), 0);
	assert_ptr_equal(queried.srq, srq);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	endpoints_connect(&p->a, &p->b, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 2);
	assert_int_equal(post_send(&p->a, 1, IBV_WR_SEND, 0, 1500), 0);
	wait_wc(&p->b, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 3);
	assert_memory_equal(p->b.buf, p->a.buf, 1500);
	do {
		assert_int_equal(ibv_get_async_event(p->b.context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EOPNOTSUPP);
	assert_int_equal(post_recv(&p->b, 1, 0, 10), EINVAL);
	assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
	p->b.qp = own;
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(datagram_and_answer, setup_ud, teardown),
		cmocka_unit_test_setup_teardown(builder_of_datagrams, setup_ud, teardown),
		cmocka_unit_test_setup_teardown(groups, setup_ud, teardown),
		cmocka_unit_test_setup_teardown(bad_handles, setup_ud, teardown),
		cmocka_unit_test_setup_teardown(shared_queue, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
