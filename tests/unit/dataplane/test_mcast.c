/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast in the graph: who gets copies, and what is in them. */
#include <rte_ring.h>
#include <string.h>

#include "lib/port/iface.h"
#include "lib/wire/bytes.h"
#include "lib/wire/multicast.h"
#include "mcast.h"

static void members_and_nobody_else(void **state)
{
	static const char *const groups[] = {GROUP4, GROUP6};
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		m_join(groups[i], 1, 0);
		m_join(groups[i], 3, 0);
		len = m_packet(b, groups[i], 0, TTL, 100);
		m_reaches(0, b, len, 0xa);
		/* Never back: a member that sends. */
		len = m_packet(b, groups[i], 1, TTL, 100);
		m_reaches(1, b, len, 0x8);
		m_join(groups[i], 0, 0);
		len = m_packet(b, groups[i], 2, TTL, 1000);
		m_reaches(2, b, len, 0xb);
		m_leave(groups[i], 3);
		m_reaches(2, b, len, 0x3);
		m_leave(groups[i], 0);
		m_leave(groups[i], 1);
		h_expect_drop(sw, 2, b, len, "mcast_unknown");
	}
	assert_int_equal(h_drop(sw, "mcast_done"), 8);
}

/* Copied or shared, up to the MTU: the bytes are those that came. */
static void every_length(void **state)
{
	static const char *const groups[] = {GROUP4, GROUP6};
	uint8_t b[H_FRAME_MAX];
	struct frame f;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		const unsigned header = k == 0 ? 20 : 40;

		m_join_all(groups[k]);
		for (unsigned n = 0; n <= MTU - header; n += n < 520 || n > 600 ? 37 : 1) {
			const unsigned len = m_packet(b, groups[k], 0, TTL, n);

			h_inject(sw, 0, b, len);
			h_run(sw);
			for (unsigned i = 1; i < N; i++) {
				assert_true(h_take(sw, i, &f));
				m_is_copy(&f, b, len, i);
				assert_int_equal(f.segs, header + n > 72 + 512 ? 2 : 1);
			}
			assert_false(h_take(sw, 0, &f));
		}
	}
}

/* A RoCEv2 datagram stays whole: nothing of what its ICRC covers changes. */
static void roce(void **state)
{
	struct wire_flow flow = {.ttl = 64, .sport = 0xc123, .tos = 0x68};
	const struct wire_hdr hdr = {.opcode = ROCE_UD | ROCE_SEND_ONLY_IMM,
		.dqpn = 0xffffff,
		.psn = 0xfffffe,
		.imm = 0x12345678,
		.qkey = 7,
		.sqpn = 99};
	static const char *const groups[] = {GROUP4, GROUP6};
	uint8_t b[H_FRAME_MAX], payload[1024];
	struct wire_pkt pkt;
	struct frame f;
	int len;

	(void)state;
	memset(payload, 0x3c, sizeof(payload));
	for (unsigned k = 0; k < 2; k++) {
		m_join_all(groups[k]);
		flow.dst = h_ip(groups[k]);
		flow.src = k == 0 ? h_host4(0) : h_host6(0);
		wire_multicast_mac(&flow.dst, flow.dmac);
		len = wire_build_frame(b, sizeof(b), &flow, &hdr, payload, sizeof(payload));
		h_inject(sw, 0, b, (unsigned)len);
		h_run(sw);
		for (unsigned i = 1; i < N; i++) {
			assert_true(h_take(sw, i, &f));
			m_is_copy(&f, b, (unsigned)len, i);
			assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
			assert_int_equal(pkt.kind, WIRE_ROCE);
			assert_true(wire_icrc_ok(f.b, &pkt));
			assert_int_equal(pkt.imm, 0x12345678);
		}
	}
}

/* What each port has of a burst of several groups is in order. */
static void bursts(void **state)
{
	uint8_t b[H_FRAME_MAX];
	struct frame f;
	unsigned len;

	(void)state;
	m_join(GROUP4, 1, 0);
	m_join(GROUP4, 2, 0);
	m_join(GROUP6, 2, 0);
	m_join(GROUP6, 3, 0);
	for (unsigned i = 0; i < 30; i++) {
		len = m_packet(b, i & 1 ? GROUP6 : GROUP4, 0, (uint8_t)(TTL + i), 900);
		h_inject(sw, 0, b, len);
	}
	h_run(sw);
	for (unsigned i = 0; i < 30; i++) {
		len = m_packet(b, i & 1 ? GROUP6 : GROUP4, 0, (uint8_t)(TTL + i), 900);
		for (unsigned port = i & 1 ? 2 : 1; port <= (i & 1 ? 3 : 2); port++) {
			assert_true(h_take(sw, port, &f));
			m_is_copy(&f, b, len, port);
		}
	}
	for (unsigned i = 0; i < N; i++)
		assert_false(h_take(sw, i, &f));
}

static void vlans(void **state)
{
	const unsigned prio = 5 << 13;
	uint8_t b[H_FRAME_MAX], want[H_FRAME_MAX];
	struct frame f;
	unsigned len, tagged;

	(void)state;
	m_join(GROUP4, 0, 7);
	m_join(GROUP4, 1, 0);
	m_join(GROUP4, 2, 8);
	/* From untagged: the member's tag. */
	len = m_packet(b, GROUP4, 1, TTL, 700);
	h_inject(sw, 1, b, len);
	h_run(sw);
	memcpy(want, b, len);
	for (unsigned i = 0; i <= 2; i += 2) {
		assert_true(h_take(sw, i, &f));
		assert_int_equal(f.len, len + VLAN_HDR_LEN);
		assert_int_equal(get_be16(f.b + 12), ETH_TYPE_VLAN);
		assert_int_equal(get_be16(f.b + 14), i == 0 ? 7 : 8);
		memmove(f.b + 12, f.b + 16, len - 12);
		f.len -= VLAN_HDR_LEN;
		m_is_copy(&f, b, len, i);
	}
	/* From the member's VLAN: other tags, of the same priority; or none. */
	memcpy(want, b, len);
	tagged = h_tag(b, len, (uint16_t)(prio | 7));
	h_inject(sw, 0, b, tagged);
	h_run(sw);
	assert_true(h_take(sw, 1, &f));
	m_is_copy(&f, want, len, 1);
	assert_true(h_take(sw, 2, &f));
	assert_int_equal(get_be16(f.b + 14), prio | 8);
	/* From a VLAN that nobody is in. */
	put_be16(b + 14, 8);
	h_expect_drop(sw, 0, b, tagged, "l2_vlan");
	h_expect_drop(sw, 3, b, tagged, "l2_vlan");
}

static void hops(void **state)
{
	static const char *const groups[] = {GROUP4, GROUP6};
	uint8_t b[H_FRAME_MAX];
	unsigned len;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		m_join_all(groups[i]);
		for (uint8_t ttl = 0; ttl < 2; ttl++) {
			len = m_packet(b, groups[i], 0, ttl, 8);
			h_expect_drop(sw, 0, b, len, "ip_ttl");
		}
		len = m_packet(b, groups[i], 0, 2, 8);
		m_reaches(0, b, len, 0xe);
	}
}

/* Ports 1 and 2 are the ends of one cable, against the rules for trees: packets go around both
 * ways, but do not become more, and end when their hops do. */
static void loop(void **state)
{
	uint8_t b[H_FRAME_MAX];
	unsigned len = m_packet(b, GROUP4, 0, TTL, 600), n = 0, moved;
	struct frame f;

	(void)state;
	m_join(GROUP4, 1, 0);
	m_join(GROUP4, 2, 0);
	h_inject(sw, 0, b, len);
	do {
		h_run(sw);
		moved = 0;
		for (unsigned i = 1; i <= 2; i++)
			if (h_take(sw, i, &f)) {
				h_inject(sw, 3 - i, f.b, f.len);
				moved++;
			}
		n += moved;
	} while (moved > 0);
	assert_int_equal(n, 2 * (TTL - 1));
	assert_int_equal(h_drop(sw, "ip_ttl"), 2);
	assert_false(h_take(sw, 0, &f));
}

/* One port is down, or takes smaller packets: the others have theirs. */
static void one_port_fails(void **state)
{
	struct port_iface iface = {.up = false, .mtu = MTU};
	const uint16_t mtu = sw->ports[2].config.mtu;
	uint8_t b[H_FRAME_MAX];
	unsigned len = m_packet(b, GROUP4, 0, TTL, 1400);

	(void)state;
	sw->ports[2].config.mtu = 1000;
	m_join_all(GROUP4);
	sw->ports[2].config.mtu = mtu;
	sw->ports[1].iface = &iface;
	m_reaches(0, b, len, 0x8);
	assert_int_equal(h_drop(sw, "tx_link_down"), 1);
	assert_int_equal(h_drop(sw, "ip_mtu"), 1);
	atomic_store(&iface.up, true);
	m_reaches(0, b, len, 0xa);
	sw->ports[1].iface = NULL;
}

/* Received in pieces, and held by somebody else as well. */
static void foreign_mbufs(void **state)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(sw->pool), *tail = rte_pktmbuf_alloc(sw->pool);
	uint8_t b[H_FRAME_MAX], held[H_FRAME_MAX];
	unsigned len = m_packet(b, GROUP6, 0, TTL, 1000);
	struct frame f;

	(void)state;
	m_join_all(GROUP6);
	memcpy(rte_pktmbuf_append(m, 30), b, 30);
	memcpy(rte_pktmbuf_append(tail, (uint16_t)(len - 30)), b + 30, len - 30);
	rte_pktmbuf_chain(m, tail);
	rte_pktmbuf_refcnt_update(m, 1);
	assert_int_equal(rte_ring_enqueue(rte_ring_lookup("p0.rx"), m), 0);
	h_run(sw);
	for (unsigned i = 1; i < N; i++) {
		assert_true(h_take(sw, i, &f));
		m_is_copy(&f, b, len, i);
	}
	assert_memory_equal(rte_pktmbuf_read(m, 0, 30, held), b, 30);
	rte_pktmbuf_free(m);
}

/* Nothing half-sent, nothing lost for good. */
static void no_buffers(void **state)
{
	const unsigned n = rte_mempool_avail_count(sw->head_pool) - 3;
	struct rte_mbuf **all = calloc(n, sizeof(struct rte_mbuf *));
	uint8_t b[H_FRAME_MAX];
	unsigned len = m_packet(b, GROUP4, 0, TTL, 1400);

	(void)state;
	m_join_all(GROUP4);
	assert_int_equal(rte_pktmbuf_alloc_bulk(sw->head_pool, all, n), 0);
	m_reaches(0, b, len, 0x2); /* three heads: for one copy and a half */
	assert_int_equal(h_drop(sw, "no_mbuf"), 2);
	rte_pktmbuf_free_bulk(all, n);
	free(all);
	m_reaches(0, b, len, 0xe);
}

/* Copies wait, and are marked each for itself. */
static void marked_alone(void **state)
{
	uint8_t b[H_FRAME_MAX];
	struct frame f;
	unsigned len, marked[N] = {0};

	(void)state;
	h_stop_whole(sw);
	sw = h_start(N, NULL, "{'txd':64,'queue':{'mark_max_kb':1}}");
	m_join_all(GROUP4);
	len = m_packet(b, GROUP4, 0, TTL, 1400);
	b[L3 + 1] = 2; /* ECT(0) */
	put_be16(b + L3 + 10, 0);
	put_be16(b + L3 + 10, (uint16_t)~ip_sum(b + L3, 20, 0));
	/* Port 1 stands still, so its queue grows. */
	struct rte_ring *tx = rte_ring_lookup("p1.tx");
	unsigned room = rte_ring_free_count(tx);

	for (unsigned i = 0; i < room + 4; i++) {
		h_inject(sw, 0, b, len);
		h_run(sw);
		for (unsigned port = 2; port < N; port++) {
			assert_true(h_take(sw, port, &f));
			m_is_copy(&f, b, len, port);
		}
	}
	for (unsigned i = 0; i < room + 4; i++) {
		while (!h_take(sw, 1, &f))
			h_run(sw);
		marked[1] += (f.b[L3 + 1] & 3) == 3;
	}
	assert_in_range(marked[1], 1, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, m_start, m_stop)
		T(members_and_nobody_else),
		T(every_length),
		T(roce),
		T(bursts),
		T(vlans),
		T(hops),
		T(loop),
		T(one_port_fails),
		T(foreign_mbufs),
		T(no_buffers),
		T(marked_alone),
#undef T
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
