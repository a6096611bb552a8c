/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/lcore.h"

#include <rte_ether.h>
#include <rte_graph_worker.h>
#include <string.h>

#include "dataplane/switch_rnic.h"
#include "lib/port/iface.h"

/* Bad weather: what is left of the queue. */
static void lose_some(struct lcore *lc, struct lport *lp)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < lp->n_tx; i++)
		if (impair_loses(lp->impair)) {
			rte_pktmbuf_free(lp->tx[i]);
			lc->drops[DROP_IMPAIR_LOSS]++;
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

static void drop_unsendable(struct lcore *lc, struct lport *lp)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < lp->n_tx; i++) {
		enum drop why = unsendable(lp, lp->tx[i]);

		if (why == DROP_NONE) {
			lp->tx[kept++] = lp->tx[i];
			continue;
		}
		rte_pktmbuf_free(lp->tx[i]);
		lc->drops[why]++;
		lp->tx_drops++;
	}
	lp->n_tx = (uint16_t)kept;
}

void lcore_flush(struct lcore *lc, struct lport *lp)
{
	uint64_t start = rte_rdtsc();
	unsigned n, sent = 0;
	uint64_t bytes[LCORE_TX_BURST];

	if (unlikely(lp->impair != NULL))
		lose_some(lc, lp);
	if (unlikely(lp->port->iface != NULL))
		drop_unsendable(lc, lp);
	n = lp->n_tx;
	for (unsigned i = 0; i < n; i++)
		bytes[i] = lp->tx[i]->pkt_len;
	while (sent < n) {
		unsigned k = port_tx_burst(lp->port, lp->tx + sent, n - sent);

		if (k == 0)
			break;
		sent += k;
	}
	for (unsigned i = 0; i < sent; i++)
		lp->tx_bytes += bytes[i];
	lp->tx_packets += sent;
	if (unlikely(sent < n)) {
		rte_pktmbuf_free_bulk(lp->tx + sent, n - sent);
		lp->tx_drops += n - sent;
		lc->drops[DROP_TX_FULL] += n - sent;
	}
	lp->n_tx = 0;
	lc->flush_calls++;
	lc->flush_packets += n;
	lc->flush_cycles += rte_rdtsc() - start;
}

void lcore_note_mac(struct lcore *lc, uint16_t port, const struct wire_ip *ip, const uint8_t mac[6])
{
	const struct adj *adj = fwd_lookup(lc->fwd, ip);
	unsigned n = atomic_load_explicit(&lc->n_seen, memory_order_relaxed);
	struct lcore_seen *s;

	if (!fwd_is_neigh(lc->fwd, adj, ip) || adj->port != port ||
		memcmp(adj->dmac, mac, sizeof(adj->dmac)) == 0)
		return;
	lc->port[port].mac_mismatch++;
	for (unsigned i = 0; i < n; i++)
		if (wire_ip_eq(&lc->seen[i].ip, ip) && memcmp(lc->seen[i].mac, mac, 6) == 0)
			return;
	if (n == LCORE_MAX_SEEN) {
		lc->port[port].mac_unlisted++;
		return;
	}
	s = &lc->seen[n];
	*s = (struct lcore_seen){.ip = *ip, .port = port};
	memcpy(s->mac, mac, sizeof(s->mac));
	atomic_store_explicit(&lc->n_seen, n + 1, memory_order_release);
}

static void reap(struct lcore *lc)
{
	atomic_store_explicit(&lc->reap, false, memory_order_relaxed);
	for (unsigned i = 0; i < lc->n_ports; i++)
		port_tx_reap(lc->port[lc->port_id[i]].port);
}

void lcore_timers_init(struct lcore *lc)
{
	lc->timers = (struct timers){.slot = lc->timer_slot};
	lc->timer_ns = UINT64_MAX;
	for (unsigned i = 0; i < INC_GROUP_SLOTS; i++)
		lc->group_timer[i] = (struct timer){.at = UINT64_MAX};
}

void lcore_turn(struct lcore *lc)
{
	lc->now = port_now_ns();
	lc->fwd = atomic_load_explicit(lc->shared_fwd, memory_order_acquire);
	lc->clt = atomic_load_explicit(lc->shared_clt, memory_order_acquire);
	lc->n_meta = 0;
	lc->work = 0;
	lc->tracing = false;
	rte_graph_walk(lc->graph);
	if (unlikely(lc->now >= lc->timer_ns))
		lcore_timers(lc);
	lc->rnic_deadline = rnic_turn(lc);
	for (unsigned i = 0; i < lc->n_ports; i++)
		if (lc->port[lc->port_id[i]].n_tx > 0)
			lcore_flush(lc, &lc->port[lc->port_id[i]]);
	if (unlikely(atomic_load_explicit(&lc->reap, memory_order_relaxed)))
		reap(lc);
	lc->turns++;
	lc->idle_turns += lc->work == 0;
}

int lcore_main(void *arg)
{
	struct lcore *lc = arg;
	struct port_backoff backoff = {.idle = lc->idle};

	rte_rcu_qsbr_thread_online(lc->rcu, lc->rcu_id);
	while (!atomic_load_explicit(&lc->stop, memory_order_relaxed)) {
		lcore_turn(lc);
		rte_rcu_qsbr_quiescent(lc->rcu, lc->rcu_id);
		port_backoff(&backoff, lc->work, lc->now, RTE_MIN(lc->timer_ns, lc->rnic_deadline));
	}
	rte_rcu_qsbr_thread_offline(lc->rcu, lc->rcu_id);
	return 0;
}
