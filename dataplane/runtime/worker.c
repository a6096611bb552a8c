/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/worker.h"

#include <rte_ether.h>
#include <rte_graph_worker.h>
#include <string.h>

#include "dataplane/runtime/tap.h"
#include "dataplane/switch_rnic.h"
#include "lib/port/iface.h"

/* Bad weather: what is left of the queue. */
static void lose_some(struct worker *w, struct lport *lp)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < lp->n_tx; i++)
		if (impair_loses(lp->impair)) {
			rte_pktmbuf_free(lp->tx[i]);
			w->drops[DROP_IMPAIR_LOSS]++;
		} else {
			lp->tx[kept++] = lp->tx[i];
		}
	lp->n_tx = (uint16_t)kept;
}

/* What the kernel would lose without a word. */
static enum drop unsendable(const struct lport *lp, const struct rte_mbuf *m)
{
	unsigned l2 = RTE_ETHER_HDR_LEN;

	if (!atomic_load_explicit(&lp->port->iface->up, memory_order_relaxed))
		return DROP_TX_LINK_DOWN;
	if (rte_pktmbuf_mtod(m, const struct rte_ether_hdr *)->ether_type ==
		rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))
		l2 += RTE_VLAN_HLEN;
	return m->pkt_len > l2 + port_mtu(lp->port) ? DROP_TX_MTU : DROP_NONE;
}

static void drop_unsendable(struct worker *w, struct lport *lp)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < lp->n_tx; i++) {
		enum drop why = unsendable(lp, lp->tx[i]);

		if (why == DROP_NONE) {
			lp->tx[kept++] = lp->tx[i];
			continue;
		}
		rte_pktmbuf_free(lp->tx[i]);
		w->drops[why]++;
		lp->tx_drops++;
	}
	lp->n_tx = (uint16_t)kept;
}

void worker_flush(struct worker *w, struct lport *lp)
{
	uint64_t start = rte_rdtsc();
	uint32_t bytes[WORKER_TX_BURST];
	unsigned n, sent = 0;

	if (unlikely(lp->impair != NULL))
		lose_some(w, lp);
	if (unlikely(lp->port->iface != NULL))
		drop_unsendable(w, lp);
	n = lp->n_tx;
	if (likely(egress_straight(&lp->egress)))
		sent = worker_send(w, lp, lp->tx, n, bytes);
	if (unlikely(sent < n))
		worker_wait(w, lp, sent);
	lp->n_tx = 0;
	w->flush_calls++;
	w->flush_packets += n;
	w->flush_cycles += rte_rdtsc() - start;
}

/* The end of a turn: everything that can go goes. */
static void flush_all(struct worker *w)
{
	w->tx_deadline = UINT64_MAX;
	for (unsigned i = 0; i < w->n_ports; i++) {
		struct lport *lp = &w->port[w->port_id[i]];

		if (lp->n_tx > 0)
			worker_flush(w, lp);
		else if (unlikely(!egress_straight(&lp->egress)))
			worker_serve(w, lp);
	}
}

void worker_note_mac(
	struct worker *w, uint16_t port, const struct wire_ip *ip, const uint8_t mac[6])
{
	const struct adj *adj = fwd_lookup(w->fwd, ip);
	unsigned n = atomic_load_explicit(&w->n_seen, memory_order_relaxed);
	struct worker_seen *s;

	if (!fwd_is_neigh(w->fwd, adj, ip) || adj->learnt || adj->port != port ||
		memcmp(adj->dmac, mac, sizeof(adj->dmac)) == 0)
		return;
	w->port[port].mac_mismatch++;
	for (unsigned i = 0; i < n; i++)
		if (wire_ip_eq(&w->seen[i].ip, ip) && memcmp(w->seen[i].mac, mac, 6) == 0)
			return;
	if (n == WORKER_MAX_SEEN) {
		w->port[port].mac_unlisted++;
		return;
	}
	s = &w->seen[n];
	*s = (struct worker_seen){.ip = *ip, .port = port};
	memcpy(s->mac, mac, sizeof(s->mac));
	atomic_store_explicit(&w->n_seen, n + 1, memory_order_release);
}

static void reap(struct worker *w)
{
	atomic_store_explicit(&w->reap, false, memory_order_relaxed);
	for (unsigned i = 0; i < w->n_rx; i++) {
		const struct lport *lp = &w->port[w->rx_id[i]];

		if (lp->tx_lock != NULL)
			rte_spinlock_lock(lp->tx_lock);
		port_tx_reap(lp->port);
		port_tx_lost(lp->port, w->head_pool);
		if (lp->tx_lock != NULL)
			rte_spinlock_unlock(lp->tx_lock);
	}
}

void worker_timers_init(struct worker *w)
{
	w->timers = (struct timers){.slot = w->timer_slot};
	w->timer_ns = UINT64_MAX;
	for (unsigned i = 0; i < INC_GROUP_SLOTS; i++)
		w->group_timer[i] = (struct timer){.at = UINT64_MAX};
}

static void count_cycles(struct worker *w)
{
	const uint64_t end = rte_rdtsc();

	*(w->work ? &w->busy_cycles : &w->idle_cycles) += end - w->turn_end;
	w->turn_end = end;
}

void worker_turn(struct worker *w, uint64_t now)
{
	const struct published *p = atomic_load_explicit(w->published, memory_order_acquire);

	w->now = now;
	w->fwd = p->fwd;
	w->mcast = p->mcast;
	w->acl = p->acl;
	w->clt = atomic_load_explicit(w->shared_clt, memory_order_acquire);
	w->n_meta = 0;
	w->work = 0;
	w->tracing = false;
	rte_graph_walk(w->graph);
	if (unlikely(w->now >= w->timer_ns))
		worker_timers(w);
	w->rnic_deadline = w->rnic != NULL ? rnic_turn(w) : UINT64_MAX;
	flush_all(w);
	if (unlikely(atomic_load_explicit(&w->reap, memory_order_relaxed)))
		reap(w);
	if (unlikely(w->taps != NULL))
		taps_show(w);
	mailbox_take(&w->mailbox, w);
	w->turns++;
	w->idle_turns += w->work == 0;
	count_cycles(w);
}

int worker_main(void *arg)
{
	struct worker *w = arg;
	struct port_backoff backoff = {.idle = w->idle};

	w->turn_end = rte_rdtsc();
	rte_rcu_qsbr_thread_online(w->rcu, w->index);
	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		worker_turn(w, port_now_ns());
		rte_rcu_qsbr_quiescent(w->rcu, w->index);
		port_backoff(&backoff, w->work, w->now,
			RTE_MIN(RTE_MIN(w->timer_ns, w->rnic_deadline), w->tx_deadline));
	}
	rte_rcu_qsbr_thread_offline(w->rcu, w->index);
	return 0;
}
