/* SPDX-License-Identifier: BSD-3-Clause */
/* The vhost library maps the memory that a client offers, as long as the client says that it is,
 * and reads and writes there. Where the file ends earlier that is a SIGBUS, and the process's end.
 * So its calls of mmap, and nobody else's, are led here (hook.c): a file that is too short is not
 * mapped, and the library ends the conversation. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/port/internal.h"

/* Bytes from off that can be touched: to the end of the block in which the file ends. */
static uint64_t room(const struct stat *st, off64_t off)
{
	const uint64_t block = st->st_blksize > 0 ? (uint64_t)st->st_blksize : 1;
	const uint64_t size = ((uint64_t)st->st_size + block - 1) / block * block;

	return off >= 0 && (uint64_t)off < size ? size - (uint64_t)off : 0;
}

static void *map(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) < 0)
		return MAP_FAILED;
	if (fd >= 0 && S_ISREG(st.st_mode) && len > room(&st, off)) {
		errno = ENXIO;
		return MAP_FAILED;
	}
	return mmap64(addr, len, prot, flags, fd, off);
}

int port_vhost_guard(char err[PORT_ERR_LEN])
{
	int ret = port_hook("librte_vhost", "mmap64", (void *)map);

	if (ret == -ENOENT)
		ret = port_hook("librte_vhost", "mmap", (void *)map);
	return ret < 0 ? port_fail(
				 err, -ret, "what vhost maps cannot be checked: %s", strerror(-ret))
		       : 0;
}
