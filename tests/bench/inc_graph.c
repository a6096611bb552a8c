/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole graph of the switch between ring ports: buffers, metadata, nodes and queues included.
 * Frames wait in mbufs of a pool that keeps nothing it is given back, so that they are as before
 * when the switch is done with them. Feeding and draining the rings is outside the measured time.
 */
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/inc_path.h"
#include "tests/unit/dataplane/harness.h"

struct graph {
	struct sw *sw;
	unsigned slot;
	struct rte_mempool *pool;
	struct rte_mbuf **mbuf;
	struct rte_ring *rx[PATH_FAN_IN], *tx[PATH_FAN_IN];
};

static struct sw *the_switch; /* one for all sizes: the EAL starts once */

/* ---- a pool that gives each object out once ---- */

struct keep {
	unsigned n;
	bool closed; /* all were handed out: what comes back stays where it is */
	void *obj[];
};

static int keep_alloc(struct rte_mempool *mp)
{
	mp->pool_data = calloc(1, sizeof(struct keep) + mp->size * sizeof(void *));
	return mp->pool_data ? 0 : -ENOMEM;
}

static void keep_free(struct rte_mempool *mp)
{
	free(mp->pool_data);
}

static int keep_enqueue(struct rte_mempool *mp, void *const *obj, unsigned n)
{
	struct keep *k = mp->pool_data;

	for (unsigned i = 0; i < n && !k->closed; i++)
		k->obj[k->n++] = obj[i];
	return 0;
}

static int keep_dequeue(struct rte_mempool *mp, void **obj, unsigned n)
{
	struct keep *k = mp->pool_data;

	if (k->n < n)
		return -ENOBUFS;
	for (unsigned i = 0; i < n; i++)
		obj[i] = k->obj[--k->n];
	k->closed = k->n == 0;
	return 0;
}

static unsigned keep_count(const struct rte_mempool *mp)
{
	return ((struct keep *)mp->pool_data)->n;
}

static struct rte_mempool_ops keep_ops = {
	.name = "bench_keep",
	.alloc = keep_alloc,
	.free = keep_free,
	.enqueue = keep_enqueue,
	.dequeue = keep_dequeue,
	.get_count = keep_count,
};

static struct rte_mempool *keep_pool(unsigned n, unsigned room)
{
	static bool registered;
	struct rte_mempool *mp;

	if (!registered)
		registered = rte_mempool_register_ops(&keep_ops) >= 0;
	mp = rte_mempool_create_empty("bench", n, (unsigned)sizeof(struct rte_mbuf) + room, 0,
		sizeof(struct rte_pktmbuf_pool_private), SOCKET_ID_ANY, 0);
	if (mp == NULL || rte_mempool_set_ops_byname(mp, "bench_keep", NULL) != 0)
		return NULL;
	rte_pktmbuf_pool_init(mp, NULL);
	if (rte_mempool_populate_default(mp) < 0)
		return NULL;
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}

/* ---- the path ---- */

static void feed(struct graph *g, uint32_t first)
{
	for (unsigned i = 0; i < PATH_BURST; i++)
		rte_ring_enqueue(g->rx[i % PATH_FAN_IN], g->mbuf[first + i]);
}

static unsigned drain(struct graph *g)
{
	struct rte_mbuf *m[256];
	unsigned total = 0, n;

	for (unsigned i = 0; i < PATH_FAN_IN; i++)
		while ((n = rte_ring_dequeue_burst(g->tx[i], (void **)m, 256, NULL)) > 0) {
			rte_pktmbuf_free_bulk(m, n);
			total += n;
		}
	return total;
}

static void add_node(void *arg, const char *node, uint64_t calls, uint64_t packets, uint64_t cycles)
{
	struct path *p = arg;

	(void)calls;
	if (packets == 0)
		return;
	for (unsigned k = 0; k < p->n_parts; k++)
		if (strcmp(p->part[k].name, node) == 0) {
			p->part[k].cycles = cycles - p->part[k].cycles;
			return;
		}
	if (p->n_parts == PATH_MAX_PARTS)
		return;
	snprintf(p->part[p->n_parts].name, sizeof(p->part[0].name), "%s", node);
	p->part[p->n_parts++].cycles = cycles;
}

static uint64_t run(struct path *p)
{
	struct graph *g = p->priv;
	uint32_t n = p->n_psn * PATH_FAN_IN, results = 0;
	uint64_t total = 0;

	p->n_parts = 0;
	sw_nodes(g->sw, add_node, p); /* what the nodes had used before */
	for (uint32_t i = 0; i < n; i += PATH_BURST) {
		uint64_t start;

		feed(g, i);
		start = path_now_ns();
		sw_turn(g->sw, 0, port_now_ns());
		total += path_now_ns() - start;
		results += drain(g);
	}
	sw_nodes(g->sw, add_node, p);
	if (results != n) {
		fprintf(stderr, "bench-inc: %u results instead of %u\n", results, n);
		exit(1);
	}
	return total;
}

static void close_graph(struct path *p)
{
	struct graph *g = p->priv;
	char err[SW_ERR_LEN];

	if (sw_group_delete(g->sw, g->slot, true, err) != 0)
		fprintf(stderr, "bench-inc: %s\n", err);
	rte_mempool_free(g->pool);
	free(g->mbuf);
	free(g);
}

static void make_group(struct path *p, struct graph *g)
{
	struct inc_ep_spec ep[PATH_FAN_IN] = {0};
	struct inc_group_spec spec = {.name = "bench",
		.mode = INC_MODE_2,
		.mtu = (uint16_t)p->mtu,
		.m = PATH_M,
		.w = PATH_W,
		.start_psn = PATH_START_PSN,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.n_ranks = PATH_FAN_IN,
		.n_ep = PATH_FAN_IN,
		.ep = ep};
	char err[SW_ERR_LEN];

	for (unsigned i = 0; i < PATH_FAN_IN; i++) {
		ep[i].remote_ip = h_host4(i);
		ep[i].remote_qpn = FX_HOST_QPN + i;
		ep[i].port = g->sw->ports[i].id;
		ep[i].host = true;
		ep[i].n_ranks = 1;
		ep[i].ranks[0] = (uint16_t)i;
	}
	if (sw_group_create(g->sw, &spec, true, &g->slot, err) != 0) {
		fprintf(stderr, "bench-inc: %s\n", err);
		exit(1);
	}
	p->g = sw_group_get(g->sw, g->slot);
}

static struct rte_ring *ring_of(struct sw *sw, unsigned port, const char *end)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%.8s.%s", sw->ports[port].config.name, end);
	return rte_ring_lookup(name);
}

static void make_buffers(struct path *p, struct graph *g)
{
	unsigned n = p->n_psn * PATH_FAN_IN;

	g->pool = keep_pool(n, RTE_PKTMBUF_HEADROOM + p->mtu + PATH_HEAD_ROOM);
	g->mbuf = calloc(n, sizeof(struct rte_mbuf *));
	p->frame = calloc(n, sizeof(*p->frame));
	if (g->pool == NULL || rte_pktmbuf_alloc_bulk(g->pool, g->mbuf, n) != 0) {
		fprintf(stderr, "bench-inc: no memory for %u frames\n", n);
		exit(1);
	}
	for (unsigned i = 0; i < n; i++)
		p->frame[i] = rte_pktmbuf_mtod(g->mbuf[i], uint8_t *);
	path_make_frames(p);
	for (unsigned i = 0; i < n; i++)
		g->mbuf[i]->data_len = g->mbuf[i]->pkt_len = (uint16_t)p->frame_len;
}

void path_graph_open(struct path *p, uint32_t mtu, size_t pool)
{
	struct graph *g = calloc(1, sizeof(*g));
	uint8_t control[FX_FRAME];

	*p = (struct path){.name = "graph",
		.mtu = mtu,
		.n_psn = path_n_psn(mtu, pool),
		.run = run,
		.close = close_graph,
		.priv = g};
	if (the_switch == NULL)
		the_switch = h_start(PATH_FAN_IN, "{'memory_mb':512}", NULL);
	g->sw = the_switch;
	make_group(p, g);
	for (unsigned i = 0; i < PATH_FAN_IN; i++) {
		g->rx[i] = ring_of(g->sw, i, "rx");
		g->tx[i] = ring_of(g->sw, i, "tx");
		h_inject(g->sw, i, control, (unsigned)path_control_frame(p, i, control));
	}
	h_run(g->sw);
	drain(g);
	make_buffers(p, g);
}
