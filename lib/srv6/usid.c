/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/srv6/usid.h"

#include <errno.h>

unsigned srv6_path(const struct wire_ip *ip, uint16_t usids[SRV6_USIDS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < SRV6_USIDS; i++) {
		usids[i] = srv6_usid(ip, i);
		if (usids[i])
			n = i + 1;
	}
	return n;
}

int srv6_address(uint32_t block, const uint16_t *usids, unsigned n, struct wire_ip *ip)
{
	struct wire_ip made = {{0}};

	if (n == 0 || n > SRV6_USIDS)
		return -EINVAL;
	put_be32(made.b, block);
	for (unsigned i = 0; i < n; i++) {
		if (usids[i] == 0)
			return -EINVAL;
		srv6_usid_put(&made, i, usids[i]);
	}
	*ip = made;
	return 0;
}
