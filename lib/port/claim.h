/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process serves a UNIX socket of ports: the one that has its lock (lib/ctl/lock.h). For the
 * control thread. */
#ifndef PORT_CLAIM_H
#define PORT_CLAIM_H

#include "lib/port/port.h"

/* Makes this process the one that serves the socket: takes the lock of PATH.lock and removes a
 * socket that a killed process left behind. May be called again for the same path, by each port
 * that shares it. -EADDRINUSE "socket: another process (PID) serves PATH", with that one untouched,
 * or -errno with the reason in err. */
int port_socket_claim(const char *path, char err[PORT_ERR_LEN]);
/* As often as it was claimed; the last time removes the lock's file. */
void port_socket_release(const char *path);

#endif
