/* SPDX-License-Identifier: BSD-3-Clause */
/* To the port: what it does not take at once waits in its queues (dataplane/egress). */
#include "dataplane/runtime/tap.h"
#include "dataplane/runtime/worker.h"

unsigned worker_send(struct worker *w, struct lport *lp, struct rte_mbuf **mbufs, unsigned n,
	uint32_t bytes[WORKER_TX_BURST])
{
	unsigned sent = 0;

	if (unlikely(w->taps != NULL))
		taps_out(w, lp->port->id, mbufs, n);
	for (unsigned i = 0; i < n; i++)
		bytes[i] = mbufs[i]->pkt_len;
	if (lp->tx_lock != NULL)
		rte_spinlock_lock(lp->tx_lock);
	while (sent < n) {
		unsigned k = port_tx_burst(lp->port, mbufs + sent, n - sent);

		if (k == 0)
			break;
		sent += k;
	}
	if (lp->tx_lock != NULL)
		rte_spinlock_unlock(lp->tx_lock);
	if (unlikely(w->taps != NULL))
		taps_sent(w, lp->port->id, sent);
	for (unsigned i = 0; i < sent; i++)
		lp->tx_bytes += bytes[i];
	lp->tx_packets += sent;
	return sent;
}

/* xorshift64*, the upper half. */
static uint32_t draw(struct worker *w)
{
	w->rng ^= w->rng >> 12;
	w->rng ^= w->rng << 25;
	w->rng ^= w->rng >> 27;
	return (uint32_t)(w->rng * UINT64_C(0x2545f4914f6cdd1d) >> 32);
}

static void drop_stale(struct worker *w, struct lport *lp)
{
	struct rte_mbuf *m[WORKER_TX_BURST];
	unsigned n;

	do {
		n = egress_expired(&lp->egress, m, WORKER_TX_BURST, w->now);
		rte_pktmbuf_free_bulk(m, n);
		lp->tx_drops += n;
		w->drops[DROP_TX_STALE] += n;
	} while (n == WORKER_TX_BURST);
}

void worker_serve(struct worker *w, struct lport *lp)
{
	struct egress *e = &lp->egress;
	struct rte_mbuf *m[WORKER_TX_BURST];
	uint32_t bytes[WORKER_TX_BURST];
	unsigned n, sent;

	do {
		n = egress_next(e, m, WORKER_TX_BURST, w->now);
		if (n == 0)
			break;
		sent = worker_send(w, lp, m, n, bytes);
		egress_sent(e, bytes, sent, w->now);
		w->work += sent;
	} while (sent == n);
	drop_stale(w, lp);
	/* A port that stands still is asked as often as the loop turns anyway. */
	if (!e->stuck && egress_when(e) < w->tx_deadline)
		w->tx_deadline = egress_when(e);
}

void worker_wait(struct worker *w, struct lport *lp, unsigned first)
{
	for (unsigned i = first; i < lp->n_tx; i++) {
		if (likely(egress_put(&lp->egress, lp->tx[i], draw(w))))
			continue;
		rte_pktmbuf_free(lp->tx[i]);
		lp->tx_drops++;
		w->drops[DROP_TX_FULL]++;
	}
	worker_serve(w, lp);
}
