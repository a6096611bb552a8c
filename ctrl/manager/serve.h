/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager with its sockets: it listens for ranks and operators, and keeps a connection to every
 * switch's control socket. It dials them: switches listen anyway and need not know of a manager,
 * and one that starts anew finds all of them at once. */
#ifndef MANAGER_SERVE_H
#define MANAGER_SERVE_H

#include <jansson.h>
#include <signal.h>

#include "ctrl/manager/manager.h"

/* What manager_run would refuse of a configuration that has passed ctl_manager_config, but for what
 * only the attempt shows (a port that is in use). Looks host names up. 0, or -errno with a reason
 * in err. */
int manager_check(const json_t *config, char err[MANAGER_ERR_LEN]);

/* How long it waits. */
struct manager_times {
	unsigned lease_s;     /* of who leads, from etcd's last answer */
	unsigned etcd_ms;     /* for one answer of a member of etcd */
	unsigned campaign_ms; /* until who waits looks again who leads */
	unsigned hung_ms;     /* who listens at our socket and does not answer for so long hangs */
	unsigned line_ms, stall_ms, idle_ms; /* of clients: lib/ctl/server.h */
};
extern const struct manager_times manager_times; /* what docs/manager.md says */

/* config: checked by ctl_manager_config. Until *stop is set; when *again is (NULL: never),
 * certificates are read anew, and it is zero again before. ready is called when it listens (tcp:
 * where, or NULL). One that waits for the leadership says itself to the service manager that it is
 * ready, and waits, and lives. 0, or -errno after a line on stderr. */
int manager_run(const json_t *config, volatile sig_atomic_t *stop, volatile sig_atomic_t *again,
	void (*ready)(const char *socket_path, const char *tcp), const struct manager_times *times);

/* Who has been elected listens where whoever led before did: if that one hangs, his socket is in
 * the way. Who answers there keeps it; who closes, or has the socket's lock and does not listen, is
 * about to end by himself; whose queue is full may be about to take it up. */
void manager_push_aside(const char *path, unsigned hung_ms);

#endif
