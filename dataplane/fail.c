/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "dataplane/sw.h"

int sw_fail(char err[SW_ERR_LEN], int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, SW_ERR_LEN, fmt, ap);
	va_end(ap);
	return error;
}
