/* SPDX-License-Identifier: BSD-3-Clause */
/* A probe that its sender source-routes through switches and back to itself (docs/map.md): an IPv6
 * header whose destination is the path, then this. Nobody else reads it, so that the layout is
 * ours: next header 253, "for experimentation" (RFC 3692). */
#ifndef WIRE_MAP_PROBE_H
#define WIRE_MAP_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/wire/bytes.h"

enum { MAP_PROBE_NEXT = 253, MAP_PROBE_LEN = 16, MAP_PROBE_MAGIC = 0x494d4150 };

struct map_probe {
	uint32_t agent;  /* who has sent it */
	uint32_t target; /* which of its paths */
	uint32_t seq;
};

static inline void map_probe_encode(const struct map_probe *p, uint8_t out[MAP_PROBE_LEN])
{
	put_be32(out, MAP_PROBE_MAGIC);
	put_be32(out + 4, p->agent);
	put_be32(out + 8, p->target);
	put_be32(out + 12, p->seq);
}

/* False: no probe. What lies behind it is ignored. */
static inline bool map_probe_decode(const uint8_t *in, size_t len, struct map_probe *p)
{
	if (len < MAP_PROBE_LEN || get_be32(in) != MAP_PROBE_MAGIC)
		return false;
	*p = (struct map_probe){get_be32(in + 4), get_be32(in + 8), get_be32(in + 12)};
	return true;
}

#endif
