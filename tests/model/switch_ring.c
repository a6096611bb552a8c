/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch that is the NetReduce engine, and around it the forwarding of what is not its own. */
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

static const uint64_t NOW = 1000000000;

static void mask(const struct mc_sys *s, struct mc_switch *sw, bool age)
{
	(void)s;
	(void)age;
	memset(sw->ring->count, 0, sizeof(sw->ring->count));
	sw->ring->last_progress_ns = sw->ring->parent_told_ns = 0;
	for (unsigned i = 0; i < sw->ring->n_in; i++)
		nr_in_at(sw->ring, i)->told_ns = 0;
}

/* Out of the port that leads to its destination. */
static void route(struct mc_sys *s, unsigned node, uint32_t frame, struct mc_result *r)
{
	const uint8_t *bytes;
	const struct wire_pkt *pkt = mc_frame_pkt(s, frame, &bytes);
	struct mc_out *out;

	for (unsigned to = 0; to < s->n_nodes; to++) {
		const struct wire_ip ip = mc_address(to);

		if (to == node || !wire_ip_eq(&ip, &pkt->dst))
			continue;
		out = mc_switch_out(r);
		if (out)
			*out = (struct mc_out){frame, (uint8_t)mc_port_to(s, node, to)};
		return;
	}
	r->violation = "a packet whose destination nobody is";
}

struct sink {
	struct mc_sys *s;
	unsigned node;
	struct mc_result *r;
};

static void emit(void *arg, struct nr_ring *ring, const struct nr_emit *e)
{
	const struct sink *sink = arg;
	uint8_t frame[MC_FRAME];

	(void)ring;
	route(sink->s, sink->node, mc_frame_id(sink->s, frame, nr_frame(e, frame)), sink->r);
}

static const struct nr_look *find(const struct mc_switch *sw, const struct wire_pkt *pkt)
{
	const struct nr_key key = nr_key_of(pkt);

	for (unsigned i = 0; i < sw->n_rows; i++)
		if (memcmp(&sw->key[i], &key, sizeof(key)) == 0)
			return &sw->look[i];
	return NULL;
}

static void receive(
	struct mc_sys *s, unsigned node, unsigned port, uint32_t frame, struct mc_result *r)
{
	struct mc_switch *sw = &s->sw[node];
	struct sink arg = {s, node, r};
	const struct nr_sink sink = {&arg, emit};
	const uint8_t *bytes;
	const struct wire_pkt *pkt = mc_frame_pkt(s, frame, &bytes);
	const struct nr_look *look = find(sw, pkt);
	enum nr_drop drop = NR_FORWARD;

	(void)port;
	if (look)
		drop = nr_rx(look, &sw->arena, bytes, pkt, NOW, &sink);
	r->verdict = nr_drop_name(drop);
	if (drop == NR_ICRC_BAD)
		r->violation = "the engine refuses a right ICRC";
	if (drop == NR_FORWARD)
		route(s, node, frame, r);
}

/* It has no timers. */
static void tick(struct mc_sys *s, unsigned node, unsigned port, struct mc_result *r)
{
	(void)s;
	(void)node;
	(void)port;
	r->violation = "a ring has no timer";
}

static void fail(struct mc_sys *s, unsigned node, struct mc_result *r)
{
	(void)r;
	nr_set_failed(s->sw[node].ring);
}

static void check(struct mc_sys *s, struct mc_switch *sw, struct mc_result *r)
{
	(void)s;
	(void)sw;
	(void)r;
}

static unsigned flags(struct mc_switch *sw)
{
	uint32_t msg, o;

	return (nr_missing(sw->ring, &msg, &o) ? 0u : MC_S_CLEAN) |
	       (sw->ring->state == NR_FAILED ? MC_S_FAILED : 0u);
}

static const struct mc_engine engine = {
	.mask = mask,
	.receive = receive,
	.tick = tick,
	.fail = fail,
	.check = check,
	.flags = flags,
};

void mc_ring_open(struct mc_sys *s, unsigned node, struct nr_spec *spec)
{
	struct mc_switch *sw = &s->sw[node];
	char err[NR_ERR_LEN];

	mc_switch_image(sw, &engine, nr_ring_bytes(spec), nr_payload_bytes(spec));
	sw->ring = (struct nr_ring *)sw->image;
	nr_init(sw->ring, spec, 1, 1, 0);
	if (nr_activate(sw->ring, err) != 0)
		abort();
	sw->n_rows = nr_rows(sw->ring, sw->key, sw->look);
	mc_switch_done(s, sw);
}
