/* SPDX-License-Identifier: BSD-3-Clause */
/* Random bytes. */
#ifndef CCL_RANDOM_H
#define CCL_RANDOM_H

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

/* At most 256, which the kernel gives whole. 0, or -errno: it gives none (a filter of system calls
 * may forbid it), and will give none if asked again. */
static inline int ccl_random(void *to, size_t len)
{
	ssize_t n;

	do
		n = getrandom(to, len, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
}

#endif
