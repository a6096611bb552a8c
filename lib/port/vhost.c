/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of vhost clients is guarded (guard.c): the vhost library's calls of mmap, munmap and
 * recvmsg, and nobody else's, are led here (hook.c). */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/port/internal.h"

uint64_t port_vhost_lost(void)
{
	return port_guard_lost(PORT_GUARDED_VHOST);
}

static ssize_t hear(int s, struct msghdr *mh, int flags)
{
	port_guard_heard(s);
	return recvmsg(s, mh, flags);
}

static void *map(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return port_guard_map(PORT_GUARDED_VHOST, addr, len, prot, flags, fd, off);
}

int port_vhost_guard(char err[PORT_ERR_LEN])
{
	int ret = port_hook("librte_vhost", "mmap64", (void *)map);

	if (ret == -ENOENT)
		ret = port_hook("librte_vhost", "mmap", (void *)map);
	if (ret >= 0)
		ret = port_hook("librte_vhost", "munmap", (void *)port_guard_unmap);
	if (ret >= 0)
		ret = port_hook("librte_vhost", "recvmsg", (void *)hear);
	return ret < 0 ? port_fail(
				 err, -ret, "what vhost maps cannot be guarded: %s", strerror(-ret))
		       : port_guard_start(err);
}
