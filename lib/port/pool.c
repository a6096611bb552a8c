/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of packet buffers: how many a port keeps, and their memory, taken in one piece. */
#include <errno.h>
#include <rte_config.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memzone.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/port/internal.h"

enum {
	SPARE = 2048,
	PER_PORT = 128, /* bursts under way */
	PAGES_MAX = 2,  /* buffers of which nearly every page is touched when they are made */
};

/* Does the device keep buffers in its rings? The others copy and give them back at once. */
static bool keeps_buffers(const struct port_config *c)
{
	static const char *const types[] = {"ring", "tap", "pci", "vdev"};

	if (strcmp(c->type, "memif") == 0)
		return c->zero_copy;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(c->type, types[i]) == 0)
			return true;
	return false;
}

unsigned port_pool_rings(const struct port_config *configs, unsigned n)
{
	unsigned held = 0;

	for (unsigned i = 0; i < n; i++)
		held += keeps_buffers(&configs[i]) ? (unsigned)configs[i].rxd + configs[i].txd
						   : (unsigned)PER_PORT;
	return held;
}

unsigned port_pool_need(const struct port_config *configs, unsigned n)
{
	return SPARE + port_pool_rings(configs, n);
}

/* One call of the kernel's for memory that is going to be written to anyway: a fault for each page
 * costs several times as much. Kernels before 5.14 cannot, and fault. */
static void touch(char *at, size_t len)
{
#ifdef MADV_POPULATE_WRITE
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t first = (uintptr_t)at & ~(page - 1);

	madvise((void *)first, (uintptr_t)at + len - first, MADV_POPULATE_WRITE);
#endif
}

static void free_zone(struct rte_mempool_memhdr *header, void *zone)
{
	(void)header;
	rte_memzone_free(zone);
}

/* DPDK would take a page more for every buffer than devices need that do not address memory by
 * pages, and touch them one by one. */
static int populate(struct rte_mempool *pool)
{
	const size_t each = pool->header_size + pool->elt_size + pool->trailer_size;
	const size_t len = each * pool->size;
	char name[RTE_MEMZONE_NAMESIZE];
	const struct rte_memzone *zone;
	int n;

	if (rte_eal_has_hugepages())
		return rte_mempool_populate_default(pool);
	snprintf(name, sizeof(name), "B_%s", pool->name);
	zone = rte_memzone_reserve_aligned(name, len, pool->socket_id, 0, RTE_MEMPOOL_ALIGN);
	if (zone == NULL) /* in several pieces, perhaps */
		return rte_mempool_populate_default(pool);
	if (each <= PAGES_MAX * (size_t)sysconf(_SC_PAGESIZE))
		touch(zone->addr, len);
	n = rte_mempool_populate_iova(
		pool, zone->addr, zone->iova, len, free_zone, (void *)(uintptr_t)zone);
	if (n < 0)
		rte_memzone_free(zone);
	return n < 0 ? n : 0;
}

static struct rte_mempool *make(
	const char *name, unsigned n, unsigned room, int socket, const char *ops)
{
	struct rte_pktmbuf_pool_private own = {.mbuf_data_room_size = (uint16_t)room};
	const unsigned flags = rte_eal_has_hugepages() ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	struct rte_mempool *pool = rte_mempool_create_empty(name, n, sizeof(struct rte_mbuf) + room,
		PORT_POOL_CACHE, sizeof(own), socket, flags);
	int rc;

	if (pool == NULL)
		return NULL;
	rc = rte_mempool_set_ops_byname(pool, ops ? ops : rte_mbuf_best_mempool_ops(), NULL);
	if (rc == 0) {
		rte_pktmbuf_pool_init(pool, &own);
		rc = populate(pool);
	}
	if (rc < 0) {
		rte_mempool_free(pool);
		rte_errno = -rc;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

struct rte_mempool *port_pool_of(
	const char *name, unsigned n, unsigned room, int socket, const char *ops)
{
	struct rte_mempool *pool = make(name, n, room, socket, ops);

	return pool != NULL || socket == SOCKET_ID_ANY ? pool
						       : make(name, n, room, SOCKET_ID_ANY, ops);
}

struct rte_mempool *port_pool_create(
	const char *name, unsigned n, unsigned mtu, int socket, char err[PORT_ERR_LEN])
{
	const unsigned room = RTE_PKTMBUF_HEADROOM + port_room(mtu);
	struct rte_mempool *pool;

	port_log_clear();
	pool = port_pool_of(name, n, room, socket, NULL);
	if (pool == NULL)
		port_fail(err, rte_errno,
			"no memory for %u packet buffers of %u bytes (%s): raise \"memory_mb\"", n,
			room, rte_strerror(rte_errno));
	return pool;
}
