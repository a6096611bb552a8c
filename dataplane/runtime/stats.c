/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control plane can ask: ports, drops, nodes, values, traces. Reads the workers' counters
 * while it runs; see worker.h for how stale they are. */
#include <errno.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/sw.h"
#include "lib/journal/journal.h"

unsigned sw_n_ports(const struct sw *sw)
{
	return sw->n_ports;
}

/* The entry may have been mended since. */
static bool still_differs(const struct sw *sw, const struct worker_seen *s)
{
	const struct fwd *fwd = sw->fwd;
	const struct adj *adj = fwd_lookup(fwd, &s->ip);

	return fwd_is_neigh(fwd, adj, &s->ip) && !adj->learnt && adj->port == s->port &&
	       memcmp(adj->dmac, s->mac, sizeof(s->mac)) != 0;
}

static void seen_text(const struct worker_seen *s, char text[SW_MISMATCH_TEXT])
{
	char ip[WIRE_IP_STRLEN], mac[WIRE_MAC_STRLEN];

	snprintf(text, SW_MISMATCH_TEXT, "%s from %s", wire_ip_format(&s->ip, ip, sizeof(ip)),
		wire_mac_format(s->mac, mac, sizeof(mac)));
}

static void find_mismatch(const struct sw *sw, uint16_t port, char text[SW_MISMATCH_TEXT])
{
	for (unsigned k = 0; k < sw->n_workers; k++) {
		const struct worker *w = sw->worker[k];
		unsigned n = atomic_load_explicit(&w->n_seen, memory_order_acquire);

		for (unsigned i = n; i > 0; i--)
			if (w->seen[i - 1].port == port && still_differs(sw, &w->seen[i - 1])) {
				seen_text(&w->seen[i - 1], text);
				return;
			}
	}
}

static void log_mismatches(struct sw *sw, const struct worker *w, unsigned *logged)
{
	unsigned n = atomic_load_explicit(&w->n_seen, memory_order_acquire);
	char text[SW_MISMATCH_TEXT];

	for (; *logged < n; ++*logged) {
		const struct worker_seen *s = &w->seen[*logged];

		seen_text(s, text);
		journal(JOURNAL_WARNING,
			"%s: port %s: %s, which is not the MAC address of its neigh entry",
			sw->config.name, w->port[s->port].port->config.name, text);
	}
}

void sw_log_mismatches(struct sw *sw)
{
	for (unsigned k = 0; k < sw->n_workers; k++)
		log_mismatches(sw, sw->worker[k], &sw->n_seen_logged[k]);
}

int sw_port_get(struct sw *sw, unsigned i, struct sw_port *out)
{
	const struct port *port = &sw->ports[i];
	struct rte_eth_stats s;

	if (i >= sw->n_ports)
		return -ENOENT;
	port_driver_stats(port, &s);
	*out = (struct sw_port){
		.id = port->id,
		.mtu = (uint16_t)port_mtu(port),
		.link = port_link_up(port),
		.mbps = port_mbps(port),
		.rx_missed = s.imissed,
		.rx_errors = s.ierrors,
		.rx_nombuf = s.rx_nombuf,
	};
	for (unsigned k = 0; k < sw->n_workers; k++) {
		const struct lport *lp = &sw->worker[k]->port[port->id];

		out->rx_packets += lp->rx_packets;
		out->rx_bytes += lp->rx_bytes;
		out->tx_packets += lp->tx_packets;
		out->tx_bytes += lp->tx_bytes;
		out->tx_drops += lp->tx_drops;
		out->mac_mismatch += lp->mac_mismatch;
		out->mac_unlisted += lp->mac_unlisted;
	}
	find_mismatch(sw, port->id, out->mismatch);
	memcpy(out->name, port->config.name, sizeof(out->name));
	memcpy(out->type, port->config.type, sizeof(out->type));
	memcpy(out->mac, port->mac, sizeof(out->mac));
	return 0;
}

int sw_port_find(struct sw *sw, const char *name)
{
	for (unsigned i = 0; i < sw->n_ports; i++)
		if (strcmp(sw->ports[i].config.name, name) == 0)
			return (int)i;
	return -ENOENT;
}

static uint64_t drops(const struct sw *sw, unsigned i)
{
	uint64_t n = 0;

	for (unsigned k = 0; k < sw->n_workers; k++)
		n += sw->worker[k]->drops[i];
	return n;
}

static void each_drop(struct sw *sw, bool outcomes, sw_drop_fn fn, void *arg)
{
	for (unsigned i = DROP_NONE + 1; i < N_DROPS; i++)
		if (drop_is_outcome(i) == outcomes)
			fn(arg, drop_name(i), drop_text(i), drops(sw, i) - sw->drops_cleared[i]);
}

void sw_drops(struct sw *sw, sw_drop_fn fn, void *arg)
{
	each_drop(sw, false, fn, arg);
}

void sw_outcomes(struct sw *sw, sw_drop_fn fn, void *arg)
{
	each_drop(sw, true, fn, arg);
}

/* The counters are the workers'; clearing means to count from here. */
void sw_drops_clear(struct sw *sw)
{
	for (unsigned i = 0; i < N_DROPS; i++)
		sw->drops_cleared[i] = drops(sw, i);
}

/* Of the counters that lie at this place in each worker. */
static uint64_t sum(const struct sw *sw, size_t offset)
{
	uint64_t n = 0;

	for (unsigned k = 0; k < sw->n_workers; k++)
		n += *(const uint64_t *)((const char *)sw->worker[k] + offset);
	return n;
}

#define SUM(sw, field) sum(sw, offsetof(struct worker, field))

void sw_nodes(struct sw *sw, sw_node_fn fn, void *arg)
{
	graph_nodes(sw->node_stats, fn, arg);
	fn(arg, "port_tx_flush", SUM(sw, flush_calls), SUM(sw, flush_packets),
		SUM(sw, flush_cycles));
}

static uint64_t missed(const struct sw *sw)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < sw->n_ports; i++) {
		struct rte_eth_stats s;

		if (port_driver_stats(&sw->ports[i], &s) == 0)
			n += s.imissed + s.ierrors + s.rx_nombuf;
	}
	return n;
}

static uint64_t came_again(const struct sw *sw)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < sw->n_ports; i++)
		n += sw->ports[i].again.times;
	return n;
}

/* Servers that were lost and found; who knocked at a socket of ours and was sent away. */
static void memif_values(const struct sw *sw, sw_value_fn fn, void *arg)
{
	const char *reason, *text;
	char name[48];

	fn(arg, SW_COUNTER, "memif_came_again",
		"times that a memif client has found its server, or the next one, again",
		came_again(sw));
	for (unsigned i = 0;; i++) {
		uint64_t n = port_memif_refused(i, &reason, &text);

		if (reason == NULL)
			break;
		snprintf(name, sizeof(name), "memif_refused_%s", reason);
		fn(arg, SW_COUNTER, name, text, n);
	}
	fn(arg, SW_COUNTER, "memif_lost",
		"pieces of memif clients' memory that could not be touched: the client was hung up "
		"on",
		port_memif_lost());
}

static void vhost_values(sw_value_fn fn, void *arg)
{
	fn(arg, SW_COUNTER, "vhost_lost",
		"pieces of vhost clients' memory that could not be touched: the client was hung up "
		"on",
		port_vhost_lost());
}

/* Over all of the switch's life: exact, where the EAL rounds what it has measured in a moment. */
static uint64_t cycles_hz(const struct sw *sw)
{
	const double s = (double)(port_now_ns() - sw->started_ns) / 1e9;

	return s > 0 ? (uint64_t)((double)(rte_rdtsc() - sw->started_cycles) / s) : 0;
}

static uint64_t held_back(const struct sw *sw)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < sw->n_workers; i++)
		for (unsigned k = 0; k < sw->n_ports; k++)
			n += sw->impair[i][k].n_held;
	return n;
}

static void capture_values(struct sw *sw, sw_value_fn fn, void *arg)
{
	struct sw_capture_counts n;
	unsigned running;

	sw_captures_count(sw, &running, &n);
	fn(arg, SW_GAUGE, "captures", "captures that run", running);
	fn(arg, SW_COUNTER, "capture_packets", "packets copied for captures", n.captured);
	fn(arg, SW_COUNTER, "capture_dropped",
		"packets missing in captures: not read fast enough; they went their way",
		n.dropped);
}

void sw_values(struct sw *sw, sw_value_fn fn, void *arg)
{
	fn(arg, SW_GAUGE, "uptime_ns", "since the switch was created",
		port_now_ns() - sw->started_ns);
	fn(arg, SW_GAUGE, "cycles_hz", "cycles per second, of the nodes' cycles", cycles_hz(sw));
	fn(arg, SW_COUNTER, "turns", "turns of the workers' loops", SUM(sw, turns));
	fn(arg, SW_COUNTER, "idle_turns", "turns without a packet", SUM(sw, idle_turns));
	fn(arg, SW_COUNTER, "emitted",
		"packets made by the switch: by the engine, copies, requests, errors; sent after a "
		"wait",
		SUM(sw, emitted));
	fn(arg, SW_COUNTER, "icmp_errors", "ICMP errors sent", SUM(sw, icmp_sent));
	fn(arg, SW_COUNTER, "icmp_errors_held", "ICMP errors not sent: there were too many",
		SUM(sw, icmp_held));
	fn(arg, SW_COUNTER, "doubled", "packets doubled on purpose by \"impair\"",
		SUM(sw, doubled));
	fn(arg, SW_COUNTER, "overtaken", "packets that \"impair\" has let others overtake",
		SUM(sw, overtaken));
	fn(arg, SW_GAUGE, "held_back", "packets that \"impair\" holds, to be overtaken",
		held_back(sw));
	fn(arg, SW_COUNTER, "corrupted", "packets in which \"impair\" has turned over a bit",
		SUM(sw, corrupted));
	fn(arg, SW_COUNTER, "rx_missed",
		"packets that drivers lost before the switch saw them: of which port, see ports",
		missed(sw));
	fn(arg, SW_GAUGE, "arena_bytes", "aggregation memory", sw->arena->size);
	fn(arg, SW_GAUGE, "arena_used_bytes", "aggregation memory in use", sw->arena->used);
	fn(arg, SW_GAUGE, "arena_draining_bytes", "of it held back: a port may still read them",
		sw->draining_bytes);
	fn(arg, SW_GAUGE, "groups", "groups installed", sw->n_groups);
	fn(arg, SW_GAUGE, "groups_stalled", "groups that wait too long for some rank",
		sw->n_stalled);
	fn(arg, SW_COUNTER, "stalls", "times that a group was found to wait too long", sw->stalls);
	fn(arg, SW_GAUGE, "mbufs_free", "packet buffers not in use",
		rte_mempool_avail_count(sw->pool));
	fn(arg, SW_GAUGE, "mbufs", "packet buffers", sw->pool->size);
	fn(arg, SW_GAUGE, "head_mbufs_free", "header buffers not in use",
		rte_mempool_avail_count(sw->head_pool));
	capture_values(sw, fn, arg);
	sw_rnic_values(sw, fn, arg);
	sw_lldp_values(sw, fn, arg);
	memif_values(sw, fn, arg);
	vhost_values(fn, arg);
}

bool sw_table_hits(const struct sw *sw, unsigned table, unsigned row, uint64_t *hits)
{
	const struct fwd *fwd = sw->fwd;

	if (table == FWD_MCAST_GROUP || table == FWD_MCAST_SENDER)
		return mcast_fwd_hits(atomic_load(&sw->published)->mcast, table, row, hits);
	if (table == FWD_ACL)
		return acl_hits(atomic_load(&sw->published)->acl, row, hits);
	if (table != FWD_LOCAL_SID || row >= fwd->sids.n)
		return false;
	*hits = row_hits_get(&fwd->sids.hits, row);
	return true;
}

void sw_arena_usage(struct sw *sw, uint64_t *size, uint64_t *used)
{
	*size = sw->arena->size;
	*used = sw->arena->used;
}

/* ---- trace ---- */

int sw_trace_start(struct sw *sw, int port, unsigned n, char err[SW_ERR_LEN])
{
	struct trace *t = &sw->trace;

	if (n < 1 || n > SW_TRACE_MAX)
		return sw_fail(err, -EINVAL, "count: %u is out of range 1..%d", n, SW_TRACE_MAX);
	if (port >= (int)sw->n_ports || port < -1)
		return sw_fail(err, -ENOENT, "port: there is no port %d", port);
	atomic_store(&t->armed, false);
	if (sw_quiesce(sw) < 0)
		return sw_fail(err, -ETIMEDOUT, "a worker does not respond");
	if (trace_prepare(t, port < 0 ? -1 : sw->ports[port].id, n) < 0)
		return sw_fail(err, -ENOMEM, "no memory for %u traces", n);
	atomic_store_explicit(&t->armed, true, memory_order_release);
	return 0;
}

unsigned sw_trace_read(struct sw *sw, unsigned from, struct sw_trace_rec *rec, unsigned n)
{
	return trace_read(&sw->trace, from, rec, n);
}
