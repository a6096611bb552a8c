/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers echo requests to the switch, back through the port they came from. */
#include "dataplane/ip/asker.h"
#include "dataplane/runtime/node.h"

enum { EDGE_TX, EDGE_DROP, N_EDGES };

/* The checksum over all of it, its field included, is that of zeros. */
static bool checksum_ok(const uint8_t *frame, const struct wire_pkt *pkt)
{
	const uint8_t *icmp = frame + pkt->l4_off;
	const size_t len = (size_t)(pkt->end - pkt->l4_off);

	if (pkt->ip_ver == 4)
		return ip_sum(icmp, len, 0) == 0xffff;
	return ip_l4_checksum(&pkt->src, &pkt->dst, IP_PROTO_ICMP6, icmp, len) == 0;
}

static enum drop check(const struct worker *w, const uint8_t *frame, const struct wire_pkt *pkt)
{
	enum drop drop = asker_check(w, frame, frame + 6, &pkt->src);

	if (drop != DROP_NONE)
		return drop;
	if (frame[0] & 1)
		return DROP_L2_GROUP;
	return checksum_ok(frame, pkt) ? DROP_NONE : DROP_ICMP_CHECKSUM;
}

static uint16_t icmp_echo_process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct rte_mbuf **mbufs = (struct rte_mbuf **)objs;
	struct worker *w = node_worker(node);
	rte_edge_t next[WORKER_MAX_PACKETS];

	for (uint16_t i = 0; i < n; i++) {
		uint8_t *frame = rte_pktmbuf_mtod(mbufs[i], uint8_t *);
		struct meta *meta = meta_of(w, mbufs[i]);

		meta->drop = (uint8_t)check(w, frame, &meta->pkt);
		next[i] = meta->drop == DROP_NONE ? EDGE_TX : EDGE_DROP;
		if (meta->drop == DROP_NONE)
			wire_icmp_echo_reply(frame, &meta->pkt);
		if (unlikely(w->tracing) && meta->trace)
			node_trace(w, node, meta, "echo request %s",
				meta->drop == DROP_NONE ? "answered" : "not answered");
	}
	node_split(graph, node, objs, next, n);
	return n;
}

static struct rte_node_register icmp_echo = {
	.name = "icmp_echo",
	.process = icmp_echo_process,
	.init = node_init,
	.nb_edges = N_EDGES,
	.next_nodes = {[EDGE_TX] = "port_tx", [EDGE_DROP] = "end"},
};
RTE_NODE_REGISTER(icmp_echo)
