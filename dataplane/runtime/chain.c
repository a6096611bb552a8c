/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/chain.h"

static void returned(void *addr, void *opaque)
{
	struct worker_lent *lent = opaque;

	(void)addr;
	__atomic_fetch_add(&lent->returned, 1, __ATOMIC_RELEASE);
}

void chain_lend(struct worker *w, unsigned slot, const uint8_t *data, uint16_t len,
	struct rte_mbuf *payload)
{
	struct rte_mbuf_ext_shared_info *ref = payload->buf_addr;
	struct worker_lent *lent = &w->lent[slot];

	static_assert(sizeof(*ref) <= RTE_PKTMBUF_HEADROOM, "room in a head buffer");
	ref->free_cb = returned;
	ref->fcb_opaque = lent;
	rte_mbuf_ext_refcnt_set(ref, 1);
	payload->port = RTE_MBUF_PORT_INVALID; /* port_tx_lost: in no ring */
	rte_smp_wmb();
	__atomic_store_n(&lent->given, lent->given + 1, __ATOMIC_RELAXED);
	rte_pktmbuf_attach_extbuf(payload, (void *)(uintptr_t)data,
		w->arena_iova + (rte_iova_t)(data - w->arena.base), len, ref);
	payload->data_off = 0;
}
