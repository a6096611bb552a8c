/* SPDX-License-Identifier: BSD-3-Clause */
/* Source: what other workers have handed over, then the worker's ports, in turns. Gives every
 * packet its metadata. */
#include "dataplane/runtime/handoff.h"
#include "dataplane/runtime/node.h"
#include "dataplane/runtime/tap.h"

enum { EDGE_PARSE, N_EDGES };

/* The most that a port's burst can become: with impair, everything doubled and let go. */
static unsigned worst_burst(const struct lport *lp)
{
	return lp->impair ? 2 * WORKER_RX_BURST + IMPAIR_HELD : WORKER_RX_BURST;
}

static unsigned impair(
	struct worker *w, struct lport *lp, struct rte_mbuf **in, unsigned n, struct rte_mbuf **out)
{
	struct impair_result r = impair_apply(lp->impair, in, n, out, w->pool, w->now);

	w->drops[DROP_IMPAIR_LOSS] += r.lost;
	w->drops[DROP_NO_MBUF] += r.no_mbuf;
	w->doubled += r.doubled;
	w->overtaken += r.overtaken;
	w->corrupted += r.corrupted;
	if (lp->impair->over && lp->impair->n_held == 0)
		lp->impair = NULL;
	return r.out;
}

static unsigned receive(struct worker *w, struct lport *lp, struct rte_mbuf **out)
{
	struct rte_mbuf *in[WORKER_RX_BURST];
	struct rte_mbuf **to = lp->impair ? in : out;
	unsigned n = port_rx_burst(lp->port, to, WORKER_RX_BURST);

	lp->rx_packets += n;
	for (unsigned i = 0; i < n; i++)
		lp->rx_bytes += to[i]->pkt_len;
	return lp->impair ? impair(w, lp, in, n, out) : n;
}

static void number(struct worker *w, const struct rte_node *node, uint16_t port,
	struct rte_mbuf **mbufs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);

		meta->trace = trace_number(w->trace, port);
		if (meta->trace == 0)
			continue;
		w->tracing = true;
		node_trace(w, node, meta, "port %s, %u bytes", w->port[port].port->config.name,
			mbufs[i]->pkt_len);
	}
}

/* Metadata of its own for a packet that begins its walk. */
static inline struct meta *begin(struct worker *w, struct rte_mbuf *m, unsigned index)
{
	struct meta *meta = &w->meta[index];

	m->hash.usr = index;
	rte_prefetch0(rte_pktmbuf_mtod(m, void *));
	memset(&meta->srv6, 0, sizeof(meta->srv6));
	return meta;
}

/* Their port stays the one that they came by, and their number in a trace theirs. */
static unsigned take_over(struct worker *w, struct rte_mbuf **out)
{
	const unsigned n = handoff_take(w, out);

	for (unsigned i = 0; i < n; i++) {
		const uint32_t trace = out[i]->hash.fdir.hi;

		begin(w, out[i], w->n_meta++)->trace = trace;
		w->tracing |= trace != 0;
	}
	w->n_over = w->n_meta;
	return n;
}

static void begin_all(struct worker *w, struct rte_mbuf **mbufs, unsigned n, uint16_t port)
{
	const unsigned index = w->n_meta;

	for (unsigned i = 0; i < n; i++) {
		mbufs[i]->port = port; /* a mbuf from a ring carries its maker's */
		begin(w, mbufs[i], index + i)->trace = 0;
	}
	w->n_meta = index + n;
}

static uint16_t port_rx_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t nb_objs)
{
	struct worker *w = node_worker(node);
	struct rte_mbuf **out = (struct rte_mbuf **)rte_node_next_stream_get(
		graph, node, EDGE_PARSE, WORKER_MAX_PACKETS);
	unsigned total = take_over(w, out), port = w->next_rx;

	(void)objs;
	(void)nb_objs;
	for (unsigned k = 0; k < w->n_rx; k++) {
		uint16_t id = w->rx_id[port];
		unsigned n;

		if (total + worst_burst(&w->port[id]) > WORKER_MAX_PACKETS)
			break; /* the next turn begins with this port */
		n = receive(w, &w->port[id], out + total);
		begin_all(w, out + total, n, id);
		if (unlikely(atomic_load_explicit(&w->trace->armed, memory_order_acquire)))
			number(w, node, id, out + total, n);
		if (unlikely(w->taps != NULL))
			taps_in(w, id, out + total, n);
		total += n;
		port = port + 1 == w->n_rx ? 0 : port + 1;
	}
	w->next_rx = port;
	w->work += total;
	rte_node_next_stream_put(graph, node, EDGE_PARSE, (uint16_t)total);
	return (uint16_t)total;
}

static struct rte_node_register port_rx = {
	.name = "port_rx",
	.flags = RTE_NODE_SOURCE_F,
	.process = port_rx_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_PARSE] = "parse"},
};
RTE_NODE_REGISTER(port_rx)
