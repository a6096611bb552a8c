/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams to receive workers, and to groups, are copied to the receive request that is next and
 * their ICRC computed in one pass: what a wrong one leaves there, and where it leaves nothing. All
 * else of this: test_once.c. */
#include "tests/unit/rnic/workers.h"

enum { LEN = 5 * SLOT, BYTES = 100 };

static struct host host;
static uint8_t bytes[FRAME], payload[BYTES];

static void open_host(void)
{
	host_open(&host, 2, LEN);
	for (unsigned i = 0; i < BYTES; i++)
		payload[i] = (uint8_t)(i * 7 + 1);
}

static const struct wire_ip *group(void)
{
	static struct wire_ip ip;

	ip = wire_ip_from4(0xef810200u);
	return &ip;
}

static struct rnic_rx_frame to_qp(const struct member *m)
{
	return ud_frame(&host, bytes, NULL, rnic_qp_num(m->qp), 1, payload, BYTES);
}

static struct rnic_rx_frame to_group(void)
{
	return ud_frame(&host, bytes, group(), 0, 1, payload, BYTES);
}

static void take(struct rnic_rx_frame frame)
{
	assert_true(rnic_worker_rx(host.rnic, 1, 0, &frame, 1, 0));
}

static void completes(struct rnic_cq *cq, uint64_t id)
{
	struct ibv_wc wc[2];

	assert_int_equal(1, rnic_cq_poll(cq, 2, wc));
	assert_int_equal(id, wc[0].wr_id);
	assert_int_equal(IBV_WC_SUCCESS, wc[0].status);
}

static void completes_nothing(struct rnic_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(0, rnic_cq_poll(cq, 1, &wc));
}

/* Are the bytes behind the 40 the payload's, but for the last one, which is wrong? */
static bool has_wrong(size_t at)
{
	const uint8_t *p = host.buf + at + GRH;

	return memcmp(p, payload, BYTES - 1) == 0 &&
	       p[BYTES - 1] == (uint8_t)(payload[BYTES - 1] ^ 1);
}

static bool has_nothing(size_t at)
{
	for (unsigned i = 0; i < SLOT; i++)
		if (host.buf[at + i] != 0)
			return false;
	return true;
}

/* By worker 1, or by the owner, whose counters are one sum. */
static void take_wrong(bool by_owner, struct rnic_rx_frame frame)
{
	const uint64_t wrong = rnic_drop_count(host.rnic, WIRE_ICRC_BAD);

	bytes[frame.len - 5] ^= 1;
	if (by_owner)
		assert_int_equal(WIRE_ICRC_BAD, rnic_rx(host.rnic, 0, frame.data, frame.len, 0));
	else
		take(frame);
	assert_int_equal(wrong + 1, rnic_drop_count(host.rnic, WIRE_ICRC_BAD));
}

/* A worker, too, copies a datagram and computes its ICRC in one pass: a wrong one leaves its
 * payload in the receive request that is next, no header, and completes nothing. So does one to a
 * group of which one queue pair hears; not of two, and nobody writes for another thread. */
static void at_worker(void **state)
{
	struct member one, other;

	(void)state;
	open_host();
	member_ud(&one, &host, 1, NULL);
	member_ud(&other, &host, 1, NULL);
	assert_int_equal(0, rnic_qp_attach_mcast(one.qp, group()));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(0, member_recv(&one, i, i * SLOT, SLOT));
	assert_int_equal(0, member_recv(&other, 4, 4 * SLOT, SLOT));

	take_wrong(true, to_qp(&one));
	take_wrong(true, to_group());
	assert_true(has_nothing(0));
	take_wrong(false, to_qp(&one));
	assert_true(has_wrong(0));
	assert_int_equal(0, host.buf[20]);
	completes_nothing(one.cq);
	take(to_qp(&one));
	completes(one.cq, 0);
	assert_memory_equal(host.buf + GRH, payload, BYTES);
	assert_int_equal(0x45, host.buf[20]);

	take_wrong(false, to_group());
	assert_true(has_wrong(SLOT));
	completes_nothing(one.cq);
	take(to_group());
	completes(one.cq, 1);
	assert_memory_equal(host.buf + SLOT + GRH, payload, BYTES);

	assert_int_equal(0, rnic_qp_attach_mcast(other.qp, group()));
	take_wrong(false, to_group());
	assert_true(has_nothing(2 * SLOT) && has_nothing(4 * SLOT));
	take(to_group());
	completes(one.cq, 2);
	completes(other.cq, 4);
	assert_true(has_nothing(3 * SLOT));
	host_check_counters(&host);
	host_close(&host);
}

/* A group's only member at the owner. */
static void at_owner(void **state)
{
	struct member one;

	(void)state;
	open_host();
	member_ud(&one, &host, 0, NULL);
	assert_int_equal(0, rnic_qp_attach_mcast(one.qp, group()));
	assert_int_equal(0, member_recv(&one, 0, 0, SLOT));
	take_wrong(false, to_group()); /* not this worker's */
	assert_true(has_nothing(0));
	take_wrong(true, to_group());
	assert_true(has_wrong(0));
	completes_nothing(one.cq);
	host_check_counters(&host);
	host_close(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(at_worker), cmocka_unit_test(at_owner)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
