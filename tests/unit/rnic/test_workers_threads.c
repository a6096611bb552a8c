/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive workers with threads of their own, for ThreadSanitizer, too: an owner that steers frames
 * and changes everything that workers read meanwhile, three workers, and for each of them a thread
 * that polls and posts. All ends by counts. */
#include <pthread.h>
#include <sched.h>

#include "lib/place/ring.h"
#include "tests/unit/rnic/workers.h"

enum {
	WORKERS = 3,
	FRAMES = 12000,
	SLOTS = 32,                     /* receives of a member */
	CHUNKS = FRAMES / WORKERS + 16, /* each is sent once */
	WINDOW = WORKERS * SLOTS * SLOT,
	LEN = WINDOW + CHUNKS * CHUNK,
	HANDED = 16, /* frames that wait for a worker */
	LENGTH = 300 /* of a datagram's payload */
};

struct handed {
	uint8_t bytes[FRAME];
	uint32_t len;
};

struct lane {
	unsigned worker;
	struct ring ring;
	struct member m; /* UD, of the worker 2 UC */
	pthread_t taker, poller;
	unsigned stood_back, completions, wrong;
};

static struct host host;
static struct lane lanes[WORKERS];
static atomic_bool no_more, taken;

static struct wire_ip group_of(unsigned worker)
{
	return wire_ip_from4(0xef810200u + worker);
}

static bool is_uc(const struct lane *lane)
{
	return lane->worker == 2;
}

static uint8_t byte_of(uint32_t number, unsigned i)
{
	return (uint8_t)(number * 31 + i * 7 + (number >> 8));
}

/* ---- the worker's thread ---- */

static unsigned take_burst(struct lane *lane)
{
	struct rnic_rx_frame frames[HANDED];
	const uint32_t tail = ring_tail(&lane->ring);
	unsigned n = 0;

	for (; n < HANDED && tail + n != ring_head(&lane->ring); n++) {
		const struct handed *h = ring_at(&lane->ring, tail + n);

		frames[n] = (struct rnic_rx_frame){.data = h->bytes, .len = h->len};
	}
	while (n > 0 && !rnic_worker_rx(host.rnic, lane->worker, 0, frames, n, 0)) {
		lane->stood_back++;
		sched_yield();
	}
	ring_release(&lane->ring, tail + n);
	return n;
}

static void *take_main(void *arg)
{
	struct lane *lane = arg;
	bool last = false;

	while (!last) {
		last = atomic_load(&no_more);
		while (take_burst(lane) > 0)
			;
		sched_yield();
	}
	return NULL;
}

/* ---- the thread of its completions ---- */

static size_t slot_at(const struct lane *lane, uint64_t id)
{
	return ((size_t)(lane->worker - 1) * SLOTS + id) * SLOT;
}

static void post(struct lane *lane, uint64_t id)
{
	if (member_recv(&lane->m, id, slot_at(lane, id), is_uc(lane) ? 0 : SLOT) != 0)
		lane->wrong++;
}

static void look_at(struct lane *lane, const struct ibv_wc *wc)
{
	const uint32_t number = be32toh(wc->imm_data);
	const uint8_t *at = is_uc(lane) ? host.buf + WINDOW + (size_t)number * CHUNK
					: host.buf + slot_at(lane, wc->wr_id) + GRH;
	const unsigned len = is_uc(lane) ? CHUNK : LENGTH;

	lane->completions++;
	lane->wrong += wc->status != IBV_WC_SUCCESS || wc->qp_num != rnic_qp_num(lane->m.qp);
	for (unsigned i = 0; i < len; i++) {
		if (at[i] != byte_of(number, i)) {
			lane->wrong++;
			break;
		}
	}
	post(lane, wc->wr_id);
}

static void *poll_main(void *arg)
{
	struct lane *lane = arg;
	bool last = false;
	struct ibv_wc wc[8];
	int n;

	while (!last) {
		last = atomic_load(&taken);
		rnic_cq_arm(lane->m.cq, false);
		while ((n = rnic_cq_poll(lane->m.cq, 8, wc)) > 0)
			for (int i = 0; i < n; i++)
				look_at(lane, &wc[i]);
		lane->wrong += n < 0;
		sched_yield();
	}
	return NULL;
}

/* ---- the owner ---- */

static struct rnic_rx_frame make(uint8_t bytes[FRAME], unsigned worker, uint32_t number)
{
	const struct wire_ip group = group_of(worker);
	uint8_t payload[CHUNK];

	for (unsigned i = 0; i < CHUNK; i++)
		payload[i] = byte_of(number, i);
	if (worker == 2)
		return uc_frame(&host, bytes, &group, number, payload);
	return ud_frame(&host, bytes, worker == 1 ? NULL : &group,
		rnic_qp_num(lanes[worker - 1].m.qp), number, payload, LENGTH);
}

/* What is steered to nobody, or is the 16th, the owner takes. */
static void send(unsigned worker, uint32_t number)
{
	struct lane *lane = &lanes[worker - 1];
	struct handed *h;
	struct rnic_rx_frame f;
	unsigned to;

	while ((h = ring_claim(&lane->ring)) == NULL)
		sched_yield();
	f = make(h->bytes, worker, number);
	h->len = f.len;
	to = rnic_steer(host.rnic, 0, f.data, f.len);
	if (to == worker && number % 16 != 0)
		ring_publish(&lane->ring);
	else
		rnic_rx(host.rnic, 0, f.data, f.len, 0);
}

static void regions(void)
{
	static uint8_t memory[64];
	struct rnic_mr *mr;

	assert_int_equal(0, rnic_mr_reg(host.pd, memory, sizeof(memory), (uintptr_t)memory,
				    IBV_ACCESS_LOCAL_WRITE, &mr));
	assert_int_equal(0, rnic_mr_dereg(mr));
}

/* Another one of a worker, with the CQ that it has in use, and one of nobody's. */
static void queue_pairs(unsigned worker)
{
	const struct wire_ip group = group_of(worker);
	struct member pinned, plain;

	member_ud(&pinned, &host, worker, lanes[worker - 1].m.cq);
	if (worker != 2)
		assert_int_equal(0, rnic_qp_attach_mcast(pinned.qp, &group));
	member_ud(&plain, &host, 0, NULL);
	assert_int_equal(0, rnic_qp_destroy(pinned.qp));
	assert_int_equal(0, rnic_qp_destroy(plain.qp));
	assert_int_equal(0, rnic_cq_destroy(plain.cq));
}

static void groups(void)
{
	const struct wire_ip group = group_of(3);

	assert_int_equal(0, rnic_qp_detach_mcast(lanes[2].m.qp, &group));
	assert_int_equal(0, rnic_qp_attach_mcast(lanes[2].m.qp, &group));
}

static void change(unsigned i)
{
	struct rnic_frame frame;

	switch (i % 5) {
	case 0:
		regions();
		break;
	case 1:
		queue_pairs(1 + i % WORKERS);
		break;
	case 2:
		groups();
		break;
	case 3:
		assert_int_equal(0, member_window(&lanes[1].m, WINDOW, CHUNKS * CHUNK));
		break;
	default:
		while (rnic_tx(host.rnic, RNIC_ALL_PORTS, &frame, 0))
			;
		assert_true(rnic_count(host.rnic, RNIC_C_RX_FRAMES) <= FRAMES);
		break;
	}
}

/* ---- all together ---- */

static void open_lane(struct lane *lane, unsigned worker)
{
	const struct wire_ip group = group_of(worker);
	void *memory = calloc(HANDED, sizeof(struct handed));

	memset(lane, 0, sizeof(*lane));
	lane->worker = worker;
	assert_non_null(memory);
	ring_init(&lane->ring, memory, HANDED, sizeof(struct handed));
	if (worker == 2) {
		member_uc(&lane->m, &host, worker, &group);
		assert_int_equal(0, member_window(&lane->m, WINDOW, CHUNKS * CHUNK));
	} else {
		member_ud(&lane->m, &host, worker, NULL);
		assert_int_equal(0, rnic_qp_attach_mcast(lane->m.qp, &group));
	}
	for (unsigned i = 0; i < SLOTS; i++)
		post(lane, i);
}

static void start(struct lane *lane)
{
	assert_int_equal(0, pthread_create(&lane->taker, NULL, take_main, lane));
	assert_int_equal(0, pthread_create(&lane->poller, NULL, poll_main, lane));
}

static void join_all(void)
{
	atomic_store(&no_more, true);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(0, pthread_join(lanes[i].taker, NULL));
	atomic_store(&taken, true);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(0, pthread_join(lanes[i].poller, NULL));
}

static void test_threads(void **state)
{
	uint64_t completions = 0;

	(void)state;
	host_open(&host, WORKERS, LEN);
	for (unsigned i = 0; i < WORKERS; i++)
		open_lane(&lanes[i], i + 1);
	for (unsigned i = 0; i < WORKERS; i++)
		start(&lanes[i]);
	for (uint32_t i = 0; i < FRAMES; i++) {
		send(1 + i % WORKERS, i / WORKERS);
		if (i % 7 == 0)
			change(i / 7);
	}
	join_all();
	for (unsigned i = 0; i < WORKERS; i++) {
		assert_int_equal(0, lanes[i].wrong);
		assert_true(lanes[i].completions > 0);
		completions += lanes[i].completions;
		free(lanes[i].ring.mem);
	}
	assert_int_equal(FRAMES, rnic_count(host.rnic, RNIC_C_RX_FRAMES));
	assert_int_equal(completions, rnic_count(host.rnic, RNIC_C_RX_ACCEPTED));
	/* Without a receive, or while the group has no member. */
	assert_int_equal(host_drops(&host), rnic_drop_count(host.rnic, RNIC_DROP_RNR) +
						    rnic_drop_count(host.rnic, RNIC_DROP_NOT_MINE));
	host_check_counters(&host);
	host_close(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};

	return cmocka_run_group_tests_name("rnic receive workers' threads", tests, NULL, NULL);
}
