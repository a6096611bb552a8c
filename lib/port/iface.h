/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's interface below an af_packet port, watched: the driver does not look at it, and what
 * it sends by one that is down, gone or of a smaller MTU is lost without a word. One thread for all
 * of a process hears from the kernel (rtnetlink). An interface that is removed stays gone, also if
 * one of the same name comes. */
#ifndef PORT_IFACE_H
#define PORT_IFACE_H

#include <stdatomic.h>

#include "lib/port/port.h"

struct port_iface {
	atomic_bool up;  /* it is there, up, and has a carrier */
	atomic_uint mtu; /* the last that was heard */
	/* of the watcher */
	struct port_iface *next;
	unsigned index;
	int events, ask; /* sockets, of the interface's network namespace */
};

/* The state is known when this returns. -errno with the reason in err. */
int port_iface_open(const char *name, struct port_iface **iface, char err[PORT_ERR_LEN]);
void port_iface_close(struct port_iface *iface); /* NULL: nothing to do */

#endif
