/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program tells the service manager that has started it (sd_notify(3)): that it is ready,
 * that it reloads, that it lives. Without NOTIFY_SOCKET all of it does nothing. One thread. */
#ifndef CTL_NOTIFY_H
#define CTL_NOTIFY_H

#include <stdint.h>

/* "READY=1" and the like, in one datagram; if it cannot be sent a line on stderr says so, after the
 * program's name. */
void ctl_notify(const char *program, const char *state);

/* How often "WATCHDOG=1" is due, half of WATCHDOG_USEC; 0: nobody waits for it (it is not set, is
 * no number above 1, or WATCHDOG_PID is another process). Nanoseconds. */
uint64_t ctl_watchdog_ns(void);

#endif
