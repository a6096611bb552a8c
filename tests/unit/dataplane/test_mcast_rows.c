/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of multicast: who may send, what is refused, and what is counted. */
#include <errno.h>
#include <string.h>

#include "lib/wire/multicast.h"
#include "mcast.h"

static uint64_t hits(unsigned table, const struct table_entry *e)
{
	struct table_rows rows;
	uint64_t n;

	table_rows(sw_tables(sw), table, &rows);
	for (unsigned i = 0; i < rows.n; i++)
		if (memcmp(rows.entry[i].key, e->key, sizeof(e->key)) == 0) {
			assert_true(sw_table_hits(sw, table, i, &n));
			return n;
		}
	fail_msg("no such row");
	return 0;
}

static void senders(void **state)
{
	const struct wire_ip zero = h_host4(0), one = h_host4(1);
	const struct table_entry e = m_sender(GROUP4, &zero, 0), e1 = m_sender(GROUP4, &one, 1);
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	m_join_all(GROUP4);
	m_write(TABLE_INSERT, FWD_MCAST_SENDER, &e);
	len = m_packet(b, GROUP4, 0, TTL, 600);
	m_reaches(0, b, len, 0xe);
	h_expect_drop(sw, 2, b, len, "mcast_sender"); /* his address, another's port */
	len = m_packet(b, GROUP4, 1, TTL, 600);
	h_expect_drop(sw, 1, b, len, "mcast_sender");
	m_write(TABLE_INSERT, FWD_MCAST_SENDER, &e1);
	m_reaches(1, b, len, 0xd);
	assert_int_equal(hits(FWD_MCAST_SENDER, &e), 1);
	assert_int_equal(hits(FWD_MCAST_SENDER, &e1), 1);
	/* The last name gone, everybody is heard. */
	m_write(TABLE_DELETE, FWD_MCAST_SENDER, &e);
	m_write(TABLE_DELETE, FWD_MCAST_SENDER, &e1);
	len = m_packet(b, GROUP4, 2, TTL, 600);
	m_reaches(2, b, len, 0xb);
}

static void refused_packets(void **state)
{
	static const char *const link[] = {"224.0.0.251", "ff02::fb", "ff01::1"};
	uint8_t b[H_FRAME_MAX], other[6] = {1, 0, 0x5e, 1, 2, 4};
	const struct wire_ip self = h_ip("10.0.0.1"), none = h_ip("0.0.0.0");
	struct wire_ip dst = h_ip(GROUP4);
	uint8_t mac[6];
	unsigned len;

	(void)state;
	m_join_all(GROUP4);
	for (unsigned i = 0; i < 3; i++) {
		len = m_packet(b, link[i], 0, TTL, 8);
		h_expect_drop(sw, 0, b, len, "ip_not_routable");
	}
	len = m_packet(b, "239.129.2.4", 0, TTL, 8);
	h_expect_drop(sw, 0, b, len, "mcast_unknown");
	len = m_packet(b, GROUP4, 0, TTL, 8);
	memcpy(b, other, 6); /* of 239.1.2.4 */
	h_expect_drop(sw, 0, b, len, "mcast_mac");
	memcpy(b, h_port_mac(sw, 0), 6);
	h_expect_drop(sw, 0, b, len, "mcast_mac");
	len = m_packet(b, GROUP4, 0, TTL, 8);
	b[6] |= 1;
	h_expect_drop(sw, 0, b, len, "l2_source");
	wire_multicast_mac(&dst, mac);
	len = h_ip4(b, mac, &self, &dst, PROTO, TTL, "12345678", 8);
	h_expect_drop(sw, 0, b, len, "ip_forged");
	len = h_ip4(b, mac, &none, &dst, PROTO, TTL, "12345678", 8);
	h_expect_drop(sw, 0, b, len, "ip_not_routable");
	len = h_ip4(b, mac, &dst, &dst, PROTO, TTL, "12345678", 8);
	h_expect_drop(sw, 0, b, len, "ip_not_routable");
}

static void refused_rows(void **state)
{
	static const char *const no[] = {"10.0.0.1", "224.0.0.9", "ff02::1:2", "fd00::1"};
	const struct wire_ip four = h_host4(0), six = h_host6(0), group = h_ip(GROUP4);
	struct table_update u[3] = {
		{.table = FWD_MCAST_GROUP}, {.table = FWD_NEIGH}, {.table = FWD_MCAST_GROUP}};
	struct table_entry e;
	struct table_error err;
	struct table_rows rows;
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		e = m_member(no[i], 1, 0);
		assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_GROUP, &e, &err), -EINVAL);
		assert_non_null(strstr(err.msg, i == 0 || i == 3 ? "not a multicast" : "its link"));
		e = m_sender(no[i], &four, 1);
		assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_SENDER, &e, &err), -EINVAL);
	}
	e = m_sender(GROUP4, &six, 1);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_SENDER, &e, &err), -EINVAL);
	assert_string_equal(err.msg,
		"mcast_sender " GROUP4 ": key.src must be a host's address of the same family");
	e = m_sender(GROUP4, &group, 1);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_SENDER, &e, &err), -EINVAL);
	e = m_member(GROUP4, 1, 4095);
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_GROUP, &e, &err), -EINVAL);
	e = m_member(GROUP4, 1, 0);
	e.key[1].u = 77;
	assert_int_equal(h_write(sw, TABLE_INSERT, FWD_MCAST_GROUP, &e, &err), -EINVAL);
	assert_string_equal(err.msg, "mcast_group " GROUP4 ": there is no such port");

	/* A batch with a bad last row: neither the group nor the neighbour before it are there. */
	u[0].entry = m_member(GROUP4, 1, 0);
	u[1].entry.key[0].ip = h_ip("10.0.0.99");
	u[1].entry.param[0].u = sw->ports[1].id;
	u[2].entry = m_member("224.0.0.9", 1, 0);
	assert_int_equal(table_write(sw_tables(sw), u, 3, &err), -EINVAL);
	table_rows(sw_tables(sw), FWD_MCAST_GROUP, &rows);
	assert_int_equal(rows.n, 0);
	len = m_packet(b, GROUP4, 0, TTL, 8);
	h_expect_drop(sw, 0, b, len, "mcast_unknown");
	u[2].entry = m_member(GROUP4, 2, 0);
	assert_int_equal(table_write(sw_tables(sw), u, 3, &err), 0);
	m_reaches(0, b, len, 0x6);
}

/* Two trees for the same members, and a row's packets are counted for as long as it is there. */
static void counted(void **state)
{
	const struct table_entry one = m_member(GROUP4, 1, 0), three = m_member(GROUP4, 3, 0);
	const struct table_entry other = m_member("239.129.2.4", 1, 0);
	const struct wire_ip zero = h_host4(0);
	const struct table_entry from = m_sender(GROUP4, &zero, 0);
	uint8_t b[H_FRAME_MAX];
	unsigned len = m_packet(b, GROUP4, 0, TTL, 100);

	(void)state;
	m_join(GROUP4, 3, 0);
	m_join(GROUP4, 1, 0);
	m_join("239.129.2.4", 1, 0);
	m_join("239.129.2.4", 2, 0);
	m_reaches(0, b, len, 0xa);
	m_reaches(0, b, len, 0xa);
	m_write(TABLE_INSERT, FWD_MCAST_SENDER, &from);
	m_reaches(0, b, len, 0xa);
	m_join(GROUP4, 0, 0); /* before the others in the order of ports */
	m_leave(GROUP4, 3);
	m_reaches(0, b, len, 0x2);
	assert_int_equal(hits(FWD_MCAST_GROUP, &one), 4);
	assert_int_equal(hits(FWD_MCAST_SENDER, &from), 2);
	m_join(GROUP4, 3, 0);
	assert_int_equal(hits(FWD_MCAST_GROUP, &three), 0);
	len = m_packet(b, "239.129.2.4", 0, TTL, 100);
	m_reaches(0, b, len, 0x6);
	assert_int_equal(hits(FWD_MCAST_GROUP, &other), 1);
	assert_int_equal(hits(FWD_MCAST_GROUP, &one), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, m_start, m_stop)
		T(senders),
		T(refused_packets),
		T(refused_rows),
		T(counted),
#undef T
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
