/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/switch_rnic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/sw.h"

/* Receives that are posted while the worker waits: a few microseconds. */
enum { RECEIVES_AT_ONCE = 64, TURN_TRIES = 1000, TURN_STEP_US = 20 };

int sw_rnic_create(struct sw *sw, char *err)
{
	struct sw_rnic *r = calloc(1, sizeof(*r));
	struct mode1_device_config config = {
		.arena = sw->worker->arena,
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
	pthread_mutex_init(&r->lock, NULL);
	sw->rnic = sw->worker->rnic = r;
	return 0;
}

void sw_rnic_destroy(struct sw *sw)
{
	if (sw->rnic == NULL)
		return;
	mode1_device_destroy(sw->rnic->dev);
	pthread_mutex_destroy(&sw->rnic->lock);
	free(sw->rnic);
}

/* One part of something long. The lock is not fair: the worker gets a turn of its loop in between,
 * so that no turn waits for more than one part. */
static void let_turn(struct sw *sw)
{
	const uint64_t *turns = &sw->worker->turns;
	const uint64_t before = __atomic_load_n(turns, __ATOMIC_RELAXED);

	for (unsigned i = 0; sw->running && i < TURN_TRIES; i++) {
		if (__atomic_load_n(turns, __ATOMIC_RELAXED) != before)
			return;
		usleep(TURN_STEP_US);
	}
}

static int make(struct sw *sw, struct inc_group *g, struct mode1 **m, char *why)
{
	struct sw_rnic *r = sw->rnic;
	int rc;

	pthread_mutex_lock(&r->lock);
	rc = mode1_begin(r->dev, g, m, why);
	pthread_mutex_unlock(&r->lock);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; rc == 0 && i < g->n_ep; i++) {
		let_turn(sw);
		pthread_mutex_lock(&r->lock);
		rc = mode1_make_qp(*m, i, why);
		if (rc < 0)
			mode1_destroy(*m);
		pthread_mutex_unlock(&r->lock);
	}
	return rc;
}

int sw_rnic_make(struct sw *sw, struct inc_group *g, char *err)
{
	struct sw_rnic *r = sw->rnic;
	char why[INC_ERR_LEN] = "";
	struct mode1 *m;
	int rc = make(sw, g, &m, why);

	if (rc < 0)
		return sw_fail(err, rc, "%s", why);
	pthread_mutex_lock(&r->lock);
	r->of_slot[g->slot] = m;
	pthread_mutex_unlock(&r->lock);
	atomic_fetch_add(&r->active, 1);
	return 0;
}

int sw_rnic_connect(struct sw *sw, struct inc_group *g, char *err)
{
	struct sw_rnic *r = sw->rnic;
	char why[INC_ERR_LEN] = "";
	int rc;

	do {
		pthread_mutex_lock(&r->lock);
		rc = mode1_connect_part(r->of_slot[g->slot], RECEIVES_AT_ONCE, port_now_ns(), why);
		r->parts++;
		pthread_mutex_unlock(&r->lock);
		if (rc > 0)
			let_turn(sw);
	} while (rc > 0);
	return rc < 0 ? sw_fail(err, rc, "%s", why) : 0;
}

void sw_rnic_stop(struct sw *sw, const struct inc_group *g)
{
	struct sw_rnic *r = sw->rnic;

	if (g->mode != INC_MODE_1)
		return;
	pthread_mutex_lock(&r->lock);
	mode1_stop(r->of_slot[g->slot], port_now_ns());
	pthread_mutex_unlock(&r->lock);
}

void sw_rnic_remove(struct sw *sw, const struct inc_group *g)
{
	struct sw_rnic *r = sw->rnic;

	if (g->mode != INC_MODE_1)
		return;
	pthread_mutex_lock(&r->lock);
	mode1_destroy(r->of_slot[g->slot]);
	r->of_slot[g->slot] = NULL;
	pthread_mutex_unlock(&r->lock);
	atomic_fetch_sub(&r->active, 1);
}

void sw_rnic_values(struct sw *sw,
	void (*fn)(void *arg, const char *name, const char *text, uint64_t value), void *arg)
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
		fn(arg, values[i].name, values[i].text,
			rnic_count(mode1_rnic(sw->rnic->dev), values[i].counter));
}
