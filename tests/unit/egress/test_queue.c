/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that wait for a port: none is lost below the limit, none overtakes its like. */
#include "dataplane/egress/queue.h"

#include <string.h>

#include "lib/wire/outer.h"
#include "packets.h"

enum { BURST = 32, CONTROL_TOS = 46 << 2, DATA_TOS = 26 << 2 | IP_ECN_ECT0, TRIM_TOS = 4 << 2 };
static const uint64_t MS = 1000000, GBIT = 125000000;

static struct egress_classes classes;
static const struct egress_config plain = {.limit = {4096, 65536}, .hold_ns = 100000000};

static void start(struct egress *e, const struct egress_config *c)
{
	egress_classes_default(&classes);
	assert_int_equal(egress_init(e, c, &classes, SOCKET_ID_ANY, 0), 0);
}

static void stop(struct egress *e)
{
	egress_free(e);
	assert_int_equal(packets_in_use(), 0);
}

static bool put(struct egress *e, uint32_t number, uint8_t tos, unsigned pay_len)
{
	struct rte_mbuf *m = numbered(number, tos, pay_len);
	bool kept = egress_put(e, m, 0);

	if (!kept)
		rte_pktmbuf_free(m);
	return kept;
}

/* A port that takes up to `room` packets now. Returns how many, their numbers in got. */
static unsigned port_takes(struct egress *e, unsigned room, uint32_t *got, uint64_t now)
{
	struct rte_mbuf *m[BURST];
	uint32_t bytes[BURST];
	unsigned total = 0;

	for (;;) {
		unsigned n = egress_next(e, m, BURST, now), k = RTE_MIN(n, room - total);

		if (n == 0)
			return total;
		for (unsigned i = 0; i < k; i++) {
			got[total++] = number_of(m[i]);
			bytes[i] = m[i]->pkt_len;
		}
		egress_sent(e, bytes, k, now);
		rte_pktmbuf_free_bulk(m, k);
		if (k < n)
			return total;
	}
}

static void order(void **state)
{
	uint32_t got[100];
	struct egress e;

	(void)state;
	start(&e, &plain);
	assert_true(egress_straight(&e));
	assert_int_equal(egress_when(&e), UINT64_MAX);
	for (unsigned i = 0; i < 40; i++)
		assert_true(put(&e, i, DATA_TOS, 100));
	assert_false(egress_straight(&e));
	assert_int_equal(port_takes(&e, 3, got, 0), 3);
	for (unsigned i = 100; i < 104; i++)
		assert_true(put(&e, i, CONTROL_TOS, 0));
	assert_true(put(&e, 40, DATA_TOS, 100));
	assert_int_equal(egress_waiting(&e), 42);
	assert_int_equal(port_takes(&e, 2, got + 3, 0), 2);
	assert_int_equal(port_takes(&e, 95, got + 5, 0), 40);
	for (unsigned i = 0; i < 45; i++) {
		uint32_t want = i < 3 ? i : i < 7 ? 100 + i - 3 : i - 4;

		assert_int_equal(got[i], want);
	}
	assert_true(egress_straight(&e));
	assert_int_equal(e.count[EGRESS_Q_DATA].queued, 41);
	assert_int_equal(e.count[EGRESS_Q_CONTROL].queued, 4);
	stop(&e);
}

/* Up to the limit in bytes every packet is kept, beyond it none; and no more short ones than there
 * are buffers. */
static void limit(void **state)
{
	struct egress_config c = plain;
	struct egress e;
	uint32_t got[8];
	unsigned len;

	(void)state;
	len = 14 + 20 + 8 + 12 + 1000 + 4;
	c.limit[EGRESS_Q_DATA] = 10 * len;
	start(&e, &c);
	for (unsigned i = 0; i < 10; i++)
		assert_true(put(&e, i, DATA_TOS, 1000));
	assert_int_equal(e.queue[EGRESS_Q_DATA].bytes, 10 * len);
	assert_false(put(&e, 10, DATA_TOS, 0));
	assert_int_equal(e.count[EGRESS_Q_DATA].full, 1);
	assert_int_equal(e.count[EGRESS_Q_DATA].peak_bytes, 10 * len);
	for (unsigned i = 0; i < 4096 / EGRESS_LEAST; i++)
		assert_true(put(&e, i, CONTROL_TOS, 0)); /* the other queue has its own */
	assert_false(put(&e, 0, CONTROL_TOS, 0));
	assert_int_equal(e.count[EGRESS_Q_CONTROL].full, 1);
	assert_int_equal(port_takes(&e, 8, got, 0), 8);
	assert_true(put(&e, 10, CONTROL_TOS, 0));
	stop(&e);
}

/* A port of 10 Gbit/s that carries 8 and stands still for 10 ms: all that came meanwhile, which is
 * less than the limit, is sent later and in its order. */
static void stall(void **state)
{
	enum { PAY = 4000, LEN = 14 + 20 + 8 + 12 + PAY + 4, TAKES = 3, SIZE = 30000 };
	const uint64_t end = 100 * MS, gap = LEN * 1000000000ull / GBIT / 8;
	struct egress_config c = plain;
	uint32_t *got = calloc(SIZE, sizeof(*got)), n = 0, put_in = 0, want;
	struct egress e;

	(void)state;
	c.limit[EGRESS_Q_DATA] = 11 * MS / gap * LEN;
	c.rate = 10 * GBIT;
	c.burst = 64 << 10;
	start(&e, &c);
	for (uint64_t now = 0; now < end; now += gap) {
		assert_true(put(&e, put_in++, DATA_TOS, PAY));
		if (now < 20 * MS || now >= 30 * MS)
			n += port_takes(&e, TAKES, got + n, now);
		else
			port_takes(&e, 0, NULL, now);
	}
	for (uint64_t now = end; egress_waiting(&e) > 0; now = egress_when(&e))
		n += port_takes(&e, TAKES, got + n, now);
	want = put_in;
	assert_int_equal(n, want);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got[i], i);
	assert_int_equal(e.count[EGRESS_Q_DATA].full + e.count[EGRESS_Q_DATA].stale, 0);
	assert_in_range(
		e.count[EGRESS_Q_DATA].peak_bytes, 10 * MS / gap * LEN, c.limit[EGRESS_Q_DATA]);
	free(got);
	stop(&e);
}

/* A port that takes nothing for hold_ns keeps nothing, and from then on nothing waits for it until
 * it takes something again. */
static void dead(void **state)
{
	struct rte_mbuf *m[BURST];
	struct egress e;
	uint32_t got[4];
	unsigned n;

	(void)state;
	start(&e, &plain);
	for (unsigned i = 0; i < 40; i++)
		assert_true(put(&e, i, DATA_TOS, 100));
	assert_true(put(&e, 40, CONTROL_TOS, 100));
	assert_int_equal(port_takes(&e, 0, NULL, 5), 0);
	assert_int_equal(port_takes(&e, 0, NULL, 100 * MS), 0);
	assert_int_equal(egress_expired(&e, m, BURST, 100 * MS + 4), 0);
	n = egress_expired(&e, m, BURST, 100 * MS + 5);
	assert_int_equal(n, BURST);
	assert_int_equal(number_of(m[0]), 40);
	rte_pktmbuf_free_bulk(m, n);
	n = egress_expired(&e, m, BURST, 100 * MS + 5);
	assert_int_equal(n, 41 - BURST);
	rte_pktmbuf_free_bulk(m, n);
	assert_int_equal(e.count[EGRESS_Q_DATA].stale, 40);
	assert_int_equal(e.count[EGRESS_Q_CONTROL].stale, 1);
	assert_false(egress_straight(&e));
	assert_true(put(&e, 50, DATA_TOS, 100));
	assert_int_equal(port_takes(&e, 0, NULL, 200 * MS), 0);
	assert_int_equal(egress_expired(&e, m, BURST, 200 * MS), 1);
	rte_pktmbuf_free(m[0]);
	assert_true(put(&e, 51, DATA_TOS, 100));
	assert_int_equal(port_takes(&e, 4, got, 300 * MS), 1);
	assert_int_equal(got[0], 51);
	assert_true(egress_straight(&e));
	assert_true(put(&e, 52, DATA_TOS, 100)); /* a new life */
	assert_int_equal(egress_expired(&e, m, BURST, 400 * MS), 0);
	assert_int_equal(port_takes(&e, 0, NULL, 400 * MS), 0);
	assert_int_equal(egress_expired(&e, m, BURST, 499 * MS), 0);
	stop(&e);
}

static void marks(void **state)
{
	struct egress_config c = plain;
	struct rte_mbuf *m[BURST];
	struct egress e;
	unsigned n, len = 14 + 20 + 8 + 12 + 1000 + 4;

	(void)state;
	c.red = (struct egress_red){.min = 2 * len, .max = 6 * len};
	start(&e, &c);
	for (unsigned i = 0; i < 8; i++) /* the chance is 0 0 0 1/4 2/4 3/4 1 1 */
		assert_true(egress_put(&e, numbered(i, DATA_TOS, 1000), 0x60000000));
	assert_true(put(&e, 8, 26 << 2, 1000)); /* not ECT */
	assert_true(egress_put(&e, numbered(9, CONTROL_TOS | IP_ECN_ECT0, 0), 0));
	n = egress_next(&e, m, BURST, 0);
	assert_int_equal(n, 10);
	for (unsigned i = 1; i < n; i++) {
		uint8_t tos = rte_pktmbuf_mtod(m[i], uint8_t *)[15];
		bool ce = i - 1 >= 4 && i - 1 < 8;

		assert_int_equal(tos & IP_ECN_MASK, ce ? IP_ECN_CE : i == 9 ? 0 : IP_ECN_ECT0);
		assert_int_equal(
			ip_sum(rte_pktmbuf_mtod_offset(m[i], uint8_t *, 14), 20, 0), 0xffff);
	}
	assert_int_equal(rte_pktmbuf_mtod(m[0], uint8_t *)[15], CONTROL_TOS | IP_ECN_ECT0);
	assert_int_equal(e.count[EGRESS_Q_DATA].marked, 4);
	stop(&e);
}

static void trims(void **state)
{
	struct egress_config c = plain;
	struct rte_mbuf *m[BURST];
	struct egress e;
	unsigned n = 0;

	(void)state;
	c.trim = 128;
	c.limit[EGRESS_Q_CONTROL] = 2 * EGRESS_LEAST;
	c.limit[EGRESS_Q_DATA] = 40 * (14 + 20 + 8 + 12 + 1000 + 4);
	for (unsigned last_hop = 0; last_hop < 2; last_hop++) {
		c.last_hop = last_hop;
		start(&e, &c);
		while (put(&e, n, DATA_TOS, 1000))
			n++;
		assert_int_equal(e.count[EGRESS_Q_DATA].full, 1);
		assert_true(put(&e, 1000, TRIM_TOS, 1000));
		assert_false(put(&e, 1001, TRIM_TOS, 64)); /* is as short as that */
		assert_true(put(&e, 1002, TRIM_TOS, 1000));
		assert_false(put(&e, 1003, TRIM_TOS, 1000)); /* there is no room for control */
		assert_int_equal(e.count[EGRESS_Q_DATA].full, 3);
		assert_int_equal(e.count[EGRESS_Q_DATA].trimmed, 2);
		assert_true(egress_next(&e, m, BURST, 0) == BURST);
		assert_int_equal(number_of(m[0]), 1000);
		assert_int_equal(number_of(m[1]), 1002);
		assert_int_equal(m[1]->pkt_len, 128);
		assert_int_equal(rte_pktmbuf_mtod(m[1], uint8_t *)[15] >> 2, last_hop ? 16 : 12);
		n = 0;
		stop(&e);
	}
}

/* With a rate everything comes by here, and goes at that rate. */
static void rate(void **state)
{
	enum { PAY = 1000, LEN = 14 + 20 + 8 + 12 + PAY + 4 };
	struct egress_config c = plain;
	uint32_t got[64], n = 0;
	struct egress e;
	uint64_t now = 0;

	(void)state;
	c.rate = GBIT;
	c.burst = 4 * LEN;
	start(&e, &c);
	assert_false(egress_straight(&e));
	for (unsigned i = 0; i < 50; i++)
		assert_true(put(&e, i, DATA_TOS, PAY));
	n = port_takes(&e, 64, got, now);
	assert_int_equal(n, 4);
	while (n < 50) {
		unsigned k;

		assert_true(egress_when(&e) > now);
		assert_int_equal(port_takes(&e, 64, got + n, egress_when(&e) - 1), 0);
		now = egress_when(&e);
		k = port_takes(&e, 64, got + n, now);
		assert_int_equal(k, 1);
		n += k;
	}
	assert_in_range(now, 45ull * LEN * 8, 46ull * LEN * 8 + 100); /* 8 ns for a byte */
	assert_false(egress_straight(&e));
	assert_int_equal(egress_when(&e), UINT64_MAX);
	stop(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order),
		cmocka_unit_test(limit),
		cmocka_unit_test(stall),
		cmocka_unit_test(dead),
		cmocka_unit_test(marks),
		cmocka_unit_test(trims),
		cmocka_unit_test(rate),
	};

	return cmocka_run_group_tests(tests, packets_setup, packets_teardown);
}
