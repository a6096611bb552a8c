/* SPDX-License-Identifier: BSD-3-Clause */
/* poll, select and epoll: own descriptors are watched from then on, some turns are taken, and then
 * the kernel waits, for own descriptors and others alike. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "lib/sockets/exports.h"

enum { TURNS = 30 }; /* in vain, before a call sleeps in the kernel */

static atomic_bool has_own[SOCKETS_MAX_FD]; /* epoll sets */

static bool watch(int fd)
{
	struct sock *s = sock_of(fd);

	if (s == NULL || sockets_forked())
		return false;
	sockets_enter();
	if (sock_of(fd) == s) {
		s->watched = true;
		sock_touch(s);
	}
	sockets_leave();
	return true;
}

/* Mirrors are right when it returns. How much there was to do. */
static unsigned turn(void)
{
	unsigned work;

	sockets_enter();
	work = sockets_turn();
	sock_sync(true);
	sockets_leave();
	return work;
}

/* Waits for what `look` asks the kernel: without waiting as long as there is something to do. */
#define WAIT(wait, look)                                  \
	do {                                              \
		for (unsigned i_ = 0; i_ < TURNS; i_++) { \
			const unsigned work_ = turn();    \
			const int n_ = (look);            \
			if (n_ != 0 || !(wait))           \
				return n_;                \
			if (work_ == 0)                   \
				sched_yield();            \
		}                                         \
	} while (0)

static bool watch_polled(const struct pollfd *fds, nfds_t n)
{
	bool own = false;

	for (nfds_t i = 0; i < n; i++)
		own |= watch(fds[i].fd);
	return own;
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (watch_polled(fds, n))
		WAIT(timeout != 0, REAL(poll)(fds, n, 0));
	return REAL(poll)(fds, n, timeout);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	const bool wait = timeout == NULL || timeout->tv_sec > 0 || timeout->tv_nsec > 0;

	if (watch_polled(fds, n))
		WAIT(wait, REAL(poll)(fds, n, 0));
	return REAL(ppoll)(fds, n, timeout, mask);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	return size / sizeof(*fds) < n ? REAL(__poll_chk)(fds, n, timeout, size)
				       : poll(fds, n, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
	const sigset_t *mask, size_t size);
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
	const sigset_t *mask, size_t size)
{
	return size / sizeof(*fds) < n ? REAL(__ppoll_chk)(fds, n, timeout, mask, size)
				       : ppoll(fds, n, timeout, mask);
}

/* ---- select ---- */

static bool watch_selected(int n, const fd_set *set)
{
	bool own = false;

	for (int fd = 0; set != NULL && fd < n && fd < FD_SETSIZE; fd++)
		if (FD_ISSET(fd, set))
			own |= watch(fd);
	return own;
}

struct sets {
	fd_set *r, *w, *x, saved[3];
};

static int look_selected(int n, struct sets *s)
{
	struct timeval none = {0};
	fd_set r = s->saved[0], w = s->saved[1], x = s->saved[2];
	const int ret =
		REAL(select)(n, s->r ? &r : NULL, s->w ? &w : NULL, s->x ? &x : NULL, &none);

	if (ret <= 0)
		return ret;
	if (s->r)
		*s->r = r;
	if (s->w)
		*s->w = w;
	if (s->x)
		*s->x = x;
	return ret;
}

/* Nothing is ready yet: the kernel's turn. Else what select returns. */
static int select_own(int n, struct sets *s, bool wait)
{
	bool own = watch_selected(n, s->r);

	own |= watch_selected(n, s->w);
	own |= watch_selected(n, s->x);
	if (!own)
		return 0;
	if (s->r)
		s->saved[0] = *s->r;
	if (s->w)
		s->saved[1] = *s->w;
	if (s->x)
		s->saved[2] = *s->x;
	WAIT(wait, look_selected(n, s));
	return 0;
}

EXPORT int select(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *timeout)
{
	struct sets s = {.r = r, .w = w, .x = x};
	const int got =
		select_own(n, &s, timeout == NULL || timeout->tv_sec > 0 || timeout->tv_usec > 0);

	return got != 0 ? got : REAL(select)(n, r, w, x, timeout);
}

EXPORT int pselect(int n, fd_set *r, fd_set *w, fd_set *x, const struct timespec *timeout,
	const sigset_t *mask)
{
	struct sets s = {.r = r, .w = w, .x = x};
	const int got =
		select_own(n, &s, timeout == NULL || timeout->tv_sec > 0 || timeout->tv_nsec > 0);

	return got != 0 ? got : REAL(pselect)(n, r, w, x, timeout, mask);
}

/* ---- epoll ---- */

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int ret;

	if (op != EPOLL_CTL_DEL && watch(fd) && epfd >= 0 && epfd < SOCKETS_MAX_FD) {
		atomic_store(&has_own[epfd], true);
		turn();
	}
	ret = REAL(epoll_ctl)(epfd, op, fd, event);
	return ret;
}

static bool is_own(int epfd)
{
	return epfd >= 0 && epfd < SOCKETS_MAX_FD && atomic_load(&has_own[epfd]) &&
	       !sockets_forked();
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int n, int timeout)
{
	if (is_own(epfd))
		WAIT(timeout != 0, REAL(epoll_wait)(epfd, events, n, 0));
	return REAL(epoll_wait)(epfd, events, n, timeout);
}

EXPORT int epoll_pwait(
	int epfd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
	if (is_own(epfd))
		WAIT(timeout != 0, REAL(epoll_wait)(epfd, events, n, 0));
	return REAL(epoll_pwait)(epfd, events, n, timeout, mask);
}
