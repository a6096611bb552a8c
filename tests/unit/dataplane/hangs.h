/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of workers are counted, and a worker may take none (--wrap=sw_worker_call). */
#ifndef TEST_DATAPLANE_HANGS_H
#define TEST_DATAPLANE_HANGS_H

#include <stdbool.h>

extern unsigned calls;
extern bool hangs;

#endif
