/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: address resolution (neigh.c). */
#ifndef RNIC_NEIGH_H
#define RNIC_NEIGH_H

#include "lib/rnic/rnic.h"
#include "lib/rnic/timer.h"

enum { N_NEIGH = 1024 }; /* addresses that can be known at a time */

enum neigh_state { NEIGH_FREE, NEIGH_ASKING, NEIGH_KNOWN, NEIGH_STATIC, NEIGH_FAILED };

struct neigh {
	struct timer timer;
	struct wire_ip ip, src;
	uint8_t port;
	uint8_t mac[6];
	uint8_t state;
	uint8_t asked;
	uint64_t expires;
	uint32_t chain; /* next in its bucket + 1 */
};

int neigh_init(struct rnic *rnic);
/* rnic_resolve with the source address to ask from. */
int neigh_resolve(struct rnic *rnic, unsigned port, const struct wire_ip *src,
	const struct wire_ip *ip, uint8_t dmac[6], uint64_t now);
void neigh_timer(struct rnic *rnic, struct neigh *neigh, uint64_t now);
/* ARP, ND: learns and answers. 0 or the drop reason. */
unsigned neigh_rx(struct rnic *rnic, unsigned port, const struct wire_pkt *pkt,
	const uint8_t *frame, uint64_t now);

#endif
