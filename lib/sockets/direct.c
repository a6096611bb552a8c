/* SPDX-License-Identifier: BSD-3-Clause */
/* A call that waits for bytes has a buffer, and it is there as long as the call waits: it is posted
 * in front of the ring, so that the data path places what comes where the program wants it. Whoever
 * ends the wait takes back what is not full. Both under the lock, between two turns: no packet is
 * under way (stream_recall). */
#include <string.h>

#include "lib/sockets/sockets.h"

/* All that is posted is not any more, and what that says is known. false: there is no connection,
 * or it has ended and that is still to be told. */
static bool take_back(struct sock *s, struct stream_recalled *r)
{
	if (!s->has_conn || stream_recall(s->stack->stream, s->conn, r) < 0)
		return false;
	s->rx_posted = s->rx_done = r->from;
	if (r->from > s->rx_have)
		s->rx_have = r->from;
	return true;
}

/* What has come behind holes, from the ring to a buffer for the stream from `at` on, or back. */
static void bring(struct sock *s, const struct stream_recalled *r, uint8_t *buf, bool to_ring)
{
	uint64_t at = r->from > s->direct_at ? r->from : s->direct_at;
	const uint64_t end = s->direct_at + s->direct_len;

	while (at < r->to && at < end) {
		uint8_t *ring = s->rx + at % SOCKETS_BUFFER, *own = buf + (at - s->direct_at);
		uint64_t part = SOCKETS_BUFFER - at % SOCKETS_BUFFER;

		if (part > r->to - at)
			part = r->to - at;
		if (part > end - at)
			part = end - at;
		memcpy(to_ring ? ring : own, to_ring ? own : ring, part);
		at += part;
	}
}

bool sock_direct_begin(struct sock *s, void *buf, size_t len)
{
	struct stream_recalled r;

	if (len < SOCKETS_DIRECT || s->direct != NULL || s->state != SOCK_OPEN || s->eof ||
		s->read_shut || s->rx_have != s->rx_read || !take_back(s, &r))
		return false;
	if (s->rx_have == s->rx_read) {
		s->direct_at = r.from;
		s->direct_len = len < SOCKETS_DIRECT_MAX ? len : SOCKETS_DIRECT_MAX;
		bring(s, &r, buf, false);
		if (stream_recv(s->stack->stream, s->conn, buf, s->direct_len,
			    sock_receive_cookie(r.from, s->direct_len)) == 0) {
			s->direct = buf;
			s->direct_by = pthread_self();
			s->rx_posted += s->direct_len;
		}
	}
	sock_post_receives(s);
	return s->direct != NULL;
}

size_t sock_direct_end(struct sock *s, bool read)
{
	struct stream_recalled r;
	uint64_t n = 0;

	/* A connection that has ended is not written for any more, but how much has come may still
	 * be told: it may be all of the buffer, whose positions in the ring are its own. */
	if (!take_back(s, &r))
		r = (struct stream_recalled){s->rx_have, s->direct_at + s->direct_len};
	if (!read)
		r.from = s->direct_at;
	bring(s, &r, s->direct, true);
	if (read) {
		n = s->rx_have - s->direct_at;
		if (n > s->direct_len)
			n = s->direct_len;
		s->bulk = n >= SOCKETS_BULK;
	}
	s->direct = NULL;
	s->rx_read += n;
	s->stack->direct += n;
	if (s->has_conn)
		sock_post_receives(s);
	s->drained = s->rx_read == s->rx_have;
	sock_touch(s);
	return n;
}
