/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: where a datagram goes. */
#include <errno.h>
#include <stdlib.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/device.h"
#include "lib/rnic/mr.h"

int rnic_ah_create(
	struct rnic_pd *pd, const struct ibv_ah_attr *attr, uint64_t now, struct rnic_ah **ah)
{
	struct rnic *rnic = pd->rnic;
	struct rnic_path path;
	struct rnic_ah *new;
	int err = path_of_attr(&path, rnic, attr->port_num - 1u, attr);

	if (err == 0)
		err = path_resolve(&path, rnic, now);
	if (err < 0)
		return err;
	new = calloc(1, sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	new->pd = pd;
	new->path = path;
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
