/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/event.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The counter is read before it is armed, so it is 0 or 1, and a write has room. */
static void wake(void *arg)
{
	const int err = errno;

	(void)!eventfd_write((int)(intptr_t)arg, 1);
	errno = err;
}

int stream_event_open(struct stream_config *config)
{
	const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	config->notify = wake;
	config->notify_arg = (void *)(intptr_t)fd;
	return fd;
}

int stream_event_arm(struct stream *s, int fd)
{
	eventfd_t told;

	if (eventfd_read(fd, &told) < 0 && errno != EAGAIN)
		return -errno;
	if (!stream_arm(s) && eventfd_write(fd, 1) < 0)
		return -errno;
	return 0;
}
