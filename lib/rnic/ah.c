/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: where a datagram goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/device.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/neigh.h"
#include "lib/wire/multicast.h"

int rnic_ah_create(
	struct rnic_pd *pd, const struct ibv_ah_attr *attr, uint64_t now, struct rnic_ah **ah)
{
	struct rnic *rnic = pd->rnic;
	const struct ibv_global_route *grh = &attr->grh;
	const unsigned index = attr->port_num - 1u;
	const struct rnic_port *port = &rnic->port[index % RNIC_MAX_PORTS];
	struct wire_flow flow = {.tos = ect_tos(rnic->ect, grh->traffic_class),
		.ttl = grh->hop_limit > 1 ? grh->hop_limit : 64};
	struct rnic_ah *new;
	int err = 0;

	memcpy(flow.dst.b, grh->dgid.raw, sizeof(flow.dst.b));
	if (index >= rnic->n_ports || !attr->is_global || grh->sgid_index >= port->n_gid ||
		wire_ip_is_zero(&flow.dst))
		return -EINVAL;
	flow.src = port->gid[grh->sgid_index];
	if (wire_ip_is4(&flow.dst) != wire_ip_is4(&flow.src))
		return -EINVAL;
	memcpy(flow.smac, port->mac, sizeof(flow.smac));
	if (wire_is_multicast(&flow.dst))
		wire_multicast_mac(&flow.dst, flow.dmac);
	else
		err = neigh_resolve(rnic, index, &flow.src, &flow.dst, flow.dmac, now);
	if (err < 0)
		return err;
	new = calloc(1, sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	new->pd = pd;
	new->dest = (struct ud_dest){.flow = flow,
		.port = (uint8_t)index,
		.loopback = rnic_own_ip(rnic, index, &flow.dst) >= 0,
		.multicast = wire_is_multicast(&flow.dst)};
	LIST_INSERT_HEAD(&rnic->ahs, new, link);
	pd->users++;
	*ah = new;
	return 0;
}

int rnic_ah_destroy(struct rnic_ah *ah)
{
	LIST_REMOVE(ah, link);
	ah->pd->users--;
	free(ah);
	return 0;
}
