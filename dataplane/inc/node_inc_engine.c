/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the engine on each packet and makes frames of what it emits. The packet itself always ends
 * here: its verdict is its drop reason. */
#include "dataplane/runtime/chain.h"
#include "dataplane/runtime/node.h"

enum { EDGE_DROP, N_EDGES };

struct sink {
	struct worker *w;
	const struct rte_node *node;
	struct rte_mbuf *m; /* being processed; NULL: a timer has ended */
	const struct meta *meta;
};

/* Packets to make of an emission. */
struct copies {
	const struct sink *s;
	struct inc_group *g;
	struct inc_translation t;
	unsigned left;
	struct chain_stock stock;
};

/* NULL: no buffers left. */
static struct rte_mbuf *chain(struct copies *k, unsigned ep)
{
	const struct inc_emit *emit = k->t.emit;
	struct rte_mbuf *m = k->s->m;
	unsigned head_len, tail_len;
	struct chain c;

	if (unlikely(!chain_take(k->s->w, &k->stock, k->left, &c)))
		return NULL;
	if (emit->from_packet) {
		rte_pktmbuf_attach(c.payload, m);
		c.payload->data_off = (uint16_t)(emit->payload - (const uint8_t *)m->buf_addr);
	} else {
		chain_lend(k->s->w, k->g->slot, emit->payload, emit->pay_len, c.payload);
	}
	head_len = (unsigned)inc_translate_to(k->g, ep, &k->t, rte_pktmbuf_mtod(c.head, uint8_t *),
		rte_pktmbuf_mtod(c.tail, uint8_t *), &tail_len);
	return chain_link(&c, head_len, emit->pay_len, tail_len);
}

/* All in one buffer. NULL: there is none left. */
static struct rte_mbuf *copy(struct copies *k, unsigned ep)
{
	const struct inc_emit *emit = k->t.emit;
	struct rte_mbuf *m = rte_pktmbuf_alloc(k->s->w->pool);
	uint8_t *head, trailer[8];
	unsigned trailer_len, len;

	static_assert(sizeof(trailer) >= (size_t)WIRE_MAX_TRAILER, "room for it");
	if (unlikely(m == NULL))
		return NULL;
	head = rte_pktmbuf_mtod(m, uint8_t *);
	len = (unsigned)inc_translate_to(k->g, ep, &k->t, head, trailer, &trailer_len);
	if (emit->pay_len > 0)
		memcpy(head + len, emit->payload, emit->pay_len);
	len += emit->pay_len;
	memcpy(head + len, trailer, WIRE_MAX_TRAILER); /* a buffer has room for the longest */
	m->data_len = (uint16_t)(len + trailer_len);
	m->pkt_len = m->data_len;
	return m;
}

static void emit(void *arg, struct inc_group *g, const struct inc_emit *emit)
{
	const struct sink *s = arg;
	struct worker *w = s->w;
	struct copies k; /* not all of it is written to */

	k.s = s;
	k.g = g;
	k.t = inc_translate_emit(g, emit, w->ip_id++);
	k.left = (unsigned)__builtin_popcountll(emit->out_mask);
	k.stock.n = 0;
	w->emitted += k.left;
	for (uint64_t outs = emit->out_mask; outs != 0; outs &= outs - 1, k.left--) {
		const unsigned ep = (unsigned)__builtin_ctzll(outs);
		const uint16_t port = inc_ep_at(g, ep)->port;
		const bool chained = emit->pay_len > CHAIN_ABOVE && w->port[port].port->multi_seg;
		struct rte_mbuf *m = chained ? chain(&k, ep) : copy(&k, ep);

		if (unlikely(m == NULL)) {
			w->drops[DROP_NO_MBUF]++;
			continue;
		}
		if (unlikely(s->meta && s->meta->trace))
			node_trace(w, s->node, s->meta,
				"emits to endpoint %u, port %s: %s, PSN %u, %u bytes", ep,
				w->port[port].port->config.name, roce_opcode_name(emit->opcode),
				emit->psn, emit->pay_len);
		worker_tx(w, port, m);
	}
	chain_done(w, &k.stock);
}

static void trace_verdict(const struct sink *s)
{
	struct inc_group *g = s->meta->look.group;
	const struct inc_slot *slot = inc_slot_at(g, s->meta->pkt.psn);

	node_trace(s->w, s->node, s->meta,
		"mode %u, PSN %u: %s; slot of PSN %u has 0x%" PRIx64 "%s", g->mode,
		s->meta->pkt.psn, drop_name(s->meta->drop), slot->tag, slot->arrived,
		slot->complete ? ", complete" : "");
}

/* Nothing of the group changes before the ICRC is known to be right. */
static enum drop aggregate(struct sink *s, const struct meta *meta)
{
	const struct inc_sink sink = {.arg = s, .emit = emit};
	const uint8_t *frame = rte_pktmbuf_mtod(s->m, const uint8_t *);
	uint32_t pay_crc = 0;
	enum inc_drop drop;

	if (!inc_check_icrc(&meta->look, frame, &meta->pkt, &pay_crc))
		return DROP_WIRE_ICRC_BAD;
	drop = inc_packet(meta->look.group, &s->w->arena, &meta->look, &meta->pkt,
		frame + meta->pkt.pay_off, pay_crc, s->w->now, &sink);
	worker_note_timer(s->w, meta->look.group);
	return drop_of_inc(drop);
}

/* Groups come, move and go while their timers run: a slot's present group has timers of its own, at
 * its present owner. */
void worker_timers(struct worker *w)
{
	struct sink s = {.w = w};
	const struct inc_sink sink = {.arg = &s, .emit = emit};
	struct timer *due;

	while ((due = timer_expired(&w->timers, w->now)) != NULL) {
		const unsigned slot = (unsigned)(due - w->group_timer);
		struct inc_group *g = __atomic_load_n(&w->inc->group[slot], __ATOMIC_ACQUIRE);

		w->timer_visits++;
		if (g != NULL && inc_owner(w->inc, slot) == w->index &&
			inc_tick(g, &w->arena, w->now, &sink) != UINT64_MAX)
			timer_set(&w->timers, due, g->timer_ns);
	}
	w->timer_ns = w->timers.n ? w->timers.slot[0].key : UINT64_MAX;
}

/* The payload of the packet after the next comes while this one is worked on, and where it will be
 * added: the time of one packet is short for what lies in the last cache. */
enum { AHEAD = 2 };

static inline void prefetch(struct worker *w, const struct rte_mbuf *m)
{
	const struct meta *meta = meta_of(w, m);
	const uint8_t *payload = rte_pktmbuf_mtod_offset(m, const uint8_t *, meta->pkt.pay_off);

	for (uint16_t at = 0; at < meta->pkt.pay_len; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(payload + at);
	inc_prefetch(meta->look.group, &w->arena, meta->pkt.psn);
}

static uint16_t inc_engine_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct sink s = {.w = node_worker(node), .node = node};

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(s.w, mbufs[i]);

		if (i + AHEAD < n)
			prefetch(s.w, mbufs[i + AHEAD]);
		s.m = mbufs[i];
		s.meta = meta;
		meta->drop = (uint8_t)aggregate(&s, meta);
		if (unlikely(s.w->tracing) && meta->trace)
			trace_verdict(&s);
	}
	rte_node_next_stream_move(graph, node, EDGE_DROP);
	return n;
}

static struct rte_node_register inc_engine_node = {
	.name = "inc_engine",
	.process = inc_engine_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_DROP] = "end"},
};
RTE_NODE_REGISTER(inc_engine_node)
