/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event says is not read: it is asked for anew, so that none that was lost matters. */
#include "lib/port/iface.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENT_LEN = 8192 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct port_iface *ifaces;
static int events = -1;

/* By index: a name may be given to another one. */
static bool ask(struct port_iface *i)
{
	struct ifreq ifr = {.ifr_ifindex = (int)i->index};

	if (ioctl(i->ask, SIOCGIFNAME, &ifr) < 0 || ioctl(i->ask, SIOCGIFMTU, &ifr) < 0)
		return false;
	atomic_store(&i->mtu, (unsigned)ifr.ifr_mtu);
	if (ioctl(i->ask, SIOCGIFFLAGS, &ifr) < 0)
		return false;
	return (ifr.ifr_flags & IFF_UP) && (ifr.ifr_flags & IFF_RUNNING);
}

static void hear(struct port_iface *i)
{
	char event[EVENT_LEN];

	while (recv(i->events, event, sizeof(event), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
		;
	atomic_store(&i->up, ask(i));
}

static void *watch(void *arg)
{
	struct pollfd p = {.fd = events, .events = POLLIN};
	struct epoll_event e;

	(void)arg;
	for (;;) {
		poll(&p, 1, -1);
		pthread_mutex_lock(&lock);
		while (epoll_wait(events, &e, 1, 0) == 1)
			hear(e.data.ptr);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static int start_thread(void)
{
	sigset_t all, old;
	pthread_t thread;
	int rc;

	if (events >= 0)
		return 0;
	events = epoll_create1(EPOLL_CLOEXEC);
	if (events < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0) {
		pthread_setname_np(thread, "port-iface");
		pthread_detach(thread);
		return 0;
	}
	close(events);
	events = -1;
	return -rc;
}

static int subscribe(struct port_iface *i)
{
	const struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = i};
	int rc = start_thread();

	if (rc < 0)
		return rc;
	i->events = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	i->ask = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (i->events < 0 || i->ask < 0 ||
		bind(i->events, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return -errno;
	atomic_store(&i->up, ask(i));
	return epoll_ctl(events, EPOLL_CTL_ADD, i->events, &e) < 0 ? -errno : 0;
}

static void destroy(struct port_iface *i)
{
	if (i->events >= 0) {
		epoll_ctl(events, EPOLL_CTL_DEL, i->events, NULL);
		close(i->events);
	}
	if (i->ask >= 0)
		close(i->ask);
	free(i);
}

int port_iface_open(const char *name, struct port_iface **iface, char err[PORT_ERR_LEN])
{
	struct port_iface *i = calloc(1, sizeof(*i));
	int rc = -ENOMEM;

	pthread_mutex_lock(&lock);
	if (i != NULL) {
		i->events = i->ask = -1;
		i->index = if_nametoindex(name);
		rc = i->index == 0 ? -ENODEV : subscribe(i);
	}
	if (rc == 0) {
		i->next = ifaces;
		ifaces = i;
		*iface = i;
	} else if (i != NULL) {
		destroy(i);
	}
	pthread_mutex_unlock(&lock);
	if (rc < 0)
		snprintf(err, PORT_ERR_LEN, "iface: cannot watch %s: %s", name, strerror(-rc));
	return rc;
}

void port_iface_close(struct port_iface *iface)
{
	struct port_iface **at = &ifaces;

	if (iface == NULL)
		return;
	pthread_mutex_lock(&lock);
	while (*at != iface)
		at = &(*at)->next;
	*at = iface->next;
	destroy(iface);
	pthread_mutex_unlock(&lock);
}
