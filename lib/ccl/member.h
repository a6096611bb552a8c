/* SPDX-License-Identifier: BSD-3-Clause */
/* This machine's kernel as a member of multicast groups. RoCEv2 of a device of the kernel goes
 * through its IP stack: a group's packets are dropped there unless a socket has joined it, and it
 * is such a socket's group that the kernel reports to the switches (IGMP, MLD). Attaching a queue
 * pair does neither. */
#ifndef CCL_MEMBER_H
#define CCL_MEMBER_H

#include <infiniband/verbs.h>

#include "lib/wire/ip.h"

/* By the interface that entry `gid` of the port is an address of; of a device that is not the
 * kernel's, nothing happens. *fd: the socket of this and earlier memberships, -1: none yet; they
 * end when it is closed. 0 or a positive errno. */
int ccl_member_join(const struct ibv_device *device, unsigned port, unsigned gid,
	const struct wire_ip *group, int *fd);

#endif
