/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch as a RoCE endpoint: one device behind all its ports, for the connections of Mode-I
 * groups. What dataplane/node_rnic.c is in the program. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/priv.h"

static int open_device(struct sim *sim, unsigned i)
{
	struct sim_node_switch *s = &sim->sw[i];
	struct mode1_device_config config = {
		.ip = {sim->topo->sw[i].ip},
		.n_ip = 1,
		.arena = {.base = s->pub.arena.base, .size = SIM_ARENA_BYTES},
		.seed = sim->conf.seed * 0x9e3779b97f4a7c15 + i,
	};
	int rc;

	sim_switch_mac(i, config.mac);
	s->of_slot = calloc(INC_GROUP_SLOTS, sizeof(struct mode1 *));
	rc = s->of_slot ? mode1_device_create(&config, &s->mode1) : -ENOMEM;
	if (rc) {
		free(s->of_slot);
		s->of_slot = NULL;
	}
	return rc;
}

int sim_mode1_make(struct sim *sim, unsigned i, struct inc_group *g, char err[INC_ERR_LEN])
{
	struct sim_node_switch *s = &sim->sw[i];
	int rc = s->mode1 ? 0 : open_device(sim, i);

	if (rc) {
		snprintf(err, INC_ERR_LEN, "the switch's own RNIC: %s", strerror(-rc));
		return rc;
	}
	return mode1_create(s->mode1, g, &s->of_slot[g->slot], err);
}

int sim_mode1_connect(struct sim *sim, unsigned i, struct inc_group *g, char err[INC_ERR_LEN])
{
	return mode1_connect(sim->sw[i].of_slot[g->slot], sim->now, err);
}

void sim_mode1_stop(struct sim *sim, unsigned i, unsigned slot)
{
	mode1_stop(sim->sw[i].of_slot[slot], sim->now);
}

void sim_mode1_forget(struct sim *sim, unsigned i, unsigned slot)
{
	struct sim_node_switch *s = &sim->sw[i];

	if (!s->of_slot || !s->of_slot[slot])
		return;
	mode1_destroy(s->of_slot[slot]);
	s->of_slot[slot] = NULL;
}

void sim_mode1_close(struct sim_node_switch *s)
{
	if (s->mode1)
		mode1_device_destroy(s->mode1);
	free(s->of_slot);
}

static void send_frame(struct sim *sim, unsigned i, const struct rnic_frame *frame)
{
	struct sim_frame *f = sim_frame_get(sim, frame->len);
	unsigned index;
	struct inc_group *g = mode1_owner(sim->sw[i].mode1, frame->qpn, &index);
	const struct inc_ep *ep = g ? inc_ep_at(g, index) : NULL;

	/* The last acknowledgement of a queue pair that is gone has nobody who waits for it. */
	if (!ep || rnic_frame_flatten(frame, f->data, f->cap) < 0) {
		sim->sw[i].pub.unroutable++;
		sim_frame_put(sim, f);
		return;
	}
	memcpy(f->data, ep->flow.dmac, 6);
	memcpy(f->data + 6, ep->flow.smac, 6);
	sim_send(sim, sim->sw[i].port[ep->port].link, f);
}

void sim_mode1_turn(struct sim *sim, unsigned i)
{
	struct mode1_device *dev = sim->sw[i].mode1;
	struct rnic_frame frame;
	struct rnic *rnic;

	if (!dev)
		return;
	rnic = mode1_rnic(dev);
	if (rnic_deadline(rnic) <= sim->now)
		rnic_timer(rnic, sim->now);
	do {
		mode1_run(dev, sim->now);
		while (rnic_tx(rnic, RNIC_ALL_PORTS, &frame, sim->now))
			send_frame(sim, i, &frame);
		mode1_run(dev, sim->now); /* a NAK that was sent may have ended a queue pair */
	} while (rnic_has_work(rnic));
	sim_switch_wake(sim, i, rnic_deadline(rnic));
}

/* Of a group that wants to see its endpoints on their ports only? */
static bool wrong_port(const struct sim_node_switch *s, uint32_t qpn, unsigned port)
{
	unsigned ep;
	struct inc_group *g = mode1_owner(s->mode1, qpn, &ep);

	return g && (g->flags & INC_F_STRICT_PORT) && inc_ep_at(g, ep)->port != port;
}

void sim_mode1_rx(struct sim *sim, unsigned i, unsigned port, const struct sim_frame *f,
	const struct wire_pkt *pkt)
{
	struct sim_node_switch *s = &sim->sw[i];

	s->pub.rnic_rx++;
	if (!s->mode1)
		return;
	if (wrong_port(s, pkt->dqpn, port)) {
		s->pub.inc_drop[INC_DROP_PORT]++;
		return;
	}
	rnic_rx(mode1_rnic(s->mode1), 0, f->data, f->len, sim->now);
	sim_mode1_turn(sim, i);
}
