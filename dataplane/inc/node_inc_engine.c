/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the engine on each packet and makes frames of what it emits. The packet itself always ends
 * here: its verdict is its drop reason. */
#include "dataplane/runtime/node.h"

enum { EDGE_DROP, N_EDGES };

/* Payload above this size is sent as it lies, in a segment of its own between header and trailer;
 *up to it, copying into one buffer is cheaper than three buffers. Sending over memif, per packet:
 *	payload		256	1024	4096 bytes
 *	copied		175 ns	303 ns	529 ns
 *	three segments	168 ns	298 ns	435 ns		(best of three, the machine was not idle) */
enum { COPY_MAX = 512 };

struct sink {
	struct worker *w;
	const struct rte_node *node;
	struct rte_mbuf *m; /* being processed; NULL: a timer has ended */
	const struct meta *meta;
};

static void returned(void *addr, void *opaque)
{
	struct worker_lent *lent = opaque;

	(void)addr;
	__atomic_fetch_add(&lent->returned, 1, __ATOMIC_RELEASE);
}

/* Makes the segment refer to the group's memory, which waits for its return (sw_host_is_read). */
static void lend(struct worker *w, const struct inc_group *g, const struct inc_emit *emit,
	struct rte_mbuf *seg)
{
	struct rte_mbuf_ext_shared_info *ref = seg->buf_addr;
	struct worker_lent *lent = &w->lent[g->slot];

	static_assert(sizeof(*ref) <= RTE_PKTMBUF_HEADROOM, "room in a head buffer");
	ref->free_cb = returned;
	ref->fcb_opaque = lent;
	rte_mbuf_ext_refcnt_set(ref, 1);
	__atomic_store_n(&lent->given, lent->given + 1, __ATOMIC_RELAXED);
	rte_pktmbuf_attach_extbuf(seg, (void *)(uintptr_t)emit->payload,
		w->arena_iova + (rte_iova_t)(emit->payload - w->arena.base), emit->pay_len, ref);
	seg->data_off = 0;
}

/* A segment that refers to the payload where it lies. */
static struct rte_mbuf *payload_segment(
	const struct sink *s, const struct inc_group *g, const struct inc_emit *emit)
{
	struct worker *w = s->w;
	struct rte_mbuf *seg = rte_pktmbuf_alloc(w->head_pool);

	if (seg == NULL)
		return NULL;
	if (emit->from_packet) {
		rte_pktmbuf_attach(seg, s->m);
		seg->data_off = (uint16_t)(emit->payload - (const uint8_t *)s->m->buf_addr);
	} else {
		lend(w, g, emit, seg);
	}
	seg->data_len = emit->pay_len;
	return seg;
}

/* Header | payload | trailer, three buffers. False: there are not as many left. */
static bool chain(const struct sink *s, struct inc_group *g, const struct inc_emit *emit,
	unsigned ep, uint16_t ip_id, struct rte_mbuf *head)
{
	struct rte_mbuf *payload = payload_segment(s, g, emit);
	struct rte_mbuf *tail = rte_pktmbuf_alloc(s->w->head_pool);
	unsigned tail_len;

	if (unlikely(payload == NULL || tail == NULL)) {
		rte_pktmbuf_free(payload);
		rte_pktmbuf_free(tail);
		return false;
	}
	head->data_len = (uint16_t)inc_translate_header(g, ep, emit, ip_id,
		rte_pktmbuf_mtod(head, uint8_t *), rte_pktmbuf_mtod(tail, uint8_t *), &tail_len);
	tail->data_len = (uint16_t)tail_len;
	head->next = payload;
	payload->next = tail;
	head->nb_segs = 3;
	head->pkt_len = (uint32_t)head->data_len + emit->pay_len + tail_len;
	return true;
}

/* All in one buffer. */
static void copy(struct inc_group *g, const struct inc_emit *emit, unsigned ep, uint16_t ip_id,
	struct rte_mbuf *m)
{
	uint8_t *head = rte_pktmbuf_mtod(m, uint8_t *), trailer[8];
	unsigned trailer_len, len;

	static_assert(sizeof(trailer) >= (size_t)WIRE_MAX_TRAILER, "room for it");
	len = (unsigned)inc_translate_header(g, ep, emit, ip_id, head, trailer, &trailer_len);
	if (emit->pay_len > 0)
		memcpy(head + len, emit->payload, emit->pay_len);
	len += emit->pay_len;
	memcpy(head + len, trailer, WIRE_MAX_TRAILER); /* a buffer has room for the longest */
	m->data_len = (uint16_t)(len + trailer_len);
	m->pkt_len = m->data_len;
}

/* NULL: no buffer left. */
static struct rte_mbuf *make_copy(
	const struct sink *s, struct inc_group *g, const struct inc_emit *emit, unsigned ep)
{
	struct lport *out = &s->w->port[inc_ep_at(g, ep)->port];
	bool chained = emit->pay_len > COPY_MAX && out->port->multi_seg;
	struct rte_mbuf *m = rte_pktmbuf_alloc(chained ? s->w->head_pool : s->w->pool);

	if (unlikely(m == NULL))
		return NULL;
	if (!chained) {
		copy(g, emit, ep, out->ip_id++, m);
	} else if (unlikely(!chain(s, g, emit, ep, out->ip_id++, m))) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	return m;
}

static void emit(void *arg, struct inc_group *g, const struct inc_emit *emit)
{
	const struct sink *s = arg;
	struct worker *w = s->w;

	for (uint64_t outs = emit->out_mask; outs != 0; outs &= outs - 1) {
		unsigned ep = (unsigned)__builtin_ctzll(outs);
		uint16_t port = inc_ep_at(g, ep)->port;
		struct rte_mbuf *m = make_copy(s, g, emit, ep);

		w->emitted++;
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

/* The next packet's payload comes while this one is worked on. More than its start a processor
 * fetches by itself once it is read in order. */
enum { PREFETCH_MAX = 1024 };

static inline void prefetch(struct worker *w, const struct rte_mbuf *m)
{
	const struct meta *meta = meta_of(w, m);
	const uint8_t *payload = rte_pktmbuf_mtod_offset(m, const uint8_t *, meta->pkt.pay_off);
	const uint16_t len = RTE_MIN(meta->pkt.pay_len, (uint16_t)PREFETCH_MAX);

	for (uint16_t at = 0; at < len; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(payload + at);
}

static uint16_t inc_engine_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct sink s = {.w = node_worker(node), .node = node};

	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(s.w, mbufs[i]);

		if (i + 1 < n)
			prefetch(s.w, mbufs[i + 1]);
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
