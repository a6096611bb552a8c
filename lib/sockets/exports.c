/* SPDX-License-Identifier: BSD-3-Clause */
/* What all calls of programs need: the socket of a descriptor, and waiting. */
#undef _FILE_OFFSET_BITS /* it would make fcntl64 of fcntl */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/time.h>

#include "lib/sockets/exports.h"

enum { TURNS = 200 }; /* in vain, before a call that waits sleeps in the kernel */

void *sockets_real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

int sockets_result(int err)
{
	if (err >= 0)
		return err;
	errno = -err;
	return -1;
}

static __thread int cancel_state; /* the program's */

void sockets_enter(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&sockets_lock);
	cancel_state = state;
}

void sockets_leave(void)
{
	pthread_mutex_unlock(&sockets_lock);
	pthread_setcancelstate(cancel_state, NULL);
}

struct sock *sockets_get(int fd)
{
	struct sock *s = sock_of(fd);

	errno = 0;
	if (s == NULL)
		return NULL;
	if (sockets_forked()) {
		errno = ECONNRESET;
		return NULL;
	}
	sockets_enter();
	s = sock_of(fd);
	if (s == NULL) {
		sockets_leave();
		return NULL;
	}
	sock_ref(s);
	return s;
}

void sockets_put(struct sock *s)
{
	sock_unref(s);
	sockets_leave();
}

uint64_t sockets_timeout(int fd, int option)
{
	struct timeval t = {0};
	socklen_t len = sizeof(t);

	REAL(getsockopt)(fd, SOL_SOCKET, option, &t, &len);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
}

bool sockets_nonblocking(const struct sock *s, int flags)
{
	return (flags & MSG_DONTWAIT) || (REAL(fcntl)(s->self, F_GETFL) & O_NONBLOCK);
}

/* ---- waiting: the only places where a thread is cancelled ---- */

static void cancelled(void *arg)
{
	struct sock *s = arg;

	sockets_enter();
	if (s->direct != NULL && pthread_equal(s->direct_by, pthread_self()))
		sock_direct_end(s, false);
	sockets_put(s);
}

void sockets_yield(struct sock *s)
{
	pthread_cleanup_push(cancelled, s);
	sockets_leave();
	pthread_testcancel();
	sched_yield();
	sockets_enter();
	pthread_cleanup_pop(0);
}

/* In the kernel. poll's, or negative errno. */
static int doze(struct sock *s, struct pollfd *p, int ms)
{
	int n;

	pthread_cleanup_push(cancelled, s);
	sockets_leave();
	n = REAL(poll)(p, 1, ms);
	n = n < 0 ? -errno : n;
	sockets_enter();
	pthread_cleanup_pop(0);
	return n;
}

int sockets_wait(struct sock *s, bool write, uint64_t ns)
{
	const uint64_t until = sockets_now() + ns;
	struct pollfd p = {.fd = s->self, .events = write ? POLLOUT : POLLIN};

	for (unsigned i = 0; i < TURNS; i++) {
		const bool busy = sockets_turn() > 0;

		if (write ? sock_writable(s) : sock_readable(s))
			return 0;
		if (busy && (ns == 0 || sockets_now() < until))
			i = 0;
		sockets_yield(s);
	}
	for (;;) {
		const uint64_t now = sockets_now();

		if (write ? sock_writable(s) : sock_readable(s))
			return 0;
		if (ns != 0 && now >= until)
			return -EAGAIN;
		s->watched = true;
		sock_touch(s);
		sock_sync(true);
		if (doze(s, &p, ns == 0 ? -1 : (int)((until - now) / 1000000 + 1)) == -EINTR)
			return -EINTR;
	}
}
