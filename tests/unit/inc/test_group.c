/* SPDX-License-Identifier: BSD-3-Clause */
/* Group specifications, arena ranges, QPN layout. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/inc/fixture.h"

static struct inc_group_spec spec;
static struct inc_ep_spec ep[INC_MAX_EP + 1];
static char err[INC_ERR_LEN];

static void fresh(void)
{
	const struct fx_opts opts = {
		.n_hosts = 3, .parent = true, .mtu = 1024, .m = 4, .w = 8, .start_psn = 5};

	fx_spec(&opts, &spec, ep);
	err[0] = '\0';
}

/* Refused with a message that begins with the field's name. */
static void refused(int code, const char *field)
{
	assert_int_equal(inc_group_check(&spec, err), -code);
	if (strncmp(err, field, strlen(field)) != 0)
		fail_msg("\"%s\" does not begin with \"%s\"", err, field);
	fresh();
}

static void test_check(void **state)
{
	(void)state;
	fresh();
	assert_int_equal(inc_group_check(&spec, err), 0);
	assert_int_equal(spec.slots, 64); /* 2 M W */
	fresh();
	spec.mode = INC_MODE_3;
	assert_int_equal(inc_group_check(&spec, err), 0);
	assert_int_equal(spec.slots, 64); /* 2 M W: less would do */
	spec.slots = 1;
	refused(EINVAL, "slots");
	spec.mode = INC_MODE_NETREDUCE;
	refused(EOPNOTSUPP, "mode");
	spec.kind = INC_MIXED;
	spec.prim = INC_BC;
	refused(EINVAL, "primitive");
	spec.prim = INC_BC + 1;
	refused(EINVAL, "primitive");
	spec.root = 1;
	refused(EINVAL, "root");
	spec.prim = INC_RED;
	spec.root = spec.n_ranks;
	refused(EINVAL, "root");
	spec.mtu = 1000;
	refused(EINVAL, "mtu");
	spec.m = spec.w = 1;
	refused(EINVAL, "m, w");
	spec.m = spec.w = 200;
	refused(EINVAL, "m, w");
	spec.m = 43691; /* twice the product is 2^32 + 2^15 */
	spec.w = 49152;
	refused(EINVAL, "m, w");
	spec.slots = 32;
	refused(EINVAL, "slots");
	spec.slots = 96;
	refused(EINVAL, "slots");
	spec.rto_us = INC_RTO_US; /* Mode-II has no timers */
	refused(EINVAL, "rto_us");
	spec.mode = INC_MODE_3;
	spec.rto_us = INC_MIN_RTO_US - 1;
	refused(EINVAL, "rto_us");
	spec.mode = INC_MODE_3;
	spec.rto_us = INC_MAX_RTO_US + 1;
	refused(EINVAL, "rto_us");
	spec.start_psn = 1 << 24;
	refused(EINVAL, "start_psn");
	spec.n_ranks = 5;
	refused(EINVAL, "endpoints: 1 of 5 ranks");
	spec.n_ep = INC_MAX_EP + 1;
	refused(EINVAL, "endpoints: 65");
	ep[1].ranks[0] = 0;
	refused(EINVAL, "endpoints[1].ranks");
	ep[1].ranks[0] = 9;
	refused(EINVAL, "endpoints[1].ranks");
	ep[0].parent = true;
	refused(EINVAL, "endpoints[0].parent");
	ep[3].host = true;
	refused(EINVAL, "endpoints[3].parent");
	ep[2].n_ranks = 0;
	refused(EINVAL, "endpoints[2].ranks");
	ep[2].remote_qpn = 1 << 24;
	refused(EINVAL, "endpoints[2].qpn");
	ep[2].remote_ip = (struct wire_ip){{0}};
	refused(EINVAL, "endpoints[2].ip");
	ep[2].remote_ip = (struct wire_ip){{0xfd}};
	refused(EINVAL, "endpoints[2].local_ip");
	ep[2].remote_ip = ep[1].remote_ip;
	ep[2].remote_qpn = ep[1].remote_qpn;
	refused(EINVAL, "endpoints[2]: same");
	ep[2].vlan = 4096;
	refused(EINVAL, "endpoints[2].vlan");
	spec.flags = INC_F_REPRODUCIBLE;
	ep[0].ranks[0] = 1;
	ep[1].ranks[0] = 0;
	refused(EINVAL, "endpoints[1].ranks");
	spec.name[0] = '\0';
	refused(EINVAL, "name");
}

/* The switch above has no other child: nobody is behind the parent, and nobody waits for it. */
static void test_nobody_above(void **state)
{
	static uint64_t block[1 << 14];
	struct inc_group *g = (struct inc_group *)block;
	struct inc_route r;

	(void)state;
	fresh();
	spec.kind = INC_MIXED;
	spec.n_ranks = 3;
	spec.ep[3].n_ranks = 0;
	assert_int_equal(inc_group_check(&spec, err), 0);
	assert_true(inc_group_bytes(&spec) <= sizeof(block));
	inc_group_init(g, &spec, 1, 0, 0);
	r = inc_route_of(g, INC_RED, 1);
	assert_true(r.in == 0x5 && r.outs == 0x2);
	r = inc_route_of(g, INC_BC, 1);
	assert_true(r.in == 0x2 && r.outs == 0x5);
	r = inc_route_of(g, INC_AR, 0);
	assert_true(r.in == 0x7 && r.outs == 0x8);
}

static void test_activate_needs_peers(void **state)
{
	static uint64_t block[65536];
	struct inc_group *g = (struct inc_group *)block;

	(void)state;
	fresh();
	ep[3].remote_qpn = 0;
	assert_int_equal(inc_group_check(&spec, err), 0);
	assert_true(inc_group_bytes(&spec) <= sizeof(block));
	inc_group_init(g, &spec, 9, 1, 0);
	assert_int_equal(inc_group_activate(g, err), -EINVAL);
	assert_string_equal(err, "endpoints[3].qpn: not known yet");
	inc_ep_at(g, 3)->remote_qpn = 0x9000;
	assert_int_equal(inc_group_activate(g, err), 0);
	assert_int_equal(g->state, INC_ACTIVE);
	assert_int_equal(inc_group_activate(g, err), -EINVAL);
}

static void test_qpn(void **state)
{
	(void)state;
	assert_int_equal(inc_qpn(4095, 63, 63), 0xffffff);
	assert_int_equal(inc_qpn(1, 0, 0), 0x1000);
	assert_int_equal(inc_qpn_slot(0xabc123), 0xabc);
	assert_int_equal(inc_qpn_ep(inc_qpn(3, 41, 7)), 41);
	assert_int_equal(inc_qpn_gen(inc_qpn(3, 41, 7 + 64)), 7);
}

static void test_arena(void **state)
{
	static struct inc_ranges r;
	uint64_t a, b, c, d;

	(void)state;
	inc_ranges_init(&r, 1024);
	assert_int_equal(inc_ranges_alloc(&r, 100, &a), 0);
	assert_int_equal(inc_ranges_alloc(&r, 256, &b), 0);
	assert_int_equal(inc_ranges_alloc(&r, 512, &c), 0);
	assert_int_equal(a, 0);
	assert_int_equal(b, 128);
	assert_int_equal(c, 384);
	assert_int_equal(inc_ranges_alloc(&r, 129, &d), -ENOSPC);
	assert_int_equal(inc_ranges_alloc(&r, SIZE_MAX, &d), -ENOSPC);
	assert_int_equal(inc_ranges_alloc(&r, 128, &d), 0);
	assert_int_equal(r.used, 1024);
	assert_int_equal(inc_ranges_free(&r, 64), -ENOENT);
	assert_int_equal(inc_ranges_free(&r, b), 0);
	assert_int_equal(inc_ranges_alloc(&r, 257, &d), -ENOSPC);
	assert_int_equal(inc_ranges_alloc(&r, 200, &d), 0);
	assert_int_equal(d, b);
	assert_int_equal(
		inc_ranges_free(&r, a) | inc_ranges_free(&r, c) | inc_ranges_free(&r, d), 0);
	assert_int_equal(r.used, 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_nobody_above),
		cmocka_unit_test(test_activate_needs_peers),
		cmocka_unit_test(test_qpn),
		cmocka_unit_test(test_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
