/* SPDX-License-Identifier: BSD-3-Clause */
/* How partners find each other. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/nccl/im.h"

enum { MAGIC = 0x696e6338 }; /* what a handle means: another number if that changes */

union address {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static socklen_t length(const union address *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->in4) : sizeof(a->in6);
}

static bool by_name(const char *host, union address *a)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list;

	if (getaddrinfo(host, NULL, &hints, &list))
		return false;
	memcpy(a, list->ai_addr, list->ai_addrlen < sizeof(*a) ? list->ai_addrlen : sizeof(*a));
	freeaddrinfo(list);
	return true;
}

/* 3: IPv4 that others reach; 2: IPv6; 1: this machine alone; 0: of no use. */
static int rate(const struct ifaddrs *i)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)i->ifa_addr;

	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return 0;
	if (i->ifa_flags & IFF_LOOPBACK)
		return i->ifa_addr->sa_family == AF_INET;
	if (i->ifa_addr->sa_family == AF_INET6)
		return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ? 0 : 2;
	return i->ifa_addr->sa_family == AF_INET ? 3 : 0;
}

static bool of_interfaces(union address *a)
{
	struct ifaddrs *list, *best = NULL;

	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i; i = i->ifa_next)
		if (rate(i) > (best ? rate(best) : 0))
			best = i;
	if (best)
		memcpy(a, best->ifa_addr,
			best->ifa_addr->sa_family == AF_INET ? sizeof(a->in4) : sizeof(a->in6));
	freeifaddrs(list);
	return best;
}

/* Others may bind to it before anybody listens: CommLib does. */
static int bind_to(union address *a)
{
	const int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;
	socklen_t len = length(a);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &a->sa, len) == 0 && getsockname(fd, &a->sa, &len) == 0)
		return fd;
	close(fd);
	return -1;
}

int np_bind(struct np_handle *h, uint32_t kind)
{
	const char *host = getenv("INCLINE_NCCL_HOST");
	union address a = {0};
	int fd;

	memset(h, 0, sizeof(*h));
	if (host ? !by_name(host, &a) : !of_interfaces(&a)) {
		np_warn(0, "no address by which others reach this process (INCLINE_NCCL_HOST: %s)",
			host ? host : "not set");
		return -1;
	}
	a.in4.sin_port = 0; /* in6's is in the same place */
	fd = bind_to(&a);
	if (fd < 0 ||
		getnameinfo(&a.sa, length(&a), h->host, sizeof(h->host), NULL, 0, NI_NUMERICHOST)) {
		np_warn(0, "a socket at %s: %s", host ? host : "an interface", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	h->magic = MAGIC;
	h->kind = kind;
	h->port = ntohs(a.in4.sin_port);
	while (getrandom(&h->random, sizeof(h->random), 0) != sizeof(h->random))
		;
	return fd;
}

bool np_is_handle(const struct np_handle *h, uint32_t kind)
{
	if (h->magic == MAGIC && h->kind == kind && memchr(h->host, 0, sizeof(h->host)) &&
		memchr(h->part.ip, 0, sizeof(h->part.ip)))
		return true;
	np_warn(0, "a handle that is not this plug-in's (another version of it at that rank?)");
	return false;
}
