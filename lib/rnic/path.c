/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/path.h"

#include <errno.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/neigh.h"
#include "lib/wire/multicast.h"

enum { DEFAULT_TTL = 64 };

/* ECN bits that packets of this traffic class carry. */
static uint8_t tos_of(const struct rnic *rnic, uint8_t traffic_class)
{
	return rnic->ect && (traffic_class & IP_ECN_MASK) == IP_ECN_NOT_ECT
		       ? traffic_class | IP_ECN_ECT0
		       : traffic_class;
}

struct rnic_path path_between(const struct rnic *rnic, unsigned port, const struct wire_ip *src,
	const struct wire_ip *dst, uint8_t traffic_class)
{
	struct rnic_path path = {.port = (uint8_t)port,
		.loopback = rnic_own_ip(rnic, port, dst) >= 0,
		.multicast = wire_is_multicast(dst),
		.flow = {.src = *src,
			.dst = *dst,
			.tos = tos_of(rnic, traffic_class),
			.ttl = DEFAULT_TTL}};

	memcpy(path.flow.smac, rnic->port[port].mac, sizeof(path.flow.smac));
	if (path.multicast)
		wire_multicast_mac(dst, path.flow.dmac);
	return path;
}

int path_of_attr(struct rnic_path *path, const struct rnic *rnic, unsigned port,
	const struct ibv_ah_attr *attr)
{
	const struct ibv_global_route *grh = &attr->grh;
	const struct wire_ip *src;
	struct wire_ip dst;

	memcpy(dst.b, grh->dgid.raw, sizeof(dst.b));
	if (port >= rnic->n_ports || !attr->is_global ||
		grh->sgid_index >= rnic->port[port].n_gid || wire_ip_is_zero(&dst))
		return -EINVAL;
	src = &rnic->port[port].gid[grh->sgid_index];
	if (wire_ip_is4(&dst) != wire_ip_is4(src))
		return -EINVAL;
	*path = path_between(rnic, port, src, &dst, grh->traffic_class);
	/* Programs say 1 (ibv_rc_pingpong does) and mean a subnet; Linux replaces it by the
	 * route's, too. */
	if (grh->hop_limit > 1)
		path->flow.ttl = grh->hop_limit;
	return 0;
}

struct rnic_path path_by_port(const struct rnic_path *path, const struct rnic *rnic, unsigned port)
{
	struct rnic_path other = *path;

	other.full = NULL;
	other.port = (uint8_t)port;
	memcpy(other.flow.smac, rnic->port[port].mac, sizeof(other.flow.smac));
	return other;
}

int path_resolve(struct rnic_path *path, struct rnic *rnic, uint64_t now)
{
	struct wire_flow *flow = &path->flow;

	return path->multicast
		       ? 0
		       : neigh_resolve(rnic, path->port, &flow->src, &flow->dst, flow->dmac, now);
}

void path_prepare(struct rnic_path *path, struct wire_template *full, uint32_t dqpn, size_t pay_len)
{
	const struct wire_hdr hdr = {.opcode = ROCE_SEND_MIDDLE, .dqpn = dqpn};

	path->full = wire_template_init(full, &path->flow, &hdr, pay_len) == 0 ? full : NULL;
}
