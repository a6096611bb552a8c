/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process serves a UNIX socket, or has any other thing that a file stands for: the one that
 * has the lock (flock). It goes with the process, however that ends, and asking for it does not
 * disturb who has it, as a connection would. For the control thread. */
#ifndef PORT_CLAIM_H
#define PORT_CLAIM_H

#include <sys/types.h>

#include "lib/port/port.h"

/* The process that has the flock of this file, or 0 if there is none or it cannot be told. */
pid_t port_flock_owner(const char *file);

/* Makes this process the one that serves the socket: takes the lock of PATH.lock and removes a
 * socket that a killed process left behind. May be called again for the same path, by each port
 * that shares it. -EADDRINUSE "socket: another process (PID) serves PATH", with that one untouched,
 * or -errno with the reason in err. */
int port_socket_claim(const char *path, char err[PORT_ERR_LEN]);
/* As often as it was claimed; the last time removes the lock's file. */
void port_socket_release(const char *path);

#endif
