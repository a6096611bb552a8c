/* SPDX-License-Identifier: BSD-3-Clause */
/* BBR: samples of the delivery rate by hand, the model fed with acknowledgements of a path that is
 * known, and whole stacks: their frames are looked at one by one, what BBR is told is, turns are
 * late, the program pauses, the peer has no SACK. Virtual time. */
#include "lib/stream/conn.h"
#include "tests/unit/stream/net.h"

enum { MSS = 1000, RATE = 125000000 /* bytes/s: a segment each 8 us */ };

static const uint64_t second = 1000000000, ms = 1000000, us = 1000;

/* ---- rate.h ---- */

static void test_sample(void **state)
{
	struct rate r = {.delivered = 0};
	struct rate_sample s = {.any = false};
	struct seg seg[3] = {{.from = 0, .to = 1000, .at = 100},
		{.from = 1000, .to = 2000, .at = 200}, {.from = 2000, .to = 3000, .at = 1200}};

	(void)state;
	rate_sent(&r, &seg[0], true, 100);
	rate_sent(&r, &seg[1], false, 200);
	/* Two at once, after 1000 ns: both bytes over that time. */
	rate_delivered(&r, &s, &seg[0], 1200);
	rate_delivered(&r, &s, &seg[1], 1200);
	rate_finish(&r, &s, 1000);
	assert_int_equal(s.bytes_per_s, 2000 * second / 1100);
	assert_true(s.began);
	assert_false(s.limited);
	/* Sent when these had been delivered; the program has no more: the path could do more. */
	rate_limited(&r, 0);
	rate_sent(&r, &seg[2], true, 1200);
	s = (struct rate_sample){.any = false};
	rate_delivered(&r, &s, &seg[2], 2200);
	rate_finish(&r, &s, 1000);
	assert_int_equal(s.bytes_per_s, 1000 * second / 1000);
	assert_int_equal(s.delivered, 2000);
	assert_true(s.limited);
	assert_int_equal(r.limited_to, 0); /* and that is over */
	/* Sooner than any round trip: acknowledgements in a burst, not the path. */
	rate_sent(&r, &seg[2], true, 3000);
	s = (struct rate_sample){.any = false};
	seg[2].at = 3000;
	rate_delivered(&r, &s, &seg[2], 3500);
	rate_finish(&r, &s, 1000);
	assert_int_equal(s.bytes_per_s, 0);
}

/* ---- the model ---- */

struct feed {
	struct congestion cc;
	uint64_t now, total, rtt;
	bool recovering;
	bool limited; /* the program has half of what it could send */
};

static struct feed start(void)
{
	struct feed f = {.now = 1, .rtt = 100 * us};
	struct stream_config config = {.cc = STREAM_BBR};

	cc_init(&f.cc, &config, MSS);
	return f;
}

/* n segments arrive, one after the other as the path sends them; of each `of` one is lost. */
static void feed(struct feed *f, unsigned n, unsigned of)
{
	for (unsigned i = 0; i < n; i++) {
		const uint64_t pipe = RATE * f->rtt / second;
		/* Who sends faster than the path has a queue. */
		const uint64_t queue = f->cc.pace > RATE ? pipe / 2 : 0;
		const uint64_t flight = f->cc.cwnd < pipe + queue ? f->cc.cwnd : pipe + queue;
		const uint64_t rate = flight < pipe ? RATE * flight / pipe : RATE;

		f->now += MSS * second / RATE;
		f->total += MSS;
		f->cc.ops->acked(&f->cc,
			&(struct cc_ack){.now = f->now,
				.delivered = MSS,
				.lost = of != 0 && i % of == 0 ? MSS : 0,
				.rtt = f->rtt,
				.srtt = f->rtt,
				.flight = flight,
				.flight_before = flight,
				.total = f->total,
				.recovering = f->recovering,
				.rate = {.any = true,
					.limited = f->limited,
					.bytes_per_s = f->limited ? rate / 2 : rate,
					.delivered = f->total > flight ? f->total - flight : 0}});
	}
}

static void test_model(void **state)
{
	struct feed f = start();
	uint64_t least = UINT64_MAX, most = 0;

	(void)state;
	feed(&f, 1000, 0);
	assert_true(f.cc.bbr.full);
	assert_int_equal(f.cc.bbr.mode, BBR_PROBE_BW);
	assert_int_equal(f.cc.bbr.min_rtt, 100 * us);
	/* Two products of rate and delay, six segments, and what little was late. */
	assert_in_range(f.cc.cwnd, 2 * 12500 + 6 * MSS, 2 * 12500 + 10 * MSS);
	for (unsigned i = 0; i < 400; i++) {
		feed(&f, 1, 0);
		least = f.cc.pace < least ? f.cc.pace : least;
		most = f.cc.pace > most ? f.cc.pace : most;
	}
	/* A quarter more, a quarter less, one hundredth below. */
	assert_in_range(least, RATE / 100 * 73, RATE / 100 * 75);
	assert_in_range(most, RATE / 100 * 122, RATE / 100 * 124);
}

/* A program that says a few bytes first, and later all the rest: what these had for a rate is not
 * the path's. */
static void test_few_bytes_first(void **state)
{
	struct feed f = start();

	(void)state;
	f.total = 37;
	f.now += f.rtt;
	f.cc.ops->acked(&f.cc,
		&(struct cc_ack){.now = f.now,
			.delivered = 37,
			.rtt = f.rtt,
			.srtt = f.rtt,
			.total = 37,
			.rate = {
				.any = true, .limited = true, .bytes_per_s = 37 * second / f.rtt}});
	assert_true(f.cc.pace >= 2 * 10 * MSS * second / f.rtt);
	feed(&f, 1000, 0);
	assert_true(f.cc.pace >= RATE / 100 * 73);
}

/* Nothing to send for longer than the least round trip counts: the queue is empty as it is. */
static void test_pause(void **state)
{
	struct feed f = start();
	struct cc_ack first;

	(void)state;
	feed(&f, 1000, 0);
	f.now += 11 * second;
	f.total += MSS;
	first = (struct cc_ack){.now = f.now,
		.delivered = MSS,
		.rtt = f.rtt,
		.srtt = f.rtt,
		.flight_before = MSS,
		.total = f.total,
		.rate = {.any = true, .began = true, .limited = true, .delivered = f.total - MSS}};
	f.cc.ops->acked(&f.cc, &first);
	assert_int_equal(f.cc.bbr.mode, BBR_PROBE_BW);
	feed(&f, 1000, 0);
	assert_int_equal(f.cc.bbr.mode, BBR_PROBE_BW);
	/* Of one that was silent for no such reason the queue is unknown. */
	f.now += 11 * second;
	first.now = f.now;
	first.rate.began = false;
	f.cc.ops->acked(&f.cc, &first);
	assert_int_equal(f.cc.bbr.mode, BBR_PROBE_RTT);
}

/* Acknowledgements that came together, once: that is forgotten after 8 to 16 rounds, whether these
 * say something of the path or not. */
static void test_held_back(void **state)
{
	enum { ROUND = RATE / 10000 / MSS, TOGETHER = 20 };

	(void)state;
	for (unsigned before = 0; before < 8; before++) { /* rounds of the rate's own count */
		struct feed f = start();
		const uint64_t *extra = f.cc.bbr.extra;

		feed(&f, (100 + before) * ROUND, 0);
		f.total += TOGETHER * MSS;
		f.cc.ops->acked(&f.cc, &(struct cc_ack){.now = f.now,
					       .delivered = TOGETHER * MSS,
					       .srtt = f.rtt,
					       .total = f.total});
		f.now += ms; /* and then none: what came is the path's rate again */
		f.limited = true;
		feed(&f, 6 * ROUND, 0);
		assert_true(extra[0] >= TOGETHER * MSS / 2 || extra[1] >= TOGETHER * MSS / 2);
		feed(&f, 16 * ROUND, 0);
		assert_true(extra[0] < TOGETHER * MSS / 2 && extra[1] < TOGETHER * MSS / 2);
	}
}

/* One of ten is lost: the window of a recovery's first round follows what leaves; then, and after
 * it, it is what the model says. */
static void test_losses(void **state)
{
	struct feed f = start();
	uint64_t before;

	(void)state;
	feed(&f, 1000, 0);
	before = f.cc.cwnd;
	f.cc.ops->lost(&f.cc, f.cc.cwnd, false, f.now);
	f.recovering = true;
	feed(&f, 1, 0);
	assert_in_range(f.cc.cwnd, 12500, 18750 + 2 * MSS); /* what is on its way, and this one */
	feed(&f, 1000, 10);
	assert_in_range(f.cc.cwnd, before - 2 * MSS, before + 2 * MSS);
	assert_in_range(f.cc.bbr.bw[0], RATE, RATE);
	f.recovering = false;
	feed(&f, 1, 0);
	assert_true(f.cc.cwnd >= before - MSS);
	/* A timeout: the caller begins with one segment; what was known is kept. */
	f.cc.ops->lost(&f.cc, f.cc.cwnd, true, f.now);
	f.cc.cwnd = MSS;
	feed(&f, 1, 0);
	assert_true(f.cc.cwnd >= before - MSS);
	assert_true(f.cc.pace >= RATE / 100 * 73);
}

/* The path becomes longer: after ten seconds it is looked at with four segments, for 200 ms. */
static void test_longer_path(void **state)
{
	struct feed f = start();
	uint64_t from, began = 0, ended = 0;

	(void)state;
	feed(&f, 1000, 0);
	f.rtt = 400 * us;
	for (from = f.now; f.now < from + 11 * second && ended == 0;) {
		feed(&f, 1, 0);
		if (f.cc.bbr.mode == BBR_PROBE_RTT && began == 0)
			began = f.now;
		if (f.cc.bbr.mode == BBR_PROBE_RTT)
			assert_true(f.cc.cwnd <= 4 * MSS);
		else if (began != 0)
			ended = f.now;
	}
	assert_in_range(began - from, 9 * second, 11 * second);
	assert_in_range(ended - began, 200 * ms, 202 * ms);
	assert_int_equal(f.cc.bbr.min_rtt, 400 * us);
	/* The rate is not forgotten meanwhile, and the window is that of the longer path. */
	assert_in_range(f.cc.bbr.bw[0] > f.cc.bbr.bw[1] ? f.cc.bbr.bw[0] : f.cc.bbr.bw[1],
		RATE / 100 * 95, RATE);
	feed(&f, 1000, 0);
	assert_in_range(f.cc.cwnd, 2 * 50000, 2 * 50000 + 40 * MSS);
}

/* ---- the stack ---- */

static struct {
	uint64_t at;
	unsigned now, most; /* segments with payload at one instant */
} seen;

static void look(struct net *n, uint8_t *frame, size_t len, int to)
{
	(void)frame;
	if (to != SERVER || len < 500)
		return;
	seen.now = n->now == seen.at ? seen.now + 1 : 1;
	seen.at = n->now;
	seen.most = seen.now > seen.most ? seen.now : seen.most;
}

static void use_bbr(struct stream_config *c, int side)
{
	(void)side;
	c->cc = STREAM_BBR;
}

static void begin(struct net *n, struct program p[2], size_t bytes)
{
	n->rate = 1000000000;
	n->buffer = 1 << 20;
	n->delay = ms / 2;
	program_init(&p[0], n, CLIENT, bytes, 1);
	program_init(&p[1], n, SERVER, 1, bytes);
	p[0].piece = p[1].piece = 1000000;
	programs_connect(p);
}

static void end(struct net *n, struct program p[2])
{
	assert_true(programs_run(p, n->now + 300 * second));
	programs_check(p);
	n->look = NULL;
	net_check_empty(n);
	net_free(n);
	program_free(&p[0]);
	program_free(&p[1]);
}

static void look_from(struct net *n)
{
	memset(&seen, 0, sizeof(seen));
	n->look = look;
}

static void test_paced(void **state)
{
	struct net *n = net_new(5, use_bbr);
	struct program p[2];
	struct stream_info info;

	(void)state;
	begin(n, p, 6000000);
	programs_run(p, 20 * ms);
	look_from(n);
	programs_run(p, 40 * ms);
	assert_int_equal(seen.most, 1);
	assert_int_equal(stream_info(n->s[CLIENT], p[CLIENT].conn, &info), 0);
	/* The link's payload is 0.949 of its rate. */
	assert_in_range(info.pace, 125000000ull * 70 / 100, 125000000ull * 120 / 100);
	assert_in_range(info.cwnd, 125000 * 2, 125000 * 2 + 65536);
	assert_int_equal(n->dropped, 0);
	end(n, p);
}

/* Who did not run for ten milliseconds makes up for 64 KB of them, and then goes on as before. */
static void test_late_turn(void **state)
{
	struct net *n = net_new(5, use_bbr);
	struct program p[2];

	(void)state;
	begin(n, p, 12000000);
	programs_run(p, 40 * ms);
	n->now += 10 * ms;
	look_from(n);
	programs_run(p, n->now + 1);
	assert_in_range(seen.most, 65536 / 1460, 65536 / 1460 + 2);
	programs_run(p, n->now + 2 * ms);
	look_from(n);
	programs_run(p, n->now + 10 * ms);
	assert_int_equal(seen.most, 1);
	end(n, p);
}

/* A program that says nothing for eleven seconds finds its path as it was: without a look at it
 * with four segments. */
static void test_goes_on(void **state)
{
	struct net *n = net_new(5, use_bbr);
	struct program p[2];

	(void)state;
	begin(n, p, 6000000);
	p[CLIENT].tx_len = 3000000;
	p[CLIENT].close_asked = true;
	programs_run(p, 200 * ms);
	assert_int_equal(p[CLIENT].acked, 3000000);
	n->now += 11 * second;
	p[CLIENT].tx_len = 6000000;
	p[CLIENT].close_asked = false;
	programs_run(p, n->now + 50 * ms);
	assert_int_equal(p[SERVER].received, 6000000);
	end(n, p);
}

/* ---- what it is told ---- */

static struct cc_ops spy;
static struct cc_ack by_time; /* no acknowledgement: the clock has found a loss */

static void spying(struct congestion *cc, const struct cc_ack *ack)
{
	if (ack->delivered == 0)
		by_time = *ack;
	cc_bbr.acked(cc, ack);
}

static unsigned data_frames;

static uint64_t drop_fourth(struct net *n, const uint8_t *frame, size_t len, int to)
{
	(void)n;
	(void)frame;
	return to == SERVER && len > 500 && ++data_frames == 4 ? NET_DROP : 0;
}

static struct conn *conn_of(struct net *n)
{
	struct stream *s = n->s[CLIENT];

	for (unsigned i = 0; i < s->config.max_conns; i++)
		if (s->conn[i].state != FREE)
			return &s->conn[i];
	fail();
	return NULL;
}

/* Of five segments the fourth: one behind it has come, which may have overtaken it. What was on its
 * way before is the one that is lost. */
static void test_lost_by_time(void **state)
{
	struct net *n = net_new(5, use_bbr);
	struct program p[2];

	(void)state;
	n->fate = drop_fourth;
	begin(n, p, 5 * 1460);
	p[CLIENT].close_asked = true;
	while (!p[CLIENT].open)
		programs_run(p, n->now + 10 * us);
	spy = cc_bbr;
	spy.acked = spying;
	conn_of(n)->cc.ops = &spy;
	programs_run(p, 100 * ms);
	assert_int_equal(p[SERVER].received, 5 * 1460);
	assert_int_equal(by_time.lost, 1460);
	assert_int_equal(by_time.flight, 0);
	assert_int_equal(by_time.flight_before, 1460);
	p[CLIENT].close_asked = false;
	end(n, p);
}

/* F-RTO waits for new segments that only the pace holds back. */
static void test_new_ones_wait(void **state)
{
	struct net *n = net_new(5, use_bbr);
	struct program p[2];
	struct conn *c;

	(void)state;
	begin(n, p, 3000000);
	programs_run(p, 10 * ms);
	c = conn_of(n);
	c->rec.point = c->nxt;
	c->rec.undo.frto = FRTO_SECOND;
	c->cc.cwnd = 1 << 24;
	c->pace_at = n->now + ms;
	assert_true(conn_flush(n->s[CLIENT], c));
	assert_true(c->paced);
	assert_int_equal(c->rec.undo.frto, FRTO_SECOND);
	c->rec.undo.frto = FRTO_OFF;
	end(n, p);
}

static void test_without_sack(void **state)
{
	struct net *n = net_new(5, use_bbr);
	struct program p[2];

	(void)state;
	n->look = net_no_sack;
	begin(n, p, 6000000);
	programs_run(p, 10 * ms);
	assert_false(conn_of(n)->sack);
	n->loss = 1000;
	programs_run(p, 300 * ms);
	assert_int_equal(p[SERVER].received, 6000000);
	end(n, p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_few_bytes_first),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_held_back),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_longer_path),
		cmocka_unit_test(test_paced),
		cmocka_unit_test(test_late_turn),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_lost_by_time),
		cmocka_unit_test(test_new_ones_wait),
		cmocka_unit_test(test_without_sack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
