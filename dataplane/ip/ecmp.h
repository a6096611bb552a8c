/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of a route's next hops a packet takes: by a hash of its flow, so that packets of one flow
 * stay in order. A flow is what RFC 6438 says, and the ports where they are seen: so RoCE's UDP
 * source port and an IPv6 flow label each choose a path. Fragments go by their addresses.
 *
 * Each next hop draws for each flow, and the highest number has it (Thaler and Ravishankar's
 * highest random weight, which RFC 2991 recommends): a next hop that goes takes no flow but its own
 * with it, and has just these again when it comes back. */
#ifndef DATAPLANE_IP_ECMP_H
#define DATAPLANE_IP_ECMP_H

#include <rte_hash_crc.h>

#include "dataplane/fwd.h"
#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"

/* The last step of MurmurHash3. CRCs of two seeds differ by a constant: without it switches behind
 * one another would all choose alike. */
static inline uint32_t ecmp_mix(uint32_t h)
{
	h = (h ^ h >> 16) * 0x85ebca6bu;
	h = (h ^ h >> 13) * 0xc2b2ae35u;
	return h ^ h >> 16;
}

/* l3: the packet's IP header. */
static inline uint32_t ecmp_hash(const struct wire_pkt *pkt, const uint8_t *l3, uint32_t seed)
{
	const uint32_t label = pkt->ip_ver == 6 ? get_be32(l3) & 0xfffff : 0;
	uint32_t h = rte_hash_crc(pkt->src.b, sizeof(pkt->src.b), 0);

	h = rte_hash_crc(pkt->dst.b, sizeof(pkt->dst.b), h);
	h = rte_hash_crc_8byte((uint64_t)label << 40 | (uint64_t)pkt->ip_proto << 32 |
				       (uint32_t)pkt->sport << 16 | pkt->dport,
		h);
	return ecmp_mix(h ^ seed);
}

/* The adjacency that a flow of this hash takes. */
static inline uint16_t ecmp_choose(const struct fwd_ecmp *e, uint32_t hash)
{
	uint32_t best = ecmp_mix(hash ^ e->key[0]);
	uint16_t adj = e->adj[0];

	for (unsigned i = 1; i < e->n; i++) {
		const uint32_t draw = ecmp_mix(hash ^ e->key[i]);

		if (draw > best) {
			best = draw;
			adj = e->adj[i];
		}
	}
	return adj;
}

/* The neighbour's adjacency that the packet's flow takes, of an adjacency of kind ECMP. l3: its IP
 * header. */
static inline uint16_t ecmp_adj(
	const struct fwd *fwd, const struct adj *adj, const struct wire_pkt *pkt, const uint8_t *l3)
{
	return ecmp_choose(&fwd->ecmp[adj->at], ecmp_hash(pkt, l3, fwd->ecmp_seed));
}

#endif
