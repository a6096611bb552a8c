/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/iwarp/pair.h"

static uint16_t mtu, table; /* for change() */
static bool small;

static void change(struct stream_config *config, int side)
{
	config->arrivals = true;
	config->mtu = mtu;
	config->max_conns = side == 0 && table != 0 ? table : 8;
	config->max_half_open = config->max_conns < 4 ? config->max_conns : 4;
	config->rto_min = 5000000;
	config->time_wait = 1000000;
	config->give_up = 10 * PAIR_SECOND;
	if (!small)
		return;
	config->max_ops = config->segments = 64;
	config->bounce_slots = 16;
	config->ring = 64;
	config->place = (struct place_config){
		.max_flows = 16, .max_mrs = 128, .chunks = 64, .committed = 2, .peak = 16};
}

void pair_link(struct pair *p, int side)
{
	const struct pair_options *o = &p->options;
	const uint32_t ring = o->ring != 0 ? o->ring : 65536;
	const struct iwarp_link_config config = {.stream = p->net->s[side],
		.mtu = mtu,
		.max_conns = side == 0 && o->conns != 0 ? o->conns : 8,
		.rx_bytes = ring,
		.tx_bytes = ring,
		.timeout = 2 * PAIR_SECOND};

	assert_int_equal(iwarp_link_create(&config, &p->link[side]), 0);
}

void pair_open(struct pair *p, const struct pair_options *o)
{
	memset(p, 0, sizeof(*p));
	p->options = *o;
	mtu = o->mtu != 0 ? o->mtu : 1500;
	table = o->stream_conns;
	small = o->small;
	p->net = net_new(o->seed + 1, change);
	p->net->loss = o->loss;
	p->net->repeat = o->repeat;
	p->net->overtake = o->overtake;
	for (int i = 0; i < 2; i++) {
		end_open(&p->end[i], (unsigned)i);
		if (i == 1 || !o->raw)
			pair_link(p, i);
	}
	assert_int_equal(iwarp_listen(p->link[1], PAIR_PORT, 99), 0);
}

void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		iwarp_link_destroy(p->link[i]);
		end_close(&p->end[i]);
	}
	net_free(p->net);
}

static bool turn(struct pair *p, int i)
{
	bool busy;

	if (p->link[i] == NULL)
		return false;
	end_rnic_tx(&p->end[i], p->net->now);
	busy = iwarp_turn(p->link[i], p->net->now);
	while (iwarp_poll(p->link[i], &p->event[i][p->n_event[i]])) {
		p->n_event[i]++;
		assert_true(p->n_event[i] < PAIR_EVENTS);
		busy = true;
	}
	return busy;
}

/* All that happens at this time: also what a timer of the streams has to tell. */
static void settle(struct pair *p)
{
	bool busy = true;

	while (busy) {
		for (int i = 0; i < 3; i++)
			net_step(p->net, p->net->now);
		busy = turn(p, 0);
		busy |= turn(p, 1);
	}
}

void pair_run(struct pair *p, uint64_t time)
{
	const uint64_t until = p->net->now + time;

	settle(p);
	while (p->net->now < until) {
		uint64_t next = until;

		for (int i = 0; i < 2; i++)
			if (p->link[i] != NULL && iwarp_due(p->link[i]) < next)
				next = iwarp_due(p->link[i]);
		if (!net_step(p->net, next))
			p->net->now = next;
		settle(p);
	}
}

void pair_run_streams(struct pair *p, uint64_t time)
{
	const uint64_t until = p->net->now + time;

	while (p->net->now < until && net_step(p->net, until))
		;
}

struct iwarp_event pair_event(struct pair *p, int side, enum iwarp_event_type type)
{
	const struct iwarp_event event = p->event[side][0];

	assert_true(p->n_event[side] > 0);
	assert_int_equal(event.type, type);
	memmove(p->event[side], p->event[side] + 1, sizeof(event) * (PAIR_EVENTS - 1));
	p->n_event[side]--;
	return event;
}

int pair_ask(struct pair *p, const struct mpa_offer *offer)
{
	return iwarp_connect(p->link[0], p->net->now, p->net->mac[1], &p->net->ip[1], PAIR_PORT,
		p->end[0].qp, offer, 7, &p->conn[0]);
}

void pair_request(struct pair *p, const struct mpa_offer *offer)
{
	for (int i = 0; i < 2; i++)
		end_qp(&p->end[i], END_ALL);
	assert_int_equal(pair_ask(p, offer), 0);
	pair_run(p, PAIR_SECOND);
	p->conn[1] = pair_event(p, 1, IWARP_REQUEST).conn;
}

void pair_connect(struct pair *p, const struct mpa_offer *offer)
{
	pair_request(p, offer);
	assert_int_equal(
		iwarp_accept(p->link[1], p->net->now, p->conn[1], p->end[1].qp, offer, 8), 0);
	pair_run(p, PAIR_SECOND);
	assert_int_equal(pair_event(p, 0, IWARP_ESTABLISHED).cookie, 7);
	assert_int_equal(pair_event(p, 1, IWARP_ESTABLISHED).cookie, 8);
}
