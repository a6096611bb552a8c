/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts that survive the peer of a memif. When the peer goes away, the driver unmaps the shared
 * rings on the EAL's interrupt thread, whether or not another thread is in the middle of a burst on
 * them: with the peer killed under load that is a crash within a few attempts. The driver does mark
 * the port as disconnected before, and looks at that mark when a burst begins. So it is enough to
 * hold the unmapping back until the bursts that have begun are over.
 *
 * When a peer comes, a burst may have looked up the rings before they are mapped and the mark
 * after: it then reads from a wrong address. So none begins unless the link is up, which the driver
 * says last of all when it connects, and takes back first.
 *
 * The driver offers no hook: its calls of munmap, and nobody else's, are led here (hook.c), and
 * wait on the interrupt thread only; those of mmap as well, for what clients offer is guarded
 * (guard.c). Threads say that they are in a burst with plain stores;
 * membarrier() orders them, so that the burst itself needs no fence. */
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/port/iface.h"
#include "lib/port/internal.h"

enum { MAX_THREADS = 256, WAIT_STEP_US = 20, WAIT_MAX_US = 1000000 };

static struct slot {
	_Alignas(RTE_CACHE_LINE_SIZE) atomic_uint bursts; /* odd: in one */
	atomic_bool taken;
} slots[MAX_THREADS];
static atomic_uint slotless; /* threads without a slot that are in a burst */
static __thread struct slot *own;
static pthread_key_t key;
static bool have_key;

void port_bursts_init(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

/* When a thread ends. */
static void give_back(void *slot)
{
	own = NULL;
	atomic_store(&((struct slot *)slot)->taken, false);
}

static void make_key(void)
{
	have_key = pthread_key_create(&key, give_back) == 0;
}

/* One that no living thread has, or NULL. */
static struct slot *take_slot(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_key);
	for (unsigned i = 0; have_key && i < MAX_THREADS; i++) {
		bool no = false;

		if (!atomic_compare_exchange_strong(&slots[i].taken, &no, true))
			continue;
		if (pthread_setspecific(key, &slots[i]) == 0)
			return &slots[i];
		atomic_store(&slots[i].taken, false);
		break;
	}
	return NULL;
}

static void step(struct slot *s, memory_order order)
{
	atomic_store_explicit(
		&s->bursts, atomic_load_explicit(&s->bursts, memory_order_relaxed) + 1, order);
	atomic_signal_fence(memory_order_seq_cst);
}

void port_burst_begin(void)
{
	if (own == NULL)
		own = take_slot();
	if (own != NULL)
		step(own, memory_order_relaxed);
	else
		atomic_fetch_add(&slotless, 1);
}

void port_burst_end(void)
{
	if (own != NULL)
		step(own, memory_order_release);
	else
		atomic_fetch_sub(&slotless, 1);
}

unsigned port_bursts_under_way(void)
{
	unsigned n = atomic_load(&slotless);

	for (unsigned i = 0; i < MAX_THREADS; i++)
		n += atomic_load(&slots[i].bursts) & 1;
	return n;
}

unsigned port_burst_slots(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MAX_THREADS; i++)
		n += atomic_load(&slots[i].taken);
	return n;
}

/* Of whoever is in a burst, or between a begin and an end. */
static bool link_is_up(const struct port *port)
{
	struct rte_eth_link link;

	return atomic_load_explicit(&port->away, memory_order_acquire) == PORT_HERE &&
	       rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

bool port_link_up(const struct port *port)
{
	bool up;

	if (port->iface != NULL)
		return atomic_load(&port->iface->up);
	if (!port->shared_rings)
		return link_is_up(port);
	port_burst_begin();
	up = link_is_up(port);
	port_burst_end();
	return up;
}

unsigned port_mbps(const struct port *port)
{
	struct rte_eth_link link = {0};
	unsigned mbps = 0;

	if (strcmp(port->config.type, "pci") != 0)
		return 0;
	port_burst_begin();
	if (link_is_up(port) && rte_eth_link_get_nowait(port->id, &link) == 0 &&
		link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		mbps = link.link_speed;
	port_burst_end();
	return mbps;
}

int port_driver_stats(const struct port *port, struct rte_eth_stats *stats)
{
	int rc = -EAGAIN;

	memset(stats, 0, sizeof(*stats));
	port_burst_begin();
	if (atomic_load_explicit(&port->away, memory_order_acquire) == PORT_HERE)
		rc = rte_eth_stats_get(port->id, stats);
	port_burst_end();
	return rc;
}

unsigned port_rx_burst(const struct port *port, struct rte_mbuf **mbufs, unsigned n)
{
	if (!port->shared_rings)
		return rte_eth_rx_burst(port->id, 0, mbufs, (uint16_t)n);
	port_burst_begin();
	n = link_is_up(port) ? rte_eth_rx_burst(port->id, 0, mbufs, (uint16_t)n) : 0;
	port_burst_end();
	return n;
}

/* Of a zero-copy memif the driver looks once in four packets whether there are places in the ring
 * for four more, of one segment each. With more segments it goes on in a full ring: over what the
 * peer has not read yet, whose buffers are lost and others given back in their place. Of four
 * packets and less it looks before each. (DPDK 22.11, and still in 2025.) */
enum { ZERO_COPY_BURST = 4 };

static bool in_segments(struct rte_mbuf *const *mbufs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (mbufs[i]->nb_segs > 1)
			return true;
	return false;
}

/* Ports with buffers that are marked. Of the thread that sends. */
static bool marked[RTE_MAX_ETHPORTS];

/* Whose ring the buffers are in: see port_tx_lost. The driver frees none before it sends again. */
static void mark(const struct port *port, struct rte_mbuf **mbufs, unsigned n)
{
	marked[port->id] = true;
	for (unsigned i = 0; i < n; i++)
		for (struct rte_mbuf *m = mbufs[i]; m != NULL; m = m->next)
			m->port = port->id;
}

static unsigned tx(const struct port *port, struct rte_mbuf **mbufs, unsigned n)
{
	unsigned sent = 0, k, want;

	if (!port->config.zero_copy || !in_segments(mbufs, n))
		return rte_eth_tx_burst(port->id, 0, mbufs, (uint16_t)n);
	do {
		want = RTE_MIN(n - sent, (unsigned)ZERO_COPY_BURST);
		k = rte_eth_tx_burst(port->id, 0, mbufs + sent, (uint16_t)want);
		mark(port, mbufs + sent, k);
		sent += k;
	} while (k == want && sent < n);
	return sent;
}

unsigned port_tx_burst(const struct port *port, struct rte_mbuf **mbufs, unsigned n)
{
	if (unlikely(port->iface != NULL && !atomic_load(&port->iface->up)))
		return 0;
	if (!port->shared_rings)
		return rte_eth_tx_burst(port->id, 0, mbufs, (uint16_t)n);
	port_burst_begin();
	n = link_is_up(port) ? tx(port, mbufs, n) : 0;
	port_burst_end();
	return n;
}

static void reap(const struct port *port)
{
	if (rte_eth_tx_done_cleanup(port->id, 0, 0) < 0)
		rte_eth_tx_burst(port->id, 0, NULL, 0);
}

void port_tx_reap(const struct port *port)
{
	if (!port->shared_rings) {
		reap(port);
		return;
	}
	port_burst_begin();
	if (link_is_up(port))
		reap(port);
	port_burst_end();
}

static void free_lost(struct rte_mempool *pool, void *arg, void *object, unsigned i)
{
	const struct port *port = arg;
	struct rte_mbuf *m = object;

	(void)pool, (void)i;
	if (!RTE_MBUF_HAS_EXTBUF(m))
		return;
	rte_smp_rmb(); /* who lends says first that it is in no ring */
	if (m->port != port->id)
		return;
	m->port = RTE_MBUF_PORT_INVALID;
	rte_pktmbuf_free_seg(m);
}

void port_tx_lost(const struct port *port, struct rte_mempool *pool)
{
	if (!port->shared_rings || !marked[port->id])
		return;
	port_burst_begin();
	if (atomic_load_explicit(&port->away, memory_order_acquire) != PORT_AWAY &&
		(port->again.lossy || (port->config.zero_copy && !link_is_up(port)))) {
		rte_mempool_obj_iter(pool, free_lost, (void *)(uintptr_t)port);
		marked[port->id] = false;
	}
	port_burst_end();
}

static void wait_a_bit(unsigned *waited)
{
	usleep(WAIT_STEP_US);
	*waited += WAIT_STEP_US;
}

bool port_bursts_wait(void)
{
	unsigned waited = 0;

	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (unsigned i = 0; i < MAX_THREADS; i++) {
		unsigned begun = atomic_load_explicit(&slots[i].bursts, memory_order_acquire);

		while ((begun & 1) && waited < WAIT_MAX_US &&
			atomic_load_explicit(&slots[i].bursts, memory_order_acquire) == begun)
			wait_a_bit(&waited);
	}
	/* Theirs cannot be told apart; but those that begin now end at once, the link is down. */
	while (atomic_load(&slotless) > 0 && waited < WAIT_MAX_US)
		wait_a_bit(&waited);
	return waited < WAIT_MAX_US;
}

uint64_t port_memif_lost(void)
{
	return port_guard_lost(PORT_GUARDED_MEMIF);
}

static void *map(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	return port_guard_map(PORT_GUARDED_MEMIF, addr, len, prot, flags, fd, off);
}

static int unmap(void *addr, size_t len)
{
	if (rte_thread_is_intr())
		port_bursts_wait();
	return port_guard_unmap(addr, len);
}

int port_bursts_hold(char err[PORT_ERR_LEN])
{
	int ret = port_hook("librte_net_memif", "munmap", (void *)unmap);

	if (ret >= 0) {
		ret = port_hook("librte_net_memif", "mmap64", (void *)map);
		if (ret == -ENOENT)
			ret = port_hook("librte_net_memif", "mmap", (void *)map);
	}
	return ret < 0 ? port_fail(err, -ret,
				 "the memif driver's unmapping cannot be held back: %s",
				 strerror(-ret))
		       : port_again_hook(err);
}
