/* SPDX-License-Identifier: BSD-3-Clause */
/* How losses are repaired, one mechanism per test, by what was sent and how long it took: tail loss
 * probes, RACK, retransmissions that are lost, reordering, timeouts for nothing, peers without
 * SACK, and peers that lie. All on sequence numbers that wrap. */
#include "tests/unit/stream/net.h"

static const uint64_t second = 1000000000, ms = 1000000, us = 1000;

enum { SEGMENT = 1460 }; /* of MTU 1500 */

static struct stream_config wanted;

static void change(struct stream_config *c, int side)
{
	(void)side;
	if (wanted.segments != 0)
		c->segments = wanted.segments;
	c->cc = wanted.cc;
}

/* The frame being looked at, if it carries data to the server. */
struct view {
	struct wire_tcp tcp;
	uint32_t len;
	uint64_t at; /* of the stream */
};

static struct state {
	struct program p[2];
	struct net *n;
	uint32_t isn;
	bool known;
	unsigned frames, seen[8];
} st;

static bool look_at(const uint8_t *frame, size_t len, int to, struct view *v)
{
	struct wire_pkt pkt;

	if (to != SERVER || wire_parse(frame, len, &pkt) != WIRE_OK ||
		wire_tcp_parse(frame, &pkt, &v->tcp) != WIRE_TCP_OK)
		return false;
	if (v->tcp.flags & TCP_SYN) {
		st.isn = v->tcp.seq + 1;
		st.known = true;
	}
	v->len = pkt.pay_len;
	v->at = v->tcp.seq - st.isn;
	return v->len > 0;
}

static void begin(size_t bytes, uint64_t (*fate)(struct net *, const uint8_t *, size_t, int))
{
	memset(&st, 0, sizeof(st));
	st.n = net_new(31, change);
	st.n->isn = (uint32_t)-30000;
	st.n->fate = fate;
	program_init(&st.p[0], st.n, CLIENT, bytes, 10);
	program_init(&st.p[1], st.n, SERVER, 10, bytes);
	for (int i = 0; i < 2; i++)
		st.p[i].piece = 80000;
	programs_connect(st.p);
}

static uint64_t count(enum stream_counter counter)
{
	return stream_count(st.n->s[CLIENT], counter);
}

/* Until all is closed; the time until all was received, in steps of 100 us. */
static uint64_t finish(void)
{
	const uint64_t from = st.n->now;
	uint64_t took;

	flow_run(st.p, flow_received, st.p[SERVER].rx_len, 100 * us);
	took = st.n->now - from;
	if (!programs_run(st.p, 500 * second))
		fail_msg("not closed: %zu received", st.p[SERVER].received);
	programs_check(st.p);
	return took;
}

static void end(void)
{
	st.n->fate = NULL;
	net_check_empty(st.n);
	program_free(&st.p[0]);
	program_free(&st.p[1]);
	net_free(st.n);
	memset(&wanted, 0, sizeof(wanted));
}

/* ---- tail loss (RFC 8985, 7) ---- */

static unsigned tail; /* so many of the last segments are lost, once */

static uint64_t drop_tail(struct net *n, const uint8_t *frame, size_t len, int to)
{
	const size_t all = st.p[CLIENT].tx_len;
	struct view v;

	(void)n;
	if (look_at(frame, len, to, &v) && v.at + v.len + tail * SEGMENT > all &&
		v.at + v.len + (tail - 1) * SEGMENT > all - SEGMENT && st.seen[0] < tail) {
		st.seen[0]++;
		return NET_DROP;
	}
	return 0;
}

static void test_tail_loss(void **state)
{
	(void)state;
	for (tail = 1; tail <= 5; tail += 2) {
		begin(40 * SEGMENT, drop_tail);
		st.p[CLIENT].close_asked =
			true;                /* no FIN behind it, which would show what is lost */
		programs_run(st.p, 50 * ms); /* the timer is of 200 ms at least */
		assert_int_equal(st.p[SERVER].received, 40 * SEGMENT);
		st.p[CLIENT].close_asked = false;
		finish();
		assert_int_equal(st.seen[0], tail);
		assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 0);
		assert_int_equal(count(STREAM_COUNT_TAIL_PROBES), 1);
		assert_true(count(STREAM_COUNT_RETRANSMITTED) <= tail + 1);
		end();
		/* With it no timer is needed at all: the peer says that it has the FIN. */
		begin(40 * SEGMENT, drop_tail);
		assert_true(finish() < 10 * ms);
		assert_int_equal(st.seen[0], tail);
		assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 0);
		end();
	}
}

/* A probe that repairs by itself is the only sign of a loss: it is answered as one (7.4). */
static uint64_t drop_one_tail(struct net *n, const uint8_t *frame, size_t len, int to)
{
	struct view v;

	(void)n;
	if (look_at(frame, len, to, &v) && v.at + v.len == 20 * SEGMENT && st.seen[0]++ == 0)
		return NET_DROP;
	return 0;
}

static void test_tail_loss_counts(void **state)
{
	struct stream_info before, after;

	(void)state;
	begin(30 * SEGMENT, drop_one_tail);
	st.p[CLIENT].tx_len = 20 * SEGMENT; /* and then, later, the rest */
	st.p[CLIENT].close_asked = true;
	programs_run(st.p, ms / 2);
	assert_int_equal(stream_info(st.n->s[CLIENT], st.p[CLIENT].conn, &before), 0);
	programs_run(st.p, 100 * ms);
	assert_int_equal(st.seen[0], 2);
	st.p[CLIENT].tx_len = 30 * SEGMENT;
	programs_run(st.p, st.n->now + 300 * us);
	assert_int_equal(stream_info(st.n->s[CLIENT], st.p[CLIENT].conn, &after), 0);
	st.p[CLIENT].close_asked = false;
	finish();
	assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 0);
	assert_int_equal(count(STREAM_COUNT_TAIL_REPAIRED), 1);
	assert_true(after.ssthresh < before.cwnd);
	end();
}

/* ---- RACK (RFC 8985, 6) ---- */

/* Segment 30, and the first two times that it is sent again. */
static uint64_t drop_thrice(struct net *n, const uint8_t *frame, size_t len, int to)
{
	struct view v;

	(void)n;
	return look_at(frame, len, to, &v) && v.at == 30 * SEGMENT && st.seen[0]++ < 3 ? NET_DROP
										       : 0;
}

static void test_lost_retransmission(void **state)
{
	(void)state;
	begin(600 * SEGMENT, drop_thrice);
	st.n->rate = 1000000000; /* so that there is something behind it */
	st.n->buffer = 1 << 20;
	assert_true(finish() < 50 * ms);
	assert_int_equal(st.seen[0], 4);
	assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 0);
	assert_int_equal(count(STREAM_COUNT_RETRANSMITTED), 3);
	assert_int_equal(count(STREAM_COUNT_REPAIRS), 3); /* RFC 5681, 4.3 */
	end();
}

static uint64_t late; /* every tenth segment is overtaken */

static uint64_t overtaken(struct net *n, const uint8_t *frame, size_t len, int to)
{
	struct view v;

	(void)n;
	return look_at(frame, len, to, &v) && ++st.frames % 10 == 0 ? late : 0;
}

/* Within a quarter of a round trip: after the first time it costs nothing at all. */
static void test_reordering(void **state)
{
	uint64_t repairs;

	(void)state;
	late = 55 * us;
	begin(3000 * SEGMENT, overtaken);
	st.n->delay = 150 * us;
	programs_run(st.p, 3 * ms);
	repairs = count(STREAM_COUNT_REPAIRS);
	finish();
	assert_int_equal(count(STREAM_COUNT_UNDONE), repairs);
	assert_int_equal(count(STREAM_COUNT_REPAIRS), repairs);
	assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 0);
	assert_true(count(STREAM_COUNT_RETRANSMITTED) <= 12);
	end();
}

/* By more than that: reports of what came twice widen the window, step by step. */
static void test_more_reordering(void **state)
{
	(void)state;
	late = 160 * us;
	begin(4000 * SEGMENT, overtaken);
	st.n->delay = 100 * us;
	finish();
	assert_true(st.frames > 4000);
	assert_true(count(STREAM_COUNT_REPAIRS) < 20); /* of 400 that are late */
	assert_true(count(STREAM_COUNT_UNDONE) > 0);
	assert_true(count(STREAM_COUNT_UNDONE) + 3 >= count(STREAM_COUNT_REPAIRS));
	end();
}

/* ---- what was for nothing ---- */

/* One segment comes two round trips late: it was sent again, the window was cut, and is given back
 * when the peer says that it had it twice (RFC 3708). */
static uint64_t one_late(struct net *n, const uint8_t *frame, size_t len, int to)
{
	struct view v;

	(void)n;
	return look_at(frame, len, to, &v) && v.at == 40 * SEGMENT && st.seen[0]++ == 0 ? 300 * us
											: 0;
}

static void test_undo(void **state)
{
	struct stream_info info;

	(void)state;
	begin(400 * SEGMENT, one_late);
	programs_run(st.p, 3 * ms);
	assert_int_equal(count(STREAM_COUNT_REPAIRS), 1);
	assert_int_equal(count(STREAM_COUNT_UNDONE), 1);
	assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 0);
	assert_int_equal(stream_info(st.n->s[CLIENT], st.p[CLIENT].conn, &info), -EBADF);
	finish();
	end();
}

/* Data stands still for 300 ms, then comes through in order, none lost (RFC 5682): two segments at
 * most are sent again, and the window is what it was. */
static uint64_t freeze(struct net *n, const uint8_t *frame, size_t len, int to)
{
	static uint64_t next;
	uint64_t at = n->now;
	struct view v;

	if (!look_at(frame, len, to, &v) || n->now < 3 * ms)
		return 0;
	if (st.seen[0]++ == 0)
		next = 303 * ms;
	if (at < next)
		at = next;
	next = at + 12 * us;
	return at - n->now;
}

static void test_spurious_timeout(void **state)
{
	struct stream_info before, after;

	(void)state;
	begin(6000 * SEGMENT, freeze);
	programs_run(st.p, 4 * ms);
	assert_int_equal(stream_info(st.n->s[CLIENT], st.p[CLIENT].conn, &before), 0);
	assert_true(before.flight > 30 * SEGMENT);
	programs_run(st.p, 306 * ms);
	assert_int_equal(stream_info(st.n->s[CLIENT], st.p[CLIENT].conn, &after), 0);
	finish();
	assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 1);
	assert_int_equal(count(STREAM_COUNT_UNDONE), 1);
	assert_true(count(STREAM_COUNT_RETRANSMITTED) <= 2 + count(STREAM_COUNT_TAIL_PROBES));
	assert_true(after.cwnd >= before.cwnd);
	end();
}

/* A timeout that was none for nothing is not undone. */
static uint64_t outage(struct net *n, const uint8_t *frame, size_t len, int to)
{
	struct view v;

	return look_at(frame, len, to, &v) && n->now >= ms / 2 && n->now < 100 * ms ? NET_DROP : 0;
}

static void test_true_timeout(void **state)
{
	(void)state;
	begin(6000 * SEGMENT, outage);
	st.n->rate = 1000000000;
	st.n->buffer = 1 << 20;
	finish();
	assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 1);
	assert_int_equal(count(STREAM_COUNT_UNDONE), 0);
	assert_true(count(STREAM_COUNT_RETRANSMITTED) > 10);
	end();
}

/* ---- beginnings, and peers without SACK ---- */

static uint64_t count_first(struct net *n, const uint8_t *frame, size_t len, int to)
{
	struct view v;

	if (look_at(frame, len, to, &v) && n->now < 200 * us)
		st.seen[0]++;
	return 0;
}

static void test_initial_window(void **state)
{
	(void)state;
	begin(100 * SEGMENT, count_first);
	finish();
	assert_int_equal(st.seen[0], 10); /* RFC 6928 */
	end();
}

static uint64_t drop_two(struct net *n, const uint8_t *frame, size_t len, int to)
{
	struct view v;

	(void)n;
	if (!look_at(frame, len, to, &v))
		return 0;
	if (v.at == 20 * SEGMENT && st.seen[0]++ == 0)
		return NET_DROP;
	return v.at == 22 * SEGMENT && st.seen[1]++ == 0 ? NET_DROP : 0;
}

static void test_without_sack(void **state)
{
	(void)state;
	begin(300 * SEGMENT, drop_two);
	st.n->look = net_no_sack;
	st.n->rate = 1000000000;
	st.n->buffer = 1 << 20;
	assert_true(finish() < 50 * ms);
	assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 0);
	assert_int_equal(count(STREAM_COUNT_REPAIRS), 1);
	assert_int_equal(count(STREAM_COUNT_RETRANSMITTED), 2);
	end();
}

/* Of the first ten two come: three duplicates only if two more may go (RFC 3042). */
static uint64_t drop_most(struct net *n, const uint8_t *frame, size_t len, int to)
{
	const unsigned ten = 10 * SEGMENT;
	struct view v;

	(void)n;
	if (!look_at(frame, len, to, &v) || v.at >= ten || st.seen[0] >= 10)
		return 0;
	st.seen[0]++;
	return v.at == SEGMENT || v.at == 2 * SEGMENT ? 0 : NET_DROP;
}

static void test_limited_transmit(void **state)
{
	(void)state;
	begin(12 * SEGMENT, drop_most);
	st.n->look = net_no_sack;
	assert_true(finish() < 50 * ms);
	assert_int_equal(count(STREAM_COUNT_TIMEOUTS), 0);
	end();
}

/* ---- bounds ---- */

static void test_segments_used_up(void **state)
{
	(void)state;
	wanted.segments = 64;
	begin(3000 * SEGMENT, NULL);
	st.n->loss = 10000;
	finish();
	assert_true(count(STREAM_COUNT_NO_SEGMENT) > 0);
	end();
}

/* ---- lies ---- */

static struct wire_tcp acked; /* what the server said last */

static void spy(struct net *n, uint8_t *frame, size_t len, int to)
{
	struct wire_pkt pkt;

	(void)n;
	if (to == CLIENT && wire_parse(frame, len, &pkt) == WIRE_OK)
		wire_tcp_parse(frame, &pkt, &acked);
}

static struct wire_tcp plain_ack(void)
{
	struct wire_tcp tcp = acked;

	tcp.flags = TCP_ACK;
	tcp.mss = 0;
	tcp.sack_ok = false;
	tcp.wscale = TCP_NO_WSCALE;
	return tcp;
}

/* One who sees all, or the peer itself: SACK blocks of anything, also reports that all came twice,
 * in acknowledgements that are right. */
static void lie(struct net *n, unsigned step)
{
	struct wire_tcp tcp = plain_ack();

	for (unsigned i = 0; i < 20; i++) {
		tcp.n_sack = 1 + i % 4;
		for (unsigned k = 0; k < tcp.n_sack; k++) {
			const uint32_t from = net_random(n, 120000);

			tcp.sack[k].from = acked.ack + from - (step % 2 ? 60000 : 0);
			tcp.sack[k].to = tcp.sack[k].from + 1 + net_random(n, 20000);
		}
		net_segment(n, CLIENT, &n->ip[SERVER], &tcp, "");
	}
}

static void test_sack_lies(void **state)
{
	(void)state;
	for (enum stream_cc cc = 0; cc < STREAM_N_CCS; cc++) {
		wanted.cc = cc;
		begin(1000 * SEGMENT, NULL);
		st.n->look = spy;
		st.n->loss = 10000;
		for (unsigned i = 0; i < 300 && !st.p[0].closed; i++) {
			programs_run(st.p, st.n->now + 50 * us);
			if (st.p[CLIENT].open)
				lie(st.n, i);
		}
		finish(); /* late, but every byte */
		st.n->loss = 0;
		end();
	}
}

/* Reports that everything came twice, for nothing was ever sent again: no window grows by them. */
static void test_dsack_storm(void **state)
{
	struct stream_info info[2];

	(void)state;
	for (unsigned storm = 0; storm < 2; storm++) {
		begin(4000 * SEGMENT, NULL);
		st.n->look = spy;
		st.n->rate = 1000000000;
		st.n->buffer = 1 << 20;
		programs_run(st.p, 2 * ms);
		for (unsigned i = 0; i < 200; i++) {
			struct wire_tcp tcp = plain_ack();

			tcp.n_sack = 1;
			tcp.sack[0].from = acked.ack - SEGMENT * (1 + i % 20);
			tcp.sack[0].to = tcp.sack[0].from + SEGMENT;
			if (storm)
				net_segment(st.n, CLIENT, &st.n->ip[SERVER], &tcp, "");
			programs_run(st.p, st.n->now + 10 * us);
		}
		programs_run(st.p, 5 * ms);
		assert_int_equal(stream_info(st.n->s[CLIENT], st.p[CLIENT].conn, &info[storm]), 0);
		assert_int_equal(count(STREAM_COUNT_UNDONE), 0);
		finish();
		assert_true(storm == 0 || count(STREAM_COUNT_DSACKS) == 200);
		assert_int_equal(count(STREAM_COUNT_RETRANSMITTED), 0);
		end();
	}
	/* They acknowledge sooner than the true ones, not more. */
	assert_true(info[1].cwnd <= info[0].cwnd / 10 * 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tail_loss),
		cmocka_unit_test(test_tail_loss_counts),
		cmocka_unit_test(test_lost_retransmission),
		cmocka_unit_test(test_reordering),
		cmocka_unit_test(test_more_reordering),
		cmocka_unit_test(test_undo),
		cmocka_unit_test(test_spurious_timeout),
		cmocka_unit_test(test_true_timeout),
		cmocka_unit_test(test_initial_window),
		cmocka_unit_test(test_without_sack),
		cmocka_unit_test(test_limited_transmit),
		cmocka_unit_test(test_segments_used_up),
		cmocka_unit_test(test_sack_lies),
		cmocka_unit_test(test_dsack_storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
