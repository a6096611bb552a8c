/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/integration/ring_fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verbs/port_ops.h"
#include "tests/integration/capture.h"

enum {
	LINK_DELAY_NS = 2000,
	REORDER_NS = 20000,
	INBOX = 4096,
	RING_ID = 7,
	SLOT = 4032,
	GEN = 9,
};

/* Nodes: hosts 0.., then switches from RF_MAX_HOSTS on. */
struct event {
	uint64_t at, order;
	unsigned node, len;
	uint8_t frame[];
};

struct host {
	struct ring_fabric *f;
	struct ibv_context *context;
	struct ccl_ring *ring;
	struct ccl_ring_address at;
	struct event *inbox[INBOX];
	unsigned head, tail;
	unsigned leaf;
	bool down;
};

struct ring_fabric {
	struct rf_opts opts;
	struct host host[RF_MAX_HOSTS];
	struct rf_switch sw[RF_MAX_SWITCHES];
	bool uplink_down[RF_MAX_SWITCHES];
	rf_tap tap;
	void *tap_arg;
	FILE *pcap;
	uint64_t now, order, rng, bytes;
	struct event **heap;
	unsigned n_events, cap_events;
};

/* ---- events: a binary heap by time, then by order of making ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct ring_fabric *f, struct event *e)
{
	unsigned i = f->n_events++;

	if (f->n_events > f->cap_events) {
		f->cap_events = f->cap_events ? 2 * f->cap_events : 1024;
		f->heap = realloc(f->heap, f->cap_events * sizeof(*f->heap));
	}
	for (; i > 0 && before(e, f->heap[(i - 1) / 2]); i = (i - 1) / 2)
		f->heap[i] = f->heap[(i - 1) / 2];
	f->heap[i] = e;
}

static struct event *pop(struct ring_fabric *f)
{
	struct event *top = f->heap[0], *last = f->heap[--f->n_events];
	unsigned i = 0;

	for (unsigned child; (child = 2 * i + 1) < f->n_events; i = child) {
		if (child + 1 < f->n_events && before(f->heap[child + 1], f->heap[child]))
			child++;
		if (!before(f->heap[child], last))
			break;
		f->heap[i] = f->heap[child];
	}
	f->heap[i] = last;
	return top;
}

uint64_t rf_random(struct ring_fabric *f)
{
	uint64_t z = f->rng += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static bool chance(struct ring_fabric *f, double p)
{
	return p > 0 && (double)(rf_random(f) >> 11) * 0x1p-53 < p;
}

static void deliver_later(
	struct ring_fabric *f, unsigned node, const uint8_t *frame, size_t len, uint64_t delay)
{
	struct event *e = malloc(sizeof(*e) + len);

	e->at = f->now + delay;
	e->order = f->order++;
	e->node = node;
	e->len = (unsigned)len;
	memcpy(e->frame, frame, len);
	push(f, e);
}

/* Is the link between two nodes, a host and its switch or a leaf and the spine, down? */
static bool is_down(const struct ring_fabric *f, unsigned a, unsigned b)
{
	const unsigned low = a < b ? a : b, high = a < b ? b : a;

	return low < RF_MAX_HOSTS ? f->host[low].down : f->uplink_down[high - RF_MAX_HOSTS];
}

/* One frame onto a link: its faults happen here. */
static void link_send(
	struct ring_fabric *f, unsigned from, unsigned node, uint8_t *frame, size_t len)
{
	const struct rf_faults *faults = &f->opts.faults;
	uint64_t delay = LINK_DELAY_NS;

	f->bytes += len;
	if (f->tap)
		f->tap(f->tap_arg, f, frame, len);
	if (f->pcap)
		capture_frame(f->pcap, f->now, frame, len);
	if (is_down(f, from, node) || chance(f, faults->loss))
		return;
	if (chance(f, faults->dup))
		deliver_later(f, node, frame, len, delay + rf_random(f) % REORDER_NS);
	if (chance(f, faults->reorder))
		delay += rf_random(f) % REORDER_NS;
	if (chance(f, faults->corrupt))
		frame[rf_random(f) % len] ^= (uint8_t)(1u << rf_random(f) % 8);
	deliver_later(f, node, frame, len, delay);
}

/* ---- addresses ---- */

static struct wire_ip host_ip(unsigned rank)
{
	return wire_ip_from4(0x0a4d0000 + 10 + rank);
}

static struct wire_ip switch_ip(unsigned i)
{
	return wire_ip_from4(0x0a4dff01 + i);
}

static void set_mac(uint8_t mac[6], unsigned node)
{
	const uint8_t m[6] = {2, 0, 0, 0, 0, (uint8_t)node};

	memcpy(mac, m, sizeof(m));
}

/* ---- switches ---- */

/* The node at which a frame for an address goes on; -1: nowhere. */
static int next_hop(const struct ring_fabric *f, unsigned sw, const struct wire_ip *dst)
{
	const struct wire_ip first = host_ip(0), first_switch = switch_ip(0);
	const unsigned rank = wire_ip_to4(dst) - wire_ip_to4(&first);
	const unsigned peer = wire_ip_to4(dst) - wire_ip_to4(&first_switch);

	if (peer <= f->opts.n_leaves && peer != sw)
		return RF_MAX_HOSTS + (int)(sw == 0 ? peer : 0);
	if (rank >= f->opts.n_hosts)
		return -1;
	if (f->opts.n_leaves == 0 || f->host[rank].leaf == sw)
		return (int)rank;
	return RF_MAX_HOSTS + (sw == 0 ? (int)f->host[rank].leaf : 0);
}

static void forward(
	struct ring_fabric *f, unsigned sw, uint8_t *frame, size_t len, const struct wire_pkt *pkt)
{
	const int to = next_hop(f, sw, &pkt->dst);
	uint8_t dmac[6], smac[6];

	if (to < 0)
		return;
	set_mac(dmac, (unsigned)to);
	set_mac(smac, RF_MAX_HOSTS + sw);
	if (wire_forward(frame, pkt, dmac, smac) == 0)
		link_send(f, RF_MAX_HOSTS + sw, (unsigned)to, frame, len);
}

struct emitting {
	struct ring_fabric *f;
	unsigned sw;
};

static void switch_emit(void *arg, struct nr_ring *r, const struct nr_emit *emit)
{
	const struct emitting *em = arg;
	uint8_t frame[RF_FRAME];
	size_t len = nr_frame(emit, frame);
	struct wire_pkt pkt;

	(void)r;
	if (wire_parse(frame, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE ||
		!wire_icrc_ok(frame, &pkt) || !wire_ip_eq(&pkt.dst, &emit->dst)) {
		fprintf(stderr, "fabric: switch %u: emitted a bad frame\n", em->sw);
		abort();
	}
	forward(em->f, em->sw, frame, len, &pkt);
}

static const struct nr_look *find_row(const struct rf_switch *sw, const struct wire_pkt *pkt)
{
	const struct nr_key key = nr_key_of(pkt);

	for (unsigned i = 0; i < sw->n_rows; i++)
		if (memcmp(&sw->key[i], &key, sizeof(key)) == 0)
			return &sw->look[i];
	return NULL;
}

static void switch_rx(struct ring_fabric *f, unsigned i, struct event *e)
{
	struct rf_switch *sw = &f->sw[i];
	struct emitting em = {f, i};
	const struct nr_sink sink = {&em, switch_emit};
	const struct nr_look *look;
	enum nr_drop drop;
	struct wire_pkt pkt;

	if (sw->dead || wire_parse(e->frame, e->len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE)
		return;
	look = find_row(sw, &pkt);
	if (look) {
		drop = nr_rx(look, &sw->arena, e->frame, &pkt, f->now, &sink);
		sw->drop[drop]++;
		if (drop != NR_FORWARD)
			return;
	}
	forward(f, i, e->frame, e->len, &pkt);
}

/* ---- rings on switches ---- */

static unsigned below(const struct ring_fabric *f, unsigned leaf, uint16_t *ranks)
{
	unsigned n = 0;

	for (unsigned r = 0; r < f->opts.n_hosts; r++)
		if (f->host[r].leaf == leaf)
			ranks[n++] = (uint16_t)r;
	return n;
}

static struct nr_in_spec host_input(const struct ring_fabric *f, const uint16_t *rank)
{
	const struct host *h = &f->host[*rank];
	const struct host *next = &f->host[(*rank + 1u) % f->opts.n_hosts];

	return (struct nr_in_spec){
		.host = true,
		.key = {h->at.ip, next->at.ip, next->at.prev_qpn},
		.reply_qpn = h->at.next_qpn,
		.psn_known = f->opts.psn_known,
		.psn = h->at.start_psn,
		.n_ranks = 1,
		.ranks = rank,
	};
}

static void install(struct ring_fabric *f, unsigned i)
{
	uint16_t ranks[RF_MAX_SWITCHES][RF_MAX_HOSTS];
	struct nr_in_spec in[RF_MAX_HOSTS] = {0};
	struct nr_spec spec = {
		.name = "fabric",
		.id = RING_ID,
		.mtu = f->opts.mtu,
		.m = f->opts.m,
		.w = f->opts.w,
		.n_ranks = (uint16_t)f->opts.n_hosts,
		.first_msg = f->opts.first_msg,
		.flags = NR_F_STALL_RNR,
		.in = in,
		.has_parent = i > 0,
		.parent_ip = switch_ip(0),
		.parent_local_ip = switch_ip(i),
		/* inputs of the root are in order of leaves */
		.parent_qpn = i > 0 ? inc_qpn(SLOT, i - 1, GEN) : 0,
	};
	struct rf_switch *sw = &f->sw[i];
	char err[NR_ERR_LEN];
	unsigned n = below(f, i, ranks[i]);

	for (unsigned k = 0; k < n; k++)
		in[spec.n_in++] = host_input(f, &ranks[i][k]);
	for (unsigned leaf = 1; i == 0 && leaf <= f->opts.n_leaves; leaf++)
		in[spec.n_in++] = (struct nr_in_spec){
			.remote_ip = switch_ip(leaf),
			.local_ip = switch_ip(0),
			.remote_qpn = inc_qpn(SLOT, NR_PARENT_EP, GEN),
			.n_ranks = below(f, leaf, ranks[leaf]),
			.ranks = ranks[leaf],
		};
	if (nr_check(&spec, err)) {
		fprintf(stderr, "fabric: switch %u: %s\n", i, err);
		abort();
	}
	sw->ring = calloc(1, nr_ring_bytes(&spec));
	sw->arena.size = nr_payload_bytes(&spec);
	sw->arena.base = malloc(sw->arena.size);
	nr_init(sw->ring, &spec, SLOT, GEN, 0);
	if (nr_activate(sw->ring, err))
		abort();
	sw->n_rows = nr_rows(sw->ring, sw->key, sw->look);
}

/* ---- hosts: a port of the verbs device ---- */

static unsigned host_rx(void *port, struct verbs_rx_frame *frames, unsigned n)
{
	struct host *h = port;
	unsigned i;

	for (i = 0; i < n && h->head != h->tail; i++) {
		struct event *e = h->inbox[h->head++ % INBOX];

		frames[i] = (struct verbs_rx_frame){e->frame, e->len, e};
	}
	return i;
}

static void host_rx_free(void *port, const struct verbs_rx_frame *frames, unsigned n)
{
	(void)port;
	for (unsigned i = 0; i < n; i++)
		free(frames[i].priv);
}

static unsigned host_tx_room(void *port)
{
	(void)port;
	return VERBS_BURST;
}

static void host_tx(void *port, const struct rnic_frame *frame)
{
	struct host *h = port;
	uint8_t flat[RF_FRAME];
	int len = rnic_frame_flatten(frame, flat, sizeof(flat));

	assert(len > 0);
	link_send(h->f, (unsigned)(h - h->f->host), RF_MAX_HOSTS + h->leaf, flat, (size_t)len);
}

static unsigned host_tx_flush(void *port)
{
	(void)port;
	return 0;
}

static uint64_t host_now(void *port)
{
	return ((struct host *)port)->f->now;
}

static void host_wait(void *port, uint64_t until)
{
	struct host *h = port;

	(void)until;
	h->f->now += 1000;
}

static const struct verbs_port_ops host_ops = {
	.rx_burst = host_rx,
	.rx_free = host_rx_free,
	.tx_room = host_tx_room,
	.tx = host_tx,
	.tx_flush = host_tx_flush,
	.now = host_now,
	.wait = host_wait,
};

static void must(unsigned rank, int rc, const char *err)
{
	if (rc == 0)
		return;
	fprintf(stderr, "fabric: rank %u: %s\n", rank, err);
	abort();
}

static void open_host(struct ring_fabric *f, unsigned rank)
{
	struct host *h = &f->host[rank];
	struct verbs_open_attr attr = {
		.rnic = {.n_ip = 1, .port_mtu = 4200, .seed = f->opts.seed + rank}};
	struct ccl_ring_conf conf = {
		.gid_index = 1,
		.rank = rank,
		.n_ranks = f->opts.n_hosts,
		.mtu = f->opts.mtu,
		.m = f->opts.m,
		.w = f->opts.w,
		.timeout_ns = f->opts.timeout_ns,
		.start_psn = f->opts.start_psn + 77 * rank,
		.netreduce = f->opts.netreduce,
		.ring_id = RING_ID,
		.first_msg = f->opts.first_msg,
	};
	char err[CCL_ERR_LEN];

	h->f = f;
	h->leaf = f->opts.n_leaves ? 1 + rank * f->opts.n_leaves / f->opts.n_hosts : 0;
	set_mac(attr.rnic.mac, rank);
	attr.rnic.ip[0] = host_ip(rank);
	h->context = conf.context = incline_verbs_open_port(&host_ops, h, &attr);
	assert(h->context);
	must(rank, ccl_ring_open(&conf, &h->ring, err), err);
	ccl_ring_address(h->ring, &h->at);
}

static void connect_host(struct ring_fabric *f, unsigned rank)
{
	struct host *h = &f->host[rank];
	const unsigned n = f->opts.n_hosts;
	const struct ccl_ring_address *prev = &f->host[(rank + n - 1) % n].at;
	const struct ccl_ring_address *next = &f->host[(rank + 1) % n].at;
	uint8_t mac[6];
	char err[CCL_ERR_LEN];

	set_mac(mac, RF_MAX_HOSTS + h->leaf);
	rnic_neigh_add(incline_verbs_rnic(h->context), &prev->ip, mac);
	rnic_neigh_add(incline_verbs_rnic(h->context), &next->ip, mac);
	must(rank, ccl_ring_connect(h->ring, prev, next, f->opts.mtu, err), err);
}

struct ring_fabric *rf_create(const struct rf_opts *opts)
{
	struct ring_fabric *f = calloc(1, sizeof(*f));

	assert(opts->n_hosts <= RF_MAX_HOSTS && opts->n_leaves < RF_MAX_SWITCHES);
	f->opts = *opts;
	f->rng = opts->seed;
	f->now = 1000000;
	f->pcap = capture_if_asked();
	for (unsigned r = 0; r < opts->n_hosts; r++)
		open_host(f, r);
	for (unsigned i = 0; opts->netreduce && i <= opts->n_leaves; i++)
		install(f, i);
	for (unsigned r = 0; r < opts->n_hosts; r++)
		connect_host(f, r);
	return f;
}

void rf_destroy(struct ring_fabric *f)
{
	for (unsigned r = 0; r < f->opts.n_hosts; r++) {
		struct host *h = &f->host[r];

		ccl_ring_close(h->ring);
		ibv_close_device(h->context);
		while (h->head != h->tail)
			free(h->inbox[h->head++ % INBOX]);
	}
	for (unsigned i = 0; i <= f->opts.n_leaves; i++) {
		free(f->sw[i].ring);
		free(f->sw[i].arena.base);
	}
	while (f->n_events)
		free(pop(f));
	free(f->heap);
	if (f->pcap)
		fclose(f->pcap);
	free(f);
}

/* ---- running ---- */

/* Everything due now. */
static void turn(struct ring_fabric *f)
{
	while (f->n_events && f->heap[0]->at <= f->now) {
		struct event *e = pop(f);
		struct host *h = &f->host[e->node % RF_MAX_HOSTS];

		if (e->node >= RF_MAX_HOSTS) {
			switch_rx(f, e->node - RF_MAX_HOSTS, e);
			free(e);
		} else if (h->tail - h->head == INBOX) {
			free(e); /* a full receive ring drops */
		} else {
			h->inbox[h->tail++ % INBOX] = e;
		}
	}
}

/* Hosts work until they have nothing to do; returns the next time anything happens. */
static uint64_t hosts_turn(struct ring_fabric *f, int *error)
{
	uint64_t next = UINT64_MAX;

	for (unsigned r = 0; r < f->opts.n_hosts; r++) {
		struct host *h = &f->host[r];
		uint64_t deadline;
		unsigned busy;
		int rc;

		do {
			busy = incline_verbs_progress(h->context);
			rc = ccl_ring_progress(h->ring, f->now);
			if (rc > 0)
				busy += (unsigned)rc;
			else if (rc < 0 && *error == 0)
				*error = rc;
		} while (busy);
		deadline = incline_verbs_deadline(h->context);
		next = deadline < next ? deadline : next;
	}
	return next;
}

static bool step(struct ring_fabric *f, int *error)
{
	uint64_t next;

	turn(f);
	next = hosts_turn(f, error);
	if (f->n_events && f->heap[0]->at < next)
		next = f->heap[0]->at;
	if (next == UINT64_MAX)
		return false;
	f->now = next > f->now ? next : f->now + 1;
	return true;
}

int rf_wait(struct ring_fabric *f, const struct ccl_req *req, uint64_t limit_ns)
{
	uint64_t end = f->now + limit_ns;
	int error = 0;

	for (;;) {
		unsigned done = 0;
		bool more = step(f, &error);

		if (error)
			return error;
		for (unsigned r = 0; r < f->opts.n_hosts; r++)
			done += ccl_ring_test(f->host[r].ring, req[r]) == 1;
		if (done == f->opts.n_hosts)
			return 0;
		if (!more)
			return -EDEADLK;
		if (f->now > end)
			return -ETIME;
	}
}

void rf_run(struct ring_fabric *f, uint64_t ns)
{
	uint64_t end = f->now + ns;
	int error = 0;

	while (f->now < end && step(f, &error))
		;
	f->now = f->now < end ? end : f->now;
}

/* ---- looking ---- */

struct ccl_ring *rf_ring(struct ring_fabric *f, unsigned rank)
{
	return f->host[rank].ring;
}

struct rnic *rf_rnic(struct ring_fabric *f, unsigned rank)
{
	return incline_verbs_rnic(f->host[rank].context);
}

uint64_t rf_now(const struct ring_fabric *f)
{
	return f->now;
}

void rf_set_host_link(struct ring_fabric *f, unsigned rank, bool up)
{
	f->host[rank].down = !up;
}

void rf_set_uplink(struct ring_fabric *f, unsigned leaf, bool up)
{
	f->uplink_down[leaf] = !up;
}

void rf_set_faults(struct ring_fabric *f, const struct rf_faults *faults)
{
	f->opts.faults = *faults;
}

struct rf_switch *rf_switch(struct ring_fabric *f, unsigned sw)
{
	return &f->sw[sw];
}

void rf_set_tap(struct ring_fabric *f, rf_tap tap, void *arg)
{
	f->tap = tap;
	f->tap_arg = arg;
}

void rf_inject(struct ring_fabric *f, unsigned sw, const uint8_t *frame, size_t len)
{
	deliver_later(f, RF_MAX_HOSTS + sw, frame, len, LINK_DELAY_NS);
}

unsigned rf_leaf_of(const struct ring_fabric *f, unsigned rank)
{
	return f->host[rank].leaf;
}

uint64_t rf_link_bytes(const struct ring_fabric *f)
{
	return f->bytes;
}
