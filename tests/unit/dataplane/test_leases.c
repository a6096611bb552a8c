/* SPDX-License-Identifier: BSD-3-Clause */
/* Leases: groups that share a range of aggregation memory, one tenant at a time. */
#include <errno.h>
#include <string.h>

#include "collective.h"

enum { MTU = 1024, RING = 8 * MTU /* 2 M W slots */ };

static uint64_t used(void)
{
	uint64_t size, taken;

	sw_arena_usage(sw, &size, &taken);
	return taken;
}

static unsigned create(const char *name, const char *tenant, unsigned slots)
{
	c_spec(2, MTU, false, false);
	strcpy(spec.name, name);
	strcpy(spec.lease, "pool");
	strcpy(spec.tenant, tenant);
	spec.slots = slots;
	spec.lease_ms = 500;
	return c_create();
}

static struct sw_lease_info info(void)
{
	struct sw_lease_info l;

	assert_int_equal(sw_lease_get(sw, 0, &l), 0);
	return l;
}

static int acquire(const char *tenant)
{
	return sw_lease_acquire(sw, "pool", tenant, err);
}

static bool release(const char *tenant)
{
	bool pending;

	assert_int_equal(sw_lease_release(sw, "pool", tenant, &pending, err), 0);
	return pending;
}

static bool bound(unsigned slot)
{
	return sw_group_get(sw, slot)->pay_off != INC_NO_ARENA;
}

static void send(unsigned slot, unsigned host, unsigned op, bool control, int32_t value)
{
	uint32_t psn = psn_add(START_PSN, (int32_t)(2 * op + !control));
	uint8_t pay[CTRL_LEN], b[H_FRAME_MAX];
	int32_t data[MTU / 4];
	uint32_t imm = c_control(pay, sizeof(data), MTU, op);

	for (unsigned i = 0; i < MTU / 4; i++)
		data[i] = value + (int32_t)i;
	h_inject(sw, host, b,
		control ? c_host_frame(b, slot, host, ROCE_SEND_ONLY_IMM, psn, imm, pay, CTRL_LEN)
			: c_host_frame(b, slot, host, ROCE_SEND_ONLY, psn, 0, data, sizeof(data)));
	h_run(sw);
}

static void acknowledge(unsigned slot, unsigned op)
{
	uint8_t b[H_FRAME_MAX];
	struct frame f;

	for (unsigned host = 0; host < 2; host++) {
		h_inject(sw, host, b,
			c_host_frame(b, slot, host, ROCE_ACK,
				psn_add(START_PSN, (int32_t)(2 * op + 1)), 0, NULL, 0));
		h_run(sw);
		while (h_take(sw, host, &f)) /* reflected */
			;
	}
}

/* One operation of both hosts up to its result, which must be the sum. */
static void operation(unsigned slot, unsigned op, int32_t value)
{
	struct wire_pkt pkt;
	struct frame f;
	int32_t got;

	for (int control = 1; control >= 0; control--)
		for (unsigned host = 0; host < 2; host++)
			send(slot, host, op, control, value * (int32_t)(host + 1));
	for (unsigned host = 0; host < 2; host++) {
		assert_true(h_take(sw, host, &f)); /* the control */
		assert_true(h_take(sw, host, &f));
		assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
		assert_true(wire_icrc_ok(f.b, &pkt));
		assert_int_equal(pkt.pay_len, MTU);
		for (unsigned i = 0; i < MTU / 4; i++) {
			memcpy(&got, f.b + pkt.pay_off + 4 * i, 4);
			assert_int_equal(got, 3 * value + 2 * (int32_t)i);
		}
	}
}

/* As large as the largest tenant, and there as long as somebody names it. */
static void range(void **state)
{
	unsigned a, b, c;

	(void)state;
	a = create("a", "", 0);
	assert_int_equal(used(), RING);
	b = create("b", "", 0);
	assert_int_equal(used(), RING);
	assert_int_equal(acquire("a"), 0);
	assert_int_equal(sw_group_get(sw, a)->pay_off, 0);
	assert_false(bound(b));

	/* A larger tenant, while another is at work: that keeps its range to the end. */
	c = create("c", "", 16);
	assert_int_equal(used(), RING + 2 * RING);
	operation(a, 0, 7);
	acknowledge(a, 0);
	assert_false(release("a"));
	assert_int_equal(used(), 2 * RING);
	assert_int_equal(acquire("c"), 0);
	assert_int_equal(info().bytes, 2 * RING);
	assert_int_equal(info().members, 3);
	operation(c, 0, 1);
	acknowledge(c, 0);
	assert_int_equal(sw_group_delete(sw, c, true, err), 0);
	assert_string_equal(info().holder, "");
	assert_int_equal(sw_group_delete(sw, a, true, err), 0);
	assert_int_equal(used(), 2 * RING);
	assert_int_equal(sw_group_delete(sw, b, true, err), 0);
	assert_int_equal(used(), 0);
	assert_string_equal(info().name, "");
	assert_int_equal(acquire("a"), -ENOENT);
}

/* Groups of a tenant lie side by side; they get and lose their parts together. */
static void tenants(void **state)
{
	unsigned a, a2, b;

	(void)state;
	a = create("a", "job", 0);
	a2 = create("a2", "job", 16);
	b = create("b", "", 0);
	assert_int_equal(used(), 3 * RING);
	assert_int_equal(acquire("a"), -ENOENT);
	assert_non_null(strstr(err, "tenant: \"a\" has no group in lease \"pool\""));
	assert_int_equal(acquire("job"), 0);
	assert_int_equal(sw_group_get(sw, a)->pay_off, 0);
	assert_int_equal(sw_group_get(sw, a2)->pay_off, RING);
	operation(a, 0, 3);
	operation(a2, 0, 4);
	acknowledge(a, 0);
	assert_true(release("job")); /* the other still waits */
	assert_true(bound(a) && bound(a2));
	acknowledge(a2, 0);
	assert_false(release("job"));
	assert_false(bound(a) || bound(a2));
	assert_int_equal(acquire("b"), 0);
	assert_int_equal(sw_group_get(sw, b)->pay_off, 0);

	/* A group that joins its tenant may not change what that holds. */
	c_spec(2, MTU, false, false);
	strcpy(spec.name, "b2");
	strcpy(spec.lease, "pool");
	strcpy(spec.tenant, "b");
	assert_int_equal(sw_group_create(sw, &spec, true, &a, err), -EBUSY);
	assert_non_null(strstr(err, "held by this tenant"));
	assert_int_equal(used(), 3 * RING);
}

/* First come, first served. */
static void contention(void **state)
{
	struct inc_group before;
	unsigned a, b;

	(void)state;
	a = create("a", "", 0);
	b = create("b", "", 0);
	assert_int_equal(acquire("b"), 0);
	assert_int_equal(acquire("b"), 0); /* once more: its time begins anew */
	before = *sw_group_get(sw, a);
	assert_int_equal(acquire("a"), -EBUSY);
	assert_non_null(strstr(err, "lease \"pool\" is held by \"b\" for 0 ms"));
	assert_memory_equal(&before, sw_group_get(sw, a), sizeof(before));
	assert_false(release("a")); /* is not its to give */
	assert_string_equal(info().holder, "b");
	operation(b, 0, 5);

	/* Acknowledgements are under way; whoever asks then gets it. */
	assert_true(release("b"));
	assert_int_equal(acquire("a"), -EBUSY);
	assert_non_null(strstr(err, "letting go"));
	acknowledge(b, 0);
	assert_int_equal(acquire("a"), 0);
	assert_int_equal(sw_group_get(sw, b)->state, INC_ACTIVE);
	operation(a, 0, 6);

	/* What comes late is answered, and added to nothing. */
	send(b, 0, 0, false, 1000);
	assert_int_equal(sw_group_get(sw, b)->count[INC_C_STALE], 1);
	assert_int_equal(sw_group_get(sw, b)->count[INC_C_CONSUMED], 4);
	/* Who begins without it gets nowhere. */
	send(b, 0, 1, true, 0);
	send(b, 0, 1, false, 1000);
	assert_int_equal(h_drop(sw, "inc_no_arena"), 1);
	acknowledge(a, 0);
	assert_false(release("a"));
	assert_int_equal(info().count.acquired, 3);
	assert_int_equal(info().count.refused, 2);
	assert_int_equal(info().count.released, 2);
	assert_int_equal(info().count.taken_back, 0);
}

/* A tick lets go, too, when the last acknowledgement has come. */
static void let_go_later(void **state)
{
	unsigned a;

	(void)state;
	a = create("a", "", 0);
	assert_int_equal(acquire("a"), 0);
	operation(a, 0, 5);
	assert_true(release("a"));
	sw_tick(sw, port_now_ns());
	assert_string_equal(info().holder, "a");
	acknowledge(a, 0);
	sw_tick(sw, port_now_ns());
	assert_string_equal(info().holder, "");
	assert_false(bound(a));
}

/* The holder has died in the middle. */
static void taken_back(void **state)
{
	struct inc_group *g;
	unsigned a, b;
	uint64_t last;

	(void)state;
	a = create("a", "", 0);
	b = create("b", "", 0);
	g = sw_group_get(sw, a);
	assert_int_equal(acquire("a"), 0);
	send(a, 0, 0, true, 0);
	send(a, 1, 0, true, 0);
	send(a, 0, 0, false, 1000);
	last = g->last_progress_ns;
	sw_tick(sw, last + 499999999);
	assert_int_equal(g->state, INC_ACTIVE);
	assert_int_equal(acquire("b"), -EBUSY);
	sw_tick(sw, last + 500000000);
	assert_int_equal(g->state, INC_FAILED);
	assert_string_equal(inc_fail_name(g->fail_reason), "lease_expired");
	assert_false(bound(a));
	assert_int_equal(acquire("b"), 0);
	send(a, 1, 0, false, 1000); /* not quite dead */
	assert_int_equal(h_drop(sw, "inc_group_failed"), 1);
	for (unsigned host = 0; host < 2; host++) {
		struct frame f;

		while (h_take(sw, host, &f))
			;
	}
	operation(b, 0, 9);
	acknowledge(b, 0);
	assert_int_equal(acquire("a"), -ESTALE); /* whoever holds it: not to be waited for */
	assert_non_null(strstr(err, "group a is failed"));
	assert_false(release("b"));
	assert_int_equal(acquire("a"), -ESTALE);
	assert_non_null(strstr(err, "group a is failed"));
	assert_int_equal(info().count.taken_back, 1);
	assert_int_equal(info().count.released, 1);
	sw_tick(sw, port_now_ns() + 1000000000000); /* nobody holds anything */
	assert_int_equal(sw_group_get(sw, b)->state, INC_ACTIVE);
	assert_int_equal(sw_group_delete(sw, a, true, err), 0);
	assert_int_equal(sw_group_delete(sw, b, true, err), 0);
	assert_int_equal(used(), 0);
}

/* A holder that is deleted: at once by force, else when it has drained. */
static void deleted(void **state)
{
	unsigned a, b;

	(void)state;
	a = create("a", "", 0);
	b = create("b", "", 0);
	assert_int_equal(acquire("a"), 0);
	send(a, 0, 0, true, 0);
	assert_int_equal(sw_group_delete(sw, a, false, err), 0);
	assert_int_equal(acquire("b"), -EBUSY);
	release("a");
	assert_true(bound(a)); /* it may still be at work */
	sw_tick(sw, sw->slot[a].drain_until);
	assert_null(sw_group_get(sw, a));
	assert_int_equal(acquire("b"), 0);
	operation(b, 0, 2);
	assert_int_equal(sw_group_delete(sw, b, true, err), 0);
	assert_int_equal(used(), 0);
}

/* Of a tenant's groups one may become active, another is over: the tenant is not to wait. */
static void half_over(void **state)
{
	unsigned over, slot;

	(void)state;
	c_spec(2, MTU, false, false);
	strcpy(spec.name, "a");
	strcpy(spec.lease, "pool");
	strcpy(spec.tenant, "job");
	eps[1].remote_qpn = 0;
	assert_int_equal(sw_group_create(sw, &spec, false, &slot, err), 0);
	over = create("a2", "job", 0);
	assert_true(slot < over); /* what is asked of first is the installed one */
	create("b", "", 0);
	assert_int_equal(acquire("job"), -EBUSY);
	assert_non_null(strstr(err, "group a is installed"));
	assert_int_equal(sw_group_fail(sw, over, err), 0);
	assert_int_equal(acquire("job"), -ESTALE);
	assert_non_null(strstr(err, "group a2 is failed"));
	assert_int_equal(acquire("b"), 0);
	assert_int_equal(acquire("job"), -ESTALE); /* whoever holds it */
}

static void refused(int rc, const char *text)
{
	unsigned slot;

	assert_int_equal(sw_group_create(sw, &spec, true, &slot, err), rc);
	if (strstr(err, text) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", err, text);
	assert_int_equal(used(), 0);
	assert_string_equal(info().name, "");
}

static void leased_spec(void)
{
	c_spec(2, MTU, false, false);
	strcpy(spec.lease, "pool");
}

static void refusals(void **state)
{
	unsigned a;

	(void)state;
	leased_spec();
	spec.mode = INC_MODE_1;
	refused(-EOPNOTSUPP, "lease: a group of mode I keeps its memory");
	leased_spec();
	spec.unbound = true;
	refused(-EINVAL, "bound: ");
	leased_spec();
	spec.lease_ms = 9;
	refused(-EINVAL, "lease_ms: 9, must be 10..3600000");
	leased_spec();
	memset(spec.tenant, 'x', sizeof(spec.tenant));
	refused(-EINVAL, "tenant: must have 1..31 bytes");
	leased_spec();
	spec.slots = 8192;
	refused(-ENOSPC, "\"pool\" needs 8388608 bytes for this tenant, 4194304 of 4194304");
	c_spec(2, MTU, false, false);
	strcpy(spec.tenant, "job");
	refused(-EINVAL, "tenant: is for groups with a lease");
	leased_spec();
	eps[1].remote_qpn = 0;
	assert_int_equal(sw_group_create(sw, &spec, false, &a, err), 0);
	assert_int_equal(acquire("g"), -EBUSY);
	assert_non_null(strstr(err, "group g is installed"));
	assert_int_equal(sw_group_rebind(sw, a, true, err), -EOPNOTSUPP);
	assert_int_equal(sw_group_delete(sw, a, true, err), 0);
	assert_int_equal(used(), 0);
	for (unsigned i = 0; i < SW_MAX_LEASES; i++) {
		leased_spec();
		snprintf(spec.name, sizeof(spec.name), "g%u", i);
		snprintf(spec.lease, sizeof(spec.lease), "pool%u", i);
		c_create();
	}
	leased_spec();
	assert_int_equal(sw_group_create(sw, &spec, true, &a, err), -EMFILE);
	assert_int_equal(sw_lease_get(sw, SW_MAX_LEASES, &(struct sw_lease_info){0}), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, c_start, c_stop)
		T(range),
		T(tenants),
		T(contention),
		T(let_go_later),
		T(taken_back),
		T(deleted),
		T(half_over),
		T(refusals),
#undef T
	};
	int failed_tests = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed_tests;
}
