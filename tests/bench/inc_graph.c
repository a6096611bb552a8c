/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole graph of the switch between ring ports: buffers, metadata, nodes and queues included.
 * Frames wait in mbufs of a pool that keeps nothing it is given back, so that they are as before
 * when the switch is done with them. Feeding and draining the rings is outside the measured time;
 * freeing what was sent is within. */
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
	unsigned *slot, ring;
	struct rte_mempool *pool;
	struct rte_mbuf **mbuf; /* frames, and acknowledgements behind them */
	struct rte_ring *rx[PATH_FAN_IN], *tx[PATH_FAN_IN];
	unsigned worker, port[PATH_FAN_IN]; /* indices: worker k of n has every n-th port */
	uint64_t now;                       /* no timer is to run out because the machine is busy */
	uint64_t free_cycles;
};

enum { TURN_NS = 1000, ACKS = PATH_BURST / PATH_M /* of a burst: its messages, by each member */ };

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

static struct rte_mempool *keep_pool(const char *name, unsigned n, unsigned room)
{
	static bool registered;
	struct rte_mempool *mp;

	if (!registered)
		registered = rte_mempool_register_ops(&keep_ops) >= 0;
	mp = rte_mempool_create_empty(name, n, (unsigned)sizeof(struct rte_mbuf) + room, 0,
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

static bool is_ring(const struct path *p)
{
	return strcmp(p->spec.mode, "NetReduce") == 0;
}

static uint32_t n_frames(const struct path *p)
{
	return p->n_psn * PATH_FAN_IN;
}

static void feed(struct graph *g, uint32_t first, uint32_t step)
{
	for (unsigned i = 0; i < PATH_BURST; i++)
		rte_ring_enqueue(g->rx[i % PATH_FAN_IN], g->mbuf[first + i * step]);
}

static void feed_acks(struct path *p, uint32_t first)
{
	struct graph *g = p->priv;
	const uint32_t at = n_frames(p) + first / PATH_BURST * ACKS;

	for (unsigned i = 0; i < ACKS; i++)
		rte_ring_enqueue(g->rx[i % PATH_FAN_IN], g->mbuf[at + i]);
}

/* What was sent: results alone are counted. */
static unsigned drain(struct path *p, uint64_t *ns)
{
	struct graph *g = p->priv;
	struct rte_mbuf *m[256];
	unsigned results = 0, n;

	for (unsigned i = 0; i < PATH_FAN_IN; i++)
		while ((n = rte_ring_dequeue_burst(g->tx[i], (void **)m, 256, NULL)) > 0) {
			uint64_t start, cycles;

			for (unsigned k = 0; k < n; k++)
				results += m[k]->pkt_len > p->spec.mtu;
			start = path_now_ns();
			cycles = rte_rdtsc();
			rte_pktmbuf_free_bulk(m, n);
			g->free_cycles += rte_rdtsc() - cycles;
			*ns += path_now_ns() - start;
		}
	return results;
}

static uint64_t turn(struct graph *g)
{
	const uint64_t start = path_now_ns();

	sw_turn(g->sw, g->worker, g->now += TURN_NS);
	return path_now_ns() - start;
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
	uint32_t n = n_frames(p), results = 0;
	uint64_t total = 0;

	p->n_parts = 0;
	g->free_cycles = 0;
	sw_nodes(g->sw, add_node, p); /* what the nodes had used before */
	for (uint32_t i = 0; i < n; i += PATH_BURST) {
		feed(g, i, 1);
		if (p->spec.acks && i > 0)
			feed_acks(p, i - PATH_BURST);
		total += turn(g);
		results += drain(p, &total);
	}
	sw_nodes(g->sw, add_node, p);
	if (p->n_parts < PATH_MAX_PARTS) {
		snprintf(p->part[p->n_parts].name, sizeof(p->part[0].name), "free");
		p->part[p->n_parts++].cycles = g->free_cycles;
	}
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

	if (is_ring(p))
		path_ring_close(g->sw, g->ring);
	for (unsigned i = 0; g->slot != NULL && i < p->spec.groups; i++)
		if (sw_group_delete(g->sw, g->slot[i], true, err) != 0)
			fprintf(stderr, "bench-inc: %s\n", err);
	rte_mempool_free(g->pool);
	free(g->mbuf);
	free(g->slot);
	free(p->g);
	free(g);
}

static void make_group(struct path *p, struct graph *g, unsigned k)
{
	struct inc_ep_spec ep[PATH_FAN_IN] = {0};
	struct inc_group_spec spec = {.mode = p->spec.mode[2] ? INC_MODE_3 : INC_MODE_2,
		.mtu = (uint16_t)p->spec.mtu,
		.m = PATH_M,
		.w = p->spec.groups > 1 ? 1 : PATH_W, /* what is in flight is of many groups */
		.start_psn = PATH_START_PSN,
		.flags = INC_F_LATE_FLUSH | INC_F_STALL_RNR,
		.n_ranks = PATH_FAN_IN,
		.n_ep = PATH_FAN_IN,
		.ep = ep};
	char err[SW_ERR_LEN];

	snprintf(spec.name, sizeof(spec.name), "bench%u.%u", g->worker, k);
	for (unsigned i = 0; i < PATH_FAN_IN; i++) {
		ep[i].remote_ip = h_host4(g->port[i]);
		ep[i].remote_qpn = FX_HOST_QPN + i;
		ep[i].port = g->sw->ports[g->port[i]].id;
		ep[i].host = true;
		ep[i].n_ranks = 1;
		ep[i].ranks[0] = (uint16_t)i;
	}
	if (sw_group_create(g->sw, &spec, true, &g->slot[k], err) != 0) {
		fprintf(stderr, "bench-inc: %s\n", err);
		exit(1);
	}
	p->g[k] = sw_group_get(g->sw, g->slot[k]);
	if (sw_n_workers(g->sw) > 1 && sw_group_move(g->sw, g->slot[k], g->worker, err) != 0) {
		fprintf(stderr, "bench-inc: %s\n", err);
		exit(1);
	}
}

static struct rte_ring *ring_of(struct sw *sw, unsigned port, const char *end)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%.8s.%s", sw->ports[port].config.name, end);
	return rte_ring_lookup(name);
}

static void fill(struct rte_mbuf *m, int len)
{
	m->data_len = m->pkt_len = (uint16_t)len;
}

/* Members acknowledge what came with the burst before. */
static void make_acks(struct path *p, struct graph *g)
{
	for (uint32_t i = 0; i < n_frames(p); i += PATH_BURST)
		for (unsigned k = 0; k < ACKS; k++) {
			const uint32_t message = k / PATH_FAN_IN + 1;
			const uint32_t next = path_psn(p, i) + message * PATH_M;
			struct rte_mbuf *m = g->mbuf[n_frames(p) + i / PATH_BURST * ACKS + k];

			fill(m, path_ack_frame(
					p, k % PATH_FAN_IN, next, rte_pktmbuf_mtod(m, uint8_t *)));
		}
}

static void make_buffers(struct path *p, struct graph *g)
{
	const unsigned n = n_frames(p);
	const unsigned all = n + (p->spec.acks ? n / PATH_BURST * ACKS : 0);
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "bench%u", g->worker);
	g->pool = keep_pool(name, all, RTE_PKTMBUF_HEADROOM + p->spec.mtu + PATH_HEAD_ROOM);
	g->mbuf = calloc(all, sizeof(struct rte_mbuf *));
	p->frame = calloc(n, sizeof(*p->frame));
	if (g->pool == NULL || rte_pktmbuf_alloc_bulk(g->pool, g->mbuf, all) != 0) {
		fprintf(stderr, "bench-inc: no memory for %u frames\n", all);
		exit(1);
	}
	for (unsigned i = 0; i < n; i++)
		p->frame[i] = rte_pktmbuf_mtod(g->mbuf[i], uint8_t *);
}

static void control(struct path *p, struct graph *g, unsigned k)
{
	uint8_t frame[FX_FRAME];
	uint64_t ns = 0;

	for (unsigned i = 0; i < PATH_FAN_IN; i++)
		h_inject(g->sw, g->port[i], frame, (unsigned)path_control_frame(p, k, i, frame));
	turn(g);
	drain(p, &ns);
	if (!p->spec.acks)
		return;
	for (unsigned i = 0; i < PATH_FAN_IN; i++)
		h_inject(g->sw, g->port[i], frame,
			(unsigned)path_ack_frame(p, i, PATH_START_PSN + 1, frame));
	turn(g);
	drain(p, &ns);
}

static struct sw *start(unsigned workers)
{
	char more[96];

	snprintf(more, sizeof(more), "{'memory_mb':512,'arena_kb':65536,'workers':%u}", workers);
	return h_start(PATH_FAN_IN * workers, more, NULL);
}

void path_graph_open(struct path *p, const struct path_spec *spec)
{
	struct graph *g = calloc(1, sizeof(*g));

	*p = (struct path){.name = "graph",
		.spec = *spec,
		.n_psn = path_n_psn(spec),
		.run = run,
		.close = close_graph,
		.priv = g};
	if (the_switch == NULL)
		the_switch = start(spec->workers > 1 ? spec->workers : 1);
	g->sw = the_switch;
	g->worker = spec->worker;
	g->now = port_now_ns();
	for (unsigned i = 0; i < PATH_FAN_IN; i++) {
		g->port[i] = g->worker + i * sw_n_workers(g->sw);
		g->rx[i] = ring_of(g->sw, g->port[i], "rx");
		g->tx[i] = ring_of(g->sw, g->port[i], "tx");
	}
	make_buffers(p, g);
	if (is_ring(p)) {
		g->ring = path_ring_open(p, g->sw);
		path_ring_frames(p, g->sw);
	} else {
		g->slot = calloc(spec->groups, sizeof(*g->slot));
		p->g = calloc(spec->groups, sizeof(*p->g));
		for (unsigned k = 0; k < spec->groups; k++) {
			make_group(p, g, k);
			control(p, g, k);
		}
		path_make_frames(p);
		if (spec->acks)
			make_acks(p, g);
	}
	for (unsigned i = 0; i < n_frames(p); i++)
		fill(g->mbuf[i], (int)p->frame_len);
}

/* ---- replicas ---- */

/* A burst of duplicates of one member's. */
static uint64_t answers(struct path *p, unsigned each)
{
	struct graph *g = p->priv;
	uint64_t ns = 0;

	feed(g, 0, PATH_FAN_IN);
	ns += turn(g);
	if (drain(p, &ns) != each * PATH_BURST) {
		fprintf(stderr, "bench-inc: duplicates were not answered\n");
		exit(1);
	}
	return ns;
}

double path_replica_ns(uint32_t mtu, unsigned reps)
{
	const struct path_spec spec = {.mode = "II", .mtu = mtu, .groups = 1};
	uint64_t one = UINT64_MAX, all = UINT64_MAX, ns;
	struct path p;

	path_graph_open(&p, &spec);
	run(&p);
	for (unsigned i = 0; i < 50 * reps; i++) {
		p.g[0]->flags &= (uint16_t)~INC_F_DUP_ALL;
		ns = answers(&p, 1);
		one = ns < one ? ns : one;
		p.g[0]->flags |= INC_F_DUP_ALL;
		ns = answers(&p, PATH_FAN_IN);
		all = ns < all ? ns : all;
	}
	free(p.frame);
	p.close(&p);
	return ((double)all - (double)one) / (PATH_BURST * (PATH_FAN_IN - 1));
}
