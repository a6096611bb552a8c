/* SPDX-License-Identifier: BSD-3-Clause */
/* Retransmission in Mode-III (docs/inc-protocol.md, 4.5): the timer of an endpoint that something
 * was sent to has run out. */
#include "dataplane/inc/modules.h"

/* Ten seconds without a word: a NIC in software may be silent as long as its program computes. */
enum { MAX_SHIFT = 6, MAX_RETRIES = 160 };
enum { SR_MAX_SHIFT = 15, SR_PROBE = 16 };

/* The peer was silent, or its RNR wait is over: go back to the first PSN it may lack. */
void inc_timer_expired(struct inc_ctx *c, unsigned i)
{
	struct inc_ep *ep = inc_ep_at(c->g, i);
	bool selective = c->g->flags & INC_F_SR;

	if (!ep->rnr_wait) {
		inc_count(c->g, INC_C_TIMEOUTS);
		ep->rto_shift += ep->rto_shift < (selective ? SR_MAX_SHIFT : MAX_SHIFT);
		if (++ep->retries >= MAX_RETRIES) {
			inc_group_fail(c->g, INC_FAIL_RETRY_EXHAUSTED, i);
			return;
		}
		ep->tx_next = inc_adjust(c->g, INC_FLOW_TX, i, ep->tx_una);
		if (selective)
			inc_sr_lose(c->g, i, SR_PROBE);
	}
	ep->rnr_wait = 0;
	inc_timer_restart(c, i);
	inc_pump(c, 1ULL << i);
	inc_ack_flush(c);
}
