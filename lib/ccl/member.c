/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/member.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "lib/ccl/gid.h"

static void set_group(struct group_req *req, const struct wire_ip *group)
{
	if (wire_ip_is4(group)) {
		struct sockaddr_in *in = (struct sockaddr_in *)&req->gr_group;

		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(wire_ip_to4(group));
	} else {
		struct sockaddr_in6 *in = (struct sockaddr_in6 *)&req->gr_group;

		in->sin6_family = AF_INET6;
		memcpy(in->sin6_addr.s6_addr, group->b, sizeof(group->b));
	}
}

int ccl_member_join(const struct ibv_device *device, unsigned port, unsigned gid,
	const struct wire_ip *group, int *fd)
{
	const bool ip4 = wire_ip_is4(group);
	struct group_req req = {0};
	char name[32];

	if (ccl_gid_attr(device, port, "ndevs", gid, name)[0] == '\0')
		return 0;
	req.gr_interface = if_nametoindex(name);
	if (req.gr_interface == 0)
		return errno;
	set_group(&req, group);
	if (*fd < 0)
		*fd = socket(ip4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return errno;
	return setsockopt(*fd, ip4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &req,
		       sizeof(req)) == 0
		       ? 0
		       : errno;
}
