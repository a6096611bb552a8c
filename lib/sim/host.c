/* SPDX-License-Identifier: BSD-3-Clause */
/* A host: the verbs device on a port of the simulator. The NIC's own queue is short: what does not
 * fit waits in the RNIC, which then chooses what goes first. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/priv.h"

enum { NIC_QUEUE = 4, INBOX = 65536, MAX_QP = 64 };

static struct sim_link *uplink(const struct sim_host *h)
{
	return &h->sim->link[2 * h->index];
}

static unsigned host_rx(void *port, struct rnic_rx_frame *frames, unsigned n)
{
	struct sim_host *h = port;
	unsigned i;

	for (i = 0; i < n && h->first; i++) {
		struct sim_frame *f = h->first;

		h->first = f->next;
		if (!h->first)
			h->last = &h->first;
		h->waiting--;
		frames[i] = (struct rnic_rx_frame){f->data, f->len, f};
	}
	return i;
}

static void host_rx_free(void *port, const struct rnic_rx_frame *frames, unsigned n)
{
	struct sim_host *h = port;

	for (unsigned i = 0; i < n; i++)
		sim_frame_put(h->sim, frames[i].priv);
}

static unsigned full_frame(const struct sim_host *h)
{
	return h->sim->frame_cap + SIM_WIRE_OVERHEAD;
}

static unsigned host_tx_room(void *port)
{
	struct sim_host *h = port;
	const uint64_t backlog = sim_link_backlog(uplink(h), h->sim->now);
	const uint64_t queue = (uint64_t)NIC_QUEUE * full_frame(h);

	if (uplink(h)->conf.mbps == 0)
		return VERBS_BURST;
	return backlog < queue ? (unsigned)((queue - backlog) / full_frame(h)) : 0;
}

static void host_tx(void *port, const struct rnic_frame *frame)
{
	struct sim_host *h = port;
	struct sim_frame *f = sim_frame_get(h->sim, frame->len);
	int len = rnic_frame_flatten(frame, f->data, f->cap);

	assert(len == (int)frame->len);
	(void)len;
	sim_send(h->sim, 2 * h->index, f);
}

static unsigned host_tx_flush(void *port)
{
	(void)port;
	return 0;
}

static uint64_t host_now(void *port)
{
	return ((struct sim_host *)port)->sim->now;
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

int sim_host_open(struct sim *sim, unsigned i)
{
	struct sim_host *h = &sim->host[i];
	struct verbs_open_attr attr = {
		.rnic = {.port[0].n_ip = 1,
			.port[0].mtu = sim->topo->mtu,
			.max_qp = sim->conf.max_qp ? sim->conf.max_qp : MAX_QP,
			.window = sim->conf.rnic_window,
			.congestion = sim->conf.congestion,
			.seed = sim->conf.seed + i}};

	if (attr.rnic.congestion.line_mbps == 0)
		attr.rnic.congestion.line_mbps = (uint32_t)sim->conf.link.mbps;
	h->sim = sim;
	h->index = i;
	h->last = &h->first;
	sim_host_mac(i, attr.rnic.port[0].mac);
	attr.rnic.port[0].ip[0] = sim->topo->host[i].ip;
	h->context = incline_verbs_open_port(&host_ops, h, &attr);
	return h->context ? 0 : -errno;
}

void sim_host_close(struct sim_host *h)
{
	if (h->context)
		ibv_close_device(h->context);
	for (struct sim_frame *f; (f = h->first); free(f))
		h->first = f->next;
}

bool sim_host_rx(struct sim_host *h, struct sim_frame *f)
{
	if (h->waiting == INBOX) {
		sim_frame_put(h->sim, f);
		return false;
	}
	*h->last = f;
	h->last = &f->next;
	h->waiting++;
	sim_kick(h->sim, h->index);
	return true;
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
		const uint64_t half = (uint64_t)NIC_QUEUE / 2 * full_frame(h) * 8000;
		const struct sim_link *up = uplink(h);
		const uint64_t drained = up->busy - half / (up->conf.mbps ? up->conf.mbps : 1);

		at = drained < at ? drained : at;
	}
	sim_wake(sim, h->index, at);
	return error;
}
