/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of a port of a device, as entries of its table of GIDs. */
#ifndef CCL_GID_H
#define CCL_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/ip.h"

/* What the kernel says of entry `gid` (a file of gid_attrs), "" if the device is not the kernel's:
 * it has no sysfs entry. */
static inline const char *ccl_gid_attr(
	const struct ibv_device *dev, unsigned port, const char *what, unsigned gid, char text[32])
{
	char path[512];
	FILE *f;

	text[0] = '\0';
	snprintf(path, sizeof(path), "%s/ports/%u/gid_attrs/%s/%u", dev->ibdev_path, port, what,
		gid);
	f = fopen(path, "re");
	if (!f)
		return text;
	if (!fgets(text, 32, f))
		text[0] = '\0';
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* A kernel device lists each address once per RoCE version; only sysfs and ioctls know which is
 * which. Others speak version 2 alone. */
static inline bool ccl_gid_is_roce_v1(const struct ibv_device *dev, unsigned port, unsigned gid)
{
	char type[32];

	return strncmp(ccl_gid_attr(dev, port, "types", gid, type), "IB/RoCE v1", 10) == 0;
}

/* The address of entry i, false: there is none for RoCEv2. */
static inline bool ccl_gid_address(struct ibv_context *ctx, uint8_t port, int i, struct wire_ip *ip)
{
	union ibv_gid gid;

	if (ibv_query_gid(ctx, port, i, &gid))
		return false;
	memcpy(ip->b, gid.raw, sizeof(ip->b));
	return !wire_ip_is_zero(ip) && !ccl_gid_is_roce_v1(ctx->device, port, (unsigned)i);
}

static inline bool ccl_is_link_local(const struct wire_ip *ip)
{
	return ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80;
}

#endif
