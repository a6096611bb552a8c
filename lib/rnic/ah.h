/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: where datagrams go (ah.c, ud.c). */
#ifndef RNIC_AH_H
#define RNIC_AH_H

#include <sys/queue.h>

#include "lib/rnic/path.h"

/* What a datagram's send request has besides: behind its scatter list. */
struct ud_dest {
	struct rnic_path path;
	uint32_t qpn, qkey;
};

struct rnic_ah {
	LIST_ENTRY(rnic_ah) link;
	struct rnic_pd *pd;
	struct rnic_path path; /* without the source port, which is a queue pair's */
};

/* UDP source port of a QP's datagrams, as Soft-RoCE: Knuth's multiplicative hash. */
static inline uint16_t ud_source_port(uint32_t qpn)
{
	return (uint16_t)(0xc000 | qpn * UINT32_C(0x61c88647) >> 18);
}

#endif
