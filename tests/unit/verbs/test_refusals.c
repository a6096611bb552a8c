/* SPDX-License-Identifier: BSD-3-Clause */
/* What is not offered or not allowed, and how it is said. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/verbs/fabric.h"

struct one {
	struct fabric *f;
	struct endpoint a;
};

static int setup(void **state)
{
	struct one *o = calloc(1, sizeof(*o));

	o->f = fabric_create();
	fabric_open(o->f, false);
	endpoint_create(&o->a, o->f->end[0].context, 4096, false);
	*state = o;
	return 0;
}

static int teardown(void **state)
{
	struct one *o = *state;

	endpoint_destroy(&o->a);
	fabric_destroy(o->f);
	free(o);
	return 0;
}

#define assert_refused(call, err)             \
	do {                                  \
		errno = 0;                    \
		assert_null(call);            \
		assert_int_equal(errno, err); \
	} while (0)

static void unsupported_objects(void **state)
{
	struct endpoint *a = &((struct one *)*state)->a;
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_td_init_attr td = {0};
	struct ibv_xrcd_init_attr xrcd = {0};
	struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_TM,
		.pd = a->pd};

	assert_refused(ibv_create_srq_ex(a->context, &srq), EOPNOTSUPP);
	assert_refused(ibv_alloc_mw(a->pd, (enum ibv_mw_type)3), EINVAL);
	assert_refused(ibv_alloc_dm(a->context, &dm), EOPNOTSUPP);
	assert_refused(ibv_alloc_td(a->context, &td), EOPNOTSUPP);
	assert_refused(ibv_open_xrcd(a->context, &xrcd), EOPNOTSUPP);
	assert_refused(ibv_alloc_null_mr(a->pd), EOPNOTSUPP);
	assert_refused(ibv_reg_dmabuf_mr(a->pd, 0, 64, 0, 0, 0), EOPNOTSUPP);
	assert_refused(ibv_import_pd(a->context, 1), EOPNOTSUPP);
	assert_refused(ibv_import_mr(a->pd, 1), EOPNOTSUPP);
	assert_refused(ibv_import_dm(a->context, 1), EOPNOTSUPP);
}

static void unsupported_operations(void **state)
{
	struct endpoint *a = &((struct one *)*state)->a;
	union ibv_gid gid = {{0}};
	struct ibv_ah_attr ah = {.is_global = 0};
	struct ibv_modify_cq_attr modify = {0};
	struct ibv_ece ece = {0};
	uint8_t mac[6];
	uint16_t vlan;

	/* Not a datagram QP, not a group. */
	assert_int_equal(ibv_attach_mcast(a->qp, &gid, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(a->qp, &gid, 0), EINVAL);
	assert_int_equal(ibv_query_ece(a->qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_set_ece(a->qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_modify_cq(a->cq, &modify), EOPNOTSUPP);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(a->context, &ah, mac, &vlan), EINVAL);
	assert_int_equal(ibv_query_qp_data_in_order(a->qp, IBV_WR_SEND, 0), 0);
	assert_int_equal(ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_ON_DEMAND),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_REMOTE_WRITE),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(
		ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 64, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ibv_resize_cq(a->cq, 1 << 20), EINVAL);
	assert_int_equal(ibv_resize_cq(a->cq, 0), EINVAL);
}

static void refused_queue_pairs(void **state)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_DRIVER};
	struct endpoint *a = &((struct one *)*state)->a;
	struct ibv_qp_init_attr init = {.send_cq = a->cq, .recv_cq = a->cq, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp_init_attr_ex ex = {.send_cq = a->cq,
		.recv_cq = a->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.pd = a->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS};
	struct ibv_srq srq = {.context = NULL};

	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		init.qp_type = types[i];
		assert_refused(ibv_create_qp(a->pd, &init), EOPNOTSUPP);
	}
	init.qp_type = IBV_QPT_RC;
	init.srq = &srq; /* of another context */
	assert_refused(ibv_create_qp(a->pd, &init), EINVAL);
	init.srq = NULL;
	init.recv_cq = NULL;
	assert_refused(ibv_create_qp(a->pd, &init), EINVAL);
	init.recv_cq = a->cq;
	init.cap.max_send_sge = RNIC_MAX_SGE + 1;
	assert_refused(ibv_create_qp(a->pd, &init), EINVAL);
	ex.send_ops_flags = IBV_QP_EX_WITH_TSO;
	assert_refused(ibv_create_qp_ex(a->context, &ex), EOPNOTSUPP);
	ex.qp_type = IBV_QPT_UD;
	ex.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	assert_refused(ibv_create_qp_ex(a->context, &ex), EOPNOTSUPP);
	ex.qp_type = IBV_QPT_UC;
	ex.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
	assert_refused(ibv_create_qp_ex(a->context, &ex), EOPNOTSUPP);
	ex.qp_type = IBV_QPT_RC;
	ex.send_ops_flags = IBV_QP_EX_WITH_SEND;
	ex.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	assert_refused(ibv_create_qp_ex(a->context, &ex), EOPNOTSUPP);
}

static void refused_queues(void **state)
{
	struct one *o = *state;
	struct ibv_comp_channel *other = ibv_create_comp_channel(o->f->end[1].context);
	struct ibv_cq_init_attr_ex ex = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

	assert_refused(ibv_create_cq(o->a.context, 0, NULL, NULL, 0), EINVAL);
	assert_refused(ibv_create_cq(o->a.context, -1, NULL, NULL, 0), EINVAL);
	assert_refused(ibv_create_cq(o->a.context, INT32_MAX, NULL, NULL, 0), EINVAL);
	assert_refused(ibv_create_cq(o->a.context, 4, NULL, NULL, 1), EINVAL);
	assert_refused(ibv_create_cq(o->a.context, 4, NULL, NULL, -1), EINVAL);
	assert_refused(ibv_create_cq(o->a.context, 4, NULL, other, 0), EINVAL);
	assert_refused(ibv_create_cq_ex(o->a.context, &ex), EOPNOTSUPP);
	ex.wc_flags = 0;
	ex.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	assert_refused(ibv_create_cq_ex(o->a.context, &ex), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_comp_channel(other), 0);
}

static void refused_memory(void **state)
{
	struct endpoint *a = &((struct one *)*state)->a;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *hole =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_true(hole != MAP_FAILED);
	assert_int_equal(munmap(hole + page, page), 0);
	assert_refused(ibv_reg_mr(a->pd, hole, 3 * page, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	assert_refused(ibv_reg_mr(a->pd, (void *)(UINTPTR_MAX - 10), 100, 0), EFAULT);
	assert_refused(ibv_reg_mr(a->pd, a->buf, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	assert_refused(ibv_reg_mr(a->pd, a->buf, 64, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	assert_refused(ibv_reg_mr(a->pd, a->buf, 64, IBV_ACCESS_ZERO_BASED), EOPNOTSUPP);
	mr = ibv_reg_mr(a->pd, hole, page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr); /* a hint */
	assert_int_equal(ibv_dealloc_pd(a->pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(hole, page);
	munmap(hole + 2 * page, page);
}

static void refused_requests(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_TSO, IBV_WR_DRIVER1};
	struct one *o = *state;
	struct endpoint b;
	struct ibv_sge sge[3] = {{0}};
	struct ibv_send_wr second = {.sg_list = sge, .num_sge = 3, .opcode = IBV_WR_SEND};
	struct ibv_send_wr first = {.next = &second, .opcode = IBV_WR_SEND}, *bad = NULL;
	struct ibv_recv_wr recv = {.sg_list = sge, .num_sge = 3}, *bad_recv = NULL;

	assert_int_equal(post_send(&o->a, 1, IBV_WR_SEND, 0, 10), EINVAL); /* RESET */
	assert_int_equal(post_recv(&o->a, 1, 0, 10), EINVAL);
	endpoint_create(&b, o->f->end[1].context, 64, false);
	endpoints_connect(&o->a, &b, 1);
	for (unsigned i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		assert_int_equal(post_send(&o->a, 1, opcodes[i], 0, 10), EOPNOTSUPP);
	/* The request that failed is named; the one before it stays posted. */
	assert_int_equal(ibv_post_send(o->a.qp, &first, &bad), EINVAL);
	assert_ptr_equal(bad, &second);
	assert_int_equal(ibv_post_recv(o->a.qp, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	endpoint_destroy(&b);
}

static void refused_transitions(void **state)
{
	struct one *o = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS}, got;
	struct ibv_qp_init_attr init;
	union ibv_gid self, unspecified = {{0}};

	assert_int_equal(ibv_modify_qp(o->a.qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(o->a.qp->state, IBV_QPS_RESET);
	assert_int_equal(endpoint_init(&o->a), 0);
	assert_int_equal(endpoint_rtr(&o->a, 2, &unspecified, 1), EINVAL);
	assert_int_equal(ibv_query_gid(o->a.context, 1, 1, &self), 0);
	assert_int_equal(endpoint_rtr(&o->a, o->a.qp->qp_num, &self, 9), EINVAL);
	assert_int_equal(ibv_query_qp(o->a.qp, &got, IBV_QP_STATE, &init), 0);
	assert_int_equal(got.qp_state, IBV_QPS_INIT);
	assert_int_equal(got.cur_qp_state, IBV_QPS_INIT);
	assert_ptr_equal(init.send_cq, o->a.cq);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_true(init.cap.max_send_wr >= EP_DEPTH);
}

/* Nobody answers at that address: three seconds of virtual time, then the error. */
static void unreachable_peer(void **state)
{
	struct one *o = *state;
	union ibv_gid nobody = {{[10] = 0xff, [11] = 0xff, [12] = 10, 77, 0, 99}};
	const uint64_t start = o->f->now;

	assert_int_equal(endpoint_init(&o->a), 0);
	assert_int_equal(endpoint_rtr(&o->a, 2, &nobody, 1), EHOSTUNREACH);
	assert_int_equal(errno, EHOSTUNREACH);
	assert_in_range(o->f->now - start, 2900000000, 3600000000);
	assert_int_equal(o->a.qp->state, IBV_QPS_INIT);
}

/* Objects of another library are passed on; with none loaded behind us the answer is ENOSYS, and
 * with libibverbs on a machine without RDMA the same. */
static void no_configuration_no_device(void **state)
{
	int n = -1;

	(void)state;
	unsetenv("INCLINE_RNIC");
	assert_refused(ibv_get_device_list(&n), ENOSYS);
}

static void bad_configuration_is_an_error(void **state)
{
	int n = -1, err = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

	(void)state;
	setenv("INCLINE_RNIC", "/nonexistent/rnic.json", 1);
	dup2(null, STDERR_FILENO);
	errno = 0;
	assert_null(ibv_get_device_list(&n));
	dup2(err, STDERR_FILENO);
	assert_int_equal(n, 0);
	assert_int_equal(errno, EINVAL);
	close(err);
	close(null);
	unsetenv("INCLINE_RNIC");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(unsupported_objects, setup, teardown),
		cmocka_unit_test_setup_teardown(unsupported_operations, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_queue_pairs, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_queues, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_transitions, setup, teardown),
		cmocka_unit_test_setup_teardown(unreachable_peer, setup, teardown),
		cmocka_unit_test(no_configuration_no_device),
		cmocka_unit_test(bad_configuration_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
