/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "lib/nccl/im.h"

static nccl_logger to;

void np_set_log(nccl_logger log)
{
	__atomic_store_n(&to, log, __ATOMIC_RELEASE);
}

static void say(enum nccl_level level, const char *fmt, va_list ap)
{
	const nccl_logger log = __atomic_load_n(&to, __ATOMIC_ACQUIRE);
	char text[CCL_ERR_LEN + 128];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (log)
		log(level, NCCL_OF_INIT | NCCL_OF_NET, "Incline", 0, "NET/Incline: %s", text);
}

nccl_rc np_warn(nccl_rc rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(NCCL_LEVEL_WARN, fmt, ap);
	va_end(ap);
	return rc;
}

void np_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(NCCL_LEVEL_INFO, fmt, ap);
	va_end(ap);
}
