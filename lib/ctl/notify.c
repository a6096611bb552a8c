/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/journal/journal.h"

void ctl_notify(const char *program, const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@') /* an abstract address */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		journal(JOURNAL_WARNING, "%s: NOTIFY_SOCKET %s: %s", program, path,
			strerror(errno));
	close(fd);
}

/* A whole number above 0 in the environment, else 0. */
static uint64_t number(const char *name)
{
	const char *text = getenv(name);
	unsigned long long n;
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	return errno || *end ? 0 : n;
}

uint64_t ctl_watchdog_ns(void)
{
	const uint64_t us = number("WATCHDOG_USEC");

	if (getenv("WATCHDOG_PID") && number("WATCHDOG_PID") != (uint64_t)getpid())
		return 0;
	return us / 2 > UINT64_MAX / 1000 ? 0 : us / 2 * 1000;
}
