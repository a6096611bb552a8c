/* SPDX-License-Identifier: BSD-3-Clause */
/* What a connection sends: its window and losses (RFC 5681, RFC 6675), timers (RFC 6298), headers.
 */
#include <errno.h>
#include <string.h>

#include "lib/stream/conn.h"

/* ---- variables ---- */

void conn_start(struct stream *s, struct conn *c, uint32_t peer_seq)
{
	const uint64_t iss = (1ull << 32) + s->config.random(s->config.random_arg);
	const unsigned ip = wire_ip_is4(&c->tuple.local) ? 20 : 40;

	c->una = c->nxt = c->recover = c->lost_to = c->resend = iss;
	c->tail = iss + 1;
	c->mss = s->config.mtu - ip - TCP_HDR_LEN;
	c->rcv = c->edge = c->rx_tail = (1ull << 32) + peer_seq + 1;
	c->rto = max_u64(s->config.rto_min, min_u64(1000000000, s->config.rto_max));
	c->ssthresh = UINT64_MAX;
	c->progress = s->now;
}

/* What both ends said in their SYNs. */
void conn_options(struct stream *s, struct conn *c, const struct wire_tcp *syn)
{
	const uint32_t theirs = syn->mss != 0 ? syn->mss : 536;

	if (theirs < c->mss)
		c->mss = theirs < 64 ? 64 : theirs;
	c->sack = syn->sack_ok;
	if (syn->wscale != TCP_NO_WSCALE) {
		c->snd_scale = syn->wscale;
		c->rcv_scale = s->config.wscale;
	}
	c->snd_wnd = c->max_wnd = syn->window; /* never scaled in a SYN */
	c->cwnd = min_u64(10 * (uint64_t)c->mss, max_u64(2 * (uint64_t)c->mss, 14600));
}

/* ---- headers ---- */

static struct stream_request *claim(struct stream *s)
{
	return place_ring_claim(&s->path.requests);
}

static void put(struct stream *s, struct stream_request *r, const struct place_tuple *t,
	const uint8_t mac[6], const struct wire_tcp *tcp, uint32_t len)
{
	struct wire_flow flow = {.src = t->local, .dst = t->remote, .ttl = 64};

	memcpy(flow.dmac, mac, 6);
	memcpy(flow.smac, s->config.mac, 6);
	r->kind = REQUEST_SEND;
	r->len = len;
	r->headers_len = (uint16_t)wire_tcp_build(r->headers, sizeof(r->headers), &flow, tcp, len);
	place_ring_publish(&s->path.requests);
	s->count[STREAM_COUNT_SENT]++;
}

bool may_answer(struct stream *s)
{
	if (s->now - s->quiet_from >= 1000000) {
		s->quiet_from = s->now;
		s->answers = 0;
	}
	if (s->answers++ < CHALLENGES)
		return true;
	s->count[STREAM_COUNT_QUIET]++;
	return false;
}

bool send_rst(struct stream *s, const struct place_tuple *t, const uint8_t mac[6], uint32_t seq,
	uint32_t ack, uint8_t flags)
{
	struct stream_request *r = claim(s);

	if (r == NULL)
		return false;
	s->count[STREAM_COUNT_RST_SENT]++;
	put(s, r, t, mac,
		&(struct wire_tcp){.sport = t->local_port,
			.dport = t->remote_port,
			.seq = seq,
			.ack = ack,
			.flags = flags,
			.wscale = TCP_NO_WSCALE},
		0);
	return true;
}

/* The window's right edge never goes back; rounded up to what the scale can say. */
static uint64_t new_edge(struct stream *s, const struct conn *c)
{
	const uint64_t unit = 1ull << c->rcv_scale, allowance = s->config.allowance;
	const uint64_t free = allowance > c->held_bytes ? allowance - c->held_bytes : 0;
	uint64_t window = max_u64(c->rx_tail, c->rcv) + free - c->rcv;

	window = min_u64((window + unit - 1) / unit, 0xffff) * unit;
	return max_u64(c->edge, c->rcv + window);
}

static void header(const struct conn *c, struct wire_tcp *tcp, uint64_t seq)
{
	const unsigned scale = c->state <= SYN_RECEIVED ? 0 : c->rcv_scale;

	*tcp = (struct wire_tcp){.sport = c->tuple.local_port,
		.dport = c->tuple.remote_port,
		.seq = (uint32_t)seq,
		.ack = (uint32_t)c->rcv,
		.flags = TCP_ACK,
		.wscale = TCP_NO_WSCALE,
		.window = (uint16_t)min_u64((c->edge - min_u64(c->rcv, c->edge)) >> scale, 0xffff)};
}

static bool send_syn(struct stream *s, struct conn *c)
{
	struct stream_request *r = claim(s);
	struct wire_tcp tcp;

	if (r == NULL)
		return false;
	header(c, &tcp, c->una);
	tcp.flags = TCP_SYN | (c->state == SYN_RECEIVED ? TCP_ACK : 0);
	if (c->state == SYN_SENT) {
		tcp.ack = 0;
		tcp.window = (uint16_t)min_u64(s->config.allowance, 0xffff);
	}
	tcp.mss = (uint16_t)(s->config.mtu - (wire_ip_is4(&c->tuple.local) ? 40 : 60));
	/* An answer offers what the question did. */
	tcp.sack_ok = c->state == SYN_SENT || c->sack;
	if (c->state == SYN_SENT || c->rcv_scale > 0 || c->snd_scale > 0)
		tcp.wscale = s->config.wscale;
	put(s, r, &c->tuple, c->mac, &tcp, 0);
	c->nxt = c->una + 1;
	c->acks = 0;
	c->rtx_due = s->now + (c->rto << c->backoff);
	conn_due(s, c->rtx_due);
	return true;
}

/* The one that came last, then others (RFC 2018, 4). */
static void put_sack(const struct conn *c, struct wire_tcp *tcp)
{
	for (unsigned k = 0; k <= c->ahead.n && tcp->n_sack < TCP_MAX_SACK; k++) {
		struct range r = k == 0 ? c->newest : c->ahead.r[k - 1];

		if (k == 0) {
			for (unsigned i = 0; i < c->ahead.n; i++)
				if (c->ahead.r[i].from <= r.from && r.from < c->ahead.r[i].to)
					r = c->ahead.r[i];
			if (!ranges_hold(&c->ahead, r.from, r.to) || r.from == r.to)
				continue;
		} else if (tcp->n_sack > 0 && tcp->sack[0].from == (uint32_t)r.from) {
			continue;
		}
		tcp->sack[tcp->n_sack].from = (uint32_t)r.from;
		tcp->sack[tcp->n_sack++].to = (uint32_t)r.to;
	}
}

static bool send_ack(struct stream *s, struct conn *c, uint64_t seq)
{
	struct stream_request *r = claim(s);
	struct wire_tcp tcp;

	if (r == NULL)
		return false;
	header(c, &tcp, seq);
	if (c->sack)
		put_sack(c, &tcp);
	put(s, r, &c->tuple, c->mac, &tcp, 0);
	return true;
}

/* [from, to) of its sequence space; the FIN lies at tail. */
static bool send_range(struct stream *s, struct conn *c, uint64_t from, uint64_t to)
{
	struct stream_request *r = claim(s);
	const uint64_t data_end = min_u64(to, c->tail);
	struct wire_tcp tcp;

	if (r == NULL)
		return false;
	header(c, &tcp, from);
	if (to > c->tail)
		tcp.flags |= TCP_FIN;
	if (data_end == c->tail && data_end > from)
		tcp.flags |= TCP_PSH;
	r->flow = c->flow;
	r->position = from;
	put(s, r, &c->tuple, c->mac, &tcp, (uint32_t)(data_end - from));
	if (from < c->nxt) {
		s->count[STREAM_COUNT_RETRANSMITTED]++;
		c->rtt_end = 0; /* RFC 6298, 3: which one would be acknowledged? */
	} else if (c->rtt_end == 0) {
		c->rtt_end = to;
		c->rtt_at = s->now;
	}
	if (c->una == c->nxt)
		c->progress = s->now;
	c->nxt = max_u64(c->nxt, to);
	if (c->rtx_due == 0) {
		c->rtx_due = s->now + (c->rto << c->backoff);
		conn_due(s, c->rtx_due);
	}
	return true;
}

/* ---- window and losses ---- */

/* Bytes taken to be on their way (RFC 6675, SetPipe). */
static uint64_t pipe_of(const struct conn *c)
{
	const uint64_t at = max_u64(c->resend, c->una);
	uint64_t pipe = c->nxt - c->una - ranges_bytes(&c->sacked);
	struct range hole;

	for (uint64_t from = at;
		from < c->lost_to && ranges_hole(&c->sacked, from, c->lost_to, &hole);
		from = hole.to)
		pipe -= min_u64(pipe, hole.to - hole.from);
	return pipe;
}

/* What lies before this is lost: more than two segments behind it have come (RFC 6675, IsLost). */
static uint64_t lost_before(const struct conn *c)
{
	uint64_t above = 0;

	for (unsigned i = c->sacked.n; i > 0; i--) {
		above += c->sacked.r[i - 1].to - c->sacked.r[i - 1].from;
		if (above > 2 * (uint64_t)c->mss || c->sacked.n - i + 1 >= 3)
			return c->sacked.r[i - 1].from;
	}
	return c->una;
}

void conn_losses(struct stream *s, struct conn *c)
{
	uint64_t lost = c->sack ? lost_before(c) : c->una;

	if (!c->sack && c->dupacks >= 3)
		lost = min_u64(c->una + c->mss, c->nxt);
	if (lost <= c->una)
		return;
	if (!c->recovering) {
		c->ssthresh = max_u64(pipe_of(c) / 2, 2 * (uint64_t)c->mss);
		c->cwnd = c->ssthresh;
		c->recovering = true;
		c->timed_out = false;
		c->recover = c->nxt;
		c->resend = c->una;
		c->lost_to = c->una;
	}
	c->lost_to = max_u64(c->lost_to, lost);
	conn_work(s, c);
}

static void take_rtt(struct stream *s, struct conn *c, uint64_t rtt)
{
	const uint64_t off = rtt > c->srtt ? rtt - c->srtt : c->srtt - rtt;

	if (c->srtt == 0) {
		c->srtt = max_u64(rtt, 1);
		c->rttvar = rtt / 2;
	} else {
		c->rttvar += off / 4 - c->rttvar / 4;
		c->srtt = max_u64(c->srtt + rtt / 8 - c->srtt / 8, 1);
	}
	c->rto = min_u64(max_u64(c->srtt + 4 * c->rttvar, s->config.rto_min), s->config.rto_max);
}

void conn_acked(struct stream *s, struct conn *c, uint64_t ack)
{
	const uint64_t acked = ack - c->una;

	if (c->rtt_end != 0 && ack >= c->rtt_end) {
		take_rtt(s, c, s->now - c->rtt_at);
		c->rtt_end = 0;
	}
	c->una = ack;
	c->dupacks = 0;
	c->backoff = 0;
	c->progress = s->now;
	ranges_trim(&c->sacked, ack);
	c->rtx_due = c->una < c->nxt ? s->now + c->rto : 0;
	if (c->rtx_due != 0)
		conn_due(s, c->rtx_due);
	if (c->recovering && ack >= c->recover) {
		c->recovering = c->timed_out = false;
		c->lost_to = c->resend = ack;
	} else if (c->recovering && !c->sack && !c->timed_out) {
		/* A partial one: the next hole begins here (RFC 6582). */
		c->resend = ack;
		c->lost_to = min_u64(ack + c->mss, c->nxt);
	}
	if (!c->recovering || c->timed_out) {
		if (c->cwnd < c->ssthresh)
			c->cwnd += acked;
		else
			c->cwnd += max_u64(1, c->mss * min_u64(acked, c->cwnd) / c->cwnd);
		c->cwnd = min_u64(c->cwnd, 1ull << 30);
	}
	if (ack > c->tail)
		c->due = 0; /* no probe */
	conn_linger(s, c);
	if (c->flow != 0)
		place_retire(s->place, c->flow, PLACE_TX, min_u64(ack, c->tail));
	conn_work(s, c);
}

static bool resend_lost(struct stream *s, struct conn *c)
{
	struct range hole;

	c->resend = max_u64(c->resend, c->una);
	while (c->resend < c->lost_to && ranges_hole(&c->sacked, c->resend, c->lost_to, &hole)) {
		const uint64_t to = min_u64(hole.to, hole.from + c->mss);

		/* The first one goes whatever the window says. */
		if (pipe_of(c) + (to - hole.from) > max_u64(c->cwnd, c->mss) && hole.from != c->una)
			return true;
		if (!send_range(s, c, hole.from, to))
			return false;
		c->resend = to;
	}
	return true;
}

static bool send_new(struct stream *s, struct conn *c)
{
	const struct op *last = TAILQ_LAST(&c->tx, op_list);
	const bool fin = c->fin && (last == NULL || last->posted);
	const uint64_t stop = c->tail + fin;

	while (c->nxt < stop) {
		const uint64_t window = c->una + c->snd_wnd, want = min_u64(c->mss, stop - c->nxt);
		uint64_t len = want;

		if (pipe_of(c) + len > max_u64(c->cwnd, c->mss))
			return true;
		if (c->nxt + len > window)
			len = window > c->nxt ? window - c->nxt : 0;
		/* Not a little of much, unless nothing else is on its way (RFC 9293, 3.8.6.2.1). */
		if (len == 0 || (len < want && c->una < c->nxt && 2 * len < c->max_wnd))
			break;
		if (!send_range(s, c, c->nxt, c->nxt + len))
			return false;
	}
	if (c->nxt < stop && c->una == c->nxt && c->due == 0) {
		if (c->backoff == 0)
			c->progress = s->now;
		c->due = s->now + (c->rto << c->backoff);
		conn_due(s, c->due);
	}
	return true;
}

/* ---- a turn ---- */

static bool copy_held(struct stream *s, struct conn *c)
{
	struct held *h;

	TAILQ_FOREACH(h, &c->held, link)
	{
		struct stream_request *r;

		if (h->from >= c->rx_tail)
			break;
		if (h->copying)
			continue;
		r = claim(s);
		if (r == NULL)
			return false;
		*r = (struct stream_request){.kind = REQUEST_COPY,
			.flow = c->flow,
			.position = h->from,
			.len = (uint32_t)(min_u64(h->to, c->rx_tail) - h->from),
			.slot = (uint32_t)(h - s->held),
			.offset = h->offset};
		place_ring_publish(&s->path.requests);
		h->copying = true;
	}
	return true;
}

static bool flush_acks(struct stream *s, struct conn *c)
{
	const uint64_t edge = new_edge(s, c), was = c->edge - min_u64(c->edge, c->rcv);
	const uint64_t more = edge - c->edge;

	/* Worth telling: two segments, or half of it again, or it was closed (RFC 9293, 3.8.6.2.2).
	 */
	if (more > 0 && (more >= 2 * (uint64_t)c->mss || more >= was))
		c->acks += c->acks == 0;
	if (c->acks > 0)
		c->edge = edge;
	if (c->cursor_moved || c->acks > 0)
		place_cursor(s->place, c->flow, c->rcv, max_u64(c->edge, c->rcv));
	c->cursor_moved = false;
	/* Without SACK the peer counts. */
	if (c->sack || c->ahead.n == 0)
		c->acks = c->acks > 0;
	while (c->acks > 0) {
		if (!send_ack(s, c, c->nxt))
			return false;
		c->acks--;
	}
	return true;
}

bool conn_flush(struct stream *s, struct conn *c)
{
	if (c->state == SYN_SENT || c->state == SYN_RECEIVED) {
		/* cursor and edge are set when it opens */
		return c->rtx_due != 0 && c->acks == 0 ? true : send_syn(s, c);
	}
	if (c->state == TIME_WAIT) {
		if (c->acks > 0 && !send_ack(s, c, c->nxt))
			return false;
		c->acks = 0;
		return true;
	}
	conn_post(s, c);
	if (!copy_held(s, c) || !flush_acks(s, c))
		return false;
	conn_complete(s, c);
	if (c->probe) {
		if (!send_ack(s, c, c->una - 1))
			return false;
		c->probe = false;
		s->count[STREAM_COUNT_PROBES]++;
	}
	return resend_lost(s, c) && send_new(s, c);
}

/* ---- timers ---- */

static void timeout(struct stream *s, struct conn *c)
{
	const uint64_t flight = c->nxt - c->una;

	s->count[STREAM_COUNT_TIMEOUTS]++;
	if (c->state <= SYN_RECEIVED) {
		c->rtx_due = 0;
	} else {
		/* A peer that has given up what it said it had (RFC 2018, 8). */
		if (c->sacked.n > 0 && c->sacked.r[0].from <= c->una)
			c->sacked.n = 0;
		if (!c->timed_out)
			c->ssthresh = max_u64(flight / 2, 2 * (uint64_t)c->mss);
		c->cwnd = c->mss;
		c->recovering = c->timed_out = true;
		c->recover = c->lost_to = c->nxt;
		c->resend = c->una;
		c->dupacks = 0;
		c->rtt_end = 0;
		c->rtx_due = 0;
	}
	if (c->rto << c->backoff < s->config.rto_max)
		c->backoff++;
	conn_work(s, c);
}

void conn_timers(struct stream *s, struct conn *c)
{
	if (c->state != TIME_WAIT && (c->rtx_due != 0 || c->due != 0) &&
		s->now - c->progress >= s->config.give_up) {
		conn_end(s, c, -ETIMEDOUT, false);
		return;
	}
	if (c->rtx_due != 0 && s->now >= c->rtx_due)
		timeout(s, c);
	if (c->retry)
		conn_work(s, c);
	if (c->due != 0 && s->now >= c->due) {
		c->due = 0;
		if (c->state == TIME_WAIT) {
			conn_forget(s, c);
			return;
		}
		if (c->una > c->tail) { /* nothing is left to be sent: conn_linger */
			conn_end(s, c, -ETIMEDOUT, false);
			return;
		}
		c->probe = true;
		if (c->rto << c->backoff < s->config.rto_max)
			c->backoff++;
		conn_work(s, c);
	}
	if (c->rtx_due != 0)
		conn_due(s, c->rtx_due);
	if (c->due != 0)
		conn_due(s, c->due);
}
