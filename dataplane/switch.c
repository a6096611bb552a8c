/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of a switch: from its configuration to running workers and back. */
#include "dataplane/switch.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dataplane/ip/icmp_error.h"
#include "dataplane/runtime/handoff.h"
#include "dataplane/runtime/host_ops.h"
#include "dataplane/sw.h"
#include "lib/port/cpus.h"

enum {
	CONNECT_MS = 10000, /* how long a memif or vhost client waits for its server */
	HEAD_POOL_SPARE = 4095,
	HEAD_ROOM = RTE_PKTMBUF_HEADROOM + 128, /* WIRE_MAX_HEADERS and more */
	SEGMENTS = 3,
	FLOOD_BURST = 10, /* a tenth of a second's frames may be flooded at once */
};
static const uint64_t RNG_SEED = 0x9e3779b97f4a7c15; /* which packets RED marks is random enough */

/* Buffers that rings between n workers hold, and their pools' caches. */
#define HANDED_OVER(n) ((n) * ((n)-1) * HANDOFF_RING + ((n)-1) * 2 * PORT_POOL_CACHE)

static_assert(HEAD_ROOM - RTE_PKTMBUF_HEADROOM >= (int)WIRE_TEMPLATE_LEN, "room for headers");

/* ---- making ---- */

void sw_config_free(struct sw_config *config)
{
	for (unsigned i = 0; i < SW_MAX_PORTS; i++)
		free(config->ports[i].bridge);
	free(config->addresses);
	if (config->free_given != NULL)
		config->free_given(config->given);
	*config = (struct sw_config){0};
}

static int start_eal(struct sw *sw, char err[SW_ERR_LEN])
{
	const struct sw_config *c = &sw->config;
	char floating[PORT_LCORES_LEN];
	const struct port_eal eal = {
		.program = "incline-switch",
		.memory_mb = c->memory_mb,
		.hugepages = c->hugepages,
		.pci = c->pci,
		.telemetry = c->telemetry,
		.lcores = c->lcores[0] ? c->lcores : floating,
	};

	if (port_eal_started())
		return 0;
	if (c->lcores[0] == '\0' &&
		port_lcores_floating(1 + c->workers, floating, sizeof(floating)) < 0)
		return sw_fail(err, -ENOSPC, "lcores: cannot tell the CPUs, set it");
	return port_eal_init(&eal, err);
}

/* What was given back last is taken first: from a ring all buffers would pass through the
 * processor's cache, however few are in use. The kind that does so is a plug-in of DPDK's. */
static struct rte_mempool *make_head_pool(unsigned n, int socket)
{
	struct rte_mempool *pool = port_pool_of("heads", n, HEAD_ROOM, socket, "stack");

	return pool != NULL ? pool : port_pool_of("heads", n, HEAD_ROOM, socket, NULL);
}

static int create_pools(struct sw *sw, char err[SW_ERR_LEN])
{
	struct port_config configs[SW_MAX_PORTS];
	unsigned mtu = 0, need, rings, queues = 0;

	for (unsigned i = 0; i < sw->config.n_ports; i++) {
		configs[i] = sw->config.ports[i].port;
		mtu = configs[i].mtu > mtu ? configs[i].mtu : mtu;
		queues += sw_queue_places(&sw->config.ports[i].queue);
	}
	sw->socket = port_node_socket(sw->node);
	need = port_pool_need(configs, sw->config.n_ports) + queues;
	rings = port_pool_rings(configs, sw->config.n_ports) + queues;
	need += HANDED_OVER(sw->config.workers) + sw_neigh_buffers(&sw->config);
	sw->pool = port_pool_create("frames", need, mtu, sw->socket, err);
	if (sw->pool == NULL)
		return -ENOMEM;
	sw->head_pool =
		make_head_pool(HEAD_POOL_SPARE * sw->config.workers + SEGMENTS * rings, sw->socket);
	if (sw->head_pool == NULL)
		return sw_fail(err, -ENOMEM, "no memory for headers: raise \"memory_mb\"");
	return 0;
}

static int open_ports(struct sw *sw, char err[SW_ERR_LEN])
{
	for (unsigned i = 0; i < sw->config.n_ports; i++) {
		const struct sw_config_port *p = &sw->config.ports[i];
		char what[PORT_ERR_LEN];
		int rc = port_open(&p->port, sw->pool, CONNECT_MS, &sw->ports[i], what);

		if (rc < 0)
			return sw_fail(err, rc, "port %s: %.210s", p->port.name, what);
		sw->n_ports++;
	}
	return 0;
}

static const struct rte_memzone *arena_on(const struct sw *sw, int socket)
{
	const unsigned flags = sw->config.hugepages ? RTE_MEMZONE_IOVA_CONTIG : 0;

	return rte_memzone_reserve_aligned(
		"arena", sw->config.arena_bytes, socket, flags, RTE_CACHE_LINE_SIZE);
}

/* Near the NICs, where that has the memory. */
static void *zalloc_near(const struct sw *sw, const char *name, size_t size)
{
	void *p = rte_zmalloc_socket(name, size, RTE_CACHE_LINE_SIZE, sw->socket);

	return p != NULL ? p : rte_zmalloc(name, size, RTE_CACHE_LINE_SIZE);
}

static int create_arena(struct sw *sw, char err[SW_ERR_LEN])
{
	sw->arena_zone = arena_on(sw, sw->socket);
	if (sw->arena_zone == NULL && sw->socket != SOCKET_ID_ANY)
		sw->arena_zone = arena_on(sw, SOCKET_ID_ANY);
	if (sw->arena_zone == NULL)
		return sw_fail(err, -ENOMEM,
			"arena_kb: no memory for %zu KB: raise \"memory_mb\" or lower it",
			sw->config.arena_bytes >> 10);
	sw->arena = malloc(sizeof(*sw->arena));
	sw->groups = zalloc_near(sw, "groups", sizeof(*sw->groups));
	sw->leases = sw_leases_create();
	if (sw->arena == NULL || sw->groups == NULL || sw->leases == NULL)
		return sw_fail(err, -ENOMEM, "no memory for the group table");
	inc_ranges_init(sw->arena, sw->config.arena_bytes);
	return 0;
}

static int create_rcu(struct sw *sw, char err[SW_ERR_LEN])
{
	const unsigned n = sw->config.workers;
	bool ok;

	sw->rcu = rte_zmalloc("rcu", rte_rcu_qsbr_get_memsize(n), RTE_CACHE_LINE_SIZE);
	ok = sw->rcu != NULL && rte_rcu_qsbr_init(sw->rcu, n) == 0;
	for (unsigned i = 0; ok && i < n; i++)
		ok = rte_rcu_qsbr_thread_register(sw->rcu, i) == 0;
	return ok ? 0 : sw_fail(err, -ENOMEM, "no memory for RCU");
}

/* Each port has one queue: one worker receives from it, all send by it. */
static int attach_ports(struct sw *sw, struct worker *w)
{
	for (unsigned i = 0; i < sw->n_ports; i++) {
		struct lport *lp = &w->port[sw->ports[i].id];
		struct egress_config queue;

		w->port_id[w->n_ports++] = sw->ports[i].id;
		if (i % w->n_workers == w->index)
			w->rx_id[w->n_rx++] = sw->ports[i].id;
		lp->port = &sw->ports[i];
		lp->tx_lock = w->n_workers > 1 ? &sw->tx_lock[i] : NULL;
		lp->proxy_arp = sw->config.ports[i].proxy_arp;
		lp->neigh_learn = sw->config.ports[i].neigh_learn;
		egress_bucket_init(&lp->flood, sw->config.ports[i].flood_pps,
			sw->config.ports[i].flood_pps / FLOOD_BURST + 1, 0);
		egress_bucket_init(&lp->icmp_errors, ICMP_ERROR_RATE, ICMP_ERROR_BURST, 0);
		sw_impair_attach(sw, w, i);
		queue = sw_queue_share(&sw->config.ports[i].queue, w->n_workers);
		if (egress_init(&lp->egress, &queue, &sw->config.classes,
			    port_device_socket(sw->ports[i].id), port_now_ns()) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int create_worker(struct sw *sw, unsigned index, char err[SW_ERR_LEN])
{
	struct worker *w = zalloc_near(sw, "worker", sizeof(*w));
	int rc;

	if (w == NULL)
		return sw_fail(err, -ENOMEM, "no memory for worker %u: raise \"memory_mb\"", index);
	sw->worker[sw->n_workers++] = w;
	w->index = index;
	w->n_workers = sw->config.workers;
	w->published = &sw->published;
	w->shared_clt = &sw->clt;
	w->inc = sw->groups;
	w->arena = (struct inc_arena){sw->arena_zone->addr, sw->config.arena_bytes};
	w->arena_iova = sw->arena_zone->iova;
	w->pool = sw->pool;
	w->head_pool = sw->head_pool;
	w->trace = &sw->trace;
	w->rcu = sw->rcu;
	w->wake = &sw->wake;
	w->idle = sw->config.idle;
	w->icmp = sw->config.icmp_errors;
	worker_timers_init(w);
	w->rng = RNG_SEED + w->index;
	if (attach_ports(sw, w) < 0)
		return sw_fail(err, -ENOMEM, "no memory for the ports' queues");
	rc = graph_create(w);
	return rc < 0 ? sw_fail(err, rc, "graph: %s", rte_strerror(-rc)) : 0;
}

static int create_workers(struct sw *sw, char err[SW_ERR_LEN])
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < sw->config.workers; i++)
		rc = create_worker(sw, i, err);
	if (rc < 0)
		return rc;
	if (handoff_create(sw->worker, sw->n_workers) < 0 ||
		graph_stats_create(&sw->node_stats) < 0)
		return sw_fail(
			err, -ENOMEM, "no memory for what workers share: raise \"memory_mb\"");
	return 0;
}

static int make(struct sw *sw, char err[SW_ERR_LEN])
{
	int (*const steps[])(struct sw * sw, char err[SW_ERR_LEN]) = {start_eal, create_pools,
		create_rcu, create_arena, open_ports, create_workers, sw_membership_create,
		sw_neigh_create, sw_bridge_create, sw_lldp_create, sw_rnic_create,
		sw_tables_create};

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int rc = steps[i](sw, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Checks the ports, and connects the switch to nothing. Hugepages may all be in use. */
static int unplug(struct sw_config *c, char err[SW_ERR_LEN])
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		struct port_config *port = &c->ports[i].port;
		char what[PORT_ERR_LEN];
		int rc = port_check(port, what);

		if (rc < 0)
			return sw_fail(err, rc, "port %s: %.210s", port->name, what);
		port_config_unplug(port);
	}
	c->hugepages = c->pci = c->telemetry = false;
	return 0;
}

static int create(
	const struct sw_config *config, bool plugged, struct sw **out, char err[SW_ERR_LEN])
{
	struct sw *sw = calloc(1, sizeof(*sw));
	struct sw_config own = *config;
	int rc = 0;

	if (sw == NULL) {
		sw_config_free(&own);
		return sw_fail(err, -ENOMEM, "no memory");
	}
	sw->config = own;
	if (!plugged)
		rc = unplug(&sw->config, err);
	if (rc == 0)
		rc = sw_workers_find(&sw->config, &sw->node, err);
	if (rc < 0) {
		sw_config_free(&sw->config);
		free(sw);
		return rc;
	}
	sw->started_ns = port_now_ns();
	sw->started_cycles = rte_rdtsc();
	sw->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = sw->wake.fd < 0 ? sw_fail(err, -errno, "no descriptor for notes: %s", strerror(errno))
			     : make(sw, err);
	if (rc < 0) {
		sw_destroy(sw);
		return rc;
	}
	*out = sw;
	return 0;
}

int sw_create(const struct sw_config *config, struct sw **out, char err[SW_ERR_LEN])
{
	return create(config, true, out, err);
}

int sw_create_unplugged(const struct sw_config *config, struct sw **out, char err[SW_ERR_LEN])
{
	return create(config, false, out, err);
}

/* ---- notes ---- */

int sw_notes_fd(const struct sw *sw)
{
	return sw->neigh != NULL || sw->bridge != NULL ? sw->wake.fd : -1;
}

void sw_notes_turn(struct sw *sw, uint64_t now)
{
	wake_heard(&sw->wake);
	sw_neigh_turn(sw, now);
	sw_bridge_turn(sw, now);
}

/* ---- running ---- */

/* This thread is the control thread and the main lcore. The EAL's start has left its affinity as it
 * was: all CPUs, as a rule. It keeps off what "lcores" gives to the workers, where that leaves it
 * any. */
static void leave_cpus_to_workers(const struct sw *sw)
{
	rte_cpuset_t rest = rte_lcore_cpuset(rte_get_main_lcore());

	for (unsigned i = 0; i < sw->n_workers; i++) {
		const rte_cpuset_t worker = rte_lcore_cpuset(sw->worker[i]->lcore_id);

		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &worker))
				CPU_CLR(cpu, &rest);
	}
	if (CPU_COUNT(&rest) > 0)
		pthread_setaffinity_np(pthread_self(), sizeof(rest), &rest);
}

static void stop(struct sw *sw)
{
	for (unsigned i = 0; sw->running && i < sw->n_workers; i++)
		atomic_store(&sw->worker[i]->stop, true);
	for (unsigned i = 0; sw->running && i < sw->n_workers; i++)
		rte_eal_wait_lcore(sw->worker[i]->lcore_id);
	sw->running = false;
}

int sw_start(struct sw *sw, char err[SW_ERR_LEN])
{
	unsigned lcores = rte_lcore_count() - 1, lcore = rte_get_next_lcore(-1, 1, 0);

	if (lcores < sw->n_workers || (sw->config.lcores[0] && lcores != sw->n_workers))
		return sw_fail(err, -EINVAL,
			"lcores: has %u beside the main lcore, but \"workers\" is %u", lcores,
			sw->n_workers);
	for (unsigned i = 0; i < sw->n_workers; i++) {
		sw->worker[i]->lcore_id = lcore;
		lcore = rte_get_next_lcore(lcore, 1, 0);
		atomic_store(&sw->worker[i]->stop, false);
	}
	leave_cpus_to_workers(sw);
	sw->running = true;
	for (unsigned i = 0; i < sw->n_workers; i++) {
		struct worker *w = sw->worker[i];
		int rc = rte_eal_remote_launch(worker_main, w, w->lcore_id);

		if (rc < 0) {
			stop(sw); /* waiting for one that does not run is no wait */
			return sw_fail(err, rc, "lcores: cannot launch lcore %u: %s", w->lcore_id,
				rte_strerror(-rc));
		}
	}
	return 0;
}

void sw_turn(struct sw *sw, unsigned i, uint64_t now)
{
	worker_turn(sw->worker[i], now);
}

static void free_large(struct sw *sw)
{
	rte_memzone_free(sw->arena_zone);
	rte_mempool_free(sw->head_pool);
	rte_mempool_free(sw->pool);
}

static void destroy(struct sw *sw, bool last)
{
	if (sw == NULL)
		return;
	stop(sw);
	sw_captures_destroy(sw);
	if (sw->groups != NULL)
		sw_groups_destroy(sw);
	sw_rings_destroy(sw);
	sw_reclaim(sw);
	if (sw->node_stats != NULL)
		rte_graph_cluster_stats_destroy(sw->node_stats);
	handoff_destroy(sw->worker, sw->n_workers);
	for (unsigned i = 0; i < sw->n_workers; i++)
		graph_destroy(sw->worker[i]);
	sw_rnic_destroy(sw);
	sw_membership_destroy(sw);
	sw_neigh_destroy(sw);
	sw_bridge_destroy(sw);
	sw_lldp_destroy(sw);
	for (unsigned i = 0; i < sw->n_workers; i++)
		for (unsigned k = 0; k < sw->n_ports; k++) {
			impair_free_held(&sw->impair[i][k]);
			egress_free(&sw->worker[i]->port[sw->ports[k].id].egress);
		}
	while (sw->n_ports > 0) /* a ring port goes before its peer */
		port_close(&sw->ports[--sw->n_ports]);
	sw->closed = true;
	sw_reclaim(sw);
	sw_tables_destroy(sw);
	trace_free(&sw->trace);
	while (sw->n_workers > 0)
		rte_free(sw->worker[--sw->n_workers]);
	rte_free(sw->rcu);
	rte_free(sw->groups);
	sw_leases_destroy(sw->leases);
	free(sw->arena);
	if (sw->wake.fd >= 0)
		close(sw->wake.fd);
	if (!last)
		free_large(sw);
	sw_config_free(&sw->config);
	free(sw);
}

void sw_destroy(struct sw *sw)
{
	destroy(sw, false);
}

void sw_destroy_last(struct sw *sw)
{
	destroy(sw, true);
}

const char *sw_name(const struct sw *sw)
{
	return sw->config.name;
}

void *sw_given(const struct sw *sw)
{
	return sw->config.given;
}
