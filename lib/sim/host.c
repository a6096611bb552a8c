/* SPDX-License-Identifier: BSD-3-Clause */
/* A host: the verbs device on a port of the simulator. The NIC's own queue is short: what does not
 * fit waits in the RNIC, which then chooses what goes first. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/priv.h"

enum { NIC_QUEUE = 4, INBOX = 65536, MAX_QP = 64 };

static struct sim_link *uplink(const struct sim_port *p)
{
	return &p->host->sim->link[sim_host_link(p->host->sim, p->host->index, p->plane)];
}

static unsigned host_rx(void *port, struct rnic_rx_frame *frames, unsigned n)
{
	struct sim_port *p = port;
	unsigned i;

	for (i = 0; i < n && p->first; i++) {
		struct sim_frame *f = p->first;

		p->first = f->next;
		if (!p->first)
			p->last = &p->first;
		p->waiting--;
		frames[i] = (struct rnic_rx_frame){f->data, f->len, f};
	}
	return i;
}

static void host_rx_free(void *port, const struct rnic_rx_frame *frames, unsigned n)
{
	struct sim_port *p = port;

	for (unsigned i = 0; i < n; i++)
		sim_frame_put(p->host->sim, frames[i].priv);
}

static unsigned full_frame(const struct sim_host *h)
{
	return h->sim->frame_cap + SIM_WIRE_OVERHEAD;
}

static unsigned host_tx_room(void *port)
{
	const struct sim_port *p = port;
	const uint64_t backlog = sim_link_backlog(uplink(p), p->host->sim->now);
	const uint64_t queue = (uint64_t)NIC_QUEUE * full_frame(p->host);

	if (uplink(p)->conf.mbps == 0)
		return VERBS_BURST;
	return backlog < queue ? (unsigned)((queue - backlog) / full_frame(p->host)) : 0;
}

static void host_tx(void *port, const struct rnic_frame *frame)
{
	struct sim_port *p = port;
	struct sim *sim = p->host->sim;
	struct sim_frame *f = sim_frame_get(sim, frame->len);
	int len = rnic_frame_flatten(frame, f->data, f->cap);

	assert(len == (int)frame->len);
	(void)len;
	sim_send(sim, sim_host_link(sim, p->host->index, p->plane), f);
}

static unsigned host_tx_flush(void *port)
{
	(void)port;
	return 0;
}

static uint64_t host_now(void *port)
{
	return ((struct sim_port *)port)->host->sim->now;
}

/* Nothing that blocks is called in here: neighbours are known. */
static void host_wait(void *port, uint64_t until)
{
	(void)port;
	(void)until;
	abort();
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

void sim_host_mac(unsigned host, uint8_t mac[6])
{
	const uint8_t m[6] = {2, 0, 0, 0, (uint8_t)(host >> 8), (uint8_t)host};

	memcpy(mac, m, sizeof(m));
}

void sim_host_port_mac(unsigned host, unsigned plane, uint8_t mac[6])
{
	sim_host_mac(host, mac);
	mac[3] = (uint8_t)(plane << 4);
}

static struct mrc_settings mrc_settings_of(const struct sim *sim)
{
	struct mrc_settings s = sim->conf.mrc ? *sim->conf.mrc : mrc_settings_default();

	if (sim->conf.mrc_base_rtt_ns)
		s.base_rtt_us = (uint32_t)(sim->conf.mrc_base_rtt_ns / 1000);
	if (sim->conf.link.mbps)
		s.mbps = (uint32_t)sim->conf.link.mbps * sim_topo_planes(sim->topo);
	return s;
}

int sim_host_open(struct sim *sim, unsigned i)
{
	struct sim_host *h = &sim->host[i];
	const struct mrc_settings mrc = mrc_settings_of(sim);
	struct verbs_open_attr attr = {
		.rnic = {.n_ports = sim_topo_planes(sim->topo),
			.max_qp = sim->conf.max_qp ? sim->conf.max_qp : MAX_QP,
			.window = sim->conf.rnic_window,
			.quantum = sim->conf.rnic_quantum,
			.n_workers = sim->conf.rx_workers,
			.congestion = sim->conf.congestion,
			.seed = sim->conf.seed + i},
		.mrc = {.settings = &mrc}};

	if (attr.rnic.congestion.line_mbps == 0)
		attr.rnic.congestion.line_mbps = (uint32_t)sim->conf.link.mbps;
	h->sim = sim;
	h->index = i;
	for (unsigned p = 0; p < attr.rnic.n_ports; p++) {
		struct rnic_port_config *port = &attr.rnic.port[p];

		h->port[p] = (struct sim_port){.host = h, .plane = p, .last = &h->port[p].first};
		port->n_ip = 1;
		port->mtu = sim->topo->mtu;
		port->ip[0] = sim->topo->host[i].ip;
		sim_host_port_mac(i, p, port->mac);
		attr.mrc.sid[p] = sim_srv6_sid(sim, i, p);
		if (p)
			attr.more[p - 1] = &h->port[p];
	}
	h->context = incline_verbs_open_port(&host_ops, &h->port[0], &attr);
	return h->context ? 0 : -errno;
}

void sim_host_close(struct sim_host *h)
{
	if (h->context)
		ibv_close_device(h->context);
	for (unsigned p = 0; p < SIM_MAX_PLANES; p++)
		for (struct sim_frame *f; (f = h->port[p].first); free(f))
			h->port[p].first = f->next;
}

bool sim_host_rx(struct sim_host *h, unsigned plane, struct sim_frame *f)
{
	struct sim_port *p = &h->port[plane];

	if (p->waiting == INBOX) {
		sim_frame_put(h->sim, f);
		return false;
	}
	*p->last = f;
	p->last = &f->next;
	p->waiting++;
	sim_kick(h->sim, h->index);
	return true;
}

void sim_set_port(struct sim *sim, unsigned host, unsigned plane, bool up)
{
	const unsigned l = sim_host_link(sim, host, plane);

	for (unsigned i = l; i < l + 2; i++) {
		sim->link[i].conf.n_down = up ? 0 : 1;
		sim->link[i].conf.down[0].from = 0;
		sim->link[i].conf.down[0].until = UINT64_MAX;
	}
	rnic_port_set(incline_verbs_rnic(sim->host[host].context), plane, up, sim->now);
	sim_kick(sim, host);
}

/* When a port that is full has room again for half of what it takes; the first of them. */
static uint64_t drained(const struct sim_host *h)
{
	const uint64_t half = (uint64_t)NIC_QUEUE / 2 * full_frame(h) * 8000;
	uint64_t at = UINT64_MAX;

	for (unsigned p = 0; p < sim_topo_planes(h->sim->topo); p++) {
		const struct sim_link *up = uplink(&h->port[p]);
		const uint64_t room = up->busy - half / (up->conf.mbps ? up->conf.mbps : 1);

		if (up->conf.pfc_xoff) /* queue.c kicks it */
			continue;
		/* Of several ports those with room are not what it waits for. */
		if (h->port[1].host == NULL || (up->busy > h->sim->now && room > h->sim->now))
			at = room < at ? room : at;
	}
	return at;
}

/* What the apps have done; *error: the first one's, if it is 0 yet. */
static unsigned run_apps(struct sim_host *h, int *error)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < h->n_apps; i++) {
		const int rc = h->app[i].run(h->app[i].arg, h->sim->now);

		if (rc > 0)
			busy += (unsigned)rc;
		else if (*error == 0)
			*error = rc;
	}
	return busy;
}

void sim_host_prefetch(const struct sim_host *h, bool next)
{
	enum { LINE = 64, LINES = 3 }; /* its own, and the headers' */
	const uint8_t *frame = next ? (const uint8_t *)h->port[0].first : NULL;

	if (!next)
		__builtin_prefetch(&h->port[0].first);
	for (unsigned i = 0; frame && i < LINES; i++)
		__builtin_prefetch(frame + i * LINE);
}

/* Works until there is nothing to do, or no room on the wire: then again when there is. */
int sim_host_run(struct sim_host *h)
{
	struct sim *sim = h->sim;
	int error = 0;
	uint64_t at;

	if (sim->now < h->frozen_until) {
		sim_wake(sim, h->index, h->frozen_until);
		return 0;
	}
	while (incline_verbs_progress(h->context) + run_apps(h, &error) > 0)
		;
	at = incline_verbs_deadline(h->context);
	if (rnic_has_work(incline_verbs_rnic(h->context))) {
		const uint64_t room = drained(h);

		at = room < at ? room : at;
	}
	sim_wake(sim, h->index, at);
	return error;
}
