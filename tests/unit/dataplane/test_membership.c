/* SPDX-License-Identifier: BSD-3-Clause */
/* Members that are learnt: reports in, groups out; queries; time; limits. The book alone, and the
 * switch with it. */
#include <errno.h>
#include <string.h>

#include "dataplane/mcast/mcast_fwd.h"
#include "hangs.h"
#include "harness.h"
#include "lib/wire/bytes.h"
#include "lib/wire/membership.h"
#include "lib/wire/multicast.h"

enum { N = 4, L3 = ETH_HDR_LEN, MAX = 5, PROTO = 253 };
static const uint64_t S = UINT64_C(1000000000);

#define GROUP4 "239.129.2.3"
#define GROUP6 "ff0e::7:5"

/* ---- the book ---- */

static struct wire_ip nth(unsigned i)
{
	return wire_ip_from4(0xef000000 + i);
}

static void book(void **state)
{
	struct membership *m = calloc(1, sizeof(*m));
	const struct wire_ip a = nth(1), b = nth(2);

	(void)state;
	m->max_per_port = 2;
	assert_int_equal(membership_join(m, 0, 0, &a, 0), 1);
	assert_int_equal(membership_join(m, 0, 0, &a, S), 0);
	assert_int_equal(membership_join(m, 0, 7, &a, S), 1); /* in another VLAN */
	assert_int_equal(membership_join(m, 1, 0, &a, S), 1);
	assert_int_equal(membership_join(m, 0, 0, &b, S), 1);
	assert_int_equal(membership_join(m, 0, 0, &(struct wire_ip){{0xff, 5}}, S), -ENOSPC);
	assert_int_equal(m->refused, 1);
	/* Asked for once, and gone unless somebody says otherwise. */
	assert_false(membership_leave(m, 2, &a, S));
	assert_true(membership_leave(m, 0, &a, S));
	assert_false(membership_leave(m, 0, &a, S));
	assert_true(membership_leave(m, 1, &a, S));
	assert_int_equal(membership_join(m, 1, 0, &a, 2 * S), 0);
	assert_int_equal(membership_expire(m, S + MEMBERSHIP_LAST - 1), 0);
	assert_int_equal(membership_expire(m, S + MEMBERSHIP_LAST), 1);
	assert_int_equal(m->n, 2);
	assert_int_equal(m->n_of[0], 1);
	assert_int_equal(membership_expire(m, S + MEMBERSHIP_HOLD - 1), 0);
	assert_int_equal(membership_expire(m, S + MEMBERSHIP_HOLD), 1);
	assert_int_equal(membership_expire(m, 2 * S + MEMBERSHIP_HOLD), 1);
	assert_int_equal(m->n, 0);
	assert_int_equal(m->left, 1);
	assert_int_equal(m->expired, 2);
	free(m);
}

static void full_book(void **state)
{
	struct membership *m = calloc(1, sizeof(*m));

	(void)state;
	m->max_per_port = MEMBERSHIP_MAX;
	for (unsigned i = 0; i < MEMBERSHIP_MAX; i++) {
		const struct wire_ip g = nth(i);

		assert_int_equal(membership_join(m, i % 3, 0, &g, i), 1);
	}
	assert_int_equal(membership_join(m, 3, 0, &(struct wire_ip){{0xff, 5}}, 0), -ENOSPC);
	assert_int_equal(membership_expire(m, MEMBERSHIP_HOLD + 99), 100);
	assert_int_equal(membership_join(m, 3, 0, &(struct wire_ip){{0xff, 5}}, 0), 1);
	assert_int_equal(m->n, MEMBERSHIP_MAX - 99);
	free(m);
}

/* ---- the switch ---- */

static struct sw *sw;
static uint64_t now;

static void forget_frames(void)
{
	struct frame f;

	for (unsigned i = 0; i < N; i++)
		while (h_take(sw, i, &f))
			;
}

static void tick(uint64_t at)
{
	now = at;
	sw_tick(sw, now);
	h_run(sw);
}

/* The first general queries are out. */
static int start(void **state)
{
	(void)state;
	sw = h_start(N, "{'mcast_max':5}", "{'mcast_learn':true}");
	tick(port_now_ns());
	forget_frames();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

static void report(unsigned port, const char *group, bool joins, uint16_t vlan)
{
	const struct wire_ip g = h_ip(group);
	uint8_t b[128], mac[6];
	struct wire_ip src;
	unsigned len;

	h_host_mac(port, mac);
	src = wire_ip_is4(&g) ? h_host4(port) : wire_ip_link_local(mac);
	len = (unsigned)wire_build_membership_report(b, sizeof(b), mac, &src, &g, joins);
	if (vlan != 0)
		len = h_tag(b, len, vlan);
	h_inject(sw, port, b, len);
	h_run(sw);
	tick(now);
}

/* A datagram from a port, and the mask of those that get it. */
static unsigned reach(const char *group, unsigned from)
{
	const struct wire_ip dst = h_ip(group), src4 = h_host4(from), src6 = h_host6(from);
	uint8_t b[1024], mac[6], payload[800] = {1};
	unsigned ports = 0, len;
	struct frame f;

	wire_multicast_mac(&dst, mac);
	len = wire_ip_is4(&dst) ? h_ip4(b, mac, &src4, &dst, PROTO, 9, payload, 800)
				: h_ip6(b, mac, &src6, &dst, PROTO, 9, payload, 800);
	forget_frames();
	h_inject(sw, from, b, len);
	h_run(sw);
	for (unsigned i = 0; i < N; i++) {
		ports |= (unsigned)h_take(sw, i, &f) << i;
		assert_false(h_take(sw, i, &f));
	}
	h_check_balance(sw);
	return ports;
}

static void comes_and_goes(void **state)
{
	static const char *const groups[] = {GROUP4, GROUP6};
	struct wire_membership m;
	struct wire_ip group;
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(reach(groups[i], 0), 0);
		report(1, groups[i], true, 0);
		report(2, groups[i], true, 0);
		assert_int_equal(reach(groups[i], 0), 0x6);
		report(1, groups[i], false, 0);
		/* Others at the port are asked for, and it is a member until they had their time.
		 */
		assert_true(h_take(sw, 1, &f));
		group = h_ip(groups[i]);
		assert_int_equal(wire_membership_parse(f.b + L3, f.len - L3, &m), 0);
		assert_int_equal(m.kind, MEMBERSHIP_QUERY);
		assert_true(wire_ip_eq(&m.group, &group));
		assert_int_equal(m.max_response_ms, MEMBERSHIP_LAST_RESPONSE_MS);
		assert_int_equal(reach(groups[i], 0), 0x6);
		tick(now + MEMBERSHIP_LAST);
		assert_int_equal(reach(groups[i], 0), 0x4);
	}
	assert_int_equal(h_drop(sw, "mcast_unknown"), 2);
	assert_int_equal(h_drop(sw, "mcast_report"), 6);
}

static void asks_and_forgets(void **state)
{
	struct wire_membership m;
	unsigned general = 0;
	struct frame f;

	(void)state;
	report(1, GROUP4, true, 0);
	tick(now + 31 * S);
	for (unsigned i = 0; i < N; i++)
		while (h_take(sw, i, &f)) {
			assert_int_equal(wire_membership_parse(f.b + L3, f.len - L3, &m), 0);
			assert_int_equal(m.kind, MEMBERSHIP_QUERY);
			assert_true(wire_ip_is_zero(&m.group));
			assert_int_equal(m.max_response_ms, MEMBERSHIP_RESPONSE_MS);
			assert_memory_equal(f.b + 6, h_port_mac(sw, i), 6);
			general++;
		}
	assert_int_equal(general, 2 * N);
	tick(now - 31 * S + MEMBERSHIP_HOLD - 1);
	assert_int_equal(reach(GROUP4, 0), 0x2);
	tick(now + 1);
	assert_int_equal(reach(GROUP4, 0), 0);
}

/* Beside a static row: that is what holds, and what stays. */
static void beside_rows(void **state)
{
	struct table_entry e = {0};
	struct table_error err;
	uint64_t hits;

	(void)state;
	e.key[0].ip = h_ip(GROUP4);
	e.key[1].u = sw->ports[1].id;
	report(1, GROUP4, true, 0);
	report(3, GROUP4, true, 0);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_GROUP, &e, &err), 0);
	assert_int_equal(reach(GROUP4, 0), 0xa);
	report(1, GROUP4, false, 0);
	tick(now + MEMBERSHIP_LAST);
	assert_int_equal(reach(GROUP4, 0), 0xa);
	assert_true(sw_table_hits(sw, FWD_MCAST_GROUP, 0, &hits));
	assert_int_equal(hits, 2);
	assert_int_equal(h_write(sw, TABLE_DELETE, FWD_MCAST_GROUP, &e, &err), 0);
	assert_int_equal(reach(GROUP4, 0), 0x8);
}

static void vlan(void **state)
{
	uint8_t b[128], mac[6];
	const struct wire_ip dst = h_ip(GROUP4), src = h_host4(0);
	struct frame f;
	unsigned len;

	(void)state;
	report(1, GROUP4, true, 9);
	wire_multicast_mac(&dst, mac);
	len = h_ip4(b, mac, &src, &dst, PROTO, 9, "12345678", 8);
	forget_frames();
	h_exchange(sw, 0, b, len, 1, &f);
	assert_int_equal(get_be16(f.b + 12), ETH_TYPE_VLAN);
	assert_int_equal(get_be16(f.b + 14), 9);
}

/* A port cannot have more than its part, nor more wait than there is room for, and others are none
 * the worse for it. */
static void flood(void **state)
{
	struct sw_member_counters count;
	struct sw_member m;
	uint8_t b[128], mac[6];
	struct wire_ip src = h_host4(1), g;
	unsigned len;
	char text[WIRE_IP_STRLEN];

	(void)state;
	h_host_mac(1, mac);
	for (unsigned i = 0; i < 400; i++) {
		g = nth(i);
		len = (unsigned)wire_build_membership_report(b, sizeof(b), mac, &src, &g, true);
		h_inject(sw, 1, b, len);
		h_run(sw);
	}
	assert_int_equal(h_drop(sw, "mcast_report") + h_drop(sw, "mcast_reports"), 400);
	assert_true(h_drop(sw, "mcast_reports") > 0);
	tick(now);
	assert_int_equal(sw->members->n, MAX);
	assert_true(sw->members->refused > 200);
	report(2, GROUP4, true, 0);
	assert_int_equal(sw_members(sw, &count), MAX + 1);
	assert_int_equal(count.joined, MAX + 1);
	assert_int_equal(sw_member_get(sw, MAX, &m), 0);
	assert_string_equal(m.port, "p2");
	assert_int_equal(sw_member_get(sw, MAX + 1, &m), -ENOENT);
	assert_int_equal(reach(GROUP4, 0), 0x4);
	g = nth(MAX);
	assert_int_equal(reach(wire_ip_format(&g, text, sizeof(text)), 0), 0);
	g = nth(0);
	assert_int_equal(reach(wire_ip_format(&g, text, sizeof(text)), 0), 0x2);
}

/* ---- memory that is short ---- */

static unsigned short_of_memory; /* times */

int __real_mcast_fwd_create(const struct mcast_sources *from, fwd_port_fn port, void *arg,
	unsigned n_workers, struct mcast_fwd **mcast, struct table_error *err);
int __wrap_mcast_fwd_create(const struct mcast_sources *from, fwd_port_fn port, void *arg,
	unsigned n_workers, struct mcast_fwd **mcast, struct table_error *err);
int __wrap_mcast_fwd_create(const struct mcast_sources *from, fwd_port_fn port, void *arg,
	unsigned n_workers, struct mcast_fwd **mcast, struct table_error *err)
{
	if (short_of_memory == 0)
		return __real_mcast_fwd_create(from, port, arg, n_workers, mcast, err);
	short_of_memory--;
	return -ENOMEM;
}

/* A member that there was no memory for is one at the next tick at which there is some, without
 * another report; and so is one that has gone. */
static void tried_again(void **state)
{
	struct sw_member_counters count;

	(void)state;
	short_of_memory = 2;
	report(1, GROUP4, true, 0);
	assert_int_equal(reach(GROUP4, 0), 0);
	tick(now + 1);
	assert_int_equal(reach(GROUP4, 0), 0);
	tick(now + 1);
	assert_int_equal(reach(GROUP4, 0), 0x2);
	report(1, GROUP4, false, 0);
	short_of_memory = 1;
	tick(now + MEMBERSHIP_LAST);
	assert_int_equal(reach(GROUP4, 0), 0x2);
	tick(now + 1);
	assert_int_equal(reach(GROUP4, 0), 0);
	sw_members(sw, &count);
	assert_int_equal(count.deferred, 3);
	short_of_memory = 1; /* nothing is due any more */
	tick(now + 1);
	assert_int_equal(short_of_memory, 1);
	short_of_memory = 0;
}

/* Nonsense, groups that stay on the link, and a switch that does not listen. */
static void ignored(void **state)
{
	const struct wire_ip all = h_ip("224.0.0.22"), src = h_host4(1);
	struct sw_member_counters count;
	uint8_t b[128], mac[6];
	unsigned len;

	(void)state;
	report(1, "224.0.0.251", true, 0);
	report(1, "ff02::fb", true, 0);
	wire_multicast_mac(&all, mac);
	len = h_ip4(b, mac, &src, &all, 2, 1, "\x22\0\0\0\0\0\0\7", 8);
	h_inject(sw, 1, b, len);
	h_run(sw);
	tick(now);
	assert_int_equal(sw_members(sw, &count), 0);
	assert_int_equal(count.bad, 1);
	h_stop_whole(sw);
	sw = h_start(N, NULL, NULL);
	report(1, GROUP4, true, 0);
	assert_null(sw->members);
	assert_int_equal(h_drop(sw, "ip_not_routable"), 1);
	assert_int_equal(reach(GROUP4, 0), 0);
}

/* ---- a worker that hangs ---- */

/* Whoever asks by all ports at a time calls each worker once, and nobody after one that hangs. */
static void one_call(void **state)
{
	struct frame f;
	unsigned n = 0;

	(void)state;
	calls = 0;
	hangs = true;
	tick(now + 31 * S);
	hangs = false;
	assert_int_equal(calls, 1);
	for (unsigned i = 0; i < N; i++)
		assert_false(h_take(sw, i, &f));
	calls = 0;
	tick(now + MEMBERSHIP_QUERY_EVERY);
	assert_int_equal(calls, sw->n_workers < N ? sw->n_workers : N);
	for (unsigned i = 0; i < N; i++)
		while (h_take(sw, i, &f))
			n++;
	assert_int_equal(n, 2 * N);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(book),
		cmocka_unit_test(full_book),
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
		T(comes_and_goes),
		T(asks_and_forgets),
		T(beside_rows),
		T(vlan),
		T(flood),
		T(tried_again),
		T(ignored),
		T(one_call),
#undef T
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
