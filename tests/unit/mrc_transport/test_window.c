/* SPDX-License-Identifier: BSD-3-Clause */
/* One congestion window for all queue pairs to a destination (setting nscc_shared). */
#include "tests/unit/mrc_transport/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "lib/mrc/transport_priv.h"

enum { QPS = 5, MESSAGES = 48, BYTES = 8 * FABRIC_MTU, PACKETS = MESSAGES * 8 };
/* Of the window, with headers: room for four packets. */
enum { CWND = 4 * (FABRIC_MTU + 90), STEP = FABRIC_HOP / 8 };

struct many {
	struct fabric *f;
	struct rnic_qp *qp[2][QPS];
	unsigned done[QPS]; /* writes of end 0's, with success; */
	unsigned flushed;   /* and without, of all */
	uint64_t data[QPS]; /* packets of theirs that have left */
	uint64_t most;      /* bytes of them under way at a time */
	uint32_t mute;      /* bit N: nothing of the N-th arrives */
	bool shared;
};

static struct many *seen; /* the hook's */

static struct mrc_conn *sender(const struct many *m, unsigned i)
{
	return conn_of(m->qp[0][i]);
}

static uint64_t under_way(const struct many *m)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < QPS; i++)
		sum += m->qp[0][i] && sender(m, i)->sends ? sender(m, i)->req.snd.flight_bytes : 0;
	return sum;
}

/* Each packet of data as it leaves: whose it is, and whether all together are within the window. */
static bool watch(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	const uint8_t *bth = frame + ETH_HDR_LEN + 20 + sizeof(struct udp_hdr);
	const uint32_t qpn = (uint32_t)(bth[5] << 16 | bth[6] << 8 | bth[7]);
	struct many *m = seen;
	const uint64_t now = under_way(m);

	(void)f;
	(void)len;
	if (from != 0 || (bth[0] & 0x1f) >= 0x10)
		return true;
	m->most = now > m->most ? now : m->most;
	for (unsigned i = 0; i < QPS; i++) {
		if (m->qp[1][i] == NULL || rnic_qp_num(m->qp[1][i]) != qpn)
			continue;
		m->data[i]++;
		if (m->shared) {
			const struct nscc *cc = &sender(m, i)->peer->window.nscc;

			assert_int_equal(cc->inflight, now);
			assert_true(now <= cc->cwnd || now == sender(m, i)->req.snd.flight_bytes);
		}
		return !(m->mute >> i & 1);
	}
	return true;
}

static struct rnic_mrc_attr attr_of(uint32_t max_cwnd)
{
	struct rnic_mrc_attr attr = rnic_mrc_defaults();

	attr.cc.nscc.max_cwnd = max_cwnd;
	return attr;
}

/* One more queue pair at each end, connected. */
static void add(struct many *m, unsigned i, const struct rnic_mrc_attr *attr)
{
	const struct net_options no = {.transport = &rnic_mrc, .planes = true};
	struct rnic_mrc_attr a = *attr;

	a.paths = &m->f->paths;
	for (int e = 0; e < 2; e++) {
		m->qp[e][i] = net_make_qp(&m->f->net.end[e], &no);
		assert_int_equal(0, rnic_mrc_set(m->qp[e][i], &a, RNIC_MRC_PATHS | RNIC_MRC_CC));
	}
	for (int e = 0; e < 2; e++)
		net_to_rts(&m->f->net, e, m->qp[e][i], rnic_qp_num(m->qp[!e][i]), &no);
}

static void open_many(struct many *m, bool shared, uint32_t max_cwnd)
{
	struct mrc_settings set = mrc_settings_default();
	const struct rnic_mrc_attr attr = attr_of(max_cwnd);
	const struct fabric_options o = {
		.format = RNIC_MRC_UDP, .settings = &set, .attr = attr, .mask = RNIC_MRC_CC};

	set.nscc_shared = shared;
	*m = (struct many){.f = fabric_make(&o), .shared = shared};
	for (unsigned i = 0; i < QPS; i++)
		add(m, i, &attr);
	seen = m;
	m->f->hook = watch;
	for (uint32_t b = 0; b < QPS * MESSAGES * BYTES; b++)
		m->f->mem[0][b] = (uint8_t)(b * 7 + (b >> 10));
}

static void destroy(struct many *m, unsigned i)
{
	for (int e = 0; e < 2; e++) {
		if (m->qp[e][i])
			rnic_qp_destroy(m->qp[e][i]);
		m->qp[e][i] = NULL;
	}
}

static void close_many(struct many *m)
{
	for (unsigned i = 0; i < QPS; i++)
		destroy(m, i);
	fabric_free(m->f);
}

/* MESSAGES writes of the i-th, to a place of their own. */
static void post(struct many *m, unsigned i)
{
	for (unsigned k = 0; k < MESSAGES; k++) {
		const uint64_t at = (uint64_t)(i * MESSAGES + k) * BYTES;
		struct ibv_sge sge = {
			(uintptr_t)m->f->mem[0] + at, BYTES, rnic_mr_lkey(m->f->mr[0])};
		struct ibv_send_wr wr = {.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = {(uintptr_t)m->f->mem[1] + FABRIC_HALF + at,
				rnic_mr_rkey(m->f->mr[1])}};

		assert_int_equal(0, rnic_post_send(m->qp[0][i], &wr));
	}
}

static void step(struct many *m)
{
	struct ibv_wc wc;

	net_run(&m->f->net, m->f->net.now + STEP);
	while (rnic_cq_poll(m->f->net.end[0].scq, 1, &wc) == 1) {
		m->done[wc.wr_id] += wc.status == IBV_WC_SUCCESS;
		m->flushed += wc.status != IBV_WC_SUCCESS;
	}
}

/* Until those of the mask have all been written, or the time is over. */
static bool run(struct many *m, uint32_t mask, uint64_t longest)
{
	const uint64_t end = m->f->net.now + longest;
	bool all = false;

	while (!all && m->f->net.now < end) {
		step(m);
		all = true;
		for (unsigned i = 0; i < QPS; i++)
			all &= !(mask >> i & 1) || m->done[i] == MESSAGES;
	}
	return all;
}

static void there(const struct many *m, uint32_t mask)
{
	for (unsigned i = 0; i < QPS; i++) {
		const size_t at = (size_t)i * MESSAGES * BYTES;

		if (mask >> i & 1)
			assert_memory_equal(m->f->mem[0] + at, m->f->mem[1] + FABRIC_HALF + at,
				MESSAGES * BYTES);
	}
}

/* Until so many packets of one have left. */
static void until(struct many *m, unsigned i, uint64_t packets)
{
	const uint64_t end = m->f->net.now + SEC;

	while (m->data[i] < packets) {
		step(m);
		assert_true(m->f->net.now < end);
	}
}

enum { ALL = (1 << QPS) - 1 };

/* Together they have one window under way, by default each its own; and turns go packet by packet:
 * the first, which found it empty, is a window and a packet ahead at most. */
static void one_window(void **state)
{
	(void)state;
	for (unsigned shared = 0; shared < 2; shared++) {
		struct many m;

		open_many(&m, shared, CWND);
		for (unsigned i = 0; i < QPS; i++)
			post(&m, i);
		until(&m, 0, PACKETS / 2);
		for (unsigned i = 1; i < QPS && shared; i++)
			assert_in_range(m.data[i], m.data[0] - 5, m.data[0]);
		assert_true(run(&m, ALL, SEC));
		there(&m, ALL);
		if (shared)
			assert_in_range(m.most, CWND - FABRIC_MTU, CWND);
		else
			assert_in_range(m.most, QPS * (CWND - FABRIC_MTU), QPS * CWND);
		if (shared) {
			assert_int_equal(
				sender(&m, 0)->peer->window.n, QPS + 1); /* fabric's, too */
			assert_int_equal(sender(&m, 0)->peer->window.nscc.inflight, 0);
			assert_true(TAILQ_EMPTY(&sender(&m, 0)->peer->window.line));
		}
		close_many(&m);
	}
}

/* One that came late has its turns like the others; who is alone has all of the window. */
static void latecomer(void **state)
{
	uint64_t before;
	struct many m;

	(void)state;
	open_many(&m, true, CWND);
	post(&m, 0);
	until(&m, 0, PACKETS / 4);
	assert_in_range(m.most, CWND - FABRIC_MTU, CWND);
	before = m.data[0];
	post(&m, 1);
	until(&m, 1, PACKETS / 4);
	assert_in_range(m.data[0] - before, PACKETS / 4 - 6, PACKETS / 4 + 6);
	assert_true(run(&m, 3, SEC));
	there(&m, 3);
	close_many(&m);
}

/* What one has under way that nobody answers fills the window. It ends, by a failure or for good,
 * and the others have the room at once, in the order in which they wait; one that waits ends, too.
 */
static void ends(void **state)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	(void)state;
	for (unsigned gone = 0; gone < 2; gone++) {
		struct many m;

		open_many(&m, true, CWND);
		m.mute = 1;
		post(&m, 0);
		step(&m);
		for (unsigned i = 1; i < QPS; i++)
			post(&m, i);
		step(&m);
		assert_int_equal(m.data[1] + m.data[2] + m.data[3] + m.data[4], 0);
		assert_true(sender(&m, 1)->waits && sender(&m, 4)->waits);
		if (gone) {
			destroy(&m, 2);
			destroy(&m, 0);
		} else {
			assert_int_equal(
				0, rnic_qp_modify(m.qp[0][2], &err, IBV_QP_STATE, m.f->net.now));
			assert_int_equal(
				0, rnic_qp_modify(m.qp[0][0], &err, IBV_QP_STATE, m.f->net.now));
		}
		/* Before anything of the first's could have been missed. */
		step(&m);
		assert_true(m.data[1] > 0 && m.data[3] > 0 && m.data[4] > 0);
		assert_true(run(&m, 1 << 1 | 1 << 3 | 1 << 4, SEC));
		there(&m, 1 << 1 | 1 << 3 | 1 << 4);
		assert_int_equal(m.data[2], 0);
		assert_int_equal(sender(&m, 1)->peer->window.n, QPS + 1 - 2);
		assert_int_equal(sender(&m, 1)->peer->window.nscc.inflight, 0);
		close_many(&m);
	}
}

/* Other parameters, another window; and none for who has no congestion control. */
static void own_rules(void **state)
{
	struct rnic_mrc_attr other = attr_of(2 * CWND), none = attr_of(CWND);
	struct many m;

	(void)state;
	none.cc.none = true;
	open_many(&m, true, CWND);
	destroy(&m, 3);
	destroy(&m, 4);
	add(&m, 3, &other);
	add(&m, 4, &none);
	assert_true(sender(&m, 2)->shares);
	assert_int_equal(sender(&m, 2)->peer->window.n, 4); /* the fabric's, too */
	assert_false(sender(&m, 3)->shares);
	assert_false(sender(&m, 4)->shares);
	assert_int_equal(sender(&m, 3)->req.nscc->max_cwnd, 2 * CWND);
	assert_null(sender(&m, 4)->req.nscc);
	close_many(&m);
}

/* Everything arrives in bad weather, with and without. */
static void weather(void **state)
{
	(void)state;
	for (unsigned shared = 0; shared < 2; shared++) {
		struct many m;

		open_many(&m, shared, 0);
		m.f->loss = 20;
		m.f->twice = 20;
		m.f->trim = 30;
		m.f->lasthop = 300;
		m.f->mark = 100;
		m.f->corrupt = 5;
		for (unsigned i = 0; i < QPS; i++)
			post(&m, i);
		assert_true(run(&m, ALL, 20 * SEC));
		assert_int_equal(m.flushed, 0);
		there(&m, ALL);
		close_many(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_window),
		cmocka_unit_test(latecomer), cmocka_unit_test(ends), cmocka_unit_test(own_rules),
		cmocka_unit_test(weather)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
