/* SPDX-License-Identifier: BSD-3-Clause */
#include "mcast.h"

#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"

struct sw *sw;

int m_start(void **state)
{
	(void)state;
	sw = h_start(N, NULL, NULL);
	return 0;
}

int m_stop(void **state)
{
	(void)state;
	h_stop_whole(sw);
	return 0;
}

struct table_entry m_member(const char *group, unsigned port, unsigned vlan)
{
	struct table_entry e = {0};

	e.key[0].ip = h_ip(group);
	e.key[1].u = sw->ports[port].id;
	e.param[0].u = vlan;
	return e;
}

struct table_entry m_sender(const char *group, const struct wire_ip *src, unsigned port)
{
	struct table_entry e = {0};

	e.key[0].ip = h_ip(group);
	e.key[1].ip = *src;
	e.param[0].u = sw->ports[port].id;
	return e;
}

void m_write(enum table_verb verb, unsigned table, const struct table_entry *e)
{
	struct table_error err;

	if (h_write(sw, verb, table, e, &err) != 0)
		fail_msg("%s", err.msg);
}

void m_join(const char *group, unsigned port, unsigned vlan)
{
	const struct table_entry e = m_member(group, port, vlan);

	m_write(TABLE_INSERT, FWD_MCAST_GROUP, &e);
}

void m_leave(const char *group, unsigned port)
{
	const struct table_entry e = m_member(group, port, 0);

	m_write(TABLE_DELETE, FWD_MCAST_GROUP, &e);
}

void m_join_all(const char *group)
{
	for (unsigned i = 0; i < N; i++)
		m_join(group, i, 0);
}

unsigned m_packet(uint8_t *b, const char *group, unsigned host, uint8_t ttl, unsigned len)
{
	const struct wire_ip dst = h_ip(group), src4 = h_host4(host), src6 = h_host6(host);
	uint8_t payload[H_FRAME_MAX], mac[6];

	for (unsigned i = 0; i < len; i++)
		payload[i] = (uint8_t)(i * 7 + i / 256);
	wire_multicast_mac(&dst, mac);
	return wire_ip_is4(&dst) ? h_ip4(b, mac, &src4, &dst, PROTO, ttl, payload, len)
				 : h_ip6(b, mac, &src6, &dst, PROTO, ttl, payload, len);
}

void m_is_copy(const struct frame *f, const uint8_t *b, unsigned len, unsigned port)
{
	uint8_t want[H_FRAME_MAX];

	memcpy(want, b, len);
	memcpy(want + 6, h_port_mac(sw, port), 6);
	if (b[L3] >> 4 == 4) {
		want[L3 + 8]--;
		put_be16(want + L3 + 10, 0);
		put_be16(want + L3 + 10, (uint16_t)~ip_sum(want + L3, 20, 0));
	} else {
		want[L3 + 7]--;
	}
	assert_int_equal(f->len, len);
	assert_memory_equal(f->b, want, len);
}

void m_reaches(unsigned in, const uint8_t *b, unsigned len, unsigned ports)
{
	struct frame f;

	h_inject(sw, in, b, len);
	h_run(sw);
	for (unsigned i = 0; i < N; i++) {
		if (ports >> i & 1) {
			assert_true(h_take(sw, i, &f));
			m_is_copy(&f, b, len, i);
		}
		assert_false(h_take(sw, i, &f));
	}
	h_check_balance(sw);
}
