/* SPDX-License-Identifier: BSD-3-Clause */
/* What a connection sends: headers, segments as the windows allow them, acknowledgements. */
#include <string.h>

#include "lib/stream/conn.h"

/* ---- variables ---- */

uint32_t conn_isn(struct stream *s)
{
	return s->config.random(s->config.random_arg);
}

void conn_start(struct stream *s, struct conn *c, uint32_t iss, uint32_t peer_seq)
{
	const unsigned ip = wire_ip_is4(&c->tuple.local) ? 20 : 40;

	c->una = c->nxt = (1ull << 32) + iss;
	c->tail = c->una + 1;
	c->mss = s->config.mtu - ip - TCP_HDR_LEN;
	c->rcv = c->edge = c->rx_tail = (1ull << 32) + peer_seq + 1;
	c->rto = max_u64(s->config.rto_min, min_u64(1000000000, s->config.rto_max));
	c->progress = s->now;
	rack_init(&c->rec.rack);
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
	cc_init(&c->cc, &s->config, c->mss);
	c->cc.seed = (uint32_t)c->una;
}

/* ---- headers ---- */

static struct stream_request *claim(struct stream *s)
{
	return ring_claim(&s->path.requests);
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
	ring_publish(&s->path.requests);
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

/* What a SYN of ours offers, and how large a segment may be. */
static void offer(const struct stream *s, const struct place_tuple *t, struct wire_tcp *tcp,
	bool sack, bool scale)
{
	tcp->mss = (uint16_t)(s->config.mtu - (wire_ip_is4(&t->local) ? 40 : 60));
	tcp->sack_ok = sack;
	if (scale)
		tcp->wscale = s->config.wscale;
}

bool send_cookie(struct stream *s, const struct place_tuple *t, const uint8_t mac[6], uint32_t isn,
	const struct wire_tcp *syn)
{
	/* Half of the ring is for those who are connected: a turn reads its notes first, and as
	 * many SYNs as have room would never leave any. */
	struct stream_request *r =
		ring_count(&s->path.requests) < s->config.ring / 2 ? claim(s) : NULL;
	struct wire_tcp tcp = {.sport = t->local_port,
		.dport = t->remote_port,
		.seq = isn,
		.ack = syn->seq + 1,
		.flags = TCP_SYN | TCP_ACK,
		.wscale = TCP_NO_WSCALE,
		.window = (uint16_t)min_u64(s->config.allowance, 0xffff)};

	if (r == NULL)
		return false;
	offer(s, t, &tcp, syn->sack_ok, syn->wscale != TCP_NO_WSCALE);
	put(s, r, t, mac, &tcp, 0);
	return true;
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
	/* An answer offers what the question did. */
	offer(s, &c->tuple, &tcp, c->state == SYN_SENT || c->sack,
		c->state == SYN_SENT || c->rcv_scale > 0 || c->snd_scale > 0);
	put(s, r, &c->tuple, c->mac, &tcp, 0);
	c->nxt = c->una + 1;
	c->acks = 0;
	c->syn_at = s->now;
	c->rtx_due = s->now + (c->rto << c->backoff);
	conn_due(s, c, c->rtx_due);
	return true;
}

static void put_block(const struct conn *c, struct wire_tcp *tcp, struct range r)
{
	/* A FIN is said to be here as a byte is: it may be what probes for a lost tail. */
	if (c->fin_at != 0 && r.to == c->fin_at && r.from > c->rcv)
		r.to++;
	tcp->sack[tcp->n_sack].from = (uint32_t)r.from;
	tcp->sack[tcp->n_sack++].to = (uint32_t)r.to;
}

/* What came twice (RFC 2883), the one that came last, then others (RFC 2018, 4). */
static void put_sack(const struct conn *c, struct wire_tcp *tcp)
{
	const unsigned first = c->n_twice > 0;

	if (first)
		put_block(c, tcp, c->twice[0]);
	if (c->fin_at > c->rcv && (c->ahead.n == 0 || c->ahead.r[c->ahead.n - 1].to < c->fin_at))
		put_block(c, tcp, (struct range){c->fin_at, c->fin_at});
	for (unsigned k = 0; k <= c->ahead.n && tcp->n_sack < TCP_MAX_SACK; k++) {
		struct range r = k == 0 ? c->newest : c->ahead.r[k - 1];

		if (k == 0) {
			for (unsigned i = 0; i < c->ahead.n; i++)
				if (c->ahead.r[i].from <= r.from && r.from < c->ahead.r[i].to)
					r = c->ahead.r[i];
			if (!ranges_hold(&c->ahead, r.from, r.to) || r.from == r.to)
				continue;
		} else if (tcp->n_sack > first && tcp->sack[first].from == (uint32_t)r.from) {
			continue;
		}
		put_block(c, tcp, r);
	}
}

static bool send_ack(struct stream *s, struct conn *c, uint64_t seq)
{
	struct stream_request *r = claim(s);
	struct wire_tcp tcp;

	if (r == NULL)
		return false;
	header(c, &tcp, seq);
	if (c->sack) {
		put_sack(c, &tcp);
		if (c->n_twice > 0)
			memmove(c->twice, c->twice + 1, --c->n_twice * sizeof(c->twice[0]));
	}
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
	if (c->una == c->nxt)
		c->progress = s->now;
	c->nxt = max_u64(c->nxt, to);
	if (c->rtx_due == 0) {
		c->rtx_due = s->now + (c->rto << c->backoff);
		conn_due(s, c, c->rtx_due);
	}
	return true;
}

/* ---- what the windows allow ---- */

/* Whether the pace lets a segment go; if not, the connection is looked at when it does. */
static bool may_go(struct stream *s, struct conn *c)
{
	if (c->cc.pace == 0 || s->now >= c->pace_at)
		return true;
	conn_pace(s, c);
	return false;
}

/* A turn that was late may make up for a quantum. */
static void went(struct stream *s, struct conn *c, uint64_t len)
{
	uint64_t late;

	if (c->cc.pace == 0)
		return;
	late = c->cc.quantum * 1000000000 / c->cc.pace;
	if (c->pace_at + late < s->now)
		c->pace_at = s->now - late;
	c->pace_at += len * 1000000000 / c->cc.pace;
}

static bool send_again(struct stream *s, struct conn *c, struct seg *seg)
{
	if (!send_range(s, c, seg->from, seg->to))
		return false;
	s->count[STREAM_COUNT_RETRANSMITTED]++;
	undo_sent(&c->rec.undo, seg->from, seg->to);
	prr_sent(&c->rec.prr, seg->to - seg->from);
	segs_again(&c->log, seg, s->now);
	rate_sent(&c->rate, seg, false, s->now);
	went(s, c, seg->to - seg->from);
	c->rec.force = false;
	return true;
}

static bool send_next(struct stream *s, struct conn *c, uint64_t len)
{
	const uint64_t from = c->nxt;
	struct seg *seg;

	if (!send_range(s, c, from, from + len))
		return false;
	prr_sent(&c->rec.prr, len);
	seg = segs_add(&c->log, &s->segs, from, from + len, s->now);
	rate_sent(&c->rate, seg, c->log.n == 1, s->now);
	went(s, c, len);
	return true;
}

static uint64_t window_of(const struct conn *c)
{
	return max_u64(c->cc.cwnd, c->mss);
}

static bool send_lost(struct stream *s, struct conn *c)
{
	struct seg *seg;

	/* F-RTO: new segments go first, and tell what became of the old ones. */
	if (c->rec.undo.frto == FRTO_SECOND)
		return true;
	while ((seg = TAILQ_FIRST(&c->log.lost)) != NULL) {
		if (!c->rec.force && conn_pipe(c) + (seg->to - seg->from) > window_of(c))
			return true;
		if (!c->rec.force && !may_go(s, c))
			return true;
		if (!send_again(s, c, seg))
			return false;
	}
	return true;
}

/* An entry of the log for what is to be sent; else later, by an acknowledgement or the clock. */
static bool may_log(struct stream *s, struct conn *c)
{
	if (segs_may_add(&c->log, &s->segs))
		return true;
	s->count[STREAM_COUNT_NO_SEGMENT]++;
	if (c->log.n == 0) {
		c->retry = true;
		conn_due(s, c, s->now + RETRY);
	}
	return false;
}

/* Up to which position there is something to be sent. */
static uint64_t end_of_stream(const struct conn *c)
{
	const struct op *last = TAILQ_LAST(&c->tx, op_list);

	return c->tail + (c->fin && (last == NULL || last->posted));
}

/* RFC 8985, 7.3: a new segment, or the last one again. */
static bool send_tail_probe(struct stream *s, struct conn *c)
{
	const uint64_t window = c->una + c->snd_wnd, stop = end_of_stream(c);
	const uint64_t len = c->nxt < stop ? min_u64(c->mss, stop - c->nxt) : 0;
	struct seg *last = TAILQ_LAST(&c->log.order, seg_list);
	const bool fresh = len > 0 && c->nxt + len <= window && segs_may_add(&c->log, &s->segs);

	if (!c->rec.probe)
		return true;
	if (last != NULL) {
		if (!(fresh ? send_next(s, c, len) : send_again(s, c, last)))
			return false;
		c->rec.tlp = (struct tlp){.end = c->nxt, .retransmitted = !fresh};
		c->rtx_due = s->now + (c->rto << c->backoff);
		conn_due(s, c, c->rtx_due);
		s->count[STREAM_COUNT_TAIL_PROBES]++;
	}
	c->rec.probe = false;
	return true;
}

static bool send_new(struct stream *s, struct conn *c)
{
	const uint64_t stop = end_of_stream(c);
	const uint64_t was = c->nxt;

	while (c->nxt < stop) {
		const uint64_t window = c->una + c->snd_wnd, want = min_u64(c->mss, stop - c->nxt);
		uint64_t len = want;

		if (conn_pipe(c) + len > window_of(c))
			break;
		if (c->nxt + len > window)
			len = window > c->nxt ? window - c->nxt : 0;
		/* Not a little of much, unless nothing else is on its way (RFC 9293, 3.8.6.2.1). */
		if (len == 0 || (len < want && c->una < c->nxt && 2 * len < c->max_wnd))
			break;
		if (!may_log(s, c) || !may_go(s, c))
			break;
		if (!send_next(s, c, len))
			return false;
	}
	if (c->nxt > was)
		conn_arm_probe(s, c);
	/* Nothing but the program holds it back. */
	if (c->nxt >= stop && TAILQ_EMPTY(&c->log.lost) && conn_pipe(c) < window_of(c))
		rate_limited(&c->rate, conn_pipe(c));
	if (c->nxt < stop && c->una == c->nxt && c->due == 0 && !c->paced) {
		if (c->backoff == 0)
			c->progress = s->now;
		c->due = s->now + (c->rto << c->backoff);
		conn_due(s, c, c->due);
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
		ring_publish(&s->path.requests);
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
		c->acks = max_u64(c->acks > 0, c->n_twice);
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
	if (!send_tail_probe(s, c) || !send_lost(s, c) || !send_new(s, c))
		return false;
	/* RFC 5682, 3.1, step 2: nothing new can be sent, so the old ones are. What the pace holds
	 * back can, in a moment. */
	if (c->rec.undo.frto == FRTO_SECOND && c->nxt == c->rec.point && !c->paced) {
		c->rec.undo.frto = FRTO_OFF;
		return send_lost(s, c);
	}
	return true;
}
