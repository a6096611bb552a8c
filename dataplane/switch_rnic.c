/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/switch_rnic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/sw.h"

/* Receives that are posted between two turns: a few microseconds. */
enum { RECEIVES_AT_ONCE = 64 };

int sw_rnic_create(struct sw *sw, char *err)
{
	struct sw_rnic *r = calloc(1, sizeof(*r));
	struct mode1_device_config config = {
		.arena = sw->worker[RNIC_WORKER]->arena,
		.seed = port_now_ns(),
	};
	int rc;

	if (r == NULL)
		return sw_fail(err, -ENOMEM, "no memory for the switch's own RNIC");
	config.n_ip = sw->config.n_addresses < MODE1_MAX_IP ? sw->config.n_addresses : MODE1_MAX_IP;
	if (config.n_ip > 0)
		memcpy(config.ip, sw->config.addresses, config.n_ip * sizeof(config.ip[0]));
	if (sw->n_ports > 0)
		memcpy(config.mac, sw->ports[0].mac, sizeof(config.mac));
	rc = mode1_device_create(&config, &r->dev);
	if (rc < 0) {
		free(r);
		return sw_fail(err, rc, "the switch's own RNIC: %s", strerror(-rc));
	}
	sw->rnic = sw->worker[RNIC_WORKER]->rnic = r;
	return 0;
}

void sw_rnic_destroy(struct sw *sw)
{
	if (sw->rnic == NULL)
		return;
	mode1_device_destroy(sw->rnic->dev);
	free(sw->rnic);
}

/* A part of something that the worker does to its device. */
struct part {
	struct sw_rnic *rnic;
	struct inc_group *g;
	struct mode1 *m;
	unsigned i;
	int rc;
	char *why;
};

static int by_worker(struct sw *sw, mailbox_fn fn, struct part *p)
{
	int rc = sw_worker_call(sw, RNIC_WORKER, fn, p);

	if (rc < 0)
		snprintf(p->why, INC_ERR_LEN, "worker %d does not respond", RNIC_WORKER);
	return rc < 0 ? rc : p->rc;
}

static void begin(struct worker *w, void *arg)
{
	struct part *p = arg;

	(void)w;
	p->rc = mode1_begin(p->rnic->dev, p->g, &p->m, p->why);
}

static void make_qp(struct worker *w, void *arg)
{
	struct part *p = arg;

	(void)w;
	p->rc = mode1_make_qp(p->m, p->i, p->why);
	if (p->rc < 0)
		mode1_destroy(p->m);
}

static void enter(struct worker *w, void *arg)
{
	struct part *p = arg;

	(void)w;
	p->rnic->of_slot[p->g->slot] = p->m;
	atomic_fetch_add(&p->rnic->active, 1);
	p->rc = 0;
}

int sw_rnic_make(struct sw *sw, struct inc_group *g, char *err)
{
	char why[INC_ERR_LEN] = "";
	struct part p = {.rnic = sw->rnic, .g = g, .why = why};
	int rc = by_worker(sw, begin, &p);

	for (; rc == 0 && p.i < g->n_ep; p.i++)
		rc = by_worker(sw, make_qp, &p);
	if (rc == 0)
		rc = by_worker(sw, enter, &p);
	return rc < 0 ? sw_fail(err, rc, "%s", why) : 0;
}

static void connect_part(struct worker *w, void *arg)
{
	struct part *p = arg;

	p->rc = mode1_connect_part(p->rnic->of_slot[p->g->slot], RECEIVES_AT_ONCE, w->now, p->why);
	p->rnic->parts++;
}

int sw_rnic_connect(struct sw *sw, struct inc_group *g, char *err)
{
	char why[INC_ERR_LEN] = "";
	struct part p = {.rnic = sw->rnic, .g = g, .why = why};
	int rc;

	do
		rc = by_worker(sw, connect_part, &p);
	while (rc > 0);
	return rc < 0 ? sw_fail(err, rc, "%s", why) : 0;
}

static void stop_group(struct worker *w, void *arg)
{
	struct part *p = arg;

	mode1_stop(p->rnic->of_slot[p->g->slot], w->now);
}

void sw_rnic_stop(struct sw *sw, const struct inc_group *g)
{
	struct part p = {.rnic = sw->rnic, .g = (struct inc_group *)(uintptr_t)g};

	if (g->mode == INC_MODE_1)
		sw_worker_call(sw, RNIC_WORKER, stop_group, &p);
}

static void remove_group(struct worker *w, void *arg)
{
	struct part *p = arg;

	(void)w;
	mode1_destroy(p->rnic->of_slot[p->g->slot]);
	p->rnic->of_slot[p->g->slot] = NULL;
	atomic_fetch_sub(&p->rnic->active, 1);
}

void sw_rnic_remove(struct sw *sw, const struct inc_group *g)
{
	struct part p = {.rnic = sw->rnic, .g = (struct inc_group *)(uintptr_t)g};

	if (g->mode == INC_MODE_1)
		sw_worker_call(sw, RNIC_WORKER, remove_group, &p);
}

void sw_rnic_values(struct sw *sw, sw_value_fn fn, void *arg)
{
	static const struct {
		enum rnic_counter counter;
		const char *name, *text;
	} values[] = {
		{RNIC_C_TX_FRAMES, "rnic_tx_frames", "frames sent by the switch's own RNIC"},
		{RNIC_C_RETRANSMITS, "rnic_retransmits", "request packets that it sent again"},
		{RNIC_C_TIMEOUTS, "rnic_timeouts", "its retransmission timeouts"},
		{RNIC_C_RNR_TX, "rnic_rnr_tx", "RNR NAKs by which it held a sender"},
		{RNIC_C_RNR_RX, "rnic_rnr_rx", "RNR NAKs by which a receiver held it"},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		fn(arg, SW_COUNTER, values[i].name, values[i].text,
			rnic_count(mode1_rnic(sw->rnic->dev), values[i].counter));
}
