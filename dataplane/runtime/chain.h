/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets whose payload is sent as it lies: header | payload | trailer, three buffers. Their
 * buffers come from the pool all at once, and are not reset but for what a segment needs. */
#ifndef DATAPLANE_CHAIN_H
#define DATAPLANE_CHAIN_H

#include "dataplane/runtime/worker.h"

/* Payload above this size is sent as it lies, in a segment of its own between header and trailer;
 * up to it, copying into one buffer is cheaper than three buffers. Sending over memif, per packet:
 *	payload		256	1024	4096 bytes
 *	copied		175 ns	303 ns	529 ns
 *	three segments	168 ns	298 ns	435 ns		(best of three, the machine was not idle) */
enum { CHAIN_ABOVE = 512 };

enum { CHAIN_SEGS = 3, CHAIN_STOCK = 16 };

struct chain {
	struct rte_mbuf *head, *payload, *tail;
};

/* Buffers for the next packets of those that are to have the same payload. n is 0 at first. */
struct chain_stock {
	unsigned n;
	struct rte_mbuf *m[CHAIN_STOCK * CHAIN_SEGS];
};

/* Buffers for one of `wanted` packets that are still to be made, linked to each other, without data
 * yet. False: there are none left. */
static inline bool chain_take(
	struct worker *w, struct chain_stock *s, unsigned wanted, struct chain *c)
{
	if (s->n == 0) {
		const unsigned n = RTE_MIN(wanted, (unsigned)CHAIN_STOCK) * CHAIN_SEGS;

		if (likely(rte_mempool_get_bulk(w->head_pool, (void **)s->m, n) == 0))
			s->n = n;
		else if (rte_mempool_get_bulk(w->head_pool, (void **)s->m, CHAIN_SEGS) == 0)
			s->n = CHAIN_SEGS;
		else
			return false;
	}
	s->n -= CHAIN_SEGS;
	*c = (struct chain){s->m[s->n], s->m[s->n + 1], s->m[s->n + 2]};
	rte_pktmbuf_reset(c->head);
	c->payload->ol_flags = c->tail->ol_flags = 0;
	rte_pktmbuf_reset_headroom(c->tail);
	return true;
}

/* What was taken for packets that were not made after all. */
static inline void chain_done(struct worker *w, struct chain_stock *s)
{
	if (unlikely(s->n > 0))
		rte_mempool_put_bulk(w->head_pool, (void *const *)s->m, s->n);
}

/* Makes the payload refer to len bytes in the arena, of the group or ring in this slot: its memory
 * waits for their return (sw_host_is_read). */
void chain_lend(struct worker *w, unsigned slot, const uint8_t *data, uint16_t len,
	struct rte_mbuf *payload);

/* The lengths of the parts are known: makes one packet of them. */
static inline struct rte_mbuf *chain_link(
	const struct chain *c, unsigned head_len, uint16_t pay_len, unsigned tail_len)
{
	c->head->data_len = (uint16_t)head_len;
	c->payload->data_len = pay_len;
	c->tail->data_len = (uint16_t)tail_len;
	c->head->pkt_len = head_len + pay_len + tail_len;
	c->head->nb_segs = CHAIN_SEGS;
	c->head->next = c->payload;
	c->payload->next = c->tail;
	return c->head;
}

#endif
