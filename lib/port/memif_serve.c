/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that serves all doors, its poll set and its lock. The lock is held by whoever touches
 * doors or conversations. The thread waits without it and asks for events with it, so that no event
 * outlives what it is about. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/port/memif_door_priv.h"

enum { TURN = 64 }; /* events until others get the lock */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int events = -1, no_interrupt = -1;

uint64_t memif_in_ms(unsigned ms)
{
	return port_now_ns() + (uint64_t)ms * 1000000;
}

int memif_no_interrupt(void)
{
	return no_interrupt;
}

/* ---- the poll set ---- */

int memif_watch(int fd, void *who)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = who};

	return epoll_ctl(events, EPOLL_CTL_ADD, fd, &e);
}

void memif_unwatch(int fd)
{
	epoll_ctl(events, EPOLL_CTL_DEL, fd, NULL);
}

/* Not by close() alone: a child of this process may have the socket too. */
void memif_unwatch_and_close(int *fd)
{
	if (*fd < 0)
		return;
	memif_unwatch(*fd);
	close(*fd);
	*fd = -1;
}

/* ---- the lock ---- */

void memif_serve_lock(void)
{
	pthread_mutex_lock(&lock);
}

void memif_serve_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void memif_serve_wait(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec++;
	pthread_cond_timedwait(&moved, &lock, &t);
}

/* ---- the thread ---- */

/* What time brings. Returns the milliseconds until the next, -1 for none. */
static int pass_time(uint64_t now)
{
	uint64_t talk = memif_talk_pass_time(now), door = memif_door_pass_time(now);
	uint64_t next = talk < door ? talk : door;

	return next == UINT64_MAX ? -1 : (int)((next - now) / 1000000) + 1;
}

static void *serve(void *arg)
{
	struct pollfd p = {.fd = events, .events = POLLIN};
	struct epoll_event e;
	int timeout = -1;

	(void)arg;
	for (;;) {
		poll(&p, 1, timeout);
		pthread_mutex_lock(&lock);
		for (unsigned i = 0; i < TURN && epoll_wait(events, &e, 1, 0) == 1; i++)
			if (!memif_door_hear(e.data.ptr))
				memif_talk_hear(e.data.ptr);
		timeout = pass_time(port_now_ns());
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int memif_serve_start(char err[PORT_ERR_LEN])
{
	sigset_t all, old;
	pthread_t thread;
	int rc;

	if (events >= 0)
		return 0;
	events = epoll_create1(EPOLL_CLOEXEC);
	no_interrupt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = events < 0 || no_interrupt < 0 ? errno : pthread_create(&thread, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0) {
		pthread_setname_np(thread, "memif-door");
		pthread_detach(thread);
		return 0;
	}
	close(events);
	close(no_interrupt);
	events = -1;
	snprintf(err, PORT_ERR_LEN, "socket: no thread to serve it: %s", strerror(rc));
	return -rc;
}
