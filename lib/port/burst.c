/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts that survive the peer of a memif. When the peer goes away, the driver unmaps the shared
 * rings on the EAL's interrupt thread, whether or not another thread is in the middle of a burst on
 * them: with the peer killed under load that is a crash within a few attempts. The driver does mark
 * the port as disconnected before, and looks at that mark when a burst begins. So it is enough to
 * hold the unmapping back until the bursts that have begun are over.
 *
 * The driver offers no hook; munmap is replaced for the process, and waits only on the interrupt
 * thread. Threads say that they are in a burst with plain stores; membarrier() orders them, so that
 * the burst itself needs no fence. */
#include <linux/membarrier.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/port/internal.h"

enum { MAX_THREADS = 256, WAIT_STEP_US = 20, WAIT_MAX_US = 1000000 };

static struct slot {
	_Alignas(RTE_CACHE_LINE_SIZE) atomic_uint bursts; /* odd: in one */
} slots[MAX_THREADS];
static atomic_uint n_slots;

void port_bursts_init(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

/* This thread's own; threads beyond MAX_THREADS go without protection. */
static struct slot *own_slot(void)
{
	static __thread struct slot *own;
	static struct slot overflow;

	if (own == NULL) {
		unsigned i = atomic_fetch_add(&n_slots, 1);

		own = i < MAX_THREADS ? &slots[i] : &overflow;
	}
	return own;
}

static void step(struct slot *s, memory_order order)
{
	atomic_store_explicit(
		&s->bursts, atomic_load_explicit(&s->bursts, memory_order_relaxed) + 1, order);
	atomic_signal_fence(memory_order_seq_cst);
}

unsigned port_rx_burst(const struct port *port, struct rte_mbuf **mbufs, unsigned n)
{
	struct slot *s;

	if (!port->shared_rings)
		return rte_eth_rx_burst(port->id, 0, mbufs, (uint16_t)n);
	s = own_slot();
	step(s, memory_order_relaxed);
	n = rte_eth_rx_burst(port->id, 0, mbufs, (uint16_t)n);
	step(s, memory_order_release);
	return n;
}

unsigned port_tx_burst(const struct port *port, struct rte_mbuf **mbufs, unsigned n)
{
	struct slot *s;

	if (!port->shared_rings)
		return rte_eth_tx_burst(port->id, 0, mbufs, (uint16_t)n);
	s = own_slot();
	step(s, memory_order_relaxed);
	n = rte_eth_tx_burst(port->id, 0, mbufs, (uint16_t)n);
	step(s, memory_order_release);
	return n;
}

static void wait_for_bursts(void)
{
	unsigned n = atomic_load(&n_slots), waited = 0;

	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (unsigned i = 0; i < n && i < MAX_THREADS; i++) {
		unsigned begun = atomic_load_explicit(&slots[i].bursts, memory_order_acquire);

		while ((begun & 1) && waited < WAIT_MAX_US &&
			atomic_load_explicit(&slots[i].bursts, memory_order_acquire) == begun) {
			usleep(WAIT_STEP_US);
			waited += WAIT_STEP_US;
		}
	}
}

int munmap(void *addr, size_t len)
{
	if (rte_thread_is_intr())
		wait_for_bursts();
	return (int)syscall(SYS_munmap, addr, len);
}
