/* SPDX-License-Identifier: BSD-3-Clause */
/* The window in bytes: by itself on paths of all lengths, then between two devices on virtual time:
 * it starts small, is found to fit, holds back no more than it says, and never starves. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/cwnd.h"
#include "tests/unit/rnic/net.h"

static const uint64_t US = 1000;

/* ---- by itself ---- */

/* A path that carries so many bytes a microsecond, with a round trip. */
struct path {
	uint64_t bytes_us, rtt_ns;
	uint64_t now, next;
	uint32_t acked;
};

static uint64_t full(const struct path *p)
{
	return p->bytes_us * p->rtt_ns / 1000;
}

/* A window's bytes in a round, which takes longer if they queue. */
static void a_round(struct cwnd *w, struct path *p, bool wanted)
{
	const uint32_t bytes = w->bytes;
	const uint64_t ns = bytes * UINT64_C(1000) / p->bytes_us;

	cwnd_sent(w, ++p->next, p->acked, p->now);
	if (wanted)
		cwnd_want(w);
	p->acked += bytes;
	p->now += ns > p->rtt_ns ? ns : p->rtt_ns;
	cwnd_acked(w, p->next, p->acked, p->now);
}

static void rounds(struct cwnd *w, struct path *p, unsigned n)
{
	while (n-- > 0)
		a_round(w, p, true);
}

static void assert_fits(const struct cwnd *w, const struct path *p)
{
	/* 1.6 to 3.2, and a little for whole nanoseconds. */
	if (w->bytes < full(p) * 159 / 100 || w->bytes > full(p) * 321 / 100)
		fail_msg("window %u for %llu", w->bytes, (unsigned long long)full(p));
}

static void test_fits_the_path(void **state)
{
	static const uint64_t rates[] = {125, 1250, 3125, 12500, 50000}; /* 1 to 400 Gb/s */
	static const uint64_t rtts[] = {3000, 10000, 33000, 100000, 1000000};

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		for (unsigned j = 0; j < 5; j++) {
			struct path p = {.bytes_us = rates[i], .rtt_ns = rtts[j], .next = 7};
			struct cwnd w;

			cwnd_init(&w, 256);
			assert_int_equal(256, w.bytes);
			a_round(&w, &p, true);
			assert_int_equal(512, w.bytes);
			rounds(&w, &p, 60);
			assert_fits(&w, &p);
			/* And stays. */
			for (unsigned k = 0; k < 1000; k++) {
				const uint32_t was = w.bytes;

				a_round(&w, &p, true);
				assert_int_equal(was, w.bytes);
			}
		}
}

/* What fills the path at once is not made larger than once. */
static void test_large_from_the_start(void **state)
{
	struct path p = {.bytes_us = 1250, .rtt_ns = 10000};
	struct cwnd w;

	(void)state;
	cwnd_init(&w, 1 << 20);
	rounds(&w, &p, 100);
	assert_int_equal(2 << 20, w.bytes);
}

static void test_follows(void **state)
{
	struct path p = {.bytes_us = 12500, .rtt_ns = 20000};
	struct cwnd w;

	(void)state;
	cwnd_init(&w, 4096);
	rounds(&w, &p, 60);
	assert_fits(&w, &p);
	p.bytes_us /= 8; /* others have come */
	rounds(&w, &p, 200);
	assert_fits(&w, &p);
	p.bytes_us *= 8; /* and gone */
	rounds(&w, &p, 200);
	assert_fits(&w, &p);
}

/* Rounds that the sender did not fill, or that were not measured, say nothing. */
static void test_says_nothing(void **state)
{
	struct path p = {.bytes_us = 12500, .rtt_ns = 20000};
	struct cwnd w;

	(void)state;
	cwnd_init(&w, 4096);
	for (unsigned i = 0; i < 100; i++)
		a_round(&w, &p, false);
	assert_int_equal(4096, w.bytes);
	for (unsigned i = 0; i < 100; i++) {
		cwnd_sent(&w, ++p.next, p.acked, p.now);
		cwnd_want(&w);
		cwnd_again(&w, p.next);
		cwnd_acked(&w, p.next, p.acked += 4096, p.now += 20000);
	}
	assert_int_equal(4096, w.bytes);
	/* Another one that is sent again is no matter. */
	cwnd_sent(&w, ++p.next, p.acked, p.now);
	cwnd_want(&w);
	cwnd_again(&w, p.next - 1);
	cwnd_acked(&w, p.next - 1, p.acked + 100, p.now + 10000);
	assert_int_equal(4096, w.bytes);
	cwnd_acked(&w, p.next, p.acked += 4096, p.now += 20000);
	assert_int_equal(8192, w.bytes);
	/* What is acknowledged in the next round has been sent in this one. */
	a_round(&w, &p, true);
	assert_int_equal(8192, w.bytes);
	a_round(&w, &p, true);
	assert_int_equal(16384, w.bytes);
}

static void test_cut_and_restart(void **state)
{
	struct path p = {.bytes_us = 12500, .rtt_ns = 20000};
	struct cwnd w;
	uint32_t was;

	(void)state;
	cwnd_init(&w, 4096);
	rounds(&w, &p, 60);
	was = w.bytes;
	cwnd_cut(&w);
	assert_int_equal(was / 2, w.bytes);
	rounds(&w, &p, 60);
	assert_fits(&w, &p);
	for (unsigned i = 0; i < 40; i++)
		cwnd_cut(&w);
	assert_int_equal(4096, w.bytes);
	rounds(&w, &p, 60);
	assert_fits(&w, &p);
	cwnd_restart(&w);
	assert_int_equal(4096, w.bytes);
	rounds(&w, &p, 60);
	assert_fits(&w, &p);
}

/* Whatever comes: between where it started and the limit. */
static void test_bounds(void **state)
{
	struct net random = {.random = 20261128};

	(void)state;
	for (unsigned run = 0; run < 50; run++) {
		const uint32_t least =
			1 + (uint32_t)(net_random(&random) % (run % 2 ? CWND_MAX : 5000));
		uint64_t now = 0, next = 0;
		uint32_t acked = (uint32_t)net_random(&random);
		struct cwnd w;

		cwnd_init(&w, least);
		for (unsigned i = 0; i < 5000; i++) {
			now += net_random(&random) % 100;
			switch (net_random(&random) % 12) {
			case 0:
				cwnd_cut(&w);
				break;
			case 1:
				if (net_random(&random) % 50 == 0)
					cwnd_restart(&w);
				break;
			case 2:
				cwnd_again(&w, next - net_random(&random) % 3);
				break;
			case 3:
			case 4:
				cwnd_want(&w);
				break;
			case 5:
			case 6:
			case 7:
				cwnd_sent(&w, ++next, acked, now);
				break;
			default:
				acked += (uint32_t)net_random(&random) % (1 << 30);
				cwnd_acked(&w, next - net_random(&random) % 2, acked, now);
			}
			assert_in_range(w.bytes, least, CWND_MAX);
		}
	}
}

/* ---- two devices ---- */

enum { LEN = 32768, DEPTH = 16, START = 16384 };
static const uint64_t RATE = 100000000000;
static struct net net;

static void connect(uint32_t window_bytes, bool selective, bool none)
{
	const struct net_options options = {.mtu = IBV_MTU_4096,
		.timeout = 10,
		.selective = selective,
		.wr = DEPTH,
		.rd = 4,
		.congestion = {
			.window_bytes = window_bytes, .no_reaction = none, .line_mbps = 100000}};

	memset(&net, 0, sizeof(net));
	net.random = 20261;
	net_connect(&net, &options);
	net.rate = RATE;
}

static struct rnic_qp_stats stats(void)
{
	struct rnic_qp_stats s;

	rnic_qp_stats(net.end[0].qp, &s);
	return s;
}

static unsigned posted, done;

/* n requests of `len` bytes, or of random ones up to that. */
static void run(unsigned n, uint32_t len, bool mixed)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_wc wc;

	for (posted = done = 0; done < n;) {
		for (; posted < n && posted - done < DEPTH; posted++) {
			const bool read = mixed && net_random(&net) % 4 == 0;
			const uint32_t l = mixed ? (uint32_t)(net_random(&net) % len) : len;

			assert_int_equal(
				0, end_send(a, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, posted,
					   read ? LEN : 0, l, (uintptr_t)b->buf + (read ? LEN : 0),
					   rnic_mr_rkey(b->mr)));
		}
		net_run(&net, net.now + 1 * US);
		while (rnic_cq_poll(a->scq, 1, &wc) == 1) {
			assert_int_equal(IBV_WC_SUCCESS, wc.status);
			assert_int_equal(done++, wc.wr_id);
		}
	}
}

/* Off: as many as packets allow leave at once. On: no more than that before the first answer, the
 * last of them asking for it. */
static void test_starts_small(void **state)
{
	(void)state;
	for (unsigned on = 0; on < 2; on++) {
		unsigned n = 0, asked = 0;

		connect(on ? START : 0, false, false);
		net.n_log = 0;
		assert_int_equal(
			0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 0, 0, 5 * LEN,
				   (uintptr_t)net.end[1].buf, rnic_mr_rkey(net.end[1].mr)));
		net_run(&net, net.now + MS);
		for (; n < net.n_log && net.log[n].from == 0; n++)
			asked += net.log[n].pkt.ackreq;
		assert_int_equal(on ? START / 4096 : 5 * LEN / 4096, n);
		assert_int_equal(1, asked);
		assert_true(net.log[n - 1].pkt.ackreq);
		assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
		assert_int_equal(on ? 1 : 0, stats().window > START);
		assert_int_equal(0, rnic_count(net.end[0].rnic, RNIC_C_TIMEOUTS));
		net_close(&net);
	}
}

/* It is found, by both kinds of loss recovery, with DCQCN and without, and the line is full. 100
 * Gb/s for a round trip of 10 us and two packets are 133 KB. */
static void test_line_is_full(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		uint64_t from;
		double rate;

		connect(START, kind & 1, kind & 2);
		assert_int_equal(START, stats().window);
		run(200, LEN, false);
		from = net.now;
		run(1000, LEN, false);
		rate = 8.0 * 1000 * LEN * 1e9 / (double)(net.now - from);
		print_message("%s, %s: window %u, %.1f Gb/s\n",
			kind & 1 ? "selective" : "go-back-N", kind & 2 ? "none" : "dcqcn",
			stats().window, rate / 1e9);
		assert_true(rate > 0.95 * (double)RATE);
		assert_in_range(stats().window, 133000, 133000 * 4);
		assert_int_equal(0, rnic_count(net.end[0].rnic, RNIC_C_RETRANSMITS));
		net_close(&net);
	}
}

static unsigned under_way; /* packets, at most */

static void look(struct net *n)
{
	const struct rnic_qp_stats s = stats();
	const unsigned now = (s.sq_next - s.sq_una) & 0xffffff;

	(void)n;
	if (now * 4096u > s.window + 4096)
		under_way = now > under_way ? now : under_way;
}

/* Packets under way are those of the window, whatever it is. */
static void test_holds_back(void **state)
{
	(void)state;
	connect(START, false, false);
	net.before_port = look;
	under_way = 0;
	run(500, LEN, false);
	assert_int_equal(0, under_way);
	net_close(&net);
}

static void cnp(void)
{
	static const uint8_t zeros[ROCE_CNP_LEN];

	net_packet(
		&net, 0, (struct wire_hdr){.opcode = ROCE_CNP, .becn = true}, zeros, sizeof(zeros));
}

/* Without losses nothing ever waits for the timeout, though the window shrinks at any time: not
 * when none of the packets under way asks for an acknowledgement. */
static void test_cuts_do_not_stall(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];

	(void)state;
	for (unsigned selective = 0; selective < 2; selective++) {
		connect(4096, selective, false);
		run(100, LEN, false);
		for (unsigned i = 0; i < 300; i++) {
			uint32_t before;

			assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE, i, 0, 8 * LEN,
						    (uintptr_t)b->buf, rnic_mr_rkey(b->mr)));
			net_run(&net, net.now + net_random(&net) % (8 * US));
			before = stats().window;
			cnp();
			assert_int_equal(before > 8192 ? before / 2 : 4096, stats().window);
			net_run(&net, net.now + 100 * MS);
			assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
		}
		assert_int_equal(0, rnic_count(a->rnic, RNIC_C_TIMEOUTS));
		if (!selective) /* which probes */
			assert_int_equal(0, rnic_count(a->rnic, RNIC_C_RETRANSMITS));
		net_close(&net);
	}
}

/* Loss, doubling, reordering, corruption, CNPs; WRITEs and READs of all sizes; windows from a byte
 * on: all is done, in order. */
static void test_never_starves(void **state)
{
	static const uint32_t starts[] = {1, 4096, 10000, 65536};

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		connect(starts[i % 4], i & 4, i & 8);
		for (unsigned k = 0; k < LEN; k++)
			net.end[0].buf[k] = (uint8_t)(k * 7 + i);
		net.random += i;
		net.loss = i % 5 * 4;
		net.twice = i % 3 * 5;
		net.late = i % 2 * 20;
		net.corrupt = i % 4;
		for (unsigned k = 0; k < 6; k++) {
			run(50, LEN, true);
			cnp();
		}
		net.loss = net.twice = net.late = net.corrupt = 0;
		run(1, LEN, false);
		assert_memory_equal(net.end[0].buf, net.end[1].buf, LEN);
		assert_true(stats().window >= starts[i % 4]);
		net_check_counters(&net);
		net_close(&net);
	}
}

/* A timeout brings it back to the start. */
static void test_timeout(void **state)
{
	(void)state;
	connect(START, false, false);
	run(200, LEN, false);
	assert_true(stats().window > 4 * START);
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 0, 0, LEN,
				    (uintptr_t)net.end[1].buf, rnic_mr_rkey(net.end[1].mr)));
	net.mute[0] = true;
	net_run(&net, net.now + 5 * MS);
	assert_true(rnic_count(net.end[0].rnic, RNIC_C_TIMEOUTS) > 0);
	assert_int_equal(START, stats().window);
	net.mute[0] = false;
	net_run(&net, net.now + 100 * MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	net_close(&net);
}

/* So does another path. */
static void test_other_path(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rnic_qp *qp;

	(void)state;
	connect(START, false, false);
	qp = net.end[0].qp;
	run(200, LEN, false);
	assert_true(stats().window > START);
	rnic_qp_query(qp, &attr, &init);
	attr.qp_state = IBV_QPS_SQD;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, IBV_QP_STATE, net.now));
	assert_int_equal(0, rnic_qp_modify(qp, &attr, IBV_QP_AV, net.now));
	assert_int_equal(START, stats().window);
	net_close(&net);
}

static void test_range(void **state)
{
	struct rnic_config config = {.n_ports = 1,
		.port[0] = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = NET_MTU},
		.congestion.window_bytes = CWND_MAX + 1u};
	struct rnic *rnic;

	(void)state;
	assert_int_equal(-EINVAL, rnic_create(&config, &rnic));
	config.congestion.window_bytes = CWND_MAX;
	assert_int_equal(0, rnic_create(&config, &rnic));
	rnic_destroy(rnic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_fits_the_path),
		cmocka_unit_test(test_large_from_the_start), cmocka_unit_test(test_follows),
		cmocka_unit_test(test_says_nothing), cmocka_unit_test(test_cut_and_restart),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_starts_small),
		cmocka_unit_test(test_line_is_full), cmocka_unit_test(test_holds_back),
		cmocka_unit_test(test_cuts_do_not_stall), cmocka_unit_test(test_never_starves),
		cmocka_unit_test(test_timeout), cmocka_unit_test(test_other_path),
		cmocka_unit_test(test_range)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
