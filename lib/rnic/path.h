/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: paths (path.c). A path is how frames get from a port of the
 * device to a destination; whatever leaves in a frame of RoCE is built for one (device.h,
 * frame_build). A queue pair of one peer has its own, a datagram brings that of its address handle,
 * and a transport with several ports has one for each. */
#ifndef RNIC_PATH_H
#define RNIC_PATH_H

#include "lib/rnic/rnic.h"
#include "lib/wire/template.h"

struct rnic_path {
	struct wire_flow flow;
	/* Headers, made ready, of packets to one queue pair that are nothing but a payload of one
	 * size (path_prepare); NULL: of none. */
	const struct wire_template *full;
	uint8_t port;   /* of the device, from 0: the source is an address of its */
	bool loopback;  /* so is the destination: frames do not come out */
	bool multicast; /* the destination is a group */
};

/* Between an address of a port and another one, all but the UDP source port and, unless the
 * destination is a group, the next hop (flow.dmac). Packets have ECN bits as the device's
 * configuration says, and 64 hops. */
struct rnic_path path_between(const struct rnic *rnic, unsigned port, const struct wire_ip *src,
	const struct wire_ip *dst, uint8_t traffic_class);
/* The same as attributes have it. -EINVAL: no such port or GID, no destination, or of another
 * family than the source; path is unchanged. */
int path_of_attr(struct rnic_path *path, const struct rnic *rnic, unsigned port,
	const struct ibv_ah_attr *attr);
/* The same addresses from another port, whose next hop is another one. */
struct rnic_path path_by_port(const struct rnic_path *path, const struct rnic *rnic, unsigned port);

/* The next hop of a destination that the port reaches without a router: 0 or the errors of
 * rnic_resolve. */
int path_resolve(struct rnic_path *path, struct rnic *rnic, uint64_t now);

/* A complete path's packets to queue pair dqpn with pay_len bytes of payload, a multiple of 4, get
 * their headers from *full, which is kept as long as the path. */
void path_prepare(
	struct rnic_path *path, struct wire_template *full, uint32_t dqpn, size_t pay_len);

#endif
