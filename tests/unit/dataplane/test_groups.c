/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups from the control plane's side: what is refused, slots, generations, their end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collective.h"

static void refused(int rc, const char *text)
{
	unsigned slot = 4711;
	uint64_t size, used;

	assert_int_equal(sw_group_create(sw, &spec, true, &slot, err), rc);
	if (strstr(err, text) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", err, text);
	assert_int_equal(slot, 4711);
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(used, 0);
	assert_int_equal(h_value(sw, "groups"), 0);
}

static void create_refused(void **state)
{
	(void)state;
	c_spec(2, 1024, false, false);
	eps[1].port = 31;
	refused(-ENOENT, "endpoints[1].port");
	c_spec(2, 1024, false, false);
	eps[1].remote_ip = h_ip("10.9.9.9");
	refused(-ENOENT, "endpoints[1].mac: 10.9.9.9");
	c_spec(2, 1024, false, false);
	eps[1].port = sw->ports[0].id;
	refused(-EINVAL, "reached by port p1, not p0");
	c_spec(2, 1024, false, false);
	eps[0].local_ip = h_ip("10.0.0.2");
	refused(-EINVAL, "endpoints[0].local_ip: 10.0.0.2 is not an address");
	c_spec(2, 4096, false, false);
	spec.w = 1024;
	refused(-ENOSPC, "aggregation memory");
	c_spec(2, 1024, false, false);
	spec.mode = INC_MODE_NETREDUCE;
	refused(-EOPNOTSUPP, "mode");
	c_spec(2, 1024, false, false);
	eps[0].remote_qpn = 0;
	refused(-EINVAL, "endpoints[0].qpn");
	c_spec(2, 1024, false, false);
	spec.n_ep = 0;
	refused(-EINVAL, "endpoints");
	h_stop(sw);
	sw = h_start(4, "{'addresses':['10.0.0.1']}", "{'mtu':1500}");
	c_spec(2, 1024, true, false);
	refused(-ENOENT, "no address of the family");
	c_spec(2, 2048, false, false);
	refused(-EINVAL, "more than the MTU 1500 of port p0");
	h_stop(sw);
	sw = h_start(4, "{'addresses':['10.0.0.1']}", "{'mtu':1087}");
	c_spec(2, 1024, false, false);
	spec.flags |= INC_F_WRITE;
	for (unsigned i = 0; i < spec.n_ep; i++)
		eps[i].mr_len = spec.m * spec.mtu;
	refused(-EINVAL, "make packets of 1088, more than the MTU 1087 of port p0");
	spec.flags &= ~INC_F_WRITE;
	for (unsigned i = 0; i < spec.n_ep; i++)
		eps[i].mr_len = 0;
	c_create();
}

static void filled_in(void **state)
{
	struct wire_ip own = h_ip("fd00::1");
	struct inc_ep *ep;
	uint8_t mac[6];

	(void)state;
	c_spec(2, 1024, true, false);
	ep = inc_ep_at(sw_group_get(sw, c_create()), 1);
	h_host_mac(1, mac);
	assert_memory_equal(ep->flow.dmac, mac, 6);
	assert_memory_equal(ep->flow.smac, h_port_mac(sw, 1), 6);
	assert_true(wire_ip_eq(&ep->flow.src, &own));
}

static int write_neigh(enum table_verb verb, unsigned host, unsigned port, uint8_t last)
{
	struct table_entry entry = {.key[0].ip = h_host4(host), .param[0].u = sw->ports[port].id};
	struct table_error e = {0};
	int rc;

	memcpy(entry.param[1].mac, (uint8_t[]){2, 0, 0, 0, 0, last}, 6);
	rc = h_write(sw, verb, FWD_NEIGH, &entry, &e);
	snprintf(err, sizeof(err), "%s", e.msg);
	return rc;
}

static int delete_own(void)
{
	struct table_entry entry = {.key[0].ip = h_ip("10.0.0.1")};
	struct table_error e = {0};
	int rc = h_write(sw, TABLE_DELETE, FWD_LOCAL_ADDR, &entry, &e);

	snprintf(err, sizeof(err), "%s", e.msg);
	return rc;
}

/* A NIC is replaced: results go to the new one, and the tables cannot lose what the group needs. */
static void neighbours_change(void **state)
{
	static const uint8_t replaced[6] = {2, 0, 0, 0, 0, 0x99};
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 1024, 1024, 0);
	struct frame f;
	unsigned slot;

	(void)state;
	c_spec(2, 1024, false, false);
	slot = c_create();
	assert_int_equal(write_neigh(TABLE_MODIFY, 1, 1, 0x99), 0);
	for (unsigned i = 0; i < 2; i++)
		h_inject(sw, i, b,
			c_host_frame(
				b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	for (unsigned i = 0; i < 2; i++)
		h_inject(sw, i, b,
			c_host_frame(b, slot, i, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0,
				(uint8_t[1024]){1}, 1024));
	h_run(sw);
	for (unsigned k = 0; k < 2; k++) { /* built, and from the template */
		assert_true(h_take(sw, 1, &f));
		assert_memory_equal(f.b, replaced, 6);
		assert_true(h_take(sw, 0, &f));
		assert_int_equal(f.b[5], 10);
	}

	assert_int_equal(write_neigh(TABLE_DELETE, 1, 1, 0), -EBUSY);
	assert_string_equal(err, "neigh 10.0.0.11: group \"g\" sends to it: delete that first");
	assert_int_equal(write_neigh(TABLE_MODIFY, 1, 2, 0x99), -EBUSY);
	assert_string_equal(
		err, "neigh 10.0.0.11: group \"g\" sends to it at another port or VLAN");
	assert_int_equal(delete_own(), -EBUSY);
	assert_string_equal(err, "local_addr 10.0.0.1: group \"g\" uses it: delete that first");
	assert_int_equal(write_neigh(TABLE_DELETE, 3, 3, 0), 0); /* nobody's */
	assert_int_equal(sw_group_delete(sw, slot, true, err), 0);
	assert_int_equal(delete_own(), 0);
	assert_int_equal(write_neigh(TABLE_DELETE, 1, 1, 0), 0);
}

/* An address that the spec gives is the manager's business. */
static void given_mac(void **state)
{
	unsigned slot;

	(void)state;
	c_spec(2, 1024, false, false);
	memcpy(eps[1].dmac, (uint8_t[]){2, 0, 0, 0, 0, 0x55}, 6);
	slot = c_create();
	assert_int_equal(write_neigh(TABLE_MODIFY, 1, 1, 0x99), 0);
	assert_int_equal(inc_ep_at(sw_group_get(sw, slot), 1)->flow.dmac[5], 0x55);
	assert_int_equal(write_neigh(TABLE_DELETE, 1, 1, 0), 0);
}

static void slots_and_generations(void **state)
{
	uint64_t size, used;
	unsigned slot, first;

	(void)state;
	c_spec(2, 1024, false, false);
	first = c_create();
	assert_int_equal(first, 1);
	assert_int_equal(sw_group_find(sw, "g"), (int)first);
	assert_int_equal(sw_group_find(sw, "h"), -ENOENT);
	assert_int_equal(sw_group_create(sw, &spec, true, &slot, err), -EEXIST);
	strcpy(spec.name, "h");
	assert_int_equal(c_create(), 2);
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(size, 4096 << 10);
	assert_int_equal(used, 2 * 8 * 1024);
	assert_int_equal(inc_ep_at(sw_group_get(sw, first), 1)->local_qpn, inc_qpn(1, 1, 0));
	assert_int_equal(sw_group_delete(sw, first, true, err), 0);
	assert_null(sw_group_get(sw, first));
	assert_int_equal(sw_group_delete(sw, first, true, err), -ENOENT);
	strcpy(spec.name, "i");
	assert_int_equal(c_create(), first); /* no rest in this test */
	assert_int_equal(inc_ep_at(sw_group_get(sw, first), 1)->local_qpn, inc_qpn(1, 1, 1));
	/* 63 more lives of the slot, and the generation is 0 again. */
	for (unsigned i = 0; i < 63; i++) {
		assert_int_equal(sw_group_delete(sw, first, true, err), 0);
		assert_int_equal(c_create(), first);
	}
	assert_int_equal(inc_ep_at(sw_group_get(sw, first), 1)->local_qpn, inc_qpn(1, 1, 0));
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(used, 2 * 8 * 1024);
	assert_null(sw_group_get(sw, 0));
	assert_null(sw_group_get(sw, INC_GROUP_SLOTS));
	assert_int_equal(sw_group_delete(sw, INC_GROUP_SLOTS, true, err), -ENOENT);
}

/* A switch that is started again gives the same slot to the next group; what hosts have sent to the
 * group of before, to the same addresses and at the same PSN, is not that group's. */
static void generations_begin_elsewhere(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	unsigned len;

	(void)state;
	sw_groups_begin(sw, 1);
	c_spec(2, 1024, false, false);
	assert_int_equal(c_create(), 1);
	len = c_host_frame(b, 1, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_stop(sw);
	sw = h_start(4, NULL, NULL);
	sw_groups_begin(sw, 2);
	c_spec(2, 1024, false, false);
	assert_int_equal(c_create(), 1);
	h_expect_drop(sw, 0, b, len, "inc_generation");
	len = c_host_frame(b, 1, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_expect_drop(sw, 0, b, len, "inc_consumed");
}

/* Every slot has a beginning of its own, rings' too, and it may be any generation. */
static void generations_begin_anywhere(void **state)
{
	uint64_t first = 0, ring = 0, slots = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		sw_groups_begin(sw, seed);
		first |= 1ull << sw->groups->gen[1];
		ring |= 1ull << sw->groups->gen[SW_RING_SLOT0];
	}
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++)
		slots |= 1ull << sw->groups->gen[slot];
	assert_true(first == UINT64_MAX && ring == UINT64_MAX && slots == UINT64_MAX);
}

static void slots_rest(void **state)
{
	(void)state;
	h_stop(sw);
	sw = h_start(4, "{'slot_rest_ms':3600000}", NULL);
	c_spec(2, 1024, false, false);
	assert_int_equal(c_create(), 1);
	assert_int_equal(sw_group_delete(sw, 1, true, err), 0);
	assert_int_equal(c_create(), 2);
}

static void draining(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	unsigned slot;
	uint64_t until;

	(void)state;
	c_spec(2, 1024, false, false);
	slot = c_create();
	assert_int_equal(sw_group_delete(sw, slot, false, err), 0);
	assert_int_equal(sw_group_get(sw, slot)->state, INC_DRAINING);
	assert_int_equal(sw_group_delete(sw, slot, false, err), -EALREADY);
	h_expect_drop(sw, 0, b,
		c_host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN),
		"inc_draining");
	until = sw->slot[slot].drain_until;
	sw_tick(sw, until - 1);
	assert_non_null(sw_group_get(sw, slot));
	sw_tick(sw, until);
	assert_null(sw_group_get(sw, slot));
}

static void activation(void **state)
{
	uint32_t qpn[3] = {0, 0x55, 0};
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	unsigned slot, len;

	(void)state;
	c_spec(2, 1024, false, false);
	eps[1].remote_qpn = 0;
	assert_int_equal(sw_group_create(sw, &spec, false, &slot, err), 0);
	len = c_host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN);
	h_expect_drop(sw, 0, b, len, "inc_group_state");
	assert_int_equal(sw_group_activate(sw, slot, NULL, 0, err), -EINVAL);
	assert_int_equal(sw_group_activate(sw, slot, qpn, 3, err), -EINVAL);
	qpn[1] = 0x1000000;
	assert_int_equal(sw_group_activate(sw, slot, qpn, 2, err), -EINVAL);
	qpn[1] = 0x55;
	qpn[0] = 0x66;
	assert_int_equal(sw_group_activate(sw, slot, qpn, 2, err), -EEXIST);
	qpn[0] = 0;
	assert_int_equal(sw_group_activate(sw, slot, qpn, 2, err), 0);
	assert_int_equal(sw_group_activate(sw, slot, qpn, 2, err), -EBUSY);
	assert_int_equal(sw_group_activate(sw, 77, qpn, 2, err), -ENOENT);
	h_expect_drop(sw, 0, b, len, "inc_consumed");
}

/* A refused activation has changed nothing: neither what was known nor, in Mode-I, connections. */
static void refused_activation(void **state)
{
	const uint32_t one[3] = {0, 0x55}, all[3] = {0, 0x55, 0x66};
	struct inc_group *g;
	struct wire_ip dst;
	unsigned slot;

	(void)state;
	c_spec(3, 1024, false, false);
	eps[1].remote_qpn = eps[2].remote_qpn = 0;
	assert_int_equal(sw_group_create(sw, &spec, false, &slot, err), 0);
	g = sw_group_get(sw, slot);
	assert_int_equal(sw_group_activate(sw, slot, one, 3, err), -EINVAL);
	assert_int_equal(inc_ep_at(g, 1)->remote_qpn, 0);
	assert_int_equal(g->state, INC_INSTALLED);
	assert_int_equal(sw_group_delete(sw, slot, true, err), 0);

	spec.mode = INC_MODE_1;
	spec.kind = INC_MIXED;
	spec.flags = 0;
	spec.slots = 0;
	spec.name[0] = 'h';
	assert_int_equal(sw_group_create(sw, &spec, false, &slot, err), 0);
	g = sw_group_get(sw, slot);
	dst = inc_ep_at(g, 2)->flow.dst;
	inc_ep_at(g, 2)->flow.dst = (struct wire_ip){{0xff, 2}}; /* multicast: no connection */
	assert_int_equal(sw_group_activate(sw, slot, all, 3, err), -EINVAL);
	assert_string_equal(err, "endpoints[2]: cannot connect its queue pair: Invalid argument");
	assert_int_equal(g->state, INC_INSTALLED);
	assert_int_equal(inc_ep_at(g, 2)->remote_qpn, 0);
	inc_ep_at(g, 2)->flow.dst = dst;
	assert_int_equal(sw_group_activate(sw, slot, all, 3, err), 0);
	assert_int_equal(g->state, INC_ACTIVE);
	assert_int_equal(inc_ep_at(g, 2)->remote_qpn, 0x66);
}

/* Made, and forgotten by its maker; one that was started stays. */
static void never_activated(void **state)
{
	const uint64_t later = sw_now(sw) + 60000000000;
	unsigned slot;

	(void)state;
	c_spec(2, 1024, false, false);
	spec.activate_ms = 20000;
	assert_int_equal(sw_group_create(sw, &spec, false, &slot, err), 0);
	assert_true(sw->arena->used > 0);
	sw_tick(sw, sw_now(sw));
	assert_non_null(sw_group_get(sw, slot));
	sw_tick(sw, later);
	assert_null(sw_group_get(sw, slot));
	assert_int_equal(sw->arena->used, 0);

	assert_int_equal(sw_group_create(sw, &spec, false, &slot, err), 0);
	assert_int_equal(sw_group_activate(sw, slot, NULL, 0, err), 0);
	sw_tick(sw, later);
	assert_int_equal(sw_group_get(sw, slot)->state, INC_ACTIVE);
	/* Without memory for a while it is installed, but not forgotten. */
	inc_group_set_state(sw_group_get(sw, slot), INC_ACTIVE, INC_INSTALLED);
	sw_tick(sw, later);
	assert_non_null(sw_group_get(sw, slot));
}

static void failed(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	struct wire_pkt pkt;
	struct frame f;
	unsigned slot;

	(void)state;
	c_spec(2, 1024, false, false);
	slot = c_create();
	assert_int_equal(sw_group_fail(sw, slot, err), 0);
	/* Told so, once. */
	h_exchange(sw, 0, b,
		c_host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN), 0, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_true(wire_icrc_ok(f.b, &pkt));
	assert_int_equal(pkt.syndrome, ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION);
	assert_int_equal(h_drop(sw, "inc_group_failed"), 1);
	assert_int_equal(sw_group_delete(sw, slot, false, err), 0); /* nothing to finish */
	assert_null(sw_group_get(sw, slot));
}

/* Who is missing takes a look at every slot of a group, which are the worker's cache lines: counted
 * here (the linker puts this in the place of the function). */
static unsigned looks;
uint64_t __real_inc_group_missing(struct inc_group *g, uint32_t *psn);
uint64_t __wrap_inc_group_missing(struct inc_group *g, uint32_t *psn);

uint64_t __wrap_inc_group_missing(struct inc_group *g, uint32_t *psn)
{
	looks++;
	return __real_inc_group_missing(g, psn);
}

static void rarely_looked_at(void **state)
{
	struct inc_group *g;
	uint64_t at;

	(void)state;
	c_spec(2, 1024, false, false);
	g = sw_group_get(sw, c_create());
	assert_int_equal(g->state, INC_ACTIVE);
	looks = 0;
	for (at = g->last_progress_ns; at < g->last_progress_ns + sw->config.stall_ns;
		at += sw->config.stall_ns / 50)
		sw_tick(sw, at);
	assert_int_equal(looks, 0);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns);
	assert_int_equal(looks, 1);
}

static void stall(void **state)
{
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, 0, 1024, 0);
	struct inc_group *g;
	struct frame f;
	unsigned slot;

	(void)state;
	c_spec(2, 1024, false, false);
	slot = c_create();
	g = sw_group_get(sw, slot);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns + 1);
	assert_int_equal(h_value(sw, "stalls"), 0); /* nobody waits */
	h_inject(sw, 0, b,
		c_host_frame(b, slot, 0, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns - 1);
	assert_int_equal(h_value(sw, "stalls"), 0);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns + 1);
	sw_tick(sw, g->last_progress_ns + sw->config.stall_ns + 2);
	assert_int_equal(h_value(sw, "stalls"), 1);
	assert_int_equal(h_value(sw, "groups_stalled"), 1);
	h_inject(sw, 1, b,
		c_host_frame(b, slot, 1, ROCE_SEND_ONLY_IMM, START_PSN, imm, pay, CTRL_LEN));
	h_run(sw);
	assert_true(h_take(sw, 0, &f));
	sw_tick(sw, port_now_ns());
	assert_int_equal(h_value(sw, "groups_stalled"), 0);
}

static void send(unsigned slot, unsigned host, uint32_t psn, unsigned seq, bool control)
{
	static const uint8_t data[1024] = {1};
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	uint32_t imm = c_control(pay, sizeof(data), 1024, seq);

	h_inject(sw, host, b,
		control ? c_host_frame(b, slot, host, ROCE_SEND_ONLY_IMM, psn, imm, pay, CTRL_LEN)
			: c_host_frame(b, slot, host, ROCE_SEND_ONLY, psn, 0, data, sizeof(data)));
	h_run(sw);
}

static void acknowledge(unsigned slot, unsigned host, uint32_t psn)
{
	uint8_t b[H_FRAME_MAX];

	h_inject(sw, host, b, c_host_frame(b, slot, host, ROCE_ACK, psn, 0, NULL, 0));
	h_run(sw);
}

static unsigned drain(void)
{
	struct frame f;
	unsigned n = 0;

	for (unsigned port = 0; port < 4; port++)
		while (h_take(sw, port, &f))
			n++;
	return n;
}

/* The indirection layer: memory comes and goes between operations, not within one. */
static void rebinding(void **state)
{
	uint64_t size, used;
	struct inc_group *g;
	unsigned a, b;

	(void)state;
	c_spec(2, 1024, false, false);
	spec.slots = 4096; /* all of the arena */
	a = c_create();
	strcpy(spec.name, "b");
	assert_int_equal(sw_group_create(sw, &spec, true, &b, err), -ENOSPC);
	c_spec(2, 1024, false, false);
	strcpy(spec.name, "b");
	spec.slots = 2048;
	spec.unbound = true;
	b = c_create();
	assert_int_equal(sw_group_rebind(sw, b, true, err), -ENOSPC);
	assert_true(sw_group_get(sw, b)->pay_off == INC_NO_ARENA);
	assert_int_equal(sw_group_get(sw, b)->state, INC_ACTIVE);

	/* A barrier needs no memory; data do. */
	g = sw_group_get(sw, b);
	send(b, 0, START_PSN, 0, true);
	send(b, 1, START_PSN, 0, true);
	assert_int_equal(drain(), 2);
	send(b, 0, START_PSN + 1, 0, false);
	assert_int_equal(h_drop(sw, "inc_no_arena"), 1);
	assert_int_equal(sw_group_rebind(sw, b, true, err), -EBUSY);

	/* The other gives way, in the middle of which nothing may be lost. */
	assert_int_equal(sw_group_rebind(sw, a, false, err), 0);
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(used, 0);
	assert_int_equal(sw_group_delete(sw, b, true, err), 0);
	spec.unbound = false;
	b = c_create();
	g = sw_group_get(sw, b);
	for (unsigned host = 0; host < 2; host++)
		send(b, host, START_PSN, 0, true);
	for (unsigned host = 0; host < 2; host++)
		send(b, host, START_PSN + 1, 0, false);
	assert_int_equal(drain(), 4);
	assert_int_equal(sw_group_rebind(sw, b, false, err), -EBUSY);
	assert_non_null(strstr(err, "waits for ranks 0,1"));
	acknowledge(b, 0, START_PSN + 1);
	acknowledge(b, 1, START_PSN + 1);
	drain();
	assert_int_equal(sw_group_rebind(sw, b, false, err), 0);
	assert_int_equal(g->state, INC_ACTIVE);
	assert_int_equal(sw_group_rebind(sw, a, true, err), 0);
	assert_int_equal(sw_group_get(sw, a)->pay_off, 0);

	/* What comes late is acknowledged, not added to anything. */
	send(b, 0, START_PSN + 1, 0, false);
	assert_int_equal(drain(), 1);
	assert_int_equal(g->count[INC_C_STALE], 1);
	assert_int_equal(g->count[INC_C_CONSUMED], 4);
	assert_int_equal(sw_group_delete(sw, a, true, err), 0);
	assert_int_equal(sw_group_rebind(sw, b, true, err), 0);
	assert_int_equal(sw_group_rebind(sw, b, true, err), 0); /* stays: it is the lowest place */
	assert_int_equal(g->pay_off, 0);
	assert_int_equal(sw_group_rebind(sw, 77, true, err), -ENOENT);
	assert_int_equal(sw_group_fail(sw, b, err), 0);
	assert_int_equal(sw_group_rebind(sw, b, false, err), -EBUSY);
	assert_int_equal(sw_group_delete(sw, b, true, err), 0);
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(used, 0);
}

/* The worker's turns are never longer than a part of what a large group of mode I takes. */
static void connected_in_parts(void **state)
{
	unsigned slot;

	(void)state;
	c_spec(2, 1024, false, false);
	spec.mode = INC_MODE_1;
	spec.w = 200;
	spec.flags = 0;
	slot = c_create();
	assert_int_equal(sw->rnic->parts, 2 * ((200 + 2 + 63) / 64) + 1);
	assert_int_equal(sw_group_get(sw, slot)->state, INC_ACTIVE);
	assert_int_equal(sw_group_delete(sw, slot, true, err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, c_start, c_stop)
		T(create_refused),
		T(filled_in),
		T(neighbours_change),
		T(given_mac),
		T(slots_and_generations),
		T(generations_begin_elsewhere),
		T(generations_begin_anywhere),
		T(slots_rest),
		T(draining),
		T(activation),
		T(refused_activation),
		T(never_activated),
		T(failed),
		T(rarely_looked_at),
		T(stall),
		T(rebinding),
		T(connected_in_parts),
#undef T
	};
	int failed_tests = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed_tests;
}
