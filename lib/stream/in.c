/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment's header arrives (RFC 9293, 3.10.7; RFC 5961 for what may be forged). Its payload is in
 * the program's memory already, or in a slot, or nowhere: here it is decided whether it counts. */
#include <errno.h>
#include <string.h>

#include "lib/stream/conn.h"
#include "lib/stream/cookie.h"

/* ---- payload ---- */

/* false: it is not counted as here. What is in order needs no interval, so it always is. */
static bool remember(struct stream *s, struct conn *c, uint64_t from, uint64_t to)
{
	if (from <= c->rcv) {
		c->rcv = max_u64(c->rcv, to);
		if (c->ahead.n > 0 && c->ahead.r[0].from <= c->rcv)
			c->rcv = max_u64(c->rcv, c->ahead.r[0].to);
		ranges_trim(&c->ahead, c->rcv);
		c->cursor_moved = true;
		return true;
	}
	if (!ranges_add(&c->ahead, from, to)) {
		s->count[STREAM_COUNT_FORGOTTEN]++;
		return false;
	}
	c->newest = (struct range){from, to};
	return true;
}

/* One connection never has more than half of the slots that the others have left. */
static bool may_hold(const struct stream *s, const struct conn *c)
{
	const uint32_t others = s->n_held - c->n_held;

	return c->n_held < MAX_HELD && c->n_held < (s->config.bounce_slots - others + 1) / 2;
}

/* Sorted by position, and no byte is in two slots: each is copied to its place once, so that what
 * is before the first slot stays as it is. false: nothing of it is kept. */
static bool hold(struct stream *s, struct conn *c, const struct stream_note *note, uint64_t at)
{
	struct held *h = &s->held[note->slot], *k;
	const uint64_t end = at + note->len;
	struct range new;

	/* What has come before stays; what is behind that comes again. */
	if (end > c->edge || !may_hold(s, c) ||
		!ranges_hole(&c->ahead, max_u64(at, c->rcv), end, &new) ||
		!remember(s, c, new.from, new.to))
		return false;
	*h = (struct held){
		.conn = c, .from = new.from, .to = new.to, .offset = (uint32_t)(new.from - at)};
	TAILQ_FOREACH(k, &c->held, link)
	if (k->from > new.from)
		break;
	if (k != NULL)
		TAILQ_INSERT_BEFORE(k, h, link);
	else
		TAILQ_INSERT_TAIL(&c->held, h, link);
	c->n_held++;
	s->n_held++;
	c->held_bytes += new.to - new.from;
	return true;
}

/* It is here already: the sender is to hear of it (RFC 2883). */
static void note_twice(struct conn *c, uint64_t from, uint64_t to)
{
	if (!c->sack || from >= to || (to > c->rcv && !ranges_hold(&c->ahead, from, to)))
		return;
	if (c->n_twice > 0 && c->twice[c->n_twice - 1].to == from)
		c->twice[c->n_twice - 1].to = to;
	else if (c->n_twice < MAX_TWICE)
		c->twice[c->n_twice++] = (struct range){from, to};
}

static void take_payload(
	struct stream *s, struct conn *c, const struct stream_note *note, uint64_t at)
{
	const uint64_t to = at + note->len;

	c->acks++;
	if (note->flow != c->flow)
		return; /* of another connection of these ends, which a cookie has made anew */
	if (c->fin_at != 0 && to > c->fin_at)
		return; /* behind its end: a lie */
	note_twice(c, at, to);
	if (note->verdict == PLACE_ACCEPT && note->position + note->len > c->rcv)
		remember(s, c, max_u64(note->position + note->skip, c->rcv), to);
	else if (note->verdict == PLACE_DEFER)
		hold(s, c, note, at);
}

/* Nothing that is here may lie behind it, nor it behind the window: there could be other bytes. */
static void take_fin(struct conn *c, uint64_t at)
{
	c->acks += c->acks == 0;
	if (c->fin_at == 0 && at <= max_u64(c->edge, c->rcv) &&
		(c->ahead.n == 0 || c->ahead.r[c->ahead.n - 1].to <= at))
		c->fin_at = at;
}

/* All that the peer had to send is here. */
static void end_of_peer(struct conn *c)
{
	if (c->fin_at == 0 || c->rcv != c->fin_at)
		return;
	c->rcv++;
	c->cursor_moved = true;
	if (c->state == ESTABLISHED)
		c->state = CLOSE_WAIT;
	if (c->state == FIN_WAIT) {
		c->state = LAST_ACK;
		c->first = true;
	}
}

/* ---- acknowledgements ---- */

/* false: the segment goes no further. */
static bool take_ack(struct stream *s, struct conn *c, const struct stream_note *note, uint64_t at)
{
	const struct wire_tcp *tcp = &note->tcp;
	const uint64_t ack = position_of(c->una, tcp->ack);
	const uint64_t window = (uint64_t)tcp->window << c->snd_scale;

	if (ack > c->nxt || ack + c->max_wnd < c->una) {
		s->count[STREAM_COUNT_BAD_ACK]++;
		if (may_answer(s))
			c->acks += c->acks == 0;
		return false;
	}
	conn_acked(s, c, tcp, ack,
		ack == c->una && note->len == 0 && window == c->snd_wnd && c->una < c->nxt &&
			(tcp->flags & (TCP_SYN | TCP_FIN)) == 0);
	if (ack >= c->una && (c->wl1 < at || (c->wl1 == at && c->wl2 <= ack))) {
		if (window > c->snd_wnd)
			c->due = c->backoff = 0; /* no probe */
		c->snd_wnd = window;
		c->max_wnd = max_u64(c->max_wnd, window);
		c->wl1 = at;
		c->wl2 = ack;
	}
	if (c->una == c->nxt)
		c->progress = s->now; /* answers a probe */
	return true;
}

/* ---- handshakes ---- */

static int open_flow(struct stream *s, struct conn *c)
{
	struct place_flow_init init = {
		.tuple = c->tuple, .rx = c->rcv, .tx = c->tail, .limit = c->edge};

	return place_flow_add(s->place, &init, &c->flow);
}

static void answer_nobody(
	struct stream *s, const struct stream_note *note, const struct place_tuple *t)
{
	const struct wire_tcp *tcp = &note->tcp;
	const uint32_t len =
		note->len + ((tcp->flags & TCP_SYN) != 0) + ((tcp->flags & TCP_FIN) != 0);

	s->count[STREAM_COUNT_NO_CONN]++;
	if ((tcp->flags & TCP_RST) || !may_answer(s))
		return;
	if (tcp->flags & TCP_ACK)
		send_rst(s, t, note->mac, tcp->ack, 0, TCP_RST);
	else
		send_rst(s, t, note->mac, 0, tcp->seq + len, TCP_RST | TCP_ACK);
}

static const struct listener *listener_of(const struct stream *s, uint16_t port)
{
	for (unsigned i = 0; i < MAX_LISTENERS; i++)
		if (port != 0 && s->listener[i].port == port)
			return &s->listener[i];
	return NULL;
}

/* NULL: there is no room. */
static struct conn *half_open(struct stream *s, const struct stream_note *note,
	const struct place_tuple *t, uint64_t cookie, const struct wire_tcp *syn, uint32_t iss)
{
	struct conn *c = conn_new(s, t, note->mac);

	if (c == NULL) {
		s->count[STREAM_COUNT_NO_ROOM]++;
		return NULL;
	}
	c->cookie = cookie;
	c->passive = true;
	c->state = SYN_RECEIVED;
	conn_start(s, c, iss, syn->seq);
	conn_options(s, c, syn);
	c->wl1 = c->rcv - 1;
	c->edge = c->rcv + min_u64(s->config.allowance, 0xffff);
	TAILQ_INSERT_TAIL(&s->half, c, age);
	s->n_half++;
	if (open_flow(s, c) < 0) {
		s->count[STREAM_COUNT_NO_ROOM]++;
		conn_end(s, c, -ENOBUFS, false);
		return NULL;
	}
	return c;
}

/* Nothing is kept: what there is to know goes with the answer, and comes back. */
static void answer_with_cookie(
	struct stream *s, const struct stream_note *note, const struct place_tuple *t)
{
	for (unsigned i = 0; s->cookies_until == 0 && i < 4; i++)
		s->cookie_key[i / 2] = s->cookie_key[i / 2] << 32 | conn_isn(s);
	s->cookies_until = s->now + 2 * COOKIE_STEP;
	if (send_cookie(
		    s, t, note->mac, cookie_make(s->cookie_key, t, s->now, &note->tcp), &note->tcp))
		s->count[STREAM_COUNT_COOKIES]++;
	else
		s->count[STREAM_COUNT_NO_ROOM]++;
}

static void passive_open(struct stream *s, const struct stream_note *note,
	const struct place_tuple *t, const struct listener *l)
{
	struct conn *c;

	if (s->n_half >= s->config.max_half_open) {
		answer_with_cookie(s, note, t);
		return;
	}
	c = half_open(s, note, t, l->cookie, &note->tcp, conn_isn(s));
	if (c != NULL)
		conn_work(s, c);
}

static bool has_cookie(const struct stream *s, const struct stream_note *note,
	const struct place_tuple *t, struct wire_tcp *syn)
{
	return s->now < s->cookies_until &&
	       (note->tcp.flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_ACK &&
	       cookie_read(s->cookie_key, t, s->now, note->tcp.ack - 1, note->tcp.seq - 1, syn);
}

/* Who brings a cookie hears us, which nobody half-open has shown: there is room for him. */
static void make_room(struct stream *s)
{
	if (TAILQ_EMPTY(&s->unused) && TAILQ_EMPTY(&s->waiting) && !TAILQ_EMPTY(&s->half))
		conn_end(s, TAILQ_FIRST(&s->half), -ECONNRESET, false);
}

/* An acknowledgement of no connection while cookies are out: its sender may be somebody of whom
 * nothing was kept. What cannot be told apart is left alone, not reset: of two segments the second
 * may have come first. NULL: it goes no further. */
static struct conn *open_by_cookie(struct stream *s, const struct stream_note *note,
	const struct place_tuple *t, const struct listener *l)
{
	struct wire_tcp syn;
	struct conn *c;

	if (!has_cookie(s, note, t, &syn)) {
		s->count[STREAM_COUNT_COOKIES_REFUSED]++;
		return NULL;
	}
	syn.window = note->tcp.window;
	make_room(s);
	c = half_open(s, note, t, l->cookie, &syn, note->tcp.ack - 1);
	if (c == NULL)
		return NULL; /* it sends again */
	s->count[STREAM_COUNT_COOKIES_TAKEN]++;
	c->una = c->nxt = c->tail;
	c->progress = s->now;
	conn_open(s, c);
	return c;
}

static void in_syn_sent(struct stream *s, struct conn *c, const struct stream_note *note)
{
	const struct wire_tcp *tcp = &note->tcp;
	const bool acks_us = (tcp->flags & TCP_ACK) && tcp->ack == (uint32_t)c->nxt;

	if ((tcp->flags & TCP_ACK) && (!acks_us || c->nxt == c->una)) {
		answer_nobody(s, note, &c->tuple);
		return;
	}
	if (tcp->flags & TCP_RST) {
		if (acks_us) {
			s->count[STREAM_COUNT_RST_TAKEN]++;
			conn_end(s, c, -ECONNREFUSED, false);
		}
		return;
	}
	/* Both ends asking at once (RFC 9293, 3.5) is not built: such a SYN is left alone. */
	if (!(tcp->flags & TCP_SYN) || !acks_us)
		return;
	c->rcv = c->rx_tail = (1ull << 32) + tcp->seq + 1;
	c->edge = c->rcv + min_u64(s->config.allowance, 0xffff);
	memcpy(c->mac, note->mac, 6);
	conn_options(s, c, tcp);
	c->wl1 = c->rcv - 1;
	c->una = c->nxt;
	if (c->backoff == 0)
		conn_rtt(s, c, s->now - c->syn_at);
	if (open_flow(s, c) < 0) {
		send_rst(s, &c->tuple, c->mac, (uint32_t)c->nxt, 0, TCP_RST);
		conn_end(s, c, -ENOBUFS, false);
		return;
	}
	c->acks = 1;
	c->progress = s->now;
	conn_open(s, c);
}

/* ---- a segment ---- */

static bool in_window(const struct conn *c, uint64_t at, uint64_t end)
{
	if (at == end)
		return at == c->rcv || (at >= c->rcv && at < c->edge);
	return end > c->rcv && at < max_u64(c->edge, c->rcv + 1);
}

/* Both ends are through; at most the program has not fetched all of it yet. Whatever comes now is
 * old, and a reset must not take away what is here (RFC 1337). */
static bool is_through(const struct conn *c)
{
	return c->state == TIME_WAIT || (c->state == LAST_ACK && c->fin && c->una > c->tail);
}

/* false: the segment goes no further. */
static bool check_flags(
	struct stream *s, struct conn *c, const struct wire_tcp *tcp, uint64_t at, bool acceptable)
{
	if (tcp->flags & TCP_RST) {
		if (is_through(c))
			return false;
		if (at == c->rcv) {
			s->count[STREAM_COUNT_RST_TAKEN]++;
			conn_end(s, c, -ECONNRESET, false);
		} else if (acceptable) {
			s->count[STREAM_COUNT_RST_DOUBTED]++;
			if (may_answer(s))
				c->acks += c->acks == 0;
		}
		return false;
	}
	if (tcp->flags & TCP_SYN) {
		s->count[STREAM_COUNT_RST_DOUBTED] += c->state != SYN_RECEIVED;
		if (may_answer(s))
			c->acks += c->acks == 0;
		return false;
	}
	return (tcp->flags & TCP_ACK) != 0;
}

static bool finish_handshake(struct stream *s, struct conn *c, const struct stream_note *note)
{
	if (note->tcp.ack != (uint32_t)c->nxt || c->nxt == c->una) {
		answer_nobody(s, note, &c->tuple);
		return false;
	}
	c->una = c->nxt;
	if (c->backoff == 0)
		conn_rtt(s, c, s->now - c->syn_at);
	conn_open(s, c);
	c->wl1 = c->rcv - 1;
	c->progress = s->now;
	return true;
}

static void in_open(struct stream *s, struct conn *c, const struct stream_note *note)
{
	const struct wire_tcp *tcp = &note->tcp;
	const uint64_t at = position_of(c->rcv, tcp->seq);
	const uint64_t end = at + note->len + ((tcp->flags & TCP_FIN) != 0);
	const bool acceptable = in_window(c, at, end);

	conn_work(s, c);
	if (!acceptable) {
		s->count[STREAM_COUNT_OUTSIDE]++;
		if (note->len > 0 && at + note->len <= c->rcv && at + ACK_LAG >= c->rcv)
			note_twice(c, at, at + note->len);
		if (!(tcp->flags & TCP_RST) && (note->len > 0 || may_answer(s)))
			c->acks += c->acks == 0;
	}
	if (!check_flags(s, c, tcp, at, acceptable))
		return;
	if (c->state == SYN_RECEIVED && (!acceptable || !finish_handshake(s, c, note)))
		return;
	if (c->state == TIME_WAIT || at > c->edge || end + 1 < c->rcv)
		return;
	if (!take_ack(s, c, note, at))
		return;
	if (acceptable && note->len > 0) {
		if (c->app_closed) {
			send_rst(s, &c->tuple, c->mac, tcp->ack, 0, TCP_RST);
			conn_end(s, c, -ECONNRESET, false);
			return;
		}
		take_payload(s, c, note, at);
	}
	if (acceptable && (tcp->flags & TCP_FIN))
		take_fin(c, at + note->len);
	end_of_peer(c);
}

/* A SYN that came twice may have been answered with a cookie the first time, and found a place the
 * second: its sender holds to the answer that came first, and the place goes. */
static bool holds_to_cookie(const struct stream *s, const struct conn *c,
	const struct stream_note *note, const struct listener *l)
{
	struct wire_tcp syn;

	return c != NULL && c->state == SYN_RECEIVED && l != NULL &&
	       note->tcp.ack != (uint32_t)c->nxt && has_cookie(s, note, &c->tuple, &syn);
}

void segment_in(struct stream *s, const struct stream_note *note)
{
	const struct place_tuple t = {.local = note->dst,
		.remote = note->src,
		.local_port = note->tcp.dport,
		.remote_port = note->tcp.sport,
		.proto = IP_PROTO_TCP};
	struct held *h =
		note->verdict == PLACE_DEFER && note->len > 0 ? &s->held[note->slot] : NULL;
	struct conn *c = conn_find(s, &t);
	const struct listener *l = listener_of(s, t.local_port);

	s->count[STREAM_COUNT_SEGMENTS]++;
	if (h != NULL)
		h->conn = NULL;
	if (holds_to_cookie(s, c, note, l)) {
		conn_end(s, c, -ECONNRESET, false);
		c = NULL;
	}
	if (c == NULL) {
		const unsigned flags = note->tcp.flags & (TCP_SYN | TCP_ACK | TCP_RST);

		if (l != NULL && flags == TCP_SYN)
			passive_open(s, note, &t, l);
		else if (l != NULL && flags == TCP_ACK && s->now < s->cookies_until)
			c = open_by_cookie(s, note, &t, l);
		else
			answer_nobody(s, note, &t);
		if (c != NULL)
			in_open(s, c, note);
	} else if (c->state == SYN_SENT) {
		in_syn_sent(s, c, note);
	} else {
		in_open(s, c, note);
	}
	/* A slot that no connection has taken. */
	if (h != NULL && h->conn == NULL)
		held_free(s, h);
}
