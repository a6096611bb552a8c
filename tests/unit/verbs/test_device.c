/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, queries, and the layout that programs compiled against verbs.h rely on. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/ccl/comm.h"
#include "lib/verbs/internal.h"
#include "tests/unit/verbs/fabric.h"

static int setup(void **state)
{
	struct fabric *f = fabric_create();

	fabric_open(f, false);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fabric_destroy(*state);
	return 0;
}

static struct ibv_context *context_of(void **state)
{
	return ((struct fabric *)*state)->end[0].context;
}

static void context_is_extended(void **state)
{
	struct ibv_context *c = context_of(state);

	assert_non_null(verbs_get_ctx(c));
	assert_non_null(verbs_get_ctx_op(c, query_port));
	assert_non_null(verbs_get_ctx_op(c, query_device_ex));
	assert_null(verbs_get_ctx_op(c, alloc_dm));
	assert_int_equal(c->device->node_type, IBV_NODE_CA);
	assert_int_equal(c->device->transport_type, IBV_TRANSPORT_IB);
	assert_string_equal(ibv_get_device_name(c->device), "a");
	assert_int_equal(ibv_get_device_index(c->device), -1);
	assert_int_equal(be64toh(ibv_get_device_guid(c->device)), 0x000000fffe000001);
}

static void device_is_described(void **state)
{
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(context_of(state), &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(attr.max_pkeys, 1);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(attr.max_srq, attr.max_qp);
	assert_int_equal(attr.max_qp_rd_atom, RNIC_MAX_RD_ATOMIC);
	assert_int_equal(attr.vendor_id, 0x02494e);
	assert_int_equal(attr.vendor_part_id, 1);
	assert_int_equal(attr.max_mw, attr.max_mr);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_int_equal(attr.max_ah, 1 << 16);
	assert_int_equal(attr.node_guid, ibv_get_device_guid(context_of(state)->device));
	assert_true(strncmp(attr.fw_ver, "incline-", 8) == 0);
	memset(&ex, 0xff, sizeof(ex));
	assert_int_equal(ibv_query_device_ex(context_of(state), NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
	assert_int_equal(ex.odp_caps.general_caps, 0);
	assert_int_equal(ex.tm_caps.max_ops, 0);
}

/* CommLib spares Soft-RoCE the RNR NAKs that hold hosts; this device bears them. */
static void takes_rnr_naks_from_commlib(void **state)
{
	assert_true(ccl_device_rnr(context_of(state)));
}

static void port_is_described(void **state)
{
	struct ibv_port_attr attr;
	struct fabric *f = *state;
	struct {
		unsigned char bytes[offsetof(struct ibv_port_attr, port_cap_flags2)];
		unsigned char guard;
	} old = {.guard = 0x5a};

	assert_int_equal(ibv_query_port(context_of(state), 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, 5);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.active_mtu, IBV_MTU_4096);
	assert_int_equal(attr.gid_tbl_len, 3);
	assert_int_equal(attr.pkey_tbl_len, 1);
	assert_int_equal(attr.lid, 0);
	/* The function that old programs call writes an older, shorter struct. */
	assert_int_equal(
		(ibv_query_port)(context_of(state), 1, (struct _compat_ibv_port_attr *)&old), 0);
	assert_memory_equal(old.bytes, &attr, sizeof(old.bytes));
	assert_int_equal(old.guard, 0x5a);
	f->link_down = true;
	assert_int_equal(ibv_query_port(context_of(state), 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_DOWN);
	assert_int_equal(ibv_query_port(context_of(state), 0, &attr), EINVAL);
	assert_int_equal(ibv_query_port(context_of(state), 2, &attr), EINVAL);
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type);

static void gids_are_listed(void **state)
{
	static const uint8_t link_local[16] = {0xfe, 0x80, [11] = 0xff, [12] = 0xfe, [15] = 1};
	static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, 77, 0, 1};
	struct ibv_context *c = context_of(state);
	struct ibv_gid_entry entry, table[4];
	union ibv_gid gid;
	int type = -1;

	assert_int_equal(ibv_query_gid(c, 1, 0, &gid), 0);
	assert_memory_equal(gid.raw, link_local, 16);
	assert_int_equal(ibv_query_gid(c, 1, 1, &gid), 0);
	assert_memory_equal(gid.raw, mapped, 16);
	assert_int_equal(ibv_query_gid(c, 1, 3, &gid), -1);
	assert_int_equal(ibv_query_gid(c, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(c, 2, 0, &gid), -1);
	assert_int_equal(ibv_query_gid_type(c, 1, 1, &type), 0);
	assert_int_equal(type, 1);
	assert_int_equal(ibv_query_gid_ex(c, 1, 1, &entry, 0), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.gid_index, 1);
	assert_int_equal(ibv_query_gid_ex(c, 1, 3, &entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(c, 1, 1, &entry, 1), EINVAL);
	assert_int_equal(ibv_query_gid_table(c, table, 4, 0), 3);
	assert_memory_equal(table[1].gid.raw, mapped, 16);
	assert_int_equal(ibv_query_gid_table(c, table, 2, 0), -EINVAL);
}

static void pkey_is_the_default_one(void **state)
{
	struct ibv_context *c = context_of(state);
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(c, 1, 0, &pkey), 0);
	assert_int_equal(be16toh(pkey), 0xffff);
	assert_int_equal(ibv_query_pkey(c, 1, 1, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(c, 1, htobe16(0xffff)), 0);
	assert_int_equal(ibv_get_pkey_index(c, 1, htobe16(0x7fff)), -1);
}

/* A device may be opened again while it is open: programs look first, then use. */
static void second_context_shares_the_device(void **state)
{
	struct ibv_context *first = context_of(state);
	struct ibv_context *second = ibv_open_device(first->device);
	struct endpoint ep;

	assert_non_null(second);
	assert_ptr_equal(second->device, first->device);
	endpoint_create(&ep, second, 64, true);
	endpoint_destroy(&ep);
	assert_int_equal(ibv_close_device(second), 0);
	assert_int_equal(((struct fabric *)*state)->end[0].closed, 0);
}

/* Whatever a program leaves behind goes with the context. */
static void close_frees_what_is_left(void **state)
{
	struct fabric *f = *state;
	struct endpoint a, b;

	endpoint_create(&a, f->end[0].context, 4096, true);
	endpoint_create(&b, f->end[1].context, 4096, true);
	endpoints_connect(&a, &b, 1);
	assert_int_equal(post_recv(&b, 1, 0, 100), 0);
	assert_int_equal(post_send(&a, 1, IBV_WR_SEND, 0, 100), 0);
	assert_int_equal(ibv_close_device(f->end[0].context), 0);
	f->end[0].context = NULL;
	assert_int_equal(ibv_close_device(f->end[1].context), 0);
	f->end[1].context = NULL;
	free(a.buf);
	free(b.buf);
}

static void fork_needs_nothing(void **state)
{
	(void)state;
	setenv("INCLINE_RNIC", "/nonexistent", 1);
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	unsetenv("INCLINE_RNIC");
}

static void counters_have_names(void **state)
{
	struct inc_dv_stat stats[256];
	unsigned n, again;
	bool seen = false;

	assert_true(inc_dv_is_supported(context_of(state)));
	assert_int_equal(inc_dv_query_stats(context_of(state), stats, 256, &n), 0);
	assert_in_range(n, RNIC_N_COUNTERS + RNIC_N_DROPS - 1, 256);
	for (unsigned i = 0; i < n; i++) {
		assert_non_null(stats[i].name);
		seen |= strcmp(stats[i].name, "icrc_bad") == 0;
	}
	assert_true(seen);
	assert_int_equal(inc_dv_query_stats(context_of(state), NULL, 0, &again), 0);
	assert_int_equal(again, n);
}

/* ---- doorbells that find the device owned ---- */

enum { RINGS = 6 };

struct ringing {
	struct endpoint a, b;
	unsigned left;
};

static void write_one(struct ringing *r)
{
	struct ibv_sge sge = {(uintptr_t)r->a.buf, 64, r->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .wr.rdma = {(uintptr_t)r->b.buf, r->b.mr->rkey}},
			   *bad;

	assert_int_equal(ibv_post_send(r->a.qp, &wr, &bad), 0);
}

/* Somebody posts while a frame of the owner's leaves. */
static void ring_once_more(struct fabric *f)
{
	struct ringing *r = f->arg;

	if (r->left > 0) {
		r->left--;
		write_one(r);
	}
}

static void ringing_open(struct ringing *r, struct fabric *f)
{
	endpoint_create(&r->a, f->end[0].context, 4096, false);
	endpoint_create(&r->b, f->end[1].context, 4096, false);
	endpoints_connect(&r->a, &r->b, 1);
	f->arg = r;
}

static void ringing_close(struct ringing *r)
{
	endpoint_destroy(&r->a);
	endpoint_destroy(&r->b);
}

/* Each of them is served, turn after turn, by who took the first. */
static void bells_during_turns(void **state)
{
	struct fabric *f = *state;
	struct ringing r = {.left = RINGS};
	uint64_t before;

	ringing_open(&r, f);
	f->on_tx = ring_once_more;
	before = f->n_tx;
	write_one(&r);
	assert_int_equal(r.left, 0);
	assert_true(f->n_tx - before >= 1 + RINGS);
	f->on_tx = NULL;
	ringing_close(&r);
}

/* And one that rings during a control call, when that ends. */
static void bell_during_control(void **state)
{
	struct fabric *f = *state;
	struct ringing r = {0};
	uint64_t before;

	ringing_open(&r, f);
	before = f->n_tx;
	iv_own(iv_dev(r.a.context));
	write_one(&r);
	assert_int_equal(f->n_tx, before);
	iv_disown(iv_dev(r.a.context));
	assert_false(rnic_rang(incline_verbs_rnic(r.a.context)));
	assert_int_equal(f->n_tx, before + 1);
	ringing_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(context_is_extended, setup, teardown),
		cmocka_unit_test_setup_teardown(device_is_described, setup, teardown),
		cmocka_unit_test_setup_teardown(takes_rnr_naks_from_commlib, setup, teardown),
		cmocka_unit_test_setup_teardown(port_is_described, setup, teardown),
		cmocka_unit_test_setup_teardown(gids_are_listed, setup, teardown),
		cmocka_unit_test_setup_teardown(pkey_is_the_default_one, setup, teardown),
		cmocka_unit_test_setup_teardown(second_context_shares_the_device, setup, teardown),
		cmocka_unit_test_setup_teardown(close_frees_what_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(fork_needs_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(counters_have_names, setup, teardown),
		cmocka_unit_test_setup_teardown(bells_during_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(bell_during_control, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
