/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static bool is_port(const char *text)
{
	const size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 5 && !text[n] && strtoul(text, NULL, 10) <= 65535;
}

/* HOST:PORT or [HOST]:PORT, looked up with getaddrinfo's flags. */
static int parse_tcp(const char *text, int flags, struct ctl_address *a)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;
	struct addrinfo *list;
	char host[256];

	if (n == 0 || !is_port(colon + 1))
		return -EINVAL;
	if (text[0] == '[' && colon[-1] == ']') {
		text++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return -EINVAL; /* which colon is meant? */
	}
	if (n >= sizeof(host))
		return -ENAMETOOLONG;
	memcpy(host, text, n);
	host[n] = '\0';
	if (getaddrinfo(host, colon + 1, &hints, &list))
		return flags & AI_NUMERICHOST ? -EINVAL : -EADDRNOTAVAIL;
	memcpy(&a->sa, list->ai_addr, list->ai_addrlen);
	a->len = list->ai_addrlen;
	a->tcp = true;
	freeaddrinfo(list);
	return 0;
}

int ctl_address_parse(const char *text, struct ctl_address *a)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&a->sa;

	memset(a, 0, sizeof(*a));
	if (strncmp(text, "tcp:", 4) == 0)
		return parse_tcp(text + 4, 0, a);
	if (strncmp(text, "unix:", 5) == 0)
		text += 5;
	if (strlen(text) >= sizeof(un->sun_path))
		return -ENAMETOOLONG;
	un->sun_family = AF_UNIX;
	strcpy(un->sun_path, text);
	a->len = sizeof(*un);
	return 0;
}

int ctl_address_item(const char *list, unsigned i, char *item, size_t cap)
{
	size_t n;

	for (; i > 0; i--) {
		list = strchr(list, ',');
		if (!list++)
			return -ENOENT;
	}
	n = strcspn(list, ",");
	if (n >= cap)
		return -ENAMETOOLONG;
	memcpy(item, list, n);
	item[n] = '\0';
	return (int)n;
}

static bool is_any(const struct sockaddr_storage *sa)
{
	if (sa->ss_family == AF_INET)
		return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == INADDR_ANY;
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)sa)->sin6_addr;
	return IN6_IS_ADDR_UNSPECIFIED(in6) ||
	       (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr32[3] == INADDR_ANY);
}

int ctl_listen_parse(const char *text, struct ctl_address *a)
{
	memset(a, 0, sizeof(*a));
	int rc = parse_tcp(text, AI_NUMERICHOST, a);

	return rc ? rc : is_any(&a->sa) ? -EADDRNOTAVAIL : 0;
}

void ctl_tcp_format(const struct ctl_address *a, char *text, size_t cap)
{
	char host[INET6_ADDRSTRLEN + 16] = "?", port[8] = "?";

	getnameinfo((const struct sockaddr *)&a->sa, a->len, host, sizeof(host), port, sizeof(port),
		NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, cap, a->sa.ss_family == AF_INET6 ? "tcp:[%s]:%s" : "tcp:%s:%s", host, port);
}

void ctl_tcp_watch(int fd, unsigned gone_ms)
{
	const int probe_s = gone_ms < 3000 ? 1 : (int)(gone_ms / 3000), probes = 2;

	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe_s, sizeof(probe_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof(probe_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone_ms, sizeof(gone_ms));
}

void ctl_tcp_options(int fd)
{
	const int on = 1, idle_s = 30, every_s = 10, probes = 3, unheard_ms = 60000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard_ms, sizeof(unheard_ms));
}
