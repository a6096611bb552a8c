/* SPDX-License-Identifier: BSD-3-Clause */
/* The mirror: the other end of a program's descriptor says, to whoever polls it, whether the stream
 * can be read and written. */
#include "lib/sockets/sockets.h"

static struct sock_list dirty = TAILQ_HEAD_INITIALIZER(dirty);

bool sock_readable(const struct sock *s)
{
	if (s->state == SOCK_LISTENING)
		return s->n_waiting > 0;
	return s->state == SOCK_DEAD || s->error != 0 || s->eof || s->read_shut ||
	       s->rx_have > s->rx_read;
}

bool sock_writable(const struct sock *s)
{
	if (s->state == SOCK_DEAD || s->error != 0)
		return true;
	/* As the kernel: not for a few bytes. */
	return s->state == SOCK_OPEN && s->tx_put - s->tx_acked <= SOCKETS_BUFFER / 3 * 2;
}

void sock_touch(struct sock *s)
{
	if (s->on_dirty)
		return;
	s->on_dirty = true;
	TAILQ_INSERT_TAIL(&dirty, s, dirty);
}

void sock_untouch(struct sock *s)
{
	if (s->on_dirty)
		TAILQ_REMOVE(&dirty, s, dirty);
	s->on_dirty = false;
}

static void say_full(struct sock *s, bool full)
{
	static const char much[4000];
	char sink[8192];

	if (full)
		while (REAL(send)(s->self, much, sizeof(much), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			;
	else
		while (REAL(recv)(s->peer, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
	s->says_full = full;
}

/* An edge-triggered poller that has read all is waiting for one more edge. */
static void say_read(struct sock *s, bool before_wait)
{
	char sink[64];

	if (sock_readable(s)) {
		if (!s->says_read || s->drained)
			REAL(send)(s->peer, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		s->says_read = true;
		s->drained = false;
	} else if (s->says_read && before_wait) {
		while (REAL(recv)(s->self, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
		s->says_read = s->drained = false;
	}
}

static void mirror(struct sock *s, bool before_wait)
{
	if (!s->watched || s->peer < 0)
		return;
	if (s->state == SOCK_DEAD) {
		/* Closed with bytes in it, it is in error at the other end. */
		if (s->error != 0 && !s->says_full)
			say_full(s, true);
		REAL(close)(s->peer);
		s->peer = -1;
		return;
	}
	say_read(s, before_wait);
	if (s->says_full == sock_writable(s))
		say_full(s, !s->says_full);
	if (s->eof && !s->says_end) {
		REAL(shutdown)(s->peer, SHUT_WR);
		s->says_end = true;
	}
}

void sock_sync(bool before_wait)
{
	struct sock *s, *next;

	for (s = TAILQ_FIRST(&dirty); s != NULL; s = next) {
		next = TAILQ_NEXT(s, dirty);
		mirror(s, before_wait);
		if (s->says_read && !sock_readable(s) && s->peer >= 0)
			continue; /* until somebody waits */
		sock_untouch(s);
	}
}
