/* SPDX-License-Identifier: BSD-3-Clause */
#include "hangs.h"

#include <errno.h>

#include "harness.h"

unsigned calls;
bool hangs;

int __real_sw_worker_call(
	struct sw *s, unsigned i, void (*fn)(struct worker *w, void *arg), void *arg);
int __wrap_sw_worker_call(
	struct sw *s, unsigned i, void (*fn)(struct worker *w, void *arg), void *arg);
int __wrap_sw_worker_call(
	struct sw *s, unsigned i, void (*fn)(struct worker *w, void *arg), void *arg)
{
	calls++;
	return hangs ? -ETIMEDOUT : __real_sw_worker_call(s, i, fn, arg);
}
