/* SPDX-License-Identifier: BSD-3-Clause */
/* A socket: its beginning and its end, and what the stream says of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sockets/sockets.h"

enum { FIRST_PORT = 49152, N_PORTS = 16384 };

static _Atomic(struct sock *) by_fd[SOCKETS_MAX_FD];
static struct sock_list resolving = TAILQ_HEAD_INITIALIZER(resolving);
static struct sock_list listening = TAILQ_HEAD_INITIALIZER(listening);
static struct sock_list lingering = TAILQ_HEAD_INITIALIZER(lingering); /* closed, not ended */

struct sock *sock_of(int fd)
{
	return fd < 0 || fd >= SOCKETS_MAX_FD ? NULL : atomic_load(&by_fd[fd]);
}

void sock_set(int fd, struct sock *s)
{
	if (fd >= 0 && fd < SOCKETS_MAX_FD)
		atomic_store(&by_fd[fd], s);
}

/* ---- life ---- */

static struct sock *sock_new(int family)
{
	struct sock *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->family = family;
	s->self = s->peer = s->kernel = -1;
	TAILQ_INIT(&s->waiting);
	return s;
}

static void sock_free(struct sock *s)
{
	sock_untouch(s);
	free(s->rx);
	free(s->tx);
	free(s);
}

/* The pair: *fd is the program's end, with these flags. */
static int make_pair(struct sock *s, int flags, int *fd)
{
	const int small = 1;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*fd = pair[0];
	s->peer = pair[1];
	s->self = REAL(fcntl)(*fd, F_DUPFD_CLOEXEC, 0);
	if (s->self < 0 || *fd >= SOCKETS_MAX_FD) {
		const int err = s->self < 0 ? errno : EMFILE;

		REAL(close)(pair[0]);
		REAL(close)(pair[1]);
		if (s->self >= 0)
			REAL(close)(s->self);
		return -err;
	}
	REAL(setsockopt)(*fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (flags & SOCK_NONBLOCK)
		REAL(fcntl)(*fd, F_SETFL, REAL(fcntl)(*fd, F_GETFL) | O_NONBLOCK);
	if (!(flags & SOCK_CLOEXEC))
		REAL(fcntl)(*fd, F_SETFD, 0);
	return 0;
}

int sock_adopt(int fd, int family, struct sock **out)
{
	const int cloexec = REAL(fcntl)(fd, F_GETFD) & FD_CLOEXEC;
	const int nonblock = REAL(fcntl)(fd, F_GETFL) & O_NONBLOCK;
	struct sock *s = sock_new(family);
	int end, err = -ENOMEM;

	if (s == NULL)
		return err;
	s->kernel = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 0);
	err = s->kernel < 0 ? -errno : make_pair(s, nonblock ? SOCK_NONBLOCK : 0, &end);
	if (err == 0 && REAL(dup3)(end, fd, cloexec ? O_CLOEXEC : 0) < 0)
		err = -errno;
	if (err < 0) {
		sock_free(s);
		return err;
	}
	REAL(close)(end);
	s->refs = 1;
	sock_set(fd, s);
	*out = s;
	return 0;
}

void sock_ref(struct sock *s)
{
	s->refs++;
}

static bool listens_at(const struct sock *s, const struct stack *stack)
{
	if (!s->any)
		return s->stack == stack;
	return wire_ip_is4(&stack->ip) ? s->family == AF_INET || !s->v6only : s->family == AF_INET6;
}

static void stop_listening(struct sock *s)
{
	struct stack *stacks;
	struct sock *child;
	const unsigned n = sockets_stacks(&stacks);

	TAILQ_REMOVE(&listening, s, link);
	for (unsigned i = 0; i < n; i++)
		if (listens_at(s, &stacks[i]))
			stream_unlisten(stacks[i].stream, s->local_port);
	while ((child = TAILQ_FIRST(&s->waiting)) != NULL) {
		TAILQ_REMOVE(&s->waiting, child, link);
		child->reset_at_close = true;
		sock_unref(child);
	}
}

static bool has_room(const struct sock *s)
{
	return s->rx != NULL && s->tx != NULL;
}

/* Its descriptors are gone; its connection may still have to send. */
static void abandon(struct sock *s)
{
	if (s->self >= 0)
		REAL(close)(s->self);
	if (s->peer >= 0)
		REAL(close)(s->peer);
	if (s->kernel >= 0)
		REAL(close)(s->kernel);
	s->peer = s->kernel = -1;
	s->watched = false;
	if (s->state == SOCK_RESOLVING)
		TAILQ_REMOVE(&resolving, s, link);
	else if (s->state == SOCK_LISTENING)
		stop_listening(s);
}

void sock_unref(struct sock *s)
{
	if (--s->refs > 0)
		return;
	abandon(s);
	if (!s->has_conn) {
		sock_free(s);
		return;
	}
	s->closed = true;
	TAILQ_INSERT_TAIL(&lingering, s, link);
	if (s->rx_have > s->rx_read || s->reset_at_close)
		stream_abort(s->stack->stream, s->conn);
	else if (s->tx_put == s->tx_posted)
		stream_close(s->stack->stream, s->conn);
	else
		s->write_shut = true; /* sock_post_sends closes */
}

bool sock_lingering(bool bytes)
{
	const struct sock *s;

	TAILQ_FOREACH(s, &lingering, link)
	if (!bytes || s->tx_acked < s->tx_put)
		return true;
	return false;
}

/* ---- what the stream says ---- */

static int add_conn(struct stack *stack, struct sock *s, uint32_t conn)
{
	if (!has_room(s)) {
		s->rx = malloc(SOCKETS_BUFFER);
		s->tx = malloc(SOCKETS_BUFFER);
	}
	if (!has_room(s))
		return -ENOMEM;
	s->stack = stack;
	s->conn = conn;
	s->has_conn = true;
	stack->by_conn[conn & 0xffff] = s;
	return 0;
}

static void accepted(struct stack *stack, const struct stream_completion *c)
{
	struct sock *listener, *s = NULL;
	struct place_tuple ends;

	if (stream_ends(stack->stream, c->conn, &ends) < 0)
		return; /* it has ended already */
	TAILQ_FOREACH(listener, &listening, link)
	if ((uintptr_t)listener == c->cookie)
		break;
	if (listener != NULL && listener->n_waiting < listener->backlog)
		s = sock_new(listener->family);
	if (s == NULL || add_conn(stack, s, c->conn) < 0) {
		if (s != NULL)
			sock_free(s);
		stream_abort(stack->stream, c->conn);
		return;
	}
	s->state = SOCK_OPEN;
	s->local = ends.local;
	s->remote = ends.remote;
	s->local_port = ends.local_port;
	s->remote_port = ends.remote_port;
	s->refs = 1;
	TAILQ_INSERT_TAIL(&listener->waiting, s, link);
	listener->n_waiting++;
	sock_post_receives(s);
	sock_touch(listener);
}

static void ended(struct sock *s, int result)
{
	s->stack->by_conn[s->conn & 0xffff] = NULL;
	s->has_conn = false;
	if (s->closed) {
		TAILQ_REMOVE(&lingering, s, link);
		sock_free(s);
		return;
	}
	s->state = SOCK_DEAD;
	s->eof = true;
	if (result < 0 && s->error == 0)
		s->error = -result;
	sock_touch(s);
}

static void received(struct sock *s, const struct stream_completion *c)
{
	const uint64_t len = c->cookie & ((1u << SOCKETS_LEN_BITS) - 1),
		       end = sock_received_at(c->cookie, s->rx_done) + (uint64_t)c->result;

	if (c->result >= 0) {
		s->eof |= (uint64_t)c->result < len;
		if (c->result > 0 && end > s->rx_done)
			s->rx_done = end;
		if (s->rx_done > s->rx_have)
			s->rx_have = s->rx_done;
	}
	sock_post_receives(s);
}

void sock_event(struct stack *stack, const struct stream_completion *c)
{
	struct sock *s = stack->by_conn[c->conn & 0xffff];

	if (c->event == STREAM_ACCEPTED) {
		accepted(stack, c);
		return;
	}
	if (s == NULL || s->conn != c->conn)
		return;
	switch (c->event) {
	case STREAM_CONNECTED:
		s->state = SOCK_OPEN;
		sock_post_receives(s);
		sock_post_sends(s);
		break;
	case STREAM_SENT:
		s->sends--;
		if (c->result > 0)
			s->tx_acked += (uint64_t)c->result;
		sock_post_sends(s);
		break;
	case STREAM_RECEIVED:
		received(s, c);
		break;
	case STREAM_ARRIVED:
		if ((uint64_t)c->result > s->rx_have)
			s->rx_have = (uint64_t)c->result;
		break;
	case STREAM_CLOSED:
		ended(s, (int)c->result);
		return;
	case STREAM_ACCEPTED:
		break;
	}
	sock_touch(s);
}

/* ---- beginnings ---- */

static struct stack *stack_of(const struct wire_ip *ip)
{
	struct stack *stacks;
	const unsigned n = sockets_stacks(&stacks);

	for (unsigned i = 0; i < n; i++)
		if (wire_ip_eq(&stacks[i].ip, ip))
			return &stacks[i];
	return NULL;
}

int sock_bind(struct sock *s, const struct wire_ip *ip, uint16_t port)
{
	static const struct wire_ip any4 = {.b = {[10] = 0xff, [11] = 0xff}};

	s->local = *ip;
	s->local_port = port;
	s->any = wire_ip_is_zero(ip) || wire_ip_eq(ip, &any4);
	s->stack = s->any ? NULL : stack_of(ip);
	return s->any || s->stack != NULL ? 0 : -EADDRNOTAVAIL;
}

static int listen_all(struct sock *s, uint16_t port)
{
	struct stack *stacks;
	const unsigned n = sockets_stacks(&stacks);

	for (unsigned i = 0; i < n; i++) {
		int err;

		if (!listens_at(s, &stacks[i]))
			continue;
		err = stream_listen(stacks[i].stream, port, (uintptr_t)s);
		if (err < 0) {
			while (i-- > 0)
				if (listens_at(s, &stacks[i]))
					stream_unlisten(stacks[i].stream, port);
			return err == -ENOSPC ? -ENOBUFS : err;
		}
	}
	s->local_port = port;
	return 0;
}

int sock_listen(struct sock *s, int backlog)
{
	int err = -EADDRINUSE;

	if (s->state != SOCK_BOUND && s->state != SOCK_LISTENING)
		return -EINVAL;
	s->backlog = backlog < 1 ? 1 : (unsigned)backlog;
	if (s->state == SOCK_LISTENING)
		return 0;
	if (s->local_port != 0)
		err = listen_all(s, s->local_port);
	for (unsigned i = 0; s->local_port == 0 && err == -EADDRINUSE && i < N_PORTS; i++)
		err = listen_all(s, (uint16_t)(FIRST_PORT + (sockets_now() + i) % N_PORTS));
	if (err == 0) {
		s->state = SOCK_LISTENING;
		TAILQ_INSERT_TAIL(&listening, s, link);
	}
	return err;
}

static void fail(struct sock *s, int err)
{
	s->state = SOCK_DEAD;
	s->error = -err;
	sock_touch(s);
}

static int try_connect(struct sock *s)
{
	uint8_t mac[6];
	int err = sockets_resolve(&s->remote, mac);
	struct place_tuple ends;
	uint32_t conn;

	if (err == 0)
		err = stream_connect(s->stack->stream, sockets_now(), mac, &s->remote,
			s->remote_port, s->local_port, 0, &conn);
	if (err < 0)
		return err == -ENOSPC ? -ENOBUFS : err;
	if (stream_ends(s->stack->stream, conn, &ends) == 0) {
		s->local = ends.local;
		s->local_port = ends.local_port;
	}
	s->state = SOCK_CONNECTING;
	return add_conn(s->stack, s, conn);
}

int sock_connect(struct sock *s, const struct wire_ip *ip, uint16_t port)
{
	int err;

	if (s->state != SOCK_BOUND)
		return s->state == SOCK_OPEN ? -EISCONN : -EALREADY;
	if (s->stack == NULL)
		s->stack = sockets_source(ip);
	if (s->stack == NULL || wire_ip_is4(&s->stack->ip) != wire_ip_is4(ip))
		return -ENETUNREACH;
	s->remote = *ip;
	s->remote_port = port;
	err = try_connect(s);
	if (err == -EAGAIN) {
		s->state = SOCK_RESOLVING;
		TAILQ_INSERT_TAIL(&resolving, s, link);
	} else if (err < 0) {
		return err;
	}
	sock_touch(s);
	return -EINPROGRESS;
}

void sock_resolve_all(void)
{
	struct sock *s, *next;

	for (s = TAILQ_FIRST(&resolving); s != NULL; s = next) {
		int err;

		next = TAILQ_NEXT(s, link);
		err = try_connect(s);
		if (err == -EAGAIN)
			continue;
		TAILQ_REMOVE(&resolving, s, link);
		if (err < 0)
			fail(s, err);
	}
}

int sock_accept(struct sock *s, int flags, struct sock **accepted)
{
	struct sock *child = TAILQ_FIRST(&s->waiting);
	int fd, err;

	if (s->state != SOCK_LISTENING)
		return -EINVAL;
	if (child == NULL) {
		s->drained = true;
		if (s->says_read)
			sock_touch(s);
		return -EAGAIN;
	}
	err = make_pair(child, flags, &fd);
	if (err < 0)
		return err;
	TAILQ_REMOVE(&s->waiting, child, link);
	s->n_waiting--;
	s->drained = s->n_waiting == 0;
	sock_touch(s);
	sock_touch(child);
	sock_set(fd, child);
	*accepted = child;
	return fd;
}
