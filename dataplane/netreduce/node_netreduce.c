/* SPDX-License-Identifier: BSD-3-Clause */
/* All RoCE packets come by here while there is a NetReduce ring. Those of registered connections
 * go through the engine; the others, and what the engine has no use for, go on as if this node did
 * not exist. */
#include "dataplane/retag.h"
#include "dataplane/runtime/chain.h"
#include "dataplane/runtime/handoff.h"
#include "dataplane/runtime/node.h"
#include "dataplane/views.h"

enum { EDGE_INC_LOOKUP, EDGE_IP_FORWARD, EDGE_HANDOFF, EDGE_DROP, N_EDGES };

enum { BULK = RTE_HASH_LOOKUP_BULK_MAX };

struct sink {
	struct worker *w;
	const struct rte_node *node;
	const struct meta *meta;
};

static enum drop bad_route(const struct adj *adj)
{
	return adj->kind == ADJ_BLACKHOLE  ? DROP_IP_BLACKHOLE
	       : adj->kind == ADJ_NO_NEIGH ? DROP_IP_NO_NEIGH
					   : DROP_IP_NO_ROUTE;
}

/* All in one buffer. */
static struct rte_mbuf *copy(struct worker *w, const struct nr_emit *emit)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);

	if (unlikely(m == NULL))
		return NULL;
	m->data_len = (uint16_t)nr_frame(emit, rte_pktmbuf_mtod(m, uint8_t *));
	m->pkt_len = m->data_len;
	return m;
}

/* The data where they lie in the arena. There they stay until every receiver has them, by the
 * window argument (claim in engine.c). */
static struct rte_mbuf *chain(struct worker *w, const struct nr_ring *r, const struct nr_emit *emit)
{
	struct chain_stock stock;
	struct chain c;

	stock.n = 0;
	if (unlikely(!chain_take(w, &stock, 1, &c)))
		return NULL;
	chain_lend(w, r->slot, emit->payload, emit->pay_len, c.payload);
	memcpy(rte_pktmbuf_mtod(c.head, uint8_t *), emit->head, emit->head_len);
	memcpy(rte_pktmbuf_mtod(c.tail, uint8_t *), emit->tail, sizeof(emit->tail));
	return chain_link(&c, emit->head_len, emit->pay_len, emit->tail_len);
}

/* A frame of the engine's is routed like any other: only the lookup is one at a time. */
static enum drop send(struct worker *w, const struct nr_ring *r, const struct nr_emit *emit)
{
	const struct wire_pkt pkt = {
		.l3_off = emit->l3_off, .ip_ver = emit->ip_ver, .ttl = emit->ttl};
	const struct adj *adj = fwd_lookup(w->fwd, &emit->dst);
	const unsigned len = (unsigned)emit->head_len + emit->pay_len + emit->tail_len;
	struct rte_mbuf *m;

	if (unlikely(adj->kind != ADJ_REWRITE))
		return bad_route(adj);
	if (unlikely(len - emit->l3_off > adj->mtu))
		return DROP_IP_MTU;
	m = emit->pay_len > CHAIN_ABOVE && w->port[adj->port].port->multi_seg ? chain(w, r, emit)
									      : copy(w, emit);
	if (unlikely(m == NULL))
		return DROP_NO_MBUF;
	if (unlikely(
		    wire_forward(rte_pktmbuf_mtod(m, uint8_t *), &pkt, adj->dmac, adj->smac) < 0)) {
		rte_pktmbuf_free(m);
		return DROP_IP_TTL;
	}
	if (unlikely(!retag(m, emit->l3_off != ETH_HDR_LEN, adj->vlan))) {
		rte_pktmbuf_free(m);
		return DROP_NO_MBUF;
	}
	worker_tx(w, adj->port, m);
	return DROP_NONE;
}

static void emit(void *arg, struct nr_ring *r, const struct nr_emit *emit)
{
	const struct sink *s = arg;
	enum drop drop = send(s->w, r, emit);
	char ip[WIRE_IP_STRLEN];

	s->w->emitted++;
	if (unlikely(drop != DROP_NONE))
		s->w->drops[drop]++;
	if (unlikely(s->meta->trace))
		node_trace(s->w, s->node, s->meta, "emits to %s: %u bytes of data%s%s",
			wire_ip_format(&emit->dst, ip, sizeof(ip)), emit->pay_len,
			drop == DROP_NONE ? "" : ", dropped: ",
			drop == DROP_NONE ? "" : drop_name(drop));
}

static rte_edge_t pass(const struct worker *w, const struct meta *meta)
{
	return fwd_is_local(w->fwd, &meta->pkt.dst) ? EDGE_INC_LOOKUP : EDGE_IP_FORWARD;
}

static rte_edge_t registered(
	struct sink *s, struct meta *meta, const struct nr_look *look, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct port *port = s->w->port[m->port].port;
	const struct nr_sink sink = {.arg = s, .emit = emit};
	enum nr_drop drop;

	if (handoff_needed(s->w, look->ring->slot, meta))
		return EDGE_HANDOFF;
	/* Routed packets must be sent to the port's MAC address: ip_forward says so. */
	if (look->row <= NR_ROW_REPLY && memcmp(frame, port->mac, sizeof(port->mac)) != 0)
		return EDGE_IP_FORWARD;
	if (unlikely(!fwd_vlan_ok(s->w->fwd, m->port, meta->pkt.vlan))) {
		meta->drop = DROP_L2_VLAN;
		return EDGE_DROP;
	}
	s->meta = meta;
	if (unlikely(look->port != NR_ANY_PORT && look->port != m->port))
		drop = NR_DROP_PORT;
	else
		drop = nr_rx(look, &s->w->arena, frame, &meta->pkt, s->w->now, &sink);
	meta->drop = (uint8_t)drop_of_nr(drop);
	if (unlikely(meta->trace))
		node_trace(s->w, s->node, meta, "ring %s, input %u: %s", look->ring->name, look->in,
			nr_drop_name(drop));
	return drop == NR_FORWARD ? pass(s->w, meta) : EDGE_DROP;
}

/* Up to BULK packets: the rows of all of them, -1 for what is not registered. */
static void lookup(struct worker *w, struct rte_mbuf *const *mbufs, uint16_t n, int32_t *row)
{
	struct nr_key key[BULK];
	const void *keys[BULK];

	for (uint16_t i = 0; i < n; i++) {
		key[i] = nr_key_of(&meta_of(w, mbufs[i])->pkt);
		keys[i] = &key[i];
	}
	void *data[BULK];
	uint64_t hits = 0;

	rte_hash_lookup_bulk_data(w->clt->hash, keys, n, &hits, data);
	for (uint16_t i = 0; i < n; i++)
		row[i] = hits >> i & 1 ? (int32_t)(uintptr_t)data[i] : -1;
}

static uint16_t netreduce_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	struct sink s = {.w = w, .node = node};
	rte_edge_t next[WORKER_MAX_PACKETS];
	int32_t row[WORKER_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i += BULK)
		lookup(w, mbufs + i, n - i < BULK ? n - i : BULK, row + i);
	for (uint16_t i = 0; i < n; i++) {
		struct meta *meta = meta_of(w, mbufs[i]);

		next[i] = row[i] < 0 ? pass(w, meta)
				     : registered(&s, meta, &w->clt->row[row[i]], mbufs[i]);
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register netreduce = {
	.name = "netreduce",
	.process = netreduce_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes =
		{
			[EDGE_INC_LOOKUP] = "inc_lookup",
			[EDGE_IP_FORWARD] = "ip_forward",
			[EDGE_HANDOFF] = "handoff",
			[EDGE_DROP] = "end",
		},
};
RTE_NODE_REGISTER(netreduce)

/* What lookup matches: struct nr_key. */
const struct table_desc nr_connection_view = {
	.name = "nr_connection",
	.node = "netreduce",
	.miss = "ip_forward",
	.help = "connections of NetReduce rings, in both directions (ring.show)",
	.n_keys = 3,
	.keys = {{.name = "src", .help = "the sender's address", .type = TABLE_IP},
		{.name = "dst", .help = "the receiver's address", .type = TABLE_IP},
		{.name = "qpn", .help = "the receiver's", .type = TABLE_UINT, .max = 0xffffff}},
	.n_actions = 1,
	.actions = {{.name = "engine", .help = "to the ring's worker, and NetReduce's engine"}},
	.size = NR_MAX_RINGS * NR_MAX_ROWS,
};
