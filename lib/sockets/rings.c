/* SPDX-License-Identifier: BSD-3-Clause */
/* What lies between a program's calls and the stream: a ring of what came, a ring of what goes. */
#include <errno.h>
#include <string.h>

#include "lib/sockets/sockets.h"

/* As many receives as there is room for: a chunk is posted again when it was read to its end. The
 * first one behind a buffer that a call had posted may be less than a chunk. */
void sock_post_receives(struct sock *s)
{
	while (!s->eof && !s->closed && s->has_conn) {
		const size_t at = s->rx_posted % SOCKETS_BUFFER,
			     len = SOCKETS_CHUNK - at % SOCKETS_CHUNK;
		const uint64_t end = s->rx_posted + len;

		if (end - s->rx_done > SOCKETS_BUFFER || end - s->rx_read > SOCKETS_BUFFER ||
			stream_recv(s->stack->stream, s->conn, s->rx + at, len,
				sock_receive_cookie(s->rx_posted, len)) < 0)
			return;
		s->rx_posted = end;
	}
}

void sock_post_sends(struct sock *s)
{
	while (s->state == SOCK_OPEN && s->tx_posted < s->tx_put && s->sends < SOCKETS_SENDS) {
		const size_t at = s->tx_posted % SOCKETS_BUFFER;
		size_t len = s->tx_put - s->tx_posted;

		if (len > SOCKETS_BUFFER - at)
			len = SOCKETS_BUFFER - at;
		if (stream_send(s->stack->stream, s->conn, s->tx + at, len, 0) < 0)
			return;
		s->tx_posted += len;
		s->sends++;
	}
	if (s->tx_posted == s->tx_put && s->write_shut && s->state == SOCK_OPEN) {
		if (s->closed)
			stream_close(s->stack->stream, s->conn);
		else
			stream_shutdown(s->stack->stream, s->conn);
	}
}

ssize_t sock_read(struct sock *s, void *buf, size_t len, bool peek)
{
	size_t n = 0;

	if (s->error != 0 && s->rx_have == s->rx_read) {
		const int err = s->error;

		s->error = 0;
		return -err;
	}
	if (s->state < SOCK_OPEN)
		return s->state <= SOCK_LISTENING ? -ENOTCONN : -EAGAIN;
	if (s->direct != NULL)
		return -EAGAIN; /* another thread's call was first */
	while (n < len && s->rx_read + n < s->rx_have) {
		const size_t at = (s->rx_read + n) % SOCKETS_BUFFER;
		size_t part = s->rx_have - s->rx_read - n;

		if (part > SOCKETS_BUFFER - at)
			part = SOCKETS_BUFFER - at;
		if (part > len - n)
			part = len - n;
		memcpy((uint8_t *)buf + n, s->rx + at, part);
		n += part;
	}
	if (n > 0) {
		if (!peek) {
			s->rx_read += n;
			s->bulk = n >= SOCKETS_BULK;
			s->stack->copied += n;
			sock_post_receives(s);
		}
		s->drained = s->rx_read == s->rx_have;
		sock_touch(s);
		return (ssize_t)n;
	}
	s->drained = true;
	if (s->says_read)
		sock_touch(s);
	return len == 0 || s->eof || s->read_shut || s->state == SOCK_DEAD ? 0 : -EAGAIN;
}

ssize_t sock_write(struct sock *s, const void *buf, size_t len)
{
	size_t n = 0, room;

	if (s->error != 0) {
		const int err = s->error;

		s->error = 0;
		return -err;
	}
	if (s->state == SOCK_DEAD || s->write_shut)
		return -EPIPE;
	if (s->state != SOCK_OPEN)
		return s->state <= SOCK_LISTENING ? -ENOTCONN : -EAGAIN;
	room = SOCKETS_BUFFER - (size_t)(s->tx_put - s->tx_acked);
	while (n < len && n < room) {
		const size_t at = (s->tx_put + n) % SOCKETS_BUFFER;
		size_t part = (len < room ? len : room) - n;

		if (part > SOCKETS_BUFFER - at)
			part = SOCKETS_BUFFER - at;
		memcpy(s->tx + at, (const uint8_t *)buf + n, part);
		n += part;
	}
	s->tx_put += n;
	sock_post_sends(s);
	sock_touch(s);
	return n > 0 || len == 0 ? (ssize_t)n : -EAGAIN;
}

int sock_shutdown(struct sock *s, int how)
{
	if (s->state != SOCK_OPEN)
		return -ENOTCONN;
	if (how == SHUT_RD || how == SHUT_RDWR)
		s->read_shut = true;
	if (how == SHUT_WR || how == SHUT_RDWR) {
		s->write_shut = true;
		sock_post_sends(s);
	}
	sock_touch(s);
	return 0;
}
