/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX takes a device for one that the user may not use unless stat(2) and access(2) find the
 * kernel's character device /dev/infiniband/<dev_name>. It opens it never: that is libibverbs' to
 * do. So these two calls are answered for this one path, as they would be for a NIC; all others go
 * on to libc. In the preload library only. */
#undef _FILE_OFFSET_BITS /* it would make stat64 of stat */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/verbs/internal.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int access(const char *path, int mode);
EXPORT int stat(const char *restrict path, struct stat *restrict st);

static bool is_device_file(const char *path)
{
	static const char dir[] = "/dev/infiniband/";

	return path && strncmp(path, dir, sizeof(dir) - 1) == 0 &&
	       iv_env_has(path + sizeof(dir) - 1);
}

int access(const char *path, int mode)
{
	static int (*real)(const char *, int);

	if (is_device_file(path)) {
		if (!(mode & X_OK))
			return 0;
		errno = EACCES;
		return -1;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "access");
	return real(path, mode);
}

int stat(const char *restrict path, struct stat *restrict st)
{
	static int (*real)(const char *restrict, struct stat *restrict);

	if (is_device_file(path)) {
		memset(st, 0, sizeof(*st));
		st->st_mode = S_IFCHR | 0666;
		st->st_nlink = 1;
		return 0;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "stat");
	return real(path, st);
}
